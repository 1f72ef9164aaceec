/* SPDX-License-Identifier: MIT */
/* inspect.c - inspects and controls a plan while it works. Nothing here runs unless a user asks. */
#include "core/plan/plan_state.h"

#define RATE_SLICES 6 /* slices of time over which the rate is measured */

const char *wr_host_state_name(enum wr_host_state state)
{
    static const char *const names[] = {
#define X(state, name) [state] = (name),
        WR_HOST_STATES(X)
#undef X
    };
    return (size_t)state < sizeof names / sizeof names[0] ? names[state] : NULL;
}

const char *wr_bound_source_name(enum wr_bound_source source)
{
    static const char *const names[] = {
#define X(source, name) [source] = (name),
        WR_BOUND_SOURCES(X)
#undef X
    };
    return (size_t)source < sizeof names / sizeof names[0] ? names[source] : NULL;
}

/* ---- hosts ---- */

static uint64_t tasks_queued_at(const struct wr_plan_host *host)
{
    uint64_t queued = 0;
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside)
        queued += host_queue->queued[0] + (uint64_t)host_queue->queued[1] + host_queue->in_store;
    return queued;
}

static uint32_t pages_in_flight_at(const struct wr_plan_host *host)
{
    uint32_t flying = 0;
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside)
        flying += host_queue->in_flight;
    return flying;
}

/* Returns the time until the host is rescheduled; WEIR_UNTIL_RELEASE if time changes nothing. */
static int64_t wait_until_rescheduled(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now)
{
    if (host->held_by == WEIR_REASON_PAUSED || host->held_by == WEIR_REASON_JOB_LIMIT)
        return WEIR_UNTIL_RELEASE;
    const struct wr_group *group = host->group;
    bool lines = group != NULL && host->place.list == &group->line && wr_heap_item_is_queued(&group->timer);
    int64_t at = now;
    if (lines)
        at = wr_heap_key(&plan->groups_timed, &group->timer);
    else if (wr_heap_item_is_queued(&host->timer))
        at = wr_heap_key(&plan->timed, &host->timer);
    return at > now ? at - now : 0;
}

static int64_t interval_at_host(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now)
{
    const struct wr_gate *gate = wr_host_gate_of((struct wr_plan_host *)host);
    int64_t group_ns = wr_group_delay(plan, host, now),
            own_ns = wr_gate_delay(gate, wr_host_pace_options(plan, host), now);
    return group_ns > own_ns ? group_ns : own_ns;
}

void wr_plan_host_brief(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now,
                        struct wr_plan_host_brief *ret_glance)
{
    uint16_t starts[WR_PLAN_SLICES];
    uint32_t recent = 0;
    bool is_held = host->held_by != WEIR_REASON_NONE && host->held_by != WR_HELD_READY;
    wr_host_figures_recent(&host->figures, now, starts);
    for (size_t i = 0; i < WR_PLAN_SLICES; i++)
        recent += starts[i];
    *ret_glance =
        (struct wr_plan_host_brief){.key = wr_plan_host_key(host),
                                    .reason = is_held ? (weir_reason)host->held_by : WEIR_REASON_NONE,
                                    .wait_ns = is_held ? wait_until_rescheduled(plan, host, now) : 0,
                                    .queued = tasks_queued_at(host),
                                    .interval_ns = tasks_queued_at(host) > 0 ? interval_at_host(plan, host, now) : 0,
                                    .in_flight = pages_in_flight_at(host),
                                    .rejected = host->figures.rejected,
                                    .recent = recent,
                                    .hasty = host->figures.hasty,
                                    .breaker = wr_gate_breaker(wr_host_gate_of((struct wr_plan_host *)host), now)};
}

/* Returns the starts per second in the last slices, or since the host's first request. */
static double recent_start_rate(const struct wr_host_figures *figures, const uint16_t starts[WR_PLAN_SLICES],
                                int64_t now)
{
    int64_t from = (now / WR_PLAN_SLICE_NS - (RATE_SLICES - 1)) * WR_PLAN_SLICE_NS;
    uint32_t count = 0;
    for (size_t i = WR_PLAN_SLICES - RATE_SLICES; i < WR_PLAN_SLICES; i++)
        count += starts[i];
    if (figures->first_at > from) /* without requests first_at is 0, and so is the count */
        from = figures->first_at;
    int64_t over_ns = now - from > WEIR_SECOND ? now - from : WEIR_SECOND;
    return (double)count * (double)WEIR_SECOND / (double)over_ns;
}

