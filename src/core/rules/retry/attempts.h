/* SPDX-License-Identifier: MIT */
/* attempts.h - one request's attempts: whether to try again, and when.
 *
 *     sent and answered ──► wr_attempts_after ──► done, or again in delay_ns, or never again, and why
 *     not sent at all   ──► wr_attempts_defer ──► again in delay_ns; costs no attempt
 *
 * Two budgets: `attempts` tries in all of what fails for the moment, and `blocking_retries` more after a server turned
 * us away. The delay is the larger of the jittered backoff and the time at which the host's gate opens. What was not
 * sent, because the pace or an open breaker held it, uses up nothing; only the deadline ends it.
 */
#ifndef WR_CORE_RULES_RETRY_ATTEMPTS_H
#define WR_CORE_RULES_RETRY_ATTEMPTS_H

#include "core/rules/http/status.h"

#include <weir/pace.h>

#define WR_PUSH_BACK_NS \
    (100 * WEIR_MILLISECOND) /* the least delay of what was not sent: who asks again at once spins */

struct wr_attempts {
    uint32_t failures;   /* attempts that failed for the moment */
    uint32_t blocks;     /* and those that were turned away */
    int64_t deadline_at; /* no attempt starts from then on; WEIR_FOREVER */
    bool is_inline;      /* the caller sleeps the backoff itself and then acquires, which waits for the gate */
};

enum wr_next {
    WR_NEXT_DONE,
    WR_NEXT_QUEUE,     /* put it back for delay_ns */
    WR_NEXT_SLEEP,     /* inline: sleep for delay_ns */
    WR_NEXT_PERMANENT, /* it would fail again */
    WR_NEXT_SPENT,     /* no attempt left */
    WR_NEXT_LATE,      /* not before the deadline */
};

struct wr_next_attempt {
    enum wr_next what;
    int64_t delay_ns; /* of QUEUE and SLEEP, else 0 */
};

/* An attempt was sent and ended so. `gate_wait_ns` is how long the host's gate stays shut (0 … WEIR_DURATION_MAX);
 * `unit` a random number, 0 <= unit < 1. */
struct wr_next_attempt wr_attempts_after(struct wr_attempts *attempts, const weir_retry_options *options,
                                         enum wr_status_class ended, int64_t gate_wait_ns, int64_t now, double unit);

/* It was not sent: something holds it for `wait_ns` more. */
struct wr_next_attempt wr_attempts_defer(const struct wr_attempts *attempts, int64_t wait_ns, int64_t now);

#endif
