/* SPDX-License-Identifier: MIT */
/* answer_why.c - answers why a URL waits, for a running crawl or from a state file alone. */
#include "base/error.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"
#include "watch/control/control_request.h"

struct why_answer {
    struct wr_control_request *ask;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    int64_t job;
    char agent[WR_CONTROL_AGENT_ROOM];
    struct wr_why live; /* state of the URL in a running crawl */
    /* The state of the URL in the store. */
    bool was_cut_off; /* a limit ended the last run of the job */
    bool has_task;
    enum wr_task_state state;
    uint64_t before;
    struct wr_buf task; /* the stored task as JSON */
    bool has_host;
    struct wr_store_host host; /* its text members are invalid after the query */
    /* process that has leased the host; "" if there is none */
    char leased_by[WR_STORE_WHY_MAX + 1];
    struct wr_robots *robots;
    bool has_robots; /* the content of robots.txt is known */
    struct wr_fetch_deliver_robots ruling;
    char rule[256];
};

static void on_why_task(void *context, const struct wr_store_row *row)
{
    struct why_answer *why = context;
    why->has_task = true;
    why->state = row->task.state;
    why->before = row->task.before;
    wr_append_task(&why->task, &row->task);
}

static void on_why_host(void *context, const struct wr_store_row *row)
{
    struct why_answer *why = context;
    struct wr_span by = row->host.leased_by;
    why->has_host = true;
    why->host = row->host;
    if (by.bytes > 0 && by.bytes < sizeof why->leased_by)
        memcpy(why->leased_by, by.data, by.bytes);
}

static void on_why_job(void *context, const struct wr_store_row *row)
{
    struct why_answer *why = context;
    why->was_cut_off = !wr_job_is_over(row->job.status) && row->job.why.bytes > 0;
    why->ask->source->agent_of(row->job.settings, why->agent);
}

