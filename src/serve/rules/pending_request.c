/* SPDX-License-Identifier: MIT */
/* pending_request.c - requests that wait for one rule after the other, in an event loop.
 *
 * All keys are read when the pending request is created, because the texts of the request are not
 * kept. The pending request waits for each enforced rule in order, and then checks shadow rules
 * without waiting. For a shared rule it sends requests to the store, at the times that the store
 * names: the rule has no queue, as other waiters are in other processes. */
#include "base/alloc.h"
#include "limiter/clock/clock.h"
#include "limiter/queue/queue.h"
#include "serve/rules/rules_internal.h"

#include <string.h>

/* interval at which a store is asked whether permits in flight were released elsewhere */
#define RELEASE_WAIT (25 * WEIR_MILLISECOND)

struct wr_pending_request {
    struct wr_rules *book;
    struct wr_rules_snapshot *snapshot;
    weir_wake *wake;
    void *context;
    int64_t until; /* deadline, ns; or WEIR_FOREVER */
    uint32_t permits[WEIR_RULINGS_MAX];
    uint32_t at; /* index of the ruling that is waited for */
    weir_ticket *ticket;
    struct wr_shared_request *shared_request; /* request to the store of a shared rule */
    int64_t again_at;                         /* earliest time for the next request to the store; 0: any time */
    bool waits;                               /* the pending request waits for permits, not only for a store */
    bool holds;                               /* the pending request always makes a reservation, for lease_ns */
    int64_t lease_ns;
    bool over, told;
    struct wr_verdict verdict;
};

/* ---- creation -------------------------------------------------------------------------------- */

/* Adds the rulings of enforced or shadow rules for one reading of the request's path. Returns false
 * if there are too many rulings, or if matching took too many steps. */
static bool prepare_rules(struct wr_pending_request *pending, struct wr_request_reading *asked, bool shadow)
{
    const weir_admission *counter = pending->snapshot->counter;
    weir_admission_result *admission = &pending->verdict.admission;

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
        if (!wr_admission_prepare(counter, i, asked, admission, &ruling, &permits))
            return false;
        if (ruling != NULL)
            pending->permits[admission->count - 1] = permits;
        if (counter->options.first_match && !shadow)
            break;
    }
    return true;
}

static bool prepare_readings(struct wr_pending_request *pending, struct wr_request_reading *asked, bool shadow)
{
    do {
        if (!prepare_rules(pending, asked, shadow))
            return false;
    } while (wr_request_reading_next(asked));
    return true;
}

static void finish_request(struct wr_pending_request *pending, int error)
{
    struct wr_verdict *verdict = &pending->verdict;

    if (error == 0)
        wr_admission_finish(pending->snapshot->counter, NULL, &verdict->admission);
    wr_verdict_conclude(pending->snapshot, error, verdict);
    if (error == 0 && verdict->allowed &&
        ((pending->holds && verdict->admission.count > 0) || wr_verdict_needs_release(pending->snapshot, verdict)))
        wr_reservation_add(pending->book, pending->snapshot, pending->lease_ns, verdict);
    wr_verdict_count(pending->book, pending->snapshot, verdict);
    pending->over = true;
    atomic_fetch_sub(&pending->book->waiting, 1);
}

static struct wr_pending_request *make_pending_request(struct wr_rules *book, weir_wake *wake, void *context)
{
    struct wr_pending_request *pending =
        wr_alloc(book->allocator, sizeof *pending, _Alignof(struct wr_pending_request));
    if (pending == NULL)
        return NULL;
    pending->book = book;
    pending->snapshot = wr_rules_snapshot_get(book);
    pending->wake = wake;
    pending->context = context;
    return pending;
}

static void begin_pending_request(struct wr_pending_request *pending, const weir_request *request)
{
    struct wr_request_reading asked;

    pending->over = wr_verdict_without_rules(pending->book, pending->snapshot, request, &asked, &pending->verdict);
    if (pending->over)
        return;
    int error = prepare_readings(pending, &asked, false) ? 0 : WEIR_E_INVAL;
    pending->over = wr_verdict_refuse_costly(pending->book, &asked, error, &pending->verdict);
    if (pending->over)
        return;
    atomic_fetch_add(&pending->book->waiting, 1);
    if (error == 0)
        /* an excess of shadow rules must not refuse the request */
        (void)prepare_readings(pending, &asked, true);
    else
        finish_request(pending, error);
}

