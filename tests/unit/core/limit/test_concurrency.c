/* SPDX-License-Identifier: MIT */
/* test_concurrency.c - tests the concurrency limit (S3-13, R17, U15). */
#include "rig.h"

static weir_limit at_once(uint32_t permits)
{
    weir_limit limit;
    assert_int_equal(weir_limit_concurrency(&limit, permits), 0);
    return limit;
}

/* S3-13 */
static void concurrency_limit_holds_until_a_permit_is_released(void **state)
{
    (void)state;
    weir_limit limit = at_once(3);
    assert_string_equal(weir_limit_name(&limit), "concurrency");
    TIMELINE(limit, {0, TRY, 2, 0}, {0, TRY, 2, WEIR_UNTIL_RELEASE}, {0, TRY, 1, 0},
             {WEIR_DURATION_MAX, TRY, 1, WEIR_UNTIL_RELEASE}, {0, RELEASE, 1, 0}, {0, TRY, 1, 0},
             {0, TRY, 1, WEIR_UNTIL_RELEASE}, {0, RELEASE, 3, 0}, {0, TRY, 4, NEVER}, {0, TRY, 3, 0});
}

/* S3-13, U15: releasing more permits than were taken grants nothing. */
static void release_at_zero_is_a_no_op(void **state)
{
    (void)state;
    weir_limit limit = at_once(2);
    TIMELINE(limit, {0, RELEASE, 1, 0}, {0, RELEASE, UINT32_MAX, 0}, {0, TRY, 2, 0}, {0, TRY, 1, WEIR_UNTIL_RELEASE},
             {0, RELEASE, 5, 0}, {0, RELEASE, 1, 0}, {0, RELEASE, 0, 0}, {0, TRY, 2, 0},
             {0, TRY, 1, WEIR_UNTIL_RELEASE});
}

static void concurrency_refusal_has_reason_concurrency(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = at_once(1);
    rig_init(&rig, &limit, 1, T0);
    assert_true(rig_try(&rig, T0, 1));
    assert_int_equal(weir_stack_ask(&rig.stack, rig.state, T0, 1).reason, WEIR_REASON_CONCURRENCY);
    assert_int_equal(weir_stack_ask(&rig.stack, rig.state, T0, 2).reason, WEIR_REASON_CONCURRENCY);
    rig_release(&rig);
}

static void quota_and_freshness_follow_what_is_in_flight(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = at_once(3);
    rig_init(&rig, &limit, 1, T0);
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
    assert_int_equal(rig_peek(&rig, T0).reset_ns, 0);
    assert_true(rig_try(&rig, T0, 1));
    weir_quota quota = rig_peek(&rig, T0);
    assert_int_equal(quota.limit, 3);
    assert_int_equal(quota.remaining, 2);
    assert_int_equal(quota.reset_ns, WEIR_UNTIL_RELEASE);
    assert_int_equal(quota.period_ns, 0);
    assert_false(weir_stack_fresh(&rig.stack, rig.state, T0 + WEIR_DAY));
    weir_stack_release(&rig.stack, rig.state, 1);
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
    rig_release(&rig);
}

WEIR_TESTS(test(concurrency_limit_holds_until_a_permit_is_released), test(release_at_zero_is_a_no_op),
           test(concurrency_refusal_has_reason_concurrency), test(quota_and_freshness_follow_what_is_in_flight))
