/* SPDX-License-Identifier: MIT */
/* fetch_report.c - writes the result of each URL, the progress and a summary. */
#include "cli/fetch/fetch_report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weir/time.h>

#include "base/json.h"
#include "cli/kit/console.h"
#include "limiter/memory/memory.h"

#define LINES_MAX ((size_t)16 << 20)
#define LINE_MAX ((size_t)128 << 10) /* bytes of one line: several URLs of 8 KiB, escaped */
#define LOOK_EVERY_MS 200

/* ---- one line ---- */

/* Appends seconds with a resolution of 1 us. */
static void append_json_us(struct wr_buf *buf, const char *before, int64_t ns)
{
    wr_append_json_decimal(buf, before, ns > 0 ? (uint64_t)ns / 1000 : 0, 6);
}

/* Returns NULL for an empty text. */
static struct wr_span null_if_empty_text(const char *text)
{
    return wr_span_of(text[0] != '\0' ? text : NULL);
}

static void append_fetch_line(struct wr_buf *buf, const char *url, const weir_response *response)
{
    bool failed = response->failure != WEIR_FAILURE_NONE;
    wr_append_json_text(buf, "{\"url\": ", wr_span_of(url));
    wr_append_json_text(buf, ", \"final_url\": ", null_if_empty_text(response->url));
    if (response->status != 0)
        wr_append_json_count(buf, ", \"status\": ", (uint64_t)response->status);
    else
        wr_append_json_null(buf, ", \"status\": ");
    wr_append_json_count(buf, ", \"bytes\": ", response->body_bytes);
    wr_buf_append_string(buf, response->truncated ? ", \"truncated\": true" : ", \"truncated\": false");
    wr_append_json_text(buf, ", \"failure\": ", wr_span_of(failed ? weir_failure_name(response->failure) : NULL));
    wr_append_json_text(buf, ", \"detail\": ", null_if_empty_text(response->detail));
    wr_append_json_count(buf, ", \"attempts\": ", response->attempts);
    wr_append_json_count(buf, ", \"hops\": ", response->hops);
    append_json_us(buf, ", \"waited_s\": ", response->waited_ns);
    wr_append_json_text(
        buf, ", \"waited_for\": ",
        wr_span_of(response->waited_for != WEIR_REASON_NONE ? weir_reason_name(response->waited_for) : NULL));
    if (response->latency_ns > 0)
        append_json_us(buf, ", \"latency_s\": ", response->latency_ns);
    else
        wr_append_json_null(buf, ", \"latency_s\": ");
    append_json_us(buf, ", \"total_s\": ", response->total_ns);
    wr_append_json_text(buf, ", \"address\": ", null_if_empty_text(response->address));
    if (response->robots_line != 0)
        wr_append_json_count(buf, ", \"robots_line\": ", response->robots_line);
    wr_buf_append_string(buf, "}\n");
}

static void append_refusal(struct wr_buf *buf, const char *url, uint64_t line, const char *why)
{
    wr_append_json_text(buf, "{\"url\": ", wr_span_of(url));
    wr_append_json_text(buf, ", \"status\": null, \"failure\": \"url\", \"detail\": ", wr_span_of(why));
    if (line > 0)
        wr_append_json_count(buf, ", \"line\": ", line);
    wr_buf_append_string(buf, "}\n");
}

/* ---- collecting lines ---- */

/* Waits for room and returns the position where the line begins. The lock is held. */
static size_t begin_report_line(struct wr_fetch_report *report)
{
    while (report->lines.length > LINES_MAX && !report->is_lost)
        (void)pthread_cond_wait(&report->changed, &report->lock);
    return report->lines.length;
}

/* Keeps a complete line, or removes a partial one. Returns false if memory for the line ran out. */
static bool end_report_line(struct wr_fetch_report *report, size_t before)
{
    if (report->lines.error == 0)
        return true;
    wr_buf_cut(&report->lines, before);
    report->lines.error = 0;
    return false;
}

/* Out of memory: waits until all earlier lines are written, so that this line can be written
 * directly from a fixed buffer. */
static struct wr_buf begin_unbuffered_line(struct wr_fetch_report *report)
{
    static char memory[LINE_MAX]; /* protected by the lock of the report */
    struct wr_buf line;
    wr_buf_init_fixed(&line, memory, sizeof memory);
    (void)pthread_cond_broadcast(&report->changed);
    while ((report->lines.length > 0 || report->is_writing) && !report->is_lost)
        (void)pthread_cond_wait(&report->changed, &report->lock);
    return line;
}

