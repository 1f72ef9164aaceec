/* SPDX-License-Identifier: MIT */
/* ticket.c - Waits for a permit without a thread, with one ticket after the other per gate. */
#include "limiter/pacer/pacer.h"

struct weir_pace_ticket {
    const weir_allocator *allocator;
    struct wr_claim claim;
    struct wr_request_gates gates;
    size_t stage;                                     /* index of the gate that it waits for */
    struct weir_ticket tickets[WR_REQUEST_GATES_MAX]; /* one per gate, used once because wakes may come late */
    uint32_t life;                                    /* life of the host that it waits for */
    bool waits;                                       /* the wait at this gate was reported */
    int result;                                       /* WR_WAITING, 0 after the hand-over, or an error */
    weir_permit permit;
    weir_wake *wake;
    void *context;
};

static int join_stage(weir_pace_ticket *ticket)
{
    struct wr_table_part *part = &ticket->gates.parts[ticket->stage];
    struct weir_ticket *at = &ticket->tickets[ticket->stage];
    part->query.now = wr_clock_now(part->table->clock);
    wr_ticket_init(at, 1, ticket->claim.deadline_at, ticket->wake, ticket->context);
    ticket->waits = false;
    struct wr_join_observer witness = wr_life_observer(&ticket->life);
    return wr_table_join(part->table, &part->query, at, &witness);
}

/* Reserves as many gates as possible. Returns the same as wr_ticket_poll. */
static int advance_pace_ticket(weir_pace_ticket *ticket, int64_t *ret_poll_at)
{
    int result = 0;
    while (result == 0 && ticket->stage < ticket->gates.count) {
        struct weir_ticket *at = &ticket->tickets[ticket->stage];
        result = at->result == WR_WAITING ? wr_ticket_poll(at, &ticket->claim.decision, ret_poll_at) : at->result;
        if (result != 0)
            break;
        wr_claim_note_reserved(&ticket->claim, &ticket->gates, ticket->stage, ticket->life, &at->receipt);
        if (++ticket->stage < ticket->gates.count)
            result = join_stage(ticket);
    }
    return result != 0 ? result : wr_claim_confirm(&ticket->claim);
}

static int poll_gates(weir_pace_ticket *ticket)
{
    int64_t poll_at = 0;
    int result = advance_pace_ticket(ticket, &poll_at);
    if (result == WR_WAITING && !ticket->waits) {
        ticket->waits = true;
        wr_claim_wait(&ticket->claim, &ticket->gates.parts[ticket->stage].query);
    }
    if (result == WR_WAITING) {
        ticket->claim.decision.wait_ns = wr_time_left(wr_clock_now(ticket->claim.pacer->clock), poll_at);
        return result;
    }
    if (result != 0)
        wr_claim_give_back(&ticket->claim);
    return wr_claim_end(&ticket->claim, ticket->gates.parts[0].query.hash, result);
}

int weir_pace_ticket_poll(weir_pace_ticket *ticket, weir_permit *ret_permit, weir_decision *ret_decision)
{
    if (ticket == NULL || ret_permit == NULL || ret_decision == NULL)
        return wr_invalid("ticket, ret_permit and ret_decision must not be NULL");
    if (ticket->result == 0)
        return wr_invalid("the ticket's permit was handed over already; free the ticket");
    if (ticket->result == WR_WAITING && ticket->gates.count > 0)
        ticket->result = poll_gates(ticket);
    else if (ticket->result == WR_WAITING)
        ticket->result = 0; /* pacing is off */
    if (ticket->result < 0)
        return wr_claim_fail(&ticket->claim, ticket->result); /* may report it repeatedly */
    *ret_decision = ticket->claim.decision;
    ret_permit->pacer = NULL;
    if (ticket->result == 0) {
        *ret_permit = ticket->permit;
        ticket->permit.pacer = NULL;
    }
    return 0;
}

int weir_pacer_enqueue(weir_pacer *pacer, const char *key, size_t key_bytes, const char *address, uint32_t flags,
                       int64_t timeout_ns, weir_wake *wake, void *context, weir_pace_ticket **ret_ticket)
{
    struct wr_claim claim;
    weir_permit permit;
    if (wake == NULL || ret_ticket == NULL)
        return wr_invalid("wake and ret_ticket must not be NULL");
    int result = wr_claim_begin(&claim, pacer, key, key_bytes, address, flags, timeout_ns, &permit);
    if (result < 0)
        return result;
    weir_pace_ticket *ticket = wr_alloc(pacer->allocator, sizeof *ticket, _Alignof(weir_pace_ticket));
    if (ticket == NULL)
        return wr_failed(WEIR_E_NOMEM);
    ticket->allocator = pacer->allocator;
    ticket->claim = claim;
    ticket->permit = permit;
    ticket->claim.permit = &ticket->permit;
    ticket->result = WR_WAITING;
    ticket->wake = wake;
    ticket->context = context;
    if (result == 0) {
        wr_request_gates_init(&ticket->gates, pacer, &ticket->permit, claim.began_at,
                              (flags & WEIR_WAITS_BREAKER) != 0);
        result = join_stage(ticket);
    }
    if (result < 0) {
        result = wr_claim_end(&ticket->claim, ticket->gates.parts[0].query.hash, result);
        wr_free(pacer->allocator, ticket, sizeof *ticket, _Alignof(weir_pace_ticket));
        return result;
    }
    wr_pacer_ref(pacer);
    *ret_ticket = ticket;
    return 0;
}

void weir_pace_ticket_free(weir_pace_ticket *ticket)
{
    if (ticket == NULL)
        return;
    for (size_t i = 0; i < WR_REQUEST_GATES_MAX; i++)
        wr_ticket_release(&ticket->tickets[i], NULL);
    if (ticket->result == WR_WAITING)
        wr_claim_give_back(&ticket->claim);
    wr_pacer_unref(ticket->claim.pacer);
    wr_free(ticket->allocator, ticket, sizeof *ticket, _Alignof(weir_pace_ticket));
}
