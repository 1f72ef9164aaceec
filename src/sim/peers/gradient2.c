/* SPDX-License-Identifier: MIT */
/* gradient2.c - Gradient2Limit of Netflix concurrency-limits.
 *
 *     long     = moving mean of latencies over 600 answers (the plain mean of the first ten); over 2 latency: times
 * 0.95 gradient = 1.5 long / latency, within 0.5 … 1 limit    = 0.8 limit + 0.2 (limit * gradient + 4), while half of
 * it is in flight
 *
 * Starts at 20, within 20 … 200. Drops count like any answer.
 */
#include "sim/peers/peers.h"

#include <math.h>

#define START 20.0
#define LEAST 20.0
#define MOST 200.0
#define SMOOTH 0.2
#define QUEUE 4.0
#define TOLERANCE 1.5
#define LONG_WINDOW 600.0
#define WARM_UP 10

struct gradient2 {
    double limit;
    double long_ns;
    double sum_ns; /* of the first ones */
    uint32_t answers;
    uint32_t unused;
};

static void start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    (void)options, (void)memory, (void)now;
    struct gradient2 *gradient = state;
    gradient->limit = START;
}

static void measure(struct gradient2 *gradient, double latency_ns)
{
    if (gradient->answers < WARM_UP) {
        gradient->answers++;
        gradient->sum_ns += latency_ns;
        gradient->long_ns = gradient->sum_ns / gradient->answers;
    } else {
        gradient->long_ns += 2 / (LONG_WINDOW + 1) * (latency_ns - gradient->long_ns);
    }
}

static void tell(const weir_pace_options *options, void *state, const struct wr_answer *answer, int64_t now)
{
    (void)options, (void)now;
    struct gradient2 *gradient = state;
    double latency_ns = (double)answer->latency_ns;

    measure(gradient, latency_ns);
    double long_ns = gradient->long_ns;
    if (long_ns > 2 * latency_ns)
        gradient->long_ns *= 0.95;
    if (answer->in_flight_then < gradient->limit / 2)
        return;
    double ratio = fmax(0.5, fmin(1, TOLERANCE * long_ns / latency_ns));
    double limit = gradient->limit * (1 - SMOOTH) + SMOOTH * (gradient->limit * ratio + QUEUE);
    gradient->limit = fmax(LEAST, fmin(MOST, limit));
}

static struct wr_want want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)now;
    const struct gradient2 *gradient = state;
    return wr_peer_limit(gradient->limit);
}

const struct wr_strategy wr_peer_gradient2 = {
    .name = "gradient2",
    .state_bytes = sizeof(struct gradient2),
    .start = start,
    .sent = wr_peer_sent,
    .tell = tell,
    .want = want,
    .remember = wr_peer_remember,
    .settled = wr_peer_settled,
    .mode = wr_peer_mode,
};
