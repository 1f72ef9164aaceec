/* SPDX-License-Identifier: MIT */
/* histogram.h - how often how long: counts in buckets, read by others while they grow.
 *
 *     static const struct wr_buckets buckets = {3, {WEIR_MILLISECOND, 10 * WEIR_MILLISECOND, WEIR_SECOND}};
 *     wr_histogram_note(&lag, &buckets, late_ns);                 one writer, no lock, no cache miss but its own
 *     wr_histogram_sum(&lag, &sum);                               any thread; adds, so that several are put together
 *
 * A reader may see a count without its share of the sum: both are of the last moments, and neither goes back.
 */
#ifndef WR_BASE_HISTOGRAM_H
#define WR_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WR_BUCKETS_MAX 16

/* The upper bounds, which are in them, ascending; beyond the last there is one more bucket. */
struct wr_buckets {
    size_t count;
    int64_t upper_ns[WR_BUCKETS_MAX];
};

/* All zero: empty. */
struct wr_histogram {
    _Atomic uint64_t counts[WR_BUCKETS_MAX + 1];
    _Atomic uint64_t sum_ns;
};

/* What was read of one or several. */
struct wr_histogram_sum {
    uint64_t counts[WR_BUCKETS_MAX + 1];
    uint64_t sum_ns;
};

/* Less than 0 is 0. */
void wr_histogram_note(struct wr_histogram *histogram, const struct wr_buckets *buckets, int64_t ns);
/* Adds what is in it. */
void wr_histogram_sum(const struct wr_histogram *histogram, struct wr_histogram_sum *sum);

#endif
