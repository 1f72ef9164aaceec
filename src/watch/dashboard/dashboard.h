/* SPDX-License-Identifier: MIT */
/* dashboard.h - the dashboard: serves its page, streams live data to it, and runs its commands.
 *
 *     wr_dashboard_new(&(struct wr_dashboard_options){.source = &source, .token = token}, &dashboard);
 *     ... in the server's `answer`:   if (wr_dashboard_answer(dashboard, exchange)) return;
 *     ... in the server's `tick`:     wr_dashboard_tick(dashboard);
 *     wr_http_server_stop(...), then wr_dashboard_free(dashboard);
 *
 * The dashboard does not know crawls or rules: a source supplies JSON. Paths: the page and its
 * files (web/, built in); GET /panel/stream, server-sent events; POST /panel/command, commands;
 * POST /panel/token, checks a token. docs/internals/dashboard.md describes them.
 *
 * Access: serve/server refuses requests from pages of other origins. Clients on this machine may
 * view without a token. All other clients, and all commands, need the token.
 *
 * Limits: WR_DASHBOARD_STREAMS viewers, WR_DASHBOARD_SAMPLES samples. A view is queried once for
 * all its viewers, and views may take only a part of the time (WR_DASHBOARD_PAUSE_FACTOR).
 *
 * Threads: call all functions in the thread of the one loop that serves the dashboard. Give it a
 * server of its own, with one loop, because sources may take some milliseconds.
 */
#ifndef WR_WATCH_DASHBOARD_DASHBOARD_H
#define WR_WATCH_DASHBOARD_DASHBOARD_H

#include "base/buf.h"
#include "serve/server/http_server.h"
#include "watch/dashboard/dashboard_query.h"

#define WR_DASHBOARD_STREAMS 256
#define WR_DASHBOARD_SAMPLES 300     /* number of samples kept */
#define WR_DASHBOARD_SAMPLE_MAX 2048 /* bytes of one sample */
#define WR_DASHBOARD_VIEW_MAX ((size_t)2 << 20)
#define WR_DASHBOARD_INTERVAL_NS WEIR_SECOND
/* pause between queries of a view, in multiples of the last query's duration */
#define WR_DASHBOARD_PAUSE_FACTOR 20

/* Supplies the data. Each function appends one JSON object, on one line. */
struct wr_dashboard_source {
    void *context;
    const char *kind; /* "crawl" or "serve"; selects what the page shows */
    /* available views, ends with NULL: "overview", "hosts", "jobs", "rules" */
    const char *const *views;
    /* Appends counters and gauges. Called every second, so it must be cheap. */
    void (*sample)(void *context, struct wr_buf *answer);
    /* Appends the data of query->view, or {"ok":false,"error":"..."}. */
    void (*view)(void *context, const struct wr_dashboard_query *query, struct wr_buf *answer);
    /* Runs a command of a client with the token: {"ask":"pause","host":"..."}. Appends {"ok":true}
     * or an error as for views. */
    void (*command)(void *context, struct wr_span request, struct wr_buf *answer);
};

struct wr_dashboard_options {
    const struct wr_dashboard_source *source; /* must outlive the dashboard */
    /* copied; NULL or empty: no commands, no access from other machines */
    const char *token;
    const weir_clock *clock;         /* default: the monotonic clock */
    const weir_allocator *allocator; /* default: the system allocator */
};

struct wr_dashboard;

/* Returns WEIR_E_NOMEM, WEIR_E_SYSTEM, or WEIR_E_INVAL if the token is too long or short. */
int wr_dashboard_new(const struct wr_dashboard_options *options, struct wr_dashboard **ret_panel);

/* Call it after the server has stopped: no stream may be open. Accepts NULL. */
void wr_dashboard_free(struct wr_dashboard *dashboard);

/* Handles a request for a path of the dashboard. Returns false for other paths. */
bool wr_dashboard_answer(struct wr_dashboard *dashboard, struct wr_http_exchange *exchange);

/* Takes samples and updates views. Call it several times a second. */
void wr_dashboard_tick(struct wr_dashboard *dashboard);

#endif
