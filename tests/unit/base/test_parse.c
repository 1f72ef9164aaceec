/* SPDX-License-Identifier: MIT */
/* test_parse.c - tests parsing of valid and invalid numbers, durations, sizes and rates. */
#include "base/parse.h"
#include "base/rng.h"
#include "lib/test.h"

#include <stdbool.h>
#include <weir/error.h>

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* A text that is refused, and the whole error message. */
struct refusal {
    const char *text;
    const char *detail;
};

/* Returns a copy of exactly this size, so that sanitizers detect overreads. */
static char *exact_copy(const char *text, size_t bytes)
{
    char *copy = malloc(bytes > 0 ? bytes : 1);
    memcpy(copy, text, bytes);
    return copy;
}

static int parse_duration(const char *text, size_t bytes, int64_t *ret_duration_ns)
{
    char *copy = exact_copy(text, bytes);
    int error = wr_parse_duration(copy, bytes, ret_duration_ns);
    free(copy);
    return error;
}

static void expect_refused(int error, const struct refusal *row)
{
    assert_int_equal(error, WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(), row->detail);
}

/* ---- numbers ---- */

static void integers_are_parsed_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t number;
    } rows[] = {
        {"0", 0},
        {"7", 7},
        {"007", 7},
        {"4294967296", UINT64_C(4294967296)},
        {"18446744073709551615", UINT64_MAX},
        {"00000000000000000001", 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t number = 99;
        assert_int_equal(wr_parse_u64(rows[i].text, strlen(rows[i].text), 0, UINT64_MAX, &number), 0);
        assert_true(number == rows[i].number);
    }
}

static void scanning_and_success_set_no_error_detail(void **state)
{
    static const char *const texts[] = {"", "0", "101", "-5", "x", "5 ", "50", "18446744073709551616"};
    const char *detail;
    int64_t duration_ns;
    uint64_t number, bytes;
    uint32_t count;

    (void)state;
    (void)wr_parse_duration("5 parsecs", 9, &duration_ns);
    detail = weir_error_detail();
    char *before = strdup(detail);
    for (size_t i = 0; i < COUNT(texts); i++) {
        number = 99;
        assert_int_equal(wr_scan_u64(texts[i], strlen(texts[i]), 1, 100, &number), strcmp(texts[i], "50") == 0);
        assert_int_equal(number, strcmp(texts[i], "50") == 0 ? 50 : 99);
    }
    assert_false(wr_scan_u64(NULL, 0, 0, 9, &number));
    assert_int_equal(wr_parse_u64("7", 1, 0, 9, &number), 0);
    assert_int_equal(wr_parse_duration("1h30m", 5, &duration_ns), 0);
    assert_int_equal(wr_parse_bytes("1.5k", 4, &bytes), 0);
    assert_int_equal(wr_parse_rate("10/s", 4, &count, &duration_ns), 0);
    assert_ptr_equal(weir_error_detail(), detail);
    assert_string_equal(weir_error_detail(), before);
    free(before);
}

static void invalid_numbers_are_refused_with_what_where_and_why(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"", "number \"\": empty; use 1 ... 100"},
        {"0", "number \"0\": too small; use 1 ... 100"},
        {"101", "number \"101\": too large; use 1 ... 100"},
        {"-5", "number \"-5\": not a digit at character 1; use 1 ... 100"},
        {"+5", "number \"+5\": not a digit at character 1; use 1 ... 100"},
        {" 5", "number \" 5\": not a digit at character 1; use 1 ... 100"},
        {"5 ", "number \"5 \": not a digit at character 2; use 1 ... 100"},
        {"1e1", "number \"1e1\": not a digit at character 2; use 1 ... 100"},
        {"0x10", "number \"0x10\": not a digit at character 2; use 1 ... 100"},
        {"1.0", "number \"1.0\": not a digit at character 2; use 1 ... 100"},
        {"nan", "number \"nan\": not a digit at character 1; use 1 ... 100"},
        {"18446744073709551616", "number \"18446744073709551616\": too many digits at character 1; use 1 ... 100"},
        {"99999999999999999999", "number \"99999999999999999999\": too many digits at character 1; use 1 ... 100"},
        {"000000000000000000001", "number \"000000000000000000001\": too many digits at character 1; use 1 ... 100"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t number = 77;
        expect_refused(wr_parse_u64(rows[i].text, strlen(rows[i].text), 1, 100, &number), &rows[i]);
        assert_int_equal(number, 77);
    }
}

