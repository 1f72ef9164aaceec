/* SPDX-License-Identifier: MIT */
/* head.h - the head of a response, line by line: is it one whose body everybody would find in the same place?
 *
 *     wr_head_init(&head, allocator, &limits);
 *     for each line of the heads, and of the trailer if there is one:
 *         fault = wr_head_line(&head, line);
 *     if (wr_head_is_whole(&head)) … head.status, wr_head_find(&head, "Location", &value) …
 *
 * libcurl reads the protocol; what it lets pass is refused here. A length that is no number, two that differ, a length
 * together with chunks: one of two readers will take bytes of the body for the next response (RFC 9112 6.3, 11.1). A
 * field that decides the framing must be written in the one way that all read alike: not folded, no blank before its
 * colon. Others may be odd (C9): folded lines are joined by a blank (RFC 9112 5.2), what has a colon and yet is no
 * field is left out; what has none, or a NUL, is no head (as libcurl has it, which refuses those before). And all is
 * bounded: bytes and interim answers. Content codings are counted; who decodes the body refuses more than one.
 */
#ifndef WR_CORE_RULES_HTTP_HEAD_H
#define WR_CORE_RULES_HTTP_HEAD_H

#include "base/buf.h"

#include <stdint.h>

#define WR_HEAD_FAULTS(X)                                                                 \
    X(WR_HEAD_OK, "nothing is wrong")                                                     \
    X(WR_HEAD_STATUS, "the status line is none of HTTP")                                  \
    X(WR_HEAD_LARGE, "the header is too large")                                           \
    X(WR_HEAD_INTERIMS, "too many interim answers")                                       \
    X(WR_HEAD_LENGTH, "a Content-Length that is no number")                               \
    X(WR_HEAD_LENGTHS, "two Content-Lengths that differ")                                 \
    X(WR_HEAD_BOTH, "both Content-Length and Transfer-Encoding")                          \
    X(WR_HEAD_TRANSFER, "a Transfer-Encoding other than chunked")                         \
    X(WR_HEAD_FIELD, "a malformed Content-Length, Transfer-Encoding or Content-Encoding") \
    X(WR_HEAD_NO_FIELD, "a line that is no field")                                        \
    X(WR_HEAD_TRAILER, "after the last chunk something that is no field")                 \
    X(WR_HEAD_MEMORY, "there is no memory left")

enum wr_head_fault {
#define X(fault, text) fault,
    WR_HEAD_FAULTS(X)
#undef X
};

const char *wr_head_fault_text(enum wr_head_fault fault);

struct wr_head_limits {
    uint32_t bytes_max;    /* of all heads and the trailer together, at most 2^30 */
    uint32_t interims_max; /* answers 1xx before the final one */
};

struct wr_head {
    struct wr_head_limits limits;
    struct wr_buf text; /* fields of the last head: name '\n' value '\n' */
    uint32_t bytes;     /* of lines so far */
    uint32_t interims;
    uint32_t codings;     /* in Content-Encoding, of the last head */
    int64_t length;       /* Content-Length; -1: none */
    int status;           /* of the last head; 0 before the first */
    uint8_t place;        /* enum place, in head.c */
    bool has_transfer;    /* Transfer-Encoding */
    bool last_is_framing; /* the last field decides the framing */
    bool last_is_left_out;
};

/* Takes no memory yet. */
void wr_head_init(struct wr_head *ret_head, const weir_allocator *allocator, const struct wr_head_limits *limits);

/* The next line, with its CR and LF. After a fault give no more. */
enum wr_head_fault wr_head_line(struct wr_head *head, struct wr_span line);

/* Whether an element of Content-Encoding is a coding; "identity" is none (RFC 9110 12.5.3). */
bool wr_head_is_coding(struct wr_span element);

/* Whether the next line is a status line. */
bool wr_head_wants_status(const struct wr_head *head);

/* Whether the final head has ended: what follows is body or trailer. */
bool wr_head_is_whole(const struct wr_head *head);

/* Walks over the fields in their order: start with *cursor 0, and end at false. Good until the next line. */
bool wr_head_next(const struct wr_head *head, size_t *cursor, struct wr_span *ret_name, struct wr_span *ret_value);

/* The first field of that name, in any case. */
bool wr_head_find(const struct wr_head *head, const char *name, struct wr_span *ret_value);

/* As after init; keeps the memory, unless it is large. */
void wr_head_clear(struct wr_head *head);

void wr_head_release(struct wr_head *head);

#endif
