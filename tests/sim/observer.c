/* SPDX-License-Identifier: MIT */
/* observer.c - checks the laws V1 and V2 from outside. */
#include "sim/observer.h"

#include <math.h>
#include <stdio.h>

#define LONG_AGO (-WEIR_DURATION_MAX)
/* relative error of a delay that the gate reports as a rate, perhaps a float */
#define SAID_SLACK 1e-6
/* tide tolerates timers this late: they delay one start, not all later ones */
#define TIDE_SLACK_NS WEIR_MILLISECOND
#define BUCKET_SLACK 1e-6 /* rounding errors of the observer, in tokens */

static void breaks(struct observer *observer, const char *law, int64_t by_ns)
{
    if (observer->broken != NULL)
        return; /* the first violation says most */
    observer->broken = law;
    snprintf(observer->detail, sizeof observer->detail, "by %lld ns at %lld ns; in flight %u", (long long)by_ns,
             (long long)observer->here, observer->in_flight);
}

static void not_before(struct observer *observer, int64_t at, const char *law)
{
    if (observer->here < at)
        breaks(observer, law, at - observer->here);
}

void observer_init(struct observer *observer, const weir_pace_options *options, int64_t now)
{
    *observer = (struct observer){
        .options = options,
        .t = now,
        .here = now,
        .last_start_at = LONG_AGO,
        .known_since = LONG_AGO,
        .window_end = LONG_AGO,
        .breaker_end = LONG_AGO,
        .half_open_at = LONG_AGO,
        .troubled_at = LONG_AGO,
        .tokens = options->burst,
        .rate = options->initial_rate,
    };
}

void observer_time(struct observer *observer, int64_t now)
{
    int64_t here = now + observer->base;
    observer->here = here > observer->t ? here : observer->t;
}

static bool is_reserved(const struct observer *observer)
{
    return observer->reserved && observer->here - observer->reserved_at < observer->options->reservation_max_ns;
}

/* Advances to the time of an event that the gate sees. Until now the gate had its last reported
 * rate. */
static void tick(struct observer *observer)
{
    observer->tokens += observer->rate * (double)(observer->here - observer->t) / 1e9;
    observer->tokens = fmin(observer->tokens, observer->options->burst);
    observer->t = observer->here;
    observer->reserved = is_reserved(observer);
}

/* ---- V1 -------------------------------------------------------------------------------------- */

/* Returns the interval of the options and robots.txt, without learned values. */
static int64_t interval_of(const struct observer *observer)
{
    int64_t ns = observer->options->min_interval_ns;
    if (observer->robots_delay_ns > ns)
        ns = observer->robots_delay_ns;
    if (observer->options->max_rate > 0 && 1e9 / observer->options->max_rate > (double)ns)
        ns = (int64_t)(1e9 / observer->options->max_rate);
    return ns;
}

static bool paces_by_bucket(const struct observer *observer)
{
    return observer->options->strategy == WEIR_STRATEGY_AIMD ||
           observer->options->strategy == WEIR_STRATEGY_AIMD_LEARNED;
}

static void check_spacing(struct observer *observer)
{
    int64_t interval_ns = interval_of(observer);
    not_before(observer, observer->last_start_at + interval_ns, "V1: closer than interval and Crawl-delay");
    not_before(observer, observer->known_since + interval_ns, "V1, R23: a known host's first start waits an interval");
    int64_t slack_ns = observer->options->strategy == WEIR_STRATEGY_TIDE ? TIDE_SLACK_NS : 0;
    if (!paces_by_bucket(observer) && observer->options->strategy != WEIR_STRATEGY_NONE)
        not_before(observer, observer->last_start_at + observer->least_delay_ns - slack_ns,
                   "V1: closer than the adaptive delay");
    if (observer->options->strategy == WEIR_STRATEGY_LEARNED ||
        observer->options->strategy == WEIR_STRATEGY_AIMD_LEARNED)
        not_before(observer, observer->last_start_at + observer->options->base_delay_ns, "V1: closer than base_delay");
}

static void check_bucket(struct observer *observer)
{
    observer->tokens -= 1;
    if (paces_by_bucket(observer) && observer->tokens < -BUCKET_SLACK)
        breaks(observer, "V8: more than burst and rate allow", 0);
}

