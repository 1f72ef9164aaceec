/* SPDX-License-Identifier: MIT */
/* test_table_past.c - tests that the usage of keys moves from one table to another. */
#include "lib/test.h"
#include "limiter/table/usage.h"

#include <weir/table.h>

#define T0 (1000 * WEIR_SECOND)
#define KEY "k", 1
#define SPAN ((struct wr_span){"k", 1})

enum {
    SMOOTH,
    STEPPED,
    FIXED,
    SLIDING,
    LOGGED,
    LEAKY,
    AT_ONCE,
    KINDS
};

/* Returns a limit of this kind: 10 permits in ten seconds, starts a second apart, or 10 permits in
 * flight. */
static weir_limit rule(int kind)
{
    weir_limit limit = {0};
    int error = kind == SMOOTH    ? weir_limit_token_bucket(&limit, 10, 10, 10 * WEIR_SECOND)
                : kind == STEPPED ? weir_limit_stepped_bucket(&limit, 10, 1, WEIR_SECOND, 10)
                : kind == FIXED   ? weir_limit_fixed_window(&limit, 10, 10 * WEIR_SECOND)
                : kind == SLIDING ? weir_limit_sliding_window(&limit, 10, 10 * WEIR_SECOND)
                : kind == LOGGED  ? weir_limit_sliding_log(&limit, 10, 10 * WEIR_SECOND)
                : kind == LEAKY   ? weir_limit_leaky_bucket(&limit, 10, WEIR_SECOND)
                                  : weir_limit_concurrency(&limit, 10);
    assert_int_equal(error, 0);
    return limit;
}

static weir_clock *new_clock(void)
{
    weir_clock *clock;
    assert_int_equal(weir_clock_fake_new(T0, NULL, &clock), 0);
    return clock;
}

static weir_table *table_of(const weir_limit *limits, size_t count, const weir_clock *clock)
{
    weir_table_options options;
    weir_table *table;
    weir_table_options_init(&options);
    options.max_keys = 1;
    options.clock = clock;
    assert_int_equal(weir_table_new(limits, count, &options, &table), 0);
    return table;
}

/* Returns the wait for one permit, without taking it. */
static int64_t wait_of(weir_table *table)
{
    struct wr_visit visit;
    assert_int_equal(wr_table_visit(table, KEY, &visit), 0);
    struct wr_key_query query = wr_table_query(table, KEY, 1, visit.now);
    weir_decision decision = wr_table_ask_entry(table, visit.shard, visit.entry, &query);
    wr_visit_end_and_wake(&visit);
    return decision.wait_ns;
}

