/* SPDX-License-Identifier: MIT */
/* envoy.c - Models the gradient controller of Envoy's adaptive concurrency (envoyproxy.io).
 *
 *     sometimes      the limit is 3 until 50 responses have come: their median is the ideal latency
 *     every 100 ms   gradient = 1.25 ideal / median, within 0.5 ... 2
 *                    limit = gradient limit + sqrt(gradient limit), within 3 ... 1000
 *
 * "Sometimes" means: at first, every 60 s plus up to 15 % at random, and after five steps in a row
 * at the minimum limit.
 */
#include "base/rng.h"
#include "core/pace/rate.h"
#include "sim/peers/peers.h"

#include <math.h>
#include <string.h>

#define LEAST 3.0
#define MOST 1000.0
#define BUFFER 1.25
#define IDEAL_ANSWERS 50
#define IDEAL_EVERY_NS (60 * WEIR_SECOND)
#define IDEAL_JITTER 0.15
#define STEP_NS (100 * WEIR_MILLISECOND)
#define LEAST_STEPS 5
#define ANSWERS_MAX 255 /* maximum of samples per step; others are ignored */

struct envoy {
    struct wr_rng rng;
    double limit, before; /* current limit, limit before the measurement of the ideal latency */
    double ideal_ns;
    int64_t step_at, ideal_at; /* times of the next step and the next measurement */
    bool measuring;
    uint32_t least_steps; /* steps in a row at the minimum limit */
    uint32_t answers;
    double latencies_ns[ANSWERS_MAX]; /* sorted */
};

static void measure_ideal(struct envoy *envoy)
{
    envoy->measuring = true;
    envoy->before = envoy->limit;
    envoy->limit = LEAST;
    envoy->answers = 0;
}

static void envoy_start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    (void)options, (void)memory;
    struct envoy *envoy = state;
    wr_rng_init(&envoy->rng, 1);
    envoy->step_at = now + STEP_NS;
    envoy->limit = LEAST;
    measure_ideal(envoy);
}

static void insert_latency(struct envoy *envoy, double latency_ns)
{
    if (envoy->answers == ANSWERS_MAX)
        return;
    uint32_t at = envoy->answers++;
    for (; at > 0 && envoy->latencies_ns[at - 1] > latency_ns; at--)
        envoy->latencies_ns[at] = envoy->latencies_ns[at - 1];
    envoy->latencies_ns[at] = latency_ns;
}

static double take_median(struct envoy *envoy)
{
    double median_ns = envoy->latencies_ns[envoy->answers / 2];
    envoy->answers = 0;
    return median_ns;
}

static void end_ideal(struct envoy *envoy, int64_t now)
{
    envoy->ideal_ns = take_median(envoy);
    envoy->measuring = false;
    envoy->limit = envoy->before;
    envoy->least_steps = 0;
    envoy->step_at = now + STEP_NS;
    envoy->ideal_at = now + wr_ns_up((double)IDEAL_EVERY_NS * (1 + IDEAL_JITTER * wr_rng_unit(&envoy->rng)));
}

static void envoy_step(struct envoy *envoy, int64_t now)
{
    double gradient = wr_within(BUFFER * envoy->ideal_ns / take_median(envoy), 0.5, 2);
    double limit = gradient * envoy->limit;
    envoy->limit = wr_within(limit + sqrt(limit), LEAST, MOST);
    envoy->least_steps = envoy->limit <= LEAST ? envoy->least_steps + 1 : 0;
    envoy->step_at = now + STEP_NS;
    if (now >= envoy->ideal_at || envoy->least_steps >= LEAST_STEPS)
        measure_ideal(envoy);
}

static void envoy_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer,
                       int64_t now)
{
    (void)options;
    struct envoy *envoy = state;
    insert_latency(envoy, (double)answer->latency_ns);
    if (envoy->measuring && envoy->answers >= IDEAL_ANSWERS)
        end_ideal(envoy, now);
    else if (!envoy->measuring && now >= envoy->step_at)
        envoy_step(envoy, now);
}

static struct wr_pace_bounds envoy_want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)now;
    const struct envoy *envoy = state;
    return wr_peer_limit(envoy->limit);
}

const struct wr_strategy wr_peer_envoy = {
    .name = "envoy",
    .state_bytes = sizeof(struct envoy),
    .start = envoy_start,
    .sent = wr_peer_sent,
    .tell = envoy_tell,
    .want = envoy_want,
    .mode = wr_peer_mode,
};
