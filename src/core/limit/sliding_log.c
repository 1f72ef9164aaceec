/* SPDX-License-Identifier: MIT */
/* sliding_log.c - limits requests to an exact quota over the last window, from the instants of the
 * last permits.
 *
 *     head
 *      v
 *     [ oldest … newest | unused … ]     a ring of limit->permits instants that never go back
 *
 * An instant is outside the window once now - at >= window. Instants outside are not removed: with
 * `len` instants kept, n more fit if the (len + n - permits)-th oldest is outside. So `ask` looks
 * at one instant only.
 */
#include "core/limit/algorithm.h"

struct log {
    uint32_t head, len;
    /* Instants dropped by a smaller quota while they still counted; older than all in `at`. */
    uint32_t lost;
    uint32_t unused;
    int64_t at[];
};

static size_t sliding_log_state_bytes(const weir_limit *limit)
{
    return sizeof(struct log) + limit->permits * sizeof(int64_t);
}

static void sliding_log_start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit, (void)state, (void)now; /* a zeroed state is empty */
}

/* Returns the index in `at` of the i-th oldest instant. */
static uint32_t ring_index(const weir_limit *limit, const struct log *log, uint32_t i)
{
    uint32_t place = log->head + i; /* no overflow: both are at most WEIR_LOG_MAX */
    return place < limit->permits ? place : place - limit->permits;
}

static int64_t instant_at_index(const weir_limit *limit, const struct log *log, uint32_t i)
{
    return log->at[ring_index(limit, log, i)];
}

/* Returns the number of instants at or before `at`. */
static uint32_t count_until(const weir_limit *limit, const struct log *log, int64_t at)
{
    uint32_t low = 0, high = log->len;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (instant_at_index(limit, log, middle) <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t sliding_log_ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    const struct log *log = state;
    if (log->len + permits <= limit->permits)
        return 0;
    int64_t wait_ns = instant_at_index(limit, log, log->len + permits - limit->permits - 1) + limit->period_ns - now;
    return wait_ns > 0 ? wait_ns : 0;
}

/* Adds instants and keeps the newest. An overcharge beyond the quota drops instants that still
 * count, so it delays later requests by one window at most. */
static uint32_t sliding_log_take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    struct log *log = state;
    uint32_t adds = permits < limit->permits ? permits : limit->permits;
    int64_t at = now;

    if (log->len > 0 && instant_at_index(limit, log, log->len - 1) > now)
        at = instant_at_index(limit, log, log->len - 1);
    if (log->len + adds > limit->permits) {
        uint32_t drops = log->len + adds - limit->permits;
        log->head = ring_index(limit, log, drops);
        log->len -= drops;
    }
    for (uint32_t i = 0; i < adds; i++)
        log->at[ring_index(limit, log, log->len++)] = at;
    return wr_late_mark(at, now);
}

static void sliding_log_give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark,
                             uint32_t permits)
{
    (void)now;
    struct log *log = state;
    uint32_t end = count_until(limit, log, at + mark);
    uint32_t same = end - count_until(limit, log, at + mark - 1);
    uint32_t drops = permits < same ? permits : same;

    if (drops == 0)
        return;
    for (uint32_t i = end; i < log->len; i++)
        log->at[ring_index(limit, log, i - drops)] = instant_at_index(limit, log, i);
    log->len -= drops;
}

/* Returns the number of instants inside the window at `now`. */
static uint32_t count_inside(const weir_limit *limit, const struct log *log, int64_t now)
{
    return log->len - count_until(limit, log, now - limit->period_ns);
}

static void sliding_log_peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    *ret_quota = (weir_quota){
        .limit = limit->permits,
        .remaining = limit->permits - count_inside(limit, state, now),
        .reset_ns = sliding_log_ask(limit, state, now, limit->permits),
        .period_ns = limit->period_ns,
    };
}

static bool sliding_log_fresh(const weir_limit *limit, const void *state, int64_t now)
{
    return count_inside(limit, state, now) == 0;
}

/* Returns the number of instants that count at `now` and are not among the newest `kept`, including
 * those that an earlier change dropped. */
static uint32_t count_lost(const weir_limit *limit, const struct log *log, uint32_t kept, int64_t now)
{
    uint32_t inside = count_inside(limit, log, now);
    if (inside < kept || inside == 0)
        return 0; /* the oldest instant kept is outside the window, and so are all before it */
    return log->lost + inside - kept;
}

/* Copies the newest instants that fit, and counts those that do not. A larger quota restores the
 * dropped ones at the instant of the oldest one kept: their own instants are lost, so they expire a
 * bit late, but they still count. */
static void sliding_log_carry(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state,
                              int64_t now)
{
    const struct log *old = from_state;
    struct log *log = to_state;
    uint32_t kept = old->len < to->permits ? old->len : to->permits;
    uint32_t lost = count_lost(from, old, kept, now);
    uint32_t back = lost < to->permits - kept ? lost : to->permits - kept;

    log->lost = lost - back;
    log->len = back + kept;
    for (uint32_t i = 0; i < log->len; i++)
        log->at[i] = instant_at_index(from, old, old->len - kept + (i < back ? 0 : i - back));
}

const weir_algorithm wr_sliding_log = {
    .size = sizeof(weir_algorithm),
    .name = "sliding_log",
    .reason = WEIR_REASON_TOKENS,
    .state_bytes = sliding_log_state_bytes,
    .start = sliding_log_start,
    .ask = sliding_log_ask,
    .take = sliding_log_take,
    .give = sliding_log_give,
    .peek = sliding_log_peek,
    .fresh = sliding_log_fresh,
    .carry = sliding_log_carry,
};
