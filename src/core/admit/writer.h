/* SPDX-License-Identifier: MIT */
/* writer.h - writes into a buffer of fixed size, and counts on when it is full.
 *
 * Like snprintf: `bytes` is what there would be in a buffer that is large enough, so the whole was written if it is not
 * more than `room`, and one look at the end is enough. It is not base/buf.h, because keys are made for every request:
 * this one is inline, can be wound back by setting `bytes`, and leaves all of the room to the key, having no
 * terminator.
 */
#ifndef WR_CORE_ADMIT_WRITER_H
#define WR_CORE_ADMIT_WRITER_H

#include "base/span.h"

#include <stdint.h>

struct wr_writer {
    char *data;
    size_t room;
    size_t bytes;
};

static inline bool wr_writer_full(const struct wr_writer *writer)
{
    return writer->bytes > writer->room;
}

static inline void wr_write_char(struct wr_writer *writer, char c)
{
    if (writer->bytes < writer->room)
        writer->data[writer->bytes] = c;
    writer->bytes++;
}

static inline void wr_write_span(struct wr_writer *writer, struct wr_span span)
{
    if (span.bytes > 0 && !wr_writer_full(writer) && span.bytes <= writer->room - writer->bytes)
        memcpy(writer->data + writer->bytes, span.data, span.bytes);
    writer->bytes += span.bytes;
}

static inline void wr_write_text(struct wr_writer *writer, const char *text)
{
    wr_write_span(writer, wr_span_of(text));
}

/* `span` with a '\' before each byte that is `special` or '\'. */
void wr_write_escaped(struct wr_writer *writer, struct wr_span span, char special);

void wr_write_decimal(struct wr_writer *writer, uint64_t number);

/* The lowest `digits` hex digits, in the capitals or small letters of `alphabet`. */
#define WR_HEX_SMALL "0123456789abcdef"
#define WR_HEX_CAPITAL "0123456789ABCDEF"
void wr_write_hex(struct wr_writer *writer, uint32_t number, int digits, const char *alphabet);

#endif
