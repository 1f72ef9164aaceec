/* SPDX-License-Identifier: MIT */
/* budget.h - limits that several processes share through a store (Redis), by key.
 *
 *     wr_agency_new(&options, &agency), wr_agency_start(agency);    a thread, connection and seat
 *     wr_budget_new(agency, &rule, &budget);                        one for each rule
 *     wr_budget_ask(budget, key, bytes, 1, wake, context, &errand, &told);
 *         errand == NULL: `told` is the decision: of the lease, the negative cache, or the fallback
 *         else: wait for `wake`, then wr_errand_poll(errand, &told); free it in any case
 *
 *     callers' threads -- keys with leases -- errands --> the agency's thread -- wire --> store
 *
 * An errand (a request to the store) ends within the timeout of the connection, whatever happens to
 * the store. While the breaker is open no errands are made: the rest of the lease is spent, then
 * the fallback decides. Permits admitted in this way are owed, and are charged when the store is
 * back.
 *
 * Threads: any, but only one at a time for new and free.
 */
#ifndef WR_SHELL_SHARE_BUDGET_H
#define WR_SHELL_SHARE_BUDGET_H

#include "shell/share/wire.h"

#include <weir/table.h>

#define WR_SHARE_PREFIX_MAX 31

struct wr_agency;
struct wr_budget;
struct wr_errand;

struct wr_agency_options {
    struct wr_wire_options wire;
    uint32_t nodes;
    const char *prefix;              /* prefix of all keys in the store; NULL: "weir" */
    const weir_allocator *allocator; /* NULL: the system's allocator */
};

/* Makes an agency, the process's client of one store. The store counts as down until it is started.
 * Fails with WEIR_E_INVAL, WEIR_E_NOMEM or WEIR_E_SYSTEM. */
int wr_agency_new(const struct wr_agency_options *options, struct wr_agency **ret_agency);

/* Starts the thread, connects, and waits briefly for the first answer. A store that is down is not
 * an error. No effect if repeated. Returns WEIR_E_SYSTEM if the thread cannot start. */
int wr_agency_start(struct wr_agency *agency);

/* Returns true if the agency was made with the same options. */
bool wr_agency_is(const struct wr_agency *agency, const struct wr_agency_options *options);

/* Frees the agency. Its budgets must be freed before. NULL is allowed. */
void wr_agency_free(struct wr_agency *agency);

struct wr_agency_view {
    struct wr_wire_view wire;
    bool seated;    /* this node has a seat, so it may hold leases */
    uint32_t nodes; /* number of seats */
};

void wr_agency_view_get(struct wr_agency *agency, struct wr_agency_view *ret_view);

/* ---- budgets --------------------------------------------------------------------------------- */

/* The fallback decides when there is no store and no lease. */
enum wr_fallback {
    WR_FALLBACK_SHARE, /* the rule divided by nodes; if that is less than one permit, as CLOSED */
    WR_FALLBACK_OPEN,
    WR_FALLBACK_CLOSED,
};

struct wr_budget_options {
    const char *name; /* distinguishes its keys from those of other budgets */
    weir_stack stack;
    uint32_t overshoot; /* allowed overshoot, millionths of the limit; 0: exact */
    enum wr_fallback fallback;
    uint64_t max_keys;
    const weir_clock *clock; /* clock of the share's table; NULL: the fast one */
};

/* Makes a budget: one rule that processes share. Returns WEIR_E_INVAL if the rule cannot be shared;
 * WEIR_E_NOMEM; WEIR_E_SYSTEM. */
int wr_budget_new(struct wr_agency *agency, const struct wr_budget_options *options, struct wr_budget **ret_budget);

/* Returns true if the budget was made with the same options. */
bool wr_budget_is(const struct wr_budget *budget, const struct wr_agency *agency,
                  const struct wr_budget_options *options);

/* Frees a budget. No call may be using it, and its errands must be freed before. NULL is
 * allowed. */
