/* SPDX-License-Identifier: MIT */
/* breaker.c - Implements the circuit breaker with the states closed, open and half open. */
#include "core/pace/breaker.h"

#include "core/pace/refusal.h"

static bool is_failure(int status)
{
    return status == 0 || wr_status_refuses(status) || status >= 500;
}

enum wr_host_health wr_host_health_of(const weir_pace_options *options, int status, bool has_retry_after)
{
    if (!is_failure(status))
        return WR_HOST_HEALTH_GOOD;
    bool tide = options->strategy == WEIR_STRATEGY_TIDE;
    if (has_retry_after || (tide && (wr_status_refuses(status) || status == 503)))
        return WR_HOST_HEALTH_UNKNOWN;
    return WR_HOST_HEALTH_BAD;
}

weir_breaker_state wr_breaker_state(const struct wr_breaker *breaker, int64_t now)
{
    if (!breaker->tripped)
        return WEIR_BREAKER_CLOSED;
    return now < breaker->open_until ? WEIR_BREAKER_OPEN : WEIR_BREAKER_HALF_OPEN;
}

uint32_t wr_breaker_budget(const weir_pace_options *options)
{
    return options->strategy == WEIR_STRATEGY_TIDE ? 1 : options->probes;
}

void wr_breaker_trip(struct wr_breaker *breaker, int64_t until)
{
    breaker->tripped = true;
    breaker->open_until = until;
    breaker->successes = 0;
}

/* Returns true if the error rate in the window trips the breaker. Responses of kind WR_WINDOW_SOFT
 * say nothing about the host's health, so they count neither as samples nor as failures. */
static bool too_many_errors(const weir_pace_options *options, const struct wr_window *window, int64_t now)
{
    struct wr_window_sums sums = wr_window_sum(window, options, now);
    uint32_t samples = sums.total - sums.failures[WR_WINDOW_SOFT];
    uint32_t failures =
        sums.failures[WR_WINDOW_SERVER] + sums.failures[WR_WINDOW_REJECTED] + sums.failures[WR_WINDOW_LOST];
    return samples >= options->min_samples && failures >= options->error_threshold * samples;
}

static bool tell_closed(struct wr_breaker *breaker, const weir_pace_options *options, const struct wr_window *window,
                        enum wr_host_health health, int64_t now, int64_t open_ns)
{
    if (health == WR_HOST_HEALTH_GOOD)
        breaker->failures = 0;
    if (health != WR_HOST_HEALTH_BAD)
        return false;
    breaker->failures += breaker->failures < UINT32_MAX;
    if (breaker->failures < options->consecutive_failures && !too_many_errors(options, window, now))
        return false;
    wr_breaker_trip(breaker, now + open_ns);
    return true;
}

static bool tell_probe(struct wr_breaker *breaker, const weir_pace_options *options, struct wr_window *window,
                       enum wr_host_health health, int64_t now, int64_t open_ns)
{
    if (health == WR_HOST_HEALTH_BAD) {
        breaker->failures += breaker->failures < UINT32_MAX;
        wr_breaker_trip(breaker, now + open_ns);
        return true;
    }
    if (health == WR_HOST_HEALTH_GOOD && ++breaker->successes >= options->probes) {
        breaker->tripped = false;
        breaker->failures = 0;
        wr_window_clear(window);
        return true;
    }
    return false;
}

bool wr_breaker_tell(struct wr_breaker *breaker, const weir_pace_options *options, struct wr_window *window,
                     enum wr_host_health health, int64_t sent_at, int64_t now, int64_t open_ns)
{
    bool is_late = sent_at < breaker->open_until;
    if (!breaker->tripped)
        return (!is_late || health == WR_HOST_HEALTH_GOOD) &&
               tell_closed(breaker, options, window, health, now, open_ns);
    return !is_late && tell_probe(breaker, options, window, health, now, open_ns);
}
