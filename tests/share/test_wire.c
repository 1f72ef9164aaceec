/* SPDX-License-Identifier: MIT */
/* test_wire.c - charges of limits in a real store, and a store that fails. */
#include "lib/test.h"
#include "share/rig.h"

#include <signal.h>
#include <unistd.h>

static void make_tariff(const weir_limit *limits, size_t count, struct wr_charge_limits *ret_tariff)
{
    weir_stack stack;
    assert_int_equal(weir_stack_init(&stack, limits, count), 0);
    assert_int_equal(wr_charge_limits_make(&stack, ret_tariff), 0);
}

static void bucket(uint32_t capacity, int64_t period_ns, struct wr_charge_limits *ret_tariff)
{
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, capacity, 1, period_ns), 0);
    make_tariff(&limit, 1, ret_tariff);
}

static const struct wr_charge ONE = {.key = "k", .key_bytes = 1, .permits = 1, .seen = ""};

/* Each kind grants its quota at once, and then reports the wait. */
static void each_kind_of_limit_grants_its_quota_and_reports_the_wait(void **state)
{
    (void)state;
    weir_limit limits[5];
    const int most[5] = {5, 5, 5, 5, 1};
    struct bench bench;

    weir_limit_token_bucket(&limits[0], 5, 1, WEIR_HOUR);
    weir_limit_stepped_bucket(&limits[1], 5, 1, WEIR_HOUR, 5);
    weir_limit_fixed_window(&limits[2], 5, WEIR_HOUR);
    weir_limit_sliding_window(&limits[3], 5, WEIR_HOUR);
    weir_limit_leaky_bucket(&limits[4], 5, WEIR_HOUR);
    bench_open(&bench, &store, PATIENT);
    for (int i = 0; i < 5; i++) {
        struct wr_charge_limits charge_limits;
        char key[] = {'k', (char)('0' + i)};
        struct wr_charge charge = {.key = key, .key_bytes = 2, .permits = 1, .seen = ""};
        make_tariff(&limits[i], 1, &charge_limits);
        for (int j = 0; j < most[i]; j++) {
            assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
            assert_true(bench.last.reply.granted);
            assert_int_equal(bench.last.quota.remaining, most[i] - 1 - j);
        }
        assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
        assert_false(bench.last.reply.granted);
        assert_true(bench.last.reply.wait_ns > WEIR_HOUR - WEIR_MINUTE);
        assert_true(bench.last.reply.wait_ns <= WEIR_HOUR + (i == 3 ? WEIR_HOUR : 0));
    }
    assert_int_equal(store_say(&store, "DBSIZE"), 5);
    assert_true(store_say(&store, "PTTL k0") > 5 * 3600 * 1000 - 60000);
    assert_true(store_say(&store, "PTTL k2") > 3600 * 1000 - 60000);
    bench_close(&bench);
}

static void stack_of_limits_is_charged_in_one_round_trip_all_or_nothing(void **state)
{
    (void)state;
    weir_limit limits[2];
    struct wr_charge_limits charge_limits;
    struct bench bench;

    weir_limit_token_bucket(&limits[0], 10, 1, WEIR_HOUR);
    weir_limit_fixed_window(&limits[1], 4, WEIR_HOUR);
    make_tariff(limits, 2, &charge_limits);
    bench_open(&bench, &store, PATIENT);
    struct wr_charge charge = {.key = "k", .key_bytes = 1, .permits = 3, .seen = ""};
    assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
    assert_true(bench.last.reply.granted);
    assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
    assert_false(bench.last.reply.granted);
    charge.permits = 1;
    assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
    assert_true(bench.last.reply.granted);
    struct wr_redis_connection_view view;
    wr_redis_connection_view_get(bench.wire, &view);
    assert_int_equal(view.sent, 3);
    bench_close(&bench);
}

