/* SPDX-License-Identifier: MIT */
/* request_log.c - writes a line for each request sent and for each change of a host's pace. Lines
 * that cannot be written without waiting are dropped and counted. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "crawl/engine/engine_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#define WRITE_AT ((size_t)64 << 10)
#define ROOM ((size_t)4 << 20)

struct wr_request_log {
    const weir_allocator *allocator;
    pthread_mutex_t lock;
    int fd;
    bool is_shared; /* standard error, where other users may want to block */
    struct wr_buf lines;
    uint64_t dropped;
};

int wr_request_log_open(const char *path, const weir_allocator *allocator, struct wr_request_log **ret_log)
{
    bool is_shared = strcmp(path, "-") == 0;
    int fd = is_shared ? dup(STDERR_FILENO) : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) {
        wr_error_set_text("the log file", path, strlen(path),
                          errno == ENXIO ? "is a pipe without a reader; start the reader first"
                                         : "cannot be opened for writing");
        return WEIR_E_SYSTEM;
    }
    struct wr_request_log *log = wr_alloc(allocator, sizeof *log, _Alignof(struct wr_request_log));
    if (log == NULL) {
        (void)close(fd);
        return WEIR_E_NOMEM;
    }
    log->allocator = allocator;
    log->fd = fd;
    log->is_shared = is_shared;
    (void)pthread_mutex_init(&log->lock, NULL);
    wr_buf_init(&log->lines, allocator, ROOM);
    *ret_log = log;
    return 0;
}

/* Writes as much as possible without blocking. Standard error may be in blocking mode, because it
 * is shared. A pipe that is ready takes PIPE_BUF bytes at once. */
static void write_log_lines(struct wr_request_log *log)
{
    struct pollfd ready = {.fd = log->fd, .events = POLLOUT};
    size_t written = 0;
    while (written < log->lines.length && poll(&ready, 1, 0) == 1) {
        size_t left = log->lines.length - written;
        ssize_t wrote = write(log->fd, log->lines.bytes + written, log->is_shared && left > PIPE_BUF ? PIPE_BUF : left);
        if (wrote <= 0)
            break;
        written += (size_t)wrote;
    }
    if (written == 0)
        return;
    memmove(log->lines.bytes, log->lines.bytes + written, log->lines.length - written);
    wr_buf_cut(&log->lines, log->lines.length - written);
}

void wr_request_log_flush(struct wr_request_log *log)
{
    (void)pthread_mutex_lock(&log->lock);
    write_log_lines(log);
    (void)pthread_mutex_unlock(&log->lock);
}

/* Begins a line. The lock is held from here until end_line. */
static size_t begin_log_line(struct wr_request_log *log, const char *stamp, int64_t now, struct wr_span host,
                             const char *kind)
{
    (void)pthread_mutex_lock(&log->lock);
    size_t before = log->lines.length;
    wr_buf_append_string(&log->lines, "{\"");
    wr_buf_append_string(&log->lines, stamp);
    wr_buf_append_string(&log->lines, "\":");
    wr_buf_append_u64(&log->lines, (uint64_t)now);
    wr_buf_append_string(&log->lines, ",\"host\":");
    wr_append_json_string(&log->lines, host);
    wr_buf_append_string(&log->lines, ",\"kind\":\"");
    wr_buf_append_string(&log->lines, kind);
    return before;
}

static void end_log_line(struct wr_request_log *log, size_t before)
{
    wr_buf_append_string(&log->lines, "}\n");
    if (log->lines.error != 0) {
        log->lines.error = 0;
        wr_buf_cut(&log->lines, before);
        log->dropped++;
    }
    if (log->lines.length >= WRITE_AT)
        write_log_lines(log);
    (void)pthread_mutex_unlock(&log->lock);
}

/* Appends the sum of all waits, and the reason of the longest. */
static void append_start_wait(struct wr_buf *buf, const struct wr_plan_waited *waited)
{
    uint64_t sum = 0;
    weir_reason longest = WEIR_REASON_NONE;
    for (int reason = WEIR_REASON_NONE + 1; reason < WR_PLAN_REASONS; reason++) {
        sum += waited->ms[reason];
        longest = waited->ms[reason] > waited->ms[longest] ? (weir_reason)reason : longest;
    }
    wr_buf_append_string(buf, "\",\"waited_ms\":");
    wr_buf_append_u64(buf, sum);
    wr_buf_append_string(buf, ",\"waited_for\":\"");
    wr_buf_append_string(buf, weir_reason_name(longest));
    wr_buf_append_string(buf, "\",\"url\":");
}

void wr_request_log_sent(struct wr_request_log *log, const struct wr_crawl_fetch *fetch, int64_t now)
{
    static const char *const kinds[] = {
        [WR_PLAN_START] = "page", [WR_PLAN_ROBOTS] = "robots", [WR_PLAN_ROBOTS_HOP] = "robots"};
    size_t before =
        begin_log_line(log, "sent_ns", now, wr_plan_host_key(fetch->action.host), kinds[fetch->action.kind]);
    append_start_wait(&log->lines, &fetch->action.waited);
    wr_append_json_string(&log->lines, wr_span_of(fetch->url.text));
    end_log_line(log, before);
}

void wr_request_log_pace(struct wr_request_log *log, struct wr_span host, const weir_pace_entry *entry, int64_t now)
{
    size_t before = begin_log_line(log, "changed_ns", now, host, "pace");
    wr_buf_append_string(&log->lines, "\",\"delay_ms\":");
    wr_buf_append_u64(&log->lines, (uint64_t)(entry->delay_ns / WEIR_MILLISECOND));
    wr_buf_append_string(&log->lines, ",\"failures\":");
    wr_buf_append_u64(&log->lines, entry->consecutive_failures);
    end_log_line(log, before);
}

uint64_t wr_request_log_close(struct wr_request_log *log)
{
    if (log == NULL)
        return 0;
    write_log_lines(log);
    uint64_t dropped = log->dropped;
    for (size_t i = 0; i < log->lines.length; i++)
        dropped += log->lines.bytes[i] == '\n';
    (void)close(log->fd);
    wr_buf_release(&log->lines);
    (void)pthread_mutex_destroy(&log->lock);
    wr_free(log->allocator, log, sizeof *log, _Alignof(struct wr_request_log));
    return dropped;
}