static void end_unbuffered_line(struct wr_fetch_report *report, const struct wr_buf *line)
{
    if (report->is_lost)
        return;
    report->is_lost = line->error != 0;
    if (fwrite(line->bytes, 1, line->length, report->out) != line->length || fflush(report->out) != 0) {
        report->is_lost = true;
        report->lost_errno = errno;
    }
}

static void count_fetch_response(struct wr_fetch_report *report, const weir_response *response)
{
    report->finished++;
    report->by_failure[response->failure]++;
    if (response->failure == WEIR_FAILURE_NONE && response->status >= 400)
        report->errors++;
    if (response->failure != WEIR_FAILURE_NONE || response->status >= 400)
        report->bad++;
}

void wr_fetch_report_add(struct wr_fetch_report *report)
{
    (void)pthread_mutex_lock(&report->lock);
    report->asked++;
    (void)pthread_mutex_unlock(&report->lock);
}

void wr_fetch_report_finished(struct wr_fetch_report *report, const char *url, const weir_response *response)
{
    (void)pthread_mutex_lock(&report->lock);
    if (!report->is_silenced || response->failure != WEIR_FAILURE_CANCELLED) {
        size_t before = begin_report_line(report);
        append_fetch_line(&report->lines, url, response);
        if (!end_report_line(report, before)) {
            struct wr_buf line = begin_unbuffered_line(report);
            append_fetch_line(&line, url, response);
            end_unbuffered_line(report, &line);
        }
    }
    count_fetch_response(report, response);
    if (report->finished == report->asked || report->lines.length > LINES_MAX / 2)
        (void)pthread_cond_broadcast(&report->changed);
    (void)pthread_mutex_unlock(&report->lock);
}

void wr_fetch_report_refused(struct wr_fetch_report *report, const char *url, uint64_t line, const char *why)
{
    (void)pthread_mutex_lock(&report->lock);
    size_t before = begin_report_line(report);
    append_refusal(&report->lines, url, line, why);
    if (!end_report_line(report, before)) {
        struct wr_buf last = begin_unbuffered_line(report);
        append_refusal(&last, url, line, why);
        end_unbuffered_line(report, &last);
    }
    report->asked--;
    report->refused++;
    (void)pthread_cond_broadcast(&report->changed);
    (void)pthread_mutex_unlock(&report->lock);
}

void wr_fetch_report_watch(struct wr_fetch_report *report, weir_client *client)
{
    (void)pthread_mutex_lock(&report->lock);
    report->client = client;
    (void)pthread_mutex_unlock(&report->lock);
}

void wr_fetch_report_mute_cancelled(struct wr_fetch_report *report)
{
    (void)pthread_mutex_lock(&report->lock);
    report->is_silenced = true;
    (void)pthread_mutex_unlock(&report->lock);
}

/* ---- waiting ---- */

/* Waits for a change or for LOOK_EVERY_MS. The lock is held. */
static void wait_for_report_change(struct wr_fetch_report *report)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_EVERY_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_cond_timedwait(&report->changed, &report->lock, &until);
}

void wr_fetch_report_await_room(struct wr_fetch_report *report, uint64_t most, bool (*is_interrupted)(void))
{
    (void)pthread_mutex_lock(&report->lock);
    while (report->asked - report->finished > most && !is_interrupted() && !report->is_lost)
        wait_for_report_change(report);
    (void)pthread_mutex_unlock(&report->lock);
}

void wr_fetch_report_await(struct wr_fetch_report *report, bool (*is_interrupted)(void))
{
    wr_fetch_report_await_room(report, 0, is_interrupted);
}

bool wr_fetch_report_await_fewer(struct wr_fetch_report *report, uint64_t least, bool (*is_interrupted)(void))
{
    (void)pthread_mutex_lock(&report->lock);
    uint64_t unfinished = report->asked - report->finished;
    bool is_lost = report->is_lost;
    (void)pthread_mutex_unlock(&report->lock);
    if (unfinished <= least + 1 || is_lost || is_interrupted())
        return false;
    wr_fetch_report_await_room(report, unfinished / 2 > least ? unfinished / 2 : least + 1, is_interrupted);
    return true;
}

/* ---- writing ---- */

static void show_progress(struct wr_fetch_report *report)
{
    weir_client_stats stats = {.requests = 0};
    if (report->is_quiet || report->client == NULL)
        return;
    (void)weir_client_stats_get(report->client, &stats);
    double passed_s = (double)(weir_clock_now(weir_clock_monotonic()) - report->began_at) / WEIR_SECOND;
    size_t waiting = stats.unfinished > stats.in_flight ? stats.unfinished - stats.in_flight : 0;
    wr_progress("%" PRIu64 " of %" PRIu64 ", %" PRIu64 " bad, %.1f/s, %zu in flight, %zu waiting, %.1f MB",
                report->finished, report->asked, report->bad, passed_s > 0 ? (double)report->finished / passed_s : 0,
                stats.in_flight, waiting, (double)stats.body_bytes / 1e6);
}

