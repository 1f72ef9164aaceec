/* SPDX-License-Identifier: MIT */
/* decide.c - finds or creates a key, and decides about one request. */
#include "limiter/table/table.h"

/* Slots searched for a key to evict. Enough to find one if there are some, and a limit for the cost
 * of a flood of new keys. */
#define EVICT_SLOTS 48

/* Time for which a key that was requested more than once cannot be evicted, in ticks. It prevents a
 * flood of new keys from evicting known ones. */
#define PROVEN_TICKS ((10 * WEIR_SECOND) >> WR_TICK_SHIFT)

int wr_table_check_table(const weir_table *table)
{
    return table != NULL ? 0 : wr_invalid("table is NULL; make one with weir_table_new");
}

int wr_table_check_key(const weir_table *table, const char *key, size_t key_bytes)
{
    if (key == NULL)
        return wr_invalid("key is NULL; it must be 1 to WEIR_KEY_MAX bytes");
    if (key_bytes == 0 || key_bytes > WEIR_KEY_MAX)
        return wr_invalid("key_bytes must be 1 to WEIR_KEY_MAX; hash longer keys first");
    return wr_table_check_table(table);
}

int wr_table_check(const weir_table *table, const char *key, size_t key_bytes, uint32_t permits)
{
    if (permits == 0)
        return wr_invalid("permits is 0; it must be 1 to WEIR_PERMITS_MAX");
    return wr_table_check_key(table, key, key_bytes);
}

/* ---- eviction ---- */

bool wr_entry_is_idle(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now)
{
    return (entry->flags & WR_ENTRY_WAITED_FOR) == 0 &&
           weir_stack_fresh(wr_entry_stack(table, shard, entry), wr_entry_state(entry), now);
}

void wr_table_forget(weir_table *table, struct wr_shard *shard, struct wr_entry *entry)
{
    wr_shard_remove(shard, &table->layout, &table->blocks, entry);
    atomic_fetch_sub_explicit(&table->keys, 1, memory_order_relaxed);
}

/* Returns true if `entry` is a better victim than `best`: unproven keys first, then the longest
 * idle. */
static bool better_victim(const struct wr_entry *entry, const struct wr_entry *best)
{
    if (best == NULL)
        return true;
    if ((entry->flags & WR_ENTRY_ASKED_TWICE) != (best->flags & WR_ENTRY_ASKED_TWICE))
        return (entry->flags & WR_ENTRY_ASKED_TWICE) == 0;
    return entry->used_at < best->used_at;
}

static struct wr_entry *find_victim(weir_table *table, struct wr_shard *shard, int64_t now)
{
    struct wr_entry *best = NULL;
    size_t slots = (size_t)shard->block.groups * WR_GROUP_SLOTS;
    uint32_t tick = wr_table_tick(table, now);
    for (size_t i = 0; i < EVICT_SLOTS && i < slots; i++) {
        shard->hand = shard->hand + 1 >= slots ? 0 : shard->hand + 1;
        struct wr_entry *entry = wr_shard_entry_at(&shard->block, &table->layout, shard->hand);
        if (shard->block.control[shard->hand] <= WR_CONTROL_REMOVED || !better_victim(entry, best))
            continue;
        if ((entry->flags & WR_ENTRY_ASKED_TWICE) != 0 && tick < entry->used_at + PROVEN_TICKS)
            continue;
        if (wr_entry_is_idle(table, shard, entry, now))
            best = entry;
    }
    return best;
}

/* Counts one more key, and evicts another if the table is full. Returns false if there is no
 * room. */
