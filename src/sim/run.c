/* SPDX-License-Identifier: MIT */
/* run.c - Runs one pacer against one origin, event by event.
 *
 *     send at t --(rtt/2 + jitter)--> arrive --(origin)--> done --(rtt/2 + jitter)--> answer: tell
 *
 * Between events requests are sent until the pacer refuses. Without jitter requests arrive in the
 * order of sending, so the origin can answer at once and a request takes one event. With jitter its
 * arrival is another event.
 */
#include "sim/run.h"

#include "base/heap.h"
#include "sim/driver.h"
#include "sim/score.h"

#include <math.h>
#include <stdalign.h>

struct request {
    struct wr_heap_item item; /* must be the first member */
    bool arrived;
    struct wr_gate_start start;
    struct wr_sim_reply reply;
};

struct play {
    const struct wr_sim_run *run;
    const struct wr_scenario *scenario;
    uint32_t backlog; /* 0 for unlimited work */
    int64_t now;
    struct wr_sim_origin site;
    struct wr_driver driver;
    struct wr_sim_counts tally;
    struct wr_heap events;
    struct request *requests; /* one for each worker */
    uint32_t *idle;           /* stack of the indexes of free requests */
    uint32_t idle_count;
    struct wr_chance network, pacer;
};

static int64_t trip_ns(struct play *play)
{
    double jitter_ns = (double)play->scenario->network.jitter_ns;
    int64_t ns = play->scenario->network.rtt_ns / 2;
    return jitter_ns > 0 ? ns + (int64_t)fabs(jitter_ns * wr_chance_normal(&play->network)) : ns;
}

static void report_to_listener(struct play *play, const struct request *request, bool answered)
{
    struct wr_sim_event event = {
        .at = play->now,
        .kind = answered ? WR_SIM_ANSWERED : WR_SIM_SENT,
        .status = answered ? request->reply.status : 0,
        .latency_ns = answered ? play->now - request->start.sent_at : 0,
        .retry_after_ns = answered ? request->reply.retry_after_ns : -1,
        .quota_remaining = answered ? request->reply.quota_remaining : -1,
        .quota_reset_ns = answered ? request->reply.quota_reset_ns : -1,
        .in_flight = play->scenario->workers - play->idle_count,
        .limit = wr_oracle_rate(&play->site, play->scenario, wr_seconds(play->now)),
    };
    wr_driver_inspect(&play->driver, play->now, &event);
    play->run->listener(play->run->context, &event);
}

static void schedule_request(struct play *play, struct request *request, int64_t at)
{
    int error = wr_heap_push(&play->events, at, &request->item);
    assert(error == 0); /* there is room for every worker */
    (void)error;
}

static void arrive_at_origin(struct play *play, struct request *request, int64_t at)
{
    wr_sim_origin_arrive(&play->site, at, &request->reply);
    request->arrived = true;
    schedule_request(play, request, request->reply.done_at + trip_ns(play));
}

static void send_sim_request(struct play *play)
{
    struct request *request = &play->requests[play->idle[--play->idle_count]];
    request->arrived = false;
    request->start = wr_driver_sent(&play->driver, play->now);
    wr_sim_counts_sent(&play->tally, play->now);
    if (play->run->listener != NULL)
        report_to_listener(play, request, false);
    int64_t arrives_at = play->now + trip_ns(play);
    if (play->scenario->network.jitter_ns > 0)
        schedule_request(play, request, arrives_at);
    else
        arrive_at_origin(play, request, arrives_at);
}

static void finish_sim_request(struct play *play, struct request *request)
{
    int64_t latency_ns = play->now - request->start.sent_at;
    wr_sim_counts_answered(&play->tally, play->now, &request->reply, latency_ns);
    wr_driver_tell(&play->driver, &request->start, &request->reply, play->now, wr_chance_unit(&play->pacer));
    play->idle[play->idle_count++] = (uint32_t)(request - play->requests);
    if (play->run->listener != NULL)
        report_to_listener(play, request, true);
}

