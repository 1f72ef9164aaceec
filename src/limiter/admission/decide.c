/* SPDX-License-Identifier: MIT */
/* decide.c - checks the rules of a counter, and reverts their charges if one refuses.
 *
 * First the enforced rules, in order: each one reserves, after a wait if the caller waits. The
 * first refusal ends the check. What earlier rules reserved is returned, so a refusal charges
 * nothing. Then the shadow rules, which cannot refuse. A rule is checked at most once, and only
 * rules before the refusing one are charged briefly. So a caller over its own limit, if that rule
 * is first, never affects limits shared with others. */
#include "limiter/admission/admission.h"

#include "base/error.h"
#include "core/admit/admission_result.h"
#include "core/admit/key.h"
#include "core/admit/request_headers.h"
#include "core/admit/rule_cost.h"
#include "limiter/clock/clock.h"
#include "limiter/queue/queue.h"

#include <string.h>

/* Whether a caller waits, and how long. */
struct wait_limits {
    bool waits;
    int64_t until; /* deadline by the counter's clock, ns; or WEIR_FOREVER */
    weir_cancel *cancel;
};

static const struct wait_limits none = {false, 0, NULL};

/* ---- one rule -------------------------------------------------------------------------------- */

const weir_key_store *wr_admission_key_store(const weir_admission *counter, const weir_ruling *ruling)
{
    const struct wr_admission_rule *counted = &counter->rules[ruling->rule];

    return ruling->plan == 0 ? &counted->repository : &counted->rule.plans[ruling->plan - 1];
}

static weir_ruling *add_ruling(weir_admission_result *admission, const weir_admission *counter, uint32_t rule)
{
    weir_ruling *ruling = &admission->rulings[admission->count];

    memset(ruling, 0, sizeof *ruling);
    ruling->name = counter->rules[rule].rule.name;
    ruling->rule = rule;
    ruling->shadow = counter->rules[rule].rule.shadow;
    ruling->key_at = admission->count * WEIR_KEY_MAX;
    admission->count++;
    return ruling;
}

/* Sets the key of a ruling, and its plan. */
static void set_ruling_key(const weir_admission *counter, const weir_request *request, struct wr_span key,
                           weir_admission_result *admission, weir_ruling *ruling)
{
    const weir_rule *rule = &counter->rules[ruling->rule].rule;

    memcpy(admission->keys + ruling->key_at, key.data, key.bytes);
    ruling->key_bytes = (uint32_t)key.bytes;
    if (rule->plan_of == NULL)
        return;
    uint32_t plan = rule->plan_of(rule->plan_context, request, key.data, key.bytes);
    ruling->plan = plan <= rule->plan_count ? plan : 0;
}

/* Returns true if the request is still allowed after this ruling. */
static bool lets_request_pass(const weir_admission *counter, const weir_ruling *ruling)
{
    if (ruling->outcome == WEIR_OUTCOME_GRANTED || ruling->shadow)
        return true;
    return ruling->outcome == WEIR_OUTCOME_FAILED && counter->rules[ruling->rule].rule.open_on_error;
}

void wr_admission_note(weir_ruling *ruling, int error, uint32_t permits)
{
    ruling->error = error;
    if (error == 0 && ruling->decision.verdict == WEIR_GO) {
        ruling->outcome = WEIR_OUTCOME_GRANTED;
        ruling->permits = permits;
        ruling->reserved = ruling->receipt.permits > 0;
    } else if (error == 0 || error == WEIR_E_TIMEOUT || error == WEIR_E_CANCELLED || error == WEIR_E_FULL) {
        ruling->outcome = WEIR_OUTCOME_REFUSED;
    } else if (error == WEIR_E_NEVER) {
        ruling->outcome = WEIR_OUTCOME_REFUSED;
        ruling->decision.verdict = WEIR_DENY;
    } else {
        ruling->outcome = WEIR_OUTCOME_FAILED;
    }
    if (ruling->outcome == WEIR_OUTCOME_REFUSED && ruling->decision.verdict == WEIR_GO)
        /* granted too late: a refused ruling must not say WEIR_GO */
        ruling->decision.verdict = WEIR_WAIT;
}

static int64_t wait_left_ns(const weir_admission *counter, const struct wait_limits *patience)
{
    if (patience->until == WEIR_FOREVER)
        return WEIR_FOREVER;
    int64_t left = patience->until - wr_clock_now(counter->options.clock);
    return left < 0 ? 0 : left;
}