static bool make_room_for_key(weir_table *table, struct wr_shard *shard, int64_t now)
{
    size_t keys = atomic_load_explicit(&table->keys, memory_order_relaxed);
    while (keys < atomic_load_explicit(&table->max_keys, memory_order_relaxed))
        if (atomic_compare_exchange_weak_explicit(&table->keys, &keys, keys + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    struct wr_entry *victim = find_victim(table, shard, now);
    if (victim == NULL)
        return false;
    wr_shard_remove(shard, &table->layout, &table->blocks, victim);
    shard->keys_evicted++;
    return true;
}

static uint8_t plan_of_new_key(weir_table *table, const struct wr_key_query *query)
{
    if (table->plan_of == NULL)
        return 0;
    uint32_t plan = table->plan_of(table->plan_context, query->key, query->key_bytes);
    return plan < atomic_load(&table->plan_count) ? (uint8_t)plan : 0;
}

static __attribute__((noinline)) int make_key(weir_table *table, struct wr_shard *shard,
                                              const struct wr_key_query *query, struct wr_entry **ret_entry)
{
    *ret_entry = NULL;
    if (!make_room_for_key(table, shard, query->now))
        return 0;
    struct wr_entry *entry =
        wr_shard_add(shard, &table->layout, &table->blocks, query->hash, query->key, query->key_bytes);
    if (entry == NULL) {
        atomic_fetch_sub_explicit(&table->keys, 1, memory_order_relaxed);
        return WEIR_E_NOMEM;
    }
    entry->plan = plan_of_new_key(table, query);
    entry->used_at = wr_table_tick(table, query->now);
    weir_stack_start(wr_entry_stack(table, shard, entry), wr_entry_state(entry), query->now);
    shard->keys_created++;
    *ret_entry = entry;
    return 0;
}

int wr_table_get_or_make(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                         struct wr_entry **ret_entry)
{
    struct wr_entry *entry = wr_table_find(table, shard, query);
    if (__builtin_expect(entry == NULL, 0))
        return make_key(table, shard, query, ret_entry);
    wr_entry_touch(entry, wr_table_tick(table, query->now));
    *ret_entry = entry;
    return 0;
}

/* ---- decisions ---- */

/* decision for new keys when the table is full and the overflow limiter cannot be shared */
static const weir_decision full = {WEIR_WAIT, WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE};

/* Returns the limiter of an entry, or for NULL the overflow limiter, with its lock held until
 * leave. */
static struct wr_limit_state enter_limit_state(weir_table *table, struct wr_shard *shard, struct wr_entry *entry)
{
    struct wr_overflow *overflow = &table->overflow;
    if (entry != NULL)
        return wr_entry_limit_state(table, shard, entry);
    wr_lock_take(&overflow->lock);
    return (struct wr_limit_state){&table->plans[overflow->plan_set][0], overflow->state, &shard->acquired,
                                   &shard->rejected, NULL};
}

static void leave_limit_state(weir_table *table, const struct wr_entry *entry)
{
    if (entry == NULL)
        wr_lock_give(&table->overflow.lock);
}

weir_decision wr_table_try_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                 const struct wr_key_query *query, weir_receipt *ret_receipt)
{
    if (entry == NULL && table->overflow.refuses) {
        wr_table_refuse_entry(shard, NULL, query->permits);
        return full;
    }
    struct wr_queue *line = wr_key_queue(table, shard, entry);
    struct wr_limit_state spot = enter_limit_state(table, shard, entry);
    weir_decision decision = wr_queue_try(line, &spot, query->now, query->permits, ret_receipt);
    leave_limit_state(table, entry);
    shard->overflowed += entry == NULL;
    if (entry == NULL && ret_receipt != NULL && decision.verdict == WEIR_GO)
        ret_receipt->place = WR_IN_OVERFLOW;
    return decision;
}

weir_decision wr_table_ask_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                 const struct wr_key_query *query)
{
    if (entry == NULL && table->overflow.refuses)
        return full;
    struct wr_queue *line = wr_key_queue(table, shard, entry);
    struct wr_limit_state spot = enter_limit_state(table, shard, entry);
    weir_decision decision = wr_queue_ask(line, &spot, query->now, query->permits);
    leave_limit_state(table, entry);
    return decision;
}

void wr_table_refuse_entry(struct wr_shard *shard, struct wr_entry *entry, uint32_t permits)
{
    shard->rejected += permits;
    if (entry != NULL)
        wr_entry_deny(entry);
    else
        shard->overflowed++;
}

