/* SPDX-License-Identifier: MIT */
/* report_json.c - what a crawl came to, as JSON. */
#include <math.h>

#include "base/json.h"
#include "cli/crawl/report.h"

#define PIECE_ROOM 8192 /* of a host, or of the totals: keys are short, and paths at most 4 KiB are escaped */

const char *wr_crawl_end_name(enum wr_engine_end end)
{
    static const char *const names[] = {"completed", "failed", "cancelled", "budget", "blocked", "stopped", "broken"};
    return names[end];
}

/* ---- members ---- */

/* null: there is none, or it is empty. */
static void append_text(struct wr_buf *buf, const char *name, const char *text)
{
    wr_append_json_text(buf, name, wr_span_of(text != NULL && text[0] != '\0' ? text : NULL));
}

static void append_seconds(struct wr_buf *buf, const char *name, int64_t ns)
{
    wr_append_json_decimal(buf, name, ns > 0 ? (uint64_t)ns / 1000 : 0, 6);
}

/* null: there is none. */
static void append_some_seconds(struct wr_buf *buf, const char *name, int64_t ns)
{
    if (ns > 0)
        append_seconds(buf, name, ns);
    else
        wr_append_json_null(buf, name);
}

static void append_rate(struct wr_buf *buf, const char *name, double rate)
{
    if (!(rate > 0) || isinf(rate) || rate > 1e15) {
        wr_append_json_null(buf, name);
        return;
    }
    wr_buf_append_string(buf, name);
    wr_buf_append_number(buf, rate);
}

/* ---- the whole ---- */

static void append_totals(struct wr_buf *buf, const struct wr_crawl_report *report)
{
    const struct wr_engine_stats *stats = &report->result->stats;
    wr_append_json_count(buf, "{\"job\": ", (uint64_t)report->result->job);
    append_text(buf, ", \"end\": ", wr_crawl_end_name(report->result->end));
    append_text(buf, ", \"why\": ", report->result->why);
    append_text(buf, ", \"state\": ", report->settings->state);
    append_text(buf, ", \"out\": ", report->settings->out);
    append_seconds(buf, ",\n \"seconds\": ", stats->elapsed_ns);
    wr_append_json_count(buf, ", \"pages\": ", stats->pages);
    wr_append_json_count(buf, ", \"fetched\": ", stats->fetched);
    wr_append_json_count(buf, ", \"failed\": ", stats->failed);
    wr_append_json_count(buf, ", \"denied\": ", stats->denied);
    wr_append_json_count(buf, ", \"redirects\": ", stats->redirects);
    wr_append_json_count(buf, ", \"blocked\": ", stats->blocked);
    wr_append_json_count(buf, ", \"blocked_hosts\": ", stats->blocked_hosts);
    wr_append_json_count(buf, ", \"requests\": ", stats->requests);
    wr_append_json_count(buf, ", \"robots_requests\": ", stats->robots);
    wr_append_json_count(buf, ", \"rejected\": ", stats->rejected);
    wr_append_json_count(buf, ", \"retries\": ", stats->retries);
    wr_append_json_count(buf, ", \"concurrency_changes\": ", stats->overrides);
    wr_append_json_count(buf, ", \"bytes\": ", stats->bytes);
    wr_append_json_count(buf, ", \"accepted\": ", stats->accepted);
    wr_append_json_count(buf, ", \"queued\": ", stats->queued);
    wr_append_json_count(buf, ", \"seeds_refused\": ", report->refused);
    wr_append_json_count(buf, ",\n \"links_beyond_pages\": ", stats->beyond);
    wr_append_json_count(buf, ", \"links_beyond_depth\": ", stats->deeper);
    append_text(buf, ", \"failed_url\": ", report->result->failed_url);
    append_text(buf, ", \"failed_why\": ", report->result->failed_why);
    wr_buf_append_string(buf, ",\n \"hosts\": [");
}

static void append_waits(struct wr_buf *buf, const struct wr_engine_host *host)
{
    const char *before = "";
    wr_buf_append_string(buf, ", \"waited_s\": {");
    for (size_t i = 1; i <= WEIR_REASON_QUEUE; i++) {
        if (host->waited_ns[i] <= 0)
            continue;
        wr_buf_append_string(buf, before);
        wr_append_json_string(buf, wr_span_of(weir_reason_name((weir_reason)i)));
        append_seconds(buf, ": ", host->waited_ns[i]);
        before = ", ";
    }
    wr_buf_append_string(buf, "}}");
}

struct writer {
    FILE *out;
    size_t hosts;
};

static void write_host(void *context, const struct wr_engine_host *host)
{
    struct writer *writer = context;
    char memory[PIECE_ROOM];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_buf_append_string(&buf, writer->hosts++ > 0 ? ",\n  {\"host\": " : "\n  {\"host\": ");
    wr_append_json_string(&buf, host->key);
    wr_append_json_count(&buf, ", \"requests\": ", host->requests);
    wr_append_json_count(&buf, ", \"ok\": ", host->ok);
    wr_append_json_count(&buf, ", \"rejected\": ", host->rejected);
    wr_append_json_count(&buf, ", \"failed\": ", host->failed);
    wr_append_json_count(&buf, ", \"retries\": ", host->retries);
    wr_append_json_count(&buf, ", \"bytes\": ", host->bytes);
    append_rate(&buf, ", \"reached_per_s\": ", host->reached_rate);
    append_rate(&buf, ", \"allowed_per_s\": ", host->allowed_rate);
    append_seconds(&buf, ", \"interval_s\": ", host->interval_ns);
    append_some_seconds(&buf, ", \"closest_s\": ", host->closest_ns);
    append_some_seconds(&buf, ", \"robots_delay_s\": ", host->robots_delay_ns);
    wr_append_json_count(&buf, ", \"too_soon\": ", host->hasty);
    append_waits(&buf, host);
    (void)fwrite(buf.bytes, 1, buf.length, writer->out);
}

bool wr_crawl_report_json(const struct wr_crawl_report *report, FILE *out)
{
    static char memory[8 * PIECE_ROOM];
    struct writer writer = {.out = out};
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    append_totals(&buf, report);
    (void)fwrite(buf.bytes, 1, buf.length, out);
    uint64_t left_out = wr_engine_report(report->engine, write_host, &writer);
    fprintf(out, "\n ], \"hosts_left_out\": %llu}\n", (unsigned long long)left_out);
    return fflush(out) == 0 && !ferror(out);
}
