/* SPDX-License-Identifier: MIT */
/* next.c - picks the next action of all that are possible. */
#include "base/buf.h"
#include "core/plan/plan_state.h"

const char *wr_plan_action_kind_name(enum wr_plan_action_kind kind)
{
    static const char *const names[] = {
#define X(kind, name) name,
        WR_PLAN_ACTION_KINDS(X)
#undef X
    };
    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}

/* ---- building actions ---- */

/* Writes the URL of a task into the plan's buffer. The host's key is its host and port,
 * canonical. */
static struct wr_span write_task_url(struct wr_plan *plan, const struct wr_plan_host *host, const struct wr_task *task,
                                     size_t *ret_target_at)
{
    struct wr_buf buf;
    struct wr_span key = wr_plan_host_key(host);
    wr_buf_init_fixed(&buf, plan->url, sizeof plan->url);
    wr_buf_append(&buf, wr_task_is_https(task) ? "https://" : "http://", wr_task_is_https(task) ? 8 : 7);
    wr_buf_append(&buf, key.data, key.bytes);
    *ret_target_at = buf.length;
    assert(buf.length + task->text_bytes < sizeof plan->url);
    wr_pool_text(&plan->pool, task, plan->url + buf.length);
    return (struct wr_span){plan->url, buf.length + task->text_bytes};
}

static struct wr_plan_action action_of_task(struct wr_plan *plan, enum wr_plan_action_kind kind,
                                            struct wr_plan_host *host, uint32_t number)
{
    size_t target_at;
    const struct wr_task *task = wr_task_at(&plan->pool, number);
    return (struct wr_plan_action){.kind = kind,
                                   .task = number,
                                   .fingerprint = task->fingerprint,
                                   .host = host,
                                   .url = write_task_url(plan, host, task, &target_at),
                                   .depth = task->depth,
                                   .hops = task->hops,
                                   .attempts = (uint32_t)task->failures + task->blocks,
                                   .is_https = wr_task_is_https(task)};
}

/* Makes the action of a page that starts or ends, with its wait. */
static struct wr_plan_action page_action(struct wr_plan *plan, enum wr_plan_action_kind kind,
                                         struct wr_host_queue *host_queue, uint32_t number, int64_t now)
{
    struct wr_plan_action action = action_of_task(plan, kind, host_queue->host, number);
    action.job = host_queue->job->options.id;
    action.waited = wr_task_waited(plan, host_queue->host, wr_task_at(&plan->pool, number), now);
    return action;
}

/* ---- tasks that end unsent ---- */

static void end_page_unsent(struct wr_plan *plan, struct wr_host_queue *host_queue, uint32_t number, weir_reason reason,
                            bool is_denied, int64_t now, struct wr_plan_action *ret_action)
{
    struct wr_job *job = host_queue->job;
    *ret_action = page_action(plan, WR_PLAN_END, host_queue, number, now);
    ret_action->reason = reason;
    ret_action->is_denied = is_denied;
    ret_action->blocked_by = wr_host_is_blocked(host_queue->host, now) ? host_queue->host->blocked_by : 0;
    ret_action->tag = is_denied ? 0 : host_queue->host->lost[ret_action->is_https];
    plan->stats.denied += is_denied;
    plan->stats.expired += !is_denied;
    if (is_denied && job->options.has_page_budget)
        job->left[WR_BUDGET_PAGES]++; /* a denied page does not count against the budget */
    wr_task_end(plan, number);
}

/* Removes a task of an origin whose tasks expire. */
static uint32_t pop_expired(struct wr_plan *plan, struct wr_plan_host *host, struct wr_host_queue **ret_lane)
{
    for (struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL; host_queue = host_queue->beside)
        for (uint32_t origin = 0; origin < WR_ORIGINS; origin++)
            if ((host->expiring >> origin & 1) != 0 && host_queue->queued[origin] > 0) {
                *ret_lane = host_queue;
                return wr_host_queue_pop_any(plan, host_queue, origin == 1);
            }
    return WR_NO_TASK;
}

/* Ends one task of a host whose tasks have expired. If more have, rescheduling the host puts it
 * back on the list. */
static bool end_expired_task(struct wr_plan *plan, int64_t now, struct wr_plan_action *ret_action)
{
    struct wr_host_queue *host_queue;
    if (plan->expiring.first == NULL)
        return false;
    struct wr_plan_host *host = WR_LINKED(plan->expiring.first, struct wr_plan_host, expires);
    uint32_t number = pop_expired(plan, host, &host_queue);
    if (number != WR_NO_TASK)
        end_page_unsent(plan, host_queue, number, (weir_reason)host->expiring_for, false, now, ret_action);
    host->gave_up |= host->expiring;
    host->expiring = 0;
    wr_list_remove(&host->expires);
    wr_host_reschedule(plan, host, now);
    return number != WR_NO_TASK;
}

/* ---- robots.txt and errands ---- */

