/* SPDX-License-Identifier: MIT */
/* strategy_rig.h - one strategy with its state, driven by hand in virtual time. */
#ifndef WEIR_TEST_PACE_STRATEGY_RIG_H
#define WEIR_TEST_PACE_STRATEGY_RIG_H

#include "core/pace/strategy.h"
#include "lib/test.h"
#include <math.h>

#define MS WEIR_MILLISECOND
#define T0 (1000 * WEIR_SECOND) /* start of timelines */

struct strategy_fixture {
    const struct wr_strategy *strategy;
    weir_pace_options options;
    void *state; /* allocated at its exact size, so that sanitizers detect overruns */
    uint32_t seq;
    uint32_t in_flight;
};

/* Returns options with all numbers of the requirements. */
static inline weir_pace_options rig_options(void)
{
    return (weir_pace_options){
        .size = sizeof(weir_pace_options),
        .initial_rate = 2,
        .min_rate = 0.25,
        .rate_ceiling = 8,
        .burst = 4,
        .increase = 0.25,
        .decrease = 0.5,
        .latency_target_ns = WEIR_SECOND,
        .degrade_factor = 2,
        .latency_weight = 0.2,
        .base_delay_ns = 500 * MS,
        .max_delay_ns = WEIR_MINUTE,
        .delay_up_ns = WEIR_SECOND,
        .delay_down_ns = WEIR_SECOND,
        .probe_after = 20,
        .half_life_ns = 6 * WEIR_HOUR,
    };
}

static inline void rig_init(struct strategy_fixture *ret_rig, const struct wr_strategy *strategy,
                            const weir_pace_options *options, const weir_pace_memory *memory, int64_t now)
{
    *ret_rig =
        (struct strategy_fixture){.strategy = strategy, .options = *options, .state = calloc(1, strategy->state_bytes)};
    assert_non_null(ret_rig->state);
    /* alignment is 4 on 32-bit x86 */
    assert_int_equal(strategy->state_bytes % _Alignof(struct { int64_t at; }), 0);
    strategy->start(&ret_rig->options, ret_rig->state, memory, now);
}

static inline void rig_release(struct strategy_fixture *rig)
{
    free(rig->state);
    rig->state = NULL;
}

static inline struct wr_pace_bounds rig_want(const struct strategy_fixture *rig, int64_t now)
{
    return rig->strategy->want(&rig->options, rig->state, now);
}

/* Returns the wait until the next start; 0 if it may be now. */
static inline int64_t rig_wait(const struct strategy_fixture *rig, int64_t now)
{
    int64_t earliest_at = rig_want(rig, now).earliest_at;
    return earliest_at > now ? earliest_at - now : 0;
}

static inline void rig_send(struct strategy_fixture *rig, int64_t now)
{
    struct wr_pace_start start = {.seq = ++rig->seq, .in_flight = ++rig->in_flight};
    rig->strategy->sent(&rig->options, rig->state, &start, now);
}

/* Sends if the strategy permits it, as a gate would. Returns whether it sent. */
static inline bool rig_try(struct strategy_fixture *rig, int64_t now)
{
    if (rig_wait(rig, now) > 0 || rig->in_flight >= rig_want(rig, now).cap)
        return false;
    rig_send(rig, now);
    return true;
}

/* Reports an answer to a request sent latency_ns ago. retry_after_ns -1: no Retry-After. */
static inline void rig_tell(struct strategy_fixture *rig, int64_t now, int status, int64_t latency_ns,
                            int64_t retry_after_ns)
{
    rig->in_flight -= rig->in_flight > 0;
    struct wr_pace_response answer = {
        .kind = wr_pace_response_kind(status),
        .status = status,
        .seq = rig->seq,
        .in_flight_then = rig->in_flight + 1,
        .in_flight = rig->in_flight,
        .sent_at = now - latency_ns,
        .latency_ns = latency_ns,
        .retry_after_ns = retry_after_ns,
        .quota_limit = -1,
        .quota_remaining = -1,
        .quota_reset_ns = -1,
    };
    rig->strategy->tell(&rig->options, rig->state, &answer, now);
}

static inline weir_pace_memory rig_memory(const struct strategy_fixture *rig, int64_t now)
{
    weir_pace_memory memory = {0};
    rig->strategy->remember(&rig->options, rig->state, now, &memory);
    return memory;
}

#define assert_near(a, b, within)                                                                      \
    do {                                                                                               \
        double left = (a), right = (b);                                                                \
        if (!(fabs(left - right) <= (within)))                                                         \
            fail_msg("%s is %.9g, which is not within %g of %.9g", #a, left, (double)(within), right); \
    } while (0)

#endif
