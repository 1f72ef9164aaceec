/* SPDX-License-Identifier: MIT */
/* host_queue.c - the queue of one job at one host: its window in memory, and the rest in the
 * store. */
#include "core/plan/plan_state.h"

static uint32_t tasks_in_window(const struct wr_host_queue *host_queue)
{
    return host_queue->queued[0] + host_queue->queued[1] + host_queue->in_flight;
}

bool wr_host_queue_is_empty(const struct wr_host_queue *host_queue)
{
    return tasks_in_window(host_queue) == 0 && host_queue->in_store == 0 && !host_queue->loading;
}

/* Returns how many tasks each host queue may have in memory, so that all can have some. */
static uint32_t tasks_per_host_queue(const struct wr_plan *plan)
{
    uint32_t host_queues = plan->host_queues > 0 ? plan->host_queues : 1;
    uint32_t each = plan->options.max_tasks / host_queues;
    each = each > WR_LOAD_LEAST ? each : WR_LOAD_LEAST;
    return each < plan->options.window ? each : plan->options.window;
}

void wr_host_queue_list_for_load(struct wr_plan *plan, struct wr_host_queue *host_queue)
{
    bool active = host_queue->in_store > 0 || tasks_in_window(host_queue) > 0;
    plan->host_queues += active;
    plan->host_queues -= host_queue->active;
    host_queue->active = active;
    if (!host_queue->loading && !host_queue->job->ended && !host_queue->job->paused && host_queue->in_store > 0 &&
        tasks_in_window(host_queue) <= tasks_per_host_queue(plan) / 2)
        wr_list_push(&plan->loads, &host_queue->loads);
}

bool wr_loads_next_action(struct wr_plan *plan, struct wr_plan_action *ret_action)
{
    while (plan->loads.first != NULL && WR_LINKED(plan->loads.first, struct wr_host_queue, loads)->job->paused)
        wr_list_remove(plan->loads.first);
    if (plan->loads.first == NULL || plan->starved || plan->loading == plan->options.max_loads ||
        plan->pool.used >= plan->options.max_tasks)
        return false;
    struct wr_host_queue *host_queue = WR_LINKED(plan->loads.first, struct wr_host_queue, loads);
    uint32_t most = tasks_per_host_queue(plan), has = tasks_in_window(host_queue);
    uint32_t room = plan->options.max_tasks - plan->pool.used;
    uint32_t count = most > has ? most - has : 1;
    wr_list_remove(&host_queue->loads);
    host_queue->loading = true;
    plan->loading++;
    host_queue->since = 0;
    host_queue->host->claims++;
    *ret_action = (struct wr_plan_action){.kind = WR_PLAN_LOAD,
                                          .job = host_queue->job->options.id,
                                          .host = host_queue->host,
                                          .after = host_queue->after,
                                          .count = count < room ? count : room,
                                          .wants_memory = !host_queue->host->remembered};
    return true;
}

/* ---- loading ---- */

/* Counts a loaded row. If the loop that found its URL has not offered it yet, the row is accepted
 * by being loaded, and was not counted before. */
static void count_loaded(struct wr_plan *plan, struct wr_host_queue *host_queue, uint64_t fingerprint)
{
    struct wr_job *job = host_queue->job;
    if (wr_known_urls_has(&plan->known, job->options.id, fingerprint)) {
        host_queue->in_store -= host_queue->in_store > 0;
        host_queue->since -= host_queue->since > host_queue->in_store;
        return;
    }
    if (!plan->known.incomplete) {
        job->open++;
        job->left[WR_BUDGET_PAGES] -= job->left[WR_BUDGET_PAGES] > 0;
        host_queue->accepted += host_queue->accepted < UINT32_MAX;
    }
    wr_known_urls_add(&plan->known, job->options.id, fingerprint);
}

/* Takes a task, but leaves room for one robots.txt; without it, tasks that wait for it never
 * end. */
static int take_task_for_row(struct wr_pool *pool, struct wr_span text, uint32_t *ret_number)
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

