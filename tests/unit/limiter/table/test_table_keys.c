/* SPDX-License-Identifier: MIT */
/* test_table_keys.c - tests that a table is bounded: eviction, overflow, expiry, floods, lists (R9,
 * S0-70 to S0-72, S3-36, J3, J4, U15). */
#include "lib/alloc.h"
#include "lib/rig.h"

static bool goes_number(weir_table *table, unsigned number)
{
    char key[24];
    (void)snprintf(key, sizeof key, "stranger-%u", number);
    return goes(table, key);
}

/* ---- a full table ---- */

static void table_never_has_more_than_max_keys(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct keyed fixture = {.options = {.max_keys = 1000}};
    keyed_set_up(&fixture, &limit);
    for (unsigned i = 0; i < 10000; i++) {
        (void)goes_number(fixture.table, i);
        if (i % 100 == 99)
            advance(fixture.clock, 100 * WEIR_MILLISECOND);
        assert_in_range(stats_of(fixture.table).keys, 1, 1000);
    }
    weir_table_stats stats = stats_of(fixture.table);
    assert_int_equal(stats.created - stats.evicted, stats.keys);
    assert_true(stats.evicted > 0);
    keyed_tear_down(&fixture);
}

static void full_table_evicts_only_keys_whose_limiter_is_full(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_MINUTE);
    struct keyed fixture = {.options = {.max_keys = 32, .shards = 1}};
    keyed_set_up(&fixture, &limit);
    for (unsigned i = 0; i < 16; i++)
        assert_true(goes_number(fixture.table, i));
    advance(fixture.clock, WEIR_MINUTE); /* the first 16 are like new keys */
    for (unsigned i = 16; i < 32; i++)
        assert_true(goes_number(fixture.table, i)); /* the next 16 are drained */
    for (unsigned i = 32; i < 48; i++)
        assert_true(goes_number(fixture.table, i)); /* replace the first 16 */
    assert_int_equal(stats_of(fixture.table).evicted, 16);
    for (unsigned i = 16; i < 48; i++)
        assert_false(goes_number(fixture.table, i)); /* no drained key was forgotten */
    keyed_tear_down(&fixture);
}

/* T10 */
static void longest_idle_key_with_a_full_limiter_is_evicted_first(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct keyed fixture = {.options = {.max_keys = 16, .shards = 1}};
    keyed_set_up(&fixture, &limit);
    for (unsigned i = 0; i < 64; i++) {
        assert_true(goes_number(fixture.table, i));
        for (unsigned j = 0; j <= i; j++) {
            char key[24];
            (void)snprintf(key, sizeof key, "stranger-%u", j);
            assert_int_equal(known(fixture.table, key), j + 16 > i);
        }
        advance(fixture.clock, WEIR_SECOND);
    }
    keyed_tear_down(&fixture);
}

/* T9, J3 */
static void key_used_twice_keeps_its_place_for_10_s_in_a_flood(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 2, WEIR_SECOND);
    struct keyed fixture = {.options = {.max_keys = 16, .shards = 1}};
    keyed_set_up(&fixture, &limit);
    for (unsigned i = 0; i < 32; i++)
        assert_true(goes_number(fixture.table, i % 16)); /* each twice */
    int64_t asked_at = weir_clock_now(fixture.clock);
    for (unsigned i = 16; weir_clock_now(fixture.clock) - asked_at < 9 * WEIR_SECOND; i++) {
        advance(fixture.clock, WEIR_SECOND); /* the limiters of all keys are full */
        (void)goes_number(fixture.table, i);
        assert_int_equal(stats_of(fixture.table).evicted, 0);
    }
    advance(fixture.clock, 2 * WEIR_SECOND);
    assert_true(goes_number(fixture.table, 99));
    assert_int_equal(stats_of(fixture.table).evicted, 1);
    keyed_tear_down(&fixture);
}

