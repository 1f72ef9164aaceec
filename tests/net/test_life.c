/* SPDX-License-Identifier: MIT */
/* test_life.c - transfers are started, cancelled and closed at any moment without leaks (K3, L1,
 * V6). */
#include "net/rig.h"

#include "base/rng.h"

#include <sys/resource.h>

static const struct hostile_step hello[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), AGAIN, END};
static const struct hostile_step waits[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), HOLD, END};
static const struct hostile_step silent[] = {HOLD, END};

static void run_for(struct net_fixture *rig, int64_t ns)
{
    int64_t until = weir_clock_now(weir_clock_monotonic()) + ns;

    while (weir_clock_now(weir_clock_monotonic()) < until)
        (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
}

/* K3: a transfer can be cancelled while it resolves, connects, waits or receives. */
static void transfer_can_be_cancelled_at_every_stage(void **state)
{
    static const int64_t after[] = {0, 0, 1 * MS, 20 * MS, 60 * MS};
    const struct hostile_step *const steps[] = {hello, silent, waits};
    struct wr_net_stats stats;
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    rig.names[0] = (struct rig_name){"site.example", {"127.0.0.1"}};
    for (size_t i = 0; i < 3; i++) {
        int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {steps[i]}});
        for (size_t j = 0; j < sizeof after / sizeof after[0]; j++) {
            memset(&got, 0, sizeof got);
            rig_start(&rig, rig_url_of("http", j == 0 ? "127.0.0.1" : "site.example", port, "/"), &got);
            run_for(&rig, after[j]);
            if (got.is_done)
                continue;
            wr_net_cancel(got.transfer);
            assert_false(got.is_done); /* on_done is never called from inside wr_net_cancel */
            wr_net_cancel(got.transfer);
            rig_run(&rig);
            assert_true(got.is_done);
            assert_int_equal(got.result.end, WR_NET_CANCELLED);
            assert_int_equal(got.result.retry, WR_NET_FREE);
        }
    }
    wr_net_stats(rig.net, &stats);
    assert_int_equal(stats.transfers, 0);
    rig_tear_down(&rig);
}

static void transfer_can_be_cancelled_from_its_own_callbacks(void **state)
{
    static const struct hostile_step drips[] = {READ, SAY("HTTP/1.1 200 OK\r\n\r\n"),
                                                REPEAT("hello", HOSTILE_FOREVER, 2 * MS), END};
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {drips}});
    memset(&got, 0, sizeof got);
    got.cancels_in_body = true;
    rig_start(&rig, rig_url(port), &got);
    rig_run(&rig);
    assert_int_equal(got.result.end, WR_NET_CANCELLED);
    assert_int_equal(got.bodies, 1); /* on_body is not called after the cancellation */
    rig_tear_down(&rig);
}

static void closing_the_net_ends_all_transfers(void **state)
{
    struct net_fixture rig;
    struct got got[7];
    const struct hostile_step *const steps[] = {silent, waits, hello};
    struct wr_net_options options = rig_options();

    (void)state;
    /* no time limit ends a transfer before the net is closed */
    options.first_byte_ns = options.speed_ns = options.total_ns = WEIR_MINUTE;
    rig_set_up(&rig, options);
    memset(got, 0, sizeof got);
    for (int i = 0; i < 6; i++)
        rig_start(&rig, rig_url(hostile_listen(rig.server, &(struct hostile_case){.steps = {steps[i % 3]}})), &got[i]);
    while (!got[2].is_done || !got[5].is_done || got[1].body_bytes == 0)
        rig_turn(&rig);
    rig_start(&rig, "http://absent.example/", &got[6]); /* this transfer has only just started */
    wr_net_close(rig.net);
    rig.net = NULL;
    for (int i = 0; i < 7; i++)
        assert_true(got[i].is_done);
    assert_int_equal(got[0].result.end, WR_NET_CANCELLED);
    assert_int_equal(got[5].result.end, WR_NET_DONE);
    rig_tear_down(&rig);
}

static void callback_may_start_another_transfer(void **state)
{
    struct net_fixture rig;
    struct got first, second;
    char url[64];

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    snprintf(url, sizeof url, "%s", rig_url(port));
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    first.then = &second;
    first.then_url = url;
    rig_start(&rig, url, &first);
    rig_run(&rig);
    assert_int_equal(first.result.end, WR_NET_DONE);
    assert_true(second.is_done);
    assert_int_equal(second.result.end, WR_NET_DONE);
    assert_string_equal(second.body, "hello");
    rig_tear_down(&rig);
}

