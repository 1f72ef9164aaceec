/* SPDX-License-Identifier: MIT */
/* table.h - many keys at once: one limiter per user, address, route, …
 *
 * A weir_table keeps the state of the same rules for each key (1 … WEIR_KEY_MAX bytes, any bytes), made when a
 * key is first seen.
 *
 *     weir_table_new(&limit, 1, NULL, &table);
 *     weir_table_try(table, "203.0.113.7", 11, 1, &decision);
 *
 * Bounded: there are never more than `max_keys` keys. A new key in a full table takes the place of one whose
 * limiter is as good as new. A key that still constrains (a drained bucket, permits in flight, waiters) is never
 * forgotten. Where nothing can be forgotten, new keys share one overflow limiter of the same rules: neither
 * refused outright nor unlimited. But permits in flight cannot be shared by strangers, for nobody could tell whose a
 * release ends: if a rule of plan 0 minds releases (concurrency), new keys are refused until a key has nothing in
 * flight.
 *
 * Keys come from strangers: they are hashed with a secret, random key, so that nobody can choose keys that
 * collide.
 *
 * Plans: keys may have different rules. Give the options a `plan_of` function and add plans with
 * weir_table_add_plan; the rules given to weir_table_new are plan 0.
 *
 * Another store (a database, a cluster) can stand in for the table: see weir_repository at the end.
 *
 * Threads: every function may be called from any thread. try, reserve, settle, release and peek never block
 * but for short locks, and allocate only when a key is new.
 */
#ifndef WEIR_TABLE_H
#define WEIR_TABLE_H

#include <weir/limit.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_KEY_MAX 1024 /* bytes */
#define WEIR_PLANS_MAX 16
#define WEIR_KEYS_MAX 1000000000
#define WEIR_TOP_MAX 1000 /* keys in one list */

typedef struct weir_table weir_table;

/* Which plan a new key gets: 0 … the number of plans - 1; anything else means 0. Called with a lock held: it must
 * not call weir. */
typedef uint32_t weir_plan_of(void *context, const char *key, size_t key_bytes);

/* Fill with weir_table_options_init, then change what you need. 0 means the default. */
typedef struct weir_table_options {
    size_t size;     /* of this struct */
    size_t max_keys; /* default 1 000 000; up to WEIR_KEYS_MAX */
    size_t shards;   /* locks; rounded up to a power of two; default: one per 512 keys, 16 to 16384; fewer if max_keys <
                        1024 */
    int64_t ttl_ns;  /* idle time after which a sweep forgets a key; default 0: never */
    int64_t sweep_every_ns; /* > 0: a thread sweeps this often; default 0: no thread, call weir_table_sweep */
    weir_plan_of *plan_of;  /* default: every key has plan 0 */
    void *plan_context;
    const weir_clock *clock;         /* default: weir_clock_fast() */
    const weir_allocator *allocator; /* default: the system's */
} weir_table_options;

/* NULL is fine. */
WEIR_API void weir_table_options_init(weir_table_options *ret_options);

/* Makes a table whose keys each get `count` rules, which are copied. `options` may be NULL. WEIR_E_INVAL, WEIR_E_NOMEM,
 * WEIR_E_SYSTEM (no thread or no random bytes to be had). */
WEIR_API int weir_table_new(const weir_limit *limits, size_t count, const weir_table_options *options,
                            weir_table **ret_table);

/* Adds rules for keys that `plan_of` puts on them. *ret_plan (may be NULL) is the plan's number: 1, 2, … Their state
 * may be no larger than that of plan 0. WEIR_E_INVAL, WEIR_E_FULL (there are WEIR_PLANS_MAX). */
WEIR_API int weir_table_add_plan(weir_table *table, const weir_limit *limits, size_t count, uint32_t *ret_plan);

/* Changes a plan's rules at once for all keys, as weir_limiter_change does. WEIR_E_INVAL also if the new state would
 * be larger than the table was made for. */
WEIR_API int weir_table_change(weir_table *table, uint32_t plan, const weir_limit *limits, size_t count);

/* As the weir_limiter functions, for one key. */
WEIR_API int weir_table_try(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                            weir_decision *ret_decision);
WEIR_API int weir_table_acquire(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                                int64_t timeout_ns, weir_cancel *cancel, weir_receipt *ret_receipt,
                                weir_decision *ret_decision);
WEIR_API int weir_table_enqueue(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                                int64_t timeout_ns, weir_wake *wake, void *context, weir_ticket **ret_ticket);
WEIR_API int weir_table_reserve(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                                weir_receipt *ret_receipt, weir_decision *ret_decision);

/* These never make a key. Without it settle and release return 0 and do nothing (or settle with the overflow limiter,
 * if that granted), and peek returns WEIR_E_ABSENT. */
WEIR_API int weir_table_settle(weir_table *table, const char *key, size_t key_bytes, weir_receipt *receipt,
                               uint32_t used);
WEIR_API int weir_table_release(weir_table *table, const char *key, size_t key_bytes, uint32_t permits);
WEIR_API int weir_table_peek(weir_table *table, const char *key, size_t key_bytes, weir_quota *ret_quota);

/* Many keys, one clock read, and their memory fetched at the same time: for servers that decide in batches. Each
 * item is decided on its own, in order. Returns 0, or WEIR_E_INVAL (an item is malformed: nothing was decided). */
