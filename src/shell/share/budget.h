/* SPDX-License-Identifier: MIT */
/* budget.h - limits that this process shares with others through a store: who may go, by key.
 *
 *     wr_agency_new(&options, &agency), wr_agency_start(agency);    a thread with a wire to the store, and a seat
 *     wr_budget_new(agency, &rule, &budget);                one for each rule
 *     wr_budget_ask(budget, key, bytes, 1, wake, context, &errand, &told);
 *         errand == NULL: told is the answer: from the lease, the negative cache, or for want of a store the share
 *         else: wait for `wake`, then wr_errand_poll(errand, &told), and free it in any case
 *
 *     callers' threads ── keys, each with a lease ── errands ──▶ the agency's thread ── wire ──▶ store
 *
 * An errand is answered in the wire's time-out, whatever becomes of the store. While the breaker is open none is
 * made: the remaining lease is spent, then the fallback decides. What was admitted so is owed, and is charged as
 * soon as the store is back.
 *
 * Threads: any, but new and free, which are for one at a time.
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
    const char *prefix;              /* of all keys in the store; NULL: "weir" */
    const weir_allocator *allocator; /* NULL: the system's */
};

/* Until it is started its store counts as down. WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_SYSTEM. */
int wr_agency_new(const struct wr_agency_options *options, struct wr_agency **ret_agency);

/* Connects, in a thread of its own, and waits for the first answer, though not for long: that the store is down is no
 * error. Again is a no-op. WEIR_E_SYSTEM. */
int wr_agency_start(struct wr_agency *agency);

/* Whether it was made of the same. */
bool wr_agency_is(const struct wr_agency *agency, const struct wr_agency_options *options);

/* After the last budget's free. NULL is fine. */
void wr_agency_free(struct wr_agency *agency);

struct wr_agency_view {
    struct wr_wire_view wire;
    bool seated;    /* it may hold leases */
    uint32_t nodes; /* seats in all */
};

void wr_agency_view_get(struct wr_agency *agency, struct wr_agency_view *ret_view);

/* ---- budgets ------------------------------------------------------------------------------------------- */

/* What decides when there is no store and no lease. */
enum wr_fallback {
    WR_FALLBACK_SHARE, /* the rule divided by nodes; where that is nothing, as CLOSED */
    WR_FALLBACK_OPEN,
    WR_FALLBACK_CLOSED,
};

struct wr_budget_options {
    const char *name; /* what tells its keys from other budgets' */
    weir_stack stack;
    uint32_t overshoot; /* millionths of the limit; 0: exact */
    enum wr_fallback fallback;
    uint64_t max_keys;
    const weir_clock *clock; /* of the share's table; NULL: the fast one */
};

/* WEIR_E_INVAL: a rule that cannot be shared. WEIR_E_NOMEM, WEIR_E_SYSTEM. */
int wr_budget_new(struct wr_agency *agency, const struct wr_budget_options *options, struct wr_budget **ret_budget);

/* Whether it was made of the same. */
bool wr_budget_is(const struct wr_budget *budget, const struct wr_agency *agency,
                  const struct wr_budget_options *options);

/* No call may be using it, and its errands must be freed. NULL is fine. */
void wr_budget_free(struct wr_budget *budget);

/* The table of the share, and its rules: each limit divided by nodes. As long as the budget. */
weir_table *wr_budget_table(struct wr_budget *budget);
const weir_stack *wr_budget_part(const struct wr_budget *budget);

/* ---- decisions ----------------------------------------------------------------------------------------- */

/* Who decided. The names are labels of metrics. */
#define WR_SHARE_SOURCES(X)                                                                             \
    X(WR_SOURCE_LEASE, "lease")   /* granted out of what is held */                                     \
    X(WR_SOURCE_CACHE, "cache")   /* refused, for the store said so just now */                         \
    X(WR_SOURCE_STORE, "store")   /* */                                                                 \
    X(WR_SOURCE_SHARE, "share")   /* there is no store: this node's own part */                         \
    X(WR_SOURCE_OPEN, "open")     /* there is no store, and the rule says so */                         \
    X(WR_SOURCE_CLOSED, "closed") /* there is no store, and the rule says so; or none could be asked */ \
    X(WR_SOURCE_LATE, "late")     /* refused: the store lives, but was late, and the rule is exact */

enum wr_share_source {
#define X(source, name) source,
    WR_SHARE_SOURCES(X)
#undef X
};
#define WR_SOURCE_COUNT (WR_SOURCE_LATE + 1)

const char *wr_share_source_name(enum wr_share_source source);

struct wr_share_told {
    weir_decision decision; /* GO, WAIT; or DENY: more than can ever be granted */
    weir_quota quota;
    enum wr_share_source source;
    int64_t charged_at; /* by the store's clock; 0: it did not charge it just now */
};

/* What was granted, for settle. */
struct wr_grant {
    uint32_t permits;
    enum wr_share_source source;
    int64_t charged_at;
};

/* One request. `wake` is called when the errand can be polled: once, from the agency's thread or within the
 * call, with a lock held, so it must not call back. A NULL wake is for who cannot wait: WEIR_E_CLOSED if the store is
 * to be asked. `ret_told` is filled if *ret_errand is NULL. WEIR_E_NOMEM. */
int wr_budget_ask(struct wr_budget *budget, const char *key, size_t key_bytes, uint32_t permits, weir_wake *wake,
                  void *context, struct wr_errand **ret_errand, struct wr_share_told *ret_told);

/* True: it is over, and ret_told the answer. */
bool wr_errand_poll(struct wr_errand *errand, struct wr_share_told *ret_told);

/* Also if it is not over: then nobody is woken any more. What was granted and not polled is given back. NULL is fine.
 */
void wr_errand_free(struct wr_errand *errand);

/* What was granted cost `used` in the end. What is given back goes to the lease as far as it may be held, else to the
 * store, for others; what is missing is charged with the next ask. Where requests in flight are limited, `used` still
 * are. */
void wr_budget_settle(struct wr_budget *budget, const char *key, size_t key_bytes, const struct wr_grant *grant,
                      uint32_t used);

/* Requests have ended, for limits on those in flight. */
void wr_budget_release(struct wr_budget *budget, const char *key, size_t key_bytes, uint32_t permits);

/* Requests that another process was granted, and this one goes on with, are in flight. WEIR_E_NOMEM. */
int wr_budget_resume(struct wr_budget *budget, const char *key, size_t key_bytes, uint32_t permits);

/* Forgets a key, here and in the store; other nodes hear of it with their next ask, in WR_SHUT_CACHE at the latest.
 * Requests in flight stay so. WEIR_E_CLOSED: the store is down, and goes on as it was. WEIR_E_NOMEM. */
int wr_budget_reset(struct wr_budget *budget, const char *key, size_t key_bytes);

struct wr_budget_view {
    uint64_t granted[WR_SOURCE_COUNT], refused[WR_SOURCE_COUNT];
    uint64_t keys;
    uint64_t batch;          /* most that is held for a key; 0: exact */
    uint64_t bound;          /* how many more than the limit all nodes together may admit of a key, in any window */
    uint64_t overshoot;      /* most that this node admitted of a key in a second beyond what the store charged in it */
    uint64_t owed;           /* admitted without the store and not charged yet */
    uint64_t held;           /* in flight here, where that is limited */
    uint64_t damaged;        /* keys that the store found damaged, and counts as used up */
    int64_t longest_wait_ns; /* for the store, of any decision */
};

void wr_budget_view_get(struct wr_budget *budget, struct wr_budget_view *ret_view);

#endif
