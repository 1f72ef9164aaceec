/* SPDX-License-Identifier: MIT */
/* panel.h - the dashboard: serves its page, streams live data to it, and runs its commands.
 *
 *     wr_panel_new(&(struct wr_panel_options){.source = &source, .token = token}, &panel);
 *     ... in the server's `answer`:   if (wr_panel_answer(panel, exchange)) return;
 *     ... in the server's `tick`:     wr_panel_tick(panel);
 *     wr_http_stop(...), then wr_panel_free(panel);
 *
 * The dashboard does not know crawls or rules: a source supplies JSON. Paths: the page and its
 * files (web/, built in); GET /panel/stream, server-sent events; POST /panel/command, commands;
 * POST /panel/token, checks a token. docs/internals/panel.md describes them.
 *
 * Access: shell/http refuses requests from pages of other origins. Clients on this machine may view
 * without a token. All other clients, and all commands, need the token.
 *
 * Limits: WR_PANEL_STREAMS viewers, WR_PANEL_KEPT samples. A view is queried once for all its
 * viewers, and views may take only a part of the time (WR_PANEL_PAUSE).
 *
 * Threads: call all functions in the thread of the one loop that serves the dashboard. Give it a
 * server of its own, with one loop, because sources may take some milliseconds.
 */
#ifndef WR_SHELL_PANEL_PANEL_H
#define WR_SHELL_PANEL_PANEL_H

#include "base/buf.h"
#include "shell/http/http.h"
#include "shell/panel/query.h"

#define WR_PANEL_STREAMS 256
#define WR_PANEL_KEPT 300        /* number of samples kept */
#define WR_PANEL_SAMPLE_MAX 2048 /* bytes of one sample */
#define WR_PANEL_VIEW_MAX ((size_t)2 << 20)
#define WR_PANEL_EVERY_NS WEIR_SECOND
/* pause between queries of a view, in multiples of the last query's duration */
#define WR_PANEL_PAUSE 20

/* Supplies the data. Each function appends one JSON object, on one line. */
struct wr_panel_source {
    void *context;
    const char *kind; /* "crawl" or "serve"; selects what the page shows */
    /* available views, ends with NULL: "overview", "hosts", "jobs", "rules" */
    const char *const *views;
    /* Appends counters and gauges. Called every second, so it must be cheap. */
    void (*sample)(void *context, struct wr_buf *answer);
    /* Appends the data of query->view, or {"ok":false,"error":"..."}. */
    void (*view)(void *context, const struct wr_panel_query *query, struct wr_buf *answer);
    /* Runs a command of a client with the token: {"ask":"pause","host":"..."}. Appends {"ok":true}
     * or an error as for views. */
    void (*command)(void *context, struct wr_span request, struct wr_buf *answer);
};

struct wr_panel_options {
    const struct wr_panel_source *source; /* must outlive the dashboard */
    /* copied; NULL or empty: no commands, no access from other machines */
    const char *token;
    const weir_clock *clock;         /* default: the monotonic clock */
    const weir_allocator *allocator; /* default: the system allocator */
};

struct wr_panel;

/* Returns WEIR_E_NOMEM, WEIR_E_SYSTEM, or WEIR_E_INVAL if the token is too long or short. */
int wr_panel_new(const struct wr_panel_options *options, struct wr_panel **ret_panel);

/* Call it after the server has stopped: no stream may be open. Accepts NULL. */
void wr_panel_free(struct wr_panel *panel);

/* Handles a request for a path of the dashboard. Returns false for other paths. */
bool wr_panel_answer(struct wr_panel *panel, struct wr_http_exchange *exchange);

/* Takes samples and updates views. Call it several times a second. */
void wr_panel_tick(struct wr_panel *panel);

#endif