int wr_plan_load_row(struct wr_plan *plan, struct wr_plan_host *host, uint32_t id, const struct wr_plan_row *row,
                     int64_t now)
{
    struct wr_job *job = wr_job_find(plan, id);
    struct wr_host_queue *host_queue = job != NULL ? wr_host_queue_find(host, job) : NULL;
    uint32_t number;
    if (host_queue == NULL || job->ended || wr_host_lacks_lease(plan, host) ||
        wr_known_urls_has(&plan->known, id | WR_KNOWN_REFUSED, row->fingerprint))
        return 0;
    if (row->url == NULL) {
        host_queue->after = row->position;
        count_loaded(plan, host_queue, row->fingerprint);
        wr_job_task_ended(job, 1);
        return 0;
    }
    int error = take_task_for_row(&plan->pool, wr_url_target(row->url), &number);
    if (error != 0) {
        assert(plan->pool.used > 0); /* an empty pool has room (take_parts), so a task will end */
        plan->starved = true;
        return error;
    }
    struct wr_task *task = wr_task_at(&plan->pool, number);
    task->fingerprint = row->fingerprint;
    task->owner = host_queue;
    task->depth = (uint16_t)(row->depth < UINT16_MAX ? row->depth : UINT16_MAX);
    task->hops = (uint8_t)(row->hops < UINT8_MAX ? row->hops : UINT8_MAX);
    task->failures = (uint8_t)(row->attempts < UINT8_MAX ? row->attempts : UINT8_MAX);
    task->flags |= row->url->is_https ? WR_TASK_HTTPS : 0;
    task->at = row->not_before_ns > 0 ? now + row->not_before_ns : 0;
    host->claims++;
    host_queue->after = row->position;
    count_loaded(plan, host_queue, row->fingerprint);
    wr_host_queue_push(plan, host_queue, number, now);
    return 0;
}

void wr_plan_load_end(struct wr_plan *plan, struct wr_plan_host *host, uint32_t id, bool is_end, uint32_t accepted,
                      int64_t now)
{
    struct wr_job *job = wr_job_find(plan, id);
    struct wr_host_queue *host_queue = job != NULL ? wr_host_queue_find(host, job) : NULL;
    host->claims--;
    plan->loading--;
    if (host_queue != NULL) {
        host_queue->loading = false;
        if (is_end || wr_host_lacks_lease(plan, host))
            host_queue->in_store = host_queue->since;
        else if (host_queue->in_store == 0)
            /* URLs were accepted while the host was not here: more may follow. */
            host_queue->in_store = 1;
        host_queue->accepted = accepted > host_queue->accepted ? accepted : host_queue->accepted;
        if ((job->ended || wr_host_lacks_lease(plan, host)) && host_queue->in_flight == 0)
            wr_host_queue_free(plan, host_queue);
    }
    wr_host_reschedule(plan, host, now);
    host->held_ns = 0;
}

/* ---- the window ---- */

static uint32_t whole_ms_of(int64_t now)
{
    return (uint32_t)(now / WEIR_MILLISECOND);
}

static bool has_queued_tasks(const struct wr_plan_host *host, bool is_https)
{
    const struct wr_host_queue *host_queue = host->host_queues;
    while (host_queue != NULL && host_queue->queued[is_https] == 0)
        host_queue = host_queue->beside;
    return host_queue != NULL;
}

void wr_host_queue_push(struct wr_plan *plan, struct wr_host_queue *host_queue, uint32_t number, int64_t now)
{
    struct wr_task *task = wr_task_at(&plan->pool, number);
    bool is_https = wr_task_is_https(task);
    task->seq = whole_ms_of(now);
    /* The first task of this origin: its deferral counts from now, or from held_ns before. */
    if (!has_queued_tasks(host_queue->host, is_https)) {
        host_queue->host->could_at[is_https] = now - host_queue->host->held_ns;
        host_queue->host->held |= (uint8_t)(1U << is_https);
    }
    host_queue->queued[is_https]++;
    if (task->at > 0)
        wr_tasks_insert(&plan->pool, &host_queue->delayed, number);
    else
        wr_tasks_push(&plan->pool, &host_queue->fifo[is_https], number);
}

void wr_host_queue_push_front(struct wr_plan *plan, struct wr_host_queue *host_queue, uint32_t number, int64_t now)
{
    struct wr_task *task = wr_task_at(&plan->pool, number);
    bool is_https = wr_task_is_https(task);
    task->seq = whole_ms_of(now);
    host_queue->queued[is_https]++;
    wr_tasks_push_front(&plan->pool, &host_queue->fifo[is_https], number);
}

