/* SPDX-License-Identifier: MIT */
/* acquire.c - Acquires permits, at once or after waiting. */
#include "core/limit/algorithm.h"
#include "limiter/pacer/pacer.h"

static bool counts_as_sent_at_once(const struct wr_claim *claim)
{
    return (claim->flags & WEIR_REPORTS_SENT) == 0;
}

static bool waits_always(const struct wr_claim *claim)
{
    return (claim->flags & WEIR_WAITS_BREAKER) != 0;
}

/* ---- begin and end of a claim ---- */

static int check_claim_arguments(const weir_pacer *pacer, const char *key, size_t key_bytes, uint32_t flags,
                                 int64_t timeout_ns, const weir_permit *ret_permit)
{
    int bad = wr_pacer_check(pacer, key, key_bytes);
    if (bad != 0)
        return bad;
    if (ret_permit == NULL)
        return wr_invalid("ret_permit is NULL; it must point to where the permit goes");
    if ((flags & ~WR_FLAGS_ALL) != 0)
        return wr_invalid("flags must be of WEIR_REPORTS_SENT and WEIR_WAITS_BREAKER, or 0");
    if (wr_key_is_group(key, key_bytes))
        return wr_invalid("a key that begins with domain: or address: is a group's; acquire a host's");
    return wr_timeout_check(timeout_ns);
}

int wr_claim_begin(struct wr_claim *ret_claim, weir_pacer *pacer, const char *key, size_t key_bytes,
                   const char *address, uint32_t flags, int64_t timeout_ns, weir_permit *ret_permit)
{
    int bad = check_claim_arguments(pacer, key, key_bytes, flags, timeout_ns, ret_permit);
    if (bad != 0)
        return bad;
    ret_permit->pacer = NULL;
    if (wr_permit_set_keys(ret_permit, pacer, key, key_bytes, address) != 0)
        return WEIR_E_INVAL;
    wr_shard_prefetch_unlocked(wr_table_shard(pacer->table, ret_permit->hash), &pacer->table->layout, ret_permit->hash);
    int64_t now = wr_clock_now(pacer->clock); /* read while the entry is being prefetched */
    ret_permit->granted_at = now;
    ret_permit->waited_ns = 0;
    ret_permit->waited_for = WEIR_REASON_NONE;
    ret_permit->gates = 0;
    ret_permit->sent = false;
    bool off = atomic_load_explicit(&pacer->off, memory_order_relaxed);
    *ret_claim = (struct wr_claim){.pacer = pacer,
                                   .permit = ret_permit,
                                   .flags = flags,
                                   .began_at = now,
                                   .deadline_at = wr_deadline(now, timeout_ns),
                                   .decision = {off ? WEIR_GO : WEIR_WAIT, WEIR_REASON_NONE, 0}};
    return off ? 1 : 0;
}

int wr_claim_fail(const struct wr_claim *claim, int result)
{
    static const char *const held_by[] = {
#define X(reason, name) [reason] = "is held by " name,
        WEIR_REASONS(X)
#undef X
    };
    const char *what = result == WEIR_E_CANCELLED ? "domain rate limiter cancelled:"
                       : result == WEIR_E_TIMEOUT ? "domain rate limiter timed out:"
                       : result == WEIR_E_CIRCUIT ? "domain rate limiter refused:"
                                                  : NULL;
    (void)wr_failed(result);
    if (what != NULL)
        wr_error_set_text(what, claim->permit->key, claim->permit->key_bytes, held_by[claim->decision.reason]);
    return result;
}

static void count_grant(struct wr_claim *claim, struct wr_pacer_counts *tally)
{
    weir_permit *permit = claim->permit;
    wr_pacer_count_add(&tally->requests, 1);
    if (permit->waited_for == WEIR_REASON_NONE)
        return;
    permit->granted_at = wr_clock_now(claim->pacer->clock);
    permit->waited_ns = permit->granted_at > claim->began_at ? permit->granted_at - claim->began_at : 0;
    wr_pacer_count_add(&tally->waited_ns, (uint64_t)permit->waited_ns);
    if (permit->waited_ns > claim->pacer->throttled_over_ns)
        wr_pacer_count_add(&tally->throttled, 1);
}

int wr_claim_end(struct wr_claim *claim, uint64_t hash, int result)
{
    struct wr_pacer_counts *tally = wr_pacer_counts_of(claim->pacer, hash);
    if (result == 0) {
        claim->decision = (weir_decision){WEIR_GO, WEIR_REASON_NONE, 0};
        claim->permit->pacer = claim->pacer;
        count_grant(claim, tally);
        return 0;
    }
    if (result == WEIR_E_CIRCUIT)
        wr_pacer_count_add(&tally->denied, 1);
    if (claim->decision.verdict == WEIR_GO)
        claim->decision.verdict = WEIR_WAIT; /* no bound holds any more, but nothing was taken */
    return wr_claim_fail(claim, result);
}

