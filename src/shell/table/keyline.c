/* SPDX-License-Identifier: MIT */
/* keyline.c - standing in line for a key.
 *
 * Few keys are waited for at a time, so their lines hang in a list at the shard, made when the first caller waits and
 * gone when the last one has left. The entry is marked meanwhile, and is not forgotten.
 */
#include "shell/table/table.h"

struct wr_key_line {
    struct wr_line line;
    struct wr_shard *shard;
    struct wr_key_line *next;
    bool detached; /* its key was removed: whoever is left must go */
    bool changed;  /* the rules were: the first one should look again */
    uint64_t hash;
    size_t key_bytes;
    char key[];
};

static struct wr_key_line *key_line_of(struct wr_line *line)
{
    return (struct wr_key_line *)line; /* the line is its first member */
}

static struct wr_entry *entry_of(const weir_table *table, const struct wr_key_line *of)
{
    return wr_shard_find(of->shard, &table->layout, of->hash, of->key, of->key_bytes);
}

static bool enter(struct wr_line *line, struct wr_spot *ret_spot)
{
    weir_table *table = line->owner;
    struct wr_key_line *of = key_line_of(line);
    wr_lock_take(&of->shard->lock);
    if (of->shard->closed || of->detached)
        return false;
    *ret_spot = wr_entry_spot(table, of->shard, entry_of(table, of));
    return true;
}

/* Frees a line that nobody stands in; with the lock held. */
static void end_if_empty(weir_table *table, struct wr_key_line *of)
{
    if (of->line.depth != 0)
        return;
    if (!of->detached) {
        struct wr_key_line **link = &of->shard->lines;
        while (*link != of)
            link = &(*link)->next;
        *link = of->next;
        entry_of(table, of)->flags &= (uint8_t)~WR_WAITED_FOR;
    }
    wr_give(table->allocator, of, sizeof *of + of->key_bytes, _Alignof(struct wr_key_line));
}

static void leave(struct wr_line *line)
{
    struct wr_shard *shard = key_line_of(line)->shard;
    end_if_empty(line->owner, key_line_of(line));
    wr_lock_give(&shard->lock);
}

static const struct wr_line_ops line_ops = {enter, leave, wr_table_drop};

static struct wr_key_line *line_for(const weir_table *table, const struct wr_shard *shard, const struct wr_entry *entry)
{
    const char *key = wr_entry_key(entry, &table->layout);
    struct wr_key_line *of = shard->lines;
    while (of != NULL && !((uint32_t)of->hash == entry->hash && of->key_bytes == entry->key_bytes &&
                           wr_same_key(of->key, key, of->key_bytes)))
        of = of->next;
    return of;
}

struct wr_line *wr_key_line(const weir_table *table, const struct wr_shard *shard, const struct wr_entry *entry)
{
    return &line_for(table, shard, entry)->line;
}

static struct wr_key_line *make_line(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                     const struct wr_query *query)
{
    struct wr_key_line *of = wr_take(table->allocator, sizeof *of + query->key_bytes, _Alignof(struct wr_key_line));
    if (of == NULL)
        return NULL;
    of->line = (struct wr_line){.ops = &line_ops, .owner = table, .clock = table->clock};
    of->shard = shard;
    of->hash = query->hash;
    of->key_bytes = query->key_bytes;
    memcpy(of->key, query->key, query->key_bytes);
    of->next = shard->lines;
    shard->lines = of;
    entry->flags |= WR_WAITED_FOR;
    return of;
}

/* ---- joining ---- */

struct joining {
    weir_table *table;
    struct wr_query query;
};

/* A key that finds no place in a full table cannot be waited for: WEIR_E_FULL. */
static int join_shard(weir_table *table, struct wr_shard *shard, const struct wr_query *query,
                      struct weir_ticket *ticket)
{
    struct wr_entry *entry;
    int bad = shard->closed ? WEIR_E_CLOSED : wr_table_get(table, shard, query, &entry);
    if (bad != 0)
        return bad;
    if (entry == NULL)
        return WEIR_E_FULL;
    struct wr_key_line *of =
        (entry->flags & WR_WAITED_FOR) != 0 ? line_for(table, shard, entry) : make_line(table, shard, entry, query);
    if (of == NULL)
        return WEIR_E_NOMEM;
    struct wr_spot spot = wr_entry_spot(table, shard, entry);
    bad = wr_line_join(&of->line, &spot, ticket);
    end_if_empty(table, of);
    return bad;
}