/* Takes permits, with a receipt if the repository supports it. */
static void take_for_ruling(const weir_admission *counter, weir_admission_result *admission, weir_ruling *ruling,
                            uint32_t permits, const struct wait_limits *patience)
{
    const weir_key_store *repository = wr_admission_key_store(counter, ruling);
    const char *key = admission->keys + ruling->key_at;
    weir_receipt *receipt = repository->settle != NULL ? &ruling->receipt : NULL;
    int error;

    if (patience->waits && !ruling->shadow) {
        error = repository->acquire(repository->context, key, ruling->key_bytes, permits,
                                    wait_left_ns(counter, patience), patience->cancel, receipt, &ruling->decision);
        if (error == 0)
            ruling->decision = (weir_decision){WEIR_GO, WEIR_REASON_NONE, 0};
    } else if (repository->reserve_peek != NULL && receipt != NULL && !counter->options.without_quota) {
        error = repository->reserve_peek(repository->context, key, ruling->key_bytes, permits, receipt,
                                         &ruling->decision, &ruling->quota);
    } else if (repository->reserve != NULL && receipt != NULL) {
        error = repository->reserve(repository->context, key, ruling->key_bytes, permits, receipt, &ruling->decision);
    } else {
        error = repository->attempt(repository->context, key, ruling->key_bytes, permits, &ruling->decision);
    }
    wr_admission_note(ruling, error, permits);
}

void wr_admission_take(const weir_admission *counter, weir_admission_result *admission, weir_ruling *ruling,
                       uint32_t permits)
{
    take_for_ruling(counter, admission, ruling, permits, &none);
}

/* Ends the permits that a ruling has in flight. */
static int release_ruling(const weir_admission *counter, weir_admission_result *admission, weir_ruling *ruling)
{
    const weir_key_store *repository = wr_admission_key_store(counter, ruling);
    uint32_t permits = ruling->permits;

    ruling->permits = 0;
    if (permits == 0 || repository->release == NULL)
        return 0;
    return repository->release(repository->context, admission->keys + ruling->key_at, ruling->key_bytes, permits);
}

/* Returns what a ruling took: everything if there is a receipt, else the permits in flight. */
static int give_back_ruling(const weir_admission *counter, weir_admission_result *admission, weir_ruling *ruling)
{
    const weir_key_store *repository = wr_admission_key_store(counter, ruling);

    if (ruling->permits == 0 || ruling->receipt.permits == 0)
        return release_ruling(counter, admission, ruling);
    ruling->permits = 0;
    return repository->settle(repository->context, admission->keys + ruling->key_at, ruling->key_bytes,
                              &ruling->receipt, 0);
}

/* ---- all rules ------------------------------------------------------------------------------- */

void wr_admission_start(weir_admission_result *ret_admission)
{
    ret_admission->allowed = true;
    ret_admission->count = 0;
    ret_admission->retry_after_s = 0;
}

/* If a repository fails here, the permits stay charged: too many, but never too few. */
void wr_admission_conclude(const weir_admission *counter, weir_admission_result *admission, uint32_t last)
{
    const weir_ruling *ruling = &admission->rulings[last];

    if (lets_request_pass(counter, ruling))
        return;
    admission->allowed = false;
    admission->count = last + 1;
    admission->retry_after_s = wr_retry_after_s(ruling);
    for (uint32_t i = 0; i < last; i++)
        (void)give_back_ruling(counter, admission, &admission->rulings[i]);
}

static void peek_quota(const weir_admission *counter, const weir_admission_result *admission, weir_ruling *ruling)
{
    const weir_key_store *repository = wr_admission_key_store(counter, ruling);

    if (counter->options.without_quota || repository->peek == NULL || ruling->key_bytes == 0 ||
        ruling->outcome == WEIR_OUTCOME_FAILED)
        return;
    weir_quota quota;
    if (repository->peek(repository->context, admission->keys + ruling->key_at, ruling->key_bytes, &quota) == 0)
        ruling->quota = quota;
}

void wr_admission_finish(weir_admission *counter, const weir_request *request, weir_admission_result *admission)
{
    for (uint32_t i = 0; i < admission->count; i++) {
        weir_ruling *ruling = &admission->rulings[i];
        bool was_given_back = !admission->allowed && ruling->outcome == WEIR_OUTCOME_GRANTED;
        if (was_given_back || ruling->quota.limit == 0)
            peek_quota(counter, admission, ruling);
        if (!was_given_back)
            atomic_fetch_add_explicit(&counter->rules[ruling->rule].tallies[ruling->outcome], 1, memory_order_relaxed);
    }
    if (counter->options.rejected == NULL)
        return;
    for (uint32_t i = 0; i < admission->count; i++) {
        if (admission->rulings[i].outcome != WEIR_OUTCOME_GRANTED)
            counter->options.rejected(counter->options.rejected_context, request, admission, &admission->rulings[i]);
    }
}

