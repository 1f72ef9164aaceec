/* SPDX-License-Identifier: MIT */
/* test_blocks.c - tests of the memory of a table's shards: bytes per key, and no fragmentation
 * while it grows (N1-6). */
#include "limiter/table/blocks.h"

#include <malloc.h>

#include "lib/alloc.h"
#include "lib/rig.h"

#define KEYS 250000
#define SHARDS 512 /* keys per shard as in a table of a million keys */
#define KEYS_BETWEEN 100

#define OTHER_BYTES 40
#define OTHERS_BYTES (sizeof between / sizeof between[0] * OTHER_BYTES)

static void *volatile between[KEYS / KEYS_BETWEEN + 1];

/* Adds the keys, of 24 bytes each. With `with_others`, allocates other objects in the same heap
 * meanwhile. */
static void fill(weir_table *table, bool with_others)
{
    char key[40];
    weir_decision decision;
    for (size_t i = 0; i < KEYS; i++) {
        int bytes = snprintf(key, sizeof key, "key-%020zu", i);
        assert_int_equal(weir_table_try(table, key, (size_t)bytes, 1, &decision), 0);
        if (with_others && i % KEYS_BETWEEN == 0)
            between[i / KEYS_BETWEEN] = malloc(OTHER_BYTES);
    }
}

static void key_of_24_bytes_takes_at_most_90_bytes(void **state)
{
    (void)state;
    test_allocator allocator;
    test_allocator_init(&allocator);
    weir_limit limit = bucket(2, 1, WEIR_HOUR);
    struct keyed fixture = {.options = {.allocator = &allocator.allocator, .max_keys = KEYS, .shards = SHARDS}};
    keyed_set_up(&fixture, &limit);
    fill(fixture.table, false);
    assert_int_equal(stats_of(fixture.table).keys, KEYS);
    assert_int_equal(stats_of(fixture.table).memory_bytes, allocator.live_bytes);
    assert_in_range(allocator.live_bytes / KEYS, 80, 90);
    keyed_tear_down(&fixture);
    assert_int_equal(allocator.live_bytes, 0);
}

/* heap_bytes returns what malloc has from the kernel, used_bytes the part in use. Sanitizers
 * report 0. */
static size_t heap_bytes(void)
{
#ifdef __GLIBC__
    return mallinfo2().arena;
#else
    skip();
    return 0;
#endif
}

static size_t used_bytes(void)
{
#ifdef __GLIBC__
    return mallinfo2().uordblks;
#else
    skip();
    return 0;
#endif
}

static void growing_table_does_not_fragment_the_heap(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 1, WEIR_HOUR);
    struct keyed fixture = {.options = {.max_keys = KEYS, .shards = SHARDS}};
    keyed_set_up(&fixture, &limit);
    size_t before_bytes = heap_bytes();
    fill(fixture.table, true);
    /* 48 bytes for each other object, and what glibc requests in advance. */
    assert_in_range(heap_bytes() - before_bytes, 0, OTHERS_BYTES + OTHERS_BYTES / 4 + ((size_t)1 << 20));
    for (size_t i = 0; i < sizeof between / sizeof between[0]; i++)
        free(between[i]);
    keyed_tear_down(&fixture);
}

static void small_blocks_share_a_chunk_that_is_freed_with_the_last_one(void **state)
{
    (void)state;
    enum {
        COUNT = 100
    };
    test_allocator allocator;
    struct wr_blocks blocks;
    struct wr_chunk *chunks[COUNT];
    unsigned char *taken[COUNT];
    size_t room = wr_block_room(1000);
    test_allocator_init(&allocator);
    wr_blocks_init(&blocks, &allocator.allocator, COUNT);
    assert_int_equal(room, 1024);
    for (size_t i = 0; i < COUNT; i++) {
        taken[i] = wr_block_take(&blocks, room, &chunks[i]);
        memset(taken[i], (int)i, room);
    }
    assert_in_range(allocator.live, 2, 5);
    assert_int_equal(atomic_load(&blocks.bytes), allocator.live_bytes);
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t at = 0; at < room; at += 64)
            assert_int_equal(taken[i][at], i);
        assert_true(allocator.live > 0);
        wr_block_give(&blocks, taken[i], room, chunks[i]);
    }
    assert_int_equal(allocator.live, 0);
    assert_int_equal(atomic_load(&blocks.bytes), 0);
}

/* Large chunks are rarely empty, and small chunks need many calls of the allocator. */
static void chunk_holds_up_to_32_blocks_in_64_kilobytes(void **state)
{
    (void)state;
    for (size_t room = WR_CACHE_LINE_BYTES; room < WR_BLOCK_SMALL_BYTES; room += WR_CACHE_LINE_BYTES) {
        test_allocator allocator;
        struct wr_blocks blocks;
        struct wr_chunk *chunks[64];
        void *taken[64];
        size_t count = 0, fit = ((size_t)64 << 10) / room;
        test_allocator_init(&allocator);
        wr_blocks_init(&blocks, &allocator.allocator, 1000);
        do
            taken[count] = wr_block_take(&blocks, room, &chunks[count]);
        while (allocator.live == 1 && ++count < 64);
        /* The header of a chunk takes the place of one block at most. */
        assert_in_range(count, fit <= 32 ? fit - 1 : 32, fit <= 32 ? fit : 32);
        for (size_t i = 0; i <= count; i++)
            wr_block_give(&blocks, taken[i], room, chunks[i]);
        assert_int_equal(allocator.live_bytes, 0);
    }
}

static void free_place_in_a_chunk_is_used_before_a_new_chunk(void **state)
{
    (void)state;
    enum {
        COUNT = 32
    };
    test_allocator allocator;
    struct wr_blocks blocks;
    struct wr_chunk *chunks[COUNT], *chunk;
    void *taken[COUNT];
    size_t room = wr_block_room(1024);
    test_allocator_init(&allocator);
    wr_blocks_init(&blocks, &allocator.allocator, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        taken[i] = wr_block_take(&blocks, room, &chunks[i]);
    assert_int_equal(allocator.live, 1);
    wr_block_give(&blocks, taken[7], room, chunks[7]);
    assert_ptr_equal(wr_block_take(&blocks, room, &chunk), taken[7]);
    assert_int_equal(allocator.live, 1);
    for (size_t i = 0; i < COUNT; i++)
        wr_block_give(&blocks, taken[i], room, chunks[i]);
    assert_int_equal(allocator.live, 0);
}

static void large_blocks_are_whole_separate_pages(void **state)
{
    (void)state;
    struct wr_blocks blocks;
    struct wr_chunk *chunk;
    size_t before_bytes = used_bytes();
    wr_blocks_init(&blocks, weir_allocator_system(), 1);
    size_t room = wr_block_room(17000);
    assert_int_equal(room, 5 * WR_BLOCK_PAGE_BYTES);
    void *block = wr_block_take(&blocks, room, &chunk);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % WR_BLOCK_PAGE_BYTES, 0);
    assert_int_equal(used_bytes(), before_bytes);
    wr_block_give(&blocks, block, room, chunk);
}

WEIR_TESTS(test(chunk_holds_up_to_32_blocks_in_64_kilobytes), test(key_of_24_bytes_takes_at_most_90_bytes),
           test(growing_table_does_not_fragment_the_heap),
           test(small_blocks_share_a_chunk_that_is_freed_with_the_last_one),
           test(free_place_in_a_chunk_is_used_before_a_new_chunk), test(large_blocks_are_whole_separate_pages))
