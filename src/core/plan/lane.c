/* SPDX-License-Identifier: MIT */
/* lane.c - the queue of one job at one host: its window in memory, and the rest in the store. */
#include "core/plan/state.h"

static uint32_t in_window(const struct wr_lane *lane)
{
    return lane->queued[0] + lane->queued[1] + lane->in_flight;
}

bool wr_lane_is_empty(const struct wr_lane *lane)
{
    return in_window(lane) == 0 && lane->in_store == 0 && !lane->loading;
}

/* Returns how many tasks each host queue may have in memory, so that all can have some. */
static uint32_t share(const struct wr_plan *plan)
{
    uint32_t lanes = plan->lanes > 0 ? plan->lanes : 1;
    uint32_t each = plan->options.max_tasks / lanes;
    each = each > WR_LOAD_LEAST ? each : WR_LOAD_LEAST;
    return each < plan->options.window ? each : plan->options.window;
}

void wr_lane_want(struct wr_plan *plan, struct wr_lane *lane)
{
    bool active = lane->in_store > 0 || in_window(lane) > 0;
    plan->lanes += active;
    plan->lanes -= lane->active;
    lane->active = active;
    if (!lane->loading && !lane->job->ended && !lane->job->paused && lane->in_store > 0 &&
        in_window(lane) <= share(plan) / 2)
        wr_list_push(&plan->loads, &lane->loads);
}

bool wr_loads_say(struct wr_plan *plan, struct wr_plan_action *ret_action)
{
    while (plan->loads.first != NULL && WR_LINKED(plan->loads.first, struct wr_lane, loads)->job->paused)
        wr_list_take(plan->loads.first);
    if (plan->loads.first == NULL || plan->starved || plan->loading == plan->options.max_loads ||
        plan->pool.used >= plan->options.max_tasks)
        return false;
    struct wr_lane *lane = WR_LINKED(plan->loads.first, struct wr_lane, loads);
    uint32_t most = share(plan), has = in_window(lane);
    uint32_t room = plan->options.max_tasks - plan->pool.used;
    uint32_t count = most > has ? most - has : 1;
    wr_list_take(&lane->loads);
    lane->loading = true;
    plan->loading++;
    lane->since = 0;
    lane->host->claims++;
    *ret_action = (struct wr_plan_action){.kind = WR_PLAN_LOAD,
                                          .job = lane->job->options.id,
                                          .host = lane->host,
                                          .after = lane->after,
                                          .count = count < room ? count : room,
                                          .wants_memory = !lane->host->remembered};
    return true;
}

/* ---- loading ---- */

/* Counts a loaded row. If the loop that found its URL has not offered it yet, the row is accepted
 * by being loaded, and was not counted before. */
static void count_loaded(struct wr_plan *plan, struct wr_lane *lane, uint64_t fingerprint)
{
    struct wr_job *job = lane->job;
    if (wr_known_has(&plan->known, job->options.id, fingerprint)) {
        lane->in_store -= lane->in_store > 0;
        lane->since -= lane->since > lane->in_store;
        return;
    }
    if (!plan->known.incomplete) {
        job->open++;
        job->left[WR_DRAW_PAGES] -= job->left[WR_DRAW_PAGES] > 0;
        lane->accepted += lane->accepted < UINT32_MAX;
    }
    wr_known_add(&plan->known, job->options.id, fingerprint);
}

/* Takes a task, but leaves room for one robots.txt; without it, tasks that wait for it never
 * end. */
static int take_row(struct wr_pool *pool, struct wr_span text, uint32_t *ret_number)
{
    uint32_t number;
    int error = wr_pool_take(pool, text, &number);
    if (error != 0)
        return error;
    error = wr_pool_reserve(pool, 1);
    if (error != 0)
        wr_pool_give(pool, number);
    else
        *ret_number = number;
    return error;
}

