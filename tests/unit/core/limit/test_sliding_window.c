/* SPDX-License-Identifier: MIT */
/* test_sliding_window.c - tests the sliding window of two counters (S3-10, S3-47). */
#include "rig.h"

static weir_limit sliding(uint32_t permits, int64_t window_ns)
{
    weir_limit limit;
    assert_int_equal(weir_limit_sliding_window(&limit, permits, window_ns), 0);
    return limit;
}

/* S3-10: 10 permits in the previous slot, at 40 % of the current one: the estimate is 6. */
static void estimate_weighs_the_previous_slot_by_what_is_left_of_it(void **state)
{
    (void)state;
    weir_limit limit = sliding(10, WEIR_SECOND);
    assert_string_equal(weir_limit_name(&limit), "sliding_window");
    TIMELINE(limit, {0, TRY, 10, 0}, {1000 * MS, TRY, 1, 1}, {1000 * MS + 1, TRY, 1, 0}, {1400 * MS, TRY, 3, 0},
             {1400 * MS, TRY, 1, 1}, {1400 * MS + 1, TRY, 1, 0});
}

/* S3-10: a permit is granted if the estimate is below the maximum; n are if the first n - 1 leave
 * it below. */
static void permit_is_granted_while_the_estimate_is_below_the_quota(void **state)
{
    (void)state;
    weir_limit limit = sliding(4, 1000);
    TIMELINE(limit, {0, TRY, 4, 0},
             /* 4 until the slot ends, then 4 x (1 - e) < 4 at e = 1 ns */
             {0, TRY, 1, 1001},
             /* 2 + 2: the third needs an estimate below 2 */
             {1500, TRY, 3, 1}, {1500, TRY, 2, 0},
             /* 1.996 + 2 < 4 */
             {1500, TRY, 1, 1}, {1501, TRY, 1, 0},
             /* 4 x 0.249 + 3 < 4 */
             {1501, TRY, 1, 250}, {1751, TRY, 1, 0}, {1751, TRY, 1, 250}, {2000, TRY, 1, 1}, {2001, TRY, 1, 0},
             {2001, TRY, 5, NEVER});
}

/* S3-10 */
static void previous_slot_is_dropped_after_more_than_one(void **state)
{
    (void)state;
    weir_limit limit = sliding(5, WEIR_SECOND);
    TIMELINE(limit, {0, TRY, 5, 0}, {2000 * MS, TRY, 5, 0}, {2000 * MS, TRY, 1, 1000 * MS + 1}, {4500 * MS, TRY, 5, 0},
             {5000 * MS, TRY, 5, 800 * MS + 1}, {WEIR_DAY, TRY, 5, 0});
}

static void no_double_quota_passes_around_a_boundary(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = sliding(100, WEIR_SECOND);
    rig_init(&rig, &limit, 1, T0);
    assert_int_equal(rig_drain(&rig, T0 + 1000 * MS - 1), 100);
    assert_int_equal(rig_drain(&rig, T0 + 1000 * MS), 0);
    assert_int_equal(rig_drain(&rig, T0 + 1100 * MS), 10);
    rig_release(&rig);
}

static void sliding_window_wait_may_span_two_slots(void **state)
{
    (void)state;
    weir_limit limit = sliding(10, 1000);
    TIMELINE(limit, {0, TRY, 10, 0}, {0, TRY, 10, 1901}, {1600, TRY, 6, 0}, /* prev 10, curr 6 */
             {1600, TRY, 10, 1234}, {1600 + 1233, ASK, 10, 1}, {1600 + 1234, ASK, 10, 0});
    weir_limit one = sliding(1, 1000);
    TIMELINE(one, {0, TRY, 1, 0}, {0, TRY, 1, 1001}, {1000, TRY, 1, 1}, {1001, TRY, 1, 0}, {1001, TRY, 1, 1000});
    weir_limit tiny = sliding(3, 1); /* a slot of one instant: e is always 0 */
    TIMELINE(tiny, {0, TRY, 3, 0}, {0, TRY, 3, 2}, {1, TRY, 1, 1}, {2, TRY, 3, 0});
}

