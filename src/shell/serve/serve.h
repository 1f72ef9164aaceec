/* SPDX-License-Identifier: MIT */
/* serve.h - the daemon: a rulebook behind an HTTP server.
 *
 *     wr_serve_options_init(&options);
 *     options.config = "weir.yaml", options.listens = …
 *     error = wr_serve_new(&options, &serve, why, sizeof why);      reads the rules, puts state back, listens
 *     error = wr_serve_start(serve);
 *     wr_serve_reload(serve, why, sizeof why);                      on SIGHUP
 *     wr_serve_stop(serve, grace_ns);                               answers what it has, keeps its state
 *     wr_serve_free(serve);
 *
 * With options.handover a daemon that runs hands over to one that is started: no request is lost, and none is decided
 * by both (handover.h).
 *
 *     GET  /check            forward-auth: of nginx, Caddy, Traefik, HAProxy             check.c
 *     POST /v1/try …         a JSON API                                                  api.c
 *     POST /v1/admin/…       with a token                                                admin.c
 *     GET  /healthz          how it is                                                   health.c
 *     GET  /metrics          its numbers, for Prometheus                                 metrics.c
 *
 * docs/internals/serve.md tells more; contrib/openapi.yaml lists all of it.
 *
 * Threads: reload, stop and the figures from any thread, but for the server's own.
 */
#ifndef WR_SHELL_SERVE_SERVE_H
#define WR_SHELL_SERVE_SERVE_H

#include "shell/http/http.h"
#include "shell/rulebook/rulebook.h"

#define WR_SERVE_BATCH_MAX 256 /* decisions in one request */

struct wr_serve;

struct wr_serve_options {
    const char *config;            /* the file with `rules` and `admission` */
    struct wr_http_options http;   /* without answer, speaks, foreign, alarm and context */
    int denied_status;             /* of /check: 403 as nginx wants it (default), or 429; ?deny=429 says so for one */
    unsigned fields;               /* weir_field: what answers of /check tell; default RETRY_AFTER and RATELIMIT */
    const char *token;             /* for admin calls; NULL: there are none */
    const char *secret;            /* that of admission; NULL: what its file says */
    const char *store;             /* the URL of admission's store; NULL: what its file says */
    const char *state;             /* a file for what must outlive us; NULL: none */
    int64_t save_ns;               /* how often it is written; default 30 s */
    const char *handover;          /* a socket at which all is handed over to the next daemon; NULL: none */
    void (*handed)(void *context); /* that has happened: stop */
    uint32_t waiting_max;          /* acquires that wait at a time, an equal part for each listener; default 10000 */
    int64_t timeout_max_ns;        /* of an acquire; default 1 min */
    /* What happened, in one line; from any thread, and those that decide must not wait here. False: it is lost. May be
     * NULL. */
    bool (*tell)(void *context, const char *line);
    /* Other paths: true if it has answered, or will. May be NULL. */
    bool (*page)(void *context, struct wr_http_exchange *exchange);
    void *context;
};

void wr_serve_options_init(struct wr_serve_options *ret_options);

/* WEIR_E_INVAL, WEIR_E_SYSTEM, WEIR_E_NOMEM; `ret_why` says what is wrong and what would be right. */
int wr_serve_new(const struct wr_serve_options *options, struct wr_serve **ret_serve, char *ret_why, size_t why_bytes);
int wr_serve_start(struct wr_serve *serve);

/* Reads the file anew. If that fails the old rules stay in force, and `ret_why` says why. */
int wr_serve_reload(struct wr_serve *serve, char *ret_why, size_t why_bytes);

/* Writes the state file, if there is one. WEIR_E_SYSTEM. Not after stop, which does it itself. */
int wr_serve_save(struct wr_serve *serve, char *ret_why, size_t why_bytes);

/* WEIR_E_SYSTEM, WEIR_E_NOMEM: the state could not be saved, which it has told. */
int wr_serve_stop(struct wr_serve *serve, int64_t grace_ns);
/* NULL is fine. */
void wr_serve_free(struct wr_serve *serve);

/* Whether another daemon has handed over to this one. */
bool wr_serve_has_taken(const struct wr_serve *serve);

struct wr_http *wr_serve_http(struct wr_serve *serve);
struct wr_rulebook *wr_serve_book(struct wr_serve *serve);

/* ---- how it is ---- */

enum wr_serve_health {
    WR_SERVE_OK,
    WR_SERVE_DEGRADED,
    WR_SERVE_UNHEALTHY
};

struct wr_serve_view {
    enum wr_serve_health health;
    const char *why;  /* "" if it is well */
    uint64_t waiting; /* acquires */
    uint64_t saves, saves_failed;
    uint64_t lost;      /* lines that could not be told */
    bool is_reload_bad; /* the last one */
};

void wr_serve_view_get(struct wr_serve *serve, struct wr_serve_view *ret_view);

/* "ok", "degraded", "unhealthy" */
const char *wr_serve_health_name(enum wr_serve_health health);

#endif
