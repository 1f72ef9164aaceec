/* SPDX-License-Identifier: MIT */
/* serve_internal.h - internal declarations shared by the files of the daemon.
 *
 * Each loop of the HTTP server has a worker (wr_serve_worker) with the buffers and waiters of that
 * loop. A decision therefore takes no locks except those of the rulebook. */
#ifndef WR_SERVE_DAEMON_SERVE_INTERNAL_H
#define WR_SERVE_DAEMON_SERVE_INTERNAL_H

#include "base/buf.h"
#include "base/heap.h"
#include "base/histogram.h"
#include "serve/daemon/api_request.h"
#include "serve/daemon/serve.h"
#include "watch/metrics/metrics_page.h"

#include <pthread.h>
#include <stdatomic.h>

struct wr_serve_worker {
    struct wr_serve *serve;
    struct wr_heap waiters;    /* heap of struct decision_waiter, by the time of the next poll */
    bool has_warned_untrusted; /* already logged that an untrusted proxy's fields are ignored */
    bool has_warned_foreign;   /* already logged that a request of another origin was refused */
    /* already logged that a trusted proxy lacks or repeats a field */
    bool has_warned_fields;
    int64_t asked_at;               /* time at which the current request was read, ns */
    bool is_answered_later;         /* the current request gets its response later */
    atomic_int_fast64_t longest_ns; /* longest time from request to response, ns */
    uint32_t checks;
    struct wr_histogram check_times; /* durations of every 16th /check */
    struct wr_api_reader reader;
    struct wr_api_request ask;
    struct wr_verdict verdict;
    struct wr_buf out;
};

struct wr_serve {
    struct wr_serve_options options;
    const weir_allocator *allocator;
    struct wr_http_server *http;
    struct wr_rules *book;
    struct wr_metrics_page *metrics;
    /* guards reloads and the members below; never held while a file is written, as loops take it */
    pthread_mutex_t lock;
    struct wr_rules_settings *settings; /* buffer for reading the file; large */
    bool is_started, has_taken_over;
    struct wr_http_listen_options listens[WR_HTTP_LISTENS_MAX];
    int handover_peer; /* socket of the new daemon during a handover; -1: none; guarded by `lock` */
    int handover_fd;
    pthread_t handover_thread;
    bool has_handover;
    atomic_bool is_handover_closing;
    atomic_bool is_handed_over; /* the new daemon has taken over */
    /* the keeper: a thread that saves the state and updates the health */
    pthread_t keeper;
    pthread_cond_t wakes;
    bool has_keeper, is_ending;
    atomic_uint waiting;
    /* waiting requests of each listener; included in `waiting` */
    atomic_uint waiting_at[WR_HTTP_LISTENS_MAX];
    atomic_uint_fast64_t saves, saves_failed, lost;
    atomic_bool is_save_bad, is_reload_bad, is_store_bad;
    atomic_int failing; /* enum wr_serve_health, from the latest decisions */
    uint64_t decided, failed;
    struct wr_serve_worker *workers[WR_HTTP_LOOPS_MAX];
};

static inline struct wr_serve_worker *wr_serve_worker_of(struct wr_serve *serve,
                                                         const struct wr_http_exchange *exchange)
{
    return serve->workers[wr_http_loop_index(exchange->loop)];
}

/* ---- read_config.c ---- */

/* Reads the configuration file into serve->settings. */
int wr_serve_read_config(struct wr_serve *serve, char *ret_why, size_t why_bytes);
/* Prepends the file's name to the error message `why`. */
void wr_serve_prepend_file(const struct wr_serve *serve, char *why, size_t why_bytes);

/* ---- forward_auth.c, api.c, admin.c, health.c, waiters.c, serve_metrics.c ---- */

extern const struct wr_buckets wr_check_buckets;
void wr_serve_check(struct wr_serve_worker *worker, struct wr_http_exchange *exchange);
/* Handles a call of the API. Returns false if there is no such path. */
bool wr_serve_api(struct wr_serve_worker *worker, struct wr_http_exchange *exchange);
bool wr_serve_admin(struct wr_serve_worker *worker, struct wr_http_exchange *exchange);
void wr_serve_health(struct wr_serve_worker *worker, struct wr_http_exchange *exchange);
/* Creates serve->metrics. Returns WEIR_E_NOMEM on failure. */
int wr_serve_metrics_open(struct wr_serve *serve);

/* Appends the verdict as a JSON object. */
void wr_append_verdict_json(struct wr_buf *buf, const struct wr_verdict *verdict);

/* Reads the body, which must be one object, into worker->ask. Returns false after it refused the
 * request. */
bool wr_serve_read_one_object(struct wr_serve_worker *worker, struct wr_http_exchange *exchange);
/* Copies a rule's name to a C string. Returns false if it cannot be a name. */
bool wr_serve_copy_rule_name(struct wr_span rule, char ret_name[WEIR_RULE_NAME_MAX + 1]);

/* Sends worker->verdict as JSON. */
void wr_serve_reply_verdict(struct wr_serve_worker *worker, struct wr_http_exchange *exchange);

/* Waits in the queue of the request's keys for at most `timeout_ns`. Responds at once, or later. */
void wr_serve_acquire(struct wr_serve_worker *worker, struct wr_http_exchange *exchange, const weir_request *request,
                      int64_t timeout_ns);
/* Sends the response when worker->verdict is ready. `reply_context` is that of the
 * wr_serve_deferred_reply. */
typedef void wr_serve_reply_function(struct wr_serve_worker *worker, struct wr_http_exchange *exchange,
                                     void *reply_context);

enum wr_serve_ask_result {
    WR_SERVE_DECIDED_NOW,   /* worker->verdict is ready */
    WR_SERVE_DECIDED_LATER, /* `reply` will be called, or `drop` if the exchange ends first */
    WR_SERVE_REFUSED,       /* the request was refused, and the exchange is over */
};

struct wr_serve_deferred_reply {
    const struct wr_rules_request *rules_request;
    wr_serve_reply_function *reply;
    void (*drop)(struct wr_serve_worker *worker, void *reply_context); /* frees `reply_context`; may be NULL */
    void *reply_context;
};

/* Decides a request that may need the store of shared limits. */
enum wr_serve_ask_result wr_serve_ask_store(struct wr_serve_worker *worker, struct wr_http_exchange *exchange,
                                            const struct wr_serve_deferred_reply *deferred);

/* Records the time from `asked_at` until now, if it is the longest so far. */
void wr_serve_record_answer_time(struct wr_serve_worker *worker, int64_t asked_at);

/* Polls the waiters whose time has come. */
void wr_serve_poll_waiters(struct wr_serve_worker *worker, struct wr_http_loop *loop);

/* ---- serve.c ---- */

void wr_serve_log(struct wr_serve *serve, const char *what, const char *why);

#endif
