/* SPDX-License-Identifier: MIT */
/* test_alloc.c - tests allocating and freeing of memory. */
#include "base/alloc.h"
#include "lib/alloc.h"
#include "lib/test.h"

static void allocated_block_is_zero_and_freed_with_its_size(void **state)
{
    (void)state;
    test_allocator test;
    test_allocator_init(&test);
    char *block = wr_alloc(&test.allocator, 100, 64);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 64, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(block[i], 0);
    assert_int_equal(test.live_bytes, 100);
    wr_free(&test.allocator, block, 100, 64);
    assert_int_equal(test.live, 0);
    assert_int_equal(test.live_bytes, 0);
}

static void array_of_overflowing_size_is_never_allocated(void **state)
{
    (void)state;
    test_allocator test;
    test_allocator_init(&test);
    assert_null(wr_alloc_array(&test.allocator, SIZE_MAX / 2 + 1, 2, 8));
    assert_null(wr_alloc_array(&test.allocator, SIZE_MAX, SIZE_MAX, 8));
    assert_int_equal(test.takes, 0);
    void *array = wr_alloc_array(&test.allocator, 3, 5, 1);
    assert_int_equal(test.live_bytes, 15);
    wr_free(&test.allocator, array, 15, 1);
}

static void empty_blocks_are_neither_allocated_nor_freed(void **state)
{
    (void)state;
    test_allocator test;
    test_allocator_init(&test);
    assert_null(wr_alloc(&test.allocator, 0, 1));
    assert_null(wr_alloc_array(&test.allocator, 0, 8, 8));
    assert_null(wr_alloc_array(&test.allocator, 8, 0, 8));
    wr_free(&test.allocator, NULL, 8, 8);
    assert_int_equal(test.takes, 0);
    assert_int_equal(test.live, 0);
}

WEIR_TESTS(test(allocated_block_is_zero_and_freed_with_its_size), test(array_of_overflowing_size_is_never_allocated),
           test(empty_blocks_are_neither_allocated_nor_freed))
