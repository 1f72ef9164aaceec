/* SPDX-License-Identifier: MIT */
/* serve.c - the daemon: creates and starts it, routes requests, saves its state, and stops it. */
#include "serve/daemon/daemon_handover.h"

#include "base/alloc.h"
#include "base/error.h"
#include "limiter/memory/memory.h"

#include <time.h>
#include <unistd.h>

#define KEEPER_INTERVAL_S 1
#define OUT_MAX ((size_t)1 << 20) /* bytes of one response of the API */

void wr_serve_options_init(struct wr_serve_options *ret_options)
{
    *ret_options = (struct wr_serve_options){
        .denied_status = 403,
        .fields = WEIR_FIELD_RETRY_AFTER | WEIR_FIELDS_RATELIMIT,
        .save_ns = 30 * WEIR_SECOND,
        .waiting_max = 10000,
        .timeout_max_ns = WEIR_MINUTE,
    };
    wr_http_server_options_init(&ret_options->http);
}

void wr_serve_log(struct wr_serve *serve, const char *what, const char *why)
{
    char line[WR_CONFIG_WHY_BYTES + 256];
    struct wr_buf buf;
    if (serve->options.tell == NULL)
        return;
    wr_buf_init_fixed(&buf, line, sizeof line);
    wr_buf_append_string(&buf, what);
    if (why != NULL && why[0] != '\0') {
        wr_buf_append_char(&buf, ' ');
        wr_buf_append_string(&buf, why);
    }
    if (!serve->options.tell(serve->options.context, line))
        (void)atomic_fetch_add(&serve->lost, 1);
}

/* ---- requests ---- */

static bool path_begins(struct wr_span path, const char *word)
{
    size_t bytes = strlen(word);
    return path.bytes >= bytes && memcmp(path.data, word, bytes) == 0;
}

void wr_serve_record_answer_time(struct wr_serve_worker *worker, int64_t asked_at)
{
    int64_t took_ns = weir_clock_now(weir_clock_fast()) - asked_at;
    if (took_ns > atomic_load_explicit(&worker->longest_ns, memory_order_relaxed))
        atomic_store_explicit(&worker->longest_ns, took_ns, memory_order_relaxed);
}

/* Handles requests for decisions. Returns false for other paths. */
static bool answer_decision(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    int64_t asked_at = weir_clock_now(weir_clock_fast());
    worker->asked_at = asked_at;
    worker->is_answered_later = false;
    worker->verdict.origin = exchange->listener;
    if (wr_span_is(exchange->path, "/check"))
        wr_serve_check(worker, exchange);
    else if (!path_begins(exchange->path, "/v1/") || !wr_serve_api(worker, exchange))
        return false;
    if (!worker->is_answered_later)
        wr_serve_record_answer_time(worker, asked_at);
    return true;
}

static void answer_daemon_request(void *context, struct wr_http_exchange *exchange)
{
    struct wr_serve *serve = context;
    struct wr_serve_worker *worker = wr_serve_worker_of(serve, exchange);
    if (answer_decision(worker, exchange) || (path_begins(exchange->path, "/v1/") && wr_serve_admin(worker, exchange)))
        return;
    if (wr_span_is(exchange->path, "/healthz"))
        wr_serve_health(worker, exchange);
    else if (wr_span_is(exchange->path, "/metrics"))
        wr_metrics_page_answer(serve->metrics, exchange);
    else if (serve->options.page == NULL || !serve->options.page(serve->options.context, exchange))
        wr_http_refuse(exchange, 404, "there is no such path");
}

/* Recognizes the query of a trusted proxy. Pages of other origins cannot send these fields. */
static bool is_proxy_request(void *context, const struct wr_http_exchange *exchange)
{
    static const char *const fields[] = {"x-original-uri", "x-forwarded-uri"};
    struct wr_serve *serve = context;
    struct wr_span value;
    uint32_t cursor = 0;
    if (!wr_span_is(exchange->path, "/check") || !wr_rules_peer_is_trusted(serve->book, exchange->peer))
        return false;
    bool has_first = wr_request_find(exchange->request, fields[0], &cursor, &value);
    cursor = 0;
    return has_first || wr_request_find(exchange->request, fields[1], &cursor, &value);
}