/* ---- trying ---- */

/* Returns true if the breaker of a gate is open, so that a caller without WEIR_WAITS_BREAKER does
 * not wait. The locks are held. */
static bool is_any_breaker_open(const struct wr_request_gates *gates)
{
    bool open = false;
    for (size_t i = 0; i < gates->count && !open; i++) {
        const struct wr_table_part *part = &gates->parts[i];
        open = part->entry != NULL && wr_stack_wait_error(wr_entry_stack(part->table, part->shard, part->entry),
                                                          wr_entry_state(part->entry), part->query.now) != 0;
    }
    return open;
}

/* Grants the most frequent case in a third of the instructions: a known host, no groups, no
 * waiters, and the request may start. Returns false if the general path is needed; nothing was
 * taken then. */
static bool grant_known_host(struct wr_claim *claim, const struct wr_table_part *part)
{
    const struct wr_key_query *query = &part->query;
    weir_table *table = part->table;
    struct wr_shard *shard = wr_table_shard(table, query->hash);
    bool goes = false;
    wr_lock_take(&shard->lock);
    struct wr_entry *entry = wr_shard_find_fast_large(shard, &table->layout, query->hash, query->key, query->key_bytes);
    if (entry != NULL && !shard->closed && (entry->flags & WR_ENTRY_WAITED_FOR) == 0) {
        struct wr_locked_host seen = wr_locked_host_of(table, shard, entry, query->now);
        goes = wr_pacer_host_ask(seen.host, seen.pace, seen.now).verdict == WEIR_GO;
        if (goes) {
            wr_entry_touch(entry, wr_table_tick(table, query->now));
            shard->acquired++;
            wr_permit_grant_one(claim->permit, &seen, counts_as_sent_at_once(claim));
        }
    }
    wr_lock_give(&shard->lock);
    return goes;
}

/* Returns 0 if granted, 1 if the caller must wait, or an error: WEIR_E_CIRCUIT, WEIR_E_FULL,
 * WEIR_E_CLOSED, WEIR_E_NOMEM. */
static int try_gates(struct wr_claim *claim, struct wr_request_gates *gates)
{
    size_t refuser = 0;
    if (gates->count == 1 && grant_known_host(claim, &gates->parts[0]))
        return 0;
    wr_table_parts_lock(gates->parts, gates->count);
    int result = wr_table_parts_get_or_make(gates->parts, gates->count);
    if (result == 0) {
        claim->decision = wr_table_parts_try(gates->parts, gates->count, &refuser);
        if (claim->decision.verdict == WEIR_GO)
            wr_permit_grant(claim->permit, gates, counts_as_sent_at_once(claim));
        else if (gates->parts[refuser].entry == NULL)
            result = WEIR_E_FULL;
        else
            result = is_any_breaker_open(gates) ? WEIR_E_CIRCUIT : 1;
    }
    wr_table_parts_unlock(gates->parts, gates->count);
    return result;
}

int weir_pacer_try(weir_pacer *pacer, const char *key, size_t key_bytes, const char *address, uint32_t flags,
                   weir_permit *ret_permit, weir_decision *ret_decision)
{
    struct wr_claim claim;
    struct wr_request_gates gates;
    if (ret_decision == NULL)
        return wr_invalid("ret_decision is NULL; a verdict must be looked at");
    int result = wr_claim_begin(&claim, pacer, key, key_bytes, address, flags, 0, ret_permit);
    if (result == 0) {
        wr_request_gates_init(&gates, pacer, ret_permit, claim.began_at, waits_always(&claim));
        result = try_gates(&claim, &gates);
        if (result == 1 && claim.decision.reason == WEIR_REASON_SHARE)
            wr_pacer_want_gate(pacer, &gates.parts[0].query);
        if (result <= 0)
            result = wr_claim_end(&claim, gates.parts[0].query.hash, result);
        if (result == WEIR_E_CIRCUIT || result == WEIR_E_FULL)
            result = 0; /* the decision reports it */
    }
    if (result < 0)
        return result;
    *ret_decision = claim.decision;
    return 0;
}

/* ---- waiting ---- */

void wr_claim_wait(struct wr_claim *claim, const struct wr_key_query *query)
{
    weir_pace_event event = {.kind = WEIR_PACE_WAITING,
                             .key = query->key,
                             .key_bytes = query->key_bytes,
                             .reason = claim->decision.reason,
                             .wait_ns = claim->decision.wait_ns};
    if (claim->permit->waited_for == WEIR_REASON_NONE)
        claim->permit->waited_for = claim->decision.reason;
    wr_pacer_notify(claim->pacer, &event);
    if (event.reason == WEIR_REASON_SHARE)
        wr_pacer_want_gate(claim->pacer, query);
}

