/* SPDX-License-Identifier: MIT */
/* table.h - many keys: one limiter per user, address, route, ...
 *
 * A weir_table keeps the state of the same rules for each key. A key is any 1 to WEIR_KEY_MAX
 * bytes. The table creates it on its first use.
 *
 *     weir_table_new(&limit, 1, NULL, &table);
 *     weir_table_try(table, "203.0.113.7", 11, 1, &decision);
 *
 * Bounded: there are never more than `max_keys` keys. In a full table, a new key replaces one whose
 * limiter is as good as new. A key that still constrains requests (a drained bucket, permits in
 * flight, waiters) is never forgotten. If no key can be forgotten, new keys share one overflow
 * limiter with the same rules, so that they are neither refused outright nor unlimited. Permits in
 * flight cannot be shared in this way, because a release must belong to one caller. If a rule of
 * plan 0 needs releases (concurrency), new keys are refused until a key has no permit in flight.
 *
 * Keys are untrusted input: the table hashes them with a secret random key, so that clients cannot
 * choose keys that collide.
 *
 * Plans: keys may have different rules. Set the option `plan_of` and add plans with
 * weir_table_add_plan. The rules given to weir_table_new are plan 0.
 *
 * Another store (a database, a cluster) can replace the table: see weir_key_store at the end.
 *
 * Threads: every function may be called from any thread. try, reserve, settle, release and peek
 * block only for short locks, and allocate only for a new key.
 */
#ifndef WEIR_TABLE_H
#define WEIR_TABLE_H

#include <weir/limit.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_KEY_MAX 1024 /* most bytes of a key */
#define WEIR_PLANS_MAX 16
#define WEIR_KEYS_MAX 1000000000
#define WEIR_TOP_MAX 1000 /* most keys in one list */

typedef struct weir_table weir_table;

/* Returns the plan of a new key: 0 to the number of plans - 1; any other number means 0. Called
 * with a lock held: it must not call weir. */
typedef uint32_t weir_plan_of(void *context, const char *key, size_t key_bytes);

/* Fill with weir_table_options_init, then change what you need. 0 means the default. */
typedef struct weir_table_options {
    size_t size;     /* size of this structure */
    size_t max_keys; /* most keys; default 1 000 000, at most WEIR_KEYS_MAX */
    /* Number of locks, rounded up to a power of two; default: one per 512 keys, 16 to 16384; fewer
     * if max_keys is below 1024. */
    size_t shards;
    int64_t ttl_ns; /* idle time after which a sweep forgets a key; 0: never, the default */
    /* > 0: a thread sweeps this often; default 0: no thread, call weir_table_sweep. */
    int64_t sweep_every_ns;
    weir_plan_of *plan_of; /* default: every key has plan 0 */
    void *plan_context;
    const weir_clock *clock;         /* default: weir_clock_fast() */
    const weir_allocator *allocator; /* default: the system's allocator */
} weir_table_options;

/* Sets all options to their defaults. NULL is allowed. */
WEIR_API void weir_table_options_init(weir_table_options *ret_options);

/* Creates a table in which each key gets `count` rules. The rules are copied. `options` may be
 * NULL. WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_SYSTEM (no thread or no random bytes). */
WEIR_API int weir_table_new(const weir_limit *limits, size_t count, const weir_table_options *options,
                            weir_table **ret_table);

/* Adds rules for the keys to which `plan_of` gives this plan. Writes the plan's number (1, 2, ...)
 * to *ret_plan, unless ret_plan is NULL. The state of these rules may be no larger than that of
 * plan 0. WEIR_E_INVAL, WEIR_E_FULL (there are WEIR_PLANS_MAX plans). */
WEIR_API int weir_table_add_plan(weir_table *table, const weir_limit *limits, size_t count, uint32_t *ret_plan);

/* Changes the rules of a plan at once for all keys, as weir_limiter_change does. WEIR_E_INVAL also
 * if the new state would be larger than the table was made for. */
WEIR_API int weir_table_change(weir_table *table, uint32_t plan, const weir_limit *limits, size_t count);

/* These do the same for one key as the weir_limiter functions with the same verb. */
WEIR_API int weir_table_try(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                            weir_decision *ret_decision);
WEIR_API int weir_table_acquire(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                                int64_t timeout_ns, weir_cancel *cancel, weir_receipt *ret_receipt,
                                weir_decision *ret_decision);
WEIR_API int weir_table_enqueue(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                                int64_t timeout_ns, weir_wake *wake, void *context, weir_ticket **ret_ticket);
WEIR_API int weir_table_reserve(weir_table *table, const char *key, size_t key_bytes, uint32_t permits,
                                weir_receipt *ret_receipt, weir_decision *ret_decision);

/* These never create a key. If the key does not exist, settle and release return 0 and do nothing
 * (or settle with the overflow limiter, if that granted), and peek returns WEIR_E_ABSENT. */
WEIR_API int weir_table_settle(weir_table *table, const char *key, size_t key_bytes, weir_receipt *receipt,
                               uint32_t used);
WEIR_API int weir_table_release(weir_table *table, const char *key, size_t key_bytes, uint32_t permits);
WEIR_API int weir_table_peek(weir_table *table, const char *key, size_t key_bytes, weir_quota *ret_quota);

