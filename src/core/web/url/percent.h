/* SPDX-License-Identifier: MIT */
/* percent.h - percent-encoding: sets of bytes to encode, and normalization of equivalent
 * spellings. */
#ifndef WR_CORE_WEB_URL_PERCENT_H
#define WR_CORE_WEB_URL_PERCENT_H

#include "base/ascii.h"
#include "base/buf.h"

#include <stdint.h>

/* A set of bytes, one byte per member, because that takes half the time of looking up a bit. */
struct wr_percent_set {
    uint8_t has[256];
};

#define WR_PERCENT_8(bits, at)                                                                      \
    (bits) >> (at)&1, (bits) >> ((at) + 1) & 1, (bits) >> ((at) + 2) & 1, (bits) >> ((at) + 3) & 1, \
        (bits) >> ((at) + 4) & 1, (bits) >> ((at) + 5) & 1, (bits) >> ((at) + 6) & 1, (bits) >> ((at) + 7) & 1
#define WR_PERCENT_64(bits)                                                                       \
    WR_PERCENT_8(bits, 0), WR_PERCENT_8(bits, 8), WR_PERCENT_8(bits, 16), WR_PERCENT_8(bits, 24), \
        WR_PERCENT_8(bits, 32), WR_PERCENT_8(bits, 40), WR_PERCENT_8(bits, 48), WR_PERCENT_8(bits, 56)

/* Initializer: the ASCII characters of two 64-bit masks, and all bytes from 0x80 on. */
#define WR_PERCENT_SET(low, high)                                                                         \
    {                                                                                                     \
        {                                                                                                 \
            WR_PERCENT_64(low), WR_PERCENT_64(high), WR_PERCENT_64(UINT64_MAX), WR_PERCENT_64(UINT64_MAX) \
        }                                                                                                 \
    }

#define WR_LOW(c) (UINT64_C(1) << (c))         /* mask bit of a character NUL to '?' */
#define WR_HIGH(c) (UINT64_C(1) << ((c)-0x40)) /* mask bit of a character '@' to DEL */

#define WR_LOW_CONTROLS UINT64_C(0xffffffff)
#define WR_HIGH_CONTROLS WR_HIGH(0x7f)

static inline bool wr_percent_set_has(const struct wr_percent_set *set, char c)
{
    return set->has[(unsigned char)c] != 0;
}

/* Returns true for unreserved characters (RFC 3986 2.3), which mean the same encoded or not. */
static inline bool wr_percent_is_unreserved(char c)
{
    return wr_ascii_is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/* Returns the byte that "%XX" at the start of `text` encodes, -1 if `text` does not start with an
 * escape. */
int wr_percent_peek(struct wr_span text);

static inline void wr_percent_append(struct wr_buf *buf, char c)
{
    wr_buf_append_char(buf, '%');
    wr_buf_append_hex(buf, (unsigned char)c, 2, WR_HEX_CAPITAL);
}

/* Appends `text` in normal form: unreserved characters decoded, other escapes in capitals, a '%'
 * without hex digits as "%25", and the bytes of the set `encoded` encoded. Normalizing the result
 * once more does not change it. */
void wr_percent_append_normal(struct wr_buf *buf, struct wr_span text, const struct wr_percent_set *encoded);

#endif
