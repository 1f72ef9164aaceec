/* SPDX-License-Identifier: MIT */
/* fixed_window.c - a quota per window; windows follow each other from the first request on.
 *
 * Around a boundary twice the quota may pass within one window's length. That is the algorithm; the sliding ones do
 * not.
 */
#include "core/limit/algorithm.h"

struct window {
    int64_t start_at;
    uint64_t count; /* may be beyond the quota: settling charges more, a change lowers the quota */
};

static size_t state_bytes(const weir_limit *limit)
{
    (void)limit;
    return sizeof(struct window);
}

static void start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit;
    ((struct window *)state)->start_at = now;
}

/* The state as it is at `now`: moved on by whole windows, so that the grid does not drift. Before its start counts as
 * inside: a clock that went back opens no window again. */
static struct window window_at(const weir_limit *limit, const void *state, int64_t now)
{
    struct window window = *(const struct window *)state;
    int64_t elapsed_ns = now - window.start_at;
    if (elapsed_ns < limit->period_ns)
        return window;
    return (struct window){.start_at = now - elapsed_ns % limit->period_ns};
}

static int64_t ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    struct window window = window_at(limit, state, now);
    return window.count + permits <= limit->permits ? 0 : window.start_at + limit->period_ns - now;
}

static uint32_t take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    struct window *window = state;
    *window = window_at(limit, state, now);
    window->count += permits;
    return wr_late_mark(now < window->start_at ? window->start_at : now, now);
}

/* Only what was counted in this very window; the windows before are forgotten. */
static void give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark, uint32_t permits)
{
    struct window *window = state;
    *window = window_at(limit, state, now);
    if (at + mark >= window->start_at)
        window->count -= permits < window->count ? permits : window->count;
}

static void peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    uint64_t count = window_at(limit, state, now).count;
    *ret_quota = (weir_quota){
        .limit = limit->permits,
        .remaining = count < limit->permits ? (uint32_t)(limit->permits - count) : 0,
        .reset_ns = ask(limit, state, now, limit->permits),
        .period_ns = limit->period_ns,
    };
}

/* With nothing counted only the grid is left; forgetting it lets no more through than keeping it. */
static bool fresh(const weir_limit *limit, const void *state, int64_t now)
{
    return window_at(limit, state, now).count == 0;
}

static void carry(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state, int64_t now)
{
    struct window *window = to_state;
    *window = window_at(from, from_state, now);
    window->start_at = wr_window_carry(window->start_at, to->period_ns, now);
}

const weir_algorithm wr_fixed_window = {
    .size = sizeof(weir_algorithm),
    .name = "fixed_window",
    .reason = WEIR_REASON_TOKENS,
    .state_bytes = state_bytes,
    .start = start,
    .ask = ask,
    .take = take,
    .give = give,
    .peek = peek,
    .fresh = fresh,
    .carry = carry,
};
