/* SPDX-License-Identifier: MIT */
/* test_desk.c - the desk of a crawl that runs. */
#include "engine/rig.h"
#include "shell/desk/desk.h"
#include "shell/memory/memory.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static struct origin_reply answer_plain(void *context, const struct origin_request *request)
{
    return rig_tree(context, request, 3, NULL);
}

static int64_t cpu_now(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (int64_t)at.tv_sec * WEIR_SECOND + at.tv_nsec;
}

/* No descriptor can be opened until the limit is set again. */
static struct rlimit take_descriptors(void)
{
    struct rlimit limit;
    int next = dup(STDIN_FILENO);
    assert_true(next >= 0 && close(next) == 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    return limit;
}

static void want_of_descriptors_keeps_who_comes_waiting_and_the_desk_idle(void **state)
{
    struct rig rig;
    struct wr_desk *desk;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct wr_buf answer;
    (void)state;
    rig_set_up(&rig, answer_plain);
    rig_start(&rig); /* no seeds: it waits for some */
    assert_int_equal(wr_desk_open(rig.state, rig.engine, &desk), 0);
    int bytes = snprintf(to.sun_path, sizeof to.sun_path, "%s.sock", rig.state);
    assert_true(bytes > 0 && (size_t)bytes < sizeof to.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    struct rlimit limit = take_descriptors();
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    int64_t before = cpu_now();
    sleep_ns(1500 * MS);
    int64_t used_ns = cpu_now() - before;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(used_ns < 200 * MS);
    wr_buf_init(&answer, wr_allocator_or_system(NULL), WR_DESK_ANSWER_MAX);
    assert_int_equal(wr_desk_call(fd, wr_span_of("{\"ask\":\"status\"}"), &answer), 0);
    assert_true(answer.length > 10 && memcmp(answer.bytes, "{\"ok\":true", 10) == 0);
    wr_buf_release(&answer);
    (void)close(fd);
    wr_desk_close(desk);
    wr_engine_stop(rig.engine);
    rig_finish(&rig);
    rig_tear_down(&rig);
}

ENGINE_TESTS(test(want_of_descriptors_keeps_who_comes_waiting_and_the_desk_idle))