/* Begins a pending request for one rule, by its name. */
static int begin_key_request(struct wr_pending_request *pending, const struct wr_rules_request *rules_request)
{
    const struct wr_rules_snapshot *snapshot = pending->snapshot;
    const struct wr_compiled_rule *found = wr_rules_snapshot_find(snapshot, rules_request->rule);

    if (found == NULL)
        return WEIR_E_ABSENT;
    wr_verdict_reset(&pending->verdict);
    int error = wr_admission_prepare_key(snapshot->counter, (uint32_t)(found - snapshot->rules),
                                         (struct wr_span){rules_request->key, rules_request->key_bytes},
                                         &pending->verdict.admission);
    if (error < 0)
        return error;
    pending->permits[0] = rules_request->cost > 0 ? rules_request->cost : found->rule.permits;
    atomic_fetch_add(&pending->book->waiting, 1);
    return 0;
}

int wr_rules_enqueue(struct wr_rules *book, const weir_request *request, int64_t timeout_ns, weir_wake *wake,
                     void *context, struct wr_pending_request **ret_pending)
{
    if (wr_timeout_check(timeout_ns) != 0)
        return WEIR_E_INVAL;
    struct wr_pending_request *pending = make_pending_request(book, wake, context);
    if (pending == NULL)
        return WEIR_E_NOMEM;
    pending->until = timeout_ns == WEIR_FOREVER ? WEIR_FOREVER : wr_clock_now(book->clock) + timeout_ns;
    pending->waits = true;
    begin_pending_request(pending, request);
    *ret_pending = pending;
    return 0;
}

int wr_rules_enqueue_for_store(struct wr_rules *book, const struct wr_rules_request *rules_request, weir_wake *wake,
                               void *context, struct wr_pending_request **ret_pending)
{
    struct wr_pending_request *pending = make_pending_request(book, wake, context);
    int error = 0;

    if (pending == NULL)
        return WEIR_E_NOMEM;
    pending->holds = rules_request->holds;
    pending->lease_ns = rules_request->lease_ns;
    if (rules_request->rule != NULL)
        error = begin_key_request(pending, rules_request);
    else
        begin_pending_request(pending, rules_request->request);
    if (error < 0) {
        pending->over = true;
        wr_pending_request_free(pending);
        return error;
    }
    *ret_pending = pending;
    return 0;
}

/* ---- polling --------------------------------------------------------------------------------- */

static int64_t timeout_left_ns(const struct wr_pending_request *pending)
{
    if (pending->until == WEIR_FOREVER)
        return WEIR_FOREVER;
    int64_t left = pending->until - wr_clock_now(pending->book->clock);
    return left < 0 ? 0 : left;
}

/* Polls the ticket of a ruling; enqueues first if there is no ticket. Returns true when the ruling
 * is complete. */
static bool poll_ticket(struct wr_pending_request *pending, weir_ruling *ruling, int64_t *ret_wait_ns)
{
    const weir_key_store *repository = wr_admission_key_store(pending->snapshot->counter, ruling);
    const char *key = pending->verdict.admission.keys + ruling->key_at;
    uint32_t permits = pending->permits[pending->at];
    int error = 0;

    if (pending->ticket == NULL)
        error = repository->enqueue(repository->context, key, ruling->key_bytes, permits, timeout_left_ns(pending),
                                    pending->wake, pending->context, &pending->ticket);
    weir_decision decision = {WEIR_WAIT, WEIR_REASON_NONE, 0};
    if (error == 0)
        error = weir_ticket_poll(pending->ticket, &decision);
    if (error == 0 && decision.verdict != WEIR_GO) {
        ruling->decision = decision; /* the limit to report if the pending request ends now */
        *ret_wait_ns = decision.wait_ns;
        return false;
    }
    if (error == 0) {
        (void)weir_ticket_receipt(pending->ticket, &ruling->receipt);
        ruling->decision = decision;
    }
    weir_ticket_free(pending->ticket);
    pending->ticket = NULL;
    wr_admission_note(ruling, error, permits);
    return true;
}

/* Sets when to ask the store again. Returns false if it must not be asked again. */
static bool set_next_store_request(struct wr_pending_request *pending, const weir_ruling *ruling, int64_t *ret_wait_ns)
{
    int64_t left = pending->waits && !ruling->shadow ? timeout_left_ns(pending) : 0, wait_ns = ruling->decision.wait_ns;

    if (left == 0 || ruling->decision.verdict != WEIR_WAIT)
        return false;
    if (wait_ns == WEIR_UNTIL_RELEASE)
        wait_ns = RELEASE_WAIT;
    wait_ns = wait_ns > WEIR_MILLISECOND ? wait_ns : WEIR_MILLISECOND;
    *ret_wait_ns = wait_ns < left ? wait_ns : left;
    pending->again_at = wr_clock_now(pending->book->clock) + *ret_wait_ns;
    return true;
}

