/* SPDX-License-Identifier: MIT */
/* test_rng.c - tests the seeded random generator. */
#include "base/rng.h"
#include "lib/test.h"

/* Values computed with the authors' xoshiro256starstar.c and s = {1, 2, 3, 4}. */
static void random_numbers_equal_those_of_the_authors_of_xoshiro(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        UINT64_C(11520),
        UINT64_C(0),
        UINT64_C(1509978240),
        UINT64_C(1215971899390074240),
    };
    struct wr_rng rng = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_true(wr_rng_next(&rng) == expected[i]);
}

/* Values computed with the authors' splitmix64.c and x = 1234567. */
static void seed_is_expanded_by_splitmix64(void **state)
{
    (void)state;
    struct wr_rng rng;
    wr_rng_init(&rng, 1234567);
    assert_true(rng.s[0] == UINT64_C(6457827717110365317));
    assert_true(rng.s[1] == UINT64_C(3203168211198807973));
    assert_true(rng.s[2] == UINT64_C(9817491932198370423));
    assert_true(rng.s[3] == UINT64_C(4593380528125082431));
}

static void same_seed_gives_same_numbers_and_neighbours_differ(void **state)
{
    (void)state;
    struct wr_rng a, b, c;
    wr_rng_init(&a, 7);
    wr_rng_init(&b, 7);
    wr_rng_init(&c, 8);
    for (int i = 0; i < 100; i++) {
        uint64_t next = wr_rng_next(&a);
        assert_true(next == wr_rng_next(&b));
        assert_true(next != wr_rng_next(&c));
    }
}

/* With n = 3 * 2^62 there are four numbers for every three. A plain remainder would give the lowest
 * third of the range twice as often as the others, and a plain product every third number. */
static void random_number_below_a_bound_has_no_bias(void **state)
{
    (void)state;
    struct wr_rng rng;
    unsigned thirds[3] = {0}, residues[3] = {0};
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 30000; i++) {
        uint64_t number = wr_rng_below(&rng, UINT64_C(3) << 62);
        thirds[number >> 62]++;
        residues[number % 3]++;
    }
    for (int i = 0; i < 3; i++) {
        assert_in_range(thirds[i], 9500, 10500); /* six standard deviations */
        assert_in_range(residues[i], 9500, 10500);
    }
}

static void random_number_below_a_bound_reaches_every_value(void **state)
{
    (void)state;
    struct wr_rng rng;
    wr_rng_init(&rng, weir_test_seed());
    for (uint64_t n = 1; n <= 20; n++) {
        unsigned seen[20] = {0};
        for (int i = 0; i < 2000; i++) {
            uint64_t number = wr_rng_below(&rng, n);
            assert_true(number < n);
            seen[number]++;
        }
        for (uint64_t i = 0; i < n; i++)
            assert_in_range(seen[i], 1, 2000);
    }
    for (int i = 0; i < 100; i++)
        assert_true(wr_rng_below(&rng, UINT64_MAX) < UINT64_MAX);
}

static void random_unit_fills_zero_to_one_without_one(void **state)
{
    (void)state;
    struct wr_rng rng;
    unsigned tenths[10] = {0};
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 100000; i++) {
        double unit = wr_rng_unit(&rng);
        assert_true(unit >= 0 && unit < 1);
        tenths[(int)(unit * 10)]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(tenths[i], 9430, 10570); /* six standard deviations */
    /* the next number has all bits set */
    struct wr_rng most = {{0, UINT64_C(0x4fc71c71c71c71c7), 0, 0}};
    assert_true(wr_rng_unit(&most) == 1 - 0x1p-53);
}

WEIR_TESTS(test(random_numbers_equal_those_of_the_authors_of_xoshiro), test(seed_is_expanded_by_splitmix64),
           test(same_seed_gives_same_numbers_and_neighbours_differ), test(random_number_below_a_bound_has_no_bias),
           test(random_number_below_a_bound_reaches_every_value), test(random_unit_fills_zero_to_one_without_one))
