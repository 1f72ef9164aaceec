/* SPDX-License-Identifier: MIT */
/* pacer.h - The interfaces between the files of a pacer.
 *
 *     gate_algorithm.c     one host's gate as an algorithm, so     acquire.c  acquiring, now or after a wait
 *                that a weir_table can hold the gates    ticket.c   waiting in an event loop
 *     request_gates.c  the keys of domains and addresses
 *     pacer.c          creating, changing, freeing
 *     remote_gate.c    gates shared among processes
 *     permit.c         sending, outcomes, giving back
 *     host_memory.c    seeding, saving, pausing
 *     inspect.c        inspection
 *
 * A request passes up to three gates: of its host, its domain and its address. To try, all their
 * shards are locked at once, in an order that cannot deadlock. To wait, the gates are reserved one
 * after the other, always in this order. A gate that is reserved but unsent admits no other
 * request, for as long as it takes. The holder of an address waits for no gate, the holder of a
 * domain only for an address, so there is no cycle. All gates are marked as sent together, and only
 * if each still agrees: a server may have asked for a pause during the wait for the next gate.
 *
 * The listener and all other foreign callbacks are called with no lock held.
 */
#ifndef WR_LIMITER_PACER_PACER_H
#define WR_LIMITER_PACER_PACER_H

#include "base/seam.h"

#include "core/pace/gate.h"
#include "core/pace/pace_options.h"
#include "limiter/clock/clock.h"
#include "limiter/pacer/remote_gate.h"
#include "limiter/table/table.h"

#include <weir/pace.h>

#define WR_REQUEST_GATES_MAX 3             /* gates of a request: host, domain, address */
#define WR_GROUP_KEY_MAX WEIR_PACE_KEY_MAX /* fits "domain:" and a name of 253 bytes */

/* ---- one host in the table ---- */

/* The state of a host in the table, for the algorithm `wr_gate_algorithm`. */
struct wr_pacer_host {
    uint32_t life;            /* identifies the host: a later one with this key ignores old permits */
    uint32_t changes;         /* changes of the memory so far, to detect any during a save */
    int64_t here_until;       /* end of the gate's stay in this process; INT64_MAX: unlimited */
    uint32_t flights;         /* requests of this process that were sent and have not ended */
    uint32_t here_sleep_mark; /* wr_clock_sleep_mark when the gate was requested: sleep ends its stay */
    /* followed by struct wr_gate */
};

extern const weir_algorithm wr_gate_algorithm;

static inline const struct wr_pacer_host *wr_entry_pacer_host(const struct wr_entry *entry)
{
    return (const struct wr_pacer_host *)(const void *)(entry + 1);
}

/* The params of a pacer's weir_limit. */
struct wr_pacer_rule {
    weir_pace_options pace;
    weir_pacer *pacer;
};

/* A host and its gate. The lock of its shard is held. */
struct wr_locked_host {
    struct wr_pacer_host *host;
    struct wr_gate *gate;
    const weir_pace_options *pace;
    int64_t now;
};

/* Returns true if the gate is in another process. It then admits nothing, and outcomes are reported
 * to the lender. */
static inline bool wr_pacer_host_is_remote(const struct wr_pacer_host *host, int64_t now)
{
    return now >= host->here_until || (host->here_until != INT64_MAX && wr_clock_slept_since(host->here_sleep_mark));
}

/* Decides as wr_gate_ask does, or WEIR_WAIT if the gate is in another process. */
weir_decision wr_pacer_host_ask(const struct wr_pacer_host *host, const weir_pace_options *pace, int64_t now);

/* Returns the host of `entry`, which must not be NULL. */
struct wr_locked_host wr_locked_host_of(const weir_table *table, const struct wr_shard *shard, struct wr_entry *entry,
                                        int64_t now);

/* ---- the pacer ---- */

#define WR_PACER_COUNTS 16 /* enough to avoid shared cache lines between threads; a power of two */

struct wr_pacer_counts {
    _Alignas(WR_CACHE_LINE) _Atomic uint64_t requests;
    _Atomic uint64_t throttled, denied, retries, rejected, waited_ns;
};

struct weir_pacer {
    weir_table *table;
    const weir_clock *clock;
    const weir_clock *wall; /* NULL for the system's wall clock */
    const weir_allocator *allocator;
    uint32_t groups;
    weir_domain_of *domain_of; /* NULL: the pacer has no domains */
    void *domain_context;
    bool keeps_unsaved;
    int64_t throttled_over_ns;
    uint64_t seed;
    weir_pace_listener *listener;
    void *listener_context;
    struct wr_remote_gate_callbacks lender; /* all zero if gates are not shared among processes */
    atomic_bool off;
    atomic_uint lives; /* number of hosts created so far */
    atomic_uint holds; /* references: one of the owner, one per waiting caller or ticket */
    /* One rule in use, one idle, like the plan sets of the table. A change fills the idle one. */
    struct wr_pacer_rule rules[2];
    pthread_mutex_t changing;
    bool rule_set; /* index of the rule in use; protected by `changing` */
    struct wr_pacer_counts tallies[WR_PACER_COUNTS];
};

int64_t wr_pacer_wall_now(const weir_pacer *pacer);

/* Returns 0, or WEIR_E_INVAL if the pacer is NULL or the key is invalid. */
int wr_pacer_check(const weir_pacer *pacer, const char *key, size_t key_bytes);

static inline struct wr_pacer_counts *wr_pacer_counts_of(weir_pacer *pacer, uint64_t hash)
{
    return &pacer->tallies[hash & (WR_PACER_COUNTS - 1)];
}

static inline void wr_pacer_count_add(_Atomic uint64_t *number, uint64_t by)
{
    (void)atomic_fetch_add_explicit(number, by, memory_order_relaxed);
}

