/* SPDX-License-Identifier: MIT */
/* bounds.c - Decides whether a request may start at a gate, and why and how long it must wait.
 * Changes no state. */
#include "core/pace/gate_state.h"

#include <math.h>
#include <string.h>

/* How long an idle gate is kept if it holds knowledge that a new gate would lack. */
#define ROBOTS_NS WEIR_DAY /* with a Crawl-delay: robots.txt may be cached as long (RFC 9309 2.4) */
#define STORY_NS WEIR_HOUR /* breaker half open or strategy not settled; dead hosts must expire */

bool wr_gate_spaces(const struct wr_gate *gate, const weir_pace_options *options)
{
    return options->strategy != WEIR_STRATEGY_NONE || wr_gate_interval(gate, options) > 0;
}

bool wr_gate_expired(const struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    return gate->reserved && !gate->kept && now - gate->reserved_at >= options->reservation_max_ns;
}

/* A query to a gate. A caller is not blocked by its own reservation. */
struct asker {
    const struct wr_gate *gate;
    const weir_pace_options *options;
    int64_t t;  /* time of the query by the gate's clock, which never goes back */
    bool holds; /* the query comes from the holder of the reservation */
    bool flies; /* the request of the query is already counted as sent */
    weir_breaker_state breaker;
    const struct wr_pace_bounds *want;
};

/* Builds a query. Stores the strategy's answer in `*want`: a copy would double the cost. */
static struct asker asker_of(const struct wr_gate *gate, const weir_pace_options *options, int64_t now,
                             struct wr_pace_bounds *want)
{
    int64_t t = wr_gate_time(gate, now);
    *want = wr_strategy_of(options->strategy)->want(options, gate + 1, t);
    return (struct asker){gate, options, t, false, false, wr_breaker_state(&gate->breaker, t), want};
}

/* Returns the number of requests in flight without the reservation and without the asker itself. A
 * reservation of another caller blocks in reserved_by_another(): it ends when it is sent, returned
 * or expires, and needs no response. */
static uint32_t others_in_flight(const struct asker *asker)
{
    uint32_t own = (uint32_t)asker->gate->reserved + asker->flies;
    return asker->gate->in_flight > own ? asker->gate->in_flight - own : 0;
}

static uint32_t most_in_flight(const struct asker *asker)
{
    uint32_t cap = asker->want->cap;
    if (asker->options->max_in_flight > 0 && asker->options->max_in_flight < cap)
        cap = asker->options->max_in_flight;
    return asker->gate->banned ? 1 : cap;
}

static bool are_probes_in_flight(const struct asker *asker)
{
    return asker->breaker == WEIR_BREAKER_HALF_OPEN && others_in_flight(asker) >= wr_breaker_budget(asker->options);
}

static bool reserved_by_another(const struct asker *asker)
{
    return asker->gate->reserved && !asker->holds && !asker->flies &&
           !wr_gate_expired(asker->gate, asker->options, asker->t);
}

/* Returns the latest time at which the reservation of another caller ends by itself. Returns `at`
 * if there is no such reservation or `at` is later. */
static int64_t unreserved(const struct asker *asker, int64_t at)
{
    if (!reserved_by_another(asker))
        return at;
    int64_t from = asker->gate->kept ? asker->t : asker->gate->reserved_at;
    int64_t until = from + asker->options->reservation_max_ns;
    return until > at ? until : at;
}

/* Returns the latest of all bounds that end by the passage of time alone, and its reason. */
static int64_t earliest(const struct asker *asker, weir_reason *ret_reason)
{
    const struct wr_gate *gate = asker->gate;
    int64_t interval_ns = wr_gate_interval(gate, asker->options);
    int64_t at = gate->last_start_at + interval_ns;
    bool robots = interval_ns > 0 && interval_ns == gate->robots_delay_ns;
    *ret_reason = robots ? WEIR_REASON_ROBOTS_DELAY : WEIR_REASON_PACE;
    if (asker->want->earliest_at > at) {
        at = asker->want->earliest_at;
        *ret_reason = asker->want->reason;
    }
    if (gate->hold_until > at) {
        at = gate->hold_until;
        *ret_reason = (weir_reason)gate->hold_reason;
    }
    int64_t free_at = unreserved(asker, at);
    if (free_at > at)
        *ret_reason = WEIR_REASON_PACE;
    return free_at;
}

static weir_decision decision_to_wait(weir_reason reason, int64_t wait_ns)
{
    return (weir_decision){WEIR_WAIT, reason, wait_ns};
}

/* Decides a query. An open breaker is reported first, because a caller may prefer to fail over
 * waiting for it. */
