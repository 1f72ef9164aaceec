/* SPDX-License-Identifier: MIT */
/* redirect.h - parses redirects, and decides what the next request may carry over.
 *
 * Client and crawl follow redirects themselves: each hop is a separate request to its own host.
 * Credentials and custom headers are meant for one origin. Once a redirect leaves the origin they
 * are dropped, and a redirect back does not restore them.
 */
#ifndef WR_CORE_WEB_URL_REDIRECT_H
#define WR_CORE_WEB_URL_REDIRECT_H

#include "core/web/url/url.h"

enum wr_redirect_kind {
    WR_REDIRECT_NOT, /* the response is not a redirect */
    WR_REDIRECT_FOLLOW,
    WR_REDIRECT_BAD, /* the Location is not a URL that weir fetches */
};

struct wr_redirect {
    enum wr_redirect_kind kind;
    enum wr_url_fault fault; /* why the Location is BAD */
    /* same scheme, host and port: headers that are meant for the origin may be sent */
    bool keeps_origin;
    /* the next request is a GET without body, whatever it was (RFC 9110 15.4.2 to 15.4.4) */
    bool becomes_get;
};

/* Returns true for the statuses that redirect if there is a Location: 301, 302, 303, 307, 308. */
bool wr_status_redirects(int status);

/* Resolves the `location` (empty: no such field) of the response to a request for `from`. User name
 * and password in it are dropped, because they are untrusted. Writes the URL to `memory` like
 * wr_url_parse. */
struct wr_redirect wr_redirect_read(int status, struct wr_span method, const struct wr_url *from,
                                    struct wr_span location, const struct wr_idna *idna, char *memory,
                                    size_t memory_bytes, struct wr_url *ret_to);

/* Removes user name and password from a URL whose text is in `memory`. */
void wr_url_drop_userinfo(struct wr_url *url, char *memory);

#endif
