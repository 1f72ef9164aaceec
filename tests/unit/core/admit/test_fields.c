/* SPDX-License-Identifier: MIT */
/* test_fields.c - tests the exact bytes of the response headers, and that all times are rounded
 * up. */
#include "lib/test.h"

#include <weir/admit.h>

#define WALL (1700000000 * WEIR_SECOND)

static void granted(weir_admission_result *admission, const char *name, uint32_t limit, uint32_t remaining,
                    int64_t reset_ns, int64_t period_ns)
{
    weir_ruling *ruling = &admission->rulings[admission->count++];

    memset(ruling, 0, sizeof *ruling);
    ruling->name = name;
    ruling->outcome = WEIR_OUTCOME_GRANTED;
    ruling->quota = (weir_quota){limit, remaining, reset_ns, period_ns};
}

static void refused(weir_admission_result *admission, weir_verdict verdict, int64_t wait_ns, int64_t retry_after_s)
{
    weir_ruling *ruling = &admission->rulings[admission->count - 1];

    ruling->outcome = WEIR_OUTCOME_REFUSED;
    ruling->decision = (weir_decision){verdict, WEIR_REASON_TOKENS, wait_ns};
    admission->allowed = false;
    admission->retry_after_s = retry_after_s;
}

static void assert_lines(const weir_admission_result *admission, unsigned fields, int64_t wall_ns, const char *expected)
{
    char buffer[WEIR_FIELDS_BYTES_MAX];
    size_t bytes = 4711;

    assert_int_equal(weir_fields_format(admission, fields, wall_ns, buffer, sizeof buffer, &bytes), 0);
    assert_string_equal(buffer, expected);
    assert_int_equal(bytes, strlen(expected));
}

static void headers_of_an_allowed_request_show_the_remaining_quota(void **state)
{
    static weir_admission_result admission;

    (void)state;
    admission = (weir_admission_result){.allowed = true};
    granted(&admission, "per-ip", 100, 42, 5800 * WEIR_MILLISECOND, 10 * WEIR_SECOND);
    assert_lines(&admission, WEIR_FIELDS_ALL, WALL,
                 "RateLimit: \"per-ip\";r=42;t=6\r\n"
                 "RateLimit-Policy: \"per-ip\";q=100;w=10\r\n"
                 "X-RateLimit-Limit: 100\r\n"
                 "X-RateLimit-Remaining: 42\r\n"
                 "X-RateLimit-Reset: 1700000006\r\n");
    assert_int_equal(weir_admission_result_status(&admission), 200);
}

static void headers_of_a_refused_request_show_when_to_retry(void **state)
{
    static weir_admission_result admission;

    (void)state;
    admission = (weir_admission_result){.allowed = true};
    granted(&admission, "per-ip", 100, 0, 10 * WEIR_SECOND, 10 * WEIR_SECOND);
    refused(&admission, WEIR_WAIT, 2 * WEIR_SECOND + 1, 3);
    assert_lines(&admission, WEIR_FIELDS_ALL, WALL,
                 "Retry-After: 3\r\n"
                 "RateLimit: \"per-ip\";r=0;t=3\r\n"
                 "RateLimit-Policy: \"per-ip\";q=100;w=10\r\n"
                 "X-RateLimit-Limit: 100\r\n"
                 "X-RateLimit-Remaining: 0\r\n"
                 "X-RateLimit-Reset: 1700000003\r\n");
    assert_int_equal(weir_admission_result_status(&admission), 429);
}

