/* SPDX-License-Identifier: MIT */
/* limiter.c - a limiter for one stream of requests: rules, their state, a lock and a queue of
 * waiters. */
#include "base/alloc.h"
#include "base/error.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"
#include "limiter/queue/queue.h"

#include <string.h>

struct weir_limiter {
    struct wr_lock lock; /* guards the members below, except the constants */
    bool closed;
    void *state; /* state of the rules, stack.state_bytes */
    weir_stack stack;
    struct wr_queue line;
    uint64_t acquired, rejected;
    const weir_clock *clock;
    const weir_allocator *allocator;
    atomic_uint holds; /* references: the owner's, and one per ticket in the queue */
};

static int check_limiter(const weir_limiter *limiter)
{
    return limiter != NULL ? 0 : wr_invalid("limiter is NULL; make one with weir_limiter_new");
}

static int check_permits(const weir_limiter *limiter, uint32_t permits)
{
    return permits != 0 ? check_limiter(limiter) : wr_invalid("permits is 0; it must be 1 to WEIR_PERMITS_MAX");
}

static struct wr_limit_state limit_state_of(weir_limiter *limiter)
{
    return (struct wr_limit_state){&limiter->stack, limiter->state, &limiter->acquired, &limiter->rejected, NULL};
}

static void release_limiter_ref(void *owner)
{
    weir_limiter *limiter = owner;
    if (atomic_fetch_sub_explicit(&limiter->holds, 1, memory_order_acq_rel) != 1)
        return;
    wr_free(limiter->allocator, limiter->state, limiter->stack.state_bytes, 8);
    wr_free(limiter->allocator, limiter, sizeof *limiter, _Alignof(weir_limiter));
}

static bool enter_limiter(struct wr_queue *line, struct wr_limit_state *ret_spot)
{
    weir_limiter *limiter = line->owner;
    wr_lock_take(&limiter->lock);
    if (limiter->closed)
        return false;
    *ret_spot = limit_state_of(limiter);
    return true;
}

static void leave_limiter(struct wr_queue *line)
{
    wr_lock_give(&((weir_limiter *)line->owner)->lock);
}

static const struct wr_queue_ops line_ops = {enter_limiter, leave_limiter, release_limiter_ref};

/* ---- creation ---- */

void weir_limiter_options_init(weir_limiter_options *ret_options)
{
    if (ret_options != NULL)
        *ret_options = (weir_limiter_options){.size = sizeof *ret_options};
}

int weir_limiter_new(const weir_limit *limits, size_t count, const weir_limiter_options *options,
                     weir_limiter **ret_limiter)
{
    weir_limiter_options defaults;
    weir_limiter_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    if (ret_limiter == NULL)
        return wr_invalid("ret_limiter is NULL; it must point to where the limiter goes");
    if (options->size != sizeof *options)
        return wr_invalid("options->size is not that of weir_limiter_options; use weir_limiter_options_init");
    weir_stack stack;
    if (weir_stack_init(&stack, limits, count) != 0)
        return WEIR_E_INVAL;
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    weir_limiter *limiter = wr_alloc(allocator, sizeof *limiter, _Alignof(weir_limiter));
    void *state = wr_alloc(allocator, stack.state_bytes, 8);
    if (limiter == NULL || state == NULL) {
        wr_free(allocator, limiter, sizeof *limiter, _Alignof(weir_limiter));
        wr_free(allocator, state, stack.state_bytes, 8);
        return WEIR_E_NOMEM;
    }
    limiter->stack = stack;
    limiter->state = state;
    limiter->clock = wr_clock_or_fast(options->clock);
    limiter->allocator = allocator;
    limiter->line = (struct wr_queue){.ops = &line_ops, .owner = limiter, .clock = limiter->clock};
    atomic_init(&limiter->holds, 1);
    weir_stack_start(&limiter->stack, state, wr_clock_now(limiter->clock));
    *ret_limiter = limiter;
    return 0;
}

/* ---- decisions ---- */

