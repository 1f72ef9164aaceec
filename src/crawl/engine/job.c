/* SPDX-License-Identifier: MIT */
/* job.c - what the loops share: budgets, failures in a row, and the end of the job. */
#include "crawl/engine/engine_state.h"

#include "base/error.h"

#define SCARCE_NS_MAX (30 * WEIR_SECOND)
#define SILENT_NS (5 * WEIR_SECOND)

void wr_engine_wake_loops(struct wr_engine *engine)
{
    for (uint32_t i = 0; i < engine->loop_count; i++)
        wr_crawl_loop_wake(&engine->loops[i]);
}

/* ---- messages for the user ---- */

void wr_text_copy(char *to, size_t to_bytes, const char *text)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, to, to_bytes);
    wr_buf_append_string(&buf, text);
}

void wr_engine_warn(struct wr_engine *engine, const char *what, const char *why)
{
    char line[512];
    struct wr_buf buf;
    if (engine->options.warn == NULL)
        return;
    wr_buf_init_fixed(&buf, line, sizeof line);
    wr_buf_append_string(&buf, what);
    wr_buf_append_string(&buf, why);
    engine->options.warn(engine->options.warn_context, line);
}

void wr_engine_warn_seldom(struct wr_engine *engine, const char *what, const char *why)
{
    int64_t now = weir_clock_now(engine->clock), last = atomic_load(&engine->warned_at);
    if ((last == 0 || now - last > 10 * WEIR_SECOND) && atomic_compare_exchange_strong(&engine->warned_at, &last, now))
        wr_engine_warn(engine, what, why);
}

/* Warns that memory, descriptors or ports are short. Ends the job if that has lasted for
 * SCARCE_NS_MAX and no other request is in flight that could free some. */
void wr_engine_warn_scarcity(struct wr_engine *engine, const char *words)
{
    int64_t now = weir_clock_now(engine->clock), since = 0;
    if (!atomic_compare_exchange_strong(&engine->scarce_since, &since, now) && now - since > SCARCE_NS_MAX &&
        atomic_load(&engine->flights) <= 1)
        wr_job_end(engine, WR_END_BROKEN, words);
    wr_engine_warn_seldom(engine, "slower for a while: ", words);
}

void wr_engine_end_scarcity(struct wr_engine *engine)
{
    if (atomic_load_explicit(&engine->scarce_since, memory_order_relaxed) != 0)
        atomic_store(&engine->scarce_since, 0);
}

/* ---- the end ---- */

/* Moves to a later phase; returns false if the engine is in it or beyond. From STOPS on, a slow
 * reader of the output is not waited for. */
static bool enter_phase(struct wr_engine *engine, enum wr_engine_phase phase)
{
    int before = atomic_load(&engine->phase);
    if (phase >= WR_PHASE_STOPS)
        atomic_store(&engine->output.is_stopping, true);
    while (before < (int)phase)
        if (atomic_compare_exchange_weak(&engine->phase, &before, (int)phase)) {
            wr_engine_wake_loops(engine);
            return true;
        }
    return false;
}

/* Warns why nothing is started any more, and how long requests in flight may take. The user has not
 * asked for this end. */
static void warn_of_drain(struct wr_engine *engine, const char *why)
{
    char text[160];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_buf_append_string(&buf, ": finishing the requests in flight, for at most ");
    wr_buf_append_duration(&buf, engine->options.drain_ns);
    wr_engine_warn(engine, why, text);
}

/* Ends the job; the first reason counts. Whatever is in flight drain_ns later is given up. */
void wr_job_end(struct wr_engine *engine, enum wr_engine_end end, const char *why)
{
    (void)pthread_mutex_lock(&engine->lock);
    bool is_first = !engine->has_end;
    if (is_first) {
        engine->has_end = true;
        engine->end = end;
        wr_text_copy(engine->why, sizeof engine->why, why);
        wr_ledger_close(&engine->ledger);
    }
    if (engine->drain_at == 0)
        engine->drain_at = weir_clock_now(engine->clock);
    (void)pthread_mutex_unlock(&engine->lock);
    if (end == WR_END_BROKEN)
        (void)enter_phase(engine, WR_PHASE_STOPS);
    else if (is_first && end == WR_END_BUDGET)
        warn_of_drain(engine, why);
    if (is_first)
        (void)enter_phase(engine, end == WR_END_BUDGET ? WR_PHASE_DRAINS : WR_PHASE_OVER);
}

