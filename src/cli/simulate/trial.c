/* SPDX-License-Identifier: MIT */
/* trial.c - runs a real limiter on a fake clock. The clock moves from request to request, stopping
 * in between whenever a request ends or the first request in the queue must ask the limiter. */
#include "cli/simulate/trial.h"

#include <stdalign.h>
#include <string.h>

#include "base/alloc.h"
#include "core/admit/admission_result.h"

#define NEVER INT64_MAX

/* A request in the queue. */
struct queued_request {
    weir_ticket *ticket; /* ticket of the limiter; NULL: not waiting */
};

struct trial {
    const struct wr_trial_plan *plan;
    weir_clock *clock;
    weir_limiter *limiter;
    struct wr_trial_answer *answers;
    size_t asked;
    struct queued_request *places; /* places in the queue, one per request */
    size_t head;                   /* index of the first request that may still be in the queue */
    int64_t poll_at;               /* time at which the head asks the limiter */
    size_t ended;                  /* number of requests whose end was reported, or that were refused */
};

/* Ignores the wake-up: the head polls the limiter instead. */
static void ignore_wakeup(void *context)
{
    (void)context;
}

static int64_t decision_retry_after_s(weir_decision decision)
{
    weir_ruling ruling = {.outcome = WEIR_OUTCOME_REFUSED, .decision = decision};
    return wr_retry_after_s(&ruling);
}

/* Polls the limiter for the first request in the queue, and for the following ones as long as
 * requests leave. */
static void poll_queue(struct trial *trial, int64_t now)
{
    weir_decision decision;
    trial->poll_at = NEVER;
    for (; trial->head < trial->asked; trial->head++) {
        struct queued_request *place = &trial->places[trial->head];
        struct wr_trial_answer *answer = &trial->answers[trial->head];
        if (place->ticket == NULL)
            continue;
        int error = weir_ticket_poll(place->ticket, &decision);
        if (error == 0 && decision.verdict != WEIR_GO) {
            int64_t left_ns = answer->asked_at + trial->plan->wait_ns - now;
            trial->poll_at = now + (decision.wait_ns < left_ns ? decision.wait_ns : left_ns);
            return;
        }
        answer->granted_at = error == 0 ? now : -1;
        weir_ticket_free(place->ticket);
        place->ticket = NULL;
    }
}

/* Returns when the next request in flight ends. All take equally long, so they end in the order of
 * their grants. That is the order of the requests, because the queue is fair. */
static int64_t next_end(struct trial *trial)
{
    while (trial->ended < trial->asked && trial->answers[trial->ended].granted_at < 0 &&
           trial->places[trial->ended].ticket == NULL)
        trial->ended++;
    if (trial->ended == trial->asked || trial->answers[trial->ended].granted_at < 0)
        return NEVER;
    return trial->answers[trial->ended].granted_at + trial->plan->take_ns;
}

/* Handles all ends and polls up to the given time. */
static int advance_trial(struct trial *trial, int64_t until)
{
    for (;;) {
        int64_t end_at = next_end(trial), at = end_at < trial->poll_at ? end_at : trial->poll_at;
        if (at > until || at == NEVER)
            return 0;
        int error = weir_clock_fake_set(trial->clock, at);
        if (error == 0 && at == end_at) {
            error = weir_limiter_release(trial->limiter, 1);
            trial->ended++;
        }
        if (error != 0)
            return error;
        poll_queue(trial, at);
    }
}

static int ask_trial_limiter(struct trial *trial, int64_t now)
{
    size_t index = trial->asked++;
    weir_decision decision;
    struct wr_trial_answer *answer = &trial->answers[index];
    *answer = (struct wr_trial_answer){.asked_at = now, .granted_at = -1};
    int error = trial->plan->wait_ns > 0 ? weir_limiter_enqueue(trial->limiter, 1, trial->plan->wait_ns, ignore_wakeup,
                                                                NULL, &trial->places[index].ticket)
                                         : weir_limiter_try(trial->limiter, 1, &decision);
    if (trial->plan->wait_ns > 0 && error == 0)
        poll_queue(trial, now);
    else if (error == 0 && decision.verdict == WEIR_GO)
        answer->granted_at = now;
    else if (error == 0)
        answer->retry_after_s = decision_retry_after_s(decision);
    return error == WEIR_E_FULL ? 0 : error; /* a full queue means a refusal, not an error */
}

