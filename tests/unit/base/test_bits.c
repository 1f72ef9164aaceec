/* SPDX-License-Identifier: MIT */
/* test_bits.c - whole numbers. */
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

WEIR_TESTS(test(rounding_up_gives_the_next_multiple), test(rounding_up_gives_the_next_power_of_two))
