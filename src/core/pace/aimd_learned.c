/* SPDX-License-Identifier: MIT */
/* aimd_learned.c - Runs the strategies aimd and learned together; the longer of their two delays
 * applies, never the sum. */
#include "core/pace/aimd.h"
#include "core/pace/learned.h"
#include "core/pace/strategy.h"

struct aimd_learned {
    struct wr_aimd aimd;
    struct wr_learned learned;
};

static void start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    struct aimd_learned *both = state;
    wr_aimd.start(options, &both->aimd, memory, now);
    wr_learned.start(options, &both->learned, memory, now);
}

static void aimd_learned_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start,
                              int64_t now)
{
    struct aimd_learned *both = state;
    wr_aimd.sent(options, &both->aimd, start, now);
    wr_learned.sent(options, &both->learned, start, now);
}

static void aimd_learned_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer,
                              int64_t now)
{
    struct aimd_learned *both = state;
    wr_aimd.tell(options, &both->aimd, answer, now);
    wr_learned.tell(options, &both->learned, answer, now);
}

static void aimd_learned_change(const weir_pace_options *options, void *state, int64_t now)
{
    struct aimd_learned *both = state;
    wr_aimd.change(options, &both->aimd, now);
    wr_learned.change(options, &both->learned, now);
}

static struct wr_pace_bounds aimd_learned_want(const weir_pace_options *options, const void *state, int64_t now)
{
    const struct aimd_learned *both = state;
    struct wr_pace_bounds by_rate = wr_aimd.want(options, &both->aimd, now);
    struct wr_pace_bounds by_delay = wr_learned.want(options, &both->learned, now);
    struct wr_pace_bounds later = by_rate.earliest_at > by_delay.earliest_at ? by_rate : by_delay;

    later.rate = by_rate.rate < by_delay.rate ? by_rate.rate : by_delay.rate;
    later.tokens = by_rate.tokens;
    return later;
}

static void aimd_learned_remember(const weir_pace_options *options, const void *state, int64_t now,
                                  weir_pace_memory *memory)
{
    const struct aimd_learned *both = state;
    wr_aimd.remember(options, &both->aimd, now, memory);
    weir_pace_memory by_rate = *memory;
    wr_learned.remember(options, &both->learned, now, memory);
    if (memory->delay_ns < by_rate.delay_ns)
        memory->delay_ns = by_rate.delay_ns;
    if (memory->floor_ns < by_rate.floor_ns)
        memory->floor_ns = by_rate.floor_ns;
}

static bool aimd_learned_settled(const weir_pace_options *options, const void *state, int64_t now)
{
    const struct aimd_learned *both = state;
    return wr_aimd.settled(options, &both->aimd, now) && wr_learned.settled(options, &both->learned, now);
}

static const char *aimd_learned_mode(const void *state)
{
    const struct aimd_learned *both = state;
    return both->learned.before_ns > 0 ? wr_learned.mode(&both->learned) : wr_aimd.mode(&both->aimd);
}

static const uint16_t instants[] = {
    offsetof(struct aimd_learned, aimd.full_at),     offsetof(struct aimd_learned, aimd.held_until),
    offsetof(struct aimd_learned, learned.floor_at), offsetof(struct aimd_learned, learned.probed_at),
    offsetof(struct aimd_learned, learned.next_at),  WR_NO_INSTANT};

static bool aimd_learned_has_mode(const void *state)
{
    const struct aimd_learned *both = state;
    return wr_aimd.has_mode(&both->aimd);
}

const struct wr_strategy wr_aimd_learned = {
    .name = "both",
    .state_bytes = sizeof(struct aimd_learned),
    .start = start,
    .sent = aimd_learned_sent,
    .tell = aimd_learned_tell,
    .want = aimd_learned_want,
    .change = aimd_learned_change,
    .remember = aimd_learned_remember,
    .settled = aimd_learned_settled,
    .instants = instants,
    .has_mode = aimd_learned_has_mode,
    .mode = aimd_learned_mode,
};
