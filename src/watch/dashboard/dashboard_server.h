/* SPDX-License-Identifier: MIT */
/* dashboard_server.h - a dashboard with an HTTP server of its own: one address, one thread.
 *
 * Used beside a crawl or a daemon, so that viewers do not slow it down. */
#ifndef WR_WATCH_DASHBOARD_DASHBOARD_SERVER_H
#define WR_WATCH_DASHBOARD_DASHBOARD_SERVER_H

#include "watch/dashboard/dashboard.h"

struct wr_dashboard_server;

struct wr_dashboard_server_options {
    /* listening address; must stay valid, like the source of the dashboard */
    const char *address;
    const char *const *names; /* value for wr_http_server_options.names; may be NULL */
    struct wr_dashboard_options panel;
    /* Called first. Returns true if it has handled the request. May be NULL. */
    bool (*answer)(void *context, struct wr_http_exchange *exchange);
    void *context;
};

/* Creates the dashboard and starts its server. On failure returns an error, with the reason in
 * weir_error_detail. */
int wr_dashboard_server_open(const struct wr_dashboard_server_options *options, struct wr_dashboard_server **ret_stand);

/* Returns the TCP port; 0 for a Unix socket. */
uint16_t wr_dashboard_server_port(const struct wr_dashboard_server *own_server);

/* Accepts NULL. */
void wr_dashboard_server_close(struct wr_dashboard_server *own_server);

#endif
