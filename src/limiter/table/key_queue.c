/* SPDX-License-Identifier: MIT */
/* key_queue.c - queues of callers that wait for a key.
 *
 * Callers wait for few keys at a time. Each such key has a queue, in a list of its shard, from its
 * first waiter until the last has left. Meanwhile the key's entry is marked and cannot be removed
 * as idle. */
#include "limiter/table/table.h"

struct wr_key_queue {
    struct wr_queue line;
    struct wr_shard *shard;
    struct wr_key_queue *next;
    bool detached; /* the key was removed: the remaining waiters must fail */
    bool changed;  /* the rules were changed: the first waiter must be woken */
    uint64_t hash;
    size_t key_bytes;
    char key[];
};

static struct wr_key_queue *key_queue_of(struct wr_queue *line)
{
    return (struct wr_key_queue *)line; /* `line` is the first member */
}

static struct wr_entry *entry_of(const weir_table *table, const struct wr_key_queue *queue)
{
    return wr_shard_find(queue->shard, &table->layout, queue->hash, queue->key, queue->key_bytes);
}

static bool enter_key_queue(struct wr_queue *line, struct wr_limit_state *ret_spot)
{
    weir_table *table = line->owner;
    struct wr_key_queue *queue = key_queue_of(line);
    wr_lock_take(&queue->shard->lock);
    if (queue->shard->closed || queue->detached)
        return false;
    struct wr_entry *entry = entry_of(table, queue);
    wr_entry_use(entry, wr_table_tick(table, wr_clock_now(table->clock)));
    *ret_spot = wr_entry_limit_state(table, queue->shard, entry);
    return true;
}

/* Removes a queue from its shard's list and clears the mark of its entry. The lock is held. */
static void unlink_key_queue(weir_table *table, const struct wr_key_queue *queue)
{
    struct wr_key_queue **link = &queue->shard->lines;
    while (*link != queue)
        link = &(*link)->next;
    *link = queue->next;
    entry_of(table, queue)->flags &= (uint8_t)~WR_ENTRY_WAITED_FOR;
}

/* Frees a queue without members. The lock is held. */
static void free_key_queue_if_empty(weir_table *table, struct wr_key_queue *queue)
{
    if (queue->line.members != 0)
        return;
    if (!queue->detached)
        unlink_key_queue(table, queue);
    wr_free(table->allocator, queue, sizeof *queue + queue->key_bytes, _Alignof(struct wr_key_queue));
}

static void leave_key_queue(struct wr_queue *line)
{
    struct wr_shard *shard = key_queue_of(line)->shard;
    free_key_queue_if_empty(line->owner, key_queue_of(line));
    wr_lock_give(&shard->lock);
}

static const struct wr_queue_ops line_ops = {enter_key_queue, leave_key_queue, wr_table_unref};

/* Returns the queue of an entry; NULL if `entry` is NULL or has no waiters. */
static struct wr_key_queue *find_key_queue(const weir_table *table, const struct wr_shard *shard,
                                           const struct wr_entry *entry)
{
    if (entry == NULL || (entry->flags & WR_ENTRY_WAITED_FOR) == 0)
        return NULL;
    const char *key = wr_entry_key(entry, &table->layout);
    struct wr_key_queue *queue = shard->lines;
    while (queue != NULL && !((uint32_t)queue->hash == entry->hash && queue->key_bytes == entry->key_bytes &&
                              wr_same_key(queue->key, key, queue->key_bytes)))
        queue = queue->next;
    return queue;
}

struct wr_queue *wr_key_queue(const weir_table *table, const struct wr_shard *shard, const struct wr_entry *entry)
{
    struct wr_key_queue *queue = find_key_queue(table, shard, entry);
    return queue != NULL ? &queue->line : NULL;
}

static struct wr_key_queue *make_key_queue(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                           const struct wr_key_query *query)
{
    struct wr_key_queue *queue =
        wr_alloc(table->allocator, sizeof *queue + query->key_bytes, _Alignof(struct wr_key_queue));
    if (queue == NULL)
        return NULL;
    queue->line = (struct wr_queue){.ops = &line_ops, .owner = table, .clock = table->clock};
    queue->shard = shard;
    queue->hash = query->hash;
    queue->key_bytes = query->key_bytes;
    memcpy(queue->key, query->key, query->key_bytes);
    queue->next = shard->lines;
    shard->lines = queue;
    entry->flags |= WR_ENTRY_WAITED_FOR;
    return queue;
}

/* ---- joining a queue ---- */

/* Adds a ticket to the queue of a key. Returns WEIR_E_FULL if the table is full and has no room for
 * the key, so it cannot have a queue. */
static int join_shard(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                      struct weir_ticket *ticket, const struct wr_join_observer *witness)
{
    struct wr_entry *entry;
    int bad = shard->closed ? WEIR_E_CLOSED : wr_table_get_or_make(table, shard, query, &entry);
    if (bad != 0)
        return bad;
    if (entry == NULL) {
        wr_table_refuse_entry(shard, NULL, query->permits);
        return WEIR_E_FULL;
    }
    struct wr_key_queue *queue = find_key_queue(table, shard, entry);
    if (queue == NULL)
        queue = make_key_queue(table, shard, entry, query);
    if (queue == NULL)
        return WEIR_E_NOMEM;
    if (witness != NULL)
        witness->see(witness->context, entry);
    struct wr_limit_state spot = wr_entry_limit_state(table, shard, entry);
    bad = wr_queue_join(&queue->line, &spot, ticket, query->now);
    free_key_queue_if_empty(table, queue);
    return bad;
}