static void extra_permits_are_granted_as_far_as_available(void **state)
{
    (void)state;
    struct wr_charge_limits charge_limits;
    struct bench bench;

    bucket(10, WEIR_MINUTE, &charge_limits);
    bench_open(&bench, &store, PATIENT);
    struct wr_charge charge = {.key = "k", .key_bytes = 1, .permits = 2, .extra = 5, .seen = ""};
    assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
    assert_int_equal(bench.last.reply.extra, 5);
    assert_int_equal(bench.last.reply.full_wait_ns, 0);
    assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
    assert_true(bench.last.reply.granted);
    assert_int_equal(bench.last.reply.extra, 1);
    assert_true(bench.last.reply.full_wait_ns > 3 * WEIR_MINUTE);
    assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
    assert_false(bench.last.reply.granted);
    assert_int_equal(bench.last.reply.extra, 0);
    assert_true(bench.last.reply.full_wait_ns > bench.last.reply.wait_ns);
    bench_close(&bench);
}

static void flushed_scripts_are_sent_again_without_an_error(void **state)
{
    (void)state;
    struct wr_charge_limits charge_limits;
    struct bench bench;
    struct wr_redis_connection_view view;

    bucket(2, WEIR_HOUR, &charge_limits);
    bench_open(&bench, &store, PATIENT);
    assert_int_equal(bench_charge(&bench, &charge_limits, &ONE), 0);
    store_say(&store, "SCRIPT FLUSH");
    assert_int_equal(bench_charge(&bench, &charge_limits, &ONE), 0);
    assert_true(bench.last.reply.granted);
    assert_int_equal(bench_charge(&bench, &charge_limits, &ONE), 0);
    assert_false(bench.last.reply.granted);
    wr_redis_connection_view_get(bench.wire, &view);
    assert_int_equal(view.reloads, 2);
    assert_false(view.down);
    bench_close(&bench);
}

static void keys_that_the_store_lost_are_restored_by_the_node(void **state)
{
    (void)state;
    struct wr_charge_limits charge_limits;
    struct bench bench;

    bucket(3, WEIR_HOUR, &charge_limits);
    bench_open(&bench, &store, PATIENT);
    struct wr_charge charge = ONE;
    charge.permits = 3;
    assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
    assert_true(bench.last.reply.granted);
    char seen[WR_KEY_STATE_BYTES];
    memcpy(seen, bench.last.seen, sizeof seen);
    store_say(&store, "FLUSHALL");
    charge.permits = 1;
    charge.seen = seen;
    assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
    assert_false(bench.last.reply.granted);
    charge.seen = ""; /* the restored state applies to other nodes, too */
    assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
    assert_false(bench.last.reply.granted);
    bench_close(&bench);
}

static void invalid_seen_state_is_ignored(void **state)
{
    (void)state;
    struct wr_charge_limits charge_limits;
    struct bench bench;

    bucket(3, WEIR_HOUR, &charge_limits);
    bench_open(&bench, &store, PATIENT);
    struct wr_charge charge = ONE;
    charge.seen = "b x y z w";
    assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
    assert_true(bench.last.reply.granted);
    assert_int_equal(bench.last.quota.remaining, 2);
    bench_close(&bench);
}

static void store_keys_of_any_bytes_are_distinct(void **state)
{
    (void)state;
    static const char *const keys[] = {"a\0b", "a\0c", "a\r\n", "}{x", "'..", "%s%"};
    struct wr_charge_limits charge_limits;
    struct bench bench;

    bucket(1, WEIR_HOUR, &charge_limits);
    bench_open(&bench, &store, PATIENT);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct wr_charge charge = {.key = keys[i], .key_bytes = 3, .permits = 1, .seen = ""};
        assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
        assert_true(bench.last.reply.granted);
        assert_int_equal(bench_charge(&bench, &charge_limits, &charge), 0);
        assert_false(bench.last.reply.granted);
    }
    assert_int_equal(store_say(&store, "DBSIZE"), 6);
    bench_close(&bench);
}

static void memberships_are_limited_and_expire(void **state)
{
    (void)state;
    struct bench bench;

    bench_open(&bench, &store, PATIENT);
    assert_int_equal(bench_seat(&bench, "a", "2", "60000"), 0);
    assert_int_equal(bench.number, 1);
    bench_seat(&bench, "b", "2", "1");
    assert_int_equal(bench.number, 1);
    usleep(20000);
    bench_seat(&bench, "c", "2", "60000");
    assert_int_equal(bench.number, 1); /* the place that b had */
    bench_seat(&bench, "b", "2", "60000");
    assert_int_equal(bench.number, 0);
    bench_seat(&bench, "a", "2", "60000");
    assert_int_equal(bench.number, 1); /* keeps its own place */
    bench_close(&bench);
}

