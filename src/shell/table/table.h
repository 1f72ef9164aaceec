/* SPDX-License-Identifier: MIT */
/* table.h - what the parts of a table share.
 *
 *     table.c      making, changing, ending            keys.c     forgetting and listing keys
 *     decide.c     one key: find or make, decide       keyline.c  waiting for a key
 *     batch.c      many keys at once                   shard.c    where keys live
 *     blocks.c     memory of shards
 *
 * Locks: a shard's lock guards its keys, lines and numbers. The overflow lock may be taken while holding a shard's. Two
 * shards are only ever locked in the order of their addresses (batch.c). `changing` is taken before any of them.
 */
#ifndef WR_SHELL_TABLE_TABLE_H
#define WR_SHELL_TABLE_TABLE_H

#include "base/error.h"
#include "base/hash.h"
#include "core/limit/bucket.h"
#include "shell/clock/clock.h"
#include "shell/table/shard.h"

#include <weir/table.h>

#define WR_TICK_SHIFT 26 /* used_at counts 67 ms: 9 years fit */

/* Shared by new keys when no key can be forgotten. */
struct wr_overflow {
    struct wr_lock lock;
    bool plan_set;
    bool refuses; /* strangers cannot share permits in flight: nobody could tell whose a release ends */
    void *state;  /* of plan 0 */
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
    uint32_t state_bytes; /* room for state in an entry */
    /* Two sets of plans: a change fills the idle one and moves shard after shard over to it. */
    weir_stack plans[2][WEIR_PLANS_MAX];
    const weir_limit *lone_bucket[2]; /* plan 0's only rule, if that is a token bucket: decided without detours */
    atomic_uint plan_count;
    weir_plan_of *plan_of;
    void *plan_context;
    struct wr_overflow overflow;
    pthread_mutex_t changing;
    bool plan_set; /* the set that is complete; under `changing` */
    const weir_allocator *allocator;
    struct wr_blocks blocks;
    atomic_uint holds; /* the owner's, and one for each ticket in line */
    _Atomic int64_t ttl_ns;
    int64_t sweep_every_ns;
    struct wr_janitor janitor;
};

/* How many keys there may be, and how soon idle ones are forgotten, from here on; 1 … WEIR_KEYS_MAX, and 0 (never) …
 * WEIR_DURATION_MAX. Where there are more already they stay, and newcomers take the places of idle ones. */
void wr_table_bound(weir_table *table, size_t max_keys, int64_t ttl_ns);

/* One question about one key. */
struct wr_query {
    const char *key;
    size_t key_bytes;
    uint64_t hash;
    int64_t now;
    uint32_t permits;
    bool insists; /* as a ticket's */
};

#define WR_IN_OVERFLOW 1 /* weir_receipt.place */

/* WEIR_E_INVAL unless there is a table; and its key is sound; and permits are asked for. */
int wr_table_check_table(const weir_table *table);
int wr_table_check_key(const weir_table *table, const char *key, size_t key_bytes);
int wr_table_check(const weir_table *table, const char *key, size_t key_bytes, uint32_t permits);

static inline struct wr_query wr_table_query(const weir_table *table, const char *key, size_t key_bytes,
                                             uint32_t permits, int64_t now)
{
    return (struct wr_query){key, key_bytes, wr_hash(&table->hash_key, key, key_bytes), now, permits, false};
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

static inline struct wr_spot wr_entry_spot(weir_table *table, struct wr_shard *shard, struct wr_entry *entry)
{
    return (struct wr_spot){wr_entry_stack(table, shard, entry), wr_entry_state(entry), &shard->acquired,
                            &shard->rejected, &entry->denied};
}

static inline struct wr_entry *wr_table_find(const weir_table *table, const struct wr_shard *shard,
                                             const struct wr_query *query)
{
    return wr_shard_find(shard, &table->layout, query->hash, query->key, query->key_bytes);
}

/* ---- with the shard's lock held ---- */

/* The key's entry, made if need be. *ret_entry is NULL if only the overflow limiter is left. WEIR_E_NOMEM. */
int wr_table_get(weir_table *table, struct wr_shard *shard, const struct wr_query *query, struct wr_entry **ret_entry);

/* Get, then try. WEIR_E_CLOSED, WEIR_E_NOMEM. */
int wr_table_decide(weir_table *table, struct wr_shard *shard, const struct wr_query *query, weir_receipt *ret_receipt,
                    weir_decision *ret_decision);

/* As weir_table_reserve, and what is left then; limit 0 if that is the overflow limiter's. */
int wr_table_reserve_peek(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                          weir_receipt *ret_receipt, weir_decision *ret_decision, weir_quota *ret_quota);

/* As wr_table_decide, without a receipt. What nearly always is the case takes a path of its own: a known key, nobody
 * waiting, one token bucket. It is short enough for the processor to begin the next decision, and its cache miss, while
 * this one waits for memory; that halves the time of a decision on a million keys. */
static inline int wr_table_decide_fast(weir_table *table, struct wr_shard *shard, const struct wr_query *query,
                                       weir_decision *ret_decision)
{
    struct wr_entry *entry = wr_shard_glance(shard, &table->layout, query->hash, query->key, query->key_bytes);
    const weir_limit *bucket = table->lone_bucket[shard->plan_set];
    bool plain = entry != NULL && bucket != NULL && !shard->closed && query->permits <= bucket->permits &&
                 (entry->plan | (entry->flags & WR_WAITED_FOR)) == 0;
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

/* A visit to a key that may be there: its entry, or NULL, and the shard's lock until the visit ends. Visiting fails
 * without a lock: WEIR_E_INVAL, WEIR_E_CLOSED. */
struct wr_visit {
    weir_table *table;
    struct wr_shard *shard;
    struct wr_entry *entry;
    int64_t now;
};

int wr_table_visit(weir_table *table, const char *key, size_t key_bytes, struct wr_visit *ret_visit);

/* The same for a query that was checked; the table may be closed. */
struct wr_visit wr_table_enter(weir_table *table, const struct wr_query *query);

/* Ends a visit after which whoever is first in line for the key should look again. */
void wr_visit_end_and_wake(const struct wr_visit *visit);

/* The parts of a decision, for an entry or, with NULL, for the overflow limiter. */
weir_decision wr_table_ask_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                 const struct wr_query *query);
weir_decision wr_table_try_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry,
                                 const struct wr_query *query, weir_receipt *ret_receipt);
