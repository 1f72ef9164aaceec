/* SPDX-License-Identifier: MIT */
/* fixed.c - Implements the strategy fixed: one start per interval (a leaky bucket). */
#include "core/pace/rate.h"
#include "core/pace/strategy.h"

#define INTERVAL_NS WEIR_SECOND /* interval if the options name none */

struct fixed {
    int64_t next_at; /* earliest time of the next start */
};

static int64_t fixed_interval(const weir_pace_options *options)
{
    return options->min_interval_ns > 0 ? options->min_interval_ns : INTERVAL_NS;
}

static void fixed_start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    struct fixed *fixed = state;
    fixed->next_at = memory != NULL ? now + fixed_interval(options) : now;
}

/* Schedules the next start one interval after this one. Idle time earns no additional starts. */
static void fixed_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now)
{
    (void)start;
    struct fixed *fixed = state;
    fixed->next_at = now + fixed_interval(options);
}

static void fixed_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer,
                       int64_t now)
{
    (void)options, (void)state, (void)answer, (void)now;
}

static struct wr_pace_bounds fixed_want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)now;
    const struct fixed *fixed = state;
    return (struct wr_pace_bounds){
        .earliest_at = fixed->next_at,
        .reason = WEIR_REASON_PACE,
        .cap = UINT32_MAX,
        .rate = wr_interval_rate(fixed_interval(options)),
    };
}

static void fixed_remember(const weir_pace_options *options, const void *state, int64_t now, weir_pace_memory *memory)
{
    (void)state, (void)now;
    memory->delay_ns = memory->floor_ns = fixed_interval(options);
}

static bool fixed_settled(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options;
    const struct fixed *fixed = state;
    return now >= fixed->next_at;
}

static const char *fixed_mode(const void *state)
{
    (void)state;
    return "fixed";
}

static const uint16_t instants[] = {offsetof(struct fixed, next_at), WR_NO_INSTANT};

const struct wr_strategy wr_fixed = {
    .name = "fixed",
    .state_bytes = sizeof(struct fixed),
    .start = fixed_start,
    .sent = fixed_sent,
    .tell = fixed_tell,
    .want = fixed_want,
    .remember = fixed_remember,
    .settled = fixed_settled,
    .instants = instants,
    .mode = fixed_mode,
};
