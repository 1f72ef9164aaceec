/* SPDX-License-Identifier: MIT */
/* percent.h - percent-encoding: which bytes need it where, and one spelling for all that are equivalent. */
#ifndef WR_CORE_RULES_URL_PERCENT_H
#define WR_CORE_RULES_URL_PERCENT_H

#include "base/ascii.h"
#include "base/buf.h"

#include <stdint.h>

/* A set of bytes: a bit for each. */
struct wr_percent_set {
    uint64_t words[4];
};

/* These ASCII characters, and all bytes from 0x80 on. */
#define WR_PERCENT_SET(low, high)                \
    {                                            \
        {(low), (high), UINT64_MAX, UINT64_MAX}, \
    }

#define WR_LOW(c) (UINT64_C(1) << (c))         /* of NUL … '?' */
#define WR_HIGH(c) (UINT64_C(1) << ((c)-0x40)) /* of '@' … DEL */

#define WR_LOW_CONTROLS UINT64_C(0xffffffff)
#define WR_HIGH_CONTROLS WR_HIGH(0x7f)

static inline bool wr_percent_set_has(const struct wr_percent_set *set, char c)
{
    unsigned char byte = (unsigned char)c;
    return (set->words[byte >> 6] >> (byte & 63) & 1) != 0;
}

/* Whether RFC 3986 2.3 calls it unreserved: encoded or not, it means the same. */
static inline bool wr_percent_is_unreserved(char c)
{
    return wr_ascii_is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/* The byte that "%XX" at the front of `text` stands for, or -1 if there is no such thing. */
int wr_percent_peek(struct wr_span text);

static inline void wr_percent_append(struct wr_buf *buf, char c)
{
    wr_buf_append_char(buf, '%');
    wr_buf_append_hex(buf, (unsigned char)c, 2, WR_HEX_CAPITAL);
}

/* `text` with unreserved characters decoded, other escapes in capitals, a '%' that is no escape as "%25", and the bytes
 * of `encoded` encoded. Of what it writes, the same comes out again. */
void wr_percent_append_normal(struct wr_buf *buf, struct wr_span text, const struct wr_percent_set *encoded);

#endif
