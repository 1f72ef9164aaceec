/* SPDX-License-Identifier: MIT */
/* in_flight.c - handles requests in flight and their results. */
#include "core/plan/plan_state.h"

#include "core/pace/refusal.h"

static struct wr_plan_host *host_of_task(const struct wr_task *task)
{
    bool is_page = (task->flags & (WR_TASK_ROBOTS | WR_TASK_ROBOTS_HOP)) == 0;
    return is_page ? ((struct wr_host_queue *)task->owner)->host : task->owner;
}

static struct wr_host_queue *host_queue_of_task(const struct wr_task *task)
{
    bool is_page = (task->flags & (WR_TASK_ROBOTS | WR_TASK_ROBOTS_HOP)) == 0;
    return is_page ? task->owner : NULL;
}

static struct wr_task *task_in_flight(const struct wr_plan *plan, uint32_t number)
{
    struct wr_task *task = wr_task_at(&plan->pool, number);
    assert((task->flags & WR_TASK_IN_FLIGHT) != 0);
    return task;
}

static struct wr_gate_start own_gate_start(const struct wr_task *task)
{
    return (struct wr_gate_start){task->seq, task->in_flight, task->at};
}

static void set_own_gate_start(struct wr_task *task, struct wr_gate_start start)
{
    task->seq = start.seq;
    task->in_flight = wr_task_clamp(start.in_flight);
    task->at = start.sent_at;
}

void wr_task_reserve(struct wr_plan *plan, struct wr_plan_host *host, uint32_t number, int64_t now)
{
    struct wr_task *task = wr_task_at(&plan->pool, number);
    struct wr_gate *gate = wr_host_gate_of(host);
    struct wr_host_queue *host_queue = host_queue_of_task(task);
    task->flags |= WR_TASK_IN_FLIGHT;
    task->seq = wr_gate_reserve(gate, wr_host_pace_options(plan, host), now);
    if (!wr_gate_spaces(gate, wr_host_pace_options(plan, host))) {
        set_own_gate_start(task, wr_gate_sent(gate, wr_host_pace_options(plan, host), task->seq, now));
        task->flags |= WR_TASK_UNSPACED;
    }
    wr_group_reserve(plan, host, task, now);
    plan->in_flight++;
    if (host_queue != NULL) {
        host_queue->in_flight++;
        wr_tasks_push(&plan->pool, &host_queue->flying, number);
        host_queue->job->in_flight++;
    }
}

/* Ends the flight of a task: it keeps its memory but no start. */
static void end_in_flight(struct wr_plan *plan, struct wr_task *task)
{
    struct wr_host_queue *host_queue = host_queue_of_task(task);
    task->flags &= (uint8_t) ~(WR_TASK_IN_FLIGHT | WR_TASK_SENT | WR_TASK_UNSPACED);
    task->at = 0;
    plan->in_flight--;
    if (host_queue != NULL) {
        host_queue->in_flight--;
        wr_tasks_remove(&plan->pool, &host_queue->flying, task);
        host_queue->job->in_flight--;
    }
}

void wr_task_end(struct wr_plan *plan, uint32_t number)
{
    const struct wr_task *task = wr_task_at(&plan->pool, number);
    struct wr_host_queue *host_queue = host_queue_of_task(task);
    host_of_task(task)->claims--;
    if (host_queue != NULL)
        wr_job_task_ended(host_queue->job, 1);
    wr_pool_give(&plan->pool, number);
    plan->starved = false;
}

/* ---- before writing ---- */

weir_decision wr_plan_may_send(struct wr_plan *plan, uint32_t number, int64_t now)
{
    struct wr_task *task = task_in_flight(plan, number);
    struct wr_plan_host *host = host_of_task(task);
    const struct wr_gate *gate = wr_host_gate_of(host);
    bool is_own = (task->flags & WR_TASK_ROBOTS) != 0 || host_queue_of_task(task) != NULL;
    if (wr_host_is_blocked(host, now) && is_own)
        return (weir_decision){WEIR_WAIT, WEIR_REASON_BREAKER, host->blocked_until - now};
    if (!wr_host_is_leased(plan, host, now))
        return (weir_decision){WEIR_WAIT, WEIR_REASON_QUEUE, WEIR_UNTIL_RELEASE};
    weir_decision decision = (task->flags & WR_TASK_UNSPACED) != 0
                                 ? wr_gate_ask_unwritten(gate, wr_host_pace_options(plan, host), now)
                                 : wr_gate_ask_again(gate, wr_host_pace_options(plan, host), task->seq, now);
    return decision.verdict == WEIR_GO ? wr_group_may_send(plan, host, task, now) : decision;
}

