/* SPDX-License-Identifier: MIT */
/* rig.h - a stack of limits with its state, and timelines of calls to run on it. */
#ifndef WEIR_TEST_LIMIT_RIG_H
#define WEIR_TEST_LIMIT_RIG_H

#include "lib/test.h"
#include <weir/limit.h>

#define MS WEIR_MILLISECOND
#define T0 (1000 * WEIR_SECOND) /* start of timelines; not 0, so that the clock can go back */

struct limit_fixture {
    weir_stack stack;
    void *state; /* allocated at its exact size, so that sanitizers detect overruns */
};

static inline void rig_init(struct limit_fixture *ret_rig, const weir_limit *limits, size_t count, int64_t now)
{
    assert_int_equal(weir_stack_init(&ret_rig->stack, limits, count), 0);
    ret_rig->state = calloc(1, ret_rig->stack.state_bytes);
    assert_non_null(ret_rig->state);
    weir_stack_start(&ret_rig->stack, ret_rig->state, now);
}

static inline void rig_release(struct limit_fixture *rig)
{
    free(rig->state);
    rig->state = NULL;
}

static inline bool rig_try(struct limit_fixture *rig, int64_t now, uint32_t permits)
{
    return weir_stack_try(&rig->stack, rig->state, now, permits, NULL).verdict == WEIR_GO;
}

static inline weir_receipt rig_reserve(struct limit_fixture *rig, int64_t now, uint32_t permits)
{
    weir_receipt receipt;
    weir_decision decision = weir_stack_try(&rig->stack, rig->state, now, permits, &receipt);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_int_equal(receipt.permits, permits);
    return receipt;
}

static inline void rig_settle(struct limit_fixture *rig, int64_t now, weir_receipt *receipt, uint32_t used)
{
    weir_stack_settle(&rig->stack, rig->state, now, receipt, used);
    assert_int_equal(receipt->permits, 0);
}

static inline int64_t rig_wait(const struct limit_fixture *rig, int64_t now, uint32_t permits)
{
    return weir_stack_ask(&rig->stack, rig->state, now, permits).wait_ns;
}

static inline weir_quota rig_peek(const struct limit_fixture *rig, int64_t now)
{
    weir_quota quota;
    weir_stack_peek(&rig->stack, rig->state, now, &quota);
    return quota;
}

/* Replaces the rules by others and carries the state over. */
static inline void rig_change(struct limit_fixture *rig, const weir_limit *limits, size_t count, int64_t now)
{
    struct limit_fixture old = *rig;
    rig_init(rig, limits, count, now);
    memset(rig->state, 0, rig->stack.state_bytes);
    assert_int_equal(weir_stack_carry(&old.stack, old.state, &rig->stack, rig->state, now), 0);
    rig_release(&old);
}

/* Takes single permits at `now` until one is refused, and returns how many were granted. */
static inline uint32_t rig_drain(struct limit_fixture *rig, int64_t now)
{
    uint32_t count = 0;
    while (rig_try(rig, now, 1))
        count++;
    return count;
}

/* One row of a timeline: asks for `permits` at `at_ns` after T0 and expects this wait: 0 for "go",
 * NEVER for "deny". TRY takes granted permits, ASK does not. */
#define NEVER (-1)
enum verb {
    TRY,
    ASK,
    FORCE, /* take, granted or not; wait_ns is ignored */
    RELEASE,
};
struct tick {
    int64_t at_ns;
    enum verb verb;
    uint32_t permits;
    int64_t wait_ns;
};

static inline weir_decision tick_run(struct limit_fixture *rig, const struct tick *tick)
{
    weir_decision decision = {.verdict = WEIR_GO};
    int64_t now = T0 + tick->at_ns;

    if (tick->verb == TRY)
        decision = weir_stack_try(&rig->stack, rig->state, now, tick->permits, NULL);
    else if (tick->verb == ASK)
        decision = weir_stack_ask(&rig->stack, rig->state, now, tick->permits);
    else if (tick->verb == FORCE)
        weir_stack_take(&rig->stack, rig->state, now, tick->permits, NULL);
    else
        weir_stack_release(&rig->stack, rig->state, tick->permits);
    return decision;
}

static inline void timeline(struct limit_fixture *rig, const struct tick *ticks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weir_decision decision = tick_run(rig, &ticks[i]);
        int64_t wait_ns = decision.verdict == WEIR_DENY ? NEVER : decision.wait_ns;
        bool told = (decision.verdict == WEIR_GO) == (decision.reason == WEIR_REASON_NONE);
        if (ticks[i].verb <= ASK && (wait_ns != ticks[i].wait_ns || !told))
            fail_msg("row %zu: waits %lld ns (%s), not %lld", i, (long long)wait_ns, weir_reason_name(decision.reason),
                     (long long)ticks[i].wait_ns);
    }
}

/* Runs a timeline of one limit, which starts at T0. */
#define TIMELINE(limit, ...)                                       \
    do {                                                           \
        const struct tick ticks_[] = {__VA_ARGS__};                \
        struct limit_fixture rig_;                                 \
        rig_init(&rig_, &(limit), 1, T0);                          \
        timeline(&rig_, ticks_, sizeof ticks_ / sizeof ticks_[0]); \
        rig_release(&rig_);                                        \
    } while (0)

#endif
