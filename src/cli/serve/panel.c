/* SPDX-License-Identifier: MIT */
/* panel.c - serves the dashboard of the daemon. */
#include "cli/serve/panel.h"

#include <stdlib.h>

#include "shell/panel/rules.h"
#include "shell/panel/stand.h"

struct wr_serve_panel {
    struct wr_panel_rules *rules;
    struct wr_panel_stand *stand;
};

static int reload(void *context, char *ret_why, size_t why_bytes)
{
    return wr_serve_reload(context, ret_why, why_bytes);
}

int wr_serve_panel_open(struct wr_serve *serve, const struct wr_serve_panel_options *options,
                        struct wr_serve_panel **ret_panel)
{
    if (options->address == NULL) {
        *ret_panel = NULL;
        return 0;
    }
    struct wr_serve_panel *panel = calloc(1, sizeof *panel);
    if (panel == NULL)
        return WEIR_E_NOMEM;
    struct wr_panel_stand_options stand = {
        .address = options->address, .names = options->names, .panel = {.token = options->token}};
    int error = wr_panel_rules_new(&(struct wr_panel_rules_options){wr_serve_book(serve), options->file, reload, serve},
                                   &panel->rules);
    if (error == 0) {
        stand.panel.source = wr_panel_rules_source(panel->rules);
        error = wr_panel_stand_open(&stand, &panel->stand);
    }
    if (error != 0) {
        wr_serve_panel_close(panel);
        return error;
    }
    *ret_panel = panel;
    return 0;
}

uint16_t wr_serve_panel_port(const struct wr_serve_panel *panel)
{
    return wr_panel_stand_port(panel->stand);
}

void wr_serve_panel_close(struct wr_serve_panel *panel)
{
    if (panel == NULL)
        return;
    wr_panel_stand_close(panel->stand);
    wr_panel_rules_free(panel->rules);
    free(panel);
}
