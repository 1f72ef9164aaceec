/* SPDX-License-Identifier: MIT */
/* attempts.h - decides whether and when a request is tried another time.
 *
 *     sent and ended   --> wr_attempts_after --> done, retry in delay_ns, or give up for a reason
 *     not sent at all  --> wr_attempts_defer --> retry in delay_ns; costs no attempt
 *
 * There are two budgets: `attempts` tries in all for transient errors, and `blocking_retries`
 * further tries after the server refused the request. The delay is the larger of the jittered
 * backoff and the time until the host's gate opens. A request that was not sent, because the pace
 * or an open circuit breaker held it back, uses no budget; only the deadline ends it.
 */
#ifndef WR_CORE_WEB_RETRY_ATTEMPTS_H
#define WR_CORE_WEB_RETRY_ATTEMPTS_H

#include "core/web/http/status.h"

#include <weir/pace.h>

#define WR_RETRY_UNSENT_MIN_NS                                                \
    (100 * WEIR_MILLISECOND) /* minimum delay of a request that was not sent, \
                              * because retrying at once would be a busy loop */

struct wr_attempts {
    uint32_t failures;   /* attempts that ended in a transient error */
    uint32_t blocks;     /* attempts that the server refused */
    int64_t deadline_at; /* no attempt starts at or after this time; may be WEIR_FOREVER */
    /* the caller sleeps the backoff itself and then acquires a permit, which waits for the gate */
    bool is_inline;
};

enum wr_retry_step {
    WR_RETRY_DONE,
    WR_RETRY_QUEUE,     /* requeue the request for delay_ns */
    WR_RETRY_SLEEP,     /* inline: sleep for delay_ns */
    WR_RETRY_PERMANENT, /* give up: it would fail the same way */
    WR_RETRY_SPENT,     /* give up: no attempt is left */
    WR_RETRY_LATE,      /* give up: the delay would pass the deadline */
};

struct wr_next_attempt {
    enum wr_retry_step what;
    int64_t delay_ns; /* delay for QUEUE and SLEEP; otherwise 0 */
};

/* Decides after an attempt was sent and ended as `ended`. `gate_wait_ns` is the time until the
 * host's gate opens (0 to WEIR_DURATION_MAX); `unit` is a random number, 0 <= unit < 1. */
struct wr_next_attempt wr_attempts_after(struct wr_attempts *attempts, const weir_retry_options *options,
                                         enum wr_status_class ended, int64_t gate_wait_ns, int64_t now, double unit);

/* Decides after an attempt that was not sent, because it is held back for another `wait_ns`. */
struct wr_next_attempt wr_attempts_defer(const struct wr_attempts *attempts, int64_t wait_ns, int64_t now);

#endif
