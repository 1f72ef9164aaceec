/* SPDX-License-Identifier: MIT */
/* inspect_why.c - answers why a URL waits, from what the loop of its host knows. */
#include "crawl/engine/engine_state.h"

struct why_query {
    struct wr_loop_query question; /* first member, so that a pointer to it can be cast */
    const struct wr_url *url;
    struct wr_why *why;
};

int64_t wr_host_view_expected_wait(const struct wr_host_view *host, uint64_t before)
{
    int64_t wait_ns = host->why.verdict == WEIR_GO ? 0 : host->why.wait_ns, each_ns = host->interval_ns;
    if (host->is_paused)
        return -1;
    if (host->cap != UINT32_MAX && host->cap > 0 && host->latency_ns / host->cap > each_ns)
        each_ns = host->latency_ns / host->cap;
    if (wait_ns == WEIR_UNTIL_RELEASE) {
        if (host->why.reason != WEIR_REASON_CONCURRENCY)
            return -1;
        wait_ns = each_ns; /* time until a response arrives */
    }
    if (each_ns > 0 && before > (uint64_t)((WEIR_DURATION_MAX - wait_ns) / each_ns))
        return WEIR_DURATION_MAX;
    return wait_ns + (int64_t)before * each_ns;
}

static void set_expected_start(struct wr_why *why)
{
    bool is_denied = why->ruling.decision.verdict == WEIR_DENY;
    why->expected_ns = -1;
    if (why->seat.kind != WR_TASK_PLACE_QUEUED || is_denied)
        return;
    why->expected_ns = wr_host_view_expected_wait(&why->host, why->seat.before);
    if (why->expected_ns >= 0 && why->seat.not_before_ns > why->expected_ns)
        why->expected_ns = why->seat.not_before_ns;
}

static bool answer_why_query(struct wr_crawl_loop *loop, struct wr_loop_query *question)
{
    struct why_query *asked = (struct why_query *)(void *)question;
    struct wr_why *why = asked->why;
    uint32_t job = (uint32_t)loop->engine->job;
    int64_t now = wr_crawl_loop_now(loop);
    struct wr_span rule;
    const struct wr_plan_host *host = wr_plan_host_find(loop->plan, wr_span_of(why->key));
    why->has_host = host != NULL;
    why->expected_ns = -1;
    if (host == NULL)
        return true;
    wr_host_view_fill(loop, host, &why->host);
    why->bound_count = wr_plan_bounds(loop->plan, host, now, why->bounds);
    why->seat = wr_plan_task_place(loop->plan, host, job, why->fingerprint, now);
    why->ruling = wr_plan_ruling(loop->plan, host, asked->url->is_https, wr_url_target(asked->url), now, &rule);
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, why->rule, sizeof why->rule);
    wr_buf_append_span(&buf, rule);
    set_expected_start(why);
    return true;
}

int wr_engine_why(struct wr_engine *engine, const struct wr_url *url, struct wr_why *ret_why)
{
    const struct wr_engine_options *options = &engine->options;
    struct wr_why why = {.fingerprint = wr_engine_fingerprint(engine, wr_span_of(url->text))};
    struct why_query asked = {.question.answer = answer_why_query, .url = url, .why = &why};
    struct wr_buf key;
    wr_buf_init_fixed(&key, why.key, sizeof why.key);
    wr_url_append_key(&key, url);
    why.in_scope = options->in_scope == NULL || options->in_scope(options->scope_context, url);
    int error = wr_loop_query_run(&engine->loops[wr_engine_loop_of_url(engine, url)], &asked.question);
    if (error == 0)
        *ret_why = why;
    return error;
}
