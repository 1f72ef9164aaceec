/* SPDX-License-Identifier: MIT */
/* gate.c - Updates a gate with reservations, starts and responses. Queries are in bounds.c. */
#include "core/pace/gate_state.h"

#include "core/pace/refusal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define PUSH_BACK_NS (100 * WEIR_MILLISECOND) /* back-off after a rejection: no retry busy-loops */
#define JITTER 0.1                            /* maximum share that is added to a long wait */
#define OUTAGE_SHARE 10                       /* tide: open time = outage so far / this number */
#define NOTED_CHANGE 0.01                     /* relative change of the rate that is reported */

/* ---- layout ---- */

size_t wr_gate_bytes(const weir_pace_options *options)
{
    const struct wr_strategy *strategy = wr_strategy_of(options->strategy);
    return wr_round_up(wr_window_offset(strategy, options) + wr_window_bytes(options), 8);
}

static void *gate_part(struct wr_gate *gate, size_t offset)
{
    return (char *)gate + offset;
}

static struct wr_latency *latency_of_gate(struct wr_gate *gate, const struct wr_strategy *strategy)
{
    return gate_part(gate, wr_latency_offset(strategy));
}

static struct wr_window *window_of_gate(struct wr_gate *gate, const struct wr_strategy *strategy,
                                        const weir_pace_options *options)
{
    return gate_part(gate, wr_window_offset(strategy, options));
}

/* ---- time ---- */

/* Sets the gate's clock, drops a reservation that has expired, and returns the time. */
static int64_t advance_gate(struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    gate->latest_at = wr_gate_time(gate, now);
    if (wr_gate_expired(gate, options, gate->latest_at)) {
        gate->reserved = false;
        gate->in_flight--;
    }
    return gate->latest_at;
}

