/* SPDX-License-Identifier: MIT */
/* test_carry.c - tests changes of the rules at run time: used permits stay used (K7). */
#include "rig.h"

static weir_limit smooth(uint32_t capacity, uint32_t refill, int64_t period_ns)
{
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, capacity, refill, period_ns), 0);
    return limit;
}

static weir_limit stepped(uint32_t capacity, uint32_t refill, int64_t period_ns)
{
    weir_limit limit;
    assert_int_equal(weir_limit_stepped_bucket(&limit, capacity, refill, period_ns, capacity), 0);
    return limit;
}

/* One change of a rule: takes `taken` permits of a new `from` at T0 and changes to `to` after
 * `after_ns`. `permits` must then wait `wait_ns`. */
struct change {
    weir_limit from, to;
    uint32_t taken;
    int64_t after_ns;
    uint32_t permits;
    int64_t wait_ns;
};

static void changes(const struct change *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct change *row = &rows[i];
        int64_t now = T0 + row->after_ns;
        struct limit_fixture rig;
        rig_init(&rig, &row->from, 1, T0);
        weir_stack_take(&rig.stack, rig.state, T0, row->taken, NULL);
        rig_change(&rig, &row->to, 1, now);
        if (rig_wait(&rig, now, row->permits) != row->wait_ns)
            fail_msg("row %zu: %u wait %lld ns, not %lld", i, row->permits,
                     (long long)rig_wait(&rig, now, row->permits), (long long)row->wait_ns);
        rig_release(&rig);
    }
}
#define CHANGES(...)                                    \
    do {                                                \
        const struct change rows_[] = {__VA_ARGS__};    \
        changes(rows_, sizeof rows_ / sizeof rows_[0]); \
    } while (0)

/* K7: 10 a second become 1 a second. */
static void new_rate_is_in_force_at_once_without_a_leftover_burst(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit fast = smooth(10, 10, WEIR_SECOND), slow = smooth(1, 1, WEIR_SECOND);
    rig_init(&rig, &fast, 1, T0);
    rig_change(&rig, &slow, 1, T0);
    assert_int_equal(rig_drain(&rig, T0), 1);
    assert_int_equal(rig_wait(&rig, T0, 1), WEIR_SECOND);
    rig_change(&rig, &fast, 1, T0);
    assert_int_equal(rig_drain(&rig, T0), 0); /* changing back gives no burst */
    assert_int_equal(rig_wait(&rig, T0, 1), 100 * MS);
    rig_release(&rig);
}

static void bucket_carries_the_permits_left(void **state)
{
    (void)state;
    weir_limit one = smooth(10, 1, WEIR_SECOND), ten = smooth(10, 10, WEIR_SECOND), large = smooth(100, 1, WEIR_SECOND),
               small = smooth(4, 1, WEIR_SECOND), third = smooth(10, 3, WEIR_SECOND);
    CHANGES({one, ten, 7, 0, 3, 0}, {one, ten, 7, 0, 4, 100 * MS}, /* 3 left */
            {one, ten, 7, 500 * MS, 4, 50 * MS},                   /* 3.5 left */
            {ten, one, 7, 50 * MS, 4, 500 * MS},                   /* 3.5 left */
            /* 10 of 100 left */
            {one, large, 7, 0, 4, WEIR_SECOND}, {one, large, 0, 0, 11, WEIR_SECOND},
            /* 8 left, capped at 4 */
            {one, small, 7, 0, 4, WEIR_SECOND}, {one, small, 2, 0, 4, 0},
            /* 4 in debt */
            {one, ten, 14, 0, 1, 500 * MS},
            /* 3e-9 left */
            {ten, one, 14, 0, 1, 5 * WEIR_SECOND}, {third, one, 10, 1, 1, 999999997},
            {one, third, 10, 1, 1, 333333333} /* 1e-9 left: a third of a ns, which is kept */);
}

static void deepest_debts_and_largest_rules_carry_without_overflow(void **state)
{
    (void)state;
    weir_limit slowest = smooth(1, 1, WEIR_DURATION_MAX), fastest = smooth(UINT32_MAX, UINT32_MAX, 1);
    CHANGES({slowest, fastest, 1, 0, 1, 1}, {fastest, slowest, UINT32_MAX, 0, 1, WEIR_DURATION_MAX},
            {slowest, fastest, UINT32_MAX, 0, 1, 1}, {fastest, slowest, UINT32_MAX, 1, 1, 0});
    struct limit_fixture rig;
    rig_init(&rig, &fastest, 1, T0);
    for (int i = 0; i < 1000; i++)
        weir_stack_take(&rig.stack, rig.state, T0, UINT32_MAX, NULL);
    rig_change(&rig, &slowest, 1, T0);
    assert_int_equal(rig_wait(&rig, T0, 1), 2 * WEIR_DURATION_MAX);
    rig_release(&rig);
}

