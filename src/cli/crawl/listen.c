/* SPDX-License-Identifier: MIT */
/* listen.c - serves the metrics and the dashboard of a crawl in a thread of its own. */
#include "cli/crawl/listen.h"

#include <stdlib.h>

#include "base/error.h"
#include "cli/crawl/numbers.h"
#include "shell/panel/crawl.h"
#include "shell/panel/stand.h"
#include "shell/panel/token.h"

struct wr_crawl_listen {
    const char *address;
    struct wr_crawl_watch *watch;
    struct wr_panel_crawl *shown;
    struct wr_panel_stand *stand;
    char token[WR_PANEL_TOKEN_ROOM];
    const char *names[WR_OPTION_LIST_MAX + 1];
};

/* Answers /metrics and /healthz. Runs in the dashboard's thread. */
static bool answer(void *context, struct wr_http_exchange *exchange)
{
    struct wr_crawl_listen *listen = context;
    return wr_numbers_answer(listen->watch, exchange);
}

static int open_stand(struct wr_crawl_listen *listen)
{
    const struct wr_panel_stand_options options = {
        .address = listen->address,
        .names = listen->names,
        .panel = {.source = wr_panel_crawl_source(listen->shown), .token = listen->token},
        .answer = answer,
        .context = listen,
    };
    return wr_panel_stand_open(&options, &listen->stand);
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
    int error = wr_crawl_watch_new(engine, (size_t)settings->listen_hosts, &listen->watch);
    if (error == 0)
        error = settings->token_file != NULL ? wr_panel_token_read(settings->token_file, listen->token)
                                             : wr_panel_token_draw(listen->token);
    if (error == 0)
        error = wr_panel_crawl_new(engine, &listen->shown);
    if (error == 0)
        error = open_stand(listen);
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
    wr_panel_stand_close(listen->stand);
    wr_panel_crawl_free(listen->shown);
    wr_crawl_watch_free(listen->watch);
    free(listen);
}

/* ---- address for the user ---- */

/* Returns the part before the port of an address such as "127.0.0.1:8080"; 127.0.0.1 for
 * ":8080". */
static struct wr_span host_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (colon == address || colon == NULL)
        return wr_span_of("127.0.0.1");
    return (struct wr_span){address, (size_t)(colon - address)};
}

void wr_crawl_listen_name(const struct wr_crawl_listen *listen, bool is_shown, char *ret_text, size_t room)
{
    struct wr_buf text;
    struct wr_span host = host_of(listen->address);
    wr_buf_init_fixed(&text, ret_text, room);
    if (wr_panel_stand_port(listen->stand) == 0) {
        wr_buf_append_string(&text, listen->address);
        return;
    }
    bool is_any = wr_span_is(host, "0.0.0.0") || wr_span_is(host, "[::]");
    wr_buf_append_string(&text, "http://");
    wr_buf_append_span(&text, is_any ? wr_span_of("localhost") : host);
    wr_buf_append_string(&text, ":");
    wr_buf_append_u64(&text, wr_panel_stand_port(listen->stand));
    wr_buf_append_string(&text, is_shown ? "/#token=" : "/");
    wr_buf_append_string(&text, is_shown ? listen->token : "");
}
