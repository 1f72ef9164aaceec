/* SPDX-License-Identifier: MIT */
/* panel.h - --dashboard: the page of a daemon, served beside it by a thread of its own, so that who looks holds up no
 * decision. */
#ifndef WR_CLI_SERVE_PANEL_H
#define WR_CLI_SERVE_PANEL_H

#include "shell/serve/serve.h"

struct wr_serve_panel;

struct wr_serve_panel_options {
    const char *address;      /* NULL: none is wanted */
    const char *file;         /* of the rules, to be shown */
    const char *token;        /* NULL: there are no controls */
    const char *const *names; /* as in wr_serve_options */
};

/* WEIR_E_…: weir_error_detail says why not. */
int wr_serve_panel_open(struct wr_serve *serve, const struct wr_serve_panel_options *options,
                        struct wr_serve_panel **ret_panel);

/* 0 for a Unix socket. */
uint16_t wr_serve_panel_port(const struct wr_serve_panel *panel);

/* Before wr_serve_free. NULL is fine. */
void wr_serve_panel_close(struct wr_serve_panel *panel);

#endif