/* V6: at most transfers_max transfers run. */
static void transfers_are_bounded(void **state)
{
    struct wr_net_options options = rig_options();
    struct net_fixture rig;
    struct got got[4];

    (void)state;
    options.transfers_max = 3;
    rig_set_up(&rig, options);
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {silent}});
    memset(got, 0, sizeof got);
    for (int i = 0; i < 3; i++)
        rig_start(&rig, rig_url(port), &got[i]);
    assert_int_equal(rig_try(&rig, rig_url(port), &(struct wr_net_request){.url = NULL}, &got[3]), WEIR_E_FULL);
    for (int i = 0; i < 3; i++)
        wr_net_cancel(got[i].transfer);
    rig_run(&rig);
    assert_false(got[3].is_done);
    rig_start(&rig, rig_url(port), &got[3]);
    wr_net_cancel(got[3].transfer);
    rig_run(&rig);
    assert_true(got[3].is_done);
    rig_tear_down(&rig);
}

/* V6: the number of idle connections is bounded, however many hosts there are. */
static void connections_are_bounded(void **state)
{
    static const char *const names[] = {"a.example", "b.example", "c.example", "d.example", "e.example", "f.example",
                                        "g.example", "h.example", "i.example", "j.example", "k.example", "l.example"};
    struct wr_net_options options = rig_options();
    struct wr_net_stats stats;
    struct net_fixture rig;
    struct got got;

    (void)state;
    options.connections_max = 8;
    options.transfers_max = 4;
    rig_set_up(&rig, options);
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    for (int i = 0; i < 12; i++)
        rig.names[i] = (struct rig_name){names[i], {"127.0.0.1"}};
    for (int i = 0; i < 36; i++) {
        rig_get(&rig, rig_url_of("http", names[i % 12], port, "/"), &got);
        assert_int_equal(got.result.end, WR_NET_DONE);
        wr_net_stats(rig.net, &stats);
        assert_true(stats.connections <= 8);
    }
    assert_true(stats.opened < 36); /* some idle connections were reused */
    rig_tear_down(&rig);
}

/* E5: a lack of descriptors is not blamed on the host, and the request can be retried for free. */
static void lack_of_descriptors_blames_no_host_and_is_temporary(void **state)
{
    struct rlimit limit, none;
    struct net_fixture rig;
    struct got got;

    (void)state;
    rig_set_up(&rig, rig_options());
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rig_get(&rig, rig_url(port), &got);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(got.result.end, WR_NET_SCARCE);
    assert_int_equal(got.result.retry, WR_NET_FREE);
    assert_int_equal(got.result.blame, WR_NET_BLAME_NONE);
    rig_get(&rig, rig_url(port), &got);
    assert_int_equal(got.result.end, WR_NET_DONE);
    rig_tear_down(&rig);
}

/* L1: the n-th allocation fails, alone or with all later ones. */
static void lack_of_memory_is_reported_and_survived(void **state)
{
    static const struct wr_net_field field = {{"X", 1}, {"y", 1}};
    struct net_fixture rig;
    struct got got;
    int failures = 0;

    (void)state;
    for (int n = 1; n < 20; n++)
        for (int for_ever = 0; for_ever < 2; for_ever++) {
            rig_set_up(&rig, rig_options());
            rig.names[0] = (struct rig_name){"site.example", {"127.0.0.1"}};
            int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {hello}});
            memset(&got, 0, sizeof got);
            rig.memory.fail_for_ever = for_ever != 0;
            rig.memory.fail_at = n;
            int error = rig_try(&rig, rig_url_of("http", "site.example", port, "/"),
                                &(struct wr_net_request){.fields = &field, .field_count = 1}, &got);
            rig_run(&rig);
            rig.memory.fail_at = 0;
            rig.memory.fail_for_ever = false;
            assert_true(error == 0 || error == WEIR_E_NOMEM);
            assert_int_equal(got.is_done, error == 0);
            if (error < 0 || got.result.end != WR_NET_DONE)
                failures++;
            if (error == 0 && got.result.end != WR_NET_DONE)
                assert_int_equal(got.result.end, WR_NET_SCARCE);
            rig_get(&rig, rig_url_of("http", "site.example", port, "/"), &got);
            assert_int_equal(got.result.end, WR_NET_DONE);
            rig_tear_down(&rig);
        }
    assert_true(failures >= 8);
}

