/* SPDX-License-Identifier: MIT */
/* autothrottle.c - Models Scrapy's AutoThrottle (docs.scrapy.org, "AutoThrottle extension").
 *
 *     target = latency / N
 *     delay  = max(target, (delay + target) / 2), at most 60 s; starts at 5 s
 *     a response other than 200 must not shorten the delay
 *
 * Each wait is the delay times 0.5 ... 1.5 (RANDOMIZE_DOWNLOAD_DELAY), with at most 8 requests in
 * flight (CONCURRENT_REQUESTS_PER_DOMAIN).
 */
#include "base/rng.h"
#include "core/pace/rate.h"
#include "sim/peers/peers.h"

#include <math.h>

#define START_NS (5.0 * (double)WEIR_SECOND)
#define MAX_NS (60.0 * (double)WEIR_SECOND)
#define IN_FLIGHT_MAX 8

struct autothrottle {
    struct wr_rng rng;
    double delay_ns;
    double concurrency; /* target N of requests in flight */
    int64_t next_at;
};

static void start_with(void *state, double concurrency, int64_t now)
{
    struct autothrottle *throttle = state;
    wr_rng_init(&throttle->rng, 1);
    throttle->delay_ns = START_NS;
    throttle->concurrency = concurrency;
    throttle->next_at = now;
}

static void start_1(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    (void)options, (void)memory;
    start_with(state, 1, now);
}

static void start_8(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    (void)options, (void)memory;
    start_with(state, 8, now);
}

static void autothrottle_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start,
                              int64_t now)
{
    (void)options, (void)start;
    struct autothrottle *throttle = state;
    throttle->next_at = now + wr_ns_up(throttle->delay_ns * (0.5 + wr_rng_unit(&throttle->rng)));
}

static void autothrottle_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer,
                              int64_t now)
{
    (void)options, (void)now;
    struct autothrottle *throttle = state;
    double target_ns = (double)answer->latency_ns / throttle->concurrency;
    double delay_ns = fmin(fmax(target_ns, (throttle->delay_ns + target_ns) / 2), MAX_NS);
    if (answer->status == 200 || delay_ns > throttle->delay_ns)
        throttle->delay_ns = delay_ns;
}

static struct wr_pace_bounds autothrottle_want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)now;
    const struct autothrottle *throttle = state;
    return (struct wr_pace_bounds){
        .earliest_at = throttle->next_at,
        .reason = WEIR_REASON_PACE,
        .cap = IN_FLIGHT_MAX,
        .rate = (double)WEIR_SECOND / throttle->delay_ns,
    };
}

const struct wr_strategy wr_peer_autothrottle_1 = {
    .name = "autothrottle-1",
    .state_bytes = sizeof(struct autothrottle),
    .start = start_1,
    .sent = autothrottle_sent,
    .tell = autothrottle_tell,
    .want = autothrottle_want,
    .mode = wr_peer_mode,
};

const struct wr_strategy wr_peer_autothrottle_8 = {
    .name = "autothrottle-8",
    .state_bytes = sizeof(struct autothrottle),
    .start = start_8,
    .sent = autothrottle_sent,
    .tell = autothrottle_tell,
    .want = autothrottle_want,
    .mode = wr_peer_mode,
};
