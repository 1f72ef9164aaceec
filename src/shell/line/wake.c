/* SPDX-License-Identifier: MIT */
/* wake.c - calling wakes: one after the other, never one within the other.
 *
 * A wake usually polls its ticket, and a ticket that is granted wakes the next: called at once, a line of a hundred
 * thousand would be a stack of as many calls. So each thread has a list, and whoever begins it works it off.
 */
#include "shell/line/line.h"

/* The wakes that this thread has to call, oldest first, and the ticket whose wake it is calling. */
static _Thread_local struct {
    struct weir_ticket *first, *last;
    struct weir_ticket *calling; /* NULL once it was freed by its own wake */
    bool working;
} mine;

static void unpin(struct weir_ticket *ticket)
{
    atomic_fetch_sub_explicit(&ticket->pins, 1, memory_order_release);
}

static struct weir_ticket *pop(void)
{
    struct weir_ticket *ticket = mine.first;
    if (ticket != NULL)
        mine.first = ticket->wake_next;
    return ticket;
}

static void work_off(void)
{
    mine.working = true;
    for (struct weir_ticket *ticket = pop(); ticket != NULL; ticket = pop()) {
        mine.calling = ticket;
        atomic_store_explicit(&ticket->wake_due, false,
                              memory_order_release); /* what comes from now on needs another */
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
        unpin(ticket); /* it is in somebody's list already */
        return;
    }
    ticket->wake_next = NULL;
    *(mine.first != NULL ? &mine.last->wake_next : &mine.first) = ticket;
    mine.last = ticket;
    if (!mine.working)
        work_off();
}

/* Takes the ticket out of this thread's list, if it is in it. */
static void forget(struct weir_ticket *ticket)
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
        forget(ticket);
    for (unsigned tries = 0; atomic_load_explicit(&ticket->pins, memory_order_acquire) != own; tries++)
        wr_lock_relax(tries);
}
