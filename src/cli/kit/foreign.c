/* SPDX-License-Identifier: MIT */
/* foreign.c - text of strangers, shown so that it can harm nothing. */
#include "cli/kit/foreign.h"

#include <stdint.h>

#include "base/ascii.h"
#include "cli/kit/output.h"

void wr_print_foreign(struct wr_span text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        char c = text.data[i];
        if (!wr_ascii_is_printable(c))
            wr_print("\\x%02x", (unsigned char)c);
        else
            wr_print(c == '\\' ? "\\%c" : "%c", c);
    }
}

/* The length of the UTF-8 sequence at the front; what is wrong with it shows at the end of it. */
static size_t sequence_bytes(unsigned char lead)
{
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* Takes one character off the front, U+FFFD for a byte that begins none. */
static uint32_t take_point(struct wr_span *text)
{
    const unsigned char *at = (const unsigned char *)text->data;
    size_t bytes = sequence_bytes(at[0]);
    uint32_t point = bytes == 1 ? at[0] : at[0] & (0x7fu >> bytes);

    if (bytes > text->bytes)
        bytes = text->bytes;
    if (at[0] >= 0x80 && !wr_span_clean((struct wr_span){text->data, bytes})) {
        *text = wr_span_after(*text, 1);
        return 0xfffd;
    }
    for (size_t i = 1; i < bytes; i++)
        point = point << 6 | (at[i] & 0x3fu);
    *text = wr_span_after(*text, bytes);
    return point;
}

static void append_unit(struct wr_buf *buf, uint32_t unit)
{
    wr_buf_append_string(buf, "\\u");
    wr_buf_append_hex(buf, unit, 4, WR_HEX_SMALL);
}

static void append_point(struct wr_buf *buf, uint32_t point)
{
    if (point > 0xffff) {
        append_unit(buf, 0xd7c0 + (point >> 10));
        append_unit(buf, 0xdc00 + (point & 0x3ff));
    } else if (point > 0x7e || point < 0x20 || point == '<' || point == '>') {
        append_unit(buf, point);
    } else {
        if (point == '"' || point == '\\')
            wr_buf_append_char(buf, '\\');
        wr_buf_append_char(buf, (char)point);
    }
}

static bool is_plain(char c)
{
    return wr_ascii_is_printable(c) && c != '"' && c != '\\' && c != '<' && c != '>';
}

void wr_append_json_string(struct wr_buf *buf, struct wr_span text)
{
    wr_buf_append_char(buf, '"');
    while (text.bytes > 0) {
        size_t plain = 0;
        while (plain < text.bytes && is_plain(text.data[plain]))
            plain++;
        wr_buf_append(buf, text.data, plain);
        text = wr_span_after(text, plain);
        if (text.bytes > 0)
            append_point(buf, take_point(&text));
    }
    wr_buf_append_char(buf, '"');
}

void wr_print_json_string(struct wr_span text)
{
    char memory[16];
    struct wr_buf buf;
    wr_print("\"");
    while (text.bytes > 0) {
        wr_buf_init_fixed(&buf, memory, sizeof memory);
        append_point(&buf, take_point(&text));
        wr_print("%s", memory);
    }
    wr_print("\"");
}
