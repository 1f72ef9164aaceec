/* SPDX-License-Identifier: MIT */
/* test_heap.c - tests the heap of items by due time. */
#include "base/heap.h"
#include "base/rng.h"
#include "lib/alloc.h"
#include "lib/test.h"

#define ITEMS 200

static void earliest_item_leaves_the_heap_first(void **state)
{
    (void)state;
    static const int64_t keys[] = {5, INT64_MAX, -3, 0, INT64_MIN, 7, -3};
    static const int64_t sorted[] = {INT64_MIN, -3, -3, 0, 5, 7, INT64_MAX};
    test_allocator test;
    struct wr_heap heap;
    struct wr_heap_item items[7] = {{0}};
    test_allocator_init(&test);
    wr_heap_init(&heap, &test.allocator, 7);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(wr_heap_push(&heap, keys[i], &items[i]), 0);
    for (size_t i = 0; i < 7; i++) {
        int64_t key = 0;
        struct wr_heap_item *item = wr_heap_peek(&heap, &key);
        assert_true(key == sorted[i]);
        assert_true(keys[item - items] == key);
        assert_ptr_equal(wr_heap_pop(&heap), item);
        assert_false(wr_heap_item_is_queued(item));
    }
    assert_null(wr_heap_peek(&heap, NULL));
    assert_null(wr_heap_pop(&heap));
    wr_heap_release(&heap);
    assert_int_equal(test.live_bytes, 0);
}

/* Items with equal keys leave in the order in which they arrived, even if others are removed. */
static void equal_keys_leave_the_heap_in_order_of_arrival(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_heap heap;
    struct wr_heap_item items[ITEMS] = {{0}};
    test_allocator_init(&test);
    wr_heap_init(&heap, &test.allocator, ITEMS);
    for (size_t i = 0; i < ITEMS; i++)
        assert_int_equal(wr_heap_push(&heap, 42, &items[i]), 0);
    for (size_t i = 0; i < ITEMS; i += 3)
        wr_heap_remove(&heap, &items[i]);
    assert_true(wr_heap_ok(&heap));
    assert_int_equal(wr_heap_push(&heap, 42, &items[0]), 0);
    for (size_t i = 1; i < ITEMS; i++)
        if (i % 3 != 0)
            assert_ptr_equal(wr_heap_pop(&heap), &items[i]);
    assert_ptr_equal(wr_heap_pop(&heap), &items[0]);
    wr_heap_release(&heap);
}

static void removing_an_item_twice_from_a_heap_does_nothing(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_heap heap;
    struct wr_heap_item a = {0}, b = {0};
    test_allocator_init(&test);
    wr_heap_init(&heap, &test.allocator, 10);
    wr_heap_remove(&heap, &a);
    assert_int_equal(wr_heap_push(&heap, 1, &a), 0);
    assert_int_equal(wr_heap_push(&heap, 2, &b), 0);
    assert_true(wr_heap_item_is_queued(&a));
    wr_heap_remove(&heap, &a);
    wr_heap_remove(&heap, &a);
    assert_false(wr_heap_item_is_queued(&a));
    assert_int_equal(heap.count, 1);
    assert_ptr_equal(wr_heap_peek(&heap, NULL), &b);
    wr_heap_release(&heap);
    assert_false(wr_heap_item_is_queued(&b));
}

static void full_heap_refuses_items_until_a_pop(void **state)
{
    (void)state;
    static const size_t maxima[] = {1, 15, 16, 17, 33, ITEMS - 1};
    for (size_t m = 0; m < sizeof maxima / sizeof maxima[0]; m++) {
        test_allocator test;
        struct wr_heap heap;
        struct wr_heap_item items[ITEMS] = {{0}};
        test_allocator_init(&test);
        wr_heap_init(&heap, &test.allocator, maxima[m]);
        for (size_t i = 0; i < maxima[m]; i++)
            assert_int_equal(wr_heap_push(&heap, (int64_t)i, &items[i]), 0);
        struct wr_heap_item *extra = &items[maxima[m]];
        assert_int_equal(wr_heap_push(&heap, -1, extra), WEIR_E_FULL);
        assert_false(wr_heap_item_is_queued(extra));
        assert_ptr_equal(wr_heap_pop(&heap), &items[0]);
        assert_int_equal(wr_heap_push(&heap, -1, extra), 0);
        assert_ptr_equal(wr_heap_peek(&heap, NULL), extra);
        assert_true(wr_heap_ok(&heap));
        wr_heap_release(&heap);
    }
}

