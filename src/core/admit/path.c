/* SPDX-License-Identifier: MIT */
/* path.c - parses the target of a request, and writes the paths that services may read from it.
 *
 * No browser sends a target that is rejected here: browsers resolve "." and "..", turn '\' into
 * '/', drop the fragment, escape all that is not ASCII, and leave letters and digits unescaped.
 * What valid clients do send is read in each way in which a service may read it;
 * docs/guide/behind-a-proxy.md lists those services.
 */
#include "core/admit/path.h"

#include "base/ascii.h"

/* ---- bytes ----------------------------------------------------------------------------------- */

enum char_kind {
    BAD,   /* invalid in a URL: control characters, blanks, '\\', '#', and all that is not ASCII */
    PLAIN, /* may be in a path unescaped (pchar, RFC 3986 3.3) */
    CAPITAL,
    CODED, /* is written as %XX; browsers send '|', '[' and ']' unescaped, curl also the others */
    SLASH,
    PARAM,  /* ';' */
    ESCAPE, /* '%' */
    QUERY,  /* '?' */
};

#define B BAD
#define P PLAIN
#define L CAPITAL
#define C CODED
static const uint8_t kinds[256] = {
    B, B, B, B, B, B,      B, B, B, B, B, B,     B, B, B, B,     /* 0x00 - 0x0f */
    B, B, B, B, B, B,      B, B, B, B, B, B,     B, B, B, B,     /* 0x10 - 0x1f */
    B, P, C, B, P, ESCAPE, P, P, P, P, P, P,     P, P, P, SLASH, /*  !"#$%&'()*+,-./ */
    P, P, P, P, P, P,      P, P, P, P, P, PARAM, C, P, C, QUERY, /* 0123456789:;<=>? */
    P, L, L, L, L, L,      L, L, L, L, L, L,     L, L, L, L,     /* @ABCDEFGHIJKLMNO */
    L, L, L, L, L, L,      L, L, L, L, L, C,     B, C, C, P,     /* PQRSTUVWXYZ[\]^_ */
    C, P, P, P, P, P,      P, P, P, P, P, P,     P, P, P, P,     /* `abcdefghijklmno */
    P, P, P, P, P, P,      P, P, P, P, P, C,     C, C, P, B,     /* pqrstuvwxyz{|}~ and DEL */
};
#undef B
#undef P
#undef L
#undef C

static enum char_kind kind_of_char(char c)
{
    return (enum char_kind)kinds[(unsigned char)c];
}

/* Returns the byte whose escape begins the text, or -1 if the text does not begin with an
 * escape. */
