/* SPDX-License-Identifier: MIT */
/* warm_report_json.c - writes the report of weir warm as JSON. */
#include "base/json.h"
#include "cli/warm/warm_report.h"

#define PIECE_ROOM 65536 /* bytes of the totals, or of one page */

static void append_total_seconds(struct wr_buf *buf, const char *before, int64_t ns)
{
    wr_append_json_decimal(buf, before, ns > 0 ? (uint64_t)ns / 1000 : 0, 6);
}

static void append_ratio(struct wr_buf *buf, const char *before, const struct wr_warm_summary *sum, uint64_t hits)
{
    if (sum->answered > 0)
        wr_append_json_decimal(buf, before, wr_warm_hit_ratio(sum, hits), 3);
    else
        wr_append_json_null(buf, before);
}

static void append_warm_totals(struct wr_buf *buf, const struct wr_warm *warm, const struct wr_warm_summary *sum)
{
    append_total_seconds(buf, "{\"seconds\": ", sum->elapsed_ns);
    append_total_seconds(buf,
                         ", \"first_page_s\": ", warm->first_page_at > 0 ? warm->first_page_at - warm->began_at : 0);
    wr_append_json_count(buf, ",\n \"pages\": ", sum->pages);
    wr_append_json_count(buf, ", \"answered\": ", sum->answered);
    wr_append_json_count(buf, ", \"broken\": ", sum->broken);
    wr_append_json_count(buf, ", \"denied\": ", sum->denied);
    wr_append_json_count(buf, ", \"not_reached\": ", sum->missed);
    wr_buf_append_string(buf, warm->is_full ? ", \"max_pages_reached\": true" : ", \"max_pages_reached\": false");
    wr_append_json_count(buf, ",\n \"requests\": ", sum->wire.requests);
    wr_append_json_count(buf, ", \"page_requests\": ", sum->requests);
    append_ratio(buf, ",\n \"hit_ratio_before\": ", sum, sum->hits_before);
    append_ratio(buf, ", \"hit_ratio_after\": ", sum, sum->hits_after);
    wr_append_json_count(buf, ",\n \"warmed\": ", sum->compared);
    append_total_seconds(buf, ", \"latency_before_s\": ", sum->before_ns);
    append_total_seconds(buf, ", \"latency_after_s\": ", sum->after_ns);
    append_total_seconds(buf, ", \"saved_s\": ", sum->saved_ns);
    wr_append_json_count(buf, ",\n \"sitemaps_read\": ", warm->sitemaps_read);
    wr_append_json_count(buf, ", \"sitemaps_failed\": ", warm->sitemaps_failed);
    wr_append_json_count(buf, ", \"sitemaps_left_out\": ", warm->sitemaps_left_out);
    wr_append_json_count(buf, ", \"entries\": ", warm->listed);
    wr_append_json_count(buf, ", \"entries_of_others\": ", warm->foreign);
    wr_append_json_count(buf, ", \"entries_broken\": ", warm->left_out);
}

static void append_statuses(struct wr_buf *buf, const struct wr_warm_summary *sum)
{
    wr_buf_append_string(buf, ",\n \"cache\": {");
    for (int i = 0; i < WR_CACHE_COUNT; i++) {
        wr_buf_append_string(buf, i > 0 ? ", \"" : "\"");
        wr_buf_append_string(buf, wr_cache_name((enum wr_cache_status)i));
        wr_append_json_count(buf, "\": {\"before\": ", sum->before[i]);
        wr_append_json_count(buf, ", \"after\": ", sum->after[i]);
        wr_buf_append_string(buf, "}");
    }
    wr_buf_append_string(buf, "}");
}

static bool flush_to_file(struct wr_buf *buf, FILE *out)
{
    bool well = buf->error == 0 && fwrite(buf->bytes, 1, buf->length, out) == buf->length;
    wr_buf_clear(buf);
    return well;
}

/* Appends seconds; null if the page was not fetched a second time. */
static void append_compared_seconds(struct wr_buf *buf, const char *before, int64_t ns)
{
    if (ns > 0)
        append_total_seconds(buf, before, ns);
    else
        wr_append_json_null(buf, before);
}

/* Separates the elements of a list. */
static void append_comma(struct wr_buf *buf, bool *is_first)
{
    wr_buf_append_string(buf, *is_first ? "\n  " : ",\n  ");
    *is_first = false;
}

static bool write_slowest(struct wr_buf *buf, const struct wr_warm_summary *sum, FILE *out)
{
    bool is_first = true, well = true;
    wr_buf_append_string(buf, ",\n \"slowest\": [");
    for (size_t i = 0; i < sum->slowest_count; i++) {
        append_comma(buf, &is_first);
        wr_append_json_text(buf, "{\"url\": ", wr_span_of(sum->slowest[i]->url));
        append_total_seconds(buf, ", \"latency_before_s\": ", sum->slowest[i]->course.before_ns);
        append_compared_seconds(buf, ", \"latency_after_s\": ", sum->slowest[i]->course.after_ns);
        wr_buf_append_string(buf, "}");
        well = flush_to_file(buf, out) && well;
    }
    wr_buf_append_string(buf, "]");
    return well;
}

static bool write_broken(struct wr_buf *buf, const struct wr_warm *warm, FILE *out)
{
    bool is_first = true, well = true;
    wr_buf_append_string(buf, ",\n \"broken_pages\": [");
    for (size_t i = 0; i < warm->pages_count; i++) {
        const struct wr_warm_page *page = warm->pages[i];
        bool failed = page->failure != WEIR_FAILURE_NONE;
        if (!wr_warm_is_broken(page))
            continue;
        append_comma(buf, &is_first);
        wr_append_json_text(buf, "{\"url\": ", wr_span_of(page->url));
        wr_append_json_count(buf, ", \"status\": ", (uint64_t)page->status);
        wr_append_json_text(buf, ", \"failure\": ", wr_span_of(failed ? weir_failure_name(page->failure) : NULL));
        wr_append_json_text(buf, ", \"detail\": ", wr_span_of(page->detail));
        wr_buf_append_string(buf, "}");
        well = flush_to_file(buf, out) && well;
    }
    wr_buf_append_string(buf, "]");
    return well;
}

static bool write_sitemap_failures(struct wr_buf *buf, const struct wr_warm *warm, FILE *out)
{
    bool is_first = true, well = true;
    wr_buf_append_string(buf, ",\n \"sitemap_failures\": [");
    for (size_t i = 0; i < warm->troubles_count; i++) {
        append_comma(buf, &is_first);
        wr_append_json_text(buf, "{\"url\": ", wr_span_of(warm->troubles[i].url));
        wr_append_json_text(buf, ", \"why\": ", wr_span_of(warm->troubles[i].why));
        wr_buf_append_string(buf, "}");
        well = flush_to_file(buf, out) && well;
    }
    wr_buf_append_string(buf, "]}\n");
    return flush_to_file(buf, out) && well;
}

bool wr_warm_report_json(const struct wr_warm *warm, const struct wr_warm_summary *sum, FILE *out)
{
    char memory[PIECE_ROOM];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    append_warm_totals(&buf, warm, sum);
    append_statuses(&buf, sum);
    bool well = write_slowest(&buf, sum, out);
    well = write_broken(&buf, warm, out) && well;
    well = write_sitemap_failures(&buf, warm, out) && well;
    return fflush(out) == 0 && well;
}
