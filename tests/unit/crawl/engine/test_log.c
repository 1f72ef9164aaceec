/* SPDX-License-Identifier: MIT */
/* test_log.c - tests that a log without a reader drops lines and counts each one (T16, I6). */
#include "unit/core/plan/rig.h"

#include "crawl/engine/engine_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES 4000 /* lines of 2 KB each: more than the pipe and the log's memory hold */

static uint64_t lines_in(int fd)
{
    static char bytes[1 << 16];
    uint64_t lines = 0;
    for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            lines += bytes[i] == '\n';
    return lines;
}

/* Counts lines that found no room, and lines that were still in memory when the log was closed. */
static void each_line_of_the_log_is_written_or_counted_as_dropped(void **state)
{
    static struct plan_store_fixture rig;
    static struct wr_crawl_fetch fetch;
    static char url[2000];
    char path[256];
    struct wr_request_log *log;
    const char *folder = getenv("TMPDIR");
    (void)state;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    fetch.action =
        (struct wr_plan_action){.kind = WR_PLAN_START, .host = wr_plan_host_find(rig.plan, wr_span_of("a.example"))};
    memset(url, 'x', sizeof url - 1);
    fetch.url.text = url;
    (void)snprintf(path, sizeof path, "%s/weir-log-%ld", folder != NULL ? folder : "/tmp", (long)getpid());
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_int_equal(wr_request_log_open(path, &rig.allocator.allocator, &log), 0);
    for (int i = 0; i < LINES; i++)
        wr_request_log_sent(log, &fetch, i);
    uint64_t dropped = wr_request_log_close(log), written = lines_in(reader);
    assert_true(dropped > 0 && written > 0);
    assert_int_equal(written + dropped, LINES);
    (void)close(reader);
    assert_int_equal(unlink(path), 0);
    rig_release(&rig);
}

WEIR_TESTS(test(each_line_of_the_log_is_written_or_counted_as_dropped))
