/* SPDX-License-Identifier: MIT */
/* sliding_window.c - limits requests to a quota over the last window, estimated from two counters.
 *
 *         prev            curr
 *     |-----------|--------e··········|        estimate = prev x (1 - e/window) + curr
 *               slot_at   now                  one more passes if the estimate is below the quota
 *
 * A request for n permits is granted if the first n - 1 leave the estimate below the quota:
 * estimate + n - 1 < quota. Both sides are multiplied by the window, so that the comparison is
 * exact.
 */
#include "core/limit/algorithm.h"

/* A count above 2^32 needs an overcharge and is rare, so 16 bytes per key matter more. A count at
 * the maximum stays there until its slot has passed, whatever is given back. */
struct slots {
    int64_t slot_at;
    uint32_t prev, curr; /* permits used in the previous slot, and in the slot from slot_at on */
};

static size_t sliding_window_state_bytes(const weir_limit *limit)
{
    (void)limit;
    return sizeof(struct slots);
}

static void sliding_window_start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit;
    ((struct slots *)state)->slot_at = now;
}

/* Returns the state at `now`. A `now` before the slot counts as the slot's start. */
static struct slots slots_at(const weir_limit *limit, const void *state, int64_t now)
{
    struct slots slots = *(const struct slots *)state;
    int64_t elapsed_ns = now - slots.slot_at;
    if (elapsed_ns < limit->period_ns)
        return slots;
    return (struct slots){
        .slot_at = now - elapsed_ns % limit->period_ns,
        .prev = elapsed_ns < 2 * limit->period_ns ? slots.curr : 0,
    };
}

/* Returns the time from the start of the slot to `now`, ns; 0 if `now` is earlier. */
static int64_t elapsed_in(struct slots slots, int64_t now)
{
    return now > slots.slot_at ? now - slots.slot_at : 0;
}

/* Returns the earliest time e into a slot, ns, at which prev x (window - e) < room x window; the
 * window's length if that never holds. */
static int64_t open_after(const weir_limit *limit, uint32_t prev, int64_t room)
{
    wr_u128 window = (uint64_t)limit->period_ns;
    if (room <= 0)
        return limit->period_ns;
    if ((uint64_t)room > prev)
        return 0;
    /* window - e < room x window / prev, so window - e is at most the quotient, rounded up, minus
     * 1. */
    wr_u128 bound = ((uint64_t)room * window + prev - 1) / prev;
    return limit->period_ns + 1 - (int64_t)bound;
}

static int64_t sliding_window_ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    struct slots slots = slots_at(limit, state, now);
    int64_t room = (int64_t)limit->permits - permits + 1;
    int64_t window_ns = limit->period_ns;
    int64_t elapsed_ns = elapsed_in(slots, now);

    wr_u128 weighed = (wr_u128)slots.prev * (uint64_t)(window_ns - elapsed_ns);
    if (room > slots.curr && weighed < (wr_u128)(uint64_t)(room - slots.curr) * (uint64_t)window_ns)
        return 0;
    int64_t open_ns = open_after(limit, slots.prev, room - slots.curr);
    /* Not in this slot. In the next one curr becomes prev; one slot later both are 0. */
    if (open_ns >= window_ns)
        open_ns = window_ns + open_after(limit, slots.curr, room);
    return slots.slot_at + open_ns - now;
}

static uint32_t sliding_window_take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    struct slots *slots = state;
    *slots = slots_at(limit, state, now);
    slots->curr = permits < UINT32_MAX - slots->curr ? slots->curr + permits : UINT32_MAX;
    return wr_late_mark(now < slots->slot_at ? slots->slot_at : now, now);
}

static void sliding_window_give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark,
                                uint32_t permits)
{
    struct slots *slots = state;
    *slots = slots_at(limit, state, now);
    uint32_t *count = at + mark >= slots->slot_at ? &slots->curr : &slots->prev;
    if (at + mark < slots->slot_at - limit->period_ns || *count == UINT32_MAX)
        return;
    *count -= permits < *count ? permits : *count;
}

static void sliding_window_peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    struct slots slots = slots_at(limit, state, now);
    uint64_t window_ns = (uint64_t)limit->period_ns;
    uint64_t weighed = (uint64_t)((wr_u128)slots.prev * (window_ns - (uint64_t)elapsed_in(slots, now)) / window_ns);
    uint64_t used = weighed + slots.curr;
    *ret_quota = (weir_quota){
        .limit = limit->permits,
        .remaining = used < limit->permits ? (uint32_t)(limit->permits - used) : 0,
        .reset_ns = sliding_window_ask(limit, state, now, limit->permits),
        .period_ns = limit->period_ns,
    };
}

static bool sliding_window_fresh(const weir_limit *limit, const void *state, int64_t now)
{
    struct slots slots = slots_at(limit, state, now);
    return slots.prev == 0 && slots.curr == 0;
}

static void sliding_window_carry(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state,
                                 int64_t now)
{
    struct slots *slots = to_state;
    *slots = slots_at(from, from_state, now);
    slots->slot_at = wr_window_carry(slots->slot_at, to->period_ns, now);
}

const weir_algorithm wr_sliding_window = {
    .size = sizeof(weir_algorithm),
    .name = "sliding_window",
    .reason = WEIR_REASON_TOKENS,
    .state_bytes = sliding_window_state_bytes,
    .start = sliding_window_start,
    .ask = sliding_window_ask,
    .take = sliding_window_take,
    .give = sliding_window_give,
    .peek = sliding_window_peek,
    .fresh = sliding_window_fresh,
    .carry = sliding_window_carry,
};
