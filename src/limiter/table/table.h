/* SPDX-License-Identifier: MIT */
/* table.h - internal declarations shared by the files of the table.
 *
 *     table.c   creates, changes, closes         keys.c       removes and lists keys
 *     decide.c  one key: find or create, decide  key_queue.c  queues of waiters for a key
 *     batch.c   several keys at once             shard.c      keys of one shard
 *     blocks.c  memory of shards
 *
 * Locks: a shard's lock guards its keys, queues and counters. The overflow lock may be taken while
 * a shard's lock is held. Several shards are locked only in the order of their addresses (batch.c).
 * `changing` is taken before any of them.
 */
#ifndef WR_LIMITER_TABLE_TABLE_H
#define WR_LIMITER_TABLE_TABLE_H

#include "base/error.h"
#include "base/hash.h"
#include "core/limit/bucket.h"
#include "limiter/clock/clock.h"
#include "limiter/table/shard.h"

#include <weir/table.h>

#define WR_TICK_SHIFT 26 /* a tick of used_at is 2^26 ns (67 ms); 32 bits last 9 years */

/* The overflow limiter: shared by new keys while no key can be evicted. */
struct wr_overflow {
    struct wr_lock lock;
    bool plan_set;
    /* permits in flight cannot be shared: a release could not be assigned to its key */
    bool refuses;
    void *state; /* state of the limiter, by plan 0 */
};

struct wr_janitor {
    bool running;
    pthread_t thread;
    struct wr_parker parker;
    atomic_bool stop;
};

struct weir_table {
    const weir_clock *clock;
    struct wr_shard *shards;
    size_t shard_count;
    unsigned shard_bits;
    struct wr_layout layout;
    struct wr_hash_key hash_key;
    atomic_size_t max_keys;
    int64_t made_at;
    atomic_size_t keys;
    uint32_t state_bytes; /* size of the state in an entry */
    /* Two sets of plans. A change fills the inactive one and switches one shard after another to
     * it. */
    weir_stack plans[2][WEIR_PLANS_MAX];
    /* the only rule of plan 0 if that is a token bucket, for a fast path; else NULL */
    const weir_limit *lone_bucket[2];
    atomic_uint plan_count;
    weir_plan_of *plan_of;
    void *plan_context;
    struct wr_overflow overflow;
    pthread_mutex_t changing;
    bool plan_set; /* index of the active set; guarded by `changing` */
    const weir_allocator *allocator;
    struct wr_blocks blocks;
    atomic_uint holds; /* references: the owner's, and one per ticket in a queue */
    _Atomic int64_t ttl_ns;
    int64_t sweep_every_ns;
    struct wr_janitor janitor;
};

/* Sets the limit of keys (1 ... WEIR_KEYS_MAX) and the time after which idle ones are removed (0:
 * never, to WEIR_DURATION_MAX). Existing keys beyond the limit stay; new keys then replace idle
 * ones. */
void wr_table_set_bounds(weir_table *table, size_t max_keys, int64_t ttl_ns);

/* A request for permits of one key. */
struct wr_key_query {
    const char *key;
    size_t key_bytes;
    uint64_t hash;
    int64_t now;
    uint32_t permits;
    bool waits_always; /* value for weir_ticket.waits_always */
};

#define WR_IN_OVERFLOW 1 /* weir_receipt.place: granted by the overflow limiter */

/* Check the arguments: that there is a table, that the key is valid, and that permits is not 0.
 * Return WEIR_E_INVAL otherwise. */
int wr_table_check_table(const weir_table *table);
int wr_table_check_key(const weir_table *table, const char *key, size_t key_bytes);
int wr_table_check(const weir_table *table, const char *key, size_t key_bytes, uint32_t permits);

static inline struct wr_key_query wr_table_query(const weir_table *table, const char *key, size_t key_bytes,
                                                 uint32_t permits, int64_t now)
{
    return (struct wr_key_query){key, key_bytes, wr_hash(&table->hash_key, key, key_bytes), now, permits, false};
}

static inline struct wr_shard *wr_table_shard(const weir_table *table, uint64_t hash)
{
    return &table->shards[(hash >> 1) >> (63 - table->shard_bits)];
}

static inline uint32_t wr_table_tick(const weir_table *table, int64_t now)
{
    return now <= table->made_at ? 0 : (uint32_t)((uint64_t)(now - table->made_at) >> WR_TICK_SHIFT);
}

static inline const weir_stack *wr_entry_stack(const weir_table *table, const struct wr_shard *shard,
                                               const struct wr_entry *entry)
{
    return &table->plans[shard->plan_set][entry->plan];
}