/* Logs the first refusal only. A proxy may use a host name that weir does not know, which its
 * administrator should learn. */
static void warn_foreign(void *context, const struct wr_http_exchange *exchange, const char *why)
{
    struct wr_serve *serve = context;
    struct wr_serve_worker *worker = wr_serve_worker_of(serve, exchange);
    if (!worker->has_warned_foreign)
        wr_serve_log(serve, "refused a request that a page of another site may have sent:", why);
    worker->has_warned_foreign = true;
}

static void on_http_alarm(void *context, struct wr_http_loop *loop)
{
    struct wr_serve *serve = context;
    wr_serve_poll_waiters(serve->workers[wr_http_loop_index(loop)], loop);
}

/* ---- the keeper ---- */

static void report_store_outage(struct wr_serve *serve, const struct wr_rules_view *view)
{
    bool is_bad = view->has_store && view->store.wire.down;
    if (atomic_exchange(&serve->is_store_bad, is_bad) == is_bad)
        return;
    if (!is_bad) {
        wr_serve_log(serve, "the store of shared limits is back", NULL);
        return;
    }
    char why[sizeof view->store.wire.why + 64];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, why, sizeof why);
    wr_buf_append_string(&buf, view->store.wire.why);
    wr_buf_append_string(&buf, "; until it can be, on_outage of each rule applies");
    wr_serve_log(serve, "the store of shared limits cannot be reached:", why);
}

/* Derives the health from the decisions since the last call. */
static void update_health(struct wr_serve *serve)
{
    struct wr_rules_view view;
    uint64_t decided = 0;
    wr_rules_view_get(serve->book, &view);
    report_store_outage(serve, &view);
    for (int i = 0; i < WR_CAUSE_COUNT; i++)
        decided += view.causes[i];
    uint64_t failed = view.causes[WR_CAUSE_FAILED] + view.causes[WR_CAUSE_FAILED_OPEN];
    uint64_t now = decided - serve->decided, bad = failed - serve->failed;
    serve->decided = decided;
    serve->failed = failed;
    /* Without decisions the health is OK: an instance that was taken out of service as unhealthy
     * must be able to return. */
    atomic_store(&serve->failing, bad == 0 ? WR_SERVE_OK : 2 * bad < now ? WR_SERVE_DEGRADED : WR_SERVE_UNHEALTHY);
}

/* Saves the state. Logs a failure if the previous save succeeded, or if `is_last`. */
static int save_state(struct wr_serve *serve, bool is_last)
{
    char why[WR_CONFIG_WHY_BYTES] = "";
    bool was_bad = atomic_load(&serve->is_save_bad);
    int error = serve->options.state == NULL ? 0 : wr_serve_save(serve, why, sizeof why);
    if (error != 0 && (!was_bad || is_last))
        wr_serve_log(serve, "the state could not be saved:", why);
    return error;
}

static void wait_keeper_interval(struct wr_serve *serve)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += KEEPER_INTERVAL_S;
    (void)pthread_mutex_lock(&serve->lock);
    if (!serve->is_ending)
        (void)pthread_cond_timedwait(&serve->wakes, &serve->lock, &until);
    (void)pthread_mutex_unlock(&serve->lock);
}

static bool is_ending(struct wr_serve *serve)
{
    (void)pthread_mutex_lock(&serve->lock);
    bool ends = serve->is_ending;
    (void)pthread_mutex_unlock(&serve->lock);
    return ends;
}

static void *run_keeper(void *context)
{
    struct wr_serve *serve = context;
    int64_t saved_at = weir_clock_now(weir_clock_monotonic());
    while (!is_ending(serve)) {
        wait_keeper_interval(serve);
        wr_rules_tick(serve->book);
        update_health(serve);
        int64_t now = weir_clock_now(weir_clock_monotonic());
        if (now - saved_at < serve->options.save_ns || atomic_load(&serve->is_handed_over))
            continue;
        saved_at = now;
        (void)save_state(serve, false);
    }
    return NULL;
}

