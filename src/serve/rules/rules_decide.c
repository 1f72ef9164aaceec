/* SPDX-License-Identifier: MIT */
/* rules_decide.c - decides requests by the rules in force. */
#include "base/error.h"
#include "core/admit/request_headers.h"
#include "serve/rules/rules_internal.h"

const char *wr_cause_name(enum wr_cause cause)
{
    static const char *const names[] = {
#define X(cause, name) name,
        WR_CAUSES(X)
#undef X
    };
    return (unsigned)cause < WR_CAUSE_COUNT ? names[cause] : "unknown";
}

/* ---- counters -------------------------------------------------------------------------------- */

void wr_cause_counts_add(struct wr_cause_counts *stripes, enum wr_cause cause, bool shadowed)
{
    struct wr_cause_counts *tally = &stripes[wr_thread_number() % WR_RULE_STATS_STRIPES];

    atomic_fetch_add_explicit(&tally->causes[cause], 1, memory_order_relaxed);
    if (shadowed)
        atomic_fetch_add_explicit(&tally->shadowed, 1, memory_order_relaxed);
}

void wr_cause_counts_sum(const struct wr_cause_counts *stripes, uint64_t *ret_causes, uint64_t *ret_shadowed)
{
    *ret_shadowed = 0;
    for (size_t cause = 0; cause < WR_CAUSE_COUNT; cause++)
        ret_causes[cause] = 0;
    for (size_t i = 0; i < WR_RULE_STATS_STRIPES; i++) {
        *ret_shadowed += atomic_load_explicit(&stripes[i].shadowed, memory_order_relaxed);
        for (size_t cause = 0; cause < WR_CAUSE_COUNT; cause++)
            ret_causes[cause] += atomic_load_explicit(&stripes[i].causes[cause], memory_order_relaxed);
    }
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static int status_of_cause(enum wr_cause cause)
{
    switch (cause) {
    case WR_CAUSE_LIMITED:
    case WR_CAUSE_TIMED_OUT:
        return 429;
    case WR_CAUSE_DENY_LIST:
        return 403;
    case WR_CAUSE_MALFORMED:
        return 400;
    case WR_CAUSE_FAILED:
    case WR_CAUSE_FULL:
        return 503;
    default:
        return 200;
    }
}

static void set_cause(struct wr_verdict *verdict, enum wr_cause cause)
{
    verdict->cause = cause;
    verdict->status = status_of_cause(cause);
    verdict->allowed = verdict->status == 200;
}

void wr_verdict_reset(struct wr_verdict *verdict)
{
    verdict->shadowed = false;
    verdict->rule = NULL;
    verdict->retry_after_ns = 0;
    verdict->hold = 0;
    verdict->fault = WEIR_FAULT_NONE;
    wr_admission_start(&verdict->admission);
}

static enum wr_cause cause_of_ruling(const weir_ruling *ruling)
{
    switch (ruling->outcome) {
    case WEIR_OUTCOME_GRANTED:
        return ruling->plan == WR_RULE_PLAN_ALLOW ? WR_CAUSE_ALLOW_LIST : WR_CAUSE_GRANTED;
    case WEIR_OUTCOME_REFUSED:
        if (ruling->error == WEIR_E_TIMEOUT)
            return WR_CAUSE_TIMED_OUT;
        if (ruling->error == WEIR_E_FULL)
            return WR_CAUSE_FULL;
        return ruling->plan == WR_RULE_PLAN_DENY ? WR_CAUSE_DENY_LIST : WR_CAUSE_LIMITED;
    case WEIR_OUTCOME_MALFORMED:
        return WR_CAUSE_MALFORMED;
    default:
        return WR_CAUSE_FAILED;
    }
}

/* Returns the most significant cause among the rulings of an allowed request. */
static enum wr_cause allowed_cause(const weir_admission_result *admission)
{
    enum wr_cause cause = WR_CAUSE_UNMATCHED;

    for (uint32_t i = 0; i < admission->count; i++) {
        const weir_ruling *ruling = &admission->rulings[i];
        if (ruling->shadow)
            continue;
        if (ruling->outcome == WEIR_OUTCOME_FAILED)
            return WR_CAUSE_FAILED_OPEN;
        if (cause != WR_CAUSE_GRANTED)
            cause = cause_of_ruling(ruling);
    }
    return cause;
}

static void set_refusal(struct wr_verdict *verdict)
{
    const weir_ruling *last = &verdict->admission.rulings[verdict->admission.count - 1];

    set_cause(verdict, cause_of_ruling(last));
    verdict->rule = last->name;
    verdict->fault = last->fault;
    if (last->outcome == WEIR_OUTCOME_FAILED)
        verdict->retry_after_ns = WEIR_SECOND;
    else if (last->outcome == WEIR_OUTCOME_REFUSED)
        verdict->retry_after_ns = last->decision.verdict == WEIR_DENY ? WEIR_UNTIL_RELEASE : last->decision.wait_ns;
}

/* Counts a ruling for its rule. Skips permits that were granted and then returned because a later
 * rule refused. */
static void count_ruling(const struct wr_rules_snapshot *snapshot, const struct wr_verdict *verdict,
                         const weir_ruling *ruling)
{
    bool refused = ruling->outcome != WEIR_OUTCOME_GRANTED;
    enum wr_cause cause = cause_of_ruling(ruling);

    if (!verdict->allowed && !refused)
        return;
    if (ruling->shadow && refused)
        cause = WR_CAUSE_GRANTED;
    else if (verdict->allowed && cause == WR_CAUSE_FAILED)
        cause = WR_CAUSE_FAILED_OPEN;
    wr_cause_counts_add(snapshot->rules[ruling->rule].rule_stats->tallies, cause, ruling->shadow && refused);
}

void wr_verdict_count(struct wr_rules *book, const struct wr_rules_snapshot *snapshot, const struct wr_verdict *verdict)
{
    for (uint32_t i = 0; i < verdict->admission.count; i++)
        count_ruling(snapshot, verdict, &verdict->admission.rulings[i]);
    wr_cause_counts_add(book->tallies, verdict->cause, verdict->shadowed);
}

void wr_verdict_conclude(const struct wr_rules_snapshot *snapshot, int error, struct wr_verdict *verdict)
{
    weir_admission_result *admission = &verdict->admission;

    if (error < 0)
        wr_admission_start(admission);
    if (error < 0)
        set_cause(verdict, snapshot->opens_on_error ? WR_CAUSE_FAILED_OPEN : WR_CAUSE_FAILED);
    else if (admission->allowed)
        set_cause(verdict, allowed_cause(admission));
    else
        set_refusal(verdict);
    const weir_ruling *decisive = error == 0 ? weir_admission_result_decisive(admission) : NULL;
    if (verdict->rule == NULL && decisive != NULL)
        verdict->rule = decisive->name;
    for (uint32_t i = 0; i < admission->count; i++) {
        const weir_ruling *ruling = &admission->rulings[i];
        verdict->shadowed = verdict->shadowed || (ruling->shadow && ruling->outcome != WEIR_OUTCOME_GRANTED);
    }
    admission->allowed = verdict->allowed;
}

/* ---- before any rule ------------------------------------------------------------------------- */

static bool conclude_without_rules(struct wr_rules *book, struct wr_verdict *verdict, enum wr_cause cause,
                                   weir_request_fault fault)
{
    set_cause(verdict, cause);
    verdict->fault = fault;
    verdict->admission.allowed = verdict->allowed;
    if (cause == WR_CAUSE_DENY_LIST)
        verdict->retry_after_ns = WEIR_UNTIL_RELEASE;
    wr_cause_counts_add(book->tallies, cause, false);
    return true;
}

/* Returns true if a header that rules match has more lines than are examined: a match could be on a
 * later line. */
static bool has_too_many_lines(const struct wr_rules_snapshot *snapshot, const weir_request *request)
{
    size_t bytes;

    for (size_t i = 0; request->header != NULL && i < snapshot->count; i++) {
        const struct wr_match *match = &snapshot->rules[i].match;
        for (uint32_t j = 0; j < match->header_count; j++)
            if (request->header(request->header_context, match->headers[j].name, WEIR_HEADER_LINES_MAX, &bytes) != NULL)
                return true;
    }
    return false;
}

/* Decides by the client's address and the network lists. An unreadable address is refused, as it
 * could be on a list. */
static bool decide_by_address(struct wr_rules *book, const struct wr_rules_snapshot *snapshot,
                              const weir_request *request, struct wr_verdict *ret_verdict)
{
    struct wr_address address;

    if (snapshot->deny_count + snapshot->allow_count == 0)
        return false;
    weir_request_fault fault = wr_request_client(request, &snapshot->client, &address);
    if (fault == WEIR_FAULT_MISSING)
        return false;
    if (fault != WEIR_FAULT_NONE)
        return conclude_without_rules(book, ret_verdict, WR_CAUSE_MALFORMED, fault);
    if (wr_ranges_hold(snapshot->deny, snapshot->deny_count, &address))
        return conclude_without_rules(book, ret_verdict, WR_CAUSE_DENY_LIST, WEIR_FAULT_NONE);
    if (wr_ranges_hold(snapshot->allow, snapshot->allow_count, &address))
        return conclude_without_rules(book, ret_verdict, WR_CAUSE_ALLOW_LIST, WEIR_FAULT_NONE);
    return false;
}

bool wr_verdict_without_rules(struct wr_rules *book, const struct wr_rules_snapshot *snapshot,
                              const weir_request *request, struct wr_request_reading *ret_asked,
                              struct wr_verdict *ret_verdict)
{
    wr_verdict_reset(ret_verdict);
    if (wr_request_check(request) < 0)
        return conclude_without_rules(book, ret_verdict, WR_CAUSE_MALFORMED, WEIR_FAULT_BYTES);
    weir_request_fault fault = wr_request_reading_begin(request, snapshot->wanted, snapshot->exact, ret_asked);
    if (fault != WEIR_FAULT_NONE)
        return conclude_without_rules(book, ret_verdict, WR_CAUSE_MALFORMED, fault);
    if (has_too_many_lines(snapshot, request))
        return conclude_without_rules(book, ret_verdict, WR_CAUSE_MALFORMED, WEIR_FAULT_REPEATED);
    return decide_by_address(book, snapshot, request, ret_verdict);
}

bool wr_verdict_refuse_costly(struct wr_rules *book, const struct wr_request_reading *asked, int error,
                              struct wr_verdict *verdict)
{
    if (error == 0 || asked->steps > 0)
        return false;
    wr_verdict_reset(verdict);
    return conclude_without_rules(book, verdict, WR_CAUSE_MALFORMED, WEIR_FAULT_WORK);
}

/* ---- decisions ------------------------------------------------------------------------------- */

bool wr_verdict_needs_release(const struct wr_rules_snapshot *snapshot, const struct wr_verdict *verdict)
{
    for (uint32_t i = 0; i < verdict->admission.count; i++) {
        const struct wr_rule_table *rule_table = wr_ruling_table(snapshot, &verdict->admission.rulings[i]);
        if (verdict->admission.rulings[i].permits > 0 && rule_table != NULL && rule_table->has_release)
            return true;
    }
    return false;
}

/* Returns true if a rule cannot decide without asking its store. Then returns the permits that
 * other rules granted. */
static bool must_ask_store(const struct wr_rules_snapshot *snapshot, weir_admission_result *admission)
{
    for (uint32_t i = 0; snapshot->has_shared && i < admission->count; i++) {
        const weir_ruling *ruling = &admission->rulings[i];
        if (ruling->error != WEIR_E_CLOSED || ruling->outcome != WEIR_OUTCOME_FAILED)
            continue;
        if (wr_rule_table_of(snapshot, ruling)->budget != NULL) {
            if (admission->allowed)
                (void)weir_admission_cancel(snapshot->counter, admission);
            return true;
        }
    }
    return false;
}

/* Decides a request. Returns false if `can_wait` is set and the store of a shared rule must be
 * asked first. */
static bool decide_by_rules(struct wr_rules *book, const weir_request *request, bool can_wait, bool holds,
                            int64_t lease_ns, struct wr_verdict *ret_verdict)
{
    struct wr_request_reading asked;
    struct wr_epoch_guard pass;
    struct wr_rules_snapshot *snapshot = wr_rules_read_begin(book, &pass);
    bool is_over = wr_verdict_without_rules(book, snapshot, request, &asked, ret_verdict);
    int error = is_over ? 0 : wr_admission_try(snapshot->counter, &asked, &ret_verdict->admission);

    if (!is_over && !wr_verdict_refuse_costly(book, &asked, error, ret_verdict)) {
        if (can_wait && error == 0 && must_ask_store(snapshot, &ret_verdict->admission)) {
            wr_rules_read_end(pass);
            return false;
        }
        wr_verdict_conclude(snapshot, error, ret_verdict);
        holds = (holds && ret_verdict->admission.count > 0) || wr_verdict_needs_release(snapshot, ret_verdict);
        if (error == 0 && ret_verdict->allowed && holds)
            wr_reservation_add(book, snapshot, lease_ns, ret_verdict);
        wr_verdict_count(book, snapshot, ret_verdict);
    }
    wr_rules_read_end(pass);
    return true;
}

void wr_rules_refuse_malformed(struct wr_rules *book, weir_request_fault fault, struct wr_verdict *ret_verdict)
{
    wr_verdict_reset(ret_verdict);
    (void)conclude_without_rules(book, ret_verdict, WR_CAUSE_MALFORMED, fault);
}

void wr_rules_try(struct wr_rules *book, const weir_request *request, struct wr_verdict *ret_verdict)
{
    (void)decide_by_rules(book, request, false, false, 0, ret_verdict);
}

bool wr_rules_try_now(struct wr_rules *book, const weir_request *request, struct wr_verdict *ret_verdict)
{
    return decide_by_rules(book, request, true, false, 0, ret_verdict);
}

void wr_rules_reserve(struct wr_rules *book, const weir_request *request, int64_t lease_ns,
                      struct wr_verdict *ret_verdict)
{
    (void)decide_by_rules(book, request, false, true, lease_ns, ret_verdict);
}

bool wr_rules_reserve_now(struct wr_rules *book, const weir_request *request, int64_t lease_ns,
                          struct wr_verdict *ret_verdict)
{
    return decide_by_rules(book, request, true, true, lease_ns, ret_verdict);
}

static int try_key_in_snapshot(struct wr_rules *book, struct wr_rules_snapshot *snapshot, const char *rule,
                               struct wr_span key, uint32_t cost, bool can_wait, struct wr_verdict *ret_verdict)
{
    const struct wr_compiled_rule *found = wr_rules_snapshot_find(snapshot, rule);

    if (found == NULL)
        return WEIR_E_ABSENT;
    wr_verdict_reset(ret_verdict);
    int error = weir_admission_try_key(snapshot->counter, (uint32_t)(found - snapshot->rules), key.data, key.bytes,
                                       cost, &ret_verdict->admission);
    if (error < 0)
        return error;
    if (can_wait && must_ask_store(snapshot, &ret_verdict->admission))
        return WEIR_E_CLOSED;
    wr_verdict_conclude(snapshot, 0, ret_verdict);
    if (ret_verdict->allowed && wr_verdict_needs_release(snapshot, ret_verdict))
        wr_reservation_add(book, snapshot, 0, ret_verdict);
    wr_verdict_count(book, snapshot, ret_verdict);
    return 0;
}

static int try_key_in_current(struct wr_rules *book, const char *rule, struct wr_span key, uint32_t cost, bool can_wait,
                              struct wr_verdict *ret_verdict)
{
    struct wr_epoch_guard pass;

    struct wr_rules_snapshot *snapshot = wr_rules_read_begin(book, &pass);
    int error = try_key_in_snapshot(book, snapshot, rule, key, cost, can_wait, ret_verdict);
    wr_rules_read_end(pass);
    return error;
}

int wr_rules_try_key(struct wr_rules *book, const char *rule, const char *key, size_t key_bytes, uint32_t cost,
                     struct wr_verdict *ret_verdict)
{
    return try_key_in_current(book, rule, (struct wr_span){key, key_bytes}, cost, false, ret_verdict);
}

int wr_rules_try_key_now(struct wr_rules *book, const char *rule, const char *key, size_t key_bytes, uint32_t cost,
                         struct wr_verdict *ret_verdict)
{
    return try_key_in_current(book, rule, (struct wr_span){key, key_bytes}, cost, true, ret_verdict);
}

bool wr_rules_peer_is_trusted(struct wr_rules *book, struct wr_span peer)
{
    struct wr_epoch_guard pass;
    const struct wr_rules_snapshot *snapshot = wr_rules_read_begin(book, &pass);
    bool is_trusted = wr_peer_is_trusted(&snapshot->client, peer);

    wr_rules_read_end(pass);
    return is_trusted;
}
