/* SPDX-License-Identifier: MIT */
/* test_token_bucket.c - tests the smooth token bucket (S0-14 ... S0-18, S3-8, V8, H1 ... H4), and
 * known bugs of other implementations. */
#include "rig.h"

static weir_limit bucket(uint32_t capacity, uint32_t refill, int64_t period_ns)
{
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, capacity, refill, period_ns), 0);
    return limit;
}

/* S0-14, S0-18 */
static void bucket_starts_full_and_each_grant_takes_exactly_one(void **state)
{
    (void)state;
    weir_limit limit = bucket(3, 1, WEIR_SECOND);
    assert_int_equal(limit.initial, 3);
    TIMELINE(limit, {0, TRY, 1, 0}, {0, TRY, 1, 0}, {0, TRY, 1, 0}, {0, TRY, 1, 1000 * MS}, {1000 * MS, TRY, 1, 0},
             {1000 * MS, TRY, 1, 1000 * MS});
}

/* S0-15: with capacity 1 and two permits a second, the wait is 0.5 s, and half of that after 0.25
 * s. */
static void wait_is_the_missing_part_over_the_rate(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 2, WEIR_SECOND);
    TIMELINE(limit, {0, TRY, 1, 0}, {0, ASK, 1, 500 * MS}, {250 * MS, ASK, 1, 250 * MS}, {499 * MS, ASK, 1, 1 * MS},
             {500 * MS, TRY, 1, 0}, {500 * MS, ASK, 1, 500 * MS});
}

/* S0-14 */
static void refill_stops_at_the_capacity(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 1, WEIR_SECOND);
    TIMELINE(limit, {0, TRY, 2, 0}, {WEIR_DAY, TRY, 2, 0}, {WEIR_DAY, TRY, 1, 1000 * MS});
}

static void weighted_permits_wait_for_all_of_them(void **state)
{
    (void)state;
    weir_limit limit = bucket(10, 5, WEIR_SECOND);
    TIMELINE(limit, {0, TRY, 7, 0}, {0, TRY, 4, 200 * MS}, {0, TRY, 10, 1400 * MS}, {0, TRY, 3, 0},
             {2000 * MS, TRY, 10, 0}, {2000 * MS, TRY, 11, NEVER});
}

/* Known bug of other limiters: a refused reservation changes the state. */
static void refusal_charges_nothing(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = bucket(5, 1, WEIR_SECOND);
    rig_init(&rig, &limit, 1, T0);
    assert_true(rig_try(&rig, T0, 3));
    unsigned char before[64], after[64];
    assert_true(rig.stack.state_bytes <= sizeof before);
    memcpy(before, rig.state, rig.stack.state_bytes);
    for (int i = 0; i < 100; i++) {
        weir_receipt receipt = {.permits = 77};
        weir_decision decision = weir_stack_try(&rig.stack, rig.state, T0 + i, 3, &receipt);
        assert_int_equal(decision.verdict, WEIR_WAIT);
        assert_int_equal(receipt.permits, 0); /* settling this receipt does nothing */
        rig_settle(&rig, T0 + i, &receipt, 9);
        assert_int_equal(weir_stack_try(&rig.stack, rig.state, T0 + i, 6, NULL).verdict, WEIR_DENY);
    }
    memcpy(after, rig.state, rig.stack.state_bytes);
    assert_memory_equal(before, after, rig.stack.state_bytes);
    assert_true(rig_try(&rig, T0, 2));
    rig_release(&rig);
}

/* Known bug of other limiters: the same second is refilled twice when the clock goes back. */
static void clock_going_back_never_refills_twice(void **state)
{
    (void)state;
    weir_limit limit = bucket(10, 10, WEIR_SECOND);
    TIMELINE(limit, {0, TRY, 10, 0}, {1000 * MS, TRY, 10, 0}, /* this second is paid for */
             {0, TRY, 1, 1100 * MS}, {1000 * MS, TRY, 1, 100 * MS}, {0, TRY, 1, 1100 * MS}, {1100 * MS, TRY, 1, 0},
             {-5000 * MS, TRY, 1, 6200 * MS}, {1100 * MS, TRY, 1, 100 * MS});
}

static void clock_going_back_never_grants_more(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = bucket(5, 3, WEIR_SECOND);
    rig_init(&rig, &limit, 1, T0);
    assert_int_equal(rig_drain(&rig, T0 + 100 * WEIR_SECOND), 5);
    for (int64_t back = 0; back < 200; back++)
        assert_false(rig_try(&rig, T0 + (100 - back) * WEIR_SECOND, 1));
    assert_int_equal(rig_drain(&rig, T0 + 101 * WEIR_SECOND), 3);
    rig_release(&rig);
}

/* Known bug of other limiters: an older `now` of another thread makes the bucket refill twice or
 * underflow. */
static void stale_now_of_another_thread_grants_no_more(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 1, WEIR_SECOND);
    TIMELINE(limit, {1000, TRY, 1, 0}, {400, TRY, 1, 600}, {1000, TRY, 1, 0}, {400, TRY, 1, WEIR_SECOND + 600},
             {1000, TRY, 1, WEIR_SECOND});
}