static void step_robots(struct wr_plan *plan, struct wr_plan_host *host, bool is_https, enum wr_robots_event_kind kind,
                        int64_t now)
{
    struct wr_robots_event event = {.kind = kind, .retry_after_ns = -1, .unit = wr_rng_unit(&plan->rng)};
    wr_robots_lifecycle_step(&host->robots[is_https], &plan->options.robots, &event, now);
}

void wr_plan_sent(struct wr_plan *plan, uint32_t number, int64_t now)
{
    struct wr_task *task = task_in_flight(plan, number);
    struct wr_plan_host *host = host_of_task(task);
    struct wr_gate *gate = wr_host_gate_of(host);
    assert((task->flags & WR_TASK_SENT) == 0);
    task->flags |= WR_TASK_SENT;
    plan->stats.hasty +=
        wr_host_figures_sent(&host->figures, wr_gate_min_interval(gate, wr_host_pace_options(plan, host)), now);
    if ((task->flags & WR_TASK_UNSPACED) != 0)
        wr_gate_written(gate, wr_host_pace_options(plan, host), now);
    else
        set_own_gate_start(task, wr_gate_sent(gate, wr_host_pace_options(plan, host), task->seq, now));
    wr_group_sent(plan, host, task, now);
    if ((task->flags & WR_TASK_ROBOTS) != 0) /* no effect for a redirect hop of a robots.txt */
        step_robots(plan, host, wr_task_is_https(task), WR_ROBOTS_EVENT_STARTED, now);
    wr_host_reschedule(plan, host, now);
}

void wr_plan_sent_late(struct wr_plan *plan, uint32_t number, int64_t now)
{
    struct wr_task *task = task_in_flight(plan, number);
    struct wr_plan_host *host = host_of_task(task);
    assert((task->flags & WR_TASK_SENT) != 0);
    task->at = host->figures.last_at = now;
    wr_gate_sent_late(wr_host_gate_of(host), wr_host_pace_options(plan, host), 0, now);
    if ((task->flags & WR_TASK_GROUPED) != 0)
        wr_gate_sent_late(wr_group_gate(host), &plan->options.pace, 0, now);
    wr_host_reschedule(plan, host, now);
}

/* Frees the task if its job is over, or if another process has its host. Returns true if it did. */
static bool free_if_unwanted(struct wr_plan *plan, struct wr_host_queue *host_queue, uint32_t number)
{
    if (host_queue == NULL || (!host_queue->job->ended && !wr_host_lacks_lease(plan, host_queue->host)))
        return false;
    wr_task_end(plan, number);
    if (host_queue->in_flight == 0 && !host_queue->loading)
        wr_host_queue_free(plan, host_queue);
    return true;
}

/* Ends a robots.txt task. If it was not sent it has not failed, and is requested once more. */
static void end_robots_task(struct wr_plan *plan, struct wr_plan_host *host, uint32_t number, bool was_sent,
                            int64_t now)
{
    bool is_https = wr_task_is_https(wr_task_at(&plan->pool, number));
    uint8_t bit = (uint8_t)(1U << is_https);
    host->asked &= (uint8_t)~bit;
    if (was_sent)
        step_robots(plan, host, is_https, WR_ROBOTS_EVENT_FAILED, now);
    else if (host->robots[is_https].fetching)
        host->hop |= bit;
    wr_task_end(plan, number);
}