static void clock_going_back_stays_at_the_beginning_of_its_slot(void **state)
{
    (void)state;
    weir_limit limit = sliding(4, WEIR_SECOND);
    TIMELINE(limit, {1000 * MS, TRY, 4, 0}, {0, TRY, 1, 2000 * MS + 1}, {2500 * MS, TRY, 2, 0},
             {1500 * MS, TRY, 1, 1000 * MS + 1}, {2500 * MS, TRY, 1, 1});
}

static void longest_window_and_largest_quota_do_not_overflow(void **state)
{
    (void)state;
    weir_limit limit = sliding(UINT32_MAX, WEIR_DURATION_MAX);
    TIMELINE(limit, {0, TRY, UINT32_MAX, 0}, {0, TRY, 1, WEIR_DURATION_MAX + 1}, {0, FORCE, UINT32_MAX, 0},
             {WEIR_DURATION_MAX, TRY, 1, 1}, {WEIR_DURATION_MAX, TRY, UINT32_MAX, 1152921504338411520},
             {WEIR_DURATION_MAX + 1152921504338411520, TRY, UINT32_MAX, 0});
}

static void quota_and_freshness_follow_both_slots(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = sliding(10, WEIR_SECOND);
    rig_init(&rig, &limit, 1, T0);
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
    assert_int_equal(rig_peek(&rig, T0).reset_ns, 0);
    assert_true(rig_try(&rig, T0, 10));
    weir_quota quota = rig_peek(&rig, T0 + 1250 * MS);
    assert_int_equal(quota.limit, 10);
    assert_int_equal(quota.remaining, 3); /* the estimate is 7.5 */
    assert_int_equal(quota.period_ns, WEIR_SECOND);
    assert_int_equal(quota.reset_ns, 650 * MS + 1); /* then the estimate is below 1 */
    assert_int_equal(rig_peek(&rig, T0 + 1900 * MS + 1).remaining, 10);
    assert_int_equal(rig_peek(&rig, T0 + 1900 * MS).remaining, 9);
    assert_false(weir_stack_fresh(&rig.stack, rig.state, T0 + 2000 * MS - 1));
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0 + 2000 * MS));
    rig_release(&rig);
}

static void full_sliding_window_quota_has_a_reset_time_of_zero(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = sliding(10, 1000);
    rig_init(&rig, &limit, 1, T0);
    assert_int_equal(rig_drain(&rig, T0), 10);
    assert_int_equal(rig_peek(&rig, T0 + 1500).remaining, 5);
    assert_int_equal(rig_peek(&rig, T0 + 1500).reset_ns, 401); /* 10 x (1 - e) < 1 */
    assert_int_equal(rig_peek(&rig, T0 + 1900).reset_ns, 1);
    assert_int_equal(rig_peek(&rig, T0 + 1901).reset_ns, 0);
    assert_int_equal(rig_peek(&rig, T0 + 1999).reset_ns, 0);
    assert_int_equal(rig_peek(&rig, T0 + 5000).reset_ns, 0);
    rig_release(&rig);
}

/* S3-47: the state is two counters, whatever the quota. */
static void sliding_window_state_is_two_words_whatever_the_quota(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = sliding(UINT32_MAX, WEIR_DAY);
    rig_init(&rig, &limit, 1, T0);
    assert_int_equal(rig.stack.state_bytes, 16);
    rig_release(&rig);
}

WEIR_TESTS(test(full_sliding_window_quota_has_a_reset_time_of_zero),
           test(estimate_weighs_the_previous_slot_by_what_is_left_of_it),
           test(permit_is_granted_while_the_estimate_is_below_the_quota),
           test(previous_slot_is_dropped_after_more_than_one), test(no_double_quota_passes_around_a_boundary),
           test(sliding_window_wait_may_span_two_slots), test(clock_going_back_stays_at_the_beginning_of_its_slot),
           test(longest_window_and_largest_quota_do_not_overflow), test(quota_and_freshness_follow_both_slots),
           test(sliding_window_state_is_two_words_whatever_the_quota))