weir_reason wr_job_halt_reason(struct wr_engine *engine)
{
    (void)pthread_mutex_lock(&engine->lock);
    bool is_stopped = engine->has_end && engine->end == WR_END_STOPPED;
    (void)pthread_mutex_unlock(&engine->lock);
    return is_stopped ? WEIR_REASON_PAUSED : WEIR_REASON_JOB_LIMIT;
}

static void end_resumable(struct wr_engine *engine, enum wr_engine_phase phase)
{
    (void)pthread_mutex_lock(&engine->lock);
    if (!engine->has_end) {
        engine->has_end = true;
        engine->end = WR_END_STOPPED;
        wr_text_copy(engine->why, sizeof engine->why, "it can be resumed");
    }
    if (engine->drain_at == 0)
        engine->drain_at = weir_clock_now(engine->clock);
    (void)pthread_mutex_unlock(&engine->lock);
    (void)enter_phase(engine, phase);
}

void wr_engine_drain(struct wr_engine *engine)
{
    end_resumable(engine, WR_PHASE_DRAINS);
}

void wr_engine_stop(struct wr_engine *engine)
{
    end_resumable(engine, WR_PHASE_STOPS);
}

/* Cancels the job, even if it is ending in a way that allows a resume. */
void wr_engine_cancel(struct wr_engine *engine)
{
    (void)pthread_mutex_lock(&engine->lock);
    if (!engine->has_end || engine->end == WR_END_STOPPED || engine->end == WR_END_BUDGET) {
        engine->has_end = true;
        engine->end = WR_END_CANCELLED;
        wr_text_copy(engine->why, sizeof engine->why, "by the user");
        wr_ledger_close(&engine->ledger);
    }
    if (engine->drain_at == 0)
        engine->drain_at = weir_clock_now(engine->clock);
    (void)pthread_mutex_unlock(&engine->lock);
    (void)enter_phase(engine, WR_PHASE_OVER);
}

/* ---- budgets and failures in a row ---- */

void wr_job_count_task_end(struct wr_crawl_loop *loop, enum wr_ledger_end end)
{
    struct wr_engine *engine = loop->engine;
    struct wr_plan_stats plan;
    wr_plan_stats_get(loop->plan, &plan);
    (void)pthread_mutex_lock(&engine->lock);
    engine->ledger.has_many_hosts |= plan.hosts > 1;
    bool fails = wr_ledger_count_end(&engine->ledger, end);
    (void)pthread_mutex_unlock(&engine->lock);
    if (fails)
        wr_job_end(engine, WR_END_FAILED, "too many failures in a row");
}

uint64_t wr_job_take_budget(struct wr_crawl_loop *loop, enum wr_budget_kind what, uint64_t count)
{
    struct wr_engine *engine = loop->engine;
    bool is_last;
    (void)pthread_mutex_lock(&engine->lock);
    uint64_t granted = wr_ledger_take_budget(&engine->ledger, what, count, &is_last);
    (void)pthread_mutex_unlock(&engine->lock);
    (void)wr_plan_grant_budget(loop->plan, (uint32_t)engine->job, what, granted, is_last);
    return granted;
}

/* Returns true if a shared database has been silent for SILENT_NS and nothing is in flight. A drain
 * then stops: other processes get the hosts when the leases end, and fetch unstored pages. */
static bool is_store_silent(struct wr_engine *engine, int64_t now)
{
    int64_t unanswered = atomic_load(&engine->pending) + atomic_load(&engine->posts);
    if (!engine->is_shared || atomic_load(&engine->flights) != 0 || unanswered != engine->unanswered)
        engine->silent_since = now;
    engine->unanswered = unanswered;
    return now - engine->silent_since > SILENT_NS;
}

