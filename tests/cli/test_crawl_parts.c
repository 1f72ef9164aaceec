/* SPDX-License-Identifier: MIT */
/* test_crawl_parts.c - parts of weir crawl: seeds, saved arguments of a job, defaults, printed
 * figures. */
#include "lib/test.h"

#include <math.h>
#include <stdlib.h>

#include "cli/crawl/crawl_settings.h"
#include "cli/crawl/seeds.h"
#include "cli/crawl/stored_args.h"
#include "cli/kit/format.h"
#include "limiter/memory/memory.h"

/* ---- seeds ---- */

static void seed_without_a_scheme_is_https(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"example.org", "https://example.org/"},
        {"example.org/a?b", "https://example.org/a?b"},
        {"localhost:8080", "https://localhost:8080/"},
        {"[::1]:81/x", "https://[::1]:81/x"},
        {"http://example.org", "http://example.org/"},
        {"HTTPS://Example.ORG/x", "https://example.org/x"},
        {"b\303\274cher.example", "https://xn--bcher-kva.example/"},
        {"example.org/a:b", "https://example.org/a:b"},
    };
    char memory[WR_URL_ROOM];
    struct wr_url url;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *why = wr_seed_parse(wr_span_of(cases[i][0]), true, memory, &url);
        if (why != NULL)
            fail_msg("%s: %s", cases[i][0], why);
        assert_string_equal(url.text, cases[i][1]);
    }
}

static void invalid_seed_is_refused_with_a_reason(void **state)
{
    (void)state;
    static char longest[3 * WR_URL_MAX];
    const char *const cases[][2] = {
        {"ftp://example.org/", "scheme"},
        {"mailto:me@example.org", "scheme"},
        {"", "host"},
        {"two words.example", "character"},
        {"https://user:secret@example.org/", "contains a user name"},
        {"user@example.org", "contains a user name"},
        {"http://127.0.0.1/", "--allow-private"},
        {"[::1]:8080", "--allow-private"},
        {"localhost", "--allow-private"},
        {"http://10.1/", "--allow-private"},
        {longest, "longer"},
    };
    char memory[WR_URL_ROOM];
    struct wr_url url;
    memset(longest, 'x', sizeof longest - 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *why = wr_seed_parse(wr_span_of(cases[i][0]), false, memory, &url);
        if (why == NULL || (strstr(why, cases[i][1]) == NULL && cases[i][0] != longest))
            fail_msg("%.40s: %s", cases[i][0], why != NULL ? why : "is fine");
    }
}

/* ---- saved arguments ---- */

/* Saves the arguments as a job does and reads them back. */
static void keep(char **words, int count, struct wr_stored_args *ret_words)
{
    struct wr_buf buf;
    wr_buf_init(&buf, wr_allocator_or_system(NULL), 65536);
    wr_stored_args_begin(&buf);
    wr_stored_args_append(&buf, &wr_crawl_usage, false, count, words);
    assert_int_equal(buf.error, 0);
    assert_true(wr_span_is_clean(wr_buf_from(&buf, 0)));
    assert_null(strstr(buf.bytes, "s3cret"));
    assert_int_equal(wr_stored_args_read(ret_words, wr_buf_from(&buf, 0)), 0);
    wr_buf_release(&buf);
}

static void saved_arguments_of_a_job_are_restored_unchanged(void **state)
{
    (void)state;
    char *words[] = {"example.org",  "--depth",    "5",       "--exclude=a b\\x20\n", "--all-types",
                     "--user-agent", "\303\274 x", "--out=-", "--seeds-file",         "-",
                     "--",           "--x"};
    static const char *const expected[] = {
        "example.org",    "--depth=5", "--exclude=a b\\x20\n", "--all-types", "--user-agent=\303\274 x", "--out=-",
        "--seeds-file=-", "--x"};
    struct wr_stored_args kept;
    keep(words, sizeof words / sizeof words[0], &kept);
    assert_int_equal(kept.count, sizeof expected / sizeof expected[0]);
    for (int i = 0; i < kept.count; i++)
        assert_string_equal(kept.list[i], expected[i]);
    assert_false(kept.lacks_header || kept.lacks_proxy);
    wr_stored_args_release(&kept);
}

static void secrets_and_options_of_one_run_are_not_saved_with_the_job(void **state)
{
    (void)state;
    char *words[] = {"--header",
                     "Authorization: s3cret",
                     "--proxy=http://u:s3cret@p",
                     "--quiet",
                     "--resume",
                     "--job",
                     "3",
                     "--state=x.db",
                     "--append",
                     "--json",
                     "a.example"};
    char *open[] = {"--proxy", "http://proxy:3128"}, *none[] = {NULL};
    struct wr_stored_args kept;
    keep(words, sizeof words / sizeof words[0], &kept);
    assert_int_equal(kept.count, 1);
    assert_string_equal(kept.list[0], "a.example");
    assert_true(kept.lacks_header && kept.lacks_proxy);
    wr_stored_args_release(&kept);
    keep(open, 2, &kept);
    assert_int_equal(kept.count, 1);
    assert_string_equal(kept.list[0], "--proxy=http://proxy:3128");
    wr_stored_args_release(&kept);
    keep(none, 0, &kept);
    assert_int_equal(kept.count, 0);
    wr_stored_args_release(&kept);
}