static void decimal_numbers_are_parsed_to_the_nearest_double(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double number;
    } rows[] = {{"0", 0},
                {"0.2", 0.2},
                {"007.50", 7.5},
                {"0.1234567890123", 0.1234567890123},
                {"1000000000000000000", 1e18},
                {"99999999999999999.25", 99999999999999999.25},
                {"0.000000000000000001", 1e-18}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        double number = 99;
        assert_int_equal(wr_parse_number(rows[i].text, strlen(rows[i].text), 0, 1e18, &number), 0);
        assert_true(number == rows[i].number);
    }
}

static void invalid_decimals_are_refused_with_what_where_and_why(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"", "number \"\": empty; use 0.5 ... 20"},
        {"nan", "number \"nan\": not a digit at character 1; use 0.5 ... 20"},
        {".inf", "number \".inf\": not a digit at character 1; use 0.5 ... 20"},
        {"-1", "number \"-1\": not a digit at character 1; use 0.5 ... 20"},
        {"1.", "number \"1.\": incomplete at character 3; use 0.5 ... 20"},
        {"1e1", "number \"1e1\": not a digit at character 2; use 0.5 ... 20"},
        {"1,5", "number \"1,5\": not a digit at character 2; use 0.5 ... 20"},
        {"0.4999", "number \"0.4999\": too small; use 0.5 ... 20"},
        {"20.001", "number \"20.001\": too large; use 0.5 ... 20"},
        {"999999999999999999999", "number \"999999999999999999999\": too many digits at character 1; use 0.5 ... 20"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        double number = 77;
        expect_refused(wr_parse_number(rows[i].text, strlen(rows[i].text), 0.5, 20, &number), &rows[i]);
        assert_true(number == 77);
    }
}

/* ---- durations ---- */

static void durations_are_parsed_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t duration_ns;
    } rows[] = {
        {"0", 0},
        {"90", 90 * WEIR_SECOND},
        {"1.5", 1500 * WEIR_MILLISECOND},
        {"7ns", 7},
        {"7us", 7 * WEIR_MICROSECOND},
        {"500ms", 500 * WEIR_MILLISECOND},
        {"1.5s", 1500 * WEIR_MILLISECOND},
        {"5m", 5 * WEIR_MINUTE},
        {"2h", 2 * WEIR_HOUR},
        {"1d", WEIR_DAY},
        {"1h30m", 90 * WEIR_MINUTE},
        {"1d2h3m4s5ms6us7ns", WEIR_DAY + 2 * WEIR_HOUR + 3 * WEIR_MINUTE + INT64_C(4005006007)},
        {"0.5h30s", 30 * WEIR_MINUTE + 30 * WEIR_SECOND},
        {"0.000000001s", 1},
        {"1.123456789s", INT64_C(1123456789)},
        {"1.1234567890000000000000000000s", INT64_C(1123456789)},
        {"0.1s", 100 * WEIR_MILLISECOND},
        {"1.0ns", 1},
        {"0.0000152587890625d", INT64_C(1318359375)}, /* 86400 / 2^16 s: all sixteen digits count */
        {"13343d", 13343 * WEIR_DAY},
        {"1152921504606846976ns", WEIR_DURATION_MAX},
        {"1152921504.606846976s", WEIR_DURATION_MAX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t duration_ns = -1;
        assert_int_equal(parse_duration(rows[i].text, strlen(rows[i].text), &duration_ns), 0);
        assert_true(duration_ns == rows[i].duration_ns);
    }
}

#define DURATION_LIKE "use for example 500ms, 1.5s or 1h30m"
#define DURATION_UNITS "use ns, us, ms, s, m, h or d"

