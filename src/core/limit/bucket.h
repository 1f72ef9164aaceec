/* SPDX-License-Identifier: MIT */
/* bucket.h - the smooth token bucket, as the generic cell rate algorithm: two words, and no
 * refilling.
 *
 *              permits taken are a debt of time
 *     --------|==================|---------------------|----> time
 *            now              full_at              now + full
 *
 * The state is the instant at which the bucket will be full if nothing more is taken. A permit
 * costs period/refill ns. A request for n permits is granted if it moves full_at no further than
 * now + full, where `full` is the time in which an empty bucket fills. Times are whole ns and a
 * remainder in units of 1/refill ns; nothing is ever rounded.
 *
 * There is no time of the last access that could be wrong. full_at advances by what is taken,
 * whatever the clock says. An earlier `now` makes now + full earlier, so it can only refuse more.
 * No refill is ever computed, so no time is credited twice. After any idle time max(full_at, now)
 * is now, which allows one burst and no more.
 */
#ifndef WR_CORE_LIMIT_BUCKET_H
#define WR_CORE_LIMIT_BUCKET_H

#include "core/limit/mark.h"

struct wr_bucket {
    int64_t full_at;
    uint32_t full_rem; /* remainder in units of 1/refill ns, less than refill */
    uint32_t mark;     /* units given back since the start, plus an offset (see mark.h) */
};

/* An instant or a duration: ns and a remainder in units of 1/refill ns. */
struct wr_exact_time {
    int64_t ns;
    uint32_t rem;
};

/* Returns first ? a : b without a branch. A CPU cannot predict whether a key near its limit is
 * granted, and a wrong prediction costs more than all the other work. */
static inline int64_t wr_select(bool first, int64_t a, int64_t b)
{
    return b ^ ((a ^ b) & -(int64_t)first);
}

/* Returns the cost of `permits` in time. `permits` is at most limit->permits, so the cost is at
 * most full_ns. */
static inline struct wr_exact_time wr_bucket_cost(const weir_limit *limit, uint32_t permits)
{
    struct wr_exact_time cost = {.ns = limit->cost_ns, .rem = limit->cost_rem};
    if (permits == 1)
        return cost;
    uint64_t rem = (uint64_t)cost.rem * permits;
    cost.ns = cost.ns * permits + (int64_t)(rem / limit->refill);
    cost.rem = (uint32_t)(rem % limit->refill);
    return cost;
}

/* Returns the instant at which the bucket would be full if `permits` were taken now. */
static inline struct wr_exact_time wr_bucket_end(const weir_limit *limit, const struct wr_bucket *bucket, int64_t now,
                                                 uint32_t permits)
{
    struct wr_exact_time cost = wr_bucket_cost(limit, permits);
    bool owing = bucket->full_at >= now;
    uint64_t rem = (uint64_t)wr_select(owing, bucket->full_rem, 0) + cost.rem;
    bool whole = rem >= limit->refill;
    return (struct wr_exact_time){
        .ns = wr_select(owing, bucket->full_at, now) + cost.ns + whole,
        .rem = (uint32_t)(rem - (uint64_t)wr_select(whole, limit->refill, 0)),
    };
}

/* Returns how far `end` lies beyond now + full, in whole ns and rounded up; 0 or less if it does
 * not. */
static inline int64_t wr_bucket_wait(const weir_limit *limit, struct wr_exact_time end, int64_t now)
{
    return end.ns - (now + limit->full_ns) + (end.rem > limit->full_rem);
}

/* Returns the mark of a receipt for a bucket that will be full at `end`. */
static inline uint32_t wr_bucket_mark(const weir_limit *limit, uint32_t mark, struct wr_exact_time end, int64_t now)
{
    wr_u128 debt = (wr_u128)(uint64_t)(end.ns - now) * limit->refill + end.rem;
    return wr_mark_taken(mark, limit, debt / (uint64_t)limit->period_ns);
}

/* Takes `permits` if the bucket has them. `permits` is 1 ... limit->permits. `ret_mark` may be
 * NULL, and is set only if granted. */
static inline weir_decision wr_bucket_try(const weir_limit *limit, struct wr_bucket *bucket, int64_t now,
                                          uint32_t permits, uint32_t *ret_mark)
{
    struct wr_exact_time end = wr_bucket_end(limit, bucket, now, permits);
    int64_t wait_ns = wr_bucket_wait(limit, end, now);
    bool go = wait_ns <= 0;

    bucket->full_at = wr_select(go, end.ns, bucket->full_at);
    bucket->full_rem = (uint32_t)wr_select(go, end.rem, bucket->full_rem);
    if (ret_mark != NULL && go)
        *ret_mark = wr_bucket_mark(limit, bucket->mark, end, now);
    return (weir_decision){
        .verdict = (weir_verdict)wr_select(go, WEIR_GO, WEIR_WAIT),
        .reason = (weir_reason)wr_select(go, WEIR_REASON_NONE, WEIR_REASON_TOKENS),
        .wait_ns = wr_select(go, 0, wait_ns),
    };
}

#endif
