/* SPDX-License-Identifier: MIT */
/* gradient2.c - Models Gradient2Limit of Netflix concurrency-limits, fed by its WindowedLimit.
 *
 * Updates once a second, or after ten responses if that is later, by their mean latency:
 *     long     = moving mean over 600 updates (plain mean of the first ten);
 *                times 0.9 if it is above twice the latency
 *     gradient = long / latency, within 0.5 ... 1
 *     limit    = 0.8 limit + 0.2 (limit * gradient + 4), if half of it was in flight
 *
 * Drops count like any response. This is the first release, which had no tolerance. The limit
 * starts at 4 instead of 20, which is a low number for a server only.
 */
#include "sim/peers/peers.h"

#include <math.h>

#define START 4.0
#define LEAST 1.0
#define MOST 200.0
#define SMOOTH 0.2
#define QUEUE 4.0
#define LONG_WINDOW 600.0
#define WARM_UP 10
#define WINDOW_NS WEIR_SECOND
#define WINDOW_ANSWERS 10

struct gradient2 {
    double limit;
    double long_ns;
    double long_sum_ns; /* sum of the latencies of the first windows */
    uint32_t windows;   /* number of windows, up to WARM_UP */
    uint32_t answers;   /* responses in this window */
    uint32_t in_flight; /* most in flight in this window */
    double sum_ns;      /* sum of the latencies in this window */
    int64_t ends_at;
};

static void gradient2_start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    (void)options, (void)memory;
    struct gradient2 *gradient = state;
    gradient->limit = START;
    gradient->ends_at = now + WINDOW_NS;
}

static void gradient2_measure(struct gradient2 *gradient, double latency_ns)
{
    if (gradient->windows < WARM_UP) {
        gradient->windows++;
        gradient->long_sum_ns += latency_ns;
        gradient->long_ns = gradient->long_sum_ns / gradient->windows;
    } else {
        gradient->long_ns += 2 / (LONG_WINDOW + 1) * (latency_ns - gradient->long_ns);
    }
}

static void gradient2_update(struct gradient2 *gradient, double latency_ns, uint32_t in_flight)
{
    gradient2_measure(gradient, latency_ns);
    double long_ns = gradient->long_ns;
    if (long_ns > 2 * latency_ns)
        gradient->long_ns *= 0.9;
    if (in_flight < gradient->limit / 2)
        return;
    double ratio = fmax(0.5, fmin(1, long_ns / latency_ns));
    double limit = gradient->limit * (1 - SMOOTH) + SMOOTH * (gradient->limit * ratio + QUEUE);
    gradient->limit = fmax(LEAST, fmin(MOST, limit));
}

static void gradient2_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer,
                           int64_t now)
{
    (void)options;
    struct gradient2 *gradient = state;

    gradient->answers++;
    gradient->sum_ns += (double)answer->latency_ns;
    if (gradient->in_flight < answer->in_flight_then)
        gradient->in_flight = answer->in_flight_then;
    if (now < gradient->ends_at || gradient->answers < WINDOW_ANSWERS)
        return;
    gradient2_update(gradient, gradient->sum_ns / gradient->answers, gradient->in_flight);
    gradient->answers = gradient->in_flight = 0;
    gradient->sum_ns = 0;
    gradient->ends_at = now + WINDOW_NS;
}

static struct wr_pace_bounds gradient2_want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)now;
    const struct gradient2 *gradient = state;
    return wr_peer_limit(gradient->limit);
}

const struct wr_strategy wr_peer_gradient2 = {
    .name = "gradient2",
    .state_bytes = sizeof(struct gradient2),
    .start = gradient2_start,
    .sent = wr_peer_sent,
    .tell = gradient2_tell,
    .want = gradient2_want,
    .mode = wr_peer_mode,
};
