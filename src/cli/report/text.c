/* SPDX-License-Identifier: MIT */
/* text.c - what a crawl came to, in words. */
#include "cli/report/text.h"

#include <inttypes.h>
#include <string.h>

#include "cli/kit/figures.h"

#define HOSTS_SHOWN 20
#define REASONS_SHOWN 3
#define NAME_COLUMNS 32
#define WAITED_NS_MIN (10 * WEIR_MILLISECOND) /* less is not worth a word */

/* ---- totals ---- */

const char *wr_report_end_words(const char *end)
{
    static const char *const words[][2] = {
        {"failed", "given up"}, {"budget", "out of time or bytes"}, {"broken", "broken off"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i][0], end) == 0)
            return words[i][1];
    return end;
}

static void print_end(const struct wr_facts *facts, FILE *out)
{
    char passed[32], bytes[32];
    wr_figure_duration(facts->elapsed_ns, passed, sizeof passed);
    wr_figure_bytes(facts->bytes, bytes, sizeof bytes);
    fprintf(out, "%s after %s: %" PRIu64 " page%s, %.1f/s, %s", wr_report_end_words(facts->end), passed, facts->pages,
            wr_figure_s(facts->pages),
            facts->elapsed_ns > 0 ? (double)facts->pages * 1e9 / (double)facts->elapsed_ns : 0, bytes);
    if (facts->queued > 0)
        fprintf(out, "; %" PRIu64 " still queued", facts->queued);
    fputc('\n', out);
    if (strcmp(facts->end, "stopped") != 0 && facts->why[0] != '\0')
        fprintf(out, "why: %s\n", facts->why);
}

static void print_failure(const struct wr_facts *facts, FILE *out)
{
    if (facts->failed_url[0] != '\0')
        fprintf(out, "failed: %s%s: %s\n", facts->failed > 1 ? "for example " : "", facts->failed_url,
                facts->failed_why);
}

/* That there was more, and which option left it out. */
static void print_left_out(const struct wr_facts *facts, FILE *out)
{
    const char *by = facts->host_pages == 0  ? "--max-pages"
                     : facts->max_pages == 0 ? "--host-pages"
                                             : "--max-pages or --host-pages";
    if (facts->beyond > 0)
        fprintf(out, "left out: %" PRIu64 " link%s beyond %s\n", facts->beyond, wr_figure_s(facts->beyond), by);
    if (facts->deeper > 0)
        fprintf(out, "left out: %" PRIu64 " link%s deeper than --depth %" PRIu64 "\n", facts->deeper,
                wr_figure_s(facts->deeper), facts->depth);
}

static void print_totals(const struct wr_facts *facts, FILE *out)
{
    fprintf(out,
            "pages: %" PRIu64 " fetched, %" PRIu64 " failed, %" PRIu64 " denied by robots.txt, %" PRIu64
            " redirect%s\n",
            facts->fetched, facts->failed, facts->denied, facts->redirects, wr_figure_s(facts->redirects));
    if (facts->unchanged > 0)
        fprintf(out, "unchanged: %" PRIu64 " of those that were fetched\n", facts->unchanged);
    print_failure(facts, out);
    print_left_out(facts, out);
    if (facts->blocked_hosts > 0)
        fprintf(out, "blocked: %" PRIu64 " of them by firewalls, at %" PRIu64 " host%s that do%s not let us in\n",
                facts->blocked, facts->blocked_hosts, wr_figure_s(facts->blocked_hosts),
                facts->blocked_hosts == 1 ? "es" : "");
    fprintf(out,
            "requests: %" PRIu64 ", of them %" PRIu64 " for robots.txt; %" PRIu64 " answered 429, 403 or 503, %" PRIu64
            " tried again\n",
            facts->requests, facts->robots, facts->rejected, facts->retries);
    if (facts->seeds_refused > 0)
        fprintf(out, "seeds: %" PRIu64 " left out, for lines that are no URL\n", facts->seeds_refused);
    if (strcmp(facts->out, "-") != 0 && facts->out[0] != '\0')
        fprintf(out, "lines: %s\n", facts->out);
}

/* ---- hosts ---- */

void wr_report_waits(const int64_t waited_ns[WEIR_REASON_QUEUE + 1], char *ret_text, size_t room)
{
    bool is_told[WEIR_REASON_QUEUE + 1] = {false};
    size_t used = 0;
    (void)snprintf(ret_text, room, "-");
    for (int n = 0; n < REASONS_SHOWN && used < room; n++) {
        char figure[32];
        size_t most = 0;
        for (size_t i = 1; i <= WEIR_REASON_QUEUE; i++)
            if (!is_told[i] && (most == 0 || waited_ns[i] > waited_ns[most]))
                most = i;
        if (most == 0 || waited_ns[most] < WAITED_NS_MIN)
            return;
        is_told[most] = true;
        wr_figure_duration(waited_ns[most], figure, sizeof figure);
        used += (size_t)snprintf(ret_text + used, room - used, "%s%s %s", n > 0 ? ", " : "",
                                 weir_reason_name((weir_reason)most), figure);
    }
}

static void print_host(const struct wr_facts_host *host, FILE *out)
{
    char reached[32], allowed[32], closest[32] = "-", waits[128];
    size_t bytes = strlen(host->name);
    bool is_long = bytes > NAME_COLUMNS;
    wr_figure_rate(host->reached, reached, sizeof reached);
    wr_figure_rate(host->allowed, allowed, sizeof allowed);
    if (host->closest_ns > 0)
        wr_figure_duration(host->closest_ns, closest, sizeof closest);
    wr_report_waits(host->waited_ns, waits, sizeof waits);
    fprintf(out, "%.*s%s%*s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %6" PRIu64 " %8s %8s %8s  %s\n",
            is_long ? NAME_COLUMNS - 3 : (int)bytes, host->name, is_long ? "..." : "",
            is_long ? 0 : NAME_COLUMNS - (int)bytes, "", host->requests, host->ok, host->rejected, host->failed,
            reached, allowed, closest, waits);
}

void wr_report_text(const struct wr_facts *facts, const char *where, FILE *out)
{
    size_t shown = facts->host_count < HOSTS_SHOWN ? facts->host_count : HOSTS_SHOWN;
    uint64_t more = facts->host_count - shown + facts->hosts_left_out;
    print_end(facts, out);
    print_totals(facts, out);
    if (shown > 0)
        fprintf(out, "\n%-*s %8s %8s %8s %6s %8s %8s %8s  %s\n", NAME_COLUMNS, "host", "requests", "ok", "rejected",
                "failed", "reached", "allowed", "closest", "waited for");
    for (size_t i = 0; i < shown; i++)
        print_host(&facts->hosts[i], out);
    if (more > 0)
        fprintf(out, "… and %" PRIu64 " host%s more%s%s%s\n", more, wr_figure_s(more), where != NULL ? ": " : "",
                where != NULL ? where : "", where != NULL ? " has them all" : "");
    if (facts->too_soon > 0)
        fprintf(out,
                "WARNING: %" PRIu64 " requests came sooner than their host's interval allows; please report this\n",
                facts->too_soon);
}
