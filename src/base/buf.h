/* SPDX-License-Identifier: MIT */
/* buf.h - a buffer to build text in, piece by piece.
 *
 *     struct wr_buf buf;
 *     wr_buf_init(&buf, allocator, 4096);
 *     wr_buf_append_string(&buf, "limit=");
 *     wr_buf_append_u64(&buf, limit);
 *     error = wr_buf_take_string(&buf, &text, &text_bytes);
 *
 * Appending returns no error. The first error is kept in `error`, later appends do nothing, and
 * wr_buf_take_string returns that error at the end. A fixed buffer (wr_buf_init_fixed) uses memory
 * of the caller, allocates none and needs no release. Keys and response fields are built in fixed
 * buffers for every request, so the fast path of appending is inline.
 */
#ifndef WR_BASE_BUF_H
#define WR_BASE_BUF_H

#include "base/seam.h"
#include "base/span.h"

#include <stdint.h>
#include <weir/error.h>
#include <weir/memory.h>

struct wr_buf {
    const weir_allocator *allocator; /* NULL: a fixed buffer */
    /* the text: `length` bytes and a '\0'; NULL before the first allocation */
    char *bytes;
    size_t length;
    size_t room; /* allocated bytes, including one for the '\0' */
    size_t max;  /* maximum length of the text, bytes without the '\0' */
    int error;   /* 0, WEIR_E_NOMEM, or WEIR_E_SPACE if the text was cut at `max` bytes */
};

/* Initializes a buffer for at most `max` bytes (less than SIZE_MAX / 2). Allocates nothing yet. */
WR_SEAM void wr_buf_init(struct wr_buf *ret_buf, const weir_allocator *allocator, size_t max);

/* Initializes a fixed buffer for at most `memory_bytes` - 1 bytes. `memory` then always holds a
 * terminated string; `memory_bytes` is at least 1. */
WR_SEAM void wr_buf_init_fixed(struct wr_buf *ret_buf, char *memory, size_t memory_bytes);

/* Allocates room for a text of `length` bytes in all, so that it need not move while it grows. If
 * that fails, later appends allocate as usual. */
void wr_buf_reserve(struct wr_buf *buf, size_t length);

/* Allocates room as needed, or cuts the data at `max` bytes. The slow path of wr_buf_append. */
WR_SEAM void wr_buf_append_slowly(struct wr_buf *buf, const void *data, size_t data_bytes);

static inline void wr_buf_append(struct wr_buf *buf, const void *data, size_t data_bytes)
{
    if (data == NULL || buf->error != 0 || data_bytes >= buf->room - buf->length) {
        wr_buf_append_slowly(buf, data, data_bytes);
        return;
    }
    memcpy(buf->bytes + buf->length, data, data_bytes);
    buf->length += data_bytes;
    buf->bytes[buf->length] = '\0';
}

static inline void wr_buf_append_string(struct wr_buf *buf, const char *string)
{
    wr_buf_append(buf, string, strlen(string));
}

WR_SEAM void wr_buf_append_u64(struct wr_buf *buf, uint64_t number);

/* Appends a finite number below 10^18 in decimal, with at most nine decimals: "0.004", "20". */
void wr_buf_append_number(struct wr_buf *buf, double number);

/* Appends a duration (at least 0 ns) in the largest unit that leaves no remainder: "90s", "2h",
 * "0". */
void wr_buf_append_duration(struct wr_buf *buf, int64_t duration_ns);

/* Appends the lowest `digits` hex digits of `number`. `alphabet` is WR_HEX_SMALL or
 * WR_HEX_CAPITAL. */
#define WR_HEX_SMALL "0123456789abcdef"
#define WR_HEX_CAPITAL "0123456789ABCDEF"
WR_SEAM void wr_buf_append_hex(struct wr_buf *buf, uint32_t number, int digits, const char *alphabet);

/* Appends `span` with a '\' before each '\' and each byte equal to `special`. */
void wr_buf_append_escaped(struct wr_buf *buf, struct wr_span span, char special);

/* Appends the start of `span` in double quotes, as printable ASCII. Untrusted text can then neither
 * control a terminal nor forge a line of a log. */
void wr_buf_append_quoted(struct wr_buf *buf, struct wr_span span);

/* Returns the length of the name at the start of `span`: letters, digits, '-' and '_', at most 40
 * bytes. Messages show only this part where a name is expected: in "secret:hunter2" a blank is
 * missing after the name, and the rest is a secret. */
size_t wr_name_bytes(struct wr_span span);

/* Appends the name at the start of `span` (see wr_name_bytes) in double quotes, with "..." if more
 * text follows. */
void wr_buf_append_name(struct wr_buf *buf, struct wr_span span);

static inline void wr_buf_append_char(struct wr_buf *buf, char c)
{
    if (buf->error != 0 || buf->length + 1 >= buf->room) {
        wr_buf_append(buf, &c, 1);
        return;
    }
    buf->bytes[buf->length++] = c;
    buf->bytes[buf->length] = '\0';
}

static inline void wr_buf_append_span(struct wr_buf *buf, struct wr_span span)
{
    wr_buf_append(buf, span.data, span.bytes);
}

/* Returns the text from offset `start` on. The span is valid until the next change of the
 * buffer. */
static inline struct wr_span wr_buf_from(const struct wr_buf *buf, size_t start)
{
    return (struct wr_span){buf->bytes == NULL ? NULL : buf->bytes + start, buf->length - start};
}

/* Shortens the text to its first `length` bytes. `error` stays set. */
static inline void wr_buf_cut(struct wr_buf *buf, size_t length)
{
    if (length >= buf->length)
        return;
    buf->length = length;
    buf->bytes[length] = '\0';
}

/* Empties the buffer and resets its error. */
static inline void wr_buf_clear(struct wr_buf *buf)
{
    wr_buf_cut(buf, 0);
    buf->error = 0;
}

/* Moves the text out as a terminated block of exactly *ret_bytes + 1 bytes, and empties the buffer.
 * The caller frees the block with wr_free(allocator, string, bytes + 1, 1). Returns the error of an
 * earlier append, or WEIR_E_NOMEM; the buffer is then unchanged. Not for fixed buffers. */
WR_SEAM int wr_buf_take_string(struct wr_buf *buf, char **ret_string, size_t *ret_bytes);

WR_SEAM void wr_buf_release(struct wr_buf *buf);

#endif
