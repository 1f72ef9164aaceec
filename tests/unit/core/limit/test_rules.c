/* SPDX-License-Identifier: MIT */
/* test_rules.c - tests the constructors of limits, and which arguments they refuse (S3-45,
 * S3-46). */
#include "rig.h"
#include "spaced.h"

/* Checks that the call failed with WEIR_E_INVAL, left its result unchanged, and that the text has
 * both words. */
static void refused(int error, const weir_limit *limit, const char *word, const char *right)
{
    const char *detail = weir_error_detail();
    assert_int_equal(error, WEIR_E_INVAL);
    assert_int_equal(limit->permits, 4711);
    if (strstr(detail, word) == NULL || strstr(detail, right) == NULL)
        fail_msg("\"%s\" does not say %s and %s", detail, word, right);
}

/* S3-45: constructors refuse counts of 0, and periods that are 0, negative or above the maximum. */
static void constructors_refuse_zero_and_absurd_values(void **state)
{
    (void)state;
    weir_limit l = {.permits = 4711};
    const int64_t periods[] = {0, -1, INT64_MIN, WEIR_DURATION_MAX + 1, INT64_MAX};

    refused(weir_limit_token_bucket(&l, 0, 1, 1), &l, "capacity is 0", "1 ... 4294967295");
    refused(weir_limit_token_bucket(&l, 1, 0, 1), &l, "refill is 0", "1 ... 4294967295");
    refused(weir_limit_stepped_bucket(&l, 0, 1, 1, 1), &l, "capacity is 0", "1 ... 4294967295");
    refused(weir_limit_stepped_bucket(&l, 1, 0, 1, 1), &l, "refill is 0", "1 ... 4294967295");
    refused(weir_limit_fixed_window(&l, 0, 1), &l, "window", "1 ... 4294967295");
    refused(weir_limit_sliding_window(&l, 0, 1), &l, "window", "1 ... 4294967295");
    refused(weir_limit_sliding_log(&l, 0, 1), &l, "sliding log", "1 ... 65536");
    refused(weir_limit_sliding_log(&l, WEIR_LOG_MAX + 1, 1), &l, "sliding log", "1 ... 65536");
    refused(weir_limit_leaky_bucket(&l, 0, 1), &l, "leaky bucket", "1 ... 4294967295");
    refused(weir_limit_concurrency(&l, 0), &l, "concurrency", "1 ... 4294967295");
    for (size_t i = 0; i < sizeof periods / sizeof periods[0]; i++) {
        refused(weir_limit_token_bucket(&l, 1, 1, periods[i]), &l, "period", "2^60 ns");
        refused(weir_limit_stepped_bucket(&l, 1, 1, periods[i], 1), &l, "period", "2^60 ns");
        refused(weir_limit_fixed_window(&l, 1, periods[i]), &l, "window", "2^60 ns");
        refused(weir_limit_sliding_window(&l, 1, periods[i]), &l, "window", "2^60 ns");
        refused(weir_limit_sliding_log(&l, 1, periods[i]), &l, "window", "2^60 ns");
        refused(weir_limit_leaky_bucket(&l, 1, periods[i]), &l, "interval", "2^60 ns");
    }
}

/* Known bug of other limiters: a rate of zero. Here the call is refused, and the error suggests a
 * longer period. */
static void zero_rate_is_refused_and_the_error_suggests_a_longer_period(void **state)
{
    (void)state;
    weir_limit l = {.permits = 4711};
    refused(weir_limit_token_bucket(&l, 5, 0, WEIR_SECOND), &l, "would stay empty", "make the period longer");
}

static void buckets_that_never_fill_are_refused(void **state)
{
    (void)state;
    weir_limit l = {.permits = 4711};
    refused(weir_limit_token_bucket(&l, 2, 1, WEIR_DURATION_MAX), &l, "36 years", "lower the capacity");
    refused(weir_limit_token_bucket(&l, UINT32_MAX, 1, WEIR_SECOND), &l, "36 years", "raise the rate");
    refused(weir_limit_stepped_bucket(&l, 3, 2, WEIR_DURATION_MAX, 0), &l, "36 years", "lower the capacity");
    refused(weir_limit_leaky_bucket(&l, 2, WEIR_DURATION_MAX), &l, "36 years", "lower the capacity");
    assert_int_equal(weir_limit_token_bucket(&l, 2, 2, WEIR_DURATION_MAX), 0);
    assert_int_equal(weir_limit_token_bucket(&l, UINT32_MAX, UINT32_MAX, WEIR_DURATION_MAX), 0);
    assert_int_equal(weir_limit_stepped_bucket(&l, 2, 2, WEIR_DURATION_MAX, 0), 0);
}

