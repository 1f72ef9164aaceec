/* SPDX-License-Identifier: MIT */
/* decide.c - one key: find it or make it, and decide. */
#include "shell/table/table.h"

/* Slots looked at for somebody to evict: enough to find one where there are some, and a bound on what a flood of new
 * keys can cost. */
#define EVICT_SLOTS 48

/* A key that was asked for more than once keeps its place this long, so that a flood of strangers does not push out
 * those we know. */
#define PROVEN_TICKS ((10 * WEIR_SECOND) >> WR_TICK_SHIFT)

int wr_table_check_key(const weir_table *table, const char *key, size_t key_bytes)
{
    if (table == NULL)
        return wr_invalid("table is NULL; make one with weir_table_new");
    if (key == NULL)
        return wr_invalid("key is NULL; it must be 1 to WEIR_KEY_MAX bytes");
    if (key_bytes == 0 || key_bytes > WEIR_KEY_MAX)
        return wr_invalid("key_bytes must be 1 to WEIR_KEY_MAX; hash longer keys first");
    return 0;
}

int wr_table_check(const weir_table *table, const char *key, size_t key_bytes, uint32_t permits)
{
    if (permits == 0)
        return wr_invalid("permits is 0; it must be 1 to WEIR_PERMITS_MAX");
    return wr_table_check_key(table, key, key_bytes);
}

/* ---- making room ---- */

bool wr_entry_idle(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now)
{
    return (entry->flags & WR_WAITED_FOR) == 0 &&
           weir_stack_fresh(wr_entry_stack(table, shard, entry), wr_entry_state(entry), now);
}

void wr_table_forget(weir_table *table, struct wr_shard *shard, struct wr_entry *entry)
{
    wr_shard_remove(shard, &table->layout, table->allocator, entry);
    atomic_fetch_sub_explicit(&table->keys, 1, memory_order_relaxed);
}

/* Whether `entry` is a better one to evict than `best`: strangers before those we know, then the longest idle. */
static bool better_victim(const struct wr_entry *entry, const struct wr_entry *best)
{
    if (best == NULL)
        return true;
    if ((entry->flags & WR_PROVEN) != (best->flags & WR_PROVEN))
        return (entry->flags & WR_PROVEN) == 0;
    return entry->used_at < best->used_at;
}

static struct wr_entry *find_victim(weir_table *table, struct wr_shard *shard, int64_t now)
{
    struct wr_entry *best = NULL;
    size_t slots = (size_t)shard->block.groups * WR_GROUP;
    uint32_t tick = wr_table_tick(table, now);
    for (size_t i = 0; i < EVICT_SLOTS && i < slots; i++) {
        shard->hand = shard->hand + 1 >= slots ? 0 : shard->hand + 1;
        struct wr_entry *entry = wr_slot(&shard->block, &table->layout, shard->hand);
        if (shard->block.control[shard->hand] <= WR_REMOVED || !better_victim(entry, best))
            continue;
        if ((entry->flags & WR_PROVEN) != 0 && tick < entry->used_at + PROVEN_TICKS)
            continue;
        if (wr_entry_idle(table, shard, entry, now))
            best = entry;
    }
    return best;
}

