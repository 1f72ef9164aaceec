/* SPDX-License-Identifier: MIT */
/* steer.c - why a URL waits, and steering: pausing a host, setting its pace, forgetting it. */
#include "base/error.h"
#include "shell/engine/state.h"

/* ---- why ---- */

struct asked_why {
    struct wr_question question; /* first */
    const struct wr_url *url;
    struct wr_why *why;
};

int64_t wr_look_expected(const struct wr_look_host *host, uint64_t before)
{
    int64_t wait_ns = host->why.verdict == WEIR_GO ? 0 : host->why.wait_ns, each_ns = host->interval_ns;
    if (host->is_paused)
        return -1;
    if (host->cap != UINT32_MAX && host->cap > 0 && host->latency_ns / host->cap > each_ns)
        each_ns = host->latency_ns / host->cap;
    if (wait_ns == WEIR_UNTIL_RELEASE) {
        if (host->why.reason != WEIR_REASON_CONCURRENCY)
            return -1;
        wait_ns = each_ns; /* until an answer comes */
    }
    if (each_ns > 0 && before > (uint64_t)((WEIR_DURATION_MAX - wait_ns) / each_ns))
        return WEIR_DURATION_MAX;
    return wait_ns + (int64_t)before * each_ns;
}

static void set_expected(struct wr_why *why)
{
    bool is_denied = why->ruling.decision.verdict == WEIR_DENY;
    why->expected_ns = -1;
    if (why->seat.kind != WR_SEAT_WAITS || is_denied)
        return;
    why->expected_ns = wr_look_expected(&why->host, why->seat.before);
    if (why->expected_ns >= 0 && why->seat.not_before_ns > why->expected_ns)
        why->expected_ns = why->seat.not_before_ns;
}

static bool answer_why(struct wr_crawl_loop *loop, struct wr_question *question)
{
    struct asked_why *asked = (struct asked_why *)(void *)question;
    struct wr_why *why = asked->why;
    uint32_t job = (uint32_t)loop->engine->job;
    int64_t now = wr_crawl_loop_now(loop);
    struct wr_span rule;
    const struct wr_plan_host *host = wr_plan_host_find(loop->plan, wr_span_of(why->key));
    why->has_host = host != NULL;
    why->expected_ns = -1;
    if (host == NULL)
        return true;
    wr_look_fill(loop, host, &why->host);
    why->bound_count = wr_plan_bounds(loop->plan, host, now, why->bounds);
    why->seat = wr_plan_seat(loop->plan, host, job, why->fingerprint, now);
    why->ruling = wr_plan_ruling(loop->plan, host, asked->url->is_https, wr_url_target(asked->url), now, &rule);
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, why->rule, sizeof why->rule);
    wr_buf_append_span(&buf, rule);
    set_expected(why);
    return true;
}

int wr_engine_why(struct wr_engine *engine, const struct wr_url *url, struct wr_why *ret_why)
{
    const struct wr_engine_options *options = &engine->options;
    struct wr_why why = {.fingerprint = wr_engine_fingerprint(engine, wr_span_of(url->text))};
    struct asked_why asked = {.question.answer = answer_why, .url = url, .why = &why};
    struct wr_buf key;
    wr_buf_init_fixed(&key, why.key, sizeof why.key);
    wr_url_append_key(&key, url);
    why.in_scope = options->in_scope == NULL || options->in_scope(options->scope_context, url);
    int error = wr_ask_loop(&engine->loops[wr_engine_loop_of_url(engine, url)], &asked.question);
    if (error == 0)
        *ret_why = why;
    return error;
}

/* ---- steering ---- */

struct steering {
    struct wr_question question; /* first */
    struct wr_span key;
    enum wr_event_kind kind; /* what is wanted, by the event that tells of it */
    int64_t interval_ns;
    bool is_found;
    int error;
};

static bool steer(struct wr_crawl_loop *loop, struct wr_question *question)
{
    struct steering *steering = (struct steering *)(void *)question;
    struct wr_plan_host *host = wr_plan_host_find(loop->plan, steering->key);
    int64_t now = wr_crawl_loop_now(loop);
    steering->is_found = host != NULL;
    if (host != NULL && steering->kind == WR_EVENT_PACE)
        steering->error = wr_plan_host_pace(loop->plan, host, steering->interval_ns, now);
    else if (host != NULL && steering->kind == WR_EVENT_FORGOTTEN)
        wr_plan_host_forget(loop->plan, host, now);
    else if (host != NULL)
        wr_plan_host_pause(loop->plan, host, steering->kind == WR_EVENT_PAUSED, now);
    return true;
}

static void tell_of(struct wr_engine *engine, const struct steering *steering)
{
    wr_event_add(engine, steering->key,
                 (struct wr_engine_event){.kind = steering->kind, .wait_ns = steering->interval_ns});
}

/* For later crawls, and for this one if the host is not in memory: posted first, so that whoever loads it later sees
 * it. */
static int keep_setting(struct wr_engine *engine, const struct steering *steering)
{
    const struct wr_store_change change = {.kind = WR_STORE_SETTING,
                                           .setting = {.key = steering->key,
                                                       .has_paused = steering->kind != WR_EVENT_PACE,
                                                       .is_paused = steering->kind == WR_EVENT_PAUSED,
                                                       .has_interval = steering->kind == WR_EVENT_PACE,
                                                       .interval_ns = steering->interval_ns}};
    (void)atomic_fetch_add(&engine->posts, 1);
    int error = wr_store_post(engine->store, &change, 1, wr_on_stored, engine);
    if (error != 0)
        wr_posts_done(engine);
    if (error == WEIR_E_FULL)
        wr_error_note("too much waits for room in the state file, and nothing has changed; ask again");
    return error;
}

static int ask_to_steer(struct wr_engine *engine, struct steering *steering)
{
    if (engine->options.pace.off)
        return wr_invalid("pacing is off: no host can be paused or slowed down; crawl without off");
    if (steering->kind != WR_EVENT_FORGOTTEN) {
        int failed = keep_setting(engine, steering);
        if (failed != 0)
            return failed;
    }
    steering->question.answer = steer;
    int error = wr_ask_loop(&engine->loops[wr_engine_loop_of(engine, steering->key)], &steering->question);
    error = error != 0 ? error : steering->error;
    if (error == 0 && steering->kind == WR_EVENT_FORGOTTEN && !steering->is_found)
        error = wr_store_forget_host(engine->store, steering->key);
    if (error == 0)
        tell_of(engine, steering);
    return error;
}

int wr_engine_pause(struct wr_engine *engine, struct wr_span key, bool paused)
{
    struct steering steering = {.key = key, .kind = paused ? WR_EVENT_PAUSED : WR_EVENT_RESUMED};
    return ask_to_steer(engine, &steering);
}

int wr_engine_set_pace(struct wr_engine *engine, struct wr_span key, int64_t interval_ns)
{
    struct steering steering = {.key = key, .kind = WR_EVENT_PACE, .interval_ns = interval_ns};
    if (interval_ns < 0 || interval_ns > WR_PLAN_PACE_MAX_NS)
        return wr_invalid("the interval is out of range; use 0 to 30 days");
    return ask_to_steer(engine, &steering);
}

int wr_engine_forget(struct wr_engine *engine, struct wr_span key)
{
    struct steering steering = {.key = key, .kind = WR_EVENT_FORGOTTEN};
    return ask_to_steer(engine, &steering);
}

struct wr_store *wr_engine_store(struct wr_engine *engine)
{
    return engine->store;
}

int64_t wr_engine_job_id(const struct wr_engine *engine)
{
    return engine->job;
}
