/* SPDX-License-Identifier: MIT */
/* queue.c - the queue of waiters: tickets join it, are polled and leave it. */
#include "limiter/queue/queue.h"

#include "base/alloc.h"
#include "base/error.h"
#include "core/limit/algorithm.h"
#include "limiter/clock/clock.h"

/* Time until the next attempt if only other waiters stand in the way. */
#define BEHIND_OTHERS_NS WEIR_MILLISECOND

int wr_timeout_check(int64_t timeout_ns)
{
    if (timeout_ns < 0 || (timeout_ns > WEIR_DURATION_MAX && timeout_ns != WEIR_FOREVER))
        return wr_invalid("timeout_ns must be 0 to WEIR_DURATION_MAX, or WEIR_FOREVER");
    return 0;
}

int64_t wr_deadline(int64_t now, int64_t timeout_ns)
{
    return timeout_ns > WEIR_DURATION_MAX ? WEIR_FOREVER : now + timeout_ns;
}

int64_t wr_time_left(int64_t now, int64_t deadline_at)
{
    if (deadline_at == WEIR_FOREVER)
        return WEIR_FOREVER;
    return deadline_at > now ? deadline_at - now : 0;
}

void wr_ticket_init(struct weir_ticket *ret_ticket, uint32_t permits, int64_t deadline_at, weir_wake *wake,
                    void *context)
{
    *ret_ticket = (struct weir_ticket){
        .permits = permits, .result = WR_WAITING, .deadline_at = deadline_at, .wake = wake, .context = context};
}

/* ---- the list of tickets ---- */

static bool is_overdue(const struct weir_ticket *ticket, int64_t now)
{
    return now > ticket->deadline_at;
}

static uint32_t most_waiters(const weir_stack *stack)
{
    uint32_t most = WEIR_QUEUE_MAX;
    for (uint32_t i = 0; i < stack->count; i++)
        most = stack->limits[i].queue_max < most ? stack->limits[i].queue_max : most;
    return most;
}

static void append_ticket(struct wr_queue *line, struct weir_ticket *ticket)
{
    ticket->next = NULL;
    ticket->prev = line->tail;
    *(line->tail != NULL ? &line->tail->next : &line->head) = ticket;
    line->tail = ticket;
    line->depth++;
}

static void take_ticket_out(struct wr_queue *line, struct weir_ticket *ticket)
{
    struct weir_ticket **head = ticket->late ? &line->late : &line->head;
    *(ticket->prev != NULL ? &ticket->prev->next : head) = ticket->next;
    if (ticket->next != NULL)
        ticket->next->prev = ticket->prev;
    else if (!ticket->late)
        line->tail = ticket->prev;
    line->depth -= !ticket->late;
}

static void move_aside(struct wr_queue *line, struct weir_ticket *ticket)
{
    take_ticket_out(line, ticket);
    ticket->late = true;
    ticket->prev = NULL;
    ticket->next = line->late;
    if (line->late != NULL)
        line->late->prev = ticket;
    line->late = ticket;
}

/* Returns the first ticket that is not overdue; NULL if there is none. Moves overdue ones aside. */
static struct weir_ticket *first_in_time(struct wr_queue *line, int64_t now)
{
    while (line->head != NULL && is_overdue(line->head, now))
        move_aside(line, line->head);
    return line->head;
}

/* Returns the next ticket ahead that is not overdue; NULL if there is none. Moves overdue ones
 * aside. */
static struct weir_ticket *before_in_time(struct weir_ticket *ticket, int64_t now)
{
    while (ticket->prev != NULL && is_overdue(ticket->prev, now))
        move_aside(ticket->line, ticket->prev);
    return ticket->prev;
}

/* Returns 0, or the error with which an algorithm refuses waiters that do not insist. */
static int wait_error(const struct wr_limit_state *spot, int64_t now, uint32_t permits)
{
    int error = wr_stack_wait_error(spot->stack, spot->state, now);
    return error < 0 && weir_stack_ask(spot->stack, spot->state, now, permits).verdict != WEIR_GO ? error : 0;
}

int wr_queue_join(struct wr_queue *line, const struct wr_limit_state *spot, struct weir_ticket *ticket, int64_t now)
{
    weir_decision decision = {.verdict = WEIR_WAIT};
    /* without time to wait, the ticket would be overdue at its first poll */
    if (now >= ticket->deadline_at && first_in_time(line, now) == NULL)
        decision = weir_stack_try(spot->stack, spot->state, now, ticket->permits, &ticket->receipt);
    int bad = 0;
    if (decision.verdict != WEIR_GO && line->depth >= most_waiters(spot->stack))
        bad = WEIR_E_FULL;
    else if (decision.verdict != WEIR_GO && !ticket->waits_always)
        bad = wait_error(spot, now, ticket->permits);
    for (uint32_t i = 0; i < spot->stack->count; i++)
        if (ticket->permits > spot->stack->limits[i].permits)
            bad = WEIR_E_NEVER;
    if (decision.verdict == WEIR_GO || bad != 0) {
        ticket->result = bad;
        wr_limit_state_count(spot, bad == 0, ticket->permits);
        return bad;
    }
    ticket->line = line;
    line->members++;
    append_ticket(line, ticket);
    return 0;
}

