/* SPDX-License-Identifier: MIT */
/* turn.c - requests that wait for one rule after the other, in an event loop.
 *
 * All keys are read when the turn is created, because the texts of the request are not kept. The
 * turn waits for each enforced rule in order, and then checks shadow rules without waiting. For a
 * shared rule it sends requests to the store, at the times that the store names: the rule has no
 * queue, as other waiters are in other processes. */
#include "base/alloc.h"
#include "shell/clock/clock.h"
#include "shell/line/line.h"
#include "shell/rulebook/book.h"

#include <string.h>

/* interval at which a store is asked whether permits in flight were released elsewhere */
#define RELEASE_WAIT (25 * WEIR_MILLISECOND)

struct wr_turn {
    struct wr_rulebook *book;
    struct wr_edition *edition;
    weir_wake *wake;
    void *context;
    int64_t until; /* deadline, ns; or WEIR_FOREVER */
    uint32_t permits[WEIR_RULINGS_MAX];
    uint32_t at; /* index of the ruling that is waited for */
    weir_ticket *ticket;
    struct wr_errand *errand; /* request to the store of a shared rule */
    int64_t again_at;         /* earliest time for the next request to the store; 0: any time */
    bool waits;               /* the turn waits for permits, not only for a store */
    bool holds;               /* the turn always makes a reservation, for lease_ns */
    int64_t lease_ns;
    bool over, told;
    struct wr_verdict verdict;
};

/* ---- creation -------------------------------------------------------------------------------- */

/* Adds the rulings of enforced or shadow rules for one reading of the request's path. Returns false
 * if there are too many rulings, or if matching took too many steps. */
static bool prepare_rules(struct wr_turn *turn, struct wr_asked *asked, bool shadow)
{
    const weir_counter *counter = turn->edition->counter;
    weir_admission *admission = &turn->verdict.admission;

    for (uint32_t i = 0; i < counter->count; i++) {
        const weir_rule *rule = &counter->rules[i].rule;
        weir_ruling *ruling;
        uint32_t permits = 0;
        if (rule->shadow != shadow)
            continue;
        bool applies = rule->applies(rule->applies_context, &asked->request);
        if (asked->steps == 0)
            return false;
        if (!applies)
            continue;
        if (!wr_counter_prepare(counter, i, asked, admission, &ruling, &permits))
            return false;
        if (ruling != NULL)
            turn->permits[admission->count - 1] = permits;
        if (counter->options.first_match && !shadow)
            break;
    }
    return true;
}

static bool prepare(struct wr_turn *turn, struct wr_asked *asked, bool shadow)
{
    do {
        if (!prepare_rules(turn, asked, shadow))
            return false;
    } while (wr_asked_next(asked));
    return true;
}

static void finish(struct wr_turn *turn, int error)
{
    struct wr_verdict *verdict = &turn->verdict;

    if (error == 0)
        wr_counter_finish(turn->edition->counter, NULL, &verdict->admission);
    wr_verdict_conclude(turn->edition, error, verdict);
    if (error == 0 && verdict->allowed &&
        ((turn->holds && verdict->admission.count > 0) || wr_verdict_in_flight(turn->edition, verdict)))
        wr_hold_add(turn->book, turn->edition, turn->lease_ns, verdict);
    wr_verdict_count(turn->book, turn->edition, verdict);
    turn->over = true;
    atomic_fetch_sub(&turn->book->waiting, 1);
}

static struct wr_turn *make(struct wr_rulebook *book, weir_wake *wake, void *context)
{
    struct wr_turn *turn = wr_take(book->allocator, sizeof *turn, _Alignof(struct wr_turn));
    if (turn == NULL)
        return NULL;
    turn->book = book;
    turn->edition = wr_book_borrow(book);
    turn->wake = wake;
    turn->context = context;
    return turn;
}

