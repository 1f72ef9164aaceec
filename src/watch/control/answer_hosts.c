/* SPDX-License-Identifier: MIT */
/* answer_hosts.c - answers requests about hosts: lists, details, pause, pace, forget. */
#include "base/ascii.h"
#include "base/error.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"
#include "watch/control/control_request.h"

#include <math.h>
#include <stdlib.h>

const char *wr_breaker_name(weir_breaker_state state)
{
    static const char *const names[] = {"closed", "open", "half_open"};
    return names[state];
}

static void append_start_slices(struct wr_buf *buf, const struct wr_host_view *host)
{
    wr_buf_append_string(buf, ",\"starts\":[");
    for (size_t i = 0; i < WR_PLAN_SLICES; i++)
        wr_append_json_count(buf, i > 0 ? "," : "", host->starts[i]);
    wr_append_json_count(buf, "],\"slice_s\":", WR_PLAN_SLICE_NS / WEIR_SECOND);
}

void wr_append_live_host(struct wr_buf *buf, const struct wr_host_view *host)
{
    wr_append_json_word(buf, "{\"host\":", host->key);
    wr_append_json_word(buf, ",\"state\":", wr_host_state_name(host->state));
    wr_append_json_word(buf, ",\"reason\":", weir_reason_name(host->why.reason));
    wr_append_json_ms(buf, ",\"wait_ms\":", host->why.wait_ns);
    wr_append_json_count(buf, ",\"queued\":", host->queued);
    wr_append_json_count(buf, ",\"in_flight\":", host->in_flight);
    if (host->cap != UINT32_MAX)
        wr_append_json_count(buf, ",\"cap\":", host->cap);
    else
        wr_append_json_null(buf, ",\"cap\":");
    wr_append_json_rate(buf, ",\"rate\":", host->rate);
    wr_append_json_rate(buf, ",\"allowed_rate\":", host->allowed_rate);
    wr_append_json_ms(buf, ",\"interval_ms\":", host->interval_ns);
    wr_append_json_count(buf, ",\"requests\":", host->requests);
    wr_append_json_count(buf, ",\"fetched\":", host->ok);
    wr_append_json_count(buf, ",\"rejected\":", host->rejected);
    wr_append_json_count(buf, ",\"failed\":", host->failed);
    wr_append_json_count(buf, ",\"retries\":", host->retries);
    wr_append_json_count(buf, ",\"bytes\":", host->bytes);
    wr_append_json_ms(buf, ",\"latency_ms\":", host->latency_ns);
    wr_append_json_word(buf, ",\"mode\":", host->mode);
    wr_append_json_word(buf, ",\"limit\":", host->limit);
    wr_append_json_word(buf, ",\"limit_why\":", host->limit_why);
    append_start_slices(buf, host);
    wr_append_json_word(buf, ",\"breaker\":", wr_breaker_name(host->breaker));
    wr_append_json_ms(buf, ",\"breaker_ms\":", host->breaker_ns);
    wr_append_json_ms(buf, ",\"robots_delay_ms\":", host->robots_delay_ns);
    wr_append_json_ms(buf, ",\"retry_after_ms\":", host->retry_after_ns);
    wr_append_json_ms(buf, ",\"set_interval_ms\":", host->set_interval_ns);
    wr_append_json_bool(buf, ",\"paused\":", host->is_paused);
    wr_buf_append_string(buf, "}");
}

static double rate_within(double rate, int64_t interval_ns)
{
    return interval_ns > 0 ? fmin(rate, (double)WEIR_SECOND / (double)interval_ns) : rate;
}

/* Appends a stored host: its state as learned, stated by its server or set by a user. The next
 * crawl starts with it. */
