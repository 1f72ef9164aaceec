/* SPDX-License-Identifier: MIT */
/* turn.c - standing in line for one rule after the other, without a thread.
 *
 * All keys are read when the turn is made, for the request's texts are not kept. Then each rule in force is waited for
 * in its order; those in shadow are asked last, at once.
 */
#include "base/alloc.h"
#include "shell/clock/clock.h"
#include "shell/line/line.h"
#include "shell/rulebook/book.h"

#include <string.h>

struct wr_turn {
    struct wr_rulebook *book;
    struct wr_edition *edition;
    weir_wake *wake;
    void *context;
    int64_t until; /* or WEIR_FOREVER */
    uint32_t permits[WEIR_RULINGS_MAX];
    uint32_t in_force; /* rulings before those in shadow */
    uint32_t at;       /* the ruling that is waited for */
    weir_ticket *ticket;
    bool over, told;
    struct wr_verdict verdict;
};

/* ---- beginning ----------------------------------------------------------------------------------------- */

/* Adds the rulings of rules in force, or in shadow. False if there is no room for all of them. */
static bool prepare(struct wr_turn *turn, const weir_request *request, bool shadow)
{
    const weir_counter *counter = turn->edition->counter;
    weir_admission *admission = &turn->verdict.admission;

    for (uint32_t i = 0; i < counter->count; i++) {
        const weir_rule *rule = &counter->rules[i].rule;
        if (rule->shadow != shadow || !rule->applies(rule->applies_context, request))
            continue;
        if (admission->count == WEIR_RULINGS_MAX)
            return false;
        uint32_t *permits = &turn->permits[admission->count];
        (void)wr_counter_prepare(counter, i, request, admission, permits);
        if (counter->options.first_match && !shadow)
            break;
    }
    return true;
}

static void finish(struct wr_turn *turn, int error)
{
    struct wr_verdict *verdict = &turn->verdict;

    if (error == 0)
        wr_counter_finish(turn->edition->counter, NULL, &verdict->admission);
    wr_verdict_conclude(turn->edition, error, verdict);
    if (error == 0 && verdict->allowed && wr_verdict_in_flight(turn->edition, verdict))
        wr_hold_add(turn->book, turn->edition, 0, verdict);
    wr_verdict_count(turn->book, turn->edition, verdict);
    turn->over = true;
    atomic_fetch_sub(&turn->book->waiting, 1);
}

int wr_rulebook_enqueue(struct wr_rulebook *book, const weir_request *request, int64_t timeout_ns, weir_wake *wake,
                        void *context, struct wr_turn **ret_turn)
{
    struct wr_asked asked;

    if (wr_timeout_check(timeout_ns) != 0)
        return WEIR_E_INVAL;
    struct wr_turn *turn = wr_take(book->allocator, sizeof *turn, _Alignof(struct wr_turn));
    if (turn == NULL)
        return WEIR_E_NOMEM;
    turn->book = book;
    turn->edition = wr_book_borrow(book);
    turn->wake = wake;
    turn->context = context;
    turn->until = timeout_ns == WEIR_FOREVER ? WEIR_FOREVER : wr_clock_now(book->clock) + timeout_ns;
    turn->over = wr_verdict_at_once(book, turn->edition, request, &asked, &turn->verdict);
    if (!turn->over) {
        atomic_fetch_add(&book->waiting, 1);
        bool all = prepare(turn, &asked.request, false);
        turn->in_force = turn->verdict.admission.count;
        if (all)
            (void)prepare(turn, &asked.request, true); /* too many in shadow must not refuse */
        else
            finish(turn, WEIR_E_INVAL);
    }
    *ret_turn = turn;
    return 0;
}

/* ---- going on ------------------------------------------------------------------------------------------ */

static int64_t left_ns(const struct wr_turn *turn)
{
    if (turn->until == WEIR_FOREVER)
        return WEIR_FOREVER;
    int64_t left = turn->until - wr_clock_now(turn->book->clock);
    return left < 0 ? 0 : left;
}

/* Polls the ticket of a ruling, standing in line first if need be. True: the ruling is made. */
static bool poll_ticket(struct wr_turn *turn, weir_ruling *ruling, int64_t *ret_wait_ns)
{
    const weir_repository *repository = wr_counter_repository(turn->edition->counter, ruling);
    const char *key = turn->verdict.admission.keys + ruling->key_at;
    uint32_t permits = turn->permits[turn->at];
    int error = 0;

    if (turn->ticket == NULL)
        error = repository->enqueue(repository->context, key, ruling->key_bytes, permits, left_ns(turn), turn->wake,
                                    turn->context, &turn->ticket);
    weir_decision decision = {WEIR_WAIT, WEIR_REASON_NONE, 0};
    if (error == 0)
        error = weir_ticket_poll(turn->ticket, &decision);
    if (error == 0 && decision.verdict != WEIR_GO) {
        ruling->decision = decision; /* what held, should it end now */
        *ret_wait_ns = decision.wait_ns;
        return false;
    }
    if (error == 0) {
        (void)weir_ticket_receipt(turn->ticket, &ruling->receipt);
        ruling->decision = decision;
    }
    weir_ticket_free(turn->ticket);
    turn->ticket = NULL;
    wr_counter_note(ruling, error, permits);
    return true;
}

/* One ruling in force. False: it has to be waited for. */
static bool step(struct wr_turn *turn, int64_t *ret_wait_ns)
{
    weir_counter *counter = turn->edition->counter;
    weir_admission *admission = &turn->verdict.admission;
    weir_ruling *ruling = &admission->rulings[turn->at];

    if (ruling->outcome != WEIR_OUTCOME_MALFORMED) {
        if (wr_counter_repository(counter, ruling)->enqueue == NULL)
            wr_counter_take(counter, admission, ruling, turn->permits[turn->at]);
        else if (!poll_ticket(turn, ruling, ret_wait_ns))
            return false;
    }
    wr_counter_conclude(counter, admission, turn->at);
    turn->at++;
    return true;
}

static void ask_shadows(struct wr_turn *turn)
{
    weir_admission *admission = &turn->verdict.admission;

    for (uint32_t i = turn->in_force; admission->allowed && i < admission->count; i++) {
        if (admission->rulings[i].outcome != WEIR_OUTCOME_MALFORMED)
            wr_counter_take(turn->edition->counter, admission, &admission->rulings[i], turn->permits[i]);
    }
}

bool wr_turn_poll(struct wr_turn *turn, struct wr_verdict *ret_verdict, int64_t *ret_wait_ns)
{
    const weir_admission *admission = &turn->verdict.admission;

    while (!turn->over && admission->allowed && turn->at < turn->in_force) {
        if (!step(turn, ret_wait_ns))
            return false;
    }
    if (!turn->over) {
        ask_shadows(turn);
        finish(turn, 0);
    }
    *ret_verdict = turn->verdict;
    turn->verdict.hold = 0;
    turn->told = true;
    return true;
}

/* ---- ending -------------------------------------------------------------------------------------------- */

void wr_turn_free(struct wr_turn *turn)
{
    if (turn == NULL)
        return;
    weir_ticket_free(turn->ticket);
    if (!turn->over)
        atomic_fetch_sub(&turn->book->waiting, 1);
    if (turn->verdict.hold != 0)
        (void)wr_rulebook_cancel(turn->book, turn->verdict.hold);
    else if (!turn->told && turn->verdict.admission.allowed)
        (void)weir_counter_cancel(turn->edition->counter, &turn->verdict.admission);
    wr_edition_drop(turn->edition);
    wr_give(turn->book->allocator, turn, sizeof *turn, _Alignof(struct wr_turn));
}