int wr_plan_load(struct wr_plan *plan, struct wr_plan_host *host, uint32_t id, const struct wr_plan_row *row,
                 int64_t now)
{
    struct wr_job *job = wr_job_find(plan, id);
    struct wr_lane *lane = job != NULL ? wr_lane_find(host, job) : NULL;
    uint32_t number;
    if (lane == NULL || job->ended || wr_host_is_lost(plan, host) ||
        wr_known_has(&plan->known, id | WR_KNOWN_REFUSED, row->fingerprint))
        return 0;
    if (row->url == NULL) {
        lane->after = row->position;
        count_loaded(plan, lane, row->fingerprint);
        wr_job_task_ended(job, 1);
        return 0;
    }
    int error = take_row(&plan->pool, wr_url_target(row->url), &number);
    if (error != 0) {
        assert(plan->pool.used > 0); /* an empty pool has room (take_parts), so a task will end */
        plan->starved = true;
        return error;
    }
    struct wr_task *task = wr_task_at(&plan->pool, number);
    task->fingerprint = row->fingerprint;
    task->owner = lane;
    task->depth = (uint16_t)(row->depth < UINT16_MAX ? row->depth : UINT16_MAX);
    task->hops = (uint8_t)(row->hops < UINT8_MAX ? row->hops : UINT8_MAX);
    task->failures = (uint8_t)(row->attempts < UINT8_MAX ? row->attempts : UINT8_MAX);
    task->flags |= row->url->is_https ? WR_TASK_HTTPS : 0;
    task->at = row->not_before_ns > 0 ? now + row->not_before_ns : 0;
    host->claims++;
    lane->after = row->position;
    count_loaded(plan, lane, row->fingerprint);
    wr_lane_push(plan, lane, number, now);
    return 0;
}

void wr_plan_loaded(struct wr_plan *plan, struct wr_plan_host *host, uint32_t id, bool is_end, uint32_t accepted,
                    int64_t now)
{
    struct wr_job *job = wr_job_find(plan, id);
    struct wr_lane *lane = job != NULL ? wr_lane_find(host, job) : NULL;
    host->claims--;
    plan->loading--;
    if (lane != NULL) {
        lane->loading = false;
        if (is_end || wr_host_is_lost(plan, host))
            lane->in_store = lane->since;
        else if (lane->in_store == 0)
            /* URLs were accepted while the host was not here: more may follow. */
            lane->in_store = 1;
        lane->accepted = accepted > lane->accepted ? accepted : lane->accepted;
        if ((job->ended || wr_host_is_lost(plan, host)) && lane->in_flight == 0)
            wr_lane_free(plan, lane);
    }
    wr_host_settle(plan, host, now);
    host->held_ns = 0;
}

/* ---- the window ---- */

static uint32_t ms_of(int64_t now)
{
    return (uint32_t)(now / WEIR_MILLISECOND);
}

static bool is_wanted(const struct wr_plan_host *host, bool is_https)
{
    const struct wr_lane *lane = host->lanes;
    while (lane != NULL && lane->queued[is_https] == 0)
        lane = lane->beside;
    return lane != NULL;
}

void wr_lane_push(struct wr_plan *plan, struct wr_lane *lane, uint32_t number, int64_t now)
{
    struct wr_task *task = wr_task_at(&plan->pool, number);
    bool is_https = wr_is_https(task);
    task->seq = ms_of(now);
    /* The first task of this origin: its deferral counts from now, or from held_ns before. */
    if (!is_wanted(lane->host, is_https)) {
        lane->host->could_at[is_https] = now - lane->host->held_ns;
        lane->host->held |= (uint8_t)(1U << is_https);
    }
    lane->queued[is_https]++;
    if (task->at > 0)
        wr_tasks_insert(&plan->pool, &lane->delayed, number);
    else
        wr_tasks_push(&plan->pool, &lane->fifo[is_https], number);
}

void wr_lane_push_back(struct wr_plan *plan, struct wr_lane *lane, uint32_t number, int64_t now)
{
    struct wr_task *task = wr_task_at(&plan->pool, number);
    bool is_https = wr_is_https(task);
    task->seq = ms_of(now);
    lane->queued[is_https]++;
    wr_tasks_push_front(&plan->pool, &lane->fifo[is_https], number);
}

