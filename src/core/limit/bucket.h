/* SPDX-License-Identifier: MIT */
/* bucket.h - the smooth token bucket, as the generic cell rate algorithm: two words, and no refilling.
 *
 *              taken permits are a debt of time
 *     --------|==================|---------------------|----> time
 *            now              full_at              now + full
 *
 * The state is the instant at which the bucket will be full again if nothing more is taken. A permit costs
 * period/refill ns, and n are granted if full_at moves no further than now + full, what an empty bucket needs to fill.
 * Times are whole ns and a remainder in parts of 1/refill ns; nothing is ever rounded.
 *
 * There is no "last seen" to go wrong. full_at moves on by what is taken, whatever the clock says; an earlier `now`
 * makes now + full earlier, so it can only refuse more; and no time is paid twice, for none is paid at all. After any
 * idleness max(full_at, now) is now: one burst, no more.
 */
#ifndef WR_CORE_LIMIT_BUCKET_H
#define WR_CORE_LIMIT_BUCKET_H

#include "core/limit/mark.h"

struct wr_bucket {
    int64_t full_at;
    uint32_t full_rem; /* 1/refill ns, < refill */
    uint32_t mark;     /* see mark.h */
};

/* An instant or a duration: ns and a remainder in 1/refill ns. */
struct wr_fine {
    int64_t ns;
    uint32_t rem;
};

/* first ? a : b, for the compiler to make no branch of: whether a key near its limit may go is hard to foretell, and a
 * wrong guess costs more than all the rest. */
static inline int64_t wr_pick(bool first, int64_t a, int64_t b)
{
    return b ^ ((a ^ b) & -(int64_t)first);
}

/* What `permits` cost; at most limit->permits, so that it is at most full_ns. */
static inline struct wr_fine wr_bucket_cost(const weir_limit *limit, uint32_t permits)
{
    struct wr_fine cost = {.ns = limit->cost_ns, .rem = limit->cost_rem};
    if (permits == 1)
        return cost;
    uint64_t rem = (uint64_t)cost.rem * permits;
    cost.ns = cost.ns * permits + (int64_t)(rem / limit->refill);
    cost.rem = (uint32_t)(rem % limit->refill);
    return cost;
}

/* When the bucket would be full if `permits` were taken now. */
static inline struct wr_fine wr_bucket_end(const weir_limit *limit, const struct wr_bucket *bucket, int64_t now,
                                           uint32_t permits)
{
    struct wr_fine cost = wr_bucket_cost(limit, permits);
    bool owing = bucket->full_at >= now;
    uint64_t rem = (uint64_t)wr_pick(owing, bucket->full_rem, 0) + cost.rem;
    bool whole = rem >= limit->refill;
    return (struct wr_fine){
        .ns = wr_pick(owing, bucket->full_at, now) + cost.ns + whole,
        .rem = (uint32_t)(rem - (uint64_t)wr_pick(whole, limit->refill, 0)),
    };
}

/* How far `end` lies beyond now + full, in whole ns and rounded up; 0 or less: it does not. */
static inline int64_t wr_bucket_wait(const weir_limit *limit, struct wr_fine end, int64_t now)
{
    return end.ns - (now + limit->full_ns) + (end.rem > limit->full_rem);
}

/* The mark of a receipt for a bucket that will be full at `end`. */
static inline uint32_t wr_bucket_mark(const weir_limit *limit, uint32_t mark, struct wr_fine end, int64_t now)
{
    wr_u128 debt = (wr_u128)(uint64_t)(end.ns - now) * limit->refill + end.rem;
    return wr_mark_taken(mark, limit, debt / (uint64_t)limit->period_ns);
}

/* Ask and take in one. `permits` is 1 … limit->permits; `ret_mark` may be NULL, and is set only if granted. */
static inline weir_decision wr_bucket_try(const weir_limit *limit, struct wr_bucket *bucket, int64_t now,
                                          uint32_t permits, uint32_t *ret_mark)
{
    struct wr_fine end = wr_bucket_end(limit, bucket, now, permits);
    int64_t wait_ns = wr_bucket_wait(limit, end, now);
    bool go = wait_ns <= 0;

    bucket->full_at = wr_pick(go, end.ns, bucket->full_at);
    bucket->full_rem = (uint32_t)wr_pick(go, end.rem, bucket->full_rem);
    if (ret_mark != NULL && go)
        *ret_mark = wr_bucket_mark(limit, bucket->mark, end, now);
    return (weir_decision){
        .verdict = (weir_verdict)wr_pick(go, WEIR_GO, WEIR_WAIT),
        .reason = (weir_reason)wr_pick(go, WEIR_REASON_NONE, WEIR_REASON_TOKENS),
        .wait_ns = wr_pick(go, 0, wait_ns),
    };
}

#endif
