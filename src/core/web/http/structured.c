/* SPDX-License-Identifier: MIT */
/* structured.c - parses the grammar of RFC 9651 4.2 from left to right. */
#include "core/web/http/structured.h"

#include "base/ascii.h"
#include "core/web/http/field.h"

#define INTEGER_DIGITS 15
#define DECIMAL_DIGITS 12 /* most digits before the point of a Decimal */
#define FRACTION_DIGITS 3

/* Returns the next byte, '\0' at the end; the grammar allows no NUL. */
static char peek_sf_byte(const struct wr_sf *sf)
{
    return sf->rest.bytes > 0 ? sf->rest.data[0] : '\0';
}

static bool take_sf_byte(struct wr_sf *sf, char byte)
{
    if (sf->rest.bytes == 0 || sf->rest.data[0] != byte)
        return false;
    sf->rest = wr_span_after(sf->rest, 1);
    return true;
}

static void skip_sf_spaces(struct wr_sf *sf)
{
    while (take_sf_byte(sf, ' '))
        continue;
}

static void skip_sf_blanks(struct wr_sf *sf)
{
    while (take_sf_byte(sf, ' ') || take_sf_byte(sf, '\t'))
        continue;
}

/* Returns the text read since the rest was `before`. */
static struct wr_span sf_text_since(const struct wr_sf *sf, struct wr_span before)
{
    return (struct wr_span){before.data, before.bytes - sf->rest.bytes};
}

/* ---- bare items ------------------------------------------------------------------------------ */

static size_t take_sf_digits(struct wr_sf *sf, size_t most, int64_t *ret_number)
{
    size_t digits = 0;
    int64_t number = 0;

    for (; wr_ascii_is_digit(peek_sf_byte(sf)); digits++) {
        if (digits == most)
            return 0;
        number = number * 10 + (peek_sf_byte(sf) - '0');
        sf->rest = wr_span_after(sf->rest, 1);
    }
    *ret_number = number;
    return digits;
}

static int take_sf_number(struct wr_sf *sf, struct wr_sf_value *ret_value)
{
    bool negative = take_sf_byte(sf, '-');
    int64_t fraction, number = 0;
    size_t digits = take_sf_digits(sf, INTEGER_DIGITS, &number);

    if (digits == 0)
        return -1;
    *ret_value = (struct wr_sf_value){.kind = WR_SF_INTEGER, .number = negative ? -number : number};
    if (!take_sf_byte(sf, '.'))
        return 1;
    ret_value->kind = WR_SF_DECIMAL;
    return digits <= DECIMAL_DIGITS && take_sf_digits(sf, FRACTION_DIGITS, &fraction) > 0 ? 1 : -1;
}

/* Parses a string after its opening quote. The escapes of a Display String (RFC 9651 3.3.8) contain
 * no quotes. */
static int take_string(struct wr_sf *sf, enum wr_sf_kind kind, struct wr_sf_value *ret_value)
{
    struct wr_span before = sf->rest;

    while (wr_ascii_is_printable(peek_sf_byte(sf)) && peek_sf_byte(sf) != '"') {
        bool escaped = kind == WR_SF_STRING && take_sf_byte(sf, '\\');
        if (escaped && peek_sf_byte(sf) != '"' && peek_sf_byte(sf) != '\\')
            return -1;
        sf->rest = wr_span_after(sf->rest, 1);
    }
    *ret_value = (struct wr_sf_value){.kind = kind, .text = sf_text_since(sf, before)};
    return take_sf_byte(sf, '"') ? 1 : -1;
}

static bool is_token_byte(char c)
{
    return wr_field_is_token_char(c) || c == ':' || c == '/';
}

static int take_token(struct wr_sf *sf, struct wr_sf_value *ret_value)
{
    struct wr_span before = sf->rest;

    while (is_token_byte(peek_sf_byte(sf)))
        sf->rest = wr_span_after(sf->rest, 1);
    *ret_value = (struct wr_sf_value){.kind = WR_SF_TOKEN, .text = sf_text_since(sf, before)};
    return 1;
}

