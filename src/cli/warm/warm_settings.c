/* SPDX-License-Identifier: MIT */
/* warm_settings.c - the options of weir warm. */
#include "cli/warm/warm_settings.h"

#include <string.h>

#include "cli/kit/console.h"

#define OPERANDS_MAX 1000000
#define DAY UINT64_C(86400000000000)
#define PAGES_MAX 1000000
#define WINDOW 16
#define WINDOW_UNLIMITED 64

typedef struct wr_warm_settings warm_settings;

static const struct wr_option options[] = {
    {"sitemap", WR_LIST(warm_settings, sitemaps), .value = "URL",
     .help = "Read the sitemap at URL, whatever its name (repeatable)", .heading = "Scope", .is_basic = true},
    {"urls-file", WR_STRING(warm_settings, urls_file), .value = "FILE",
     .help = "Read URLs of pages from FILE, one per line (-: standard input)", .is_basic = true},
    {"max-pages", WR_COUNT(warm_settings, max_pages), .value = "N", .min = 1, .max = PAGES_MAX,
     .help = "Fetch at most N pages", .is_basic = true},
    {"ignore-robots", WR_FLAG(warm_settings, ignore_robots), .help = "Do not obey robots.txt; for your own servers"},
    {"robots-on-error", WR_CHOICE(warm_settings, robots_on_error), .choices = wr_robots_on_error_names,
     .help = "Wait, allow all or deny all while robots.txt cannot be fetched"},
    WR_PACE_OPTIONS(warm_settings, pace),
    {"concurrency", WR_COUNT(warm_settings, concurrency), .value = "N", .min = 1, .max = 10000,
     .help = "Limit requests in flight to all hosts"},
    {"timeout", WR_DURATION(warm_settings, timeout), .value = "D", .min = 1, .max = DAY,
     .help = "Time limit for one HTTP request", .heading = "Limits"},
    {"max-defer", WR_DURATION(warm_settings, max_defer), .value = "D", .min = 1, .max = 30 * DAY,
     .help = "Fail a URL that its host has held back for longer than D"},
    {"min-hit-ratio", WR_COUNT(warm_settings, min_hit_ratio), .value = "PERCENT", .min = 0, .max = 100,
     .help = "Exit with 1 if fewer pages come from the cache at the end", .is_basic = true},
    {"out", WR_STRING(warm_settings, out), .value = "FILE",
     .help = "Write one JSON line per page to FILE (-: standard output)", .heading = "Output", .is_basic = true},
    {"append", WR_FLAG(warm_settings, append), .help = "Append to an existing output file"},
    {"report", WR_STRING(warm_settings, report), .value = "FILE", .help = "Write the report as JSON to FILE, too",
     .is_basic = true},
    {"json", WR_FLAG(warm_settings, json), .help = "Print the report as JSON"},
    {"quiet", WR_FLAG(warm_settings, quiet), .help = "Print neither progress nor report"},
    {"state", WR_STRING(warm_settings, state), .value = "FILE", .check = wr_check_file,
     .help = "Keep the learned pace of hosts in FILE", .heading = "State", .is_basic = true},
    WR_CONFIG_OPTION(warm_settings, sources, NULL),
    {"user-agent", WR_STRING(warm_settings, agent), .value = "TEXT",
     .help = "User-Agent; its first word is matched against robots.txt", .heading = "Identity"},
    {"header", WR_LIST(warm_settings, headers), .value = "LINE", .check = wr_check_header, .is_secret = true,
     .help = "Send \"Name: value\" to the given hosts only (repeatable)", .is_basic = true},
    {"proxy", WR_STRING(warm_settings, proxy), .value = "URL", .check = wr_check_proxy, .is_secret = true,
     .help = "Send all requests through the proxy at URL", .heading = "Network"},
    {"ca-file", WR_STRING(warm_settings, ca_file), .value = "FILE",
     .help = "Trust the certificates in FILE instead of the system's"},
    {"allow-private", WR_FLAG(warm_settings, allow_private), .help = "Connect also to private and loopback addresses"},
};

const struct wr_usage wr_warm_usage = {
    .who = "weir warm",
    .section = "warm",
    .operands = "[DOMAIN|SITEMAP|URL…]",
    .operands_min = 0,
    .operands_max = OPERANDS_MAX,
    .about = "Fetches every page that the sitemaps of a site list, at a pace that the site tolerates,\n"
             "so that its cache has them before visitors come. Fetches cache misses again. Prints the\n"
             "hit ratio, the time that it saves, and the slow and broken pages.\n"
             "\n"
             "  weir warm example.org                       sitemaps named in robots.txt, or the usual names\n"
             "  weir warm https://example.org/news.xml      one sitemap, or one index of sitemaps\n"
             "  weir warm https://example.org/a https://example.org/b          these pages\n"
             "  weir warm example.org --min-hit-ratio 95 --report warm.json    after a deploy\n"
             "  weir warm --allow-private --pace unlimited http://localhost:8080   your own server\n"
             "\n"
             "A page is requested once if the cache has it or never stores it (bypass, dynamic). After\n"
             "a miss it is requested at most five times: up to three HEAD requests, half a second to a\n"
             "second apart, and one more GET when the cache has it. Every request keeps the pace.\n"
             "\n"
             "Exits with 0 if all went well, 1 if a page is broken, a sitemap cannot be read, or the hit\n"
             "ratio is below --min-hit-ratio, 2 if the command line is wrong, and 130 after an interrupt.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

void wr_warm_settings_init(struct wr_warm_settings *ret_settings)
{
    *ret_settings = (struct wr_warm_settings){
        .concurrency = 64,
        .max_pages = 50000,
        .timeout = 2 * WEIR_MINUTE,
        .max_defer = 30 * WEIR_MINUTE,
        .pace = {.attempts = 3},
    };
}

bool wr_warm_settings_check(const struct wr_warm_settings *settings)
{
    bool is_out_standard = settings->out != NULL && strcmp(settings->out, "-") == 0;
    if (settings->json && is_out_standard)
        wr_complain("--json and --out - would mix on standard output; use --report FILE instead of --json");
    else if (settings->out != NULL && settings->report != NULL && !is_out_standard &&
             strcmp(settings->out, settings->report) == 0)
        wr_complain("--out and --report name the same file, %s; give each its own", settings->out);
    else if (settings->append && settings->out == NULL)
        wr_complain("--append adds to the file of --out: give that, too");
    else
        return true;
    return false;
}

unsigned wr_warm_window(const struct wr_warm_settings *settings)
{
    if (settings->pace.per_host > 0)
        return (unsigned)settings->pace.per_host * 2;
    return settings->pace.profile == WEIR_PROFILE_UNLIMITED ? WINDOW_UNLIMITED : WINDOW;
}
