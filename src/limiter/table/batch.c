/* SPDX-License-Identifier: MIT */
/* batch.c - decides several keys in one call: independently of each other, or all or nothing. */
#include "limiter/table/table.h"

#include "core/limit/compare.h"

/* ---- independent decisions ---- */

/* cache misses that a processor can have outstanding at once */
#define AT_ONCE 16

static int check_items(const weir_table *table, const weir_table_item *items, size_t count)
{
    if (items == NULL && count > 0)
        return wr_invalid("items is NULL; it must point to `count` items");
    if (wr_table_check_table(table) != 0)
        return WEIR_E_INVAL;
    for (size_t i = 0; i < count; i++)
        if (wr_table_check(table, items[i].key, items[i].key_bytes, items[i].permits) != 0)
            return WEIR_E_INVAL;
    return 0;
}

/* Decides up to AT_ONCE items in three passes: hash and prefetch control bytes, prefetch entries,
 * decide. The cache misses of each pass overlap. */
static void try_some(weir_table *table, weir_table_item *items, size_t count, int64_t now)
{
    struct wr_key_query queries[AT_ONCE];
    struct wr_shard *shards[AT_ONCE];
    for (size_t i = 0; i < count; i++) {
        queries[i] = wr_table_query(table, items[i].key, items[i].key_bytes, items[i].permits, now);
        shards[i] = wr_table_shard(table, queries[i].hash);
        __builtin_prefetch(shards[i], 1);
    }
    for (size_t i = 0; i < count; i++) {
        wr_lock_take(&shards[i]->lock);
        wr_shard_prefetch(shards[i], &table->layout, queries[i].hash);
        wr_lock_give(&shards[i]->lock);
    }
    for (size_t i = 0; i < count; i++) {
        wr_lock_take(&shards[i]->lock);
        items[i].error = wr_table_decide_fast(table, shards[i], &queries[i], &items[i].decision);
        wr_lock_give(&shards[i]->lock);
    }
}

int weir_table_try_many(weir_table *table, weir_table_item *items, size_t count)
{
    int bad = check_items(table, items, count);
    if (bad != 0)
        return bad;
    int64_t now = wr_clock_now(table->clock);
    for (size_t i = 0; i < count; i += AT_ONCE)
        try_some(table, items + i, count - i < AT_ONCE ? count - i : AT_ONCE, now);
    return 0;
}

/* ---- all or nothing ---- */

/* Returns the shard with the next higher address than `after`; NULL at the end. Locking in the
 * order of addresses cannot deadlock. */
static struct wr_shard *next_shard(const struct wr_table_part *parts, size_t count, const struct wr_shard *after)
{
    struct wr_shard *next = NULL;
    for (size_t i = 0; i < count; i++) {
        struct wr_shard *shard = parts[i].shard;
        if ((uintptr_t)shard > (uintptr_t)after && (next == NULL || (uintptr_t)shard < (uintptr_t)next))
            next = shard;
    }
    return next;
}

void wr_table_parts_lock(struct wr_table_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        parts[i].shard = wr_table_shard(parts[i].table, parts[i].query.hash);
    for (struct wr_shard *at = next_shard(parts, count, NULL); at != NULL; at = next_shard(parts, count, at))
        wr_lock_take(&at->lock);
}

void wr_table_parts_unlock(const struct wr_table_part *parts, size_t count)
{
    for (struct wr_shard *at = next_shard(parts, count, NULL); at != NULL; at = next_shard(parts, count, at))
        wr_lock_give(&at->lock);
}

void wr_table_parts_find(struct wr_table_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        parts[i].entry = wr_table_find(parts[i].table, parts[i].shard, &parts[i].query);
}

/* Creates all missing keys first, then looks all of them up, because creating one may move the
 * entries of its shard. A key created for one part may be evicted for another; the overflow limiter
 * then decides that part. */
int wr_table_parts_get_or_make(struct wr_table_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (parts[i].shard->closed)
            return WEIR_E_CLOSED;
        int bad = wr_table_get_or_make(parts[i].table, parts[i].shard, &parts[i].query, &parts[i].entry);
        if (bad != 0)
            return bad;
    }
    if (count > 1)
        wr_table_parts_find(parts, count);
    return 0;
}