static void drop_gate_starts(struct wr_plan *plan, struct wr_task *task, int64_t now)
{
    struct wr_plan_host *host = host_of_task(task);
    struct wr_gate *gate = wr_host_gate_of(host);
    wr_group_drop(plan, host, task, now);
    if ((task->flags & (WR_TASK_SENT | WR_TASK_UNSPACED)) != 0)
        wr_gate_drop(gate, wr_host_pace_options(plan, host),
                     &(struct wr_gate_start){task->seq, task->in_flight, task->at}, now);
    else
        wr_gate_give(gate, wr_host_pace_options(plan, host), task->seq, now);
}

void wr_plan_task_given_back(struct wr_plan *plan, uint32_t number, int64_t now)
{
    struct wr_task *task = task_in_flight(plan, number);
    struct wr_plan_host *host = host_of_task(task);
    struct wr_host_queue *host_queue = host_queue_of_task(task);
    bool was_sent = (task->flags & WR_TASK_SENT) != 0;
    drop_gate_starts(plan, task, now);
    end_in_flight(plan, task);
    host->pushed_until = now + WR_RETRY_UNSENT_MIN_NS;
    if ((task->flags & WR_TASK_ROBOTS) != 0)
        end_robots_task(plan, host, number, was_sent, now);
    else if (host_queue == NULL)
        wr_tasks_push_front(&plan->pool, &host->errands, number);
    else if (!free_if_unwanted(plan, host_queue, number))
        wr_host_queue_push_front(plan, host_queue, number, now);
    wr_host_reschedule(plan, host, now);
}

/* ---- responses ---- */

/* Returns by how much a job's concurrency is reduced: one for each full step of learned delay. */
static uint32_t concurrency_reduction_of(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    const struct wr_gate *gate = wr_host_gate_of(host);
    int64_t above_ns = wr_gate_delay(gate, wr_host_pace_options(plan, host), now) - plan->options.pace.base_delay_ns;
    int64_t steps = above_ns > 0 ? above_ns / plan->options.pace.concurrency_step_ns : 0;
    return steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX;
}

static void set_concurrency_reduction(struct wr_plan *plan, struct wr_plan_host *host, uint32_t steps)
{
    plan->stats.lowered += steps > 0;
    plan->stats.lowered -= host->steps > 0;
    plan->stats.overrides += steps != host->steps;
    host->steps = steps;
}

/* Decides whether the news include HOPELESS, which is for a job. If the last of the 429s was for a
 * robots.txt, which has no job, the next page that is refused reports it. */
static uint32_t note_hopeless(struct wr_plan *plan, struct wr_plan_host *host, const struct wr_task *task, int status,
                              uint32_t news)
{
    bool is_page = host_queue_of_task(task) != NULL;
    bool is_said = (news & WR_GATE_CHANGE_HOPELESS) != 0 || (host->hopeless && is_page && wr_status_refuses(status));
    host->hopeless = is_page ? false : host->hopeless || is_said;
    plan->stats.hopeless += is_said && is_page;
    return is_said && is_page ? news | WR_GATE_CHANGE_HOPELESS : news & ~(uint32_t)WR_GATE_CHANGE_HOPELESS;
}

/* Passes a result to the host's own gate. If the request was sent before the host was forgotten,
 * the gate learns only the waiting time in it. */
static uint32_t tell_own_gate(const struct wr_plan *plan, struct wr_plan_host *host, const struct wr_task *task,
                              const weir_outcome *outcome, double unit, int64_t now)
{
    struct wr_gate *gate = wr_host_gate_of(host);
    const weir_pace_options *pace = wr_host_pace_options(plan, host);
    struct wr_gate_start start = own_gate_start(task);
    if (start.sent_at >= host->forgot_at)
        return wr_gate_tell(gate, pace, &start, outcome, now, unit);
    uint32_t news = wr_gate_tell_head(gate, pace, &start, outcome, now, unit);
    wr_gate_drop(gate, pace, &start, now);
    return news;
}

/* Returns the status to count: for a robots.txt or an errand, a 4xx is as good as a file. */
static int status_to_count(const struct wr_task *task, int status)
{
    return host_queue_of_task(task) == NULL && status >= 400 && status <= 499 ? 200 : status;
}

