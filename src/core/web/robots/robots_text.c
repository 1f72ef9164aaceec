/* SPDX-License-Identifier: MIT */
/* robots_text.c - converts the bytes of a robots.txt to UTF-8 text. */
#include "core/web/robots/robots_compiled.h"

#include "base/ascii.h"
#include "core/web/links/html_text.h"

/* Removes a byte order mark, or its first bytes, because some proxies damage it. */
static struct wr_span skip_mark(struct wr_span text)
{
    static const char mark[3] = "\xef\xbb\xbf";
    size_t bytes = 0;

    while (bytes < sizeof mark && bytes < text.bytes && text.data[bytes] == mark[bytes])
        bytes++;
    return wr_span_after(text, bytes);
}

static bool begins_with(struct wr_span text, const char *word)
{
    size_t bytes = strlen(word);
    return text.bytes >= bytes && wr_ascii_same(text.data, word, bytes);
}

/* Returns true if the text is an HTML or XML page. Pages may quote rules but are no robots.txt,
 * which begins with a letter or '#'. */
static bool is_markup_page(struct wr_span text)
{
    static const char *const words[] = {"<!doctype", "<html", "<head", "<body", "<?xml", "<svg"};

    while (text.bytes > 0 && (unsigned char)text.data[0] <= ' ')
        text = wr_span_after(text, 1);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (begins_with(text, words[i]))
            return true;
    return false;
}

/* ---- UTF-16 ---- */

enum byte_order {
    ORDER_NONE, /* the text is not UTF-16 */
    ORDER_LITTLE,
    ORDER_BIG,
};

/* Detects UTF-16 by its byte order mark, or by the zero bytes of the first two letters. */
static enum byte_order byte_order_of(struct wr_span text)
{
    const unsigned char *at = (const unsigned char *)text.data;

    if (text.bytes >= 2 && at[0] == 0xff && at[1] == 0xfe)
        return ORDER_LITTLE;
    if (text.bytes >= 2 && at[0] == 0xfe && at[1] == 0xff)
        return ORDER_BIG;
    if (text.bytes < 4)
        return ORDER_NONE;
    if (at[0] != 0 && at[1] == 0 && at[2] != 0 && at[3] == 0)
        return ORDER_LITTLE;
    return at[0] == 0 && at[1] != 0 && at[2] == 0 && at[3] != 0 ? ORDER_BIG : ORDER_NONE;
}

static uint32_t utf16_unit_at(struct wr_span text, size_t at, enum byte_order order)
{
    const unsigned char *bytes = (const unsigned char *)text.data + at;
    return order == ORDER_BIG ? (uint32_t)bytes[0] << 8 | bytes[1] : (uint32_t)bytes[1] << 8 | bytes[0];
}

/* Appends UTF-16 as UTF-8. An unpaired surrogate becomes U+FFFD. */
static void utf16_to_utf8(struct wr_buf *buf, struct wr_span text, enum byte_order order)
{
    char bytes[4];

    for (size_t at = 0; at + 2 <= text.bytes; at += 2) {
        uint32_t point = utf16_unit_at(text, at, order);
        if (point == 0xfeff && at == 0)
            continue;
        if (point >= 0xd800 && point < 0xe000) {
            uint32_t low = at + 4 <= text.bytes ? utf16_unit_at(text, at + 2, order) : 0;
            bool is_pair = point < 0xdc00 && low >= 0xdc00 && low < 0xe000;
            point = is_pair ? 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
            at += is_pair ? 2 : 0;
        }
        wr_buf_append(buf, bytes, wr_utf8_put(point, bytes));
    }
}

/* ---- whole text ---- */

/* Removes the last line, which may be cut: the start of "Allow: /public" could allow everything. */
static struct wr_span drop_last_line(struct wr_span text)
{
    while (text.bytes > 0 && text.data[text.bytes - 1] != '\n' && text.data[text.bytes - 1] != '\r')
        text.bytes--;
    return text;
}

int wr_robots_to_utf8(struct wr_span text, struct wr_buf *buf, struct wr_span *ret_text, bool *ret_cut)
{
    bool cut = text.bytes > WR_ROBOTS_MAX;

    if (cut)
        text.bytes = WR_ROBOTS_MAX;
    enum byte_order order = byte_order_of(text);
    if (order != ORDER_NONE) {
        utf16_to_utf8(buf, text, order);
        if (buf->error != 0)
            return buf->error;
        text = (struct wr_span){buf->bytes == NULL ? "" : buf->bytes, buf->length};
    }
    if (cut)
        text = drop_last_line(text);
    text = skip_mark(text);
    if (is_markup_page(text))
        text.bytes = 0;
    *ret_text = text;
    *ret_cut = cut;
    return 0;
}