static void saved_arguments_in_an_unknown_format_are_refused(void **state)
{
    (void)state;
    struct wr_stored_args words;
    assert_int_equal(wr_stored_args_read(&words, wr_span_of("{\"depth\": 5}")), WEIR_E_INVAL);
    assert_int_equal(wr_stored_args_read(&words, wr_span_of("")), WEIR_E_INVAL);
    assert_int_equal(wr_stored_args_read(&words, wr_span_of("weir-crawl/1")), 0);
    wr_stored_args_release(&words);
}

/* ---- settings ---- */

static struct wr_engine_options made_of(const struct wr_crawl_settings *settings)
{
    static struct wr_crawl_texts texts;
    struct wr_engine_options options;
    assert_true(wr_crawl_options_make(settings, &texts, &options));
    return options;
}

/* R1, R6, R11, R18, S0-64, S1-9, S2-15, S2-21, S2-22, U8, U13: the defaults are polite. */
static void crawl_without_options_has_the_documented_defaults(void **state)
{
    (void)state;
    struct wr_crawl_settings settings;
    (void)unsetenv("WEIR_JOB_FAILURE_THRESHOLD");
    (void)unsetenv("BBB_JOB_FAILURE_THRESHOLD");
    assert_true(wr_crawl_settings_init(&settings));
    struct wr_engine_options made = made_of(&settings);
    assert_int_equal(made.pace.strategy, WEIR_STRATEGY_TIDE);
    assert_true(made.pace.max_rate == 8 && made.pace.max_in_flight == 8 && made.global_rate == 0);
    assert_int_equal(made.pace.retry.attempts, 3);
    assert_int_equal(made.pace.retry.blocking_retries, 3);
    assert_int_equal(made.pace.cancel_after, 0);
    assert_int_equal(made.pace.cancel_delay_ns, WEIR_MINUTE);
    assert_int_equal(made.failure_threshold, 20);
    assert_int_equal(made.max_defer_ns, 30 * WEIR_MINUTE);
    assert_int_equal(made.request_ns, 2 * WEIR_MINUTE);
    assert_int_equal(made.on_error, WR_ROBOTS_ON_ERROR_RFC9309);
    assert_false(made.ignores_robots || made.allows_private || made.pace.off);
}

/* S4-4: 256 requests in flight, or with the profile origin-tuned the 20 workers of the first
 * crawler. */
static void profile_origin_tuned_has_20_requests_in_flight(void **state)
{
    (void)state;
    struct wr_crawl_settings settings;
    assert_true(wr_crawl_settings_init(&settings));
    assert_int_equal(made_of(&settings).concurrency, 0); /* default of the engine: 256 */
    settings.pace.profile = WEIR_PROFILE_ORIGIN_TUNED;
    assert_int_equal(made_of(&settings).concurrency, 20);
    settings.concurrency = 7;
    assert_int_equal(made_of(&settings).concurrency, 7);
}

/* ---- printed figures ---- */

static void figures_are_printed_with_a_fitting_unit(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } durations[] = {
        {0, "0 ms"},
        {18 * WEIR_MICROSECOND, "18 us"},
        {850 * WEIR_MILLISECOND, "850 ms"},
        {12340 * WEIR_MILLISECOND, "12.3 s"},
        {245 * WEIR_SECOND, "4m 05s"},
        {2 * WEIR_HOUR + 3 * WEIR_MINUTE, "2h 03m"},
        {50 * WEIR_HOUR, "2d 02h"},
    };
    char text[32];
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        wr_format_duration(durations[i].ns, text, sizeof text);
        assert_string_equal(text, durations[i].text);
    }
    wr_format_bytes(999, text, sizeof text);
    assert_string_equal(text, "999 B");
    wr_format_bytes(999999, text, sizeof text);
    assert_string_equal(text, "1.0 MB");
    wr_format_bytes(UINT64_MAX, text, sizeof text);
    assert_string_equal(text, "18.4 EB");
    wr_format_rate(INFINITY, text, sizeof text);
    assert_string_equal(text, "any");
    wr_format_rate(0, text, sizeof text);
    assert_string_equal(text, "-");
    wr_format_rate(0.05, text, sizeof text);
    assert_string_equal(text, "0.05/s");
}

WEIR_TESTS(test(seed_without_a_scheme_is_https), test(invalid_seed_is_refused_with_a_reason),
           test(saved_arguments_of_a_job_are_restored_unchanged),
           test(secrets_and_options_of_one_run_are_not_saved_with_the_job),
           test(saved_arguments_in_an_unknown_format_are_refused),
           test(crawl_without_options_has_the_documented_defaults),
           test(profile_origin_tuned_has_20_requests_in_flight), test(figures_are_printed_with_a_fitting_unit))
