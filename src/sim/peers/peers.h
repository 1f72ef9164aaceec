/* SPDX-License-Identifier: MIT */
/* peers.h - the pacers of others, for comparison: each from its published rule, with its published numbers.
 *
 * They know nothing of Retry-After, rate-limit headers or Crawl-delay, and have no breaker: the rule, and nothing else.
 * They take no options and remember nothing, so they have no functions for that.
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
/* TCP's BBR, with requests for packets. */
extern const struct wr_strategy wr_peer_bbr;

/* What none of them does more about. */
void wr_peer_sent(const weir_pace_options *options, void *state, const struct wr_start *start, int64_t now);
const char *wr_peer_mode(const void *state);

/* As many in flight as the limit's whole part, at any rate. */
struct wr_want wr_peer_limit(double limit);

/* Whether the server refused for pace: what the published rules call a drop or a throttling error. */
static inline bool wr_peer_dropped(const struct wr_told *answer)
{
    return answer->status == 429 || answer->status == 503 || answer->kind == WR_TOLD_LOST;
}

#endif
