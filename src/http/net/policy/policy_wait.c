/* SPDX-License-Identifier: MIT */
/* policy_wait.c - waits until robots.txt is known: tickets for event loops, and blocking calls. */
#include "base/error.h"
#include "http/net/policy/policy_internal.h"

#define WAITERS_MAX WEIR_QUEUE_MAX

/* ---- tickets ---- */

static void link_last(struct wr_policy *policy, struct wr_policy_ticket *ticket)
{
    ticket->next = NULL;
    ticket->prev = policy->last;
    *(policy->last != NULL ? &policy->last->next : &policy->first) = ticket;
    policy->last = ticket;
}

static void unlink_ticket(struct wr_policy *policy, struct wr_policy_ticket *ticket)
{
    *(ticket->prev != NULL ? &ticket->prev->next : &policy->first) = ticket->next;
    *(ticket->next != NULL ? &ticket->next->prev : &policy->last) = ticket->prev;
}

/* Fills in a ticket and adds it to its policy. After a failure there is nothing to release. */
static int add_ticket(struct wr_policies *policies, const struct wr_url *url, int64_t timeout_ns, weir_wake *wake,
                      void *context, struct wr_policy_ticket *ret_ticket)
{
    int64_t now = wr_clock_now(policies->clock);
    struct wr_policy *policy = NULL;
    wr_ticket_init(&ret_ticket->call, 1, WEIR_FOREVER, wake, context);
    wr_policies_lock(policies);
    int bad = policies->waiters < WAITERS_MAX ? wr_policy_get(policies, url, now, &policy) : WEIR_E_FULL;
    if (bad == 0) {
        ret_ticket->policies = policies;
        ret_ticket->policy = policy;
        ret_ticket->round = policy->round;
        ret_ticket->deadline_at = wr_deadline(now, timeout_ns);
        link_last(policy, ret_ticket);
        policy->holds++;
        policies->waiters++;
        wr_policies_hold(policies);
    }
    wr_policies_unlock(policies);
    return bad;
}

static void remove_ticket(struct wr_policy_ticket *ticket)
{
    struct wr_policies *policies = ticket->policies;
    wr_policies_lock(policies);
    unlink_ticket(ticket->policy, ticket);
    ticket->policy->holds--;
    policies->waiters--;
    wr_policies_unlock(policies);
    wr_ticket_await_wakes(&ticket->call);
    wr_policies_drop(policies);
}

/* Pins and returns the next ticket to wake in this round, and moves it to the end of the list. */
static struct wr_policy_ticket *next_unwoken(struct wr_policy *policy)
{
    struct wr_policy_ticket *ticket = policy->first;
    if (ticket == NULL || ticket->round == policy->round)
        return NULL;
    ticket->round = policy->round;
    unlink_ticket(policy, ticket);
    link_last(policy, ticket);
    (void)atomic_fetch_add_explicit(&ticket->call.pins, 1, memory_order_relaxed);
    return ticket;
}

void wr_policy_wake(struct wr_policies *policies, struct wr_policy *policy)
{
    for (;;) {
        wr_policies_lock(policies);
        struct wr_policy_ticket *ticket = next_unwoken(policy);
        wr_policies_unlock(policies);
        if (ticket == NULL)
            return;
        wr_ticket_wake(&ticket->call);
    }
}

/* ---- event loops ---- */

int wr_policies_enqueue(struct wr_policies *policies, const struct wr_url *url, int64_t timeout_ns, weir_wake *wake,
                        void *context, struct wr_policy_ticket **ret_ticket)
{
    if (wr_timeout_check(timeout_ns) != 0)
        return WEIR_E_INVAL;
    struct wr_policy_ticket *ticket = wr_alloc(policies->allocator, sizeof *ticket, _Alignof(struct wr_policy_ticket));
    if (ticket == NULL)
        return WEIR_E_NOMEM;
    int bad = add_ticket(policies, url, timeout_ns, wake, context, ticket);
    if (bad != 0)
        wr_free(policies->allocator, ticket, sizeof *ticket, _Alignof(struct wr_policy_ticket));
    else
        *ret_ticket = ticket;
    return bad;
}

int wr_policy_ticket_poll(struct wr_policy_ticket *ticket, struct wr_span target, struct wr_robots_decision *ret_ruling)
{
    struct wr_robots_decision ruling;
    int bad = wr_policy_ask(ticket->policies, ticket->policy, NULL, target, &ruling);
    if (bad != 0)
        return bad;
    if (ruling.decision.verdict == WEIR_WAIT && ticket->deadline_at != WEIR_FOREVER) {
        int64_t left_ns = ticket->deadline_at - wr_clock_now(ticket->policies->clock);
        if (left_ns <= 0)
            return WEIR_E_TIMEOUT;
        if (ruling.decision.wait_ns > left_ns)
            ruling.decision.wait_ns = left_ns;
    }
    *ret_ruling = ruling;
    return 0;
}

void wr_policy_ticket_free(struct wr_policy_ticket *ticket)
{
    if (ticket == NULL)
        return;
    const weir_allocator *allocator = ticket->policies->allocator;
    remove_ticket(ticket);
    wr_free(allocator, ticket, sizeof *ticket, _Alignof(struct wr_policy_ticket));
}

/* ---- blocking calls ---- */

static void unpark_caller(void *context)
{
    wr_unpark(context);
}