static void store_life(void *context, const struct wr_entry *entry)
{
    uint32_t *life = context;
    *life = wr_entry_pacer_host(entry)->life;
}

struct wr_join_observer wr_life_observer(uint32_t *ret_life)
{
    return (struct wr_join_observer){store_life, ret_life};
}

void wr_claim_note_reserved(struct wr_claim *claim, const struct wr_request_gates *gates, size_t i, uint32_t life,
                            const weir_receipt *receipt)
{
    wr_permit_note_reserved(claim->permit, i, life, receipt->marks[0]);
    if (i + 1 < gates->count)
        wr_permit_keep_reserved(claim->permit, &gates->parts[i], i);
}

void wr_claim_give_back(struct wr_claim *claim)
{
    claim->permit->pacer = claim->pacer;
    weir_permit_abandon(claim->permit);
    claim->permit->gates = 0;
}

int wr_claim_confirm(struct wr_claim *claim)
{
    claim->permit->pacer = claim->pacer;
    int result = wr_permit_confirm(claim->permit, counts_as_sent_at_once(claim));
    if (result != 0)
        claim->permit->gates = 0;
    return result;
}

/* Reserves one gate and waits for it if necessary. */
static int reserve_gate_or_wait(struct wr_claim *claim, struct wr_table_part *part, weir_cancel *cancel,
                                uint32_t *ret_life, weir_receipt *ret_receipt)
{
    weir_table *table = part->table;
    struct wr_join_observer witness = wr_life_observer(ret_life);
    part->query.now = wr_clock_now(table->clock);
    part->shard = wr_table_shard(table, part->query.hash);
    wr_lock_take(&part->shard->lock);
    int result = wr_table_acquire_now(table, part->shard, &part->query, cancel, ret_receipt, &claim->decision);
    if (result == 0)
        store_life(ret_life, wr_table_find(table, part->shard, &part->query));
    wr_lock_give(&part->shard->lock);
    if (result != WR_WAITING)
        return result;
    int64_t left_ns = wr_time_left(part->query.now, claim->deadline_at);
    if (left_ns > 0)
        wr_claim_wait(claim, &part->query);
    return wr_table_wait(table, &part->query, left_ns, cancel, &witness, ret_receipt, &claim->decision);
}

/* Reserves the gates one after the other. Gives all of them back if one fails. */
static int reserve_gates_in_order(struct wr_claim *claim, struct wr_request_gates *gates, weir_cancel *cancel)
{
    for (size_t i = 0; i < gates->count; i++) {
        weir_receipt receipt;
        uint32_t life;
        int result = reserve_gate_or_wait(claim, &gates->parts[i], cancel, &life, &receipt);
        if (result != 0) {
            wr_claim_give_back(claim);
            return result;
        }
        wr_claim_note_reserved(claim, gates, i, life, &receipt);
    }
    return 0;
}

/* Waits until all gates are reserved and none has withdrawn in the meantime. */
static int wait_until_all_agree(struct wr_claim *claim, struct wr_request_gates *gates, weir_cancel *cancel)
{
    int result;
    do {
        result = reserve_gates_in_order(claim, gates, cancel);
        if (result == 0)
            result = wr_claim_confirm(claim);
    } while (result == WEIR_E_WITHDRAWN);
    return result;
}

int weir_pacer_acquire_at(weir_pacer *pacer, const char *key, size_t key_bytes, const char *address, uint32_t flags,
                          int64_t timeout_ns, weir_cancel *cancel, weir_permit *ret_permit, weir_decision *ret_decision)
{
    struct wr_claim claim;
    struct wr_request_gates gates;
    int result = wr_claim_begin(&claim, pacer, key, key_bytes, address, flags, timeout_ns, ret_permit);
    if (result < 0)
        return result;
    if (result == 0) {
        wr_request_gates_init(&gates, pacer, ret_permit, claim.began_at, waits_always(&claim));
        result = wr_cancel_fired(cancel) ? WEIR_E_CANCELLED : try_gates(&claim, &gates);
        bool waits = result == 1 || (result == WEIR_E_CIRCUIT && waits_always(&claim));
        if (waits) {
            wr_pacer_ref(pacer);
            result = wait_until_all_agree(&claim, &gates, cancel);
        }
        result = wr_claim_end(&claim, gates.parts[0].query.hash, result);
        if (waits)
            wr_pacer_unref(pacer);
    } else {
        result = 0;
    }
    if (ret_decision != NULL)
        *ret_decision = claim.decision;
    return result;
}

int weir_pacer_acquire(weir_pacer *pacer, const char *key, size_t key_bytes, uint32_t flags, int64_t timeout_ns,
                       weir_cancel *cancel, weir_permit *ret_permit, weir_decision *ret_decision)
{
    return weir_pacer_acquire_at(pacer, key, key_bytes, NULL, flags, timeout_ns, cancel, ret_permit, ret_decision);
}