/* Counts one key more, evicting another if the table is full. False if there is no room. */
static bool make_room(weir_table *table, struct wr_shard *shard, int64_t now)
{
    size_t keys = atomic_load_explicit(&table->keys, memory_order_relaxed);
    while (keys < table->max_keys)
        if (atomic_compare_exchange_weak_explicit(&table->keys, &keys, keys + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    struct wr_entry *victim = find_victim(table, shard, now);
    if (victim == NULL)
        return false;
    wr_shard_remove(shard, &table->layout, table->allocator, victim);
    shard->keys_evicted++;
    return true;
}

static uint8_t plan_of(weir_table *table, const struct wr_query *query)
{
    if (table->plan_of == NULL)
        return 0;
    uint32_t plan = table->plan_of(table->plan_context, query->key, query->key_bytes);
    return plan < atomic_load(&table->plan_count) ? (uint8_t)plan : 0;
}

static __attribute__((noinline)) int make_key(weir_table *table, struct wr_shard *shard, const struct wr_query *query,
                                              struct wr_entry **ret_entry)
{
    *ret_entry = NULL;
    if (!make_room(table, shard, query->now))
        return 0;
    struct wr_entry *entry =
        wr_shard_add(shard, &table->layout, table->allocator, query->hash, query->key, query->key_bytes);
    if (entry == NULL) {
        atomic_fetch_sub_explicit(&table->keys, 1, memory_order_relaxed);
        return WEIR_E_NOMEM;
    }
    entry->plan = plan_of(table, query);
    entry->used_at = wr_table_tick(table, query->now);
    weir_stack_start(wr_entry_stack(table, shard, entry), wr_entry_state(entry), query->now);
    shard->keys_created++;
    *ret_entry = entry;
    return 0;
}

int wr_table_get(weir_table *table, struct wr_shard *shard, const struct wr_query *query, struct wr_entry **ret_entry)
{
    struct wr_entry *entry = wr_table_find(table, shard, query);
    if (__builtin_expect(entry == NULL, 0))
        return make_key(table, shard, query, ret_entry);
    wr_entry_touch(entry, wr_table_tick(table, query->now));
    *ret_entry = entry;
    return 0;
}

/* ---- deciding ---- */

static weir_decision decide_overflow(weir_table *table, struct wr_shard *shard, const struct wr_query *query,
                                     weir_receipt *ret_receipt)
{
    struct wr_overflow *overflow = &table->overflow;
    wr_lock_take(&overflow->lock);
    weir_decision decision = weir_stack_try(&table->plans[overflow->change_parity][0], overflow->state, query->now,
                                            query->permits, ret_receipt);
    wr_lock_give(&overflow->lock);
    shard->overflowed++;
    *(decision.verdict == WEIR_GO ? &shard->acquired : &shard->rejected) += query->permits;
    if (ret_receipt != NULL && decision.verdict == WEIR_GO)
        ret_receipt->place = WR_IN_OVERFLOW;
    return decision;
}

static weir_decision decide_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                  const struct wr_query *query, weir_receipt *ret_receipt)
{
    struct wr_line *line = (entry->flags & WR_WAITED_FOR) != 0 ? wr_key_line(table, shard, entry) : NULL;
    struct wr_spot spot = wr_entry_spot(table, shard, entry);
    weir_decision decision = wr_line_try(line, &spot, query->now, query->permits, ret_receipt);
    if (decision.verdict != WEIR_GO)
        wr_entry_deny(entry);
    return decision;
}

weir_decision wr_table_try_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                 const struct wr_query *query, weir_receipt *ret_receipt)
{
    return entry != NULL ? decide_entry(table, shard, entry, query, ret_receipt)
                         : decide_overflow(table, shard, query, ret_receipt);
}

weir_decision wr_table_ask_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                 const struct wr_query *query)
{
    if (entry == NULL) {
        struct wr_overflow *overflow = &table->overflow;
        wr_lock_take(&overflow->lock);
        weir_decision decision =
            weir_stack_ask(&table->plans[overflow->change_parity][0], overflow->state, query->now, query->permits);
        wr_lock_give(&overflow->lock);
        return decision;
    }
    struct wr_line *line = (entry->flags & WR_WAITED_FOR) != 0 ? wr_key_line(table, shard, entry) : NULL;
    struct wr_spot spot = wr_entry_spot(table, shard, entry);
    return wr_line_ask(line, &spot, query->now, query->permits);
}

int wr_table_decide(weir_table *table, struct wr_shard *shard, const struct wr_query *query, weir_receipt *ret_receipt,
                    weir_decision *ret_decision)
{
    struct wr_entry *entry;
    if (__builtin_expect(shard->closed, 0))
        return WEIR_E_CLOSED;
    int bad = wr_table_get(table, shard, query, &entry);
    if (__builtin_expect(bad != 0, 0))
        return bad;
    *ret_decision = wr_table_try_entry(table, shard, entry, query, ret_receipt);
    return 0;
}

int wr_table_acquire_now(weir_table *table, struct wr_shard *shard, const struct wr_query *query,
                         weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    struct wr_entry *entry;
    int bad = shard->closed ? WEIR_E_CLOSED : wr_table_get(table, shard, query, &entry);
    if (bad != 0)
        return bad;
    if (entry == NULL) {
        *ret_decision = decide_overflow(table, shard, query, ret_receipt);
        return ret_decision->verdict == WEIR_GO ? 0 : WEIR_E_FULL;
    }
    if ((entry->flags & WR_WAITED_FOR) != 0)
        return WR_WAITING;
    struct wr_spot spot = wr_entry_spot(table, shard, entry);
    *ret_decision = weir_stack_try(spot.stack, spot.state, query->now, query->permits, ret_receipt);
    if (ret_decision->verdict != WEIR_GO)
        return WR_WAITING;
    shard->acquired += query->permits;
    return 0;
}

int weir_table_reserve(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                       weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    int bad = wr_table_check(table, key, key_bytes, permits);
    if (bad != 0)
        return bad;
    if (ret_decision == NULL)
        return wr_invalid("ret_decision is NULL; a verdict must be looked at");
    struct wr_query query = wr_table_query(table, key, key_bytes, permits, wr_clock_now(table->clock));
    struct wr_shard *shard = wr_table_shard(table, query.hash);
    wr_lock_take(&shard->lock);
    bad = wr_table_decide(table, shard, &query, ret_receipt, ret_decision);
    wr_lock_give(&shard->lock);
    return bad;
}

