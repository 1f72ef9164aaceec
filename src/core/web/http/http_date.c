/* SPDX-License-Identifier: MIT */
/* http_date.c - parses a date from left to right; each form is a sequence of parts. */
#include "core/web/http/http_date.h"

#include "base/ascii.h"

#define DAY_S 86400
#define FUTURE_YEARS 50 /* how far a two-digit year may lie in the future (RFC 9110 5.6.7) */

struct date {
    int64_t year;
    int month, day; /* month and day, both counted from 1 */
    int hour, minute, second;
    int east_s; /* offset of the zone east of Greenwich, seconds */
};

/* ---- the calendar ---------------------------------------------------------------------------- */

/* Returns the days since 1970-01-01. Years start in March, so that the leap day is the last of its
 * year, and are grouped in eras of 400 years = 146097 days. */
static int64_t days_since_1970(int64_t year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Returns the year of a day counted from 1970-01-01. The first guess is low by about a year in
 * three centuries. */
static int64_t year_of_day(int64_t day)
{
    int64_t year = 1970 + day / 366;

    while (days_since_1970(year + 1, 1, 1) <= day)
        year++;
    return year;
}

static int days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return month == 2 && leap ? 29 : days[month - 1];
}

static bool date_ok(const struct date *date)
{
    return date->month >= 1 && date->month <= 12 && date->day >= 1 &&
           date->day <= days_in_month(date->year, date->month) && date->hour <= 23 && date->minute <= 59 &&
           date->second <= 60;
}

static int64_t date_to_seconds(const struct date *date)
{
    return days_since_1970(date->year, date->month, date->day) * DAY_S + date->hour * 3600 + date->minute * 60 +
           date->second - date->east_s;
}

/* ---- parts of a date ------------------------------------------------------------------------- */

static bool take_one_of(struct wr_span *text, const char *any_of)
{
    if (text->bytes == 0 || text->data[0] == '\0' || strchr(any_of, text->data[0]) == NULL)
        return false;
    *text = wr_span_after(*text, 1);
    return true;
}

static void skip_date_blanks(struct wr_span *text)
{
    while (take_one_of(text, " \t"))
        continue;
}

/* Parses a number of `min` to `max` digits that is not followed by another digit. */
static bool take_date_number(struct wr_span *text, size_t min, size_t max, int *ret_number)
{
    size_t digits = 0;
    int number = 0;

    while (digits < text->bytes && wr_ascii_is_digit(text->data[digits])) {
        if (digits == max)
            return false;
        number = number * 10 + (text->data[digits++] - '0');
    }
    if (digits < min)
        return false;
    *text = wr_span_after(*text, digits);
    *ret_number = number;
    return true;
}

static struct wr_span take_letters_word(struct wr_span *text)
{
    struct wr_span word = {text->data, 0};

    while (word.bytes < text->bytes && wr_ascii_is_alpha(text->data[word.bytes]))
        word.bytes++;
    *text = wr_span_after(*text, word.bytes);
    return word;
}

static bool take_month(struct wr_span *text, int *ret_month)
{
    static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    struct wr_span word = take_letters_word(text);

    for (int month = 1; word.bytes == 3 && month <= 12; month++)
        if (wr_ascii_same(word.data, names + (month - 1) * 3, 3)) {
            *ret_month = month;
            return true;
        }
    return false;
}

/* Parses a time such as 08:49:37. */
static bool take_time(struct wr_span *text, struct date *date)
{
    return take_date_number(text, 2, 2, &date->hour) && take_one_of(text, ":") &&
           take_date_number(text, 2, 2, &date->minute) && take_one_of(text, ":") &&
           take_date_number(text, 2, 2, &date->second);
}

static bool take_year(struct wr_span *text, struct date *date, bool *ret_short)
{
    size_t before = text->bytes;
    int year;

    if (!take_date_number(text, 2, 4, &year) || before - text->bytes == 3)
        return false;
    date->year = year;
    *ret_short = before - text->bytes == 2;
    return true;
}

/* Parses an offset such as +01:00 or -0130. */
static bool take_offset(struct wr_span *text, int *ret_east_s)
{
    int hours, minutes;
    bool west = text->bytes > 0 && text->data[0] == '-';

    if (!take_one_of(text, "+-"))
        return false;
    if (text->bytes >= 4 && wr_ascii_is_digit(text->data[2])) { /* an offset without colon */
        if (!take_date_number(text, 4, 4, &minutes))
            return false;
        hours = minutes / 100;
        minutes %= 100;
    } else if (!take_date_number(text, 2, 2, &hours) || !take_one_of(text, ":") ||
               !take_date_number(text, 2, 2, &minutes)) {
        return false;
    }
    *ret_east_s = (west ? -1 : 1) * (hours * 3600 + minutes * 60);
    return hours <= 23 && minutes <= 59;
}

static bool is_date_word(struct wr_span word, const char *lower)
{
    return word.bytes == strlen(lower) && wr_ascii_same(word.data, lower, word.bytes);
}

/* Parses a zone: Z, GMT, UTC, +01:00, -0130, GMT+0100 (Central European Time). No zone means
 * UTC. */
