/* SPDX-License-Identifier: MIT */
/* test_histogram.c - tests histograms of durations. */
#include "base/histogram.h"
#include "lib/test.h"

#include <weir/time.h>

static const struct wr_buckets buckets = {3, {WEIR_MILLISECOND, 10 * WEIR_MILLISECOND, WEIR_SECOND}};

static void each_duration_is_in_the_first_histogram_bucket_that_holds_it(void **state)
{
    static const struct {
        int64_t ns;
        size_t bucket;
    } cases[] = {{INT64_MIN, 0},
                 {0, 0},
                 {WEIR_MILLISECOND, 0},
                 {WEIR_MILLISECOND + 1, 1},
                 {10 * WEIR_MILLISECOND, 1},
                 {WEIR_SECOND, 2},
                 {WEIR_SECOND + 1, 3},
                 {INT64_MAX, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wr_histogram histogram = {0};
        struct wr_histogram_sum sum = {0};
        wr_histogram_add(&histogram, &buckets, cases[i].ns);
        wr_histogram_sum(&histogram, &sum);
        for (size_t bucket = 0; bucket <= WR_BUCKETS_MAX; bucket++)
            assert_int_equal(sum.counts[bucket], bucket == cases[i].bucket);
        assert_int_equal(sum.sum_ns, cases[i].ns > 0 ? cases[i].ns : 0);
    }
}

static void several_histograms_are_summed(void **state)
{
    struct wr_histogram first = {0}, second = {0};
    struct wr_histogram_sum sum = {0};
    (void)state;
    wr_histogram_add(&first, &buckets, 5 * WEIR_MILLISECOND);
    wr_histogram_add(&second, &buckets, 6 * WEIR_MILLISECOND);
    wr_histogram_add(&second, &buckets, WEIR_MINUTE);
    wr_histogram_sum(&first, &sum);
    wr_histogram_sum(&second, &sum);
    assert_int_equal(sum.counts[1], 2);
    assert_int_equal(sum.counts[3], 1);
    assert_int_equal(sum.sum_ns, 11 * WEIR_MILLISECOND + WEIR_MINUTE);
}

WEIR_TESTS(test(each_duration_is_in_the_first_histogram_bucket_that_holds_it), test(several_histograms_are_summed))
