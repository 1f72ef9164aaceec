/* SPDX-License-Identifier: MIT */
/* reschedule.c - computes what a host can do now, or what holds it until when, and reschedules
 * it. */
#include "core/plan/plan_state.h"

static bool may_expire(weir_reason reason)
{
    return reason == WEIR_REASON_BREAKER || reason == WEIR_REASON_RETRY_AFTER || reason == WEIR_REASON_RATE_LIMIT_RESET;
}

/* ---- status ---- */

static weir_decision wait_decision_until(weir_reason reason, int64_t until, int64_t now)
{
    int64_t wait_ns = until == WEIR_FOREVER ? WEIR_UNTIL_RELEASE : until > now ? until - now : 0;
    return (weir_decision){WEIR_WAIT, reason, wait_ns};
}

static bool is_host_queue_active(const struct wr_host_queue *host_queue)
{
    return host_queue->job->paused == WEIR_REASON_NONE && !host_queue->job->ended;
}

static int64_t next_backoff_end(const struct wr_plan *plan, const struct wr_host_queue *host_queue, int64_t now)
{
    uint32_t n = host_queue->delayed.count > 0 ? host_queue->delayed.first : WR_NO_TASK;
    while (n != WR_NO_TASK && wr_task_at(&plan->pool, n)->at <= now)
        n = wr_task_at(&plan->pool, n)->next;
    return n != WR_NO_TASK ? wr_task_at(&plan->pool, n)->at : WEIR_FOREVER;
}

static void fill_wanted_origins(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now,
                                struct wr_host_readiness *standing)
{
    standing->soonest_at = WEIR_FOREVER;
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside) {
        if (!is_host_queue_active(host_queue))
            continue;
        for (uint32_t origin = 0; origin < WR_ORIGINS; origin++)
            standing->wanted |= (uint32_t)(host_queue->queued[origin] > 0) << origin;
        int64_t at = next_backoff_end(plan, host_queue, now);
        standing->soonest_at = at < standing->soonest_at ? at : standing->soonest_at;
    }
}

static void fill_robots_state(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now,
                              struct wr_host_readiness *standing)
{
    static const struct wr_robots_event wanted = {.kind = WR_ROBOTS_EVENT_WANTED};
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++) {
        if ((standing->wanted >> origin & 1) == 0)
            continue;
        struct wr_robots_action *life = &standing->life[origin];
        if (plan->options.ignores_robots)
            *life = (struct wr_robots_action){.holds = WR_ROBOTS_ACCESS_ALLOW};
        else
            *life = wr_robots_lifecycle_step(&host->robots[origin], &plan->options.robots, &wanted, now);
        standing->open |= (uint32_t)(life->holds != WR_ROBOTS_ACCESS_WAIT) << origin;
        if ((host->asked >> origin & 1) != 0)
            life->fetch = WR_ROBOTS_FETCH_NONE;
        standing->urgent |= life->fetch != WR_ROBOTS_FETCH_NONE;
    }
    standing->urgent |= host->hop != 0 || host->errands.count > 0;
}

/* Fills in the status of a host blocked by its firewall: only errands, for other hosts, are
 * sent. */
static void fill_blocked_state(const struct wr_plan_host *host, struct wr_host_readiness *standing)
{
    standing->held = standing->wanted;
    standing->held_for[0] = standing->held_for[1] = WEIR_REASON_BREAKER;
    standing->urgent = host->errands.count > 0;
}

/* Fills in the strictest of the gate, the push-back and the group. */
static void fill_gate_decision(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now,
                               struct wr_host_readiness *standing)
{
    standing->gate = wr_gate_ask(wr_host_gate_of(host), wr_host_pace_options(plan, host), now);
    if (standing->gate.verdict == WEIR_GO && host->pushed_until > now)
        standing->gate = wait_decision_until(WEIR_REASON_PACE, host->pushed_until, now);
    if (standing->gate.verdict == WEIR_GO && host->group != NULL) {
        standing->gate = wr_group_ask(plan, host, now);
        standing->lines = standing->gate.verdict != WEIR_GO;
    }
}