static bool start_robots_hop(struct wr_plan *plan, struct wr_plan_host *host, int64_t now,
                             struct wr_plan_action *ret_action)
{
    if (host->errands.count == 0)
        return false;
    uint32_t number = wr_tasks_take(&plan->pool, &host->errands, WR_NO_TASK);
    wr_task_reserve(plan, host, number, now);
    *ret_action = action_of_task(plan, WR_PLAN_ROBOTS_HOP, host, number);
    ret_action->tag = ret_action->fingerprint;
    ret_action->waited = wr_host_waited(plan, host, now);
    ret_action->next_ns = wr_host_next_start_ns(plan, host, now);
    return true;
}

static bool start_robots_of_host(struct wr_plan *plan, struct wr_plan_host *host,
                                 const struct wr_host_readiness *standing, int64_t now,
                                 struct wr_plan_action *ret_action)
{
    uint32_t number, origin = 0;
    while (origin < WR_ORIGINS && !(host->hop >> origin & 1) && standing->life[origin].fetch == WR_ROBOTS_FETCH_NONE)
        origin++;
    if (origin == WR_ORIGINS || wr_pool_take(&plan->pool, wr_span_of("/robots.txt"), &number) != 0)
        return false;
    struct wr_task *task = wr_task_at(&plan->pool, number);
    bool is_hop = (host->hop >> origin & 1) != 0;
    task->owner = host;
    task->flags |= (uint8_t)(WR_TASK_ROBOTS | (origin == 1 ? WR_TASK_HTTPS : 0));
    host->claims++;
    host->hop &= (uint8_t) ~(1U << origin);
    host->asked |= (uint8_t)(1U << origin);
    plan->stats.robots++;
    wr_task_reserve(plan, host, number, now);
    *ret_action = action_of_task(plan, WR_PLAN_ROBOTS, host, number);
    ret_action->is_hop = is_hop;
    ret_action->waited = wr_host_waited(plan, host, now);
    ret_action->next_ns = wr_host_next_start_ns(plan, host, now);
    ret_action->is_conditional = standing->life[origin].fetch == WR_ROBOTS_FETCH_CONDITIONAL;
    return true;
}

/* Starts a robots.txt or an errand of the host that has been ready longest. If the host is no
 * longer ready, only reschedules it. */
static bool start_urgent(struct wr_plan *plan, int64_t now, struct wr_plan_action *ret_action)
{
    struct wr_host_readiness standing;
    struct wr_plan_host *host = WR_LINKED(plan->urgent.first, struct wr_plan_host, place);
    wr_host_readiness_of(plan, host, now, &standing);
    bool started =
        standing.urgent && standing.gate.verdict == WEIR_GO &&
        (start_robots_hop(plan, host, now, ret_action) || start_robots_of_host(plan, host, &standing, now, ret_action));
    wr_list_remove(&host->place);
    wr_host_reschedule(plan, host, now);
    /* No memory for a robots.txt: retry after other tasks have ended. */
    if (!started && host->place.list == &plan->urgent) {
        wr_list_remove(&host->place);
        wr_heap_remove(&plan->timed, &host->timer);
        wr_heap_push(&plan->timed, now + WR_RETRY_UNSENT_MIN_NS, &host->timer);
    }
    return started;
}

/* ---- pages ---- */

static bool is_allowed_by_robots(struct wr_plan *plan, struct wr_plan_host *host,
                                 const struct wr_host_readiness *standing, uint32_t number, int64_t now)
{
    size_t target_at;
    const struct wr_task *task = wr_task_at(&plan->pool, number);
    struct wr_span url = write_task_url(plan, host, task, &target_at);
    bool is_https = wr_task_is_https(task);
    struct wr_robots_decision ruling = wr_robots_lifecycle_decide(&standing->life[is_https], host->rules[is_https],
                                                                  wr_span_after(url, target_at), now);
    return ruling.decision.verdict == WEIR_GO;
}

/* Returns the host queue that was served longest ago, of those of the same host that may start. */
static struct wr_host_queue *next_host_queue_in_turn(struct wr_host_queue *host_queue)
{
    struct wr_host_queue *first = host_queue;
    for (struct wr_host_queue *other = host_queue->host->host_queues; other != NULL; other = other->beside)
        if (other->served < first->served && wr_list_is_linked(&other->ready) && wr_job_may_start(other->job))
            first = other;
    return first;
}

static bool start_page(struct wr_plan *plan, struct wr_host_queue *host_queue, int64_t now,
                       struct wr_plan_action *ret_action)
{
    struct wr_host_readiness standing;
    struct wr_plan_host *host = host_queue->host;
    wr_host_readiness_of(plan, host, now, &standing);
    uint32_t number = WR_NO_TASK;
    if (standing.gate.verdict == WEIR_GO && !standing.urgent && !wr_host_queue_is_full(host_queue))
        number = wr_host_queue_pop(plan, host_queue, standing.open, now);
    if (number == WR_NO_TASK) {
        wr_host_reschedule(plan, host, now);
        return false;
    }
    if (!is_allowed_by_robots(plan, host, &standing, number, now)) {
        end_page_unsent(plan, host_queue, number, WEIR_REASON_ROBOTS, true, now, ret_action);
        if (wr_host_queue_peek(plan, host_queue, standing.open, now) == WR_NO_TASK ||
            host_queue->queued[0] + host_queue->queued[1] == 0)
            wr_host_reschedule(plan, host, now);
        return true;
    }
    host_queue->served = ++plan->stats.starts;
    *ret_action = page_action(plan, WR_PLAN_START, host_queue, number, now);
    wr_task_reserve(plan, host, number, now);
    ret_action->next_ns = wr_host_next_start_ns(plan, host, now);
    wr_host_reschedule(plan, host, now);
    return true;
}