static void invalid_durations_are_refused_with_what_where_and_why(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"", "duration \"\": empty; " DURATION_LIKE},
        {"s", "duration \"s\": not a digit at character 1; " DURATION_LIKE},
        {"-5s", "duration \"-5s\": not a digit at character 1; " DURATION_LIKE},
        {"+5s", "duration \"+5s\": not a digit at character 1; " DURATION_LIKE},
        {".5s", "duration \".5s\": not a digit at character 1; " DURATION_LIKE},
        {"5.s", "duration \"5.s\": not a digit at character 3; " DURATION_LIKE},
        {"5.", "duration \"5.\": incomplete at character 3; " DURATION_LIKE},
        {" 5s", "duration \" 5s\": not a digit at character 1; " DURATION_LIKE},
        {"5s ", "duration \"5s \": unknown unit at character 2; " DURATION_UNITS},
        {"5 s", "duration \"5 s\": unknown unit at character 2; " DURATION_UNITS},
        {"5 parsecs", "duration \"5 parsecs\": unknown unit at character 2; " DURATION_UNITS},
        {"5S", "duration \"5S\": unknown unit at character 2; " DURATION_UNITS},
        {"1e9", "duration \"1e9\": unknown unit at character 2; " DURATION_UNITS},
        {"1,5s", "duration \"1,5s\": unknown unit at character 2; " DURATION_UNITS},
        {"1.5.5s", "duration \"1.5.5s\": unknown unit at character 4; " DURATION_UNITS},
        {"5\xc2\xb5s", "duration \"5\\xc2\\xb5s\": unknown unit at character 2; " DURATION_UNITS},
        {"nan", "duration \"nan\": not a digit at character 1; " DURATION_LIKE},
        {"inf", "duration \"inf\": not a digit at character 1; " DURATION_LIKE},
        {"1h30", "duration \"1h30\": no unit at character 5; " DURATION_UNITS},
        {"30m1h",
         "duration \"30m1h\": unit out of order at character 5; go from large to small, each once, as in 1h30m"},
        {"1s1s", "duration \"1s1s\": unit out of order at character 4; go from large to small, each once, as in 1h30m"},
        {"0.5ns", "duration \"0.5ns\": not a whole number of nanoseconds at character 1; use fewer digits"},
        {"1h0.0000000001s",
         "duration \"1h0.0000000001s\": not a whole number of nanoseconds at character 3; use fewer digits"},
        {"0.1234567890123456789s",
         "duration \"0.1234567890123456789s\": too many digits at character 3; write it in a smaller unit"},
        {"13344d", "duration \"13344d\": too large at character 1; use at most 13343d"},
        {"1152921504606846977ns", "duration \"1152921504606846977ns\": too large at character 1; use at most 13343d"},
        {"13343d24h", "duration \"13343d24h\": too large at character 7; use at most 13343d"},
        {"18446744073709551615d", "duration \"18446744073709551615d\": too large at character 1; use at most 13343d"},
        {"1234567890123456789012345678901234567890",
         "duration \"1234567890123456789012345678901234567890\": too many digits at character 1; " DURATION_LIKE},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t duration_ns = -77;
        expect_refused(parse_duration(rows[i].text, strlen(rows[i].text), &duration_ns), &rows[i]);
        assert_true(duration_ns == -77);
    }
}

static void zero_byte_and_null_are_refused_by_parsers(void **state)
{
    (void)state;
    int64_t duration_ns = -77;
    struct refusal rows[] = {
        {"5s\0", "duration \"5s\\x00\": unknown unit at character 2; " DURATION_UNITS},
        {"\0005s", "duration \"\\x005s\": not a digit at character 1; " DURATION_LIKE},
        {NULL, "duration \"\": empty; " DURATION_LIKE},
    };
    expect_refused(parse_duration(rows[0].text, 3, &duration_ns), &rows[0]);
    expect_refused(parse_duration(rows[1].text, 3, &duration_ns), &rows[1]);
    expect_refused(wr_parse_duration(NULL, 5, &duration_ns), &rows[2]);
    assert_true(duration_ns == -77);
}

/* ---- sizes ---- */

