/* SPDX-License-Identifier: MIT */
/* test_fixed_window.c - tests the fixed window (S3-9). */
#include "rig.h"

static weir_limit fixed(uint32_t permits, int64_t window_ns)
{
    weir_limit limit;
    assert_int_equal(weir_limit_fixed_window(&limit, permits, window_ns), 0);
    return limit;
}

/* S3-9 */
static void quota_is_per_window_and_the_wait_lasts_to_the_next(void **state)
{
    (void)state;
    weir_limit limit = fixed(3, WEIR_SECOND);
    assert_string_equal(weir_limit_name(&limit), "fixed_window");
    TIMELINE(limit, {0, TRY, 2, 0}, {100 * MS, TRY, 2, 900 * MS}, {100 * MS, TRY, 1, 0}, {400 * MS, TRY, 1, 600 * MS},
             {1000 * MS - 1, TRY, 1, 1}, {1000 * MS, TRY, 3, 0}, {1000 * MS, TRY, 1, 1000 * MS},
             {1000 * MS, TRY, 4, NEVER});
}

/* S3-9 */
static void windows_advance_by_whole_ones_without_drift(void **state)
{
    (void)state;
    weir_limit limit = fixed(1, WEIR_SECOND);
    TIMELINE(limit, {0, TRY, 1, 0}, {2700 * MS, TRY, 1, 0}, {2700 * MS, TRY, 1, 300 * MS}, {3000 * MS, TRY, 1, 0},
             {1000000 * WEIR_SECOND + 1, TRY, 1, 0}, {1000000 * WEIR_SECOND + 1, TRY, 1, WEIR_SECOND - 1});
}

/* S3-9: the documentation states this property of fixed windows. */
static void twice_the_quota_passes_around_a_boundary(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = fixed(5, WEIR_SECOND);
    rig_init(&rig, &limit, 1, T0);
    assert_int_equal(rig_drain(&rig, T0 + 1000 * MS - 1), 5);
    assert_int_equal(rig_drain(&rig, T0 + 1000 * MS), 5);
    assert_int_equal(rig_drain(&rig, T0 + 2000 * MS - 1), 0);
    rig_release(&rig);
}

static void clock_going_back_opens_no_window_again(void **state)
{
    (void)state;
    weir_limit limit = fixed(2, WEIR_SECOND);
    TIMELINE(limit, {1000 * MS, TRY, 2, 0}, {0, TRY, 1, 2000 * MS}, {-WEIR_HOUR, TRY, 1, WEIR_HOUR + 2000 * MS},
             {1999 * MS, TRY, 1, 1 * MS}, {2000 * MS, TRY, 1, 0}, {1000 * MS, TRY, 1, 0},
             {1000 * MS, TRY, 1, 2000 * MS});
}

static void longest_window_and_largest_quota_do_not_overflow(void **state)
{
    (void)state;
    weir_limit limit = fixed(UINT32_MAX, WEIR_DURATION_MAX);
    TIMELINE(limit, {0, TRY, UINT32_MAX, 0}, {0, TRY, 1, WEIR_DURATION_MAX}, {0, FORCE, UINT32_MAX, 0},
             {WEIR_DURATION_MAX - 1, TRY, 1, 1}, {WEIR_DURATION_MAX, TRY, UINT32_MAX, 0},
             {WEIR_DURATION_MAX, TRY, UINT32_MAX, WEIR_DURATION_MAX});
    weir_limit shortest = fixed(1, 1);
    TIMELINE(shortest, {0, TRY, 1, 0}, {0, TRY, 1, 1}, {WEIR_DURATION_MAX, TRY, 1, 0}, {WEIR_DURATION_MAX, TRY, 1, 1});
}

static void quota_and_freshness_follow_the_window(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = fixed(10, WEIR_MINUTE);
    rig_init(&rig, &limit, 1, T0);
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
    assert_int_equal(rig_peek(&rig, T0).reset_ns, 0);
    assert_true(rig_try(&rig, T0, 4));
    weir_quota quota = rig_peek(&rig, T0 + WEIR_SECOND);
    assert_int_equal(quota.limit, 10);
    assert_int_equal(quota.remaining, 6);
    assert_int_equal(quota.reset_ns, 59 * WEIR_SECOND);
    assert_int_equal(quota.period_ns, WEIR_MINUTE);
    assert_false(weir_stack_fresh(&rig.stack, rig.state, T0 + WEIR_MINUTE - 1));
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0 + WEIR_MINUTE));
    rig_release(&rig);
}

WEIR_TESTS(test(quota_is_per_window_and_the_wait_lasts_to_the_next), test(windows_advance_by_whole_ones_without_drift),
           test(twice_the_quota_passes_around_a_boundary), test(clock_going_back_opens_no_window_again),
           test(longest_window_and_largest_quota_do_not_overflow), test(quota_and_freshness_follow_the_window))
