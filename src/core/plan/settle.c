/* SPDX-License-Identifier: MIT */
/* settle.c - computes what a host can do now, or what holds it until when, and reschedules it. */
#include "core/plan/state.h"

static bool may_expire(weir_reason reason)
{
    return reason == WEIR_REASON_BREAKER || reason == WEIR_REASON_RETRY_AFTER || reason == WEIR_REASON_RATE_LIMIT_RESET;
}

/* ---- status ---- */

static weir_decision wait_until(weir_reason reason, int64_t until, int64_t now)
{
    int64_t wait_ns = until == WEIR_FOREVER ? WEIR_UNTIL_RELEASE : until > now ? until - now : 0;
    return (weir_decision){WEIR_WAIT, reason, wait_ns};
}

static bool works(const struct wr_lane *lane)
{
    return lane->job->paused == WEIR_REASON_NONE && !lane->job->ended;
}

static int64_t soonest(const struct wr_plan *plan, const struct wr_lane *lane, int64_t now)
{
    uint32_t n = lane->delayed.count > 0 ? lane->delayed.first : WR_NO_TASK;
    while (n != WR_NO_TASK && wr_task_at(&plan->pool, n)->at <= now)
        n = wr_task_at(&plan->pool, n)->next;
    return n != WR_NO_TASK ? wr_task_at(&plan->pool, n)->at : WEIR_FOREVER;
}

static void stand_wanted(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now,
                         struct wr_standing *standing)
{
    standing->soonest_at = WEIR_FOREVER;
    for (const struct wr_lane *lane = host->lanes; lane != NULL; lane = lane->beside) {
        if (!works(lane))
            continue;
        for (uint32_t origin = 0; origin < WR_ORIGINS; origin++)
            standing->wanted |= (uint32_t)(lane->queued[origin] > 0) << origin;
        int64_t at = soonest(plan, lane, now);
        standing->soonest_at = at < standing->soonest_at ? at : standing->soonest_at;
    }
}

static void stand_robots(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now,
                         struct wr_standing *standing)
{
    static const struct wr_life_event wanted = {.kind = WR_LIFE_WANTED};
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++) {
        if ((standing->wanted >> origin & 1) == 0)
            continue;
        struct wr_life_action *life = &standing->life[origin];
        if (plan->options.ignores_robots)
            *life = (struct wr_life_action){.holds = WR_HOLDS_ALLOW};
        else
            *life = wr_lifecycle_step(&host->robots[origin], &plan->options.robots, &wanted, now);
        standing->open |= (uint32_t)(life->holds != WR_HOLDS_WAIT) << origin;
        if ((host->asked >> origin & 1) != 0)
            life->fetch = WR_FETCH_NOT;
        standing->urgent |= life->fetch != WR_FETCH_NOT;
    }
    standing->urgent |= host->hop != 0 || host->errands.count > 0;
}

/* Fills in the status of a host blocked by its firewall: only errands, for other hosts, are
 * sent. */
static void stand_blocked(const struct wr_plan_host *host, struct wr_standing *standing)
{
    standing->held = standing->wanted;
    standing->held_for[0] = standing->held_for[1] = WEIR_REASON_BREAKER;
    standing->urgent = host->errands.count > 0;
}

/* Fills in the strictest of the gate, the push-back and the group. */
static void stand_gate(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now, struct wr_standing *standing)
{
    standing->gate = wr_gate_ask(wr_host_gate_of(host), wr_host_pace(plan, host), now);
    if (standing->gate.verdict == WEIR_GO && host->pushed_until > now)
        standing->gate = wait_until(WEIR_REASON_PACE, host->pushed_until, now);
    if (standing->gate.verdict == WEIR_GO && host->group != NULL) {
        standing->gate = wr_group_ask(plan, host, now);
        standing->lines = standing->gate.verdict != WEIR_GO;
    }
}

static void stand_held(struct wr_standing *standing)
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

static bool is_startable(const struct wr_plan *plan, const struct wr_lane *lane, uint32_t open, int64_t now)
{
    return works(lane) && !wr_lane_is_full(lane) && wr_lane_peek(plan, lane, open, now) != WR_NO_TASK;
}

