/* SPDX-License-Identifier: MIT */
/* test_bits.c - tests integer arithmetic. */
#include "base/bits.h"
#include "lib/test.h"

static void rounding_up_gives_the_next_power_of_two(void **state)
{
    (void)state;
    static const size_t rows[][2] = {
        {1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {1000, 1024}, {1025, 2048}, {SIZE_MAX / 2, SIZE_MAX / 2 + 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(wr_round_up_pow2(rows[i][0]) == rows[i][1]);
}

static void rounding_up_gives_the_next_multiple(void **state)
{
    (void)state;
    static const size_t rows[][3] = {
        {0, 64, 0}, {1, 64, 64}, {64, 64, 64}, {65, 64, 128}, {7, 1, 7}, {10, 3, 12}, {SIZE_MAX, 1, SIZE_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(wr_round_up(rows[i][0], rows[i][1]) == rows[i][2]);
}

static void number_beyond_all_sizes_becomes_the_largest_size(void **state)
{
    (void)state;
    static const uint64_t kept[] = {0, 1, 1000000, UINT32_MAX};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        assert_true(wr_size_of(kept[i]) == kept[i]);
    assert_true(wr_size_of(UINT64_MAX) == SIZE_MAX);
    assert_true(wr_size_of((uint64_t)SIZE_MAX + 1) == (sizeof(size_t) < 8 ? SIZE_MAX : 0));
}

/* On 32-bit machines 128-bit integers are _BitInt(128). */
static void product_of_any_two_numbers_is_exact(void **state)
{
    (void)state;
    static const uint64_t rows[] = {1, 7, 1000000000, UINT32_MAX, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++) {
            wr_u128 product = (wr_u128)rows[i] * rows[j];
            assert_true(product / rows[i] == rows[j] && product % rows[i] == 0);
            assert_true((product - 1) / rows[i] == rows[j] - 1 && (product - 1) % rows[i] == rows[i] - 1);
            assert_true((uint64_t)product == rows[i] * rows[j]);
        }
    wr_i128 debt = (wr_i128)INT64_MIN * INT64_MAX;
    assert_true(debt / INT64_MAX == INT64_MIN && debt % INT64_MAX == 0 && debt < 0);
    /* rounded towards zero */
    assert_true((debt - 1) / INT64_MAX == INT64_MIN && (debt - 1) % INT64_MAX == -1);
}

WEIR_TESTS(test(rounding_up_gives_the_next_multiple), test(rounding_up_gives_the_next_power_of_two),
           test(number_beyond_all_sizes_becomes_the_largest_size), test(product_of_any_two_numbers_is_exact))
