/* SPDX-License-Identifier: MIT */
/* both.c - Runs the strategies aimd and learned together; the longer of their two delays applies,
 * never the sum. */
#include "core/pace/aimd.h"
#include "core/pace/learned.h"
#include "core/pace/strategy.h"

struct both {
    struct wr_aimd aimd;
    struct wr_learned learned;
};

static void start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    struct both *both = state;
    wr_aimd.start(options, &both->aimd, memory, now);
    wr_learned.start(options, &both->learned, memory, now);
}

static void sent(const weir_pace_options *options, void *state, const struct wr_start *start, int64_t now)
{
    struct both *both = state;
    wr_aimd.sent(options, &both->aimd, start, now);
    wr_learned.sent(options, &both->learned, start, now);
}

static void tell(const weir_pace_options *options, void *state, const struct wr_told *answer, int64_t now)
{
    struct both *both = state;
    wr_aimd.tell(options, &both->aimd, answer, now);
    wr_learned.tell(options, &both->learned, answer, now);
}

static void change(const weir_pace_options *options, void *state, int64_t now)
{
    struct both *both = state;
    wr_aimd.change(options, &both->aimd, now);
    wr_learned.change(options, &both->learned, now);
}

static struct wr_want want(const weir_pace_options *options, const void *state, int64_t now)
{
    const struct both *both = state;
    struct wr_want by_rate = wr_aimd.want(options, &both->aimd, now);
    struct wr_want by_delay = wr_learned.want(options, &both->learned, now);
    struct wr_want later = by_rate.earliest_at > by_delay.earliest_at ? by_rate : by_delay;

    later.rate = by_rate.rate < by_delay.rate ? by_rate.rate : by_delay.rate;
    later.tokens = by_rate.tokens;
    return later;
}

static void remember(const weir_pace_options *options, const void *state, int64_t now, weir_pace_memory *memory)
{
    const struct both *both = state;
    wr_aimd.remember(options, &both->aimd, now, memory);
    weir_pace_memory by_rate = *memory;
    wr_learned.remember(options, &both->learned, now, memory);
    if (memory->delay_ns < by_rate.delay_ns)
        memory->delay_ns = by_rate.delay_ns;
    if (memory->floor_ns < by_rate.floor_ns)
        memory->floor_ns = by_rate.floor_ns;
}

static bool settled(const weir_pace_options *options, const void *state, int64_t now)
{
    const struct both *both = state;
    return wr_aimd.settled(options, &both->aimd, now) && wr_learned.settled(options, &both->learned, now);
}

static const char *mode(const void *state)
{
    const struct both *both = state;
    return both->learned.before_ns > 0 ? wr_learned.mode(&both->learned) : wr_aimd.mode(&both->aimd);
}

static const uint16_t instants[] = {offsetof(struct both, aimd.full_at),     offsetof(struct both, aimd.held_until),
                                    offsetof(struct both, learned.floor_at), offsetof(struct both, learned.probed_at),
                                    offsetof(struct both, learned.next_at),  WR_NO_INSTANT};

static bool has_mode(const void *state)
{
    const struct both *both = state;
    return wr_aimd.has_mode(&both->aimd);
}

const struct wr_strategy wr_both = {
    .name = "both",
    .state_bytes = sizeof(struct both),
    .start = start,
    .sent = sent,
    .tell = tell,
    .want = want,
    .change = change,
    .remember = remember,
    .settled = settled,
    .instants = instants,
    .has_mode = has_mode,
    .mode = mode,
};
