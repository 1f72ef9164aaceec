/* SPDX-License-Identifier: MIT */
/* serve_dashboard.h - --dashboard: serves the dashboard of the daemon in a thread of its own, so
 * that its readers do not delay decisions. */
#ifndef WR_CLI_SERVE_SERVE_DASHBOARD_H
#define WR_CLI_SERVE_SERVE_DASHBOARD_H

#include "serve/daemon/serve.h"

struct wr_serve_dashboard;

struct wr_serve_dashboard_options {
    const char *address;      /* address to listen at; NULL: no dashboard */
    const char *file;         /* path of the rules file, for display */
    const char *token;        /* token for the controls; NULL: no controls */
    const char *const *names; /* accepted Host names, as in wr_serve_options */
};

/* Opens the dashboard. Without an address sets *ret_panel to NULL and returns 0. On WEIR_E_...
 * weir_error_detail has the reason. */
int wr_serve_dashboard_open(struct wr_serve *serve, const struct wr_serve_dashboard_options *options,
                            struct wr_serve_dashboard **ret_panel);

/* Returns the port of the dashboard; 0 for a Unix socket. */
uint16_t wr_serve_dashboard_port(const struct wr_serve_dashboard *panel);

/* Closes the dashboard. Call it before wr_serve_free. Accepts NULL. */
void wr_serve_dashboard_close(struct wr_serve_dashboard *panel);

#endif