int weir_limiter_reserve(weir_limiter *limiter, uint32_t permits, weir_receipt *ret_receipt,
                         weir_decision *ret_decision)
{
    int bad = check_permits(limiter, permits);
    if (bad != 0)
        return bad;
    if (ret_decision == NULL)
        return wr_invalid("ret_decision is NULL; a verdict must be looked at");
    int64_t now = wr_clock_now(limiter->clock);
    struct wr_limit_state spot;
    bool open = enter_limiter(&limiter->line, &spot);
    if (open)
        *ret_decision = wr_queue_try(&limiter->line, &spot, now, permits, ret_receipt);
    leave_limiter(&limiter->line);
    return open ? 0 : WEIR_E_CLOSED;
}

int weir_limiter_try(weir_limiter *limiter, uint32_t permits, weir_decision *ret_decision)
{
    return weir_limiter_reserve(limiter, permits, NULL, ret_decision);
}

/* Unlocks the limiter after a call that may have returned permits or changed the rules, and wakes
 * the first waiter. */
static void leave_limiter_and_wake(weir_limiter *limiter, int64_t now)
{
    struct weir_ticket *first = wr_queue_first(&limiter->line, now);
    leave_limiter(&limiter->line);
    wr_ticket_wake(first);
}

int weir_limiter_settle(weir_limiter *limiter, weir_receipt *receipt, uint32_t used)
{
    int bad = check_limiter(limiter);
    if (bad != 0)
        return bad;
    if (receipt == NULL)
        return wr_invalid("receipt is NULL; it must come from weir_limiter_reserve or weir_limiter_acquire");
    int64_t now = wr_clock_now(limiter->clock);
    struct wr_limit_state spot;
    bool open = enter_limiter(&limiter->line, &spot);
    if (open)
        weir_stack_settle(spot.stack, spot.state, now, receipt, used);
    leave_limiter_and_wake(limiter, now);
    return open ? 0 : WEIR_E_CLOSED;
}

int weir_limiter_release(weir_limiter *limiter, uint32_t permits)
{
    int bad = check_permits(limiter, permits);
    if (bad != 0)
        return bad;
    int64_t now = wr_clock_now(limiter->clock);
    struct wr_limit_state spot;
    bool open = enter_limiter(&limiter->line, &spot);
    if (open)
        weir_stack_release(spot.stack, spot.state, permits);
    leave_limiter_and_wake(limiter, now);
    return open ? 0 : WEIR_E_CLOSED;
}

int weir_limiter_change(weir_limiter *limiter, const weir_limit *limits, size_t count)
{
    int bad = check_limiter(limiter);
    if (bad != 0)
        return bad;
    weir_stack stack;
    if (weir_stack_init(&stack, limits, count) != 0)
        return WEIR_E_INVAL;
    /* saved before the wake, which may free the limiter */
    const weir_allocator *allocator = limiter->allocator;
    void *state = wr_alloc(allocator, stack.state_bytes, 8);
    if (state == NULL)
        return WEIR_E_NOMEM;
    size_t state_bytes = stack.state_bytes; /* size of `state`, which is freed at the end */
    int64_t now = wr_clock_now(limiter->clock);
    struct wr_limit_state spot;
    bad = enter_limiter(&limiter->line, &spot) ? 0 : WEIR_E_CLOSED;
    if (bad == 0)
        bad = weir_stack_carry(spot.stack, spot.state, &stack, state, now);
    if (bad == 0) {
        void *old = limiter->state;
        limiter->state = state;
        state = old;
        state_bytes = limiter->stack.state_bytes;
        limiter->stack = stack;
    }
    leave_limiter_and_wake(limiter, now);
    wr_free(allocator, state, state_bytes, 8);
    return bad;
}

/* ---- waiting ---- */

static int check_limiter_wait(const weir_limiter *limiter, uint32_t permits, int64_t timeout_ns)
{
    int bad = check_permits(limiter, permits);
    return bad != 0 ? bad : wr_timeout_check(timeout_ns);
}

static int join_limiter_queue(void *context, struct weir_ticket *ticket)
{
    weir_limiter *limiter = context;
    int64_t now = wr_clock_now(limiter->clock);
    struct wr_limit_state spot;
    int bad = enter_limiter(&limiter->line, &spot) ? 0 : WEIR_E_CLOSED;
    if (bad == 0)
        bad = wr_queue_join(&limiter->line, &spot, ticket, now);
    if (ticket->line != NULL)
        atomic_fetch_add_explicit(&limiter->holds, 1, memory_order_relaxed);
    leave_limiter(&limiter->line);
    return bad;
}

