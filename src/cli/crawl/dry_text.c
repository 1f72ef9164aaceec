/* SPDX-License-Identifier: MIT */
/* dry_text.c - prints the result of a dry run as text or JSON. */
#include <inttypes.h>
#include <string.h>

#include "cli/crawl/dry.h"
#include "cli/kit/console.h"
#include "cli/kit/format.h"
#include "cli/kit/sanitise.h"
#include "http/net/idna.h"

#define SITEMAPS_SHOWN 5

static const char *const sources[] = {"fetched", "stored", "none", "unknown", "ignored"};

/* Calls `tell` for each URL that robots.txt denies, at most `most` times. */
static void each_denied(const struct wr_dry_host *host, size_t most,
                        void (*tell)(const char *url, const struct wr_fetch_deliver_robots *answer, bool is_first))
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    size_t told = 0;
    for (size_t i = 0; host->robots != NULL && i < host->url_count && told < most; i++) {
        if (wr_url_parse(wr_span_of(host->urls[i]), NULL, wr_idna_libidn2(), memory, sizeof memory, &url) != WR_URL_OK)
            continue;
        struct wr_fetch_deliver_robots answer = wr_robots_match(host->robots, wr_url_target(&url));
        if (!answer.allowed)
            tell(host->urls[i], &answer, told++ == 0);
    }
}

static uint32_t sitemaps_of(const struct wr_dry_host *host)
{
    return host->robots != NULL ? wr_robots_facts(host->robots)->sitemaps : 0;
}

/* Returns the time for all pages: that of the slowest host, because hosts are fetched in parallel,
 * or longer if the global rate is the bottleneck. Sets *ret_pages to the number of pages. */
static int64_t total_crawl_ns(const struct wr_dry *dry, uint64_t *ret_pages)
{
    int64_t longest = 0;
    *ret_pages = 0;
    for (size_t i = 0; i < dry->count; i++) {
        const struct wr_dry_host *host = &dry->hosts[i];
        longest = host->seconds_ns > longest ? host->seconds_ns : longest;
        *ret_pages += host->allowed;
    }
    double all = dry->options->global_rate > 0 ? (double)*ret_pages / dry->options->global_rate * 1e9 : 0;
    return all > (double)longest && all < (double)WEIR_DURATION_MAX ? (int64_t)all : longest;
}

/* ---- text ---- */

static void print_denied_url(const char *url, const struct wr_fetch_deliver_robots *answer, bool is_first)
{
    (void)is_first;
    wr_print("    denied: ");
    wr_print_sanitised(wr_span_of(url));
    wr_print(" by line %" PRIu32 ", Disallow: ", answer->line);
    wr_print_sanitised(answer->path);
    wr_print("\n");
}

static void print_robots_status(const struct wr_dry *dry, const struct wr_dry_host *host)
{
    static const char *const meanwhile[] = {"pages wait until it can be fetched", "all URLs would be allowed",
                                            "no URL would be fetched"};
    wr_print("    robots.txt: ");
    switch (host->source) {
    case WR_DRY_FETCHED:
        wr_print("fetched now");
        break;
    case WR_DRY_STORED:
        wr_print("from the state file");
        break;
    case WR_DRY_NONE:
        wr_print("missing (404), so all URLs are allowed");
        break;
    case WR_DRY_IGNORED:
        wr_print("ignored");
        break;
    case WR_DRY_UNKNOWN:
        wr_print("not known (%s): %s", host->why, meanwhile[dry->settings->robots_on_error]);
        break;
    }
    if (host->robots != NULL && wr_robots_interval_ns(host->robots) > 0) {
        char delay[32];
        wr_format_duration(wr_robots_interval_ns(host->robots), delay, sizeof delay);
        wr_print("; Crawl-delay %s, line %" PRIu32, delay, wr_robots_interval_line(host->robots));
    }
    wr_print("\n");
}