static bool has_work(const struct play *play)
{
    if (play->idle_count == 0)
        return false;
    uint32_t in_flight = play->scenario->workers - play->idle_count;
    return play->backlog == 0 || play->tally.ok + in_flight < play->backlog;
}

/* Sends all requests that may start. Returns the time of the next query, barring events. */
static int64_t send_due_requests(struct play *play)
{
    while (has_work(play)) {
        int64_t wait_ns = wr_driver_ask(&play->driver, play->now);
        if (wait_ns == WEIR_UNTIL_RELEASE)
            return INT64_MAX;
        if (wait_ns > 0)
            return play->now + wait_ns;
        send_sim_request(play);
    }
    return INT64_MAX;
}

static bool finished(const struct play *play)
{
    return play->backlog > 0 && play->tally.ok >= play->backlog;
}

static void play_all(struct play *play)
{
    int64_t end_at = play->scenario->duration_ns;
    while (!finished(play)) {
        int64_t wake_at = send_due_requests(play);
        int64_t event_at = INT64_MAX;
        struct wr_heap_item *item = wr_heap_peek(&play->events, &event_at);
        int64_t next_at = wake_at < event_at ? wake_at : event_at;
        if (next_at >= end_at)
            return;
        play->now = next_at;
        if (event_at > next_at)
            continue;
        wr_heap_pop(&play->events);
        struct request *request = (struct request *)item;
        if (request->arrived)
            finish_sim_request(play, request);
        else
            arrive_at_origin(play, request, play->now);
    }
}

/* ---- creation and release -------------------------------------------------------------------- */

static int take_requests(struct play *play)
{
    uint32_t workers = play->scenario->workers;
    const weir_allocator *allocator = play->run->allocator;
    play->requests = wr_alloc_array(allocator, workers, sizeof *play->requests, alignof(struct request));
    play->idle = wr_alloc_array(allocator, workers, sizeof *play->idle, alignof(uint32_t));
    if (play->requests == NULL || play->idle == NULL)
        return WEIR_E_NOMEM;
    while (play->idle_count < workers) {
        play->idle[play->idle_count] = workers - 1 - play->idle_count;
        play->idle_count++;
    }
    return wr_heap_reserve(&play->events, workers);
}

static void give_requests(struct play *play)
{
    size_t workers = play->scenario->workers;
    wr_heap_release(&play->events);
    wr_free(play->run->allocator, play->idle, workers * sizeof *play->idle, alignof(uint32_t));
    wr_free(play->run->allocator, play->requests, workers * sizeof *play->requests, alignof(struct request));
}

/* Initialises all parts. A zeroed part can be released, so a failure needs no special case. */
static int init_parts(struct play *play, const struct wr_origin *origin)
{
    const struct wr_sim_run *run = play->run;
    int error = wr_sim_origin_init(&play->site, origin, play->scenario->duration_ns, run->seed, run->allocator);
    if (error == 0)
        error = wr_driver_init(&play->driver, run->pacer, run->memory, run->allocator);
    if (error == 0)
        error = wr_sim_counts_init(&play->tally, play->scenario->duration_ns, run->allocator);
    if (error == 0)
        error = take_requests(play);
    return error;
}

int wr_sim_play(const struct wr_sim_run *run, const struct wr_origin *origin, uint32_t backlog,
                struct wr_score *ret_score, double *ret_ideal_s)
{
    struct play play = {.run = run, .scenario = run->scenario, .backlog = backlog};
    wr_chance_init(&play.network, run->seed, WR_STREAM_NETWORK);
    wr_chance_init(&play.pacer, run->seed, WR_STREAM_PACER);
    wr_heap_init(&play.events, run->allocator, run->scenario->workers);
    int error = init_parts(&play, origin);
    if (error == 0) {
        play_all(&play);
        wr_sim_counts_score(&play.tally, &play.site, run->scenario, backlog, ret_score, ret_ideal_s);
        if (run->ret_memory != NULL)
            wr_driver_remember(&play.driver, run->scenario->duration_ns, run->ret_memory);
    }
    give_requests(&play);
    wr_sim_counts_release(&play.tally);
    wr_driver_release(&play.driver);
    wr_sim_origin_release(&play.site);
    return error;
}
