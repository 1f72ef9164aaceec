/* SPDX-License-Identifier: MIT */
/* field.c - parses header lines, media types, freshness and robots directives. */
#include "core/web/http/field.h"

#include "base/ascii.h"
#include "core/web/http/number.h"

/* A bit set of the token characters, one word for each 64 byte values. Fast, because every letter
 * of every field name is checked. */
#define BIT(c) ((uint64_t)1 << ((c)&63))
#define LETTERS (((uint64_t)1 << 26) - 1)
static const uint64_t token_chars[4] = {
    BIT('!') | BIT('#') | BIT('$') | BIT('%') | BIT('&') | BIT('\'') | BIT('*') | BIT('+') | BIT('-') | BIT('.') |
        (uint64_t)1023 << '0',
    LETTERS << ('A' - 64) | LETTERS << ('a' - 64) | BIT('^') | BIT('_') | BIT('`') | BIT('|') | BIT('~'),
};

bool wr_field_is_token_char(char c)
{
    unsigned char byte = (unsigned char)c;
    return (token_chars[byte >> 6] >> (byte & 63) & 1) != 0;
}

static bool is_token_text(struct wr_span text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (!wr_field_is_token_char(text.data[i]))
            return false;
    return text.bytes > 0;
}

static bool is_field_value(struct wr_span text)
{
    return wr_span_find(text, '\r') == text.bytes && wr_span_find(text, '\n') == text.bytes &&
           wr_span_find(text, '\0') == text.bytes;
}

static bool ends_with_byte(struct wr_span text, char byte)
{
    return text.bytes > 0 && text.data[text.bytes - 1] == byte;
}

bool wr_field_parse(struct wr_span line, struct wr_span *ret_name, struct wr_span *ret_value)
{
    line.bytes -= ends_with_byte(line, '\n');
    line.bytes -= ends_with_byte(line, '\r');
    size_t colon = wr_span_find(line, ':');
    if (colon == line.bytes || line.data[0] == ' ' || line.data[0] == '\t')
        return false;
    struct wr_span name = wr_span_trim((struct wr_span){line.data, colon});
    struct wr_span value = wr_span_trim(wr_span_after(line, colon + 1));
    if (!is_token_text(name) || !is_field_value(value))
        return false;
    *ret_name = name;
    *ret_value = value;
    return true;
}

/* Returns true if one of eight bytes is below 0x20 (tabs included) or 0x7f. */
static bool may_have_control(uint64_t bytes)
{
    uint64_t each = UINT64_MAX / 0xff, deleted = bytes ^ each * 0x7f;

    return (((bytes - each * 0x20) & ~bytes) | ((deleted - each) & ~deleted)) & each * 0x80;
}

/* Checks eight bytes at a time, because values are long and control characters rare. */
static bool has_control(struct wr_span text)
{
    uint64_t bytes;

    for (; text.bytes >= sizeof bytes; text = wr_span_after(text, sizeof bytes)) {
        memcpy(&bytes, text.data, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes && may_have_control(bytes); i++)
            if (wr_field_is_control(text.data[i]))
                return true;
    }
    for (size_t i = 0; i < text.bytes; i++)
        if (wr_field_is_control(text.data[i]))
            return true;
    return false;
}

bool wr_field_is_sound(struct wr_span name, struct wr_span value)
{
    return is_token_text(name) && !has_control(value);
}

/* ---- Content-Type ---------------------------------------------------------------------------- */

/* Removes and returns the text up to a `byte` outside of quotes, or all of it. */
static struct wr_span take_unquoted_until(struct wr_span *text, char byte)
{
    struct wr_span part = {text->data, 0};
    bool quoted = false;

    for (; part.bytes < text->bytes; part.bytes++) {
        char c = text->data[part.bytes];
        if (c == byte && !quoted)
            break;
        if (quoted && c == '\\' && part.bytes + 1 < text->bytes)
            part.bytes++;
        else
            quoted = quoted != (c == '"');
    }
    *text = wr_span_after(*text, part.bytes < text->bytes ? part.bytes + 1 : part.bytes);
    return part;
}