static int start_keeper(struct wr_serve *serve)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&serve->wakes, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    serve->has_keeper = pthread_create(&serve->keeper, NULL, run_keeper, serve) == 0;
    return serve->has_keeper ? 0 : WEIR_E_SYSTEM;
}

static void stop_keeper(struct wr_serve *serve)
{
    if (!serve->has_keeper)
        return;
    (void)pthread_mutex_lock(&serve->lock);
    serve->is_ending = true;
    (void)pthread_cond_signal(&serve->wakes);
    (void)pthread_mutex_unlock(&serve->lock);
    (void)pthread_join(serve->keeper, NULL);
    (void)pthread_cond_destroy(&serve->wakes);
    serve->has_keeper = false;
}

/* ---- reload and save ---- */

int wr_serve_reload(struct wr_serve *serve, char *ret_why, size_t why_bytes)
{
    (void)pthread_mutex_lock(&serve->lock);
    int error = wr_serve_read_config(serve, ret_why, why_bytes);
    if (error != 0)
        wr_rules_count_failed_reload(serve->book);
    else if ((error = wr_rules_reload(serve->book, serve->settings, ret_why, why_bytes)) != 0)
        wr_serve_prepend_file(serve, ret_why, why_bytes);
    atomic_store(&serve->is_reload_bad, error != 0);
    (void)pthread_mutex_unlock(&serve->lock);
    wr_serve_log(serve, error == 0 ? "reloaded" : "not reloaded, the old rules stay in force:",
                 error == 0 ? serve->options.config : ret_why);
    return error;
}

int wr_serve_save(struct wr_serve *serve, char *ret_why, size_t why_bytes)
{
    int error = wr_rules_save_keys(serve->book, serve->options.state, ret_why, why_bytes);
    (void)atomic_fetch_add(error == 0 ? &serve->saves : &serve->saves_failed, 1);
    atomic_store(&serve->is_save_bad, error != 0);
    return error;
}

/* ---- start ---- */

static int make_workers(struct wr_serve *serve)
{
    for (uint32_t i = 0; i < serve->options.http.loops && i < WR_HTTP_LOOPS_MAX; i++) {
        struct wr_serve_worker *worker = wr_alloc(serve->allocator, sizeof *worker, _Alignof(struct wr_serve_worker));
        if (worker == NULL)
            return WEIR_E_NOMEM;
        serve->workers[i] = worker;
        worker->serve = serve;
        wr_heap_init(&worker->waiters, serve->allocator, (size_t)serve->options.waiting_max + 1);
        wr_buf_init(&worker->out, serve->allocator, OUT_MAX);
    }
    return 0;
}

static int open_rules(struct wr_serve *serve, char *ret_why, size_t why_bytes)
{
    const struct wr_rules_options options = {.allocator = serve->allocator,
                                             .origins = (uint32_t)serve->options.http.listen_count};
    int error = wr_serve_read_config(serve, ret_why, why_bytes);
    if (error == 0 && (error = wr_rules_new(serve->settings, &options, &serve->book, ret_why, why_bytes)) != 0)
        wr_serve_prepend_file(serve, ret_why, why_bytes);
    return error;
}

static int write_start_error(int error, char *ret_why, size_t why_bytes)
{
    struct wr_buf buf;
    if (error == 0)
        return 0;
    wr_buf_init_fixed(&buf, ret_why, why_bytes);
    wr_buf_append_string(&buf, wr_error_message(error));
    return error;
}

static int open_http(struct wr_serve *serve, char *ret_why, size_t why_bytes)
{
    struct wr_http_server_options http = serve->options.http;
    http.answer = answer_daemon_request;
    http.speaks = is_proxy_request;
    http.foreign = warn_foreign;
    http.alarm = on_http_alarm;
    http.context = serve;
    return write_start_error(wr_http_server_new(&http, &serve->http), ret_why, why_bytes);
}