static void several_rules_share_one_ratelimit_list(void **state)
{
    static weir_admission_result admission;

    (void)state;
    admission = (weir_admission_result){.allowed = true};
    granted(&admission, "user", 50, 25, 30 * WEIR_SECOND, WEIR_MINUTE);
    granted(&admission, "at once", 8, 7, 0, 0);
    granted(&admission, "in shadow", 10, 1, WEIR_SECOND, WEIR_SECOND);
    admission.rulings[2].shadow = true;
    granted(&admission, "unknown", 0, 0, 0, 0);
    granted(&admission, "all", 1000, 100, WEIR_MINUTE, WEIR_HOUR);
    assert_lines(
        &admission, WEIR_FIELDS_ALL, WALL,
        "RateLimit: \"user\";r=25;t=30, \"at once\";r=7, \"all\";r=100;t=60\r\n"
        "RateLimit-Policy: \"user\";q=50;w=60, \"at once\";q=8;qu=\"concurrent-requests\", \"all\";q=1000;w=3600\r\n"
        "X-RateLimit-Limit: 1000\r\n" /* the limit with the smallest share left */
        "X-RateLimit-Remaining: 100\r\n"
        "X-RateLimit-Reset: 1700000060\r\n");
    assert_ptr_equal(weir_admission_result_decisive(&admission), &admission.rulings[4]);
}

/* RFC 9651 3.3.3 */
static void rule_names_are_escaped_as_structured_field_strings(void **state)
{
    static weir_admission_result admission;

    (void)state;
    admission = (weir_admission_result){.allowed = true};
    granted(&admission, "a\"b\\c, d;q=9", 1, 1, 0, WEIR_SECOND);
    assert_lines(&admission, WEIR_FIELD_RATELIMIT, WALL, "RateLimit: \"a\\\"b\\\\c, d;q=9\";r=1;t=0\r\n");
}

