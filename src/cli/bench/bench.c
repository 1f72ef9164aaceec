/* SPDX-License-Identifier: MIT */
/* bench.c - weir bench: the table of what can be measured. */
#include "cli/bench/bench.h"

#include "cli/kit/command.h"

static const struct wr_command list[] = {
    {"limiter", "nanoseconds per decision of every algorithm, and per reading of the clocks", wr_bench_limiter_run},
    {"links", "microseconds per page of the link scanner, and how fast it reads text", wr_bench_links_run},
    {"pace", "nanoseconds per request and bytes per host of a pacer", wr_bench_pace_run},
    {"plan", "nanoseconds per URL of a crawl's decisions, and bytes per host and task", wr_bench_plan_run},
    {"request", "nanoseconds to read a request to the daemon", wr_bench_request_run},
    {"robots", "megabytes per second to read a robots.txt, and nanoseconds to ask it", wr_bench_robots_run},
    {"rules", "nanoseconds per decision by the rules of a daemon", wr_bench_rules_run},
    {"store", "microseconds per page and bytes per task of a state file", wr_bench_store_run},
    {"table", "nanoseconds and bytes per key of a keyed table, and the bound nobody can beat", wr_bench_table_run},
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
