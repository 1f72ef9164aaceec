/* SPDX-License-Identifier: MIT */
/* jobs.c - manages the jobs of a plan: their limits, their budgets and their end. */
#include "base/error.h"
#include "core/plan/plan_state.h"

#define PURGE_BATCH 64 /* host queues of an ended or paused job handled at once */

struct wr_job *wr_job_find(const struct wr_plan *plan, uint32_t id)
{
    for (uint32_t i = 0; i < plan->places && id != 0; i++)
        if (plan->jobs[i].options.id == id)
            return &plan->jobs[i];
    return NULL;
}

static struct wr_job *find_free_job(const struct wr_plan *plan)
{
    for (uint32_t i = 0; i < plan->options.max_jobs; i++)
        if (plan->jobs[i].options.id == 0)
            return &plan->jobs[i];
    return NULL;
}

int wr_plan_job_add(struct wr_plan *plan, const struct wr_plan_job *options)
{
    if (options->id == 0 || wr_job_find(plan, options->id) != NULL)
        return wr_invalid("a job needs a unique id other than 0");
    struct wr_job *job = find_free_job(plan);
    if (job == NULL)
        return WEIR_E_FULL;
    *job = (struct wr_job){.options = *options, .limited_at = -WEIR_DURATION_MAX};
    uint32_t place = (uint32_t)(job - plan->jobs) + 1;
    plan->places = place > plan->places ? place : plan->places;
    return 0;
}

int wr_plan_job_change(struct wr_plan *plan, const struct wr_plan_job *options)
{
    struct wr_job *job = wr_job_find(plan, options->id);
    if (job == NULL)
        return WEIR_E_ABSENT;
    job->options.concurrency = options->concurrency;
    job->options.deadline_at = options->deadline_at;
    return 0;
}

int wr_plan_job_pause(struct wr_plan *plan, uint32_t id, weir_reason why)
{
    struct wr_job *job = wr_job_find(plan, id);
    if (job == NULL)
        return WEIR_E_ABSENT;
    job->paused = why;
    job->next_to_reschedule = job->host_queues.first; /* its hosts are rescheduled, a few at a time */
    return 0;
}

int wr_plan_job_end(struct wr_plan *plan, uint32_t id)
{
    struct wr_job *job = wr_job_find(plan, id);
    if (job == NULL)
        return WEIR_E_ABSENT;
    job->ended = true;
    job->next_to_reschedule = NULL;
    job->says_over = false;
    job->says_drained = true; /* DRAINED is reported as soon as it is true */
    return 0;
}

static bool is_job_drained(const struct wr_job *job)
{
    if (job->ended)
        return job->host_queues.first == NULL && job->in_flight == 0 && !job->listing;
    return job->open <= 0;
}

bool wr_plan_job_is_drained(const struct wr_plan *plan, uint32_t id)
{
    const struct wr_job *job = wr_job_find(plan, id);
    return job == NULL || is_job_drained(job);
}

int wr_plan_job_forget(struct wr_plan *plan, uint32_t id)
{
    struct wr_job *job = wr_job_find(plan, id);
    if (job == NULL)
        return WEIR_E_ABSENT;
    if (!is_job_drained(job) || job->listing)
        return wr_invalid("the job still has URLs or requests; wait until it is drained");
    while (job->host_queues.first != NULL)
        wr_host_queue_free(plan, WR_LINKED(job->host_queues.first, struct wr_host_queue, of_job));
    *job = (struct wr_job){.in_flight = 0};
    return 0;
}

int wr_plan_grant_budget(struct wr_plan *plan, uint32_t id, enum wr_budget_kind what, uint64_t count, bool is_last)
{
    struct wr_job *job = wr_job_find(plan, id);
    if (job == NULL)
        return WEIR_E_ABSENT;
    job->drawing[what] = false;
    if (what == WR_BUDGET_BYTES) {
        uint64_t paid = count < job->owed_bytes ? count : job->owed_bytes;
        job->owed_bytes -= paid;
        job->left[what] += count - paid;
    } else {
        job->left[what] += count;
    }
    job->granted[what] = count;
    job->is_last[what] |= is_last;
    if (what == WR_BUDGET_BYTES && job->is_last[what] && job->left[what] == 0) {
        job->says_over = !job->ended;
        job->over = what;
    }
    return 0;
}

bool wr_job_may_start(const struct wr_job *job)
{
    bool out_of_bytes = job->options.has_byte_budget && job->left[WR_BUDGET_BYTES] == 0;
    bool is_busy = job->options.concurrency > 0 && job->in_flight >= job->options.concurrency;
    return job->paused == WEIR_REASON_NONE && !job->ended && !out_of_bytes && !is_busy;
}

