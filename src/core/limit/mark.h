/* SPDX-License-Identifier: MIT */
/* mark.h - how much a bucket may take back of what it gave.
 *
 * Whoever reserves n permits and uses fewer gives back k. To add k to the bucket would be wrong: permits come back by
 * themselves too, up to the capacity, and what had come back before others took it was never owed. (10 permits, one a
 * second. At 0 s five are reserved; at 5 s the bucket is full again and nine are taken; then the five are given back.
 * With six left, fifteen would have gone at once.) The bucket must never hold more than it would, had the reservation
 * asked only for what it used.
 *
 * For that the history would be needed. Two lower bounds come without it. Permits come back in the order in which they
 * were taken, and e permits' worth of time has passed since ours were:
 *   - k - e is owed, whatever happened: no more than e can have come back since;
 *   - if p permits were missing after ours were taken, and g have been given back by others since, then p - g - e are
 *     still to come back up to the last of ours.
 * So min(k, max(k, p - g) - e) is given. At once (e = 0) that is all of it, in whatever order; under load (p large)
 * that is all of it too, for as long as the bucket takes to fill. Only with the bucket nearly full is it a bit less
 * than it might be. tests/unit/core/limit/test_settle.c replays what would have been, and holds the bucket to it.
 *
 * The state's mark counts what was ever given back (g), from a start that differs from state to state; a receipt's
 * mark is that plus p. Their difference is p - g; one out of reach means that the state is another one, made since.
 * Large buckets count in units of 2^shift permits, so that a capacity is at most 2^16 units.
 */
#ifndef WR_CORE_LIMIT_MARK_H
#define WR_CORE_LIMIT_MARK_H

#include "core/limit/algorithm.h"

#define WR_MARK_REACH (1 << 20) /* units given back since, after which a receipt counts as that of another state */

/* No receipt from before matches any more. */
static inline uint32_t wr_mark_renew(uint32_t mark)
{
    return mark +
           UINT32_C(0x9e3779b9); /* odd, and far from every small fraction: thousands of changes do not come round */
}

static inline int wr_mark_shift(const weir_limit *limit)
{
    int spare = 16 - __builtin_clz(limit->permits); /* bits of the capacity beyond 16 */
    return spare > 0 ? spare : 0;
}

/* The mark of a receipt after which `missing` permits are missing. */
static inline uint32_t wr_mark_taken(uint32_t mark, const weir_limit *limit, wr_u128 missing)
{
    uint32_t most = missing < limit->permits ? (uint32_t)missing : limit->permits;
    return mark + (most >> wr_mark_shift(limit));
}

/* max(k, p - g), or 0 if the receipt is that of another state. */
static inline int64_t wr_mark_owed(uint32_t mark, const weir_limit *limit, uint32_t receipt_mark, uint32_t permits)
{
    int shift = wr_mark_shift(limit);
    int32_t units = (int32_t)(receipt_mark - mark);
    if (units < -WR_MARK_REACH || units > (int32_t)(limit->permits >> shift))
        return 0;
    int64_t behind = units * ((int64_t)1 << shift);
    return behind > permits ? behind : permits;
}

/* The state's mark once `permits` have been given back. */
static inline uint32_t wr_mark_given(uint32_t mark, const weir_limit *limit, uint32_t permits)
{
    int shift = wr_mark_shift(limit);
    uint64_t units = ((uint64_t)permits + ((uint64_t)1 << shift) - 1) >> shift;
    return units > WR_MARK_REACH ? wr_mark_renew(mark) : mark + (uint32_t)units;
}

#endif