void wr_append_stored_host(struct wr_buf *buf, const struct wr_store_host *host)
{
    const weir_pace_memory *memory = &host->memory;
    int64_t wall_now = weir_wall_now();
    double rate = memory->rate > 0 ? memory->rate : rate_within((double)INFINITY, memory->delay_ns);
    rate = rate_within(rate_within(rate, memory->robots_delay_ns), host->set_interval_ns);
    wr_append_json_text(buf, "{\"host\":", host->key);
    wr_append_json_word(buf, ",\"state\":", host->is_paused ? "paused" : "stored");
    wr_append_json_rate(buf, ",\"allowed_rate\":", rate);
    if (memory->cap > 0)
        wr_append_json_count(buf, ",\"cap\":", memory->cap);
    else
        wr_append_json_null(buf, ",\"cap\":");
    wr_append_json_word(buf, ",\"breaker\":", memory->breaker_open ? "half_open" : "closed");
    wr_append_json_ms(buf, ",\"robots_delay_ms\":", memory->robots_delay_ns);
    wr_append_json_ms(buf,
                      ",\"retry_after_ms\":", memory->retry_wall_at > wall_now ? memory->retry_wall_at - wall_now : 0);
    wr_append_json_ms(buf, ",\"set_interval_ms\":", host->set_interval_ns);
    wr_append_json_bool(buf, ",\"paused\":", host->is_paused);
    wr_append_json_wall(buf, ",\"learned_at_ms\":", memory->saved_wall_at);
    wr_append_json_wall(
        buf, ",\"blocked_until_ms\":", host->blocked_until_wall_at > wall_now ? host->blocked_until_wall_at : 0);
    wr_append_json_count(buf, ",\"queued\":", host->queued);
    wr_append_json_text(buf,
                        ",\"leased_by\":", host->leased_by.bytes > 0 ? host->leased_by : (struct wr_span){NULL, 0});
    wr_append_json_ms(buf, ",\"lease_ms\":", host->leased_by.bytes > 0 ? host->lease_left_ns : -1);
    wr_buf_append_string(buf, "}");
}

/* ---- lists of hosts ---- */

static int read_host_query(const struct wr_control_request *ask, struct wr_host_view_query *ret_query)
{
    struct wr_host_view_query query = {.sort = WR_SORT_WAIT, .filter = wr_control_request_text(ask, "filter")};
    struct wr_span sort = wr_control_request_text(ask, "sort");
    int64_t most = wr_control_request_number(ask, "most", 20);
    if (sort.bytes > 0 && !wr_host_view_sort_parse(sort, &query.sort))
        return wr_invalid("no such order of hosts; use wait, queue, rate, rejected or name");
    query.is_reversed = json_is_true(json_object_get(ask->request, "reverse"));
    query.most = most > 0 && most < WR_HOST_VIEWS_MAX ? (size_t)most : WR_HOST_VIEWS_MAX;
    *ret_query = query;
    return 0;
}

static int answer_live_hosts(struct wr_control_request *ask, const struct wr_host_view_query *query)
{
    struct wr_host_views *found;
    int error = wr_engine_inspect_hosts(ask->source->engine, query, &found);
    if (error != 0)
        return error;
    wr_append_json_count(ask->answer, ",\"live\":true,\"matched\":", found->sums.matched);
    for (int i = 0; i < WR_HOST_STATES_COUNT; i++) {
        wr_buf_append_string(ask->answer, i > 0 ? ",\"" : ",\"states\":{\"");
        wr_buf_append_string(ask->answer, wr_host_state_name((enum wr_host_state)i));
        wr_append_json_count(ask->answer, "\":", found->sums.states[i]);
    }
    wr_buf_append_string(ask->answer, "},\"hosts\":[");
    for (size_t i = 0; i < found->count; i++) {
        wr_buf_append_string(ask->answer, i > 0 ? "," : "");
        wr_append_live_host(ask->answer, &found->hosts[i]);
    }
    wr_buf_append_string(ask->answer, "]");
    wr_host_views_free(found);
    return 0;
}

#define HOSTS_PER_BATCH 10000

/* A host among the highest-ranked so far. */
struct ranked_host {
    int64_t rank;
    char key[WEIR_PACE_KEY_MAX + 1];
};

struct host_ranking {
    const struct wr_host_view_query *query;
    char filter[WEIR_PACE_KEY_MAX + 1]; /* filter in lower case, like host keys */
    int64_t wall_now, last;
    uint64_t read, matched;
    struct ranked_host *kept[WR_HOST_VIEWS_MAX + 1]; /* hosts in order of rank, the first row first */
    size_t count;
    int error;
};

