/* SPDX-License-Identifier: MIT */
/* test_sliding_log.c - tests the sliding log (S3-11). */
#include "base/rng.h"
#include "rig.h"

static weir_limit logged(uint32_t permits, int64_t window_ns)
{
    weir_limit limit;
    assert_int_equal(weir_limit_sliding_log(&limit, permits, window_ns), 0);
    return limit;
}

/* S3-11 */
static void each_permit_comes_back_a_window_after_it_was_taken(void **state)
{
    (void)state;
    weir_limit limit = logged(3, WEIR_SECOND);
    assert_string_equal(weir_limit_name(&limit), "sliding_log");
    TIMELINE(limit, {0, TRY, 1, 0}, {300 * MS, TRY, 1, 0}, {600 * MS, TRY, 1, 0}, {600 * MS, TRY, 1, 400 * MS},
             {600 * MS, TRY, 2, 700 * MS}, {600 * MS, TRY, 3, 1000 * MS}, {1000 * MS - 1, TRY, 1, 1},
             {1000 * MS, TRY, 1, 0}, {1000 * MS, TRY, 1, 300 * MS}, {1600 * MS, TRY, 2, 0}, {1600 * MS, TRY, 4, NEVER});
}

/* S3-11 */
static void no_double_quota_passes_at_a_boundary(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = logged(5, WEIR_SECOND);
    rig_init(&rig, &limit, 1, T0);
    assert_int_equal(rig_drain(&rig, T0 + 1000 * MS - 1), 5);
    assert_int_equal(rig_drain(&rig, T0 + 1000 * MS), 0);
    assert_int_equal(rig_drain(&rig, T0 + 2000 * MS - 2), 0);
    assert_int_equal(rig_drain(&rig, T0 + 2000 * MS - 1), 5);
    rig_release(&rig);
}

/* S3-11: exact in every half-open window that begins at a grant. */
static void never_more_than_the_quota_in_any_half_open_window(void **state)
{
    (void)state;
    static int64_t granted[20000];
    struct limit_fixture rig;
    struct wr_rng rng;
    weir_limit limit = logged(7, 1000);
    size_t count = 0;
    int64_t now = T0;

    wr_rng_init(&rng, weir_test_seed());
    rig_init(&rig, &limit, 1, now);
    for (int i = 0; i < 20000; i++) {
        now += (int64_t)wr_rng_below(&rng, 200);
        if (rig_try(&rig, now, 1))
            granted[count++] = now;
    }
    assert_true(count > 5000);
    for (size_t i = 0; i + 7 < count; i++)
        assert_true(granted[i + 7] - granted[i] >= 1000);
    rig_release(&rig);
}

static void clock_going_back_writes_no_earlier_instant(void **state)
{
    (void)state;
    weir_limit limit = logged(2, WEIR_SECOND);
    TIMELINE(limit, {500 * MS, TRY, 1, 0}, {0, TRY, 1, 0}, {0, TRY, 1, 1500 * MS}, {1000 * MS, TRY, 1, 500 * MS},
             {1500 * MS, TRY, 2, 0}, {-WEIR_HOUR, TRY, 1, WEIR_HOUR + 2500 * MS});
}

static void longest_window_and_largest_log_hold(void **state)
{
    (void)state;
    weir_limit limit = logged(WEIR_LOG_MAX, WEIR_DURATION_MAX);
    TIMELINE(limit, {0, TRY, WEIR_LOG_MAX - 1, 0}, {1, TRY, 1, 0}, {1, TRY, 1, WEIR_DURATION_MAX - 1},
             {WEIR_DURATION_MAX, TRY, WEIR_LOG_MAX, 1}, {WEIR_DURATION_MAX, TRY, WEIR_LOG_MAX - 1, 0},
             {WEIR_DURATION_MAX + 1, TRY, 2, WEIR_DURATION_MAX - 1});
}

/* The header documents this size. */
static void state_is_eight_bytes_per_permit(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = logged(100, WEIR_SECOND);
    rig_init(&rig, &limit, 1, T0);
    assert_int_equal(rig.stack.state_bytes, 816);
    rig_release(&rig);
}

/* An overcharge keeps the newest instants: the log never holds more than the quota. */
static void overcharge_delays_by_a_window_at_most(void **state)
{
    (void)state;
    weir_limit limit = logged(3, WEIR_SECOND);
    TIMELINE(limit, {0, TRY, 2, 0}, {100 * MS, FORCE, 2, 0}, {100 * MS, ASK, 1, 900 * MS},
             {100 * MS, ASK, 2, 1000 * MS}, {200 * MS, FORCE, 1000, 0}, {200 * MS, ASK, 1, 1000 * MS},
             {1200 * MS, TRY, 3, 0});
}

static void quota_and_freshness_follow_the_log(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = logged(5, WEIR_SECOND);
    rig_init(&rig, &limit, 1, T0);
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
    assert_true(rig_try(&rig, T0, 2));
    assert_true(rig_try(&rig, T0 + 400 * MS, 1));
    weir_quota quota = rig_peek(&rig, T0 + 500 * MS);
    assert_int_equal(quota.limit, 5);
    assert_int_equal(quota.remaining, 2);
    assert_int_equal(quota.reset_ns, 900 * MS);
    assert_int_equal(quota.period_ns, WEIR_SECOND);
    assert_int_equal(rig_peek(&rig, T0 + 1000 * MS).remaining, 4);
    assert_int_equal(rig_peek(&rig, T0 - WEIR_HOUR).remaining, 2);
    assert_false(weir_stack_fresh(&rig.stack, rig.state, T0 + 1400 * MS - 1));
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0 + 1400 * MS));
    rig_release(&rig);
}

WEIR_TESTS(test(each_permit_comes_back_a_window_after_it_was_taken), test(no_double_quota_passes_at_a_boundary),
           test(never_more_than_the_quota_in_any_half_open_window), test(clock_going_back_writes_no_earlier_instant),
           test(longest_window_and_largest_log_hold), test(state_is_eight_bytes_per_permit),
           test(overcharge_delays_by_a_window_at_most), test(quota_and_freshness_follow_the_log))
