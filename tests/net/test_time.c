/* SPDX-License-Identifier: MIT */
/* test_time.c - every time limit ends its transfer: silent, dripping and unreachable servers (A1,
 * A2, E1, E2, E3).
 *
 * The net uses a fake clock here, which a timer of the loop advances: it stands still until the
 * test starts it, and is never ahead of the loop's timers. So a limit is exact to a few steps,
 * however slow the machine is.
 */
#include "net/rig.h"

#define LIMIT (300 * MS)
#define LATE_MAX (3 * MS) /* a libuv timer is late by up to two steps */

struct beat {
    uv_timer_t timer;
    weir_clock *clock;
    const struct got *got; /* not NULL: the clock advances only if more of this body has arrived */
    size_t seen;
};

static void on_beat(uv_timer_t *timer)
{
    struct beat *beat = timer->data;

    if (beat->got != NULL && beat->got->body_bytes == beat->seen)
        return;
    beat->seen = beat->got != NULL ? beat->got->body_bytes : 0;
    advance(beat->clock, MS);
}

static struct wr_net_options timed(struct beat *ret_beat)
{
    struct wr_net_options options = rig_options();

    *ret_beat = (struct beat){.clock = fake_clock()};
    options.clock = ret_beat->clock;
    return options;
}

/* Starts the clock. */
static void beat_begin(struct beat *beat, struct net_fixture *rig)
{
    (void)uv_timer_init(&rig->loop, &beat->timer);
    beat->timer.data = beat;
    (void)uv_timer_start(&beat->timer, on_beat, 1, 1);
    uv_unref((uv_handle_t *)&beat->timer);
}

static void beat_end(struct beat *beat)
{
    uv_close((uv_handle_t *)&beat->timer, NULL);
}

static void timed_tear_down(struct net_fixture *rig, struct beat *beat)
{
    rig_tear_down(rig);
    weir_clock_fake_free(beat->clock);
}

/* Sends a GET while the clock runs. */
static void get_timed(struct net_fixture *rig, struct beat *beat, const char *url, struct got *ret_got)
{
    memset(ret_got, 0, sizeof *ret_got);
    rig_start(rig, url, ret_got);
    beat_begin(beat, rig);
    rig_run(rig);
    beat_end(beat);
}

static void assert_lasted(int64_t from, int64_t to, int64_t limit_ns)
{
    if (to - from < limit_ns || to - from > limit_ns + LATE_MAX)
        fail_msg("it lasted for %.3f ms, the limit is %.3f ms", (double)(to - from) / 1e6, (double)limit_ns / 1e6);
}

/* A1: a server that accepts and sends nothing ends by first_byte_ns. */
static void silent_server_ends_by_the_first_byte_limit(void **state)
{
    static const struct hostile_step silent[] = {HOLD, END};
    struct beat beat;
    struct wr_net_options options = timed(&beat);
    struct wr_net_stats stats;
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.first_byte_ns = LIMIT;
    rig_set_up(&rig, options);
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {silent}});
    get_timed(&rig, &beat, rig_url(port), &got);
    assert_int_equal(got.result.end, WR_NET_FIRST_BYTE_TIMEOUT);
    assert_int_equal(got.result.retry, WR_NET_LATER);
    assert_int_equal(got.result.blame, WR_NET_BLAME_HOST);
    assert_int_equal(got.result.sends, 1);
    assert_lasted(got.result.sent_at, got.result.done_at, LIMIT);
    /* the connection is closed and the transfer slot is free */
    hostile_await_ended(rig.server, port, 1);
    wr_net_stats(rig.net, &stats);
    assert_int_equal(stats.transfers, 0);
    assert_int_equal(stats.connections, 0);
    timed_tear_down(&rig, &beat);
}

/* A2: a body that drips, a head that drips and a body that stalls are too slow; another transfer
 * completes. */