static void clock_that_stands_still_grants_the_burst_once(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = bucket(7, 4000000000, 1000);
    rig_init(&rig, &limit, 1, T0);
    assert_int_equal(rig_drain(&rig, T0), 7);
    for (int i = 0; i < 1000; i++)
        assert_false(rig_try(&rig, T0, 1));
    rig_release(&rig);
}

/* H3, and a known bug of other limiters, an overflow after long idleness: exactly one burst is
 * granted. */
static void long_idleness_is_worth_one_burst(void **state)
{
    (void)state;
    const int64_t idle[] = {8 * WEIR_HOUR, 365 * WEIR_DAY, WEIR_DURATION_MAX};
    const weir_limit limits[] = {bucket(5, 1, WEIR_SECOND), bucket(UINT32_MAX, UINT32_MAX, 1), bucket(3, 10, WEIR_DAY),
                                 bucket(1, UINT32_MAX, WEIR_DURATION_MAX)};
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 4; j++) {
            struct limit_fixture rig;
            rig_init(&rig, &limits[j], 1, T0);
            assert_true(rig_try(&rig, T0, limits[j].permits));
            assert_true(rig_try(&rig, T0 + idle[i], limits[j].permits));
            assert_false(rig_try(&rig, T0 + idle[i], 1));
            assert_int_equal(rig_peek(&rig, T0 + idle[i]).remaining, 0);
            rig_release(&rig);
        }
    }
}

/* Known bug of other limiters: a burst of one permit too many. */
static void burst_is_the_capacity_and_not_one_more(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity <= 300; capacity++) {
        struct limit_fixture rig;
        weir_limit limit = bucket(capacity, 7, WEIR_SECOND);
        rig_init(&rig, &limit, 1, T0);
        assert_int_equal(rig_drain(&rig, T0), capacity);
        assert_int_equal(rig_drain(&rig, T0 + WEIR_HOUR), capacity);
        rig_release(&rig);
    }
}

/* Known bug of other limiters: the wait is rounded down, so that a caller which waits exactly that
 * long is refused. */
static void wait_is_rounded_up_and_never_longer_than_needed(void **state)
{
    (void)state;
    const uint32_t refills[] = {1, 3, 7, 10, 999, 1000003, 4000000000};
    for (size_t i = 0; i < sizeof refills / sizeof refills[0]; i++) {
        struct limit_fixture rig;
        weir_limit limit = bucket(2, refills[i], WEIR_SECOND);
        rig_init(&rig, &limit, 1, T0);
        int64_t now = T0;
        for (int step = 0; step < 1000; step++) {
            int64_t wait_ns = rig_wait(&rig, now, 1);
            assert_true(wait_ns == 0 || rig_wait(&rig, now + wait_ns - 1, 1) == 1);
            now += wait_ns;
            assert_true(rig_try(&rig, now, 1));
        }
        rig_release(&rig);
    }
}

/* A third of a second is not a whole number of ns: after an hour no permit may be lost or
 * gained. */
static void remainder_of_a_rate_is_never_dropped(void **state)
{
    (void)state;
    const struct {
        uint32_t refill;
        int64_t period_ns;
        int64_t span_ns;
        int64_t granted; /* without the burst */
    } rows[] = {
        {3, WEIR_SECOND, WEIR_HOUR, 10800},
        {7, WEIR_SECOND, 1000 * WEIR_SECOND, 7000},
        {1000, WEIR_DAY, 10 * WEIR_DAY, 10000},
        {1, WEIR_DAY, 365 * WEIR_DAY, 365},
        {999, 1000, 100000, 99900},
        {999999937, WEIR_SECOND, 100000, 99999}, /* 1.000000063 ns each */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct limit_fixture rig;
        weir_limit limit = bucket(2, rows[i].refill, rows[i].period_ns);
        rig_init(&rig, &limit, 1, T0);
        int64_t granted = -2;
        for (int64_t now = T0; now <= T0 + rows[i].span_ns; now += rig_wait(&rig, now, 1)) {
            assert_true(rig_try(&rig, now, 1));
            granted++;
        }
        if (granted != rows[i].granted)
            fail_msg("row %zu: %lld granted", i, (long long)granted);
        rig_release(&rig);
    }
}

/* Above 10^9 permits a second, a nanosecond gives several permits. */
static void rates_beyond_one_per_nanosecond_are_exact(void **state)
{
    (void)state;
    weir_limit limit = bucket(4000000000, 4000000000, 1);
    TIMELINE(limit, {0, TRY, 4000000000, 0}, {0, TRY, 1, 1}, {1, TRY, 3999999999, 0}, {1, TRY, 1, 0}, {1, TRY, 1, 1});
    weir_limit slower = bucket(10, 7, 2); /* 3.5 permits a ns */
    TIMELINE(slower, {0, TRY, 10, 0}, {1, TRY, 4, 1}, {1, TRY, 3, 0}, {2, TRY, 4, 0}, {2, TRY, 1, 1}, {3, TRY, 3, 0},
             {3, TRY, 1, 1});
}