/* Starts a page; jobs take turns. Returns true if a host queue was picked, started or not. */
static bool pick_page(struct wr_plan *plan, int64_t now, bool *ret_acted, struct wr_plan_action *ret_action)
{
    uint32_t jobs = plan->places;
    for (uint32_t i = 0; i < jobs; i++) {
        struct wr_job *job = &plan->jobs[(plan->turn + i) % jobs];
        if (job->ready.first == NULL)
            continue;
        if (!wr_job_may_start(job)) {
            job->limited_at = now;
            continue;
        }
        struct wr_host_queue *host_queue =
            next_host_queue_in_turn(WR_LINKED(job->ready.first, struct wr_host_queue, ready));
        plan->turn = (uint32_t)((plan->turn + i + (host_queue->job == job)) % jobs);
        *ret_acted = start_page(plan, host_queue, now, ret_action);
        return true;
    }
    return false;
}

/* ---- main loop ---- */

/* Reschedules hosts whose time has come, a few at a time. Returns true if more may be due. */
static bool reschedule_due_hosts(struct wr_plan *plan, int64_t now)
{
    int64_t at;
    for (int i = 0; i < WR_DUE_BATCH; i++) {
        struct wr_heap_item *item = wr_heap_peek(&plan->timed, &at);
        if (item == NULL || at > now)
            return false;
        wr_host_reschedule(plan, (struct wr_plan_host *)(void *)item, now);
    }
    return true;
}

static bool request_stored_host(struct wr_plan *plan, struct wr_plan_action *ret_action)
{
    if (plan->recalls.first == NULL)
        return false;
    struct wr_plan_host *host = WR_LINKED(plan->recalls.first, struct wr_plan_host, recalls);
    wr_list_remove(&host->recalls);
    host->recalling = true;
    *ret_action = (struct wr_plan_action){.kind = WR_PLAN_LOAD, .host = host, .wants_memory = true};
    return true;
}

/* Makes an action that sends no request. Returns false if no such action is due. */
static bool next_action_unsent(struct wr_plan *plan, int64_t now, struct wr_plan_action *ret_action)
{
    return wr_jobs_next_action(plan, now, ret_action) || end_expired_task(plan, now, ret_action) ||
           request_stored_host(plan, ret_action) || wr_loads_next_action(plan, ret_action);
}

static bool is_any_host_ready(const struct wr_plan *plan)
{
    bool is_ready = plan->urgent.first != NULL;
    for (uint32_t i = 0; i < plan->places && !is_ready; i++)
        is_ready = plan->jobs[i].ready.first != NULL;
    return is_ready;
}

/* Alternates between pages and urgent requests, so that many new hosts, which all need their
 * robots.txt at once, do not delay other hosts. Returns true if a host was picked. */
static bool start_request(struct wr_plan *plan, int64_t now, bool *ret_acted, struct wr_plan_action *ret_action)
{
    plan->is_pages_turn = !plan->is_pages_turn;
    if (plan->is_pages_turn && pick_page(plan, now, ret_acted, ret_action))
        return true;
    if (plan->urgent.first != NULL) {
        *ret_acted = start_urgent(plan, now, ret_action);
        return true;
    }
    return !plan->is_pages_turn && pick_page(plan, now, ret_acted, ret_action);
}

void wr_plan_hold_starts(struct wr_plan *plan, int64_t until)
{
    plan->hold_until = until;
}

void wr_plan_next(struct wr_plan *plan, int64_t now, struct wr_plan_action *ret_action)
{
    for (;;) {
        bool acted = false, more = reschedule_due_hosts(plan, now);
        more |= wr_groups_move_due(plan, now);
        if (next_action_unsent(plan, now, ret_action))
            return;
        if (plan->in_flight < plan->options.max_in_flight && now >= plan->hold_until) {
            more |= start_request(plan, now, &acted, ret_action);
            if (acted)
                return;
        } else {
            plan->full_at = now;
        }
        if (!more)
            break;
    }
    int64_t at = WEIR_FOREVER, group_at = WEIR_FOREVER, deadline_at = wr_jobs_deadline(plan, now);
    wr_heap_peek(&plan->timed, &at);
    wr_heap_peek(&plan->groups_timed, &group_at);
    at = group_at < at ? group_at : at;
    if (now < plan->hold_until && plan->hold_until < at && is_any_host_ready(plan))
        at = plan->hold_until;
    *ret_action = (struct wr_plan_action){.kind = WR_PLAN_IDLE, .at = at < deadline_at ? at : deadline_at};
}