static void fill_held_origins(struct wr_host_readiness *standing)
{
    bool gated = standing->gate.verdict != WEIR_GO && may_expire(standing->gate.reason);
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++) {
        if ((standing->wanted >> origin & 1) == 0)
            continue;
        bool unknown = (standing->open >> origin & 1) == 0;
        standing->held |= (uint32_t)(gated || unknown) << origin;
        standing->held_for[origin] = gated ? standing->gate.reason : WEIR_REASON_ROBOTS;
    }
}

static bool can_start_page(const struct wr_plan *plan, const struct wr_host_queue *host_queue, uint32_t open,
                           int64_t now)
{
    return is_host_queue_active(host_queue) && !wr_host_queue_is_full(host_queue) &&
           wr_host_queue_peek(plan, host_queue, open, now) != WR_NO_TASK;
}

void wr_host_readiness_of(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now,
                          struct wr_host_readiness *ret_standing)
{
    struct wr_host_readiness *standing = ret_standing;
    *standing = (struct wr_host_readiness){.wanted = 0};
    fill_wanted_origins(plan, host, now, standing);
    if (wr_host_is_blocked(host, now))
        fill_blocked_state(host, standing);
    else
        fill_robots_state(plan, host, now, standing);
    if (standing->wanted == 0 && !standing->urgent)
        return;
    fill_gate_decision(plan, host, now, standing);
    if (wr_host_is_blocked(host, now))
        return;
    fill_held_origins(standing);
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL && !standing->startable;
         host_queue = host_queue->beside)
        standing->startable = can_start_page(plan, host_queue, standing->open, now);
}

int64_t wr_host_next_start_ns(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    bool has_more = host->errands.count > 0;
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside)
        has_more |= is_host_queue_active(host_queue) &&
                    (host_queue->queued[0] + host_queue->queued[1] > 0 || host_queue->in_store > 0);
    if (!has_more)
        return WEIR_FOREVER;
    int64_t own_ns = wr_gate_delay(wr_host_gate_of(host), wr_host_pace_options(plan, host), now);
    int64_t group_ns = wr_group_delay(plan, host, now);
    return own_ns > group_ns ? own_ns : group_ns;
}

/* ---- placing ---- */

void wr_host_unschedule(struct wr_plan *plan, struct wr_plan_host *host)
{
    wr_heap_remove(&plan->timed, &host->timer);
    if (host->group == NULL || host->place.list != &host->group->line)
        wr_list_remove(&host->place);
    for (struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL; host_queue = host_queue->beside)
        wr_list_remove(&host_queue->ready);
}

/* Returns the time at which the status may change without an event. */
static int64_t next_change_of_host(const struct wr_plan *plan, const struct wr_plan_host *host,
                                   const struct wr_host_readiness *standing, int64_t now)
{
    int64_t at = standing->soonest_at, gate_at = WEIR_FOREVER;
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++)
        if ((standing->wanted & ~standing->open) >> origin & 1)
            at = standing->life[origin].until < at ? standing->life[origin].until : at;
    if (standing->gate.verdict != WEIR_GO && !standing->lines && standing->gate.wait_ns != WEIR_UNTIL_RELEASE)
        gate_at = now + standing->gate.wait_ns;
    bool wants_gate = standing->urgent || standing->startable;
    if (wants_gate || (at != WEIR_FOREVER && gate_at != WEIR_FOREVER && gate_at > at))
        at = gate_at;
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++) {
        int64_t expires_at = host->could_at[origin] + plan->options.max_defer_ns;
        if ((standing->held >> origin & 1) && expires_at < at)
            at = expires_at;
    }
    return at;
}

/* Updates which origins are held, and lists the host if their tasks expire. An origin counts as
 * held since the last time at which a page was possible, or since now if it was not held before. */