void wr_job_tick(struct wr_crawl_loop *loop)
{
    struct wr_engine *engine = loop->engine;
    uint64_t hosts = 0;
    if (loop->index != 0)
        return;
    for (uint32_t i = 0; i < engine->loop_count; i++)
        hosts += atomic_load(&engine->loops[i].counts.hosts);
    if (engine->log != NULL)
        wr_request_log_flush(engine->log);
    (void)pthread_mutex_lock(&engine->lock);
    engine->ledger.has_many_hosts |= hosts > 1;
    int64_t drain_at = engine->drain_at;
    (void)pthread_mutex_unlock(&engine->lock);
    int64_t now = wr_crawl_loop_now(loop);
    bool is_given_up = is_store_silent(engine, now) && now - drain_at > SILENT_NS;
    int64_t max_time_ns = engine->options.max_time_ns;
    /* A plan that waits for room in the store does not check the time. */
    if (max_time_ns > 0 && now - engine->began_at >= max_time_ns)
        wr_job_end(engine, WR_END_BUDGET, WR_TIME_LIMIT_REACHED);
    if (drain_at != 0 && (is_given_up || now - drain_at > engine->options.drain_ns))
        wr_engine_stop(engine);
}

/* ---- recording the end ---- */

static void on_end_stored(void *context, int error, const char *why)
{
    struct wr_engine *engine = context;
    (void)pthread_mutex_lock(&engine->lock);
    /* A job that ended by BUDGET only loses its reason. */
    if (error != 0 && engine->end != WR_END_BUDGET) {
        engine->end = WR_END_BROKEN;
        wr_text_copy(engine->why, sizeof engine->why, why);
    }
    (void)pthread_mutex_unlock(&engine->lock);
    atomic_store(&engine->settling, WR_JOB_END_STORED);
    wr_crawl_loop_wake(&engine->loops[0]);
}

/* Finds the status to store at the end; returns false if there is nothing to store. A job that was
 * stopped can be resumed as it is. So can one that ran out of time or bytes; its reason is stored.
 * One that failed before all seeds were stored stays pending, and its seeds are given again. */
static bool find_end_status(struct wr_engine *engine, struct wr_store_job_status *ret_status, char why[WR_END_WHY_ROOM])
{
    static const enum wr_job_status statuses[] = {[WR_END_COMPLETED] = WR_JOB_COMPLETED,
                                                  [WR_END_FAILED] = WR_JOB_FAILED,
                                                  [WR_END_CANCELLED] = WR_JOB_CANCELLED,
                                                  [WR_END_BLOCKED] = WR_JOB_BLOCKED};
    bool is_seeded = atomic_load(&engine->is_seeded);
    (void)pthread_mutex_lock(&engine->lock);
    enum wr_engine_end end = engine->end;
    memcpy(why, engine->why, sizeof engine->why);
    *ret_status = (struct wr_store_job_status){.job = engine->job, .why = wr_span_of(why)};
    bool is_over = engine->has_end && end != WR_END_STOPPED && end != WR_END_BROKEN && end != WR_END_BUDGET;
    /* Other processes may continue the job. */
    bool is_budget = engine->has_end && end == WR_END_BUDGET && !engine->is_shared;
    (void)pthread_mutex_unlock(&engine->lock);
    if (is_budget)
        ret_status->status = is_seeded ? WR_JOB_RUNNING : WR_JOB_PENDING;
    else if (is_over)
        ret_status->status = statuses[end];
    return !atomic_load(&engine->is_end_stored) && (is_budget || (is_over && (is_seeded || end != WR_END_FAILED)));
}

bool wr_job_store_end(struct wr_engine *engine)
{
    struct wr_store_change change = {.kind = WR_STORE_JOB_STATUS};
    char why[WR_END_WHY_ROOM];
    int before = WR_JOB_END_OPEN;
    if (!atomic_compare_exchange_strong(&engine->settling, &before, WR_JOB_END_POSTED))
        return before == WR_JOB_END_STORED;
    if (!find_end_status(engine, &change.status, why)) {
        atomic_store(&engine->settling, WR_JOB_END_STORED);
        return true;
    }
    int error = wr_store_post(engine->store, &change, 1, on_end_stored, engine);
    if (error == WEIR_E_FULL)
        atomic_store(&engine->settling, WR_JOB_END_OPEN); /* the post is retried with the next tick */
    else if (error != 0)
        on_end_stored(engine, error, wr_error_message(error));
    return false;
}

