/* SPDX-License-Identifier: MIT */
/* counts.h - what a loop counts: by its own thread, and read by any. */
#ifndef WR_SHELL_ENGINE_COUNTS_H
#define WR_SHELL_ENGINE_COUNTS_H

#include "base/histogram.h"
#include "shell/engine/engine.h"
#include "shell/engine/line.h"
#include "shell/net/net.h"

#define WR_VERDICTS_COUNT (WR_VERDICT_ABSENT + 1)
#define WR_BREAKERS_COUNT (WEIR_BREAKER_HALF_OPEN + 1)
#define WR_THROTTLED_NS (10 * WEIR_MILLISECOND) /* who was held for longer counts as throttled */

/* One writer, any readers. */
struct wr_crawl_counts {
    _Atomic uint64_t pages, fetched, unchanged, failed, denied, redirects, requests, bytes, accepted;
    _Atomic uint64_t beyond, deeper, unread;
    _Atomic uint64_t blocked;
    _Atomic uint64_t robots, rejected, retries, overrides, cancellations, in_flight, hosts, connections, memory_bytes;
    _Atomic uint64_t hasty, lowered, known;       /* as in struct wr_plan_stats */
    _Atomic uint64_t throttled;                   /* starts that their host's bounds held */
    _Atomic uint64_t heard;                       /* times that a server named a wait */
    _Atomic uint64_t breakers[WR_BREAKERS_COUNT]; /* changes, to each state */
    _Atomic uint64_t verdicts[WR_VERDICTS_COUNT]; /* of pages that ended */
    _Atomic uint64_t statuses[WR_STATUSES_COUNT]; /* of what was answered; [0]: of no answer */
    struct wr_histogram waits[WR_PLAN_REASONS];   /* of starts, by reason; [NONE]: those that nothing held */
    struct wr_histogram lag;                      /* how late the plan was asked */
};

extern const struct wr_buckets wr_wait_buckets, wr_lag_buckets;

#define WR_COUNT_UP(loop, what) wr_count_add(&(loop)->counts.what, 1)
static inline void wr_count_add(_Atomic uint64_t *count, uint64_t more)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + more, memory_order_relaxed);
}

/* A start, and what it had waited for. */
void wr_counts_start(struct wr_crawl_counts *counts, const struct wr_plan_waited *waited);

/* What the loop's plan and its net have counted so far. */
void wr_counts_take(struct wr_crawl_counts *counts, const struct wr_plan_stats *plan, const struct wr_net_stats *net);

#endif