/* Decides for many keys with one reading of the clock, and fetches their memory at the same time:
 * for servers that decide in batches. Each item is decided on its own, in order. Returns 0, or
 * WEIR_E_INVAL if an item is malformed; then nothing was decided. */
typedef struct weir_table_item {
    const char *key;
    size_t key_bytes;
    uint32_t permits;
    int error;              /* out: 0, WEIR_E_NOMEM or WEIR_E_CLOSED */
    weir_decision decision; /* out */
} weir_table_item;

WEIR_API int weir_table_try_many(weir_table *table, weir_table_item *items, size_t count);

/* Decides for several keys and tables together ("route within user within all users"): checks all
 * parts, then charges all of them; a refusal charges nothing. There are 1 to WEIR_STACK_MAX parts;
 * the same key may be in several. All tables must have the same clock. After WEIR_GO the receipt of
 * each part is filled. A refusal is that of the part with the longest wait, whose index goes to
 * ret_part (may be NULL). */
typedef struct weir_table_part {
    weir_table *table;
    const char *key;
    size_t key_bytes;
    uint32_t permits;
    weir_receipt receipt; /* out */
} weir_table_part;

WEIR_API int weir_table_try_all(weir_table_part *parts, size_t count, weir_decision *ret_decision, size_t *ret_part);

/* Forgets a key; its waiters fail with WEIR_E_CLOSED. Returns WEIR_E_ABSENT if there is no such
 * key. */
WEIR_API int weir_table_remove(weir_table *table, const char *key, size_t key_bytes);

/* One key, as a predicate or a list gets it. */
typedef struct weir_table_entry {
    /* Not terminated; valid during the call of the predicate, or as long as the list. */
    const char *key;
    size_t key_bytes;
    uint32_t plan;
    uint32_t denied; /* refusals since the key was created; stops at the maximum */
    int64_t idle_ns; /* time since the last request, ns, in steps of 67 ms */
    bool constrains; /* true: it decides differently from a new limiter */
    weir_quota quota;
} weir_table_entry;

/* Forgets every key for which `wanted` returns true, also keys that constrain requests. Returns
 * their number. `wanted` is called with a lock held and must not call weir. */
typedef bool weir_table_wanted(void *context, const weir_table_entry *entry);
WEIR_API size_t weir_table_remove_where(weir_table *table, weir_table_wanted *wanted, void *context);

/* Forgets keys that were idle for ttl_ns and constrain no requests. Returns their number. */
WEIR_API size_t weir_table_sweep(weir_table *table);

typedef enum weir_table_order {
    WEIR_TOP_DENIED, /* most refusals first */
    WEIR_TOP_USED,   /* smallest share left first */
    WEIR_TOP_RECENT, /* least idle first */
} weir_table_order;

/* Lists the first `most` (1 to WEIR_TOP_MAX) keys in that order, without stopping traffic. Free
 * *ret_entries, which is one block, with weir_table_top_free. WEIR_E_INVAL, WEIR_E_NOMEM. */
WEIR_API int weir_table_top(weir_table *table, weir_table_order order, size_t most, weir_table_entry **ret_entries,
                            size_t *ret_count);
WEIR_API void weir_table_top_free(weir_table *table, weir_table_entry *entries);

typedef struct weir_table_stats {
    uint64_t acquired, rejected; /* permits granted and refused, over all keys */
    uint64_t created, removed;   /* keys created; keys swept or removed */
    uint64_t evicted;            /* keys that were replaced by new ones in a full table */
    /* Decisions for keys without a place: by the overflow limiter, or refused because it cannot be
     * shared. */
    uint64_t overflowed;
    size_t keys, max_keys;
    size_t shards;
    size_t waiters;
    size_t memory_bytes; /* bytes taken from the allocator */
} weir_table_stats;

WEIR_API int weir_table_stats_get(weir_table *table, weir_table_stats *ret_stats);

/* Fails all waiters and later calls with WEIR_E_CLOSED. May be called repeatedly. */
WEIR_API void weir_table_close(weir_table *table);

/* Closes the table, and frees it after the last waiter has left. NULL is allowed. */
WEIR_API void weir_table_free(weir_table *table);

/* ---- repositories: the interface of a store that admission uses ------------------------------ */

/* A table is one repository; a store of your own can be another. The functions must behave as the
 * weir_table functions with the same names (`attempt` is try, which is a C++ keyword). Functions
 * that the store does not offer are NULL, and callers of them get WEIR_E_INVAL. */
typedef struct weir_key_store {
    size_t size; /* size of this structure */
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
    void (*free)(void *context); /* frees the store */
    int (*enqueue)(void *context, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                   weir_wake *wake, void *wake_context, weir_ticket **ret_ticket);
    /* Does reserve and then peek in one call (a quota limit of 0: unknown). NULL: the two are
     * called one after the other. */
    int (*reserve_peek)(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_receipt *ret_receipt,
                        weir_decision *ret_decision, weir_quota *ret_quota);
} weir_key_store;

/* Returns a repository for this table; its `free` frees the table. */
WEIR_API weir_key_store weir_table_key_store(weir_table *table);

#ifdef __cplusplus
}
#endif
#endif
