/* SPDX-License-Identifier: MIT */
/* histogram.c - counts durations in buckets. */
#include "base/histogram.h"

static void add_relaxed(_Atomic uint64_t *count, uint64_t more)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + more, memory_order_relaxed);
}

void wr_histogram_add(struct wr_histogram *histogram, const struct wr_buckets *buckets, int64_t ns)
{
    size_t bucket = 0;

    while (bucket < buckets->count && ns > buckets->upper_ns[bucket])
        bucket++;
    add_relaxed(&histogram->counts[bucket], 1);
    if (ns > 0)
        add_relaxed(&histogram->sum_ns, (uint64_t)ns);
}

void wr_histogram_sum(const struct wr_histogram *histogram, struct wr_histogram_sum *sum)
{
    for (size_t i = 0; i <= WR_BUCKETS_MAX; i++)
        sum->counts[i] += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
    sum->sum_ns += atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed);
}