/* Returns true if an earlier reading has this rule. Its key is then the same, unless it is custom:
 * all readings of a route have one key. */
static bool is_rule_asked(const weir_admission *counter, const weir_admission_result *admission, uint32_t rule)
{
    for (uint32_t i = 0; i < admission->count; i++) {
        if (admission->rulings[i].rule == rule && !counter->rules[rule].has_custom_key)
            return true;
    }
    return false;
}

/* Returns true if an earlier ruling has the rule and key of the last one. */
static bool is_ruling_repeated(const weir_admission_result *admission)
{
    const weir_ruling *last = &admission->rulings[admission->count - 1];

    for (const weir_ruling *ruling = admission->rulings; ruling < last; ruling++) {
        if (ruling->rule == last->rule && ruling->outcome == last->outcome && ruling->key_bytes == last->key_bytes &&
            memcmp(admission->keys + ruling->key_at, admission->keys + last->key_at, last->key_bytes) == 0)
            return true;
    }
    return false;
}

static weir_ruling *prepare_ruling(const weir_admission *counter, uint32_t rule, const struct wr_request_reading *asked,
                                   weir_admission_result *admission, uint32_t *ret_permits)
{
    const struct wr_admission_rule *counted = &counter->rules[rule];
    weir_ruling *ruling = add_ruling(admission, counter, rule);
    char memory[WR_KEY_BUFFER];
    struct wr_buf key;

    wr_buf_init_fixed(&key, memory, sizeof memory);
    ruling->fault = counted->reads_request ? asked->fault : WEIR_FAULT_NONE;
    if (ruling->fault == WEIR_FAULT_NONE)
        ruling->fault = wr_rule_cost(&counted->rule, &asked->request, ret_permits);
    if (ruling->fault == WEIR_FAULT_NONE)
        ruling->fault = wr_key_extract(counted->rule.key, &asked->request, &key);
    if (ruling->fault == WEIR_FAULT_NONE)
        set_ruling_key(counter, &asked->request, (struct wr_span){key.bytes, key.length}, admission, ruling);
    else
        ruling->outcome = WEIR_OUTCOME_MALFORMED;
    return ruling;
}

bool wr_admission_prepare(const weir_admission *counter, uint32_t rule, const struct wr_request_reading *asked,
                          weir_admission_result *admission, weir_ruling **ret_ruling, uint32_t *ret_permits)
{
    *ret_ruling = NULL;
    if (asked->loose != 0 && is_rule_asked(counter, admission, rule))
        return true;
    if (admission->count == WEIR_RULINGS_MAX)
        return false;
    *ret_ruling = prepare_ruling(counter, rule, asked, admission, ret_permits);
    if (asked->loose != 0 && is_ruling_repeated(admission)) {
        admission->count--;
        *ret_ruling = NULL;
    }
    return true;
}

/* Checks the enforced or shadow rules for one reading of a request, until one refuses. Returns
 * false if there are too many rulings, or matching takes too many steps. */
static bool ask_rules(const weir_admission *counter, struct wr_request_reading *asked, bool shadow,
                      const struct wait_limits *patience, weir_admission_result *admission)
{
    /* an unreadable request matches every rule; those that read it refuse it */
    bool is_lost = asked->fault != WEIR_FAULT_NONE;
    weir_ruling *ruling;
    uint32_t permits;

    for (uint32_t i = 0; i < counter->count && admission->allowed; i++) {
        const weir_rule *rule = &counter->rules[i].rule;
        if (rule->shadow != shadow || rule->key == NULL)
            continue;
        bool applies = rule->applies == NULL || is_lost || rule->applies(rule->applies_context, &asked->request);
        if (asked->steps == 0)
            return false;
        if (!applies)
            continue;
        if (!wr_admission_prepare(counter, i, asked, admission, &ruling, &permits))
            return false;
        if (ruling != NULL && ruling->outcome != WEIR_OUTCOME_MALFORMED)
            take_for_ruling(counter, admission, ruling, permits, patience);
        if (ruling != NULL)
            wr_admission_conclude(counter, admission, admission->count - 1);
        if (counter->options.first_match && !shadow)
            break;
    }
    return true;
}

/* Checks all readings of a request. It is allowed only if every reading is. */
static bool ask_readings(const weir_admission *counter, struct wr_request_reading *asked, bool shadow,
                         const struct wait_limits *patience, weir_admission_result *admission)
{
    do {
        if (!ask_rules(counter, asked, shadow, patience, admission))
            return false;
    } while (wr_request_reading_next(asked));
    return true;
}

