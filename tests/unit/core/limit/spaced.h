/* SPDX-License-Identifier: MIT */
/* spaced.h - a custom algorithm as a user of the library might write it. Starts are at least
 * `params` ns apart, and at most limit->permits in total: the count is never reset. */
#ifndef WEIR_TEST_LIMIT_SPACED_H
#define WEIR_TEST_LIMIT_SPACED_H

#include <weir/limit.h>

struct spaced {
    int64_t last_at;
    uint32_t used;
    bool started;
};

static inline size_t spaced_bytes(const weir_limit *limit)
{
    (void)limit;
    return sizeof(struct spaced) - 3; /* odd on purpose: the stack must align the next state */
}

static inline void spaced_start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit, (void)now;
    ((struct spaced *)state)->started = false;
}

static inline int64_t spaced_ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    const struct spaced *spaced = state;
    int64_t gap_ns = *(const int64_t *)limit->params;
    if (spaced->used + permits > limit->permits)
        return WEIR_UNTIL_RELEASE;
    return spaced->started ? spaced->last_at + gap_ns - now : 0; /* a negative wait counts as 0 */
}

static inline uint32_t spaced_take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    (void)limit;
    struct spaced *spaced = state;
    spaced->started = true;
    spaced->last_at = spaced->last_at > now ? spaced->last_at : now;
    spaced->used += permits;
    return 4711;
}

static inline void spaced_give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark,
                               uint32_t permits)
{
    (void)limit, (void)now, (void)at;
    if (mark == 4711)
        ((struct spaced *)state)->used -= permits;
}

static inline void spaced_peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    (void)now;
    *ret_quota =
        (weir_quota){.limit = limit->permits, .remaining = limit->permits - ((const struct spaced *)state)->used};
}

static inline bool spaced_fresh(const weir_limit *limit, const void *state, int64_t now)
{
    (void)limit, (void)now;
    return !((const struct spaced *)state)->started;
}

static const weir_algorithm spaced_algorithm = {
    .size = sizeof(weir_algorithm),
    .name = "spaced",
    .reason = WEIR_REASON_JOB_LIMIT,
    .state_bytes = spaced_bytes,
    .start = spaced_start,
    .ask = spaced_ask,
    .take = spaced_take,
    .give = spaced_give,
    .peek = spaced_peek,
    .fresh = spaced_fresh,
};

#endif
