/* SPDX-License-Identifier: MIT */
/* redirect.h - where an answer leads, and what may go along.
 *
 * The client and the crawl follow redirects themselves, hop by hop: each hop is a request of its own to its own host.
 * What was meant for one origin (credentials, headers of our own) stays there; whoever leaves it does not get it back.
 */
#ifndef WR_CORE_RULES_URL_REDIRECT_H
#define WR_CORE_RULES_URL_REDIRECT_H

#include "core/rules/url/url.h"

enum wr_redirect_kind {
    WR_REDIRECT_NOT, /* it is an answer like others */
    WR_REDIRECT_FOLLOW,
    WR_REDIRECT_BAD, /* its Location is no URL that we fetch */
};

struct wr_redirect {
    enum wr_redirect_kind kind;
    enum wr_url_fault fault; /* of BAD */
    bool keeps_origin;       /* same scheme, host and port: what is meant for it may go along */
    bool becomes_get;        /* and without its body, whatever it was (RFC 9110 15.4.2 to 15.4.4) */
};

/* Whether an answer with this status leads elsewhere if it has a Location: 301, 302, 303, 307, 308. */
bool wr_status_leads(int status);

/* Follows the `location` (empty: there was none) of an answer to a request for `from`. User names and passwords in it
 * are dropped: they are a stranger's. Writes the URL to `memory`, as wr_url_parse. */
struct wr_redirect wr_redirect_read(int status, struct wr_span method, const struct wr_url *from,
                                    struct wr_span location, const struct wr_idna *idna, char *memory,
                                    size_t memory_bytes, struct wr_url *ret_to);

/* Takes user name and password out of a URL whose text lies in `memory`. */
void wr_url_drop_userinfo(struct wr_url *url, char *memory);

#endif
