/* SPDX-License-Identifier: MIT */
/* admin.c - the admin calls (reset a key, reload the rules), which require a token. */
#include "http/loop/watchdog.h"
#include "serve/daemon/serve_internal.h"

/* Checks the token. Returns false after it refused the request. */
static bool has_admin_token(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    const struct wr_serve_options *options = &worker->serve->options;
    if (options->token == NULL)
        wr_http_refuse(exchange, 403, "admin calls are off; start weir serve with --token-file");
    else if (!wr_http_has_token(exchange, options->token))
        wr_http_reply(exchange, 401, wr_span_of("WWW-Authenticate: Bearer\r\n"), WR_HTTP_NOTHING);
    else
        return true;
    return false;
}

static void answer_reset(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    const struct wr_api_request *ask = &worker->ask;
    char name[WEIR_RULE_NAME_MAX + 1];
    if (!wr_serve_read_one_object(worker, exchange))
        return;
    if (ask->members != (WR_API_RULE | WR_API_KEY)) {
        wr_http_refuse(exchange, 400, "give rule and key, and nothing else");
        return;
    }
    int error = WEIR_E_ABSENT;
    if (wr_serve_copy_rule_name(ask->rule, name))
        error = wr_rules_reset_key(worker->serve->book, name, ask->key.data, ask->key.bytes);
    if (error == WEIR_E_CLOSED)
        wr_http_refuse(exchange, 503,
                       "the store of shared limits cannot be reached; it still has the state of the key");
    else if (error != 0)
        wr_http_refuse(exchange, 404, "there is no such rule, or no such key in it");
    else
        wr_http_reply(exchange, 200, WR_HTTP_JSON, wr_span_of("{\"ok\":true}\n"));
}

static void answer_reload(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    char why[WR_CONFIG_WHY_BYTES] = "";
    if (wr_serve_reload(worker->serve, why, sizeof why) != 0)
        wr_http_refuse(exchange, 409, why); /* the old rules stay in force */
    else
        wr_http_reply(exchange, 200, WR_HTTP_JSON, wr_span_of("{\"ok\":true}\n"));
}

bool wr_serve_admin(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    WR_DOING("/v1/admin/");
    bool is_reset = wr_span_is(exchange->path, "/v1/admin/reset");
    if (!is_reset && !wr_span_is(exchange->path, "/v1/admin/reload"))
        return false;
    if (!has_admin_token(worker, exchange))
        return true;
    if (exchange->method != WR_METHOD_POST)
        wr_http_reply(exchange, 405, wr_span_of("Allow: POST\r\n"), WR_HTTP_NOTHING);
    else if (is_reset)
        answer_reset(worker, exchange);
    else
        answer_reload(worker, exchange);
    return true;
}
