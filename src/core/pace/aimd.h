/* SPDX-License-Identifier: MIT */
/* aimd.h - The state of the strategy aimd for one host: additive increase, multiplicative decrease.
 *
 *     fast response            rate += increase
 *     in between               rate unchanged (dead band)
 *     slow response, 429, 5xx  rate *= decrease
 *
 * A response is fast if its latency is below the target, and slow if it is at least degrade_factor
 * times the target. The target is the usual latency of the host: a moving mean that starts at
 * latency_target_ns.
 *
 * The rate fills a token bucket. As in core/limit/bucket.h, the level is stored as a time: when the
 * bucket will be full. One token takes one interval, so tokens are counted exactly. A change of the
 * rate keeps the number of tokens.
 */
#ifndef WR_CORE_PACE_AIMD_H
#define WR_CORE_PACE_AIMD_H

#include <stdint.h>

struct wr_aimd {
    double rate;         /* current rate, tokens per second */
    int64_t interval_ns; /* time to refill one token at `rate`, ns */
    int64_t full_at;     /* time at which the bucket is full */
    int64_t target_ns;   /* moving mean of the latency, ns */
    int64_t safe_ns;     /* interval at the last good response, ns; 0 if unknown */
    int64_t held_until;  /* latest end of all Retry-After waits so far */
    uint8_t mode;        /* value of enum mode */
};

#endif