void wr_host_stand(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now, struct wr_standing *ret_standing)
{
    struct wr_standing *standing = ret_standing;
    *standing = (struct wr_standing){.wanted = 0};
    stand_wanted(plan, host, now, standing);
    if (wr_host_is_blocked(host, now))
        stand_blocked(host, standing);
    else
        stand_robots(plan, host, now, standing);
    if (standing->wanted == 0 && !standing->urgent)
        return;
    stand_gate(plan, host, now, standing);
    if (wr_host_is_blocked(host, now))
        return;
    stand_held(standing);
    for (const struct wr_lane *lane = host->lanes; lane != NULL && !standing->startable; lane = lane->beside)
        standing->startable = is_startable(plan, lane, standing->open, now);
}

int64_t wr_host_next(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    bool has_more = host->errands.count > 0;
    for (const struct wr_lane *lane = host->lanes; lane != NULL; lane = lane->beside)
        has_more |= works(lane) && (lane->queued[0] + lane->queued[1] > 0 || lane->in_store > 0);
    if (!has_more)
        return WEIR_FOREVER;
    int64_t own_ns = wr_gate_delay(wr_host_gate_of(host), wr_host_pace(plan, host), now);
    int64_t group_ns = wr_group_delay(plan, host, now);
    return own_ns > group_ns ? own_ns : group_ns;
}

/* ---- placing ---- */

void wr_host_unplace(struct wr_plan *plan, struct wr_plan_host *host)
{
    wr_heap_remove(&plan->timed, &host->timer);
    if (host->group == NULL || host->place.list != &host->group->line)
        wr_list_take(&host->place);
    for (struct wr_lane *lane = host->lanes; lane != NULL; lane = lane->beside)
        wr_list_take(&lane->ready);
}

/* Returns the time at which the status may change without an event. */
static int64_t next_change(const struct wr_plan *plan, const struct wr_plan_host *host,
                           const struct wr_standing *standing, int64_t now)
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
static void note_held(struct wr_plan *plan, struct wr_plan_host *host, const struct wr_standing *standing, int64_t now)
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
static void ready(struct wr_plan *plan, struct wr_plan_host *host, const struct wr_standing *standing, int64_t now)
{
    if (standing->urgent) {
        wr_list_push(&plan->urgent, &host->place);
        return;
    }
    for (struct wr_lane *lane = host->lanes; lane != NULL; lane = lane->beside)
        if (is_startable(plan, lane, standing->open, now))
            wr_list_push(&lane->job->ready, &lane->ready);
}

static bool is_idle(const struct wr_plan_host *host)
{
    bool waits = false;
    for (const struct wr_lane *lane = host->lanes; lane != NULL; lane = lane->beside)
        waits |= lane->in_store > 0;
    return host->claims == 0 && !waits;
}

/* Asks for the stored memory of a host that has errands but no tasks. Otherwise it comes with the
 * first tasks. */
static void recall(struct wr_plan *plan, struct wr_plan_host *host)
{
    bool loads = false;
    for (const struct wr_lane *lane = host->lanes; lane != NULL; lane = lane->beside)
        loads |= lane->loading || wr_list_holds(&lane->loads);
    if (host->errands.count > 0 && !loads && !host->recalling)
        wr_list_push(&plan->recalls, &host->recalls);
}

/* ---- why ---- */

/* Returns what holds the next task of a host queue, apart from limits of its job and of all
 * jobs. */
static weir_decision why_lane(const struct wr_plan *plan, const struct wr_lane *lane,
                              const struct wr_standing *standing, int64_t now)
{
    bool queued = lane->queued[0] + lane->queued[1] > 0;
    if (lane->job->ended || (!queued && lane->in_store == 0))
        return (weir_decision){.verdict = WEIR_GO};
    if (lane->job->paused != WEIR_REASON_NONE)
        return wait_until(lane->job->paused, WEIR_FOREVER, now);
    if (!queued)
        return wait_until(WEIR_REASON_QUEUE, WEIR_FOREVER, now);
    uint32_t task = wr_lane_peek(plan, lane, standing->open, now);
    uint32_t any = task != WR_NO_TASK ? task : wr_lane_peek(plan, lane, (1U << WR_ORIGINS) - 1, now);
    if (task == WR_NO_TASK && any != WR_NO_TASK) {
        bool is_https = wr_is_https(wr_task_at(&plan->pool, any));
        return wait_until(WEIR_REASON_ROBOTS, standing->life[is_https].until, now);
    }
    if (task == WR_NO_TASK)
        return wait_until(WEIR_REASON_RETRY, wr_task_at(&plan->pool, lane->delayed.first)->at, now);
    if (standing->gate.verdict != WEIR_GO)
        return standing->gate;
    if (wr_lane_is_full(lane))
        return wait_until(WEIR_REASON_CONCURRENCY, WEIR_FOREVER, now);
    return (weir_decision){.verdict = WEIR_GO};
}

