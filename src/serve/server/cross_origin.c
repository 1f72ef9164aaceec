/* SPDX-License-Identifier: MIT */
/* cross_origin.c - refuses requests that a page of another origin can make a browser send.
 *
 * Such a page cannot read the responses, but it can use up limits. Signs of such a request:
 *     Host             a name of the page's site that resolves to this server (DNS rebinding)
 *     Origin           that of the page; sent with each POST and any request that a script can read
 *     Sec-Fetch-Site   set by the browser; to loopback addresses also with images and frames
 *     Content-Type     without permission a page can send text, forms, untyped bodies, but not JSON
 * Over plain HTTP to other than loopback addresses, browsers send no Sec-Fetch-Site: there, a GET
 * for an image looks like any other client's.
 *
 * A proxy that queries weir about a request passes on that request's fields; they are not the
 * proxy's own.
 */
#include "serve/server/http_server_internal.h"

#include "base/address.h"
#include "base/ascii.h"

static bool is_same_text(struct wr_span a, struct wr_span b)
{
    return a.bytes == b.bytes && wr_ascii_same(a.data, b.data, a.bytes);
}

static bool is_own_host(struct wr_span host, const char *const *names)
{
    struct wr_address address;
    if (wr_address_parse_peer(host, &address))
        return true;
    struct wr_span name = wr_host_without_port(host);
    if (is_same_text(name, wr_span_of("localhost")))
        return true;
    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        if (is_same_text(name, wr_span_of(names[i])))
            return true;
    return false;
}

/* Returns true if `origin` is "http://HOST" or "https://HOST". */
static bool is_origin_of(struct wr_span origin, struct wr_span host)
{
    const char *const schemes[] = {"http://", "https://"};
    for (int i = 0; i < 2; i++) {
        size_t bytes = strlen(schemes[i]);
        if (origin.bytes == bytes + host.bytes && memcmp(origin.data, schemes[i], bytes) == 0 &&
            is_same_text(wr_span_after(origin, bytes), host))
            return true;
    }
    return false;
}

static bool has_foreign_origin(const struct wr_http_exchange *exchange)
{
    struct wr_span origin;
    uint32_t cursor = 0;
    while (wr_request_find(exchange->request, "origin", &cursor, &origin))
        if (!is_origin_of(origin, exchange->host))
            return true;
    return false;
}

static bool has_field_value(const struct wr_http_exchange *exchange, const char *name, const char *wanted)
{
    struct wr_span value;
    uint32_t cursor = 0;
    return wr_request_find(exchange->request, name, &cursor, &value) && wr_span_is(value, wanted);
}

/* Returns true if a user follows a link from another page to "/". That page changes nothing, and
 * cannot be shown in a frame. */
static bool is_link(const struct wr_http_exchange *exchange)
{
    return exchange->method == WR_METHOD_GET && wr_span_is(exchange->path, "/") &&
           has_field_value(exchange, "sec-fetch-mode", "navigate") &&
           has_field_value(exchange, "sec-fetch-dest", "document");
}

static bool has_foreign_site(const struct wr_http_exchange *exchange)
{
    struct wr_span site;
    uint32_t cursor = 0;
    while (wr_request_find(exchange->request, "sec-fetch-site", &cursor, &site))
        if (!wr_span_is(site, "same-origin") && !wr_span_is(site, "none"))
            return !is_link(exchange);
    return false;
}

/* Returns true for "application/json", with or without parameters. */
static bool is_json(struct wr_span type)
{
    static const char json[] = "application/json";
    size_t bytes = sizeof json - 1;
    return type.bytes >= bytes && wr_ascii_same(type.data, json, bytes) &&
           (type.bytes == bytes || type.data[bytes] == ';' || type.data[bytes] == ' ' || type.data[bytes] == '\t');
}

static bool has_non_json_body(const struct wr_http_exchange *exchange)
{
    struct wr_span type;
    uint32_t cursor = 0, count = 0;
    if (exchange->body.bytes == 0)
        return false;
    for (; wr_request_find(exchange->request, "content-type", &cursor, &type); count++)
        if (!is_json(type))
            return true;
    return count == 0;
}

/* A peer of a Unix socket is not a browser, and a browser always sends Host. */
static bool has_foreign_host(const struct wr_http_exchange *exchange, const char *const *names)
{
    return exchange->host.bytes > 0 && !wr_span_is(exchange->peer, "unix:") && !is_own_host(exchange->host, names);
}

/* Returns why fields that a proxy may have passed on are refused; NULL if they are accepted. */
static const char *field_refusal_reason(const struct wr_http_exchange *exchange, int *ret_status)
{
    *ret_status = 403;
    if (has_foreign_origin(exchange))
        return "the Origin names another site; omit it, or send the request from this server's own page";
    if (has_foreign_site(exchange))
        return "Sec-Fetch-Site names another site; send the request from this server's own page";
    *ret_status = 415;
    if (has_non_json_body(exchange))
        return "the body must be JSON; send it with Content-Type: application/json";
    return NULL;
}

static const char *refusal_reason(const struct wr_http_exchange *exchange, const struct wr_http_server_options *options,
                                  int *ret_status)
{
    *ret_status = 403;
    if (has_foreign_host(exchange, options->names))
        return "this Host is not accepted; use an address or localhost, or add the name with --listen-name";
    const char *why = field_refusal_reason(exchange, ret_status);
    bool is_asked_for = why != NULL && options->speaks != NULL && options->speaks(options->context, exchange);
    return is_asked_for ? NULL : why;
}

bool wr_http_refuse_cross_origin(struct wr_http_exchange *exchange)
{
    struct wr_http_loop *loop = exchange->loop;
    const struct wr_http_server_options *options = &loop->server->options;
    int status;
    const char *why = refusal_reason(exchange, options, &status);
    if (why == NULL)
        return false;
    wr_http_count(&loop->counts.foreign);
    if (options->foreign != NULL)
        options->foreign(options->context, exchange, why);
    wr_http_refuse(exchange, status, why);
    return true;
}

bool wr_http_has_token(const struct wr_http_exchange *exchange, const char *token)
{
    static const char scheme[] = "Bearer ";
    struct wr_span value;
    uint32_t cursor = 0;
    unsigned char differs = 0;
    size_t bytes = token == NULL ? 0 : strlen(token);
    if (bytes == 0 || !wr_request_find(exchange->request, "authorization", &cursor, &value))
        return false;
    if (value.bytes != bytes + sizeof scheme - 1 || !wr_ascii_same(value.data, scheme, sizeof scheme - 1))
        return false;
    for (size_t i = 0; i < bytes; i++) /* constant time: independent of where the texts differ */
        differs |= (unsigned char)(value.data[sizeof scheme - 1 + i] ^ token[i]);
    return differs == 0;
}
