/* SPDX-License-Identifier: MIT */
/* path.h - parses the target of a request (RFC 9112 3.2), and writes the paths that services may
 * read from it.
 *
 *     fault = wr_target_read(target, &read);                         once
 *     wr_path_append(&buf, &read, WR_LOOSE_CASE | WR_LOOSE_SLASHES)  for each reading
 *
 * Services differ: "/Login/" is the same as "/login" for one, and not for another. A reading is a
 * set of WR_LOOSE_...; the empty set is the path as spelled. `varies` holds the members that make a
 * difference for this target, and so determines the number of readings. A target that no client
 * needs to send, and on which services disagree, is a fault.
 */
#ifndef WR_CORE_ADMIT_PATH_H
#define WR_CORE_ADMIT_PATH_H

#include "base/buf.h"

#include <weir/admit.h>

enum {
    WR_LOOSE_CASE = WEIR_EXACT_CASE,       /* "/Login" is read as "/login" */
    WR_LOOSE_SLASHES = WEIR_EXACT_SLASHES, /* "/a//login" is read as "/a/login" */
    WR_LOOSE_PARAMS = WEIR_EXACT_PARAMS,   /* "/login;a=1" is read as "/login" */
    WR_LOOSE_ESCAPES = 8,                  /* "/%40me" is read as "/@me" */
    WR_LOOSE_PARTS = 16,                   /* "/a%2Fb" is "/a/b" (ASP.NET keeps this escape) */
    WR_LOOSE_END = 32,                     /* "/login/" is "/login" (nginx keeps the last slash) */
    WR_LOOSE_ALL = 63,
};

/* Returns the WR_LOOSE_... that remain possible if services distinguish `exact`, a set of
 * WEIR_EXACT_... bits. */
static inline unsigned wr_loose_without(unsigned exact)
{
    return WR_LOOSE_ALL & ~exact & ~((exact & WEIR_EXACT_SLASHES) != 0 ? (unsigned)WR_LOOSE_END : 0U);
}

struct wr_target {
    struct wr_span authority; /* part of "http://authority/path"; NULL data in other targets */
    struct wr_span path;      /* path as sent, without the query; "/" if it was empty */
    unsigned varies;          /* set of WR_LOOSE_... that make a difference */
    bool is_written;          /* `path` equals what wr_path_append writes for the empty set */
};

/* Parses a target, whose text must outlive the result. An empty target, and one that begins with
 * '?', is "/". Returns WEIR_FAULT_NONE, or:
 * - _TARGET if it is neither a path nor an http URL, or the path begins with an empty segment
 *   (RFC 3986 4.2 reads "//host/login" as "/login");
 * - _DOTS if a segment is "." or "..";
 * - _ESCAPE for a '%' without two hex digits, an escaped letter, digit, '.', '-' or '_', and an
 *   escaped '/' or ';' that is ambiguous among parameters;
 * - _BYTES for bytes invalid in a URL, control characters and backslashes even if escaped, and
 *   over-long UTF-8. */
weir_request_fault wr_target_read(struct wr_span target, struct wr_target *ret_target);

/* Appends the path as a service with this reading sees it, each byte in one spelling. Returns
 * WEIR_FAULT_NONE or _LONG. */
weir_request_fault wr_path_append(struct wr_buf *buf, const struct wr_target *target, unsigned loose);

/* Appends the key of a route: the path in its loosest reading, so that all spellings and readings
 * of a path share one key. `exact` is the set of WEIR_EXACT_... differences that are kept. Returns
 * WEIR_FAULT_NONE, _LONG, _MISSING for a NULL target, or a fault of wr_target_read. */
weir_request_fault wr_route_append(struct wr_buf *buf, struct wr_span target, unsigned exact);

#endif
