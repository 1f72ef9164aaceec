/* SPDX-License-Identifier: MIT */
/* admin.c - the admin calls (reset a key, reload the rules), which require a token. */
#include "shell/loop/away.h"
#include "shell/serve/inside.h"

/* Checks the token. Returns false after it refused the request. */
static bool may(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    const struct wr_serve_options *options = &desk->serve->options;
    if (options->token == NULL)
        wr_http_refuse(exchange, 403, "admin calls are off; start weir serve with --token-file");
    else if (!wr_http_has_token(exchange, options->token))
        wr_http_reply(exchange, 401, wr_span_of("WWW-Authenticate: Bearer\r\n"), WR_HTTP_NOTHING);
    else
        return true;
    return false;
}

static void reset(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    const struct wr_ask *ask = &desk->ask;
    char name[WEIR_RULE_NAME_MAX + 1];
    if (!wr_serve_read_one(desk, exchange))
        return;
    if (ask->members != (WR_ASK_RULE | WR_ASK_KEY)) {
        wr_http_refuse(exchange, 400, "give rule and key, and nothing else");
        return;
    }
    int error = WEIR_E_ABSENT;
    if (wr_serve_name_of(ask->rule, name))
        error = wr_rulebook_reset(desk->serve->book, name, ask->key.data, ask->key.bytes);
    if (error == WEIR_E_CLOSED)
        wr_http_refuse(exchange, 503, "the store of shared limits cannot be reached; it remembers the key");
    else if (error != 0)
        wr_http_refuse(exchange, 404, "there is no such rule, or no such key in it");
    else
        wr_http_reply(exchange, 200, WR_HTTP_JSON, wr_span_of("{\"ok\":true}\n"));
}

static void reload(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    char why[WR_CONFIG_WHY_BYTES] = "";
    if (wr_serve_reload(desk->serve, why, sizeof why) != 0)
        wr_http_refuse(exchange, 409, why); /* the old rules stay in force */
    else
        wr_http_reply(exchange, 200, WR_HTTP_JSON, wr_span_of("{\"ok\":true}\n"));
}

bool wr_serve_admin(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    WR_DOING("/v1/admin/");
    bool is_reset = wr_span_is(exchange->path, "/v1/admin/reset");
    if (!is_reset && !wr_span_is(exchange->path, "/v1/admin/reload"))
        return false;
    if (!may(desk, exchange))
        return true;
    if (exchange->method != WR_METHOD_POST)
        wr_http_reply(exchange, 405, wr_span_of("Allow: POST\r\n"), WR_HTTP_NOTHING);
    else if (is_reset)
        reset(desk, exchange);
    else
        reload(desk, exchange);
    return true;
}
