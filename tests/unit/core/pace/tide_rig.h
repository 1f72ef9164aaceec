/* SPDX-License-Identifier: MIT */
/* tide_rig.h - tide, driven one request at a time. */
#ifndef WEIR_TEST_PACE_TIDE_RIG_H
#define WEIR_TEST_PACE_TIDE_RIG_H

#include "core/pace/tide.h"
#include "strategy_rig.h"

#define LATENCY (20 * MS)

static inline struct strategy_fixture tide(const weir_pace_memory *memory)
{
    struct strategy_fixture rig;
    weir_pace_options options = rig_options();
    rig_init(&rig, &wr_tide, &options, memory, T0);
    return rig;
}

static inline double rate_at(const struct strategy_fixture *rig, int64_t now)
{
    return rig_want(rig, now).rate;
}

static inline void assert_mode(const struct strategy_fixture *rig, const char *word)
{
    assert_string_equal(rig->strategy->mode(rig->state), word);
}

/* Waits until tide permits a request, sends it, and answers it after LATENCY. Returns the time of
 * the answer. */
static inline int64_t answer(struct strategy_fixture *rig, int64_t now, int status)
{
    now += rig_wait(rig, now);
    rig_send(rig, now);
    now += LATENCY;
    rig_tell(rig, now, status, LATENCY, -1);
    return now;
}

static inline int64_t succeed(struct strategy_fixture *rig, int64_t now, int count)
{
    while (count-- > 0)
        now = answer(rig, now, 200);
    return now;
}

/* Token bucket of a host. */
struct bucket {
    double rate, burst, tokens;
    int64_t at;
};

static inline int64_t step_bucket(struct strategy_fixture *rig, struct bucket *bucket, int64_t now, int *rejections)
{
    int64_t at = now + rig_wait(rig, now);
    bucket->tokens = fmin(bucket->burst, bucket->tokens + bucket->rate * (double)(at - bucket->at) / 1e9);
    bucket->at = at;
    bool goes = bucket->tokens >= 1;
    bucket->tokens -= goes ? 1 : 0;
    *rejections += !goes;
    return answer(rig, now, goes ? 200 : 429);
}

#endif
