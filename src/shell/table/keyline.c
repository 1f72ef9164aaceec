/* SPDX-License-Identifier: MIT */
/* keyline.c - queues of callers that wait for a key.
 *
 * Callers wait for few keys at a time. Each such key has a queue, in a list of its shard, from its
 * first waiter until the last has left. Meanwhile the key's entry is marked and cannot be removed
 * as idle. */
#include "shell/table/table.h"

struct wr_key_line {
    struct wr_line line;
    struct wr_shard *shard;
    struct wr_key_line *next;
    bool detached; /* the key was removed: the remaining waiters must fail */
    bool changed;  /* the rules were changed: the first waiter must be woken */
    uint64_t hash;
    size_t key_bytes;
    char key[];
};

static struct wr_key_line *key_line_of(struct wr_line *line)
{
    return (struct wr_key_line *)line; /* `line` is the first member */
}

static struct wr_entry *entry_of(const weir_table *table, const struct wr_key_line *queue)
{
    return wr_shard_find(queue->shard, &table->layout, queue->hash, queue->key, queue->key_bytes);
}

static bool enter(struct wr_line *line, struct wr_spot *ret_spot)
{
    weir_table *table = line->owner;
    struct wr_key_line *queue = key_line_of(line);
    wr_lock_take(&queue->shard->lock);
    if (queue->shard->closed || queue->detached)
        return false;
    struct wr_entry *entry = entry_of(table, queue);
    wr_entry_use(entry, wr_table_tick(table, wr_clock_now(table->clock)));
    *ret_spot = wr_entry_spot(table, queue->shard, entry);
    return true;
}

/* Removes a queue from its shard's list and clears the mark of its entry. The lock is held. */
static void unlink_line(weir_table *table, const struct wr_key_line *queue)
{
    struct wr_key_line **link = &queue->shard->lines;
    while (*link != queue)
        link = &(*link)->next;
    *link = queue->next;
    entry_of(table, queue)->flags &= (uint8_t)~WR_WAITED_FOR;
}

/* Frees a queue without members. The lock is held. */
static void end_if_empty(weir_table *table, struct wr_key_line *queue)
{
    if (queue->line.members != 0)
        return;
    if (!queue->detached)
        unlink_line(table, queue);
    wr_give(table->allocator, queue, sizeof *queue + queue->key_bytes, _Alignof(struct wr_key_line));
}

static void leave(struct wr_line *line)
{
    struct wr_shard *shard = key_line_of(line)->shard;
    end_if_empty(line->owner, key_line_of(line));
    wr_lock_give(&shard->lock);
}

static const struct wr_line_ops line_ops = {enter, leave, wr_table_drop};

/* Returns the queue of an entry; NULL if `entry` is NULL or has no waiters. */
static struct wr_key_line *line_for(const weir_table *table, const struct wr_shard *shard, const struct wr_entry *entry)
{
    if (entry == NULL || (entry->flags & WR_WAITED_FOR) == 0)
        return NULL;
    const char *key = wr_entry_key(entry, &table->layout);
    struct wr_key_line *queue = shard->lines;
    while (queue != NULL && !((uint32_t)queue->hash == entry->hash && queue->key_bytes == entry->key_bytes &&
                              wr_same_key(queue->key, key, queue->key_bytes)))
        queue = queue->next;
    return queue;
}

struct wr_line *wr_key_line(const weir_table *table, const struct wr_shard *shard, const struct wr_entry *entry)
{
    struct wr_key_line *queue = line_for(table, shard, entry);
    return queue != NULL ? &queue->line : NULL;
}

static struct wr_key_line *make_line(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                     const struct wr_query *query)
{
    struct wr_key_line *queue =
        wr_take(table->allocator, sizeof *queue + query->key_bytes, _Alignof(struct wr_key_line));
    if (queue == NULL)
        return NULL;
    queue->line = (struct wr_line){.ops = &line_ops, .owner = table, .clock = table->clock};
    queue->shard = shard;
    queue->hash = query->hash;
    queue->key_bytes = query->key_bytes;
    memcpy(queue->key, query->key, query->key_bytes);
    queue->next = shard->lines;
    shard->lines = queue;
    entry->flags |= WR_WAITED_FOR;
    return queue;
}

/* ---- joining a queue ---- */

/* Adds a ticket to the queue of a key. Returns WEIR_E_FULL if the table is full and has no room for
 * the key, so it cannot have a queue. */
static int join_shard(weir_table *table, struct wr_shard *shard, const struct wr_query *query,
                      struct weir_ticket *ticket, const struct wr_witness *witness)
{
    struct wr_entry *entry;
    int bad = shard->closed ? WEIR_E_CLOSED : wr_table_get(table, shard, query, &entry);
    if (bad != 0)
        return bad;
    if (entry == NULL) {
        wr_table_refuse_entry(shard, NULL, query->permits);
        return WEIR_E_FULL;
    }
    struct wr_key_line *queue = line_for(table, shard, entry);
    if (queue == NULL)
        queue = make_line(table, shard, entry, query);
    if (queue == NULL)
        return WEIR_E_NOMEM;
    if (witness != NULL)
        witness->see(witness->context, entry);
    struct wr_spot spot = wr_entry_spot(table, shard, entry);
    bad = wr_line_join(&queue->line, &spot, ticket, query->now);
    end_if_empty(table, queue);
    return bad;
}

