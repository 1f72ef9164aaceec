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
 */
#ifndef WR_BASE_BUF_H
#define WR_BASE_BUF_H

#include <stddef.h>
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

void wr_buf_append(struct wr_buf *buf, const void *data, size_t data_bytes);
void wr_buf_append_char(struct wr_buf *buf, char c);
void wr_buf_append_string(struct wr_buf *buf, const char *string);
void wr_buf_append_u64(struct wr_buf *buf, uint64_t number);

/* Hands the text over as a terminated block of exactly *ret_bytes + 1 bytes: give it back with
 * wr_give(allocator, string, bytes + 1, 1). The buffer is empty again. After an error (that of an append, or
 * WEIR_E_NOMEM here) the buffer is as it was. Not for a fixed buffer. */
int wr_buf_take_string(struct wr_buf *buf, char **ret_string, size_t *ret_bytes);

void wr_buf_release(struct wr_buf *buf);

#endif
