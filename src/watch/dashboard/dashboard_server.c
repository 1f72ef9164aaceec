/* SPDX-License-Identifier: MIT */
/* dashboard_server.c - a dashboard with an HTTP server of its own. */
#include "watch/dashboard/dashboard_server.h"

#include <stdlib.h>

#include <weir/error.h>
#include <weir/time.h>

#define DASHBOARD_CONNECTIONS_MAX 1024
#define GRACE_NS (200 * WEIR_MILLISECOND)

struct wr_dashboard_server {
    struct wr_dashboard_server_options options;
    struct wr_http_listen_options place;
    struct wr_http_server *server;
    struct wr_dashboard *panel;
};

static void answer_exchange(void *context, struct wr_http_exchange *exchange)
{
    struct wr_dashboard_server *own_server = context;
    if (own_server->options.answer != NULL && own_server->options.answer(own_server->options.context, exchange))
        return;
    if (!wr_dashboard_answer(own_server->panel, exchange))
        wr_http_refuse(exchange, 404, "there is no such path");
}

static void on_dashboard_tick(void *context, struct wr_http_loop *loop)
{
    struct wr_dashboard_server *own_server = context;
    (void)loop;
    wr_dashboard_tick(own_server->panel);
}

static int start_server(struct wr_dashboard_server *own_server)
{
    struct wr_http_server_options options;
    wr_http_server_options_init(&options);
    options.listens = &own_server->place;
    options.listen_count = 1;
    options.names = own_server->options.names;
    options.connections_max = DASHBOARD_CONNECTIONS_MAX;
    options.answer = answer_exchange;
    options.tick = on_dashboard_tick;
    options.context = own_server;
    int error = wr_http_server_new(&options, &own_server->server);
    return error != 0 ? error : wr_http_server_start(own_server->server);
}

int wr_dashboard_server_open(const struct wr_dashboard_server_options *options, struct wr_dashboard_server **ret_stand)
{
    struct wr_dashboard_server *own_server = calloc(1, sizeof *own_server);
    if (own_server == NULL)
        return WEIR_E_NOMEM;
    own_server->options = *options;
    own_server->place = (struct wr_http_listen_options){.address = options->address, .fd = -1};
    int error = wr_dashboard_new(&options->panel, &own_server->panel);
    if (error == 0)
        error = start_server(own_server);
    if (error != 0) {
        wr_dashboard_server_close(own_server);
        return error;
    }
    *ret_stand = own_server;
    return 0;
}

uint16_t wr_dashboard_server_port(const struct wr_dashboard_server *own_server)
{
    return wr_http_server_port(own_server->server, 0);
}

void wr_dashboard_server_close(struct wr_dashboard_server *own_server)
{
    if (own_server == NULL)
        return;
    if (own_server->server != NULL)
        wr_http_server_stop(own_server->server, GRACE_NS);
    wr_http_server_free(own_server->server);
    wr_dashboard_free(own_server->panel);
    free(own_server);
}