static void new_keys_share_one_limiter_if_no_key_can_be_evicted(void **state)
{
    (void)state;
    weir_limit limit = bucket(5, 1, WEIR_MINUTE);
    struct keyed fixture = {.options = {.max_keys = 32}};
    keyed_set_up(&fixture, &limit);
    for (unsigned i = 0; i < 32; i++)
        assert_true(goes_number(fixture.table, i));
    unsigned granted = 0;
    for (unsigned i = 100; i < 200; i++)
        granted += goes_number(fixture.table, i);
    assert_int_equal(granted, 5); /* neither 0 nor 100 */
    weir_table_stats stats = stats_of(fixture.table);
    assert_int_equal(stats.overflowed, 100);
    assert_int_equal(stats.keys, 32);
    assert_true(goes_number(fixture.table, 0)); /* known keys are not affected */
    /* A reservation of the shared limiter is returned to it. */
    advance(fixture.clock, 2 * WEIR_MINUTE);
    for (unsigned i = 0; i < 32; i++)
        for (int j = 0; j < 5; j++)
            (void)goes_number(fixture.table, i); /* keep all of them drained */
    weir_receipt receipt;
    weir_decision decision;
    assert_int_equal(weir_table_reserve(fixture.table, "new", 3, 2, &receipt, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_false(goes(fixture.table, "newer"));
    assert_int_equal(weir_table_settle(fixture.table, "new", 3, &receipt, 0), 0);
    assert_true(goes(fixture.table, "newer"));
    assert_int_equal(weir_table_acquire(fixture.table, "newest", 6, 2, WEIR_FOREVER, NULL, NULL, NULL), WEIR_E_FULL);
    keyed_tear_down(&fixture);
}

static void key_with_permits_in_flight_is_not_evicted(void **state)
{
    (void)state;
    weir_limit limit = concurrency(2);
    struct keyed fixture = {.options = {.max_keys = 16, .shards = 1, .ttl_ns = WEIR_SECOND}};
    keyed_set_up(&fixture, &limit);
    assert_true(goes(fixture.table, "in flight"));
    advance(fixture.clock, WEIR_HOUR);
    for (unsigned i = 0; i < 1000; i++) {
        char key[24];
        int length = snprintf(key, sizeof key, "stranger-%u", i);
        (void)goes_number(fixture.table, i);
        assert_int_equal(weir_table_release(fixture.table, key, (size_t)length, 1), 0);
    }
    advance(fixture.clock, WEIR_HOUR);
    assert_int_equal(weir_table_sweep(fixture.table), 15); /* all other keys */
    assert_true(known(fixture.table, "in flight"));
    assert_true(goes(fixture.table, "in flight"));
    assert_false(goes(fixture.table, "in flight"));
    keyed_tear_down(&fixture);
}

/* New keys cannot share permits in flight: a release by key would not tell which request it
 * ends. */
static void full_table_of_permits_in_flight_refuses_new_keys_until_one_is_idle(void **state)
{
    (void)state;
    weir_limit limit = concurrency(2);
    struct keyed fixture = {.options = {.max_keys = 16, .shards = 1}};
    keyed_set_up(&fixture, &limit);
    for (unsigned i = 0; i < 16; i++)
        assert_true(goes_number(fixture.table, i));
    weir_decision decision;
    assert_int_equal(weir_table_try(fixture.table, "new", 3, 1, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.reason, WEIR_REASON_CONCURRENCY);
    assert_true(decision.wait_ns == WEIR_UNTIL_RELEASE);
    assert_int_equal(weir_table_acquire(fixture.table, "new", 3, 1, WEIR_FOREVER, NULL, NULL, &decision), WEIR_E_FULL);
    assert_int_equal(decision.reason, WEIR_REASON_CONCURRENCY);
    weir_table_part parts[] = {{.table = fixture.table, .key = "stranger-0", .key_bytes = 10, .permits = 1},
                               {.table = fixture.table, .key = "new", .key_bytes = 3, .permits = 1}};
    size_t part;
    assert_int_equal(weir_table_try_all(parts, 2, &decision, &part), 0);
    assert_int_equal(decision.reason, WEIR_REASON_CONCURRENCY);
    assert_int_equal(part, 1);
    weir_table_stats stats = stats_of(fixture.table);
    assert_int_equal(stats.overflowed, 3);
    assert_int_equal(stats.rejected, 3);
    assert_int_equal(stats.acquired, 16);
    advance(fixture.clock, WEIR_MINUTE);
    assert_int_equal(weir_table_release(fixture.table, "stranger-7", 10, 1), 0);
    assert_true(goes(fixture.table, "new")); /* replaces the idle key */
    assert_false(goes(fixture.table, "newer"));
    keyed_tear_down(&fixture);
}

static void release_of_an_unknown_key_frees_no_permit(void **state)
{
    (void)state;
    weir_limit limit = concurrency(1);
    struct keyed fixture = {.options = {.max_keys = 16, .shards = 1}};
    keyed_set_up(&fixture, &limit);
    for (unsigned i = 0; i < 16; i++)
        assert_true(goes_number(fixture.table, i));
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(weir_table_release(fixture.table, "unheard-of", 10, 1), 0);
        assert_false(goes(fixture.table, "new"));
    }
    for (unsigned i = 0; i < 16; i++)
        assert_false(goes_number(fixture.table, i));
    keyed_tear_down(&fixture);
}

static void zero_options_mean_the_defaults_and_shards_are_a_power_of_two(void **state)
{
    (void)state;
    static const struct {
        size_t max_keys, shards, expected_keys, expected_shards;
    } rows[] = {{0, 0, 1000000, 2048}, {100, 0, 100, 1},     {20000000, 0, 20000000, 16384},
                {0, 1, 1000000, 1},    {0, 16, 1000000, 16}, {0, 17, 1000000, 32}};
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct keyed fixture = {.options = {.max_keys = rows[i].max_keys, .shards = rows[i].shards}};
        keyed_set_up(&fixture, &limit);
        weir_table_stats stats = stats_of(fixture.table);
        assert_int_equal(stats.max_keys, rows[i].expected_keys);
        assert_int_equal(stats.shards, rows[i].expected_shards);
        assert_true(goes(fixture.table, "k"));
        keyed_tear_down(&fixture);
    }
}

/* ---- floods ---- */

/* Twenty times as many new keys as there is room: a drained key stays drained, a key in use is
 * served, and memory does not grow. */
static void flood_of_new_keys_neither_resets_drained_nor_starves_known_keys(void **state)
{
    (void)state;
    enum {
        MAX_KEYS = 10000,
        STRANGERS = 200000
    };
    test_allocator allocator;
    test_allocator_init(&allocator);
    weir_limit limit = bucket(10, 10, WEIR_SECOND);
    struct keyed fixture = {.options = {.max_keys = MAX_KEYS, .allocator = &allocator.allocator}};
    keyed_set_up(&fixture, &limit);
    for (int i = 0; i < 10; i++)
        assert_true(goes(fixture.table, "drained"));
    assert_true(goes(fixture.table, "known") && goes(fixture.table, "known"));
    long bytes_when_full = 0;
    for (unsigned i = 0; i < STRANGERS; i++) {
        (void)goes_number(fixture.table, i);
        if (i % 1000 == 999) {
            advance(fixture.clock, 10 * WEIR_MILLISECOND);
            assert_true(goes(fixture.table, "known")); /* its limit is ten per second */
            advance(fixture.clock, 90 * WEIR_MILLISECOND);
            (void)goes(fixture.table, "drained");
            assert_false(goes(fixture.table, "drained"));
        }
        if (i == 2 * MAX_KEYS)
            bytes_when_full = allocator.live_bytes;
    }
    assert_int_equal(stats_of(fixture.table).keys, MAX_KEYS);
    assert_in_range(allocator.live_bytes, 1, bytes_when_full + bytes_when_full / 10);
    keyed_tear_down(&fixture);
    assert_int_equal(allocator.live, 0);
}

/* ---- expiry ---- */

static void table_keys_never_expire_by_default(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    assert_true(goes(fixture.table, "k"));
    advance(fixture.clock, 1000 * WEIR_DAY);
    assert_int_equal(weir_table_sweep(fixture.table), 0);
    assert_true(known(fixture.table, "k"));
    keyed_tear_down(&fixture);
}

static void table_sweep_forgets_idle_keys_and_keeps_active_and_delayed_ones(void **state)
{
    (void)state;
    weir_limit limit = bucket(100, 1, WEIR_MINUTE);
    struct keyed fixture = {.options = {.ttl_ns = 2 * WEIR_MINUTE}};
    keyed_set_up(&fixture, &limit);
    assert_true(goes(fixture.table, "idle"));
    for (int i = 0; i < 50; i++)
        assert_true(goes(fixture.table, "drained"));
    advance(fixture.clock, 90 * WEIR_SECOND);
    assert_true(goes(fixture.table, "active"));
    advance(fixture.clock, 60 * WEIR_SECOND);
    assert_int_equal(weir_table_sweep(fixture.table), 1);
    assert_false(known(fixture.table, "idle"));
    assert_true(known(fixture.table, "drained"));
    assert_true(known(fixture.table, "active"));
    assert_int_equal(stats_of(fixture.table).removed, 1);
    keyed_tear_down(&fixture);
}

static void janitor_thread_sweeps_a_table_and_stops_with_it(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct keyed fixture = {.options = {.ttl_ns = WEIR_MINUTE, .sweep_every_ns = 30 * WEIR_SECOND}};
    keyed_set_up(&fixture, &limit);
    test_await_waiters(fixture.clock, 1);
    assert_true(goes(fixture.table, "k"));
    for (int i = 0; i < 4; i++) {
        advance(fixture.clock, 30 * WEIR_SECOND);
        test_await_waiters(fixture.clock, 1);
    }
    for (int tries = 0; known(fixture.table, "k"); tries++)
        assert_in_range(tries, 0, 100000000);
    keyed_tear_down(&fixture); /* would block if the thread did not stop */
}

static bool is_of_tenant(void *context, const weir_table_entry *entry)
{
    const char *tenant = context;
    return entry->key_bytes > strlen(tenant) && memcmp(entry->key, tenant, strlen(tenant)) == 0;
}

static void keys_are_removed_by_predicate(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_HOUR);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    char key[24];
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof key, "%s:%d", i % 4 == 0 ? "acme" : "other", i);
        assert_true(goes(fixture.table, key));
    }
    atomic_int finished = 0;
    test_worker worker = {
        .table = fixture.table, .key = "acme:0", .permits = 1, .timeout_ns = WEIR_FOREVER, .finished = &finished};
    test_worker_start(&worker);
    test_await_waiters(fixture.clock, 1);
    assert_int_equal(weir_table_remove_where(fixture.table, is_of_tenant, "acme:"), 250);
    test_worker_join(&worker);
    assert_int_equal(worker.result, WEIR_E_CLOSED);
    assert_int_equal(stats_of(fixture.table).keys, 750);
    assert_true(goes(fixture.table, "acme:0"));
    assert_false(goes(fixture.table, "other:1"));
    assert_int_equal(weir_table_remove_where(fixture.table, NULL, NULL), 0);
    keyed_tear_down(&fixture);
}