int wr_table_join(weir_table *table, const struct wr_query *query, struct weir_ticket *ticket,
                  const struct wr_witness *witness)
{
    struct wr_shard *shard = wr_table_shard(table, query->hash);
    ticket->insists = query->insists;
    wr_lock_take(&shard->lock);
    int bad = join_shard(table, shard, query, ticket, witness);
    if (ticket->line != NULL)
        atomic_fetch_add_explicit(&table->holds, 1, memory_order_relaxed);
    wr_lock_give(&shard->lock);
    return bad;
}

struct joining {
    weir_table *table;
    struct wr_query query;
    const struct wr_witness *witness;
};

static int join(void *context, struct weir_ticket *ticket)
{
    struct joining *joining = context;
    return wr_table_join(joining->table, &joining->query, ticket, joining->witness);
}

int wr_table_wait(weir_table *table, const struct wr_query *query, int64_t timeout_ns, weir_cancel *cancel,
                  const struct wr_witness *witness, weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    struct joining joining = {table, *query, witness};
    return wr_wait(table->clock, query->permits, timeout_ns, cancel, join, &joining, ret_receipt, ret_decision);
}

static int check_wait(const weir_table *table, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns)
{
    int bad = wr_timeout_check(timeout_ns);
    return bad != 0 ? bad : wr_table_check(table, key, key_bytes, permits);
}

int weir_table_acquire(weir_table *table, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                       weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    int result = check_wait(table, key, key_bytes, permits, timeout_ns);
    if (result != 0)
        return result;
    struct wr_query query = wr_table_query(table, key, key_bytes, permits, wr_clock_now(table->clock));
    struct wr_shard *shard = wr_table_shard(table, query.hash);
    weir_receipt receipt;
    weir_decision decision = {WEIR_WAIT, WEIR_REASON_NONE, 0};
    wr_lock_take(&shard->lock);
    result = wr_table_acquire_now(table, shard, &query, cancel, &receipt, &decision);
    wr_lock_give(&shard->lock);
    if (result == WR_WAITING)
        result = wr_table_wait(table, &query, timeout_ns, cancel, NULL, &receipt, &decision);
    return wr_wait_tell(result, &receipt, decision, ret_receipt, ret_decision);
}

int weir_table_enqueue(weir_table *table, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                       weir_wake *wake, void *context, weir_ticket **ret_ticket)
{
    int bad = check_wait(table, key, key_bytes, permits, timeout_ns);
    if (bad != 0)
        return bad;
    if (wake == NULL || ret_ticket == NULL)
        return wr_invalid("wake and ret_ticket must not be NULL");
    struct joining joining = {table, wr_table_query(table, key, key_bytes, permits, wr_clock_now(table->clock)), NULL};
    return wr_ticket_new(table->allocator, table->clock, permits, timeout_ns, wake, context, join, &joining,
                         ret_ticket);
}

/* ---- ending a queue ---- */

struct wr_key_line *wr_key_line_detach(weir_table *table, struct wr_shard *shard, struct wr_entry *entry)
{
    struct wr_key_line *queue = line_for(table, shard, entry);
    if (queue == NULL)
        return NULL;
    unlink_line(table, queue);
    queue->detached = true;
    queue->line.members++; /* keeps the queue until all waiters have been woken */
    return queue;
}

void wr_key_line_end(struct wr_key_line *queue)
{
    if (queue == NULL)
        return;
    weir_table *table = queue->line.owner;
    struct wr_shard *shard = queue->shard;
    struct weir_ticket *ticket;
    do {
        wr_lock_take(&shard->lock);
        ticket = wr_line_untold(&queue->line);
        wr_lock_give(&shard->lock);
        wr_ticket_wake(ticket);
    } while (ticket != NULL);
    wr_lock_take(&shard->lock);
    queue->line.members--;
    end_if_empty(table, queue);
    wr_lock_give(&shard->lock);
}

struct weir_ticket *wr_shard_untold(struct wr_shard *shard)
{
    struct weir_ticket *ticket = NULL;
    for (struct wr_key_line *queue = shard->lines; queue != NULL && ticket == NULL; queue = queue->next)
        ticket = wr_line_untold(&queue->line);
    return ticket;
}

void wr_shard_mark_changed(struct wr_shard *shard)
{
    for (struct wr_key_line *queue = shard->lines; queue != NULL; queue = queue->next)
        queue->changed = true;
}

struct weir_ticket *wr_shard_changed(struct wr_shard *shard, int64_t now)
{
    struct weir_ticket *first = NULL;
    for (struct wr_key_line *queue = shard->lines; queue != NULL && first == NULL; queue = queue->next) {
        if (queue->changed)
            first = wr_line_first(&queue->line, now);
        queue->changed = false;
    }
    return first;
}

size_t wr_shard_waiters(const struct wr_shard *shard)
{
    size_t waiters = 0;
    for (const struct wr_key_line *queue = shard->lines; queue != NULL; queue = queue->next)
        waiters += queue->line.depth;
    return waiters;
}
