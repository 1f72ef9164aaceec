/* SPDX-License-Identifier: MIT */
/* answer_crawl.c - answers requests about the running crawl: its status, its events, and how to end
 * it. */
#include "base/error.h"
#include "watch/control/control_request.h"

#include <unistd.h>

/* Drains a job: requests in flight finish, then all processes of the job end. The job can be
 * resumed. */
int wr_control_answer_drain(struct wr_control_request *ask)
{
    struct wr_engine *engine = ask->source->engine;
    int64_t job = wr_control_request_number(ask, "job", 0);
    uint64_t processes;
    if (engine != NULL && (job == 0 || job == wr_engine_job_id(engine))) {
        wr_engine_drain(engine);
        return 0;
    }
    int error = wr_control_request_job(ask, &job);
    if (error == 0)
        error = wr_control_append_processes(ask, job, &processes);
    if (error == 0 && processes == 0)
        return wr_invalid("no process crawls this job now");
    const struct wr_store_change change = {.kind = WR_STORE_DISMISS, .job = job};
    return error == 0 ? wr_store_post_now(ask->source->store, &change, 1) : error;
}

int wr_control_answer_status(struct wr_control_request *ask)
{
    struct wr_engine_stats stats;
    struct wr_buf *buf = ask->answer;
    wr_append_json_bool(buf, ",\"live\":", ask->source->engine != NULL);
    if (ask->source->engine == NULL)
        return 0;
    wr_engine_stats_get(ask->source->engine, &stats);
    wr_append_json_count(buf, ",\"pid\":", (uint64_t)getpid());
    wr_append_json_count(buf, ",\"job\":", (uint64_t)wr_engine_job_id(ask->source->engine));
    wr_append_json_count(buf, ",\"pages\":", stats.pages);
    wr_append_json_count(buf, ",\"fetched\":", stats.fetched);
    wr_append_json_count(buf, ",\"failed\":", stats.failed);
    wr_append_json_count(buf, ",\"requests\":", stats.requests);
    wr_append_json_count(buf, ",\"rejected\":", stats.rejected);
    wr_append_json_count(buf, ",\"bytes\":", stats.bytes);
    wr_append_json_count(buf, ",\"queued\":", stats.queued);
    wr_append_json_count(buf, ",\"in_flight\":", stats.in_flight);
    wr_append_json_count(buf, ",\"hosts\":", stats.hosts);
    wr_append_json_ms(buf, ",\"elapsed_ms\":", stats.elapsed_ns);
    wr_append_json_bool(buf, ",\"draining\":", stats.is_draining);
    wr_append_json_bool(buf, ",\"store_paused\":", stats.is_paused);
    return 0;
}

int wr_control_answer_events(struct wr_control_request *ask)
{
    static _Thread_local struct wr_engine_event events[WR_EVENTS_KEPT];
    int64_t after = wr_control_request_number(ask, "after", 0);
    struct wr_buf *buf = ask->answer;
    size_t count = 0;
    if (ask->source->engine != NULL)
        count = wr_engine_events(ask->source->engine, after > 0 ? (uint64_t)after : 0, events, WR_EVENTS_KEPT);
    wr_buf_append_string(buf, ",\"events\":[");
    for (size_t i = 0; i < count; i++) {
        wr_append_json_count(buf, i > 0 ? ",{\"number\":" : "{\"number\":", events[i].number);
        wr_append_json_wall(buf, ",\"at_ms\":", events[i].wall_at);
        wr_append_json_word(buf, ",\"event\":", wr_event_name(events[i].kind));
        wr_append_json_word(buf, ",\"host\":", events[i].key);
        wr_append_json_count(buf, ",\"status\":", (uint64_t)(events[i].status > 0 ? events[i].status : 0));
        wr_append_json_word(buf, ",\"breaker\":", wr_breaker_name(events[i].breaker));
        wr_append_json_ms(buf, ",\"wait_ms\":", events[i].wait_ns);
        wr_buf_append_string(buf, "}");
    }
    wr_buf_append_string(buf, "]");
    return 0;
}