/* Counts a refusal that was only asked about. */
void wr_table_refuse_entry(struct wr_shard *shard, struct wr_entry *entry, uint32_t permits);
void wr_table_settle_entry(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now,
                           weir_receipt *receipt, uint32_t used);

/* As wr_line_acquire. WEIR_E_FULL if the overflow limiter refuses, for nobody stands in line there. */
int wr_table_acquire_now(weir_table *table, struct wr_shard *shard, const struct wr_query *query,
                         const weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision);

/* Whether an entry may be forgotten: it decides as a new one would, and nobody waits. */
bool wr_entry_idle(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now);

/* Forgets an entry that nobody waits for any more. */
void wr_table_forget(weir_table *table, struct wr_shard *shard, struct wr_entry *entry);

/* ---- lines of keys (keyline.c) ---- */

/* The line for an entry, or NULL if nobody waits; with the lock held. */
struct wr_line *wr_key_line(const weir_table *table, const struct wr_shard *shard, const struct wr_entry *entry);

/* Who wants to see the entry that a ticket joins: a line ends with its entry, so it is also the one that grants. Called
 * with the shard's lock held. NULL: nobody does. */
struct wr_witness {
    void (*see)(void *context, const struct wr_entry *entry);
    void *context;
};

/* Puts a ticket in line, with no lock held; it holds the table until it has left. As wr_line_join; WEIR_E_CLOSED,
 * WEIR_E_NOMEM. */
int wr_table_join(weir_table *table, const struct wr_query *query, struct weir_ticket *ticket,
                  const struct wr_witness *witness);

/* As wr_wait, with no lock held. */
int wr_table_wait(weir_table *table, const struct wr_query *query, int64_t timeout_ns, weir_cancel *cancel,
                  const struct wr_witness *witness, weir_receipt *ret_receipt, weir_decision *ret_decision);

/* Takes the line of an entry out, if there is one, so that the entry can be forgotten; with the lock held. Then, with
 * none, wr_key_line_end fails those who stood in it. NULL is fine. */
struct wr_key_line *wr_key_line_detach(weir_table *table, struct wr_shard *shard, struct wr_entry *entry);
void wr_key_line_end(struct wr_key_line *queue);

/* The next ticket of any line of a closed shard that was not told, pinned; with the lock held. */
struct weir_ticket *wr_shard_untold(struct wr_shard *shard);

/* Callers that wait for keys of this shard; with the lock held. */
size_t wr_shard_waiters(const struct wr_shard *shard);

/* After the rules changed: marks all lines, and then gives the first of each marked one, pinned, until NULL; with the
 * lock held. */
void wr_shard_mark_changed(struct wr_shard *shard);
struct weir_ticket *wr_shard_changed(struct wr_shard *shard, int64_t now);

/* Lets go of the table; the last one frees it. */
void wr_table_drop(void *owner);

/* ---- several keys at once (batch.c) ---- */

struct wr_part {
    weir_table *table;
    struct wr_query query;
    struct wr_shard *shard; /* once locked */
    struct wr_entry *entry; /* once found; NULL: the overflow limiter */
    weir_receipt receipt;   /* once granted */
};

/* Locks the shards of all parts, in an order that cannot deadlock. */
void wr_parts_lock(struct wr_part *parts, size_t count);
void wr_parts_unlock(const struct wr_part *parts, size_t count);

/* Looks all keys up; `get` makes those that are new: WEIR_E_CLOSED, WEIR_E_NOMEM. */
void wr_parts_find(struct wr_part *parts, size_t count);
int wr_parts_get(struct wr_part *parts, size_t count);

/* All or nothing. *ret_part is the part that refused. */
weir_decision wr_parts_try(struct wr_part *parts, size_t count, size_t *ret_part);

/* ---- walking (keys.c) ---- */

/* Where a walk over all keys is; zeroed at the beginning. */
struct wr_walk {
    size_t shard, slot;
};

/* Called with the shard's lock held. False: pause here. */
typedef bool wr_table_each(void *context, struct wr_shard *shard, struct wr_entry *entry);

/* Calls `each` for entry after entry. False at the end; true if `each` wanted a pause: call again to go on. A shard
 * that grows during a pause is walked on in its new order: keys may be missed or met twice. */
bool wr_table_walk(weir_table *table, struct wr_walk *walk, wr_table_each *each, void *context);

/* ---- changing (table.c) ---- */

/* As weir_table_change, without waking anybody: wr_table_wake_changed does that, with no lock held. */
int wr_table_change_rules(weir_table *table, uint32_t plan, const weir_limit *limits, size_t count);
void wr_table_wake_changed(weir_table *table);

/* ---- janitor.c ---- */

int wr_janitor_start(weir_table *table);
void wr_janitor_stop(weir_table *table);

#endif
