/* SPDX-License-Identifier: MIT */
/* vegas.c - Models VegasLimit of Netflix concurrency-limits.
 *
 *     queue = ceil(limit * (1 - least / latency))      least: shortest latency since the last probe
 *     step  = max(1, whole part of log10 limit)
 *
 *     dropped                limit -= step
 *     in flight * 2 < limit  stays
 *     queue <= step          limit += 6 step
 *     queue < 3 step         limit += step
 *     queue > 6 step         limit -= step
 *
 * A probe, after 30 * limit responses times 0.5 ... 1 at random, resets the shortest latency. The
 * limit starts at 20 and stays within 1 ... 1000. The latency of a drop is ignored.
 */
#include "base/rng.h"
#include "sim/peers/peers.h"

#include <math.h>

#define START 20.0
#define MOST 1000.0
#define ALPHA 3
#define BETA 6
#define PROBE_EVERY 30.0

struct vegas {
    struct wr_rng rng;
    double limit;
    double least_ns; /* shortest latency; 0 before the first response */
    double jitter;   /* random factor of the next probe's distance */
    uint32_t answers;
};

static void draw_jitter(struct vegas *vegas)
{
    vegas->jitter = 0.5 + 0.5 * wr_rng_unit(&vegas->rng);
}

static void vegas_start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    (void)options, (void)memory, (void)now;
    struct vegas *vegas = state;
    wr_rng_init(&vegas->rng, 1);
    vegas->limit = START;
    draw_jitter(vegas);
}

static double vegas_limit_change(const struct vegas *vegas, const struct wr_pace_response *answer, double step)
{
    double queue = ceil(vegas->limit * (1 - vegas->least_ns / (double)answer->latency_ns));

    if (answer->in_flight_then * 2.0 < vegas->limit)
        return 0;
    if (queue <= step)
        return BETA * step;
    if (queue < ALPHA * step)
        return step;
    return queue > BETA * step ? -step : 0;
}

static void vegas_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer,
                       int64_t now)
{
    (void)options, (void)now;
    struct vegas *vegas = state;
    double latency_ns = (double)answer->latency_ns;
    double step = fmax(1, floor(log10(vegas->limit)));
    bool probes = ++vegas->answers >= vegas->jitter * PROBE_EVERY * vegas->limit;

    if (wr_peer_dropped(answer)) {
        vegas->limit = fmax(1, vegas->limit - step);
    } else if (probes) {
        draw_jitter(vegas);
        vegas->answers = 0;
        vegas->least_ns = latency_ns;
    } else if (vegas->least_ns <= 0 || latency_ns < vegas->least_ns) {
        vegas->least_ns = latency_ns;
    } else {
        vegas->limit = fmax(1, fmin(MOST, vegas->limit + vegas_limit_change(vegas, answer, step)));
    }
}

static struct wr_pace_bounds vegas_want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)now;
    const struct vegas *vegas = state;
    return wr_peer_limit(vegas->limit);
}

const struct wr_strategy wr_peer_vegas = {
    .name = "vegas",
    .state_bytes = sizeof(struct vegas),
    .start = vegas_start,
    .sent = wr_peer_sent,
    .tell = vegas_tell,
    .want = vegas_want,
    .mode = wr_peer_mode,
};