enum wr_host_state wr_host_state_of(weir_reason reason, uint64_t queued, uint32_t in_flight)
{
    if (reason == WEIR_REASON_PAUSED)
        return WR_HOST_PAUSED;
    if (queued == 0 && in_flight == 0)
        return WR_HOST_IDLE;
    switch (reason) {
    case WEIR_REASON_RETRY_AFTER:
    case WEIR_REASON_RATE_LIMIT_RESET:
    case WEIR_REASON_BREAKER:
    case WEIR_REASON_ROBOTS:
    case WEIR_REASON_RETRY:
        return WR_HOST_HELD;
    default:
        return WR_HOST_ACTIVE;
    }
}

void wr_plan_host_view(const struct wr_plan *plan, const struct wr_plan_host *host, uint32_t job, int64_t now,
                       struct wr_plan_host_view *ret_look)
{
    weir_pace_bound bounds[WEIR_PACE_BOUNDS_MAX];
    const struct wr_gate *gate = wr_host_gate_of((struct wr_plan_host *)host);
    struct wr_plan_host_view look = {.why = wr_plan_why(plan, host, job, now),
                                     .queued = tasks_queued_at(host),
                                     .set_interval_ns = host->pace != NULL ? host->pace->min_interval_ns : 0,
                                     .is_paused = wr_gate_paused(gate)};
    wr_plan_host_report(plan, host, now, &look.report);
    wr_host_figures_recent(&host->figures, now, look.starts);
    look.rate = recent_start_rate(&host->figures, look.starts, now);
    look.interval_ns = interval_at_host(plan, host, now);
    size_t count = wr_gate_bounds(gate, wr_host_pace_options(plan, host), now, bounds);
    for (size_t i = 0; i < count; i++) {
        if (bounds[i].reason == WEIR_REASON_RETRY_AFTER || bounds[i].reason == WEIR_REASON_RATE_LIMIT_RESET)
            look.retry_after_ns += bounds[i].wait_ns; /* at most one of these two waits holds */
        else if (bounds[i].reason == WEIR_REASON_BREAKER && bounds[i].wait_ns != WEIR_UNTIL_RELEASE)
            look.breaker_ns = bounds[i].wait_ns;
    }
    look.state =
        wr_host_state_of(look.is_paused ? WEIR_REASON_PAUSED : look.why.reason, look.queued, look.report.now.in_flight);
    *ret_look = look;
}

/* ---- why ---- */

struct bound_list {
    struct wr_plan_bound *bounds;
    size_t count;
    int64_t now;
};

static void add_bound(struct bound_list *list, struct wr_plan_bound bound, int32_t since_s)
{
    bound.has_since = since_s != 0;
    bound.since_ns = since_s != 0 ? list->now - since_s * WEIR_SECOND : 0;
    list->bounds[list->count++] = bound;
}

/* Returns the line of the Crawl-delay that binds. */
static uint32_t crawl_delay_line(const struct wr_plan_host *host)
{
    const struct wr_robots *longest = NULL;
    for (int i = 0; i < WR_ORIGINS; i++)
        if (host->rules[i] != NULL &&
            (longest == NULL || wr_robots_interval_ns(host->rules[i]) > wr_robots_interval_ns(longest)))
            longest = host->rules[i];
    return longest != NULL ? wr_robots_interval_line(longest) : 0;
}

/* Returns the source of a gate's bound. The first bound is the gate's own interval; those between
 * it and Crawl-delay are the strategy's. */
static enum wr_bound_source source_of_bound(const struct wr_plan *plan, const struct wr_plan_host *host, size_t place,
                                            const struct wr_plan_bound *bound)
{
    if (place == 0)
        return host->pace != NULL && !bound->is_group ? WR_BOUND_FROM_USER : WR_BOUND_FROM_OPTIONS;
    switch (bound->reason) {
    case WEIR_REASON_ROBOTS_DELAY:
        return WR_BOUND_FROM_ROBOTS;
    case WEIR_REASON_RETRY_AFTER:
    case WEIR_REASON_RATE_LIMIT_RESET:
        return WR_BOUND_FROM_HEADER;
    case WEIR_REASON_PAUSED:
        return WR_BOUND_FROM_USER;
    case WEIR_REASON_CONCURRENCY:
        return bound->count == plan->options.pace.max_in_flight ? WR_BOUND_FROM_OPTIONS : WR_BOUND_FROM_LEARNING;
    default:
        return WR_BOUND_FROM_LEARNING;
    }
}

