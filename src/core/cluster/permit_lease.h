/* SPDX-License-Identifier: MIT */
/* permit_lease.h - lets several processes ("nodes") share one limit through a store.
 *
 * The store (Redis) holds the state of each key and charges it atomically. A node asks for the cost
 * of a request. If the limit is leased, it asks for *extra* permits as well and spends them later
 * without asking:
 *
 *     try -- enough is left ------------> GO; if little is left, ask for extra meanwhile
 *      |---- refused a moment ago ------> WAIT, without asking the store
 *      `---- else ----------------------> ASK; wr_permit_lease_answered() adds the extra of the reply
 *
 * The bound. For each key a node never has more than `batch` unspent permits, counting those that
 * it has asked for and may yet receive. At most `nodes` nodes hold permits: those with a
 * membership. A permit spent in some window of time was charged by the store in that window, or
 * earlier and was held when the window began. So in every window
 *
 *     admitted <= what the limit allows + nodes x batch,   batch = floor(overshoot x limit / nodes)
 *
 * in whatever order messages arrive, even if they are late or lost. For this bound permits need no
 * expiry of their own: they lapse only with the membership. Permits lost in transit were charged
 * and are never spent, so the error is on the safe side.
 */
#ifndef WR_CORE_CLUSTER_PERMIT_LEASE_H
#define WR_CORE_CLUSTER_PERMIT_LEASE_H

#include <weir/limit.h>

#define WR_CLUSTER_NODES_MAX 10000
#define WR_OVERSHOOT_MAX 1000000 /* millionths of the limit: the whole limit */

/* ---- terms ----------------------------------------------------------------------------------- */

struct wr_permit_lease_terms {
    uint32_t nodes; /* memberships; nodes beyond these ask the store for each request */
    uint32_t batch; /* most permits that a node holds per key; 0: it asks for each request */
};

/* Computes what nodes may hold under the rules of `stack`, with an overshoot in millionths of the
 * smallest limit. The terms are exact (batch 0) if a rule cannot be leased (spaced starts, permits
 * in flight) or the limit is too small. Returns WEIR_E_INVAL if an argument is out of range. */
int wr_permit_lease_terms_make(const weir_stack *stack, uint32_t nodes, uint32_t overshoot,
                               struct wr_permit_lease_terms *ret_terms);

/* Returns by how many permits any window may exceed the limit. */
uint64_t wr_permit_lease_bound(const struct wr_permit_lease_terms *terms);

/* Computes one node's part of a rule, for use while the store is down: all parts together are at
 * most the rule. Returns WEIR_E_ABSENT if the rule is too small to be divided. */
int wr_limit_node_part(const weir_limit *limit, uint32_t nodes, weir_limit *ret_limit);

/* ---- memberships ----------------------------------------------------------------------------- */

/* A node's membership. The store grants `nodes` of them for a limited time. All zero: none. */
struct wr_membership {
    int64_t until;   /* end of the membership, by this node's clock */
    uint32_t tenure; /* number of separate memberships so far; renewals do not count */
};

/* Records that the store granted or renewed the membership for `for_ns`, as asked for at `sent_at`.
 * The store's time began after `sent_at`, and one percent is subtracted for clocks of different
 * speed: the node's membership ends before the store ends it. */
void wr_membership_renew(struct wr_membership *membership, int64_t sent_at, int64_t now, int64_t for_ns);

bool wr_membership_is_held(const struct wr_membership *membership, int64_t now);

/* ---- leases ---------------------------------------------------------------------------------- */

/* The permits of one key that a node holds. All zero: none. */
struct wr_permit_lease {
    uint32_t left;         /* permits that may be spent without asking */
    uint32_t asked;        /* extra permits that were asked for and may still arrive */
    uint32_t number;       /* number of the last call for extra; replies to older ones are late */
    uint32_t tenure;       /* membership under which the permits are held */
    int64_t shut_until;    /* end of refusing costs >= `shut_permits` without asking the store */
    uint32_t shut_permits; /* smallest cost that is refused without asking */
    int64_t open_at;       /* when the store would grant that cost, as far as is known */
};

