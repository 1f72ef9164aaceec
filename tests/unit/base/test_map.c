/* SPDX-License-Identifier: MIT */
/* test_map.c - tests the map from byte strings to pointers. */
#include "base/map.h"
#include "base/rng.h"
#include "lib/alloc.h"
#include "lib/test.h"

struct fixture {
    test_allocator test;
    struct wr_hash_key hash_key;
    struct wr_map map;
    struct wr_rng rng;
};

static void set_up(struct fixture *fixture, size_t max)
{
    uint8_t secret[WR_HASH_SECRET_BYTES];
    test_allocator_init(&fixture->test);
    wr_rng_init(&fixture->rng, weir_test_seed());
    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (uint8_t)wr_rng_next(&fixture->rng);
    wr_hash_key_init(&fixture->hash_key, secret);
    wr_map_init(&fixture->map, &fixture->test.allocator, &fixture->hash_key, max);
}

static void tear_down(struct fixture *fixture)
{
    wr_map_release(&fixture->map);
    assert_int_equal(fixture->test.live_bytes, 0);
}

static void map_finds_a_key_by_its_bytes(void **state)
{
    (void)state;
    struct fixture f;
    char copy[] = "example.org";
    int value;
    set_up(&f, 10);
    assert_null(wr_map_get(&f.map, "example.org", 11));
    assert_int_equal(wr_map_put(&f.map, "example.org", 11, &value, NULL), 0);
    assert_ptr_equal(wr_map_get(&f.map, copy, 11), &value);
    assert_null(wr_map_get(&f.map, copy, 10));
    assert_null(wr_map_get(&f.map, "Example.org", 11));
    tear_down(&f);
}

static void empty_key_and_zero_bytes_are_valid_map_keys(void **state)
{
    (void)state;
    struct fixture f;
    int values[4];
    set_up(&f, 10);
    assert_int_equal(wr_map_put(&f.map, NULL, 0, &values[0], NULL), 0);
    assert_int_equal(wr_map_put(&f.map, "\0", 1, &values[1], NULL), 0);
    assert_int_equal(wr_map_put(&f.map, "\0\0", 2, &values[2], NULL), 0);
    assert_int_equal(wr_map_put(&f.map, "a\0b", 3, &values[3], NULL), 0);
    assert_ptr_equal(wr_map_get(&f.map, "", 0), &values[0]);
    assert_ptr_equal(wr_map_get(&f.map, "\0", 1), &values[1]);
    assert_ptr_equal(wr_map_get(&f.map, "\0\0", 2), &values[2]);
    assert_ptr_equal(wr_map_get(&f.map, "a\0b", 3), &values[3]);
    assert_null(wr_map_get(&f.map, "a\0c", 3));
    tear_down(&f);
}

static void map_put_replaces_key_and_value_and_returns_the_old_value(void **state)
{
    (void)state;
    struct fixture f;
    char first[] = "key", second[] = "key";
    int a, b;
    void *old = &a;
    set_up(&f, 1);
    assert_int_equal(wr_map_put(&f.map, first, 3, &a, &old), 0);
    assert_null(old);
    assert_int_equal(wr_map_put(&f.map, second, 3, &b, &old), 0); /* works in a full map, too */
    assert_ptr_equal(old, &a);
    first[0] = 'X'; /* the old key is no longer used */
    assert_ptr_equal(wr_map_get(&f.map, "key", 3), &b);
    assert_int_equal(f.map.count, 1);
    tear_down(&f);
}

static void map_remove_returns_the_value_once(void **state)
{
    (void)state;
    struct fixture f;
    int a;
    set_up(&f, 10);
    assert_null(wr_map_remove(&f.map, "key", 3));
    assert_int_equal(wr_map_put(&f.map, "key", 3, &a, NULL), 0);
    assert_null(wr_map_remove(&f.map, "kez", 3));
    assert_ptr_equal(wr_map_remove(&f.map, "key", 3), &a);
    assert_null(wr_map_remove(&f.map, "key", 3));
    assert_null(wr_map_get(&f.map, "key", 3));
    tear_down(&f);
}

static void full_map_refuses_new_keys_only(void **state)
{
    (void)state;
    struct fixture f;
    static char keys[101];
    void *old = &f;
    for (size_t max = 1; max <= 100; max += 11) {
        set_up(&f, max);
        for (size_t i = 0; i <= 100; i++)
            keys[i] = (char)i;
        for (size_t i = 0; i < max; i++)
            assert_int_equal(wr_map_put(&f.map, &keys[i], 1, &keys[i], NULL), 0);
        assert_int_equal(wr_map_put(&f.map, &keys[max], 1, &keys[max], &old), WEIR_E_FULL);
        assert_ptr_equal(old, &f);
        assert_null(wr_map_get(&f.map, &keys[max], 1));
        assert_int_equal(wr_map_put(&f.map, &keys[0], 1, &keys[1], NULL), 0);
        assert_ptr_equal(wr_map_remove(&f.map, &keys[0], 1), &keys[1]);
        assert_int_equal(wr_map_put(&f.map, &keys[max], 1, &keys[max], NULL), 0);
        assert_true(wr_map_ok(&f.map));
        tear_down(&f);
    }
}

