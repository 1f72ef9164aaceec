/* SPDX-License-Identifier: MIT */
/* path.h - the target of a request (RFC 9112 3.2), and the paths that services take it for.
 *
 *     fault = wr_target_read(target, &read);                      once
 *     wr_path_append(&buf, &read, WR_LOOSE_CASE | WR_LOOSE_SLASHES)      for each way of reading it
 *
 * Services differ: to one "/Login/" is "/login", to another it is not. A way of reading is a set of WR_LOOSE_…; the
 * empty set reads a path as it is written. `varies` names those that make a difference to this target, and so says how
 * many ways there are. A target that no client needs to send, and that services disagree about, is a fault.
 */
#ifndef WR_CORE_ADMIT_PATH_H
#define WR_CORE_ADMIT_PATH_H

#include "base/buf.h"

#include <weir/admit.h>

enum {
    WR_LOOSE_CASE = WEIR_EXACT_CASE,       /* "/Login" is "/login" */
    WR_LOOSE_SLASHES = WEIR_EXACT_SLASHES, /* "/a//login" is "/a/login" */
    WR_LOOSE_PARAMS = WEIR_EXACT_PARAMS,   /* "/login;a=1" is "/login" */
    WR_LOOSE_ESCAPES = 8,                  /* "/%40me" is "/@me" */
    WR_LOOSE_PARTS = 16,                   /* "/a%2Fb" is "/a/b": ASP.NET decodes all escapes but this one */
    WR_LOOSE_END = 32,                     /* "/login/" is "/login": nginx merges slashes but keeps the last one */
    WR_LOOSE_ALL = 63,
};

/* The WR_LOOSE_… that remain possible when services tell apart `exact`, a set of WEIR_EXACT_…. */
static inline unsigned wr_loose_without(unsigned exact)
{
    return WR_LOOSE_ALL & ~exact & ~((exact & WEIR_EXACT_SLASHES) != 0 ? (unsigned)WR_LOOSE_END : 0U);
}

struct wr_target {
    struct wr_span authority; /* of "http://authority/path"; no data: there is none */
    struct wr_span path;      /* as sent, without the query; empty: it is "/" */
    unsigned varies;          /* WR_LOOSE_… */
    bool is_written;          /* byte for byte as wr_path_append writes it with the empty set */
};

/* Keeps the target's text. An empty target, and one that begins with '?', is "/". WEIR_FAULT_NONE; _TARGET: neither a
 * path nor an http URL, or a path that begins with an empty part (RFC 3986 4.2 reads "//host/login" as "/login");
 * _DOTS: a part "." or ".."; _ESCAPE: a '%' that begins no escape, or an escape of a letter, digit, '.', '-' or '_',
 * or among parameters one of '/' or ';'; _BYTES: bytes that stand in no URL, control characters and backslashes even
 * if they are escaped, over-long UTF-8. */
weir_fault wr_target_read(struct wr_span target, struct wr_target *ret_target);

/* Writes the path as a service takes it that reads it in this way: each byte in one spelling. WEIR_FAULT_NONE, _LONG.
 */
weir_fault wr_path_append(struct wr_buf *buf, const struct wr_target *target, unsigned loose);

/* Writes the key of a route: the path in its loosest reading, so that all spellings and all readings of one path are
 * one key. `exact`: WEIR_EXACT_…, what is to make a difference. WEIR_FAULT_NONE, _LONG, _MISSING (a NULL target), or
 * what wr_target_read says. */
weir_fault wr_route_append(struct wr_buf *buf, struct wr_span target, unsigned exact);

#endif