static void sizes_are_parsed_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        {"0", 0},
        {"4096", 4096},
        {"4096B", 4096},
        {"64k", 65536},
        {"64K", 65536},
        {"64kB", 64000},
        {"64KiB", 65536},
        {"10MB", 10000000},
        {"10mb", 10000000},
        {"10M", 10485760},
        {"1.5GiB", UINT64_C(1610612736)},
        {"1.5GB", UINT64_C(1500000000)},
        {"2g", UINT64_C(2147483648)},
        {"1T", UINT64_C(1) << 40},
        {"1TiB", UINT64_C(1) << 40},
        {"1TB", UINT64_C(1000000000000)},
        {"0.5k", 512},
        {"0.0009765625k", 1},
        {"1048576T", UINT64_C(1) << 60},
        {"1152921504606846976", UINT64_C(1) << 60},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t bytes = 99;
        assert_int_equal(wr_parse_bytes(rows[i].text, strlen(rows[i].text), &bytes), 0);
        assert_true(bytes == rows[i].bytes);
    }
}

#define SIZE_LIKE "use for example 4096, 64k, 10MB or 1.5GiB"
#define SIZE_UNITS "use k, M, G or T, alone or with B or iB"

static void invalid_sizes_are_refused_with_what_where_and_why(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"", "size \"\": empty; " SIZE_LIKE},
        {"-1", "size \"-1\": not a digit at character 1; " SIZE_LIKE},
        {"k", "size \"k\": not a digit at character 1; " SIZE_LIKE},
        {"64 k", "size \"64 k\": unknown unit at character 3; " SIZE_UNITS},
        {"64kk", "size \"64kk\": unknown unit at character 3; " SIZE_UNITS},
        {"64k1", "size \"64k1\": unknown unit at character 4; " SIZE_UNITS},
        {"1e9", "size \"1e9\": unknown unit at character 2; " SIZE_UNITS},
        {"1P", "size \"1P\": unknown unit at character 2; " SIZE_UNITS},
        {"1.5", "size \"1.5\": not a whole number of bytes at character 1; use fewer digits"},
        {"0.0001k", "size \"0.0001k\": not a whole number of bytes at character 1; use fewer digits"},
        {"1048577T", "size \"1048577T\": too large at character 1; use at most 1048576T"},
        {"18446744073709551615TiB", "size \"18446744073709551615TiB\": too large at character 1; use at most 1048576T"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t bytes = 77;
        expect_refused(wr_parse_bytes(rows[i].text, strlen(rows[i].text), &bytes), &rows[i]);
        assert_int_equal(bytes, 77);
    }
}

/* ---- rates ---- */

static void rates_are_parsed_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t count;
        int64_t period_ns;
    } rows[] = {
        {"10/s", 10, WEIR_SECOND},
        {"1000/h", 1000, WEIR_HOUR},
        {"5/10s", 5, 10 * WEIR_SECOND},
        {"1/day", 1, WEIR_DAY},
        {"1/d", 1, WEIR_DAY},
        {"2/hour", 2, WEIR_HOUR},
        {"3/minute", 3, WEIR_MINUTE},
        {"4/second", 4, WEIR_SECOND},
        {"3/m", 3, WEIR_MINUTE},
        {"3/ms", 3, WEIR_MILLISECOND},
        {"1/1h30m", 1, 90 * WEIR_MINUTE},
        {"1/0.5s", 1, 500 * WEIR_MILLISECOND},
        {"4294967295/ns", UINT32_MAX, 1},
        {"1/1152921504606846976ns", 1, WEIR_DURATION_MAX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t count = 99;
        int64_t period_ns = -1;
        assert_int_equal(wr_parse_rate(rows[i].text, strlen(rows[i].text), &count, &period_ns), 0);
        assert_int_equal(count, rows[i].count);
        assert_true(period_ns == rows[i].period_ns);
    }
}

#define RATE_LIKE "use for example 10/s, 5/10s or 1/day"

