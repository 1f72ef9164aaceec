/* SPDX-License-Identifier: MIT */
/* test_stack.c - tests limits that are checked together, also with a custom algorithm among them
 * (S3-46). */
#include "core/limit/algorithm.h"
#include "rig.h"
#include "spaced.h"

/* Fills in three limits: 2 a second, 5 a minute, and 4 at once. */
static size_t three_rules(weir_limit limits[3])
{
    assert_int_equal(weir_limit_token_bucket(&limits[0], 2, 2, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_fixed_window(&limits[1], 5, WEIR_MINUTE), 0);
    assert_int_equal(weir_limit_concurrency(&limits[2], 4), 0);
    return 3;
}

static void all_rules_must_grant(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limits[3];
    rig_init(&rig, limits, three_rules(limits), T0);
    const struct tick ticks[] = {
        {0, TRY, 2, 0},
        {0, TRY, 1, 500 * MS},                   /* the bucket refuses */
        {1000 * MS, TRY, 2, 0},                  /* 4 in flight, 4 in this minute */
        {1000 * MS, TRY, 1, WEIR_UNTIL_RELEASE}, /* bucket and concurrency refuse */
        {1000 * MS, RELEASE, 4, 0},
        {2000 * MS, TRY, 2, 58 * WEIR_SECOND}, /* the window refuses */
        {2000 * MS, TRY, 1, 0},
        {2000 * MS, TRY, 1, 58 * WEIR_SECOND},
        {2000 * MS, TRY, 3, NEVER}, /* more than the bucket holds */
        {WEIR_MINUTE, TRY, 2, 0},
    };
    timeline(&rig, ticks, sizeof ticks / sizeof ticks[0]);
    rig_release(&rig);
}

/* All limits are checked before any is charged: if one refuses, no other is charged. */
static void denial_charges_nothing_in_any_rule(void **state)
{
    (void)state;
    weir_limit limits[3];
    size_t count = three_rules(limits);
    for (size_t order = 0; order < 3; order++) {
        weir_limit turned[3] = {limits[order], limits[(order + 1) % 3], limits[(order + 2) % 3]};
        struct limit_fixture rig;
        unsigned char before[128];
        rig_init(&rig, turned, count, T0);
        assert_true(rig_try(&rig, T0, 2));
        memcpy(before, rig.state, rig.stack.state_bytes);
        assert_false(rig_try(&rig, T0 + 1, 1)); /* refused by the bucket */
        assert_false(rig_try(&rig, T0 + 1, 3)); /* denied for ever */
        weir_receipt receipt = {.permits = 77};
        assert_int_equal(weir_stack_try(&rig.stack, rig.state, T0 + 1, 1, &receipt).verdict, WEIR_WAIT);
        assert_int_equal(receipt.permits, 0);
        assert_memory_equal(rig.state, before, rig.stack.state_bytes);
        assert_true(rig_try(&rig, T0 + WEIR_SECOND, 2));
        memcpy(before, rig.state, rig.stack.state_bytes);
        assert_false(rig_try(&rig, T0 + 2 * WEIR_SECOND, 1)); /* refused by concurrency alone */
        assert_memory_equal(rig.state, before, rig.stack.state_bytes);
        rig_release(&rig);
    }
}

static void stack_decision_is_that_of_the_rule_with_the_longest_wait(void **state)
{
    (void)state;
    weir_limit limits[3];
    size_t count = three_rules(limits);
    for (size_t order = 0; order < 3; order++) {
        weir_limit turned[3] = {limits[order], limits[(order + 1) % 3], limits[(order + 2) % 3]};
        struct limit_fixture rig;
        rig_init(&rig, turned, count, T0);
        weir_stack_take(&rig.stack, rig.state, T0, 5, NULL);
        weir_decision decision = weir_stack_ask(&rig.stack, rig.state, T0, 1);
        assert_int_equal(decision.reason, WEIR_REASON_CONCURRENCY);
        assert_int_equal(decision.wait_ns, WEIR_UNTIL_RELEASE);
        /* "deny" outranks "until release" */
        decision = weir_stack_ask(&rig.stack, rig.state, T0, 3);
        assert_int_equal(decision.verdict, WEIR_DENY);
        assert_int_equal(decision.reason, WEIR_REASON_TOKENS);
        weir_stack_release(&rig.stack, rig.state, 5);
        decision = weir_stack_ask(&rig.stack, rig.state, T0, 1);
        assert_int_equal(decision.reason, WEIR_REASON_TOKENS);
        assert_int_equal(decision.wait_ns, WEIR_MINUTE);
        rig_release(&rig);
    }
}

static void asking_for_nothing_is_granted_and_charges_nothing(void **state)
{
    (void)state;
    weir_limit limits[3];
    for (size_t count = 1; count <= three_rules(limits); count += 2) {
        struct limit_fixture rig;
        rig_init(&rig, limits, count, T0);
        weir_receipt receipt = {.permits = 77};
        assert_int_equal(weir_stack_try(&rig.stack, rig.state, T0, 0, &receipt).verdict, WEIR_GO);
        assert_int_equal(receipt.permits, 0);
        weir_stack_take(&rig.stack, rig.state, T0, 0, &receipt);
        rig_settle(&rig, T0, &receipt, 3);
        assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
        rig_release(&rig);
    }
}

static void stack_quota_is_that_of_the_rule_with_the_smallest_share_left(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limits[3];
    rig_init(&rig, limits, three_rules(limits), T0);
    assert_true(rig_try(&rig, T0, 1));
    assert_int_equal(rig_peek(&rig, T0).limit, 2); /* shares left: 1/2, 4/5, 3/4 */
    assert_int_equal(rig_peek(&rig, T0 + WEIR_SECOND).limit, 4);
    weir_stack_release(&rig.stack, rig.state, 1);
    assert_int_equal(rig_peek(&rig, T0 + WEIR_SECOND).limit, 5);
    weir_stack_take(&rig.stack, rig.state, T0 + WEIR_SECOND, 4, NULL);
    weir_stack_release(&rig.stack, rig.state, 4);
    /* both at 0: the one with the longer reset */
    weir_quota quota = rig_peek(&rig, T0 + WEIR_SECOND);
    assert_int_equal(quota.limit, 5);
    assert_int_equal(quota.reset_ns, 59 * WEIR_SECOND);
    rig_release(&rig);
}

static void stack_is_fresh_when_all_its_rules_are(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limits[3];
    rig_init(&rig, limits, three_rules(limits), T0);
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
    assert_true(rig_try(&rig, T0, 1));
    /* one permit is in flight */
    assert_false(weir_stack_fresh(&rig.stack, rig.state, T0 + WEIR_DAY));
    weir_stack_release(&rig.stack, rig.state, 1);
    assert_false(weir_stack_fresh(&rig.stack, rig.state, T0 + WEIR_MINUTE - 1));
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0 + WEIR_MINUTE));
    rig_release(&rig);
}

