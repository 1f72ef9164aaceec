/* SPDX-License-Identifier: MIT */
/* mark.h - computes how many permits a bucket may take back from a reservation.
 *
 * A caller that reserves n permits and uses fewer gives back k. Adding k to the bucket would be
 * wrong: permits also come back with time, up to the capacity, and permits that came back before
 * others were taken are not owed. (Example: 10 permits, one a second. At 0 s five are reserved. At
 * 5 s the bucket is full and nine are taken. Then the five are given back: with six left, fifteen
 * could have been taken at once.) The bucket must never hold more than it would if the reservation
 * had asked only for what it used.
 *
 * An exact answer needs the history. Two lower bounds do not. Permits come back in the order in
 * which they were taken, and enough time has passed for e permits since the reservation:
 * - k - e is owed in any case: no more than e can have come back since.
 * - If p permits were missing right after the reservation, and g have been given back by others
 *   since, then p - g - e permits up to the last one of the reservation have yet to come back.
 *
 * So min(k, max(k, p - g) - e) is given back. Right after the reservation (e = 0) that is all of k,
 * in whatever order receipts are settled. Under load (p large) it is all of k too, for as long as
 * the bucket takes to fill. Only when the bucket is nearly full may it be a bit too little.
 * tests/unit/core/limit/test_settle.c compares it with the exact history.
 *
 * The mark of the state counts all units ever given back (g), from a start that differs between
 * states. The mark of a receipt is that count plus p, so the difference of the two is p - g. If the
 * difference is out of range, the receipt belongs to another state, which this one has replaced.
 * Large buckets count in units of 2^shift permits, so that a capacity is at most 2^16 units.
 */
#ifndef WR_CORE_LIMIT_MARK_H
#define WR_CORE_LIMIT_MARK_H

#include "core/limit/algorithm.h"

#define WR_MARK_REACH (1 << 20) /* units given back after which a receipt no longer matches */

/* Returns a mark that matches no earlier receipt. */
static inline uint32_t wr_mark_renew(uint32_t mark)
{
    return mark +
           /* An odd step, far from every small fraction of 2^32: thousands of changes do not repeat
            * a mark. */
           UINT32_C(0x9e3779b9);
}

static inline int wr_mark_shift(const weir_limit *limit)
{
    int spare = 16 - __builtin_clz(limit->permits); /* bits of the capacity beyond 16 */
    return spare > 0 ? spare : 0;
}

/* Returns the mark of a receipt after which `missing` permits are missing from the bucket. */
static inline uint32_t wr_mark_taken(uint32_t mark, const weir_limit *limit, wr_u128 missing)
{
    uint32_t most = missing < limit->permits ? (uint32_t)missing : limit->permits;
    return mark + (most >> wr_mark_shift(limit));
}

/* Returns max(k, p - g), see the head of mark.h, or 0 if the receipt is of another state. */
static inline int64_t wr_mark_owed(uint32_t mark, const weir_limit *limit, uint32_t receipt_mark, uint32_t permits)
{
    int shift = wr_mark_shift(limit);
    int32_t units = (int32_t)(receipt_mark - mark);
    if (units < -WR_MARK_REACH || units > (int32_t)(limit->permits >> shift))
        return 0;
    int64_t behind = units * ((int64_t)1 << shift);
    return behind > permits ? behind : permits;
}

/* Returns the mark of the state after `permits` have been given back. */
static inline uint32_t wr_mark_given(uint32_t mark, const weir_limit *limit, uint32_t permits)
{
    int shift = wr_mark_shift(limit);
    uint64_t units = ((uint64_t)permits + ((uint64_t)1 << shift) - 1) >> shift;
    return units > WR_MARK_REACH ? wr_mark_renew(mark) : mark + (uint32_t)units;
}

#endif