enum wr_permit_lease_way {
    WR_PERMIT_LEASE_GO,
    WR_PERMIT_LEASE_WAIT,
    WR_PERMIT_LEASE_ASK,
};

struct wr_permit_lease_move {
    enum wr_permit_lease_way way;
    uint32_t extra;  /* extra permits to ask for; with GO no request waits for the reply */
    uint32_t number; /* number of the call for extra, if extra > 0 */
    int64_t wait_ns; /* with WAIT: time until asking is worthwhile */
};

/* The store's reply. */
struct wr_permit_lease_reply {
    bool granted;         /* the cost of the request was granted; true if it asked for extra only */
    uint32_t extra;       /* extra permits granted */
    int64_t wait_ns;      /* if refused: time until the cost would be granted */
    int64_t full_wait_ns; /* time until all would be granted, extra included; 0: all was given */
};

/* Decides about one request that costs `permits`. Permits held under an earlier membership are
 * dropped, even if the node is a member again. */
struct wr_permit_lease_move wr_permit_lease_try(const struct wr_permit_lease_terms *terms,
                                                struct wr_permit_lease *lease, const struct wr_membership *membership,
                                                int64_t now, uint32_t permits);

#define WR_BATCH_WAIT_NS (100 * WEIR_MILLISECOND)
/* Longest time that a refusal is remembered: the key may be reset, or permits returned. */
#define WR_REFUSAL_CACHE_NS WEIR_SECOND

/* Takes the reply to a call for `permits` (0: for extra alone) and, if `number` is not 0, for
 * extra. A key that is short of permits is not asked for until a whole batch is available, but this
 * waits at most WR_BATCH_WAIT_NS longer than the request needs. So a key in demand is asked for by
 * the batch and not by the permit. */
void wr_permit_lease_answered(const struct wr_permit_lease_terms *terms, struct wr_permit_lease *lease,
                              const struct wr_membership *membership, int64_t now, uint32_t number, uint32_t permits,
                              const struct wr_permit_lease_reply *reply);

/* Ends a call for extra whose reply will not come or is no longer waited for. */
void wr_permit_lease_missed(struct wr_permit_lease *lease, uint32_t number);

/* Takes back granted permits that were not needed: the node holds them as far as its batch allows.
 * Returns how many of them it holds. */
uint32_t wr_permit_lease_give_back(const struct wr_permit_lease_terms *terms, struct wr_permit_lease *lease,
                                   const struct wr_membership *membership, int64_t now, uint32_t permits);

/* Drops the permits that are held, those that may still arrive, and remembered refusals. */
void wr_permit_lease_clear(struct wr_permit_lease *lease);

/* Returns true if the lease holds no state and can be discarded. */
bool wr_permit_lease_is_idle(const struct wr_permit_lease *lease, int64_t now);

/* ---- outages --------------------------------------------------------------------------------- */

#define WR_OUTAGE_MISSES 3 /* unanswered calls in a row that open the breaker */
#define WR_OUTAGE_FIRST                                                    \
    (50 * WEIR_MILLISECOND) /* longest wait until the first probe; doubled \
                             * for each probe that fails */
#define WR_OUTAGE_LONGEST (5 * WEIR_SECOND)

/* The circuit breaker for the store. All zero: the store is up. */
struct wr_outage {
    bool down; /* the breaker is open: the store is not asked */
    bool lost; /* the connection is gone; if only `down`, the store may still decide for others */
    bool probing;
    uint32_t misses; /* missed replies in a row; while down: failed probes */
    int64_t probe_at;
};

/* Returns true if the store may be asked. While it is down, one probe at a time may be sent. */
bool wr_outage_may_ask(struct wr_outage *outage, int64_t now);

/* Records that a reply did not come in time (or, for a probe, came late). `broken`: the connection
 * is gone, the store reported that it cannot work, or it was silent for so long that it must be
 * gone. `chance` is a random number that spreads the probes of the nodes. Returns true if the store
 * goes down with this call. */
bool wr_outage_missed(struct wr_outage *outage, int64_t now, bool broken, uint64_t chance);

/* Records a reply in time. Returns true if the store was down. */
bool wr_outage_answered(struct wr_outage *outage);

#endif
