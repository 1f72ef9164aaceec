/* SPDX-License-Identifier: MIT */
/* panel.c - the dashboard of a daemon. */
#include "cli/serve/panel.h"

#include <stdlib.h>

#include "shell/panel/rules.h"

#define CONNECTIONS_MAX 1024

struct wr_serve_panel {
    struct wr_http_listen place;
    struct wr_http *server;
    struct wr_panel_rules *rules;
    struct wr_panel *panel;
};

static void answer(void *context, struct wr_http_exchange *exchange)
{
    struct wr_serve_panel *panel = context;
    if (!wr_panel_answer(panel->panel, exchange))
        wr_http_refuse(exchange, 404, "there is nothing here");
}

static void tick(void *context, struct wr_http_loop *loop)
{
    struct wr_serve_panel *panel = context;
    (void)loop;
    wr_panel_tick(panel->panel);
}

static int reload(void *context, char *ret_why, size_t why_bytes)
{
    return wr_serve_reload(context, ret_why, why_bytes);
}

static int open_server(struct wr_serve_panel *panel)
{
    struct wr_http_options options;
    wr_http_options_init(&options);
    options.listens = &panel->place;
    options.listen_count = 1;
    options.connections_max = CONNECTIONS_MAX;
    options.answer = answer;
    options.tick = tick;
    options.context = panel;
    int error = wr_http_new(&options, &panel->server);
    return error != 0 ? error : wr_http_start(panel->server);
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
    panel->place = (struct wr_http_listen){.address = options->address, .fd = -1};
    int error = wr_panel_rules_new(&(struct wr_panel_rules_options){wr_serve_book(serve), options->file, reload, serve},
                                   &panel->rules);
    if (error == 0)
        error = wr_panel_new(&(struct wr_panel_options){.source = wr_panel_rules_source(panel->rules),
                                                        .token = options->token,
                                                        .names = options->names},
                             &panel->panel);
    if (error == 0)
        error = open_server(panel);
    if (error != 0) {
        wr_serve_panel_close(panel);
        return error;
    }
    *ret_panel = panel;
    return 0;
}

uint16_t wr_serve_panel_port(const struct wr_serve_panel *panel)
{
    return wr_http_port(panel->server, 0);
}

void wr_serve_panel_close(struct wr_serve_panel *panel)
{
    if (panel == NULL)
        return;
    if (panel->server != NULL)
        wr_http_stop(panel->server, 0);
    wr_http_free(panel->server);
    wr_panel_free(panel->panel);
    wr_panel_rules_free(panel->rules);
    free(panel);
}