static inline struct wr_limit_state wr_entry_limit_state(weir_table *table, struct wr_shard *shard,
                                                         struct wr_entry *entry)
{
    return (struct wr_limit_state){wr_entry_stack(table, shard, entry), wr_entry_state(entry), &shard->acquired,
                                   &shard->rejected, &entry->denied};
}

static inline struct wr_entry *wr_table_find(const weir_table *table, const struct wr_shard *shard,
                                             const struct wr_key_query *query)
{
    return wr_shard_find(shard, &table->layout, query->hash, query->key, query->key_bytes);
}

/* ---- the shard's lock is held ---- */

/* Finds or creates the key's entry. *ret_entry is NULL if the overflow limiter must decide. Returns
 * WEIR_E_NOMEM on failure. */
int wr_table_get_or_make(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                         struct wr_entry **ret_entry);

/* Finds or creates the key, then tries. Returns WEIR_E_CLOSED or WEIR_E_NOMEM on failure. */
int wr_table_decide(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                    weir_receipt *ret_receipt, weir_decision *ret_decision);

/* Like weir_table_reserve, but takes the lock itself and also reports the remaining quota; limit 0
 * if the overflow limiter decided. */
int wr_table_reserve_peek(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                          weir_receipt *ret_receipt, weir_decision *ret_decision, weir_quota *ret_quota);

/* Like wr_table_decide, without a receipt. Has a fast path for the usual case: an existing key, no
 * waiters, a single token bucket. It is short enough for the processor to begin the next decision,
 * with its cache miss, during this one's; this halves the time per decision with a million keys. */
static inline int wr_table_decide_fast(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                                       weir_decision *ret_decision)
{
    struct wr_entry *entry = wr_shard_find_fast(shard, &table->layout, query->hash, query->key, query->key_bytes);
    const weir_limit *bucket = table->lone_bucket[shard->plan_set];
    bool plain = entry != NULL && bucket != NULL && !shard->closed && query->permits <= bucket->permits &&
                 (entry->plan | (entry->flags & WR_ENTRY_WAITED_FOR)) == 0;
    if (__builtin_expect(!plain, 0))
        return wr_table_decide(table, shard, query, NULL, ret_decision);
    wr_entry_touch(entry, wr_table_tick(table, query->now));
    *ret_decision = wr_bucket_try(bucket, wr_entry_state(entry), query->now, query->permits, NULL);
    bool go = ret_decision->verdict == WEIR_GO;
    shard->acquired += go ? query->permits : 0;
    shard->rejected += go ? 0 : query->permits;
    entry->denied += !go && entry->denied != UINT32_MAX;
    return 0;
}

/* Access to a key: its entry (NULL if it does not exist), with the shard's lock held until the
 * visit ends. wr_table_visit returns WEIR_E_INVAL or WEIR_E_CLOSED on failure, with no lock
 * held. */
struct wr_visit {
    weir_table *table;
    struct wr_shard *shard;
    struct wr_entry *entry;
    int64_t now;
};

int wr_table_visit(weir_table *table, const char *key, size_t key_bytes, struct wr_visit *ret_visit);

/* Like wr_table_visit for a query that was checked. The table may be closed. */
struct wr_visit wr_table_begin_visit(weir_table *table, const struct wr_key_query *query);

/* Unlocks the shard, and wakes the first waiter of the key. */
void wr_visit_end_and_wake(const struct wr_visit *visit);

/* Parts of a decision, for an entry or, if it is NULL, for the overflow limiter. */
weir_decision wr_table_ask_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                 const struct wr_key_query *query);
weir_decision wr_table_try_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                 const struct wr_key_query *query, weir_receipt *ret_receipt);
/* Counts a refusal that wr_table_ask_entry reported. */
void wr_table_refuse_entry(struct wr_shard *shard, struct wr_entry *entry, uint32_t permits);
void wr_table_settle_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now,
                           weir_receipt *receipt, uint32_t used);

/* Like wr_queue_acquire. Returns WEIR_E_FULL if the overflow limiter refuses, because it has no
 * queue. */
int wr_table_acquire_now(weir_table *table, struct wr_shard *shard, const struct wr_key_query *query,
                         const weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision);

/* Returns true if an entry may be removed: it decides like a new one and has no waiters. */
bool wr_entry_is_idle(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now);

/* Removes an entry, which must have no waiters any more. */
void wr_table_forget(weir_table *table, struct wr_shard *shard, struct wr_entry *entry);

