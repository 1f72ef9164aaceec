/* SPDX-License-Identifier: MIT */
/* sliding_log.c - the instants of the last permits: a quota over the last window, exactly.
 *
 *     head
 *      v
 *     [ oldest … newest | unused … ]     a ring of limit->permits instants that never go back
 *
 * An instant is outside once now - at >= window. Nothing needs to be thrown away when it is: with `len` kept, n more
 * fit if the (len + n - permits)-th oldest is outside, so asking looks at one instant.
 */
#include "core/limit/algorithm.h"

struct log {
    uint32_t head, len;
    uint32_t lost; /* instants that still counted when a smaller quota had no room for them; older than all here */
    uint32_t unused;
    int64_t at[];
};

static size_t state_bytes(const weir_limit *limit)
{
    return sizeof(struct log) + limit->permits * sizeof(int64_t);
}

static void start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit, (void)state, (void)now; /* zeroed is empty */
}

/* Where the i-th oldest lies. */
static uint32_t place(const weir_limit *limit, const struct log *log, uint32_t i)
{
    uint32_t place = log->head + i; /* both below WEIR_LOG_MAX, or equal to it */
    return place < limit->permits ? place : place - limit->permits;
}

static int64_t instant(const weir_limit *limit, const struct log *log, uint32_t i)
{
    return log->at[place(limit, log, i)];
}

/* How many instants are at or before `at`. */
static uint32_t count_until(const weir_limit *limit, const struct log *log, int64_t at)
{
    uint32_t low = 0, high = log->len;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (instant(limit, log, middle) <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    const struct log *log = state;
    if (log->len + permits <= limit->permits)
        return 0;
    int64_t wait_ns = instant(limit, log, log->len + permits - limit->permits - 1) + limit->period_ns - now;
    return wait_ns > 0 ? wait_ns : 0;
}

/* Keeps the newest: an overcharge beyond the quota pushes out instants that still count, and so delays by a window at
 * most. */
static uint32_t take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    struct log *log = state;
    uint32_t adds = permits < limit->permits ? permits : limit->permits;
    int64_t at = now;

    if (log->len > 0 && instant(limit, log, log->len - 1) > now)
        at = instant(limit, log, log->len - 1);
    if (log->len + adds > limit->permits) {
        uint32_t drops = log->len + adds - limit->permits;
        log->head = place(limit, log, drops);
        log->len -= drops;
    }
    for (uint32_t i = 0; i < adds; i++)
        log->at[place(limit, log, log->len++)] = at;
    return wr_late_mark(at, now);
}

static void give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark, uint32_t permits)
{
    (void)now;
    struct log *log = state;
    uint32_t end = count_until(limit, log, at + mark);
    uint32_t same = end - count_until(limit, log, at + mark - 1);
    uint32_t drops = permits < same ? permits : same;

    if (drops == 0)
        return;
    for (uint32_t i = end; i < log->len; i++)
        log->at[place(limit, log, i - drops)] = instant(limit, log, i);
    log->len -= drops;
}

/* How many instants count at `now`. */
static uint32_t count_inside(const weir_limit *limit, const struct log *log, int64_t now)
{
    return log->len - count_until(limit, log, now - limit->period_ns);
}

static void peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    *ret_quota = (weir_quota){
        .limit = limit->permits,
        .remaining = limit->permits - count_inside(limit, state, now),
        .reset_ns = ask(limit, state, now, limit->permits),
        .period_ns = limit->period_ns,
    };
}

static bool fresh(const weir_limit *limit, const void *state, int64_t now)
{
    return count_inside(limit, state, now) == 0;
}

/* How many instants count now but are not among the newest `kept`. They may be remembered from an earlier change. */
static uint32_t count_lost(const weir_limit *limit, const struct log *log, uint32_t kept, int64_t now)
{
    uint32_t inside = count_inside(limit, log, now);
    if (inside < kept || inside == 0)
        return 0; /* the oldest of those kept is outside, and so are all before it */
    return log->lost + inside - kept;
}

/* Keeps the newest that fit, and how many did not. A larger quota takes those in again, at the instant of the oldest
 * that was kept: a bit late, for their own are gone, but never forgotten. */
static void carry(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state, int64_t now)
{
    const struct log *old = from_state;
    struct log *log = to_state;
    uint32_t kept = old->len < to->permits ? old->len : to->permits;
    uint32_t lost = count_lost(from, old, kept, now);
    uint32_t back = lost < to->permits - kept ? lost : to->permits - kept;

    log->lost = lost - back;
    log->len = back + kept;
    for (uint32_t i = 0; i < log->len; i++)
        log->at[i] = instant(from, old, old->len - kept + (i < back ? 0 : i - back));
}

const weir_algorithm wr_sliding_log = {
    .size = sizeof(weir_algorithm),
    .name = "sliding_log",
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