weir_decision wr_plan_why(const struct wr_plan *plan, const struct wr_plan_host *host, uint32_t id, int64_t now)
{
    struct wr_standing standing;
    struct wr_job *job = wr_job_find(plan, id);
    struct wr_lane *lane = job != NULL ? wr_lane_find(host, job) : NULL;
    if (lane == NULL)
        return (weir_decision){.verdict = WEIR_GO};
    wr_host_stand(plan, (struct wr_plan_host *)host, now, &standing);
    weir_decision why = why_lane(plan, lane, &standing, now);
    if (why.verdict != WEIR_GO || lane->queued[0] + lane->queued[1] == 0)
        return why;
    if (!wr_job_may_start(lane->job))
        return wait_until(WEIR_REASON_JOB_LIMIT, WEIR_FOREVER, now);
    if (plan->in_flight >= plan->options.max_in_flight)
        return wait_until(WEIR_REASON_GLOBAL, WEIR_FOREVER, now);
    if (plan->hold_until > now)
        return wait_until(WEIR_REASON_GLOBAL, plan->hold_until, now);
    return why;
}

/* Returns true if another host queue may be held less: this one is not held, or its job is
 * halted. */
static bool may_be_less(weir_reason reason)
{
    return reason == WEIR_REASON_NONE || reason == WEIR_REASON_PAUSED || reason == WEIR_REASON_JOB_LIMIT;
}

/* Returns what holds the host's next task, in whichever host queue it is. */
static uint8_t holder(const struct wr_plan *plan, const struct wr_plan_host *host, const struct wr_standing *standing,
                      int64_t now)
{
    uint8_t gate = standing->gate.verdict == WEIR_GO ? WR_HELD_READY : (uint8_t)standing->gate.reason;
    weir_reason reason = WEIR_REASON_NONE;
    if (standing->startable)
        return gate;
    for (const struct wr_lane *lane = host->lanes; lane != NULL; lane = lane->beside) {
        weir_decision why = why_lane(plan, lane, standing, now);
        if (may_be_less(reason))
            reason = why.verdict != WEIR_GO ? why.reason : reason;
    }
    return reason == WEIR_REASON_NONE && standing->urgent ? gate : (uint8_t)reason;
}

/* ---- rescheduling ---- */

static void place(struct wr_plan *plan, struct wr_plan_host *host, const struct wr_standing *standing, int64_t now)
{
    bool wants = standing->urgent || standing->startable;
    wr_group_line(host, wants && standing->lines && host->expiring == 0);
    if (host->expiring != 0)
        return; /* nothing else until its tasks have expired */
    if (standing->gate.verdict == WEIR_GO && wants) {
        ready(plan, host, standing, now);
        if (standing->soonest_at != WEIR_FOREVER) /* end of a backoff in another host queue */
            wr_heap_push(&plan->timed, standing->soonest_at, &host->timer);
        return;
    }
    int64_t at = next_change(plan, host, standing, now);
    if (at != WEIR_FOREVER)
        wr_heap_push(&plan->timed, at > now ? at : now + 1, &host->timer);
    else if (!wr_list_holds(&host->place) && is_idle(host)) {
        host->gave_up = 0;
        memset(host->lost, 0, sizeof host->lost);
        wr_list_push(&plan->idle, &host->place);
    }
}

void wr_host_settle(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    struct wr_standing standing;
    wr_host_unplace(plan, host);
    for (struct wr_lane *lane = host->lanes; lane != NULL; lane = lane->beside)
        wr_lane_want(plan, lane);
    if (wr_gate_unsaved(wr_host_gate_of(host)))
        wr_list_push(&plan->unsaved, &host->unsaved);
    host->unlent = !wr_host_is_lent(plan, host, now);
    if (!host->remembered || host->unlent) {
        recall(plan, host);
        wr_host_held(plan, host, is_idle(host) ? WEIR_REASON_NONE : WEIR_REASON_QUEUE, now);
        return;
    }
    wr_host_stand(plan, host, now, &standing);
    wr_host_held(plan, host, holder(plan, host, &standing, now), now);
    note_held(plan, host, &standing, now);
    place(plan, host, &standing, now);
    wr_group_settle(plan, host->group, now);
}