static int park_until_ruling(struct wr_policy_ticket *ticket, struct wr_parker *parker, struct wr_span target,
                             weir_cancel *cancel, struct wr_robots_decision *ret_ruling)
{
    const weir_clock *clock = ticket->policies->clock;
    for (;;) {
        struct wr_robots_decision ruling;
        if (wr_cancel_fired(cancel))
            return WEIR_E_CANCELLED;
        int bad = wr_policy_ticket_poll(ticket, target, &ruling);
        if (bad != 0)
            return bad;
        if (ruling.decision.verdict != WEIR_WAIT) {
            *ret_ruling = ruling;
            return 0;
        }
        wr_park(parker, clock, wr_deadline(wr_clock_now(clock), ruling.decision.wait_ns));
    }
}

static int await_ruling(struct wr_policies *policies, const struct wr_url *url, int64_t timeout_ns, weir_cancel *cancel,
                        struct wr_robots_decision *ret_ruling)
{
    struct wr_parker parker;
    struct wr_policy_ticket ticket;
    struct wr_cancel_link link = {.parker = &parker};
    if (wr_parker_init(&parker) != 0)
        return WEIR_E_SYSTEM;
    int bad = add_ticket(policies, url, timeout_ns, unpark_caller, &parker, &ticket);
    if (bad == 0) {
        wr_cancel_join(cancel, &link);
        bad = park_until_ruling(&ticket, &parker, wr_url_target(url), cancel, ret_ruling);
        wr_cancel_leave(cancel, &link);
        if (bad == WEIR_E_TIMEOUT || bad == WEIR_E_CANCELLED)
            wr_error_set_text("waiting for", ticket.policy->key, ticket.policy->key_bytes,
                              bad == WEIR_E_TIMEOUT ? "took too long" : "was cancelled");
        remove_ticket(&ticket);
    }
    wr_parker_release(&parker);
    return bad;
}

int wr_policies_await(struct wr_policies *policies, const struct wr_url *url, int64_t timeout_ns, weir_cancel *cancel,
                      struct wr_robots_decision *ret_ruling)
{
    struct wr_robots_decision ruling;
    if (wr_timeout_check(timeout_ns) != 0)
        return WEIR_E_INVAL;
    if (wr_cancel_fired(cancel))
        return WEIR_E_CANCELLED;
    int bad = wr_policies_ask(policies, url, &ruling); /* usually the rules are known */
    if (bad == 0 && ruling.decision.verdict == WEIR_WAIT)
        bad = await_ruling(policies, url, timeout_ns, cancel, &ruling);
    if (bad == 0)
        *ret_ruling = ruling;
    return bad;
}

/* ---- robots.txt and gate ---- */

/* Returns the time left until `deadline_at`, ns; WEIR_FOREVER without a deadline. */
static int64_t time_left(const struct wr_policies *policies, int64_t deadline_at)
{
    if (deadline_at == WEIR_FOREVER)
        return WEIR_FOREVER;
    int64_t left_ns = deadline_at - wr_clock_now(policies->clock);
    return left_ns > 0 ? left_ns : 0;
}

/* Checks after the wait at the gate that the reserved permit may still be used. If so, marks it as
 * sent, unless its owner does that (WEIR_REPORTS_SENT). Returns 1 if it may not; the permit then
 * holds nothing. */
static int confirm_permit(struct wr_policies *policies, const struct wr_url *url, uint32_t flags, weir_permit *permit,
                          struct wr_robots_decision *ret_ruling)
{
    int bad = wr_policies_ask(policies, url, ret_ruling);
    if (bad == 0 && ret_ruling->decision.verdict == WEIR_GO && (flags & WEIR_REPORTS_SENT) == 0)
        bad = weir_permit_sent(permit);
    if (bad == 0 && ret_ruling->decision.verdict == WEIR_GO)
        return 0;
    weir_permit_abandon(permit);
    return bad == 0 || bad == WEIR_E_WITHDRAWN ? 1 : bad;
}

int wr_policies_acquire(struct wr_policies *policies, const struct wr_url *url, uint32_t flags, int64_t timeout_ns,
                        weir_cancel *cancel, weir_permit *ret_permit, struct wr_robots_decision *ret_ruling)
{
    char key[WEIR_PACE_KEY_MAX + 1];
    struct wr_buf buf;
    struct wr_robots_decision ruling;
    int bad;
    ret_permit->pacer = NULL;
    if (wr_timeout_check(timeout_ns) != 0)
        return WEIR_E_INVAL;
    int64_t deadline_at = wr_deadline(wr_clock_now(policies->clock), timeout_ns);
    wr_buf_init_fixed(&buf, key, sizeof key);
    wr_url_append_key(&buf, url);
    do {
        bad = wr_policies_await(policies, url, time_left(policies, deadline_at), cancel, &ruling);
        if (bad != 0 || ruling.decision.verdict == WEIR_DENY)
            break;
        bad = weir_pacer_acquire(policies->options.pacer, buf.bytes, buf.length, flags | WEIR_REPORTS_SENT,
                                 time_left(policies, deadline_at), cancel, ret_permit, NULL);
        if (bad == 0)
            bad = confirm_permit(policies, url, flags, ret_permit, &ruling);
    } while (bad == 1);
    if (bad == 0)
        *ret_ruling = ruling;
    return bad;
}
