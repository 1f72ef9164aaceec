/* SPDX-License-Identifier: MIT */
/* route.c - all spellings of a path that servers take for the same are one key.
 *
 * Otherwise "/login", "/%6Cogin", "//login" and "/x/../login" would each have a limit of its own, and the limit would
 * be none. Where two servers may differ ("/a" and "/a/", "/A" and "/a", "%2F" and "/") they stay apart.
 */
#include "core/admit/route.h"

#include "base/ascii.h"

/* What may stand in a path as it is (pchar, RFC 3986 3.3): letters, digits and -._~!$&'()*+,;=:@, a bit for each. */
static bool is_plain(char c)
{
    static const uint64_t plain[2] = {UINT64_C(0x2fff7fd200000000), UINT64_C(0x47fffffe87ffffff)};
    unsigned char byte = (unsigned char)c;

    return byte < 128 && (plain[byte >> 6] >> (byte & 63) & 1) != 0;
}

size_t wr_route_plain(struct wr_span target)
{
    size_t at = 0;

    while (at < target.bytes && target.data[at] != '?' && target.data[at] != '#') {
        char c = target.data[at++];
        if (c == '/' && at < target.bytes && (target.data[at] == '/' || target.data[at] == '.'))
            return 0;
        if (c != '/' && !is_plain(c))
            return 0;
    }
    return at > 0 && target.data[0] == '/' ? at : 0;
}

/* Takes one byte, perhaps written as %XX, off the front. */
static char take_byte(struct wr_span *path)
{
    const char *at = path->data;
    bool is_escape = path->bytes >= 3 && at[0] == '%';
    int high = is_escape ? wr_ascii_hex_value(at[1]) : -1;
    int low = is_escape ? wr_ascii_hex_value(at[2]) : -1;

    if (high < 0 || low < 0) {
        *path = wr_span_after(*path, 1);
        return at[0];
    }
    *path = wr_span_after(*path, 3);
    return (char)(high * 16 + low);
}

/* Writes up to the next '/' or the end. */
static void append_segment(struct wr_buf *buf, struct wr_span *path)
{
    while (path->bytes > 0 && path->data[0] != '/') {
        char c = take_byte(path);
        if (is_plain(c)) {
            wr_buf_append_char(buf, c);
            continue;
        }
        wr_buf_append_char(buf, '%');
        wr_buf_append_hex(buf, (unsigned char)c, 2, WR_HEX_CAPITAL);
    }
}

/* Takes back the '/' and segment written last, if there is one after `base`. */
static void drop_segment(struct wr_buf *buf, size_t base)
{
    size_t length = buf->length;

    while (length > base && buf->bytes[--length] != '/')
        continue;
    wr_buf_cut(buf, length);
}

/* RFC 3986 5.2.4, and empty segments go too. `path` is empty or begins with '/'. */
static weir_fault append_path(struct wr_buf *buf, struct wr_span path)
{
    size_t base = buf->length;

    while (path.bytes > 0) {
        size_t start = buf->length;
        path = wr_span_after(path, 1);
        wr_buf_append_char(buf, '/');
        append_segment(buf, &path);
        if (buf->error != 0)
            return WEIR_FAULT_LONG;

        struct wr_span segment = {buf->bytes + start + 1, buf->length - start - 1};
        bool is_dot = segment.bytes == 1 && segment.data[0] == '.';
        bool is_dots = segment.bytes == 2 && memcmp(segment.data, "..", 2) == 0;
        if (segment.bytes > 0 && !is_dot && !is_dots)
            continue;
        wr_buf_cut(buf, start);
        if (is_dots)
            drop_segment(buf, base);
        if (path.bytes == 0)
            wr_buf_append_char(buf, '/');
    }
    return WEIR_FAULT_NONE;
}

/* Bytes of "http://authority" at the front; 0 if there is none. */
static size_t origin_bytes(struct wr_span target)
{
    size_t scheme = wr_span_find(target, ':');

    if (scheme == 0 || target.bytes < scheme + 3 || memcmp(target.data + scheme, "://", 3) != 0)
        return 0;
    struct wr_span rest = wr_span_after(target, scheme + 3);
    return scheme + 3 + wr_span_find(rest, '/');
}

weir_fault wr_route_append(struct wr_buf *buf, struct wr_span target)
{
    target.bytes = wr_span_find(target, '#');
    target.bytes = wr_span_find(target, '?');
    if (target.bytes == 0)
        return WEIR_FAULT_MISSING;
    if (target.bytes == 1 && target.data[0] == '*') { /* OPTIONS * */
        wr_buf_append_char(buf, '*');
        return buf->error != 0 ? WEIR_FAULT_LONG : WEIR_FAULT_NONE;
    }
    if (target.data[0] != '/') {
        size_t origin = origin_bytes(target);
        if (origin == 0)
            return WEIR_FAULT_BYTES;
        target = wr_span_after(target, origin);
        if (target.bytes == 0)
            target = wr_span_of("/");
    }
    return append_path(buf, target);
}

void wr_method_append(struct wr_buf *buf, struct wr_span method)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (wr_span_is(method, known[i])) {
            wr_buf_append_span(buf, method);
            return;
        }
    }
    wr_buf_append_string(buf, "OTHER");
}