static void print_dry_host(const struct wr_dry *dry, const struct wr_dry_host *host)
{
    char rate[32] = "any", passed[32];
    if (host->interval_ns > 0)
        wr_format_rate(1e9 / (double)host->interval_ns, rate, sizeof rate);
    wr_format_duration(host->seconds_ns, passed, sizeof passed);
    wr_print("%s: %" PRIu64 " page%s, starts at %s%s%s, takes %s at that pace\n", host->key, host->allowed,
             wr_plural_ending(host->allowed), rate, host->is_known ? " as learned before" : "",
             host->is_blocked  ? " (not fetched: its firewall blocks the crawler)"
             : host->is_paused ? " (paused by weir hosts pause)"
             : host->is_held   ? " (not before the time that its server named)"
                               : "",
             passed);
    print_robots_status(dry, host);
    if (host->denied > 0)
        wr_print("    %" PRIu64 " denied by robots.txt\n", host->denied);
    each_denied(host, WR_DRY_DENIED, print_denied_url);
    for (uint32_t i = 0; i < sitemaps_of(host) && i < SITEMAPS_SHOWN; i++) {
        wr_print("    sitemap: ");
        wr_print_sanitised(wr_robots_sitemap(host->robots, i));
        wr_print("\n");
    }
    if (sitemaps_of(host) > SITEMAPS_SHOWN)
        wr_print("    and %" PRIu32 " more sitemaps\n", sitemaps_of(host) - SITEMAPS_SHOWN);
}

static void print_dry_text(const struct wr_dry *dry)
{
    char passed[32];
    uint64_t pages;
    wr_format_duration(total_crawl_ns(dry, &pages), passed, sizeof passed);
    for (size_t i = 0; i < dry->count; i++)
        print_dry_host(dry, &dry->hosts[i]);
    if (dry->left_out > 0)
        wr_print("and %" PRIu64 " URL%s of further hosts, which were not checked\n", dry->left_out,
                 wr_plural_ending(dry->left_out));
    wr_print("in all %" PRIu64 " page%s to start with, about %s; links found there are extra, and paces are learned\n",
             pages, wr_plural_ending(pages), passed);
}

/* ---- JSON ---- */

static void print_denied_json(const char *url, const struct wr_fetch_deliver_robots *answer, bool is_first)
{
    wr_print("%s{\"url\": ", is_first ? "" : ", ");
    wr_print_json_string(wr_span_of(url));
    wr_print(", \"line\": %" PRIu32 ", \"rule\": ", answer->line);
    wr_print_json_string(answer->path);
    wr_print("}");
}

static void print_dry_host_json(const struct wr_dry_host *host)
{
    int64_t delay_ns = host->robots != NULL ? wr_robots_interval_ns(host->robots) : 0;
    wr_print("{\"host\": ");
    wr_print_json_string(wr_span_of(host->key));
    wr_print(", \"robots_url\": ");
    wr_print_json_string(wr_span_of(host->robots_url));
    wr_print(", \"robots\": \"%s\", \"robots_why\": ", sources[host->source]);
    if (host->source == WR_DRY_UNKNOWN)
        wr_print_json_string(wr_span_of(host->why));
    else
        wr_print("null");
    wr_print(", \"pages\": %" PRIu64 ", \"allowed\": %" PRIu64 ", \"denied\": %" PRIu64, host->pages, host->allowed,
             host->denied);
    wr_print(", \"judged\": %zu, \"crawl_delay_s\": %.3f, \"interval_s\": %.6f, \"is_learned\": %s, \"is_paused\": %s, "
             "\"is_blocked\": %s",
             host->url_count, (double)delay_ns / 1e9, (double)host->interval_ns / 1e9,
             host->is_known ? "true" : "false", host->is_paused ? "true" : "false",
             host->is_blocked ? "true" : "false");
    wr_print(", \"seconds\": %.3f, \"denied_urls\": [", (double)host->seconds_ns / 1e9);
    each_denied(host, WR_DRY_URLS, print_denied_json);
    wr_print("], \"sitemaps\": [");
    for (uint32_t i = 0; i < sitemaps_of(host); i++) {
        wr_print("%s", i > 0 ? ", " : "");
        wr_print_json_string(wr_robots_sitemap(host->robots, i));
    }
    wr_print("]}");
}

static void print_dry_json(const struct wr_dry *dry)
{
    uint64_t pages;
    int64_t ns = total_crawl_ns(dry, &pages);
    wr_print("{\"dry_run\": true, \"pages\": %" PRIu64 ", \"seconds\": %.3f, \"urls_left_out\": %" PRIu64
             ",\n \"hosts\": [",
             pages, (double)ns / 1e9, dry->left_out);
    for (size_t i = 0; i < dry->count; i++) {
        wr_print("%s", i > 0 ? ",\n  " : "\n  ");
        print_dry_host_json(&dry->hosts[i]);
    }
    wr_print("\n ]}\n");
}

void wr_dry_print(const struct wr_dry *dry)
{
    if (dry->settings->json)
        print_dry_json(dry);
    else
        print_dry_text(dry);
}