static void net_that_cannot_be_created_leaks_nothing(void **state)
{
    test_allocator memory;
    uv_loop_t loop;
    struct wr_resolver *resolver;
    struct wr_net *net = NULL;
    long n = 0;
    int error;

    (void)state;
    test_allocator_init(&memory);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(wr_resolver_new(&(struct wr_resolver_options){.threads = 2}, &resolver), 0);
    struct wr_net_options options = {
        .allocator = &memory.allocator, .loop = &loop, .resolver = resolver, .agent = "a", .ca_file = "b"};
    do {
        memory.fail_at = ++n;
        error = wr_net_new(&options, &net);
        assert_int_equal(memory.live == 0, error < 0);
    } while (error == WEIR_E_NOMEM);
    memory.fail_at = 0;
    assert_int_equal(error, 0);
    assert_true(n > 3);
    wr_net_close(net);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(memory.live, 0);
    wr_resolver_free(resolver);
}

static void invalid_net_options_are_refused(void **state)
{
    struct net_fixture rig;
    struct wr_net *net;

    (void)state;
    rig_set_up(&rig, rig_options());
    struct wr_net_options bad[] = {
        {.loop = NULL},           {.resolver = NULL}, {.head_max = 262145},
        {.transfers_max = 65537}, {.connect_ns = -1}, {.total_ns = WEIR_DURATION_MAX + 1},
        {.agent = "\x01"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bad[i].loop = i == 0 ? NULL : &rig.loop;
        bad[i].resolver = i == 1 ? NULL : rig.resolver;
        assert_int_equal(wr_net_new(&bad[i], &net), WEIR_E_INVAL);
    }
    rig_tear_down(&rig);
}

/* ---- many transfers at once ------------------------------------------------------------------ */

#define FATES 400
#define AT_ONCE 16

struct crowd {
    struct net_fixture rig;
    struct wr_rng rng;
    char urls[8][64];
    int started, ended, ends[32];
    struct got *got;
    int64_t cancel_at[AT_ONCE];
};

static void note_fate(struct crowd *crowd, const struct got *got)
{
    crowd->ended++;
    crowd->ends[got->result.end]++;
}

/* Returns true if every wanted result occurred. On a busy machine some need more transfers, at most
 * 3 * FATES. */
static bool is_enough(const struct crowd *crowd)
{
    static const enum wr_net_end wanted[] = {WR_NET_DONE,    WR_NET_CANCELLED, WR_NET_REFUSED,
                                             WR_NET_NO_NAME, WR_NET_CONNECT,   WR_NET_PROTOCOL};
    bool is_met = true;

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        is_met = is_met && crowd->ends[wanted[i]] > 0;
    if (!is_met && crowd->started >= 3 * FATES)
        for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
            print_error("%s: %d\n", wr_net_end_name(wanted[i]), crowd->ends[wanted[i]]);
    assert_true(is_met || crowd->started < 3 * FATES);
    return is_met && crowd->started >= FATES;
}

/* Notes the ended transfers, starts new ones in their place and cancels some at random. */
static void stir(struct crowd *crowd)
{
    int64_t now = weir_clock_now(weir_clock_monotonic());

    for (int i = 0; i < AT_ONCE; i++) {
        struct got *got = &crowd->got[i];
        if (got->transfer != NULL && got->is_done) {
            note_fate(crowd, got);
            got->transfer = NULL;
        }
        if (got->transfer != NULL && now >= crowd->cancel_at[i])
            wr_net_cancel(got->transfer);
        if (got->transfer != NULL || is_enough(crowd))
            continue;
        memset(got, 0, sizeof *got);
        got->stop_after = wr_rng_below(&crowd->rng, 4) == 0 ? 2 : 0;
        got->wants_no_body = wr_rng_below(&crowd->rng, 8) == 0;
        got->cancels_in_body = wr_rng_below(&crowd->rng, 8) == 0;
        got->refuse_from = wr_rng_below(&crowd->rng, 8) == 0 ? 1 : 0;
        crowd->cancel_at[i] = now + (int64_t)wr_rng_below(&crowd->rng, 10) * 10 * MS * SLOW;
        if (wr_rng_below(&crowd->rng, 2) == 0)
            crowd->cancel_at[i] = INT64_MAX;
        rig_start(&crowd->rig, crowd->urls[wr_rng_below(&crowd->rng, 8)], got);
        crowd->started++;
    }
}

static void transfers_with_every_kind_of_end_leak_nothing(void **state)
{
    static const struct hostile_step resets[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), RESET,
                                                 END};
    static const struct hostile_step leaves[] = {READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), END};
    static const struct hostile_step lies[] = {
        READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"), AGAIN, END};
    const struct hostile_step *const lists[] = {hello, silent, waits, resets, leaves, lies};
    struct wr_net_options options = rig_options();
    static struct crowd crowd;
    struct wr_net_stats stats;

    (void)state;
    memset(&crowd, 0, sizeof crowd);
    wr_rng_init(&crowd.rng, weir_test_seed());
    options.connect_ns = options.first_byte_ns = options.speed_ns = 200 * MS * SLOW;
    options.connections_max = 20;
    rig_set_up(&crowd.rig, options);
    crowd.rig.names[0] = (struct rig_name){"site.example", {"127.0.0.1"}};
    for (int i = 0; i < 6; i++) {
        int port = hostile_listen(crowd.rig.server, &(struct hostile_case){.steps = {lists[i]}});
        snprintf(crowd.urls[i], sizeof crowd.urls[i], "http://%s:%d/", i % 2 == 0 ? "site.example" : "127.0.0.1", port);
    }
    snprintf(crowd.urls[6], sizeof crowd.urls[6], "http://absent.example/");
    snprintf(crowd.urls[7], sizeof crowd.urls[7], "http://127.0.0.1:%d/", hostile_refuse(crowd.rig.server));
    crowd.got = calloc(AT_ONCE, sizeof *crowd.got);
    assert_non_null(crowd.got);
    while (!is_enough(&crowd) || crowd.ended < crowd.started) {
        stir(&crowd);
        rig_turn(&crowd.rig);
        wr_net_stats(crowd.rig.net, &stats);
        assert_true(stats.transfers <= AT_ONCE && stats.connections <= 20);
    }
    rig_tear_down(&crowd.rig);
    free(crowd.got);
}

