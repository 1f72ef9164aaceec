/* SPDX-License-Identifier: MIT */
/* report.c - what a crawl came to, in words. */
#include "cli/crawl/report.h"

#include <inttypes.h>
#include <string.h>

#include "cli/kit/figures.h"

#define HOSTS_SHOWN 20
#define REASONS_SHOWN 3
#define NAME_COLUMNS 32
#define WAITED_NS_MIN (10 * WEIR_MILLISECOND) /* less is not worth a word */

/* ---- totals ---- */

static void print_end(const struct wr_crawl_report *report, FILE *out)
{
    const struct wr_engine_stats *stats = &report->result->stats;
    static const char *const words[] = {"completed", "given up", "cancelled", "out of time or bytes",
                                        "blocked",   "stopped",  "broken off"};
    char passed[32], bytes[32];
    wr_figure_duration(stats->elapsed_ns, passed, sizeof passed);
    wr_figure_bytes(stats->bytes, bytes, sizeof bytes);
    fprintf(out, "%s after %s: %" PRIu64 " page%s, %.1f/s, %s", words[report->result->end], passed, stats->pages,
            wr_figure_s(stats->pages),
            stats->elapsed_ns > 0 ? (double)stats->pages * 1e9 / (double)stats->elapsed_ns : 0, bytes);
    if (stats->queued > 0)
        fprintf(out, "; %" PRIu64 " still queued", stats->queued);
    fputc('\n', out);
    if (report->result->end != WR_END_STOPPED && report->result->why[0] != '\0')
        fprintf(out, "why: %s\n", report->result->why);
}

static void print_failure(const struct wr_crawl_report *report, FILE *out)
{
    const struct wr_engine_result *result = report->result;
    if (result->failed_url[0] != '\0')
        fprintf(out, "failed: %s%s: %s\n", result->stats.failed > 1 ? "for example " : "", result->failed_url,
                result->failed_why);
}

/* That there was more, and which option left it out. */
static void print_left_out(const struct wr_crawl_report *report, FILE *out)
{
    const struct wr_engine_stats *stats = &report->result->stats;
    const struct wr_crawl_settings *settings = report->settings;
    const char *by = settings->host_pages == 0  ? "--max-pages"
                     : settings->max_pages == 0 ? "--host-pages"
                                                : "--max-pages or --host-pages";
    if (stats->beyond > 0)
        fprintf(out, "left out: %" PRIu64 " link%s beyond %s\n", stats->beyond, wr_figure_s(stats->beyond), by);
    if (stats->deeper > 0)
        fprintf(out, "left out: %" PRIu64 " link%s deeper than --depth %" PRIu64 "\n", stats->deeper,
                wr_figure_s(stats->deeper), settings->depth);
}

static void print_totals(const struct wr_crawl_report *report, FILE *out)
{
    const struct wr_engine_stats *stats = &report->result->stats;
    fprintf(out,
            "pages: %" PRIu64 " fetched, %" PRIu64 " failed, %" PRIu64 " denied by robots.txt, %" PRIu64
            " redirect%s\n",
            stats->fetched, stats->failed, stats->denied, stats->redirects, wr_figure_s(stats->redirects));
    if (stats->unchanged > 0)
        fprintf(out, "unchanged: %" PRIu64 " of those that were fetched\n", stats->unchanged);
    print_failure(report, out);
    print_left_out(report, out);
    if (stats->blocked_hosts > 0)
        fprintf(out, "blocked: %" PRIu64 " of them by firewalls, at %" PRIu64 " host%s that do%s not let us in\n",
                stats->blocked, stats->blocked_hosts, wr_figure_s(stats->blocked_hosts),
                stats->blocked_hosts == 1 ? "es" : "");
    fprintf(out,
            "requests: %" PRIu64 ", of them %" PRIu64 " for robots.txt; %" PRIu64 " answered 429, 403 or 503, %" PRIu64
            " tried again\n",
            stats->requests, stats->robots, stats->rejected, stats->retries);
    if (report->refused > 0)
        fprintf(out, "seeds: %" PRIu64 " left out, for lines that are no URL\n", report->refused);
    if (strcmp(report->settings->out, "-") != 0)
        fprintf(out, "lines: %s\n", report->settings->out);
}

/* ---- hosts ---- */

struct table {
    FILE *out;
    size_t shown, more;
    uint64_t hasty; /* S1-29 */
};

/* The reasons that cost most, "pace 12.3 s, robots 1.0 s". */
static void format_waits(const struct wr_engine_host *host, char *ret_text, size_t room)
{
    bool is_told[WEIR_REASON_QUEUE + 1] = {false};
    size_t used = 0;
    (void)snprintf(ret_text, room, "-");
    for (int n = 0; n < REASONS_SHOWN && used < room; n++) {
        char figure[32];
        size_t most = 0;
        for (size_t i = 1; i <= WEIR_REASON_QUEUE; i++)
            if (!is_told[i] && (most == 0 || host->waited_ns[i] > host->waited_ns[most]))
                most = i;
        if (most == 0 || host->waited_ns[most] < WAITED_NS_MIN)
            return;
        is_told[most] = true;
        wr_figure_duration(host->waited_ns[most], figure, sizeof figure);
        used += (size_t)snprintf(ret_text + used, room - used, "%s%s %s", n > 0 ? ", " : "",
                                 weir_reason_name((weir_reason)most), figure);
    }
}

static void print_host(void *context, const struct wr_engine_host *host)
{
    struct table *table = context;
    char reached[32], allowed[32], closest[32] = "-", waits[128];
    bool is_long = host->key.bytes > NAME_COLUMNS;
    table->hasty += host->hasty;
    if (table->shown == HOSTS_SHOWN) {
        table->more++;
        return;
    }
    if (table->shown++ == 0)
        fprintf(table->out, "\n%-*s %8s %8s %8s %6s %8s %8s %8s  %s\n", NAME_COLUMNS, "host", "requests", "ok",
                "rejected", "failed", "reached", "allowed", "closest", "waited for");
    wr_figure_rate(host->reached_rate, reached, sizeof reached);
    wr_figure_rate(host->allowed_rate, allowed, sizeof allowed);
    if (host->closest_ns > 0)
        wr_figure_duration(host->closest_ns, closest, sizeof closest);
    format_waits(host, waits, sizeof waits);
    fprintf(table->out, "%.*s%s%*s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %6" PRIu64 " %8s %8s %8s  %s\n",
            is_long ? NAME_COLUMNS - 3 : (int)host->key.bytes, host->key.data, is_long ? "..." : "",
            is_long ? 0 : NAME_COLUMNS - (int)host->key.bytes, "", host->requests, host->ok, host->rejected,
            host->failed, reached, allowed, closest, waits);
}

void wr_crawl_report_text(const struct wr_crawl_report *report, FILE *out)
{
    struct table table = {.out = out};
    print_end(report, out);
    print_totals(report, out);
    uint64_t left_out = wr_engine_report(report->engine, print_host, &table);
    if (table.more + left_out > 0)
        fprintf(out, "… and %" PRIu64 " host%s more%s\n", (uint64_t)table.more + left_out,
                wr_figure_s((uint64_t)table.more + left_out),
                report->settings->report == NULL ? ": --report FILE.json has them all" : "");
    if (table.hasty > 0)
        fprintf(out,
                "WARNING: %" PRIu64 " requests came sooner than their host's interval allows; please report this\n",
                table.hasty);
}
