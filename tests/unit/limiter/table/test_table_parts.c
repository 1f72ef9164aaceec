/* SPDX-License-Identifier: MIT */
/* test_table_parts.c - tests of several keys in one decision, and of internals of a table. */
#include "lib/alloc.h"
#include "lib/rig.h"

#include "limiter/table/table.h"

#define KEY(text) .key = (text), .key_bytes = sizeof(text) - 1

/* ---- several keys at once ---- */

static void invalid_parts_are_refused_at_any_position(void **state)
{
    (void)state;
    weir_limit limit = bucket(2000, 1, WEIR_SECOND);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    weir_decision decision;
    weir_table *table = fixture.table;
    const weir_table_part good = {
        .table = table, KEY("k"), .permits = 1500}; /* more permits than a key may have bytes */
    const weir_table_part bad[] = {{.table = NULL, KEY("k"), .permits = 1},
                                   {.table = table, .key = NULL, .key_bytes = 1, .permits = 1},
                                   {.table = table, KEY("k"), .permits = 0},
                                   {.table = table, .key = "k", .key_bytes = WEIR_KEY_MAX + 1, .permits = 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (size_t at = 0; at < 3; at++) {
            weir_table_part parts[] = {good, good, good};
            parts[at] = bad[i];
            assert_int_equal(weir_table_try_all(parts, 3, &decision, NULL), WEIR_E_INVAL);
        }
    weir_table_part part = good;
    assert_int_equal(weir_table_try_all(&part, 1, NULL, NULL), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "ret_decision"));
    assert_int_equal(stats_of(table).keys, 0);
    assert_int_equal(weir_table_try_all(&part, 1, &decision, NULL), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_int_equal(remaining(table, "k"), 500);
    keyed_tear_down(&fixture);
}

/* Adding the second key may move the first, which is then looked up again. */
static void parts_charge_their_keys_when_the_shard_grows_meanwhile(void **state)
{
    (void)state;
    enum {
        PAIRS = 2000
    };
    weir_limit limit = bucket(10, 1, WEIR_HOUR);
    struct keyed fixture = {.options = {.shards = 1}};
    keyed_set_up(&fixture, &limit);
    weir_decision decision;
    char one[KEY_BYTES], two[KEY_BYTES];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < PAIRS; i++) {
            int one_bytes = snprintf(one, sizeof one, "one:%d", i), two_bytes = snprintf(two, sizeof two, "two:%d", i);
            weir_table_part parts[] = {
                {.table = fixture.table, .key = one, .key_bytes = (size_t)one_bytes, .permits = 3},
                {.table = fixture.table, .key = two, .key_bytes = (size_t)two_bytes, .permits = 2}};
            if (round == 0)
                assert_int_equal(weir_table_try_all(parts, 2, &decision, NULL), 0);
            assert_int_equal(remaining(fixture.table, one), 7);
            assert_int_equal(remaining(fixture.table, two), 8);
        }
    keyed_tear_down(&fixture);
}

struct seen {
    weir_table *table;
    int calls;
    int locked;
};

/* Is called when a key is added. Counts the calls during which the shards of both keys are
 * locked. */
static uint32_t look_at_locks(void *context, const char *key, size_t key_bytes)
{
    struct seen *seen = context;
    static const char *const keys[] = {"a", "b"};
    int locked = 0;
    (void)key, (void)key_bytes;
    for (int i = 0; i < 2; i++) {
        struct wr_key_query query = wr_table_query(seen->table, keys[i], 1, 1, 0);
        locked += atomic_load(&wr_table_shard(seen->table, query.hash)->lock.taken) != 0;
    }
    seen->calls++;
    seen->locked += locked == 2;
    return 0;
}

static void parts_are_decided_with_all_their_shards_locked(void **state)
{
    (void)state;
    weir_limit limit = bucket(10, 1, WEIR_HOUR);
    /* Each table has a secret of its own, which puts the keys into other shards. */
    for (int round = 0; round < 20; round++) {
        struct seen seen = {0};
        struct keyed fixture = {.options = {.shards = 64, .plan_of = look_at_locks, .plan_context = &seen}};
        keyed_set_up(&fixture, &limit);
        seen.table = fixture.table;
        weir_table_part parts[] = {{.table = fixture.table, KEY("a"), .permits = 1},
                                   {.table = fixture.table, KEY("b"), .permits = 1}};
        weir_decision decision;
        assert_int_equal(weir_table_try_all(parts, 2, &decision, NULL), 0);
        assert_int_equal(seen.calls, 2);
        assert_int_equal(seen.locked, 2);
        for (size_t i = 0; i < fixture.table->shard_count; i++)
            assert_int_equal(atomic_load(&fixture.table->shards[i].lock.taken), 0);
        keyed_tear_down(&fixture);
    }
}

static void refused_part_is_counted_for_its_key_alone(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 1, WEIR_HOUR);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    weir_decision decision;
    assert_true(takes(fixture.table, "drained", 2));
    weir_table_part parts[] = {{.table = fixture.table, KEY("full"), .permits = 1},
                               {.table = fixture.table, KEY("drained"), .permits = 1}};
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_table_try_all(parts, 2, &decision, NULL), 0);
    weir_table_entry *top;
    size_t count;
    assert_int_equal(weir_table_top(fixture.table, WEIR_TOP_DENIED, 10, &top, &count), 0);
    assert_int_equal(count, 2);
    assert_true(top[0].key_bytes == 7 && top[0].denied == 3);
    assert_true(top[1].key_bytes == 4 && top[1].denied == 0);
    weir_table_top_free(fixture.table, top);
    keyed_tear_down(&fixture);
}

