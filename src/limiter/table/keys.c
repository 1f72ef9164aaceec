/* SPDX-License-Identifier: MIT */
/* keys.c - removes keys, lists them, and reports statistics. */
#include "limiter/table/table.h"

#include "base/heap.h"
#include "core/limit/compare.h"

/* Removes an entry. Returns its queue, which must be passed to wr_key_queue_end without the lock
 * held. */
static struct wr_key_queue *remove_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry)
{
    struct wr_key_queue *line = wr_key_queue_detach(table, shard, entry);
    wr_table_forget(table, shard, entry);
    shard->keys_removed++;
    return line;
}

int weir_table_remove(weir_table *table, const char *key, size_t key_bytes)
{
    struct wr_visit visit;
    int bad = wr_table_visit(table, key, key_bytes, &visit);
    if (bad != 0)
        return bad;
    struct wr_key_queue *line = visit.entry != NULL ? remove_entry(table, visit.shard, visit.entry) : NULL;
    wr_lock_give(&visit.shard->lock);
    wr_key_queue_end(line);
    return visit.entry != NULL ? 0 : WEIR_E_ABSENT;
}

/* ---- by predicate ---- */

static weir_table_entry describe_key(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now)
{
    uint32_t tick = wr_table_tick(table, now);
    weir_table_entry row = {.key = wr_entry_key(entry, &table->layout),
                            .key_bytes = entry->key_bytes,
                            .plan = entry->plan,
                            .denied = entry->denied,
                            .constrains = !wr_entry_is_idle(table, shard, entry, now)};
    row.idle_ns = tick > entry->used_at ? (int64_t)(tick - entry->used_at) << WR_TICK_SHIFT : 0;
    weir_stack_peek(wr_entry_stack(table, shard, entry), wr_entry_state(entry), now, &row.quota);
    return row;
}

/* Removes wanted entries, from *slot on. Stops after one with waiters, because its queue must be
 * ended without the lock held. */
static void remove_some(weir_table *table, struct wr_shard *shard, size_t *slot, weir_table_wanted *wanted,
                        void *context, size_t *removed, struct wr_key_queue **ret_line)
{
    int64_t now = wr_clock_now(table->clock);
    struct wr_entry *entry;
    while (*ret_line == NULL && (entry = wr_shard_next(shard, &table->layout, slot)) != NULL) {
        weir_table_entry row = describe_key(table, shard, entry, now);
        if (!wanted(context, &row))
            continue;
        *ret_line = remove_entry(table, shard, entry);
        ++*removed;
    }
}

size_t weir_table_remove_where(weir_table *table, weir_table_wanted *wanted, void *context)
{
    size_t removed = 0;
    for (size_t i = 0; table != NULL && wanted != NULL && i < table->shard_count; i++) {
        struct wr_shard *shard = &table->shards[i];
        struct wr_key_queue *line;
        size_t slot = 0;
        do {
            line = NULL;
            wr_lock_take(&shard->lock);
            if (!shard->closed)
                remove_some(table, shard, &slot, wanted, context, &removed, &line);
            wr_lock_give(&shard->lock);
            wr_key_queue_end(line);
        } while (line != NULL);
    }
    return removed;
}

static bool is_key_expired(void *context, const weir_table_entry *entry)
{
    const weir_table *table = context;
    return !entry->constrains && entry->idle_ns >= table->ttl_ns;
}

size_t weir_table_sweep(weir_table *table)
{
    return table == NULL || table->ttl_ns == 0 ? 0 : weir_table_remove_where(table, is_key_expired, table);
}

/* ---- iteration ---- */

bool wr_table_walk(weir_table *table, struct wr_walk *walk, wr_table_each *each, void *context)
{
    bool paused = false;
    for (; walk->shard < table->shard_count && !paused; walk->shard += !paused) {
        struct wr_shard *shard = &table->shards[walk->shard];
        struct wr_entry *entry;
        wr_lock_take(&shard->lock);
        while (!paused && (entry = wr_shard_next(shard, &table->layout, &walk->slot)) != NULL)
            paused = !each(context, shard, entry);
        wr_lock_give(&shard->lock);
        walk->slot = paused ? walk->slot : 0;
    }
    return paused;
}

/* ---- top keys ---- */

struct ranked_key {
    struct wr_heap_item item;
    weir_table_entry entry;
    char key[WEIR_KEY_MAX];
};

/* A search for the `most` highest-ranked keys. The heap's minimum is the row to replace next. */
struct search {
    weir_table_order order;
    size_t most, count;
    struct ranked_key *rows;
    struct wr_heap heap;
};

/* The result is one block: its size, the entries, then their keys. */
struct top_table_keys {
    size_t bytes;
    weir_table_entry entries[];
};

/* Returns the rank of an entry in this order; higher ranks are listed first. */
static int64_t rank_of_key(weir_table_order order, const weir_table_entry *entry)
{
    switch (order) {
    case WEIR_TOP_DENIED:
        return entry->denied;
    case WEIR_TOP_USED:
        return -(int64_t)wr_quota_share(&entry->quota);
    case WEIR_TOP_RECENT:
        return -entry->idle_ns;
    }
    return 0;
}