/* Parses a Byte Sequence after its opening colon. */
static int take_bytes(struct wr_sf *sf)
{
    while (wr_ascii_is_alnum(peek_sf_byte(sf)) || (peek_sf_byte(sf) != '\0' && strchr("+/=", peek_sf_byte(sf)) != NULL))
        sf->rest = wr_span_after(sf->rest, 1);
    return take_sf_byte(sf, ':') ? 1 : -1;
}

static int take_item(struct wr_sf *sf, struct wr_sf_value *ret_value)
{
    char first = peek_sf_byte(sf);

    if (first == '-' || wr_ascii_is_digit(first))
        return take_sf_number(sf, ret_value);
    if (first == '*' || wr_ascii_is_alpha(first))
        return take_token(sf, ret_value);
    if (take_sf_byte(sf, '"'))
        return take_string(sf, WR_SF_STRING, ret_value);
    *ret_value = (struct wr_sf_value){.kind = WR_SF_OTHER};
    if (take_sf_byte(sf, '%'))
        return take_sf_byte(sf, '"') ? take_string(sf, WR_SF_OTHER, ret_value) : -1;
    if (take_sf_byte(sf, ':'))
        return take_bytes(sf);
    if (take_sf_byte(sf, '?'))
        return take_sf_byte(sf, '0') || take_sf_byte(sf, '1') ? 1 : -1;
    if (take_sf_byte(sf, '@')) {
        int more = take_sf_number(sf, ret_value);
        more = ret_value->kind == WR_SF_INTEGER ? more : -1;
        ret_value->kind = WR_SF_OTHER;
        return more;
    }
    return -1;
}

/* Parses a key of a Dictionary or a parameter (RFC 9651 4.2.3.3). */
static bool take_sf_key(struct wr_sf *sf, struct wr_span *ret_name)
{
    struct wr_span before = sf->rest;
    bool is_lower = peek_sf_byte(sf) >= 'a' && peek_sf_byte(sf) <= 'z';

    if (!is_lower && peek_sf_byte(sf) != '*')
        return false;
    for (char c = peek_sf_byte(sf);
         (c >= 'a' && c <= 'z') || wr_ascii_is_digit(c) || (c != '\0' && strchr("_-.*", c) != NULL);
         c = peek_sf_byte(sf))
        sf->rest = wr_span_after(sf->rest, 1);
    *ret_name = sf_text_since(sf, before);
    return true;
}

/* ---- members --------------------------------------------------------------------------------- */

/* Moves to the first member, or over the comma to the next one. Returns 0 at the end, -1 if a comma
 * is missing or nothing follows it. */
static int next_member(struct wr_sf *sf)
{
    if (!sf->started) {
        sf->started = true;
        sf->rest = wr_span_trim(sf->rest);
        return sf->rest.bytes > 0;
    }
    skip_sf_blanks(sf);
    if (sf->rest.bytes == 0)
        return 0;
    if (!take_sf_byte(sf, ','))
        return -1;
    skip_sf_blanks(sf);
    return sf->rest.bytes > 0 ? 1 : -1;
}

int wr_sf_member(struct wr_sf *sf, struct wr_sf_value *ret_value)
{
    int more = next_member(sf);

    return more > 0 ? take_item(sf, ret_value) : more;
}

/* Parses "=value"; without it the value is true. */
static int take_assigned(struct wr_sf *sf, struct wr_sf_value *ret_value)
{
    *ret_value = (struct wr_sf_value){.kind = WR_SF_OTHER};
    return take_sf_byte(sf, '=') ? take_item(sf, ret_value) : 1;
}

int wr_sf_entry(struct wr_sf *sf, struct wr_span *ret_name, struct wr_sf_value *ret_value)
{
    int more = next_member(sf);

    if (more <= 0)
        return more;
    return take_sf_key(sf, ret_name) ? take_assigned(sf, ret_value) : -1;
}

int wr_sf_parameter(struct wr_sf *sf, struct wr_span *ret_name, struct wr_sf_value *ret_value)
{
    if (!take_sf_byte(sf, ';'))
        return 0;
    skip_sf_spaces(sf);
    return take_sf_key(sf, ret_name) ? take_assigned(sf, ret_value) : -1;
}