static int32_t bound_since_s(const struct wr_plan_host *host, const struct wr_plan_bound *bound)
{
    if (bound->is_group)
        return 0;
    if (bound->source == WR_BOUND_FROM_HEADER)
        return bound->wait_ns > 0 ? host->wait_stated_s : 0;
    if (bound->reason == WEIR_REASON_BREAKER)
        return host->breaker_changed_s;
    return bound->source == WR_BOUND_FROM_LEARNING ? host->learned_s : 0;
}

static void add_gate_bounds(struct bound_list *list, const struct wr_plan *plan, const struct wr_plan_host *host,
                            bool is_group)
{
    const struct wr_gate *gate = is_group ? wr_group_gate(host) : wr_host_gate_of((struct wr_plan_host *)host);
    const weir_pace_options *pace = is_group ? &plan->options.pace : wr_host_pace_options(plan, host);
    weir_pace_bound bounds[WEIR_PACE_BOUNDS_MAX];
    weir_pace_entry entry = {.key = NULL};
    size_t count = wr_gate_bounds(gate, pace, list->now, bounds);
    wr_gate_inspect(gate, pace, list->now, &entry);
    for (size_t i = 0; i < count; i++) {
        struct wr_plan_bound bound = {.reason = bounds[i].reason,
                                      .is_group = is_group,
                                      .wait_ns = bounds[i].wait_ns,
                                      .value_ns = bounds[i].value_ns};
        bound.count = bound.reason == WEIR_REASON_CONCURRENCY ? entry.cap : 0;
        bound.line = bound.reason == WEIR_REASON_ROBOTS_DELAY && !is_group ? crawl_delay_line(host) : 0;
        bound.source = source_of_bound(plan, host, i, &bound);
        add_bound(list, bound, bound_since_s(host, &bound));
    }
}

static void add_wait_bound(struct bound_list *list, weir_reason reason, enum wr_bound_source source, int64_t until)
{
    int64_t wait_ns = until == WEIR_FOREVER ? WEIR_UNTIL_RELEASE : until - list->now;
    if (wait_ns > 0)
        add_bound(list, (struct wr_plan_bound){.reason = reason, .source = source, .wait_ns = wait_ns}, 0);
}

/* Adds the wait for a job that has used up a limit of its own, or that a user paused. */
static void add_job_bound(struct bound_list *list, const struct wr_plan_host *host)
{
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside)
        if (host_queue->job->paused != WEIR_REASON_NONE) {
            bool is_limit = host_queue->job->paused == WEIR_REASON_JOB_LIMIT;
            add_wait_bound(list, host_queue->job->paused, is_limit ? WR_BOUND_FROM_OPTIONS : WR_BOUND_FROM_USER,
                           WEIR_FOREVER);
            return;
        }
}

size_t wr_plan_bounds(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now,
                      struct wr_plan_bound ret_bounds[WR_PLAN_BOUNDS_MAX])
{
    struct bound_list list = {ret_bounds, 0, now};
    struct wr_host_readiness standing;
    add_gate_bounds(&list, plan, host, false);
    if (host->group != NULL)
        add_gate_bounds(&list, plan, host, true);
    wr_host_readiness_of(plan, (struct wr_plan_host *)host, now, &standing);
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++)
        if (((standing.wanted & ~standing.open) >> origin & 1) != 0)
            add_wait_bound(&list, WEIR_REASON_ROBOTS, WR_BOUND_FROM_ROBOTS, standing.life[origin].until);
    /* The time of a block by the host's firewall. */
    add_wait_bound(&list, WEIR_REASON_BREAKER, WR_BOUND_FROM_LEARNING, host->blocked_until);
    add_wait_bound(&list, WEIR_REASON_GLOBAL, WR_BOUND_FROM_OPTIONS, plan->hold_until);
    if (plan->in_flight >= plan->options.max_in_flight)
        add_wait_bound(&list, WEIR_REASON_GLOBAL, WR_BOUND_FROM_OPTIONS, WEIR_FOREVER);
    add_job_bound(&list, host);
    return list.count;
}

static const struct wr_task *find_task_in(const struct wr_plan *plan, const struct wr_tasks *tasks,
                                          uint64_t fingerprint, uint32_t *ret_place)
{
    uint32_t number = tasks->first;
    for (uint32_t i = 0; i < tasks->count; i++, number = wr_task_at(&plan->pool, number)->next)
        if (wr_task_at(&plan->pool, number)->fingerprint == fingerprint) {
            *ret_place = i;
            return wr_task_at(&plan->pool, number);
        }
    return NULL;
}

/* Counts the tasks before this one: delayed tasks that are due, then tasks of both origins that
 * were loaded before it. */
