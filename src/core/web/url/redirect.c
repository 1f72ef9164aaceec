/* SPDX-License-Identifier: MIT */
/* redirect.c - parses redirects, and decides what the next request may carry over. */
#include "core/web/url/redirect.h"

bool wr_status_redirects(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Returns true if the next request becomes a GET: after 303, unless it was a GET or HEAD, and after
 * 301 and 302 if it was a POST, as all browsers do. */
static bool becomes_get(int status, struct wr_span method)
{
    if (status == 303)
        return !wr_span_is(method, "GET") && !wr_span_is(method, "HEAD");
    return (status == 301 || status == 302) && wr_span_is(method, "POST");
}

void wr_url_drop_userinfo(struct wr_url *url, char *memory)
{
    size_t host_at = url->is_https ? sizeof "https://" - 1 : sizeof "http://" - 1;
    uint16_t by = (uint16_t)(url->host_at - host_at);
    memmove(memory + host_at, memory + url->host_at, (size_t)(url->bytes - url->host_at) + 1);
    url->host_at = (uint16_t)(url->host_at - by);
    url->host_end = (uint16_t)(url->host_end - by);
    url->path_at = (uint16_t)(url->path_at - by);
    url->query_at = (uint16_t)(url->query_at - by);
    url->fragment_at = (uint16_t)(url->fragment_at - by);
    url->bytes = (uint16_t)(url->bytes - by);
}

struct wr_redirect wr_redirect_read(int status, struct wr_span method, const struct wr_url *from,
                                    struct wr_span location, const struct wr_idna *idna, char *memory,
                                    size_t memory_bytes, struct wr_url *ret_to)
{
    struct wr_url to;
    if (!wr_status_redirects(status) || location.bytes == 0)
        return (struct wr_redirect){.kind = WR_REDIRECT_NOT};
    enum wr_url_fault fault = wr_url_parse(location, from, idna, memory, memory_bytes, &to);
    if (fault != WR_URL_OK)
        return (struct wr_redirect){.kind = WR_REDIRECT_BAD, .fault = fault};
    wr_url_drop_userinfo(&to, memory);
    *ret_to = to;
    return (struct wr_redirect){.kind = WR_REDIRECT_FOLLOW,
                                .keeps_origin = wr_url_same_origin(from, &to),
                                .becomes_get = becomes_get(status, method)};
}
