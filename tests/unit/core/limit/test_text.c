/* SPDX-License-Identifier: MIT */
/* test_text.c - tests limits as text: parsing, formatting, and that one inverts the other. */
#include "base/rng.h"
#include "lib/test.h"

#include <weir/limit.h>

static void limits_are_parsed_as_written(void **state)
{
    (void)state;
    static const struct {
        const char *text, *algorithm;
        uint32_t permits, refill;
        int64_t period_ns;
    } rows[] = {
        {"10/s", "token_bucket", 10, 10, WEIR_SECOND},
        {"10/s burst=20", "token_bucket", 20, 10, WEIR_SECOND},
        {"burst=1 5/10s", "token_bucket", 1, 5, 10 * WEIR_SECOND},
        {"100/m token_bucket", "token_bucket", 100, 100, WEIR_MINUTE},
        {"1000/h fixed_window", "fixed_window", 1000, 0, WEIR_HOUR},
        {"1000/h sliding_window", "sliding_window", 1000, 0, WEIR_HOUR},
        {"100/m sliding_log", "sliding_log", 100, 0, WEIR_MINUTE},
        {"10/s leaky_bucket burst=5", "leaky_bucket", 5, 0, WEIR_SECOND / 10},
        {"concurrent=20", "concurrency", 20, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_limit limit;
        if (weir_limit_parse(rows[i].text, &limit) != 0)
            fail_msg("%s", weir_error_detail());
        assert_string_equal(weir_limit_name(&limit), rows[i].algorithm);
        assert_int_equal(limit.permits, rows[i].permits);
        assert_int_equal(limit.refill, rows[i].refill);
        assert_int_equal(limit.period_ns, rows[i].period_ns);
    }
}

static void invalid_limits_are_refused_with_a_valid_example(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "10",
                                        "0/s",
                                        "-1/s",
                                        "10/s burst=0",
                                        "10/s burst=-1",
                                        "1e3/s",
                                        "nan/s",
                                        "10/s 20/s",
                                        "burst=5",
                                        "10/parsec",
                                        "10/s burst=99999999999",
                                        "10/s fast",
                                        "10/s concurrent=2",
                                        "concurrent=2 burst=3",
                                        "10/m fixed_window burst=3",
                                        "7/s leaky_bucket",
                                        "100000/m sliding_log",
                                        "concurrent=0",
                                        "10/s burst=1 burst=2",
                                        "10/s token_bucket leaky_bucket"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        weir_limit limit;
        if (weir_limit_parse(texts[i], &limit) != WEIR_E_INVAL)
            fail_msg("\"%s\"", texts[i]);
        assert_non_null(strchr(weir_error_detail(), ';'));
    }
}

static void limit_without_a_rate_and_limit_with_two_get_different_errors(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_parse("burst=5", &limit), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "there is no rate"));
    assert_int_equal(weir_limit_parse("10/s concurrent=2", &limit), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "both a rate and concurrent="));
}

static void usual_abbreviations_of_periods_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t period_ns;
    } rows[] = {{"5/sec", WEIR_SECOND}, {"5/second", WEIR_SECOND}, {"5/min", WEIR_MINUTE}, {"5/minute", WEIR_MINUTE},
                {"5/hr", WEIR_HOUR},    {"5/hour", WEIR_HOUR},     {"5/day", WEIR_DAY}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_limit limit;
        if (weir_limit_parse(rows[i].text, &limit) != 0)
            fail_msg("%s", weir_error_detail());
        assert_int_equal(limit.period_ns, rows[i].period_ns);
    }
}

static void format_writes_the_shortest_text(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"10/s", "10/s"},
        {"10/1s burst=10 token_bucket", "10/s"},
        {"burst=20 10/1000ms", "10/s burst=20"},
        {"5/10s", "5/10s"},
        {"100/min", "100/m"},
        {"3/1h30m", "3/90m"},
        {"1000/3600s fixed_window", "1000/h fixed_window"},
        {"1000/24h sliding_window", "1000/d sliding_window"},
        {"7/250us sliding_log", "7/250us sliding_log"},
        {"10/s leaky_bucket", "1/100ms leaky_bucket burst=10"},
        {"1/s leaky_bucket", "1/s leaky_bucket"},
        {"concurrent=20", "concurrent=20"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_limit limit;
        char text[WEIR_LIMIT_TEXT_MAX];
        size_t bytes = 0;
        assert_int_equal(weir_limit_parse(rows[i][0], &limit), 0);
        assert_int_equal(weir_limit_format(&limit, text, sizeof text, &bytes), 0);
        assert_string_equal(text, rows[i][1]);
        assert_int_equal(bytes, strlen(text));
    }
}