typedef struct weir_table_item {
    const char *key;
    size_t key_bytes;
    uint32_t permits;
    int error;              /* out: 0, WEIR_E_NOMEM or WEIR_E_CLOSED */
    weir_decision decision; /* out */
} weir_table_item;

WEIR_API int weir_table_try_many(weir_table *table, weir_table_item *items, size_t count);

/* All or nothing over several keys and tables ("route within user within everybody"): all are checked, then all are
 * charged; a refusal charges nothing. 1 … WEIR_STACK_MAX parts; the same key may stand in several. On WEIR_GO the
 * receipts are filled, if given. On a refusal the decision is that of the part with the longest wait, whose
 * index goes to ret_part (may be NULL). All tables must have the same clock. */
typedef struct weir_table_part {
    weir_table *table;
    const char *key;
    size_t key_bytes;
    uint32_t permits;
    weir_receipt receipt; /* out */
} weir_table_part;

WEIR_API int weir_table_try_all(weir_table_part *parts, size_t count, weir_decision *ret_decision, size_t *ret_part);

/* Forgets a key; waiters on it fail with WEIR_E_CLOSED. WEIR_E_ABSENT. */
WEIR_API int weir_table_remove(weir_table *table, const char *key, size_t key_bytes);

/* One key, as seen by a predicate or a snapshot. */
typedef struct weir_table_entry {
    const char *key; /* not terminated; valid during the call, or as long as the snapshot */
    size_t key_bytes;
    uint32_t plan;
    uint32_t denied; /* refusals since the key was made; stops at its maximum */
    int64_t idle_ns; /* since it was last asked, in steps of 67 ms */
    bool constrains; /* decides otherwise than a new one would */
    weir_quota quota;
} weir_table_entry;

/* Forgets every key for which `wanted` returns true, also constraining ones. Called with a lock held: it must not
 * call weir. Returns how many. */
typedef bool weir_table_wanted(void *context, const weir_table_entry *entry);
WEIR_API size_t weir_table_remove_where(weir_table *table, weir_table_wanted *wanted, void *context);

/* Forgets keys that were idle for ttl_ns and constrain nothing. Returns how many. */
WEIR_API size_t weir_table_sweep(weir_table *table);

typedef enum weir_table_order {
    WEIR_TOP_DENIED, /* most refusals first */
    WEIR_TOP_USED,   /* smallest share left first */
    WEIR_TOP_RECENT, /* least idle first */
} weir_table_order;

/* The first `most` (1 … WEIR_TOP_MAX) keys in that order, without stopping traffic. *ret_entries is one block: give it
 * to weir_table_top_free. WEIR_E_INVAL, WEIR_E_NOMEM. */
WEIR_API int weir_table_top(weir_table *table, weir_table_order order, size_t most, weir_table_entry **ret_entries,
                            size_t *ret_count);
WEIR_API void weir_table_top_free(weir_table *table, weir_table_entry *entries);

typedef struct weir_table_stats {
    uint64_t acquired, rejected; /* permits, over all keys */
    uint64_t created, removed;   /* keys: made; swept or removed */
    uint64_t evicted;            /* keys that made room for new ones */
    uint64_t overflowed;         /* decisions by the overflow limiter, or that there can be none */
    size_t keys, max_keys;
    size_t shards;
    size_t waiters;
    size_t memory_bytes; /* taken from the allocator */
} weir_table_stats;

WEIR_API int weir_table_stats_get(weir_table *table, weir_table_stats *ret_stats);

/* Fails all waiters and later calls with WEIR_E_CLOSED. May be called again. */
WEIR_API void weir_table_close(weir_table *table);

/* Closes, and frees once the last waiter has left. NULL is fine. */
WEIR_API void weir_table_free(weir_table *table);

/* ---- repositories: what admission needs of a store ------------------------------------------------------ */

/* The table is one; your own store can be another. Functions as the weir_table ones of the same name (`attempt` is try,
 * a word C++ keeps for itself); those a store cannot offer are NULL, and callers get WEIR_E_INVAL. */
typedef struct weir_repository {
    size_t size; /* of this struct */
    void *context;
    int (*attempt)(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_decision *ret_decision);
    int (*acquire)(void *context, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                   weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision);
    int (*reserve)(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_receipt *ret_receipt,
                   weir_decision *ret_decision);
    int (*settle)(void *context, const char *key, size_t key_bytes, weir_receipt *receipt, uint32_t used);
    int (*release)(void *context, const char *key, size_t key_bytes, uint32_t permits);
    int (*peek)(void *context, const char *key, size_t key_bytes, weir_quota *ret_quota);
    int (*remove)(void *context, const char *key, size_t key_bytes);
    size_t (*remove_where)(void *context, weir_table_wanted *wanted, void *wanted_context);
    void (*free)(void *context); /* disposes of all it holds */
    int (*enqueue)(void *context, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                   weir_wake *wake, void *wake_context, weir_ticket **ret_ticket);
    /* reserve, and peek at what is left then (limit 0: not known), at one go; NULL: they are called one by one. */
    int (*reserve_peek)(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_receipt *ret_receipt,
                        weir_decision *ret_decision, weir_quota *ret_quota);
} weir_repository;

/* A repository that is this table; its `free` frees the table. */
WEIR_API weir_repository weir_table_repository(weir_table *table);

#ifdef __cplusplus
}
#endif
#endif
