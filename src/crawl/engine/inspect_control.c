/* SPDX-License-Identifier: MIT */
/* inspect_control.c - controls a running crawl: pauses hosts, sets their pace, forgets learned
 * values. */
#include "base/error.h"
#include "crawl/engine/engine_state.h"

struct host_control {
    struct wr_loop_query question; /* first member, so that a pointer to it can be cast */
    struct wr_span key;
    enum wr_event_kind kind; /* the wanted change, as the event that reports it */
    int64_t interval_ns;
    bool is_found;
    int error;
};

static bool apply_host_control(struct wr_crawl_loop *loop, struct wr_loop_query *question)
{
    struct host_control *steering = (struct host_control *)(void *)question;
    struct wr_plan_host *host = wr_plan_host_find(loop->plan, steering->key);
    int64_t now = wr_crawl_loop_now(loop);
    steering->is_found = host != NULL;
    if (host != NULL && steering->kind == WR_EVENT_PACE)
        steering->error = wr_plan_host_pace(loop->plan, host, steering->interval_ns, now);
    else if (host != NULL && steering->kind == WR_EVENT_FORGOTTEN)
        wr_plan_host_forget_learned(loop->plan, host, now);
    else if (host != NULL)
        wr_plan_host_pause(loop->plan, host, steering->kind == WR_EVENT_PAUSED, now);
    return true;
}

static void add_control_event(struct wr_engine *engine, const struct host_control *steering)
{
    wr_event_add(engine, steering->key,
                 (struct wr_engine_event){.kind = steering->kind, .wait_ns = steering->interval_ns});
}

/* Stores a setting for later crawls, and for this one if the host is not in memory. It is posted
 * before the loop is asked, so that a later load of the host finds it. */
static int store_host_setting(struct wr_engine *engine, const struct host_control *steering)
{
    const struct wr_store_change change = {.kind = WR_STORE_HOST_SETTING,
                                           .setting = {.key = steering->key,
                                                       .has_paused = steering->kind != WR_EVENT_PACE,
                                                       .is_paused = steering->kind == WR_EVENT_PAUSED,
                                                       .has_interval = steering->kind == WR_EVENT_PACE,
                                                       .interval_ns = steering->interval_ns}};
    (void)atomic_fetch_add(&engine->posts, 1);
    int error = wr_store_post(engine->store, &change, 1, wr_job_on_stored, engine);
    if (error != 0)
        wr_job_post_done(engine);
    if (error == WEIR_E_FULL)
        wr_error_set("too many changes wait to be stored, so nothing was changed; try again");
    return error;
}

static int control_host(struct wr_engine *engine, struct host_control *steering)
{
    if (engine->options.pace.off)
        return wr_invalid("pacing is off: no host can be paused or slowed down; start the crawl without pace.off");
    if (steering->kind != WR_EVENT_FORGOTTEN) {
        int failed = store_host_setting(engine, steering);
        if (failed != 0)
            return failed;
    }
    steering->question.answer = apply_host_control;
    int error = wr_loop_query_run(&engine->loops[wr_engine_loop_of(engine, steering->key)], &steering->question);
    error = error != 0 ? error : steering->error;
    if (error == 0 && steering->kind == WR_EVENT_FORGOTTEN && !steering->is_found)
        error = wr_store_forget_host(engine->store, steering->key);
    if (error == 0)
        add_control_event(engine, steering);
    return error;
}

int wr_engine_pause(struct wr_engine *engine, struct wr_span key, bool paused)
{
    struct host_control steering = {.key = key, .kind = paused ? WR_EVENT_PAUSED : WR_EVENT_RESUMED};
    return control_host(engine, &steering);
}

int wr_engine_set_pace(struct wr_engine *engine, struct wr_span key, int64_t interval_ns)
{
    struct host_control steering = {.key = key, .kind = WR_EVENT_PACE, .interval_ns = interval_ns};
    if (interval_ns < 0 || interval_ns > WR_PLAN_PACE_MAX_NS)
        return wr_invalid("the interval is out of range; use 0 to 30 days");
    return control_host(engine, &steering);
}

int wr_engine_forget(struct wr_engine *engine, struct wr_span key)
{
    struct host_control steering = {.key = key, .kind = WR_EVENT_FORGOTTEN};
    return control_host(engine, &steering);
}

struct wr_store *wr_engine_store(struct wr_engine *engine)
{
    return engine->store;
}

int64_t wr_engine_job_id(const struct wr_engine *engine)
{
    return engine->job;
}
