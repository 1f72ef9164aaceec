/* SPDX-License-Identifier: MIT */
/* head.h - parses the head of a response line by line, and refuses heads with ambiguous framing.
 *
 *     wr_head_init(&head, allocator, &limits);
 *     for each line of the heads, and of the trailer if there is one:
 *         fault = wr_head_line(&head, line);
 *     if (wr_head_is_whole(&head)) ... head.status, wr_head_find(&head, "Location", &value) ...
 *
 * libcurl parses the protocol; this parser refuses what libcurl tolerates: a length that is not a
 * number, two lengths that differ, a length together with chunks. In these cases one of two parsers
 * takes bytes of the body for the next response (RFC 9112 6.3, 11.1). A field that decides the
 * framing must be unambiguous: not folded, no blank before its colon. Other fields may be odd:
 * folded lines are joined by a blank (RFC 9112 5.2), and malformed lines with a colon are skipped.
 * A line without a colon, or with a NUL, makes the head invalid, as in libcurl, which refuses them
 * earlier. Bytes and interim responses are bounded. Content codings are counted; the decoder
 * refuses more than one.
 */
#ifndef WR_CORE_WEB_HTTP_HEAD_H
#define WR_CORE_WEB_HTTP_HEAD_H

#include "base/buf.h"

#include <stdint.h>

#define WR_HEAD_FAULTS(X)                                                                 \
    X(WR_HEAD_OK, "nothing is wrong")                                                     \
    X(WR_HEAD_STATUS, "the status line is not HTTP")                                      \
    X(WR_HEAD_LARGE, "the header is too large")                                           \
    X(WR_HEAD_INTERIMS, "too many interim responses")                                     \
    X(WR_HEAD_LENGTH, "a Content-Length that is not a number")                            \
    X(WR_HEAD_LENGTHS, "two Content-Lengths that differ")                                 \
    X(WR_HEAD_BOTH, "both Content-Length and Transfer-Encoding")                          \
    X(WR_HEAD_TRANSFER, "a Transfer-Encoding other than chunked")                         \
    X(WR_HEAD_FIELD, "a malformed Content-Length, Transfer-Encoding or Content-Encoding") \
    X(WR_HEAD_NO_FIELD, "a line that is not a header field")                              \
    X(WR_HEAD_TRAILER, "a trailer line that is not a header field")                       \
    X(WR_HEAD_MEMORY, "out of memory")

enum wr_head_fault {
#define X(fault, text) fault,
    WR_HEAD_FAULTS(X)
#undef X
};

const char *wr_head_fault_text(enum wr_head_fault fault);

struct wr_head_limits {
    uint32_t bytes_max;    /* bytes of all heads and the trailer together, at most 2^30 */
    uint32_t interims_max; /* most 1xx responses before the final one */
};

struct wr_head {
    struct wr_head_limits limits;
    struct wr_buf text; /* fields of the last head, as name '\n' value '\n' */
    uint32_t bytes;     /* bytes of all lines so far */
    uint32_t interims;
    uint32_t codings;     /* codings in Content-Encoding of the last head */
    int64_t length;       /* Content-Length; -1: absent */
    int status;           /* status of the last head; 0 before the first */
    uint8_t place;        /* parser state: enum place of head.c */
    bool has_transfer;    /* Transfer-Encoding is present */
    bool last_is_framing; /* the last field decides the framing */
    bool last_is_left_out;
};

/* Initializes the parser. Allocates nothing yet. */
void wr_head_init(struct wr_head *ret_head, const weir_allocator *allocator, const struct wr_head_limits *limits);

/* Parses the next line, given with its CR and LF. Call it no more after a fault. */
enum wr_head_fault wr_head_line(struct wr_head *head, struct wr_span line);

/* Returns true if an element of Content-Encoding is a coding. "identity" is not (RFC 9110
 * 12.5.3). */
bool wr_head_is_coding(struct wr_span element);

/* Returns true if the next line must be a status line. */
bool wr_head_wants_status(const struct wr_head *head);

/* Returns true if the final head is complete: body or trailer follow. */
bool wr_head_is_whole(const struct wr_head *head);

/* Iterates over the fields in their order: *cursor starts at 0, and false ends the iteration. The
 * spans are valid until the next wr_head_line. */
bool wr_head_next(const struct wr_head *head, size_t *cursor, struct wr_span *ret_name, struct wr_span *ret_value);

/* Finds the first field with that name, ignoring case. Returns false if the head has no such
 * field. */
bool wr_head_find(const struct wr_head *head, const char *name, struct wr_span *ret_value);

/* Resets the parser for the next response. Keeps its buffer, unless it is large. */
void wr_head_clear(struct wr_head *head);

void wr_head_release(struct wr_head *head);

#endif