/* ---- other threads --------------------------------------------------------------------------- */

#define POSTERS 4
#define POSTS 500

struct posted {
    struct wr_net_posted_call call; /* must be the first member */
    struct net_fixture *rig;
    struct got *got;
    int *runs;
};

struct poster {
    pthread_t thread;
    struct net_fixture *rig;
    struct posted posts[POSTS];
};

static void count_run(struct wr_net_posted_call *call)
{
    struct posted *posted = (struct posted *)call;

    if (++*posted->runs == POSTERS * POSTS)
        uv_stop(&posted->rig->loop);
}

static void *post_all(void *context)
{
    struct poster *poster = context;

    for (int i = 0; i < POSTS; i++)
        wr_net_post(poster->rig->net, &poster->posts[i].call);
    return NULL;
}

static void other_threads_may_post_calls(void **state)
{
    static struct poster posters[POSTERS];
    struct net_fixture rig;
    struct got got;
    int runs = 0;

    (void)state;
    rig_set_up(&rig, rig_options());
    memset(&got, 0, sizeof got);
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {silent}});
    for (int i = 0; i < POSTERS; i++) {
        posters[i].rig = &rig;
        for (int j = 0; j < POSTS; j++)
            posters[i].posts[j] = (struct posted){.call.run = count_run, .rig = &rig, .runs = &runs};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), 0);
    }
    rig_start(&rig, rig_url(port), &got);
    while (runs < POSTERS * POSTS)
        rig_turn(&rig);
    for (int i = 0; i < POSTERS; i++)
        assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
    wr_net_cancel(got.transfer);
    rig_run(&rig);
    assert_true(got.is_done);
    rig_tear_down(&rig);
}

/* The loop of a net without events sleeps. */
static void idle_net_does_not_wake_up(void **state)
{
    struct wr_net_options options = rig_options();
    struct net_fixture rig;
    struct got got;
    int turns = 0;

    (void)state;
    options.first_byte_ns = 300 * MS;
    rig_set_up(&rig, options);
    int port = hostile_listen(rig.server, &(struct hostile_case){.steps = {silent}});
    memset(&got, 0, sizeof got);
    rig_start(&rig, rig_url(port), &got);
    while (got.sends == 0)
        rig_turn(&rig);
    while (!got.is_done) {
        (void)uv_run(&rig.loop, UV_RUN_ONCE);
        turns++;
    }
    assert_int_equal(got.result.end, WR_NET_FIRST_BYTE_TIMEOUT);
    assert_true(turns < 10);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(transfer_can_be_cancelled_at_every_stage), test(transfer_can_be_cancelled_from_its_own_callbacks),
           test(closing_the_net_ends_all_transfers), test(callback_may_start_another_transfer),
           test(transfers_are_bounded), test(connections_are_bounded),
           test(lack_of_descriptors_blames_no_host_and_is_temporary), test(lack_of_memory_is_reported_and_survived),
           test(net_that_cannot_be_created_leaks_nothing), test(invalid_net_options_are_refused),
           test(transfers_with_every_kind_of_end_leak_nothing), test(other_threads_may_post_calls),
           test(idle_net_does_not_wake_up))