static uint32_t tell_both_gates(struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task,
                                const weir_outcome *outcome, int64_t now)
{
    double unit = wr_rng_unit(&plan->rng);
    uint32_t news = tell_own_gate(plan, host, task, outcome, unit, now);
    wr_group_tell(plan, host, task, outcome, unit, now);
    if ((news & WR_GATE_CHANGE_DELAY) != 0)
        set_concurrency_reduction(plan, host, concurrency_reduction_of(plan, host, now));
    bool is_rejection = (news & WR_GATE_CHANGE_REJECTED) != 0;
    plan->stats.rejected += is_rejection;
    wr_host_figures_finished(&host->figures, is_rejection ? outcome->status : status_to_count(task, outcome->status),
                             is_rejection);
    wr_host_note_gate_changes(plan, host, news, outcome->status, now);
    return note_hopeless(plan, host, task, outcome->status, news);
}

static void charge_page_bytes(struct wr_job *job, uint64_t bytes)
{
    uint64_t *left = &job->left[WR_BUDGET_BYTES];
    if (!job->options.has_byte_budget || job->ended)
        return;
    job->owed_bytes += bytes > *left ? bytes - *left : 0;
    *left -= bytes < *left ? bytes : *left;
    if (*left == 0 && job->is_last[WR_BUDGET_BYTES]) {
        job->says_over = true;
        job->over = WR_BUDGET_BYTES;
    }
}

/* Decides whether a page is done, is retried and when, or has failed. */
static struct wr_task_outcome judge_page_result(struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task,
                                                enum wr_status_class ended, int64_t now)
{
    static const enum wr_task_outcome_kind kinds[] = {
        [WR_RETRY_DONE] = WR_TASK_OUTCOME_DONE,    [WR_RETRY_QUEUE] = WR_TASK_OUTCOME_RETRY,
        [WR_RETRY_SLEEP] = WR_TASK_OUTCOME_RETRY,  [WR_RETRY_PERMANENT] = WR_TASK_OUTCOME_FAILED,
        [WR_RETRY_SPENT] = WR_TASK_OUTCOME_FAILED, [WR_RETRY_LATE] = WR_TASK_OUTCOME_FAILED};
    weir_decision gate = wr_gate_ask_as_holder(wr_host_gate_of(host), wr_host_pace_options(plan, host), now);
    bool is_timed = gate.verdict == WEIR_WAIT && gate.wait_ns != WEIR_UNTIL_RELEASE;
    struct wr_attempts attempts = {.failures = task->failures, .blocks = task->blocks, .deadline_at = WEIR_FOREVER};
    struct wr_next_attempt next = wr_attempts_after(&attempts, &plan->options.pace.retry, ended,
                                                    is_timed ? gate.wait_ns : 0, now, wr_rng_unit(&plan->rng));
    task->failures = (uint8_t)(attempts.failures < UINT8_MAX ? attempts.failures : UINT8_MAX);
    task->blocks = (uint8_t)(attempts.blocks < UINT8_MAX ? attempts.blocks : UINT8_MAX);
    uint32_t tries =
        attempts.failures + attempts.blocks + (next.what == WR_RETRY_DONE || next.what == WR_RETRY_PERMANENT);
    return (struct wr_task_outcome){
        .kind = kinds[next.what], .why = next.what, .at = now + next.delay_ns, .attempts = tries};
}

uint32_t wr_plan_response_head(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome, int64_t now)
{
    const struct wr_task *task = task_in_flight(plan, number);
    struct wr_plan_host *host = host_of_task(task);
    struct wr_gate_start start = own_gate_start(task);
    double unit = wr_rng_unit(&plan->rng);
    uint32_t news =
        wr_gate_tell_head(wr_host_gate_of(host), wr_host_pace_options(plan, host), &start, outcome, now, unit);
    wr_group_tell_head(plan, host, task, outcome, unit, now);
    wr_host_note_gate_changes(plan, host, news, outcome->status, now);
    if (news != 0)
        wr_host_reschedule(plan, host, now);
    return news;
}

