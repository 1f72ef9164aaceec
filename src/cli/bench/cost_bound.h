/* SPDX-License-Identifier: MIT */
/* cost_bound.h - the lower bound for the cost of a keyed limiter, against which weir_table is
 * measured.
 *
 * The bound is a token bucket that stores one theoretical arrival time (GCRA) and changes it by
 * compare-and-swap. The buckets are a flat array, indexed by a multiplicative hash of a 64-bit key.
 * The bound stores no keys, so colliding keys share a bucket. It cannot forget, count, queue or
 * explain. It is not meant for use; a limiter that does more cannot be faster.
 */
#ifndef WR_CLI_BENCH_COST_BOUND_H
#define WR_CLI_BENCH_COST_BOUND_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/time.h>

struct wr_cost_bound {
    _Atomic int64_t *arrivals; /* theoretical arrival time of each slot, ns; `slots` elements */
    size_t slots;
    /* Right shift that keeps the upper bits of the hash: the index of a slot. */
    unsigned shift;
    int64_t cost_ns, burst_ns; /* time per permit and time of a full bucket, ns */
};

/* Allocates a power of two of slots, at least one per key. Returns WEIR_E_NOMEM if that fails. */
int wr_cost_bound_init(struct wr_cost_bound *ret_bound, size_t keys, int64_t cost_ns, int64_t burst_ns);
void wr_cost_bound_release(struct wr_cost_bound *bound);

/* Asks for one permit for each of `count` keys and reads the clock for each. Returns the number of
 * granted permits. */
size_t wr_cost_bound_pass(struct wr_cost_bound *bound, const weir_clock *clock, const uint64_t *keys, size_t count);

#endif
