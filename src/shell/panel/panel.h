/* SPDX-License-Identifier: MIT */
/* panel.h - the dashboard: its page, what it shows while things change, and what is done through it.
 *
 *     wr_panel_new(&(struct wr_panel_options){.source = &source, .token = token}, &panel);
 *     … in the server's `answer`:   if (wr_panel_answer(panel, exchange)) return;
 *     … in the server's `tick`:     wr_panel_tick(panel);
 *     wr_http_stop(…), then wr_panel_free(panel);
 *
 * The panel knows neither crawls nor rules: a source gives it JSON. Paths: the page and its files (web/, built in);
 * GET /panel/stream, server-sent events; POST /panel/command, what somebody wants done; POST /panel/token, whether a
 * token is right. docs/internals/panel.md has them.
 *
 * Who may: the server has refused other people's pages and names (shell/http). Whoever is on this machine may look
 * without a token; all others, and all commands, need it.
 *
 * Bounded: WR_PANEL_STREAMS viewers, WR_PANEL_KEPT samples. A view that many look at is asked for once, and the source
 * is given at most a part of the time (WR_PANEL_PAUSE).
 *
 * Threads: all in the thread of the one loop that serves it. Give it a server of its own, with one loop: sources may
 * take some milliseconds.
 */
#ifndef WR_SHELL_PANEL_PANEL_H
#define WR_SHELL_PANEL_PANEL_H

#include "base/buf.h"
#include "shell/http/http.h"
#include "shell/panel/query.h"

#define WR_PANEL_STREAMS 256
#define WR_PANEL_KEPT 300        /* samples */
#define WR_PANEL_SAMPLE_MAX 2048 /* bytes of one */
#define WR_PANEL_VIEW_MAX ((size_t)2 << 20)
#define WR_PANEL_EVERY_NS WEIR_SECOND
#define WR_PANEL_PAUSE 20 /* a view that took so long is asked for again after so many times that */

/* All functions append one JSON object, on one line. */
struct wr_panel_source {
    void *context;
    const char *kind;         /* "crawl", "serve": the page draws what fits */
    const char *const *views; /* that there are, NULL-terminated: "overview", "hosts", "jobs", "rules" */
    /* Counters and gauges, each second; cheap. */
    void (*sample)(void *context, struct wr_buf *answer);
    /* What query->view asks for. An error is {"ok":false,"error":"…"}. */
    void (*view)(void *context, const struct wr_panel_query *query, struct wr_buf *answer);
    /* Somebody with the token wants something done: {"ask":"pause","host":"…"}. The answer as above, or {"ok":true}. */
    void (*command)(void *context, struct wr_span request, struct wr_buf *answer);
};

struct wr_panel_options {
    const struct wr_panel_source *source; /* outlives the panel */
    const char *token;                    /* is copied; NULL or empty: no commands, and nobody from outside */
    const weir_clock *clock;              /* default: the monotonic one */
    const weir_allocator *allocator;      /* default: the system's */
};

struct wr_panel;

/* WEIR_E_NOMEM, WEIR_E_SYSTEM, WEIR_E_INVAL (a token that is too long or short). */
int wr_panel_new(const struct wr_panel_options *options, struct wr_panel **ret_panel);

/* After the server has stopped: no stream may be left. NULL is fine. */
void wr_panel_free(struct wr_panel *panel);

/* True: the path was the panel's, and is answered. */
bool wr_panel_answer(struct wr_panel *panel, struct wr_http_exchange *exchange);

/* Several times a second. */
void wr_panel_tick(struct wr_panel *panel);

#endif
