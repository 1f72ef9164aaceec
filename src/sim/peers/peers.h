/* SPDX-License-Identifier: MIT */
/* peers.h - Pacers of other projects, for comparison: each with its published rule and numbers.
 *
 * They ignore Retry-After, rate-limit headers and Crawl-delay, and have no breaker. They take no
 * options and have no memory, so they lack the functions for these.
 */
#ifndef WR_SIM_PEERS_PEERS_H
#define WR_SIM_PEERS_PEERS_H

#include "core/pace/strategy.h"

/* Scrapy's AutoThrottle with a target concurrency of 1 and of 8. */
extern const struct wr_strategy wr_peer_autothrottle_1, wr_peer_autothrottle_8;
/* The client rate limiter of the AWS SDKs' adaptive retry mode. */
extern const struct wr_strategy wr_peer_cubic;
/* Netflix concurrency-limits: VegasLimit and Gradient2Limit. */
extern const struct wr_strategy wr_peer_vegas, wr_peer_gradient2;
/* The gradient controller of Envoy's adaptive concurrency filter. */
extern const struct wr_strategy wr_peer_envoy;
/* TCP's BBR, with requests instead of packets. */
extern const struct wr_strategy wr_peer_bbr;

/* Common functions of pacers that do nothing more at a start, and have no modes. */
void wr_peer_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now);
const char *wr_peer_mode(const void *state);

/* Returns the bounds of a concurrency limit: its whole part in flight, at any rate. */
struct wr_pace_bounds wr_peer_limit(double limit);

/* Returns true if the server refused because of pace: a drop or a throttling error. */
static inline bool wr_peer_dropped(const struct wr_pace_response *answer)
{
    return answer->status == 429 || answer->status == 503 || answer->kind == WR_PACE_RESPONSE_LOST;
}

#endif
