/* SPDX-License-Identifier: MIT */
/* serve_dashboard.c - serves the dashboard of the daemon. */
#include "cli/serve/serve_dashboard.h"

#include <stdlib.h>

#include "watch/dashboard/dashboard_server.h"
#include "watch/dashboard/rules_source.h"

struct wr_serve_dashboard {
    struct wr_dashboard_rules *rules;
    struct wr_dashboard_server *stand;
};

static int reload_rules_file(void *context, char *ret_why, size_t why_bytes)
{
    return wr_serve_reload(context, ret_why, why_bytes);
}

int wr_serve_dashboard_open(struct wr_serve *serve, const struct wr_serve_dashboard_options *options,
                            struct wr_serve_dashboard **ret_panel)
{
    if (options->address == NULL) {
        *ret_panel = NULL;
        return 0;
    }
    struct wr_serve_dashboard *panel = calloc(1, sizeof *panel);
    if (panel == NULL)
        return WEIR_E_NOMEM;
    struct wr_dashboard_server_options stand = {
        .address = options->address, .names = options->names, .panel = {.token = options->token}};
    int error = wr_dashboard_rules_new(
        &(struct wr_dashboard_rules_options){wr_serve_rules(serve), options->file, reload_rules_file, serve},
        &panel->rules);
    if (error == 0) {
        stand.panel.source = wr_dashboard_rules_source(panel->rules);
        error = wr_dashboard_server_open(&stand, &panel->stand);
    }
    if (error != 0) {
        wr_serve_dashboard_close(panel);
        return error;
    }
    *ret_panel = panel;
    return 0;
}

uint16_t wr_serve_dashboard_port(const struct wr_serve_dashboard *panel)
{
    return wr_dashboard_server_port(panel->stand);
}

void wr_serve_dashboard_close(struct wr_serve_dashboard *panel)
{
    if (panel == NULL)
        return;
    wr_dashboard_server_close(panel->stand);
    wr_dashboard_rules_free(panel->rules);
    free(panel);
}
