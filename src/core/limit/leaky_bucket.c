/* SPDX-License-Identifier: MIT */
/* leaky_bucket.c - spaces starts evenly, without bursts: after each start, the next must wait for
 * an interval.
 *
 * A request for n permits is one start, after which the next must wait for n intervals. The bucket
 * itself, in which requests wait, is the queue of blocked callers; its size is limit->queue_max.
 */
#include "core/limit/algorithm.h"

struct leak {
    int64_t next_at; /* earliest time of the next start, ns */
};

static size_t leaky_bucket_state_bytes(const weir_limit *limit)
{
    (void)limit;
    return sizeof(struct leak);
}

/* Starts as if the last start were long ago, so that a change to a longer interval does not delay
 * the first request. */
static void leaky_bucket_start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit;
    ((struct leak *)state)->next_at = now - WEIR_DURATION_MAX;
}

static int64_t leaky_bucket_ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    (void)limit, (void)permits;
    const struct leak *leak = state;
    return leak->next_at > now ? leak->next_at - now : 0;
}

static uint32_t leaky_bucket_take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    struct leak *leak = state;
    int64_t from_at = now > leak->next_at ? now : leak->next_at;
    wr_i128 next_at = from_at + (wr_i128)limit->period_ns * permits;
    int64_t most_at = now + 2 * WEIR_DURATION_MAX; /* latest next start after an overcharge */

    if (next_at > most_at)
        next_at = from_at > most_at ? from_at : most_at;
    leak->next_at = (int64_t)next_at;
    return wr_instant_mark(leak->next_at);
}

/* Gives back the last start only; the mark identifies it. An earlier one cannot be given back,
 * because later starts are spaced from it. The next start may then be at the time of the start
 * given back, which was at least an interval after the one before. */
static void leaky_bucket_give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark,
                              uint32_t permits)
{
    (void)now;
    struct leak *leak = state;
    wr_i128 next_at = leak->next_at - (wr_i128)limit->period_ns * permits;
    if (mark == wr_instant_mark(leak->next_at) && next_at >= at)
        leak->next_at = (int64_t)next_at;
}

/* Reports a quota of one start, whatever its number of permits. */
static void leaky_bucket_peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    int64_t wait_ns = leaky_bucket_ask(limit, state, now, 1);
    *ret_quota = (weir_quota){
        .limit = 1,
        .remaining = wait_ns == 0,
        .reset_ns = wait_ns,
        .period_ns = limit->period_ns,
    };
}

static bool leaky_bucket_fresh(const weir_limit *limit, const void *state, int64_t now)
{
    return leaky_bucket_ask(limit, state, now, 1) == 0;
}

/* Converts the intervals that are still to pass into as many new ones, counted from where the first
 * of them began. So the new spacing holds at once, no charge is lost, and a change to an equal rule
 * has no effect. */
static void leaky_bucket_carry(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state,
                               int64_t now)
{
    int64_t next_at = ((const struct leak *)from_state)->next_at;
    int64_t intervals = next_at - now > from->period_ns ? (next_at - now - 1) / from->period_ns + 1 : 1;
    int64_t began_at = next_at - intervals * from->period_ns;

    /* More intervals than one request can charge come from an overcharge. The excess is dropped. */
    if (intervals > to->permits)
        intervals = to->permits;
    ((struct leak *)to_state)->next_at = began_at + intervals * to->period_ns;
}

const weir_algorithm wr_leaky_bucket = {
    .size = sizeof(weir_algorithm),
    .name = "leaky_bucket",
    .reason = WEIR_REASON_PACE,
    .state_bytes = leaky_bucket_state_bytes,
    .start = leaky_bucket_start,
    .ask = leaky_bucket_ask,
    .take = leaky_bucket_take,
    .give = leaky_bucket_give,
    .peek = leaky_bucket_peek,
    .fresh = leaky_bucket_fresh,
    .carry = leaky_bucket_carry,
};
