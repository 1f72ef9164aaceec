/* SPDX-License-Identifier: MIT */
/* links.c - decodes bytes to text (byte order marks, UTF-16), and extracts the title. */
#include "core/web/links/links.h"

#include "core/web/links/html_text.h"
#include "core/web/links/scan.h"

enum text_coding {
    CODING_OPEN, /* nothing read yet, or a part of a possible byte order mark */
    CODING_OPEN_LE,
    CODING_OPEN_BE,
    CODING_BYTES,
    CODING_UTF16_LE,
    CODING_UTF16_BE,
};

void wr_links_init(struct wr_links *ret_links, const struct wr_links_options *options)
{
    enum wr_charset charset = wr_charset_of(options->charset);

    memset(ret_links, 0, offsetof(struct wr_links, text));
    ret_links->options = *options;
    ret_links->state = WR_IN_TEXT;
    ret_links->is_certain = options->charset.bytes > 0;
    ret_links->is_latin1 = charset == WR_CHARSET_LATIN1;
    ret_links->coding = charset == WR_CHARSET_UTF16_LE   ? CODING_OPEN_LE
                        : charset == WR_CHARSET_UTF16_BE ? CODING_OPEN_BE
                                                         : CODING_OPEN;
}

/* ---- UTF-16 ---------------------------------------------------------------------------------- */

/* Adds a UTF-16 unit. Returns the length of the resulting UTF-8, at most 6 bytes. */
static size_t put_unit(struct wr_links *links, uint32_t unit, char *ret_bytes)
{
    uint32_t first = links->surrogate;
    size_t bytes = 0;

    links->surrogate = 0;
    if (first != 0 && unit >= 0xdc00 && unit <= 0xdfff)
        return wr_utf8_put(0x10000 + ((first - 0xd800) << 10) + (unit - 0xdc00), ret_bytes);
    if (first != 0)
        bytes = wr_utf8_put(0xfffd, ret_bytes);
    if (unit >= 0xd800 && unit <= 0xdbff) {
        links->surrogate = unit;
        return bytes;
    }
    return bytes + wr_utf8_put(unit >= 0xdc00 && unit <= 0xdfff ? 0xfffd : unit, ret_bytes + bytes);
}

static void feed_utf16(struct wr_links *links, const uint8_t *bytes, size_t count)
{
    char text[1024];
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (links->held_bytes == 0) {
            links->held[links->held_bytes++] = bytes[i];
            continue;
        }
        links->held_bytes = 0;
        bool is_low_first = links->coding == CODING_UTF16_LE;
        uint32_t low = is_low_first ? links->held[0] : bytes[i], high = is_low_first ? bytes[i] : links->held[0];
        used += put_unit(links, high << 8 | low, text + used);
        if (used + 6 > sizeof text) {
            wr_links_scan(links, text, used);
            used = 0;
        }
    }
    if (used > 0)
        wr_links_scan(links, text, used);
}

static void feed_text(struct wr_links *links, const uint8_t *bytes, size_t count)
{
    if (links->coding == CODING_BYTES)
        wr_links_scan(links, (const char *)bytes, count);
    else
        feed_utf16(links, bytes, count);
}

/* ---- byte order mark, with precedence over the header ---------------------------------------- */

static void set_coding(struct wr_links *links, enum text_coding coding, bool is_mark)
{
    uint8_t held[sizeof links->held];
    uint8_t count = links->held_bytes;

    memcpy(held, links->held, sizeof held);
    links->held_bytes = 0;
    links->coding = (uint8_t)coding;
    if (is_mark) {
        links->is_certain = true;
        links->is_latin1 = false;
        links->chunk_at = coding == CODING_BYTES ? count : 0;
        return;
    }
    feed_text(links, held, count);
}

/* Adds one byte to a possible byte order mark and decides on the encoding as soon as possible. */
static void sniff_coding(struct wr_links *links, uint8_t byte)
{
    static const uint8_t mark[3] = {0xef, 0xbb, 0xbf};
    enum text_coding other = links->coding == CODING_OPEN_LE   ? CODING_UTF16_LE
                             : links->coding == CODING_OPEN_BE ? CODING_UTF16_BE
                                                               : CODING_BYTES;
    const uint8_t *held = links->held;

    links->held[links->held_bytes++] = byte;
    if (links->held_bytes == 2 && held[0] == 0xff && held[1] == 0xfe)
        set_coding(links, CODING_UTF16_LE, true);
    else if (links->held_bytes == 2 && held[0] == 0xfe && held[1] == 0xff)
        set_coding(links, CODING_UTF16_BE, true);
    else if (links->held_bytes == 3 && memcmp(held, mark, 3) == 0)
        set_coding(links, CODING_BYTES, true);
    else if (memcmp(held, mark, links->held_bytes) != 0 && (links->held_bytes > 1 || (byte != 0xff && byte != 0xfe)))
        set_coding(links, other, false);
}

void wr_links_feed(struct wr_links *links, const char *bytes, size_t count)
{
    size_t at = 0;

    while (at < count && links->coding < CODING_BYTES)
        sniff_coding(links, (uint8_t)bytes[at++]);
    if (at < count)
        feed_text(links, (const uint8_t *)bytes + at, count - at);
}

/* ---- the title ------------------------------------------------------------------------------- */

struct wr_span wr_links_title(const struct wr_links *links, char memory[WR_LINKS_TITLE_MAX])
{
    struct wr_span raw = {links->title, links->title_bytes};
    size_t used = 0;
    bool has_gap = false;

    if (!links->has_title)
        return (struct wr_span){NULL, 0};
    while (raw.bytes > 0) {
        char bytes[4];
        uint32_t point = wr_text_take_point(&raw, links->is_latin1);
        if (point < 0x80 && wr_html_is_space((char)point)) {
            has_gap = used > 0;
            continue;
        }
        size_t count = wr_utf8_put(point, bytes);
        if (used + has_gap + count > WR_LINKS_TITLE_MAX)
            break;
        if (has_gap)
            memory[used++] = ' ';
        has_gap = false;
        memcpy(memory + used, bytes, count);
        used += count;
    }
    return (struct wr_span){memory, used};
}