static int64_t earlier_time(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Lengthens a long wait by up to 10 %, so that waiting callers do not all return at once. */
static int64_t jittered(const weir_pace_options *options, int64_t wait_ns, double unit)
{
    if (wait_ns <= options->jitter_over_ns || !(unit > 0 && unit < 1))
        return wait_ns;
    return wait_ns + (int64_t)((double)wait_ns * JITTER * unit);
}

static bool is_server_directed(const struct wr_gate *gate)
{
    return gate->hold_reason == WEIR_REASON_RETRY_AFTER || gate->hold_reason == WEIR_REASON_RATE_LIMIT_RESET;
}

/* Forbids starts before `until`, but never shortens a hold. A back-off of our own that lengthens a
 * hold by the server keeps the server's reason. Returns true if the hold grew. */
static bool hold_starts(struct wr_gate *gate, int64_t until, weir_reason reason, int64_t now)
{
    if (until <= gate->hold_until || until <= now)
        return false;
    if (reason != WEIR_REASON_PACE || gate->hold_until <= now || !is_server_directed(gate))
        gate->hold_reason = (uint8_t)reason;
    gate->hold_until = until;
    return true;
}

void wr_gate_hold(struct wr_gate *gate, const weir_pace_options *options, int64_t until, int64_t now)
{
    int64_t t = advance_gate(gate, options, now);
    if (options->off)
        return;
    if (hold_starts(gate, earlier_time(until, t + options->retry_after_max_ns), WEIR_REASON_RETRY_AFTER, t))
        gate->unsaved = true;
}

/* ---- initialisation ---- */

void wr_gate_init(struct wr_gate *gate, const weir_pace_options *options, const weir_pace_memory *memory, int64_t now,
                  int64_t wall_now)
{
    const struct wr_strategy *strategy = wr_strategy_of(options->strategy);
    weir_pace_memory aged;

    gate->latest_at = now;
    gate->last_start_at = gate->hold_until = gate->breaker.open_until = now - WEIR_DURATION_MAX;
    wr_latency_init(latency_of_gate(gate, strategy), options);
    wr_window_init(window_of_gate(gate, strategy, options), options, now);
    if (memory != NULL)
        aged = wr_memory_aged(memory, options, wall_now);
    strategy->start(options, gate + 1, memory == NULL ? NULL : &aged, now);
    double rate = strategy->want(options, gate + 1, now).rate;
    gate->noted_rate = (float)rate;
    if (memory == NULL)
        return;
    gate->robots_delay_ns = aged.robots_delay_ns;
    gate->last_start_at = now; /* a request may have just been sent; a crash loop must not burst */
    hold_starts(gate, now + wr_memory_wait(memory, options, wall_now), WEIR_REASON_RETRY_AFTER, now);
    hold_starts(gate, now + earlier_time(wr_rate_interval(rate), options->retry_after_max_ns), WEIR_REASON_PACE, now);
    if (aged.breaker_open && options->breaker)
        wr_breaker_trip(&gate->breaker, now);
}

/* Initialises the gate as of one interval ago. */
void wr_gate_init_rested(struct wr_gate *gate, const weir_pace_options *options, const weir_pace_memory *memory,
                         int64_t now, int64_t wall_now)
{
    wr_gate_init(gate, options, memory, now, wall_now);
    int64_t interval_ns = wr_gate_delay(gate, options, now);
    memset(gate, 0, wr_gate_bytes(options));
    wr_gate_init(gate, options, memory, now - interval_ns, wall_now);
    hold_starts(gate, now + wr_memory_wait(memory, options, wall_now), WEIR_REASON_RETRY_AFTER, now);
}

void wr_gate_carry(const struct wr_gate *from, const weir_pace_options *from_options, struct wr_gate *to,
                   const weir_pace_options *to_options, int64_t now)
{
    assert(wr_gate_bytes(from_options) == wr_gate_bytes(to_options));
    memcpy(to, from, wr_gate_bytes(to_options));
    int64_t t = advance_gate(to, from_options, now); /* drops an expired reservation */
    to->hold_until = earlier_time(to->hold_until, t + to_options->retry_after_max_ns);
    to->breaker.open_until = earlier_time(to->breaker.open_until, t + to_options->open_ns);
    if (!to_options->breaker) {
        to->banned = false;
        to->breaker.tripped = false;
        to->breaker.failures = 0;
    }
    to->unsaved = true;
    const struct wr_strategy *strategy = wr_strategy_of(to_options->strategy);
    if (strategy->change != NULL)
        strategy->change(to_options, to + 1, t);
}

/* ---- starts ---- */

static uint32_t next_start_number(struct wr_gate *gate)
{
    gate->seq += gate->seq == UINT32_MAX ? 2 : 1; /* 0 means "no start" */
    return gate->seq;
}

uint32_t wr_gate_reserve(struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    int64_t t = advance_gate(gate, options, now);
    if (options->off)
        return 0;
    assert(!gate->reserved);
    gate->reserved = true;
    gate->kept = false;
    gate->reserved_at = t;
    gate->in_flight++;
    return next_start_number(gate);
}

void wr_gate_keep(struct wr_gate *gate, const weir_pace_options *options, uint32_t seq, bool keeps, int64_t now)
{
    int64_t t = advance_gate(gate, options, now);
    if (!gate->reserved || gate->seq != seq)
        return; /* the reservation is gone already */
    gate->kept = keeps;
    gate->reserved_at = t;
}

void wr_gate_give(struct wr_gate *gate, const weir_pace_options *options, uint32_t seq, int64_t now)
{
    advance_gate(gate, options, now);
    if (!gate->reserved || gate->seq != seq)
        return; /* the reservation is gone already */
    gate->reserved = false;
    gate->in_flight--;
    gate->seq--; /* no other reservation exists, and strategies count starts by number */
}

struct wr_gate_start wr_gate_sent(struct wr_gate *gate, const weir_pace_options *options, uint32_t seq, int64_t now)
{
    int64_t t = advance_gate(gate, options, now);
    if (seq == 0)
        return (struct wr_gate_start){.sent_at = t};
    if (gate->reserved && gate->seq == seq) {
        gate->reserved = false;
    } else { /* reservation expired, but the request is sent: numbers follow the order of starts */
        gate->in_flight++;
        seq = gate->reserved ? seq : next_start_number(gate);
    }
    gate->last_start_at = t;
    const struct wr_strategy *strategy = wr_strategy_of(options->strategy);
    strategy->sent(options, gate + 1, &(struct wr_pace_start){seq, gate->in_flight}, t);
    return (struct wr_gate_start){seq, gate->in_flight, t};
}

void wr_gate_written(struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    gate->last_start_at = advance_gate(gate, options, now);
}

void wr_gate_sent_late(struct wr_gate *gate, const weir_pace_options *options, int64_t ago_ns, int64_t now)
{
    int64_t t = advance_gate(gate, options, now), out_at = ago_ns > 0 ? t - ago_ns : t;
    if (options->off)
        return;
    struct wr_pace_bounds want = wr_strategy_of(options->strategy)->want(options, gate + 1, t);
    int64_t interval_ns = wr_rate_interval(want.rate);
    int64_t late_ns = out_at > gate->last_start_at ? out_at - gate->last_start_at : 0;
    if (gate->last_start_at < out_at)
        gate->last_start_at = out_at;
    /* A delay below one interval shifts the next start by the same time, so a burst that was
     * allowed stays allowed. After a longer delay other late requests may be under way too. */
    int64_t until = late_ns < interval_ns ? want.earliest_at + late_ns : out_at + interval_ns;
    hold_starts(gate, earlier_time(until, t + options->retry_after_max_ns), WEIR_REASON_PACE, t);
}

static void count_request_ended(struct wr_gate *gate)
{
    gate->in_flight -= gate->in_flight > gate->reserved;
}

void wr_gate_drop(struct wr_gate *gate, const weir_pace_options *options, const struct wr_gate_start *start,
                  int64_t now)
{
    advance_gate(gate, options, now);
    if (start->seq != 0)
        count_request_ended(gate);
}

/* ---- responses ---- */

/* Returns the duration that a field gave, at most retry_after_max_ns; -1 if there was no field. */
static int64_t stated_ns(bool is_said, int64_t duration_ns, const weir_pace_options *options)
{
    return is_said ? wr_ns_within(duration_ns, 0, options->retry_after_max_ns) : -1;
}

static int64_t stated_count(bool is_said, int64_t count)
{
    return is_said && count >= 0 ? count : -1;
}

/* Corrects the limits of a response. A refusal means that no quota is left. On a success that
 * states the remaining quota, Retry-After only tells when the quota is full: two rate-limit
 * libraries (Flask-Limiter, rate-limiter-flexible) send it with every response. */
static void correct_limits(struct wr_pace_response *answer, bool has_quota)
{
    if (has_quota && answer->quota_remaining < 0 && wr_status_refuses(answer->status))
        answer->quota_remaining = 0;
    if (answer->quota_remaining < 0 || answer->status < 200 || answer->status > 299)
        return;
    if (answer->quota_reset_ns < answer->retry_after_ns)
        answer->quota_reset_ns = answer->retry_after_ns;
    answer->retry_after_ns = -1;
}

static struct wr_pace_response response_of_outcome(const struct wr_gate *gate, const weir_pace_options *options,
                                                   const struct wr_gate_start *start, const weir_outcome *outcome,
                                                   int64_t now)
{
    int64_t latency_ns = wr_ns_within(outcome->latency_ns, 0, WEIR_DURATION_MAX);
    if (latency_ns == 0 && start != NULL)
        latency_ns = wr_ns_within(now - start->sent_at, 0, WEIR_DURATION_MAX);
    struct wr_pace_response answer = {
        .kind = wr_pace_response_kind(outcome->status),
        .status = outcome->status,
        .seq = start != NULL ? start->seq : gate->seq,
        .in_flight_then = start != NULL ? start->in_flight : gate->in_flight,
        .in_flight = gate->in_flight,
        .sent_at = start != NULL ? start->sent_at : now - latency_ns,
        .latency_ns = latency_ns,
        .retry_after_ns = stated_ns(outcome->has_retry_after, outcome->retry_after_ns, options),
        .quota_limit = stated_count(outcome->has_quota, outcome->quota_limit),
        .quota_remaining = stated_count(outcome->has_quota, outcome->quota_remaining),
        .quota_reset_ns =
            stated_ns(outcome->has_quota && outcome->quota_reset_ns != -1, outcome->quota_reset_ns, options),
    };
    if (answer.kind == WR_PACE_RESPONSE_LOST)
        answer.status = 0;
    correct_limits(&answer, outcome->has_quota);
    return answer;
}

/* Updates the streaks and counters. Returns WR_GATE_CHANGE_REJECTED or 0. */
static uint32_t count_gate_response(struct wr_gate *gate, const struct wr_pace_response *answer, int64_t now)
{
    if (answer->kind == WR_PACE_RESPONSE_OK) {
        gate->streak = gate->streak < 0 ? 1 : gate->streak + (gate->streak < INT32_MAX);
        gate->last_success_at = now;
        gate->succeeded = true;
        gate->banned = false;
        gate->hopeless = 0;
    } else if (answer->kind == WR_PACE_RESPONSE_REJECTED) {
        gate->streak = gate->streak > 0 ? -1 : gate->streak - (gate->streak > -INT32_MAX);
        gate->rejected += gate->rejected < UINT32_MAX;
        return WR_GATE_CHANGE_REJECTED;
    } else if (gate->streak > 0) {
        gate->streak = 0;
    }
    return 0;
}

/* Delays the next start after a rejection. A 403 never trips the breaker, because it may concern
 * one page. But a row of rejections that would trip it and ends in a 403 is a ban: the gate waits
 * as long as an open breaker, then allows one request at a time. Tide handles bans by itself. */
static void push_back_after_rejection(struct wr_gate *gate, const weir_pace_options *options,
                                      const struct wr_pace_response *answer, int64_t now, double unit)
{
    if (answer->kind != WR_PACE_RESPONSE_REJECTED || options->strategy == WEIR_STRATEGY_TIDE)
        return;
    hold_starts(gate, now + PUSH_BACK_NS, WEIR_REASON_PACE, now);
    if (answer->status != 403 || !options->breaker || gate->streak > -(int64_t)options->consecutive_failures)
        return;
    int64_t ban_ns = earlier_time(options->open_ns, options->retry_after_max_ns);
    hold_starts(gate, now + jittered(options, ban_ns, unit), WEIR_REASON_PACE, now);
    gate->banned = true;
}

/* Obeys the longest wait that the server asked for. If the quota limit is 0 and no reset is stated,
 * waits as long as an open breaker. A used-up quota without a reset is left to the strategy.
 * Returns WR_GATE_CHANGE_RETRY_AFTER if the hold grew. */
static uint32_t obey_server_waits(struct wr_gate *gate, const weir_pace_options *options,
                                  const struct wr_pace_response *answer, int64_t now, double unit)
{
    bool held = false;
    int64_t reset_ns = answer->quota_reset_ns;
    if (answer->retry_after_ns > 0)
        held |= hold_starts(gate, now + jittered(options, answer->retry_after_ns, unit), WEIR_REASON_RETRY_AFTER, now);
    if (reset_ns < 0 && answer->quota_limit == 0)
        reset_ns = earlier_time(options->open_ns, options->retry_after_max_ns);
    if (reset_ns > 0 && (answer->quota_remaining == 0 || answer->quota_limit == 0))
        held |= hold_starts(gate, now + jittered(options, reset_ns, unit), WEIR_REASON_RATE_LIMIT_RESET, now);
    gate->unsaved |= held;
    return held ? WR_GATE_CHANGE_RETRY_AFTER : 0;
}

static enum wr_window_kind window_kind(const struct wr_pace_response *answer, enum wr_host_health health)
{
    if (health != WR_HOST_HEALTH_BAD)
        return health == WR_HOST_HEALTH_GOOD ? WR_WINDOW_OK : WR_WINDOW_SOFT;
    if (answer->status == 0)
        return WR_WINDOW_LOST;
    return wr_status_refuses(answer->status) ? WR_WINDOW_REJECTED : WR_WINDOW_SERVER;
}

/* Returns how long to open the breaker. Under tide it is a tenth of the outage so far, so that the
 * end of an outage is noticed soon. */
static int64_t breaker_open_time(const struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    if (options->strategy != WEIR_STRATEGY_TIDE || !gate->succeeded)
        return options->open_ns;
    int64_t share_ns = (now - gate->last_success_at) / OUTAGE_SHARE;
    return earlier_time(share_ns < WEIR_SECOND ? WEIR_SECOND : share_ns, options->open_ns);
}

static uint32_t judge_response_health(struct wr_gate *gate, const weir_pace_options *options, struct wr_window *window,
                                      const struct wr_pace_response *answer, int64_t now, double unit)
{
    enum wr_host_health health = wr_host_health_of(options, answer->status, answer->retry_after_ns > 0);
    wr_window_add(window, options, window_kind(answer, health), now);
    if (!options->breaker)
        return 0;
    int64_t open_ns = jittered(options, breaker_open_time(gate, options, now), unit);
    if (!wr_breaker_tell(&gate->breaker, options, window, health, answer->sent_at, now, open_ns))
        return 0;
    gate->unsaved = true;
    return WR_GATE_CHANGE_BREAKER;
}

/* Fills in the recent rates of good responses, which hint at a window limit. */
static void fill_good_rates(const struct wr_window *window, const weir_pace_options *options,
                            struct wr_pace_response *answer, int64_t now)
{
    for (int i = 0; i < 3; i++)
        answer->good_rate[i] = (float)wr_window_good_rate(window, options, (i + 1) * 10 * WEIR_SECOND, now);
}

/* Returns what the response changed in the strategy: another rate, or a hopeless host. */
static uint32_t changes_in_strategy(struct wr_gate *gate, const weir_pace_options *options,
                                    const struct wr_strategy *strategy, const struct wr_pace_response *answer,
                                    int64_t now)
{
    uint32_t news = 0;
    double rate = strategy->want(options, gate + 1, now).rate;
    double noted = (double)gate->noted_rate;
    if (fabs(rate - noted) > NOTED_CHANGE * noted) {
        gate->noted_rate = (float)rate;
        gate->unsaved = true;
        news |= WR_GATE_CHANGE_DELAY;
    }
    if (wr_status_refuses(answer->status) && options->cancel_after > 0 &&
        wr_rate_interval(rate) >= options->cancel_delay_ns) {
        gate->hopeless = (uint16_t)(gate->hopeless + (gate->hopeless < UINT16_MAX));
        news |= gate->hopeless == options->cancel_after ? WR_GATE_CHANGE_HOPELESS : 0;
    }
    return news;
}

uint32_t wr_gate_tell(struct wr_gate *gate, const weir_pace_options *options, const struct wr_gate_start *start,
                      const weir_outcome *outcome, int64_t now, double unit)
{
    int64_t t = advance_gate(gate, options, now);
    if (start != NULL && start->seq != 0)
        count_request_ended(gate);
    if (options->off || (start != NULL && start->seq == 0))
        return 0;
    const struct wr_strategy *strategy = wr_strategy_of(options->strategy);
    struct wr_pace_response answer = response_of_outcome(gate, options, start, outcome, t);
    if (answer.kind != WR_PACE_RESPONSE_LOST)
        wr_latency_add(latency_of_gate(gate, strategy), options, answer.latency_ns);
    uint32_t news = count_gate_response(gate, &answer, t);
    news |= obey_server_waits(gate, options, &answer, t, unit);
    push_back_after_rejection(gate, options, &answer, t, unit);
    news |= judge_response_health(gate, options, window_of_gate(gate, strategy, options), &answer, t, unit);
    answer.tripped = wr_breaker_state(&gate->breaker, t) != WEIR_BREAKER_CLOSED;
    if (answer.kind != WR_PACE_RESPONSE_OK)
        fill_good_rates(window_of_gate(gate, strategy, options), options, &answer, t);
    strategy->tell(options, gate + 1, &answer, t);
    return news | changes_in_strategy(gate, options, strategy, &answer, t);
}

uint32_t wr_gate_tell_head(struct wr_gate *gate, const weir_pace_options *options, const struct wr_gate_start *start,
                           const weir_outcome *outcome, int64_t now, double unit)
{
    int64_t t = advance_gate(gate, options, now);
    if (options->off || start->seq == 0)
        return 0;
    struct wr_pace_response answer = response_of_outcome(gate, options, start, outcome, t);
    return obey_server_waits(gate, options, &answer, t, unit);
}

/* ---- other operations ---- */

void wr_gate_robots_delay(struct wr_gate *gate, int64_t delay_ns, int64_t now)
{
    gate->latest_at = wr_gate_time(gate, now);
    delay_ns = wr_ns_within(delay_ns, 0, WEIR_DURATION_MAX);
    gate->unsaved |= delay_ns != gate->robots_delay_ns;
    gate->robots_delay_ns = delay_ns;
}

int64_t wr_gate_min_interval(const struct wr_gate *gate, const weir_pace_options *options)
{
    return options->off ? 0 : wr_gate_interval(gate, options);
}

void wr_gate_pause(struct wr_gate *gate, bool paused)
{
    gate->paused = paused;
}

bool wr_gate_paused(const struct wr_gate *gate)
{
    return gate->paused;
}

void wr_gate_forget(struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    int64_t t = advance_gate(gate, options, now);
    struct wr_gate kept = *gate;
    memset(gate, 0, wr_gate_bytes(options));
    wr_gate_init(gate, options, NULL, t, 0);
    gate->last_start_at = kept.last_start_at;
    gate->in_flight = kept.in_flight - kept.reserved;
    gate->robots_delay_ns = kept.robots_delay_ns;
    gate->paused = kept.paused;
    gate->unsaved = true;
    if (is_server_directed(&kept))
        hold_starts(gate, kept.hold_until, (weir_reason)kept.hold_reason, t);
}

bool wr_gate_unsaved(const struct wr_gate *gate)
{
    return gate->unsaved;
}

void wr_gate_saved(struct wr_gate *gate)
{
    gate->unsaved = false;
}

bool wr_gate_ok(const struct wr_gate *gate, const weir_pace_options *options)
{
    int64_t latest_hold = gate->latest_at + options->retry_after_max_ns + options->retry_after_max_ns / 8;
    return gate->last_start_at <= gate->latest_at && gate->in_flight >= gate->reserved &&
           (!gate->reserved || (gate->seq != 0 && gate->reserved_at <= gate->latest_at)) &&
           gate->robots_delay_ns >= 0 && gate->robots_delay_ns <= WEIR_DURATION_MAX &&
           gate->hold_until <= latest_hold &&
           gate->breaker.open_until - gate->latest_at <= options->open_ns + options->open_ns / 8;
}
