/* SPDX-License-Identifier: MIT */
/* permit.c - Handles the events of a permit: the request is sent, ends, or is given back. */
#include "limiter/pacer/pacer.h"

#include "base/rng.h"

/* ---- sending ---- */

static struct wr_gate_start start_at_gate(const weir_permit *permit, size_t i)
{
    return (struct wr_gate_start){permit->held[i].seq, permit->held[i].in_flight, permit->held[i].sent_at};
}

/* Returns true if the request counts as sent at this gate, false if it is only reserved. */
static bool is_started(const weir_permit *permit, size_t i)
{
    return permit->held[i].in_flight > 0;
}

static void mark_sent(weir_permit *permit, size_t i, const struct wr_locked_host *seen)
{
    if (is_started(permit, i)) {
        wr_gate_written(seen->gate, seen->pace, seen->now);
        permit->held[i].sent_at = seen->now;
        return;
    }
    struct wr_gate_start start = wr_gate_sent(seen->gate, seen->pace, permit->held[i].seq, seen->now);
    seen->host->flights += start.in_flight > 0;
    permit->held[i].seq = start.seq;
    permit->held[i].in_flight = start.in_flight;
    permit->held[i].sent_at = start.sent_at;
}

/* Marks a gate as granted. A gate that does not space starts is not held while the caller connects:
 * there the request counts as sent at once. */
static void mark_granted(weir_permit *permit, size_t i, const struct wr_locked_host *seen, bool sends)
{
    if (sends || !wr_gate_spaces(seen->gate, seen->pace))
        mark_sent(permit, i, seen);
    else
        wr_gate_keep(seen->gate, seen->pace, permit->held[i].seq, false, seen->now);
}

void wr_permit_grant(weir_permit *permit, struct wr_request_gates *gates, bool sends)
{
    for (size_t i = 0; i < gates->count; i++) {
        const struct wr_table_part *part = &gates->parts[i];
        struct wr_locked_host seen = wr_locked_host_of(part->table, part->shard, part->entry, part->query.now);
        wr_permit_note_reserved(permit, i, seen.host->life, part->receipt.marks[0]);
        mark_granted(permit, i, &seen, sends);
    }
    permit->sent = sends;
}

void wr_permit_grant_one(weir_permit *permit, const struct wr_locked_host *seen, bool sends)
{
    wr_permit_note_reserved(permit, 0, seen->host->life, wr_gate_reserve(seen->gate, seen->pace, seen->now));
    mark_granted(permit, 0, seen, sends);
    permit->sent = sends;
}

void wr_permit_note_reserved(weir_permit *permit, size_t i, uint32_t life, uint32_t seq)
{
    permit->held[i].life = life;
    permit->held[i].seq = seq;
    permit->held[i].in_flight = 0;
    permit->gates = (uint8_t)(i + 1);
}

/* Returns true if this is the host whose gate the permit holds. The host may have been forgotten
 * and created anew. */
static bool is_held(const weir_permit *permit, size_t i, const struct wr_locked_host *seen)
{
    return permit->held[i].life == seen->host->life;
}

void wr_permit_keep_reserved(const weir_permit *permit, const struct wr_table_part *part, size_t i)
{
    struct wr_visit visit = wr_table_begin_visit(part->table, &part->query);
    if (visit.entry != NULL) {
        struct wr_locked_host seen = wr_locked_host_of(visit.table, visit.shard, visit.entry, visit.now);
        if (is_held(permit, i, &seen))
            wr_gate_keep(seen.gate, seen.pace, permit->held[i].seq, true, seen.now);
    }
    wr_lock_give(&visit.shard->lock);
}

/* Counts a sent request as ended. */
static void count_permit_ended(const weir_permit *permit, size_t i, const struct wr_locked_host *seen)
{
    seen->host->flights -= is_started(permit, i) && seen->host->flights > 0;
}