static void slowest_and_largest_rules_do_not_overflow(void **state)
{
    (void)state;
    weir_limit slowest = bucket(1, 1, WEIR_DURATION_MAX);
    TIMELINE(slowest, {0, TRY, 1, 0}, {0, TRY, 1, WEIR_DURATION_MAX}, {WEIR_DURATION_MAX - 1, TRY, 1, 1},
             {WEIR_DURATION_MAX, TRY, 1, 0}, {0, TRY, 1, 2 * WEIR_DURATION_MAX});
    weir_limit largest = bucket(UINT32_MAX, UINT32_MAX, WEIR_DURATION_MAX);
    TIMELINE(largest, {0, TRY, UINT32_MAX, 0}, {0, TRY, UINT32_MAX, WEIR_DURATION_MAX},
             {WEIR_DURATION_MAX / 2, TRY, UINT32_MAX / 2, 0}, {WEIR_DURATION_MAX / 2, TRY, 2, 402653185},
             {WEIR_DURATION_MAX, TRY, 2147483648, 0}, {WEIR_DURATION_MAX, TRY, 1, 268435457});
}

static void forced_charges_delay_and_the_debt_is_bounded(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 1, WEIR_SECOND);
    TIMELINE(limit, {0, FORCE, 5, 0}, {0, ASK, 1, 4 * WEIR_SECOND}, {4 * WEIR_SECOND, TRY, 1, 0});
    weir_limit slow = bucket(1, 1, WEIR_DURATION_MAX);
    TIMELINE(slow, {0, FORCE, UINT32_MAX, 0}, {0, FORCE, UINT32_MAX, 0}, {0, ASK, 1, 2 * WEIR_DURATION_MAX});
}

static void peek_agrees_with_ask(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = bucket(10, 3, WEIR_SECOND);
    rig_init(&rig, &limit, 1, T0);
    weir_quota quota = rig_peek(&rig, T0);
    assert_int_equal(quota.limit, 10);
    assert_int_equal(quota.remaining, 10);
    assert_int_equal(quota.reset_ns, 0);
    assert_int_equal(quota.period_ns, 3333333334);
    assert_true(rig_try(&rig, T0, 4));
    quota = rig_peek(&rig, T0);
    assert_int_equal(quota.remaining, 6);
    assert_int_equal(quota.reset_ns, 1333333334);
    assert_int_equal(rig_peek(&rig, T0 + 333333333).remaining, 6);
    assert_int_equal(rig_peek(&rig, T0 + 333333334).remaining, 7);
    assert_int_equal(rig_peek(&rig, T0 - WEIR_HOUR).remaining, 0);
    rig_release(&rig);
}

static void bucket_is_fresh_exactly_when_it_is_full(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = bucket(10, 3, WEIR_SECOND);
    rig_init(&rig, &limit, 1, T0);
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
    assert_true(rig_try(&rig, T0, 1));
    assert_false(weir_stack_fresh(&rig.stack, rig.state, T0 + 333333333));
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0 + 333333334));
    rig_release(&rig);
}

static void token_bucket_state_is_two_words(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = bucket(10, 3, WEIR_SECOND);
    rig_init(&rig, &limit, 1, T0);
    assert_int_equal(rig.stack.state_bytes, 16);
    rig_release(&rig);
}

static void quota_period_is_the_fill_time_rounded_up(void **state)
{
    (void)state;
    static const struct {
        uint32_t capacity, refill;
        int64_t period_ns, fills_in_ns;
    } rows[] = {{10, 10, WEIR_SECOND, WEIR_SECOND}, {10, 3, WEIR_SECOND, 3333333334}, {4, 2, 3, 6}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct limit_fixture rig;
        weir_limit limit;
        assert_int_equal(weir_limit_token_bucket(&limit, rows[i].capacity, rows[i].refill, rows[i].period_ns), 0);
        rig_init(&rig, &limit, 1, T0);
        assert_int_equal(rig_peek(&rig, T0).period_ns, rows[i].fills_in_ns);
        rig_release(&rig);
    }
}

WEIR_TESTS(test(quota_period_is_the_fill_time_rounded_up), test(bucket_starts_full_and_each_grant_takes_exactly_one),
           test(wait_is_the_missing_part_over_the_rate), test(refill_stops_at_the_capacity),
           test(weighted_permits_wait_for_all_of_them), test(refusal_charges_nothing),
           test(clock_going_back_never_refills_twice), test(clock_going_back_never_grants_more),
           test(stale_now_of_another_thread_grants_no_more), test(clock_that_stands_still_grants_the_burst_once),
           test(long_idleness_is_worth_one_burst), test(burst_is_the_capacity_and_not_one_more),
           test(wait_is_rounded_up_and_never_longer_than_needed), test(remainder_of_a_rate_is_never_dropped),
           test(rates_beyond_one_per_nanosecond_are_exact), test(slowest_and_largest_rules_do_not_overflow),
           test(forced_charges_delay_and_the_debt_is_bounded), test(peek_agrees_with_ask),
           test(bucket_is_fresh_exactly_when_it_is_full), test(token_bucket_state_is_two_words))