static void on_why_robots(void *context, const struct wr_store_row *row)
{
    struct why_answer *why = context;
    const struct wr_robots_options options = {.agent = wr_span_of(why->agent), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    bool has_rules = row->robots.kind == WR_STORE_ROBOTS_TEXT;
    why->has_robots =
        !has_rules || wr_robots_parse(row->robots.text, &options, wr_allocator_or_system(NULL), &why->robots) == 0;
}

/* ---- read from the store ---- */

static int read_stored_task(struct why_answer *why)
{
    const struct wr_hash_key *key = wr_store_hash_key(why->ask->source->store);
    struct wr_span text = wr_span_of(why->url.text);
    const struct wr_store_query query = {.what = WR_STORE_ONE_TASK,
                                         .job = why->job,
                                         .after = {0, (int64_t)wr_hash(key, text.data, text.bytes)},
                                         .is_hasty = true,
                                         .row = on_why_task,
                                         .context = why};
    return wr_store_read(why->ask->source->store, &query);
}

static int read_job_agent(struct why_answer *why)
{
    const struct wr_store_query query = {
        .what = WR_STORE_JOBS, .job = why->job, .is_hasty = true, .row = on_why_job, .context = why};
    return why->ask->source->agent_of != NULL ? wr_store_read(why->ask->source->store, &query) : 0;
}

static int read_stored_host(struct why_answer *why)
{
    char memory[WEIR_PACE_KEY_MAX + 32];
    struct wr_store *store = why->ask->source->store;
    struct wr_buf url;
    const struct wr_store_query host = {.what = WR_STORE_ONE_HOST,
                                        .key = wr_span_of(why->live.key),
                                        .is_hasty = true,
                                        .row = on_why_host,
                                        .context = why};
    int error = wr_store_read(store, &host);
    wr_buf_init_fixed(&url, memory, sizeof memory);
    wr_buf_append_string(&url, why->url.is_https ? "https://" : "http://");
    wr_buf_append_string(&url, why->live.key);
    wr_buf_append_string(&url, "/robots.txt");
    const struct wr_store_query robots = {.what = WR_STORE_ONE_ROBOTS,
                                          .key = wr_buf_from(&url, 0),
                                          .is_hasty = true,
                                          .row = on_why_robots,
                                          .context = why};
    if (error == 0)
        error = wr_store_read(store, &robots);
    why->ruling = (struct wr_fetch_deliver_robots){.allowed = true};
    if (why->robots != NULL)
        why->ruling = wr_robots_match(why->robots, wr_url_target(&why->url));
    struct wr_buf rule;
    wr_buf_init_fixed(&rule, why->rule, sizeof why->rule);
    wr_buf_append_span(&rule, why->ruling.path);
    return error;
}

/* ---- response ---- */

static void append_why_bound(struct wr_buf *buf, const struct wr_plan_bound *bound, bool is_first)
{
    wr_append_json_word(buf, is_first ? "{\"reason\":" : ",{\"reason\":", weir_reason_name(bound->reason));
    wr_append_json_bool(buf, ",\"holds\":", bound->wait_ns > 0);
    wr_append_json_ms(buf, ",\"wait_ms\":", bound->wait_ns);
    wr_append_json_ms(buf, ",\"value_ms\":", bound->value_ns);
    wr_append_json_word(buf, ",\"source\":", wr_bound_source_name(bound->source));
    wr_append_json_bool(buf, ",\"group\":", bound->is_group);
    if (bound->reason == WEIR_REASON_CONCURRENCY && bound->count != UINT32_MAX)
        wr_append_json_count(buf, ",\"most\":", bound->count);
    if (bound->line > 0)
        wr_append_json_count(buf, ",\"line\":", bound->line);
    if (bound->has_since)
        wr_append_json_ms(buf, ",\"since_ms\":", bound->since_ns);
    wr_buf_append_string(buf, "}");
}

static void append_robots(struct wr_buf *buf, const char *verdict, uint32_t line, const char *rule)
{
    wr_append_json_word(buf, ",\"robots\":{\"verdict\":", verdict);
    if (line > 0) {
        wr_append_json_count(buf, ",\"line\":", line);
        wr_append_json_word(buf, ",\"rule\":", rule);
    }
    wr_buf_append_string(buf, "}");
}

static void append_number_or_null(struct wr_buf *buf, const char *before, bool is_known, uint64_t number)
{
    if (is_known)
        wr_append_json_count(buf, before, number);
    else
        wr_append_json_null(buf, before);
}

static const char *state_name(const struct why_answer *why)
{
    if (why->live.seat.kind == WR_TASK_PLACE_IN_FLIGHT)
        return "in_flight";
    if (why->live.seat.kind == WR_TASK_PLACE_QUEUED)
        return "queued";
    return why->has_task ? wr_task_state_name(why->state) : "unknown";
}

static void append_task_and_url(struct wr_buf *buf, const struct why_answer *why)
{
    wr_append_json_word(buf, ",\"url\":", why->url.text);
    wr_append_json_word(buf, ",\"host\":", why->live.key);
    wr_append_json_count(buf, ",\"job\":", (uint64_t)why->job);
    wr_append_json_word(buf, ",\"state\":", state_name(why));
    wr_buf_append_string(buf, ",\"task\":");
    if (why->has_task)
        wr_buf_append_span(buf, wr_buf_from(&why->task, 0));
    else
        wr_buf_append_string(buf, "null");
}

/* ---- response of a running crawl ---- */

static void append_live_answer(struct why_answer *why)
{
    struct wr_buf *buf = why->ask->answer;
    const struct wr_why *live = &why->live;
    bool is_stored = live->seat.kind == WR_TASK_PLACE_NONE && why->has_task && why->state == WR_TASK_QUEUED;
    bool is_waiting = live->seat.kind == WR_TASK_PLACE_QUEUED || is_stored;
    bool is_denied = live->has_host && live->ruling.decision.verdict == WEIR_DENY;
    uint64_t before = is_stored ? why->before : live->seat.before;
    int64_t expected_ns =
        is_stored && live->has_host && !is_denied ? wr_host_view_expected_wait(&live->host, before) : live->expected_ns;
    wr_buf_append_string(buf, ",\"live\":true");
    append_task_and_url(buf, why);
    wr_append_json_bool(buf, ",\"in_scope\":", live->in_scope);
    append_number_or_null(buf, ",\"position\":", is_waiting, before);
    wr_append_json_ms(buf, ",\"expected_ms\":", is_waiting ? expected_ns : -1);
    wr_append_json_ms(buf, ",\"backoff_ms\":", live->seat.not_before_ns);
    wr_append_json_ms(buf, ",\"sent_ms\":", live->seat.was_sent ? live->seat.sent_ns : -1);
    if (live->has_host)
        append_robots(buf,
                      is_denied                                    ? "deny"
                      : live->ruling.decision.verdict == WEIR_WAIT ? "unknown"
                                                                   : "allow",
                      live->ruling.line, live->rule);
    wr_buf_append_string(buf, ",\"bounds\":[");
    for (size_t i = 0; i < live->bound_count; i++)
        append_why_bound(buf, &live->bounds[i], i == 0);
    wr_buf_append_string(buf, "]");
    if (live->has_host) {
        wr_buf_append_string(buf, ",\"at_host\":");
        wr_append_live_host(buf, &live->host);
    }
}

/* ---- response from a state file ---- */

/* Collects the bounds with which the next crawl begins. Returns their number. */
static size_t stored_bounds(const struct why_answer *why, struct wr_plan_bound *bounds)
{
    const weir_pace_memory *memory = &why->host.memory;
    int64_t wall_now = weir_wall_now();
    int64_t since_ns =
        memory->saved_wall_at > 0 && memory->saved_wall_at < wall_now ? wall_now - memory->saved_wall_at : 0;
    int64_t each_ns = memory->rate > 1e-9 ? (int64_t)(1e9 / memory->rate) : memory->delay_ns;
    size_t count = 0;
    if (why->host.is_paused)
        bounds[count++] = (struct wr_plan_bound){
            .reason = WEIR_REASON_PAUSED, .source = WR_BOUND_FROM_USER, .wait_ns = WEIR_UNTIL_RELEASE};
    if (why->host.set_interval_ns > 0)
        bounds[count++] = (struct wr_plan_bound){
            .reason = WEIR_REASON_PACE, .source = WR_BOUND_FROM_USER, .value_ns = why->host.set_interval_ns};
    if (each_ns > 0)
        bounds[count++] = (struct wr_plan_bound){.reason = WEIR_REASON_PACE,
                                                 .source = WR_BOUND_FROM_LEARNING,
                                                 .value_ns = each_ns,
                                                 .has_since = true,
                                                 .since_ns = since_ns};
    if (memory->robots_delay_ns > 0)
        bounds[count++] =
            (struct wr_plan_bound){.reason = WEIR_REASON_ROBOTS_DELAY,
                                   .source = WR_BOUND_FROM_ROBOTS,
                                   .value_ns = memory->robots_delay_ns,
                                   .line = why->robots != NULL ? wr_robots_interval_line(why->robots) : 0};
    if (why->host.blocked_until_wall_at > wall_now)
        bounds[count++] = (struct wr_plan_bound){.reason = WEIR_REASON_BREAKER,
                                                 .source = WR_BOUND_FROM_LEARNING,
                                                 .wait_ns = why->host.blocked_until_wall_at - wall_now};
    if (memory->retry_wall_at > wall_now)
        bounds[count++] = (struct wr_plan_bound){.reason = WEIR_REASON_RETRY_AFTER,
                                                 .source = WR_BOUND_FROM_HEADER,
                                                 .wait_ns = memory->retry_wall_at - wall_now,
                                                 .has_since = true,
                                                 .since_ns = since_ns};
    return count;
}

/* Returns the expected wait, ns; -1 if it is unknown. Sums the host's bounds and the intervals of
 * the tasks ahead, whichever process has the host. */
static int64_t expected_wait_of(const struct wr_plan_bound *bounds, size_t count, const struct why_answer *why)
{
    int64_t wait_ns = why->host.rest_ns != WEIR_FOREVER ? why->host.rest_ns : WEIR_UNTIL_RELEASE, each_ns = 0;
    uint64_t before = why->before;
    for (size_t i = 0; i < count; i++) {
        wait_ns = bounds[i].wait_ns > wait_ns ? bounds[i].wait_ns : wait_ns;
        each_ns = bounds[i].value_ns > each_ns ? bounds[i].value_ns : each_ns;
    }
    if (wait_ns == WEIR_UNTIL_RELEASE || (each_ns > 0 && before > (uint64_t)(WEIR_DURATION_MAX / 2 / each_ns)))
        return -1;
    return wait_ns + each_ns * (int64_t)before;
}

static int append_stored_answer(struct why_answer *why)
{
    struct wr_plan_bound bounds[8];
    struct wr_buf *buf = why->ask->answer;
    bool is_waiting = why->has_task && why->state == WR_TASK_QUEUED;
    uint64_t processes;
    wr_buf_append_string(buf, ",\"live\":false");
    int error = wr_control_append_processes(why->ask, why->job, &processes);
    if (processes > 0 && why->leased_by[0] != '\0')
        wr_append_json_word(buf, ",\"leased_by\":", why->leased_by);
    append_task_and_url(buf, why);
    append_number_or_null(buf, ",\"position\":", is_waiting, why->before);
    append_robots(buf,
                  !why->has_robots      ? "unknown"
                  : why->ruling.allowed ? "allow"
                                        : "deny",
                  why->ruling.line, why->rule);
    wr_buf_append_string(buf, ",\"bounds\":[");
    size_t count = why->has_host ? stored_bounds(why, bounds) : 0;
    if (why->was_cut_off && is_waiting && processes == 0)
        bounds[count++] = (struct wr_plan_bound){
            .reason = WEIR_REASON_JOB_LIMIT, .source = WR_BOUND_FROM_OPTIONS, .wait_ns = WEIR_UNTIL_RELEASE};
    for (size_t i = 0; i < count; i++)
        append_why_bound(buf, &bounds[i], i == 0);
    wr_buf_append_string(buf, "]");
    bool rests = processes > 0 && why->leased_by[0] == '\0' && why->host.rest_ns > 0;
    if (rests)
        wr_append_json_bool(buf, ",\"rests\":", true);
    if (is_waiting && (rests || why->leased_by[0] != '\0'))
        wr_append_json_ms(buf, ",\"expected_ms\":", expected_wait_of(bounds, count, why));
    return error;
}

/* ---- request ---- */

static int answer_why_request(struct why_answer *why)
{
    struct wr_buf key;
    int error = wr_control_request_job(why->ask, &why->job);
    if (error != 0)
        return error;
    wr_buf_init_fixed(&key, why->live.key, sizeof why->live.key);
    wr_url_append_key(&key, &why->url);
    if (why->ask->source->engine != NULL)
        error = wr_engine_why(why->ask->source->engine, &why->url, &why->live);
    if (error == 0)
        error = read_stored_task(why);
    if (error != 0)
        return error;
    if (why->ask->source->engine != NULL) {
        append_live_answer(why);
        return 0;
    }
    error = read_job_agent(why);
    if (error == 0)
        error = read_stored_host(why);
    return error == 0 ? append_stored_answer(why) : error;
}

int wr_control_answer_why(struct wr_control_request *ask)
{
    struct wr_span text = wr_control_request_text(ask, "url");
    struct why_answer why = {.ask = ask, .agent = "weir"};
    char memory[WR_URL_ROOM];
    struct wr_url given;
    if (wr_url_parse(text, NULL, NULL, memory, sizeof memory, &given) != WR_URL_OK ||
        wr_url_canonical(&given, why.memory, sizeof why.memory, &why.url) != WR_URL_OK)
        return wr_invalid("not a URL; use for example https://example.org/page");
    wr_buf_init(&why.task, wr_allocator_or_system(NULL), WR_CONTROL_ANSWER_MAX);
    int error = answer_why_request(&why);
    wr_buf_release(&why.task);
    wr_robots_free(why.robots);
    return error;
}
