/* SPDX-License-Identifier: MIT */
/* engine.c - opens, starts, awaits and ends a crawl. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/web/http/field.h"
#include "core/web/http/status.h"
#include "crawl/engine/engine_state.h"
#include "crawl/engine/registrable_domain.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define CONCURRENCY 256
#define REQUEST_NS (2 * WEIR_MINUTE)
#define DRAIN_NS (30 * WEIR_SECOND)
#define MAX_HOSTS 100000
#define LEASE_NS (30 * WEIR_SECOND)
#define WINDOW 1024
#define RULES_BYTES ((size_t)128 << 20)    /* bytes of compiled robots.txt in all loops */
#define RULES_BYTES_MIN ((size_t)16 << 20) /* minimum for one loop: the largest robots.txt fits */
#define OTHER_DESCRIPTORS 64               /* descriptors of the store, the loops and others */
/* Connections of a loop, idle ones included; libcurl searches a full cache for each request. */
#define CONNECTIONS_MAX 8192

/* ---- callbacks of the store ---- */

static int sync_outputs(void *context)
{
    struct wr_engine *engine = context;
    int error = wr_output_sync(&engine->output);
    return error == 0 ? wr_archive_sync(engine) : error;
}

static void on_store_state(void *context, enum wr_store_state state, const char *why)
{
    struct wr_engine *engine = context;
    (void)pthread_mutex_lock(&engine->lock);
    wr_text_copy(engine->pause_why, sizeof engine->pause_why, state == WR_STORE_RUNNING ? "" : why);
    (void)pthread_mutex_unlock(&engine->lock);
    atomic_store(&engine->is_store_paused, state == WR_STORE_PAUSED);
    if (state == WR_STORE_FAILED)
        wr_job_end(engine, WR_END_BROKEN, why);
    else
        wr_engine_warn(engine, state == WR_STORE_PAUSED ? "waiting: " : "the state file is writable again: resuming",
                       state == WR_STORE_PAUSED ? why : "");
}

void wr_engine_retry_posts(struct wr_engine *engine)
{
    for (uint32_t i = 0; i < engine->loop_count; i++) {
        atomic_store(&engine->loops[i].has_room, true);
        wr_crawl_loop_wake(&engine->loops[i]);
    }
}

static void on_store_room(void *context)
{
    wr_engine_retry_posts(context);
}

/* ---- opening ---- */