static uint32_t count_tasks_before(const struct wr_plan *plan, const struct wr_host_queue *host_queue,
                                   const struct wr_task *task, int64_t now)
{
    uint32_t before = 0;
    uint32_t number = host_queue->delayed.first;
    for (uint32_t i = 0; i < host_queue->delayed.count; i++, number = wr_task_at(&plan->pool, number)->next)
        before += wr_task_at(&plan->pool, number)->at <= now;
    const struct wr_tasks *other = &host_queue->fifo[!wr_task_is_https(task)];
    number = other->first;
    for (uint32_t i = 0; i < other->count; i++, number = wr_task_at(&plan->pool, number)->next)
        before += (int32_t)(wr_task_at(&plan->pool, number)->order - task->order) < 0;
    return before;
}

struct wr_plan_task_place wr_plan_task_place(const struct wr_plan *plan, const struct wr_plan_host *host, uint32_t job,
                                             uint64_t fingerprint, int64_t now)
{
    struct wr_plan_task_place seat = {.kind = WR_TASK_PLACE_NONE};
    const struct wr_job *found = wr_job_find(plan, job);
    const struct wr_host_queue *host_queue = found != NULL ? wr_host_queue_find(host, found) : NULL;
    const struct wr_task *task;
    uint32_t place = 0;
    if (host_queue == NULL)
        return seat;
    seat.before = host_queue->queued[0] + host_queue->queued[1];
    if ((task = find_task_in(plan, &host_queue->flying, fingerprint, &place)) != NULL) {
        bool was_sent = (task->flags & WR_TASK_SENT) != 0;
        seat = (struct wr_plan_task_place){
            .kind = WR_TASK_PLACE_IN_FLIGHT, .was_sent = was_sent, .sent_ns = was_sent ? now - task->at : 0};
    } else if ((task = find_task_in(plan, &host_queue->delayed, fingerprint, &place)) != NULL) {
        seat = (struct wr_plan_task_place){
            .kind = WR_TASK_PLACE_QUEUED, .before = place, .not_before_ns = task->at > now ? task->at - now : 0};
    } else {
        for (int i = 0; i < WR_ORIGINS && task == NULL; i++)
            task = find_task_in(plan, &host_queue->fifo[i], fingerprint, &place);
        if (task != NULL)
            seat = (struct wr_plan_task_place){.kind = WR_TASK_PLACE_QUEUED,
                                               .before = place + count_tasks_before(plan, host_queue, task, now)};
    }
    if (task != NULL)
        seat.attempts = (uint32_t)task->failures + task->blocks;
    return seat;
}

struct wr_robots_decision wr_plan_ruling(const struct wr_plan *plan, const struct wr_plan_host *host, bool is_https,
                                         struct wr_span target, int64_t now, struct wr_span *ret_rule)
{
    static const struct wr_robots_event wanted = {.kind = WR_ROBOTS_EVENT_WANTED};
    const struct wr_robots *rules = host->rules[is_https];
    struct wr_robots_lifecycle life = host->robots[is_https];
    struct wr_robots_decision ruling = {.decision = {.verdict = WEIR_GO}};
    *ret_rule = (struct wr_span){NULL, 0};
    if (plan->options.ignores_robots)
        return ruling;
    struct wr_robots_action action = wr_robots_lifecycle_step(&life, &plan->options.robots, &wanted, now);
    ruling = wr_robots_lifecycle_decide(&action, rules, target, now);
    if (ruling.line > 0 && rules != NULL)
        *ret_rule = wr_robots_match(rules, target).path;
    return ruling;
}

/* ---- control ---- */

void wr_plan_host_pause(struct wr_plan *plan, struct wr_plan_host *host, bool paused, int64_t now)
{
    wr_gate_pause(wr_host_gate_of(host), paused);
    host->steered = true;
    wr_host_reschedule(plan, host, now);
}

int wr_plan_host_pace(struct wr_plan *plan, struct wr_plan_host *host, int64_t interval_ns, int64_t now)
{
    assert(interval_ns >= 0 && interval_ns <= WR_PLAN_PACE_MAX_NS);
    int error = wr_host_set_pace(plan, host, interval_ns);
    if (error != 0)
        return error;
    host->steered = true;
    wr_host_reschedule(plan, host, now);
    return 0;
}

void wr_plan_host_forget_learned(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    wr_gate_forget(wr_host_gate_of(host), wr_host_pace_options(plan, host), now);
    host->forgot_at = now + 1; /* includes requests sent at this very moment */
    host->learned_s = host->breaker_changed_s = 0;
    plan->stats.lowered -= host->steps > 0;
    host->steps = 0;
    wr_host_reschedule(plan, host, now);
}