/* Makes a limit of any of the algorithms that have a text. */
static int make_limit(struct wr_rng *rng, weir_limit *ret_limit)
{
    uint32_t count = 1 + (uint32_t)wr_rng_below(rng, wr_rng_below(rng, 2) == 0 ? 100 : 65536);
    uint32_t burst = 1 + (uint32_t)wr_rng_below(rng, UINT32_MAX);
    int64_t period_ns = 1 + (int64_t)wr_rng_below(rng, wr_rng_below(rng, 2) == 0 ? 100 : (uint64_t)WEIR_DAY);
    static const int64_t units[] = {1, WEIR_MILLISECOND, WEIR_SECOND, WEIR_MINUTE, WEIR_HOUR};
    period_ns = period_ns < 1000 ? period_ns * units[wr_rng_below(rng, 5)] : period_ns;
    switch (wr_rng_below(rng, 6)) {
    case 0:
        return weir_limit_token_bucket(ret_limit, burst, count, period_ns);
    case 1:
        return weir_limit_fixed_window(ret_limit, burst, period_ns);
    case 2:
        return weir_limit_sliding_window(ret_limit, burst, period_ns);
    case 3:
        return weir_limit_sliding_log(ret_limit, count, period_ns);
    case 4:
        return weir_limit_leaky_bucket(ret_limit, count, period_ns);
    default:
        return weir_limit_concurrency(ret_limit, burst);
    }
}

static void parsing_what_was_formatted_gives_the_same_limit(void **state)
{
    (void)state;
    struct wr_rng rng;
    int made = 0;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 20000; i++) {
        weir_limit limit, again;
        char text[WEIR_LIMIT_TEXT_MAX];
        if (make_limit(&rng, &limit) != 0)
            continue; /* a bucket that never fills */
        made++;
        assert_int_equal(weir_limit_format(&limit, text, sizeof text, NULL), 0);
        if (weir_limit_parse(text, &again) != 0)
            fail_msg("%s", weir_error_detail());
        assert_ptr_equal(again.algorithm, limit.algorithm);
        assert_int_equal(again.permits, limit.permits);
        assert_int_equal(again.refill, limit.refill);
        assert_int_equal(again.period_ns, limit.period_ns);
    }
    assert_true(made > 10000);
}

static void format_refuses_limits_without_a_text_and_small_buffers(void **state)
{
    (void)state;
    weir_limit limit;
    char text[WEIR_LIMIT_TEXT_MAX] = "kept";
    size_t bytes = 7;
    assert_int_equal(weir_limit_stepped_bucket(&limit, 10, 5, WEIR_SECOND, 0), 0);
    assert_int_equal(weir_limit_format(&limit, text, sizeof text, &bytes), WEIR_E_INVAL);
    assert_int_equal(weir_limit_format(NULL, text, sizeof text, &bytes), WEIR_E_INVAL);
    assert_int_equal(weir_limit_parse("10/s burst=20", &limit), 0);
    assert_int_equal(weir_limit_format(&limit, NULL, sizeof text, &bytes), WEIR_E_INVAL);
    assert_int_equal(weir_limit_format(&limit, text, 0, &bytes), WEIR_E_INVAL);
    assert_int_equal(weir_limit_format(&limit, text, 13, &bytes), WEIR_E_SPACE); /* no room for the NUL */
    assert_int_equal(bytes, 7);
    assert_int_equal(weir_limit_format(&limit, text, 14, &bytes), 0);
    assert_string_equal(text, "10/s burst=20");
    assert_int_equal(weir_limit_parse(NULL, &limit), WEIR_E_INVAL);
    assert_int_equal(weir_limit_parse("10/s", NULL), WEIR_E_INVAL);
}

WEIR_TESTS(test(limits_are_parsed_as_written), test(invalid_limits_are_refused_with_a_valid_example),
           test(limit_without_a_rate_and_limit_with_two_get_different_errors),
           test(usual_abbreviations_of_periods_are_understood), test(format_writes_the_shortest_text),
           test(parsing_what_was_formatted_gives_the_same_limit),
           test(format_refuses_limits_without_a_text_and_small_buffers))
