/* SPDX-License-Identifier: MIT */
/* buf.h - text that is put together piece by piece.
 *
 *     struct wr_buf buf;
 *     wr_buf_init(&buf, allocator, 4096);
 *     wr_buf_append_string(&buf, "limit=");
 *     wr_buf_append_u64(&buf, limit);
 *     error = wr_buf_take_string(&buf, &text, &text_bytes);
 *
 * Appending never fails by itself: the first error sticks, nothing is appended after it, and wr_buf_take_string (or
 * `error`) tells at the end. A buffer in memory of the caller's (wr_buf_init_fixed) takes none and needs no release.
 * Keys and response fields are made in such a one for every request, so what fits is appended in line.
 */
#ifndef WR_BASE_BUF_H
#define WR_BASE_BUF_H

#include "base/span.h"

#include <stdint.h>
#include <weir/error.h>
#include <weir/memory.h>

struct wr_buf {
    const weir_allocator *allocator; /* NULL: fixed */
    char *bytes;                     /* `length` of them and a '\0'; NULL before the first */
    size_t length;
    size_t room; /* bytes taken, that of the '\0' included */
    size_t max;  /* most bytes, without the '\0' */
    int error;   /* 0, WEIR_E_NOMEM, or WEIR_E_SPACE: what fitted is there, cut at `max` */
};

/* At most `max` bytes, which is less than SIZE_MAX / 2. Takes no memory yet. */
void wr_buf_init(struct wr_buf *ret_buf, const weir_allocator *allocator, size_t max);

/* At most `memory_bytes` - 1 bytes in `memory`, which always hold a terminated string. `memory_bytes` is at least 1. */
void wr_buf_init_fixed(struct wr_buf *ret_buf, char *memory, size_t memory_bytes);

/* Room for so many bytes in all, so that they need not be moved while it grows; without memory it grows as it can. */
void wr_buf_reserve(struct wr_buf *buf, size_t length);

void wr_buf_append_slowly(struct wr_buf *buf, const void *data, size_t data_bytes); /* makes room, or cuts */

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

void wr_buf_append_u64(struct wr_buf *buf, uint64_t number);

/* A finite number below 10^18, as people write it: "0.004", "20"; at most nine decimals. */
void wr_buf_append_number(struct wr_buf *buf, double number);

/* A duration of at least 0 ns in the largest unit that leaves no remainder: "90s", "2h", "0". */
void wr_buf_append_duration(struct wr_buf *buf, int64_t duration_ns);

/* The lowest `digits` hex digits, in the capitals or small letters of `alphabet`. */
#define WR_HEX_SMALL "0123456789abcdef"
#define WR_HEX_CAPITAL "0123456789ABCDEF"
void wr_buf_append_hex(struct wr_buf *buf, uint32_t number, int digits, const char *alphabet);

/* `span` with a '\' before each byte that is `special` or '\'. */
void wr_buf_append_escaped(struct wr_buf *buf, struct wr_span span, char special);

/* The first bytes of `span` between quotes, as printable ASCII: nothing in a stranger's text can steer a terminal or
 * forge a line of a log. */
void wr_buf_append_quoted(struct wr_buf *buf, struct wr_span span);

/* With how many bytes of a name it begins: letters, digits, '-' and '_', and at most 40. Nothing else may be shown of
 * what stands where a name belongs: in "secret:hunter2" somebody forgot a blank, and what follows is a secret. */
size_t wr_name_bytes(struct wr_span span);

/* These, between quotes, and "..." if more follows. */
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

/* What is in it from `start` on. Good until the next change. */
static inline struct wr_span wr_buf_from(const struct wr_buf *buf, size_t start)
{
    return (struct wr_span){buf->bytes == NULL ? NULL : buf->bytes + start, buf->length - start};
}

/* Takes back all but the first `length` bytes. An error stays. */
static inline void wr_buf_cut(struct wr_buf *buf, size_t length)
{
    if (length >= buf->length)
        return;
    buf->length = length;
    buf->bytes[length] = '\0';
}

/* Empty again, and without error. */
static inline void wr_buf_clear(struct wr_buf *buf)
{
    wr_buf_cut(buf, 0);
    buf->error = 0;
}

/* Hands the text over as a terminated block of exactly *ret_bytes + 1 bytes: give it back with
 * wr_give(allocator, string, bytes + 1, 1). The buffer is empty again. After an error (that of an append, or
 * WEIR_E_NOMEM here) the buffer is as it was. Not for a fixed buffer. */
int wr_buf_take_string(struct wr_buf *buf, char **ret_string, size_t *ret_bytes);

void wr_buf_release(struct wr_buf *buf);

#endif
