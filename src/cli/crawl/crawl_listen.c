/* SPDX-License-Identifier: MIT */
/* crawl_listen.c - serves the metrics and the dashboard of a crawl in a thread of its own. */
#include "cli/crawl/crawl_listen.h"

#include <stdlib.h>

#include "base/error.h"
#include "cli/crawl/metrics_endpoint.h"
#include "watch/dashboard/crawl_source.h"
#include "watch/dashboard/dashboard_server.h"
#include "watch/dashboard/token.h"

struct wr_crawl_listen {
    const char *address;
    struct wr_engine_metrics *watch;
    struct wr_dashboard_crawl *shown;
    struct wr_dashboard_server *stand;
    char token[WR_DASHBOARD_TOKEN_ROOM];
    const char *names[WR_OPTION_LIST_MAX + 1];
};

/* Answers /metrics and /healthz. Runs in the dashboard's thread. */
static bool answer_metrics_request(void *context, struct wr_http_exchange *exchange)
{
    struct wr_crawl_listen *listen = context;
    return wr_crawl_metrics_answer(listen->watch, exchange);
}

static int open_dashboard_server(struct wr_crawl_listen *listen)
{
    const struct wr_dashboard_server_options options = {
        .address = listen->address,
        .names = listen->names,
        .panel = {.source = wr_dashboard_crawl_source(listen->shown), .token = listen->token},
        .answer = answer_metrics_request,
        .context = listen,
    };
    return wr_dashboard_server_open(&options, &listen->stand);
}

int wr_crawl_listen_open(const struct wr_crawl_settings *settings, struct wr_engine *engine,
                         struct wr_crawl_listen **ret_listen)
{
    if (settings->listen == NULL) {
        *ret_listen = NULL;
        return 0;
    }
    struct wr_crawl_listen *listen = calloc(1, sizeof *listen);
    if (listen == NULL)
        return WEIR_E_NOMEM;
    listen->address = settings->listen;
    for (size_t i = 0; i < settings->listen_names.count; i++)
        listen->names[i] = settings->listen_names.items[i];
    int error = wr_engine_metrics_new(engine, (size_t)settings->listen_hosts, &listen->watch);
    if (error == 0)
        error = settings->token_file != NULL ? wr_dashboard_token_read(settings->token_file, listen->token)
                                             : wr_dashboard_token_generate(listen->token);
    if (error == 0)
        error = wr_dashboard_crawl_new(engine, &listen->shown);
    if (error == 0)
        error = open_dashboard_server(listen);
    if (error != 0) {
        wr_crawl_listen_close(listen);
        return error;
    }
    *ret_listen = listen;
    return 0;
}

void wr_crawl_listen_close(struct wr_crawl_listen *listen)
{
    if (listen == NULL)
        return;
    wr_dashboard_server_close(listen->stand);
    wr_dashboard_crawl_free(listen->shown);
    wr_engine_metrics_free(listen->watch);
    free(listen);
}

/* ---- address for the user ---- */

/* Returns the part before the port of an address such as "127.0.0.1:8080"; 127.0.0.1 for
 * ":8080". */
static struct wr_span address_host(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (colon == address || colon == NULL)
        return wr_span_of("127.0.0.1");
    return (struct wr_span){address, (size_t)(colon - address)};
}

void wr_crawl_listen_name(const struct wr_crawl_listen *listen, bool is_shown, char *ret_text, size_t room)
{
    struct wr_buf text;
    struct wr_span host = address_host(listen->address);
    wr_buf_init_fixed(&text, ret_text, room);
    if (wr_dashboard_server_port(listen->stand) == 0) {
        wr_buf_append_string(&text, listen->address);
        return;
    }
    bool is_any = wr_span_is(host, "0.0.0.0") || wr_span_is(host, "[::]");
    wr_buf_append_string(&text, "http://");
    wr_buf_append_span(&text, is_any ? wr_span_of("localhost") : host);
    wr_buf_append_string(&text, ":");
    wr_buf_append_u64(&text, wr_dashboard_server_port(listen->stand));
    wr_buf_append_string(&text, is_shown ? "/#token=" : "/");
    wr_buf_append_string(&text, is_shown ? listen->token : "");
}
