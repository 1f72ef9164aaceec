/* SPDX-License-Identifier: MIT */
/* gate_memory.c - Creates the stored memory of a gate, and ages and limits it at loading. */
#include "core/pace/gate_memory.h"

#include "core/pace/gate_state.h"

#include <math.h>

#define RATE_MOST 1e9
#define CAP_MOST 1000000 /* requests in flight; strategies count them in floats */

/* Returns a - b, limited to 0 ... INT64_MAX. */
static int64_t time_between(int64_t a, int64_t b)
{
    int64_t ns;
    if (a <= b)
        return 0;
    return __builtin_sub_overflow(a, b, &ns) ? INT64_MAX : ns;
}

static int64_t aged_ns(int64_t delay_ns, const weir_pace_options *options, double half_lives)
{
    delay_ns = wr_ns_within(delay_ns, 0, options->max_delay_ns);
    if (delay_ns <= options->base_delay_ns)
        return delay_ns;
    return options->base_delay_ns + (int64_t)((double)(delay_ns - options->base_delay_ns) * exp2(-half_lives));
}

weir_pace_memory wr_memory_aged(const weir_pace_memory *memory, const weir_pace_options *options, int64_t wall_now)
{
    weir_pace_memory aged = *memory;
    int64_t age_ns = memory->saved_wall_at > 0 ? time_between(wall_now, memory->saved_wall_at) : 0;
    double half_lives = (double)age_ns / (double)options->half_life_ns;
    aged.delay_ns = aged_ns(memory->delay_ns, options, half_lives);
    aged.floor_ns = aged_ns(memory->floor_ns, options, half_lives);
    aged.robots_delay_ns = wr_ns_within(memory->robots_delay_ns, 0, WEIR_DURATION_MAX);
    /* A damaged memory must not delay the next start for years. */
    aged.block_ns = wr_ns_within(memory->block_ns, 0, options->retry_after_max_ns);
    double least = wr_interval_rate(options->retry_after_max_ns);
    aged.rate = memory->rate > 0 && memory->rate <= RATE_MOST ? wr_within(memory->rate, least, RATE_MOST) : 0;
    aged.cap = memory->cap < CAP_MOST ? memory->cap : CAP_MOST;
    return aged;
}

int64_t wr_memory_wait(const weir_pace_memory *memory, const weir_pace_options *options, int64_t wall_now)
{
    int64_t wait_ns = time_between(memory->retry_wall_at, wall_now);
    if (memory->saved_wall_at > 0) {
        int64_t then_ns = time_between(memory->retry_wall_at, memory->saved_wall_at);
        wait_ns = then_ns < wait_ns ? then_ns : wait_ns;
    }
    return wr_ns_within(wait_ns, 0, options->retry_after_max_ns);
}

void wr_gate_remember(const struct wr_gate *gate, const weir_pace_options *options, int64_t now, int64_t wall_now,
                      weir_pace_memory *ret_memory)
{
    int64_t t = wr_gate_time(gate, now);
    weir_pace_memory memory = {
        .robots_delay_ns = gate->robots_delay_ns,
        .saved_wall_at = wall_now,
        .breaker_open = gate->breaker.tripped,
    };
    wr_strategy_of(options->strategy)->remember(options, gate + 1, t, &memory);
    if (gate->hold_until > t && gate->hold_reason != WEIR_REASON_PACE)
        memory.retry_wall_at = wall_now + (gate->hold_until - t);
    *ret_memory = memory;
}