int wr_table_decide(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                    weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    struct wr_entry *entry;
    if (__builtin_expect(shard->closed, 0))
        return WEIR_E_CLOSED;
    int bad = wr_table_get_or_make(table, shard, query, &entry);
    if (__builtin_expect(bad != 0, 0))
        return bad;
    *ret_decision = wr_table_try_entry(table, shard, entry, query, ret_receipt);
    return 0;
}

int wr_table_acquire_now(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                         const weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    struct wr_entry *entry;
    int bad = shard->closed ? WEIR_E_CLOSED : wr_table_get_or_make(table, shard, query, &entry);
    if (bad != 0)
        return bad;
    if (entry != NULL) {
        struct wr_limit_state spot = wr_entry_limit_state(table, shard, entry);
        return wr_queue_acquire(wr_key_queue(table, shard, entry), &spot, query->now, query->permits, cancel,
                                ret_receipt, ret_decision);
    }
    if (wr_cancel_fired(cancel)) {
        *ret_decision = wr_table_ask_entry(table, shard, NULL, query);
        wr_table_refuse_entry(shard, NULL, query->permits);
        return WEIR_E_CANCELLED;
    }
    *ret_decision = wr_table_try_entry(table, shard, NULL, query, ret_receipt);
    return ret_decision->verdict == WEIR_GO ? 0 : WEIR_E_FULL;
}

/* Decides, and reports the remaining quota. */
static int decide_and_peek(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                           weir_receipt *ret_receipt, weir_decision *ret_decision, weir_quota *ret_quota)
{
    struct wr_entry *entry;
    int bad = shard->closed ? WEIR_E_CLOSED : wr_table_get_or_make(table, shard, query, &entry);
    if (bad != 0)
        return bad;
    *ret_decision = wr_table_try_entry(table, shard, entry, query, ret_receipt);
    if (entry != NULL)
        weir_stack_peek(wr_entry_stack(table, shard, entry), wr_entry_state(entry), query->now, ret_quota);
    else
        *ret_quota = (weir_quota){.limit = 0};
    return 0;
}

static int reserve_for_key(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                           weir_receipt *ret_receipt, weir_decision *ret_decision, weir_quota *ret_quota)
{
    int bad = wr_table_check(table, key, key_bytes, permits);
    if (bad != 0)
        return bad;
    if (ret_decision == NULL)
        return wr_invalid("ret_decision is NULL; a verdict must be looked at");
    struct wr_key_query query = wr_table_query(table, key, key_bytes, permits, 0);
    struct wr_shard *shard = wr_table_shard(table, query.hash);
    wr_shard_prefetch_unlocked(shard, &table->layout, query.hash);
    /* after the prefetch: the clock is read while memory is fetched */
    query.now = wr_clock_now(table->clock);
    wr_lock_take(&shard->lock);
    bad = ret_quota != NULL ? decide_and_peek(table, shard, &query, ret_receipt, ret_decision, ret_quota)
                            : wr_table_decide(table, shard, &query, ret_receipt, ret_decision);
    wr_lock_give(&shard->lock);
    return bad;
}

int weir_table_reserve(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                       weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    return reserve_for_key(table, key, key_bytes, permits, ret_receipt, ret_decision, NULL);
}

int wr_table_reserve_peek(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                          weir_receipt *ret_receipt, weir_decision *ret_decision, weir_quota *ret_quota)
{
    return reserve_for_key(table, key, key_bytes, permits, ret_receipt, ret_decision, ret_quota);
}

int weir_table_try(weir_table *table, const char *key, size_t key_bytes, uint32_t permits, weir_decision *ret_decision)
{
    if (__builtin_expect(ret_decision == NULL || wr_table_check(table, key, key_bytes, permits) != 0, 0))
        /* fails, and reports the invalid argument */
        return weir_table_reserve(table, key, key_bytes, permits, NULL, ret_decision);
    struct wr_key_query query = wr_table_query(table, key, key_bytes, permits, 0);
    struct wr_shard *shard = wr_table_shard(table, query.hash);
    wr_shard_prefetch_unlocked(shard, &table->layout, query.hash);
    /* after the prefetch: the clock is read while memory is fetched */
    query.now = wr_clock_now(table->clock);
    wr_lock_take(&shard->lock);
    int bad = wr_table_decide_fast(table, shard, &query, ret_decision);
    wr_lock_give(&shard->lock);
    return bad;
}

