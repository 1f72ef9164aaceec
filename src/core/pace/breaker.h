/* SPDX-License-Identifier: MIT */
/* breaker.h - the circuit breaker: leaves a host alone that does not work, and looks again after a while.
 *
 *               error rate, or failures in a row            time
 *     CLOSED ------------------------------------> OPEN -----------> HALF OPEN
 *        ^                                          ^                 |     |
 *        |                                          |    one failure  |     |
 *        |                                          +-----------------+     |
 *        +------------------------------------------------------------------+
 *                                   `probes` successes
 *
 * Only what was sent after the reopening counts as a probe: answers that are late tell of the time before. Half open,
 * at most `probes` requests are in flight, those from before included.
 *
 * Under tide, which probes a host that rejects by itself, only network errors and 5xx other than 503 open the breaker;
 * it is open for a tenth of the time since the last success, and one request is in flight half open.
 */
#ifndef WR_CORE_PACE_BREAKER_H
#define WR_CORE_PACE_BREAKER_H

#include "core/pace/window.h"

struct wr_breaker {
    int64_t open_until; /* of the last opening */
    uint32_t failures;  /* in a row */
    uint16_t successes; /* of probes */
    bool tripped;       /* open until then, half open after it */
};

/* What an answer says of the host's health. */
enum wr_health {
    WR_HEALTH_GOOD,
    WR_HEALTH_BAD,
    WR_HEALTH_UNSAID,
};

/* Whether what this status means, or none (0), with or without Retry-After, is the host's fault. A Retry-After of 0 is
 * none: it makes nobody wait, and must not keep the breaker closed. */
enum wr_health wr_health_of(const weir_pace_options *options, int status, bool has_retry_after);

weir_breaker_state wr_breaker_state(const struct wr_breaker *breaker, int64_t now);

/* Most in flight while half open. */
uint32_t wr_breaker_budget(const weir_pace_options *options);

/* Opens, or with `until` = now: half open. */
void wr_breaker_trip(struct wr_breaker *breaker, int64_t until);

/* An answer came, and is in the window already. `open_ns` is how long to open if it must. Returns whether the state
 * changed; closing empties the window. */
bool wr_breaker_tell(struct wr_breaker *breaker, const weir_pace_options *options, struct wr_window *window,
                     enum wr_health health, int64_t sent_at, int64_t now, int64_t open_ns);

#endif
