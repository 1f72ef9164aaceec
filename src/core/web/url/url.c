/* SPDX-License-Identifier: MIT */
/* url.c - the URL parser of the URL standard (4.4), for http and https.
 *
 * The states of the standard become a few functions, each of which parses its part at the start of
 * the input:
 *
 *     scheme --+-- "http:" or "https:" -- slashes -- authority -- path -- query -- fragment
 *              `-- none: relative --+-- "//" ------------^          ^       ^         ^
 *                                   +-- "/..." or the base's path --'       |         |
 *                                   +-- "?" -- the base up to its query ----'         |
 *                                   `-- "#", "" -- the base up to its fragment -------'
 *
 * '\' counts as '/' before the query; tabs and newlines are ignored everywhere. The parser makes
 * one pass and uses no memory except the caller's and some stack for the host.
 */
#include "core/web/url/url.h"

#include "base/ascii.h"
#include "core/web/url/percent.h"
#include "core/web/url/url_host.h"

#define NOTHING (-1) /* result of peek_input() at the end of the input */

/* The percent-encode sets of section 1.3 of the URL standard. */
#define QUERY_LOW (WR_LOW_CONTROLS | WR_LOW(' ') | WR_LOW('"') | WR_LOW('#') | WR_LOW('<') | WR_LOW('>'))
#define PATH_HIGH (WR_HIGH_CONTROLS | WR_HIGH('^') | WR_HIGH('`') | WR_HIGH('{') | WR_HIGH('}'))

static const struct wr_percent_set fragment_set = WR_PERCENT_SET(
    WR_LOW_CONTROLS | WR_LOW(' ') | WR_LOW('"') | WR_LOW('<') | WR_LOW('>'), WR_HIGH_CONTROLS | WR_HIGH('`'));
static const struct wr_percent_set query_set = WR_PERCENT_SET(QUERY_LOW | WR_LOW('\''), WR_HIGH_CONTROLS);
/* The path set, with '/' and '\' added, which end a segment. */
static const struct wr_percent_set path_set =
    WR_PERCENT_SET(QUERY_LOW | WR_LOW('?') | WR_LOW('/'), PATH_HIGH | WR_HIGH('\\'));
static const struct wr_percent_set userinfo_set =
    WR_PERCENT_SET(QUERY_LOW | WR_LOW('?') | WR_LOW('/') | WR_LOW(':') | WR_LOW(';') | WR_LOW('='),
                   PATH_HIGH | WR_HIGH('@') | WR_HIGH('[') | WR_HIGH('\\') | WR_HIGH(']') | WR_HIGH('|'));

struct url_parser {
    struct wr_span input; /* input that is not parsed yet */
    const struct wr_idna *idna;
    struct wr_buf buf;
    struct wr_url url; /* parts of the URL found so far */
};

const char *wr_url_fault_text(enum wr_url_fault fault)
{
    static const char *const texts[] = {
#define X(fault, text) text,
        WR_URL_FAULTS(X)
#undef X
    };
    return texts[fault];
}

/* ---- input ---- */

/* Removes C0 controls and blanks at both ends, which are not part of the URL. */
static struct wr_span trim_input(struct wr_span input)
{
    while (input.bytes > 0 && (unsigned char)input.data[0] <= ' ')
        input = wr_span_after(input, 1);
    while (input.bytes > 0 && (unsigned char)input.data[input.bytes - 1] <= ' ')
        input.bytes--;
    return input;
}

static int peek_input(struct wr_span *input)
{
    while (input->bytes > 0 && wr_url_ignores(input->data[0]))
        *input = wr_span_after(*input, 1);
    return input->bytes == 0 ? NOTHING : (unsigned char)input->data[0];
}

static bool is_slash(int c)
{
    return c == '/' || c == '\\';
}

/* Removes one slash from the start of the input. Returns false if it does not start with one. */
static bool take_slash(struct wr_span *input)
{
    if (!is_slash(peek_input(input)))
        return false;
    *input = wr_span_after(*input, 1);
    return true;
}

/* Appends input, with the bytes of the set `encoded` percent-encoded, up to the first byte that is
 * in both `encoded` and `ends`. */
static void take_encoded(struct wr_buf *buf, struct wr_span *input, const struct wr_percent_set *encoded,
                         const char *ends)
{
    while (peek_input(input) != NOTHING) {
        size_t plain = 0;
        while (plain < input->bytes && !wr_percent_set_has(encoded, input->data[plain]))
            plain++;
        wr_buf_append(buf, input->data, plain);
        *input = wr_span_after(*input, plain);
        int c = peek_input(input);
        if (c == NOTHING || (c != '\0' && strchr(ends, c) != NULL))
            return;
        if (!wr_percent_set_has(encoded, (char)c)) /* peek_input() skipped a tab or newline */
            continue;
        wr_percent_append(buf, (char)c);
        *input = wr_span_after(*input, 1);
    }
}

/* ---- scheme ---- */