static int join(void *context, struct weir_ticket *ticket)
{
    struct joining *joining = context;
    struct wr_shard *shard = wr_table_shard(joining->table, joining->query.hash);
    wr_lock_take(&shard->lock);
    int bad = join_shard(joining->table, shard, &joining->query, ticket);
    if (bad == 0)
        atomic_fetch_add_explicit(&joining->table->holds, 1, memory_order_relaxed);
    wr_lock_give(&shard->lock);
    return bad;
}

static int check_wait(const weir_table *table, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns)
{
    if (timeout_ns < 0)
        return wr_invalid("timeout_ns is negative; it must be 0 or more, or WEIR_FOREVER");
    return wr_table_check(table, key, key_bytes, permits);
}

int weir_table_acquire(weir_table *table, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                       weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    int result = check_wait(table, key, key_bytes, permits, timeout_ns);
    if (result != 0)
        return result;
    if (wr_cancel_fired(cancel))
        return WEIR_E_CANCELLED;
    struct joining joining = {table, wr_table_query(table, key, key_bytes, permits, wr_clock_now(table->clock))};
    struct wr_shard *shard = wr_table_shard(table, joining.query.hash);
    weir_receipt receipt;
    weir_decision decision = {WEIR_WAIT, WEIR_REASON_NONE, 0};
    wr_lock_take(&shard->lock);
    result = wr_table_acquire_now(table, shard, &joining.query, &receipt, &decision);
    wr_lock_give(&shard->lock);
    if (result == WR_WAITING)
        result = wr_wait(table->clock, permits, timeout_ns, cancel, join, &joining, &receipt, &decision);
    if (ret_receipt != NULL && result == 0)
        *ret_receipt = receipt;
    if (ret_decision != NULL)
        *ret_decision = decision;
    return result;
}

int weir_table_enqueue(weir_table *table, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                       weir_wake *wake, void *context, weir_ticket **ret_ticket)
{
    int bad = check_wait(table, key, key_bytes, permits, timeout_ns);
    if (bad != 0)
        return bad;
    if (wake == NULL || ret_ticket == NULL)
        return wr_invalid("wake and ret_ticket must not be NULL");
    struct joining joining = {table, wr_table_query(table, key, key_bytes, permits, wr_clock_now(table->clock))};
    return wr_ticket_new(table->allocator, table->clock, permits, timeout_ns, wake, context, join, &joining,
                         ret_ticket);
}

/* ---- ending ---- */

struct wr_key_line *wr_key_line_detach(weir_table *table, struct wr_shard *shard, struct wr_entry *entry)
{
    struct wr_key_line *of = line_for(table, shard, entry);
    struct wr_key_line **link = &shard->lines;
    while (*link != of)
        link = &(*link)->next;
    *link = of->next;
    of->detached = true;
    of->line.depth++; /* ours: keeps the line until all were told */
    entry->flags &= (uint8_t)~WR_WAITED_FOR;
    return of;
}

void wr_key_line_end(struct wr_key_line *of)
{
    weir_table *table = of->line.owner;
    struct wr_shard *shard = of->shard;
    struct weir_ticket *ticket;
    do {
        wr_lock_take(&shard->lock);
        ticket = wr_line_untold(&of->line);
        wr_lock_give(&shard->lock);
        wr_ticket_wake(ticket);
    } while (ticket != NULL);
    wr_lock_take(&shard->lock);
    of->line.depth--;
    end_if_empty(table, of);
    wr_lock_give(&shard->lock);
}

struct weir_ticket *wr_shard_untold(struct wr_shard *shard)
{
    struct weir_ticket *ticket = NULL;
    for (struct wr_key_line *of = shard->lines; of != NULL && ticket == NULL; of = of->next)
        ticket = wr_line_untold(&of->line);
    return ticket;
}

void wr_shard_mark_changed(struct wr_shard *shard)
{
    for (struct wr_key_line *of = shard->lines; of != NULL; of = of->next)
        of->changed = true;
}

struct weir_ticket *wr_shard_changed(struct wr_shard *shard, int64_t now)
{
    struct weir_ticket *first = NULL;
    for (struct wr_key_line *of = shard->lines; of != NULL && first == NULL; of = of->next) {
        if (of->changed)
            first = wr_line_first(&of->line, now);
        of->changed = false;
    }
    return first;
}

size_t wr_shard_waiters(const struct wr_shard *shard)
{
    size_t waiters = 0;
    for (const struct wr_key_line *of = shard->lines; of != NULL; of = of->next)
        waiters += of->line.depth;
    return waiters;
}