static struct weir_ticket *pin(struct weir_ticket *ticket)
{
    if (ticket != NULL)
        atomic_fetch_add_explicit(&ticket->pins, 1, memory_order_relaxed);
    return ticket;
}

struct weir_ticket *wr_queue_first(struct wr_queue *line, int64_t now)
{
    return pin(first_in_time(line, now));
}

/* Moves the ticket to the end, so that each call takes constant time. */
struct weir_ticket *wr_queue_next_unnotified(struct wr_queue *line)
{
    struct weir_ticket *ticket = line->head;
    if (ticket == NULL || ticket->told)
        return NULL;
    take_ticket_out(line, ticket);
    append_ticket(line, ticket);
    ticket->told = true;
    return pin(ticket);
}

/* ---- decisions ---- */

void wr_limit_state_count(const struct wr_limit_state *spot, bool granted, uint32_t permits)
{
    *(granted ? spot->acquired : spot->rejected) += permits;
    if (!granted && spot->denied != NULL)
        *spot->denied += *spot->denied != UINT32_MAX;
}

weir_decision wr_queue_ask(struct wr_queue *line, const struct wr_limit_state *spot, int64_t now, uint32_t permits)
{
    weir_decision decision = weir_stack_ask(spot->stack, spot->state, now, permits);
    if (decision.verdict == WEIR_GO && line != NULL && first_in_time(line, now) != NULL)
        decision = (weir_decision){WEIR_WAIT, WEIR_REASON_QUEUE, BEHIND_OTHERS_NS};
    return decision;
}

weir_decision wr_queue_try(struct wr_queue *line, const struct wr_limit_state *spot, int64_t now, uint32_t permits,
                           weir_receipt *ret_receipt)
{
    bool behind_others = line != NULL && first_in_time(line, now) != NULL;
    weir_decision decision = behind_others ? wr_queue_ask(line, spot, now, permits)
                                           : weir_stack_try(spot->stack, spot->state, now, permits, ret_receipt);
    if (behind_others && ret_receipt != NULL)
        *ret_receipt = (weir_receipt){0}; /* weir_stack_try does the same on refusal */
    wr_limit_state_count(spot, decision.verdict == WEIR_GO, permits);
    return decision;
}

int wr_queue_acquire(struct wr_queue *line, const struct wr_limit_state *spot, int64_t now, uint32_t permits,
                     const weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    bool cancelled = wr_cancel_fired(cancel);
    if (cancelled || (line != NULL && first_in_time(line, now) != NULL)) {
        *ret_decision = wr_queue_ask(line, spot, now, permits);
        if (cancelled)
            wr_limit_state_count(spot, false, permits);
        return cancelled ? WEIR_E_CANCELLED : WR_WAITING;
    }
    *ret_decision = weir_stack_try(spot->stack, spot->state, now, permits, ret_receipt);
    if (ret_decision->verdict != WEIR_GO)
        return WR_WAITING;
    wr_limit_state_count(spot, true, permits);
    return 0;
}

/* Tries to grant a ticket. The decision is that of the rules, so that a caller that gives up knows
 * when to retry. The deadlines of this ticket and the one ahead only limit *ret_poll_at, the time
 * of the next poll. */
static int decide_ticket(struct weir_ticket *ticket, const struct wr_limit_state *spot, int64_t now,
                         weir_decision *ret_decision, int64_t *ret_poll_at)
{
    int64_t until = ticket->deadline_at;
    if (first_in_time(ticket->line, now) == ticket) {
        *ret_decision = weir_stack_try(spot->stack, spot->state, now, ticket->permits, &ticket->receipt);
        if (ret_decision->verdict == WEIR_GO)
            return 0;
        if (ret_decision->wait_ns < until - now)
            until = now + ret_decision->wait_ns;
    } else {
        *ret_decision = wr_queue_ask(ticket->line, spot, now, ticket->permits);
    }
    if (ret_decision->verdict == WEIR_DENY)
        return WEIR_E_NEVER;
    if (ticket->late || now >= ticket->deadline_at)
        return WEIR_E_TIMEOUT;
    int bad = ticket->waits_always ? 0 : wait_error(spot, now, ticket->permits);
    if (bad < 0)
        return bad;
    const struct weir_ticket *ahead = before_in_time(ticket, now);
    if (ahead != NULL && ahead->deadline_at < until)
        until = ahead->deadline_at + 1;
    *ret_poll_at = until;
    return WR_WAITING;
}

/* Tickets to wake after a ticket has left the queue. */
struct left {
    struct weir_ticket *first, *behind; /* pinned tickets; NULL: none to wake */
};