/* Returns the rank of a host. Rejections are not stored, so they rank as 0. */
static int64_t rank_of_host(const struct host_ranking *listing, const struct wr_store_host *host)
{
    const weir_pace_memory *memory = &host->memory;
    int64_t until =
        memory->retry_wall_at > host->blocked_until_wall_at ? memory->retry_wall_at : host->blocked_until_wall_at;
    if (listing->query->sort == WR_SORT_RATE)
        return memory->rate > 0 && memory->rate < 1e9 ? (int64_t)(memory->rate * 1e6) : 0;
    if (listing->query->sort == WR_SORT_QUEUE)
        return (int64_t)host->queued;
    if (listing->query->sort != WR_SORT_WAIT)
        return 0;
    if (host->is_paused)
        return INT64_MAX;
    return until > listing->wall_now ? until - listing->wall_now : 0;
}

static struct ranked_host *make_ranked_host(struct host_ranking *listing, int64_t rank, struct wr_span key)
{
    struct ranked_host *kept = calloc(1, sizeof *kept);
    if (kept == NULL || key.bytes > WEIR_PACE_KEY_MAX) {
        free(kept);
        listing->error = WEIR_E_NOMEM;
        return NULL;
    }
    kept->rank = rank;
    memcpy(kept->key, key.data, key.bytes);
    return kept;
}

static void on_ranked_host(void *context, const struct wr_store_row *row)
{
    struct host_ranking *listing = context;
    const struct wr_host_view_query *query = listing->query;
    struct wr_span key = row->host.key;
    if (row->what == WR_STORE_TASKS) /* such a row reports a host that cannot be read */
        return;
    listing->read++;
    listing->last = row->host.id;
    if (query->filter.bytes > 0 && memmem(key.data, key.bytes, query->filter.data, query->filter.bytes) == NULL)
        return;
    listing->matched++;
    int64_t rank = rank_of_host(listing, &row->host);
    size_t at = listing->count;
    while (at > 0 && wr_host_view_is_before(query, rank, key, listing->kept[at - 1]->rank,
                                            wr_span_of(listing->kept[at - 1]->key)))
        at--;
    struct ranked_host *kept = at < query->most ? make_ranked_host(listing, rank, key) : NULL;
    if (kept == NULL)
        return;
    for (size_t i = listing->count; i > at; i--)
        listing->kept[i] = listing->kept[i - 1];
    listing->kept[at] = kept;
    if (listing->count < query->most)
        listing->count++;
    else
        free(listing->kept[listing->count]);
}

/* Reads the hosts in batches: there may be millions, and others wait for the store meanwhile. */
static int read_ranked_hosts(struct wr_store *store, struct host_ranking *listing, enum wr_store_query_kind what,
                             int64_t job)
{
    struct wr_store_query query = {.what = what,
                                   .job = what == WR_STORE_ALL_HOSTS ? 0 : job,
                                   .limit = HOSTS_PER_BATCH,
                                   .is_hasty = true,
                                   .row = on_ranked_host,
                                   .context = listing};
    int error;
    do {
        listing->read = 0;
        query.after.id = listing->last;
        error = wr_store_read(store, &query);
    } while (error == 0 && listing->read == HOSTS_PER_BATCH);
    listing->last = 0;
    return error != 0 ? error : listing->error;
}

struct host_list_answer {
    struct wr_buf *answer;
    size_t count;
};

static void on_listed_host(void *context, const struct wr_store_row *row)
{
    struct host_list_answer *told = context;
    wr_buf_append_string(told->answer, told->count++ > 0 ? "," : "");
    wr_append_stored_host(told->answer, &row->host);
}

static int append_ranked_hosts(struct wr_control_request *ask, struct host_ranking *listing, int64_t job)
{
    struct wr_buf *answer = ask->answer;
    struct host_list_answer told = {.answer = answer};
    int error = 0;
    wr_buf_append_string(answer, ",\"hosts\":[");
    for (size_t i = 0; i < listing->count; i++) {
        const struct wr_store_query query = {.what = WR_STORE_ONE_HOST,
                                             .job = job,
                                             .key = wr_span_of(listing->kept[i]->key),
                                             .is_hasty = true,
                                             .row = on_listed_host,
                                             .context = &told};
        error = error == 0 ? wr_store_read(ask->source->store, &query) : error;
        free(listing->kept[i]);
    }
    wr_append_json_count(answer, "],\"matched\":", listing->matched);
    return error;
}

