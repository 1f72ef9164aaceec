/* SPDX-License-Identifier: MIT */
/* test_parts.c - tests lists, the pool of tasks, the set of fingerprints, and the table of
 * queries. */
#include "rig.h"

#include "base/list.h"
#include "base/rng.h"
#include "core/plan/known_urls.h"
#include "core/plan/pool.h"
#include "core/plan/trap.h"

static void list_returns_entries_in_order_after_removals(void **state)
{
    (void)state;
    struct wr_list list = {NULL, NULL};
    struct wr_list_link links[5] = {{NULL, NULL, NULL}};
    for (int i = 0; i < 5; i++)
        wr_list_push(&list, &links[i]);
    wr_list_push(&list, &links[0]); /* is in the list already */
    wr_list_remove(&links[2]);
    wr_list_remove(&links[4]);
    wr_list_remove(&links[2]); /* is no longer in the list */
    static const int expected[] = {0, 1, 3};
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(list.first, &links[expected[i]]);
        wr_list_remove(list.first);
    }
    assert_null(list.first);
    assert_null(list.last);
}

static void pool_keeps_texts_of_every_length(void **state)
{
    (void)state;
    static char text[WR_CELL_TEXT * 4], back[sizeof text];
    test_allocator allocator;
    struct wr_pool pool;
    uint32_t number;
    test_allocator_init(&allocator);
    assert_int_equal(wr_pool_init(&pool, &allocator.allocator, 10, 1 << 16), 0);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 26);
    for (size_t bytes = 0; bytes <= sizeof text; bytes++) {
        assert_int_equal(wr_pool_take(&pool, (struct wr_span){text, bytes}, &number), 0);
        wr_pool_text(&pool, wr_task_at(&pool, number), back);
        assert_memory_equal(back, text, bytes);
        assert_int_equal(pool.used_cells, (bytes + WR_CELL_TEXT - 1) / WR_CELL_TEXT);
        wr_pool_give(&pool, number);
        assert_int_equal(pool.used_cells + pool.used, 0);
    }
    wr_pool_release(&pool);
    assert_int_equal(allocator.live, 0);
}

static void full_pool_refuses_tasks_and_loses_none(void **state)
{
    (void)state;
    static char text[8000];
    static uint32_t numbers[2048];
    test_allocator allocator;
    struct wr_pool pool;
    uint32_t count = 0;
    test_allocator_init(&allocator);
    memset(text, 'x', sizeof text);
    assert_int_equal(wr_pool_init(&pool, &allocator.allocator, 2048, 1 << 20), 0);
    while (wr_pool_take(&pool, (struct wr_span){text, sizeof text}, &numbers[count]) == 0)
        count++;
    assert_true(count >= 130 && count < 150);
    uint32_t cells = pool.used_cells;
    assert_int_equal(wr_pool_take(&pool, (struct wr_span){text, sizeof text}, &numbers[count]), WEIR_E_FULL);
    assert_int_equal(pool.used_cells, cells);
    assert_int_equal(pool.used, count);
    wr_pool_give(&pool, numbers[0]);
    assert_int_equal(wr_pool_take(&pool, (struct wr_span){text, sizeof text}, &numbers[0]), 0);
    wr_pool_release(&pool);
    assert_int_equal(allocator.live, 0);
}

static void pool_size_is_rounded_up_to_whole_blocks(void **state)
{
    (void)state;
    test_allocator allocator;
    struct wr_pool pool;
    uint32_t number, count = 0;
    test_allocator_init(&allocator);
    assert_int_equal(wr_pool_init(&pool, &allocator.allocator, 2 * WR_POOL_BLOCK - 1, 1 << 16), 0);
    while (wr_pool_take(&pool, (struct wr_span){NULL, 0}, &number) == 0)
        count++;
    assert_int_equal(count, 2 * WR_POOL_BLOCK);
    wr_pool_release(&pool);
    assert_int_equal(allocator.live, 0);
}

static void reserved_tasks_are_available_without_memory(void **state)
{
    (void)state;
    test_allocator allocator;
    struct wr_pool pool;
    uint32_t number;
    test_allocator_init(&allocator);
    assert_int_equal(
        wr_pool_init(&pool, &allocator.allocator, 8 * WR_POOL_BLOCK, (size_t)16 * WR_POOL_BLOCK * WR_CELL_TEXT), 0);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(wr_pool_take(&pool, wr_span_of("x"), &number), 0);
    assert_int_equal(wr_pool_reserve(&pool, WR_POOL_BLOCK), 0);
    allocator.fail_at = 1;
    allocator.fail_for_ever = true;
    /* one block was in use; the reservation added one */
    for (uint32_t i = 3; i < 2 * WR_POOL_BLOCK; i++)
        assert_int_equal(wr_pool_take(&pool, wr_span_of("x"), &number), 0);
    assert_int_equal(wr_pool_take(&pool, wr_span_of("x"), &number), WEIR_E_NOMEM);
    assert_int_equal(wr_pool_reserve(&pool, 1), WEIR_E_NOMEM);
    wr_pool_release(&pool);
    assert_int_equal(allocator.live, 0);
}