static void set_up_locks(struct wr_engine *engine)
{
    pthread_condattr_t monotonic;
    (void)pthread_mutex_init(&engine->lock, NULL);
    (void)pthread_rwlock_init(&engine->origins_lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&engine->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

int wr_engine_open(const struct wr_engine_open_options *place, struct wr_engine **ret_engine)
{
    const weir_allocator *allocator = wr_allocator_or_steady(place->allocator);
    struct wr_engine *engine = wr_alloc(allocator, sizeof *engine, _Alignof(struct wr_engine));
    if (engine == NULL)
        return WEIR_E_NOMEM;
    engine->allocator = allocator;
    engine->clock = weir_clock_monotonic();
    engine->output.fd = engine->archive.bodies.fd = -1;
    set_up_locks(engine);
    const struct wr_store_options options = {.path = place->state_path,
                                             .may_create = place->may_create,
                                             .lease_ns = place->lease_ns,
                                             .sync = sync_outputs,
                                             .changed = on_store_state,
                                             .room = on_store_room,
                                             .context = engine,
                                             .allocator = allocator};
    int error = wr_store_open(&options, &engine->store);
    if (error != 0) {
        wr_engine_free(engine);
        return error;
    }
    engine->hash_key = *wr_store_hash_key(engine->store);
    engine->is_shared = wr_store_is_shared(engine->store);
    engine->lease_ns = place->lease_ns > 0 ? place->lease_ns : LEASE_NS;
    *ret_engine = engine;
    return 0;
}

/* ---- options ---- */

static char *copy_optional_text(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

/* Copies the header lines for the seeds' origins. The engine owns the texts. */
static int copy_user_headers(struct wr_engine *engine, const char *const *lines)
{
    size_t count = 0;
    for (; lines != NULL && lines[count] != NULL; count++) {
        struct wr_net_field field;
        if (count == WR_USER_HEADERS_MAX)
            return wr_invalid("too many header lines; at most 64");
        char *line = strdup(lines[count]);
        if (line == NULL)
            return WEIR_E_NOMEM;
        engine->header_lines[count] = line;
        if (!wr_field_parse(wr_span_of(line), &field.name, &field.value) || !wr_field_is_sound(field.name, field.value))
            return wr_invalid("a header is not a line \"Name: value\"");
        engine->fields[count] = field;
        engine->field_count = count + 1;
    }
    return 0;
}

static struct wr_span agent_token(const char *agent)
{
    size_t bytes = 0;
    while (agent[bytes] != '\0' && wr_field_is_token_char(agent[bytes]))
        bytes++;
    return (struct wr_span){agent, bytes};
}

/* Raises the limit of descriptors to its maximum, because a crawl of many hosts needs them, and
 * derives the limit of connections. */
static void use_descriptors(struct wr_engine *engine)
{
    struct wr_engine_options *options = &engine->options;
    struct rlimit limit;
    uint64_t others = OTHER_DESCRIPTORS, most;
    if (options->warc_path != NULL || options->body_folder != NULL)
        others += options->concurrency; /* a file for each large body in flight */
    most = others + 1;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
        most = limit.rlim_cur > most ? limit.rlim_cur : most;
    }
    uint64_t each = (most - others) / options->loops + 1;
    engine->connections = each < CONNECTIONS_MAX ? (uint32_t)each : CONNECTIONS_MAX;
    if (options->concurrency > engine->connections * options->loops)
        options->concurrency = engine->connections * options->loops;
}

/* Fills engine->options, with defaults for zeros. Returns WEIR_E_NOMEM if memory is short. */
static int fill_engine_options(struct wr_engine *engine, const struct wr_engine_options *given)
{
    struct wr_engine_options *options = &engine->options;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    *options = *given;
    if (options->loops == 0)
        options->loops = processors > 0 ? (uint32_t)processors : 1;
    if (options->loops > WR_LOOPS_MAX)
        options->loops = WR_LOOPS_MAX;
    options->concurrency = options->concurrency != 0 ? options->concurrency : CONCURRENCY;
    bool is_counted = !engine->is_shared && (options->max_pages > 0 || options->host_pages > 0);
    if (options->group == WR_GROUP_IP || is_counted)
        options->loops = 1; /* with several loops, URLs are stored before they are counted */
    if (options->loops > options->concurrency)
        options->loops = options->concurrency;
    options->request_ns = options->request_ns != 0 ? options->request_ns : REQUEST_NS;
    options->drain_ns = options->drain_ns != 0 ? options->drain_ns : DRAIN_NS;
    options->max_hosts = options->max_hosts != 0 ? options->max_hosts : MAX_HOSTS;
    engine->agent = strdup(options->agent != NULL ? options->agent : "weir");
    engine->proxy = copy_optional_text(options->proxy);
    engine->ca_file = copy_optional_text(options->ca_file);
    use_descriptors(engine);
    if (engine->agent == NULL || (options->proxy != NULL && engine->proxy == NULL) ||
        (options->ca_file != NULL && engine->ca_file == NULL))
        return WEIR_E_NOMEM;
    engine->token = agent_token(engine->agent);
    return 0;
}

static int check_engine_options(struct wr_engine *engine, const struct wr_engine_options *given)
{
    wr_statuses_init(&engine->statuses, WR_STATUSES_JOBS);
    if (given->statuses != NULL && wr_statuses_parse(&engine->statuses, given->statuses) != 0)
        return WEIR_E_INVAL;
    if (given->proxy != NULL && wr_net_proxy_check(given->proxy) != 0)
        return WEIR_E_INVAL;
    if (given->agent != NULL && !wr_field_is_sound(wr_span_of("User-Agent"), wr_span_of(given->agent)))
        return wr_invalid("the User-Agent has control characters; it is one line of text");
    if (engine->is_shared && given->group != WR_GROUP_HOST)
        return wr_invalid(
            "groups of hosts need one process that holds them all; crawl with a state file, or leave the group "
            "out and make the interval of each host longer");
    if (given->keeps_lines && !engine->is_shared)
        return wr_invalid("a state file cannot keep output lines; name a file for them, or use a database");
    if (given->body_folder != NULL && given->out_path == NULL && given->warc_path == NULL && !given->keeps_lines)
        return wr_invalid("saved bodies need output lines that name their URLs; give an output, too");
    return copy_user_headers(engine, given->headers);
}

/* ---- loops ---- */

static bool is_link_in_scope(void *context, uint32_t job, const struct wr_url *url)
{
    const struct wr_crawl_loop *loop = context;
    const struct wr_engine_options *options = &loop->engine->options;
    (void)job;
    return options->in_scope == NULL || options->in_scope(options->scope_context, url);
}

static void add_left_host_report(void *context, const struct wr_plan_host_report *report)
{
    struct wr_crawl_loop *loop = context;
    wr_host_reports_add(loop->engine, report);
}

/* Returns the group of a host: the registrable domain above it, or an empty span. */
static struct wr_span pace_group_of(void *context, struct wr_span key)
{
    struct wr_span domain = wr_registrable_domain(key);
    (void)context;
    return domain.data != key.data || domain.bytes != key.bytes ? domain : (struct wr_span){NULL, 0};
}

static size_t robots_rules_share(const struct wr_engine *engine)
{
    size_t share = RULES_BYTES / engine->loop_count;
    return share > RULES_BYTES_MIN ? share : RULES_BYTES_MIN;
}

static int make_loop_plan(struct wr_crawl_loop *loop)
{
    const struct wr_engine *engine = loop->engine;
    const struct wr_engine_options *options = &engine->options;
    struct wr_robots_lifecycle_options robots = {.on_error = options->on_error}, checked;
    int error = wr_robots_lifecycle_options_check(&robots, &checked);
    if (error != 0)
        return error;
    const struct wr_plan_options plan = {.pace = options->pace,
                                         .robots = checked,
                                         .statuses = &engine->statuses,
                                         .hash_key = &engine->hash_key,
                                         .in_scope = is_link_in_scope,
                                         .host_left = add_left_host_report,
                                         .news = wr_events_on_host_change,
                                         .group_of = options->group == WR_GROUP_DOMAIN ? pace_group_of : NULL,
                                         .context = loop,
                                         .ignores_robots = options->ignores_robots,
                                         .leases = engine->is_shared,
                                         .delay_factor = options->delay_factor,
                                         .max_hosts = options->max_hosts / engine->loop_count + 1,
                                         .rules_bytes = robots_rules_share(engine),
                                         .window = WINDOW,
                                         .max_loads = WR_LOADS_MAX,
                                         .max_in_flight =
                                             wr_ledger_share(options->concurrency, loop->index, engine->loop_count),
                                         .max_hops = options->max_hops,
                                         .max_defer_ns = options->max_defer_ns,
                                         .seed = (uint64_t)weir_wall_now() + loop->index,
                                         .allocator = engine->allocator};
    return wr_plan_new(&plan, &loop->plan);
}

static int add_plan_job(struct wr_crawl_loop *loop)
{
    const struct wr_engine *engine = loop->engine;
    const struct wr_engine_options *options = &engine->options;
    const struct wr_plan_job job = {
        .id = (uint32_t)engine->job,
        .concurrency = wr_ledger_share(options->concurrency, loop->index, engine->loop_count),
        .max_depth = options->max_depth,
        .host_pages = options->host_pages,
        .deadline_at = options->max_time_ns > 0 ? engine->began_at + options->max_time_ns : 0,
        .has_page_budget = options->max_pages > 0 && !engine->is_shared,
        .has_byte_budget = options->max_bytes > 0,
    };
    return wr_plan_job_add(loop->plan, &job);
}

static int make_loops(struct wr_engine *engine)
{
    int error = 0;
    uint32_t count = engine->options.loops;
    engine->loops = wr_alloc_array(engine->allocator, count, sizeof *engine->loops, _Alignof(struct wr_crawl_loop));
    engine->seeds = wr_alloc_array(engine->allocator, count, sizeof *engine->seeds, _Alignof(struct wr_url_batch));
    engine->loops_room = count;
    if (engine->loops == NULL || engine->seeds == NULL)
        return WEIR_E_NOMEM;
    engine->loop_count = count;
    for (uint32_t i = 0; i < engine->loop_count && error == 0; i++) {
        wr_url_batch_init(&engine->seeds[i], engine->allocator);
        error = wr_crawl_loop_open(&engine->loops[i], engine, i);
        if (error == 0)
            error = make_loop_plan(&engine->loops[i]);
        if (error == 0)
            error = add_plan_job(&engine->loops[i]);
        if (error == 0 && engine->is_shared)
            wr_plan_set_known_incomplete(engine->loops[i].plan); /* other processes find pages, too */
    }
    return error;
}

static int start_loops(struct wr_engine *engine)
{
    int error = 0, idle = WR_PHASE_IDLE;
    engine->running = engine->loop_count;
    for (uint32_t i = 0; i < engine->loop_count; i++) {
        if (error == 0)
            error = wr_crawl_loop_start_thread(&engine->loops[i]);
        if (!engine->loops[i].has_thread)
            wr_engine_loop_ended(engine);
    }
    /* Loops message each other, so the phase starts when all exist, unless the crawl has ended. */
    if (error == 0 && atomic_compare_exchange_strong(&engine->phase, &idle, WR_PHASE_RUNS))
        wr_engine_wake_loops(engine);
    return error;
}

/* ---- starting ---- */

/* The stored length of a resumed job's output. Later jobs may have appended to the same file. */
struct stored_output {
    const char *path;
    bool is_known;
    uint64_t bytes;
    int64_t last_job;
};

static void note_stored_output(void *context, const struct wr_store_row *row)
{
    struct stored_output *place = context;
    if (place->path == NULL || !wr_span_is(row->output.path, place->path))
        return;
    place->is_known = true;
    place->bytes = row->output.bytes > place->bytes ? row->output.bytes : place->bytes;
}

static void note_last_job(void *context, const struct wr_store_row *row)
{
    struct stored_output *place = context;
    place->last_job = row->job.id;
}

static int find_output_length(struct wr_engine *engine, int64_t job, struct stored_output *place)
{
    int error = wr_store_read(engine->store, &(struct wr_store_query){.what = WR_STORE_JOBS,
                                                                      .after = WR_STORE_FIRST_POSITION,
                                                                      .is_hasty = true,
                                                                      .row = note_last_job,
                                                                      .context = place});
    for (; error == 0 && job <= place->last_job; job++)
        error = wr_store_read(
            engine->store,
            &(struct wr_store_query){
                .what = WR_STORE_OUTPUTS, .job = job, .is_hasty = true, .row = note_stored_output, .context = place});
    return error;
}

/* Opens the output; of a resumed or joined job at its committed length. */
static int open_output(struct wr_engine *engine, const struct wr_engine_options *given)
{
    struct stored_output place = {.path = NULL};
    struct wr_output *output = &engine->output;
    int error = wr_output_open(output, given->out_path, engine->allocator);
    place.path = output->path;
    if (error == 0 && engine->job != 0 && output->is_file)
        error = find_output_length(engine, engine->job, &place);
    return error == 0 ? wr_output_begin(output, given->appends, place.is_known, place.bytes) : error;
}

static int record_output(struct wr_engine *engine)
{
    const struct wr_output *output = &engine->output;
    if (output->fd < 0)
        return 0;
    const struct wr_store_change change = {.kind = WR_STORE_OUTPUT,
                                           .output = {engine->job, wr_span_of(output->path), output->end}};
    return wr_store_post_now(engine->store, &change, 1);
}

static int set_up_engine(struct wr_engine *engine, const struct wr_engine_options *given)
{
    const struct wr_resolver_options names = {.allocator = engine->allocator,
                                              .clock = engine->clock,
                                              .lookup = given->lookup,
                                              .lookup_context = given->lookup_context};
    int error = wr_host_reports_new(engine);
    if (error == 0)
        error = wr_events_new(engine);
    if (error == 0)
        error = wr_resolver_new(&names, &engine->resolver);
    /* Joins before opening the output, which may be that job's. */
    if (error == 0 && engine->is_shared && given->resume_job == 0)
        error = wr_store_join_job(engine->store, given->settings, engine->earlier, &engine->job);
    if (error == 0)
        error = open_output(engine, given);
    if (error == 0 && given->log_path != NULL)
        error = wr_request_log_open(given->log_path, engine->allocator, &engine->log);
    if (error == 0)
        error = wr_archive_open(engine, given);
    if (error == 0 && engine->job == 0)
        error = wr_store_join_job(engine->store, given->settings, engine->earlier, &engine->job);
    if (error == 0)
        error = record_output(engine);
    if (error == 0)
        error = wr_archive_begin(engine);
    return error;
}

int wr_engine_start(struct wr_engine *engine, const struct wr_engine_options *given)
{
    int error = check_engine_options(engine, given);
    if (error != 0)
        return error;
    error = fill_engine_options(engine, given);
    if (error != 0)
        return error;
    engine->began_at = weir_clock_now(engine->clock);
    engine->job = given->resume_job;
    engine->earlier = given->earlier_job;
    wr_map_init(&engine->origins, engine->allocator, &engine->hash_key, (size_t)1 << 24);
    wr_ledger_init(&engine->ledger, given->max_pages > 0 ? given->max_pages : WR_LEDGER_UNLIMITED,
                   given->max_bytes > 0 ? given->max_bytes : WR_LEDGER_UNLIMITED, given->failure_threshold);
    error = set_up_engine(engine, given);
    if (error == 0)
        error = make_loops(engine);
    if (error == 0 && given->resume_job != 0)
        error = wr_job_resume(engine);
    if (error == 0)
        error = start_loops(engine);
    if (error != 0 && engine->loops != NULL)
        wr_engine_stop(engine);
    if (error != 0)
        wr_output_remove_new(&engine->output);
    if (error != 0 && engine->archive.file != NULL)
        wr_output_remove_new(engine->archive.file);
    return error;
}

/* ---- the end ---- */

void wr_engine_loop_ended(struct wr_engine *engine)
{
    (void)pthread_mutex_lock(&engine->lock);
    engine->running--;
    (void)pthread_cond_broadcast(&engine->changed);
    (void)pthread_mutex_unlock(&engine->lock);
}

bool wr_engine_wait(struct wr_engine *engine, int64_t timeout_ns)
{
    int64_t until = weir_clock_now(engine->clock) + timeout_ns;
    const struct timespec when = {(time_t)(until / WEIR_SECOND), (long)(until % WEIR_SECOND)};
    (void)pthread_mutex_lock(&engine->lock);
    while (engine->running > 0 && pthread_cond_timedwait(&engine->changed, &engine->lock, &when) == 0)
        continue;
    bool is_over = engine->running == 0;
    (void)pthread_mutex_unlock(&engine->lock);
    return is_over;
}

static void join_loops(struct wr_engine *engine)
{
    for (uint32_t i = 0; engine->loops != NULL && i < engine->loop_count; i++)
        if (engine->loops[i].has_thread) {
            (void)pthread_join(engine->loops[i].thread, NULL);
            engine->loops[i].has_thread = false;
        }
}

static void report_remaining_hosts(struct wr_engine *engine)
{
    struct wr_plan_host_report report;
    int64_t now = weir_clock_now(engine->clock);
    for (uint32_t i = 0; i < engine->loop_count; i++) {
        const struct wr_plan *plan = engine->loops[i].plan;
        const struct wr_plan_host *host;
        for (size_t cursor = 0; (host = wr_plan_host_next(plan, &cursor)) != NULL;) {
            wr_plan_host_report(plan, host, now, &report);
            wr_host_reports_add(engine, &report);
        }
    }
}

/* Reports the crawl as broken if the store could not record how the job ended. */
static void check_end_is_stored(struct wr_engine *engine)
{
    if (atomic_load(&engine->settling) == WR_JOB_END_STORED || engine->end == WR_END_BUDGET)
        return;
    engine->end = WR_END_BROKEN;
    wr_text_copy(engine->why, sizeof engine->why, "the store has no room to record how the job ended");
}

static void warn_of_dropped_lines(struct wr_engine *engine, uint64_t lines)
{
    char count[24];
    struct wr_buf buf;
    if (lines == 0)
        return;
    wr_buf_init_fixed(&buf, count, sizeof count);
    wr_buf_append_u64(&buf, lines);
    wr_engine_warn(engine, count, " lines of the log were dropped because writing was too slow");
}

void wr_engine_finish(struct wr_engine *engine, struct wr_engine_result *ret_result)
{
    join_loops(engine);
    (void)wr_job_store_end(engine); /* records the end of the job if no loop has */
    report_remaining_hosts(engine);
    wr_engine_stats_get(engine, &ret_result->stats);
    ret_result->failed = ret_result->stats.failed + engine->failed_before;
    struct wr_store_stats store;
    wr_store_stats_get(engine->store, &store);
    ret_result->round_trips = store.round_trips;
    wr_store_free(engine->store); /* stores what was posted; callbacks report failures */
    check_end_is_stored(engine);
    engine->store = NULL;
    warn_of_dropped_lines(engine, wr_request_log_close(engine->log));
    engine->log = NULL;
    ret_result->end = engine->end;
    ret_result->job = engine->job;
    memcpy(ret_result->failed_url, engine->failed_url, sizeof engine->failed_url);
    memcpy(ret_result->failed_why, engine->failed_why, sizeof engine->failed_why);
    wr_text_copy(ret_result->why, sizeof ret_result->why, engine->why);
}

void wr_engine_free(struct wr_engine *engine)
{
    if (engine == NULL)
        return;
    if (engine->loops != NULL)
        wr_engine_stop(engine);
    join_loops(engine);
    wr_store_free(engine->store);
    for (uint32_t i = 0; engine->loops != NULL && i < engine->loop_count; i++)
        wr_crawl_loop_close(&engine->loops[i]);
    for (uint32_t i = 0; engine->seeds != NULL && i < engine->loop_count; i++)
        wr_url_batch_release(&engine->seeds[i]);
    wr_free(engine->allocator, engine->loops, engine->loops_room * sizeof *engine->loops,
            _Alignof(struct wr_crawl_loop));
    wr_free(engine->allocator, engine->seeds, engine->loops_room * sizeof *engine->seeds,
            _Alignof(struct wr_url_batch));
    if (engine->resolver != NULL)
        wr_resolver_free(engine->resolver);
    (void)wr_request_log_close(engine->log);
    wr_host_reports_free(engine);
    wr_events_free(engine);
    wr_seed_origins_free(engine);
    wr_archive_close(engine);
    wr_output_close(&engine->output);
    for (size_t i = 0; i < WR_USER_HEADERS_MAX; i++)
        free(engine->header_lines[i]);
    free(engine->agent);
    free(engine->proxy);
    free(engine->ca_file);
    free(engine->settings);
    (void)pthread_cond_destroy(&engine->changed);
    (void)pthread_mutex_destroy(&engine->lock);
    (void)pthread_rwlock_destroy(&engine->origins_lock);
    wr_free(engine->allocator, engine, sizeof *engine, _Alignof(struct wr_engine));
}
