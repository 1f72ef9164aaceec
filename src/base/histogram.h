/* SPDX-License-Identifier: MIT */
/* histogram.h - counts durations in buckets; other threads may read while one thread writes.
 *
 *     static const struct wr_buckets buckets = {2, {WEIR_MILLISECOND, WEIR_SECOND}};
 *     wr_histogram_add(&lag, &buckets, late_ns);   one writer, no lock
 *     wr_histogram_sum(&lag, &sum);                 any thread; adds, so that several can be summed
 *
 * A reader may see a count before the sum includes it. Neither value ever decreases.
 */
#ifndef WR_BASE_HISTOGRAM_H
#define WR_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WR_BUCKETS_MAX 16

/* Inclusive upper bounds of the buckets, ascending. One more bucket counts everything above the
 * last bound. */
struct wr_buckets {
    size_t count;
    int64_t upper_ns[WR_BUCKETS_MAX];
};

/* A zeroed histogram is empty. */
struct wr_histogram {
    _Atomic uint64_t counts[WR_BUCKETS_MAX + 1];
    _Atomic uint64_t sum_ns;
};

/* The sum of one or several histograms. */
struct wr_histogram_sum {
    uint64_t counts[WR_BUCKETS_MAX + 1];
    uint64_t sum_ns;
};

/* Counts one duration. A negative one counts as 0. */
void wr_histogram_add(struct wr_histogram *histogram, const struct wr_buckets *buckets, int64_t ns);
/* Adds the counts of `histogram` to `sum`. */
void wr_histogram_sum(const struct wr_histogram *histogram, struct wr_histogram_sum *sum);

#endif
