/* SPDX-License-Identifier: MIT */
/* test_ring.c - tests the first-in first-out ring. */
#include "base/ring.h"
#include "base/rng.h"
#include "lib/alloc.h"
#include "lib/test.h"

#include <weir/error.h>

static void full_ring_refuses_and_empty_ring_returns_nothing(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_ring ring;
    int value = 1;
    test_allocator_init(&test);
    assert_int_equal(wr_ring_init(&ring, &test.allocator, 1, sizeof value), 0);
    int popped = 99;
    assert_false(wr_ring_pop(&ring, &popped));
    assert_int_equal(popped, 99);
    assert_null(wr_ring_peek(&ring, 0));
    assert_true(wr_ring_push(&ring, &value));
    value = 2;
    assert_false(wr_ring_push(&ring, &value));
    assert_true(wr_ring_pop(&ring, &popped));
    assert_int_equal(popped, 1);
    wr_ring_release(&ring);
    assert_int_equal(test.live_bytes, 0);
}

/* Ascending numbers are pushed. For any mix of pushes and pops they must leave in ascending
 * order. */
static void ring_keeps_its_order_around_every_wrap(void **state)
{
    (void)state;
    struct wr_rng rng;
    wr_rng_init(&rng, weir_test_seed());
    for (size_t capacity = 1; capacity <= 9; capacity++) {
        test_allocator test;
        struct wr_ring ring;
        uint64_t in = 0, out = 0, popped;
        test_allocator_init(&test);
        assert_int_equal(wr_ring_init(&ring, &test.allocator, capacity, sizeof in), 0);
        for (int step = 0; step < 1000; step++) {
            if (wr_rng_below(&rng, 2) == 0) {
                assert_int_equal(wr_ring_push(&ring, &in), in - out < capacity);
                in += ring.count > in - out;
            } else {
                assert_int_equal(wr_ring_pop(&ring, &popped), in > out);
                if (in > out)
                    assert_int_equal(popped, out++);
            }
            for (size_t i = 0; i < in - out; i++)
                assert_int_equal(*(uint64_t *)wr_ring_peek(&ring, i), out + i);
            assert_null(wr_ring_peek(&ring, (size_t)(in - out)));
        }
        assert_int_equal(test.takes, 1);
        wr_ring_release(&ring);
    }
}

static void ring_returns_elements_of_any_size_unchanged(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_ring ring;
    char in[13], out[13];
    test_allocator_init(&test);
    assert_int_equal(wr_ring_init(&ring, &test.allocator, 3, sizeof in), 0);
    for (int i = 0; i < 10; i++) {
        memset(in, 'a' + i, sizeof in);
        assert_true(wr_ring_push(&ring, in));
        if (i >= 2) {
            assert_true(wr_ring_pop(&ring, out));
            memset(in, 'a' + i - 2, sizeof in);
            assert_memory_equal(in, out, sizeof in);
        }
    }
    wr_ring_release(&ring);
}

static void ring_without_memory_leaks_nothing(void **state)
{
    (void)state;
    test_allocator test;
    struct wr_ring ring;
    test_allocator_init(&test);
    assert_int_equal(wr_ring_init(&ring, &test.allocator, SIZE_MAX / 4, 8), WEIR_E_NOMEM);
    assert_int_equal(test.takes, 0);
    test.fail_at = 1;
    assert_int_equal(wr_ring_init(&ring, &test.allocator, 4, 8), WEIR_E_NOMEM);
    assert_int_equal(test.live, 0);
}

WEIR_TESTS(test(full_ring_refuses_and_empty_ring_returns_nothing), test(ring_keeps_its_order_around_every_wrap),
           test(ring_returns_elements_of_any_size_unchanged), test(ring_without_memory_leaks_nothing))
