/* SPDX-License-Identifier: MIT */
/* stand.h - a dashboard with an HTTP server of its own: one address, one thread.
 *
 * Used beside a crawl or a daemon, so that viewers do not slow it down. */
#ifndef WR_SHELL_PANEL_STAND_H
#define WR_SHELL_PANEL_STAND_H

#include "shell/panel/panel.h"

struct wr_panel_stand;

struct wr_panel_stand_options {
    /* listening address; must stay valid, like the source of the dashboard */
    const char *address;
    const char *const *names; /* value for wr_http_options.names; may be NULL */
    struct wr_panel_options panel;
    /* Called first. Returns true if it has handled the request. May be NULL. */
    bool (*answer)(void *context, struct wr_http_exchange *exchange);
    void *context;
};

/* Creates the dashboard and starts its server. On failure returns an error, with the reason in
 * weir_error_detail. */
int wr_panel_stand_open(const struct wr_panel_stand_options *options, struct wr_panel_stand **ret_stand);

/* Returns the TCP port; 0 for a Unix socket. */
uint16_t wr_panel_stand_port(const struct wr_panel_stand *stand);

/* Accepts NULL. */
void wr_panel_stand_close(struct wr_panel_stand *stand);

#endif
