/* SPDX-License-Identifier: MIT */
/* fixed_window.c - limits requests to a quota per window; the windows follow each other from the
 * first request on.
 *
 * Around a boundary, twice the quota may pass within the length of one window. This is a property
 * of the algorithm; the sliding window algorithms do not have it.
 */
#include "core/limit/algorithm.h"

struct window {
    int64_t start_at;
    uint64_t count; /* permits used; more than the quota after an overcharge or a lowered quota */
};

static size_t fixed_window_state_bytes(const weir_limit *limit)
{
    (void)limit;
    return sizeof(struct window);
}

static void fixed_window_start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit;
    ((struct window *)state)->start_at = now;
}

/* Returns the state at `now`, advanced by whole windows so that the grid does not drift. A `now`
 * before the window's start counts as inside it: a clock that goes back does not reopen a
 * window. */
static struct window window_at(const weir_limit *limit, const void *state, int64_t now)
{
    struct window window = *(const struct window *)state;
    int64_t elapsed_ns = now - window.start_at;
    if (elapsed_ns < limit->period_ns)
        return window;
    return (struct window){.start_at = now - elapsed_ns % limit->period_ns};
}

static int64_t fixed_window_ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    struct window window = window_at(limit, state, now);
    return window.count + permits <= limit->permits ? 0 : window.start_at + limit->period_ns - now;
}

static uint32_t fixed_window_take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    struct window *window = state;
    *window = window_at(limit, state, now);
    window->count += permits;
    return wr_late_mark(now < window->start_at ? window->start_at : now, now);
}

/* Gives back permits only if they were counted in the current window; earlier windows are
 * forgotten. */
static void fixed_window_give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark,
                              uint32_t permits)
{
    struct window *window = state;
    *window = window_at(limit, state, now);
    if (at + mark >= window->start_at)
        window->count -= permits < window->count ? permits : window->count;
}

static void fixed_window_peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    uint64_t count = window_at(limit, state, now).count;
    *ret_quota = (weir_quota){
        .limit = limit->permits,
        .remaining = count < limit->permits ? (uint32_t)(limit->permits - count) : 0,
        .reset_ns = fixed_window_ask(limit, state, now, limit->permits),
        .period_ns = limit->period_ns,
    };
}

/* Returns true if the count is 0. Then only the grid is left, and forgetting it grants no more than
 * keeping it. */
static bool fixed_window_fresh(const weir_limit *limit, const void *state, int64_t now)
{
    return window_at(limit, state, now).count == 0;
}

static void fixed_window_carry(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state,
                               int64_t now)
{
    struct window *window = to_state;
    *window = window_at(from, from_state, now);
    window->start_at = wr_window_carry(window->start_at, to->period_ns, now);
}

const weir_algorithm wr_fixed_window = {
    .size = sizeof(weir_algorithm),
    .name = "fixed_window",
    .reason = WEIR_REASON_TOKENS,
    .state_bytes = fixed_window_state_bytes,
    .start = fixed_window_start,
    .ask = fixed_window_ask,
    .take = fixed_window_take,
    .give = fixed_window_give,
    .peek = fixed_window_peek,
    .fresh = fixed_window_fresh,
    .carry = fixed_window_carry,
};