static int run_trial_requests(struct trial *trial, const int64_t *at)
{
    int error = 0;
    for (size_t i = 0; error == 0 && i < trial->plan->traffic->requests; i++) {
        error = advance_trial(trial, at[i]);
        error = error != 0 ? error : weir_clock_fake_set(trial->clock, at[i]);
        error = error != 0 ? error : ask_trial_limiter(trial, at[i]);
    }
    return error != 0 ? error : advance_trial(trial, NEVER - 1);
}

int wr_trial_run(const struct wr_trial_plan *plan, const weir_limit *limits, size_t count,
                 struct wr_trial_answer *ret_answers)
{
    const weir_allocator *allocator = weir_allocator_system();
    size_t requests = plan->traffic->requests;
    struct trial trial = {.plan = plan, .answers = ret_answers, .poll_at = NEVER};
    weir_limiter_options options;
    int64_t *at = wr_alloc_array(allocator, requests, sizeof *at, alignof(int64_t));
    trial.places = wr_alloc_array(allocator, requests, sizeof *trial.places, alignof(struct queued_request));
    int error = at == NULL || trial.places == NULL ? WEIR_E_NOMEM : weir_clock_fake_new(0, allocator, &trial.clock);
    weir_limiter_options_init(&options);
    options.clock = trial.clock;
    error = error != 0 ? error : weir_limiter_new(limits, count, &options, &trial.limiter);
    if (error == 0) {
        memset(trial.places, 0, requests * sizeof *trial.places);
        wr_traffic_fill(plan->traffic, at);
        error = run_trial_requests(&trial, at);
        for (size_t i = 0; i < requests; i++)
            weir_ticket_free(trial.places[i].ticket);
    }
    weir_limiter_free(trial.limiter);
    weir_clock_fake_free(trial.clock);
    wr_free(allocator, at, requests * sizeof *at, alignof(int64_t));
    wr_free(allocator, trial.places, requests * sizeof *trial.places, alignof(struct queued_request));
    return error;
}

/* Returns the maximum number of grants in any half-open window of `window_ns`, which `first` and
 * `last` delimit. */
static size_t most_grants_within(const struct wr_trial_answer *answers, size_t count, int64_t window_ns)
{
    size_t first = 0, inside = 0, most = 0;
    for (size_t last = 0; last < count; last++) {
        if (answers[last].granted_at < 0)
            continue;
        inside++;
        for (; answers[first].granted_at < 0 || answers[last].granted_at - answers[first].granted_at >= window_ns;
             first++)
            inside -= answers[first].granted_at >= 0;
        most = inside > most ? inside : most;
    }
    return most;
}

struct wr_trial_sum wr_trial_sum(const struct wr_trial_plan *plan, const struct wr_trial_answer *answers,
                                 int64_t window_ns)
{
    struct wr_trial_sum sum = {.asked = plan->traffic->requests};
    for (size_t i = 0; i < sum.asked; i++) {
        const struct wr_trial_answer *answer = &answers[i];
        int64_t waited_ns = answer->granted_at - answer->asked_at, told_s = answer->retry_after_s;
        sum.granted += answer->granted_at >= 0;
        if (answer->granted_at >= 0 && waited_ns > sum.longest_ns)
            sum.longest_ns = waited_ns;
        if (told_s > 0 && (sum.retry_min_s == 0 || told_s < sum.retry_min_s))
            sum.retry_min_s = told_s;
        sum.retry_max_s = told_s > sum.retry_max_s ? told_s : sum.retry_max_s;
    }
    sum.most_in_window = most_grants_within(answers, sum.asked, window_ns);
    sum.most_in_flight = most_grants_within(answers, sum.asked, plan->take_ns);
    return sum;
}