void wr_budget_free(struct wr_budget *budget);

/* Return the table and the limits of this node's share: each limit divided by nodes. Valid as long
 * as the budget. */
weir_table *wr_budget_table(struct wr_budget *budget);
const weir_stack *wr_budget_part(const struct wr_budget *budget);

/* ---- decisions ------------------------------------------------------------------------------- */

/* What decided a request. The names are labels of metrics. */
#define WR_SHARE_SOURCES(X)                                                                \
    X(WR_SOURCE_LEASE, "lease")   /* granted by the lease */                               \
    X(WR_SOURCE_CACHE, "cache")   /* refused by a recent answer */                         \
    X(WR_SOURCE_STORE, "store")   /* decided by the store */                               \
    X(WR_SOURCE_SHARE, "share")   /* no store: decided by this node's share */             \
    X(WR_SOURCE_OPEN, "open")     /* granted: no store, fallback open */                   \
    X(WR_SOURCE_CLOSED, "closed") /* refused: no store, and fallback closed or no share */ \
    X(WR_SOURCE_LATE, "late")     /* refused: late store, exact rule */

enum wr_share_source {
#define X(source, name) source,
    WR_SHARE_SOURCES(X)
#undef X
};
#define WR_SOURCE_COUNT (WR_SOURCE_LATE + 1)

const char *wr_share_source_name(enum wr_share_source source);

struct wr_share_told {
    weir_decision decision; /* GO, WAIT; or DENY: more permits than can ever be granted */
    weir_quota quota;
    enum wr_share_source source;
    int64_t charged_at; /* store time of the charge; 0: not charged now */
};

/* A granted request, for wr_budget_settle. */
struct wr_grant {
    uint32_t permits;
    enum wr_share_source source;
    int64_t charged_at;
};

/* Decides about one request. If *ret_errand is NULL, *ret_told is set. Otherwise `wake` is called
 * once when the errand can be polled: from the agency's thread or within this call, with a lock
 * held, so it must not call back. With a NULL `wake` the caller cannot wait: returns WEIR_E_CLOSED
 * if the store must be asked. Also fails with WEIR_E_NOMEM. */
int wr_budget_ask(struct wr_budget *budget, const char *key, size_t key_bytes, uint32_t permits, weir_wake *wake,
                  void *context, struct wr_errand **ret_errand, struct wr_share_told *ret_told);

/* Returns true if the errand has ended, and sets *ret_told to the decision. */
bool wr_errand_poll(struct wr_errand *errand, struct wr_share_told *ret_told);

/* Frees an errand, also one that has not ended: then `wake` is not called any more. A grant that
 * was not polled is given back. NULL is allowed. */
void wr_errand_free(struct wr_errand *errand);

/* Corrects a grant that cost `used` permits in the end. Unused permits return to the lease as far
 * as it may hold them, otherwise to the store. Missing permits are charged with the next errand.
 * With a limit on requests in flight, `used` permits stay in flight. */
void wr_budget_settle(struct wr_budget *budget, const char *key, size_t key_bytes, const struct wr_grant *grant,
                      uint32_t used);

/* Reports that requests in flight have ended. */
void wr_budget_release(struct wr_budget *budget, const char *key, size_t key_bytes, uint32_t permits);

/* Adds requests in flight that another process was granted and this one continues. Fails with
 * WEIR_E_NOMEM. */
int wr_budget_resume(struct wr_budget *budget, const char *key, size_t key_bytes, uint32_t permits);

/* Forgets a key here and in the store. Other nodes notice it with their next errand, within
 * WR_SHUT_CACHE. Requests in flight stay. Returns WEIR_E_CLOSED if the store is down and keeps the
 * key; WEIR_E_NOMEM. */
int wr_budget_reset(struct wr_budget *budget, const char *key, size_t key_bytes);

struct wr_budget_view {
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

void wr_budget_view_get(struct wr_budget *budget, struct wr_budget_view *ret_view);

#endif
