/* SPDX-License-Identifier: MIT */
/* counts.c - updates the counters of a loop. */
#include "crawl/engine/counts.h"

/* Upper limits of the histogram of waits. A plan reports waits in whole milliseconds. */
const struct wr_buckets wr_wait_buckets = {14,
                                           {WEIR_MILLISECOND, 10 * WEIR_MILLISECOND, 50 * WEIR_MILLISECOND,
                                            100 * WEIR_MILLISECOND, 250 * WEIR_MILLISECOND, 500 * WEIR_MILLISECOND,
                                            WEIR_SECOND, 2500 * WEIR_MILLISECOND, 5 * WEIR_SECOND, 10 * WEIR_SECOND,
                                            30 * WEIR_SECOND, WEIR_MINUTE, 5 * WEIR_MINUTE, 30 * WEIR_MINUTE}};

const struct wr_buckets wr_lag_buckets = {12,
                                          {10 * WEIR_MICROSECOND, 25 * WEIR_MICROSECOND, 50 * WEIR_MICROSECOND,
                                           100 * WEIR_MICROSECOND, 250 * WEIR_MICROSECOND, WEIR_MILLISECOND,
                                           2500 * WEIR_MICROSECOND, 5 * WEIR_MILLISECOND, 10 * WEIR_MILLISECOND,
                                           25 * WEIR_MILLISECOND, 100 * WEIR_MILLISECOND, WEIR_SECOND}};

void wr_counts_copy(struct wr_crawl_counts *counts, const struct wr_plan_stats *plan, const struct wr_net_stats *net)
{
    atomic_store(&counts->rejected, plan->rejected);
    atomic_store(&counts->retries, plan->retries);
    atomic_store(&counts->overrides, plan->overrides);
    atomic_store(&counts->cancellations, plan->hopeless);
    atomic_store(&counts->hasty, plan->hasty);
    atomic_store(&counts->lowered, plan->lowered);
    atomic_store(&counts->known, plan->known);
    atomic_store(&counts->hosts, plan->hosts);
    atomic_store(&counts->memory_bytes, plan->memory_bytes + plan->rules_bytes);
    atomic_store(&counts->connections, net->connections);
}

void wr_counts_add_start(struct wr_crawl_counts *counts, const struct wr_plan_waited *waited)
{
    uint64_t held_ms = 0;
    bool has_waited = false;
    for (int reason = WEIR_REASON_NONE + 1; reason < WR_PLAN_REASONS; reason++) {
        if (waited->ms[reason] == 0)
            continue;
        has_waited = true;
        held_ms += reason == WEIR_REASON_QUEUE ? 0 : waited->ms[reason];
        wr_histogram_add(&counts->waits[reason], &wr_wait_buckets, waited->ms[reason] * WEIR_MILLISECOND);
    }
    if (!has_waited)
        wr_histogram_add(&counts->waits[WEIR_REASON_NONE], &wr_wait_buckets, 0);
    if (held_ms > WR_THROTTLED_NS / WEIR_MILLISECOND)
        wr_count_add(&counts->throttled, 1);
}