static void stack_has_one_to_eight_rules(void **state)
{
    (void)state;
    weir_limit limits[WEIR_STACK_MAX + 1];
    weir_stack stack = {.count = 4711};
    for (size_t i = 0; i <= WEIR_STACK_MAX; i++)
        assert_int_equal(weir_limit_concurrency(&limits[i], 1), 0);
    assert_int_equal(weir_stack_init(&stack, limits, 0), WEIR_E_INVAL);
    assert_int_equal(weir_stack_init(&stack, limits, WEIR_STACK_MAX + 1), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "1 ... 8"));
    assert_int_equal(weir_stack_init(&stack, limits, SIZE_MAX), WEIR_E_INVAL);
    assert_int_equal(weir_stack_init(&stack, NULL, 1), WEIR_E_INVAL);
    assert_int_equal(weir_stack_init(NULL, limits, 1), WEIR_E_INVAL);
    limits[3].algorithm = NULL;
    assert_int_equal(weir_stack_init(&stack, limits, 4), WEIR_E_INVAL);
    assert_int_equal(stack.count, 4711);
    limits[3] = limits[0];
    assert_int_equal(weir_stack_init(&stack, limits, WEIR_STACK_MAX), 0);
    assert_int_equal(stack.state_bytes, 64);
}

/* S3-46 */
static void custom_algorithm_runs_in_a_stack_like_built_in_ones(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limits[3];
    int64_t gap_ns = 200 * MS;
    assert_int_equal(weir_limit_custom(&limits[0], &spaced_algorithm, 4, 0, &gap_ns), 0);
    assert_int_equal(weir_limit_token_bucket(&limits[1], 2, 1, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_custom(&limits[2], &spaced_algorithm, 100, 0, &gap_ns), 0);
    rig_init(&rig, limits, 3, T0);
    assert_int_equal(rig.stack.offsets[1] % 8, 0);
    assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
    const struct tick ticks[] = {{0, TRY, 1, 0},
                                 {0, TRY, 1, 200 * MS},
                                 {200 * MS, TRY, 1, 0},
                                 {200 * MS, TRY, 1, 800 * MS},
                                 {WEIR_HOUR, TRY, 2, 0},
                                 {2 * WEIR_HOUR, TRY, 1, WEIR_UNTIL_RELEASE},
                                 {2 * WEIR_HOUR, RELEASE, 1, 0},
                                 {2 * WEIR_HOUR, TRY, 5, NEVER}};
    timeline(&rig, ticks, sizeof ticks / sizeof ticks[0]);
    assert_int_equal(weir_stack_ask(&rig.stack, rig.state, T0 + 2 * WEIR_HOUR, 1).reason, WEIR_REASON_JOB_LIMIT);
    assert_int_equal(rig_peek(&rig, T0 + 2 * WEIR_HOUR).limit, 4);
    rig_release(&rig);
}

static void custom_algorithm_gives_back_and_restarts_on_a_change(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit;
    int64_t gap_ns = 0;
    assert_int_equal(weir_limit_custom(&limit, &spaced_algorithm, 4, 0, &gap_ns), 0);
    rig_init(&rig, &limit, 1, T0);
    weir_receipt receipt = rig_reserve(&rig, T0, 3);
    assert_int_equal(rig_peek(&rig, T0).remaining, 1);
    rig_settle(&rig, T0, &receipt, 1);
    assert_int_equal(rig_peek(&rig, T0).remaining, 3);
    rig_change(&rig, &limit, 1, T0); /* the algorithm has no carry function */
    assert_int_equal(rig_peek(&rig, T0).remaining, 4);
    rig_release(&rig);
}

static const int *refusals; /* result of give_up for each limit, in the order of the calls */
static int asked;

static int say_next(const weir_limit *limit, const void *state, int64_t now)
{
    assert_ptr_not_equal(limit, state);
    assert_int_equal(limit->permits, 4);
    assert_int_equal(now, T0 + 7);
    return refusals[asked++];
}

static void first_rule_that_gives_up_decides_and_no_other_is_asked(void **state)
{
    (void)state;
    static const struct {
        int says[3], error, asked;
    } rows[] = {{{0, 0, 0}, 0, 3},
                {{1, 1, 1}, 0, 3},
                {{WEIR_E_TIMEOUT, 0, 0}, WEIR_E_TIMEOUT, 1},
                {{0, WEIR_E_FULL, WEIR_E_TIMEOUT}, WEIR_E_FULL, 2},
                {{0, 0, WEIR_E_CLOSED}, WEIR_E_CLOSED, 3}};
    weir_algorithm patient = spaced_algorithm;
    weir_limit limits[4];
    int64_t gap_ns = 0;
    patient.give_up = say_next;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(weir_limit_custom(&limits[i], &patient, 4, 0, &gap_ns), 0);
    /* has no give_up function */
    assert_int_equal(weir_limit_token_bucket(&limits[2], 2, 1, WEIR_SECOND), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct limit_fixture rig;
        rig_init(&rig, limits, 4, T0);
        refusals = rows[i].says;
        asked = 0;
        assert_int_equal(wr_stack_wait_error(&rig.stack, rig.state, T0 + 7), rows[i].error);
        assert_int_equal(asked, rows[i].asked);
        rig_release(&rig);
    }
}

static void stack_checks_a_custom_rule_with_its_own_constructor(void **state)
{
    (void)state;
    weir_limit limit;
    weir_stack stack;
    int64_t gap_ns = 0;
    weir_algorithm broken = spaced_algorithm;
    assert_int_equal(weir_limit_custom(&limit, &broken, 4, 0, &gap_ns), 0);
    assert_int_equal(weir_stack_init(&stack, &limit, 1), 0);
    broken.ask = NULL;
    assert_int_equal(weir_stack_init(&stack, &limit, 1), WEIR_E_INVAL);
    assert_int_equal(weir_limit_concurrency(&limit, 5), 0);
    limit.period_ns = -1; /* concurrency does not use the period */
    assert_int_equal(weir_stack_init(&stack, &limit, 1), 0);
}

static weir_reason say_why(const weir_limit *limit, const void *state, int64_t now)
{
    (void)limit, (void)state;
    return now == T0 ? WEIR_REASON_PAUSED : WEIR_REASON_BREAKER;
}

static void custom_rule_may_give_a_reason_for_each_wait(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_algorithm telling = spaced_algorithm;
    weir_limit limit;
    int64_t gap_ns = WEIR_SECOND;
    telling.why = say_why;
    assert_int_equal(weir_limit_custom(&limit, &telling, 4, 0, &gap_ns), 0);
    rig_init(&rig, &limit, 1, T0);
    assert_int_equal(rig_drain(&rig, T0), 1);
    assert_int_equal(weir_stack_ask(&rig.stack, rig.state, T0, 1).reason, WEIR_REASON_PAUSED);
    assert_int_equal(weir_stack_ask(&rig.stack, rig.state, T0 + 1, 1).reason, WEIR_REASON_BREAKER);
    /* denied for ever */
    assert_int_equal(weir_stack_ask(&rig.stack, rig.state, T0 + 1, 5).reason, spaced_algorithm.reason);
    rig_release(&rig);
}

static size_t no_bytes(const weir_limit *limit)
{
    (void)limit;
    return 0;
}

static void stack_of_stateless_rules_has_a_state_of_one_word(void **state)
{
    (void)state;
    weir_algorithm stateless = spaced_algorithm;
    weir_limit limits[2];
    weir_stack stack;
    stateless.state_bytes = no_bytes;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(weir_limit_custom(&limits[i], &stateless, 1, 1, NULL), 0);
    assert_int_equal(weir_stack_init(&stack, limits, 2), 0);
    assert_int_equal(stack.state_bytes, 8);
}

static size_t bytes_of_params(const weir_limit *limit)
{
    return *(const size_t *)limit->params;
}

static void states_begin_at_multiples_of_8_without_gaps(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 8, 9, 16, 7};
    static const uint32_t offsets[] = {0, 8, 16, 32, 48};
    weir_algorithm sized = spaced_algorithm;
    weir_limit limits[5];
    weir_stack stack;
    sized.state_bytes = bytes_of_params;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(weir_limit_custom(&limits[i], &sized, 1, 1, &sizes[i]), 0);
    assert_int_equal(weir_stack_init(&stack, limits, 5), 0);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(stack.offsets[i], offsets[i]);
    assert_int_equal(stack.state_bytes, 56);
}

WEIR_TESTS(test(custom_rule_may_give_a_reason_for_each_wait), test(stack_of_stateless_rules_has_a_state_of_one_word),
           test(states_begin_at_multiples_of_8_without_gaps), test(all_rules_must_grant),
           test(denial_charges_nothing_in_any_rule), test(stack_decision_is_that_of_the_rule_with_the_longest_wait),
           test(asking_for_nothing_is_granted_and_charges_nothing),
           test(stack_quota_is_that_of_the_rule_with_the_smallest_share_left),
           test(stack_is_fresh_when_all_its_rules_are), test(stack_has_one_to_eight_rules),
           test(first_rule_that_gives_up_decides_and_no_other_is_asked),
           test(stack_checks_a_custom_rule_with_its_own_constructor),
           test(custom_algorithm_runs_in_a_stack_like_built_in_ones),
           test(custom_algorithm_gives_back_and_restarts_on_a_change))