static void stepped_bucket_carries_the_permits_left_and_its_grid(void **state)
{
    (void)state;
    weir_limit five = stepped(10, 5, WEIR_SECOND), two = stepped(10, 2, WEIR_SECOND),
               small = stepped(3, 2, WEIR_SECOND), hour = stepped(10, 5, WEIR_HOUR), brief = stepped(10, 5, 100 * MS);
    CHANGES({five, two, 9, 300 * MS, 1, 0}, {five, two, 9, 300 * MS, 2, 700 * MS}, {five, two, 9, 1300 * MS, 6, 0},
            {five, small, 0, 0, 3, 0}, {five, small, 8, 300 * MS, 3, 700 * MS},
            {five, hour, 10, 300 * MS, 1, WEIR_HOUR - 300 * MS},
            /* time waited under the old period does not count at the new rate */
            {hour, brief, 10, 300 * MS, 1, 100 * MS}, {five, two, 15, 0, 1, 3 * WEIR_SECOND});
}

static void windows_keep_what_they_counted(void **state)
{
    (void)state;
    weir_limit ten, three, shorter, longer;
    assert_int_equal(weir_limit_fixed_window(&ten, 10, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_fixed_window(&three, 3, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_fixed_window(&shorter, 10, 100 * MS), 0);
    assert_int_equal(weir_limit_fixed_window(&longer, 10, WEIR_MINUTE), 0);
    CHANGES({ten, ten, 8, 300 * MS, 2, 0}, {ten, ten, 8, 300 * MS, 3, 700 * MS}, {ten, three, 8, 300 * MS, 1, 700 * MS},
            {three, ten, 3, 300 * MS, 7, 0}, {three, ten, 3, 300 * MS, 8, 700 * MS},
            {ten, longer, 8, 300 * MS, 3, WEIR_MINUTE - 300 * MS}, {ten, shorter, 8, 50 * MS, 3, 50 * MS},
            /* `now` is outside the new window, which starts now */
            {ten, shorter, 8, 300 * MS, 2, 0}, {ten, shorter, 8, 300 * MS, 3, 100 * MS},
            {ten, longer, 8, 1300 * MS, 10, 0});
}

static void sliding_windows_keep_both_counts(void **state)
{
    (void)state;
    weir_limit ten, four, shorter;
    assert_int_equal(weir_limit_sliding_window(&ten, 10, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_sliding_window(&four, 4, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_sliding_window(&shorter, 10, 100 * MS), 0);
    CHANGES({ten, ten, 8, 300 * MS, 2, 0}, {ten, ten, 8, 1500 * MS, 6, 0}, {ten, ten, 8, 1500 * MS, 7, 1},
            {ten, four, 8, 300 * MS, 1, 1200 * MS + 1}, {ten, four, 8, 1300 * MS, 1, 200 * MS + 1},
            {ten, shorter, 8, 300 * MS, 2, 0}, {ten, shorter, 8, 300 * MS, 3, 100 * MS + 1});
}

static void log_keeps_the_newest_instants(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit five, two, nine;
    assert_int_equal(weir_limit_sliding_log(&five, 5, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_sliding_log(&two, 2, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_sliding_log(&nine, 9, 2 * WEIR_SECOND), 0);
    rig_init(&rig, &five, 1, T0);
    for (int64_t i = 0; i < 7; i++) /* the ring has wrapped: it holds 200 ... 600 ms */
        weir_stack_take(&rig.stack, rig.state, T0 + i * 100 * MS, 1, NULL);
    int64_t now = T0 + 700 * MS;
    rig_change(&rig, &nine, 1, now);
    assert_int_equal(rig_wait(&rig, now, 4), 0);
    assert_int_equal(rig_wait(&rig, now, 5), 1500 * MS);
    rig_change(&rig, &two, 1, now);
    assert_int_equal(rig_wait(&rig, now, 1), 800 * MS); /* until the instant at 500 ms expires */
    assert_int_equal(rig_wait(&rig, now, 2), 900 * MS);
    rig_release(&rig);
}

/* At one instant a quota grants no more than its largest value, however often the rules change. */
static void quotas_that_shrink_and_grow_again_forget_nothing(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit ten, one;
    uint32_t granted = 0;
    assert_int_equal(weir_limit_sliding_log(&ten, 10, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_sliding_log(&one, 1, WEIR_SECOND), 0);
    rig_init(&rig, &ten, 1, T0);
    for (int i = 0; i < 5; i++) {
        while (rig_try(&rig, T0, 1))
            granted++;
        rig_change(&rig, &one, 1, T0);
        rig_change(&rig, &ten, 1, T0);
    }
    assert_int_equal(granted, 10);
    assert_false(rig_try(&rig, T0 + WEIR_SECOND - 1, 1));
    assert_true(rig_try(&rig, T0 + WEIR_SECOND, 10));
    rig_release(&rig);
}

static void the_same_rule_put_in_force_again_grants_nothing(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit leaky;
    int64_t granted = 0;
    assert_int_equal(weir_limit_leaky_bucket(&leaky, 100, WEIR_SECOND), 0);
    rig_init(&rig, &leaky, 1, T0);
    for (int64_t i = 0; i < 100; i++) {
        granted += rig_try(&rig, T0 + i * WEIR_SECOND, 100) ? 100 : 0;
        rig_change(&rig, &leaky, 1, T0 + i * WEIR_SECOND);
    }
    assert_int_equal(granted, 100);
    rig_release(&rig);
}

static void leaky_bucket_spaces_the_next_start_from_the_last(void **state)
{
    (void)state;
    weir_limit second, slow, fast;
    assert_int_equal(weir_limit_leaky_bucket(&second, 9, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_leaky_bucket(&slow, 9, 5 * WEIR_SECOND), 0);
    assert_int_equal(weir_limit_leaky_bucket(&fast, 9, 100 * MS), 0);
    CHANGES({second, second, 1, 300 * MS, 1, 700 * MS}, {second, slow, 1, 300 * MS, 1, 4700 * MS},
            {second, fast, 1, 30 * MS, 1, 70 * MS}, {second, fast, 1, 300 * MS, 1, 0},
            {second, slow, 1, 4 * WEIR_SECOND, 1, WEIR_SECOND}, {second, slow, 8, 300 * MS, 1, 39700 * MS},
            {second, second, 8, 300 * MS, 1, 7700 * MS},
            /* no start so far */
            {second, slow, 0, 300 * MS, 1, 0});
}

static void concurrency_limit_carries_permits_in_flight(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit five, two;
    assert_int_equal(weir_limit_concurrency(&five, 5), 0);
    assert_int_equal(weir_limit_concurrency(&two, 2), 0);
    rig_init(&rig, &five, 1, T0);
    assert_true(rig_try(&rig, T0, 4));
    rig_change(&rig, &two, 1, T0);
    weir_stack_release(&rig.stack, rig.state, 2);
    assert_false(rig_try(&rig, T0, 1));
    weir_stack_release(&rig.stack, rig.state, 1);
    assert_true(rig_try(&rig, T0, 1));
    rig_release(&rig);
}

static void receipts_survive_only_an_unchanged_rule(void **state)
{
    (void)state;
    const weir_limit rules[] = {smooth(10, 1, WEIR_SECOND), stepped(10, 1, WEIR_SECOND)};
    const weir_limit others[] = {smooth(20, 1, WEIR_SECOND), stepped(20, 1, WEIR_SECOND)};
    for (size_t i = 0; i < 2; i++) {
        struct limit_fixture rig;
        rig_init(&rig, &rules[i], 1, T0);
        weir_receipt first = rig_reserve(&rig, T0, 3), second = rig_reserve(&rig, T0, 3);
        rig_change(&rig, &rules[i], 1, T0);
        rig_settle(&rig, T0, &first, 0);
        assert_int_equal(rig_peek(&rig, T0).remaining, 7);
        for (int j = 0; j < 100; j++) { /* a void receipt never becomes valid */
            weir_receipt again = second;
            rig_change(&rig, &(j % 2 == 0 ? others : rules)[i], 1, T0);
            rig_settle(&rig, T0, &again, 0);
            assert_int_equal(rig_peek(&rig, T0).remaining, 7);
        }
        rig_release(&rig);
    }
}

static void carry_to_another_algorithm_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    weir_limit limits[3];
    weir_stack from, to;
    char old[64] = {0}, new[64] = {0};
    const char zero[64] = {0};
    assert_int_equal(weir_limit_token_bucket(&limits[0], 1, 1, 1), 0);
    assert_int_equal(weir_limit_concurrency(&limits[1], 1), 0);
    assert_int_equal(weir_limit_token_bucket(&limits[2], 1, 1, 1), 0);
    assert_int_equal(weir_stack_init(&from, limits, 2), 0);
    assert_int_equal(weir_stack_init(&to, limits + 1, 2), 0);
    assert_int_equal(weir_stack_carry(&from, old, &to, new, T0), WEIR_E_INVAL);
    assert_int_equal(weir_stack_init(&to, limits, 3), 0);
    assert_int_equal(weir_stack_carry(&from, old, &to, new, T0), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "same order"));
    assert_memory_equal(new, zero, sizeof new);
}

WEIR_TESTS(test(new_rate_is_in_force_at_once_without_a_leftover_burst), test(bucket_carries_the_permits_left),
           test(deepest_debts_and_largest_rules_carry_without_overflow),
           test(stepped_bucket_carries_the_permits_left_and_its_grid), test(windows_keep_what_they_counted),
           test(sliding_windows_keep_both_counts), test(log_keeps_the_newest_instants),
           test(quotas_that_shrink_and_grow_again_forget_nothing),
           test(the_same_rule_put_in_force_again_grants_nothing),
           test(leaky_bucket_spaces_the_next_start_from_the_last), test(concurrency_limit_carries_permits_in_flight),
           test(receipts_survive_only_an_unchanged_rule),
           test(carry_to_another_algorithm_is_refused_and_changes_nothing))
