/* SPDX-License-Identifier: MIT */
/* json.c - appends JSON values to a buffer. */
#include "base/json.h"

#define ALL_16 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
#define NONE_16 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

/* Nonzero for printable ASCII except '"', '\', '<' and '>': the comments beside the rows name the
 * escaped characters. A table, because this test takes most of the time of writing a line. */
static const uint8_t is_plain[256] = {
    NONE_16, NONE_16, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* '"' */
    1,       1,       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1,       /* '<', '>' */
    ALL_16,  1,       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1,    /* '\' */
    ALL_16,  1,       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0,    /* DEL, bytes >= 0x80 */
};

static void append_unit(struct wr_buf *buf, uint32_t unit)
{
    wr_buf_append_string(buf, "\\u");
    wr_buf_append_hex(buf, unit, 4, WR_HEX_SMALL);
}

static void append_json_point(struct wr_buf *buf, uint32_t point)
{
    if (point > 0xffff) { /* written as a surrogate pair */
        append_unit(buf, 0xd7c0 + (point >> 10));
        append_unit(buf, 0xdc00 + (point & 0x3ff));
    } else if (point == '"' || point == '\\') {
        wr_buf_append_char(buf, '\\');
        wr_buf_append_char(buf, (char)point);
    } else {
        append_unit(buf, point);
    }
}

void wr_append_json_escaped(struct wr_buf *buf, struct wr_span text)
{
    while (text.bytes > 0) {
        size_t plain = 0;
        while (plain < text.bytes && is_plain[(uint8_t)text.data[plain]] != 0)
            plain++;
        wr_buf_append(buf, text.data, plain);
        text = wr_span_after(text, plain);
        if (text.bytes > 0)
            append_json_point(buf, wr_span_take_point(&text));
    }
}

void wr_append_json_string(struct wr_buf *buf, struct wr_span text)
{
    wr_buf_append_char(buf, '"');
    wr_append_json_escaped(buf, text);
    wr_buf_append_char(buf, '"');
}

void wr_append_json_null(struct wr_buf *buf, const char *before)
{
    wr_buf_append_string(buf, before);
    wr_buf_append_string(buf, "null");
}

void wr_append_json_text(struct wr_buf *buf, const char *before, struct wr_span text)
{
    if (text.data == NULL) {
        wr_append_json_null(buf, before);
        return;
    }
    wr_buf_append_string(buf, before);
    wr_append_json_string(buf, text);
}

void wr_append_json_count(struct wr_buf *buf, const char *before, uint64_t count)
{
    wr_buf_append_string(buf, before);
    wr_buf_append_u64(buf, count);
}

void wr_append_json_decimal(struct wr_buf *buf, const char *before, uint64_t number, unsigned decimals)
{
    uint64_t unit = 1;

    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    wr_append_json_count(buf, before, number / unit);
    number %= unit;
    if (number > 0)
        wr_buf_append_char(buf, '.');
    for (; number > 0; number %= unit) {
        unit /= 10;
        wr_buf_append_char(buf, (char)('0' + number / unit));
    }
}