static void places_of_removed_keys_are_reused(void **state)
{
    (void)state;
    test_allocator allocator;
    test_allocator_init(&allocator);
    weir_limit limit = bucket(1, 1, WEIR_HOUR);
    struct keyed fixture = {.options = {.shards = 1, .allocator = &allocator.allocator}};
    keyed_set_up(&fixture, &limit);
    for (unsigned i = 0; i < 500; i++)
        assert_true(goes_number(fixture.table, i));
    long bytes = allocator.live_bytes;
    for (unsigned i = 500; i < 50000; i++) {
        char key[24];
        int length = snprintf(key, sizeof key, "stranger-%u", i - 500);
        assert_int_equal(weir_table_remove(fixture.table, key, (size_t)length), 0);
        assert_true(goes_number(fixture.table, i));
    }
    for (unsigned i = 49500; i < 50000; i++)
        assert_false(goes_number(fixture.table, i));
    assert_in_range(allocator.live_bytes, 1, bytes * 2);
    keyed_tear_down(&fixture);
}

/* ---- lists ---- */

static void top_lists_keys_in_the_requested_order(void **state)
{
    (void)state;
    weir_limit limit = bucket(100, 1, WEIR_HOUR);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    char key[24];
    weir_decision decision;
    for (int i = 0; i < 200; i++) {
        int length = snprintf(key, sizeof key, "key-%03d", i);
        assert_int_equal(weir_table_try(fixture.table, key, (size_t)length, (uint32_t)(1 + i % 100), &decision), 0);
        for (int j = 0; j < i % 17; j++)
            assert_int_equal(weir_table_try(fixture.table, key, (size_t)length, 100, &decision), 0);
        advance(fixture.clock, WEIR_SECOND);
    }
    weir_table_entry *entries;
    size_t count;
    assert_int_equal(weir_table_top(fixture.table, WEIR_TOP_DENIED, 20, &entries, &count), 0);
    assert_int_equal(count, 20);
    assert_int_equal(entries[0].denied, 16);
    for (size_t i = 1; i < count; i++)
        assert_true(entries[i].denied <= entries[i - 1].denied);
    weir_table_top_free(fixture.table, entries);
    assert_int_equal(weir_table_top(fixture.table, WEIR_TOP_USED, 1000, &entries, &count), 0);
    assert_int_equal(count, 200);
    for (size_t i = 1; i < count; i++)
        assert_true(entries[i].quota.remaining >= entries[i - 1].quota.remaining);
    weir_table_top_free(fixture.table, entries);
    assert_int_equal(weir_table_top(fixture.table, WEIR_TOP_RECENT, 3, &entries, &count), 0);
    assert_memory_equal(entries[0].key, "key-199", 7);
    assert_memory_equal(entries[2].key, "key-197", 7);
    assert_true(entries[0].constrains);
    weir_table_top_free(fixture.table, entries);
    assert_int_equal(weir_table_top(fixture.table, WEIR_TOP_RECENT, 0, &entries, &count), WEIR_E_INVAL);
    assert_int_equal(weir_table_top(fixture.table, (weir_table_order)9, 1, &entries, &count), WEIR_E_INVAL);
    weir_table_top_free(fixture.table, NULL);
    keyed_tear_down(&fixture);
}