/* ---- existing keys ---- */

struct wr_visit wr_table_begin_visit(weir_table *table, const struct wr_key_query *query)
{
    struct wr_shard *shard = wr_table_shard(table, query->hash);
    wr_lock_take(&shard->lock);
    return (struct wr_visit){table, shard, wr_table_find(table, shard, query), query->now};
}

int wr_table_visit(weir_table *table, const char *key, size_t key_bytes, struct wr_visit *ret_visit)
{
    int bad = wr_table_check_key(table, key, key_bytes);
    if (bad != 0)
        return bad;
    struct wr_key_query query = wr_table_query(table, key, key_bytes, 1, wr_clock_now(table->clock));
    struct wr_visit visit = wr_table_begin_visit(table, &query);
    if (visit.shard->closed) {
        wr_lock_give(&visit.shard->lock);
        return WEIR_E_CLOSED;
    }
    *ret_visit = visit;
    return 0;
}

void wr_visit_end_and_wake(const struct wr_visit *visit)
{
    struct wr_queue *line = wr_key_queue(visit->table, visit->shard, visit->entry);
    struct weir_ticket *first = line != NULL ? wr_queue_first(line, visit->now) : NULL;
    wr_lock_give(&visit->shard->lock);
    wr_ticket_wake(first);
}

void wr_table_settle_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now,
                           weir_receipt *receipt, uint32_t used)
{
    if (receipt->place == WR_IN_OVERFLOW)
        entry = NULL;
    else if (entry == NULL)
        return;
    else
        wr_entry_use(entry, wr_table_tick(table, now));
    struct wr_limit_state spot = enter_limit_state(table, shard, entry);
    weir_stack_settle(spot.stack, spot.state, now, receipt, used);
    leave_limit_state(table, entry);
}

int weir_table_settle(weir_table *table, const char *key, size_t key_bytes, weir_receipt *receipt, uint32_t used)
{
    struct wr_visit visit;
    if (receipt == NULL)
        return wr_invalid("receipt is NULL; it must come from weir_table_reserve or weir_table_acquire");
    int bad = wr_table_visit(table, key, key_bytes, &visit);
    if (bad != 0)
        return bad;
    wr_table_settle_entry(table, visit.shard, visit.entry, visit.now, receipt, used);
    wr_visit_end_and_wake(&visit);
    return 0;
}

int weir_table_release(weir_table *table, const char *key, size_t key_bytes, uint32_t permits)
{
    struct wr_visit visit;
    int bad = wr_table_check(table, key, key_bytes, permits);
    if (bad == 0)
        bad = wr_table_visit(table, key, key_bytes, &visit);
    if (bad != 0)
        return bad;
    if (visit.entry != NULL)
        weir_stack_release(wr_entry_stack(table, visit.shard, visit.entry), wr_entry_state(visit.entry), permits);
    wr_visit_end_and_wake(&visit);
    return 0;
}

int weir_table_peek(weir_table *table, const char *key, size_t key_bytes, weir_quota *ret_quota)
{
    struct wr_visit visit;
    if (ret_quota == NULL)
        return wr_invalid("ret_quota is NULL; it must point to where the quota goes");
    int bad = wr_table_visit(table, key, key_bytes, &visit);
    if (bad != 0)
        return bad;
    if (visit.entry != NULL)
        weir_stack_peek(wr_entry_stack(table, visit.shard, visit.entry), wr_entry_state(visit.entry), visit.now,
                        ret_quota);
    wr_lock_give(&visit.shard->lock);
    return visit.entry != NULL ? 0 : WEIR_E_ABSENT;
}
