/* SPDX-License-Identifier: MIT */
/* aimd.h - additive increase, multiplicative decrease: what it keeps of a host.
 *
 *     fast answer              rate += increase             S0-20
 *     in between               nothing                      the dead band, S0-25
 *     slow answer, 429, 5xx    rate *= decrease             S0-21, S0-22
 *
 * Fast is below the target, slow is degrade_factor times it and more. The target is what is usual for this host: a
 * moving mean that begins at latency_target_ns (S0-24).
 *
 * The rate fills a token bucket. As in core/limit/bucket.h its level is kept as time: the instant at which it will be
 * full again. A token is one interval, so it is counted exactly, and when the rate changes the tokens stay.
 */
#ifndef WR_CORE_PACE_AIMD_H
#define WR_CORE_PACE_AIMD_H

#include <stdint.h>

struct wr_aimd {
    double rate;         /* tokens per second */
    int64_t interval_ns; /* of one token, by the rate */
    int64_t full_at;     /* when the bucket is full again */
    int64_t target_ns;   /* the moving mean of latencies */
    int64_t safe_ns;     /* the interval at the last good answer; 0: none yet */
    int64_t held_until;  /* end of the last Retry-After */
    uint8_t mode;        /* of enum mode */
};

#endif
