/* SPDX-License-Identifier: MIT */
/* token_bucket.c - the smooth token bucket: the functions that are not on the hot path in bucket.h.
 *
 * Times are 128-bit counts of 1/refill ns here, in which one permit is exactly period_ns.
 */
#include "core/limit/bucket.h"

static size_t token_bucket_state_bytes(const weir_limit *limit)
{
    (void)limit;
    return sizeof(struct wr_bucket);
}

static void token_bucket_start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit;
    struct wr_bucket *bucket = state;
    bucket->full_at = now;
    bucket->mark = wr_instant_mark(now);
}

static wr_i128 parts(const weir_limit *limit, int64_t ns, uint32_t rem)
{
    return (wr_i128)ns * limit->refill + rem;
}

/* Returns the debt at `now` in units of 1/refill ns, 0 or more. */
static wr_i128 debt_at(const weir_limit *limit, const struct wr_bucket *bucket, int64_t now)
{
    wr_i128 debt = parts(limit, bucket->full_at - now, bucket->full_rem);
    return debt > 0 ? debt : 0;
}

static void set_debt(const weir_limit *limit, struct wr_bucket *bucket, int64_t now, wr_i128 debt)
{
    bucket->full_at = now + (int64_t)(debt / limit->refill);
    bucket->full_rem = (uint32_t)(debt % limit->refill);
}

static int64_t token_bucket_ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    return wr_bucket_wait(limit, wr_bucket_end(limit, state, now, permits), now);
}

/* Returns the largest debt: WEIR_DURATION_MAX beyond that of an empty bucket. A larger one might
 * overflow int64_t. */
static wr_i128 debt_max(const weir_limit *limit)
{
    return parts(limit, limit->full_ns + WEIR_DURATION_MAX, limit->full_rem);
}

/* Charges more than the bucket holds, as settling may. If the clock went back, the debt does not
 * shrink. */
static void overcharge(const weir_limit *limit, struct wr_bucket *bucket, int64_t now, uint32_t permits)
{
    wr_i128 before = debt_at(limit, bucket, now);
    wr_i128 most = debt_max(limit);
    wr_i128 after = before + (wr_i128)limit->period_ns * permits;
    if (after > most)
        after = before > most ? before : most;
    set_debt(limit, bucket, now, after);
}

static uint32_t token_bucket_take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    struct wr_bucket *bucket = state;
    uint32_t mark = 0;

    if (permits <= limit->permits && wr_bucket_try(limit, bucket, now, permits, &mark).verdict == WEIR_GO)
        return mark;
    overcharge(limit, bucket, now, permits);
    struct wr_exact_time end = {.ns = bucket->full_at, .rem = bucket->full_rem};
    return wr_bucket_mark(limit, bucket->mark, end, now);
}

static void token_bucket_give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark,
                              uint32_t permits)
{
    struct wr_bucket *bucket = state;
    wr_i128 debt = debt_at(limit, bucket, now);
    wr_i128 asked = (wr_i128)limit->period_ns * permits;
    wr_i128 owed = (wr_i128)limit->period_ns * wr_mark_owed(bucket->mark, limit, mark, permits);
    wr_i128 back = owed - parts(limit, now - at, 0);

    if (owed == 0 || back <= 0 || debt == 0)
        return;
    back = back < asked ? back : asked;
    set_debt(limit, bucket, now, back < debt ? debt - back : 0);
    bucket->mark = wr_mark_given(bucket->mark, limit, permits);
}

static void token_bucket_peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    wr_i128 left = parts(limit, limit->full_ns, limit->full_rem) - debt_at(limit, state, now);
    *ret_quota = (weir_quota){
        .limit = limit->permits,
        .remaining = left > 0 ? (uint32_t)(left / limit->period_ns) : 0,
        .reset_ns = token_bucket_ask(limit, state, now, limit->permits),
        .period_ns = limit->full_ns + (limit->full_rem > 0),
    };
}

static bool token_bucket_fresh(const weir_limit *limit, const void *state, int64_t now)
{
    return debt_at(limit, state, now) == 0;
}

/* Carries the permits left over to the new rule: the whole ones and the fraction of one, except for
 * a rounding loss of less than 1/refill ns. */
static void token_bucket_carry(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state,
                               int64_t now)
{
    const struct wr_bucket *old = from_state;
    struct wr_bucket *bucket = to_state;
    bool same = from->permits == to->permits && from->refill == to->refill && from->period_ns == to->period_ns;

    *bucket = *old;
    if (same)
        return; /* the mark is unchanged, so receipts stay valid */
    wr_i128 left = parts(from, from->full_ns, from->full_rem) - debt_at(from, old, now);
    wr_i128 part = left % from->period_ns;
    part += part < 0 ? from->period_ns : 0;
    wr_i128 whole = (left - part) / from->period_ns;
    wr_i128 most = debt_max(to);
    /* Deeper in debt than the new bucket can be. The product might overflow. */
    if (whole < -(most / to->period_ns) - 1)
        whole = -(most / to->period_ns) - 1;
    left = whole * to->period_ns + part * to->period_ns / from->period_ns;
    wr_i128 debt = parts(to, to->full_ns, to->full_rem) - left;
    set_debt(to, bucket, now, debt < 0 ? 0 : debt > most ? most : debt);
    bucket->mark = wr_mark_renew(old->mark);
}

const weir_algorithm wr_token_bucket = {
    .size = sizeof(weir_algorithm),
    .name = "token_bucket",
    .reason = WEIR_REASON_TOKENS,
    .state_bytes = token_bucket_state_bytes,
    .start = token_bucket_start,
    .ask = token_bucket_ask,
    .take = token_bucket_take,
    .give = token_bucket_give,
    .peek = token_bucket_peek,
    .fresh = token_bucket_fresh,
    .carry = token_bucket_carry,
};