static void give_gate(const weir_permit *permit, size_t i, const struct wr_locked_host *seen)
{
    struct wr_gate_start start = start_at_gate(permit, i);
    count_permit_ended(permit, i, seen);
    if (wr_pacer_host_is_remote(seen->host, seen->now))
        return;
    if (is_started(permit, i))
        wr_gate_drop(seen->gate, seen->pace, &start, seen->now);
    else
        wr_gate_give(seen->gate, seen->pace, start.seq, seen->now);
}

static bool agrees(const weir_permit *permit, size_t i, const struct wr_locked_host *seen)
{
    if (wr_pacer_host_is_remote(seen->host, seen->now))
        return false;
    weir_decision decision = is_started(permit, i)
                                 ? wr_gate_ask_unwritten(seen->gate, seen->pace, seen->now)
                                 : wr_gate_ask_again(seen->gate, seen->pace, permit->held[i].seq, seen->now);
    return decision.verdict == WEIR_GO;
}

/* Fills in the hosts of all gates, with NULL for a gate that is no longer held. Returns true if all
 * gates are held and let the request start. */
static bool all_agree(weir_permit *permit, const struct wr_request_gates *gates, int64_t now,
                      struct wr_locked_host ret_seen[WR_REQUEST_GATES_MAX])
{
    bool agree = true;
    for (size_t i = 0; i < gates->count; i++) {
        const struct wr_table_part *part = &gates->parts[i];
        ret_seen[i].host = NULL;
        if (part->entry != NULL) {
            ret_seen[i] = wr_locked_host_of(part->table, part->shard, part->entry, now);
            ret_seen[i].host = is_held(permit, i, &ret_seen[i]) ? ret_seen[i].host : NULL;
        }
        agree = agree && ret_seen[i].host != NULL && agrees(permit, i, &ret_seen[i]);
    }
    return agree;
}

int wr_permit_confirm(weir_permit *permit, bool sends)
{
    struct wr_request_gates gates;
    struct wr_locked_host seen[WR_REQUEST_GATES_MAX];
    int64_t now = wr_clock_now(permit->pacer->clock);
    wr_request_gates_init(&gates, permit->pacer, permit, now, false);
    wr_table_parts_lock(gates.parts, gates.count);
    wr_table_parts_find(gates.parts, gates.count);
    bool agree = all_agree(permit, &gates, now, seen);
    for (size_t i = 0; i < gates.count; i++) {
        if (agree)
            mark_granted(permit, i, &seen[i], sends);
        else if (seen[i].host != NULL)
            give_gate(permit, i, &seen[i]);
    }
    struct wr_gate_waiters called = wr_request_gates_waiters(&gates, now);
    wr_table_parts_unlock(gates.parts, gates.count);
    wr_gate_waiters_wake(&called);
    permit->sent = agree && sends;
    if (!agree)
        permit->pacer = NULL;
    return agree ? 0 : WEIR_E_WITHDRAWN;
}

int weir_permit_sent(weir_permit *permit)
{
    if (permit == NULL)
        return wr_invalid("permit is NULL; it must come from weir_pacer_acquire or weir_pacer_try");
    return permit->pacer == NULL || permit->sent ? 0 : wr_failed(wr_permit_confirm(permit, true));
}

static void late_gate(weir_permit *permit, size_t i, const struct wr_table_part *part)
{
    struct wr_visit visit = wr_table_begin_visit(part->table, &part->query);
    bool away = false;
    if (visit.entry != NULL) {
        struct wr_locked_host seen = wr_locked_host_of(visit.table, visit.shard, visit.entry, visit.now);
        bool held = is_held(permit, i, &seen);
        away = held && wr_pacer_host_is_remote(seen.host, seen.now);
        if (held && !away)
            wr_gate_sent_late(seen.gate, seen.pace, 0, seen.now);
        if (held)
            permit->held[i].sent_at = seen.now;
    }
    wr_lock_give(&visit.shard->lock);
    struct wr_gate_start start = start_at_gate(permit, i);
    if (away)
        wr_pacer_report_remote(permit->pacer, &part->query, &start, NULL, WR_REMOTE_SENT_LATE);
}

