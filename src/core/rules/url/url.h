/* SPDX-License-Identifier: MIT */
/* url.h - http and https URLs, as the WHATWG URL standard parses, resolves and writes them.
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
 * Links and redirects come from strangers, so a bad URL is a fault with a reason and no error of ours. Where we are
 * stricter than the standard:
 *   - other schemes than http and https are refused: weir fetches nothing else (A11);
 *   - a host is a name that DNS can look up (labels of 1 … 63 bytes, 253 in all, letters, digits, '-' and '_') or an
 *     address. The standard also lets through quotes, empty labels and ".."; those must not reach a store, a file name
 *     or a log (D7);
 *   - internationalized names are those of IDNA 2008, as libidn2 has it: a symbol such as U+2603 is known by its ASCII
 *     form only (xn--n3h);
 *   - nobody listens at port 0;
 *   - a URL of more than WR_URL_MAX bytes is refused (D6, C12);
 *   - bytes that are not UTF-8 stay themselves, percent-encoded, where browsers would write U+FFFD: the server that
 *     wrote them gets them back.
 */
#ifndef WR_CORE_RULES_URL_URL_H
#define WR_CORE_RULES_URL_URL_H

#include "base/buf.h"

#include <stdint.h>

#define WR_URL_MAX 8192 /* bytes; what servers take: RFC 9110 4.1 asks for 8000, Apache has 8190, nginx 8k */
#define WR_URL_ROOM (WR_URL_MAX + 1)
#define WR_HOST_MAX 253 /* bytes of a name, without the dot at its end */

#define WR_URL_FAULTS(X)                                                                                  \
    X(WR_URL_OK, "nothing is wrong")                                                                      \
    X(WR_URL_RELATIVE, "it is relative, and there is nothing to resolve it against; begin with https://") \
    X(WR_URL_SCHEME, "its scheme is not http or https")                                                   \
    X(WR_URL_NO_HOST, "it has no host")                                                                   \
    X(WR_URL_HOST, "its host has a character that no host name has")                                      \
    X(WR_URL_NAME, "its host is no name: parts have 1 ... 63 bytes, all of it at most 253")               \
    X(WR_URL_IDNA, "its host is not a valid internationalized name")                                      \
    X(WR_URL_V4, "its host ends in a number, but is not an IPv4 address")                                 \
    X(WR_URL_V6, "its host is not an IPv6 address in brackets")                                           \
    X(WR_URL_PORT, "its port is not a number from 1 to 65535")                                            \
    X(WR_URL_LONG, "it is longer than 8192 bytes")                                                        \
    X(WR_URL_MEMORY, "there is no memory left")

enum wr_url_fault {
#define X(fault, text) fault,
    WR_URL_FAULTS(X)
#undef X
};

const char *wr_url_fault_text(enum wr_url_fault fault);

/* Internationalized names need tables, which the shell has. */
struct wr_idna {
    /* Appends the ASCII form of `domain` (UTF-8 without NUL) by UTS 46, non-transitional: lower case, A-labels. 0,
     * WEIR_E_INVAL (there is none), WEIR_E_NOMEM. */
    int (*to_ascii)(void *context, struct wr_span domain, struct wr_buf *buf);
    void *context;
};

/* Offsets are into `text`; a part that is not there ends where it begins. */
struct wr_url {
    const char *text; /* terminated, in the memory given; printable ASCII */
    uint16_t bytes;
    uint16_t host_at, host_end;
    uint16_t path_at;     /* '/' */
    uint16_t query_at;    /* '?' */
    uint16_t fragment_at; /* '#' */
    uint16_t port;        /* that of the scheme if none was given */
    bool is_https;
};

/* Parses `input`; one that is relative is resolved against `base` (NULL: there is none). `idna` may be NULL: then hosts
 * are ASCII, and A-labels are taken as they are. Writes the URL to `memory`, where `base` and `input` must not be, and
 * takes no other. WR_URL_LONG also if it is longer than `memory_bytes` - 1. */
enum wr_url_fault wr_url_parse(struct wr_span input, const struct wr_url *base, const struct wr_idna *idna,
                               char *memory, size_t memory_bytes, struct wr_url *ret_url);

static inline struct wr_span wr_url_part(const struct wr_url *url, size_t from, size_t to)
{
    return (struct wr_span){url->text + from, to - from};
}

/* "example.org", "192.0.2.1", "[2001:db8::1]". */
static inline struct wr_span wr_url_host(const struct wr_url *url)
{
    return wr_url_part(url, url->host_at, url->host_end);
}

/* Path and query: what a request asks for, and what robots.txt judges. */
static inline struct wr_span wr_url_target(const struct wr_url *url)
{
    return wr_url_part(url, url->path_at, url->fragment_at);
}

/* Whether they have scheme, host and port in common. */
bool wr_url_same_origin(const struct wr_url *a, const struct wr_url *b);

/* Whether the text names a user or a password, which no log may show (V10). */
static inline bool wr_url_has_userinfo(const struct wr_url *url)
{
    return url->text[url->host_at - 1] == '@';
}

/* Takes user name and password out of a terminated text that is a URL, or was meant to be one: for what is shown. */
void wr_url_hide_user(char *text);

/* What may be shown of a text that was meant to be a URL, terminated and cut to the room. Of one with a user, or with a
 * port that is no number, nothing up to its last '@': people do not escape what is in a password. Without any '@' such
 * a port may be a password, too. */
void wr_url_show_bad(struct wr_span text, char *ret_shown, size_t room);

/* The politeness key (S0-7, R12): the host without the dot at its end, and the port if it is not the scheme's.
 * "http://Example.ORG.:80/a" is "example.org", as with weir_host_key; but that one drops 80 and 443 because it is told
 * no scheme, and here the port 443 under http stays, for it is another server than the one at port 80. */
void wr_url_append_key(struct wr_buf *buf, const struct wr_url *url);

/* Where the rules for this URL are: one robots.txt per scheme, host and port (RFC 9309 2.3, B13). */
void wr_url_append_robots(struct wr_buf *buf, const struct wr_url *url);

/* What two spellings of the same page have in common: no fragment, no userinfo, no dot after the host; percent-encoded
 * unreserved characters (RFC 3986 2.3) decoded, other hex digits in capitals, a '%' that encodes nothing as "%25". The
 * rest (port, case of the host, dot segments) parsing has done. Up to three times as long as the URL. */
void wr_url_append_canonical(struct wr_buf *buf, const struct wr_url *url);

/* The same as a URL of its own in `memory`, where `url` must not be. WR_URL_LONG: it has no room there, or is longer
 * than WR_URL_MAX. */
enum wr_url_fault wr_url_canonical(const struct wr_url *url, char *memory, size_t memory_bytes, struct wr_url *ret_url);

#endif
