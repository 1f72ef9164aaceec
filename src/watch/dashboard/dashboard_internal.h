/* SPDX-License-Identifier: MIT */
/* dashboard_internal.h - internal structures of the dashboard.
 *
 *     dashboard --+-- history      samples, one per second
 *             |-- views        queries with viewers, each with its last response; longest due first
 *             `-- streams      viewers, each with one view
 */
#ifndef WR_WATCH_DASHBOARD_DASHBOARD_INTERNAL_H
#define WR_WATCH_DASHBOARD_DASHBOARD_INTERNAL_H

#include "base/list.h"
#include "watch/dashboard/dashboard.h"
#include "watch/dashboard/sample_history.h"

#define WR_DASHBOARD_TOKEN_MIN 16 /* minimum length of a token, bytes; too long to guess */
#define WR_DASHBOARD_TOKEN_MAX 255

struct wr_dashboard_view {
    struct wr_list_link link;
    struct wr_dashboard_query query;
    struct wr_buf answer; /* the last response, as an event; empty: none yet */
    int64_t due_at;
    uint32_t viewers;
};

struct wr_dashboard_stream {
    struct wr_list_link link;
    struct wr_dashboard *dashboard;
    struct wr_http_exchange *exchange;
    struct wr_dashboard_view *view;
};

struct wr_dashboard {
    const struct wr_dashboard_source *source;
    const weir_clock *clock;
    const weir_allocator *allocator;
    char token[WR_DASHBOARD_TOKEN_MAX + 1];
    char run[WR_DASHBOARD_RUN_BYTES + 1];
    struct wr_sample_history history;
    struct wr_list views, streams;
    uint32_t stream_count;
    int64_t sample_at; /* time at which the next sample is due */
    int64_t spent_ns;  /* time spent on views since the last tick */
    struct wr_buf event;
};

/* Returns true if the exchange may view the dashboard; otherwise refuses it. Sets *ret_trusted if
 * it has the token. */
bool wr_dashboard_admit(struct wr_dashboard *dashboard, struct wr_http_exchange *exchange, bool *ret_trusted);

/* Returns true if the source has the view. The view "host" belongs to "hosts". */
bool wr_dashboard_has_view(const struct wr_dashboard *dashboard, const char *view);

/* Begins a stream of events, which each tick continues. */
void wr_dashboard_stream_begin(struct wr_dashboard *dashboard, struct wr_http_exchange *exchange, bool trusted);

/* Discards the responses of all views, which are outdated after a command. */
void wr_dashboard_discard_views(struct wr_dashboard *dashboard);

/* Header fields of every response. */
#define WR_DASHBOARD_FIELDS                                                                              \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                  \
    "require-trusted-types-for 'script'; trusted-types 'none'\r\n"                                       \
    "X-Content-Type-Options: nosniff\r\n"                                                                \
    "X-Frame-Options: DENY\r\n"                                                                          \
    "Referrer-Policy: no-referrer\r\n"                                                                   \
    "Cross-Origin-Opener-Policy: same-origin\r\n"                                                        \
    "Cross-Origin-Resource-Policy: same-origin\r\n"

#endif
