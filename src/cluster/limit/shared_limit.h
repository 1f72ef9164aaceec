/* SPDX-License-Identifier: MIT */
/* shared_limit.h - limits that several processes share through a store (Redis), by key.
 *
 *     wr_redis_client_new(&options, &redis_client), wr_redis_client_start(redis_client);    a thread, connection and
 * membership wr_shared_limit_new(redis_client, &rule, &budget);                        one for each
 * rule
 *     wr_shared_limit_ask(budget, key, bytes, 1, wake, context, &shared_request, &told);
 *         shared_request == NULL: `told` is the decision: of the lease, the negative cache, or the fallback
 *         else: wait for `wake`, then wr_shared_request_poll(shared_request, &told); free it in any case
 *
 *     callers' threads -- keys with leases -- errands --> the redis_client's thread -- wire --> store
 *
 * An shared_request (a request to the store) ends within the timeout of the connection, whatever
 * happens to the store. While the breaker is open no errands are made: the rest of the lease is
 * spent, then the fallback decides. Permits admitted in this way are owed, and are charged when the
 * store is back.
 *
 * Threads: any, but only one at a time for new and free.
 */
#ifndef WR_CLUSTER_LIMIT_SHARED_LIMIT_H
#define WR_CLUSTER_LIMIT_SHARED_LIMIT_H

#include "cluster/limit/redis_connection.h"

#include <weir/table.h>

#define WR_REDIS_PREFIX_MAX 31

struct wr_redis_client;
struct wr_shared_limit;
struct wr_shared_request;

struct wr_redis_client_options {
    struct wr_redis_connection_options wire;
    uint32_t nodes;
    const char *prefix;              /* prefix of all keys in the store; NULL: "weir" */
    const weir_allocator *allocator; /* NULL: the system's allocator */
};

/* Makes an redis_client, the process's client of one store. The store counts as down until it is
 * started. Fails with WEIR_E_INVAL, WEIR_E_NOMEM or WEIR_E_SYSTEM. */
int wr_redis_client_new(const struct wr_redis_client_options *options, struct wr_redis_client **ret_agency);

/* Starts the thread, connects, and waits briefly for the first answer. A store that is down is not
 * an error. No effect if repeated. Returns WEIR_E_SYSTEM if the thread cannot start. */
int wr_redis_client_start(struct wr_redis_client *redis_client);

/* Returns true if the redis_client was made with the same options. */
bool wr_redis_client_has_options(const struct wr_redis_client *redis_client,
                                 const struct wr_redis_client_options *options);

/* Frees the redis_client. Its budgets must be freed before. NULL is allowed. */
void wr_redis_client_free(struct wr_redis_client *redis_client);

struct wr_redis_client_view {
    struct wr_redis_connection_view wire;
    bool seated;    /* this node has a membership, so it may hold leases */
    uint32_t nodes; /* number of seats */
};

void wr_redis_client_view_get(struct wr_redis_client *redis_client, struct wr_redis_client_view *ret_view);

/* ---- budgets --------------------------------------------------------------------------------- */

/* The fallback decides when there is no store and no lease. */
enum wr_shared_limit_fallback {
    WR_FALLBACK_SHARE, /* the rule divided by nodes; if that is less than one permit, as CLOSED */
    WR_FALLBACK_OPEN,
    WR_FALLBACK_CLOSED,
};

struct wr_shared_limit_options {
    const char *name; /* distinguishes its keys from those of other budgets */
    weir_stack stack;
    uint32_t overshoot; /* allowed overshoot, millionths of the limit; 0: exact */
    enum wr_shared_limit_fallback fallback;
    uint64_t max_keys;
    const weir_clock *clock; /* clock of the share's table; NULL: the fast one */
};

/* Makes a budget: one rule that processes share. Returns WEIR_E_INVAL if the rule cannot be shared;
 * WEIR_E_NOMEM; WEIR_E_SYSTEM. */
int wr_shared_limit_new(struct wr_redis_client *redis_client, const struct wr_shared_limit_options *options,
                        struct wr_shared_limit **ret_budget);

/* Returns true if the budget was made with the same options. */
bool wr_shared_limit_has_options(const struct wr_shared_limit *budget, const struct wr_redis_client *redis_client,
                                 const struct wr_shared_limit_options *options);

/* Frees a budget. No call may be using it, and its errands must be freed before. NULL is
 * allowed. */
void wr_shared_limit_free(struct wr_shared_limit *budget);

/* Return the table and the limits of this node's share: each limit divided by nodes. Valid as long
 * as the budget. */
weir_table *wr_shared_limit_table(struct wr_shared_limit *budget);
const weir_stack *wr_shared_limit_node_part(const struct wr_shared_limit *budget);

