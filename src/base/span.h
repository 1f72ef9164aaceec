/* SPDX-License-Identifier: MIT */
/* span.h - a pointer to text that is owned elsewhere, and its length. */
#ifndef WR_BASE_SPAN_H
#define WR_BASE_SPAN_H

#include "base/seam.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct wr_span {
    const char *data; /* may be NULL if `bytes` is 0 */
    size_t bytes;
};

static inline struct wr_span wr_span_of(const char *text)
{
    return (struct wr_span){text, text == NULL ? 0 : strlen(text)};
}

/* Returns the span without its first `bytes` bytes. The span must have that many. */
static inline struct wr_span wr_span_after(struct wr_span span, size_t bytes)
{
    return (struct wr_span){span.data + bytes, span.bytes - bytes};
}

/* Returns the offset of the first `byte`, or span.bytes if the span does not contain it. */
static inline size_t wr_span_find(struct wr_span span, char byte)
{
    const char *hit = span.bytes == 0 ? NULL : memchr(span.data, byte, span.bytes);
    return hit == NULL ? span.bytes : (size_t)(hit - span.data);
}

/* Returns true if the span equals `word`. */
static inline bool wr_span_is(struct wr_span span, const char *word)
{
    return span.bytes == strlen(word) && (span.bytes == 0 || memcmp(span.data, word, span.bytes) == 0);
}

/* Returns the span without blanks and tabs at both ends (OWS, RFC 9110 5.6.3). */
static inline struct wr_span wr_span_trim(struct wr_span span)
{
    while (span.bytes > 0 && (span.data[0] == ' ' || span.data[0] == '\t'))
        span = wr_span_after(span, 1);
    while (span.bytes > 0 && (span.data[span.bytes - 1] == ' ' || span.data[span.bytes - 1] == '\t'))
        span.bytes--;
    return span;
}

/* Decodes one UTF-8 character at the start of the span, which is not empty, and removes it. Returns
 * U+FFFD for a byte that does not begin a valid sequence (RFC 3629). */
WR_SEAM uint32_t wr_span_take_point(struct wr_span *span);

/* Returns true if the span is UTF-8 without control characters (NUL included), so that it is safe
 * to show, log and compare. */
bool wr_span_is_clean(struct wr_span span);

#endif