/* ---- queues of keys (key_queue.c) ---- */

/* Returns the queue of an entry; NULL if there are no waiters. The lock is held. */
struct wr_queue *wr_key_queue(const weir_table *table, const struct wr_shard *shard, const struct wr_entry *entry);

/* A callback that receives the entry whose queue a ticket joins. The queue ends with its entry, so
 * the same entry also grants. Called with the shard's lock held. */
struct wr_join_observer {
    void (*see)(void *context, const struct wr_entry *entry);
    void *context;
};

/* Adds a ticket to the queue of a key; no lock is held. The ticket keeps a reference to the table
 * until it has left. Errors are those of wr_queue_join, WEIR_E_CLOSED and WEIR_E_NOMEM. */
int wr_table_join(weir_table *table, const struct wr_key_query *query, struct weir_ticket *ticket,
                  const struct wr_join_observer *witness);

/* Like wr_ticket_wait; no lock is held. */
int wr_table_wait(weir_table *table, const struct wr_key_query *query, int64_t timeout_ns, weir_cancel *cancel,
                  const struct wr_join_observer *witness, weir_receipt *ret_receipt, weir_decision *ret_decision);

/* Detaches the queue of an entry, so that the entry can be removed; NULL if there is none. The lock
 * is held. Afterwards call wr_key_queue_end without a lock: it makes the waiters fail, and accepts
 * NULL. */
struct wr_key_queue *wr_key_queue_detach(weir_table *table, struct wr_shard *shard, struct wr_entry *entry);
void wr_key_queue_end(struct wr_key_queue *queue);

/* Returns the next ticket, in any queue of a closed shard, that was not woken yet, pinned. The lock
 * is held. */
struct weir_ticket *wr_shard_next_unnotified(struct wr_shard *shard);

/* Returns the number of callers that wait for keys of this shard. The lock is held. */
size_t wr_shard_waiters(const struct wr_shard *shard);

/* For a change of rules: mark_changed marks all queues. Each call of wr_shard_next_changed returns
 * the first ticket of a marked queue, pinned, and clears the mark; NULL at the end. The lock is
 * held. */
void wr_shard_mark_changed(struct wr_shard *shard);
struct weir_ticket *wr_shard_next_changed(struct wr_shard *shard, int64_t now);

/* Drops a reference to the table; the last one frees it. */
void wr_table_unref(void *owner);

/* ---- several keys at once (batch.c) ---- */

struct wr_table_part {
    weir_table *table;
    struct wr_key_query query;
    struct wr_shard *shard; /* shard of the key; set by wr_table_parts_lock */
    struct wr_entry *entry; /* entry of the key; set by find and get; NULL: the overflow limiter */
    weir_receipt receipt;   /* receipt of the grant; valid once granted */
};

/* Locks the shards of all parts, in the order of their addresses, which cannot deadlock. */
void wr_table_parts_lock(struct wr_table_part *parts, size_t count);
void wr_table_parts_unlock(const struct wr_table_part *parts, size_t count);

/* Look up all keys. `get` also creates missing ones; it returns WEIR_E_CLOSED or WEIR_E_NOMEM on
 * failure. */
void wr_table_parts_find(struct wr_table_part *parts, size_t count);
int wr_table_parts_get_or_make(struct wr_table_part *parts, size_t count);

/* Grants all parts or none. *ret_part is the part that refused. */
weir_decision wr_table_parts_try(struct wr_table_part *parts, size_t count, size_t *ret_part);

/* ---- iteration (keys.c) ---- */

/* Position of an iteration over all keys; zero at first. */
struct wr_walk {
    size_t shard, slot;
};

/* Called with the shard's lock held. Returns false to pause. */
typedef bool wr_table_each(void *context, struct wr_shard *shard, struct wr_entry *entry);

/* Calls `each` for every entry. Returns false at the end; true if `each` paused, and then another
 * call continues. If a shard grows during a pause, keys may be skipped or repeated. */
bool wr_table_walk(weir_table *table, struct wr_walk *walk, wr_table_each *each, void *context);

/* ---- changes (table.c) ---- */

/* Like weir_table_change, but does not wake waiters: wr_table_wake_changed does, with no lock
 * held. */
int wr_table_change_rules(weir_table *table, uint32_t plan, const weir_limit *limits, size_t count);
void wr_table_wake_changed(weir_table *table);

/* ---- janitor.c ---- */

int wr_janitor_start(weir_table *table);
void wr_janitor_stop(weir_table *table);

#endif