/* Finds the first delayed task that is due, of an origin in the set. *ret_before precedes it. */
static uint32_t find_due_delayed(const struct wr_plan *plan, const struct wr_host_queue *host_queue, uint32_t open,
                                 int64_t now, uint32_t *ret_before)
{
    uint32_t before = WR_NO_TASK;
    for (uint32_t n = host_queue->delayed.count > 0 ? host_queue->delayed.first : WR_NO_TASK; n != WR_NO_TASK;) {
        const struct wr_task *task = wr_task_at(&plan->pool, n);
        if (task->at > now)
            break;
        if ((open >> wr_task_is_https(task) & 1) != 0) {
            *ret_before = before;
            return n;
        }
        before = n;
        n = task->next;
    }
    return WR_NO_TASK;
}

/* Returns the first task of the origins in the set, the one that was loaded earlier. */
static uint32_t find_fifo(const struct wr_plan *plan, const struct wr_host_queue *host_queue, uint32_t open)
{
    uint32_t found = WR_NO_TASK;
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++) {
        if ((open >> origin & 1) == 0 || host_queue->fifo[origin].count == 0)
            continue;
        uint32_t first = host_queue->fifo[origin].first;
        if (found == WR_NO_TASK ||
            (int32_t)(wr_task_at(&plan->pool, first)->order - wr_task_at(&plan->pool, found)->order) < 0)
            found = first;
    }
    return found;
}

uint32_t wr_host_queue_peek(const struct wr_plan *plan, const struct wr_host_queue *host_queue, uint32_t open,
                            int64_t now)
{
    uint32_t before;
    uint32_t found = find_due_delayed(plan, host_queue, open, now, &before);
    return found != WR_NO_TASK ? found : find_fifo(plan, host_queue, open);
}

uint32_t wr_host_queue_pop(struct wr_plan *plan, struct wr_host_queue *host_queue, uint32_t open, int64_t now)
{
    uint32_t before;
    uint32_t found = find_due_delayed(plan, host_queue, open, now, &before);
    struct wr_tasks *from = &host_queue->delayed;
    if (found == WR_NO_TASK) {
        found = find_fifo(plan, host_queue, open);
        if (found == WR_NO_TASK)
            return WR_NO_TASK;
        from = &host_queue->fifo[wr_task_is_https(wr_task_at(&plan->pool, found))];
        before = WR_NO_TASK;
    }
    wr_tasks_take(&plan->pool, from, before);
    host_queue->queued[wr_task_is_https(wr_task_at(&plan->pool, found))]--;
    return found;
}

uint32_t wr_host_queue_pop_any(struct wr_plan *plan, struct wr_host_queue *host_queue, bool is_https)
{
    return wr_host_queue_pop(plan, host_queue, 1U << is_https, WEIR_FOREVER);
}

static bool has_task_queued(const struct wr_pool *pool, const struct wr_tasks *tasks, uint64_t fingerprint)
{
    uint32_t number = tasks->first;
    for (uint32_t i = 0; i < tasks->count; i++, number = wr_task_at(pool, number)->next)
        if (wr_task_at(pool, number)->fingerprint == fingerprint)
            return true;
    return false;
}

bool wr_host_queue_has(const struct wr_plan *plan, const struct wr_host_queue *host_queue, uint64_t fingerprint)
{
    return has_task_queued(&plan->pool, &host_queue->fifo[0], fingerprint) ||
           has_task_queued(&plan->pool, &host_queue->fifo[1], fingerprint) ||
           has_task_queued(&plan->pool, &host_queue->delayed, fingerprint) ||
           has_task_queued(&plan->pool, &host_queue->flying, fingerprint);
}

/* Returns true if the job has its most requests in flight here: fewer at a host that has become
 * slow, but at least one. The limit of the gate is separate. */
bool wr_host_queue_is_full(const struct wr_host_queue *host_queue)
{
    uint32_t most = host_queue->job->options.concurrency, steps = host_queue->host->steps;
    if (most == 0)
        return false;
    most = steps < most ? most - steps : 1;
    return host_queue->in_flight >= most;
}