/* ---- decisions ------------------------------------------------------------------------------- */

/* What decided a request. The names are labels of metrics. */
#define WR_DECISION_SOURCES(X)                                                             \
    X(WR_SOURCE_LEASE, "lease")   /* granted by the lease */                               \
    X(WR_SOURCE_CACHE, "cache")   /* refused by a recent answer */                         \
    X(WR_SOURCE_STORE, "store")   /* decided by the store */                               \
    X(WR_SOURCE_SHARE, "share")   /* no store: decided by this node's share */             \
    X(WR_SOURCE_OPEN, "open")     /* granted: no store, fallback open */                   \
    X(WR_SOURCE_CLOSED, "closed") /* refused: no store, and fallback closed or no share */ \
    X(WR_SOURCE_LATE, "late")     /* refused: late store, exact rule */

enum wr_decision_source {
#define X(source, name) source,
    WR_DECISION_SOURCES(X)
#undef X
};
#define WR_SOURCE_COUNT (WR_SOURCE_LATE + 1)

const char *wr_decision_source_name(enum wr_decision_source source);

struct wr_shared_limit_decision {
    weir_decision decision; /* GO, WAIT; or DENY: more permits than can ever be granted */
    weir_quota quota;
    enum wr_decision_source source;
    int64_t charged_at; /* store time of the charge; 0: not charged now */
};

/* A granted request, for wr_shared_limit_settle. */
struct wr_shared_limit_grant {
    uint32_t permits;
    enum wr_decision_source source;
    int64_t charged_at;
};

/* Decides about one request. If *ret_errand is NULL, *ret_told is set. Otherwise `wake` is called
 * once when the shared_request can be polled: from the redis_client's thread or within this call,
 * with a lock held, so it must not call back. With a NULL `wake` the caller cannot wait: returns
 * WEIR_E_CLOSED if the store must be asked. Also fails with WEIR_E_NOMEM. */
int wr_shared_limit_ask(struct wr_shared_limit *budget, const char *key, size_t key_bytes, uint32_t permits,
                        weir_wake *wake, void *context, struct wr_shared_request **ret_errand,
                        struct wr_shared_limit_decision *ret_told);

/* Returns true if the shared_request has ended, and sets *ret_told to the decision. */
bool wr_shared_request_poll(struct wr_shared_request *shared_request, struct wr_shared_limit_decision *ret_told);

/* Frees an shared_request, also one that has not ended: then `wake` is not called any more. A grant
 * that was not polled is given back. NULL is allowed. */
void wr_shared_request_free(struct wr_shared_request *shared_request);

/* Corrects a grant that cost `used` permits in the end. Unused permits return to the lease as far
 * as it may hold them, otherwise to the store. Missing permits are charged with the next
 * shared_request. With a limit on requests in flight, `used` permits stay in flight. */
void wr_shared_limit_settle(struct wr_shared_limit *budget, const char *key, size_t key_bytes,
                            const struct wr_shared_limit_grant *grant, uint32_t used);

/* Reports that requests in flight have ended. */
void wr_shared_limit_release(struct wr_shared_limit *budget, const char *key, size_t key_bytes, uint32_t permits);

/* Adds requests in flight that another process was granted and this one continues. Fails with
 * WEIR_E_NOMEM. */
int wr_shared_limit_resume(struct wr_shared_limit *budget, const char *key, size_t key_bytes, uint32_t permits);

/* Forgets a key here and in the store. Other nodes notice it with their next shared_request, within
 * WR_REFUSAL_CACHE_NS. Requests in flight stay. Returns WEIR_E_CLOSED if the store is down and
 * keeps the key; WEIR_E_NOMEM. */
int wr_shared_limit_reset(struct wr_shared_limit *budget, const char *key, size_t key_bytes);

struct wr_shared_limit_view {
    uint64_t granted[WR_SOURCE_COUNT], refused[WR_SOURCE_COUNT];
    uint64_t keys;
    uint64_t batch; /* most permits that a node holds for a key; 0: exact */
    uint64_t bound; /* most permits that all nodes admit of a key beyond the limit, in any window */
    /* most permits of a key spent here in a second beyond those charged in it */
    uint64_t overshoot;
    uint64_t owed;           /* permits admitted without the store and not charged yet */
    uint64_t held;           /* permits in flight here, if they are limited */
    uint64_t damaged;        /* keys that the store found damaged; they count as used up */
    int64_t longest_wait_ns; /* longest wait of a decision for the store */
};

void wr_shared_limit_view_get(struct wr_shared_limit *budget, struct wr_shared_limit_view *ret_view);

#endif
