/* SPDX-License-Identifier: MIT */
/* line.h - standing in line: first come, first served, for limiters and for keys of a table.
 *
 *     head ──▶ ticket ──▶ ticket ──▶ ticket ◀── tail        each: permits, deadline, how to wake its owner
 *     late ──▶ ticket ──▶ ticket                            overdue, and not fetched yet
 *
 * Nobody hands permits out. Whoever is first polls when its time has come, takes the permits itself under the owner's
 * lock, leaves, and wakes the next. So a grant cannot race a time-out or a cancellation, and no permit is ever given to
 * somebody who has gone.
 *
 * Rules:
 *  1. Only the first ticket may take. While there is one, try is refused.
 *  2. A ticket joins, polls and leaves by its owner's hand alone. Others wake it, pinning it while they do, or move it
 *     aside to the late ones once it is overdue, so that nobody waits for somebody who does not come.
 *  3. Each ticket looks again when the one before it becomes overdue. Whoever leaves wakes the new first one, and the
 * one behind itself, who has another one before it now.
 *  4. Wakes are called with no lock held, and not from within a wake: those wait until it returns. A ticket's memory
 *     stays until the last wake has returned.
 */
#ifndef WR_SHELL_LINE_LINE_H
#define WR_SHELL_LINE_LINE_H

#include "shell/line/lock.h"

#include <stdbool.h>
#include <weir/limit.h>

struct wr_line;

/* What is decided on, valid while the owner's lock is held. */
struct wr_spot {
    const weir_stack *stack;
    void *state;
    uint64_t *acquired; /* permits granted */
    uint64_t *rejected; /* permits refused */
    uint32_t *denied;   /* refusals; stops at its maximum. NULL: nobody counts them */
};

/* What a line needs of the limiter or table that it belongs to. */
struct wr_line_ops {
    /* Takes the owner's lock. False if closed: then there is no spot. */
    bool (*enter)(struct wr_line *line, struct wr_spot *ret_spot);
    /* Gives the lock back; an empty line may be gone after this. */
    void (*leave)(struct wr_line *line);
    /* A ticket in line holds the owner's memory; this lets go of it, with no lock held. */
    void (*drop)(void *owner);
};

struct wr_line {
    const struct wr_line_ops *ops;
    void *owner;
    const weir_clock *clock;
    struct weir_ticket *head, *tail, *late;
    uint32_t depth;   /* tickets that wait */
    uint32_t members; /* and the late ones, and whoever else needs the line to stay */
};

struct weir_ticket {
    struct wr_line *line; /* NULL: not in line */
    struct weir_ticket *next, *prev;
    uint32_t permits;
    bool insists;         /* waits also for what an algorithm would give up on */
    int result;           /* WR_WAITING, 0 once granted, or why it never will be */
    weir_receipt receipt; /* once granted */
    int64_t deadline_at;  /* WEIR_FOREVER: none */
    weir_wake *wake;
    void *context;
    const weir_allocator *allocator; /* of a ticket made for an event loop */
    bool late;                       /* moved aside */
    bool told;                       /* that the line has closed */
    atomic_uint pins;                /* wakes to come or under way */
    atomic_bool wake_due;            /* some thread is about to wake it */
    struct weir_ticket *wake_next;   /* in that thread's list */
};

#define WR_WAITING 1

/* WEIR_E_INVAL unless it is a duration or WEIR_FOREVER. */
int wr_timeout_check(int64_t timeout_ns);

/* now + timeout, where WEIR_FOREVER stays what it is. */
int64_t wr_deadline(int64_t now, int64_t timeout_ns);

/* The other way round; 0 if the deadline is over. */
int64_t wr_time_left(int64_t now, int64_t deadline_at);

/* Fills a ticket that is not in line yet. */
void wr_ticket_init(struct weir_ticket *ret_ticket, uint32_t permits, int64_t deadline_at, weir_wake *wake,
                    void *context);

