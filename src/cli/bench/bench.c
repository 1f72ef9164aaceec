/* SPDX-License-Identifier: MIT */
/* bench.c - weir bench: lists the benchmarks and runs the one that is named. */
#include "cli/bench/bench.h"

#include "cli/kit/command.h"

static const struct wr_command list[] = {
    {"limiter", "Nanoseconds per decision of each algorithm and per reading of a clock", wr_bench_limiter_run, NULL},
    {"links", "Microseconds per page of the link scanner", wr_bench_links_run, NULL},
    {"pace", "Nanoseconds per request and bytes per host of a pacer", wr_bench_pace_run, NULL},
    {"plan", "Nanoseconds per URL and bytes per host of a crawl's plan", wr_bench_plan_run, NULL},
    {"request", "Nanoseconds to parse a request to the daemon", wr_bench_request_run, NULL},
    {"robots", "Megabytes per second to parse robots.txt, nanoseconds to match", wr_bench_robots_run, NULL},
    {"rules", "Nanoseconds per decision by the rules of a daemon", wr_bench_rules_run, NULL},
    {"store", "Microseconds per page and bytes per task of a state file", wr_bench_store_run, NULL},
    {"table", "Nanoseconds and bytes per key of a keyed table", wr_bench_table_run, NULL},
};

static const struct wr_commands commands = {
    .who = "weir bench",
    .about = "Measures the hot paths on this machine.",
    .list = list,
    .count = sizeof list / sizeof list[0],
};

int wr_bench_run(int argc, char **argv)
{
    return wr_commands_run(&commands, argc, argv);
}
