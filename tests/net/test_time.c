/* SPDX-License-Identifier: MIT */
/* test_time.c - everything has an end: silence, dripping, black holes (A1, A2, E1, E2, E3). */
#include "net/rig.h"

static int64_t lasted(const struct got *got)
{
    return got->result.done_at - got->result.asked_at;
}

/* Within the time-out and half of it more: the machine may be busy. */
static void assert_lasted(const struct got *got, int64_t least_ns)
{
    assert_true(lasted(got) >= least_ns);
    assert_true(lasted(got) < least_ns + least_ns / 2 + 150 * MS);
}

/* A1 */
static void a_server_that_accepts_and_stays_silent_is_left(void **state)
{
    static const struct hostile_step silent[] = {HOLD, END};
    struct wr_net_options options = rig_options();
    struct wr_net_stats stats;
    struct rig rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, options);
    int port = rig_get_steps(&rig, silent, &got);
    assert_int_equal(got.result.end, WR_NET_FIRST_BYTE_TIMEOUT);
    assert_int_equal(got.result.retry, WR_NET_LATER);
    assert_int_equal(got.result.blame, WR_NET_HOST);
    assert_int_equal(got.result.sends, 1);
    assert_lasted(&got, options.first_byte_ns);
    hostile_await_ended(rig.server, port, 1); /* the connection is closed, the place is free */
    wr_net_stats(rig.net, &stats);
    assert_int_equal(stats.transfers, 0);
    assert_int_equal(stats.connections, 0);
    rig_tear_down(&rig);
}

/* A2: in the body, in the head, and one that is quick enough but has no end. */
static void an_answer_that_drips_is_left_and_others_go_on(void **state)
{
    static const struct hostile_step body[] = {READ, SAY("HTTP/1.1 200 OK\r\n\r\n"),
                                               REPEAT("x", HOSTILE_FOREVER, 20 * MS), END};
    static const struct hostile_step head[] = {READ, SAY("HTTP/1.1 200 OK\r\nX: "),
                                               REPEAT("x", HOSTILE_FOREVER, 20 * MS), END};
    static const struct hostile_step stalls[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), HOLD,
                                                 END};
    static const struct hostile_step quick[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), END};
    const struct hostile_step *const slow[] = {body, head, stalls};
    struct wr_net_options options = rig_options();
    struct rig rig;
    struct got got[3], other;

    (void)state;
    rig_set_up(&rig, options);
    memset(got, 0, sizeof got);
    memset(&other, 0, sizeof other);
    for (int i = 0; i < 3; i++)
        rig_start(&rig, rig_url(hostile_listen(rig.server, &(struct hostile_case){.steps = {slow[i]}})), &got[i]);
    rig_start(&rig, rig_url(hostile_listen(rig.server, &(struct hostile_case){.steps = {quick}})), &other);
    rig_run(&rig);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(got[i].result.end, WR_NET_TOO_SLOW);
        assert_lasted(&got[i], options.speed_ns);
    }
    assert_int_equal(other.result.end, WR_NET_DONE);
    assert_true(lasted(&other) < options.speed_ns / 2);
    rig_tear_down(&rig);
}

/* T18, A2: how much came before a window of time says nothing of that window. */
static void answer_that_drips_after_a_fast_start_is_left(void **state)
{
    static const struct hostile_step steps[] = {READ, SAY("HTTP/1.1 200 OK\r\n\r\n"),
                                                REPEAT("0123456789abcdef", 16384, 0),
                                                REPEAT("x", HOSTILE_FOREVER, 20 * MS), END};
    struct wr_net_options options = rig_options();
    struct rig rig;
    struct got got;

    (void)state;
    options.total_ns = 10 * WEIR_SECOND;
    rig_set_up(&rig, options);
    (void)rig_get_steps(&rig, steps, &got);
    assert_int_equal(got.result.end, WR_NET_TOO_SLOW);
    rig_tear_down(&rig);
}

static void an_answer_that_is_quick_but_endless_is_left(void **state)
{
    static const struct hostile_step steps[] = {
        READ, SAY("HTTP/1.1 200 OK\r\n\r\n"),
        REPEAT("0123456789012345678901234567890123456789", HOSTILE_FOREVER, 5 * MS), END};
    struct wr_net_options options = rig_options();
    struct rig rig;
    struct got got;

    (void)state;
    options.total_ns = options.speed_ns * 2;
    rig_set_up(&rig, options);
    (void)rig_get_steps(&rig, steps, &got);
    assert_int_equal(got.result.end, WR_NET_TOTAL_TIMEOUT);
    assert_int_equal(got.result.status, 200);
    assert_lasted(&got, options.total_ns);
    rig_tear_down(&rig);
}