/* Takes the lines from the buffer and writes them without the lock. The lock is held before and
 * after. */
static void write_report_lines(struct wr_fetch_report *report)
{
    struct wr_buf lines = report->lines;
    int error = 0;
    if (lines.length == 0)
        return;
    wr_buf_init(&report->lines, wr_allocator_or_system(NULL), LINES_MAX + LINE_MAX);
    report->is_writing = true;
    (void)pthread_cond_broadcast(&report->changed);
    (void)pthread_mutex_unlock(&report->lock);
    if (report->shares_screen)
        wr_progress("%s", "");
    if (fwrite(lines.bytes, 1, lines.length, report->out) != lines.length || fflush(report->out) != 0)
        error = errno;
    wr_buf_release(&lines);
    (void)pthread_mutex_lock(&report->lock);
    report->is_writing = false;
    if (error != 0 && !report->is_lost) {
        report->is_lost = true;
        report->lost_errno = error;
    }
    (void)pthread_cond_broadcast(&report->changed);
}

static void *run_writer(void *context)
{
    struct wr_fetch_report *report = context;
    (void)pthread_mutex_lock(&report->lock);
    while (!report->is_over || report->lines.length > 0) {
        write_report_lines(report);
        show_progress(report);
        if (!report->is_over && report->lines.length == 0)
            wait_for_report_change(report);
    }
    (void)pthread_mutex_unlock(&report->lock);
    return NULL;
}

/* ---- start and end ---- */

bool wr_fetch_report_start(struct wr_fetch_report *ret_report, FILE *out, bool is_quiet)
{
    *ret_report = (struct wr_fetch_report){.out = out, .is_quiet = is_quiet};
    ret_report->shares_screen = isatty(fileno(out));
    ret_report->began_at = weir_clock_now(weir_clock_monotonic());
    wr_buf_init(&ret_report->lines, wr_allocator_or_system(NULL), LINES_MAX + LINE_MAX);
    (void)pthread_mutex_init(&ret_report->lock, NULL);
    (void)pthread_cond_init(&ret_report->changed, NULL);
    int error = pthread_create(&ret_report->writer, NULL, run_writer, ret_report);
    if (error != 0)
        wr_complain("cannot start a thread: %s", strerror(error));
    return error == 0;
}

static void print_summary(const struct wr_fetch_report *report)
{
    double passed_s = (double)(weir_clock_now(weir_clock_monotonic()) - report->began_at) / WEIR_SECOND;
    uint64_t answered = report->by_failure[WEIR_FAILURE_NONE];
    const char *before = "; not answered: ";
    fprintf(stderr, "%" PRIu64 " of %" PRIu64 " answered in %.1f s", answered, report->asked + report->refused,
            passed_s);
    if (report->errors > 0)
        fprintf(stderr, ", %" PRIu64 " with status 400 or more", report->errors);
    for (size_t i = 1; i < sizeof report->by_failure / sizeof report->by_failure[0]; i++) {
        if (report->by_failure[i] == 0)
            continue;
        fprintf(stderr, "%s%" PRIu64 " %s", before, report->by_failure[i], weir_failure_name((weir_failure)i));
        before = ", ";
    }
    if (report->refused > 0)
        fprintf(stderr, "%s%" PRIu64 " not a URL", before, report->refused);
    fputc('\n', stderr);
}

bool wr_fetch_report_end(struct wr_fetch_report *report)
{
    (void)pthread_mutex_lock(&report->lock);
    report->is_over = true;
    (void)pthread_cond_broadcast(&report->changed);
    (void)pthread_mutex_unlock(&report->lock);
    (void)pthread_join(report->writer, NULL);
    wr_progress("%s", "");
    if (!report->is_quiet)
        print_summary(report);
    if (report->is_lost && report->out == stdout && report->lost_errno != 0)
        wr_print_note_error(report->lost_errno);
    else if (report->is_lost)
        wr_complain("cannot write all lines: %s",
                    report->lost_errno != 0 ? strerror(report->lost_errno) : "out of memory");
    wr_buf_release(&report->lines);
    (void)pthread_mutex_destroy(&report->lock);
    (void)pthread_cond_destroy(&report->changed);
    return !report->is_lost;
}
