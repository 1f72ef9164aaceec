/* SPDX-License-Identifier: MIT */
/* percent.c - percent-encoding. */
#include "core/web/url/percent.h"

int wr_percent_peek(struct wr_span text)
{
    if (text.bytes < 3 || text.data[0] != '%')
        return -1;
    int high = wr_ascii_hex_value(text.data[1]), low = wr_ascii_hex_value(text.data[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Appends the normal form of the '%' or escape at the start of `text`. Returns its length in
 * `text`. */
static size_t append_escape(struct wr_buf *buf, struct wr_span text)
{
    int byte = wr_percent_peek(text);

    if (byte < 0) {
        wr_percent_append(buf, '%');
        return 1;
    }
    if (wr_percent_is_unreserved((char)byte))
        wr_buf_append_char(buf, (char)byte);
    else
        wr_percent_append(buf, (char)byte);
    return 3;
}

void wr_percent_append_normal(struct wr_buf *buf, struct wr_span text, const struct wr_percent_set *encoded)
{
    while (text.bytes > 0) {
        size_t plain = 0;
        while (plain < text.bytes && text.data[plain] != '%' && !wr_percent_set_has(encoded, text.data[plain]))
            plain++;
        wr_buf_append(buf, text.data, plain);
        text = wr_span_after(text, plain);
        if (text.bytes == 0)
            return;
        if (text.data[0] == '%') {
            text = wr_span_after(text, append_escape(buf, text));
            continue;
        }
        wr_percent_append(buf, text.data[0]);
        text = wr_span_after(text, 1);
    }
}