static weir_decision decide_query(const struct asker *asker, int64_t now)
{
    weir_reason reason;
    if (asker->breaker == WEIR_BREAKER_OPEN)
        return decision_to_wait(WEIR_REASON_BREAKER, asker->gate->breaker.open_until - now);
    if (asker->gate->paused)
        return decision_to_wait(WEIR_REASON_PAUSED, WEIR_UNTIL_RELEASE);
    if (others_in_flight(asker) >= most_in_flight(asker))
        return decision_to_wait(WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE);
    if (are_probes_in_flight(asker))
        return decision_to_wait(WEIR_REASON_BREAKER, WEIR_UNTIL_RELEASE);
    int64_t at = earliest(asker, &reason);
    if (at > asker->t)
        return decision_to_wait(reason, at - now);
    return (weir_decision){WEIR_GO, WEIR_REASON_NONE, 0};
}

weir_decision wr_gate_ask(const struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    if (options->off)
        return (weir_decision){WEIR_GO, WEIR_REASON_NONE, 0};
    struct wr_pace_bounds want;
    struct asker asker = asker_of(gate, options, now, &want);
    return decide_query(&asker, now);
}

weir_decision wr_gate_ask_again(const struct wr_gate *gate, const weir_pace_options *options, uint32_t seq, int64_t now)
{
    if (options->off)
        return (weir_decision){WEIR_GO, WEIR_REASON_NONE, 0};
    struct wr_pace_bounds want;
    struct asker asker = asker_of(gate, options, now, &want);
    asker.holds = gate->reserved && gate->seq == seq && !wr_gate_expired(gate, options, asker.t);
    return decide_query(&asker, now);
}

weir_decision wr_gate_ask_as_holder(const struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    return wr_gate_ask_again(gate, options, gate->seq, now);
}

weir_decision wr_gate_ask_unwritten(const struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    if (options->off)
        return (weir_decision){WEIR_GO, WEIR_REASON_NONE, 0};
    if (wr_gate_spaces(gate, options))
        return (weir_decision){WEIR_DENY, WEIR_REASON_PACE, 0}; /* others may have just been sent */
    struct wr_pace_bounds want;
    struct asker asker = asker_of(gate, options, now, &want);
    asker.flies = true;
    return decide_query(&asker, now);
}

/* ---- each bound separately ---- */

struct gate_bound_list {
    weir_pace_bound *bounds;
    size_t count;
    int64_t now;
};

static void list_until(struct gate_bound_list *list, weir_reason reason, int64_t until, int64_t value_ns)
{
    int64_t wait_ns = until > list->now ? until - list->now : 0;
    list->bounds[list->count++] = (weir_pace_bound){reason, wait_ns, value_ns};
}

static void list_if(struct gate_bound_list *list, weir_reason reason, bool holds)
{
    list->bounds[list->count++] = (weir_pace_bound){reason, holds ? WEIR_UNTIL_RELEASE : 0, 0};
}

static void list_hold(struct gate_bound_list *list, const struct wr_gate *gate, weir_reason reason)
{
    list_until(list, reason, gate->hold_reason == reason ? gate->hold_until : list->now, 0);
}

static void list_pace(struct gate_bound_list *list, const struct asker *asker)
{
    const struct wr_gate *gate = asker->gate;
    int64_t interval_ns = wr_own_interval(asker->options);
    int64_t until = gate->last_start_at + interval_ns;
    if (gate->hold_reason == WEIR_REASON_PACE && gate->hold_until > until)
        until = gate->hold_until;
    list_until(list, WEIR_REASON_PACE, unreserved(asker, until), interval_ns);
    if (asker->want->reason != WEIR_REASON_NONE)
        list_until(list, asker->want->reason, asker->want->earliest_at, wr_rate_interval(asker->want->rate));
    list_until(list, WEIR_REASON_ROBOTS_DELAY, gate->last_start_at + gate->robots_delay_ns, gate->robots_delay_ns);
}

size_t wr_gate_bounds(const struct wr_gate *gate, const weir_pace_options *options, int64_t now,
                      weir_pace_bound ret_bounds[WEIR_PACE_BOUNDS_MAX])
{
    struct wr_pace_bounds want;
    struct asker asker = asker_of(gate, options, now, &want);
    struct gate_bound_list list = {.bounds = ret_bounds, .now = asker.t};
    if (options->off)
        return 0;
    list_pace(&list, &asker);
    list_hold(&list, gate, WEIR_REASON_RETRY_AFTER);
    list_hold(&list, gate, WEIR_REASON_RATE_LIMIT_RESET);
    if (asker.breaker == WEIR_BREAKER_OPEN)
        list_until(&list, WEIR_REASON_BREAKER, gate->breaker.open_until, options->open_ns);
    else
        list_if(&list, WEIR_REASON_BREAKER, are_probes_in_flight(&asker));
    list_if(&list, WEIR_REASON_CONCURRENCY, others_in_flight(&asker) >= most_in_flight(&asker));
    list_if(&list, WEIR_REASON_PAUSED, gate->paused);
    return list.count;
}