static void map_iteration_visits_every_key_once(void **state)
{
    (void)state;
    struct fixture f;
    enum {
        KEYS = 1000
    };
    static uint32_t keys[KEYS];
    static unsigned seen[KEYS];
    size_t cursor = 0;
    const struct wr_map_slot *slot;
    set_up(&f, KEYS);
    assert_null(wr_map_next(&f.map, &cursor));
    for (uint32_t i = 0; i < KEYS; i++) {
        keys[i] = i;
        seen[i] = 0;
        assert_int_equal(wr_map_put(&f.map, &keys[i], sizeof keys[i], &keys[i], NULL), 0);
    }
    for (cursor = 0; (slot = wr_map_next(&f.map, &cursor)) != NULL;) {
        assert_ptr_equal(slot->key, slot->value);
        assert_int_equal(slot->key_bytes, sizeof keys[0]);
        seen[(uint32_t *)slot->value - keys]++;
    }
    for (uint32_t i = 0; i < KEYS; i++)
        assert_int_equal(seen[i], 1);
    tear_down(&f);
}

/* While the map grows, a key may be in either table. Lookup, replacement, removal and iteration
 * find it in both. */
static void growing_map_moves_a_few_keys_per_call(void **state)
{
    (void)state;
    struct fixture f;
    enum {
        KEYS = 100000,
        MOST = 8 /* most keys moved by one call */
    };
    static uint32_t keys[KEYS];
    size_t growths = 0;
    set_up(&f, KEYS);
    for (uint32_t i = 0; i < KEYS; i++) {
        size_t room = f.map.now.room, moved = f.map.moved;
        keys[i] = i;
        assert_int_equal(wr_map_put(&f.map, &keys[i], sizeof keys[i], &keys[i], NULL), 0);
        bool has_grown = f.map.now.room != room;
        growths += has_grown;
        assert_in_range(f.map.moved, has_grown ? 0 : moved, (has_grown ? 0 : moved) + MOST);
        uint32_t other = (uint32_t)wr_rng_below(&f.rng, i + 1);
        assert_ptr_equal(wr_map_get(&f.map, &other, sizeof other), &keys[other]);
    }
    assert_int_equal(growths, 16); /* from 8 to 262144 slots */
    assert_true(wr_map_ok(&f.map));
    tear_down(&f);
}

/* Compares with an array that holds the value of each number, or NULL. The map fills for a while,
 * then empties. */
static void random_map_operations_agree_with_an_array(void **state)
{
    (void)state;
    struct fixture f;
    enum {
        KEYS = 300,
        MAX = 200
    };
    static uint16_t keys[KEYS];
    static void *model[KEYS];
    size_t count = 0;
    set_up(&f, MAX);
    memset(model, 0, sizeof model);
    for (uint16_t i = 0; i < KEYS; i++)
        keys[i] = i;
    for (int step = 0; step < 200000; step++) {
        uint16_t i = (uint16_t)wr_rng_below(&f.rng, KEYS);
        bool filling = step / 3000 % 2 == 0;
        if (wr_rng_below(&f.rng, 4) < (filling ? 3 : 1)) {
            void *value = &keys[wr_rng_below(&f.rng, KEYS)], *old = NULL;
            int expected = model[i] == NULL && count == MAX ? WEIR_E_FULL : 0;
            assert_int_equal(wr_map_put(&f.map, &keys[i], sizeof i, value, &old), expected);
            if (expected == 0) {
                assert_ptr_equal(old, model[i]);
                count += model[i] == NULL;
                model[i] = value;
            }
        } else {
            assert_ptr_equal(wr_map_remove(&f.map, &i, sizeof i), model[i]);
            count -= model[i] != NULL;
            model[i] = NULL;
        }
        uint16_t other = (uint16_t)wr_rng_below(&f.rng, KEYS);
        assert_ptr_equal(wr_map_get(&f.map, &other, sizeof other), model[other]);
        assert_int_equal(f.map.count, count);
        assert_true(step % 16 != 0 || wr_map_ok(&f.map));
    }
    tear_down(&f);
}

