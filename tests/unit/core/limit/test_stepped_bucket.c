/* SPDX-License-Identifier: MIT */
/* test_stepped_bucket.c - tests the token bucket that refills in steps (S3-8). */
#include "rig.h"

static weir_limit stepped(uint32_t capacity, uint32_t refill, int64_t period_ns, uint32_t initial)
{
    weir_limit limit;
    assert_int_equal(weir_limit_stepped_bucket(&limit, capacity, refill, period_ns, initial), 0);
    return limit;
}

/* S3-8 */
static void refill_comes_at_once_at_the_end_of_each_period(void **state)
{
    (void)state;
    weir_limit limit = stepped(10, 5, WEIR_SECOND, 10);
    assert_string_equal(weir_limit_name(&limit), "token_bucket");
    TIMELINE(limit, {0, TRY, 10, 0}, {0, TRY, 1, 1000 * MS}, {999 * MS, TRY, 1, 1 * MS}, {1000 * MS, TRY, 5, 0},
             {1000 * MS, TRY, 1, 1000 * MS}, {1500 * MS, TRY, 6, 1500 * MS}, {3000 * MS, TRY, 10, 0},
             {3000 * MS, TRY, 11, NEVER});
}

/* S3-8 */
static void initial_permits_are_clamped_to_the_capacity(void **state)
{
    (void)state;
    assert_int_equal(stepped(10, 1, WEIR_SECOND, 99).initial, 10);
    weir_limit some = stepped(10, 5, WEIR_SECOND, 2);
    TIMELINE(some, {0, TRY, 3, 1000 * MS}, {0, TRY, 2, 0}, {0, TRY, 1, 1000 * MS}, {1000 * MS, TRY, 5, 0});
    weir_limit none = stepped(10, 5, WEIR_SECOND, 0);
    TIMELINE(none, {0, TRY, 1, 1000 * MS}, {0, TRY, 10, 2000 * MS}, {2000 * MS, TRY, 10, 0});
}

/* Known bug of other limiters: a late timer, or a late read, adds the permits of one period for
 * several. */
static void late_reads_catch_up_with_every_period_missed(void **state)
{
    (void)state;
    weir_limit limit = stepped(100, 10, WEIR_SECOND, 0);
    TIMELINE(limit, {7300 * MS, TRY, 71, 700 * MS}, {7300 * MS, TRY, 70, 0}, {8000 * MS, TRY, 10, 0},
             {WEIR_HOUR, TRY, 100, 0}, {WEIR_HOUR, TRY, 1, 1000 * MS});
}

static void steps_stay_on_the_grid_of_the_start(void **state)
{
    (void)state;
    weir_limit limit = stepped(1, 1, WEIR_SECOND, 1);
    TIMELINE(limit, {0, TRY, 1, 0}, {1700 * MS, TRY, 1, 0}, {1700 * MS, TRY, 1, 300 * MS}, {2000 * MS, TRY, 1, 0},
             {2999 * MS, TRY, 1, 1 * MS});
}

static void clock_going_back_never_steps_twice(void **state)
{
    (void)state;
    weir_limit limit = stepped(10, 10, WEIR_SECOND, 10);
    TIMELINE(limit, {0, TRY, 10, 0}, {1000 * MS, TRY, 10, 0}, {0, TRY, 1, 2000 * MS}, {1000 * MS, TRY, 1, 1000 * MS},
             {-WEIR_HOUR, TRY, 1, WEIR_HOUR + 2000 * MS}, {1999 * MS, TRY, 1, 1 * MS}, {2000 * MS, TRY, 10, 0});
}

static void long_idleness_fills_the_bucket_once(void **state)
{
    (void)state;
    weir_limit small = stepped(3, 2, 1, 0);
    TIMELINE(small, {WEIR_DURATION_MAX, TRY, 3, 0}, {WEIR_DURATION_MAX, TRY, 1, 1});
    weir_limit large = stepped(UINT32_MAX, UINT32_MAX, 1, 0);
    TIMELINE(large, {WEIR_DURATION_MAX, TRY, UINT32_MAX, 0}, {WEIR_DURATION_MAX, TRY, UINT32_MAX, 1});
    weir_limit slow = stepped(2, 2, WEIR_DURATION_MAX, 2);
    TIMELINE(slow, {0, TRY, 2, 0}, {WEIR_DURATION_MAX - 1, TRY, 1, 1}, {WEIR_DURATION_MAX, TRY, 2, 0});
}

static void forced_charges_delay_and_the_debt_is_bounded(void **state)
{
    (void)state;
    weir_limit limit = stepped(4, 2, WEIR_SECOND, 4);
    TIMELINE(limit, {0, FORCE, 7, 0}, {0, ASK, 1, 2000 * MS}, {2000 * MS, TRY, 1, 0}, {2000 * MS, ASK, 1, 1000 * MS});
    weir_limit slow = stepped(1, 1, WEIR_DURATION_MAX, 1);
    TIMELINE(slow, {0, FORCE, UINT32_MAX, 0}, {0, FORCE, UINT32_MAX, 0}, {0, ASK, 1, 2 * WEIR_DURATION_MAX});
}

static void quota_and_freshness_follow_the_steps(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = stepped(10, 4, WEIR_SECOND, 10);
    rig_init(&rig, &limit, 1, T0);
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
    assert_true(rig_try(&rig, T0, 9));
    weir_quota quota = rig_peek(&rig, T0 + 500 * MS);
    assert_int_equal(quota.limit, 10);
    assert_int_equal(quota.remaining, 1);
    assert_int_equal(quota.reset_ns, 2500 * MS);
    assert_int_equal(quota.period_ns, 3 * WEIR_SECOND);
    assert_int_equal(rig_peek(&rig, T0 + 1000 * MS).remaining, 5);
    assert_false(weir_stack_fresh(&rig.stack, rig.state, T0 + 2999 * MS));
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0 + 3000 * MS));
    rig_release(&rig);
}

/* A bucket that starts with fewer permits than it holds may be forgotten once it has those: a new
 * one grants no more. */
static void bucket_with_its_initial_permits_may_be_forgotten(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = stepped(10, 1, WEIR_SECOND, 2);
    rig_init(&rig, &limit, 1, T0);
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
    assert_true(rig_try(&rig, T0, 2));
    assert_false(weir_stack_fresh(&rig.stack, rig.state, T0 + 1999 * MS));
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0 + 2000 * MS));
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0 + WEIR_HOUR));
    rig_release(&rig);
}

WEIR_TESTS(test(refill_comes_at_once_at_the_end_of_each_period), test(initial_permits_are_clamped_to_the_capacity),
           test(late_reads_catch_up_with_every_period_missed), test(steps_stay_on_the_grid_of_the_start),
           test(clock_going_back_never_steps_twice), test(long_idleness_fills_the_bucket_once),
           test(forced_charges_delay_and_the_debt_is_bounded), test(quota_and_freshness_follow_the_steps),
           test(bucket_with_its_initial_permits_may_be_forgotten))
