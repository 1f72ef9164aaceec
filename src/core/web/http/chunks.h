/* SPDX-License-Identifier: MIT */
/* chunks.h - strict parser for chunked bodies (RFC 9112 7.1).
 *
 *     wr_chunks_init(&chunks);
 *     while ((step = wr_chunks_next(&chunks, &rest, &piece)) == WR_CHUNKS_BODY) ... piece ...
 *
 * `rest` is the received text; bytes that were read are removed from it. Nothing is copied, and a
 * chunk may arrive in any pieces.
 *
 * A size is 1 to 16 hex digits, at most INT64_MAX, then blanks, an optional extension, which is
 * ignored, and CR LF; the chunk ends with CR LF. No "0x", no sign, no bare LF: where two parsers
 * differ, one takes for the body what the other takes for the next response. A size line has at
 * most WR_CHUNKS_LINE_MAX bytes. The trailer has lines like a head and is parsed by
 * core/web/http/head.
 */
#ifndef WR_CORE_WEB_HTTP_CHUNKS_H
#define WR_CORE_WEB_HTTP_CHUNKS_H

#include "base/span.h"

#include <stdint.h>

#define WR_CHUNKS_LINE_MAX 1024

/* The parser state. All zero: before the first chunk. */
struct wr_chunks {
    uint64_t left;       /* the size while it is being read, then the unread bytes of the chunk */
    uint16_t line_bytes; /* bytes of the size line so far */
    uint8_t digits;
    uint8_t place; /* parser state: enum place of chunks.c */
};

enum wr_chunks_step {
    WR_CHUNKS_MORE, /* all input is read: call again with more */
    WR_CHUNKS_BODY, /* *ret_piece is the next piece of the body */
    /* end of the last chunk: `rest` begins with the trailer, which ends with an empty line */
    WR_CHUNKS_LAST,
    WR_CHUNKS_BAD, /* the chunk is malformed */
};

static inline void wr_chunks_init(struct wr_chunks *ret_chunks)
{
    *ret_chunks = (struct wr_chunks){.place = 0};
}

/* Parses the next piece of `rest`. After WR_CHUNKS_LAST or WR_CHUNKS_BAD every call returns the
 * same. */
enum wr_chunks_step wr_chunks_next(struct wr_chunks *chunks, struct wr_span *rest, struct wr_span *ret_piece);

#endif