enum url_scheme {
    SCHEME_NONE,
    SCHEME_HTTP,
    SCHEME_HTTPS,
    SCHEME_OTHER,
};

static bool is_scheme_byte(int c)
{
    return c == '+' || c == '-' || c == '.' || (c != NOTHING && wr_ascii_is_alnum((char)c));
}

/* Removes "SCHEME:" from the start of the input. Leaves the input unchanged if it has no scheme. */
static enum url_scheme take_scheme(struct wr_span *input)
{
    struct wr_span rest = *input;
    char name[6]; /* room for "https" and one byte more */
    size_t bytes = 0;

    if (peek_input(&rest) == NOTHING || !wr_ascii_is_alpha(rest.data[0]))
        return SCHEME_NONE;
    for (; is_scheme_byte(peek_input(&rest)); rest = wr_span_after(rest, 1))
        if (bytes < sizeof name)
            name[bytes++] = wr_ascii_lower(rest.data[0]);
    if (peek_input(&rest) != ':')
        return SCHEME_NONE;
    *input = wr_span_after(rest, 1);
    if (bytes == 4 && memcmp(name, "http", 4) == 0)
        return SCHEME_HTTP;
    return bytes == 5 && memcmp(name, "https", 5) == 0 ? SCHEME_HTTPS : SCHEME_OTHER;
}

/* ---- authority ---- */

static void append_userinfo(struct wr_buf *buf, struct wr_span userinfo)
{
    size_t start = buf->length;

    take_encoded(buf, &userinfo, &userinfo_set, ":");
    if (peek_input(&userinfo) == ':') {
        size_t colon = buf->length;
        userinfo = wr_span_after(userinfo, 1);
        wr_buf_append_char(buf, ':');
        take_encoded(buf, &userinfo, &userinfo_set, "");
        if (buf->length == colon + 1) /* an empty password is dropped */
            wr_buf_cut(buf, colon);
    }
    if (buf->length > start)
        wr_buf_append_char(buf, '@');
}

/* Returns the offset of the ':' before the port, or the length of the text. */
static size_t find_port(struct wr_span host)
{
    bool in_brackets = false;

    for (size_t i = 0; i < host.bytes; i++) {
        if (host.data[i] == '[')
            in_brackets = true;
        else if (host.data[i] == ']')
            in_brackets = false;
        else if (host.data[i] == ':' && !in_brackets)
            return i;
    }
    return host.bytes;
}

/* Parses and appends the port; `text` follows the ':'. An empty text means the default port. */
static enum wr_url_fault append_port(struct wr_buf *buf, struct wr_span text, struct wr_url *url)
{
    unsigned port = 0;
    unsigned usual = url->is_https ? 443 : 80;
    bool given = false;

    for (; peek_input(&text) != NOTHING; text = wr_span_after(text, 1)) {
        if (!wr_ascii_is_digit(text.data[0]))
            return WR_URL_PORT;
        port = port * 10 + (unsigned)(text.data[0] - '0');
        given = true;
        if (port > UINT16_MAX)
            return WR_URL_PORT;
    }
    if (given && port == 0)
        return WR_URL_PORT;
    url->port = (uint16_t)(given ? port : usual);
    if (url->port != usual) {
        wr_buf_append_char(buf, ':');
        wr_buf_append_u64(buf, port);
    }
    return WR_URL_OK;
}

/* Removes and returns everything up to the path, query or fragment. */
static struct wr_span take_authority(struct wr_span *input)
{
    size_t end = 0;

    while (end < input->bytes && !is_slash(input->data[end]) && input->data[end] != '?' && input->data[end] != '#')
        end++;
    struct wr_span authority = {input->data, end};
    *input = wr_span_after(*input, end);
    return authority;
}

static enum wr_url_fault parse_authority(struct url_parser *parser)
{
    struct wr_span host = take_authority(&parser->input);
    size_t after = host.bytes;

    while (after > 0 && host.data[after - 1] != '@')
        after--;
    if (after > 0)
        append_userinfo(&parser->buf, (struct wr_span){host.data, after - 1});
    host = wr_span_after(host, after);
    size_t colon = find_port(host);
    size_t host_at = parser->buf.length;
    enum wr_url_fault fault = wr_url_host_append(&parser->buf, (struct wr_span){host.data, colon}, parser->idna);
    if (fault != WR_URL_OK)
        return fault;
    parser->url.host_at = (uint16_t)host_at;
    parser->url.host_end = (uint16_t)parser->buf.length;
    struct wr_span port = wr_span_after(host, colon < host.bytes ? colon + 1 : colon);
    return append_port(&parser->buf, port, &parser->url);
}

/* ---- path, query, fragment ---- */

/* Returns the number of dots in a dot segment ("%2e" counts as a dot), 0 for any other segment. */
static int dots_of(struct wr_span segment)
{
    int dots = 0;

    for (; segment.bytes > 0 && dots < 3; dots++) {
        size_t bytes = segment.data[0] == '.' ? 1 : wr_percent_peek(segment) == '.' ? 3 : 0;
        if (bytes == 0)
            return 0;
        segment = wr_span_after(segment, bytes);
    }
    return dots < 3 ? dots : 0;
}