/* Returns the job whose queues are reported; 0 if there is no job. */
static int64_t job_of_queues(struct wr_control_request *ask)
{
    int64_t job;
    return wr_control_request_job(ask, &job) == 0 ? job : 0;
}

static int answer_stored_hosts(struct wr_control_request *ask, struct wr_host_view_query *query)
{
    int64_t job = job_of_queues(ask);
    uint64_t processes;
    struct host_ranking *listing = calloc(1, sizeof *listing);
    if (listing == NULL)
        return WEIR_E_NOMEM;
    listing->query = query;
    listing->wall_now = weir_wall_now();
    query->filter.bytes = query->filter.bytes < sizeof listing->filter ? query->filter.bytes : sizeof listing->filter;
    for (size_t i = 0; i < query->filter.bytes; i++)
        listing->filter[i] = wr_ascii_lower(query->filter.data[i]);
    query->filter.data = listing->filter;
    wr_buf_append_string(ask->answer, ",\"live\":false");
    int error = wr_control_append_processes(ask, 0, &processes);
    if (error == 0 && query->sort == WR_SORT_QUEUE && job > 0) /* lists only hosts with a queue */
        error = read_ranked_hosts(ask->source->store, listing, WR_STORE_HOSTS, job);
    if (error == 0 && listing->matched == 0)
        error = read_ranked_hosts(ask->source->store, listing, WR_STORE_ALL_HOSTS, job);
    int told = append_ranked_hosts(ask, listing, job);
    free(listing);
    return error != 0 ? error : told;
}

int wr_control_answer_hosts(struct wr_control_request *ask)
{
    struct wr_host_view_query query;
    int error = read_host_query(ask, &query);
    if (error != 0)
        return error;
    return ask->source->engine != NULL ? answer_live_hosts(ask, &query) : answer_stored_hosts(ask, &query);
}

/* ---- one host ---- */

struct one_host_answer {
    struct wr_buf *answer;
    bool is_found;
};

static void on_one_host(void *context, const struct wr_store_row *row)
{
    struct one_host_answer *one = context;
    one->is_found = true;
    wr_buf_append_string(one->answer, ",\"host\":");
    wr_append_stored_host(one->answer, &row->host);
}

int wr_control_answer_host(struct wr_control_request *ask)
{
    char key[WEIR_PACE_KEY_MAX + 1];
    struct one_host_answer one = {.answer = ask->answer};
    struct wr_host_view host;
    uint64_t processes;
    int error = wr_control_request_host_key(ask, key);
    if (error != 0)
        return error;
    error = ask->source->engine != NULL ? wr_engine_inspect_host(ask->source->engine, wr_span_of(key), &host)
                                        : WEIR_E_ABSENT;
    wr_append_json_bool(ask->answer, ",\"live\":", error == 0);
    if (error == 0) {
        wr_buf_append_string(ask->answer, ",\"host\":");
        wr_append_live_host(ask->answer, &host);
    }
    if (error != WEIR_E_ABSENT)
        return error;
    const struct wr_store_query query = {.what = WR_STORE_ONE_HOST,
                                         .job = job_of_queues(ask),
                                         .key = wr_span_of(key),
                                         .is_hasty = true,
                                         .row = on_one_host,
                                         .context = &one};
    error = wr_store_read(ask->source->store, &query);
    if (error == 0)
        error = wr_control_append_processes(ask, 0, &processes);
    return error == 0 && !one.is_found ? wr_invalid("this host is unknown") : error;
}

/* ---- commands ---- */

static int post_setting(struct wr_control_request *ask, struct wr_store_host_setting setting)
{
    const struct wr_store_change change = {.kind = WR_STORE_HOST_SETTING, .setting = setting};
    return wr_store_post_now(ask->source->store, &change, 1);
}

struct commanded_host {
    bool is_known;
    /* process that has leased the host; "" if there is none */
    char leased_by[WR_STORE_WHY_MAX + 1];
};

static void on_commanded_host(void *context, const struct wr_store_row *row)
{
    struct commanded_host *commanded_host = context;
    struct wr_span by = row->host.leased_by;
    commanded_host->is_known |= row->host.memory.saved_wall_at > 0 || row->host.queued > 0;
    if (by.bytes > 0 && by.bytes < sizeof commanded_host->leased_by)
        memcpy(commanded_host->leased_by, by.data, by.bytes);
}

