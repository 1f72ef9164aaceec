/* SPDX-License-Identifier: MIT */
/* bound.h - the least that a keyed limiter can cost: what weir_table is measured against.
 *
 * A token bucket as one theoretical arrival time (GCRA), changed by compare-and-swap, in a flat array whose index is a
 * multiplicative hash of a 64-bit key. It stores no key, so that colliding keys share a bucket; it cannot forget,
 * count, queue or explain. Nobody would use it, but nothing that does more can be faster.
 */
#ifndef WR_CLI_BENCH_BOUND_H
#define WR_CLI_BENCH_BOUND_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/time.h>

struct wr_bound {
    _Atomic int64_t *arrivals; /* a power of two of them */
    size_t slots;
    unsigned shift;            /* leaves the hash's upper bits */
    int64_t cost_ns, burst_ns; /* one permit, and a full bucket */
};

/* One slot per key or more. WEIR_E_NOMEM. */
int wr_bound_init(struct wr_bound *ret_bound, size_t keys, int64_t cost_ns, int64_t burst_ns);
void wr_bound_release(struct wr_bound *bound);

/* Asks for one permit for each of the keys, reading the clock for each. Returns how many were granted. */
size_t wr_bound_pass(struct wr_bound *bound, const weir_clock *clock, const uint64_t *keys, size_t count);

#endif
