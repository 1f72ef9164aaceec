/* SPDX-License-Identifier: MIT */
/* stand.h - a panel with a server of its own: one address, one thread.
 *
 * A crawl and a daemon have one beside them, so that who looks holds up nothing.
 */
#ifndef WR_SHELL_PANEL_STAND_H
#define WR_SHELL_PANEL_STAND_H

#include "shell/panel/panel.h"

struct wr_panel_stand;

struct wr_panel_stand_options {
    const char *address;      /* stays good, and so does the panel's source */
    const char *const *names; /* as wr_http_options.names; may be NULL */
    struct wr_panel_options panel;
    /* What is asked first: true if it has answered. May be NULL. */
    bool (*answer)(void *context, struct wr_http_exchange *exchange);
    void *context;
};

/* WEIR_E_…: weir_error_detail says why not. */
int wr_panel_stand_open(const struct wr_panel_stand_options *options, struct wr_panel_stand **ret_stand);

/* 0 for a Unix socket. */
uint16_t wr_panel_stand_port(const struct wr_panel_stand *stand);

/* NULL is fine. */
void wr_panel_stand_close(struct wr_panel_stand *stand);

#endif
