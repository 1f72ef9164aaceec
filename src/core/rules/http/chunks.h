/* SPDX-License-Identifier: MIT */
/* chunks.h - a body that comes in chunks (RFC 9112 7.1), read in the one way that all read alike.
 *
 *     wr_chunks_init(&chunks);
 *     while ((step = wr_chunks_next(&chunks, &rest, &piece)) == WR_CHUNKS_BODY) … piece …
 *
 * `rest` is what has come; what is read of it is dropped. Nothing is copied, and no chunk need come in one piece.
 *
 * A size is 1 to 16 hex digits, at most INT64_MAX, then blanks, perhaps an extension, which nobody reads, and CR LF;
 * the chunk ends with CR LF. No "0x", no sign, no bare LF: where two readers might differ, what one takes for the body
 * is the next answer for the other (A8). A size's line has at most WR_CHUNKS_LINE_MAX bytes. The trailer is made of
 * lines like those of a head, and read by the same (core/rules/http/head).
 */
#ifndef WR_CORE_RULES_HTTP_CHUNKS_H
#define WR_CORE_RULES_HTTP_CHUNKS_H

#include "base/span.h"

#include <stdint.h>

#define WR_CHUNKS_LINE_MAX 1024

/* All zero: before the first chunk. */
struct wr_chunks {
    uint64_t left;       /* the size as far as it is read; then of this chunk */
    uint16_t line_bytes; /* of the line that says the size */
    uint8_t digits;
    uint8_t place; /* enum place, in chunks.c */
};

enum wr_chunks_step {
    WR_CHUNKS_MORE, /* all is read: give what comes next */
    WR_CHUNKS_BODY, /* *ret_piece is the next piece of the body */
    WR_CHUNKS_LAST, /* the last chunk has ended: `rest` begins with the trailer, lines up to an empty one */
    WR_CHUNKS_BAD,  /* this is no chunk */
};

static inline void wr_chunks_init(struct wr_chunks *ret_chunks)
{
    *ret_chunks = (struct wr_chunks){.place = 0};
}

/* After WR_CHUNKS_LAST and WR_CHUNKS_BAD it says the same again. */
enum wr_chunks_step wr_chunks_next(struct wr_chunks *chunks, struct wr_span *rest, struct wr_span *ret_piece);

#endif
