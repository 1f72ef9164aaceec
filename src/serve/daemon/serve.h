/* SPDX-License-Identifier: MIT */
/* serve.h - the daemon: a rulebook behind an HTTP server.
 *
 *     wr_serve_options_init(&options);
 *     options.config = "weir.yaml", options.http.listens = ...
 *     error = wr_serve_new(&options, &serve, why, sizeof why);    reads rules and state, listens
 *     error = wr_serve_start(serve);
 *     wr_serve_reload(serve, why, sizeof why);                    on SIGHUP
 *     wr_serve_stop(serve, grace_ns);                             finishes requests, saves state
 *     wr_serve_free(serve);
 *
 * With options.handover, a running daemon hands over to a new one: no request is lost, and none is
 * decided by both (daemon_handover.h).
 *
 *     GET  /check            forward-auth for nginx, Caddy, Traefik, HAProxy             forward_auth.c
 *     POST /v1/try ...       the JSON API                                                api.c
 *     POST /v1/admin/...     admin calls; require a token                                admin.c
 *     GET  /healthz          health                                                      health.c
 *     GET  /metrics          metrics for Prometheus                                      serve_metrics.c
 *
 * docs/internals/serve.md explains the design; contrib/openapi.yaml lists all calls.
 *
 * Threads: call reload, stop and the statistics in any thread except the server's own.
 */
#ifndef WR_SERVE_DAEMON_SERVE_H
#define WR_SERVE_DAEMON_SERVE_H

#include "serve/rules/rules.h"
#include "serve/server/http_server.h"

#define WR_SERVE_BATCH_MAX 256 /* maximum number of decisions in one request */

struct wr_serve;

struct wr_serve_options {
    const char *config; /* the file with the sections `rules` and `admission` */
    /* HTTP options; answer, speaks, foreign, alarm and context are ignored */
    struct wr_http_server_options http;
    /* for /check: 403 (default, as nginx needs) or 429; ?deny= overrides it */
    int denied_status;
    /* weir_field bits, for /check; default RETRY_AFTER and RATELIMIT */
    unsigned fields;
    const char *token;             /* token for admin calls; NULL: no admin calls */
    const char *secret;            /* secret of token: keys; NULL: that of the file */
    const char *store;             /* URL of the store of shared limits; NULL: that of the file */
    const char *state;             /* path of the state file; NULL: the state is not saved */
    int64_t save_ns;               /* interval between saves; default 30 s */
    const char *handover;          /* socket path for handover to a new daemon; NULL: none */
    void (*handed)(void *context); /* called after a handover: the program must stop */
    /* limit of waiting acquires, shared by listeners; default 10000 */
    uint32_t waiting_max;
    int64_t timeout_max_ns; /* limit of an acquire's timeout; default 1 min */
    /* Logs one line. Called in any thread; must not block, as loops call it. Returns false if the
     * line is lost. May be NULL. */
    bool (*tell)(void *context, const char *line);
    /* Handles other paths. Returns true if it has responded or will. May be NULL. */
    bool (*page)(void *context, struct wr_http_exchange *exchange);
    void *context;
};

void wr_serve_options_init(struct wr_serve_options *ret_options);

/* Creates a daemon. On failure returns WEIR_E_INVAL, WEIR_E_SYSTEM or WEIR_E_NOMEM, and `ret_why`
 * says what is wrong and how to solve it. */
int wr_serve_new(const struct wr_serve_options *options, struct wr_serve **ret_serve, char *ret_why, size_t why_bytes);
int wr_serve_start(struct wr_serve *serve);

/* Reads the configuration file again. On failure the old rules stay in force, and `ret_why` has the
 * reason. */
int wr_serve_reload(struct wr_serve *serve, char *ret_why, size_t why_bytes);

/* Writes the state file. Returns WEIR_E_SYSTEM or WEIR_E_NOMEM on failure. Not for use after
 * wr_serve_stop, which saves the state itself. */
int wr_serve_save(struct wr_serve *serve, char *ret_why, size_t why_bytes);

/* Stops the daemon and saves the state. Returns WEIR_E_SYSTEM or WEIR_E_NOMEM if the state was not
 * saved; the failure is logged. */
int wr_serve_stop(struct wr_serve *serve, int64_t grace_ns);
/* Accepts NULL. */
void wr_serve_free(struct wr_serve *serve);

/* Returns true if this daemon has taken over from another one. */
bool wr_serve_has_taken_over(const struct wr_serve *serve);

struct wr_http_server *wr_serve_http(struct wr_serve *serve);
struct wr_rules *wr_serve_rules(struct wr_serve *serve);

/* ---- health ---- */

enum wr_serve_health {
    WR_SERVE_OK,
    WR_SERVE_DEGRADED,
    WR_SERVE_UNHEALTHY
};

struct wr_serve_view {
    enum wr_serve_health health;
    const char *why;  /* reason; "" if the health is WR_SERVE_OK */
    uint64_t waiting; /* number of waiting acquires */
    uint64_t saves, saves_failed;
    uint64_t lost;      /* log lines that were lost */
    bool is_reload_bad; /* the last reload failed */
};

void wr_serve_view_get(struct wr_serve *serve, struct wr_serve_view *ret_view);

/* Returns "ok", "degraded" or "unhealthy". */
const char *wr_serve_health_name(enum wr_serve_health health);

#endif