static int acquire_at_once(weir_limiter *limiter, uint32_t permits, const weir_cancel *cancel,
                           weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    int64_t now = wr_clock_now(limiter->clock);
    struct wr_limit_state spot;
    int result = WEIR_E_CLOSED;
    if (enter_limiter(&limiter->line, &spot))
        result = wr_queue_acquire(&limiter->line, &spot, now, permits, cancel, ret_receipt, ret_decision);
    leave_limiter(&limiter->line);
    return result;
}

int weir_limiter_acquire(weir_limiter *limiter, uint32_t permits, int64_t timeout_ns, weir_cancel *cancel,
                         weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    int result = check_limiter_wait(limiter, permits, timeout_ns);
    if (result != 0)
        return result;
    weir_receipt receipt;
    weir_decision decision = {WEIR_WAIT, WEIR_REASON_NONE, 0};
    result = acquire_at_once(limiter, permits, cancel, &receipt, &decision);
    if (result == WR_WAITING)
        result = wr_ticket_wait(limiter->clock, permits, timeout_ns, cancel, join_limiter_queue, limiter, &receipt,
                                &decision);
    return wr_ticket_wait_finish(result, &receipt, decision, ret_receipt, ret_decision);
}

int weir_limiter_enqueue(weir_limiter *limiter, uint32_t permits, int64_t timeout_ns, weir_wake *wake, void *context,
                         weir_ticket **ret_ticket)
{
    int bad = check_limiter_wait(limiter, permits, timeout_ns);
    if (bad != 0)
        return bad;
    if (wake == NULL || ret_ticket == NULL)
        return wr_invalid("wake and ret_ticket must not be NULL");
    return wr_ticket_new(limiter->allocator, limiter->clock, permits, timeout_ns, wake, context, join_limiter_queue,
                         limiter, ret_ticket);
}

/* ---- inspection ---- */

int weir_limiter_peek(weir_limiter *limiter, weir_quota *ret_quota)
{
    int bad = check_limiter(limiter);
    if (bad != 0)
        return bad;
    if (ret_quota == NULL)
        return wr_invalid("ret_quota is NULL; it must point to where the quota goes");
    int64_t now = wr_clock_now(limiter->clock);
    struct wr_limit_state spot;
    bool open = enter_limiter(&limiter->line, &spot);
    if (open)
        weir_stack_peek(spot.stack, spot.state, now, ret_quota);
    leave_limiter(&limiter->line);
    return open ? 0 : WEIR_E_CLOSED;
}

int weir_limiter_stats_get(weir_limiter *limiter, weir_limiter_stats *ret_stats)
{
    int bad = check_limiter(limiter);
    if (bad != 0)
        return bad;
    if (ret_stats == NULL)
        return wr_invalid("ret_stats is NULL; it must point to where the numbers go");
    int64_t now = wr_clock_now(limiter->clock);
    struct wr_limit_state spot;
    weir_quota quota;
    bool open = enter_limiter(&limiter->line, &spot);
    if (open) {
        weir_stack_peek(spot.stack, spot.state, now, &quota);
        *ret_stats = (weir_limiter_stats){.acquired = limiter->acquired,
                                          .rejected = limiter->rejected,
                                          .current = quota.remaining,
                                          .max = quota.limit,
                                          .queue_depth = limiter->line.depth};
    }
    leave_limiter(&limiter->line);
    return open ? 0 : WEIR_E_CLOSED;
}

/* ---- closing ---- */

void weir_limiter_close(weir_limiter *limiter)
{
    if (limiter == NULL)
        return;
    struct weir_ticket *ticket;
    do {
        wr_lock_take(&limiter->lock);
        limiter->closed = true;
        ticket = wr_queue_next_unnotified(&limiter->line);
        wr_lock_give(&limiter->lock);
        wr_ticket_wake(ticket);
    } while (ticket != NULL);
}

void weir_limiter_free(weir_limiter *limiter)
{
    if (limiter == NULL)
        return;
    weir_limiter_close(limiter);
    release_limiter_ref(limiter);
}