/* ---- detecting the end ---- */

static bool is_engine_idle(struct wr_engine *engine, int phase)
{
    if (atomic_load(&engine->flights) != 0)
        return false;
    return phase >= WR_PHASE_STOPS || (atomic_load(&engine->pending) == 0 && atomic_load(&engine->posts) == 0);
}

/* Returns true if no plan has work. If processes share hosts: this one has no lease, claims none,
 * and has not asked the store for a while. */
static bool is_every_plan_drained(struct wr_engine *engine)
{
    if (engine->is_shared)
        return atomic_load(&engine->leases) == 0 && !atomic_load(&engine->is_claiming) &&
               weir_clock_now(engine->clock) >= atomic_load(&engine->look_at);
    for (uint32_t i = 0; i < engine->loop_count; i++)
        if (!atomic_load(&engine->loops[i].is_drained))
            return false;
    return true;
}

static void note_job_row(void *context, const struct wr_store_row *row)
{
    struct wr_engine *engine = context;
    engine->left = row->job.queued;
    engine->has_row = true;
    wr_job_note_counts(engine, &row->job);
    engine->seen = row->job.status;
}

void wr_job_note_counts(struct wr_engine *engine, const struct wr_store_job *job)
{
    uint64_t most = engine->options.max_pages;
    atomic_store(&engine->queued_in_all, job->queued);
    atomic_store(&engine->has_max_pages,
                 engine->is_shared && most > 0 && job->queued + job->done + job->failed >= most);
}

void wr_job_note_status(struct wr_engine *engine, enum wr_job_status status)
{
    static const enum wr_engine_end ends[] = {[WR_JOB_COMPLETED] = WR_END_COMPLETED,
                                              [WR_JOB_FAILED] = WR_END_FAILED,
                                              [WR_JOB_CANCELLED] = WR_END_CANCELLED,
                                              [WR_JOB_BLOCKED] = WR_END_BLOCKED};
    if (!wr_job_is_over(status))
        return;
    atomic_store(&engine->is_end_stored, true);
    if (atomic_load(&engine->is_seeded))
        wr_job_end(engine, ends[status], status == WR_JOB_COMPLETED ? "" : "another process ended the job");
}

static void note_unblocked_host(void *context, const struct wr_store_row *row)
{
    struct wr_engine *engine = context;
    (void)row;
    engine->has_free = true;
}

static void on_unblocked_host_read(void *context, int error, const char *why)
{
    struct wr_engine *engine = context;
    if (error != 0)
        wr_job_end(engine, WR_END_BROKEN, why);
    wr_job_pending_done(engine);
}

/* Finds out if some host admits the crawler. Asks the store only if a host is blocked; it answers
 * this before the next query. */
static void find_unblocked_host(struct wr_engine *engine)
{
    const struct wr_store_query query = {.what = WR_STORE_FETCHED_HOSTS,
                                         .job = engine->job,
                                         .limit = 1,
                                         .row = note_unblocked_host,
                                         .done = on_unblocked_host_read,
                                         .context = engine};
    engine->has_free = atomic_load(&engine->blocked_hosts) == 0;
    if (engine->has_free)
        return;
    (void)atomic_fetch_add(&engine->pending, 1);
    int error = wr_store_read(engine->store, &query);
    if (error != 0)
        on_unblocked_host_read(engine, error, weir_error_detail());
}

/* Makes all loops list their hosts: a queued task is unknown to all plans, or was put aside. No
 * loop starts before all have listed, because new pages would be counted twice. */
static void relist_hosts(struct wr_engine *engine)
{
    atomic_store(&engine->is_listed, true);
    atomic_store(&engine->relisting, engine->loop_count);
    for (uint32_t i = 0; i < engine->loop_count; i++)
        atomic_store(&engine->loops[i].lists_again, true);
    wr_engine_wake_loops(engine);
}