/* Retries a page or ends it, after a result. */
static struct wr_task_outcome retry_or_end_page(struct wr_plan *plan, struct wr_plan_host *host, uint32_t number,
                                                enum wr_status_class ended, int64_t now)
{
    struct wr_task *task = wr_task_at(&plan->pool, number);
    struct wr_host_queue *host_queue = host_queue_of_task(task);
    struct wr_task_outcome fate = judge_page_result(plan, host, task, ended, now);
    if (fate.kind == WR_TASK_OUTCOME_RETRY) {
        plan->stats.retries++;
        host->figures.retries++;
        task->at = fate.at > 0 ? fate.at : 1;
        if (!free_if_unwanted(plan, host_queue, number))
            wr_host_queue_push(plan, host_queue, number, now);
    } else if (!free_if_unwanted(plan, host_queue, number)) {
        wr_task_end(plan, number);
    }
    return fate;
}

struct wr_task_outcome wr_plan_page_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                             uint64_t bytes, int64_t now)
{
    struct wr_task *task = task_in_flight(plan, number);
    struct wr_plan_host *host = host_of_task(task);
    struct wr_host_queue *host_queue = host_queue_of_task(task);
    assert(host_queue != NULL);
    uint32_t news = tell_both_gates(plan, host, task, outcome, now);
    host->figures.bytes += bytes;
    end_in_flight(plan, task);
    charge_page_bytes(host_queue->job, bytes);
    struct wr_task_outcome fate =
        retry_or_end_page(plan, host, number, wr_status_class(&plan->statuses, outcome->status), now);
    fate.news = news;
    wr_host_reschedule(plan, host, now);
    return fate;
}

/* Passes a result to the gate, or drops the start if there is no outcome. */
static uint32_t tell_gates_or_drop_starts(struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task,
                                          const weir_outcome *outcome, int64_t now)
{
    if (outcome == NULL) {
        drop_gate_starts(plan, task, now);
        return 0;
    }
    return tell_both_gates(plan, host, task, outcome, now);
}

struct wr_task_outcome wr_plan_page_failed(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                           bool is_final, int64_t now)
{
    struct wr_task *task = task_in_flight(plan, number);
    struct wr_plan_host *host = host_of_task(task);
    assert(host_queue_of_task(task) != NULL);
    uint32_t news = tell_gates_or_drop_starts(plan, host, task, outcome, now);
    end_in_flight(plan, task);
    struct wr_task_outcome fate = retry_or_end_page(
        plan, host, number, is_final ? WR_STATUS_PERMANENT : wr_status_class(&plan->statuses, 0), now);
    fate.news = news;
    wr_host_reschedule(plan, host, now);
    return fate;
}

/* ---- robots.txt and errands ---- */

struct wr_robots_action wr_plan_robots_arrived(struct wr_plan *plan, struct wr_plan_host *host, bool is_https,
                                               const struct wr_robots_event *event, struct wr_robots *rules, bool stays,
                                               int64_t now)
{
    struct wr_robots_event said = *event;
    uint8_t bit = (uint8_t)(1U << is_https);
    said.unit = wr_rng_unit(&plan->rng);
    if (rules != NULL && !wr_rules_fit(plan, host, is_https, rules, now))
        said = (struct wr_robots_event){
            .kind = WR_ROBOTS_EVENT_FAILED, .lacks_room = true, .retry_after_ns = -1, .unit = said.unit};
    struct wr_robots_action action =
        wr_robots_lifecycle_step(&host->robots[is_https], &plan->options.robots, &said, now);
    host->claims -= (host->away & bit) != 0;
    host->away &= (uint8_t)~bit;
    if (action.fetch == WR_ROBOTS_FETCH_REDIRECT) {
        host->hop |= stays ? bit : 0;
        host->away |= stays ? 0 : bit;
        host->claims += !stays;
    }
    if (action.copy == WR_ROBOTS_COPY_READ || action.copy == WR_ROBOTS_COPY_DROP)
        wr_host_set_rules(plan, host, is_https, action.copy == WR_ROBOTS_COPY_READ ? rules : NULL, now);
    if (action.copy != WR_ROBOTS_COPY_READ)
        wr_robots_free(rules);
    wr_host_reschedule(plan, host, now);
    return action;
}

uint32_t wr_plan_robots_failures(const struct wr_plan_host *host, bool is_https)
{
    return host->robots[is_https].failures;
}

