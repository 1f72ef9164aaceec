/* SPDX-License-Identifier: MIT */
/* test_http_date.c - tests valid, tolerable and hostile dates in headers. */
#include "lib/test.h"

#include "base/rng.h"
#include "core/web/http/http_date.h"

#include <stdbool.h>
#include <time.h>

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])
#define NOW INT64_C(1794700800) /* 2026-11-15 00:00:00 */
#define NONE INT64_MIN

static int64_t date_at(const char *text, int64_t now_s)
{
    int64_t s = NONE;
    char *copy = malloc(strlen(text) + 1); /* exact size, so that sanitizers detect overreads */

    assert_non_null(copy);
    memcpy(copy, text, strlen(text) + 1);
    bool is_date = wr_http_date_parse((struct wr_span){copy, strlen(text)}, now_s, &s);
    assert_true(is_date == (s != NONE));
    free(copy);
    return s;
}

static void three_forms_of_http_dates_are_parsed(void **state)
{
    static const char *const texts[] = {
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_int_equal(date_at(texts[i], NOW), 784111777);
}

static void dates_agree_with_the_calendar(void **state)
{
    static const struct {
        const char *text;
        int64_t s;
    } rows[] = {
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"Wed, 31 Dec 1969 23:59:59 GMT", -1},
        {"Tue, 29 Feb 2000 12:00:00 GMT", 951825600},
        {"Thu, 29 Feb 2024 00:00:00 GMT", 1709164800},
        {"Fri, 31 Dec 1999 23:59:59 GMT", 946684799},
        {"Tue, 19 Jan 2038 03:14:08 GMT", 2147483648},
        {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799},
        {"Mon, 01 Jan 0001 00:00:00 GMT", -62135596800},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(date_at(rows[i].text, NOW), rows[i].s);
}

/* Compares with libc, which core may not use. */
static void every_form_of_random_dates_agrees_with_libc(void **state)
{
    static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %e %H:%M:%S %Y"};
    struct wr_rng rng;
    int agreed = 0;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 20000; i++) {
        char text[64];
        struct tm tm;
        int64_t s = (int64_t)wr_rng_below(&rng, 99 * (uint64_t)31556952) + NOW - 49 * INT64_C(31556952);
        time_t time = (time_t)s;
        if (time != s)
            continue; /* time_t of some 32-bit libcs ends in 2038 */
        assert_non_null(gmtime_r(&time, &tm));
        strftime(text, sizeof text, forms[i % 3], &tm);
        assert_int_equal(date_at(text, NOW), s);
        agreed++;
    }
    assert_true(agreed >= 10000);
}

