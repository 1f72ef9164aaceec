/* SPDX-License-Identifier: MIT */
/* wake.c - runs wake callbacks one after the other, never nested.
 *
 * A wake usually polls its ticket, and a granted ticket wakes the next. If nested, a queue of a
 * hundred thousand would need a stack of as many calls. So each thread has a list of due wakes,
 * which the outermost call processes. */
#include "limiter/queue/queue.h"

/* The due wakes of this thread, oldest first, and the ticket whose wake is running. */
static _Thread_local struct {
    struct weir_ticket *first, *last;
    struct weir_ticket *calling; /* NULL once the ticket's own wake has freed it */
    bool working;
} mine;

static void unpin(struct weir_ticket *ticket)
{
    atomic_fetch_sub_explicit(&ticket->pins, 1, memory_order_release);
}

static struct weir_ticket *pop_due_wake(void)
{
    struct weir_ticket *ticket = mine.first;
    if (ticket != NULL)
        mine.first = ticket->wake_next;
    return ticket;
}

static void call_due_wakes(void)
{
    mine.working = true;
    for (struct weir_ticket *ticket = pop_due_wake(); ticket != NULL; ticket = pop_due_wake()) {
        mine.calling = ticket;
        atomic_store_explicit(&ticket->wake_due, false,
                              memory_order_release); /* changes from now on need another wake */
        ticket->wake(ticket->context);
        if (mine.calling != NULL)
            unpin(ticket);
    }
    mine.calling = NULL;
    mine.working = false;
}

void wr_ticket_wake(struct weir_ticket *ticket)
{
    if (ticket == NULL)
        return;
    if (atomic_exchange_explicit(&ticket->wake_due, true, memory_order_acq_rel)) {
        unpin(ticket); /* the ticket is in a thread's list already */
        return;
    }
    ticket->wake_next = NULL;
    *(mine.first != NULL ? &mine.last->wake_next : &mine.first) = ticket;
    mine.last = ticket;
    if (!mine.working)
        call_due_wakes();
}

/* Removes the ticket from this thread's list, if it is there. */
static void forget_due_wake(struct weir_ticket *ticket)
{
    struct weir_ticket *before = NULL;
    struct weir_ticket *at = mine.first;
    for (; at != NULL && at != ticket; at = at->wake_next)
        before = at;
    if (at == NULL)
        return;
    *(before != NULL ? &before->wake_next : &mine.first) = ticket->wake_next;
    if (mine.last == ticket)
        mine.last = before;
    unpin(ticket);
}

void wr_ticket_await_wakes(struct weir_ticket *ticket)
{
    unsigned own = mine.calling == ticket;
    if (own != 0)
        mine.calling = NULL;
    if (atomic_load_explicit(&ticket->pins, memory_order_acquire) != own)
        forget_due_wake(ticket);
    for (unsigned tries = 0; atomic_load_explicit(&ticket->pins, memory_order_acquire) != own; tries++)
        wr_lock_relax(tries);
}