void weir_permit_sent_late(weir_permit *permit)
{
    struct wr_request_gates gates;
    if (permit == NULL || permit->pacer == NULL || !permit->sent)
        return;
    wr_request_gates_init(&gates, permit->pacer, permit, wr_clock_now(permit->pacer->clock), false);
    for (size_t i = 0; i < gates.count; i++)
        late_gate(permit, i, &gates.parts[i]);
}

/* ---- outcomes ---- */

/* Changes that a response caused, for the listener. */
struct news {
    uint32_t set;          /* set of wr_gate_change */
    weir_pace_event event; /* only filled in if there is news and a listener */
};

double wr_permit_jitter_unit(const weir_pacer *pacer, const struct wr_locked_host *seen, uint32_t seq)
{
    return wr_rng_unit_of(wr_rng_pick(pacer->seed, (uint64_t)seen->host->life << 32 | seq));
}

static void describe_gate_event(const struct wr_locked_host *seen, const weir_outcome *outcome,
                                weir_pace_event *ret_event)
{
    weir_pace_entry entry = {.key = NULL};
    wr_gate_inspect(seen->gate, seen->pace, seen->now, &entry);
    *ret_event = (weir_pace_event){.reason = entry.decision.reason,
                                   .wait_ns = entry.decision.wait_ns,
                                   .delay_ns = entry.delay_ns,
                                   .error_streak = entry.error_streak,
                                   .status = outcome->status,
                                   .breaker = entry.breaker};
}

/* Counts changes that must be saved, and describes the news for the listener. The lock is held. */
static void note_gate_changes(const weir_pacer *pacer, const struct wr_locked_host *seen, const weir_outcome *outcome,
                              struct news *news)
{
    if ((news->set & (WR_GATE_CHANGE_DELAY | WR_GATE_CHANGE_RETRY_AFTER | WR_GATE_CHANGE_BREAKER)) != 0)
        seen->host->changes++;
    if (news->set != 0 && pacer->listener != NULL)
        describe_gate_event(seen, outcome, &news->event);
}

/* Records an outcome at a gate. The lock is held. `start` may be NULL. */
static void tell_seen_gate(const weir_pacer *pacer, const struct wr_locked_host *seen,
                           const struct wr_gate_start *start, const weir_outcome *outcome, struct news *ret_news)
{
    double unit = wr_permit_jitter_unit(pacer, seen, start != NULL ? start->seq : seen->host->changes);
    ret_news->set = wr_gate_tell(seen->gate, seen->pace, start, outcome, seen->now, unit);
    note_gate_changes(pacer, seen, outcome, ret_news);
}

/* Reports news to the lender and the listener. No lock is held. */
static void report_gate_changes(const weir_pacer *pacer, const struct wr_key_query *query, struct news *news)
{
    static const struct {
        enum wr_gate_change news;
        weir_pace_event_kind kind;
    } kinds[] = {
        {WR_GATE_CHANGE_REJECTED, WEIR_PACE_REJECTED}, {WR_GATE_CHANGE_RETRY_AFTER, WEIR_PACE_RETRY_AFTER},
        {WR_GATE_CHANGE_DELAY, WEIR_PACE_CHANGED},     {WR_GATE_CHANGE_BREAKER, WEIR_PACE_BREAKER},
        {WR_GATE_CHANGE_HOPELESS, WEIR_PACE_HOPELESS},
    };
    if (news->set == 0)
        return;
    wr_pacer_report_changes(pacer, query, news->set);
    if (pacer->listener == NULL)
        return;
    news->event.key = query->key;
    news->event.key_bytes = query->key_bytes;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        news->event.kind = kinds[i].kind;
        if ((news->set & kinds[i].news) != 0)
            wr_pacer_notify(pacer, &news->event);
    }
}

