/* SPDX-License-Identifier: MIT */
/* gate_lease.h - the lease ("turn") under which one process at a time runs the gate of a host.
 *
 * All processes share one gate per host. The process with the turn starts requests as if it were
 * alone. When others wait and its time is up, it passes the gate on with its whole state. The store
 * keeps the holder of the turn and its end (by the store's clock), the queue of waiting processes,
 * the requests in flight of each process, messages to the holder, and the gate as last stored.
 *
 *     away -- want --> in the queue -- granted --> has the turn -- pass --> away
 *                                                       |  hold: extends the turn, stores
 *                                                       |        the gate, fetches messages
 *                                                       `- not extended in time: the turn ends
 *
 * The holder counts its turn from when it sent the call, minus one percent, so that it stops before
 * the store ends the turn. Two processes therefore never start requests at the same time, even if
 * messages are late or lost, a process stalls, or clocks differ.
 *
 * This module is pure: the next call follows from the state and the time. At most one call to the
 * store is pending.
 */
#ifndef WR_CORE_CLUSTER_GATE_LEASE_H
#define WR_CORE_CLUSTER_GATE_LEASE_H

#include <stdbool.h>
#include <weir/time.h>

#define WR_GATE_LEASE_NS (2 * WEIR_SECOND)                    /* length of a turn, unless extended */
#define WR_GATE_LEASE_TURN_NS (400 * WEIR_MILLISECOND)        /* turn length if others wait; at least one start */
#define WR_GATE_LEASE_RENEW_NS (300 * WEIR_MILLISECOND)       /* extension interval while alone on the host */
#define WR_GATE_LEASE_SHARED_RENEW_NS (20 * WEIR_MILLISECOND) /* extension interval while others send messages */
#define WR_GATE_LEASE_LINGER_NS (30 * WEIR_MILLISECOND)       /* idle time before passing the turn to a waiter */
#define WR_GATE_LEASE_IDLE_NS (500 * WEIR_MILLISECOND)        /* idle time before the turn ends without waiters */
#define WR_GATE_LEASE_WAITER_TTL_NS (1500 * WEIR_MILLISECOND) /* the store forgets a silent waiter after this */
#define WR_GATE_LEASE_IN_FLIGHT_TTL_NS (4 * WEIR_SECOND)      /* the store forgets reported requests after this */
#define WR_GATE_LEASE_IN_FLIGHT_RENEW_NS \
    (WR_GATE_LEASE_IN_FLIGHT_TTL_NS / 4)               /* interval of reporting requests in flight */
#define WR_GATE_LEASE_RETRY_NS (50 * WEIR_MILLISECOND) /* pause after a call without a reply */

enum wr_gate_lease_verb {
    WR_GATE_LEASE_NOTHING,
    WR_GATE_LEASE_WANT,  /* ask for the turn, or for a place in the queue */
    WR_GATE_LEASE_HOLD,  /* extend the turn */
    WR_GATE_LEASE_PASS,  /* end the turn */
    WR_GATE_LEASE_WRITE, /* send messages and the number of requests in flight */
};

/* The state that one process keeps about the turns of one host. Zeroed before the first call. */
struct wr_gate_lease {
    uint64_t token; /* token of the turn; 0: the turn is not held here */
    /* highest token seen so far; a store with a lower one has lost its data */
    uint64_t seen;
    int64_t until; /* end of the turn */
    int64_t taken_at;
    uint64_t taken_starts; /* requests started before the turn began */
    int64_t wanted_at;     /* last time that this process wanted to start a request */
    uint64_t starts;       /* requests started, as of the last wr_gate_lease_next */
    int64_t due_at;        /* time of the next call */
    int64_t asked_at;
    int64_t rest_until;            /* no call before this time, because the last one was not answered */
    enum wr_gate_lease_verb asked; /* call that waits for its reply, or NOTHING */
    bool asked_to_queue;           /* the pending call asks for a place in the queue */
    bool is_in_queue;              /* the store has this process in its queue */
    /* number of waiting processes, and of requests in flight elsewhere, by the last reply */
    uint32_t waiting, others;
    uint32_t flights_told;
    int64_t told_at;
};

/* The state of the gate in this process. */
struct wr_gate_lease_local {
    bool wants; /* a request waits for the gate, or is about to start */
    bool is_reserved;
    bool has_letters;
    bool has_news; /* the gate learned something that must be stored at once */
    bool leaves;   /* the process is about to exit */
    uint32_t flights;
    uint64_t starts;
    /* time until the next start while the gate is here, ns; or WEIR_UNTIL_RELEASE */
    int64_t wait_ns;
};

struct wr_gate_lease_move {
    enum wr_gate_lease_verb verb;
    /* for NOTHING: when to call wr_gate_lease_next; WEIR_FOREVER: when something changes */
    int64_t at;
    int64_t pass_ns; /* for HOLD: expected time until the turn is passed on, ns */
    bool waits;      /* for WANT and PASS: this process wants a place in the queue */
    bool is_over;    /* no state is worth keeping: nothing waits or is in flight */
};

/* The store's reply. */
struct wr_gate_lease_reply {
    bool is_ours; /* this process has the turn, newly or still */
    uint64_t token;
    uint32_t place;   /* place in the queue: number of processes before this one */
    uint32_t waiting; /* number of other processes that wait */
    uint32_t others;  /* number of requests in flight in other processes */
    int64_t busy_ns;  /* expected time until the current holder ends its turn, ns */
};

/* Returns true if this process has the turn and may start requests. */
bool wr_gate_lease_is_held(const struct wr_gate_lease *gate_lease, int64_t now);

/* Returns the next step. If its verb is not NOTHING, the call counts as sent, and
 * wr_gate_lease_answered or wr_gate_lease_missed must follow. After PASS this process no longer has
 * the turn, even if the call is lost. */
struct wr_gate_lease_move wr_gate_lease_next(struct wr_gate_lease *gate_lease, const struct wr_gate_lease_local *here,
                                             int64_t now);

/* Takes the reply to a call. Returns true if the turn begins with this reply; then call
 * wr_gate_lease_taken with the number of starts that the received gate has counted. */
bool wr_gate_lease_answered(struct wr_gate_lease *gate_lease, const struct wr_gate_lease_reply *reply, int64_t now);
void wr_gate_lease_taken(struct wr_gate_lease *gate_lease, uint64_t starts);

/* Ends a call that was not answered. */
void wr_gate_lease_missed(struct wr_gate_lease *gate_lease, int64_t now);

#endif