static void take(weir_table *table, uint32_t permits)
{
    weir_decision decision;
    assert_int_equal(weir_table_try(table, KEY, permits, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
}

/* Stores what the key has used. Returns true if the key still delays requests. */
static bool past_of(weir_table *table, struct wr_limit_usage *ret_pasts)
{
    struct wr_visit visit;
    assert_int_equal(wr_table_visit(table, KEY, &visit), 0);
    assert_non_null(visit.entry);
    bool constrains = wr_entry_usage(table, visit.shard, visit.entry, visit.now, ret_pasts);
    wr_visit_end_and_wake(&visit);
    return constrains;
}

static void restored_key_has_the_same_quota_in_another_table(void **state)
{
    (void)state;
    for (int kind = SMOOTH; kind < LEAKY; kind++) {
        weir_clock *clock = new_clock();
        weir_limit limit = rule(kind);
        weir_table *from = table_of(&limit, 1, clock), *to = table_of(&limit, 1, clock);
        struct wr_limit_usage past;
        take(from, 7);
        assert_true(past_of(from, &past));
        assert_int_equal(past.used, 7);
        assert_int_equal(past.back_ns, 0);
        assert_int_equal(wr_table_restore_usage(to, SPAN, &past, 1, 0, WR_RESTORE_ALL), 0);
        take(to, 3);
        assert_true(wait_of(to) > 0);
        weir_table_free(from);
        weir_table_free(to);
        weir_clock_fake_free(clock);
    }
}

/* Restored usage replaces the usage of the key; the two are not added. */
static void restored_usage_replaces_the_usage_of_the_key(void **state)
{
    (void)state;
    for (int kind = SMOOTH; kind < LEAKY; kind++) {
        weir_clock *clock = new_clock();
        weir_limit limit = rule(kind);
        weir_table *table = table_of(&limit, 1, clock);
        const struct wr_limit_usage wanted = {.used = 3};
        struct wr_limit_usage past;
        take(table, 9);
        assert_int_equal(wr_table_restore_usage(table, SPAN, &wanted, 1, 0, WR_RESTORE_ALL), 0);
        assert_true(past_of(table, &past));
        assert_int_equal(past.used, 3);
        take(table, 7);
        assert_true(wait_of(table) > 0);
        weir_table_free(table);
        weir_clock_fake_free(clock);
    }
}

static void restored_window_ends_at_its_original_time(void **state)
{
    (void)state;
    weir_clock *clock = new_clock();
    weir_limit limit = rule(FIXED);
    weir_table *from = table_of(&limit, 1, clock), *to = table_of(&limit, 1, clock);
    struct wr_limit_usage past;
    take(from, 10);
    weir_clock_fake_advance(clock, 4 * WEIR_SECOND);
    assert_true(past_of(from, &past));
    assert_int_equal(past.back_ns, 4 * WEIR_SECOND);
    weir_clock_fake_advance(clock, WEIR_SECOND);
    assert_int_equal(wr_table_restore_usage(to, SPAN, &past, 1, WEIR_SECOND, WR_RESTORE_ALL), 0);
    assert_int_equal(wait_of(to), 5 * WEIR_SECOND);
    weir_clock_fake_advance(clock, 5 * WEIR_SECOND);
    assert_false(past_of(from, &past));
    assert_int_equal(past.used, 0);
    assert_int_equal(past.back_ns, 0);
    weir_table_free(from);
    weir_table_free(to);
    weir_clock_fake_free(clock);
}

static void restored_leaky_bucket_keeps_its_pending_starts(void **state)
{
    (void)state;
    weir_clock *clock = new_clock();
    weir_limit limit = rule(LEAKY);
    weir_table *from = table_of(&limit, 1, clock), *to = table_of(&limit, 1, clock);
    struct wr_limit_usage past;
    take(from, 3);
    assert_true(past_of(from, &past));
    assert_int_equal(past.used, 3);
    /* Less than two starts are due, which is rounded up to two. */
    weir_clock_fake_advance(clock, WEIR_SECOND + 1);
    assert_true(past_of(from, &past));
    assert_int_equal(past.used, 2);
    assert_int_equal(wr_table_restore_usage(to, SPAN, &past, 1, 0, WR_RESTORE_ALL), 0);
    assert_int_equal(wait_of(to), 2 * WEIR_SECOND);
    weir_table_free(from);
    weir_table_free(to);
    weir_clock_fake_free(clock);
}

static void permits_in_flight_do_not_move_with_the_usage_of_a_key(void **state)
{
    (void)state;
    weir_clock *clock = new_clock();
    weir_limit limits[2] = {rule(AT_ONCE), rule(SMOOTH)};
    weir_table *from = table_of(limits, 2, clock), *to = table_of(limits, 2, clock);
    struct wr_limit_usage usages[2];
    take(from, 10);
    assert_true(past_of(from, usages));
    assert_int_equal(usages[0].used, 0);
    assert_int_equal(usages[1].used, 10);
    weir_clock_fake_advance(clock, 10 * WEIR_SECOND);
    assert_false(past_of(from, usages));
    take(to, 4);
    usages[0].used = usages[1].used = 6;
    assert_int_equal(wr_table_restore_usage(to, SPAN, usages, 2, 0, WR_RESTORE_ALL), 0);
    take(to, 4); /* 8 in flight, and all 10 of the bucket */
    assert_int_equal(wait_of(to), WEIR_SECOND);
    weir_clock_fake_advance(clock, 10 * WEIR_SECOND);
    take(to, 2);
    assert_int_equal(wait_of(to), WEIR_UNTIL_RELEASE);
    weir_table_free(from);
    weir_table_free(to);
    weir_clock_fake_free(clock);
}

static void restored_usage_is_bounded_by_the_limit_and_has_its_age(void **state)
{
    (void)state;
    weir_clock *clock = new_clock();
    weir_limit limit = rule(SMOOTH);
    weir_table *table = table_of(&limit, 1, clock);
    assert_int_equal(wr_table_restore_usage(table, SPAN, &(struct wr_limit_usage){.used = 500}, 1, 0, WR_RESTORE_ALL),
                     0);
    assert_int_equal(wait_of(table), WEIR_SECOND);
    assert_int_equal(wr_table_restore_usage(table, SPAN, &(struct wr_limit_usage){.used = 10}, 1, 700, WR_RESTORE_ALL),
                     0);
    assert_int_equal(wait_of(table), WEIR_SECOND - 700);
    weir_limit window = rule(FIXED);
    weir_table *windows = table_of(&window, 1, clock);
    const struct wr_limit_usage absurd = {.used = 10, .back_ns = WEIR_HOUR};
    assert_int_equal(wr_table_restore_usage(windows, SPAN, &absurd, 1, 0, WR_RESTORE_ALL), 0);
    assert_int_equal(wait_of(windows), 0); /* the window began at most one window ago */
    take(windows, 10);
    assert_int_equal(wait_of(windows), 10 * WEIR_SECOND);
    weir_table_free(table);
    weir_table_free(windows);
    weir_clock_fake_free(clock);
}

static void restore_skips_keys_with_usage_unless_all_are_restored(void **state)
{
    (void)state;
    weir_clock *clock = new_clock();
    weir_limit limit = rule(SMOOTH);
    weir_table *table = table_of(&limit, 1, clock);
    const struct wr_limit_usage all = {.used = 10}, nothing = {.used = 0};
    take(table, 1);
    assert_int_equal(wr_table_restore_usage(table, SPAN, &all, 1, 0, WR_RESTORE_IF_MISSING), 0);
    take(table, 9);
    weir_clock_fake_advance(clock, 10 * WEIR_SECOND);
    assert_int_equal(wr_table_restore_usage(table, SPAN, &all, 1, 0, WR_RESTORE_IF_MISSING), 0);
    assert_int_equal(wait_of(table), WEIR_SECOND);
    assert_int_equal(wr_table_restore_usage(table, SPAN, &nothing, 1, 0, WR_RESTORE_ALL), 0);
    take(table, 10);
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

static void failed_recall_and_resume_change_nothing(void **state)
{
    (void)state;
    weir_clock *clock = new_clock();
    weir_limit limit = rule(SMOOTH);
    weir_table *table = table_of(&limit, 1, clock);
    const struct wr_limit_usage usages[2] = {{.used = 10}, {.used = 10}};
    static char longest[WEIR_KEY_MAX + 1];
    const struct wr_span too_long = {longest, sizeof longest}, other = {"o", 1};
    weir_receipt receipt = {.permits = 4711};
    assert_int_equal(wr_table_restore_usage(table, SPAN, usages, 2, 0, WR_RESTORE_ALL), WEIR_E_INVAL);
    assert_int_equal(wr_table_restore_usage(table, too_long, usages, 1, 0, WR_RESTORE_ALL), WEIR_E_INVAL);
    assert_int_equal(wr_table_restore_permits(table, too_long, 1, 0, &receipt), WEIR_E_INVAL);
    assert_int_equal(wr_table_restore_permits(table, SPAN, 0, 0, &receipt), WEIR_E_INVAL);
    take(table, 10);
    assert_int_equal(wr_table_restore_usage(table, other, usages, 1, 0, WR_RESTORE_ALL), WEIR_E_FULL);
    assert_int_equal(wr_table_restore_permits(table, other, 1, 0, &receipt), WEIR_E_FULL);
    weir_table_close(table);
    assert_int_equal(wr_table_restore_usage(table, SPAN, usages, 1, 0, WR_RESTORE_ALL), WEIR_E_CLOSED);
    assert_int_equal(wr_table_restore_permits(table, SPAN, 1, 0, &receipt), WEIR_E_CLOSED);
    assert_int_equal(receipt.permits, 4711);
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

static void receipt_of_resumed_permits_can_be_settled_and_released(void **state)
{
    (void)state;
    weir_clock *clock = new_clock();
    weir_limit limits[2] = {rule(AT_ONCE), rule(SMOOTH)};
    weir_table *table = table_of(limits, 2, clock);
    const struct wr_limit_usage usages[2] = {{.used = 0}, {.used = 8}};
    weir_receipt receipt;
    assert_int_equal(wr_table_restore_usage(table, SPAN, usages, 2, WEIR_SECOND, WR_RESTORE_ALL), 0);
    assert_int_equal(wr_table_restore_permits(table, SPAN, 8, WEIR_SECOND, &receipt), 0);
    assert_int_equal(receipt.permits, 8);
    assert_int_equal(receipt.at, T0 - WEIR_SECOND);
    weir_quota quota;
    assert_int_equal(weir_table_peek(table, KEY, &quota), 0);
    assert_int_equal(quota.remaining, 2);
    assert_int_equal(weir_table_settle(table, KEY, &receipt, 0), 0);
    assert_int_equal(weir_table_release(table, KEY, 8), 0);
    take(table, 10);
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

/* The number of permits is not limited by the length of a key. */
static void more_permits_than_a_key_has_bytes_are_resumed_and_released(void **state)
{
    (void)state;
    weir_clock *clock = new_clock();
    weir_limit limit;
    weir_receipt receipt;
    assert_int_equal(weir_limit_concurrency(&limit, 2 * WEIR_KEY_MAX), 0);
    weir_table *table = table_of(&limit, 1, clock);
    assert_int_equal(wr_table_restore_permits(table, SPAN, 2 * WEIR_KEY_MAX, 0, &receipt), 0);
    assert_int_equal(wait_of(table), WEIR_UNTIL_RELEASE);
    assert_int_equal(weir_table_release(table, KEY, 0), WEIR_E_INVAL);
    assert_int_equal(weir_table_release(table, KEY, 2 * WEIR_KEY_MAX), 0);
    take(table, 2 * WEIR_KEY_MAX);
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

static void used_since_is_exact_to_two_seconds(void **state)
{
    (void)state;
    weir_clock *clock = new_clock();
    weir_limit limit = rule(SMOOTH);
    weir_table *table = table_of(&limit, 1, clock);
    struct wr_visit visit;
    weir_clock_fake_advance(clock, WEIR_MINUTE);
    take(table, 1);
    assert_int_equal(wr_table_visit(table, KEY, &visit), 0);
    int64_t used_at = T0 + WEIR_MINUTE;
    assert_true(wr_entry_used_since(table, visit.entry, INT64_MIN));
    assert_true(wr_entry_used_since(table, visit.entry, used_at));
    assert_true(wr_entry_used_since(table, visit.entry, used_at + WEIR_SECOND));
    assert_false(wr_entry_used_since(table, visit.entry, used_at + 3 * WEIR_SECOND));
    wr_visit_end_and_wake(&visit);
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

WEIR_TESTS(test(restored_usage_replaces_the_usage_of_the_key),
           test(more_permits_than_a_key_has_bytes_are_resumed_and_released),
           test(restored_key_has_the_same_quota_in_another_table), test(restored_window_ends_at_its_original_time),
           test(restored_leaky_bucket_keeps_its_pending_starts),
           test(permits_in_flight_do_not_move_with_the_usage_of_a_key),
           test(restored_usage_is_bounded_by_the_limit_and_has_its_age),
           test(restore_skips_keys_with_usage_unless_all_are_restored), test(failed_recall_and_resume_change_nothing),
           test(receipt_of_resumed_permits_can_be_settled_and_released), test(used_since_is_exact_to_two_seconds))
