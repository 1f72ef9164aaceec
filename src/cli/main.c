/* SPDX-License-Identifier: MIT */
/* main.c - weir(1): the table of its commands. */
#include <string.h>
#include <weir/version.h>

#include "cli/bench/bench.h"
#include "cli/config/config.h"
#include "cli/crawl/crawl.h"
#include "cli/desk/desk.h"
#include "cli/fetch/fetch.h"
#include "cli/guard/guard.h"
#include "cli/headers/headers.h"
#include "cli/kit/command.h"
#include "cli/kit/complete.h"
#include "cli/kit/limits.h"
#include "cli/kit/output.h"
#include "cli/kit/secret.h"
#include "cli/report/report.h"
#include "cli/robots/robots.h"
#include "cli/serve/serve.h"
#include "cli/simulate/simulate.h"
#include "cli/url/url.h"
#include "cli/warm/warm.h"

static int complete(int argc, char **argv);

static const struct wr_command list[] = {
    {"bench", "measure the hot paths on this machine", wr_bench_run},
    {"complete", "say what may come next, for the completion of shells", complete},
    {"config", "print the settings, and where each came from", wr_config_run},
    {"crawl", "fetch whole sites politely", wr_crawl_run},
    {"fetch", "fetch given URLs politely", wr_fetch_run},
    {"guard", "say whether an address may be connected to", wr_guard_run},
    {"headers", "say what a response's header tells of limits", wr_headers_run},
    {"hosts", "look at the hosts of a crawl, and steer them", wr_hosts_run},
    {"jobs", "look at crawls, and end or resume them", wr_jobs_run},
    {"report", "tell again what a crawl came to, also as a page", wr_report_run},
    {"robots", "say what a robots.txt allows, and which line decides", wr_robots_run},
    {"serve", "decide who may come in, for proxies and programs", wr_serve_run},
    {"simulate", "try pacers against modelled hosts, in virtual time", wr_simulate_run},
    {"url", "show a URL the way weir sees it", wr_url_run},
    {"warm", "fill a site's cache by its sitemaps, and say what it has", wr_warm_run},
    {"why", "say what holds a URL back, and until when", wr_why_run},
};

static int run(int argc, char **argv)
{
    const struct wr_commands commands = {
        .who = "weir",
        .about = "Decides when a request may go. \"weir --version\" tells which weir this is.",
        .version = weir_version(),
        .list = list,
        .count = sizeof list / sizeof list[0],
    };
    return wr_commands_run(&commands, argc, argv);
}

static int complete(int argc, char **argv)
{
    int skipped = argc > 0 && strcmp(argv[0], "--") == 0;

    wr_complete_begin();
    return run(argc - skipped, argv + skipped);
}

int main(int argc, char **argv)
{
    wr_secrets_hide(argc, argv);
    wr_limits_obey();
    wr_output_init();
    int status = run(argc - 1, argv + 1);
    if (!wr_print_finish() && status == WR_EXIT_OK)
        status = WR_EXIT_FAILED;
    return status;
}
