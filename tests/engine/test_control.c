/* SPDX-License-Identifier: MIT */
/* test_control.c - tests of the control socket of a running crawl. */
#include "engine/rig.h"
#include "limiter/memory/memory.h"
#include "watch/control/control.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
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

/* Sets the limit of descriptors so that none can be opened. Returns the previous limit. */
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

/* Sends a request, reads the reply, and returns true if that is a success. */
static bool is_answered(int fd, const char *request)
{
    struct wr_buf answer;
    wr_buf_init(&answer, wr_allocator_or_system(NULL), WR_CONTROL_ANSWER_MAX);
    bool is_well = wr_control_call(fd, wr_span_of(request), &answer) == 0 && answer.length > 10 &&
                   memcmp(answer.bytes, "{\"ok\":true", 10) == 0;
    wr_buf_release(&answer);
    return is_well;
}

/* Starts a crawl that waits for seeds, and opens its control socket. */
static struct wr_control *set_up(struct crawl_fixture *rig)
{
    struct wr_control *desk;
    rig_set_up(rig, answer_plain);
    rig_start(rig);
    assert_int_equal(wr_control_open(rig->state, rig->engine, &desk), 0);
    return desk;
}

static void tear_down(struct crawl_fixture *rig, struct wr_control *desk)
{
    wr_control_close(desk);
    wr_engine_stop(rig->engine);
    rig_finish(rig);
    rig_tear_down(rig);
}

static void one_control_connection_sends_many_requests(void **state)
{
    struct crawl_fixture rig;
    int fd;
    (void)state;
    struct wr_control *desk = set_up(&rig);
    assert_int_equal(wr_control_connect(rig.state, &fd), 0);
    for (int i = 0; i < 5; i++)
        assert_true(is_answered(fd, "{\"ask\":\"status\"}"));
    (void)close(fd);
    tear_down(&rig, desk);
}

/* J6: each silent client has sent half of a request. */
static void silent_control_clients_make_room_for_others(void **state)
{
    struct crawl_fixture rig;
    int silent[WR_CONTROL_CLIENTS], fd;
    (void)state;
    struct wr_control *desk = set_up(&rig);
    for (size_t i = 0; i < WR_CONTROL_CLIENTS; i++) {
        assert_int_equal(wr_control_connect(rig.state, &silent[i]), 0);
        assert_int_equal(send(silent[i], "{\"ask\":", 7, MSG_NOSIGNAL), 7);
    }
    sleep_ns(1500 * MS);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wr_control_connect(rig.state, &fd), 0);
        assert_true(is_answered(fd, "{\"ask\":\"status\"}"));
        (void)close(fd);
    }
    for (size_t i = 0; i < WR_CONTROL_CLIENTS; i++)
        (void)close(silent[i]);
    tear_down(&rig, desk);
}

static void on_alarm(int number)
{
    (void)number;
}

/* V7: a crawl that is stopped by SIGSTOP accepts no connection while others wait. The attempt times
 * out even if signals interrupt it. */
static void connect_to_the_control_socket_of_a_stopped_crawl_times_out(void **state)
{
    char path[] = "/tmp/weir-desk-XXXXXX";
    char name[64];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd, waiting;
    const struct sigaction alarmed = {.sa_handler = on_alarm};
    (void)state;
    assert_non_null(mkdtemp(path));
    (void)snprintf(name, sizeof name, "%s/s", path);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s.sock", name);
    int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(door, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(door, 0), 0);
    /* the queue of the socket has room for one */
    assert_int_equal(wr_control_connect(name, &waiting), 0);
    assert_int_equal(sigaction(SIGALRM, &alarmed, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &(struct itimerval){{0, 20000}, {0, 20000}}, NULL), 0);
    assert_int_equal(wr_control_connect(name, &fd), WEIR_E_SYSTEM);
    assert_int_equal(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL), 0);
    assert_non_null(strstr(weir_error_detail(), "accepts no connection"));
    (void)close(waiting);
    (void)close(door);
    (void)unlink(at.sun_path);
    (void)rmdir(path);
}

static void without_descriptors_control_clients_wait_and_the_crawl_does_not_spin(void **state)
{
    struct crawl_fixture rig;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    (void)state;
    struct wr_control *desk = set_up(&rig);
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
    assert_true(is_answered(fd, "{\"ask\":\"status\"}"));
    (void)close(fd);
    tear_down(&rig, desk);
}

ENGINE_TESTS(test(without_descriptors_control_clients_wait_and_the_crawl_does_not_spin),
             test(one_control_connection_sends_many_requests), test(silent_control_clients_make_room_for_others),
             test(connect_to_the_control_socket_of_a_stopped_crawl_times_out))