static int escaped_byte(struct wr_span text)
{
    if (text.bytes < 3 || text.data[0] != '%')
        return -1;
    int high = wr_ascii_hex_value(text.data[1]), low = wr_ascii_hex_value(text.data[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Returns the first byte, decoded if escaped; -1 at the end. */
static int next_byte(struct wr_span text)
{
    int byte = escaped_byte(text);

    return byte >= 0 ? byte : text.bytes > 0 ? (unsigned char)text.data[0] : -1;
}

/* ---- parsing --------------------------------------------------------------------------------- */

struct path_reader {
    struct wr_span rest;
    unsigned varies;
    bool is_written;
    bool in_params; /* inside the parameters of the current segment */
    bool has_param, has_escaped_param;
};

/* Reads the start of a segment, after a '/'. Returns WEIR_FAULT_DOTS if the segment is "." or "..",
 * with or without parameters. Notes the readings in which an empty segment makes a difference. */
static weir_request_fault read_segment_start(struct path_reader *reading)
{
    struct wr_span rest = reading->rest;
    size_t dots = 0;

    while (dots < 2 && dots < rest.bytes && rest.data[dots] == '.')
        dots++;
    rest = wr_span_after(rest, dots);
    int byte = rest.bytes > 0 && rest.data[0] == '?' ? -1 : next_byte(rest);
    bool ends = byte < 0 || byte == '/' || byte == ';';
    if (ends && dots > 0)
        return WEIR_FAULT_DOTS;
    if (ends && byte != '/') /* what follows the parameters is not known yet */
        reading->varies |= WR_LOOSE_END;
    if (ends && byte >= 0)
        reading->varies |= WR_LOOSE_SLASHES;
    return WEIR_FAULT_NONE;
}

/* Returns true if this byte of UTF-8 begins a sequence that has a shorter form; some parsers decode
 * it as that form (RFC 3629 3). Bytes that are not ASCII are always escaped here. */
static bool is_overlong(int byte, struct wr_span rest)
{
    int second = byte >= 0xc0 ? next_byte(rest) : -1;

    if (second < 0x80 || second > 0xbf)
        return false;
    return byte <= 0xc1 || (byte == 0xe0 && second < 0xa0) || (byte == 0xf0 && second < 0x90);
}

/* Handles an escaped delimiter. An escaped '/' in parameters ends the segment for a service that
 * decodes first, and belongs to the parameters for another. Where parameters end is also ambiguous
 * if a path has both plain and escaped ';'. Returns WEIR_FAULT_ESCAPE in both cases. */
static weir_request_fault read_delimiter(struct path_reader *reading, int byte)
{
    reading->varies |= byte == '/' ? WR_LOOSE_PARTS : WR_LOOSE_ESCAPES;
    if (byte == ';') {
        reading->has_escaped_param = true;
        reading->varies |= WR_LOOSE_PARAMS;
        return reading->has_param ? WEIR_FAULT_ESCAPE : WEIR_FAULT_NONE;
    }
    if (byte != '/')
        return WEIR_FAULT_NONE;
    return reading->in_params ? WEIR_FAULT_ESCAPE : read_segment_start(reading);
}

/* Reads the escape at a '%'. */
static weir_request_fault read_escaped_byte(struct path_reader *reading)
{
    int byte = escaped_byte(reading->rest);

    if (byte < 0)
        return WEIR_FAULT_ESCAPE;
    reading->rest = wr_span_after(reading->rest, 3);
    reading->is_written = false; /* its hex digits may be lower case */
    if (wr_ascii_is_alnum((char)byte) || byte == '.' || byte == '-' || byte == '_')
        return WEIR_FAULT_ESCAPE;
    if (byte < 0x20 || byte == 0x7f || byte == '\\' || is_overlong(byte, reading->rest))
        return WEIR_FAULT_BYTES;
    enum char_kind kind = kind_of_char((char)byte);
    /* An escaped '~' is no way to spell another path: old encoders escape it. */
    bool is_loose = (kind == PLAIN && byte != '~') || kind == SLASH || kind == PARAM;
    return is_loose ? read_delimiter(reading, byte) : WEIR_FAULT_NONE;
}

static weir_request_fault read_target_byte(struct path_reader *reading)
{
    char c = reading->rest.data[0];
    enum char_kind kind = kind_of_char(c);

    if (kind == ESCAPE)
        return read_escaped_byte(reading);
    reading->rest = wr_span_after(reading->rest, 1);
    switch (kind) {
    case SLASH:
        reading->in_params = false;
        return read_segment_start(reading);
    case PARAM:
        reading->has_param = reading->in_params = true;
        reading->varies |= WR_LOOSE_PARAMS;
        return reading->has_escaped_param ? WEIR_FAULT_ESCAPE : WEIR_FAULT_NONE;
    case BAD:
        return WEIR_FAULT_BYTES;
    default:
        reading->is_written = false;
        return WEIR_FAULT_NONE;
    }
}

/* Reads up to the query or the end. Fast for plain bytes, which are nearly all, also after a
 * '/'. */
static weir_request_fault read_to_query(struct path_reader *reading)
{
    while (reading->rest.bytes > 0) {
        const char *at = reading->rest.data, *end = at + reading->rest.bytes;
        while (at < end && kind_of_char(*at) == PLAIN)
            at++;
        reading->rest = (struct wr_span){at, (size_t)(end - at)};
        if (at == end || *at == '?')
            return WEIR_FAULT_NONE;
        if (kind_of_char(*at) == CAPITAL) {
            reading->varies |= WR_LOOSE_CASE;
            reading->rest = wr_span_after(reading->rest, 1);
        } else if (*at == '/' && end - at > 1 && at[1] != '.' && kind_of_char(at[1]) == PLAIN) {
            reading->in_params = false;
            reading->rest = wr_span_after(reading->rest, 2);
        } else {
            weir_request_fault fault = read_target_byte(reading);
            if (fault != WEIR_FAULT_NONE)
                return fault;
        }
    }
    return WEIR_FAULT_NONE;
}

/* Returns the length of "http://" or "https://" at the front, in bytes; 0 if the target has
 * neither. */
static size_t scheme_bytes(struct wr_span target)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < 2; i++) {
        size_t bytes = strlen(schemes[i]);
        if (target.bytes > bytes && wr_ascii_same(target.data, schemes[i], bytes))
            return bytes;
    }
    return 0;
}

/* Removes "http://authority" from the front of *target. Returns false if it is not there, the
 * authority is empty, or the rest begins with neither '/' nor '?'. */
static bool take_origin(struct wr_span *target, struct wr_span *ret_authority)
{
    struct wr_span rest = wr_span_after(*target, scheme_bytes(*target));
    size_t bytes = 0;

    if (rest.bytes == target->bytes)
        return false;
    while (bytes < rest.bytes && strchr("/?#\\", rest.data[bytes]) == NULL)
        bytes++;
    *ret_authority = (struct wr_span){rest.data, bytes};
    *target = wr_span_after(rest, bytes);
    return bytes > 0 && (target->bytes == 0 || target->data[0] == '/' || target->data[0] == '?');
}

weir_request_fault wr_target_read(struct wr_span target, struct wr_target *ret_target)
{
    struct wr_span authority = {NULL, 0};

    if (target.bytes > 0 && target.data[0] != '/' && target.data[0] != '?' && !take_origin(&target, &authority))
        return WEIR_FAULT_TARGET;
    if (target.bytes == 0 || target.data[0] == '?')
        target = wr_span_of("/");
    int second = next_byte(wr_span_after(target, 1));
    if (second == '/' || second == ';')
        return WEIR_FAULT_TARGET;
    struct path_reader reading = {.rest = target, .is_written = true};
    weir_request_fault fault = read_to_query(&reading);
    if (fault != WEIR_FAULT_NONE)
        return fault;
    struct wr_span path = {target.data, target.bytes - reading.rest.bytes};
    *ret_target = (struct wr_target){
        .authority = authority,
        .path = path,
        .varies = path.bytes > 1 ? reading.varies : 0,
        .is_written = reading.is_written,
    };
    return WEIR_FAULT_NONE;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Removes one byte, escaped or not, from the front of `path`, which is not empty. Returns it
 * decoded. */
static char take_path_byte(struct wr_span *path, bool *ret_is_escaped)
{
    int byte = escaped_byte(*path);

    *ret_is_escaped = byte >= 0;
    if (byte < 0)
        byte = (unsigned char)path->data[0];
    *path = wr_span_after(*path, *ret_is_escaped ? 3 : 1);
    return (char)byte;
}

static void skip_params(struct wr_span *path)
{
    bool is_escaped;

    while (path->bytes > 0 && next_byte(*path) != '/')
        (void)take_path_byte(path, &is_escaped);
}

static void append_slash(struct wr_buf *buf, size_t start, unsigned loose)
{
    bool is_second = buf->length > start && buf->bytes[buf->length - 1] == '/';

    if (!is_second || (loose & WR_LOOSE_SLASHES) == 0)
        wr_buf_append_char(buf, '/');
}

static void append_byte(struct wr_buf *buf, char byte, bool stays_escaped, unsigned loose)
{
    enum char_kind kind = kind_of_char(byte);

    if (kind == CAPITAL) {
        wr_buf_append_char(buf, (loose & WR_LOOSE_CASE) != 0 ? wr_ascii_lower(byte) : byte);
    } else if (byte == '~' || (!stays_escaped && (kind == PLAIN || kind == PARAM))) {
        wr_buf_append_char(buf, byte);
    } else {
        wr_buf_append_char(buf, '%');
        wr_buf_append_hex(buf, (unsigned char)byte, 2, WR_HEX_CAPITAL);
    }
}

weir_request_fault wr_path_append(struct wr_buf *buf, const struct wr_target *target, unsigned loose)
{
    struct wr_span rest = target->path;
    size_t start = buf->length;

    while (rest.bytes > 0 && buf->error == 0) {
        bool is_escaped;
        char byte = take_path_byte(&rest, &is_escaped);
        bool stays_escaped = is_escaped && (loose & (byte == '/' ? WR_LOOSE_PARTS : WR_LOOSE_ESCAPES)) == 0;
        if (byte == '/' && !stays_escaped)
            append_slash(buf, start, loose);
        else if (byte == ';' && !stays_escaped && (loose & WR_LOOSE_PARAMS) != 0)
            skip_params(&rest);
        else
            append_byte(buf, byte, stays_escaped, loose);
    }
    if ((loose & WR_LOOSE_END) != 0 && buf->length > start + 1 && buf->bytes[buf->length - 1] == '/')
        wr_buf_cut(buf, buf->length - 1);
    return buf->error != 0 ? WEIR_FAULT_LONG : WEIR_FAULT_NONE;
}

weir_request_fault wr_route_append(struct wr_buf *buf, struct wr_span target, unsigned exact)
{
    struct wr_target read;

    if (target.data == NULL)
        return WEIR_FAULT_MISSING;
    weir_request_fault fault = wr_target_read(target, &read);
    return fault == WEIR_FAULT_NONE ? wr_path_append(buf, &read, wr_loose_without(exact)) : fault;
}