static int check_outcome(const weir_outcome *outcome)
{
    if (outcome == NULL)
        return wr_invalid("outcome is NULL; weir_permit_abandon ends a request without an outcome");
    if (outcome->size != sizeof *outcome)
        return wr_invalid("outcome->size is not that of weir_outcome; set it to sizeof(weir_outcome)");
    return 0;
}

static void count_outcome(weir_pacer *pacer, uint64_t hash, const weir_outcome *outcome, uint32_t news)
{
    struct wr_pacer_counts *tally = wr_pacer_counts_of(pacer, hash);
    if (outcome->attempt > 1)
        wr_pacer_count_add(&tally->retries, 1);
    if ((news & WR_GATE_CHANGE_REJECTED) != 0)
        wr_pacer_count_add(&tally->rejected, 1);
}

/* Ends a request at a gate. The lock is held. Returns true if the gate is in another process and
 * the lender must be informed. */
static bool end_seen(weir_permit *permit, size_t i, const struct wr_locked_host *seen, const weir_outcome *outcome,
                     struct news *news)
{
    bool away = wr_pacer_host_is_remote(seen->host, seen->now);
    if (outcome == NULL || away) {
        give_gate(permit, i, seen);
        return away;
    }
    if (!permit->sent)
        mark_sent(permit, i, seen);
    count_permit_ended(permit, i, seen);
    struct wr_gate_start start = start_at_gate(permit, i);
    tell_seen_gate(permit->pacer, seen, &start, outcome, news);
    return false;
}

/* Ends a request at one of its gates. Without an outcome it is given back, or dropped if it was
 * sent. Returns the news. */
static uint32_t end_gate(weir_permit *permit, struct wr_request_gates *gates, size_t i, const weir_outcome *outcome)
{
    weir_pacer *pacer = permit->pacer;
    const struct wr_key_query *query = &gates->parts[i].query;
    struct wr_visit visit = wr_table_begin_visit(pacer->table, query);
    struct news news;
    bool away = false;
    news.set = 0; /* the rest is large and rarely used */
    if (visit.entry != NULL) {
        struct wr_locked_host seen = wr_locked_host_of(pacer->table, visit.shard, visit.entry, visit.now);
        away = is_held(permit, i, &seen) && end_seen(permit, i, &seen, outcome, &news);
    }
    wr_visit_end_and_wake(&visit);
    struct wr_gate_start start = start_at_gate(permit, i);
    if (away)
        wr_pacer_report_remote(pacer, query, is_started(permit, i) ? &start : &(struct wr_gate_start){0}, outcome,
                               WR_REMOTE_ENDED);
    report_gate_changes(pacer, query, &news);
    return news.set;
}

/* Ends a request at all its gates. Returns the news of the host's gate. */
static uint32_t end_permit(weir_permit *permit, const weir_outcome *outcome, uint64_t *ret_hash)
{
    struct wr_request_gates gates;
    uint32_t news = 0;
    wr_request_gates_init(&gates, permit->pacer, permit, wr_clock_now(permit->pacer->clock), false);
    for (size_t i = permit->gates; i-- > 0;) /* host last: its next waiter finds the others free */
        news = end_gate(permit, &gates, i, outcome);
    *ret_hash = gates.parts[0].query.hash;
    return news;
}

int weir_permit_finish(weir_permit *permit, const weir_outcome *outcome)
{
    uint64_t hash;
    if (permit == NULL)
        return wr_invalid("permit is NULL; it must come from weir_pacer_acquire or weir_pacer_try");
    if (check_outcome(outcome) != 0)
        return WEIR_E_INVAL;
    weir_pacer *pacer = permit->pacer;
    if (pacer == NULL)
        return 0;
    bool calls = pacer->listener != NULL;
    if (calls)
        wr_pacer_ref(pacer); /* the listener may free the pacer after its last permit */
    uint32_t news = end_permit(permit, outcome, &hash);
    count_outcome(pacer, hash, outcome, news);
    permit->pacer = NULL;
    if (calls)
        wr_pacer_unref(pacer);
    return 0;
}

