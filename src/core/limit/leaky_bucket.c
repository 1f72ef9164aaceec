/* SPDX-License-Identifier: MIT */
/* leaky_bucket.c - evenly spaced starts, no burst: one at a time, and then the line is closed for an interval.
 *
 * A request of n permits is one start that closes the line for n intervals. The bucket itself, in which requests wait
 * for their turn, is the queue of whoever blocks; its size is limit->queue_max.
 */
#include "core/limit/algorithm.h"

struct leak {
    int64_t next_at; /* the earliest next start */
};

static size_t state_bytes(const weir_limit *limit)
{
    (void)limit;
    return sizeof(struct leak);
}

/* As if the last start had been long ago, so that a change to a longer interval does not delay the first. */
static void start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit;
    ((struct leak *)state)->next_at = now - WEIR_DURATION_MAX;
}

static int64_t ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    (void)limit, (void)permits;
    const struct leak *leak = state;
    return leak->next_at > now ? leak->next_at - now : 0;
}

static uint32_t take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    struct leak *leak = state;
    int64_t from_at = now > leak->next_at ? now : leak->next_at;
    wr_i128 next_at = from_at + (wr_i128)limit->period_ns * permits;
    int64_t most_at = now + 2 * WEIR_DURATION_MAX; /* where settling for much more than was taken ends */

    if (next_at > most_at)
        next_at = from_at > most_at ? from_at : most_at;
    leak->next_at = (int64_t)next_at;
    return wr_instant_mark(leak->next_at);
}

/* Only the last start can be taken back, and the mark tells it: a later one is spaced from it. Then the line is open
 * from that start's own instant on, which was an interval after the one before, or later. */
static void give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark, uint32_t permits)
{
    (void)now;
    struct leak *leak = state;
    wr_i128 next_at = leak->next_at - (wr_i128)limit->period_ns * permits;
    if (mark == wr_instant_mark(leak->next_at) && next_at >= at)
        leak->next_at = (int64_t)next_at;
}

/* One start, whatever it weighs. */
static void peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    int64_t wait_ns = ask(limit, state, now, 1);
    *ret_quota = (weir_quota){
        .limit = 1,
        .remaining = wait_ns == 0,
        .reset_ns = wait_ns,
        .period_ns = limit->period_ns,
    };
}

static bool fresh(const weir_limit *limit, const void *state, int64_t now)
{
    return ask(limit, state, now, 1) == 0;
}

/* The intervals that are still to pass become as many new ones, counted from where the first of them began. So the new
 * spacing holds at once, nothing charged is forgotten, and the same rule put in force again changes nothing. */
static void carry(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state, int64_t now)
{
    int64_t next_at = ((const struct leak *)from_state)->next_at;
    int64_t intervals = next_at - now > from->period_ns ? (next_at - now - 1) / from->period_ns + 1 : 1;
    int64_t began_at = next_at - intervals * from->period_ns;

    if (intervals > to->permits) /* more than one request can be charged: an overcharge, which ends here */
        intervals = to->permits;
    ((struct leak *)to_state)->next_at = began_at + intervals * to->period_ns;
}

const weir_algorithm wr_leaky_bucket = {
    .size = sizeof(weir_algorithm),
    .name = "leaky_bucket",
    .reason = WEIR_REASON_PACE,
    .state_bytes = state_bytes,
    .start = start,
    .ask = ask,
    .take = take,
    .give = give,
    .peek = peek,
    .fresh = fresh,
    .carry = carry,
};