/* Removes the last '/' and segment, unless `buf` ends at `path_at`. */
static void drop_segment(struct wr_buf *buf, size_t path_at)
{
    size_t length = buf->length;

    while (length > path_at && buf->bytes[--length] != '/')
        continue;
    wr_buf_cut(buf, length);
}

/* Appends the segments of the input to the path, each with a '/' before it. */
static void parse_segments(struct url_parser *parser)
{
    struct wr_buf *buf = &parser->buf;
    bool more = true;

    while (more) {
        size_t start = buf->length;
        wr_buf_append_char(buf, '/');
        take_encoded(buf, &parser->input, &path_set, "/\\?#");
        if (buf->error != 0)
            return;
        more = take_slash(&parser->input);
        int dots = dots_of((struct wr_span){buf->bytes + start + 1, buf->length - start - 1});
        if (dots == 0)
            continue;
        wr_buf_cut(buf, start);
        if (dots == 2)
            drop_segment(buf, parser->url.path_at);
        if (!more)
            wr_buf_append_char(buf, '/');
    }
}

/* Parses the query with its '?', if the input has one. */
static void parse_query(struct url_parser *parser)
{
    parser->url.query_at = (uint16_t)parser->buf.length;
    if (peek_input(&parser->input) != '?')
        return;
    parser->input = wr_span_after(parser->input, 1);
    wr_buf_append_char(&parser->buf, '?');
    take_encoded(&parser->buf, &parser->input, &query_set, "#");
}

static void parse_fragment(struct url_parser *parser)
{
    parser->url.fragment_at = (uint16_t)parser->buf.length;
    if (peek_input(&parser->input) != '#')
        return;
    parser->input = wr_span_after(parser->input, 1);
    wr_buf_append_char(&parser->buf, '#');
    take_encoded(&parser->buf, &parser->input, &fragment_set, "");
}

/* ---- absolute and relative ---- */

static enum wr_url_fault parse_absolute(struct url_parser *parser, bool is_https)
{
    while (take_slash(&parser->input)) /* the scheme may have any number of slashes, also none */
        continue;
    parser->url.is_https = is_https;
    wr_buf_append_string(&parser->buf, is_https ? "https://" : "http://");
    enum wr_url_fault fault = parse_authority(parser);
    if (fault != WR_URL_OK)
        return fault;
    parser->url.path_at = (uint16_t)parser->buf.length;
    take_slash(&parser->input);
    parse_segments(parser);
    parse_query(parser);
    return WR_URL_OK;
}

/* Copies the text of the base up to `end`, and the offsets of its parts. */
static void copy_base(struct url_parser *parser, const struct wr_url *base, size_t end)
{
    parser->url = *base;
    wr_buf_append(&parser->buf, base->text, end);
}

static enum wr_url_fault parse_relative(struct url_parser *parser, const struct wr_url *base)
{
    int first = peek_input(&parser->input);

    if (take_slash(&parser->input)) {
        if (is_slash(peek_input(&parser->input)))
            return parse_absolute(parser, base->is_https);
        copy_base(parser, base, base->path_at);
        parse_segments(parser);
    } else if (first == NOTHING || first == '#') {
        copy_base(parser, base, base->fragment_at);
        return WR_URL_OK;
    } else {
        copy_base(parser, base, base->query_at);
        if (first != '?') {
            drop_segment(&parser->buf, base->path_at);
            parse_segments(parser);
        }
    }
    parse_query(parser);
    return WR_URL_OK;
}

static enum wr_url_fault parse_any(struct url_parser *parser, const struct wr_url *base)
{
    enum url_scheme scheme = take_scheme(&parser->input);

    if (scheme == SCHEME_OTHER)
        return WR_URL_SCHEME;
    if (scheme == SCHEME_NONE)
        return base == NULL ? WR_URL_RELATIVE : parse_relative(parser, base);
    bool is_https = scheme == SCHEME_HTTPS;
    /* "http:a" is relative to a base with scheme http */
    if (base != NULL && base->is_https == is_https)
        return parse_relative(parser, base);
    return parse_absolute(parser, is_https);
}

enum wr_url_fault wr_url_parse(struct wr_span input, const struct wr_url *base, const struct wr_idna *idna,
                               char *memory, size_t memory_bytes, struct wr_url *ret_url)
{
    struct url_parser parser = {.input = trim_input(input), .idna = idna};

    wr_buf_init_fixed(&parser.buf, memory, memory_bytes < WR_URL_ROOM ? memory_bytes : WR_URL_ROOM);
    enum wr_url_fault fault = parse_any(&parser, base);
    if (fault != WR_URL_OK)
        return fault;
    parse_fragment(&parser);
    if (parser.buf.error != 0)
        return WR_URL_LONG;
    parser.url.text = memory;
    parser.url.bytes = (uint16_t)parser.buf.length;
    *ret_url = parser.url;
    return WR_URL_OK;
}