/* Fails the first, second, third ... allocation until the whole test succeeds. */
static void failed_allocation_leaves_the_map_unchanged(void **state)
{
    (void)state;
    struct fixture f;
    enum {
        KEYS = 100
    };
    static uint8_t keys[KEYS];
    size_t done = 0;
    long n = 0;
    for (uint8_t i = 0; i < KEYS; i++)
        keys[i] = i;
    while (done < KEYS) {
        set_up(&f, KEYS);
        f.test.fail_at = ++n;
        for (done = 0; done < KEYS; done++) {
            int error = wr_map_put(&f.map, &keys[done], 1, &keys[done], NULL);
            if (error == 0)
                continue;
            assert_int_equal(error, WEIR_E_NOMEM);
            break;
        }
        assert_int_equal(f.map.count, done);
        for (size_t i = 0; i < KEYS; i++)
            assert_ptr_equal(wr_map_get(&f.map, &keys[i], 1), i < done ? &keys[i] : NULL);
        if (done < KEYS)
            /* memory is available now */
            assert_int_equal(wr_map_put(&f.map, &keys[done], 1, &keys[done], NULL), 0);
        assert_true(wr_map_ok(&f.map));
        tear_down(&f);
    }
    assert_int_equal(n, 7); /* 8, 16, 32, 64, 128, 256 slots, and one that was not reached */
}

/* Returns the largest distance of a key from its home slot. */
static size_t longest_probe(const struct wr_map *map)
{
    size_t longest = 0, cursor = 0;
    const struct wr_map_slot *slot;
    assert_int_equal(map->old.room, 0); /* all keys are moved */
    while ((slot = wr_map_next(map, &cursor)) != NULL) {
        size_t from_home = (cursor - 1 - (size_t)slot->hash) & (map->now.room - 1);
        longest = from_home > longest ? from_home : longest;
    }
    return longest;
}

/* J4: sequential numbers, and numbers with equal low bits, cluster under weak hashes. Random keys
 * at 3/4 load have a longest probe of some hundred slots; clustering would make it tens of
 * thousands. */
static void sequential_and_regular_keys_do_not_cluster(void **state)
{
    (void)state;
    enum {
        KEYS = 98304
    };
    static uint64_t keys[KEYS];
    static const unsigned shifts[] = {0, 8, 20, 40};
    struct fixture f;
    for (size_t s = 0; s < sizeof shifts / sizeof shifts[0]; s++) {
        set_up(&f, KEYS);
        for (uint64_t i = 0; i < KEYS; i++) {
            keys[i] = i << shifts[s];
            assert_int_equal(wr_map_put(&f.map, &keys[i], sizeof keys[i], &keys[i], NULL), 0);
        }
        assert_int_equal(f.map.now.room, 131072);
        assert_in_range(longest_probe(&f.map), 0, 1000);
        tear_down(&f);
    }
}

/* J4: keys that an attacker found to share a bucket under one secret are random under ours. */
static void keys_chosen_against_another_secret_do_not_cluster(void **state)
{
    (void)state;
    enum {
        KEYS = 3000
    };
    static uint64_t keys[KEYS];
    struct fixture f;
    struct wr_hash_key theirs;
    uint8_t secret[WR_HASH_SECRET_BYTES] = {1, 2, 3};
    wr_hash_key_init(&theirs, secret);
    set_up(&f, KEYS);
    size_t found = 0;
    for (uint64_t i = 0; found < KEYS; i++) {
        if (wr_hash(&theirs, &i, sizeof i) % 256 != 0)
            continue;
        keys[found] = i;
        assert_int_equal(wr_map_put(&f.map, &keys[found], sizeof i, &keys[found], NULL), 0);
        found++;
    }
    assert_in_range(longest_probe(&f.map), 0, 300);
    tear_down(&f);
}

static void inserting_and_removing_keys_does_not_grow_the_map(void **state)
{
    (void)state;
    struct fixture f;
    static uint32_t keys[16];
    set_up(&f, 16);
    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t *key = &keys[i % 16];
        if (i >= 16)
            assert_ptr_equal(wr_map_remove(&f.map, key, sizeof *key), key);
        *key = i;
        assert_int_equal(wr_map_put(&f.map, key, sizeof *key, key, NULL), 0);
    }
    assert_int_equal(f.map.count, 16);
    assert_int_equal(f.map.now.room, 32);
    assert_true(wr_map_ok(&f.map));
    tear_down(&f);
}

WEIR_TESTS(test(map_finds_a_key_by_its_bytes), test(empty_key_and_zero_bytes_are_valid_map_keys),
           test(map_put_replaces_key_and_value_and_returns_the_old_value), test(map_remove_returns_the_value_once),
           test(full_map_refuses_new_keys_only), test(map_iteration_visits_every_key_once),
           test(growing_map_moves_a_few_keys_per_call), test(random_map_operations_agree_with_an_array),
           test(failed_allocation_leaves_the_map_unchanged), test(sequential_and_regular_keys_do_not_cluster),
           test(keys_chosen_against_another_secret_do_not_cluster),
           test(inserting_and_removing_keys_does_not_grow_the_map))
