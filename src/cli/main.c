/* SPDX-License-Identifier: MIT */
/* main.c - weir(1): lists the commands and runs the one that is named. */
#include <string.h>
#include <weir/version.h>

#include "cli/bench/bench.h"
#include "cli/config/config_command.h"
#include "cli/crawl/crawl_command.h"
#include "cli/fetch/fetch_command.h"
#include "cli/guard/guard_command.h"
#include "cli/headers/headers.h"
#include "cli/inspect/inspect_commands.h"
#include "cli/kit/command.h"
#include "cli/kit/complete.h"
#include "cli/kit/console.h"
#include "cli/kit/memory_limit.h"
#include "cli/kit/secret.h"
#include "cli/report/report_command.h"
#include "cli/robots/robots_command.h"
#include "cli/serve/serve_command.h"
#include "cli/simulate/simulate.h"
#include "cli/url/url_command.h"
#include "cli/warm/warm.h"

static int run_complete(int argc, char **argv);

static const struct wr_command list[] = {
    {"crawl", "Crawl sites politely, many hosts at once", wr_crawl_run, "Send requests"},
    {"fetch", "Fetch the given URLs politely", wr_fetch_run, NULL},
    {"warm", "Warm the cache of a site by its sitemaps", wr_warm_run, NULL},
    {"jobs", "List, show, pause, resume and cancel crawls", wr_jobs_run, "Watch and steer a crawl"},
    {"hosts", "List, pause and pace the hosts of a crawl", wr_hosts_run, NULL},
    {"why", "Show what holds a URL back, and until when", wr_why_run, NULL},
    {"report", "Show the report of a crawl (text, JSON, HTML)", wr_report_run, NULL},
    {"serve", "Answer proxies and programs whether a request may pass", wr_serve_run, "Protect a service"},
    {"simulate", "Try pacers and limits against models in virtual time", wr_simulate_run, "Look things up"},
    {"robots", "Show what a robots.txt allows, and by which line", wr_robots_run, NULL},
    {"url", "Show how weir reads a URL", wr_url_run, NULL},
    {"headers", "Show the rate limits in a response header", wr_headers_run, NULL},
    {"guard", "Show whether weir may connect to an address", wr_guard_run, NULL},
    {"config", "Print the settings, and where each comes from", wr_config_run, NULL},
    {"bench", "Measure the hot paths on this machine", wr_bench_run, "Other"},
    {"complete", "Print completions for a shell", run_complete, NULL},
};

static int run_weir(int argc, char **argv)
{
    const struct wr_commands commands = {
        .who = "weir",
        .about = "weir decides when a request may start. \"weir --version\" prints the version.",
        .version = weir_version(),
        .list = list,
        .count = sizeof list / sizeof list[0],
    };
    return wr_commands_run(&commands, argc, argv);
}

static int run_complete(int argc, char **argv)
{
    int skipped = argc > 0 && strcmp(argv[0], "--") == 0;

    wr_complete_begin();
    return run_weir(argc - skipped, argv + skipped);
}

int main(int argc, char **argv)
{
    wr_secrets_hide(argc, argv);
    wr_memory_limit_apply();
    wr_output_init();
    int status = run_weir(argc - 1, argv + 1);
    if (!wr_print_finish() && status == WR_EXIT_OK)
        status = WR_EXIT_FAILED;
    return status;
}