static void update_held_origins(struct wr_plan *plan, struct wr_plan_host *host,
                                const struct wr_host_readiness *standing, int64_t now)
{
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++) {
        uint8_t bit = (uint8_t)(1U << origin);
        if ((host->held & bit) == 0)
            host->could_at[origin] = now;
        if ((standing->held & bit) == 0) {
            host->gave_up &= (uint8_t) ~(standing->wanted & bit);
            if ((standing->wanted & bit) != 0)
                host->lost[origin] = 0;
        } else if ((host->gave_up & bit) != 0 || wr_host_is_blocked(host, now) ||
                   now - host->could_at[origin] >= plan->options.max_defer_ns) {
            host->expiring |= bit;
            host->expiring_for = (uint8_t)standing->held_for[origin];
            wr_list_push(&plan->expiring, &host->expires);
        }
    }
    host->held = (uint8_t)standing->held;
}

/* Makes the host ready, because its gate is open. A robots.txt and errands are before pages, which
 * may depend on them. */
static void list_ready_host(struct wr_plan *plan, struct wr_plan_host *host, const struct wr_host_readiness *standing,
                            int64_t now)
{
    if (standing->urgent) {
        wr_list_push(&plan->urgent, &host->place);
        return;
    }
    for (struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL; host_queue = host_queue->beside)
        if (can_start_page(plan, host_queue, standing->open, now))
            wr_list_push(&host_queue->job->ready, &host_queue->ready);
}

static bool has_no_work(const struct wr_plan_host *host)
{
    bool waits = false;
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside)
        waits |= host_queue->in_store > 0;
    return host->claims == 0 && !waits;
}

/* Asks for the stored memory of a host that has errands but no tasks. Otherwise it comes with the
 * first tasks. */
static void list_for_stored_host(struct wr_plan *plan, struct wr_plan_host *host)
{
    bool loads = false;
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside)
        loads |= host_queue->loading || wr_list_is_linked(&host_queue->loads);
    if (host->errands.count > 0 && !loads && !host->recalling)
        wr_list_push(&plan->recalls, &host->recalls);
}

/* ---- why ---- */

/* Returns what holds the next task of a host queue, apart from limits of its job and of all
 * jobs. */
static weir_decision why_host_queue_waits(const struct wr_plan *plan, const struct wr_host_queue *host_queue,
                                          const struct wr_host_readiness *standing, int64_t now)
{
    bool queued = host_queue->queued[0] + host_queue->queued[1] > 0;
    if (host_queue->job->ended || (!queued && host_queue->in_store == 0))
        return (weir_decision){.verdict = WEIR_GO};
    if (host_queue->job->paused != WEIR_REASON_NONE)
        return wait_decision_until(host_queue->job->paused, WEIR_FOREVER, now);
    if (!queued)
        return wait_decision_until(WEIR_REASON_QUEUE, WEIR_FOREVER, now);
    uint32_t task = wr_host_queue_peek(plan, host_queue, standing->open, now);
    uint32_t any = task != WR_NO_TASK ? task : wr_host_queue_peek(plan, host_queue, (1U << WR_ORIGINS) - 1, now);
    if (task == WR_NO_TASK && any != WR_NO_TASK) {
        bool is_https = wr_task_is_https(wr_task_at(&plan->pool, any));
        return wait_decision_until(WEIR_REASON_ROBOTS, standing->life[is_https].until, now);
    }
    if (task == WR_NO_TASK)
        return wait_decision_until(WEIR_REASON_RETRY, wr_task_at(&plan->pool, host_queue->delayed.first)->at, now);
    if (standing->gate.verdict != WEIR_GO)
        return standing->gate;
    if (wr_host_queue_is_full(host_queue))
        return wait_decision_until(WEIR_REASON_CONCURRENCY, WEIR_FOREVER, now);
    return (weir_decision){.verdict = WEIR_GO};
}

