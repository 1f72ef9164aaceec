/* SPDX-License-Identifier: MIT */
/* warm_report.c - prints the report of weir warm as text. */
#include "cli/warm/warm_report.h"

#include <inttypes.h>

#include "base/buf.h"
#include "cli/kit/format.h"

/* Prints a text in quotes and printable ASCII, because it may come from a server. URLs are
 * printable ASCII since they were parsed. */
static void print_quoted(FILE *out, const char *text)
{
    char memory[256];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_buf_append_quoted(&buf, wr_span_of(text));
    fputs(memory, out);
}

static void print_warm_totals(const struct wr_warm *warm, const struct wr_warm_summary *sum, FILE *out)
{
    char passed[32];
    wr_format_duration(sum->elapsed_ns, passed, sizeof passed);
    fprintf(out,
            "%" PRIu64 " of %" PRIu64 " pages answered in %s: %" PRIu64 " requests, %" PRIu64 " of them for pages\n",
            sum->answered, sum->pages, passed, sum->wire.requests, sum->requests);
    if (sum->answered > 0)
        fprintf(out, "hit ratio: %.1f %% before, %.1f %% after\n",
                (double)wr_warm_hit_ratio(sum, sum->hits_before) / 10,
                (double)wr_warm_hit_ratio(sum, sum->hits_after) / 10);
    if (sum->compared > 0) {
        char before[32], after[32], saved[32], each[32];
        int64_t count = (int64_t)sum->compared;
        wr_format_duration(sum->before_ns / count, before, sizeof before);
        wr_format_duration(sum->after_ns / count, after, sizeof after);
        wr_format_duration(sum->saved_ns, saved, sizeof saved);
        wr_format_duration(sum->saved_ns / count, each, sizeof each);
        fprintf(out, "time to the first byte of %" PRIu64 " warmed: %s before, %s after; %s saved a page, %s in all\n",
                sum->compared, before, after, each, saved);
    }
    if (warm->is_full)
        fprintf(out, "stopped before the last page: --max-pages is %" PRIu64 "\n", warm->settings->max_pages);
}

static void print_statuses(const struct wr_warm_summary *sum, FILE *out)
{
    if (sum->answered == 0)
        return;
    fprintf(out, "\n%-12s %8s %8s\n", "cache", "before", "after");
    for (int i = 0; i < WR_CACHE_COUNT; i++)
        if (sum->before[i] + sum->after[i] > 0)
            fprintf(out, "%-12s %8" PRIu64 " %8" PRIu64 "\n", wr_cache_name((enum wr_cache_status)i), sum->before[i],
                    sum->after[i]);
    if (sum->before[WR_CACHE_UNKNOWN] == sum->answered)
        fprintf(out, "no response shows a cache: no X-Cache, Cache-Status, Age or similar field\n");
    else if (sum->after[WR_CACHE_BYPASS] + sum->after[WR_CACHE_DYNAMIC] == sum->answered)
        fprintf(out, "the cache bypasses every page: it is not set up for pages, or cookies or headers prevent it\n");
}

static void print_slowest(const struct wr_warm_summary *sum, FILE *out)
{
    if (sum->slowest_count > 0)
        fprintf(out, "\n%9s %9s  slowest pages, to the first byte\n", "before", "after");
    for (size_t i = 0; i < sum->slowest_count; i++) {
        char before[32], after[32] = "-";
        const struct wr_warm_page *page = sum->slowest[i];
        wr_format_duration(page->course.before_ns, before, sizeof before);
        if (page->course.after_ns > 0)
            wr_format_duration(page->course.after_ns, after, sizeof after);
        fprintf(out, "%9s %9s  %s\n", before, after, page->url);
    }
}

static void print_broken(const struct wr_warm *warm, const struct wr_warm_summary *sum, FILE *out)
{
    uint64_t shown = 0;
    if (sum->broken > 0)
        fprintf(out, "\nbroken pages: %" PRIu64 "\n", sum->broken);
    for (size_t i = 0; i < warm->pages_count && shown < WR_WARM_BROKEN_SHOWN; i++) {
        const struct wr_warm_page *page = warm->pages[i];
        if (!wr_warm_is_broken(page))
            continue;
        shown++;
        if (page->failure == WEIR_FAILURE_NONE)
            fprintf(out, "%9d  %s\n", page->status, page->url);
        else
            fprintf(out, "%9s  %s\n", weir_failure_name(page->failure), page->url);
    }
    if (sum->broken > shown)
        fprintf(out, "… and %" PRIu64 " more: --out FILE.jsonl has them all\n", sum->broken - shown);
}

static void print_skipped(const struct wr_warm *warm, const struct wr_warm_summary *sum, FILE *out)
{
    const struct {
        uint64_t count;
        const char *words;
    } rows[] = {
        {sum->missed, "pages not reached"},
        {sum->denied, "pages denied by robots.txt"},
        {warm->foreign, "skipped entries that are pages of other sites"},
        {warm->left_out, "skipped entries that are broken or not URLs"},
        {warm->sitemaps_left_out, "skipped sitemaps of other sites, too deep or too many"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].count > 0)
            fprintf(out, "%s: %" PRIu64 "\n", rows[i].words, rows[i].count);
}

void wr_warm_report_text(const struct wr_warm *warm, const struct wr_warm_summary *sum, FILE *out)
{
    print_warm_totals(warm, sum, out);
    print_statuses(sum, out);
    print_slowest(sum, out);
    print_broken(warm, sum, out);
    fputc('\n', out);
    print_skipped(warm, sum, out);
    fprintf(out, "sitemaps: %" PRIu64 " read, %" PRIu64 " failed\n", warm->sitemaps_read, warm->sitemaps_failed);
    for (size_t i = 0; i < warm->troubles_count; i++) {
        fprintf(out, "  %s: ", warm->troubles[i].url);
        print_quoted(out, warm->troubles[i].why);
        fputc('\n', out);
    }
}