/* C2 */
static void a_wrong_weekday_a_leap_second_and_other_slips_are_accepted(void **state)
{
    static const char *const texts[] = {
        "Mon, 06 Nov 1994 08:49:37 GMT",      "Montag, 06 Nov 1994 08:49:37 GMT", "06 Nov 1994 08:49:37 GMT",
        "sun, 06 nov 1994 08:49:37 gmt",      "Sun, 6 Nov 1994 08:49:37 GMT",     "Sun, 06 Nov 1994 08:49:37 UTC",
        "  Sun, 06 Nov 1994 08:49:37 GMT\t ", "Sun,06 Nov 1994 08:49:37 GMT",     "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",        "Sun Nov 06 08:49:37 1994",         "Sun Nov 6 08:49:37 1994",
    };
    static const char *const zones[] = {
        "Sun, 06 Nov 1994 09:49:37 +0100",     "Sun, 06 Nov 1994 03:19:37 -0530",
        "Sun, 06 Nov 1994 09:49:37 GMT+01:00", "Sun Nov 06 1994 09:49:37 GMT+0100 (Central European Standard Time)",
        "Sun Nov 06 1994 08:49:37 UTC",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_int_equal(date_at(texts[i], NOW), 784111777);
    for (size_t i = 0; i < COUNT(zones); i++)
        assert_int_equal(date_at(zones[i], NOW), 784111777);
    assert_int_equal(date_at("Sat, 31 Dec 2016 23:59:60 GMT", NOW), 1483228800);
}

/* C2; RFC 9110 5.6.7 */
static void two_digits_of_a_year_lie_at_most_fifty_years_ahead(void **state)
{
    static const struct {
        const char *text;
        int64_t now_s, s;
    } rows[] = {
        {"Sunday, 06-Nov-94 08:49:37 GMT", NOW, 784111777},
        /* exactly 50 years ahead: 2076 */
        {"Sunday, 15-Nov-76 00:00:00 GMT", NOW, 3372624000},
        {"Sunday, 15-Nov-76 00:00:01 GMT", NOW, 216864001},           /* a second more: 1976 */
        {"Sunday, 15-Nov-25 00:00:00 GMT", NOW, 1763164800},          /* 2025 */
        {"Monday, 01-Jan-01 00:00:00 GMT", 4070908800, 4133980800},   /* 2101, seen from 2099 */
        {"Wednesday, 01-Jan-50 00:00:00 GMT", 978307200, 2524608000}, /* 2050, seen from 2001 */
        {"Thursday, 01-Jan-70 00:00:00 GMT", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(date_at(rows[i].text, rows[i].now_s), rows[i].s);
}

static void each_month_ends_with_its_last_day(void **state)
{
    static const struct {
        const char *month;
        int days, leap_days;
    } rows[] = {{"Jan", 31, 31}, {"Feb", 28, 29}, {"Mar", 31, 31}, {"Apr", 30, 30}, {"May", 31, 31}, {"Jun", 30, 30},
                {"Jul", 31, 31}, {"Aug", 31, 31}, {"Sep", 30, 30}, {"Oct", 31, 31}, {"Nov", 30, 30}, {"Dec", 31, 31}};

    (void)state;
    for (int year = 2023; year <= 2024; year++)
        for (size_t i = 0; i < COUNT(rows); i++) {
            char text[64];
            int days = year == 2024 ? rows[i].leap_days : rows[i].days;
            snprintf(text, sizeof text, "Sun, %02d %s %d 00:00:00 GMT", days, rows[i].month, year);
            int64_t last_s = date_at(text, NOW);
            snprintf(text, sizeof text, "Sun, 01 %s %d 00:00:00 GMT", rows[(i + 1) % 12].month, year + (i == 11));
            assert_int_equal(date_at(text, NOW), last_s + 86400);
            snprintf(text, sizeof text, "Sun, %02d %s %d 00:00:00 GMT", days + 1, rows[i].month, year);
            assert_int_equal(date_at(text, NOW), NONE);
        }
}

static void text_that_is_not_a_date_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "0",
        "120",
        "-1",
        "Sun",
        "Sun,",
        "Sun, ",
        "Sun, 06 Nov 1994",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 EST",
        "Sun, 06 Nov 1994 08:49:37 +01",
        "Sun, 06 Nov 1994 08:49:37 +2400",
        "Sun, 06 Nov 1994 08:49:37 +0060",
        "Sun, 06 Nov 1994 08:49:37 GMT+",
        "Sun, 06 Nov 1994 08:49:37 GMT (",
        "Sun, 06 Nov 1994 08:49:37 GMT (x",
        "Sun Nov 06 1994 08:49:37",
        "Sun Nov 06 94 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT x",
        "Sun, 06 Nov 1994 08:49:37 GMTX",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sun, 29 Feb 2023 08:49:37 GMT",
        "Sun, 06 Nev 1994 08:49:37 GMT",
        "Sun, 06 November 1994 08:49:37 GMT",
        "Sun, 006 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 994 08:49:37 GMT",
        "Sun, 06 Nov 19944 08:49:37 GMT",
        "Sun, 06 Nov -994 08:49:37 GMT",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Nov  6 08:49:37 1994",
        "1994-11-06T08:49:37Z",
        "Sun, 06 Nov 1994 08:49:3\xd9\xa7 GMT",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_true(date_at(texts[i], NOW) == NONE);
}

static void a_zero_byte_is_no_part_of_a_date(void **state)
{
    static const char text[] = "Sun, 06 Nov 1994 08:49:37 GMT";
    int64_t s = NONE;

    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i++) {
        char copy[sizeof text];
        memcpy(copy, text, sizeof text);
        copy[i] = '\0';
        assert_false(wr_http_date_parse((struct wr_span){copy, sizeof text - 1}, NOW, &s));
    }
    assert_false(wr_http_date_parse((struct wr_span){NULL, 0}, NOW, &s));
    assert_true(s == NONE);
}

static void iso_dates_are_read_with_fractions_and_zones(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"2026-11-15T00:00:00Z", NOW * 1000},
        {"2026-11-15T00:00Z", NOW * 1000},
        {"2026-11-15T00:00:00", NOW * 1000},
        {"2026-11-15t00:00:00z", NOW * 1000},
        {"2026-11-15 00:00:00", NOW * 1000},
        {"2026-11-15T00:00:00.25Z", NOW * 1000 + 250},
        {"2026-11-15T00:00:00.000000001Z", NOW * 1000 + 1},
        {"2026-11-15T00:00:00.9999999999999999999999999Z", NOW * 1000 + 1000},
        {"2026-11-15T01:00:00+01:00", NOW * 1000},
        {"2026-11-14T18:30:00-0530", NOW * 1000},
        {"2026-11-15T00:00+00:00", NOW * 1000},
        {"2026-11-15 00:00:00 UTC", NOW * 1000},
        {"2026-11-15 01:00:00 +0100", NOW * 1000},
        {" 2026-11-15T00:00Z ", NOW * 1000},
        {"2026-11-15", NONE},
        {"2026-11-15T", NONE},
        {"2026-11-15T00:00:", NONE},
        {"2026-11-15T00:00:00.Z", NONE},
        {"2026-11-15T00:00:00ZZ", NONE},
        {"2026-11-15T00:00:00+1", NONE},
        {"2026-11-15T00:00:00+24:00", NONE},
        {"2026-11-15T00:00:00+01:60", NONE},
        {"2026-11-31T00:00:00Z", NONE},
        {"2026-00-15T00:00:00Z", NONE},
        {"26-11-15T00:00:00Z", NONE},
        {"1794700800", NONE},
        {"", NONE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ms = NONE;
        bool is_date = wr_iso_date_parse(wr_span_of(rows[i].text), &ms);
        assert_true(is_date == (rows[i].ms != NONE));
        assert_int_equal(ms, rows[i].ms);
    }
}

