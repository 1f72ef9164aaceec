/* SPDX-License-Identifier: MIT */
/* html_text.c - parses the small grammars of attributes and titles by the HTML standard. */
#include "core/web/links/html_text.h"

#include "base/ascii.h"
#include "core/web/http/field.h"
#include "core/web/links/references.h"

#define REPLACEMENT 0xfffdu
#define POINT_MAX 0x10ffffu

/* ---- characters ------------------------------------------------------------------------------ */

size_t wr_utf8_put(uint32_t point, char *ret_bytes)
{
    size_t bytes = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

    if (bytes == 1) {
        ret_bytes[0] = (char)point;
        return 1;
    }
    for (size_t i = bytes - 1; i > 0; i--, point >>= 6)
        ret_bytes[i] = (char)(0x80 | (point & 0x3f));
    ret_bytes[0] = (char)((0xf00u >> bytes & 0xff) | point);
    return bytes;
}

uint32_t wr_latin1_point(uint8_t byte)
{
    static const uint16_t points[] = {0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
                                      0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0x8d,   0x17d,  0x8f,
                                      0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                      0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};

    return byte >= 0x80 && byte < 0xa0 ? points[byte - 0x80] : byte;
}

/* ---- character references -------------------------------------------------------------------- */

/* Parses a numeric reference such as "#38;" or "#x26;" after the '&'. Returns its length, 0 if it
 * is invalid. */
static size_t take_numeric(const char *text, size_t bytes, uint32_t *ret_point)
{
    bool is_hex = bytes > 1 && wr_ascii_lower(text[1]) == 'x';
    size_t start = is_hex ? 2 : 1, at = start;
    uint32_t point = 0;

    for (; at < bytes; at++) {
        int digit = wr_ascii_hex_value(text[at]);
        if (digit < 0 || (!is_hex && digit > 9))
            break;
        point = point * (is_hex ? 16 : 10) + (uint32_t)digit;
        point = point <= POINT_MAX ? point : POINT_MAX + 1;
    }
    if (at == start)
        return 0;
    if (point == 0 || point > POINT_MAX || (point >= 0xd800 && point <= 0xdfff))
        point = REPLACEMENT;
    *ret_point = point < 0x100 ? wr_latin1_point((uint8_t)point) : point;
    return at < bytes && text[at] == ';' ? at + 1 : at;
}

/* Parses a named reference such as "amp;" or "amp" in an attribute, after the '&'. Without ';' it
 * is valid only if no letter, digit or '=' follows, so it must be the whole run of letters and
 * digits: "?a=1&copy=2" stays unchanged. */
static size_t take_named(const char *text, size_t bytes, uint32_t *ret_point)
{
    size_t at = 0;
    bool is_old;

    while (at < bytes && at <= WR_CHAR_REFERENCE_NAME_MAX && wr_ascii_is_alnum(text[at]))
        at++;
    uint32_t point = wr_char_reference_point((struct wr_span){text, at}, &is_old);
    bool is_ended = at < bytes && text[at] == ';';
    if (point == 0 || (!is_ended && (!is_old || (at < bytes && text[at] == '='))))
        return 0;
    *ret_point = point;
    return at + is_ended;
}

static size_t take_reference(const char *text, size_t bytes, uint32_t *ret_point)
{
    if (bytes == 0)
        return 0;
    return text[0] == '#' ? take_numeric(text, bytes, ret_point) : take_named(text, bytes, ret_point);
}

size_t wr_references_decode(char *text, size_t bytes)
{
    size_t from = 0, to = 0;
    uint32_t point = 0;

    if (memchr(text, '&', bytes) == NULL && memchr(text, '\r', bytes) == NULL)
        return bytes;
    while (from < bytes) {
        char c = text[from++];
        size_t taken = c == '&' ? take_reference(text + from, bytes - from, &point) : 0;
        if (taken > 0) {
            from += taken;
            to += wr_utf8_put(point, text + to);
            continue;
        }
        if (c == '\r') {
            from += from < bytes && text[from] == '\n';
            c = '\n';
        }
        text[to++] = c;
    }
    return to;
}

/* Parses a named reference between tags, where the longest name without ';' is valid whatever
 * follows: "&copy2", "&notit;". */
static size_t take_named_prefix(const char *text, size_t bytes, uint32_t *ret_point)
{
    size_t count = 0;
    bool is_old;

    while (count < bytes && count < WR_CHAR_REFERENCE_NAME_MAX && wr_ascii_is_alnum(text[count]))
        count++;
    for (; count > 1; count--) {
        uint32_t point = wr_char_reference_point((struct wr_span){text, count}, &is_old);
        bool is_ended = count < bytes && text[count] == ';';
        if (point != 0 && (is_ended || is_old)) {
            *ret_point = point;
            return count + is_ended;
        }
    }
    return 0;
}