static void null_arguments_of_limit_constructors_are_refused(void **state)
{
    (void)state;
    const weir_limit untouched = {.permits = 4711};
    refused(weir_limit_token_bucket(NULL, 1, 1, 1), &untouched, "token bucket", "NULL");
    refused(weir_limit_stepped_bucket(NULL, 1, 1, 1, 1), &untouched, "token bucket", "NULL");
    refused(weir_limit_fixed_window(NULL, 1, 1), &untouched, "window", "NULL");
    refused(weir_limit_sliding_window(NULL, 1, 1), &untouched, "window", "NULL");
    refused(weir_limit_sliding_log(NULL, 1, 1), &untouched, "window", "NULL");
    refused(weir_limit_leaky_bucket(NULL, 1, 1), &untouched, "leaky bucket", "NULL");
    refused(weir_limit_concurrency(NULL, 1), &untouched, "concurrency", "NULL");
    refused(weir_limit_custom(NULL, &spaced_algorithm, 1, 1, NULL), &untouched, "custom rule", "NULL");
    assert_string_equal(weir_limit_name(NULL), "none");
    assert_string_equal(weir_limit_name(&untouched), "none");
}

static void derived_costs_of_a_token_bucket_are_exact(void **state)
{
    (void)state;
    const struct {
        uint32_t capacity, refill;
        int64_t period_ns, cost_ns;
        uint32_t cost_rem;
        int64_t full_ns;
        uint32_t full_rem;
    } rows[] = {
        {100, 10, WEIR_SECOND, 100 * MS, 0, 10 * WEIR_SECOND, 0},
        {10, 3, WEIR_SECOND, 333333333, 1, 3333333333, 1},
        {1, 1, WEIR_DAY, WEIR_DAY, 0, WEIR_DAY, 0},
        {4000000000, 4000000000, 1, 0, 1, 1, 0},
        {UINT32_MAX, UINT32_MAX, WEIR_DURATION_MAX, 268435456, 268435456, WEIR_DURATION_MAX, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_limit l;
        assert_int_equal(weir_limit_token_bucket(&l, rows[i].capacity, rows[i].refill, rows[i].period_ns), 0);
        assert_int_equal(l.cost_ns, rows[i].cost_ns);
        assert_int_equal(l.cost_rem, rows[i].cost_rem);
        assert_int_equal(l.full_ns, rows[i].full_ns);
        assert_int_equal(l.full_rem, rows[i].full_rem);
        assert_int_equal(l.queue_max, WEIR_QUEUE_MAX);
    }
}

static size_t too_much(const weir_limit *limit)
{
    (void)limit;
    return (1 << 20) + 1;
}

static size_t just_enough(const weir_limit *limit)
{
    (void)limit;
    return 1 << 20;
}

/* S3-46: errors in a custom algorithm are reported before it runs. */
static void custom_algorithm_is_checked_before_it_runs(void **state)
{
    (void)state;
    weir_limit l = {.permits = 4711};
    weir_algorithm a = spaced_algorithm;

#define REFUSED(change, word, right)                                         \
    do {                                                                     \
        a = spaced_algorithm;                                                \
        change;                                                              \
        refused(weir_limit_custom(&l, &a, 1, 1, NULL), &l, (word), (right)); \
    } while (0)
    REFUSED(a.size = sizeof a - 1, "size", "sizeof(weir_algorithm)");
    REFUSED(a.name = NULL, "no name", "give it a readable name");
    REFUSED(a.name = "", "no name", "give it a readable name");
    REFUSED(a.reason = WEIR_REASON_NONE, "reason", "weir_reason");
    REFUSED(a.reason = (weir_reason)9999, "reason", "weir_reason");
    REFUSED(a.state_bytes = NULL, "NULL", "only release, carry");
    REFUSED(a.start = NULL, "NULL", "only release, carry");
    REFUSED(a.ask = NULL, "NULL", "only release, carry");
    REFUSED(a.take = NULL, "NULL", "only release, carry");
    REFUSED(a.give = NULL, "NULL", "only release, carry");
    REFUSED(a.peek = NULL, "NULL", "only release, carry");
    REFUSED(a.fresh = NULL, "NULL", "only release, carry");
    REFUSED(a.state_bytes = too_much, "state", "1 MiB");
#undef REFUSED
    refused(weir_limit_custom(&l, NULL, 1, 1, NULL), &l, "algorithm", "NULL");
    refused(weir_limit_custom(&l, &spaced_algorithm, 0, 1, NULL), &l, "permits is 0", "1 ... 4294967295");
    refused(weir_limit_custom(&l, &spaced_algorithm, 1, -1, NULL), &l, "period", "2^60 ns");
    assert_int_equal(weir_limit_custom(&l, &spaced_algorithm, 1, 0, NULL), 0);
    assert_string_equal(weir_limit_name(&l), "spaced");
    a = spaced_algorithm;
    a.state_bytes = just_enough;
    assert_int_equal(weir_limit_custom(&l, &a, 1, 1, NULL), 0);
}

/* R28 */
static void every_wait_reason_has_its_documented_name(void **state)
{
    static const char *const words[] = {
        "none",    "pace",        "tokens", "robots_delay", "retry_after", "rate_limit_reset",
        "breaker", "concurrency", "robots", "retry",        "job_limit",   "paused",
        "global",  "share",       "queue"};
    (void)state;
    assert_int_equal(sizeof words / sizeof *words, WEIR_REASON_QUEUE + 1);
    for (int i = 0; i <= WEIR_REASON_QUEUE; i++)
        assert_string_equal(weir_reason_name((weir_reason)i), words[i]);
    assert_string_equal(weir_reason_name((weir_reason)(WEIR_REASON_QUEUE + 1)), "none");
    assert_string_equal(weir_reason_name((weir_reason)-1), "none");
}

/* The fields of a limit can be written. A limit that no constructor would return is refused where
 * it is used. */
static void rules_changed_by_hand_are_refused(void **state)
{
    (void)state;
    weir_limit good, bad;
    weir_stack stack = {.count = 4711};
    assert_int_equal(weir_limit_token_bucket(&good, 10, 3, WEIR_SECOND), 0);

#define REFUSED(change)                                                   \
    do {                                                                  \
        bad = good;                                                       \
        change;                                                           \
        assert_int_equal(weir_stack_init(&stack, &bad, 1), WEIR_E_INVAL); \
        assert_int_equal(stack.count, 4711);                              \
    } while (0)
    REFUSED(bad.algorithm = NULL);
    REFUSED(bad.permits = 11);
    REFUSED(bad.permits = 0);
    REFUSED(bad.refill = 0);
    REFUSED(bad.refill = 4);
    REFUSED(bad.period_ns = 5);
    REFUSED(bad.initial = 1);
    REFUSED(bad.cost_ns = 0);
    REFUSED(bad.cost_rem = 0);
    REFUSED(bad.full_ns = 0);
    REFUSED(bad.full_rem = 9);
    REFUSED(bad.queue_max = WEIR_QUEUE_MAX + 1);
    assert_int_equal(weir_limit_fixed_window(&good, 10, WEIR_SECOND), 0);
    REFUSED(bad.period_ns = 0); /* only custom algorithms may have a period of 0 */
    REFUSED(bad.permits = 0);
    assert_int_equal(weir_limit_sliding_window(&good, 10, WEIR_SECOND), 0);
    REFUSED(bad.period_ns = 0);
    assert_int_equal(weir_limit_sliding_log(&good, 10, WEIR_SECOND), 0);
    REFUSED(bad.period_ns = 0);
    REFUSED(bad.permits = WEIR_LOG_MAX + 1);
#undef REFUSED
    assert_int_equal(weir_limit_token_bucket(&good, 10, 3, WEIR_SECOND), 0);
    good.queue_max = 3; /* the length of the queue is not checked by the algorithm */
    assert_int_equal(weir_stack_init(&stack, &good, 1), 0);
}

WEIR_TESTS(test(constructors_refuse_zero_and_absurd_values),
           test(zero_rate_is_refused_and_the_error_suggests_a_longer_period), test(buckets_that_never_fill_are_refused),
           test(null_arguments_of_limit_constructors_are_refused), test(derived_costs_of_a_token_bucket_are_exact),
           test(custom_algorithm_is_checked_before_it_runs), test(every_wait_reason_has_its_documented_name),
           test(rules_changed_by_hand_are_refused))