static void check_flight(struct observer *observer, const weir_pace_entry *entry)
{
    uint32_t most = observer->options->max_in_flight;
    if (most > 0 && observer->in_flight >= most)
        breaks(observer, "V1: more in flight than max_in_flight", 0);
    if (observer->in_flight >= entry->cap)
        breaks(observer, "V1: more in flight than the cap", 0);
}

/* ---- V2 -------------------------------------------------------------------------------------- */

static void check_breaker(struct observer *observer, const weir_pace_entry *entry)
{
    bool tide = observer->options->strategy == WEIR_STRATEGY_TIDE;
    uint32_t budget = tide ? 1 : observer->options->probes;
    if (entry->breaker == WEIR_BREAKER_OPEN)
        breaks(observer, "V2: a start while the breaker is open", 0);
    if (entry->breaker == WEIR_BREAKER_HALF_OPEN && observer->in_flight >= budget)
        breaks(observer, "V2: more probes than the half-open breaker's budget", 0);
    not_before(observer, observer->breaker_end, "V2: a start while the breaker must be open");
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void note_window(struct observer *observer, int64_t ns)
{
    int64_t end = observer->t + least_of(ns, observer->options->retry_after_max_ns);
    if (end > observer->window_end)
        observer->window_end = end;
}

static bool is_refusal(const weir_outcome *outcome)
{
    static const int refusals[] = {420, 429, 430, 509, 529, 999};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (outcome->status == refusals[i])
            return true;
    return false;
}

/* S0-38, S0-39: a refusal, a 5xx or no answer is a failure, unless it states when to return. */
static bool is_failure(const weir_outcome *outcome)
{
    bool lost = outcome->status < 100 || outcome->status > 599;
    bool named = outcome->has_retry_after && outcome->retry_after_ns > 0;
    return (lost || is_refusal(outcome) || outcome->status >= 500) && !named;
}

static bool is_success(const weir_outcome *outcome)
{
    return outcome->status >= 100 && outcome->status < 500 && !is_refusal(outcome);
}

/* Returns the time until the quota is restored; 0 if it is not stated. */
static int64_t reset_of(const struct observer *observer, const weir_outcome *outcome, bool is_reset)
{
    int64_t most = observer->options->retry_after_max_ns, ns = 0;
    if (outcome->has_quota && outcome->quota_reset_ns > 0)
        ns = least_of(outcome->quota_reset_ns, most);
    if (is_reset && outcome->has_retry_after && outcome->retry_after_ns > ns)
        ns = least_of(outcome->retry_after_ns, most);
    return ns;
}

/* Records windows that the server named: Retry-After, and the reset of a used-up quota. On a
 * success with a remaining quota, Retry-After is a reset. */
static void note_named(struct observer *observer, const weir_outcome *outcome)
{
    bool is_reset =
        outcome->has_quota && outcome->quota_remaining >= 0 && outcome->status >= 200 && outcome->status <= 299;
    if (outcome->has_retry_after && !is_reset && outcome->retry_after_ns > 0)
        note_window(observer, outcome->retry_after_ns);
    int64_t reset_ns = reset_of(observer, outcome, is_reset);
    bool is_unsaid = outcome->quota_remaining < 0;
    bool spent = outcome->quota_remaining == 0 || outcome->quota_limit == 0 || (is_unsaid && is_refusal(outcome));
    if (outcome->has_quota && spent && reset_ns > 0)
        note_window(observer, reset_ns);
}

/* S0-31: counts failures while the breaker is closed. Answers to requests sent before or at the
 * last trouble do not count, unless they are successes. */
static void count_failures(struct observer *observer, const weir_outcome *outcome, int64_t sent_at,
                           weir_breaker_state before)
{
    if (before == WEIR_BREAKER_HALF_OPEN && is_failure(outcome) && sent_at >= observer->half_open_at)
        observer->breaker_end = observer->t + observer->options->open_ns; /* S0-36 */
    if (is_success(outcome) || before != WEIR_BREAKER_CLOSED)
        observer->failures = 0;
    else if (is_failure(outcome) && sent_at > observer->troubled_at)
        observer->failures++;
    if (observer->failures >= observer->options->consecutive_failures) {
        observer->breaker_end = observer->t + observer->options->open_ns;
        observer->failures = 0;
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

void observer_look(struct observer *observer, const struct wr_gate *gate, int64_t now)
{
    weir_pace_entry entry = {.key = NULL};
    wr_gate_inspect(gate, observer->options, now, &entry);
    double delay_ns = 1e9 / entry.rate;
    if (delay_ns < (double)observer->least_delay_ns)
        observer->least_delay_ns = (int64_t)(delay_ns * (1 - SAID_SLACK));
    if (entry.breaker != WEIR_BREAKER_CLOSED)
        observer->troubled_at = observer->here;
    if (entry.breaker == WEIR_BREAKER_HALF_OPEN && observer->seen != WEIR_BREAKER_HALF_OPEN)
        observer->half_open_at = observer->here;
    observer->seen = entry.breaker;
    if (entry.in_flight != observer->in_flight + is_reserved(observer))
        breaks(observer, "the gate miscounts what is in flight", 0);
    if (!wr_gate_ok(gate, observer->options))
        breaks(observer, "the gate's invariants do not hold", 0);
    /* the combined strategy reports the slower rate; its bucket may fill faster */
    bool both = observer->options->strategy == WEIR_STRATEGY_AIMD_LEARNED;
    observer->rate = both ? observer->options->rate_ceiling : entry.rate;
}

static void check_start(struct observer *observer, const struct wr_gate *gate, int64_t now)
{
    weir_pace_entry entry = {.key = NULL};
    wr_gate_inspect(gate, observer->options, now, &entry);
    if (observer->paused)
        breaks(observer, "a start while paused", 0);
    check_spacing(observer);
    check_flight(observer, &entry);
    check_breaker(observer, &entry);
    not_before(observer, observer->window_end, "V2: a start within a server's window");
}

void observer_go(struct observer *observer, const struct wr_gate *gate, int64_t now)
{
    if (is_reserved(observer))
        breaks(observer, "V1: a second start while one is reserved", 0);
    check_start(observer, gate, now);
}

void observer_reserved(struct observer *observer)
{
    tick(observer);
    observer->reserved = true;
    observer->reserved_at = observer->t;
}

void observer_given(struct observer *observer)
{
    tick(observer);
    observer->reserved = false;
}

void observer_start(struct observer *observer, const struct wr_gate *gate, int64_t now)
{
    check_start(observer, gate, now);
    tick(observer);
    check_bucket(observer);
    observer->reserved = false;
    observer->in_flight++;
    observer->last_start_at = observer->t;
    observer->least_delay_ns = INT64_MAX / 4;
}

void observer_told(struct observer *observer, const struct wr_gate *gate, const struct wr_gate_start *start,
                   const weir_outcome *outcome, weir_breaker_state before, int64_t now)
{
    (void)gate, (void)now;
    tick(observer);
    observer->in_flight -= start != NULL;
    note_named(observer, outcome);
    int64_t sent_at = start != NULL ? start->sent_at + observer->base : LONG_AGO;
    if (observer->options->breaker && observer->options->strategy != WEIR_STRATEGY_TIDE)
        count_failures(observer, outcome, sent_at, before);
}

void observer_dropped(struct observer *observer)
{
    tick(observer);
    observer->in_flight--;
}

void observer_robots(struct observer *observer, int64_t delay_ns)
{
    tick(observer);
    observer->robots_delay_ns = delay_ns;
}

void observer_hold(struct observer *observer, int64_t until)
{
    tick(observer);
    int64_t ns = until + observer->base - observer->t;
    if (ns > 0)
        note_window(observer, ns);
}

void observer_change(struct observer *observer, const weir_pace_options *options)
{
    tick(observer);
    observer->options = options;
    observer->least_delay_ns = 0; /* it was reported under other options */
    observer->breaker_end = LONG_AGO;
    observer->failures = 0;
}

void observer_restart(struct observer *observer, int64_t down_ns, int64_t now)
{
    observer->t = observer->here = observer->here + down_ns;
    observer->base = observer->t - now;
    observer->known_since = observer->t;
    observer->least_delay_ns = 0;
    observer->breaker_end = LONG_AGO; /* the breaker is half open after a restart */
    observer->troubled_at = observer->t;
    observer->seen = WEIR_BREAKER_CLOSED;
    observer->reserved = observer->paused = false;
    observer->in_flight = observer->failures = 0;
    observer->tokens = 1; /* a restart gives no burst */
    observer->rate = 0;
}