void wr_job_task_ended(struct wr_job *job, int64_t count)
{
    job->open -= count;
    if (job->open <= 0)
        /* After a job has ended, DRAINED still waits until nothing is left. */
        job->says_drained = true;
}

int64_t wr_jobs_deadline(const struct wr_plan *plan, int64_t now)
{
    int64_t at = WEIR_FOREVER;
    for (uint32_t i = 0; i < plan->places; i++) {
        const struct wr_job *job = &plan->jobs[i];
        if (job->options.id == 0 || job->ended)
            continue;
        if (!job->timed_out && job->options.deadline_at != 0 && job->options.deadline_at < at)
            at = job->options.deadline_at;
        if (job->dormant && !job->listing && job->hosts_at > now && job->hosts_at < at)
            at = job->hosts_at;
    }
    return at;
}

/* ---- ended and paused jobs ---- */

void wr_host_queue_drop_tasks(struct wr_plan *plan, struct wr_host_queue *host_queue)
{
    uint32_t task;
    for (int origin = 0; origin < WR_ORIGINS; origin++)
        while ((task = wr_host_queue_pop_any(plan, host_queue, origin == 1)) != WR_NO_TASK)
            wr_task_end(plan, task);
    host_queue->in_store = host_queue->since = 0;
    wr_list_remove(&host_queue->ready);
    wr_list_remove(&host_queue->loads);
}

static void drop_ended_job_tasks(struct wr_plan *plan, struct wr_job *job, int64_t now)
{
    struct wr_list_link *link = job->host_queues.first;
    for (int i = 0; i < PURGE_BATCH && link != NULL; i++) {
        struct wr_host_queue *host_queue = WR_LINKED(link, struct wr_host_queue, of_job);
        struct wr_plan_host *host = host_queue->host;
        link = link->next;
        wr_host_queue_drop_tasks(plan, host_queue);
        if (host_queue->in_flight == 0 && !host_queue->loading)
            wr_host_queue_free(plan, host_queue);
        wr_host_reschedule(plan, host, now);
    }
}

/* Drops the tasks of a paused job from memory, which others may need. They are loaded once more,
 * from the front. Keeps them while some are in flight or have failed, which the store does not
 * know. */
static void unload_host_queue(struct wr_plan *plan, struct wr_host_queue *host_queue)
{
    uint32_t queued = host_queue->queued[0] + host_queue->queued[1];
    if (host_queue->in_flight > 0 || host_queue->loading || host_queue->delayed.count > 0 || queued == 0)
        return;
    uint64_t in_store = host_queue->in_store + queued;
    wr_host_queue_drop_tasks(plan, host_queue);
    host_queue->job->open += queued;
    host_queue->in_store = in_store;
    host_queue->after = WR_PLAN_FRONT;
}

/* Reschedules hosts after their job was paused or resumed. */
static void reschedule_job_hosts(struct wr_plan *plan, struct wr_job *job, int64_t now)
{
    for (int i = 0; i < PURGE_BATCH && job->next_to_reschedule != NULL; i++) {
        struct wr_host_queue *host_queue = WR_LINKED(job->next_to_reschedule, struct wr_host_queue, of_job);
        job->next_to_reschedule = job->next_to_reschedule->next;
        if (job->paused != WEIR_REASON_NONE)
            unload_host_queue(plan, host_queue);
        wr_host_reschedule(plan, host_queue->host, now);
    }
}

bool wr_plan_reschedule_paused(struct wr_plan *plan, int64_t now)
{
    bool has_more = false;
    for (uint32_t i = 0; i < plan->places; i++) {
        struct wr_job *job = &plan->jobs[i];
        if (job->options.id != 0 && job->next_to_reschedule != NULL)
            reschedule_job_hosts(plan, job, now);
        has_more |= job->next_to_reschedule != NULL;
    }
    return has_more;
}

/* ---- actions of jobs ---- */

static bool fill_budget_action(struct wr_job *job, enum wr_budget_kind what, uint64_t chunk,
                               struct wr_plan_action *ret_action)
{
    bool draws = what == WR_BUDGET_PAGES ? job->options.has_page_budget : job->options.has_byte_budget;
    if (!draws || job->drawing[what] || job->is_last[what] || job->left[what] > job->granted[what] / 2)
        return false;
    job->drawing[what] = true;
    *ret_action =
        (struct wr_plan_action){.kind = WR_PLAN_TAKE_BUDGET, .job = job->options.id, .draw = what, .count = chunk};
    return true;
}