/* A release by a key without an entry would not tell which permits it ends. */
static void part_without_a_place_is_refused_by_a_limit_in_flight(void **state)
{
    (void)state;
    weir_limit limit = concurrency(2);
    struct keyed fixture = {.options = {.max_keys = 1}};
    keyed_set_up(&fixture, &limit);
    weir_decision decision;
    size_t part;
    assert_true(takes(fixture.table, "known", 1));
    for (int i = 0; i < 3; i++) {
        weir_table_part parts[] = {{.table = fixture.table, KEY("known"), .permits = 1},
                                   {.table = fixture.table, KEY("stranger"), .permits = 1}};
        assert_int_equal(weir_table_try_all(parts, 2, &decision, &part), 0);
        assert_int_equal(decision.verdict, WEIR_WAIT);
        assert_int_equal(decision.reason, WEIR_REASON_CONCURRENCY);
        assert_int_equal(part, 1);
        assert_int_equal(remaining(fixture.table, "known"), 1);
    }
    keyed_tear_down(&fixture);
}

/* ---- a key store ---- */

static void key_store_passes_key_and_permits_to_the_table_unchanged(void **state)
{
    (void)state;
    weir_limit limit = bucket(1000, 1, WEIR_HOUR);
    struct keyed fixture = {.options = {.max_keys = 1}};
    keyed_set_up(&fixture, &limit);
    weir_key_store store = weir_table_key_store(fixture.table);
    weir_decision decision;
    weir_receipt receipt;
    weir_quota quota = {.limit = 77};
    assert_int_equal(store.attempt(store.context, "alice", 5, 700, &decision), 0);
    assert_int_equal(remaining(fixture.table, "alice"), 300);
    assert_int_equal(store.reserve_peek(store.context, "alice", 5, 100, &receipt, &decision, &quota), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_true(quota.limit == 1000 && quota.remaining == 200);
    assert_int_equal(store.settle(store.context, "alice", 5, &receipt, 40), 0);
    assert_int_equal(remaining(fixture.table, "alice"), 260);
    /* no room */
    assert_int_equal(store.reserve_peek(store.context, "bob", 3, 1, &receipt, &decision, &quota), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_true(quota.limit == 0 && quota.remaining == 0); /* the shared limiter reports no quota */
    assert_int_equal(store.reserve_peek(store.context, "", 0, 1, &receipt, &decision, &quota), WEIR_E_INVAL);
    weir_table_close(fixture.table);
    quota.limit = 77;
    assert_int_equal(store.reserve_peek(store.context, "alice", 5, 1, &receipt, &decision, &quota), WEIR_E_CLOSED);
    assert_int_equal(quota.limit, 77);
    store.free(store.context);
    weir_clock_fake_free(fixture.clock);
}

/* Permits of a forgotten key return neither to another key nor to the shared limiter. */
static void receipt_of_a_removed_key_returns_nothing_to_the_shared_limiter(void **state)
{
    (void)state;
    weir_limit limit = bucket(5, 1, WEIR_HOUR);
    struct keyed fixture = {.options = {.max_keys = 1}};
    keyed_set_up(&fixture, &limit);
    weir_decision decision;
    weir_receipt receipt;
    assert_int_equal(weir_table_reserve(fixture.table, "k", 1, 5, &receipt, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_int_equal(weir_table_remove(fixture.table, "k", 1), 0);
    assert_true(takes(fixture.table, "other", 1));
    assert_true(takes(fixture.table, "stranger", 5)); /* all of the shared limiter */
    assert_int_equal(weir_table_settle(fixture.table, "k", 1, &receipt, 0), 0);
    assert_false(takes(fixture.table, "stranger", 1));
    keyed_tear_down(&fixture);
}

static void settle_counts_as_use_of_the_key(void **state)
{
    (void)state;
    weir_limit limit = bucket(5, 1, WEIR_HOUR);
    struct keyed fixture = {0};
    keyed_set_up(&fixture, &limit);
    weir_decision decision;
    weir_receipt receipt;
    weir_table_entry *top;
    size_t count;
    assert_int_equal(weir_table_reserve(fixture.table, "k", 1, 5, &receipt, &decision), 0);
    advance(fixture.clock, WEIR_MINUTE);
    assert_int_equal(weir_table_top(fixture.table, WEIR_TOP_RECENT, 1, &top, &count), 0);
    assert_true(top[0].idle_ns > 59 * WEIR_SECOND);
    weir_table_top_free(fixture.table, top);
    assert_int_equal(weir_table_settle(fixture.table, "k", 1, &receipt, 0), 0);
    assert_int_equal(weir_table_top(fixture.table, WEIR_TOP_RECENT, 1, &top, &count), 0);
    assert_int_equal(top[0].idle_ns, 0);
    weir_table_top_free(fixture.table, top);
    assert_int_equal(weir_table_stats_get(NULL, NULL), WEIR_E_INVAL);
    keyed_tear_down(&fixture);
}

/* ---- eviction ---- */

/* A key that was used twice is known. After ten idle seconds it may be evicted, but keys used once
 * are evicted first. */
static void key_used_once_is_evicted_before_a_known_key_that_is_idle_longer(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 2, WEIR_SECOND);
    struct keyed fixture = {.options = {.max_keys = 8, .shards = 1}};
    keyed_set_up(&fixture, &limit);
    char key[KEY_BYTES];
    for (int i = 0; i < 14; i++) {
        (void)snprintf(key, sizeof key, "known:%d", i % 7);
        assert_true(goes(fixture.table, key));
    }
    advance(fixture.clock, 20 * WEIR_SECOND);
    assert_true(goes(fixture.table, "stranger"));
    for (int i = 0; i < 20; i++) {
        advance(fixture.clock, 2 * WEIR_SECOND);
        (void)snprintf(key, sizeof key, "stranger:%d", i);
        assert_true(goes(fixture.table, key));
        for (int k = 0; k < 7; k++) {
            (void)snprintf(key, sizeof key, "known:%d", k);
            assert_true(known(fixture.table, key));
        }
    }
    assert_int_equal(stats_of(fixture.table).evicted, 20);
    keyed_tear_down(&fixture);
}

/* ---- internals ---- */

/* Clients choose the keys, so their shards must not be predictable. */
static void each_table_hashes_keys_with_its_own_secret(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct wr_hash_key zero = {0};
    struct keyed one = {0}, two = {0};
    keyed_set_up(&one, &limit);
    keyed_set_up(&two, &limit);
    assert_true(memcmp(&one.table->hash_key, &two.table->hash_key, sizeof zero) != 0);
    assert_true(wr_table_query(one.table, "k", 1, 1, 0).hash != wr_table_query(two.table, "k", 1, 1, 0).hash);
    keyed_tear_down(&one);
    keyed_tear_down(&two);
}

/* With a wrong count a shard would be rebuilt too early or too late. */
static void removed_places_are_counted_exactly(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_HOUR);
    struct keyed fixture = {.options = {.shards = 1}};
    keyed_set_up(&fixture, &limit);
    const struct wr_shard *shard = &fixture.table->shards[0];
    char key[KEY_BYTES];
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        assert_true(goes(fixture.table, key));
        int length = snprintf(key, sizeof key, "k%d", i - 200);
        (void)weir_table_remove(fixture.table, key, (size_t)length);
        uint32_t removed = 0, live = 0;
        for (size_t slot = 0; slot < (size_t)shard->block.groups * WR_GROUP_SLOTS; slot++) {
            removed += shard->block.control[slot] == WR_CONTROL_REMOVED;
            live += shard->block.control[slot] > WR_CONTROL_REMOVED;
        }
        assert_int_equal(shard->removed, removed);
        assert_int_equal(shard->live, live);
    }
    keyed_tear_down(&fixture);
}

/* The key uses all bytes of the cache lines that the header and the state leave. */
static void table_entry_has_no_gap_between_its_parts(void **state)
{
    (void)state;
    weir_limit limits[2] = {bucket(1, 1, WEIR_SECOND), concurrency(1)};
    struct keyed fixture = {0};
    keyed_set_up(&fixture, limits);
    const struct wr_layout *layout = &fixture.table->layout;
    uint32_t state_bytes = fixture.table->state_bytes;
    assert_true(layout->key_offset >= sizeof(struct wr_entry) + state_bytes);
    assert_true(layout->key_offset < sizeof(struct wr_entry) + state_bytes + 8);
    assert_int_equal(layout->entry_bytes % WR_CACHE_LINE_BYTES, 0);
    assert_int_equal(layout->inline_bytes, layout->entry_bytes - layout->key_offset);
    keyed_tear_down(&fixture);
}

WEIR_TESTS(test(invalid_parts_are_refused_at_any_position),
           test(parts_charge_their_keys_when_the_shard_grows_meanwhile),
           test(parts_are_decided_with_all_their_shards_locked), test(refused_part_is_counted_for_its_key_alone),
           test(part_without_a_place_is_refused_by_a_limit_in_flight),
           test(key_store_passes_key_and_permits_to_the_table_unchanged),
           test(receipt_of_a_removed_key_returns_nothing_to_the_shared_limiter), test(settle_counts_as_use_of_the_key),
           test(key_used_once_is_evicted_before_a_known_key_that_is_idle_longer),
           test(each_table_hashes_keys_with_its_own_secret), test(removed_places_are_counted_exactly),
           test(table_entry_has_no_gap_between_its_parts))