/* Asks about a shared rule. Sets *ret_is_told if *ret_told already has the result. */
static int ask_shared_limit(struct wr_pending_request *pending, struct wr_shared_limit *budget,
                            const weir_ruling *ruling, bool *ret_is_told, struct wr_shared_limit_decision *ret_told)
{
    const char *key = pending->verdict.admission.keys + ruling->key_at;
    int error = 0;

    if (pending->shared_request == NULL) {
        error = wr_shared_limit_ask(budget, key, ruling->key_bytes, pending->permits[pending->at], pending->wake,
                                    pending->context, &pending->shared_request, ret_told);
        *ret_is_told = pending->shared_request == NULL;
        return error;
    }
    *ret_is_told = wr_shared_request_poll(pending->shared_request, ret_told);
    if (*ret_is_told) {
        wr_shared_request_free(pending->shared_request);
        pending->shared_request = NULL;
    }
    return 0;
}

/* Polls the ruling of a shared rule. Returns true when it is complete. */
static bool poll_shared_limit(struct wr_pending_request *pending, struct wr_shared_limit *budget, weir_ruling *ruling,
                              int64_t *ret_wait_ns)
{
    uint32_t permits = pending->permits[pending->at];
    int64_t early_ns = pending->shared_request == NULL ? pending->again_at - wr_clock_now(pending->book->clock) : 0;
    struct wr_shared_limit_decision told;
    bool is_told = false;

    *ret_wait_ns = early_ns > 0 ? early_ns : WEIR_FOREVER;
    if (pending->again_at > 0 && early_ns > 0)
        return false;
    int error = ask_shared_limit(pending, budget, ruling, &is_told, &told);
    if (!is_told)
        return false; /* the store's response wakes the pending request */
    if (error == 0) {
        ruling->decision = told.decision;
        ruling->quota = told.quota;
        if (told.decision.verdict == WEIR_GO)
            ruling->receipt = wr_shared_limit_receipt(&told, permits);
        else if (set_next_store_request(pending, ruling, ret_wait_ns))
            return false;
        else if (pending->again_at > 0)
            error = WEIR_E_TIMEOUT;
    }
    pending->again_at = 0;
    wr_admission_note(ruling, error, permits);
    return true;
}

/* Advances the current ruling. Returns false if it must wait. */
static bool advance_ruling(struct wr_pending_request *pending, int64_t *ret_wait_ns)
{
    weir_admission *counter = pending->snapshot->counter;
    weir_admission_result *admission = &pending->verdict.admission;
    weir_ruling *ruling = &admission->rulings[pending->at];

    const struct wr_rule_table *rule_table = wr_rule_table_of(pending->snapshot, ruling);
    if (ruling->outcome != WEIR_OUTCOME_MALFORMED) {
        if (rule_table != NULL && rule_table->budget != NULL) {
            if (!poll_shared_limit(pending, rule_table->budget, ruling, ret_wait_ns))
                return false;
        } else if (!pending->waits || ruling->shadow || wr_admission_key_store(counter, ruling)->enqueue == NULL) {
            wr_admission_take(counter, admission, ruling, pending->permits[pending->at]);
        } else if (!poll_ticket(pending, ruling, ret_wait_ns)) {
            return false;
        }
    }
    wr_admission_conclude(counter, admission, pending->at);
    pending->at++;
    return true;
}

bool wr_pending_request_poll(struct wr_pending_request *pending, struct wr_verdict *ret_verdict, int64_t *ret_wait_ns)
{
    const weir_admission_result *admission = &pending->verdict.admission;

    while (!pending->over && admission->allowed && pending->at < admission->count) {
        if (!advance_ruling(pending, ret_wait_ns))
            return false;
    }
    pending->verdict.origin = ret_verdict->origin;
    if (!pending->over)
        finish_request(pending, 0);
    *ret_verdict = pending->verdict;
    pending->verdict.hold = 0;
    pending->told = true;
    return true;
}

/* ---- end ------------------------------------------------------------------------------------- */

void wr_pending_request_free(struct wr_pending_request *pending)
{
    if (pending == NULL)
        return;
    weir_ticket_free(pending->ticket);
    wr_shared_request_free(pending->shared_request);
    if (!pending->over)
        atomic_fetch_sub(&pending->book->waiting, 1);
    /* no reservation exists yet: the poll that reports the verdict creates it */
    if (!pending->told && pending->verdict.admission.allowed)
        (void)weir_admission_cancel(pending->snapshot->counter, &pending->verdict.admission);
    wr_rules_snapshot_unref(pending->snapshot);
    wr_free(pending->book->allocator, pending, sizeof *pending, _Alignof(struct wr_pending_request));
}
