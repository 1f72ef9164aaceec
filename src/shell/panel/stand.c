/* SPDX-License-Identifier: MIT */
/* stand.c - a dashboard with an HTTP server of its own. */
#include "shell/panel/stand.h"

#include <stdlib.h>

#include <weir/error.h>
#include <weir/time.h>

#define CONNECTIONS_MAX 1024
#define GRACE_NS (200 * WEIR_MILLISECOND)

struct wr_panel_stand {
    struct wr_panel_stand_options options;
    struct wr_http_listen place;
    struct wr_http *server;
    struct wr_panel *panel;
};

static void answer(void *context, struct wr_http_exchange *exchange)
{
    struct wr_panel_stand *stand = context;
    if (stand->options.answer != NULL && stand->options.answer(stand->options.context, exchange))
        return;
    if (!wr_panel_answer(stand->panel, exchange))
        wr_http_refuse(exchange, 404, "there is nothing here");
}

static void tick(void *context, struct wr_http_loop *loop)
{
    struct wr_panel_stand *stand = context;
    (void)loop;
    wr_panel_tick(stand->panel);
}

static int open_server(struct wr_panel_stand *stand)
{
    struct wr_http_options options;
    wr_http_options_init(&options);
    options.listens = &stand->place;
    options.listen_count = 1;
    options.names = stand->options.names;
    options.connections_max = CONNECTIONS_MAX;
    options.answer = answer;
    options.tick = tick;
    options.context = stand;
    int error = wr_http_new(&options, &stand->server);
    return error != 0 ? error : wr_http_start(stand->server);
}

int wr_panel_stand_open(const struct wr_panel_stand_options *options, struct wr_panel_stand **ret_stand)
{
    struct wr_panel_stand *stand = calloc(1, sizeof *stand);
    if (stand == NULL)
        return WEIR_E_NOMEM;
    stand->options = *options;
    stand->place = (struct wr_http_listen){.address = options->address, .fd = -1};
    int error = wr_panel_new(&options->panel, &stand->panel);
    if (error == 0)
        error = open_server(stand);
    if (error != 0) {
        wr_panel_stand_close(stand);
        return error;
    }
    *ret_stand = stand;
    return 0;
}

uint16_t wr_panel_stand_port(const struct wr_panel_stand *stand)
{
    return wr_http_port(stand->server, 0);
}

void wr_panel_stand_close(struct wr_panel_stand *stand)
{
    if (stand == NULL)
        return;
    if (stand->server != NULL)
        wr_http_stop(stand->server, GRACE_NS);
    wr_http_free(stand->server);
    wr_panel_free(stand->panel);
    free(stand);
}