/* Returns the index of the part with the longest wait, or `count` if all would be granted.
 * *ret_decision must be WEIR_GO on entry. */
static size_t strictest(struct wr_table_part *parts, size_t count, weir_decision *ret_decision)
{
    size_t worst = count;
    for (size_t i = 0; i < count; i++) {
        weir_decision decision = wr_table_ask_entry(parts[i].table, parts[i].shard, parts[i].entry, &parts[i].query);
        if (wr_decision_worse(&decision, ret_decision)) {
            worst = i;
            *ret_decision = decision;
        }
    }
    return worst;
}

/* Charges the parts in order. A part can still refuse if it shares its limiter with an earlier one.
 * Then all charges are reverted, which is exact because the locks are still held. */
static weir_decision charge_all_parts(struct wr_table_part *parts, size_t count, size_t *ret_part)
{
    weir_decision decision = {WEIR_GO, WEIR_REASON_NONE, 0};
    size_t i = 0;
    for (; i < count && decision.verdict == WEIR_GO; i++) {
        parts[i].receipt = (weir_receipt){0};
        decision =
            wr_table_try_entry(parts[i].table, parts[i].shard, parts[i].entry, &parts[i].query, &parts[i].receipt);
    }
    if (decision.verdict == WEIR_GO)
        return decision;
    *ret_part = --i;
    while (i-- > 0) {
        wr_table_settle_entry(parts[i].table, parts[i].shard, parts[i].entry, parts[i].query.now, &parts[i].receipt, 0);
        parts[i].shard->acquired -= parts[i].query.permits;
    }
    return decision;
}

weir_decision wr_table_parts_try(struct wr_table_part *parts, size_t count, size_t *ret_part)
{
    weir_decision decision = {WEIR_GO, WEIR_REASON_NONE, 0};
    size_t worst = count > 1 ? strictest(parts, count, &decision) : count;
    if (worst == count)
        return charge_all_parts(parts, count, ret_part);
    wr_table_refuse_entry(parts[worst].shard, parts[worst].entry, parts[worst].query.permits);
    *ret_part = worst;
    return decision;
}

static int check_parts(const weir_table_part *parts, size_t count, const weir_decision *ret_decision)
{
    if (parts == NULL || count < 1 || count > WEIR_STACK_MAX)
        return wr_invalid("parts must be 1 to WEIR_STACK_MAX");
    if (ret_decision == NULL)
        return wr_invalid("ret_decision is NULL; a verdict must be looked at");
    for (size_t i = 0; i < count; i++) {
        if (wr_table_check(parts[i].table, parts[i].key, parts[i].key_bytes, parts[i].permits) != 0)
            return WEIR_E_INVAL;
        if (parts[i].table->clock != parts[0].table->clock)
            return wr_invalid("all tables of one decision must have the same clock");
    }
    return 0;
}

int weir_table_try_all(weir_table_part *parts, size_t count, weir_decision *ret_decision, size_t *ret_part)
{
    struct wr_table_part set[WEIR_STACK_MAX];
    int bad = check_parts(parts, count, ret_decision);
    if (bad != 0)
        return bad;
    int64_t now = wr_clock_now(parts[0].table->clock);
    for (size_t i = 0; i < count; i++) {
        set[i].table = parts[i].table;
        set[i].query = wr_table_query(parts[i].table, parts[i].key, parts[i].key_bytes, parts[i].permits, now);
    }
    size_t part = 0;
    wr_table_parts_lock(set, count);
    bad = wr_table_parts_get_or_make(set, count);
    if (bad == 0)
        *ret_decision = wr_table_parts_try(set, count, &part);
    wr_table_parts_unlock(set, count);
    for (size_t i = 0; bad == 0 && ret_decision->verdict == WEIR_GO && i < count; i++)
        parts[i].receipt = set[i].receipt;
    if (bad == 0 && ret_part != NULL)
        *ret_part = part;
    return bad;
}
