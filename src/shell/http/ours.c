/* SPDX-License-Identifier: MIT */
/* ours.c - whether a request is the user's own, and not one that somebody else's page made a browser send.
 *
 * A page can have a name of its own point at 127.0.0.1 (DNS rebinding); what the browser then sends has that name as
 * its Host. It can also have the browser post here; what is sent then has the page's Origin.
 */
#include "shell/http/inside.h"

#include "base/address.h"
#include "base/ascii.h"

static bool is_same(struct wr_span a, struct wr_span b)
{
    return a.bytes == b.bytes && wr_ascii_same(a.data, b.data, a.bytes);
}

static bool is_host_ours(struct wr_span host, const char *const *names)
{
    struct wr_address address;
    if (wr_address_parse_peer(host, &address))
        return true;
    struct wr_span name = wr_host_without_port(host);
    if (is_same(name, wr_span_of("localhost")))
        return true;
    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        if (is_same(name, wr_span_of(names[i])))
            return true;
    return false;
}

/* "http://HOST" or "https://HOST" */
static bool is_origin_of(struct wr_span origin, struct wr_span host)
{
    const char *const schemes[] = {"http://", "https://"};
    for (int i = 0; i < 2; i++) {
        size_t bytes = strlen(schemes[i]);
        if (origin.bytes == bytes + host.bytes && memcmp(origin.data, schemes[i], bytes) == 0 &&
            is_same(wr_span_after(origin, bytes), host))
            return true;
    }
    return false;
}

bool wr_http_is_ours(const struct wr_http_exchange *exchange, const char *const *names)
{
    struct wr_span origin;
    uint32_t cursor = 0;
    bool is_unix = wr_span_is(exchange->peer, "unix:");
    if (!is_unix && !is_host_ours(exchange->host, names))
        return false;
    while (wr_request_find(exchange->request, "origin", &cursor, &origin))
        if (!is_origin_of(origin, exchange->host))
            return false;
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
    for (size_t i = 0; i < bytes; i++) /* how long it takes does not depend on where they differ */
        differs |= (unsigned char)(value.data[sizeof scheme - 1 + i] ^ token[i]);
    return differs == 0;
}