static void dripping_response_is_aborted_and_others_continue(void **state)
{
    static const struct hostile_step body[] = {READ, SAY("HTTP/1.1 200 OK\r\n\r\n"),
                                               REPEAT("x", HOSTILE_FOREVER, 20 * MS), END};
    static const struct hostile_step head[] = {READ, SAY("HTTP/1.1 200 OK\r\nX: "),
                                               REPEAT("x", HOSTILE_FOREVER, 20 * MS), END};
    static const struct hostile_step stalls[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), HOLD,
                                                 END};
    static const struct hostile_step quick[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), END};
    const struct hostile_step *const slow[] = {body, head, stalls};
    struct beat beat;
    struct wr_net_options options = timed(&beat);
    struct net_fixture rig;
    struct got got[3], other;

    (void)state;
    options.speed_ns = LIMIT;
    options.speed_min = 1000000;
    rig_set_up(&rig, options);
    memset(got, 0, sizeof got);
    memset(&other, 0, sizeof other);
    for (int i = 0; i < 3; i++)
        rig_start(&rig, rig_url(hostile_listen(rig.server, &(struct hostile_case){.steps = {slow[i]}})), &got[i]);
    rig_start(&rig, rig_url(hostile_listen(rig.server, &(struct hostile_case){.steps = {quick}})), &other);
    while (!other.is_done || got[0].body_bytes == 0 || got[2].body_bytes == 0)
        rig_turn(&rig);
    assert_int_equal(other.result.end, WR_NET_DONE);
    beat_begin(&beat, &rig);
    rig_run(&rig);
    beat_end(&beat);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(got[i].result.end, WR_NET_TOO_SLOW);
        assert_lasted(got[i].result.first_byte_at, got[i].result.done_at, LIMIT);
    }
    timed_tear_down(&rig, &beat);
}

/* T18, A2: bytes of an earlier window do not count in the current window. */
static void response_that_drips_after_a_fast_start_is_aborted(void **state)
{
    enum {
        FAST = 16384 * 16
    };
    static const struct hostile_step steps[] = {READ, SAY("HTTP/1.1 200 OK\r\n\r\n"),
                                                REPEAT("0123456789abcdef", 16384, 0),
                                                REPEAT("x", HOSTILE_FOREVER, 20 * MS), END};
    struct beat beat;
    struct wr_net_options options = timed(&beat);
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.speed_ns = LIMIT;
    options.speed_min = 100000;
    options.total_ns = 10 * LIMIT;
    rig_set_up(&rig, options);
    memset(&got, 0, sizeof got);
    rig_start(&rig, rig_url(hostile_listen(rig.server, &(struct hostile_case){.steps = {steps}})), &got);
    while (got.body_bytes < FAST)
        rig_turn(&rig);
    beat_begin(&beat, &rig);
    rig_run(&rig);
    beat_end(&beat);
    assert_int_equal(got.result.end, WR_NET_TOO_SLOW);
    int64_t lasted_ns = got.result.done_at - got.result.first_byte_at;
    /* the transfer ends after the second window */
    assert_true(lasted_ns >= 2 * LIMIT && lasted_ns <= 2 * (LIMIT + LATE_MAX));
    timed_tear_down(&rig, &beat);
}

static void fast_endless_response_ends_by_the_total_limit(void **state)
{
    static const struct hostile_step steps[] = {READ, SAY("HTTP/1.1 200 OK\r\n\r\n"),
                                                REPEAT("0123456789012345678901234567890123456789", HOSTILE_FOREVER, MS),
                                                END};
    struct beat beat;
    struct wr_net_options options = timed(&beat);
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.speed_ns = LIMIT;
    options.speed_min = 1000;
    options.total_ns = 2 * LIMIT;
    rig_set_up(&rig, options);
    beat.got = &got;
    get_timed(&rig, &beat, rig_url(hostile_listen(rig.server, &(struct hostile_case){.steps = {steps}})), &got);
    assert_int_equal(got.result.end, WR_NET_TOTAL_TIMEOUT);
    assert_int_equal(got.result.status, 200);
    assert_lasted(got.result.asked_at, got.result.done_at, options.total_ns);
    timed_tear_down(&rig, &beat);
}