/* Removes a ticket from the queue and sets its result. The lock is held. */
static struct left leave_line(struct weir_ticket *ticket, const struct wr_limit_state *spot, int result, int64_t now)
{
    struct wr_queue *line = ticket->line;
    struct weir_ticket *behind = ticket->late ? NULL : ticket->next;
    take_ticket_out(line, ticket);
    line->members--;
    ticket->line = NULL;
    ticket->result = result;
    if (spot != NULL)
        wr_limit_state_count(spot, result == 0, ticket->permits);
    struct weir_ticket *ahead = first_in_time(line, now);
    return (struct left){pin(ahead), behind != ahead ? pin(behind) : NULL};
}

static void wake_left(struct left left)
{
    wr_ticket_wake(left.first);
    wr_ticket_wake(left.behind);
}

int wr_ticket_poll(struct weir_ticket *ticket, weir_decision *ret_decision, int64_t *ret_poll_at)
{
    struct wr_queue *line = ticket->line;
    const struct wr_queue_ops *ops = line->ops;
    void *owner = line->owner;
    int64_t now = wr_clock_now(line->clock);
    struct wr_limit_state spot;
    struct left left = {NULL, NULL};
    bool open = ops->enter(line, &spot);
    int result = open ? decide_ticket(ticket, &spot, now, ret_decision, ret_poll_at) : WEIR_E_CLOSED;
    if (result != WR_WAITING)
        left = leave_line(ticket, open ? &spot : NULL, result, now);
    else if (ticket->waits_always && wait_error(&spot, now, ticket->permits) != 0)
        /* the next ticket may not insist, and then must give up, too */
        left.behind = pin(ticket->next);
    ops->leave(line);
    wake_left(left);
    if (result != WR_WAITING)
        ops->drop(owner);
    return result;
}

int weir_ticket_poll(weir_ticket *ticket, weir_decision *ret_decision)
{
    if (ticket == NULL || ret_decision == NULL)
        return wr_invalid("ticket and ret_decision must not be NULL");
    if (ticket->result < 0)
        return ticket->result;
    weir_decision decision = {WEIR_GO, WEIR_REASON_NONE, 0};
    if (ticket->result == WR_WAITING) {
        int64_t poll_at;
        const weir_clock *clock = ticket->line->clock;
        int result = wr_ticket_poll(ticket, &decision, &poll_at);
        if (result < 0)
            return result;
        if (result == WR_WAITING)
            decision.wait_ns = wr_time_left(wr_clock_now(clock), poll_at);
    }
    *ret_decision = decision;
    return 0;
}

int weir_ticket_receipt(const weir_ticket *ticket, weir_receipt *ret_receipt)
{
    if (ticket == NULL || ret_receipt == NULL)
        return wr_invalid("ticket and ret_receipt must not be NULL");
    if (ticket->result != 0)
        return wr_invalid("the ticket is not granted; poll it until the verdict is WEIR_GO");
    *ret_receipt = ticket->receipt;
    return 0;
}

void wr_ticket_release(struct weir_ticket *ticket, weir_decision *ret_decision)
{
    struct wr_queue *line = ticket->line;
    if (line != NULL) {
        const struct wr_queue_ops *ops = line->ops;
        void *owner = line->owner;
        int64_t now = wr_clock_now(line->clock);
        struct wr_limit_state spot;
        bool open = ops->enter(line, &spot);
        struct left left = leave_line(ticket, open ? &spot : NULL, WEIR_E_CANCELLED, now);
        if (open && ret_decision != NULL)
            *ret_decision = wr_queue_ask(line, &spot, now, ticket->permits);
        ops->leave(line);
        wake_left(left);
        ops->drop(owner);
    }
    wr_ticket_await_wakes(ticket);
}

/* ---- tickets for event loops ---- */

int wr_ticket_new(const weir_allocator *allocator, const weir_clock *clock, uint32_t permits, int64_t timeout_ns,
                  weir_wake *wake, void *context, wr_join_queue *join, void *join_context, weir_ticket **ret_ticket)
{
    weir_ticket *ticket = wr_alloc(allocator, sizeof *ticket, _Alignof(weir_ticket));
    if (ticket == NULL)
        return WEIR_E_NOMEM;
    wr_ticket_init(ticket, permits, wr_deadline(wr_clock_now(clock), timeout_ns), wake, context);
    ticket->allocator = allocator;
    int bad = join(join_context, ticket);
    if (bad != 0) {
        wr_free(allocator, ticket, sizeof *ticket, _Alignof(weir_ticket));
        return bad;
    }
    *ret_ticket = ticket;
    return 0;
}

void weir_ticket_free(weir_ticket *ticket)
{
    if (ticket == NULL)
        return;
    wr_ticket_release(ticket, NULL);
    wr_free(ticket->allocator, ticket, sizeof *ticket, _Alignof(weir_ticket));
}
