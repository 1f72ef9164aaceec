/* SPDX-License-Identifier: MIT */
/* span.c - decodes and checks UTF-8. */
#include "base/span.h"

/* Returns the length of the UTF-8 sequence at the start of the span, 0 if it is invalid: over-long
 * forms, surrogates and code points above U+10FFFF are invalid (RFC 3629). The span is not empty
 * and its first byte is not ASCII. */
static size_t sequence_bytes(struct wr_span span, uint32_t *ret_point)
{
    const uint8_t *at = (const uint8_t *)span.data;
    size_t bytes = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    uint32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
    uint32_t point = at[0] & (0x7fu >> bytes);

    if (at[0] < 0xc2 || at[0] > 0xf4 || span.bytes < bytes)
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (at[i] & 0x3fu);
    }
    if (point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return 0;
    *ret_point = point;
    return bytes;
}

uint32_t wr_span_take_point(struct wr_span *span)
{
    uint8_t byte = (uint8_t)span->data[0];
    uint32_t point = byte < 0x80 ? byte : 0xfffd;
    size_t bytes = byte < 0x80 ? 1 : sequence_bytes(*span, &point);

    *span = wr_span_after(*span, bytes == 0 ? 1 : bytes);
    return point;
}

bool wr_span_is_clean(struct wr_span span)
{
    while (span.bytes > 0) {
        uint8_t byte = (uint8_t)span.data[0];
        uint32_t point;
        size_t bytes = byte < 0x80 ? 1 : sequence_bytes(span, &point);
        if (byte < 0x20 || byte == 0x7f || bytes == 0)
            return false;
        span = wr_span_after(span, bytes);
    }
    return true;
}
