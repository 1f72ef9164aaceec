/* SPDX-License-Identifier: MIT */
/* bench.h - weir bench: measures the hot paths on this machine. */
#ifndef WR_CLI_BENCH_BENCH_H
#define WR_CLI_BENCH_BENCH_H

/* Each function returns an exit status of enum wr_exit. */
int wr_bench_run(int argc, char **argv);
int wr_bench_limiter_run(int argc, char **argv);
int wr_bench_links_run(int argc, char **argv);
int wr_bench_pace_run(int argc, char **argv);
int wr_bench_plan_run(int argc, char **argv);
int wr_bench_request_run(int argc, char **argv);
int wr_bench_robots_run(int argc, char **argv);
int wr_bench_rules_run(int argc, char **argv);
int wr_bench_store_run(int argc, char **argv);
int wr_bench_table_run(int argc, char **argv);

#endif