/* E2 */
static void a_connection_that_is_refused_or_swallowed_ends(void **state)
{
    struct wr_net_options options = rig_options();
    struct rig rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, options);
    rig_get(&rig, rig_url(hostile_refuse(rig.server)), &got);
    assert_int_equal(got.result.end, WR_NET_CONNECT);
    assert_int_equal(got.result.blame, WR_NET_HOST);
    assert_int_equal(got.result.sends, 0);
    assert_true(lasted(&got) < options.connect_ns / 2);
    rig_get(&rig, rig_url(hostile_black_hole(rig.server, "127.0.0.1", 0)), &got);
    assert_int_equal(got.result.end, WR_NET_CONNECT_TIMEOUT);
    assert_int_equal(got.result.sends, 0);
    assert_lasted(&got, options.connect_ns - 10 * MS);
    rig_get(&rig, "http://255.255.255.255/", &got); /* unreachable */
    assert_int_equal(got.result.end, WR_NET_CONNECT);
    rig_tear_down(&rig);
}

/* E2: IPv6 broken, IPv4 fine. */
static void a_dead_address_does_not_keep_us_from_the_next(void **state)
{
    static const struct hostile_step steps[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), END};
    struct wr_net_options options = rig_options();
    struct rig rig;
    struct got got;

    (void)state;
    options.connect_ns = 3 * WEIR_SECOND;
    rig_set_up(&rig, options);
    rig.names[0] = (struct rig_name){"both.example", {"::1 127.0.0.1"}};
    rig.names[1] = (struct rig_name){"half.example", {"127.0.0.2 127.0.0.1"}};
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {steps}});
    (void)hostile_black_hole(rig.server, "::1", port);
    rig_get(&rig, rig_url_of("http", "both.example", port, "/"), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_int_equal(got.result.address.bytes[12], 127);
    assert_true(lasted(&got) < WEIR_SECOND);                            /* happy eyeballs */
    rig_get(&rig, rig_url_of("http", "half.example", port, "/"), &got); /* 127.0.0.2 refuses */
    assert_int_equal(got.result.end, WR_NET_DONE);
    assert_int_equal(got.result.address.bytes[15], 1);
    rig_tear_down(&rig);
}

/* ---- names that do not answer ---------------------------------------------------------------------------- */

static atomic_bool let_go;

static void never_answer(void *context, const char *name, struct wr_answer *ret_answer)
{
    const struct timespec nap = {.tv_nsec = 1000000};

    (void)context;
    (void)name;
    while (!atomic_load(&let_go))
        (void)nanosleep(&nap, NULL);
    *ret_answer = (struct wr_answer){.kind = WR_ANSWER_FAILED};
}

/* E1 */
static void a_name_that_nobody_answers_ends_with_connecting(void **state)
{
    struct wr_net_options options = rig_options();
    struct wr_resolver *silent;
    struct rig rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, options);
    struct wr_resolver_options resolving = {.threads = 2, .lookup = never_answer};
    assert_int_equal(wr_resolver_new(&resolving, &silent), 0);
    struct wr_net *usual = rig.net;
    options.allocator = &rig.memory.allocator;
    options.loop = &rig.loop;
    options.resolver = silent;
    assert_int_equal(wr_net_new(&options, &rig.net), 0);
    rig_get(&rig, "http://silent.example/", &got);
    assert_int_equal(got.result.end, WR_NET_CONNECT_TIMEOUT);
    assert_int_equal(got.result.resolved_at, 0);
    assert_lasted(&got, options.connect_ns);
    wr_net_close(rig.net);
    rig.net = usual;
    atomic_store(&let_go, true);
    wr_resolver_free(silent);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(a_server_that_accepts_and_stays_silent_is_left), test(an_answer_that_drips_is_left_and_others_go_on),
           test(answer_that_drips_after_a_fast_start_is_left), test(an_answer_that_is_quick_but_endless_is_left),
           test(a_connection_that_is_refused_or_swallowed_ends), test(a_dead_address_does_not_keep_us_from_the_next),
           test(a_name_that_nobody_answers_ends_with_connecting))