/* Finds the first delayed task that is due, of an origin in the set. *ret_before precedes it. */
static uint32_t find_delayed(const struct wr_plan *plan, const struct wr_lane *lane, uint32_t open, int64_t now,
                             uint32_t *ret_before)
{
    uint32_t before = WR_NO_TASK;
    for (uint32_t n = lane->delayed.count > 0 ? lane->delayed.first : WR_NO_TASK; n != WR_NO_TASK;) {
        const struct wr_task *task = wr_task_at(&plan->pool, n);
        if (task->at > now)
            break;
        if ((open >> wr_is_https(task) & 1) != 0) {
            *ret_before = before;
            return n;
        }
        before = n;
        n = task->next;
    }
    return WR_NO_TASK;
}

/* Returns the first task of the origins in the set, the one that was loaded earlier. */
static uint32_t find_fifo(const struct wr_plan *plan, const struct wr_lane *lane, uint32_t open)
{
    uint32_t found = WR_NO_TASK;
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++) {
        if ((open >> origin & 1) == 0 || lane->fifo[origin].count == 0)
            continue;
        uint32_t first = lane->fifo[origin].first;
        if (found == WR_NO_TASK ||
            (int32_t)(wr_task_at(&plan->pool, first)->order - wr_task_at(&plan->pool, found)->order) < 0)
            found = first;
    }
    return found;
}

uint32_t wr_lane_peek(const struct wr_plan *plan, const struct wr_lane *lane, uint32_t open, int64_t now)
{
    uint32_t before;
    uint32_t found = find_delayed(plan, lane, open, now, &before);
    return found != WR_NO_TASK ? found : find_fifo(plan, lane, open);
}

uint32_t wr_lane_pop(struct wr_plan *plan, struct wr_lane *lane, uint32_t open, int64_t now)
{
    uint32_t before;
    uint32_t found = find_delayed(plan, lane, open, now, &before);
    struct wr_tasks *from = &lane->delayed;
    if (found == WR_NO_TASK) {
        found = find_fifo(plan, lane, open);
        if (found == WR_NO_TASK)
            return WR_NO_TASK;
        from = &lane->fifo[wr_is_https(wr_task_at(&plan->pool, found))];
        before = WR_NO_TASK;
    }
    wr_tasks_take(&plan->pool, from, before);
    lane->queued[wr_is_https(wr_task_at(&plan->pool, found))]--;
    return found;
}

uint32_t wr_lane_pop_any(struct wr_plan *plan, struct wr_lane *lane, bool is_https)
{
    return wr_lane_pop(plan, lane, 1U << is_https, WEIR_FOREVER);
}

static bool has(const struct wr_pool *pool, const struct wr_tasks *tasks, uint64_t fingerprint)
{
    uint32_t number = tasks->first;
    for (uint32_t i = 0; i < tasks->count; i++, number = wr_task_at(pool, number)->next)
        if (wr_task_at(pool, number)->fingerprint == fingerprint)
            return true;
    return false;
}

bool wr_lane_has(const struct wr_plan *plan, const struct wr_lane *lane, uint64_t fingerprint)
{
    return has(&plan->pool, &lane->fifo[0], fingerprint) || has(&plan->pool, &lane->fifo[1], fingerprint) ||
           has(&plan->pool, &lane->delayed, fingerprint) || has(&plan->pool, &lane->flying, fingerprint);
}

/* Returns true if the job has its most requests in flight here: fewer at a host that has become
 * slow, but at least one. The limit of the gate is separate. */
bool wr_lane_is_full(const struct wr_lane *lane)
{
    uint32_t most = lane->job->options.concurrency, steps = lane->host->steps;
    if (most == 0)
        return false;
    most = steps < most ? most - steps : 1;
    return lane->in_flight >= most;
}
