/* SPDX-License-Identifier: MIT */
/* queue.h - the queue of waiters of a limiter or of a table's key: first come, first served.
 *
 *     head --> ticket --> ticket --> ticket <-- tail     a ticket: permits, deadline, callback
 *     late --> ticket --> ticket                         overdue, not yet freed by their owners
 *
 * Permits are not handed out to tickets. The owner of the first ticket polls it when its time has
 * come, takes the permits under the limiter's lock, leaves, and wakes the next. So a grant cannot
 * race with a timeout or cancellation, and permits never go to a caller that has left.
 *
 * Rules:
 *  1. Only the first ticket may take permits. While there is one, try is refused.
 *  2. Only its owner makes a ticket join, poll and leave. Other threads may wake it, and pin it
 *     meanwhile. They may move it to the late list once it is overdue, so that it blocks no others.
 *  3. A ticket polls when the one ahead becomes overdue. A ticket that leaves wakes the new first
 *     one, and the one behind itself, which now has another one ahead.
 *  4. Wake callbacks run with no lock held and are not nested: a wake requested within a wake runs
 *     after it. The memory of a ticket stays until its last wake has returned.
 */
#ifndef WR_LIMITER_QUEUE_QUEUE_H
#define WR_LIMITER_QUEUE_QUEUE_H

#include "base/seam.h"

#include "limiter/queue/lock.h"

#include <stdbool.h>
#include <weir/limit.h>

struct wr_queue;

/* The limiter that decides; valid while the owner's lock is held. */
struct wr_limit_state {
    const weir_stack *stack;
    void *state;
    uint64_t *acquired; /* counter of granted permits */
    uint64_t *rejected; /* counter of refused permits */
    uint32_t *denied;   /* counter of refusals, stops at its maximum; NULL: not counted */
};

/* Operations of the limiter or table that owns a queue. */
struct wr_queue_ops {
    /* Locks the owner and stores its limit state. Returns false if the owner is closed. */
    bool (*enter)(struct wr_queue *line, struct wr_limit_state *ret_spot);
    /* Releases the lock. An empty queue may be freed by this. */
    void (*leave)(struct wr_queue *line);
    /* Drops a ticket's reference to the owner; no lock is held. */
    void (*drop)(void *owner);
};

struct wr_queue {
    const struct wr_queue_ops *ops;
    void *owner;
    const weir_clock *clock;
    struct weir_ticket *head, *tail, *late;
    uint32_t depth;   /* number of waiting tickets */
    uint32_t members; /* waiting and late tickets, and other references to the queue */
};

struct weir_ticket {
    struct wr_queue *line; /* the queue; NULL: the ticket is not in one */
    struct weir_ticket *next, *prev;
    uint32_t permits;
    bool waits_always;    /* the ticket waits even if an algorithm gives up */
    int result;           /* WR_WAITING; 0 once granted; otherwise the error */
    weir_receipt receipt; /* receipt of the grant; valid once granted */
    int64_t deadline_at;  /* deadline, ns; WEIR_FOREVER: none */
    weir_wake *wake;
    void *context;
    const weir_allocator *allocator; /* frees the ticket; only set for event loops */
    bool late;                       /* the ticket is in the late list */
    bool told;                       /* the ticket was woken because the owner was closed */
    atomic_uint pins;                /* number of wakes that are due or running */
    atomic_bool wake_due;            /* the ticket is in the wake list of a thread */
    struct weir_ticket *wake_next;   /* next ticket in the wake list */
};

#define WR_WAITING 1

/* Returns WEIR_E_INVAL if the timeout is neither a valid duration nor WEIR_FOREVER. */
WR_SEAM int wr_timeout_check(int64_t timeout_ns);

/* Returns now + timeout_ns; WEIR_FOREVER for WEIR_FOREVER. */
WR_SEAM int64_t wr_deadline(int64_t now, int64_t timeout_ns);

/* Returns the time from `now` to the deadline; 0 if it has passed. */
int64_t wr_time_left(int64_t now, int64_t deadline_at);

/* Initialises a ticket that is not in a queue. */
WR_SEAM void wr_ticket_init(struct weir_ticket *ret_ticket, uint32_t permits, int64_t deadline_at, weir_wake *wake,
                            void *context);