void wr_plan_origin_unreachable(struct wr_plan *plan, struct wr_plan_host *host, bool is_https, uint8_t tag,
                                int64_t now)
{
    host->gave_up |= (uint8_t)(1U << is_https);
    host->lost[is_https] = tag;
    wr_host_reschedule(plan, host, now);
}

enum wr_firewall_change wr_plan_firewall_seen(struct wr_plan *plan, struct wr_plan_host *host, uint8_t by, int64_t now)
{
    bool is_blocked = wr_host_is_blocked(host, now);
    if (by == 0 || is_blocked) {
        bool is_lifted = !is_blocked && host->blocked_by != 0;
        host->walls = 0;
        host->blocked_by = is_blocked ? host->blocked_by : 0;
        return is_lifted ? WR_FIREWALL_CHANGE_LIFTED : WR_FIREWALL_CHANGE_NONE;
    }
    if (++host->walls < WR_PLAN_FIREWALL_PAGES)
        return WR_FIREWALL_CHANGE_NONE;
    host->walls = 0;
    host->blocked_by = by;
    host->blocked_until = now + WR_PLAN_BLOCKED_NS;
    wr_host_reschedule(plan, host, now);
    return WR_FIREWALL_CHANGE_BLOCKED;
}

struct wr_robots_action wr_plan_robots_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                                const struct wr_robots_event *event, struct wr_robots *rules,
                                                bool stays, int64_t now)
{
    struct wr_task *task = task_in_flight(plan, number);
    struct wr_plan_host *host = host_of_task(task);
    bool is_https = wr_task_is_https(task);
    assert((task->flags & WR_TASK_ROBOTS) != 0);
    tell_gates_or_drop_starts(plan, host, task, outcome, now);
    end_in_flight(plan, task);
    host->asked &= (uint8_t) ~(1U << is_https);
    wr_task_end(plan, number);
    return wr_plan_robots_arrived(plan, host, is_https, event, rules, stays, now);
}

int wr_plan_robots_hop_add(struct wr_plan *plan, const struct wr_url *url, uint64_t tag, int64_t now)
{
    char memory[WEIR_PACE_KEY_MAX + 1];
    struct wr_plan_host *host;
    struct wr_buf buf;
    uint32_t number;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_url_append_key(&buf, url);
    int error = wr_host_get_or_make(plan, (struct wr_span){memory, buf.length}, now, &host);
    if (error == 0)
        error = wr_pool_take(&plan->pool, wr_url_target(url), &number);
    if (error != 0)
        return error;
    struct wr_task *task = wr_task_at(&plan->pool, number);
    task->owner = host;
    task->fingerprint = tag;
    task->flags |= (uint8_t)(WR_TASK_ROBOTS_HOP | (url->is_https ? WR_TASK_HTTPS : 0));
    host->claims++;
    wr_tasks_push(&plan->pool, &host->errands, number);
    wr_host_reschedule(plan, host, now);
    return 0;
}

bool wr_plan_robots_hop_remove(struct wr_plan *plan, struct wr_plan_host *host, uint64_t tag, int64_t now)
{
    uint32_t number = host->errands.count > 0 ? host->errands.first : WR_NO_TASK;
    while (number != WR_NO_TASK && wr_task_at(&plan->pool, number)->fingerprint != tag)
        number = wr_task_at(&plan->pool, number)->next;
    if (number == WR_NO_TASK)
        return false;
    wr_tasks_remove(&plan->pool, &host->errands, wr_task_at(&plan->pool, number));
    wr_task_end(plan, number);
    wr_host_reschedule(plan, host, now);
    return true;
}

uint32_t wr_plan_robots_hop_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome, int64_t now)
{
    struct wr_task *task = task_in_flight(plan, number);
    struct wr_plan_host *host = host_of_task(task);
    assert((task->flags & WR_TASK_ROBOTS_HOP) != 0);
    uint32_t news = tell_gates_or_drop_starts(plan, host, task, outcome, now);
    end_in_flight(plan, task);
    wr_task_end(plan, number);
    wr_host_reschedule(plan, host, now);
    return news;
}