static int ask_all_rules(weir_admission *counter, struct wr_request_reading *asked, const struct wait_limits *patience,
                         weir_admission_result *admission)
{
    if (!ask_readings(counter, asked, false, patience, admission)) {
        admission->allowed = false;
        (void)weir_admission_cancel(counter, admission);
        if (asked->steps == 0)
            return wr_invalid(weir_request_fault_text(WEIR_FAULT_WORK));
        return wr_invalid("more than 8 rules apply to one request; narrow what they apply to");
    }
    /* an excess of shadow rules must not refuse the request */
    (void)ask_readings(counter, asked, true, &none, admission);
    return 0;
}

static int decide_request(weir_admission *counter, const weir_request *request, const struct wait_limits *patience,
                          weir_admission_result *ret_admission)
{
    struct wr_request_reading asked;
    weir_request_fault fault = WEIR_FAULT_NONE;
    int error = wr_request_check(request);

    if (error < 0)
        return error;
    if (counter == NULL || ret_admission == NULL)
        return wr_invalid("the counter or ret_admission is NULL; give both");
    wr_admission_start(ret_admission);
    if (counter->reads)
        fault = wr_request_reading_begin(request, WR_READS_PATH | WR_READS_HOST | WR_READS_METHOD,
                                         counter->options.exact, &asked);
    if (!counter->reads || fault != WEIR_FAULT_NONE)
        wr_request_reading_keep(request, fault, &asked);
    error = ask_all_rules(counter, &asked, patience, ret_admission);
    if (error == 0)
        wr_admission_finish(counter, request, ret_admission);
    return error;
}

int wr_admission_try(weir_admission *counter, struct wr_request_reading *asked, weir_admission_result *ret_admission)
{
    wr_admission_start(ret_admission);
    int error = ask_all_rules(counter, asked, &none, ret_admission);
    if (error == 0)
        wr_admission_finish(counter, &asked->request, ret_admission);
    return error;
}

int wr_admission_prepare_key(const weir_admission *counter, uint32_t rule, struct wr_span key,
                             weir_admission_result *admission)
{
    if (key.data == NULL || key.bytes == 0 || key.bytes > WEIR_KEY_MAX)
        return wr_invalid("the key is NULL, empty or too long; a key has 1 ... 1024 bytes");
    weir_ruling *ruling = add_ruling(admission, counter, rule);
    set_ruling_key(counter, NULL, key, admission, ruling);
    return 0;
}

