/* SPDX-License-Identifier: MIT */
/* warm_line.c - writes the result of a page as a JSON line. */
#include "base/json.h"
#include "cli/warm/warm_state.h"

/* Two URLs of 8 KiB in ASCII, and a detail that escaping makes up to six times longer. */
#define LINE_ROOM 65536

static void append_seconds_or_null(struct wr_buf *buf, const char *before, int64_t ns)
{
    if (ns > 0)
        wr_append_json_decimal(buf, before, (uint64_t)ns / 1000, 6);
    else
        wr_append_json_null(buf, before);
}

static void append_cache(struct wr_buf *buf, const char *before, const struct wr_warm_page *page,
                         enum wr_cache_status status)
{
    wr_append_json_text(buf, before, wr_span_of(page->course.is_sound ? wr_cache_name(status) : NULL));
}

void wr_warm_write_line(struct wr_warm *warm, const struct wr_warm_page *page)
{
    char memory[LINE_ROOM];
    struct wr_buf buf;
    const struct wr_warm_page_steps *course = &page->course;
    bool failed = page->failure != WEIR_FAILURE_NONE;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_append_json_text(&buf, "{\"url\": ", wr_span_of(page->url));
    wr_append_json_text(&buf, ", \"final_url\": ", wr_span_of(page->final_url != NULL ? page->final_url : page->url));
    if (page->status != 0)
        wr_append_json_count(&buf, ", \"status\": ", (uint64_t)page->status);
    else
        wr_append_json_null(&buf, ", \"status\": ");
    wr_append_json_text(&buf, ", \"failure\": ", wr_span_of(failed ? weir_failure_name(page->failure) : NULL));
    wr_append_json_text(&buf, ", \"detail\": ", wr_span_of(page->detail));
    append_cache(&buf, ", \"cache_before\": ", page, course->before);
    append_cache(&buf, ", \"cache_after\": ", page, course->after);
    append_seconds_or_null(&buf, ", \"latency_before_s\": ", course->before_ns);
    append_seconds_or_null(&buf, ", \"latency_after_s\": ", course->after_ns);
    append_seconds_or_null(&buf, ", \"saved_s\": ", wr_warm_saved_ns(course));
    wr_append_json_count(&buf, ", \"bytes\": ", page->bytes);
    wr_append_json_count(&buf, ", \"probes\": ", course->probes);
    wr_append_json_count(&buf, ", \"requests\": ", page->requests);
    wr_append_json_count(&buf, ", \"hops\": ", page->hops);
    wr_buf_append_string(&buf, "}\n");
    if (fwrite(buf.bytes, 1, buf.length, warm->lines) != buf.length)
        warm->lines_failed = true;
}