static void invalid_rates_are_refused_with_what_where_and_why(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"", "rate \"\": empty; " RATE_LIKE},
        {"10", "rate \"10\": incomplete at character 3; " RATE_LIKE},
        {"10/", "rate \"10/\": incomplete at character 4; " RATE_LIKE},
        {"/s", "rate \"/s\": not a digit at character 1; " RATE_LIKE},
        {"-1/s", "rate \"-1/s\": not a digit at character 1; " RATE_LIKE},
        {"0.5/s", "rate \"0.5/s\": not a digit or '/' at character 2; " RATE_LIKE},
        {"0.0/s", "rate \"0.0/s\": not a digit or '/' at character 2; " RATE_LIKE},
        {"10 /s", "rate \"10 /s\": not a digit or '/' at character 3; " RATE_LIKE},
        {"10/ s", "rate \"10/ s\": unknown unit at character 4; " DURATION_UNITS},
        {"10/fortnight", "rate \"10/fortnight\": unknown unit at character 4; " DURATION_UNITS},
        {"10/s5", "rate \"10/s5\": unknown unit at character 4; " DURATION_UNITS},
        {"10/s/s", "rate \"10/s/s\": unknown unit at character 4; " DURATION_UNITS},
        {"10/5", "rate \"10/5\": no unit at character 5; " DURATION_UNITS},
        {"10/5day", "rate \"10/5day\": unknown unit at character 5; " DURATION_UNITS},
        {"10/0s", "rate \"10/0s\": the period is 0 at character 4; " RATE_LIKE},
        {"10/13344d", "rate \"10/13344d\": too large at character 4; use a period of at most 13343d"},
        {"0/s", "rate \"0/s\": too small at character 1; use a count of 1 ... 4294967295"},
        {"4294967296/s", "rate \"4294967296/s\": too large at character 1; use a count of 1 ... 4294967295"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t count = 77;
        int64_t period_ns = -77;
        expect_refused(wr_parse_rate(rows[i].text, strlen(rows[i].text), &count, &period_ns), &rows[i]);
        assert_int_equal(count, 77);
        assert_true(period_ns == -77);
    }
}

/* ---- all parsers ---- */

static char *random_text(struct wr_rng *rng, size_t *ret_bytes)
{
    /* the characters that are significant */
    static const char letters[] = "0123456789019.ssmhdunkKMGiTB// \0-e";
    char text[8];
    size_t bytes = (size_t)wr_rng_below(rng, sizeof text + 1);
    for (size_t i = 0; i < bytes; i++)
        text[i] = letters[wr_rng_below(rng, sizeof letters - 1)];
    *ret_bytes = bytes;
    return exact_copy(text, bytes);
}

/* Returns 1 if the text was parsed. Otherwise checks that the error names `what` and returns 0. */
static unsigned read_or_refused(int error, const char *what)
{
    if (error == 0)
        return 1;
    assert_int_equal(error, WEIR_E_INVAL);
    assert_memory_equal(weir_error_detail(), what, strlen(what));
    assert_non_null(strstr(weir_error_detail(), "; "));
    return 0;
}

static void any_text_is_read_within_bounds_or_refused_with_words(void **state)
{
    (void)state;
    struct wr_rng rng;
    unsigned durations = 0, sizes = 0, rates = 0;
    wr_rng_init(&rng, weir_test_seed());
    for (int step = 0; step < 300000; step++) {
        size_t bytes = 0;
        int64_t duration_ns = 0, period_ns = 1;
        uint64_t size = 0;
        uint32_t count = 1;
        char *text = random_text(&rng, &bytes);
        durations += read_or_refused(wr_parse_duration(text, bytes, &duration_ns), "duration \"");
        sizes += read_or_refused(wr_parse_bytes(text, bytes, &size), "size \"");
        rates += read_or_refused(wr_parse_rate(text, bytes, &count, &period_ns), "rate \"");
        free(text);
        assert_true(duration_ns >= 0 && duration_ns <= WEIR_DURATION_MAX);
        assert_true(period_ns >= 1 && period_ns <= WEIR_DURATION_MAX);
        assert_true(size <= WR_BYTES_MAX && count >= 1);
    }
    /* otherwise `letters` is badly chosen */
    assert_true(durations > 1000 && sizes > 1000 && rates > 100);
}

WEIR_TESTS(test(integers_are_parsed_exactly), test(scanning_and_success_set_no_error_detail),
           test(invalid_numbers_are_refused_with_what_where_and_why),
           test(decimal_numbers_are_parsed_to_the_nearest_double),
           test(invalid_decimals_are_refused_with_what_where_and_why), test(durations_are_parsed_exactly),
           test(invalid_durations_are_refused_with_what_where_and_why), test(zero_byte_and_null_are_refused_by_parsers),
           test(sizes_are_parsed_exactly), test(invalid_sizes_are_refused_with_what_where_and_why),
           test(rates_are_parsed_exactly), test(invalid_rates_are_refused_with_what_where_and_why),
           test(any_text_is_read_within_bounds_or_refused_with_words))