static void consider(struct search *search, const weir_table_entry *entry)
{
    int64_t rank = rank_of_key(search->order, entry), weakest;
    struct ranked_key *row;
    if (search->count < search->most) {
        row = &search->rows[search->count++];
    } else {
        (void)wr_heap_peek(&search->heap, &weakest);
        if (rank <= weakest)
            return;
        row = (struct ranked_key *)wr_heap_pop(&search->heap);
    }
    row->entry = *entry;
    memcpy(row->key, entry->key, entry->key_bytes);
    /* cannot fail: room was reserved, or a row was popped */
    (void)wr_heap_push(&search->heap, rank, &row->item);
}

static void search_shard(weir_table *table, struct wr_shard *shard, struct search *search)
{
    size_t slot = 0;
    struct wr_entry *entry;
    wr_lock_take(&shard->lock);
    int64_t now = wr_clock_now(table->clock);
    while ((entry = wr_shard_next(shard, &table->layout, &slot)) != NULL) {
        weir_table_entry row = describe_key(table, shard, entry, now);
        consider(search, &row);
    }
    wr_lock_give(&shard->lock);
}

/* Empties the heap into the result, the lowest rank last. */
static struct top_table_keys *make_top_keys(weir_table *table, struct search *search)
{
    size_t bytes = sizeof(struct top_table_keys) + search->count * sizeof(weir_table_entry);
    for (size_t i = 0; i < search->count; i++)
        bytes += search->rows[i].entry.key_bytes;
    struct top_table_keys *answer = wr_alloc(table->allocator, bytes, _Alignof(struct top_table_keys));
    if (answer == NULL)
        return NULL;
    answer->bytes = bytes;
    char *keys = (char *)&answer->entries[search->count];
    for (size_t i = search->count; i-- > 0;) {
        struct ranked_key *row = (struct ranked_key *)wr_heap_pop(&search->heap);
        answer->entries[i] = row->entry;
        answer->entries[i].key = memcpy(keys, row->key, row->entry.key_bytes);
        keys += row->entry.key_bytes;
    }
    return answer;
}

int weir_table_top(weir_table *table, weir_table_order order, size_t most, weir_table_entry **ret_entries,
                   size_t *ret_count)
{
    if (wr_table_check_table(table) != 0)
        return WEIR_E_INVAL;
    if (ret_entries == NULL || ret_count == NULL)
        return wr_invalid("ret_entries and ret_count must not be NULL");
    if (most < 1 || most > WEIR_TOP_MAX)
        return wr_invalid("most must be 1 to WEIR_TOP_MAX (1000)");
    if ((unsigned)order > WEIR_TOP_RECENT)
        return wr_invalid("order must be WEIR_TOP_DENIED, WEIR_TOP_USED or WEIR_TOP_RECENT");
    struct search search = {.order = order, .most = most};
    search.rows = wr_alloc_array(table->allocator, most, sizeof *search.rows, _Alignof(struct ranked_key));
    wr_heap_init(&search.heap, table->allocator, most);
    struct top_table_keys *answer = NULL;
    if (search.rows != NULL && wr_heap_reserve(&search.heap, most) == 0) {
        for (size_t i = 0; i < table->shard_count; i++)
            search_shard(table, &table->shards[i], &search);
        answer = make_top_keys(table, &search);
    }
    wr_heap_release(&search.heap);
    wr_free(table->allocator, search.rows, most * sizeof *search.rows, _Alignof(struct ranked_key));
    if (answer == NULL)
        return WEIR_E_NOMEM;
    *ret_entries = answer->entries;
    *ret_count = search.count;
    return 0;
}

void weir_table_top_free(weir_table *table, weir_table_entry *entries)
{
    if (table == NULL || entries == NULL)
        return;
    struct top_table_keys *answer =
        (struct top_table_keys *)(void *)((char *)entries - offsetof(struct top_table_keys, entries));
    wr_free(table->allocator, answer, answer->bytes, _Alignof(struct top_table_keys));
}

/* ---- statistics ---- */

int weir_table_stats_get(weir_table *table, weir_table_stats *ret_stats)
{
    if (wr_table_check_table(table) != 0)
        return WEIR_E_INVAL;
    if (ret_stats == NULL)
        return wr_invalid("ret_stats is NULL; it must point to where the numbers go");
    weir_table_stats sum = {.max_keys = atomic_load(&table->max_keys),
                            .shards = table->shard_count,
                            .keys = atomic_load(&table->keys),
                            .memory_bytes = sizeof *table + table->shard_count * sizeof *table->shards +
                                            table->state_bytes + atomic_load(&table->blocks.bytes)};
    for (size_t i = 0; i < table->shard_count; i++) {
        struct wr_shard *shard = &table->shards[i];
        wr_lock_take(&shard->lock);
        sum.acquired += shard->acquired;
        sum.rejected += shard->rejected;
        sum.created += shard->keys_created;
        sum.removed += shard->keys_removed;
        sum.evicted += shard->keys_evicted;
        sum.overflowed += shard->overflowed;
        sum.waiters += wr_shard_waiters(shard);
        sum.memory_bytes += shard->long_key_bytes;
        wr_lock_give(&shard->lock);
    }
    *ret_stats = sum;
    return 0;
}