uint32_t wr_text_take_point(struct wr_span *text, bool is_latin1)
{
    struct wr_span rest = wr_span_after(*text, 1);
    char c = text->data[0];
    uint32_t point;

    if (c == '&' && rest.bytes > 0) {
        size_t taken = rest.data[0] == '#' ? take_numeric(rest.data, rest.bytes, &point)
                                           : take_named_prefix(rest.data, rest.bytes, &point);
        if (taken > 0) {
            *text = wr_span_after(rest, taken);
            return point;
        }
    }
    if (c == '\0' || is_latin1) {
        *text = rest;
        return c == '\0' ? REPLACEMENT : wr_latin1_point((uint8_t)c);
    }
    return wr_span_take_point(text);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void skip_html_spaces(struct wr_span *text)
{
    while (text->bytes > 0 && wr_html_is_space(text->data[0]))
        *text = wr_span_after(*text, 1);
}

bool wr_words_next(struct wr_span *list, struct wr_span *ret_word)
{
    struct wr_span word;

    skip_html_spaces(list);
    word = (struct wr_span){list->data, 0};
    while (word.bytes < list->bytes && !wr_html_is_space(list->data[word.bytes]))
        word.bytes++;
    *list = wr_span_after(*list, word.bytes);
    *ret_word = word;
    return word.bytes > 0;
}

/* Skips the descriptors of a candidate up to the comma that ends them. Commas in parentheses do not
 * end them. */
static void skip_descriptors(struct wr_span *list)
{
    bool in_parentheses = false;

    for (; list->bytes > 0; *list = wr_span_after(*list, 1)) {
        char c = list->data[0];
        if (c == ',' && !in_parentheses)
            return;
        in_parentheses = c == '(' || (in_parentheses && c != ')');
    }
}

bool wr_srcset_next(struct wr_span *list, struct wr_span *ret_url)
{
    struct wr_span url;

    while (list->bytes > 0 && (list->data[0] == ',' || wr_html_is_space(list->data[0])))
        *list = wr_span_after(*list, 1);
    if (!wr_words_next(list, &url))
        return false;
    if (url.data[url.bytes - 1] != ',')
        skip_descriptors(list);
    while (url.data[url.bytes - 1] == ',') /* terminates, because the first byte is not a comma */
        url.bytes--;
    *ret_url = url;
    return true;
}

/* ---- meta ------------------------------------------------------------------------------------ */

static bool skip_word(struct wr_span *text, const char *word)
{
    size_t bytes = strlen(word);

    if (text->bytes < bytes || !wr_ascii_same(text->data, word, bytes))
        return false;
    *text = wr_span_after(*text, bytes);
    return true;
}

static size_t skip_while(struct wr_span *text, bool (*is_one)(char c))
{
    size_t before = text->bytes;

    while (text->bytes > 0 && is_one(text->data[0]))
        *text = wr_span_after(*text, 1);
    return before - text->bytes;
}

static bool is_digit_or_dot(char c)
{
    return wr_ascii_is_digit(c) || c == '.';
}

/* Removes "url=", with optional blanks, from the front. Without it the text itself is the URL. */
static struct wr_span after_url_word(struct wr_span text)
{
    struct wr_span rest = text;

    if (!skip_word(&rest, "url"))
        return text;
    skip_html_spaces(&rest);
    if (!skip_word(&rest, "="))
        return text;
    skip_html_spaces(&rest);
    return rest;
}

/* Parses "5; url='page'" by the "shared declarative refresh steps". */
bool wr_refresh_url(struct wr_span content, struct wr_span *ret_url)
{
    skip_html_spaces(&content);
    if (skip_while(&content, is_digit_or_dot) == 0)
        return false;
    size_t before = content.bytes;
    skip_html_spaces(&content);
    bool has_mark = skip_word(&content, ";") || skip_word(&content, ",");
    if (!has_mark && content.bytes == before)
        return false;
    skip_html_spaces(&content);
    if (content.bytes == 0)
        return false;
    content = after_url_word(content);
    if (content.bytes > 0 && (content.data[0] == '"' || content.data[0] == '\'')) {
        char quote = content.data[0];
        content = wr_span_after(content, 1);
        content.bytes = wr_span_find(content, quote);
    }
    *ret_url = content;
    return true;
}

struct wr_span wr_meta_charset(struct wr_span content)
{
    struct wr_span none = {NULL, 0};

    while (content.bytes > 0 && !skip_word(&content, "charset"))
        content = wr_span_after(content, 1);
    skip_html_spaces(&content);
    if (!skip_word(&content, "="))
        return none;
    skip_html_spaces(&content);
    if (content.bytes > 0 && (content.data[0] == '"' || content.data[0] == '\'')) {
        size_t end = wr_span_find(wr_span_after(content, 1), content.data[0]);
        return end + 1 < content.bytes ? (struct wr_span){content.data + 1, end} : none;
    }
    struct wr_span label = {content.data, 0};
    while (label.bytes < content.bytes && content.data[label.bytes] != ';' &&
           !wr_html_is_space(content.data[label.bytes]))
        label.bytes++;
    return label;
}

/* Returns the charset of a label. Only the labels of the Encoding standard that matter here are
 * known. */
enum wr_charset wr_charset_of(struct wr_span label)
{
    static const char *const latin1[] = {"windows-1252", "iso-8859-1", "latin1",   "iso8859-1", "iso_8859-1",
                                         "us-ascii",     "ascii",      "cp1252",   "x-cp1252",  "l1",
                                         "cp819",        "ibm819",     "iso88591", "iso-ir-100"};

    label = wr_span_trim(label);
    if (wr_field_is(label, "utf-16") || wr_field_is(label, "utf-16le") || wr_field_is(label, "unicode"))
        return WR_CHARSET_UTF16_LE;
    if (wr_field_is(label, "utf-16be"))
        return WR_CHARSET_UTF16_BE;
    for (size_t i = 0; i < sizeof latin1 / sizeof latin1[0]; i++)
        if (wr_field_is(label, latin1[i]))
            return WR_CHARSET_LATIN1;
    return WR_CHARSET_OTHER;
}