/* ---- inspection ---- */

/* Returns the time between starts: the longer one of the gate's and the strategy's interval. */
static int64_t delay_of_query(const struct asker *asker)
{
    int64_t interval_ns = wr_gate_interval(asker->gate, asker->options);
    int64_t wanted_ns = wr_rate_interval(asker->want->rate);
    return wanted_ns > interval_ns ? wanted_ns : interval_ns;
}

/* Returns true if all knowledge that a new gate would lack is too old to matter. */
static bool is_gate_outdated(const struct asker *asker)
{
    const struct wr_gate *gate = asker->gate;
    int64_t story_at = gate->breaker.open_until > gate->latest_at ? gate->breaker.open_until : gate->latest_at;
    bool settled = asker->breaker == WEIR_BREAKER_CLOSED &&
                   wr_strategy_of(asker->options->strategy)->settled(asker->options, gate + 1, asker->t);
    return (settled || asker->t - story_at >= STORY_NS) &&
           (gate->robots_delay_ns == 0 || asker->t - gate->latest_at >= ROBOTS_NS);
}

bool wr_gate_forgettable(const struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    struct wr_pace_bounds want;
    struct asker asker = asker_of(gate, options, now, &want);
    weir_reason reason;
    if (options->off)
        return true;
    return others_in_flight(&asker) == 0 && !gate->paused && asker.breaker != WEIR_BREAKER_OPEN &&
           earliest(&asker, &reason) <= asker.t && (asker.t - gate->last_start_at) / 2 >= delay_of_query(&asker) &&
           is_gate_outdated(&asker);
}

static const void *gate_part_const(const struct wr_gate *gate, size_t offset)
{
    return (const char *)gate + offset;
}

int64_t wr_gate_delay(const struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    struct wr_pace_bounds want;
    struct asker asker = asker_of(gate, options, now, &want);
    return options->off ? 0 : delay_of_query(&asker);
}

weir_breaker_state wr_gate_breaker(const struct wr_gate *gate, int64_t now)
{
    return wr_breaker_state(&gate->breaker, wr_gate_time(gate, now));
}

static void set_limit_text(weir_pace_entry *entry, const struct wr_strategy *strategy, const void *state, int64_t now)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, entry->limit_why, sizeof entry->limit_why);
    const char *kind = strategy->describe_limit(state, now, &buf);
    memcpy(entry->limit, kind, strnlen(kind, sizeof entry->limit - 1));
}

void wr_gate_inspect(const struct wr_gate *gate, const weir_pace_options *options, int64_t now,
                     weir_pace_entry *ret_entry)
{
    const struct wr_strategy *strategy = wr_strategy_of(options->strategy);
    struct wr_pace_bounds want;
    struct asker asker = asker_of(gate, options, now, &want);
    const struct wr_latency *latency = gate_part_const(gate, wr_latency_offset(strategy));
    const struct wr_window *window = gate_part_const(gate, wr_window_offset(strategy, options));
    struct wr_window_sums sums = wr_window_sum(window, options, asker.t);
    weir_pace_entry entry = {.key = ret_entry->key, .key_bytes = ret_entry->key_bytes, .waiters = ret_entry->waiters};
    if (!options->off) {
        entry.rate = want.rate;
        entry.tokens = want.tokens;
        entry.delay_ns = delay_of_query(&asker);
        entry.mean_latency_ns = (int64_t)latency->mean_ns;
        entry.p95_latency_ns = wr_latency_p95(latency, options);
        entry.error_rate = wr_window_error_rate(&sums);
        entry.breaker = asker.breaker;
        entry.consecutive_failures = gate->breaker.failures;
        entry.error_streak = gate->streak < 0 ? (uint32_t)-gate->streak : 0;
        entry.success_streak = gate->streak > 0 ? (uint32_t)gate->streak : 0;
        entry.in_flight = others_in_flight(&asker) + reserved_by_another(&asker);
        entry.cap = most_in_flight(&asker);
        entry.starts = gate->seq - gate->reserved;
        entry.rejected = gate->rejected;
        entry.decision = decide_query(&asker, now);
        entry.last_success_at = gate->succeeded ? gate->last_success_at : 0;
        const char *mode = strategy->mode(gate + 1);
        memcpy(entry.mode, mode, strnlen(mode, sizeof entry.mode - 1));
        if (strategy->describe_limit != NULL)
            set_limit_text(&entry, strategy, gate + 1, asker.t);
    }
    *ret_entry = entry;
}
