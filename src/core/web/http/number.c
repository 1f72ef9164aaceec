/* SPDX-License-Identifier: MIT */
/* number.c - parses numbers of any length without overflow. */
#include "core/web/http/number.h"

#include "base/ascii.h"
#include "base/bits.h"

#include <weir/time.h>

static bool begins_with_digit(struct wr_span text)
{
    return text.bytes > 0 && wr_ascii_is_digit(text.data[0]);
}

static uint32_t take_nanos(struct wr_span *text)
{
    uint32_t nanos = 0, scale = 100000000;
    bool rest = false;

    for (; begins_with_digit(*text); *text = wr_span_after(*text, 1)) {
        uint32_t digit = (uint32_t)(text->data[0] - '0');
        nanos += digit * scale;
        rest = rest || (scale == 0 && digit > 0);
        scale /= 10;
    }
    return nanos + rest;
}

static bool take_field_number(struct wr_span *text, struct wr_number *ret_number)
{
    struct wr_number number = {0, 0};

    if (!begins_with_digit(*text))
        return false;
    for (; begins_with_digit(*text); *text = wr_span_after(*text, 1)) {
        number.whole = number.whole * 10 + (uint64_t)(text->data[0] - '0');
        number.whole = number.whole < WR_NUMBER_MAX ? number.whole : WR_NUMBER_MAX;
    }
    if (text->bytes > 0 && text->data[0] == '.') {
        *text = wr_span_after(*text, 1);
        if (!begins_with_digit(*text))
            return false;
        number.nanos = take_nanos(text);
    }
    *ret_number = number;
    return true;
}

/* Skips everything up to the comma that ends a member, or to the end. Strings may contain
 * commas. */
static void skip_parameters(struct wr_span *text)
{
    bool quoted = false;

    for (; text->bytes > 0 && (quoted || text->data[0] != ','); *text = wr_span_after(*text, 1))
        quoted = quoted != (text->data[0] == '"');
}

static bool is_less(const struct wr_number *a, const struct wr_number *b)
{
    return a->whole != b->whole ? a->whole < b->whole : a->nanos < b->nanos;
}

static bool take_member(struct wr_span *text, struct wr_number *ret_number)
{
    *text = wr_span_trim(*text);
    if (!take_field_number(text, ret_number))
        return false;
    *text = wr_span_trim(*text);
    if (text->bytes > 0 && text->data[0] == ';')
        skip_parameters(text);
    return text->bytes == 0 || text->data[0] == ',';
}

bool wr_numbers_parse(struct wr_span text, struct wr_numbers *ret_numbers)
{
    struct wr_numbers numbers;
    struct wr_number number;

    if (!take_member(&text, &number))
        return false;
    numbers = (struct wr_numbers){number, number, number};
    while (text.bytes > 0) {
        text = wr_span_after(text, 1); /* skips the comma between two numbers */
        if (!take_member(&text, &number))
            return false;
        if (is_less(&number, &numbers.least))
            numbers.least = number;
        if (is_less(&numbers.most, &number))
            numbers.most = number;
    }
    *ret_numbers = numbers;
    return true;
}

int64_t wr_number_ns(const struct wr_number *number, int64_t unit_ns, int64_t max_ns)
{
    wr_u128 second = 1000000000;
    wr_u128 ns =
        (wr_u128)number->whole * (wr_u128)unit_ns + ((wr_u128)number->nanos * (wr_u128)unit_ns + second - 1) / second;

    return ns < (wr_u128)max_ns ? (int64_t)ns : max_ns;
}

/* Removes the letters at the start of `text` and returns the unit that they name, in ns; 0 for an
 * unknown unit. */
static int64_t take_time_unit(struct wr_span *text)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        {"ns", WEIR_NANOSECOND},
        {"us", WEIR_MICROSECOND},
        {"ms", WEIR_MILLISECOND},
        {"msec", WEIR_MILLISECOND},
        {"millisecond", WEIR_MILLISECOND},
        {"milliseconds", WEIR_MILLISECOND},
        {"s", WEIR_SECOND},
        {"sec", WEIR_SECOND},
        {"secs", WEIR_SECOND},
        {"second", WEIR_SECOND},
        {"seconds", WEIR_SECOND},
        {"m", WEIR_MINUTE},
        {"min", WEIR_MINUTE},
        {"mins", WEIR_MINUTE},
        {"minute", WEIR_MINUTE},
        {"minutes", WEIR_MINUTE},
        {"h", WEIR_HOUR},
        {"hr", WEIR_HOUR},
        {"hour", WEIR_HOUR},
        {"hours", WEIR_HOUR},
        {"d", WEIR_DAY},
        {"day", WEIR_DAY},
        {"days", WEIR_DAY},
    };
    struct wr_span word = {text->data, 0};

    while (word.bytes < text->bytes && wr_ascii_is_alpha(text->data[word.bytes]))
        word.bytes++;
    *text = wr_span_after(*text, word.bytes);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (wr_span_is(word, units[i].name))
            return units[i].ns;
    return 0;
}

bool wr_number_duration(struct wr_span text, int64_t max_ns, int64_t *ret_ns)
{
    struct wr_number number;
    int64_t sum_ns = 0;

    if (text.bytes == 0)
        return false;
    while (text.bytes > 0) {
        if (!take_field_number(&text, &number))
            return false;
        text = wr_span_trim(text);
        int64_t unit_ns = take_time_unit(&text);
        if (unit_ns == 0)
            return false;
        sum_ns += wr_number_ns(&number, unit_ns, max_ns - sum_ns);
        text = wr_span_trim(text);
    }
    *ret_ns = sum_ns;
    return true;
}
