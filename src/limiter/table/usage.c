/* SPDX-License-Identifier: MIT */
/* usage.c - saves and restores how much keys have used of their limits.
 *
 * The internal state of an algorithm is not saved, only the used permits that can be queried.
 * Restoring charges them to a new state, at the time from which they count. A window then ends when
 * it would have, and a bucket is as full. A sliding window, which forgets older permits one by one,
 * becomes slightly stricter, but never laxer. */
#include "limiter/table/usage.h"

#include "core/limit/algorithm.h"
#include "core/limit/bucket.h"

static struct wr_limit_usage usage_of_limit(const weir_limit *limit, const void *state, int64_t now)
{
    struct wr_limit_usage past = {0, 0};
    weir_quota quota;

    if (limit->algorithm->release != NULL)
        return past;
    limit->algorithm->peek(limit, state, now, &quota);
    past.used = quota.limit - quota.remaining;
    /* the quota of a leaky bucket is always 1, so the backlog is computed from its reset time */
    if (limit->algorithm == &wr_leaky_bucket && limit->period_ns > 0)
        past.used = (uint32_t)((quota.reset_ns + limit->period_ns - 1) / limit->period_ns);
    if (limit->algorithm == &wr_fixed_window && past.used > 0 && quota.reset_ns < limit->period_ns)
        past.back_ns = limit->period_ns - quota.reset_ns;
    return past;
}

bool wr_entry_usage(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now,
                    struct wr_limit_usage *ret_pasts)
{
    const weir_stack *stack = wr_entry_stack(table, shard, entry);
    const char *state = wr_entry_state(entry);
    bool constrains = false;

    for (uint32_t i = 0; i < stack->count; i++) {
        ret_pasts[i] = usage_of_limit(&stack->limits[i], state + stack->offsets[i], now);
        constrains = constrains || ret_pasts[i].used > 0;
    }
    return constrains;
}

static void charge_usage(const weir_limit *limit, void *state, size_t state_bytes, const struct wr_limit_usage *past,
                         int64_t now)
{
    uint32_t used = past->used < limit->permits ? past->used : limit->permits;
    int64_t back_ns = past->back_ns < limit->period_ns ? past->back_ns : limit->period_ns;

    if (limit->algorithm->release != NULL)
        return;
    memset(state, 0, state_bytes);
    limit->algorithm->start(limit, state, now - back_ns);
    if (used > 0)
        (void)limit->algorithm->take(limit, state, now - back_ns, used);
}

/* Finds or creates the key's entry; the shard's lock is held. Returns WEIR_E_CLOSED, WEIR_E_FULL or
 * WEIR_E_NOMEM on failure. */
static int get_entry_or_full(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                             struct wr_entry **ret_entry)
{
    int error = shard->closed ? WEIR_E_CLOSED : wr_table_get_or_make(table, shard, query, ret_entry);

    if (error < 0)
        return error;
    return *ret_entry == NULL ? WEIR_E_FULL : 0;
}

bool wr_entry_used_since(const weir_table *table, const struct wr_entry *entry, int64_t since)
{
    return entry->used_at >= wr_table_tick(table, since > INT64_MIN + WEIR_SECOND ? since - WEIR_SECOND : since);
}

static int restore_entry_usage(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                               const struct wr_limit_usage *usages, uint32_t count, int64_t ago_ns,
                               enum wr_restore_mode how)
{
    struct wr_entry *entry;
    int error = get_entry_or_full(table, shard, query, &entry);

    if (error < 0)
        return error;
    const weir_stack *stack = wr_entry_stack(table, shard, entry);
    char *state = wr_entry_state(entry);
    if (stack->count != count)
        return wr_invalid("the key's number of rules differs from the stored one");
    if (how == WR_RESTORE_IF_MISSING && !wr_entry_is_idle(table, shard, entry, query->now))
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t end = i + 1 < count ? stack->offsets[i + 1] : stack->state_bytes;
        charge_usage(&stack->limits[i], state + stack->offsets[i], end - stack->offsets[i], &usages[i],
                     query->now - ago_ns);
    }
    return 0;
}

int wr_table_restore_usage(weir_table *table, struct wr_span key, const struct wr_limit_usage *usages, uint32_t count,
                           int64_t ago_ns, enum wr_restore_mode how)
{
    int error = wr_table_check_key(table, key.data, key.bytes);

    if (error < 0)
        return error;
    struct wr_key_query query = wr_table_query(table, key.data, key.bytes, 1, wr_clock_now(table->clock));
    struct wr_shard *shard = wr_table_shard(table, query.hash);
    wr_lock_take(&shard->lock);
    error = restore_entry_usage(table, shard, &query, usages, count, ago_ns, how);
    wr_lock_give(&shard->lock);
    return error;
}

/* Returns the mark for a receipt (mark.h). The state of a bucket is new and nothing was returned to
 * it, so the receipt can be returned in full, less what has refilled since. Other algorithms use
 * the time of the receipt. */
static uint32_t mark_of_bucket(const weir_limit *limit, const void *state)
{
    return limit->algorithm == &wr_token_bucket ? ((const struct wr_bucket *)state)->mark : 0;
}

static int restore_entry_permits(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                                 weir_receipt *receipt)
{
    struct wr_entry *entry;
    int error = get_entry_or_full(table, shard, query, &entry);

    if (error < 0)
        return error;
    const weir_stack *stack = wr_entry_stack(table, shard, entry);
    char *state = wr_entry_state(entry);
    for (uint32_t i = 0; i < stack->count; i++) {
        const weir_limit *limit = &stack->limits[i];
        if (limit->algorithm->release != NULL)
            (void)limit->algorithm->take(limit, state + stack->offsets[i], query->now, query->permits);
        receipt->marks[i] = mark_of_bucket(limit, state + stack->offsets[i]);
    }
    return 0;
}

int wr_table_restore_permits(weir_table *table, struct wr_span key, uint32_t permits, int64_t ago_ns,
                             weir_receipt *ret_receipt)
{
    int error = wr_table_check(table, key.data, key.bytes, permits);

    if (error < 0)
        return error;
    struct wr_key_query query = wr_table_query(table, key.data, key.bytes, permits, wr_clock_now(table->clock));
    struct wr_shard *shard = wr_table_shard(table, query.hash);
    wr_lock_take(&shard->lock);
    weir_receipt receipt = {.at = query.now - ago_ns, .permits = permits};
    error = restore_entry_permits(table, shard, &query, &receipt);
    wr_lock_give(&shard->lock);
    if (error == 0)
        *ret_receipt = receipt;
    return error;
}
