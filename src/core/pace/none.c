/* SPDX-License-Identifier: MIT */
/* none.c - Implements the strategy none: only the gate's own bounds apply. */
#include "core/pace/strategy.h"

#include <math.h>

static void none_start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    (void)options, (void)state, (void)memory, (void)now;
}

static void none_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now)
{
    (void)options, (void)state, (void)start, (void)now;
}

static void none_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer, int64_t now)
{
    (void)options, (void)state, (void)answer, (void)now;
}

static struct wr_pace_bounds none_want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)state, (void)now;
    return (struct wr_pace_bounds){0, WEIR_REASON_NONE, UINT32_MAX, (double)INFINITY, 0};
}

static void none_remember(const weir_pace_options *options, const void *state, int64_t now, weir_pace_memory *memory)
{
    (void)options, (void)state, (void)now, (void)memory;
}

static bool none_settled(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)state, (void)now;
    return true;
}

static const char *none_mode(const void *state)
{
    (void)state;
    return "free";
}

static const uint16_t instants[] = {WR_NO_INSTANT};

const struct wr_strategy wr_none = {
    .name = "none",
    .state_bytes = 0,
    .start = none_start,
    .sent = none_sent,
    .tell = none_tell,
    .want = none_want,
    .remember = none_remember,
    .settled = none_settled,
    .instants = instants,
    .mode = none_mode,
};