static int decide_key(weir_admission *counter, uint32_t rule, const char *key, size_t key_bytes, uint32_t permits,
                      const struct wait_limits *patience, weir_admission_result *ret_admission)
{
    if (counter == NULL || rule >= counter->count || ret_admission == NULL)
        return wr_invalid("no such counter or rule, or ret_admission is NULL; rules count from 0");
    wr_admission_start(ret_admission);
    int error = wr_admission_prepare_key(counter, rule, (struct wr_span){key, key_bytes}, ret_admission);
    if (error < 0)
        return error;
    weir_ruling *ruling = &ret_admission->rulings[0];
    take_for_ruling(counter, ret_admission, ruling, permits > 0 ? permits : counter->rules[rule].rule.permits,
                    patience);
    wr_admission_conclude(counter, ret_admission, 0);
    wr_admission_finish(counter, NULL, ret_admission);
    return 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static int set_wait(const weir_admission *counter, int64_t timeout_ns, weir_cancel *cancel,
                    struct wait_limits *ret_patience)
{
    if (counter == NULL)
        return wr_invalid("the counter is NULL; give one");
    if (wr_timeout_check(timeout_ns) != 0)
        return WEIR_E_INVAL;
    for (uint32_t i = 0; i < counter->count; i++) {
        if (!counter->rules[i].rule.shadow && counter->rules[i].repository.acquire == NULL)
            return wr_invalid("a rule's repository has no acquire, so a call cannot wait for it; use try");
    }
    *ret_patience = (struct wait_limits){.waits = true, .until = WEIR_FOREVER, .cancel = cancel};
    if (timeout_ns != WEIR_FOREVER)
        ret_patience->until = wr_clock_now(counter->options.clock) + timeout_ns;
    return 0;
}

/* Returns the error of `acquire` for a decided admission; 0 if it is allowed. */
static int error_of_result(const weir_admission_result *admission)
{
    if (admission->allowed)
        return 0;
    const weir_ruling *last = &admission->rulings[admission->count - 1];
    if (last->outcome == WEIR_OUTCOME_MALFORMED)
        return wr_invalid_text("rule", last->name, strlen(last->name), weir_request_fault_name(last->fault), WR_NOWHERE,
                               "the request has no key or cost that the rule can use");
    if (last->error < 0)
        return last->error;
    return last->decision.verdict == WEIR_DENY ? WEIR_E_NEVER : WEIR_E_TIMEOUT;
}

int weir_admission_try(weir_admission *counter, const weir_request *request, weir_admission_result *ret_admission)
{
    return decide_request(counter, request, &none, ret_admission);
}

int weir_admission_try_key(weir_admission *counter, uint32_t rule, const char *key, size_t key_bytes, uint32_t permits,
                           weir_admission_result *ret_admission)
{
    return decide_key(counter, rule, key, key_bytes, permits, &none, ret_admission);
}

int weir_admission_acquire(weir_admission *counter, const weir_request *request, int64_t timeout_ns,
                           weir_cancel *cancel, weir_admission_result *ret_admission)
{
    struct wait_limits patience = none;
    int error = set_wait(counter, timeout_ns, cancel, &patience);

    if (error == 0)
        error = decide_request(counter, request, &patience, ret_admission);
    return error < 0 ? error : error_of_result(ret_admission);
}

int weir_admission_acquire_key(weir_admission *counter, uint32_t rule, const char *key, size_t key_bytes,
                               uint32_t permits, int64_t timeout_ns, weir_cancel *cancel,
                               weir_admission_result *ret_admission)
{
    struct wait_limits patience = none;
    int error = set_wait(counter, timeout_ns, cancel, &patience);

    if (error == 0)
        error = decide_key(counter, rule, key, key_bytes, permits, &patience, ret_admission);
    return error < 0 ? error : error_of_result(ret_admission);
}

/* ---- after the decision ---------------------------------------------------------------------- */

static int check_filled(const weir_admission *counter, const weir_admission_result *admission)
{
    if (counter == NULL || admission == NULL || admission->count > WEIR_RULINGS_MAX)
        return wr_invalid("the counter or admission is NULL, or the admission was never filled by this counter");
    for (uint32_t i = 0; i < admission->count; i++) {
        if (admission->rulings[i].rule >= counter->count)
            return wr_invalid("the admission comes from another counter; give it to its own");
    }
    return 0;
}

/* Ends all rulings by calling `end`. Continues after errors and returns the first one. */
static int end_all_rulings(weir_admission *counter, weir_admission_result *admission,
                           int (*end)(const weir_admission *counter, weir_admission_result *admission,
                                      weir_ruling *ruling))
{
    int first = 0;
    int error = check_filled(counter, admission);

    if (error < 0)
        return error;
    for (uint32_t i = 0; i < admission->count; i++) {
        error = end(counter, admission, &admission->rulings[i]);
        first = first < 0 ? first : error;
    }
    return first;
}

int weir_admission_release(weir_admission *counter, weir_admission_result *admission)
{
    return end_all_rulings(counter, admission, release_ruling);
}

int weir_admission_cancel(weir_admission *counter, weir_admission_result *admission)
{
    return end_all_rulings(counter, admission, give_back_ruling);
}

int weir_admission_release_key(weir_admission *counter, uint32_t rule, const char *key, size_t key_bytes,
                               uint32_t permits)
{
    if (counter == NULL || rule >= counter->count)
        return wr_invalid("no such counter or rule; rules count from 0");
    if (key == NULL || key_bytes == 0 || key_bytes > WEIR_KEY_MAX)
        return wr_invalid("the key is NULL, empty or too long; a key has 1 ... 1024 bytes");
    const struct wr_admission_rule *counted = &counter->rules[rule];
    if (counted->repository.release == NULL)
        return 0;
    return counted->repository.release(counted->repository.context, key, key_bytes,
                                       permits > 0 ? permits : counted->rule.permits);
}

int weir_admission_settle(weir_admission *counter, weir_admission_result *admission, uint32_t ruling, uint32_t used)
{
    int error = check_filled(counter, admission);

    if (error < 0)
        return error;
    if (ruling >= admission->count || !admission->rulings[ruling].reserved)
        return wr_invalid("no such ruling, or it has no receipt; settle one that was granted");
    weir_ruling *settled = &admission->rulings[ruling];
    const weir_key_store *repository = wr_admission_key_store(counter, settled);
    if (settled->permits == 0 || settled->receipt.permits == 0)
        return 0;
    error = repository->settle(repository->context, admission->keys + settled->key_at, settled->key_bytes,
                               &settled->receipt, used);
    if (error == 0)
        settled->permits = used;
    return error;
}
