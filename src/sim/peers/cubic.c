/* SPDX-License-Identifier: MIT */
/* cubic.c - Models the client rate limiter of the AWS SDKs' adaptive retry mode (AWS SDKs and Tools
 * Reference Guide, "Retry behavior"; the constants are the same in all SDKs).
 *
 *     measured rate    responses per half second, smoothed by 0.8
 *     throttled        max = min(rate, measured); rate = 0.7 max; enables the token bucket
 *     success          rate = 0.4 (t - k)^3 + max, t seconds after the last throttling,
 *                      k = cbrt(0.3 max / 0.4)
 *     always           rate <= 2 measured; at least 0.5 tokens per second; bucket of max(1, rate)
 */
#include "core/pace/rate.h"
#include "sim/peers/peers.h"

#include <math.h>

#define SMOOTH 0.8
#define BETA 0.7
#define SCALE 0.4
#define FILL_LEAST 0.5
#define CAPACITY_LEAST 1.0
#define BUCKET_NS (500 * WEIR_MILLISECOND)

struct cubic {
    double measured; /* measured rate, per second */
    double fill, capacity, tokens;
    double max, window_s; /* rate at the last throttling, per second, and k, s */
    int64_t throttled_at;
    int64_t filled_at;
    int64_t bucket_at; /* start of the half second that `starts` counts */
    uint32_t starts;
    bool limiting;
};

static void cubic_start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    (void)options, (void)memory;
    struct cubic *cubic = state;
    cubic->filled_at = cubic->throttled_at = now;
    cubic->bucket_at = now - now % BUCKET_NS;
}

static void cubic_refill(struct cubic *cubic, int64_t now)
{
    double seconds = (double)(now - cubic->filled_at) / (double)WEIR_SECOND;
    cubic->tokens = fmin(cubic->capacity, cubic->tokens + seconds * cubic->fill);
    cubic->filled_at = now;
}

static void cubic_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now)
{
    (void)options, (void)start;
    struct cubic *cubic = state;
    if (!cubic->limiting)
        return;
    cubic_refill(cubic, now);
    cubic->tokens -= 1;
}

/* Measures the rate. It counts responses, as the SDKs do. */
static void cubic_measure(struct cubic *cubic, int64_t now)
{
    int64_t bucket_at = now - now % BUCKET_NS;
    cubic->starts++;
    if (bucket_at <= cubic->bucket_at)
        return;
    double rate = cubic->starts / ((double)(bucket_at - cubic->bucket_at) / (double)WEIR_SECOND);
    cubic->measured = SMOOTH * rate + (1 - SMOOTH) * cubic->measured;
    cubic->bucket_at = bucket_at;
    cubic->starts = 0;
}

static double cubic_rate_throttled(struct cubic *cubic, int64_t now)
{
    cubic->max = cubic->limiting ? fmin(cubic->measured, cubic->fill) : cubic->measured;
    cubic->window_s = cbrt(cubic->max * (1 - BETA) / SCALE);
    cubic->throttled_at = now;
    cubic->limiting = true;
    return cubic->max * BETA;
}

static double cubic_rate_succeeded(const struct cubic *cubic, int64_t now)
{
    double seconds = (double)(now - cubic->throttled_at) / (double)WEIR_SECOND - cubic->window_s;
    return SCALE * seconds * seconds * seconds + cubic->max;
}

static void cubic_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer,
                       int64_t now)
{
    (void)options;
    struct cubic *cubic = state;
    cubic_measure(cubic, now);
    double rate = wr_peer_dropped(answer) ? cubic_rate_throttled(cubic, now) : cubic_rate_succeeded(cubic, now);
    rate = fmin(rate, 2 * cubic->measured);
    cubic_refill(cubic, now);
    cubic->fill = fmax(rate, FILL_LEAST);
    cubic->capacity = fmax(rate, CAPACITY_LEAST);
    cubic->tokens = fmin(cubic->tokens, cubic->capacity);
}

static struct wr_pace_bounds cubic_want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)now;
    const struct cubic *cubic = state;
    double missing = 1 - cubic->tokens;
    struct wr_pace_bounds want = {.reason = WEIR_REASON_TOKENS, .cap = UINT32_MAX, .rate = (double)INFINITY};
    if (!cubic->limiting)
        return want;
    want.rate = cubic->fill;
    want.tokens = cubic->tokens;
    want.earliest_at = cubic->filled_at + wr_ns_up(missing / cubic->fill * (double)WEIR_SECOND);
    return want;
}

const struct wr_strategy wr_peer_cubic = {
    .name = "cubic",
    .state_bytes = sizeof(struct cubic),
    .start = cubic_start,
    .sent = cubic_sent,
    .tell = cubic_tell,
    .want = cubic_want,
    .mode = wr_peer_mode,
};
