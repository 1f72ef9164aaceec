/* SPDX-License-Identifier: MIT */
/* rig.h - a gate and its options, driven in virtual time. */
#ifndef WEIR_TEST_PACE_RIG_H
#define WEIR_TEST_PACE_RIG_H

#include "core/pace/gate.h"
#include "core/pace/pace_options.h"
#include "lib/test.h"

#define MS WEIR_MILLISECOND
#define S WEIR_SECOND
#define T0 (1000 * WEIR_SECOND) /* start of timelines; not 0, so that the clock can go back */
#define WALL0 (1700000000 * WEIR_SECOND)

struct gate_fixture {
    weir_pace_options options;
    struct wr_gate *gate; /* allocated at its exact size, so that sanitizers detect overruns */
    uint32_t news;        /* WR_NEWS_... bits of the last wr_gate_tell */
};

/* Returns options without a strategy and without limits, to which a test adds those that it
 * needs. */
static inline weir_pace_options bare_options(void)
{
    weir_pace_options options;
    assert_int_equal(weir_pace_options_profile(&options, WEIR_PROFILE_UNLIMITED), 0);
    return options;
}

static inline weir_pace_options profile_options(weir_profile profile)
{
    weir_pace_options options;
    assert_int_equal(weir_pace_options_profile(&options, profile), 0);
    return options;
}

static inline void rig_restore(struct gate_fixture *ret_rig, weir_pace_options options, const weir_pace_memory *memory,
                               int64_t now, int64_t wall_now)
{
    assert_int_equal(wr_pace_options_check(&options, &ret_rig->options), 0);
    ret_rig->gate = calloc(1, wr_gate_bytes(&ret_rig->options));
    assert_non_null(ret_rig->gate);
    wr_gate_init(ret_rig->gate, &ret_rig->options, memory, now, wall_now);
    assert_true(wr_gate_ok(ret_rig->gate, &ret_rig->options));
}

static inline void rig_init(struct gate_fixture *ret_rig, weir_pace_options options)
{
    rig_restore(ret_rig, options, NULL, T0, WALL0);
}

static inline void rig_release(struct gate_fixture *rig)
{
    free(rig->gate);
    rig->gate = NULL;
}

static inline weir_decision rig_ask(const struct gate_fixture *rig, int64_t now)
{
    return wr_gate_ask(rig->gate, &rig->options, now);
}

static inline bool rig_goes(const struct gate_fixture *rig, int64_t now)
{
    return rig_ask(rig, now).verdict == WEIR_GO;
}

/* Asks, reserves and sends at `now`. Fails the test if the gate does not grant it. */
static inline struct wr_gate_start rig_send(struct gate_fixture *rig, int64_t now)
{
    weir_decision decision = rig_ask(rig, now);
    if (decision.verdict != WEIR_GO)
        fail_msg("waits %lld ns for %s", (long long)decision.wait_ns, weir_reason_name(decision.reason));
    uint32_t seq = wr_gate_reserve(rig->gate, &rig->options, now);
    struct wr_gate_start start = wr_gate_sent(rig->gate, &rig->options, seq, now);
    assert_true(wr_gate_ok(rig->gate, &rig->options));
    return start;
}

static inline uint32_t rig_tell_all(struct gate_fixture *rig, const struct wr_gate_start *start, weir_outcome outcome,
                                    int64_t now, double unit)
{
    outcome.size = sizeof outcome;
    rig->news = wr_gate_tell(rig->gate, &rig->options, start, &outcome, now, unit);
    assert_true(wr_gate_ok(rig->gate, &rig->options));
    return rig->news;
}

/* Reports an answer of this status, without jitter. */
static inline uint32_t rig_tell(struct gate_fixture *rig, struct wr_gate_start start, int status, int64_t now)
{
    return rig_tell_all(rig, &start, (weir_outcome){.status = status}, now, 0);
}

static inline uint32_t rig_tell_retry_after(struct gate_fixture *rig, struct wr_gate_start start, int status,
                                            int64_t retry_after_ns, int64_t now)
{
    weir_outcome outcome = {.status = status, .has_retry_after = true, .retry_after_ns = retry_after_ns};
    return rig_tell_all(rig, &start, outcome, now, 0);
}

/* Sends a request that is answered at the same instant. */
static inline uint32_t rig_answer(struct gate_fixture *rig, int status, int64_t now)
{
    return rig_tell(rig, rig_send(rig, now), status, now);
}

static inline weir_pace_entry rig_look(const struct gate_fixture *rig, int64_t now)
{
    weir_pace_entry entry = {0};
    wr_gate_inspect(rig->gate, &rig->options, now, &entry);
    return entry;
}

/* Checks that the gate waits this long, for this reason. */
#define assert_waits(rig, now, reason_, wait_ns_)                                                               \
    do {                                                                                                        \
        weir_decision decision_ = rig_ask((rig), (now));                                                        \
        int64_t wanted_ns_ = (wait_ns_);                                                                        \
        if (decision_.verdict != WEIR_WAIT || decision_.reason != (reason_) || decision_.wait_ns != wanted_ns_) \
            fail_msg("verdict %d, waits %lld ns for %s; wanted: %lld for %s", (int)decision_.verdict,           \
                     (long long)decision_.wait_ns, weir_reason_name(decision_.reason), (long long)wanted_ns_,   \
                     weir_reason_name(reason_));                                                                \
    } while (0)

#endif