WR_SEAM void wr_pacer_ref(weir_pacer *pacer);
WR_SEAM void wr_pacer_unref(weir_pacer *pacer);

/* Calls the listener, if there is one. No lock is held. */
void wr_pacer_notify(const weir_pacer *pacer, const weir_pace_event *event);

/* ---- gates shared among processes (remote_gate.c); no lock is held ---- */

/* Reports to the lender that a caller waits for a gate in another process. */
void wr_pacer_want_gate(const weir_pacer *pacer, const struct wr_key_query *query);

/* Reports an event of a request to the lender if its gate is elsewhere. `outcome` may be NULL. */
void wr_pacer_report_remote(const weir_pacer *pacer, const struct wr_key_query *query,
                            const struct wr_gate_start *start, const weir_outcome *outcome,
                            enum wr_remote_report_kind word);

/* Reports to the lender what a local gate learned. `news` is a set of wr_gate_change. */
void wr_pacer_report_changes(const weir_pacer *pacer, const struct wr_key_query *query, uint32_t news);

/* ---- groups (request_gates.c) ---- */

/* Returns true if the key is that of a group. */
bool wr_key_is_group(const char *key, size_t key_bytes);

/* Fills in the keys of a permit. `address` may be NULL. Returns 0 or WEIR_E_INVAL. */
int wr_permit_set_keys(weir_permit *permit, const weir_pacer *pacer, const char *key, size_t key_bytes,
                       const char *address);

/* ---- the gates of one request (request_gates.c) ---- */

struct wr_request_gates {
    struct wr_table_part parts[WR_REQUEST_GATES_MAX]; /* their keys point into the permit or the arrays below */
    size_t count;
    char domain[WR_GROUP_KEY_MAX], address[WR_GROUP_KEY_MAX];
};

void wr_request_gates_init(struct wr_request_gates *ret_gates, const weir_pacer *pacer, const weir_permit *permit,
                           int64_t now, bool waits_always);

/* The first waiter of each gate, to be woken without the lock. */
struct wr_gate_waiters {
    struct weir_ticket *first[WR_REQUEST_GATES_MAX];
};

/* wr_request_gates_waiters needs the locks of the gates, wr_gate_waiters_wake must be called
 * without them. */
struct wr_gate_waiters wr_request_gates_waiters(const struct wr_request_gates *gates, int64_t now);
void wr_gate_waiters_wake(const struct wr_gate_waiters *called);

/* ---- permits (permit.c) ---- */

/* Notes that gate `i` and all gates before it are reserved. `life` is that of the host, `seq` the
 * number of the reservation. */
void wr_permit_note_reserved(weir_permit *permit, size_t i, uint32_t life, uint32_t seq);

/* Keeps gate `i` reserved without a time limit while the caller waits for the next one. Takes the
 * lock of the gate, so no lock may be held. */
void wr_permit_keep_reserved(const weir_permit *permit, const struct wr_table_part *part, size_t i);

/* Completes a permit whose gates were all reserved just now. The locks are held. With `sends` the
 * request counts as sent. */
void wr_permit_grant(weir_permit *permit, struct wr_request_gates *gates, bool sends);

/* Completes a permit with a single gate, which returned WEIR_GO. The lock is held. */
void wr_permit_grant_one(weir_permit *permit, const struct wr_locked_host *seen, bool sends);

/* Returns a random number for the jitter, 0 <= x < 1. It differs for each outcome, but is the same
 * again for the same seed. */
double wr_permit_jitter_unit(const weir_pacer *pacer, const struct wr_locked_host *seen, uint32_t seq);

/* Checks right before sending that all gates still agree. With `sends` the request then counts as
 * sent. Returns 0, or WEIR_E_WITHDRAWN if a gate disagrees: the permit then holds nothing. */
int wr_permit_confirm(weir_permit *permit, bool sends);

/* ---- acquiring (acquire.c) ---- */

#define WR_FLAGS_ALL (WEIR_REPORTS_SENT | WEIR_WAITS_BREAKER)

/* One caller's request for a permit. */
struct wr_claim {
    weir_pacer *pacer;
    weir_permit *permit;
    uint32_t flags;
    int64_t began_at;
    int64_t deadline_at;
    weir_decision decision; /* latest decision of a gate */
};

/* Checks the arguments and initialises a permit that holds nothing. Returns 0 or WEIR_E_INVAL, or 1
 * if pacing is off: the permit is then valid as it is. */
int wr_claim_begin(struct wr_claim *ret_claim, weir_pacer *pacer, const char *key, size_t key_bytes,
                   const char *address, uint32_t flags, int64_t timeout_ns, weir_permit *ret_permit);

/* Reports that the claim starts to wait at the gate of this query, as its decision says. */
void wr_claim_wait(struct wr_claim *claim, const struct wr_key_query *query);

/* Returns a witness that stores the life of the host whose queue is joined. */
struct wr_join_observer wr_life_observer(uint32_t *ret_life);

/* Notes that gate `i` is reserved. */
void wr_claim_note_reserved(struct wr_claim *claim, const struct wr_request_gates *gates, size_t i, uint32_t life,
                            const weir_receipt *receipt);

/* Gives back all reserved gates after a failure. */
void wr_claim_give_back(struct wr_claim *claim);

/* Confirms all reserved gates, as wr_permit_confirm. */
int wr_claim_confirm(struct wr_claim *claim);

/* Sets the error details of a failure. Returns `result`. */
int wr_claim_fail(const struct wr_claim *claim, int result);

/* Counts the result, and sets the error details of a failure. `hash` is the hash of the host key.
 * Returns `result`. */
int wr_claim_end(struct wr_claim *claim, uint64_t hash, int result);

#endif
