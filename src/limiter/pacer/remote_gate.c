/* SPDX-License-Identifier: MIT */
/* remote_gate.c - Imports and exports gates that processes share. */
#include "core/pace/gate_transfer.h"
#include "limiter/pacer/pacer.h"

int wr_pacer_share_gates(weir_pacer *pacer, const struct wr_remote_gate_callbacks *lender)
{
    if (pacer->groups != 0)
        return wr_invalid("groups: the gates of domains and addresses cannot be shared; share those of hosts");
    pacer->lender = *lender;
    return 0;
}

int64_t wr_pacer_now(const weir_pacer *pacer)
{
    return wr_clock_now(pacer->clock);
}

void wr_pacer_want_gate(const weir_pacer *pacer, const struct wr_key_query *query)
{
    if (pacer->lender.want != NULL)
        pacer->lender.want(pacer->lender.context, query->key, query->key_bytes);
}

void wr_pacer_report_remote(const weir_pacer *pacer, const struct wr_key_query *query,
                            const struct wr_gate_start *start, const weir_outcome *outcome,
                            enum wr_remote_report_kind word)
{
    struct wr_remote_report away = {query->key, query->key_bytes, start, outcome, word, wr_pacer_now(pacer)};
    pacer->lender.told(pacer->lender.context, &away);
}

void wr_pacer_report_changes(const weir_pacer *pacer, const struct wr_key_query *query, uint32_t news)
{
    if (pacer->lender.news != NULL && (news & (WR_GATE_CHANGE_RETRY_AFTER | WR_GATE_CHANGE_BREAKER)) != 0)
        pacer->lender.news(pacer->lender.context, query->key, query->key_bytes);
}

/* ---- gates by key ---- */

/* Finds a host and holds its lock. Returns false without a lock if the key is unknown. */
static bool visit_known_host(weir_pacer *pacer, const char *key, size_t key_bytes, struct wr_visit *ret_visit,
                             struct wr_locked_host *ret_seen)
{
    struct wr_key_query query = wr_table_query(pacer->table, key, key_bytes, 1, wr_pacer_now(pacer));
    *ret_visit = wr_table_begin_visit(pacer->table, &query);
    if (ret_visit->entry == NULL) {
        wr_lock_give(&ret_visit->shard->lock);
        return false;
    }
    *ret_seen = wr_locked_host_of(pacer->table, ret_visit->shard, ret_visit->entry, ret_visit->now);
    return true;
}

bool wr_pacer_gate_state_get(weir_pacer *pacer, const char *key, size_t key_bytes, struct wr_pacer_gate_state *ret_lent)
{
    struct wr_visit at;
    struct wr_locked_host seen;
    if (!visit_known_host(pacer, key, key_bytes, &at, &seen))
        return false;
    const struct wr_queue *line = wr_key_queue(at.table, at.shard, at.entry);
    weir_pace_entry entry = {.key = NULL};
    wr_gate_inspect(seen.gate, seen.pace, seen.now, &entry);
    *ret_lent = (struct wr_pacer_gate_state){
        .waiters = line != NULL ? line->depth : 0,
        .is_reserved = wr_gate_reserved(seen.gate, seen.pace, seen.now),
        .flights = seen.host->flights,
        .starts = entry.starts,
        .wait_ns = entry.decision.wait_ns,
    };
    wr_lock_give(&at.shard->lock);
    return true;
}

size_t wr_pacer_gate_packed_bytes(weir_pacer *pacer)
{
    (void)pthread_mutex_lock(&pacer->changing);
    size_t bytes = wr_gate_packed_bytes(&pacer->rules[pacer->rule_set].pace);
    (void)pthread_mutex_unlock(&pacer->changing);
    return bytes;
}

bool wr_pacer_gate_import(weir_pacer *pacer, const char *key, size_t key_bytes, const void *packed, size_t packed_bytes,
                          int64_t elapsed_ns, bool lost)
{
    struct wr_visit at;
    struct wr_locked_host seen;
    if (!visit_known_host(pacer, key, key_bytes, &at, &seen))
        return false;
    (void)wr_gate_unpack(seen.gate, seen.pace, packed, packed_bytes, elapsed_ns, lost, seen.now);
    wr_gate_set_in_flight(seen.gate, seen.host->flights);
    seen.host->changes++;
    wr_lock_give(&at.shard->lock);
    return true;
}

void wr_pacer_gate_extend(weir_pacer *pacer, const char *key, size_t key_bytes, int64_t until, uint32_t mark)
{
    struct wr_visit at;
    struct wr_locked_host seen;
    if (!visit_known_host(pacer, key, key_bytes, &at, &seen))
        return;
    seen.host->here_until = until;
    seen.host->here_sleep_mark = mark;
    wr_visit_end_and_wake(&at);
}

bool wr_pacer_gate_export(weir_pacer *pacer, const char *key, size_t key_bytes, bool goes, void *ret_packed)
{
    struct wr_visit at;
    struct wr_locked_host seen;
    if (!visit_known_host(pacer, key, key_bytes, &at, &seen))
        return false;
    bool here = seen.now < seen.host->here_until;
    if (here)
        wr_gate_pack(seen.gate, seen.pace, seen.now, ret_packed);
    if (here && goes) {
        seen.host->here_until = seen.now;
        wr_gate_set_in_flight(seen.gate, 0); /* the next process counts them */
    }
    wr_lock_give(&at.shard->lock);
    return here;
}

void wr_pacer_gate_tell_remote(weir_pacer *pacer, const struct wr_remote_report *away)
{
    struct wr_visit at;
    struct wr_locked_host seen;
    bool is_late = away->word == WR_REMOTE_SENT_LATE;
    if ((away->outcome == NULL && !is_late) || !visit_known_host(pacer, away->key, away->key_bytes, &at, &seen))
        return;
    const struct wr_gate_start *start = away->start->seq != 0 ? away->start : NULL;
    double unit = wr_permit_jitter_unit(pacer, &seen, away->start->seq);
    if (is_late)
        wr_gate_sent_late(seen.gate, seen.pace, away->now - away->start->sent_at, seen.now);
    else if (away->word == WR_REMOTE_HEAD && start != NULL)
        (void)wr_gate_tell_head(seen.gate, seen.pace, start, away->outcome, seen.now, unit);
    else if (away->word == WR_REMOTE_ENDED)
        (void)wr_gate_tell(seen.gate, seen.pace, start, away->outcome, seen.now, unit);
    seen.host->changes++;
    wr_visit_end_and_wake(&at);
}

void wr_pacer_gate_set_remote_count(weir_pacer *pacer, const char *key, size_t key_bytes, uint32_t others)
{
    struct wr_visit at;
    struct wr_locked_host seen;
    if (!visit_known_host(pacer, key, key_bytes, &at, &seen))
        return;
    wr_gate_set_in_flight(seen.gate, seen.host->flights + others);
    wr_visit_end_and_wake(&at);
}
