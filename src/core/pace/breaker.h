/* SPDX-License-Identifier: MIT */
/* breaker.h - The circuit breaker: stops requests to a failing host, and probes it after a while.
 *
 *               error rate, or failures in a row            time
 *     CLOSED ------------------------------------> OPEN -----------> HALF OPEN
 *        ^                                          ^                 |     |
 *        |                                          |    one failure  |     |
 *        |                                          +-----------------+     |
 *        +------------------------------------------------------------------+
 *                                   `probes` successes
 *
 * Only requests sent after the end of the open period count as probes: earlier ones describe the
 * time before. While half open, at most `probes` requests are in flight, including earlier ones.
 *
 * The strategy tide probes a rejecting host by itself. Under tide only network errors and 5xx that
 * are no rejection (503 and refusal.h) open the breaker. It stays open for a tenth of the time
 * since the last success (at least 1 s, at most open_ns). Half open, it admits one request.
 */
#ifndef WR_CORE_PACE_BREAKER_H
#define WR_CORE_PACE_BREAKER_H

#include "core/pace/window.h"

struct wr_breaker {
    int64_t open_until; /* end of the last open period */
    uint32_t failures;  /* failures in a row */
    uint16_t successes; /* successful probes */
    bool tripped;       /* true: open until open_until, then half open; false: closed */
};

/* Effect of a response on the host's health: good, bad, or unknown (UNSAID). */
enum wr_host_health {
    WR_HOST_HEALTH_GOOD,
    WR_HOST_HEALTH_BAD,
    WR_HOST_HEALTH_UNKNOWN,
};

/* Classifies a status (0: no response) as a sign of the host's health. `has_retry_after` must be
 * false for a Retry-After of 0: it asks for no wait and must not keep the breaker closed. */
enum wr_host_health wr_host_health_of(const weir_pace_options *options, int status, bool has_retry_after);

weir_breaker_state wr_breaker_state(const struct wr_breaker *breaker, int64_t now);

/* Returns the maximum number of requests in flight while half open. */
uint32_t wr_breaker_budget(const weir_pace_options *options);

/* Opens the breaker until `until`. With `until` = now it is half open at once. */
void wr_breaker_trip(struct wr_breaker *breaker, int64_t until);

/* Processes a response that has been added to the window already. `open_ns` is the length of a new
 * open period. Returns true if the state changed. Closing empties the window. */
bool wr_breaker_tell(struct wr_breaker *breaker, const weir_pace_options *options, struct wr_window *window,
                     enum wr_host_health health, int64_t sent_at, int64_t now, int64_t open_ns);

#endif