static void every_time_in_a_response_header_is_rounded_up(void **state)
{
    static const struct {
        int64_t ns;
        const char *seconds;
    } cases[] = {
        {0, "0"},
        {1, "1"},
        {WEIR_SECOND - 1, "1"},
        {WEIR_SECOND, "1"},
        {WEIR_SECOND + 1, "2"},
        {WEIR_DURATION_MAX, "1152921505"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static weir_admission_result admission;
        char expected[80];
        admission = (weir_admission_result){.allowed = true};
        granted(&admission, "x", 9, 3, cases[i].ns, WEIR_SECOND);
        snprintf(expected, sizeof expected, "RateLimit: \"x\";r=3;t=%s\r\n", cases[i].seconds);
        assert_lines(&admission, WEIR_FIELD_RATELIMIT, 0, expected);
    }
}

/* The fraction of the wall clock is added to the wait before rounding: 0.6 s + 0.6 s gives 2 s. */
static void the_reset_time_is_rounded_once(void **state)
{
    static weir_admission_result admission;

    (void)state;
    admission = (weir_admission_result){.allowed = true};
    granted(&admission, "x", 9, 3, 600 * WEIR_MILLISECOND, WEIR_SECOND);
    assert_lines(&admission, WEIR_FIELD_X_RESET, WALL + 600 * WEIR_MILLISECOND, "X-RateLimit-Reset: 1700000002\r\n");
    assert_lines(&admission, WEIR_FIELD_X_RESET, WALL + 400 * WEIR_MILLISECOND, "X-RateLimit-Reset: 1700000001\r\n");
}

static void a_policy_is_scaled_to_whole_seconds(void **state)
{
    static const struct {
        uint32_t limit;
        int64_t period_ns;
        const char *policy;
    } cases[] = {
        {2, 200 * WEIR_MILLISECOND, "q=10;w=1"},
        {5, WEIR_SECOND, "q=5;w=1"},
        {3, 1500 * WEIR_MILLISECOND, "q=4;w=2"},
        {1, 1500 * WEIR_MILLISECOND, "q=1;w=2"}, /* 1.33 rounded down: never more than the rule */
        {7, 2 * WEIR_SECOND + 1, "q=10;w=3"},
        {100, 10 * WEIR_SECOND, "q=100;w=10"},
        {UINT32_MAX, WEIR_DURATION_MAX, "q=4294967296;w=1152921505"},
        {UINT32_MAX, 1, "q=999999999999999;w=1"}, /* largest Integer (RFC 9651 3.3.1) */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static weir_admission_result admission;
        char expected[80];
        admission = (weir_admission_result){.allowed = true};
        granted(&admission, "x", cases[i].limit, 1, 0, cases[i].period_ns);
        snprintf(expected, sizeof expected, "RateLimit-Policy: \"x\";%s\r\n", cases[i].policy);
        assert_lines(&admission, WEIR_FIELD_RATELIMIT_POLICY, WALL, expected);
    }
}

static void wait_of_unknown_length_has_no_reset_time_in_headers(void **state)
{
    static weir_admission_result admission;

    (void)state;
    admission = (weir_admission_result){.allowed = true};
    granted(&admission, "at-once", 8, 0, 0, 0);
    refused(&admission, WEIR_WAIT, WEIR_UNTIL_RELEASE, 1);
    assert_lines(&admission, WEIR_FIELDS_ALL, WALL,
                 "Retry-After: 1\r\n"
                 "RateLimit: \"at-once\";r=0\r\n"
                 "RateLimit-Policy: \"at-once\";q=8;qu=\"concurrent-requests\"\r\n"
                 "X-RateLimit-Limit: 8\r\n"
                 "X-RateLimit-Remaining: 0\r\n");
    refused(&admission, WEIR_DENY, 0, 0);
    assert_lines(&admission, WEIR_FIELD_RETRY_AFTER | WEIR_FIELD_RATELIMIT, WALL, "RateLimit: \"at-once\";r=0\r\n");
}

static void admission_without_a_quota_formats_no_headers(void **state)
{
    static weir_admission_result admission;

    (void)state;
    admission = (weir_admission_result){.allowed = true};
    assert_lines(&admission, WEIR_FIELDS_ALL, WALL, "");
    assert_null(weir_admission_result_decisive(&admission));
    granted(&admission, "x", 0, 0, 0, 0);
    assert_lines(&admission, WEIR_FIELDS_ALL, WALL, "");
    assert_lines(&admission, 0, WALL, "");
}

static void one_header_value_can_be_formatted_without_its_name(void **state)
{
    static weir_admission_result admission;
    char buffer[64];
    size_t bytes = 4711;

    (void)state;
    admission = (weir_admission_result){.allowed = true};
    granted(&admission, "x", 9, 3, WEIR_SECOND, WEIR_SECOND);
    assert_int_equal(weir_field_format(&admission, WEIR_FIELD_RATELIMIT, WALL, buffer, sizeof buffer, &bytes), 0);
    assert_string_equal(buffer, "\"x\";r=3;t=1");
    assert_int_equal(bytes, 11);
    assert_int_equal(weir_field_format(&admission, WEIR_FIELD_RETRY_AFTER, WALL, buffer, sizeof buffer, &bytes), 0);
    assert_string_equal(buffer, "");
    assert_int_equal(bytes, 0);
    assert_string_equal(weir_field_name(WEIR_FIELD_X_RESET), "X-RateLimit-Reset");
    assert_null(weir_field_name((weir_field)WEIR_FIELDS_ALL));
    assert_null(weir_field_name((weir_field)0));
}

static void a_buffer_of_any_size_is_never_overrun(void **state)
{
    static weir_admission_result admission;
    char whole[WEIR_FIELDS_BYTES_MAX];
    size_t needed;

    (void)state;
    admission = (weir_admission_result){.allowed = true};
    granted(&admission, "per-ip", 100, 0, 10 * WEIR_SECOND, 10 * WEIR_SECOND);
    refused(&admission, WEIR_WAIT, WEIR_SECOND, 1);
    assert_int_equal(weir_fields_format(&admission, WEIR_FIELDS_ALL, WALL, whole, sizeof whole, &needed), 0);
    for (size_t room = 1; room <= needed + 1; room++) {
        char *buffer = malloc(room);
        size_t bytes = 4711;
        assert_non_null(buffer);
        int error = weir_fields_format(&admission, WEIR_FIELDS_ALL, WALL, buffer, room, &bytes);
        assert_int_equal(error, room <= needed ? WEIR_E_SPACE : 0);
        assert_int_equal(bytes, room <= needed ? 4711 : needed);
        free(buffer);
    }
}

static void the_largest_admission_fits_the_stated_size(void **state)
{
    static weir_admission_result admission;
    char buffer[WEIR_FIELDS_BYTES_MAX];
    char name[WEIR_RULE_NAME_MAX + 1];
    size_t bytes;

    (void)state;
    memset(name, '"', WEIR_RULE_NAME_MAX);
    name[WEIR_RULE_NAME_MAX] = '\0';
    admission = (weir_admission_result){.allowed = true};
    for (int i = 0; i < WEIR_RULINGS_MAX; i++)
        granted(&admission, name, UINT32_MAX, UINT32_MAX, WEIR_DURATION_MAX, WEIR_DURATION_MAX);
    refused(&admission, WEIR_WAIT, WEIR_DURATION_MAX, INT64_MAX);
    assert_int_equal(
        weir_fields_format(&admission, WEIR_FIELDS_ALL, INT64_MAX - WEIR_DURATION_MAX, buffer, sizeof buffer, &bytes),
        0);
}

static void http_status_follows_from_the_outcome(void **state)
{
    static weir_admission_result admission;

    (void)state;
    admission = (weir_admission_result){.allowed = false};
    assert_int_equal(weir_admission_result_status(&admission), 503);
    assert_int_equal(weir_admission_result_status(NULL), 503);
    granted(&admission, "x", 0, 0, 0, 0);
    admission.rulings[0].outcome = WEIR_OUTCOME_MALFORMED;
    assert_int_equal(weir_admission_result_status(&admission), 400);
    admission.rulings[0].outcome = WEIR_OUTCOME_FAILED;
    assert_int_equal(weir_admission_result_status(&admission), 503);
    admission.rulings[0].outcome = WEIR_OUTCOME_REFUSED;
    assert_int_equal(weir_admission_result_status(&admission), 429);
}

static void bad_arguments_are_refused(void **state)
{
    static weir_admission_result admission;
    char buffer[64];
    size_t bytes = 4711;

    (void)state;
    admission = (weir_admission_result){.allowed = true};
    assert_int_equal(weir_fields_format(NULL, 1, WALL, buffer, sizeof buffer, &bytes), WEIR_E_INVAL);
    assert_int_equal(weir_fields_format(&admission, 1, WALL, NULL, sizeof buffer, &bytes), WEIR_E_INVAL);
    assert_int_equal(weir_fields_format(&admission, 1, WALL, buffer, 0, &bytes), WEIR_E_INVAL);
    assert_int_equal(weir_fields_format(&admission, 1, WALL, buffer, sizeof buffer, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_fields_format(&admission, 64, WALL, buffer, sizeof buffer, &bytes), WEIR_E_INVAL);
    assert_int_equal(weir_fields_format(&admission, 1, -1, buffer, sizeof buffer, &bytes), WEIR_E_INVAL);
    assert_int_equal(weir_fields_format(&admission, 1, INT64_MAX, buffer, sizeof buffer, &bytes), WEIR_E_INVAL);
    assert_int_equal(weir_field_format(&admission, (weir_field)3, WALL, buffer, sizeof buffer, &bytes), WEIR_E_INVAL);
    admission.count = WEIR_RULINGS_MAX + 1;
    assert_int_equal(weir_fields_format(&admission, 1, WALL, buffer, sizeof buffer, &bytes), WEIR_E_INVAL);
    assert_int_equal(bytes, 4711);
}

WEIR_TESTS(test(headers_of_an_allowed_request_show_the_remaining_quota),
           test(headers_of_a_refused_request_show_when_to_retry), test(several_rules_share_one_ratelimit_list),
           test(rule_names_are_escaped_as_structured_field_strings),
           test(every_time_in_a_response_header_is_rounded_up), test(the_reset_time_is_rounded_once),
           test(a_policy_is_scaled_to_whole_seconds), test(wait_of_unknown_length_has_no_reset_time_in_headers),
           test(admission_without_a_quota_formats_no_headers), test(one_header_value_can_be_formatted_without_its_name),
           test(a_buffer_of_any_size_is_never_overrun), test(the_largest_admission_fits_the_stated_size),
           test(http_status_follows_from_the_outcome), test(bad_arguments_are_refused))
