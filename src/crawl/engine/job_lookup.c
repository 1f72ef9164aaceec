/* SPDX-License-Identifier: MIT */
/* job_lookup.c - finds jobs in the store, and other processes that work on them. */
#include "base/error.h"
#include "crawl/engine/engine_state.h"

#include <stdlib.h>

struct job_search {
    struct wr_engine *engine;
    struct wr_engine_job job;
    bool is_any;     /* take the newest job that fits, instead of one by its number */
    bool is_earlier; /* completed jobs fit; else those that can be resumed */
};

bool wr_engine_can_resume(const struct wr_engine_job *job)
{
    return !wr_job_is_over(job->status) || (job->status == WR_JOB_FAILED && job->queued > 0);
}

static void note_searched_job(void *context, const struct wr_store_row *row)
{
    struct job_search *finding = context;
    const struct wr_store_job *job = &row->job;
    const struct wr_engine_job found = {.id = job->id,
                                        .status = job->status,
                                        .queued = job->queued,
                                        .done = job->done,
                                        .failed = job->failed,
                                        .is_seeded = job->status != WR_JOB_PENDING};
    if (finding->is_any && (finding->is_earlier ? job->status != WR_JOB_COMPLETED : !wr_engine_can_resume(&found)))
        return;
    char *settings = strndup(job->settings.data != NULL ? job->settings.data : "", job->settings.bytes);
    free(finding->engine->settings);
    finding->engine->settings = settings;
    finding->job = found;
    finding->job.settings = wr_span_of(settings);
}

static int search_job(struct wr_engine *engine, int64_t id, bool is_earlier, struct wr_engine_job *ret_job)
{
    struct job_search finding = {.engine = engine, .is_any = id == 0, .is_earlier = is_earlier};
    int error = wr_store_read(engine->store, &(struct wr_store_query){.what = WR_STORE_JOBS,
                                                                      .job = id,
                                                                      .after = WR_STORE_FIRST_POSITION,
                                                                      .row = note_searched_job,
                                                                      .context = &finding});
    if (error == 0 && finding.job.id == 0)
        error = WEIR_E_ABSENT;
    if (error == 0)
        *ret_job = finding.job;
    return error;
}

int wr_engine_find_job(struct wr_engine *engine, int64_t id, struct wr_engine_job *ret_job)
{
    return search_job(engine, id, false, ret_job);
}

int wr_engine_find_job_to_recrawl(struct wr_engine *engine, int64_t id, struct wr_engine_job *ret_job)
{
    return search_job(engine, id, true, ret_job);
}

struct peer_count {
    int64_t job;
    struct wr_engine_peers company;
};

static void count_peer(void *context, const struct wr_store_row *row)
{
    struct peer_count *meeting = context;
    if (row->node.job == meeting->job) {
        meeting->company.same_job++;
    } else {
        meeting->company.others++;
        meeting->company.other_job = row->node.job;
    }
}

int wr_engine_peers_get(struct wr_engine *engine, struct wr_engine_peers *ret_company)
{
    struct peer_count meeting = {.job = engine->job};
    int error = wr_store_read(
        engine->store,
        &(struct wr_store_query){.what = WR_STORE_NODES, .is_hasty = true, .row = count_peer, .context = &meeting});
    *ret_company = meeting.company;
    return error;
}
