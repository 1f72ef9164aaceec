/* SPDX-License-Identifier: MIT */
/* job_resume.c - restores a job from the store, before any thread runs: its URLs, hosts and
 * seeds. */
#include "base/error.h"
#include "crawl/engine/engine_state.h"

struct job_restore {
    struct wr_engine *engine;
    int error;
    bool is_over, has_failed, is_pending;
    bool was_cut_off; /* the last run of the job ended at a limit */
};

static void restore_job_row(void *context, const struct wr_store_row *row)
{
    struct job_restore *resuming = context;
    struct wr_engine *engine = resuming->engine;
    const struct wr_store_job *job = &row->job;
    engine->earlier = job->earlier;
    engine->accepted_before = job->queued + job->done + job->failed;
    engine->ended_before = job->done + job->failed;
    engine->failed_before = job->failed;
    atomic_store(&engine->is_seeded, job->status != WR_JOB_PENDING && !engine->options.has_seeds);
    resuming->has_failed = job->status == WR_JOB_FAILED;
    resuming->is_pending = job->status == WR_JOB_PENDING;
    resuming->was_cut_off = !wr_job_is_over(job->status) && job->why.bytes > 0;
    resuming->is_over = wr_job_is_over(job->status) && !resuming->has_failed;
}

/* Adds a known URL to all plans, because a fingerprint does not say which host it is of. */
static void restore_known_url(void *context, const struct wr_store_row *row)
{
    struct job_restore *resuming = context;
    struct wr_engine *engine = resuming->engine;
    for (uint32_t i = 0; i < engine->loop_count; i++) {
        struct wr_plan *plan = engine->loops[i].plan;
        if (wr_plan_known_is_crowded(plan) && wr_plan_known_grow(plan) != 0)
            wr_plan_set_known_incomplete(plan);
        wr_plan_add_known_url(plan, (uint32_t)engine->job, row->task.fingerprint);
    }
}

static void restore_host(void *context, const struct wr_store_row *row)
{
    struct job_restore *resuming = context;
    struct wr_engine *engine = resuming->engine;
    if (row->what != WR_STORE_HOSTS)
        return; /* a task whose host is lost ends after all others */
    struct wr_crawl_loop *loop = &engine->loops[wr_engine_loop_of(engine, row->host.key)];
    int error = wr_plan_hosts_row(loop->plan, (uint32_t)engine->job, row->host.key, row->host.queued, engine->began_at);
    if (error != 0 && error != WEIR_E_FULL) /* WEIR_E_FULL: the plan asks for the host later */
        resuming->error = error;
}

static void restore_seed(void *context, const struct wr_store_row *row)
{
    struct job_restore *resuming = context;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    if (wr_url_parse(row->task.url, NULL, NULL, memory, sizeof memory, &url) == WR_URL_OK)
        wr_engine_register_seed(resuming->engine, &url, row->task.hops == 0);
}

static int read_job_rows(struct job_restore *resuming, enum wr_store_query_kind what, int64_t after_id,
                         void (*row)(void *context, const struct wr_store_row *row))
{
    struct wr_engine *engine = resuming->engine;
    int error = wr_store_read(engine->store, &(struct wr_store_query){.what = what,
                                                                      .job = engine->job,
                                                                      .after = {INT32_MIN, after_id},
                                                                      .is_hasty = true,
                                                                      .row = row,
                                                                      .context = resuming});
    return error != 0 ? error : resuming->error;
}

/* Stores the status of the job. It is pending if more seeds come, which have to be given again
 * after a crash. The reason why an earlier run ended is removed. */
static int store_resumed_status(const struct job_restore *resuming)
{
    struct wr_engine *engine = resuming->engine;
    /* Other processes may work on the job. */
    bool has_seeds = engine->options.has_seeds && !engine->is_shared;
    bool is_pending = has_seeds || resuming->is_pending;
    const struct wr_store_change change = {
        .kind = WR_STORE_JOB_STATUS,
        .status = {.job = engine->job, .status = is_pending ? WR_JOB_PENDING : WR_JOB_RUNNING}};
    if (!has_seeds && !resuming->has_failed && !resuming->was_cut_off)
        return 0;
    return wr_store_post_now(engine->store, &change, 1);
}

int wr_job_resume(struct wr_engine *engine)
{
    struct job_restore resuming = {.engine = engine};
    int error = read_job_rows(&resuming, WR_STORE_JOBS, 0, restore_job_row);
    if (resuming.is_over) /* reported here, because on_job runs on the store's thread */
        return wr_invalid("the job is over; start a new one");
    if (error == 0)
        error = store_resumed_status(&resuming);
    if (error == 0)
        error = read_job_rows(&resuming, WR_STORE_SEEDS, 0, restore_seed);
    if (engine->is_shared) /* hosts are claimed, and the store is asked for known URLs */
        return error;
    if (error == 0)
        error = read_job_rows(&resuming, WR_STORE_FINGERPRINTS, INT64_MIN, restore_known_url);
    if (error == 0)
        error = read_job_rows(&resuming, WR_STORE_HOSTS, 0, restore_host);
    if (error == 0 && engine->options.max_pages > 0) { /* pages that earlier runs accepted count */
        uint64_t *left = &engine->ledger.left[WR_BUDGET_PAGES];
        *left -= *left < engine->accepted_before ? *left : engine->accepted_before;
    }
    return error;
}
