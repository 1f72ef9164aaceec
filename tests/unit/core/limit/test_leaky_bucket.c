/* SPDX-License-Identifier: MIT */
/* test_leaky_bucket.c - tests the leaky bucket (S3-12, R10). */
#include "rig.h"

static weir_limit leaky(uint32_t capacity, int64_t interval_ns)
{
    weir_limit limit;
    assert_int_equal(weir_limit_leaky_bucket(&limit, capacity, interval_ns), 0);
    return limit;
}

/* R10: a start is granted only when its slot is due, whatever the capacity. */
static void one_start_per_interval_and_no_burst(void **state)
{
    (void)state;
    weir_limit limit = leaky(10, 100 * MS);
    assert_string_equal(weir_limit_name(&limit), "leaky_bucket");
    TIMELINE(limit, {0, TRY, 1, 0}, {0, TRY, 1, 100 * MS}, {99 * MS, TRY, 1, 1 * MS}, {100 * MS, TRY, 1, 0},
             {350 * MS, TRY, 1, 0}, {400 * MS, TRY, 1, 50 * MS}, {450 * MS, TRY, 1, 0}, {WEIR_DAY, TRY, 1, 0},
             {WEIR_DAY, TRY, 1, 100 * MS});
}

/* S3-12 */
static void starts_are_never_closer_than_the_interval(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = leaky(3, 10);
    int64_t last_at = T0 - 10;
    rig_init(&rig, &limit, 1, T0);
    for (int64_t now = T0; now < T0 + 1000; now += 3) {
        if (rig_try(&rig, now, 1)) {
            assert_true(now - last_at >= 10);
            last_at = now;
        }
    }
    rig_release(&rig);
}

/* S3-12: the capacity of the bucket is the length of its queue. */
static void capacity_is_the_length_of_the_queue(void **state)
{
    (void)state;
    assert_int_equal(leaky(7, 1).queue_max, 7);
    assert_int_equal(leaky(UINT32_MAX, 1).queue_max, WEIR_QUEUE_MAX);
}

static void leaky_bucket_refusal_has_reason_pace(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = leaky(2, 10);
    rig_init(&rig, &limit, 1, T0);
    assert_true(rig_try(&rig, T0, 1));
    weir_decision decision = weir_stack_try(&rig.stack, rig.state, T0, 1, NULL);
    assert_int_equal(decision.reason, WEIR_REASON_PACE);
    decision = weir_stack_try(&rig.stack, rig.state, T0 + 10, 3, NULL);
    assert_int_equal(decision.verdict, WEIR_DENY);
    assert_int_equal(decision.reason, WEIR_REASON_PACE);
    rig_release(&rig);
}

static void weighted_start_delays_the_next_by_its_weight(void **state)
{
    (void)state;
    weir_limit limit = leaky(5, 100 * MS);
    TIMELINE(limit, {0, TRY, 4, 0}, {100 * MS, TRY, 1, 300 * MS}, {400 * MS, TRY, 5, 0}, {400 * MS, TRY, 6, NEVER});
}

static void clock_going_back_only_delays(void **state)
{
    (void)state;
    weir_limit limit = leaky(1, 100 * MS);
    TIMELINE(limit, {500 * MS, TRY, 1, 0}, {0, TRY, 1, 600 * MS}, {-WEIR_DAY, TRY, 1, WEIR_DAY + 600 * MS},
             {600 * MS, TRY, 1, 0});
}

static void longest_interval_does_not_overflow(void **state)
{
    (void)state;
    weir_limit limit = leaky(1, WEIR_DURATION_MAX);
    TIMELINE(limit, {0, TRY, 1, 0}, {0, TRY, 1, WEIR_DURATION_MAX}, {WEIR_DURATION_MAX, TRY, 1, 0},
             {WEIR_DURATION_MAX, FORCE, UINT32_MAX, 0}, {WEIR_DURATION_MAX, ASK, 1, 2 * WEIR_DURATION_MAX});
}

static void quota_of_a_leaky_bucket_is_one_start(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = leaky(5, 100);
    rig_init(&rig, &limit, 1, T0);
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
    weir_quota quota = rig_peek(&rig, T0);
    assert_int_equal(quota.limit, 1);
    assert_int_equal(quota.remaining, 1);
    assert_int_equal(quota.reset_ns, 0);
    assert_int_equal(quota.period_ns, 100);
    assert_true(rig_try(&rig, T0, 1));
    quota = rig_peek(&rig, T0 + 40);
    assert_int_equal(quota.remaining, 0);
    assert_int_equal(quota.reset_ns, 60);
    assert_false(weir_stack_fresh(&rig.stack, rig.state, T0 + 99));
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0 + 100));
    rig_release(&rig);
}

WEIR_TESTS(test(one_start_per_interval_and_no_burst), test(starts_are_never_closer_than_the_interval),
           test(capacity_is_the_length_of_the_queue), test(leaky_bucket_refusal_has_reason_pace),
           test(weighted_start_delays_the_next_by_its_weight), test(clock_going_back_only_delays),
           test(longest_interval_does_not_overflow), test(quota_of_a_leaky_bucket_is_one_start))