static void begin(struct wr_turn *turn, const weir_request *request)
{
    struct wr_asked asked;

    turn->over = wr_verdict_at_once(turn->book, turn->edition, request, &asked, &turn->verdict);
    if (turn->over)
        return;
    int error = prepare(turn, &asked, false) ? 0 : WEIR_E_INVAL;
    turn->over = wr_verdict_of_work(turn->book, &asked, error, &turn->verdict);
    if (turn->over)
        return;
    atomic_fetch_add(&turn->book->waiting, 1);
    if (error == 0)
        /* an excess of shadow rules must not refuse the request */
        (void)prepare(turn, &asked, true);
    else
        finish(turn, error);
}

/* Begins a turn for one rule, by its name. */
static int begin_key(struct wr_turn *turn, const struct wr_turn_wish *wish)
{
    const struct wr_edition *edition = turn->edition;
    const struct wr_edition_rule *found = wr_edition_find(edition, wish->rule);

    if (found == NULL)
        return WEIR_E_ABSENT;
    wr_verdict_start(&turn->verdict);
    int error = wr_counter_prepare_key(edition->counter, (uint32_t)(found - edition->rules),
                                       (struct wr_span){wish->key, wish->key_bytes}, &turn->verdict.admission);
    if (error < 0)
        return error;
    turn->permits[0] = wish->cost > 0 ? wish->cost : found->rule.permits;
    atomic_fetch_add(&turn->book->waiting, 1);
    return 0;
}

int wr_rulebook_enqueue(struct wr_rulebook *book, const weir_request *request, int64_t timeout_ns, weir_wake *wake,
                        void *context, struct wr_turn **ret_turn)
{
    if (wr_timeout_check(timeout_ns) != 0)
        return WEIR_E_INVAL;
    struct wr_turn *turn = make(book, wake, context);
    if (turn == NULL)
        return WEIR_E_NOMEM;
    turn->until = timeout_ns == WEIR_FOREVER ? WEIR_FOREVER : wr_clock_now(book->clock) + timeout_ns;
    turn->waits = true;
    begin(turn, request);
    *ret_turn = turn;
    return 0;
}

int wr_rulebook_enqueue_wish(struct wr_rulebook *book, const struct wr_turn_wish *wish, weir_wake *wake, void *context,
                             struct wr_turn **ret_turn)
{
    struct wr_turn *turn = make(book, wake, context);
    int error = 0;

    if (turn == NULL)
        return WEIR_E_NOMEM;
    turn->holds = wish->holds;
    turn->lease_ns = wish->lease_ns;
    if (wish->rule != NULL)
        error = begin_key(turn, wish);
    else
        begin(turn, wish->request);
    if (error < 0) {
        turn->over = true;
        wr_turn_free(turn);
        return error;
    }
    *ret_turn = turn;
    return 0;
}

/* ---- polling --------------------------------------------------------------------------------- */

static int64_t left_ns(const struct wr_turn *turn)
{
    if (turn->until == WEIR_FOREVER)
        return WEIR_FOREVER;
    int64_t left = turn->until - wr_clock_now(turn->book->clock);
    return left < 0 ? 0 : left;
}

/* Polls the ticket of a ruling; enqueues first if there is no ticket. Returns true when the ruling
 * is complete. */
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
        ruling->decision = decision; /* the limit to report if the turn ends now */
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

/* Sets when to ask the store again. Returns false if it must not be asked again. */
static bool come_again(struct wr_turn *turn, const weir_ruling *ruling, int64_t *ret_wait_ns)
{
    int64_t left = turn->waits && !ruling->shadow ? left_ns(turn) : 0, wait_ns = ruling->decision.wait_ns;

    if (left == 0 || ruling->decision.verdict != WEIR_WAIT)
        return false;
    if (wait_ns == WEIR_UNTIL_RELEASE)
        wait_ns = RELEASE_WAIT;
    wait_ns = wait_ns > WEIR_MILLISECOND ? wait_ns : WEIR_MILLISECOND;
    *ret_wait_ns = wait_ns < left ? wait_ns : left;
    turn->again_at = wr_clock_now(turn->book->clock) + *ret_wait_ns;
    return true;
}

/* Asks about a shared rule. Sets *ret_is_told if *ret_told already has the result. */
static int ask_budget(struct wr_turn *turn, struct wr_budget *budget, const weir_ruling *ruling, bool *ret_is_told,
                      struct wr_share_told *ret_told)
{
    const char *key = turn->verdict.admission.keys + ruling->key_at;
    int error = 0;