/* As weir_ticket_poll, for a ticket that is not granted yet: 0, WR_WAITING or why it never will be. The decision tells
 * what holds and for how long in any case (but WEIR_E_CLOSED), and ret_poll_at, if WR_WAITING, when to poll again. */
int wr_ticket_poll(struct weir_ticket *ticket, weir_decision *ret_decision, int64_t *ret_poll_at);

/* Leaves the line, if in it, and waits for wakes under way. The memory is the caller's again. If it was in line, the
 * decision (may be NULL) tells what would hold now. */
void wr_ticket_release(struct weir_ticket *ticket, weir_decision *ret_decision);

/* ---- with the owner's lock held ---- */

/* Grants the ticket if nobody waits and the rules allow, or puts it at the end; then (ticket->line is set) it needs a
 * hold of the owner. WEIR_E_FULL, WEIR_E_NEVER, or what an algorithm gives up with. */
int wr_line_join(struct wr_line *line, const struct wr_spot *spot, struct weir_ticket *ticket, int64_t now);

/* Counts what was decided. */
void wr_spot_count(const struct wr_spot *spot, bool granted, uint32_t permits);

/* Ask and try for somebody who is not in line. `line` may be NULL. */
weir_decision wr_line_ask(struct wr_line *line, const struct wr_spot *spot, int64_t now, uint32_t permits);
weir_decision wr_line_try(struct wr_line *line, const struct wr_spot *spot, int64_t now, uint32_t permits,
                          weir_receipt *ret_receipt);

/* The beginning of a blocking acquire: 0 if granted at once, WR_WAITING if it must stand in line, or
 * WEIR_E_CANCELLED. */
int wr_line_acquire(struct wr_line *line, const struct wr_spot *spot, int64_t now, uint32_t permits,
                    const weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision);

/* The first in line, pinned, to be given to wr_ticket_wake. NULL if nobody waits. */
struct weir_ticket *wr_line_first(struct wr_line *line, int64_t now);

/* The next one that was not told that the line has closed, pinned. NULL when all were. */
struct weir_ticket *wr_line_untold(struct wr_line *line);

/* ---- with no lock held ---- */

/* Wakes and unpins, now or, from within a wake, once that has returned. NULL is fine. */
void wr_ticket_wake(struct weir_ticket *ticket);

/* Returns when no wake of the ticket is under way any more, but for one that is calling this, and none will come. It
 * must be out of the line. */
void wr_ticket_await_wakes(struct weir_ticket *ticket);

/* Blocks until a ticket is granted, with a receipt, or fails. `join` is called once to put it in line; its error ends
 * the call and leaves the decision as it was. */
typedef int wr_join(void *context, struct weir_ticket *ticket);
int wr_wait(const weir_clock *clock, uint32_t permits, int64_t timeout_ns, weir_cancel *cancel, wr_join *join,
            void *context, weir_receipt *ret_receipt, weir_decision *ret_decision);

/* The end of a blocking acquire: gives the caller what it asked for. Returns `result`. */
int wr_wait_tell(int result, const weir_receipt *receipt, weir_decision decision, weir_receipt *ret_receipt,
                 weir_decision *ret_decision);

/* Makes a ticket on the heap and puts it in line. */
int wr_ticket_new(const weir_allocator *allocator, const weir_clock *clock, uint32_t permits, int64_t timeout_ns,
                  weir_wake *wake, void *context, wr_join *join, void *join_context, weir_ticket **ret_ticket);

/* ---- cancellation; NULL tokens never fire ---- */

struct wr_parker;

struct wr_cancel_link {
    struct wr_parker *parker;
    struct wr_cancel_link *next;
};

void wr_cancel_join(weir_cancel *cancel, struct wr_cancel_link *link);
void wr_cancel_leave(weir_cancel *cancel, struct wr_cancel_link *link);
bool wr_cancel_fired(const weir_cancel *cancel);

#endif