/* Wherever a byte is changed, the text is a date or refused. The date is near the original if
 * digits keep their places. */
static void mutated_dates_are_read_or_refused_within_bounds(void **state)
{
    static const char *const seeds[] = {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994", "2026-11-15T00:00:00.250+01:00"};
    static const char letters[] = "0123456789 ,:-+.TZNovSunGMT\0\xff";
    unsigned read = 0;
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 200000; i++) {
        const char *seed = seeds[wr_rng_below(&rng, COUNT(seeds))];
        size_t bytes = (size_t)wr_rng_below(&rng, 4) > 0 ? strlen(seed) : (size_t)wr_rng_below(&rng, strlen(seed));
        char *text = malloc(bytes + 1);
        int64_t s = 0, ms = 0;
        assert_non_null(text);
        memcpy(text, seed, bytes);
        for (uint64_t changes = wr_rng_below(&rng, 3); changes > 0 && bytes > 0; changes--)
            text[wr_rng_below(&rng, bytes)] = letters[wr_rng_below(&rng, sizeof letters - 1)];
        read += wr_http_date_parse((struct wr_span){text, bytes}, NOW, &s);
        read += wr_iso_date_parse((struct wr_span){text, bytes}, &ms);
        assert_true(s >= INT64_C(-62167219200) && s <= INT64_C(253402300800));
        assert_true(ms >= INT64_C(-62167305600000) && ms <= INT64_C(253402387200000));
        free(text);
    }
    assert_true(read > 10000);
}

WEIR_TESTS(test(each_month_ends_with_its_last_day), test(three_forms_of_http_dates_are_parsed),
           test(dates_agree_with_the_calendar), test(every_form_of_random_dates_agrees_with_libc),
           test(a_wrong_weekday_a_leap_second_and_other_slips_are_accepted),
           test(two_digits_of_a_year_lie_at_most_fifty_years_ahead), test(text_that_is_not_a_date_is_refused),
           test(a_zero_byte_is_no_part_of_a_date), test(iso_dates_are_read_with_fractions_and_zones),
           test(mutated_dates_are_read_or_refused_within_bounds))