/* A store that hangs costs three requests their timeout; later ones fail at once until the store is
 * back. */
static void hanging_store_counts_as_down_until_it_answers(void **state)
{
    (void)state;
    struct wr_charge_limits charge_limits;
    struct bench bench;
    struct wr_redis_connection_view view;

    bucket(100, WEIR_HOUR, &charge_limits);
    bench_open(&bench, &store, 200 * MS);
    while (bench_charge(&bench, &charge_limits, &ONE) != 0)
        ; /* repeats if the machine is slow */
    kill(store.pid, SIGSTOP);
    for (int i = 0; i < WR_OUTAGE_MISSES; i++)
        assert_int_equal(bench_charge(&bench, &charge_limits, &ONE), WEIR_E_TIMEOUT);
    wr_redis_connection_view_get(bench.wire, &view);
    assert_true(view.down);
    assert_int_equal(view.asks, 0);
    assert_non_null(strstr(view.why, "/s: no reply in time"));
    assert_int_equal(bench_charge(&bench, &charge_limits, &ONE), WEIR_E_CLOSED);
    kill(store.pid, SIGCONT);
    while (bench_charge(&bench, &charge_limits, &ONE) != 0)
        usleep(1000);
    wr_redis_connection_view_get(bench.wire, &view);
    assert_false(view.down);
    bench_close(&bench);
}

static void killed_store_counts_as_down_at_once_until_it_is_back(void **state)
{
    (void)state;
    struct wr_charge_limits charge_limits;
    struct bench bench;
    struct wr_redis_connection_view view;

    bucket(100, WEIR_HOUR, &charge_limits);
    bench_open(&bench, &store, PATIENT);
    assert_int_equal(bench_charge(&bench, &charge_limits, &ONE), 0);
    store_kill(&store);
    int error = bench_charge(&bench, &charge_limits, &ONE);
    assert_true(error == WEIR_E_TIMEOUT || error == WEIR_E_CLOSED);
    wr_redis_connection_view_get(bench.wire, &view);
    assert_true(view.down);
    assert_int_equal(bench_charge(&bench, &charge_limits, &ONE), WEIR_E_CLOSED);
    store_start(&store);
    while (bench_charge(&bench, &charge_limits, &ONE) != 0)
        usleep(1000);
    assert_true(bench.last.reply.granted);
    bench_close(&bench);
}

static void store_that_replies_with_an_error_counts_as_down(void **state)
{
    (void)state;
    struct wr_charge_limits charge_limits;
    struct bench bench;
    struct wr_redis_connection_view view;

    bucket(100, WEIR_HOUR, &charge_limits);
    bench_open(&bench, &store, PATIENT);
    store_say(&store, "REPLICAOF 127.0.0.1 1"); /* replies with READONLY from now on */
    assert_int_equal(bench_charge(&bench, &charge_limits, &ONE), WEIR_E_TIMEOUT);
    wr_redis_connection_view_get(bench.wire, &view);
    assert_true(view.down);
    assert_int_equal(view.refused, 1);
    store_say(&store, "REPLICAOF NO ONE");
    while (bench_charge(&bench, &charge_limits, &ONE) != 0)
        usleep(1000);
    store_say(&store, "CONFIG SET maxmemory 1"); /* replies with OOM from now on */
    assert_int_equal(bench_charge(&bench, &charge_limits, &ONE), WEIR_E_TIMEOUT);
    wr_redis_connection_view_get(bench.wire, &view);
    assert_true(view.down);
    bench_close(&bench);
}

WEIR_TESTS(served(each_kind_of_limit_grants_its_quota_and_reports_the_wait),
           served(stack_of_limits_is_charged_in_one_round_trip_all_or_nothing),
           served(extra_permits_are_granted_as_far_as_available),
           served(flushed_scripts_are_sent_again_without_an_error),
           served(keys_that_the_store_lost_are_restored_by_the_node), served(invalid_seen_state_is_ignored),
           served(store_keys_of_any_bytes_are_distinct), served(memberships_are_limited_and_expire),
           served(hanging_store_counts_as_down_until_it_answers),
           served(killed_store_counts_as_down_at_once_until_it_is_back),
           served(store_that_replies_with_an_error_counts_as_down))
