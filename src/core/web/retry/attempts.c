/* SPDX-License-Identifier: MIT */
/* attempts.c - counts a request's attempts and decides about the next one. */
#include "core/web/retry/attempts.h"

#include <assert.h>

#define ATTEMPTS 3
#define BLOCKING_RETRIES 3

/* Returns a retry after `delay_ns`, or LATE if it could not start before the deadline, so that the
 * caller does not wait for nothing. */
static struct wr_next_attempt retry_unless_late(const struct wr_attempts *attempts, enum wr_retry_step how,
                                                int64_t delay_ns, int64_t until_ns, int64_t now)
{
    bool is_late = attempts->deadline_at != WEIR_FOREVER && now + until_ns >= attempts->deadline_at;

    return is_late ? (struct wr_next_attempt){WR_RETRY_LATE, 0} : (struct wr_next_attempt){how, delay_ns};
}

/* Counts the attempt. Returns false if its budget is used up. */
static bool count_attempt(struct wr_attempts *attempts, const weir_retry_options *options, enum wr_status_class ended)
{
    uint32_t most = options->attempts > 0 ? options->attempts : ATTEMPTS;
    uint32_t most_blocks = options->blocking_retries > 0 ? options->blocking_retries : BLOCKING_RETRIES;
    if (options->attempts == 1)
        most_blocks = 0; /* attempts = 1 means no retries at all */

    if (ended == WR_STATUS_BLOCKING)
        return ++attempts->blocks <= most_blocks;
    return ++attempts->failures < most;
}

struct wr_next_attempt wr_attempts_after(struct wr_attempts *attempts, const weir_retry_options *options,
                                         enum wr_status_class ended, int64_t gate_wait_ns, int64_t now, double unit)
{
    assert(gate_wait_ns >= 0 && gate_wait_ns <= WEIR_DURATION_MAX);
    if (ended == WR_STATUS_DONE)
        return (struct wr_next_attempt){WR_RETRY_DONE, 0};
    if (ended == WR_STATUS_PERMANENT)
        return (struct wr_next_attempt){WR_RETRY_PERMANENT, 0};
    if (!count_attempt(attempts, options, ended))
        return (struct wr_next_attempt){WR_RETRY_SPENT, 0};
    int64_t backoff_ns = weir_retry_delay_ns(options, attempts->failures + attempts->blocks, unit);
    int64_t longer_ns = backoff_ns > gate_wait_ns ? backoff_ns : gate_wait_ns;
    if (attempts->is_inline)
        return retry_unless_late(attempts, WR_RETRY_SLEEP, backoff_ns, longer_ns, now);
    return retry_unless_late(attempts, WR_RETRY_QUEUE, longer_ns, longer_ns, now);
}

struct wr_next_attempt wr_attempts_defer(const struct wr_attempts *attempts, int64_t wait_ns, int64_t now)
{
    assert(wait_ns >= 0 && wait_ns <= WEIR_DURATION_MAX);
    int64_t delay_ns = wait_ns > WR_RETRY_UNSENT_MIN_NS ? wait_ns : WR_RETRY_UNSENT_MIN_NS;

    return retry_unless_late(attempts, attempts->is_inline ? WR_RETRY_SLEEP : WR_RETRY_QUEUE, delay_ns, delay_ns, now);
}
