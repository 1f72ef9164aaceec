/* SPDX-License-Identifier: MIT */
/* wait.c - blocks a thread until its ticket is granted, and implements cancellation tokens. */
#include "base/alloc.h"
#include "base/error.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"
#include "limiter/queue/queue.h"

static void wake_parker(void *context)
{
    wr_unpark(context);
}

/* Polls and parks until the ticket is granted or fails. */
static int await_ticket_or_cancel(struct weir_ticket *ticket, struct wr_parker *parker, const weir_clock *clock,
                                  weir_cancel *cancel, weir_decision *ret_decision)
{
    for (;;) {
        int64_t poll_at;
        if (wr_cancel_fired(cancel))
            return WEIR_E_CANCELLED;
        int result = wr_ticket_poll(ticket, ret_decision, &poll_at);
        if (result != WR_WAITING)
            return result;
        wr_park(parker, clock, poll_at);
    }
}

int wr_ticket_wait(const weir_clock *clock, uint32_t permits, int64_t timeout_ns, weir_cancel *cancel,
                   wr_join_queue *join, void *context, weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    struct wr_parker parker;
    if (wr_parker_init(&parker) != 0)
        return WEIR_E_SYSTEM;
    struct weir_ticket ticket;
    wr_ticket_init(&ticket, permits, wr_deadline(wr_clock_now(clock), timeout_ns), wake_parker, &parker);
    struct wr_cancel_link link = {.parker = &parker};
    wr_cancel_join(cancel, &link);
    int result = join(context, &ticket);
    if (result == 0 && ticket.line == NULL)
        *ret_decision = (weir_decision){WEIR_GO, WEIR_REASON_NONE, 0};
    else if (result == 0)
        result = await_ticket_or_cancel(&ticket, &parker, clock, cancel, ret_decision);
    wr_ticket_release(&ticket, ret_decision);
    wr_cancel_leave(cancel, &link);
    wr_parker_release(&parker);
    if (result == 0)
        *ret_receipt = ticket.receipt;
    return result;
}

int wr_ticket_wait_finish(int result, const weir_receipt *receipt, weir_decision decision, weir_receipt *ret_receipt,
                          weir_decision *ret_decision)
{
    if (result != 0 && decision.verdict == WEIR_GO)
        decision.verdict = WEIR_WAIT; /* WEIR_GO would be wrong: nothing was taken */
    if (ret_receipt != NULL && result == 0)
        *ret_receipt = *receipt;
    if (ret_decision != NULL)
        *ret_decision = decision;
    return result;
}

/* ---- cancellation ---- */

struct weir_cancel {
    const weir_allocator *allocator;
    atomic_bool fired;
    pthread_mutex_t lock; /* guards the list; taken before a parker's lock */
    struct wr_cancel_link *waiting;
};

int weir_cancel_new(const weir_allocator *allocator, weir_cancel **ret_cancel)
{
    if (ret_cancel == NULL)
        return wr_invalid("ret_cancel is NULL; it must point to where the token goes");
    allocator = wr_allocator_or_system(allocator);
    weir_cancel *cancel = wr_alloc(allocator, sizeof *cancel, _Alignof(weir_cancel));
    if (cancel == NULL)
        return WEIR_E_NOMEM;
    if (pthread_mutex_init(&cancel->lock, NULL) != 0) {
        wr_free(allocator, cancel, sizeof *cancel, _Alignof(weir_cancel));
        return WEIR_E_SYSTEM;
    }
    cancel->allocator = allocator;
    *ret_cancel = cancel;
    return 0;
}

void weir_cancel_fire(weir_cancel *cancel)
{
    if (cancel == NULL)
        return;
    atomic_store(&cancel->fired, true);
    (void)pthread_mutex_lock(&cancel->lock);
    for (struct wr_cancel_link *link = cancel->waiting; link != NULL; link = link->next)
        wr_unpark(link->parker);
    (void)pthread_mutex_unlock(&cancel->lock);
}

void weir_cancel_free(weir_cancel *cancel)
{
    if (cancel == NULL)
        return;
    (void)pthread_mutex_destroy(&cancel->lock);
    wr_free(cancel->allocator, cancel, sizeof *cancel, _Alignof(weir_cancel));
}

bool wr_cancel_fired(const weir_cancel *cancel)
{
    return cancel != NULL && atomic_load(&cancel->fired);
}

void wr_cancel_join(weir_cancel *cancel, struct wr_cancel_link *link)
{
    if (cancel == NULL)
        return;
    (void)pthread_mutex_lock(&cancel->lock);
    link->next = cancel->waiting;
    cancel->waiting = link;
    (void)pthread_mutex_unlock(&cancel->lock);
}

void wr_cancel_leave(weir_cancel *cancel, struct wr_cancel_link *link)
{
    if (cancel == NULL)
        return;
    (void)pthread_mutex_lock(&cancel->lock);
    struct wr_cancel_link **at = &cancel->waiting;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    (void)pthread_mutex_unlock(&cancel->lock);
}