/* Removes quotes. Escapes need no handling, because the name of a charset has none. */
static struct wr_span strip_quotes(struct wr_span text)
{
    if (text.bytes > 0 && text.data[0] == '"')
        text = wr_span_after(text, 1);
    text.bytes -= ends_with_byte(text, '"');
    return wr_span_trim(text);
}

struct wr_content_type wr_content_type_parse(struct wr_span value)
{
    struct wr_content_type found = {.type = wr_span_trim(take_unquoted_until(&value, ';'))};

    while (value.bytes > 0 && found.charset.bytes == 0) {
        struct wr_span parameter = take_unquoted_until(&value, ';');
        struct wr_span name = wr_span_trim(take_unquoted_until(&parameter, '='));
        if (wr_field_is(name, "charset"))
            found.charset = strip_quotes(wr_span_trim(parameter));
    }
    return found;
}

/* ---- Cache-Control --------------------------------------------------------------------------- */

/* Returns the freshness of one directive, WEIR_FOREVER if it gives no time. The shortest of several
 * counts. */
static int64_t directive_freshness_ns(struct wr_span directive)
{
    struct wr_numbers seconds;
    struct wr_span name = wr_span_trim(take_unquoted_until(&directive, '='));
    if (wr_field_is(name, "no-cache") || wr_field_is(name, "no-store"))
        return 0;
    if (!wr_field_is(name, "max-age"))
        return WEIR_FOREVER;
    if (!wr_numbers_parse(strip_quotes(wr_span_trim(directive)), &seconds))
        return 0; /* RFC 9111 4.2.1: an invalid time means stale */
    return wr_number_ns(&seconds.first, WEIR_SECOND, WEIR_DURATION_MAX);
}

int64_t wr_max_age_ns(struct wr_span cache_control)
{
    int64_t least_ns = WEIR_FOREVER;

    while (cache_control.bytes > 0) {
        int64_t ns = directive_freshness_ns(take_unquoted_until(&cache_control, ','));
        least_ns = ns < least_ns ? ns : least_ns;
    }
    return least_ns == WEIR_FOREVER ? -1 : least_ns;
}

/* ---- X-Robots-Tag ---------------------------------------------------------------------------- */

static unsigned robots_directive_of(struct wr_span word)
{
    if (wr_field_is(word, "none"))
        return WR_ROBOTS_NOFOLLOW | WR_ROBOTS_NOINDEX;
    if (wr_field_is(word, "nofollow"))
        return WR_ROBOTS_NOFOLLOW;
    return wr_field_is(word, "noindex") ? WR_ROBOTS_NOINDEX : 0;
}

/* Returns true for the names of directives with a value, in which the text before the colon is not
 * a robot. */
static bool is_directive_with_value(struct wr_span word)
{
    return wr_field_is(word, "unavailable_after") || wr_field_is(word, "max-snippet") ||
           wr_field_is(word, "max-image-preview") || wr_field_is(word, "max-video-preview");
}

unsigned wr_robots_directives_parse(struct wr_span value, struct wr_span agent)
{
    unsigned directives = 0;
    bool for_us = true;

    while (value.bytes > 0) {
        size_t comma = wr_span_find(value, ',');
        struct wr_span word = wr_span_trim((struct wr_span){value.data, comma});
        value = wr_span_after(value, comma < value.bytes ? comma + 1 : comma);
        size_t colon = wr_span_find(word, ':');
        struct wr_span before = wr_span_trim((struct wr_span){word.data, colon});
        if (colon < word.bytes && !is_directive_with_value(before)) { /* the rest of the list is for this robot */
            for_us = before.bytes == agent.bytes && wr_ascii_same(before.data, agent.data, agent.bytes);
            word = wr_span_trim(wr_span_after(word, colon + 1));
        }
        directives |= for_us ? robots_directive_of(word) : 0;
    }
    return directives;
}