int wr_table_join(weir_table *table, const struct wr_key_query *query, struct weir_ticket *ticket,
                  const struct wr_join_observer *witness)
{
    struct wr_shard *shard = wr_table_shard(table, query->hash);
    ticket->waits_always = query->waits_always;
    wr_lock_take(&shard->lock);
    int bad = join_shard(table, shard, query, ticket, witness);
    if (ticket->line != NULL)
        atomic_fetch_add_explicit(&table->holds, 1, memory_order_relaxed);
    wr_lock_give(&shard->lock);
    return bad;
}

struct joining {
    weir_table *table;
    struct wr_key_query query;
    const struct wr_join_observer *witness;
};

static int join_key_queue(void *context, struct weir_ticket *ticket)
{
    struct joining *joining = context;
    return wr_table_join(joining->table, &joining->query, ticket, joining->witness);
}

int wr_table_wait(weir_table *table, const struct wr_key_query *query, int64_t timeout_ns, weir_cancel *cancel,
                  const struct wr_join_observer *witness, weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    struct joining joining = {table, *query, witness};
    return wr_ticket_wait(table->clock, query->permits, timeout_ns, cancel, join_key_queue, &joining, ret_receipt,
                          ret_decision);
}

static int check_table_wait(const weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                            int64_t timeout_ns)
{
    int bad = wr_timeout_check(timeout_ns);
    return bad != 0 ? bad : wr_table_check(table, key, key_bytes, permits);
}

int weir_table_acquire(weir_table *table, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                       weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    int result = check_table_wait(table, key, key_bytes, permits, timeout_ns);
    if (result != 0)
        return result;
    struct wr_key_query query = wr_table_query(table, key, key_bytes, permits, wr_clock_now(table->clock));
    struct wr_shard *shard = wr_table_shard(table, query.hash);
    weir_receipt receipt;
    weir_decision decision = {WEIR_WAIT, WEIR_REASON_NONE, 0};
    wr_lock_take(&shard->lock);
    result = wr_table_acquire_now(table, shard, &query, cancel, &receipt, &decision);
    wr_lock_give(&shard->lock);
    if (result == WR_WAITING)
        result = wr_table_wait(table, &query, timeout_ns, cancel, NULL, &receipt, &decision);
    return wr_ticket_wait_finish(result, &receipt, decision, ret_receipt, ret_decision);
}

int weir_table_enqueue(weir_table *table, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                       weir_wake *wake, void *context, weir_ticket **ret_ticket)
{
    int bad = check_table_wait(table, key, key_bytes, permits, timeout_ns);
    if (bad != 0)
        return bad;
    if (wake == NULL || ret_ticket == NULL)
        return wr_invalid("wake and ret_ticket must not be NULL");
    struct joining joining = {table, wr_table_query(table, key, key_bytes, permits, wr_clock_now(table->clock)), NULL};
    return wr_ticket_new(table->allocator, table->clock, permits, timeout_ns, wake, context, join_key_queue, &joining,
                         ret_ticket);
}

/* ---- ending a queue ---- */

struct wr_key_queue *wr_key_queue_detach(weir_table *table, struct wr_shard *shard, struct wr_entry *entry)
{
    struct wr_key_queue *queue = find_key_queue(table, shard, entry);
    if (queue == NULL)
        return NULL;
    unlink_key_queue(table, queue);
    queue->detached = true;
    queue->line.members++; /* keeps the queue until all waiters have been woken */
    return queue;
}

void wr_key_queue_end(struct wr_key_queue *queue)
{
    if (queue == NULL)
        return;
    weir_table *table = queue->line.owner;
    struct wr_shard *shard = queue->shard;
    struct weir_ticket *ticket;
    do {
        wr_lock_take(&shard->lock);
        ticket = wr_queue_next_unnotified(&queue->line);
        wr_lock_give(&shard->lock);
        wr_ticket_wake(ticket);
    } while (ticket != NULL);
    wr_lock_take(&shard->lock);
    queue->line.members--;
    free_key_queue_if_empty(table, queue);
    wr_lock_give(&shard->lock);
}

struct weir_ticket *wr_shard_next_unnotified(struct wr_shard *shard)
{
    struct weir_ticket *ticket = NULL;
    for (struct wr_key_queue *queue = shard->lines; queue != NULL && ticket == NULL; queue = queue->next)
        ticket = wr_queue_next_unnotified(&queue->line);
    return ticket;
}

void wr_shard_mark_changed(struct wr_shard *shard)
{
    for (struct wr_key_queue *queue = shard->lines; queue != NULL; queue = queue->next)
        queue->changed = true;
}

struct weir_ticket *wr_shard_next_changed(struct wr_shard *shard, int64_t now)
{
    struct weir_ticket *first = NULL;
    for (struct wr_key_queue *queue = shard->lines; queue != NULL && first == NULL; queue = queue->next) {
        if (queue->changed)
            first = wr_queue_first(&queue->line, now);
        queue->changed = false;
    }
    return first;
}

size_t wr_shard_waiters(const struct wr_shard *shard)
{
    size_t waiters = 0;
    for (const struct wr_key_queue *queue = shard->lines; queue != NULL; queue = queue->next)
        waiters += queue->line.depth;
    return waiters;
}