static int read_commanded_host(const struct wr_control_request *ask, const char *key,
                               struct commanded_host *ret_steered)
{
    const struct wr_store_query query = {.what = WR_STORE_ONE_HOST,
                                         .key = wr_span_of(key),
                                         .is_hasty = true,
                                         .row = on_commanded_host,
                                         .context = ret_steered};
    return wr_store_read(ask->source->store, &query);
}

/* Appends the host that a command names, and whether it is known: the name may be misspelt. */
static void append_commanded_host(struct wr_control_request *ask, const char *key)
{
    struct wr_engine *engine = ask->source->engine;
    struct wr_host_view host;
    struct commanded_host commanded_host = {.is_known = engine != NULL &&
                                                        wr_engine_inspect_host(engine, wr_span_of(key), &host) == 0};
    uint64_t processes;
    if (!commanded_host.is_known && read_commanded_host(ask, key, &commanded_host) != 0)
        commanded_host.is_known = true; /* the store could not be read: assume that the host is known */
    wr_append_json_word(ask->answer, ",\"host\":", key);
    wr_append_json_bool(ask->answer, ",\"live\":", engine != NULL);
    wr_append_json_bool(ask->answer, ",\"known\":", commanded_host.is_known || commanded_host.leased_by[0] != '\0');
    (void)wr_control_append_processes(ask, 0, &processes); /* on failure the list is omitted */
}

static int pause_host(struct wr_control_request *ask, bool pauses)
{
    char key[WEIR_PACE_KEY_MAX + 1];
    int error = wr_control_request_host_key(ask, key);
    if (error != 0)
        return error;
    append_commanded_host(ask, key);
    if (ask->source->engine != NULL)
        return wr_engine_pause(ask->source->engine, wr_span_of(key), pauses);
    return post_setting(
        ask, (struct wr_store_host_setting){.key = wr_span_of(key), .has_paused = true, .is_paused = pauses});
}

int wr_control_answer_pause(struct wr_control_request *ask)
{
    return pause_host(ask, true);
}

int wr_control_answer_resume(struct wr_control_request *ask)
{
    return pause_host(ask, false);
}

int wr_control_answer_set(struct wr_control_request *ask)
{
    char key[WEIR_PACE_KEY_MAX + 1];
    int64_t us = wr_control_request_number(ask, "interval_us", -1),
            most_us = WR_STORE_INTERVAL_MAX_NS / WEIR_MICROSECOND;
    int error = wr_control_request_host_key(ask, key);
    if (error != 0)
        return error;
    if (us < 0 || us > most_us)
        return wr_invalid("the interval is missing or too long; use 0 to 30 days");
    append_commanded_host(ask, key);
    wr_append_json_ms(ask->answer, ",\"set_interval_ms\":", us * WEIR_MICROSECOND);
    if (ask->source->engine != NULL)
        return wr_engine_set_pace(ask->source->engine, wr_span_of(key), us * WEIR_MICROSECOND);
    return post_setting(ask, (struct wr_store_host_setting){
                                 .key = wr_span_of(key), .has_interval = true, .interval_ns = us * WEIR_MICROSECOND});
}

int wr_control_answer_forget(struct wr_control_request *ask)
{
    char key[WEIR_PACE_KEY_MAX + 1];
    int error = wr_control_request_host_key(ask, key);
    if (error != 0)
        return error;
    wr_append_json_word(ask->answer, ",\"host\":", key);
    struct commanded_host commanded_host = {.is_known = false};
    if (ask->source->engine == NULL)
        error = read_commanded_host(ask, key, &commanded_host);
    if (error != 0)
        return error;
    if (commanded_host.leased_by[0] != '\0')
        return wr_invalid(
            "a process holds this host now and would store its learned pace again; try again when none holds it");
    if (ask->source->engine != NULL)
        error = wr_engine_forget(ask->source->engine, wr_span_of(key));
    else
        error = wr_store_forget_host(ask->source->store, wr_span_of(key));
    return error == WEIR_E_ABSENT ? wr_invalid("this host is unknown") : error;
}