weir_decision wr_plan_why(const struct wr_plan *plan, const struct wr_plan_host *host, uint32_t id, int64_t now)
{
    struct wr_host_readiness standing;
    struct wr_job *job = wr_job_find(plan, id);
    struct wr_host_queue *host_queue = job != NULL ? wr_host_queue_find(host, job) : NULL;
    if (host_queue == NULL)
        return (weir_decision){.verdict = WEIR_GO};
    wr_host_readiness_of(plan, (struct wr_plan_host *)host, now, &standing);
    weir_decision why = why_host_queue_waits(plan, host_queue, &standing, now);
    if (why.verdict != WEIR_GO || host_queue->queued[0] + host_queue->queued[1] == 0)
        return why;
    if (!wr_job_may_start(host_queue->job))
        return wait_decision_until(WEIR_REASON_JOB_LIMIT, WEIR_FOREVER, now);
    if (plan->in_flight >= plan->options.max_in_flight)
        return wait_decision_until(WEIR_REASON_GLOBAL, WEIR_FOREVER, now);
    if (plan->hold_until > now)
        return wait_decision_until(WEIR_REASON_GLOBAL, plan->hold_until, now);
    return why;
}

/* Returns true if another host queue may be held less: this one is not held, or its job is
 * halted. */
static bool may_other_queue_start(weir_reason reason)
{
    return reason == WEIR_REASON_NONE || reason == WEIR_REASON_PAUSED || reason == WEIR_REASON_JOB_LIMIT;
}

/* Returns what holds the host's next task, in whichever host queue it is. */
static uint8_t reason_holding_host(const struct wr_plan *plan, const struct wr_plan_host *host,
                                   const struct wr_host_readiness *standing, int64_t now)
{
    uint8_t gate = standing->gate.verdict == WEIR_GO ? WR_HELD_READY : (uint8_t)standing->gate.reason;
    weir_reason reason = WEIR_REASON_NONE;
    if (standing->startable)
        return gate;
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside) {
        weir_decision why = why_host_queue_waits(plan, host_queue, standing, now);
        if (may_other_queue_start(reason))
            reason = why.verdict != WEIR_GO ? why.reason : reason;
    }
    return reason == WEIR_REASON_NONE && standing->urgent ? gate : (uint8_t)reason;
}

/* ---- rescheduling ---- */

static void place_host(struct wr_plan *plan, struct wr_plan_host *host, const struct wr_host_readiness *standing,
                       int64_t now)
{
    bool wants = standing->urgent || standing->startable;
    wr_group_set_waiting(host, wants && standing->lines && host->expiring == 0);
    if (host->expiring != 0)
        return; /* nothing else until its tasks have expired */
    if (standing->gate.verdict == WEIR_GO && wants) {
        list_ready_host(plan, host, standing, now);
        if (standing->soonest_at != WEIR_FOREVER) /* end of a backoff in another host queue */
            wr_heap_push(&plan->timed, standing->soonest_at, &host->timer);
        return;
    }
    int64_t at = next_change_of_host(plan, host, standing, now);
    if (at != WEIR_FOREVER)
        wr_heap_push(&plan->timed, at > now ? at : now + 1, &host->timer);
    else if (!wr_list_is_linked(&host->place) && has_no_work(host)) {
        host->gave_up = 0;
        memset(host->lost, 0, sizeof host->lost);
        wr_list_push(&plan->idle, &host->place);
    }
}

void wr_host_reschedule(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    struct wr_host_readiness standing;
    wr_host_unschedule(plan, host);
    for (struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL; host_queue = host_queue->beside)
        wr_host_queue_list_for_load(plan, host_queue);
    if (wr_gate_unsaved(wr_host_gate_of(host)))
        wr_list_push(&plan->unsaved, &host->unsaved);
    host->lacks_lease = !wr_host_is_leased(plan, host, now);
    if (!host->remembered || host->lacks_lease) {
        list_for_stored_host(plan, host);
        wr_host_set_held_by(plan, host, has_no_work(host) ? WEIR_REASON_NONE : WEIR_REASON_QUEUE, now);
        return;
    }
    wr_host_readiness_of(plan, host, now, &standing);
    wr_host_set_held_by(plan, host, reason_holding_host(plan, host, &standing, now), now);
    update_held_origins(plan, host, &standing, now);
    place_host(plan, host, &standing, now);
    wr_group_reschedule(plan, host->group, now);
}
