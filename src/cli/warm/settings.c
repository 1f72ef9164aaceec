/* SPDX-License-Identifier: MIT */
/* settings.c - the options of weir warm. */
#include "cli/warm/settings.h"

#include <string.h>

#include "cli/kit/output.h"

#define OPERANDS_MAX 1000000
#define DAY UINT64_C(86400000000000)
#define PAGES_MAX 1000000
#define WINDOW 16
#define WINDOW_UNLIMITED 64

typedef struct wr_warm_settings warm_settings;

static const struct wr_option options[] = {
    {"sitemap", WR_LIST(warm_settings, sitemaps), .value = "URL",
     .help = "also this sitemap, whatever its name looks like"},
    {"urls-file", WR_STRING(warm_settings, urls_file), .value = "FILE",
     .help = "also these pages, one on each line; - is standard input"},
    {"max-pages", WR_COUNT(warm_settings, max_pages), .value = "N", .min = 1, .max = PAGES_MAX,
     .help = "no more; sitemaps are not read further"},
    {"min-hit-ratio", WR_COUNT(warm_settings, min_hit_ratio), .value = "PERCENT", .min = 0, .max = 100,
     .help = "the status is 1 if fewer pages come out of the cache at the end"},
    {"out", WR_STRING(warm_settings, out), .value = "FILE",
     .help = "write a line of JSON for each page there; - is standard output"},
    {"append", WR_FLAG(warm_settings, append), .help = "to what that file holds already, refused otherwise"},
    {"report", WR_STRING(warm_settings, report), .value = "FILE", .help = "write the report there, too, as JSON"},
    {"state", WR_STRING(warm_settings, state), .value = "FILE", .check = wr_check_file,
     .help = "remember there what hosts were found to bear"},
    WR_PACE_OPTIONS(warm_settings, pace),
    WR_CONFIG_OPTION(warm_settings, sources),
    {"concurrency", WR_COUNT(warm_settings, concurrency), .value = "N", .min = 1, .max = 10000,
     .help = "at most so many in flight in all"},
    {"user-agent", WR_STRING(warm_settings, agent), .value = "TEXT",
     .help = "its first word is the name that robots.txt is asked for"},
    {"header", WR_LIST(warm_settings, headers), .value = "LINE", .check = wr_check_header, .is_secret = true,
     .help = "\"Name: value\", for the hosts given only"},
    {"proxy", WR_STRING(warm_settings, proxy), .value = "URL", .check = wr_check_proxy, .is_secret = true,
     .help = "send everything through this proxy"},
    {"ca-file", WR_STRING(warm_settings, ca_file), .value = "FILE",
     .help = "certificates to trust, instead of the system's"},
    {"ignore-robots", WR_FLAG(warm_settings, ignore_robots), .help = "do not obey robots.txt: for servers of your own"},
    {"robots-on-error", WR_CHOICE(warm_settings, robots_on_error), .choices = wr_robots_names,
     .help = "while robots.txt cannot be had"},
    {"allow-private", WR_FLAG(warm_settings, allow_private),
     .help = "also private and loopback addresses, refused otherwise"},
    {"timeout", WR_DURATION(warm_settings, timeout), .value = "D", .min = 1, .max = DAY,
     .help = "of one request on the wire"},
    {"max-defer", WR_DURATION(warm_settings, max_defer), .value = "D", .min = 1, .max = 30 * DAY,
     .help = "fail what a host holds off for longer"},
    {"quiet", WR_FLAG(warm_settings, quiet), .help = "no progress, no report on the screen"},
    {"json", WR_FLAG(warm_settings, json), .help = "print the report as JSON"},
};

const struct wr_usage wr_warm_usage = {
    .who = "weir warm",
    .section = "warm",
    .operands = "[DOMAIN|SITEMAP|URL…]",
    .operands_min = 0,
    .operands_max = OPERANDS_MAX,
    .about = "Fetches every page that a site's sitemaps list, at the pace the site bears, so that\n"
             "its cache has them before visitors come; looks again at those that the cache had\n"
             "not; and says how many come out of the cache now, how much time that saves, and\n"
             "which pages are slow or broken.\n"
             "\n"
             "  weir warm example.org                       sitemaps by robots.txt, or where they usually are\n"
             "  weir warm https://example.org/news.xml      just this sitemap, or index of sitemaps\n"
             "  weir warm https://example.org/a https://example.org/b          just these pages\n"
             "  weir warm example.org --min-hit-ratio 95 --report warm.json    after a deploy\n"
             "  weir warm --allow-private --pace unlimited http://localhost:8080   your own server\n"
             "\n"
             "A page is asked for once if the cache has it or never will (bypass, dynamic), and if\n"
             "it says miss or expired at most five times: HEAD up to three times, half a second to\n"
             "a second apart, and GET once more when it is there. Everything waits its turn.\n"
             "\n"
             "The status is 0 if all went well, 1 if a page is broken, a sitemap cannot be read, or\n"
             "the hit ratio is below --min-hit-ratio, 2 if the request was not understood, and 130\n"
             "after an interrupt.\n",
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
