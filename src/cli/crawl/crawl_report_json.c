/* SPDX-License-Identifier: MIT */
/* crawl_report_json.c - writes the result of a crawl as JSON. */
#include <stdlib.h>
#include <time.h>

#include "cli/crawl/crawl_report.h"
#include "cli/report/members.h"
#include "cli/report/report_data.h"

/* Bytes for one host or the totals: keys are short, paths have at most 4 KiB before escaping. */
#define PIECE_ROOM 8192

const char *wr_crawl_end_name(enum wr_engine_end end)
{
    static const char *const names[] = {"completed", "failed", "cancelled", "budget", "blocked", "stopped", "broken"};
    return names[end];
}

static void append_report_waits(struct wr_buf *buf, const int64_t waited_ns[WEIR_REASON_QUEUE + 1])
{
    const char *before = "";
    wr_buf_append_string(buf, ", \"waited_s\": {");
    for (size_t i = 1; i <= WEIR_REASON_QUEUE; i++) {
        if (waited_ns[i] <= 0)
            continue;
        wr_buf_append_string(buf, before);
        wr_append_json_string(buf, wr_span_of(weir_reason_name((weir_reason)i)));
        wr_append_member_seconds(buf, ": ", waited_ns[i]);
        before = ", ";
    }
    wr_buf_append_string(buf, "}");
}

/* ---- totals ---- */

static void append_crawl_totals(struct wr_buf *buf, const struct wr_crawl_report *report)
{
    const struct wr_engine_stats *stats = &report->result->stats;
    uint64_t statuses[WR_STATUSES_COUNT];
    char state[512];
    wr_append_json_count(buf, "{\"job\": ", (uint64_t)report->result->job);
    wr_append_member_text(buf, ", \"end\": ", wr_crawl_end_name(report->result->end));
    wr_append_member_text(buf, ", \"why\": ", report->result->why);
    wr_store_name(report->settings->state, state, sizeof state);
    wr_append_member_text(buf, ", \"state\": ", state);
    wr_append_member_text(buf, ", \"out\": ", report->settings->out);
    wr_append_member_text(buf, ", \"ended_at\": ", report->ended_at);
    wr_append_member_seconds(buf, ",\n \"seconds\": ", stats->elapsed_ns);
    wr_append_json_count(buf, ", \"pages\": ", stats->pages);
    wr_append_json_count(buf, ", \"fetched\": ", stats->fetched);
    wr_append_json_count(buf, ", \"unchanged\": ", stats->unchanged);
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
    wr_append_json_count(buf, ", \"store_round_trips\": ", report->result->round_trips);
    wr_append_json_count(buf, ", \"bytes\": ", stats->bytes);
    wr_append_json_count(buf, ", \"accepted\": ", stats->accepted);
    wr_append_json_count(buf, ", \"queued\": ", stats->queued);
    wr_append_json_count(buf, ", \"seeds_refused\": ", report->refused);
    wr_append_json_count(buf, ",\n \"links_beyond_pages\": ", stats->beyond);
    wr_append_json_count(buf, ", \"links_beyond_depth\": ", stats->deeper);
    wr_append_json_count(buf, ", \"sitemaps_left_out\": ", stats->unread);
    wr_append_member_text(buf, ", \"failed_url\": ", report->result->failed_url);
    wr_append_member_text(buf, ", \"failed_why\": ", report->result->failed_why);
    wr_append_json_count(buf, ",\n \"max_pages\": ", report->settings->max_pages);
    wr_append_json_count(buf, ", \"host_pages\": ", report->settings->host_pages);
    wr_append_json_count(buf, ", \"depth\": ", report->settings->depth);
    wr_engine_report_statuses(report->engine, statuses);
    wr_append_member_statuses(buf, statuses);
    wr_append_member_seconds(buf, ",\n \"step_s\": ", report->course->step_ns);
    wr_buf_append_string(buf, ",\n \"hosts\": [");
}

/* ---- hosts ---- */

struct crawl_report_writer {
    const struct wr_crawl_report *report;
    FILE *out;
    size_t most, hosts;
    uint64_t left_out, too_soon;
    int64_t waited_ns[WEIR_REASON_QUEUE + 1];
};

