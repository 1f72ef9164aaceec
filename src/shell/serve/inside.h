/* SPDX-License-Identifier: MIT */
/* inside.h - what the files of the daemon know of each other.
 *
 * Each loop of the server has a desk: what is decided there, and who waits there. So deciding takes no lock but those
 * of the rulebook.
 */
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
    struct wr_heap waiters;         /* by when they are to be polled */
    bool has_told;                  /* that what a proxy says is ignored */
    bool has_told_foreign;          /* that a request was refused as another page's */
    bool has_told_unsaid;           /* that a trusted one does not say it, or twice */
    int64_t asked_at;               /* when the request that is being answered was read */
    bool is_answered_later;         /* ... which will not be now */
    atomic_int_fast64_t longest_ns; /* from the one to the other */
    uint32_t checks;
    struct wr_histogram check_times; /* of some of them */
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
    pthread_mutex_t lock; /* of reloads and what follows; loops take it, so it is never held while a file is written */
    struct wr_rulebook_settings *settings; /* room for reading; large */
    bool is_started, has_taken;
    struct wr_http_listen listens[WR_HTTP_LISTENS_MAX];
    int handover_peer; /* that is handed over to; -1: nobody (under the lock) */
    int handover_fd;
    pthread_t handover_thread;
    bool has_handover;
    atomic_bool is_handover_closing;
    atomic_bool is_handed; /* the next daemon has it all */
    /* the keeper: a thread that saves, and looks how it is */
    pthread_t keeper;
    pthread_cond_t wakes;
    bool has_keeper, is_ending;
    atomic_uint waiting;
    atomic_uint waiting_at[WR_HTTP_LISTENS_MAX]; /* of them, by where they came in */
    atomic_uint_fast64_t saves, saves_failed, lost;
    atomic_bool is_save_bad, is_reload_bad, is_store_bad;
    atomic_int failing; /* enum wr_serve_health, by what the rulebook said lately */
    uint64_t decided, failed;
    struct wr_serve_desk *desks[WR_HTTP_LOOPS_MAX];
};

static inline struct wr_serve_desk *wr_serve_desk_of(struct wr_serve *serve, const struct wr_http_exchange *exchange)
{
    return serve->desks[wr_http_loop_index(exchange->loop)];
}

/* ---- read.c ---- */

/* Reads the file into serve->settings. */
int wr_serve_read(struct wr_serve *serve, char *ret_why, size_t why_bytes);
/* Puts the file's name before what is wrong. */
void wr_serve_why_in(const struct wr_serve *serve, char *why, size_t why_bytes);

/* ---- check.c, api.c, admin.c, health.c, lounge.c, metrics.c ---- */

extern const struct wr_buckets wr_check_buckets;
void wr_serve_check(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);
/* False: there is no such path. */
bool wr_serve_api(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);
bool wr_serve_admin(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);
void wr_serve_health(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);
/* Makes serve->metrics. WEIR_E_NOMEM. */
int wr_serve_metrics_open(struct wr_serve *serve);

/* An object. */
void wr_append_verdict(struct wr_buf *buf, const struct wr_verdict *verdict);

/* The one object of the body, into desk->ask; false after a refusal. */
bool wr_serve_read_one(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);
/* A rule's name as C has it; false if it is none. */
bool wr_serve_name_of(struct wr_span rule, char ret_name[WEIR_RULE_NAME_MAX + 1]);

/* desk->verdict, as JSON. */
void wr_serve_reply_verdict(struct wr_serve_desk *desk, struct wr_http_exchange *exchange);

/* Stands in line; answers at once, or later. */
void wr_serve_acquire(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, const weir_request *request,
                      int64_t timeout_ns);
/* Who answers once desk->verdict is there. `baggage` is what was left with wr_serve_ask. */
typedef void wr_serve_reply(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, void *baggage);

enum wr_serve_asked {
    WR_ASKED_NOW,     /* desk->verdict is the answer */
    WR_ASKED_LATER,   /* `reply` will be called, or `drop` if the exchange is gone first */
    WR_ASKED_IN_VAIN, /* the exchange was refused, and is over */
};

struct wr_serve_order {
    const struct wr_turn_wish *wish;
    wr_serve_reply *reply;
    void (*drop)(struct wr_serve_desk *desk, void *baggage); /* NULL: there is none */
    void *baggage;
};

/* Decides where a store may have to be asked for it. */
enum wr_serve_asked wr_serve_ask(struct wr_serve_desk *desk, struct wr_http_exchange *exchange,
                                 const struct wr_serve_order *order);

/* What was read then has its answer. */
void wr_serve_note_answer(struct wr_serve_desk *desk, int64_t asked_at);

/* Those whose time has come. */
void wr_serve_lounge_look(struct wr_serve_desk *desk, struct wr_http_loop *loop);

/* ---- serve.c ---- */

void wr_serve_tell(struct wr_serve *serve, const char *what, const char *why);

#endif