/* E2: a refused connection and one that gets no reply both end. */
static void refused_and_unanswered_connections_end(void **state)
{
    struct beat beat;
    struct wr_net_options options = timed(&beat);
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.connect_ns = LIMIT;
    if (options.uses_libcurl_only) /* the connect timer of libcurl uses real time */
        options.clock = NULL;
    rig_set_up(&rig, options);
    rig_get(&rig, rig_url(hostile_refuse(rig.server)), &got);
    assert_int_equal(got.result.end, WR_NET_CONNECT);
    assert_int_equal(got.result.blame, WR_NET_BLAME_HOST);
    assert_int_equal(got.result.sends, 0);
    get_timed(&rig, &beat, rig_url(hostile_black_hole(rig.server, "127.0.0.1", 0)), &got);
    assert_int_equal(got.result.end, WR_NET_CONNECT_TIMEOUT);
    assert_int_equal(got.result.sends, 0);
    if (options.uses_libcurl_only)
        assert_true(got.result.done_at - got.result.asked_at >= LIMIT - 10 * MS);
    else
        assert_lasted(got.result.asked_at, got.result.done_at, LIMIT);
    rig_get(&rig, "http://255.255.255.255/", &got); /* an unreachable address */
    assert_int_equal(got.result.end, WR_NET_CONNECT);
    timed_tear_down(&rig, &beat);
}

/* E2: the IPv6 address does not reply, the IPv4 address works. */
static void dead_address_does_not_prevent_trying_the_next(void **state)
{
    static const struct hostile_step steps[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), END};
    struct beat beat;
    struct wr_net_options options = timed(&beat);
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, options);
    rig.names[0] = (struct rig_name){"both.example", {"::1 127.0.0.1"}};
    rig.names[1] = (struct rig_name){"half.example", {"127.0.0.2 127.0.0.1"}};
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {steps}});
    (void)hostile_black_hole(rig.server, "::1", port);
    get_timed(&rig, &beat, rig_url_of("http", "both.example", port, "/"), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_int_equal(got.result.address.bytes[12], 127);
    assert_true(got.result.sent_at - got.result.asked_at <
                WEIR_SECOND); /* happy eyeballs: the kernel connects at once */
    /* 127.0.0.2 refuses the connection */
    rig_get(&rig, rig_url_of("http", "half.example", port, "/"), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_int_equal(got.result.address.bytes[15], 1);
    timed_tear_down(&rig, &beat);
}

/* ---- names that the resolver never answers --------------------------------------------------- */

static atomic_bool let_go;

static void never_answer(void *context, const char *name, struct wr_dns_answer *ret_answer)
{
    const struct timespec nap = {.tv_nsec = 1000000};

    (void)context;
    (void)name;
    while (!atomic_load(&let_go))
        (void)nanosleep(&nap, NULL);
    *ret_answer = (struct wr_dns_answer){.kind = WR_DNS_FAILED};
}

/* E1: the connect limit includes the time to resolve the name. */
static void name_lookup_without_an_answer_ends_by_the_connect_limit(void **state)
{
    struct beat beat;
    struct wr_net_options options = timed(&beat);
    struct wr_resolver *silent;
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, options);
    struct wr_resolver_options resolving = {.threads = 2, .lookup = never_answer};
    assert_int_equal(wr_resolver_new(&resolving, &silent), 0);
    struct wr_net *usual = rig.net;
    options.allocator = &rig.memory.allocator;
    options.loop = &rig.loop;
    options.resolver = silent;
    options.connect_ns = LIMIT;
    assert_int_equal(wr_net_new(&options, &rig.net), 0);
    get_timed(&rig, &beat, "http://silent.example/", &got);
    assert_int_equal(got.result.end, WR_NET_CONNECT_TIMEOUT);
    assert_int_equal(got.result.resolved_at, 0);
    assert_lasted(got.result.asked_at, got.result.done_at, LIMIT);
    wr_net_close(rig.net);
    rig.net = usual;
    atomic_store(&let_go, true);
    wr_resolver_free(silent);
    timed_tear_down(&rig, &beat);
}

WEIR_TESTS(test(silent_server_ends_by_the_first_byte_limit), test(dripping_response_is_aborted_and_others_continue),
           test(response_that_drips_after_a_fast_start_is_aborted), test(fast_endless_response_ends_by_the_total_limit),
           test(refused_and_unanswered_connections_end), test(dead_address_does_not_prevent_trying_the_next),
           test(name_lookup_without_an_answer_ends_by_the_connect_limit))
