/* SPDX-License-Identifier: MIT */
/* url.h - parses, resolves and writes http and https URLs by the WHATWG URL standard.
 *
 *     char memory[WR_URL_ROOM];
 *     struct wr_url url;
 *     fault = wr_url_parse(wr_span_of("../b?c"), &base, idna, memory, sizeof memory, &url);
 *
 *     https://user:secret@example.org:8080/a/b?c#d
 *                         |           |   |    | |
 *                         host_at     |   |    | fragment_at
 *                              host_end   |    query_at
 *                                         path_at
 *
 * URLs are untrusted input, so a bad URL gives a fault with a reason and is not an error of weir.
 * The parser is stricter than the standard:
 *   - schemes other than http and https are refused, because weir fetches nothing else;
 *   - a host is a name that DNS can look up (labels of 1 to 63 bytes, 253 in all, letters, digits,
 *     '-' and '_') or an address. The standard also allows quotes, empty labels and "..", but these
 *     must not reach a store, a file name or a log;
 *   - internationalized names are those of IDNA 2008 as in libidn2: a symbol such as U+2603 is
 *     valid in its ASCII form (xn--n3h) only;
 *   - port 0 is refused, because no server can listen there;
 *   - a URL of more than WR_URL_MAX bytes is refused;
 *   - bytes that are not UTF-8 are percent-encoded, where browsers would write U+FFFD: the server
 *     that wrote them gets them back.
 */
#ifndef WR_CORE_WEB_URL_URL_H
#define WR_CORE_WEB_URL_URL_H

#include "base/buf.h"

#include <stdint.h>

/* Bytes that servers accept: RFC 9110 4.1 asks for 8000, Apache has 8190, nginx 8k. */
#define WR_URL_MAX 8192
#define WR_URL_ROOM (WR_URL_MAX + 1)
#define WR_URL_HOST_MAX 253 /* bytes of a name, without the trailing dot */

#define WR_URL_FAULTS(X)                                                                             \
    X(WR_URL_OK, "nothing is wrong")                                                                 \
    X(WR_URL_RELATIVE, "it is relative, and there is no base URL; begin it with https://")           \
    X(WR_URL_SCHEME, "its scheme is not http or https")                                              \
    X(WR_URL_NO_HOST, "it has no host")                                                              \
    X(WR_URL_HOST, "its host has a character that host names cannot have")                           \
    X(WR_URL_NAME, "its host is not a valid name: parts have 1 ... 63 bytes, the whole at most 253") \
    X(WR_URL_IDNA, "its host is not a valid internationalized name")                                 \
    X(WR_URL_V4, "its host ends in a number, but is not an IPv4 address")                            \
    X(WR_URL_V6, "its host is not an IPv6 address in brackets")                                      \
    X(WR_URL_PORT, "its port is not a number from 1 to 65535")                                       \
    X(WR_URL_LONG, "it is longer than 8192 bytes")                                                   \
    X(WR_URL_MEMORY, "out of memory")

enum wr_url_fault {
#define X(fault, text) fault,
    WR_URL_FAULTS(X)
#undef X
};

const char *wr_url_fault_text(enum wr_url_fault fault);

/* The conversion of internationalized names. It needs tables, so the shell provides it. */
struct wr_idna {
    /* Appends the ASCII form of `domain` (UTF-8 without NUL) by UTS 46, non-transitional: lower
     * case, A-labels. Returns 0, WEIR_E_INVAL if the name has no such form, or WEIR_E_NOMEM. */
    int (*to_ascii)(void *context, struct wr_span domain, struct wr_buf *buf);
    void *context;
};

/* A parsed URL. Offsets are into `text`; an absent part is empty. */
struct wr_url {
    const char *text; /* terminated printable ASCII in the caller's memory */
    uint16_t bytes;
    uint16_t host_at, host_end;
    uint16_t path_at;     /* offset of the '/' that starts the path */
    uint16_t query_at;    /* offset of the '?', or where it would be */
    uint16_t fragment_at; /* offset of the '#', or where it would be */
    uint16_t port;        /* explicit port, or the default of the scheme */
    bool is_https;
};

/* Parses `input`. A relative URL is resolved against `base`, which may be NULL. If `idna` is NULL,
 * hosts must be ASCII, and A-labels are not checked. Writes the URL to `memory`, which must not
 * overlap `base` or `input`, and allocates nothing. Returns WR_URL_LONG also if the URL is longer
 * than `memory_bytes` - 1. */
enum wr_url_fault wr_url_parse(struct wr_span input, const struct wr_url *base, const struct wr_idna *idna,
                               char *memory, size_t memory_bytes, struct wr_url *ret_url);

static inline struct wr_span wr_url_part(const struct wr_url *url, size_t from, size_t to)
{
    return (struct wr_span){url->text + from, to - from};
}

/* Returns the host: "example.org", "192.0.2.1", "[2001:db8::1]". */
static inline struct wr_span wr_url_host(const struct wr_url *url)
{
    return wr_url_part(url, url->host_at, url->host_end);
}

/* Returns path and query: the request target, which robots.txt rules match. */
static inline struct wr_span wr_url_target(const struct wr_url *url)
{
    return wr_url_part(url, url->path_at, url->fragment_at);
}

/* Returns true if the URLs have the same scheme, host and port. */
bool wr_url_same_origin(const struct wr_url *a, const struct wr_url *b);

/* Returns true if the URL has a user name or password, which must not be logged. */
static inline bool wr_url_has_userinfo(const struct wr_url *url)
{
    return url->text[url->host_at - 1] == '@';
}

/* Removes user name and password from a terminated text that is, or was meant to be, a URL. For
 * showing it. */
void wr_url_hide_user(char *text);

/* Writes what may be shown of a text that is not a valid URL, terminated and cut to `room` bytes.
 * If it has a user or a port that is not a number, everything up to its last '@' is left out,
 * because users do not escape special characters in passwords. Without any '@' such a port is left
 * out as well, because it may be a password. */
void wr_url_redact_invalid(struct wr_span text, char *ret_shown, size_t room);

/* Appends the host key that requests are paced by: the host without trailing dot, and the port if
 * it is not the default of the scheme. "http://Example.ORG.:80/a" gives "example.org", as with
 * weir_host_key. That function knows no scheme and drops both 80 and 443; here "http://a:443" keeps
 * its port, because it is another server than port 80. */
void wr_url_append_key(struct wr_buf *buf, const struct wr_url *url);

/* Appends the URL of the robots.txt for this URL: one per scheme, host and port (RFC 9309 2.3). */
void wr_url_append_robots(struct wr_buf *buf, const struct wr_url *url);

/* Appends the canonical form, which is equal for equivalent spellings: no fragment, user, password,
 * or dot after the host; percent-encoded unreserved characters (RFC 3986 2.3) decoded, other hex
 * digits in capitals, a '%' that encodes nothing as "%25". Parsing has already normalized port,
 * case of the host and dot segments. The result has at most three times the length of the URL. */
void wr_url_append_canonical(struct wr_buf *buf, const struct wr_url *url);

/* Writes the canonical form as a URL to `memory`, which must not overlap `url`. Returns WR_URL_LONG
 * if it does not fit or is longer than WR_URL_MAX. */
enum wr_url_fault wr_url_canonical(const struct wr_url *url, char *memory, size_t memory_bytes, struct wr_url *ret_url);

#endif