static void append_host_starts(struct wr_buf *buf, const struct wr_crawl_report *report,
                               const struct wr_engine_host_report *host)
{
    int64_t starts[WR_RATE_HISTORY_POINTS];
    size_t count =
        wr_rate_history_read(report->course, host->key, host->requests, report->result->stats.elapsed_ns, starts);
    if (count == 0)
        return;
    wr_buf_append_string(buf, ", \"starts\": [");
    for (size_t i = 0; i < count; i++)
        if (starts[i] < 0)
            wr_append_json_null(buf, i > 0 ? ", " : "");
        else
            wr_append_json_count(buf, i > 0 ? ", " : "", (uint64_t)starts[i]);
    wr_buf_append_string(buf, "]");
}

static void write_report_host(struct crawl_report_writer *writer, const struct wr_engine_host_report *host)
{
    char memory[PIECE_ROOM];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_buf_append_string(&buf, writer->hosts > 0 ? ",\n  {\"host\": " : "\n  {\"host\": ");
    wr_append_json_string(&buf, host->key);
    wr_append_json_count(&buf, ", \"requests\": ", host->requests);
    wr_append_json_count(&buf, ", \"ok\": ", host->ok);
    wr_append_json_count(&buf, ", \"rejected\": ", host->rejected);
    wr_append_json_count(&buf, ", \"failed\": ", host->failed);
    wr_append_json_count(&buf, ", \"retries\": ", host->retries);
    wr_append_json_count(&buf, ", \"bytes\": ", host->bytes);
    wr_append_member_rate(&buf, ", \"reached_per_s\": ", host->reached_rate);
    wr_append_member_rate(&buf, ", \"allowed_per_s\": ", host->allowed_rate);
    wr_append_member_seconds(&buf, ", \"interval_s\": ", host->interval_ns);
    wr_append_member_seconds_or_null(&buf, ", \"closest_s\": ", host->closest_ns);
    wr_append_member_seconds_or_null(&buf, ", \"robots_delay_s\": ", host->robots_delay_ns);
    wr_append_json_count(&buf, ", \"too_soon\": ", host->hasty);
    append_report_waits(&buf, host->waited_ns);
    append_host_starts(&buf, writer->report, host);
    wr_buf_append_string(&buf, "}");
    (void)fwrite(buf.bytes, 1, buf.length, writer->out);
}

static void add_report_host(void *context, const struct wr_engine_host_report *host)
{
    struct crawl_report_writer *writer = context;
    writer->too_soon += host->hasty;
    for (size_t i = 1; i <= WEIR_REASON_QUEUE; i++)
        writer->waited_ns[i] += host->waited_ns[i];
    if (writer->hosts == writer->most) {
        writer->left_out++;
        return;
    }
    write_report_host(writer, host);
    writer->hosts++;
}

static bool write_crawl_json(const struct wr_crawl_report *report, size_t most, FILE *out)
{
    static char memory[8 * PIECE_ROOM];
    struct crawl_report_writer writer = {.report = report, .out = out, .most = most};
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    append_crawl_totals(&buf, report);
    (void)fwrite(buf.bytes, 1, buf.length, out);
    writer.left_out += wr_engine_report(report->engine, add_report_host, &writer);
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_append_json_count(&buf, "\n ], \"hosts_left_out\": ", writer.left_out);
    wr_append_json_count(&buf, ", \"too_soon\": ", writer.too_soon);
    append_report_waits(&buf, writer.waited_ns);
    wr_buf_append_string(&buf, "}\n");
    (void)fwrite(buf.bytes, 1, buf.length, out);
    return fflush(out) == 0 && !ferror(out);
}

void wr_crawl_report_stamp(struct wr_crawl_report *report)
{
    time_t now = (time_t)(weir_wall_now() / WEIR_SECOND);
    struct tm when;
    report->ended_at[0] = '\0';
    if (gmtime_r(&now, &when) != NULL)
        (void)strftime(report->ended_at, sizeof report->ended_at, "%Y-%m-%dT%H:%M:%SZ", &when);
}

bool wr_crawl_report_json(const struct wr_crawl_report *report, FILE *out)
{
    return write_crawl_json(report, SIZE_MAX, out);
}

char *wr_crawl_report_json_short(const struct wr_crawl_report *report, size_t *ret_bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_bytes);
    bool well = out != NULL && write_crawl_json(report, WR_REPORT_DATA_HOSTS, out);
    if (out != NULL && fclose(out) != 0)
        well = false;
    if (well)
        return text;
    free(text);
    return NULL;
}
