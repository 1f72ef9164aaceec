/* SPDX-License-Identifier: MIT */
/* crawl_state.c - opens the state file or database of a crawl and finds the job in it. */
#include "cli/crawl/crawl_state.h"

#include "base/error.h"
#include "cli/kit/console.h"
#include "crawl/store/store.h"

#define NAME_BYTES 512

const char *wr_crawl_state_name(const struct wr_crawl_settings *settings)
{
    static char name[NAME_BYTES];
    wr_store_name(settings->state, name, sizeof name);
    return name;
}

int wr_crawl_state_open(const struct wr_crawl_settings *settings, struct wr_engine **ret_engine)
{
    const struct wr_engine_open_options place = {.state_path = settings->state,
                                                 .may_create = !settings->resume && !settings->recrawl,
                                                 .lease_ns = settings->lease};
    int error = wr_engine_open(&place, ret_engine);
    if (error == WEIR_E_ABSENT && !wr_store_is_url(settings->state))
        wr_complain("there is no state file %s to continue; start without %s, or give --state FILE", settings->state,
                    settings->resume ? "--resume" : "--recrawl");
    else if (error != 0)
        wr_complain("--state: %s", wr_error_message(error));
    return error == 0 ? WR_EXIT_OK : error == WEIR_E_ABSENT ? WR_EXIT_USAGE : WR_EXIT_FAILED;
}

static int state_exit_status(const struct wr_crawl_settings *settings, int error, const char *before, const char *after)
{
    const char *name = wr_crawl_state_name(settings);
    if (error == WEIR_E_ABSENT && settings->job > 0)
        wr_complain("there is no job %llu in %s", (unsigned long long)settings->job, name);
    else if (error == WEIR_E_ABSENT)
        wr_complain("%s%s%s", before, name, after);
    else if (error != 0)
        wr_complain("%s: %s", name, wr_error_message(error));
    return error == 0 ? WR_EXIT_OK : error == WEIR_E_ABSENT ? WR_EXIT_USAGE : WR_EXIT_FAILED;
}

int wr_crawl_state_find(const struct wr_crawl_settings *settings, struct wr_engine *engine,
                        struct wr_engine_job *ret_job)
{
    int error = wr_engine_find_job(engine, (int64_t)settings->job, ret_job);
    if (error != 0)
        return state_exit_status(settings, error,
                                 "nothing to resume: ", " has no unfinished job; start a new one without --resume");
    if (wr_engine_can_resume(ret_job))
        return WR_EXIT_OK;
    wr_complain("job %lld is %s: there is nothing to resume; start a new one without --resume", (long long)ret_job->id,
                wr_job_status_name(ret_job->status));
    return WR_EXIT_USAGE;
}

int wr_crawl_state_find_earlier(const struct wr_crawl_settings *settings, struct wr_engine *engine,
                                struct wr_engine_job *ret_job)
{
    return state_exit_status(settings, wr_engine_find_job_to_recrawl(engine, (int64_t)settings->job, ret_job),
                             "no job in ", " is completed; --job N recrawls one that is not");
}