    if (turn->errand == NULL) {
        error = wr_budget_ask(budget, key, ruling->key_bytes, turn->permits[turn->at], turn->wake, turn->context,
                              &turn->errand, ret_told);
        *ret_is_told = turn->errand == NULL;
        return error;
    }
    *ret_is_told = wr_errand_poll(turn->errand, ret_told);
    if (*ret_is_told) {
        wr_errand_free(turn->errand);
        turn->errand = NULL;
    }
    return 0;
}

/* Polls the ruling of a shared rule. Returns true when it is complete. */
static bool poll_budget(struct wr_turn *turn, struct wr_budget *budget, weir_ruling *ruling, int64_t *ret_wait_ns)
{
    uint32_t permits = turn->permits[turn->at];
    int64_t early_ns = turn->errand == NULL ? turn->again_at - wr_clock_now(turn->book->clock) : 0;
    struct wr_share_told told;
    bool is_told = false;

    *ret_wait_ns = early_ns > 0 ? early_ns : WEIR_FOREVER;
    if (turn->again_at > 0 && early_ns > 0)
        return false;
    int error = ask_budget(turn, budget, ruling, &is_told, &told);
    if (!is_told)
        return false; /* the store's response wakes the turn */
    if (error == 0) {
        ruling->decision = told.decision;
        ruling->quota = told.quota;
        if (told.decision.verdict == WEIR_GO)
            ruling->receipt = wr_budget_receipt(&told, permits);
        else if (come_again(turn, ruling, ret_wait_ns))
            return false;
        else if (turn->again_at > 0)
            error = WEIR_E_TIMEOUT;
    }
    turn->again_at = 0;
    wr_counter_note(ruling, error, permits);
    return true;
}

/* Advances the current ruling. Returns false if it must wait. */
static bool step(struct wr_turn *turn, int64_t *ret_wait_ns)
{
    weir_counter *counter = turn->edition->counter;
    weir_admission *admission = &turn->verdict.admission;
    weir_ruling *ruling = &admission->rulings[turn->at];

    const struct wr_drawer *drawer = wr_drawer_of(turn->edition, ruling);
    if (ruling->outcome != WEIR_OUTCOME_MALFORMED) {
        if (drawer != NULL && drawer->budget != NULL) {
            if (!poll_budget(turn, drawer->budget, ruling, ret_wait_ns))
                return false;
        } else if (!turn->waits || ruling->shadow || wr_counter_repository(counter, ruling)->enqueue == NULL) {
            wr_counter_take(counter, admission, ruling, turn->permits[turn->at]);
        } else if (!poll_ticket(turn, ruling, ret_wait_ns)) {
            return false;
        }
    }
    wr_counter_conclude(counter, admission, turn->at);
    turn->at++;
    return true;
}

bool wr_turn_poll(struct wr_turn *turn, struct wr_verdict *ret_verdict, int64_t *ret_wait_ns)
{
    const weir_admission *admission = &turn->verdict.admission;

    while (!turn->over && admission->allowed && turn->at < admission->count) {
        if (!step(turn, ret_wait_ns))
            return false;
    }
    turn->verdict.origin = ret_verdict->origin;
    if (!turn->over)
        finish(turn, 0);
    *ret_verdict = turn->verdict;
    turn->verdict.hold = 0;
    turn->told = true;
    return true;
}

/* ---- end ------------------------------------------------------------------------------------- */

void wr_turn_free(struct wr_turn *turn)
{
    if (turn == NULL)
        return;
    weir_ticket_free(turn->ticket);
    wr_errand_free(turn->errand);
    if (!turn->over)
        atomic_fetch_sub(&turn->book->waiting, 1);
    /* no reservation exists yet: the poll that reports the verdict creates it */
    if (!turn->told && turn->verdict.admission.allowed)
        (void)weir_counter_cancel(turn->edition->counter, &turn->verdict.admission);
    wr_edition_drop(turn->edition);
    wr_give(turn->book->allocator, turn, sizeof *turn, _Alignof(struct wr_turn));
}