static void set_released_while_it_grows_frees_all_memory(void **state)
{
    (void)state;
    struct wr_known_urls known;
    test_allocator allocator;
    test_allocator_init(&allocator);
    assert_int_equal(wr_known_urls_init(&known, &allocator.allocator, 1 << 16), 0);
    for (uint64_t i = 0; i < 1000; i++)
        wr_known_urls_add(&known, 1, i);
    assert_int_equal(wr_known_urls_grow(&known), 0);
    assert_int_equal(wr_known_urls_bytes(&known), allocator.live_bytes); /* old and new slots */
    wr_known_urls_release(&known);
    assert_int_equal(allocator.live + allocator.live_bytes, 0);
}

static void delayed_tasks_are_ordered_by_time(void **state)
{
    (void)state;
    static const int64_t times[] = {5, 3, 9, 3, 1, 9, 7};
    static const uint32_t expected[] = {4, 1, 3, 0, 6, 2, 5};
    struct wr_tasks tasks = WR_TASKS_NONE;
    struct wr_pool pool;
    uint32_t number;
    test_allocator allocator;
    test_allocator_init(&allocator);
    assert_int_equal(wr_pool_init(&pool, &allocator.allocator, 10, 1 << 16), 0);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(wr_pool_take(&pool, (struct wr_span){NULL, 0}, &number), 0);
        assert_int_equal(number, i);
        wr_task_at(&pool, number)->at = times[i];
        wr_tasks_insert(&pool, &tasks, number);
    }
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(wr_tasks_take(&pool, &tasks, WR_NO_TASK), expected[i]);
    assert_int_equal(tasks.count, 0);
    wr_pool_release(&pool);
}

static void expect_known(const struct wr_known_urls *known, int count)
{
    for (int i = 0; i < count; i++)
        if (!wr_known_urls_has(known, 1, (uint64_t)i * 977))
            fail_msg("fingerprint %d of %d is not found", i, count);
}

/* The set grows in steps: fingerprints that are not moved yet are found, and counted once. */
static void fingerprints_stay_known_while_the_set_grows(void **state)
{
    (void)state;
    struct wr_known_urls known;
    test_allocator allocator;
    test_allocator_init(&allocator);
    assert_int_equal(wr_known_urls_init(&known, &allocator.allocator, 1 << 16), 0);
    for (int i = 0; i < 3000; i++) {
        wr_known_urls_add(&known, 1, (uint64_t)i * 977); /* neighbours, so that chains of slots form */
        if (i == 1500 || i == 1501 || i == 1600)
            assert_int_equal(wr_known_urls_grow(&known), 0);
        if (i > 1490 && i < 1700)
            expect_known(&known, i + 1);
        wr_known_urls_add(&known, 1, (uint64_t)(i / 2) * 977);
    }
    expect_known(&known, 3000);
    assert_int_equal(known.count, 3000);
    /* the old slots are freed */
    assert_int_equal(wr_known_urls_bytes(&known), 8 * 4096 * sizeof(uint64_t));
    wr_known_urls_release(&known);
    assert_int_equal(allocator.live, 0);
}

static void fingerprints_are_known_by_job_and_growing_forgets_none(void **state)
{
    (void)state;
    struct wr_known_urls known;
    struct wr_rng rng;
    test_allocator allocator;
    test_allocator_init(&allocator);
    assert_int_equal(wr_known_urls_init(&known, &allocator.allocator, 100000), 0);
    for (int pass = 0; pass < 2; pass++) {
        wr_rng_init(&rng, 5);
        for (int i = 0; i < 60000; i++) {
            uint64_t fingerprint = i == 0 ? 0 : wr_rng_next(&rng);
            assert_int_equal(wr_known_urls_has(&known, 1, fingerprint), pass == 1);
            assert_false(wr_known_urls_has(&known, 2, fingerprint));
            wr_known_urls_add(&known, 1, fingerprint);
            if (wr_known_urls_is_crowded(&known))
                assert_int_equal(wr_known_urls_grow(&known), 0);
        }
    }
    assert_int_equal(known.count, 60000);
    assert_int_equal(wr_known_urls_grow(&known), WEIR_E_FULL);
    assert_false(known.incomplete);
    wr_known_urls_release(&known);
    assert_int_equal(allocator.live, 0);
}

/* A path with many queries stays known, however many other paths are added. */
static void path_with_many_queries_is_not_displaced_by_others(void **state)
{
    (void)state;
    struct wr_variants variants;
    struct wr_rng rng;
    test_allocator allocator;
    test_allocator_init(&allocator);
    wr_rng_init(&rng, 9);
    assert_int_equal(wr_variants_init(&variants, &allocator.allocator), 0);
    uint64_t trap = wr_rng_next(&rng);
    for (int i = 0; i < 500; i++)
        wr_variants_add(&variants, trap);
    for (int i = 0; i < 1000000; i++)
        wr_variants_add(&variants, wr_rng_next(&rng));
    assert_int_equal(wr_variants_of(&variants, trap), 500);
    for (int i = 0; i < 100000; i++)
        wr_variants_add(&variants, trap);
    assert_int_equal(wr_variants_of(&variants, trap), 65535);
    wr_variants_release(&variants);
}

WEIR_TESTS(test(pool_size_is_rounded_up_to_whole_blocks), test(reserved_tasks_are_available_without_memory),
           test(set_released_while_it_grows_frees_all_memory), test(list_returns_entries_in_order_after_removals),
           test(pool_keeps_texts_of_every_length), test(full_pool_refuses_tasks_and_loses_none),
           test(delayed_tasks_are_ordered_by_time), test(fingerprints_stay_known_while_the_set_grows),
           test(fingerprints_are_known_by_job_and_growing_forgets_none),
           test(path_with_many_queries_is_not_displaced_by_others))
