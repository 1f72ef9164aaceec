/* SPDX-License-Identifier: MIT */
/* inside.h - internal declarations shared by the files of the daemon.
 *
 * Each loop of the HTTP server has a worker (wr_serve_desk) with the buffers and waiters of that
 * loop. A decision therefore takes no locks except those of the rulebook. */
#ifndef WR_SHELL_SERVE_INSIDE_H
#define WR_SHELL_SERVE_INSIDE_H

#include "base/buf.h"
#include "base/heap.h"
#include "base/histogram.h"
#include "shell/metrics/page.h"
#include "shell/serve/ask.h"
#include "shell/serve/serve.h"

#include <pthread.h>
#include <stdatomic.h>

struct wr_serve_desk {
    struct wr_serve *serve;
    struct wr_heap waiters; /* heap of struct waiter, by the time of the next poll */
    bool has_told;          /* already logged that an untrusted proxy's fields are ignored */
    bool has_told_foreign;  /* already logged that a request of another origin was refused */
    /* already logged that a trusted proxy lacks or repeats a field */
    bool has_told_unsaid;
    int64_t asked_at;               /* time at which the current request was read, ns */
    bool is_answered_later;         /* the current request gets its response later */
    atomic_int_fast64_t longest_ns; /* longest time from request to response, ns */
    uint32_t checks;
    struct wr_histogram check_times; /* durations of every 16th /check */
    struct wr_ask_reader reader;
    struct wr_ask ask;
    struct wr_verdict verdict;
    struct wr_buf out;
};

struct wr_serve {
    struct wr_serve_options options;
    const weir_allocator *allocator;
    struct wr_http *http;
    struct wr_rulebook *book;
    struct wr_metrics_page *metrics;
    /* guards reloads and the members below; never held while a file is written, as loops take it */
    pthread_mutex_t lock;
    struct wr_rulebook_settings *settings; /* buffer for reading the file; large */
    bool is_started, has_taken;
    struct wr_http_listen listens[WR_HTTP_LISTENS_MAX];
    int handover_peer; /* socket of the new daemon during a handover; -1: none; guarded by `lock` */
    int handover_fd;
    pthread_t handover_thread;
    bool has_handover;
    atomic_bool is_handover_closing;
    atomic_bool is_handed; /* the new daemon has taken over */
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
    struct wr_serve_desk *desks[WR_HTTP_LOOPS_MAX];
};

static inline struct wr_serve_desk *wr_serve_desk_of(struct wr_serve *serve, const struct wr_http_exchange *exchange)
{
    return serve->desks[wr_http_loop_index(exchange->loop)];
}

/* ---- read.c ---- */

/* Reads the configuration file into serve->settings. */
int wr_serve_read(struct wr_serve *serve, char *ret_why, size_t why_bytes);
/* Prepends the file's name to the error message `why`. */
void wr_serve_why_in(const struct wr_serve *serve, char *why, size_t why_bytes);

/* ---- check.c, api.c, admin.c, health.c, lounge.c, metrics.c ---- */

extern const struct wr_buckets wr_check_buckets;
void wr_serve_check(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);
/* Handles a call of the API. Returns false if there is no such path. */
bool wr_serve_api(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);
bool wr_serve_admin(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);
void wr_serve_health(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);
/* Creates serve->metrics. Returns WEIR_E_NOMEM on failure. */
int wr_serve_metrics_open(struct wr_serve *serve);

/* Appends the verdict as a JSON object. */
void wr_append_verdict(struct wr_buf *buf, const struct wr_verdict *verdict);

/* Reads the body, which must be one object, into desk->ask. Returns false after it refused the
 * request. */
bool wr_serve_read_one(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);
/* Copies a rule's name to a C string. Returns false if it cannot be a name. */
bool wr_serve_name_of(struct wr_span rule, char ret_name[WEIR_RULE_NAME_MAX + 1]);

/* Sends desk->verdict as JSON. */
void wr_serve_reply_verdict(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);

/* Waits in the queue of the request's keys for at most `timeout_ns`. Responds at once, or later. */
void wr_serve_acquire(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, const weir_request *request,
                      int64_t timeout_ns);
/* Sends the response when desk->verdict is ready. `baggage` is that of the wr_serve_order. */
typedef void wr_serve_reply(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, void *baggage);

enum wr_serve_asked {
    WR_ASKED_NOW,     /* desk->verdict is ready */
    WR_ASKED_LATER,   /* `reply` will be called, or `drop` if the exchange ends first */
    WR_ASKED_IN_VAIN, /* the request was refused, and the exchange is over */
};

struct wr_serve_order {
    const struct wr_turn_wish *wish;
    wr_serve_reply *reply;
    void (*drop)(struct wr_serve_desk *desk, void *baggage); /* frees `baggage`; may be NULL */
    void *baggage;
};

/* Decides a request that may need the store of shared limits. */
enum wr_serve_asked wr_serve_ask(struct wr_serve_desk *desk, struct wr_http_exchange *exchange,
                                 const struct wr_serve_order *order);

/* Records the time from `asked_at` until now, if it is the longest so far. */
void wr_serve_note_answer(struct wr_serve_desk *desk, int64_t asked_at);

/* Polls the waiters whose time has come. */
void wr_serve_lounge_look(struct wr_serve_desk *desk, struct wr_http_loop *loop);

/* ---- serve.c ---- */

void wr_serve_tell(struct wr_serve *serve, const char *what, const char *why);

#endif
