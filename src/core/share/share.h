/* SPDX-License-Identifier: MIT */
/* share.h - one limit for several processes ("nodes"): what a node may decide by itself, and what it must ask the
 * store.
 *
 * The store (Redis) holds each key's state and charges it in one step. A node asks for what a request costs and, if the
 * limit is leased, for some *extra* permits, which it spends later without asking:
 *
 *     try ── enough is left ──────────────> GO, and if little is left, ask for more meanwhile
 *      ├──── refused a moment ago ────────> WAIT, and the store is spared
 *      └──── else ────────────────────────> ASK; told() then takes the extra of the answer in
 *
 * The bound. For each key a node never has more than `batch` permits that it was given or may yet be given and has not
 * spent, and at most `nodes` nodes hold any: those with a seat. Whatever is spent inside some window of time was
 * charged by the store inside it, or before it and held when it began. So in every window
 *
 *     admitted <= what the limit allows + nodes x batch,     batch = floor(overshoot x limit / nodes)
 *
 * in whatever order messages come, are late or get lost. Leases need no end of their own for that, so nothing lapses
 * but with the seat. What is lost on the way was charged and is never spent: it errs on the safe side.
 */
#ifndef WR_CORE_SHARE_SHARE_H
#define WR_CORE_SHARE_SHARE_H

#include <weir/limit.h>

#define WR_SHARE_NODES_MAX 10000
#define WR_OVERSHOOT_MAX 1000000 /* millionths: all of the limit */

/* ---- terms --------------------------------------------------------------------------------------------- */

struct wr_share_terms {
    uint32_t nodes; /* seats: more nodes than these ask for each request */
    uint32_t batch; /* most that a node holds for a key; 0: exact, each request is asked for */
};

/* What nodes may hold under these rules, with an overshoot in millionths of the smallest limit. Exact if a rule cannot
 * be leased (spaced starts, permits in flight), or the limit is too small. WEIR_E_INVAL. */
int wr_share_terms_make(const weir_stack *stack, uint32_t nodes, uint32_t overshoot, struct wr_share_terms *ret_terms);

/* By how much more than the limit may be admitted in any window. */
uint64_t wr_share_bound(const struct wr_share_terms *terms);

/* A node's own part of a rule, for when there is no store: all parts together are at most the rule. WEIR_E_ABSENT: it
 * is too small to be divided. */
int wr_share_part(const weir_limit *limit, uint32_t nodes, weir_limit *ret_limit);

/* ---- seats --------------------------------------------------------------------------------------------- */

/* The store gives out `nodes` seats, each to one node for a while. Zeroed: none. */
struct wr_seat {
    int64_t until;   /* by this node's clock */
    uint32_t tenure; /* one more each time that it was lost and won again */
};

/* The store gave, or renewed, a seat for `for_ns`, asked for at `sent_at`. Then the store's time had not begun, and a
 * hundredth is left for clocks that run at different speeds: a node gives up its seat before the store does. */
void wr_seat_won(struct wr_seat *seat, int64_t sent_at, int64_t now, int64_t for_ns);

bool wr_seat_held(const struct wr_seat *seat, int64_t now);

/* ---- leases -------------------------------------------------------------------------------------------- */

/* What a node holds of a key; zeroed is nothing. */
struct wr_lease {
    uint32_t left;         /* permits to spend */
    uint32_t asked;        /* permits beyond what requests cost, on their way perhaps */
    uint32_t number;       /* of the last ask that was for more: the answer to an older one is late */
    uint32_t tenure;       /* of the seat under which it is held */
    int64_t shut_until;    /* until then ... */
    uint32_t shut_permits; /* ... so many and more would be refused, */
    int64_t open_at;       /* and as far as is known until then */
};

enum wr_share_way {
    WR_SHARE_GO,
    WR_SHARE_WAIT,
    WR_SHARE_ASK,
};

struct wr_share_move {
    enum wr_share_way way;
    uint32_t extra;  /* ask for so many besides; with GO: for these alone, and nobody waits for it */
    uint32_t number; /* of that ask, if extra > 0 */
    int64_t wait_ns; /* with WAIT: until it is worth asking */
};

/* What the store said. */
struct wr_share_reply {
    bool granted;         /* what the request costs; true if nothing but extra was asked for */
    uint32_t extra;       /* given of what was asked for besides */
    int64_t wait_ns;      /* refused: until it would be granted */
    int64_t full_wait_ns; /* not all was given: until it would be, the extra too; else 0 */
};

/* One request. Whatever was held when the seat was lost is gone, also if it has been won again. */
struct wr_share_move wr_lease_try(const struct wr_share_terms *terms, struct wr_lease *lease,
                                  const struct wr_seat *seat, int64_t now, uint32_t permits);

#define WR_SHUT_LONGEST (100 * WEIR_MILLISECOND)
#define WR_SHUT_CACHE WEIR_SECOND /* for which a refusal is remembered: the key may be reset, or be given back to */

/* The answer to an ask for `permits` (0: for extra alone) and, if `number` is not 0, for extra. A key that is short is
 * left alone until a whole batch has come back, though for no longer than WR_SHUT_LONGEST beyond need: so a key in
 * demand is asked for by the batch and not by the permit. */
void wr_lease_told(const struct wr_share_terms *terms, struct wr_lease *lease, const struct wr_seat *seat, int64_t now,
                   uint32_t number, uint32_t permits, const struct wr_share_reply *reply);

/* No answer will come, or none is waited for any more. */
void wr_lease_missed(struct wr_lease *lease, uint32_t number);

/* What was granted was not needed after all: it is held again, as far as it may be. Returns how many. */
uint32_t wr_lease_give_back(const struct wr_share_terms *terms, struct wr_lease *lease, const struct wr_seat *seat,
                            int64_t now, uint32_t permits);

/* Lets go of what is held, of what is on its way, and of refusals. */
void wr_lease_forget(struct wr_lease *lease);

/* Whether nothing is lost if it is forgotten. */
bool wr_lease_idle(const struct wr_lease *lease, int64_t now);

/* ---- outages ------------------------------------------------------------------------------------------- */

#define WR_OUTAGE_MISSES 3 /* answers in a row that did not come in time */
#define WR_OUTAGE_FIRST                                                                           \
    (50 * WEIR_MILLISECOND) /* until the first look, and half of the longest one's wait at random \
                             */
#define WR_OUTAGE_LONGEST (5 * WEIR_SECOND)

/* The breaker on the store; zeroed: it is up. */
struct wr_outage {
    bool down; /* it is not asked */
    bool lost; /* nothing is heard of it either. If it is down and not lost, it may well decide for others */
    bool probing;
    uint32_t misses; /* in a row; while down: looks in vain */
    int64_t probe_at;
};

/* Whether to ask. While down one ask at a time is let through, as a probe. */
bool wr_outage_may_ask(struct wr_outage *outage, int64_t now);

/* An answer did not come in time, that of a probe was late; or, `broken`, the connection is gone, the store said that
 * it cannot, or was silent for so long that it must be gone. `chance` is any number, so that nodes do not come back all
 * at once. Returns whether the store is down from now on and was not before. */
bool wr_outage_missed(struct wr_outage *outage, int64_t now, bool broken, uint64_t chance);

/* It answered. Returns whether it was down. */
bool wr_outage_answered(struct wr_outage *outage);

#endif