/* ---- comparison with a list that is searched from end to end ---- */

struct model {
    struct wr_heap_item items[ITEMS];
    int64_t keys[ITEMS];
    uint64_t orders[ITEMS];
    bool inside[ITEMS];
    uint64_t pushes;
    size_t count;
};

static size_t model_first(const struct model *model)
{
    size_t first = ITEMS;
    for (size_t i = 0; i < ITEMS; i++) {
        if (!model->inside[i])
            continue;
        if (first == ITEMS || model->keys[i] < model->keys[first] ||
            (model->keys[i] == model->keys[first] && model->orders[i] < model->orders[first]))
            first = i;
    }
    return first;
}

static void model_push(struct model *model, struct wr_heap *heap, size_t i, int64_t key, size_t max)
{
    int expected = model->count < max ? 0 : WEIR_E_FULL;
    assert_int_equal(wr_heap_push(heap, key, &model->items[i]), expected);
    if (expected != 0)
        return;
    model->inside[i] = true;
    model->keys[i] = key;
    model->orders[i] = model->pushes++;
    model->count++;
}

static void model_forget(struct model *model, size_t i)
{
    model->inside[i] = false;
    model->count--;
}

/* Performs a random operation. Pushes outnumber pops for a while and then the reverse, so that the
 * heap is sometimes full and sometimes empty. */
static void heap_step(struct model *model, struct wr_heap *heap, struct wr_rng *rng, int step, size_t max)
{
    size_t i = (size_t)wr_rng_below(rng, ITEMS);
    bool filling = step / 1000 % 2 == 0;

    if (model->inside[i]) {
        if (wr_rng_below(rng, 2) == 0) {
            wr_heap_remove(heap, &model->items[i]);
            model_forget(model, i);
        }
    } else if (wr_rng_below(rng, filling ? 1 : 4) == 0) {
        model_push(model, heap, i, (int64_t)wr_rng_below(rng, 20) - 10, max);
    } else if (model->count > 0) {
        size_t first = model_first(model);
        assert_ptr_equal(wr_heap_pop(heap), &model->items[first]);
        model_forget(model, first);
    }
}

static void random_heap_operations_agree_with_a_searched_list(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_heap heap;
    struct wr_rng rng;
    static struct model model;
    size_t max = 70;
    wr_rng_init(&rng, weir_test_seed());
    test_allocator_init(&test);
    wr_heap_init(&heap, &test.allocator, max);
    memset(&model, 0, sizeof model);
    for (int step = 0; step < 100000; step++) {
        heap_step(&model, &heap, &rng, step, max);
        size_t first = model_first(&model);
        assert_ptr_equal(wr_heap_peek(&heap, NULL), first == ITEMS ? NULL : &model.items[first]);
        assert_int_equal(heap.count, model.count);
        assert_int_equal(wr_heap_bytes(&heap), test.live_bytes);
        assert_true(wr_heap_ok(&heap));
    }
    wr_heap_release(&heap);
    assert_int_equal(test.live_bytes, 0);
}

/* Fails the first, second, third ... allocation until the whole test succeeds. */
static void failed_allocation_leaves_the_heap_unchanged(void **state)
{
    (void)state;
    size_t pushed = 0;
    long n = 0;
    while (pushed < ITEMS) {
        test_allocator test;
        struct wr_heap heap;
        struct wr_heap_item items[ITEMS] = {{0}};
        test_allocator_init(&test);
        test.fail_at = ++n;
        wr_heap_init(&heap, &test.allocator, ITEMS);
        for (pushed = 0; pushed < ITEMS; pushed++)
            if (wr_heap_push(&heap, -(int64_t)pushed, &items[pushed]) != 0)
                break;
        if (pushed < ITEMS) {
            assert_int_equal(heap.count, pushed);
            assert_true(wr_heap_ok(&heap));
            /* memory is available now */
            assert_int_equal(wr_heap_push(&heap, 1, &items[pushed]), 0);
            assert_int_equal(heap.count, pushed + 1);
        }
        wr_heap_release(&heap);
        assert_int_equal(test.live, 0);
    }
    assert_int_equal(n, 6); /* 16, 32, 64, 128, 200, and one that was not reached */
}

WEIR_TESTS(test(earliest_item_leaves_the_heap_first), test(equal_keys_leave_the_heap_in_order_of_arrival),
           test(removing_an_item_twice_from_a_heap_does_nothing), test(full_heap_refuses_items_until_a_pop),
           test(random_heap_operations_agree_with_a_searched_list), test(failed_allocation_leaves_the_heap_unchanged))