/* A custom algorithm that grants everything and reports no quota. */
static size_t no_bytes(const weir_limit *limit)
{
    (void)limit;
    return 0;
}

static void start_nothing(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit, (void)state, (void)now;
}

static int64_t ask_nothing(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    (void)limit, (void)state, (void)now, (void)permits;
    return 0;
}

static uint32_t take_nothing(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    (void)limit, (void)state, (void)now, (void)permits;
    return 0;
}

static void give_nothing(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark, uint32_t permits)
{
    (void)limit, (void)state, (void)now, (void)at, (void)mark, (void)permits;
}

static void report_nothing(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    (void)limit, (void)state, (void)now;
    *ret_quota = (weir_quota){0};
}

static bool always_fresh(const weir_limit *limit, const void *state, int64_t now)
{
    (void)limit, (void)state, (void)now;
    return true;
}

static void top_lists_keys_whose_algorithm_reports_no_limit(void **state)
{
    (void)state;
    static const weir_algorithm silent = {.size = sizeof silent,
                                          .name = "silent",
                                          .reason = WEIR_REASON_GLOBAL,
                                          .state_bytes = no_bytes,
                                          .start = start_nothing,
                                          .ask = ask_nothing,
                                          .take = take_nothing,
                                          .give = give_nothing,
                                          .peek = report_nothing,
                                          .fresh = always_fresh};
    weir_limit limit;
    assert_int_equal(weir_limit_custom(&limit, &silent, 1, 0, NULL), 0);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    assert_true(goes(fixture.table, "a") && goes(fixture.table, "b"));
    weir_table_entry *entries;
    size_t count;
    assert_int_equal(weir_table_top(fixture.table, WEIR_TOP_USED, 1, &entries, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(entries[0].quota.limit, 0);
    weir_table_top_free(fixture.table, entries);
    keyed_tear_down(&fixture);
}

WEIR_TESTS(test(longest_idle_key_with_a_full_limiter_is_evicted_first),
           test(key_used_twice_keeps_its_place_for_10_s_in_a_flood), test(table_never_has_more_than_max_keys),
           test(zero_options_mean_the_defaults_and_shards_are_a_power_of_two),
           test(full_table_evicts_only_keys_whose_limiter_is_full),
           test(new_keys_share_one_limiter_if_no_key_can_be_evicted), test(key_with_permits_in_flight_is_not_evicted),
           test(full_table_of_permits_in_flight_refuses_new_keys_until_one_is_idle),
           test(release_of_an_unknown_key_frees_no_permit),
           test(flood_of_new_keys_neither_resets_drained_nor_starves_known_keys),
           test(table_keys_never_expire_by_default),
           test(table_sweep_forgets_idle_keys_and_keeps_active_and_delayed_ones),
           test(janitor_thread_sweeps_a_table_and_stops_with_it), test(keys_are_removed_by_predicate),
           test(places_of_removed_keys_are_reused), test(top_lists_keys_in_the_requested_order),
           test(top_lists_keys_whose_algorithm_reports_no_limit))