/* Opens the listening sockets and loads the state, or takes both over from a running daemon. */
static int open_sockets(struct wr_serve *serve, char *ret_why, size_t why_bytes)
{
    struct wr_serve_options *options = &serve->options;
    int before = -1, error = 0;
    if (options->http.listen_count > WR_HTTP_LISTENS_MAX)
        return WEIR_E_INVAL;
    memcpy(serve->listens, options->http.listens, options->http.listen_count * sizeof serve->listens[0]);
    options->http.listens = serve->listens;
    if (options->handover != NULL)
        error = wr_handover_begin(serve, serve->listens, options->http.listen_count, &before);
    if (error == WEIR_E_ABSENT)
        error = 0;
    if (error != 0)
        return write_start_error(error, ret_why, why_bytes);
    error = open_http(serve, ret_why, why_bytes);
    serve->has_taken_over = before >= 0;
    if (error == 0 && before >= 0)
        return wr_handover_take(serve, before, ret_why, why_bytes);
    if (before >= 0)
        (void)close(before);
    if (error == 0 && options->state != NULL)
        error = wr_rules_load_keys(serve->book, options->state, ret_why, why_bytes) == 0 ? 0 : WEIR_E_SYSTEM;
    return error;
}

int wr_serve_new(const struct wr_serve_options *options, struct wr_serve **ret_serve, char *ret_why, size_t why_bytes)
{
    const weir_allocator *allocator = wr_allocator_or_system(options->http.allocator);
    struct wr_serve *serve = wr_alloc(allocator, sizeof *serve, _Alignof(struct wr_serve));
    if (serve == NULL)
        return WEIR_E_NOMEM;
    serve->options = *options;
    serve->allocator = allocator;
    (void)pthread_mutex_init(&serve->lock, NULL);
    serve->settings = wr_alloc(allocator, sizeof *serve->settings, _Alignof(struct wr_rules_settings));
    int error = serve->settings == NULL ? WEIR_E_NOMEM : open_rules(serve, ret_why, why_bytes);
    if (error == 0)
        error = make_workers(serve);
    if (error == 0)
        error = wr_serve_metrics_open(serve);
    if (error == 0)
        error = open_sockets(serve, ret_why, why_bytes);
    if (error == 0)
        *ret_serve = serve;
    else
        wr_serve_free(serve);
    return error;
}

int wr_serve_start(struct wr_serve *serve)
{
    int error = start_keeper(serve);
    if (error == 0)
        error = wr_http_server_start(serve->http);
    serve->is_started = error == 0;
    if (error == 0 && serve->options.handover != NULL)
        error = wr_handover_open(serve);
    return error;
}

/* ---- stop ---- */

int wr_serve_stop(struct wr_serve *serve, int64_t grace_ns)
{
    int error = 0;
    wr_handover_close(serve);
    wr_http_server_stop(serve->http, grace_ns);
    stop_keeper(serve);
    /* no more decisions follow, so this state is final */
    if (serve->is_started && !atomic_load(&serve->is_handed_over))
        error = save_state(serve, true);
    serve->is_started = false;
    return error;
}

void wr_serve_free(struct wr_serve *serve)
{
    if (serve == NULL)
        return;
    if (serve->http != NULL)
        (void)wr_serve_stop(serve, 0);
    wr_http_server_free(serve->http);
    wr_metrics_page_free(serve->metrics);
    for (uint32_t i = 0; i < WR_HTTP_LOOPS_MAX; i++) {
        struct wr_serve_worker *worker = serve->workers[i];
        if (worker == NULL)
            continue;
        wr_heap_release(&worker->waiters);
        wr_buf_release(&worker->out);
        wr_free(serve->allocator, worker, sizeof *worker, _Alignof(struct wr_serve_worker));
    }
    wr_rules_free(serve->book);
    wr_free(serve->allocator, serve->settings, sizeof *serve->settings, _Alignof(struct wr_rules_settings));
    (void)pthread_mutex_destroy(&serve->lock);
    wr_free(serve->allocator, serve, sizeof *serve, _Alignof(struct wr_serve));
}

bool wr_serve_has_taken_over(const struct wr_serve *serve)
{
    return serve->has_taken_over;
}

struct wr_http_server *wr_serve_http(struct wr_serve *serve)
{
    return serve->http;
}

struct wr_rules *wr_serve_rules(struct wr_serve *serve)
{
    return serve->book;
}