void wr_job_loop_relisted(struct wr_crawl_loop *loop)
{
    atomic_store(&loop->is_drained, false); /* not drained until the loop has asked its plan */
    if (atomic_fetch_sub(&loop->engine->relisting, 1) == 1)
        wr_engine_wake_loops(loop->engine);
}

/* Looks for queued tasks that no process can claim, because the row of their host is lost or
 * damaged. The first loop ends them. */
static void request_stranded_tasks(struct wr_engine *engine)
{
    int64_t now = weir_clock_now(engine->clock);
    if (engine->left == 0 || now < atomic_load(&engine->stranded_at))
        return;
    atomic_store(&engine->stranded_at, now + engine->lease_ns);
    atomic_store(&engine->loops[0].lists_again, true);
    wr_crawl_loop_wake(&engine->loops[0]);
}

/* Decides whether the job is over, on the store's thread. */
static void on_end_checked(void *context, int error, const char *why)
{
    struct wr_engine *engine = context;
    if (error != 0)
        wr_job_end(engine, WR_END_BROKEN, why);
    else if (!engine->has_row)
        wr_job_end(engine, WR_END_BROKEN, WR_JOB_ROW_LOST);
    else if (engine->is_shared &&
             (wr_job_is_over(engine->seen) || engine->left > 0 || engine->seen == WR_JOB_PENDING)) {
        wr_job_note_status(engine, engine->seen); /* if the job is not over, other processes have work */
        request_stranded_tasks(engine);
    } else if (engine->left == 0)
        wr_job_end(engine, engine->has_free ? WR_END_COMPLETED : WR_END_BLOCKED,
                   engine->has_free ? "" : "the firewalls of all its hosts block the crawler");
    else
        relist_hosts(engine);
    atomic_store(&engine->is_looking, false);
    wr_job_pending_done(engine);
}

static void ask_store_for_end(struct wr_engine *engine)
{
    const struct wr_store_query query = {
        .what = WR_STORE_JOBS, .job = engine->job, .row = note_job_row, .done = on_end_checked, .context = engine};
    if (atomic_exchange(&engine->is_looking, true))
        return;
    if (atomic_load(&engine->relisting) != 0 || !is_engine_idle(engine, WR_PHASE_RUNS) ||
        !is_every_plan_drained(engine)) {
        atomic_store(&engine->is_looking, false); /* another call has looked and found work */
        return;
    }
    (void)atomic_fetch_add(&engine->pending, 1);
    atomic_store(&engine->look_at, weir_clock_now(engine->clock) + WEIR_SECOND / 2);
    engine->left = 0;
    engine->has_row = false;
    find_unblocked_host(engine);
    int error = wr_store_read(engine->store, &query);
    if (error != 0)
        on_end_checked(engine, error, wr_error_message(error));
}

void wr_job_check_end(struct wr_engine *engine)
{
    int phase = atomic_load(&engine->phase);
    if (!is_engine_idle(engine, phase))
        return;
    if (phase > WR_PHASE_RUNS && phase < WR_PHASE_CLOSES && (phase >= WR_PHASE_STOPS || wr_job_store_end(engine)))
        (void)enter_phase(engine, WR_PHASE_CLOSES);
    else if (phase == WR_PHASE_RUNS && atomic_load(&engine->is_seeded) && is_every_plan_drained(engine))
        ask_store_for_end(engine);
}

/* Decrements a counter. At zero, the first loop wakes to look for the end of the job. */
static void count_down(struct wr_engine *engine, _Atomic int64_t *count)
{
    if (atomic_fetch_sub(count, 1) == 1 && is_engine_idle(engine, atomic_load(&engine->phase)))
        wr_crawl_loop_wake(&engine->loops[0]);
}

void wr_job_fetch_done(struct wr_engine *engine)
{
    count_down(engine, &engine->flights);
}

void wr_job_pending_done(struct wr_engine *engine)
{
    count_down(engine, &engine->pending);
}

void wr_job_post_done(struct wr_engine *engine)
{
    count_down(engine, &engine->posts);
}

void wr_job_on_stored(void *context, int error, const char *why)
{
    struct wr_engine *engine = context;
    if (error != 0)
        wr_job_end(engine, WR_END_BROKEN, why);
    wr_job_post_done(engine);
}
