/* SPDX-License-Identifier: MIT */
/* span.h - a piece of text that belongs to somebody else. */
#ifndef WR_BASE_SPAN_H
#define WR_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct wr_span {
    const char *data; /* may be NULL if there are no bytes */
    size_t bytes;
};

static inline struct wr_span wr_span_of(const char *text)
{
    return (struct wr_span){text, text == NULL ? 0 : strlen(text)};
}

/* Drops the first `bytes`, of which there must be as many. */
static inline struct wr_span wr_span_after(struct wr_span span, size_t bytes)
{
    return (struct wr_span){span.data + bytes, span.bytes - bytes};
}

/* Where `byte` first is; span.bytes if nowhere. */
static inline size_t wr_span_find(struct wr_span span, char byte)
{
    const char *hit = span.bytes == 0 ? NULL : memchr(span.data, byte, span.bytes);
    return hit == NULL ? span.bytes : (size_t)(hit - span.data);
}

/* Whether it is just this word. */
static inline bool wr_span_is(struct wr_span span, const char *word)
{
    return span.bytes == strlen(word) && (span.bytes == 0 || memcmp(span.data, word, span.bytes) == 0);
}

/* Without blanks and tabs at both ends (OWS, RFC 9110 5.6.3). */
static inline struct wr_span wr_span_trim(struct wr_span span)
{
    while (span.bytes > 0 && (span.data[0] == ' ' || span.data[0] == '\t'))
        span = wr_span_after(span, 1);
    while (span.bytes > 0 && (span.data[span.bytes - 1] == ' ' || span.data[span.bytes - 1] == '\t'))
        span.bytes--;
    return span;
}

/* Takes one character of UTF-8 off the front of what is not empty; U+FFFD for a byte that begins none (RFC 3629). */
uint32_t wr_span_take_point(struct wr_span *span);

/* Whether it is UTF-8 without control characters, NUL among them: may be shown, logged and compared. */
bool wr_span_clean(struct wr_span span);

#endif
