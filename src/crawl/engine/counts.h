/* SPDX-License-Identifier: MIT */
/* counts.h - the counters of a loop: written by its own thread, read by any thread. */
#ifndef WR_CRAWL_ENGINE_COUNTS_H
#define WR_CRAWL_ENGINE_COUNTS_H

#include "base/histogram.h"
#include "crawl/engine/engine.h"
#include "crawl/engine/output_line.h"
#include "http/net/net.h"

#define WR_VERDICTS_COUNT (WR_VERDICT_ABSENT + 1)
#define WR_BREAKERS_COUNT (WEIR_BREAKER_HALF_OPEN + 1)
/* A start that was held for longer counts as throttled. */
#define WR_THROTTLED_NS (10 * WEIR_MILLISECOND)

/* Counters of one loop: one writer, any number of readers, no lock. */
struct wr_crawl_counts {
    _Atomic uint64_t pages, fetched, unchanged, failed, denied, redirects, requests, bytes, accepted;
    _Atomic uint64_t beyond, deeper, unread;
    _Atomic uint64_t blocked;
    _Atomic uint64_t robots, rejected, retries, overrides, cancellations, in_flight, hosts, connections, memory_bytes;
    _Atomic uint64_t hasty, lowered, known;       /* the same counters of struct wr_plan_stats */
    _Atomic uint64_t throttled;                   /* starts that bounds of their host held */
    _Atomic uint64_t heard;                       /* waits that servers asked for */
    _Atomic uint64_t breakers[WR_BREAKERS_COUNT]; /* changes of breakers, by new state */
    _Atomic uint64_t verdicts[WR_VERDICTS_COUNT]; /* pages that ended, by verdict */
    _Atomic uint64_t statuses[WR_STATUSES_COUNT]; /* responses by status; [0]: no response */
    /* Waits of starts, by reason; [NONE]: starts without a wait. */
    struct wr_histogram waits[WR_PLAN_REASONS];
    struct wr_histogram lag; /* delays of calls of the plan that were due */
};

extern const struct wr_buckets wr_wait_buckets, wr_lag_buckets;

#define WR_COUNT_UP(loop, what) wr_count_add(&(loop)->counts.what, 1)
static inline void wr_count_add(_Atomic uint64_t *count, uint64_t more)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + more, memory_order_relaxed);
}

/* Counts a start and the waits before it. */
void wr_counts_add_start(struct wr_crawl_counts *counts, const struct wr_plan_waited *waited);

/* Copies the counters of the loop's plan and net. */
void wr_counts_copy(struct wr_crawl_counts *counts, const struct wr_plan_stats *plan, const struct wr_net_stats *net);

#endif