/* Like weir_ticket_poll, for a ticket that waits. Returns 0 if it is granted, WR_WAITING, or an
 * error. *ret_decision is set except with WEIR_E_CLOSED; *ret_poll_at, the time of the next poll,
 * with WR_WAITING. */
int wr_ticket_poll(struct weir_ticket *ticket, weir_decision *ret_decision, int64_t *ret_poll_at);

/* Leaves the queue and waits for running wakes; then the caller may free the ticket. *ret_decision
 * (may be NULL) gets the decision as of now if the ticket was in a queue. */
void wr_ticket_release(struct weir_ticket *ticket, weir_decision *ret_decision);

/* ---- the owner's lock is held ---- */

/* Grants the ticket if there are no waiters and the rules allow it; otherwise appends it, and the
 * caller must add a reference to the owner (ticket->line is set). Returns WEIR_E_FULL,
 * WEIR_E_NEVER, or the error with which an algorithm gives up. */
int wr_queue_join(struct wr_queue *line, const struct wr_limit_state *spot, struct weir_ticket *ticket, int64_t now);

/* Counts a decision. */
void wr_limit_state_count(const struct wr_limit_state *spot, bool granted, uint32_t permits);

/* Ask or try without a ticket. `line` may be NULL. */
weir_decision wr_queue_ask(struct wr_queue *line, const struct wr_limit_state *spot, int64_t now, uint32_t permits);
weir_decision wr_queue_try(struct wr_queue *line, const struct wr_limit_state *spot, int64_t now, uint32_t permits,
                           weir_receipt *ret_receipt);

/* Begins a blocking acquire. Returns 0 if granted at once, WR_WAITING if it must wait in the queue,
 * or WEIR_E_CANCELLED. */
int wr_queue_acquire(struct wr_queue *line, const struct wr_limit_state *spot, int64_t now, uint32_t permits,
                     const weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision);

/* Returns the first ticket, pinned, for wr_ticket_wake; NULL if there are no waiters. */
struct weir_ticket *wr_queue_first(struct wr_queue *line, int64_t now);

/* After the owner was closed: returns the next ticket not woken yet, pinned; NULL if all were. */
struct weir_ticket *wr_queue_next_unnotified(struct wr_queue *line);

/* ---- no lock is held ---- */

/* Wakes and unpins the ticket. Within a wake callback, does so after that callback has returned.
 * Accepts NULL. */
WR_SEAM void wr_ticket_wake(struct weir_ticket *ticket);

/* Returns when no wake of the ticket is due or running, except one that makes this call. The ticket
 * must have left the queue. */
WR_SEAM void wr_ticket_await_wakes(struct weir_ticket *ticket);

/* Blocks until a ticket is granted, with a receipt, or fails. Calls `join` once to add it to a
 * queue. An error of `join` ends the call, with *ret_decision unchanged. */
typedef int wr_join_queue(void *context, struct weir_ticket *ticket);
int wr_ticket_wait(const weir_clock *clock, uint32_t permits, int64_t timeout_ns, weir_cancel *cancel,
                   wr_join_queue *join, void *context, weir_receipt *ret_receipt, weir_decision *ret_decision);

/* Ends a blocking acquire: stores receipt and decision where the caller wants them. Returns
 * `result`. */
int wr_ticket_wait_finish(int result, const weir_receipt *receipt, weir_decision decision, weir_receipt *ret_receipt,
                          weir_decision *ret_decision);

/* Allocates a ticket and adds it to a queue. */
int wr_ticket_new(const weir_allocator *allocator, const weir_clock *clock, uint32_t permits, int64_t timeout_ns,
                  weir_wake *wake, void *context, wr_join_queue *join, void *join_context, weir_ticket **ret_ticket);

/* ---- cancellation; a token that is NULL never fires ---- */

struct wr_parker;

struct wr_cancel_link {
    struct wr_parker *parker;
    struct wr_cancel_link *next;
};

WR_SEAM void wr_cancel_join(weir_cancel *cancel, struct wr_cancel_link *link);
WR_SEAM void wr_cancel_leave(weir_cancel *cancel, struct wr_cancel_link *link);
WR_SEAM bool wr_cancel_fired(const weir_cancel *cancel);

#endif