int weir_table_try(weir_table *table, const char *key, size_t key_bytes, uint32_t permits, weir_decision *ret_decision)
{
    if (__builtin_expect(ret_decision == NULL || wr_table_check(table, key, key_bytes, permits) != 0, 0))
        return weir_table_reserve(table, key, key_bytes, permits, NULL, ret_decision); /* says what is wrong */
    struct wr_query query = wr_table_query(table, key, key_bytes, permits, wr_clock_now(table->clock));
    struct wr_shard *shard = wr_table_shard(table, query.hash);
    wr_lock_take(&shard->lock);
    int bad = wr_table_decide_fast(table, shard, &query, ret_decision);
    wr_lock_give(&shard->lock);
    return bad;
}

/* ---- giving back ---- */

static void settle_overflow(weir_table *table, int64_t now, weir_receipt *receipt, uint32_t used)
{
    struct wr_overflow *overflow = &table->overflow;
    wr_lock_take(&overflow->lock);
    weir_stack_settle(&table->plans[overflow->change_parity][0], overflow->state, now, receipt, used);
    wr_lock_give(&overflow->lock);
}

static void release_overflow(weir_table *table, uint32_t permits)
{
    struct wr_overflow *overflow = &table->overflow;
    wr_lock_take(&overflow->lock);
    weir_stack_release(&table->plans[overflow->change_parity][0], overflow->state, permits);
    wr_lock_give(&overflow->lock);
}

/* Whoever is first in line for this entry should look again; with the lock held. */
static struct weir_ticket *first_for(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now)
{
    return (entry->flags & WR_WAITED_FOR) != 0 ? wr_line_first(wr_key_line(table, shard, entry), now) : NULL;
}

void wr_table_settle_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now,
                           weir_receipt *receipt, uint32_t used)
{
    if (receipt->place == WR_IN_OVERFLOW)
        settle_overflow(table, now, receipt, used);
    else if (entry != NULL)
        weir_stack_settle(wr_entry_stack(table, shard, entry), wr_entry_state(entry), now, receipt, used);
}

int weir_table_settle(weir_table *table, const char *key, size_t key_bytes, weir_receipt *receipt, uint32_t used)
{
    int bad = wr_table_check_key(table, key, key_bytes);
    if (bad != 0)
        return bad;
    if (receipt == NULL)
        return wr_invalid("receipt is NULL; it must come from weir_table_reserve or weir_table_acquire");
    struct weir_ticket *first = NULL;
    struct wr_query query = wr_table_query(table, key, key_bytes, 1, wr_clock_now(table->clock));
    struct wr_shard *shard = wr_table_shard(table, query.hash);
    wr_lock_take(&shard->lock);
    struct wr_entry *entry = wr_table_find(table, shard, &query);
    bad = shard->closed ? WEIR_E_CLOSED : 0;
    if (bad == 0)
        wr_table_settle_entry(table, shard, entry, query.now, receipt, used);
    if (bad == 0 && entry != NULL)
        first = first_for(table, shard, entry, query.now);
    wr_lock_give(&shard->lock);
    wr_ticket_wake(first);
    return bad;
}

int weir_table_release(weir_table *table, const char *key, size_t key_bytes, uint32_t permits)
{
    int bad = wr_table_check(table, key, key_bytes, permits);
    if (bad != 0)
        return bad;
    struct weir_ticket *first = NULL;
    struct wr_query query = wr_table_query(table, key, key_bytes, permits, wr_clock_now(table->clock));
    struct wr_shard *shard = wr_table_shard(table, query.hash);
    wr_lock_take(&shard->lock);
    struct wr_entry *entry = wr_table_find(table, shard, &query);
    if (shard->closed) {
        bad = WEIR_E_CLOSED;
    } else if (entry == NULL) {
        release_overflow(table, permits);
    } else {
        weir_stack_release(wr_entry_stack(table, shard, entry), wr_entry_state(entry), permits);
        first = first_for(table, shard, entry, query.now);
    }
    wr_lock_give(&shard->lock);
    wr_ticket_wake(first);
    return bad;
}

int weir_table_peek(weir_table *table, const char *key, size_t key_bytes, weir_quota *ret_quota)
{
    int bad = wr_table_check_key(table, key, key_bytes);
    if (bad != 0)
        return bad;
    if (ret_quota == NULL)
        return wr_invalid("ret_quota is NULL; it must point to where the quota goes");
    struct wr_query query = wr_table_query(table, key, key_bytes, 1, wr_clock_now(table->clock));
    struct wr_shard *shard = wr_table_shard(table, query.hash);
    wr_lock_take(&shard->lock);
    struct wr_entry *entry = wr_table_find(table, shard, &query);
    bad = shard->closed ? WEIR_E_CLOSED : entry == NULL ? WEIR_E_ABSENT : 0;
    if (bad == 0)
        weir_stack_peek(wr_entry_stack(table, shard, entry), wr_entry_state(entry), query.now, ret_quota);
    wr_lock_give(&shard->lock);
    return bad;
}