static void tell_gate_head(const weir_permit *permit, const struct wr_key_query *query, size_t i,
                           const weir_outcome *outcome)
{
    weir_pacer *pacer = permit->pacer;
    struct wr_visit visit = wr_table_begin_visit(pacer->table, query);
    struct wr_gate_start start = start_at_gate(permit, i);
    struct news news;
    bool away = false;
    news.set = 0;
    if (visit.entry != NULL) {
        struct wr_locked_host seen = wr_locked_host_of(pacer->table, visit.shard, visit.entry, visit.now);
        bool started = is_held(permit, i, &seen) && is_started(permit, i);
        away = started && wr_pacer_host_is_remote(seen.host, seen.now);
        if (started && !away)
            news.set = wr_gate_tell_head(seen.gate, seen.pace, &start, outcome, seen.now,
                                         wr_permit_jitter_unit(pacer, &seen, start.seq));
        note_gate_changes(pacer, &seen, outcome, &news);
    }
    wr_visit_end_and_wake(&visit);
    if (away)
        wr_pacer_report_remote(pacer, query, &start, outcome, WR_REMOTE_HEAD);
    report_gate_changes(pacer, query, &news);
}

int weir_permit_head(weir_permit *permit, const weir_outcome *outcome)
{
    struct wr_request_gates gates;
    if (permit == NULL)
        return wr_invalid("permit is NULL; it must come from weir_pacer_acquire or weir_pacer_try");
    if (check_outcome(outcome) != 0)
        return WEIR_E_INVAL;
    if (permit->pacer == NULL)
        return 0;
    wr_request_gates_init(&gates, permit->pacer, permit, wr_clock_now(permit->pacer->clock), false);
    for (size_t i = 0; i < permit->gates; i++)
        tell_gate_head(permit, &gates.parts[i].query, i, outcome);
    return 0;
}

void weir_permit_abandon(weir_permit *permit)
{
    uint64_t hash;
    if (permit == NULL || permit->pacer == NULL)
        return;
    (void)end_permit(permit, NULL, &hash);
    permit->pacer = NULL;
}

/* ---- without a permit ---- */

static uint32_t tell_gate_of_key(weir_pacer *pacer, const struct wr_key_query *query, const weir_outcome *outcome)
{
    struct wr_visit visit = wr_table_begin_visit(pacer->table, query);
    struct news news;
    bool away = false;
    news.set = 0;
    if (visit.entry != NULL) {
        struct wr_locked_host seen = wr_locked_host_of(pacer->table, visit.shard, visit.entry, visit.now);
        away = wr_pacer_host_is_remote(seen.host, seen.now);
        if (!away)
            tell_seen_gate(pacer, &seen, NULL, outcome, &news);
    }
    wr_visit_end_and_wake(&visit);
    if (away)
        wr_pacer_report_remote(pacer, query, &(struct wr_gate_start){0}, outcome, WR_REMOTE_ENDED);
    report_gate_changes(pacer, query, &news);
    return news.set;
}

int weir_pacer_tell(weir_pacer *pacer, const char *key, size_t key_bytes, const weir_outcome *outcome)
{
    weir_permit nobody;
    struct wr_request_gates gates;
    uint32_t news = 0;
    if (pacer == NULL)
        return wr_invalid("pacer is NULL; make one with weir_pacer_new");
    if (check_outcome(outcome) != 0)
        return WEIR_E_INVAL;
    if (key == NULL || key_bytes == 0 || key_bytes > WEIR_PACE_KEY_MAX)
        return 0;
    (void)wr_permit_set_keys(&nobody, pacer, key, key_bytes, NULL);
    wr_request_gates_init(&gates, pacer, &nobody, wr_clock_now(pacer->clock), false);
    wr_pacer_ref(pacer); /* the listener may free the pacer */
    for (size_t i = gates.count; i-- > 0;)
        news = tell_gate_of_key(pacer, &gates.parts[i].query, outcome);
    count_outcome(pacer, gates.parts[0].query.hash, outcome, news);
    wr_pacer_unref(pacer);
    return 0;
}