static bool fill_job_end_action(struct wr_job *job, int64_t now, struct wr_plan_action *ret_action)
{
    if (!job->ended && !job->timed_out && job->options.deadline_at != 0 && now >= job->options.deadline_at) {
        job->timed_out = job->says_over = true;
        job->over = WR_BUDGET_KINDS;
    }
    if (job->says_over) {
        job->says_over = false;
        *ret_action = (struct wr_plan_action){.kind = WR_PLAN_OVER, .job = job->options.id, .draw = job->over};
        return true;
    }
    if (job->says_drained && is_job_drained(job)) {
        job->says_drained = false;
        *ret_action = (struct wr_plan_action){.kind = WR_PLAN_DRAINED, .job = job->options.id};
        return true;
    }
    return false;
}

/* Asks for hosts if there is room for some. */
static bool fill_hosts_action(struct wr_plan *plan, struct wr_job *job, int64_t now, struct wr_plan_action *ret_action)
{
    bool has_room = plan->hosts.count < plan->options.max_hosts || plan->idle.first != NULL;
    if (!job->dormant || job->listing || job->ended || !has_room || now < job->hosts_at)
        return false;
    job->listing = true;
    *ret_action = (struct wr_plan_action){
        .kind = WR_PLAN_HOSTS, .job = job->options.id, .after = {job->hosts_after, INT32_MIN}, .count = WR_HOSTS_CHUNK};
    return true;
}

bool wr_jobs_next_action(struct wr_plan *plan, int64_t now, struct wr_plan_action *ret_action)
{
    for (uint32_t i = 0; i < plan->places; i++) {
        struct wr_job *job = &plan->jobs[i];
        if (job->options.id == 0)
            continue;
        if (job->ended && job->host_queues.first != NULL)
            drop_ended_job_tasks(plan, job, now);
        if (job->next_to_reschedule != NULL)
            reschedule_job_hosts(plan, job, now);
        if (fill_job_end_action(job, now, ret_action))
            return true;
        if (!job->ended && (fill_budget_action(job, WR_BUDGET_PAGES, WR_BUDGET_CHUNK_PAGES, ret_action) ||
                            fill_budget_action(job, WR_BUDGET_BYTES, WR_BUDGET_CHUNK_BYTES, ret_action)))
            return true;
        if (fill_hosts_action(plan, job, now, ret_action))
            return true;
    }
    return false;
}

/* ---- hosts that are only in the store ---- */

#define HOSTS_WAIT_NS WEIR_SECOND /* wait before asking once more for hosts that found no room */
#define HOSTS_WAIT_MAX_NS WEIR_MINUTE

int wr_plan_hosts_row(struct wr_plan *plan, uint32_t id, struct wr_span key, uint64_t queued, int64_t now)
{
    struct wr_job *job = wr_job_find(plan, id);
    struct wr_plan_host *host;
    struct wr_host_queue *host_queue;
    if (job == NULL || job->ended || queued == 0)
        return job == NULL ? WEIR_E_ABSENT : 0;
    host = wr_plan_host_find(plan, key);
    host_queue = host != NULL ? wr_host_queue_find(host, job) : NULL;
    if (host_queue != NULL && (job->listing || !wr_host_queue_is_empty(host_queue)))
        return 0;
    if (host_queue != NULL) /* rows of the empty queue were set aside: read them once more */
        host_queue->after = WR_PLAN_FRONT;
    int error = wr_host_get_or_make(plan, key, now, &host);
    if (error == 0)
        error = wr_host_queue_get_or_make(plan, host, job, &host_queue);
    if (!job->listing)
        job->open += (int64_t)queued;
    if (error != 0) {
        job->full = job->missed = job->dormant = true;
        if (error == WEIR_E_FULL) /* retry soon: any host that leaves makes room */
            job->hosts_wait_ns = 0;
        return error;
    }
    job->found += job->listing;
    job->hosts_wait_ns = 0;
    host_queue->in_store = queued;
    wr_host_reschedule(plan, host, now);
    return 0;
}

/* Doubles the wait while memory is short, because each attempt reads the store. */
static int64_t next_hosts_wait(struct wr_job *job)
{
    int64_t wait_ns = job->hosts_wait_ns == 0 ? HOSTS_WAIT_NS : 2 * job->hosts_wait_ns;
    job->hosts_wait_ns = wait_ns < HOSTS_WAIT_MAX_NS ? wait_ns : HOSTS_WAIT_MAX_NS;
    return job->hosts_wait_ns;
}

void wr_plan_hosts_end(struct wr_plan *plan, uint32_t id, int64_t last_id, bool is_end, int64_t now)
{
    struct wr_job *job = wr_job_find(plan, id);
    if (job == NULL || !job->listing)
        return;
    job->listing = false;
    job->hosts_after = last_id;
    job->hosts_at = job->full ? now + next_hosts_wait(job) : now;
    job->full = false;
    if (!is_end)
        return;
    if (job->found == 0 && !job->missed) /* a whole pass over the store found no hosts */
        job->dormant = false;
    job->hosts_after = 0;
    job->found = 0;
    job->missed = false;
}