static bool take_zone(struct wr_span *text, struct date *date)
{
    skip_date_blanks(text);
    struct wr_span word = take_letters_word(text);
    bool is_utc = is_date_word(word, "z") || is_date_word(word, "gmt") || is_date_word(word, "utc");
    if (word.bytes > 0 && !is_utc)
        return false;
    if (text->bytes > 0 && (text->data[0] == '+' || text->data[0] == '-') && !take_offset(text, &date->east_s))
        return false;
    skip_date_blanks(text);
    if (text->bytes > 2 && text->data[0] == '(' && text->data[text->bytes - 1] == ')')
        *text = wr_span_after(*text, text->bytes);
    return true;
}

/* ---- forms of dates -------------------------------------------------------------------------- */

/* Parses 06 Nov 1994 08:49:37 GMT, 06-Nov-94 08:49:37 GMT, or 06 Nov 1994 09:49:37 +0100. */
static bool take_day_first(struct wr_span *text, struct date *date, bool *ret_short)
{
    if (!take_date_number(text, 1, 2, &date->day) || !take_one_of(text, " -") || !take_month(text, &date->month) ||
        !take_one_of(text, " -") || !take_year(text, date, ret_short) || !take_one_of(text, " "))
        return false;
    return take_time(text, date) && take_one_of(text, " ") && take_zone(text, date);
}

/* Parses Nov 6 08:49:37 1994, or Nov 06 1994 09:49:37 GMT+0100 (Central European Time). */
static bool take_month_first(struct wr_span *text, struct date *date)
{
    bool is_short;

    if (!take_month(text, &date->month) || !take_one_of(text, " "))
        return false;
    skip_date_blanks(text);
    if (!take_date_number(text, 1, 2, &date->day) || !take_one_of(text, " "))
        return false;
    if (text->bytes > 2 && text->data[2] == ':')
        return take_time(text, date) && take_one_of(text, " ") && take_year(text, date, &is_short) && !is_short;
    return take_year(text, date, &is_short) && !is_short && take_one_of(text, " ") && take_time(text, date) &&
           take_one_of(text, " ") && take_zone(text, date);
}

/* Moves a two-digit year into the hundred years that end FUTURE_YEARS after `now_s`. */
static void widen_year(struct date *date, int64_t now_s)
{
    int64_t now_year = year_of_day(now_s / DAY_S);

    for (date->year += now_year - now_year % 100 + 100; date->year >= 100; date->year -= 100) {
        struct date before = *date;
        before.year -= FUTURE_YEARS;
        if (date_to_seconds(&before) <= now_s)
            break;
    }
}

bool wr_http_date_parse(struct wr_span text, int64_t now_s, int64_t *ret_s)
{
    struct date date = {.year = 0};
    bool is_short = false, is_date;

    text = wr_span_trim(text);
    struct wr_span whole = text;
    struct wr_span weekday = take_letters_word(&text);
    bool has_comma = weekday.bytes > 0 && take_one_of(&text, ",");
    skip_date_blanks(&text);
    if (has_comma || (whole.bytes > 0 && weekday.bytes == 0))
        is_date = take_day_first(&text, &date, &is_short);
    else
        is_date = take_month_first(&text, &date);
    if (!is_date || text.bytes > 0)
        return false;
    if (is_short)
        widen_year(&date, now_s);
    if (!date_ok(&date))
        return false;
    *ret_s = date_to_seconds(&date);
    return true;
}

/* ---- ISO 8601 -------------------------------------------------------------------------------- */

/* Parses an optional fraction such as ".250" to milliseconds, rounded up; 0 without a fraction. */
static bool take_fraction(struct wr_span *text, int *ret_ms)
{
    int ms = 0, scale = 100;
    bool rest = false;

    *ret_ms = 0;
    if (!take_one_of(text, "."))
        return true;
    if (text->bytes == 0 || !wr_ascii_is_digit(text->data[0]))
        return false;
    for (; text->bytes > 0 && wr_ascii_is_digit(text->data[0]); *text = wr_span_after(*text, 1)) {
        int digit = text->data[0] - '0';
        ms += digit * scale;
        rest = rest || (scale == 0 && digit > 0);
        scale /= 10;
    }
    *ret_ms = ms + rest;
    return true;
}

bool wr_iso_date_parse(struct wr_span text, int64_t *ret_ms)
{
    struct date date = {.year = 0};
    int year, ms = 0;

    text = wr_span_trim(text);
    if (!take_date_number(&text, 4, 4, &year) || !take_one_of(&text, "-") ||
        !take_date_number(&text, 2, 2, &date.month) || !take_one_of(&text, "-") ||
        !take_date_number(&text, 2, 2, &date.day) || !take_one_of(&text, "Tt ") ||
        !take_date_number(&text, 2, 2, &date.hour) || !take_one_of(&text, ":") ||
        !take_date_number(&text, 2, 2, &date.minute))
        return false;
    if (take_one_of(&text, ":") && !(take_date_number(&text, 2, 2, &date.second) && take_fraction(&text, &ms)))
        return false;
    date.year = year;
    if (!take_zone(&text, &date) || text.bytes > 0 || !date_ok(&date))
        return false;
    *ret_ms = date_to_seconds(&date) * 1000 + ms;
    return true;
}
