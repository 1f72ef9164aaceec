/* SPDX-License-Identifier: MIT */
/* test_http_limits.c - tests Retry-After and rate-limit fields of the drafts, of vendors, and of
 * hostile servers. */
#include "lib/test.h"

#include "base/rng.h"
#include "core/web/http/field.h"
#include "core/web/http/server_limits.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])
#define NOW_S INT64_C(1794700800) /* 2026-11-15 00:00:00 */
#define NONE (-1.0)               /* the field is absent */
#define CAP 2678400.0             /* 31 days */

/* A head, and the values that it states, in seconds. */
struct row {
    const char *head;
    double retry_after_s, limit, remaining, reset_s;
};

static weir_server_limits read_head(const char *head, size_t bytes)
{
    struct wr_server_limits limits;
    struct wr_span rest = {head, bytes}, name, value;

    wr_server_limits_init(&limits, NOW_S * WEIR_SECOND);
    while (rest.bytes > 0) {
        size_t end = wr_span_find(rest, '\n');
        if (wr_field_parse((struct wr_span){rest.data, end}, &name, &value))
            wr_server_limits_field(&limits, name, value);
        rest = wr_span_after(rest, end < rest.bytes ? end + 1 : end);
    }
    return wr_server_limits_result(&limits);
}

static void assert_seconds(int64_t ns, double seconds, const char *head)
{
    int64_t wanted = seconds < 0 ? -1 : (int64_t)(seconds * 1e7 + 0.5) * 100;
    if (ns != wanted)
        fail_msg("%s\ngives %lld ns, expected %g s", head, (long long)ns, seconds);
}

static void assert_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weir_server_limits said = read_head(rows[i].head, strlen(rows[i].head));
        assert_seconds(said.retry_after_ns, rows[i].retry_after_s, rows[i].head);
        assert_seconds(said.reset_ns, rows[i].reset_s, rows[i].head);
        if (said.limit != (int64_t)rows[i].limit || said.remaining != (int64_t)rows[i].remaining)
            fail_msg("%s\nsays %lld of %lld left", rows[i].head, (long long)said.remaining, (long long)said.limit);
    }
}

/* ---- Retry-After ----------------------------------------------------------------------------- */

static void retry_after_is_seconds_or_a_date(void **state)
{
    static const struct row rows[] = {
        {"Retry-After: 120", 120, NONE, NONE, NONE},
        {"retry-after: 0", 0, NONE, NONE, NONE},
        {"RETRY-AFTER:\t 5 \r", 5, NONE, NONE, NONE},
        {"Retry-After: 000000000000000000000000000007", 7, NONE, NONE, NONE},
        {"Retry-After: 1.5", 1.5, NONE, NONE, NONE},
        {"Retry-After: Sun, 15 Nov 2026 00:01:00 GMT", 60, NONE, NONE, NONE},
        {"Retry-After: Sunday, 15-Nov-26 00:01:00 GMT", 60, NONE, NONE, NONE},
        {"Retry-After: Sun Nov 15 00:01:00 2026", 60, NONE, NONE, NONE},
        {"retry-after-ms: 250", 0.25, NONE, NONE, NONE},
        {"x-ms-retry-after-ms: 1500", 1.5, NONE, NONE, NONE},
        {"X-RateLimit-Retry-After: 30", 30, NONE, NONE, NONE},
        {"Content-Type: text/html", NONE, NONE, NONE, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

static void retry_after_may_have_units_quotes_and_other_time_zones(void **state)
{
    static const struct row rows[] = {
        {"Retry-After: 4s", 4, NONE, NONE, NONE},
        {"Retry-After: 4 seconds", 4, NONE, NONE, NONE},
        {"Retry-After: 1 minute 30 secs", 90, NONE, NONE, NONE},
        {"Retry-After: 250 milliseconds", 0.25, NONE, NONE, NONE},
        {"Retry-After: \"4\"", 4, NONE, NONE, NONE},
        {"Retry-After: Sun, 15 Nov 2026 01:01:00 +0100", 60, NONE, NONE, NONE},
        {"Retry-After: Sun, 15 Nov 2026 00:01:00 +0000", 60, NONE, NONE, NONE},
        {"Retry-After: Sat Nov 14 2026 19:01:00 GMT-0500 (Eastern Standard Time)", 60, NONE, NONE, NONE},
        {"Retry-After: 2026-11-15 00:01:00 UTC", 60, NONE, NONE, NONE},
        {"Retry-After: 2026-11-15 01:01:00 +0100", 60, NONE, NONE, NONE},
        {"X-RateLimit-Retry-After-Millis: 1500", 1.5, NONE, NONE, NONE},
        {"X-RateLimit-Retry-After-Milliseconds: 1500", 1.5, NONE, NONE, NONE},
        {"X-RateLimit-RetryAfter: 3", 3, NONE, NONE, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* Only a number close to the current time is an instant. Others are long waits. */
static void epoch_time_in_retry_after_is_not_a_wait_of_decades(void **state)
{
    static const struct row rows[] = {
        {"Retry-After: 1794700804", 4, NONE, NONE, NONE},
        {"Retry-After: 1794700804500", 4.5, NONE, NONE, NONE},
        {"retry-after-ms: 1794700804500", 4.5, NONE, NONE, NONE},
        {"Date: Sun, 15 Nov 2026 00:00:01 GMT\nRetry-After: 1794700804", 3, NONE, NONE, NONE},
        {"Retry-After: 1794700799", 0, NONE, NONE, NONE},
        {"Retry-After: 1797379200", CAP, NONE, NONE, NONE}, /* 31 days ahead */
        {"Retry-After: 1797379201", CAP, NONE, NONE, NONE},
        {"Retry-After: 1700000000", CAP, NONE, NONE, NONE}, /* three years ago */
        {"retry-after-ms: 1794700800", 1794700.8, NONE, NONE, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* C1 */
static void hostile_retry_after_never_wraps_and_garbage_is_absent(void **state)
{
    static const struct row rows[] = {
        {"Retry-After: -1", NONE, NONE, NONE, NONE},
        {"Retry-After: +1", NONE, NONE, NONE, NONE},
        {"Retry-After: 1e9", NONE, NONE, NONE, NONE},
        {"Retry-After: 0x10", NONE, NONE, NONE, NONE},
        {"Retry-After: 1.", NONE, NONE, NONE, NONE},
        {"Retry-After: .5", NONE, NONE, NONE, NONE},
        {"Retry-After: nan", NONE, NONE, NONE, NONE},
        {"Retry-After:", NONE, NONE, NONE, NONE},
        {"Retry-After: soon", NONE, NONE, NONE, NONE},
        {"Retry-After: 5 parsecs", NONE, NONE, NONE, NONE},
        {"Retry-After: 5 s x", NONE, NONE, NONE, NONE},
        {"Retry-After: \"5", NONE, NONE, NONE, NONE},
        {"Retry-After: \"\"", NONE, NONE, NONE, NONE},
        {"Retry-After: \xd9\xa1\xd9\xa2", NONE, NONE, NONE, NONE}, /* Arabic digits */
        {"Retry-After: 1000000000", CAP, NONE, NONE, NONE},
        {"Retry-After: 2147483648", CAP, NONE, NONE, NONE},
        {"Retry-After: 4294967296", CAP, NONE, NONE, NONE},
        {"Retry-After: 4294967297", CAP, NONE, NONE, NONE},
        {"Retry-After: 9223372036854775808", CAP, NONE, NONE, NONE},
        {"Retry-After: 18446744073709551616", CAP, NONE, NONE, NONE},
        {"Retry-After: 18446744073709551617.5", CAP, NONE, NONE, NONE},
        {"retry-after-ms: 18446744073709551617", CAP, NONE, NONE, NONE},
        {"Retry-After: 2678401", CAP, NONE, NONE, NONE},
        {"Retry-After: 0.0000000001", 1e-9, NONE, NONE, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows) - 1);
    assert_int_equal(read_head(rows[COUNT(rows) - 1].head, strlen(rows[COUNT(rows) - 1].head)).retry_after_ns, 1);
    assert_int_equal(read_head("Retry-After: 5\0", 15).retry_after_ns, -1); /* followed by a NUL */
    assert_int_equal(read_head("Retry-After: \0005", 15).retry_after_ns, -1);
}

static void retry_after_of_twenty_thousand_digits_is_the_cap(void **state)
{
    static char head[20100] = "Retry-After: ";

    (void)state;
    memset(head + 13, '9', 20000);
    assert_int_equal(read_head(head, 20013).retry_after_ns, WR_SERVER_LIMITS_MAX_NS);
    memset(head + 13, '0', 20000);
    assert_int_equal(read_head(head, 20013).retry_after_ns, 0);
    head[5000] = '\0';
    assert_int_equal(read_head(head, 20013).retry_after_ns, -1);
}

/* C2 */
static void retry_after_date_in_the_past_is_0_and_a_far_one_is_capped(void **state)
{
    static const struct row rows[] = {
        {"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT", 0, NONE, NONE, NONE},
        {"Retry-After: Sun, 15 Nov 2026 00:00:00 GMT", 0, NONE, NONE, NONE},
        {"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", CAP, NONE, NONE, NONE},
        /* that day is a Sunday */
        {"Retry-After: Mon, 15 Nov 2026 00:01:00 GMT", 60, NONE, NONE, NONE},
        {"Retry-After: Sunday, 06-Nov-94 08:49:37 GMT", 0, NONE, NONE, NONE},     /* 1994 */
        {"Retry-After: Saturday, 15-Nov-75 08:49:37 GMT", CAP, NONE, NONE, NONE}, /* 2075 */
        {"Retry-After: Sun, 15 Nov 2026 00:00:60 GMT", 60, NONE, NONE, NONE},
        {"Retry-After: Sun, 15 Nov 2026 00:01:00 PST", NONE, NONE, NONE, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* C3 */
static void wrong_clock_of_a_server_is_corrected_by_its_date_header(void **state)
{
    static const struct row rows[] = {
        {"Date: Sun, 15 Nov 2026 05:00:00 GMT\nRetry-After: Sun, 15 Nov 2026 05:02:00 GMT", 120, NONE, NONE, NONE},
        {"Retry-After: Sat, 14 Nov 2026 12:02:00 GMT\nDate: Sat, 14 Nov 2026 12:00:00 GMT", 120, NONE, NONE, NONE},
        {"Date: Thu, 01 Jan 1970 00:00:00 GMT\nRetry-After: Sun, 15 Nov 2026 00:01:00 GMT", CAP, NONE, NONE, NONE},
        {"Date: Fri, 31 Dec 9999 23:59:59 GMT\nRetry-After: Sun, 15 Nov 2026 00:01:00 GMT", 0, NONE, NONE, NONE},
        {"Date: yesterday\nRetry-After: Sun, 15 Nov 2026 00:01:00 GMT", 60, NONE, NONE, NONE},
        {"Date: Sun, 15 Nov 2026 05:00:00 GMT\nRetry-After: 7", 7, NONE, NONE, NONE},
        {"Date: Sun, 15 Nov 2026 05:00:00 GMT\nX-RateLimit-Reset: 1794718830", NONE, NONE, NONE, 30},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* C4 */
static void most_restrictive_of_several_rate_limit_headers_wins(void **state)
{
    static const struct row rows[] = {
        {"Retry-After: 10\nRetry-After: 60", 60, NONE, NONE, NONE},
        {"Retry-After: 60\nRetry-After: 10", 60, NONE, NONE, NONE},
        {"Retry-After: 10, 60", 60, NONE, NONE, NONE},
        {"Retry-After: 10\nRetry-After: Sun, 15 Nov 2026 00:01:00 GMT", 60, NONE, NONE, NONE},
        {"Retry-After: soon\nRetry-After: 9", 9, NONE, NONE, NONE},
        {"Retry-After: 5\nRateLimit: \"a\";r=0;t=30", 5, NONE, 0, 30},
        {"RateLimit: \"a\";r=10;t=5, \"b\";r=0;t=60, \"c\";r=0;t=20", NONE, NONE, 0, 60},
        /* 0.1 permits a second */
        {"RateLimit: \"a\";r=10;t=10, \"b\";r=100;t=1000, \"c\";r=1;t=1", NONE, NONE, 100, 1000},
        {"RateLimit: \"a\";r=3, \"b\";r=2, \"c\";r=100;t=1", NONE, NONE, 100, 1},
        {"RateLimit: \"a\";r=3, \"b\";r=2", NONE, NONE, 2, NONE},
        /* one from a proxy, one from the server */
        {"RateLimit: \"a\";r=5;t=10\nRateLimit: \"a\";r=0;t=4", NONE, NONE, 0, 10},
        {"X-RateLimit-Remaining: 50\nX-RateLimit-Reset: 10\nRateLimit: \"a\";r=0;t=3", NONE, NONE, 0, 3},
        {"X-RateLimit-Remaining: 5\nX-RateLimit-Remaining: 3\nX-RateLimit-Limit: 9", NONE, 9, 3, NONE},
        {"RateLimit-Policy: \"a\";q=10;w=1, \"b\";q=5;w=1", NONE, 5, NONE, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* ---- the drafts ------------------------------------------------------------------------------ */

static void rate_limit_headers_of_the_drafts_are_parsed(void **state)
{
    static const struct row rows[] = {
        {"RateLimit: \"default\";r=50;t=30\nRateLimit-Policy: \"default\";q=100;w=60", NONE, 100, 50, 30},
        {"RateLimit-Policy: \"default\";q=100;w=60\nRateLimit: \"default\";r=50;t=30", NONE, 100, 50, 30},
        {"ratelimit: \"5-in-1min\"; r=0; t=32\nratelimit-policy: \"5-in-1min\"; q=5; w=60; pk=:ZWI2MDk0OTJi:", NONE, 5,
         0, 32},
        {"RateLimit-Policy: \"burst\";q=100;w=60,\"daily\";q=1000;w=86400\nRateLimit: \"daily\";r=1;t=3600", NONE, 1000,
         1, 3600},
        {"RateLimit: default;r=50;t=30", NONE, NONE, 50, 30}, /* a Token, as in draft -08 */
        {"RateLimit: \"a\";r=999;pk=:dHJpYWwxMjEzMjM=:", NONE, NONE, 999, NONE},
        /* an instant, which the draft does not allow */
        {"RateLimit: \"a\";r=0;t=1794700830", NONE, NONE, 0, 30},
        {"RateLimit: limit=100, remaining=50, reset=30", NONE, 100, 50, 30}, /* draft -07 */
        {"RateLimit: limit=100, remaining=50, reset=30\nRateLimit-Policy: 100;w=60", NONE, 100, 50, 30},
        /* drafts up to -06 */
        {"RateLimit-Limit: 100\nRateLimit-Remaining: 50\nRateLimit-Reset: 30", NONE, 100, 50, 30},
        {"RateLimit-Limit: 10, 10;w=1, 50;w=60\nRateLimit-Remaining: 3\nRateLimit-Reset: 1", NONE, 10, 3, 1},
        {"RateLimit-Limit: 50\nRateLimit-Remaining: 30\nRateLimit-Policy: 10;w=1, 50;w=60", NONE, 50, 30, NONE},
        {"RateLimit-Policy: 10;w=1;burst=1000;comment=\"a, b\", 50;w=60", NONE, 10, NONE, NONE},
        {"X-RateLimit-Policy: 100;w=60", NONE, 100, NONE, NONE},
        {"X-RateLimit-Policy: \"p\";q=100;w=60", NONE, 100, NONE, NONE},
        {"X-RateLimit-Limit: 60\nX-RateLimit-Policy: 100;w=60\nX-RateLimit-Remaining: 4", NONE, 60, 4, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

static void quotas_of_other_units_count_only_when_used_up(void **state)
{
    static const struct row rows[] = {
        {"RateLimit: \"b\";r=4;t=30\nRateLimit-Policy: \"b\";q=10000;qu=\"content-bytes\"", NONE, NONE, NONE, NONE},
        {"RateLimit: \"b\";r=0;t=30\nRateLimit-Policy: \"b\";q=10000;qu=\"content-bytes\"", NONE, NONE, 0, 30},
        {"RateLimit: \"b\";r=4;t=30\nRateLimit-Policy: \"b\";q=10;qu=\"requests\"", NONE, 10, 4, 30},
        {"RateLimit: \"x\";r=0\nRateLimit-Policy: \"x\";q=8;qu=\"concurrent-requests\"", NONE, NONE, NONE, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* T7: only RateLimit-Policy states the unit, and the fields of a response have no order. */
static void unit_of_a_quota_applies_in_any_order_of_its_headers(void **state)
{
    static const struct row rows[] = {
        {"RateLimit-Policy: \"b\";q=10000;qu=\"content-bytes\"\nRateLimit: \"b\";r=4;t=30", NONE, NONE, NONE, NONE},
        {"RateLimit-Policy: \"b\";q=10000;qu=\"content-bytes\"\nRateLimit: \"b\";r=0;t=30", NONE, NONE, 0, 30},
        {"RateLimit-Policy: \"x\";q=8;qu=\"concurrent-requests\"\nRateLimit: \"x\";r=0", NONE, NONE, NONE, NONE},
        {"RateLimit: \"b\";r=4;t=30\nRateLimit-Policy: \"b\";qu=\"content-bytes\"\nRateLimit: \"b\";r=3", NONE, NONE,
         NONE, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* C7 */
static void malformed_structured_rate_limit_headers_are_ignored_entirely(void **state)
{
    static const struct row rows[] = {
        {"RateLimit: \"a\";r=0;t=9, \"b", NONE, NONE, NONE, NONE},
        {"RateLimit: \"a\\x\";r=0", NONE, NONE, NONE, NONE},
        {"RateLimit: \"a\";r=0;t=9,", NONE, NONE, NONE, NONE},
        {"RateLimit: \"a\";r=0;t=9 \"b\"", NONE, NONE, NONE, NONE},
        {"RateLimit: \"a\";r=0;t=9;", NONE, NONE, NONE, NONE},
        {"RateLimit: \"a\";R=0", NONE, NONE, NONE, NONE},
        {"RateLimit: \"a\";r=1234567890123456", NONE, NONE, NONE, NONE}, /* 16 digits */
        {"RateLimit: \"a\";r=7;x=123456789012.5", NONE, NONE, 7, NONE},
        {"RateLimit: \"a\";r=7;x=1234567890123.5", NONE, NONE, NONE, NONE}, /* 13 integer digits */
        {"RateLimit: \"a\";r=0;x=(1 2)", NONE, NONE, NONE, NONE},
        {"RateLimit: \"a\";r=0;x=:###:", NONE, NONE, NONE, NONE},
        {"RateLimit: \"\xc3\xa9\";r=0", NONE, NONE, NONE, NONE},
        {"RateLimit: limit=100, remaining=0, reset=", NONE, NONE, NONE, NONE},
        {"RateLimit:", NONE, NONE, NONE, NONE},
        {"RateLimit: ?1;r=0;t=9", NONE, NONE, NONE, NONE},      /* valid, but not a name */
        {"RateLimit: \"a\";r=5;r=3;t=1;t=2", NONE, NONE, 3, 2}, /* the last parameter counts */
        {"RateLimit: \"a\";r=-1;t=-5", NONE, NONE, NONE, NONE},
        {"RateLimit: \"a\";r=1.5;t=\"5\"", NONE, NONE, NONE, NONE},
        {"RateLimit: \"a\";r;t=5", NONE, NONE, NONE, 5},
        {"RateLimit: \"a\";r=123456789012345;t=1;x=1.5;y=?0;z=@-1;d=%\"f%c3%bc\";k=a/b:c", NONE, NONE, 123456789012345,
         1},
        {"RateLimit: \"a\\\"b\";r=7\nRateLimit-Policy: \"a\\\"b\";q=9", NONE, 9, 7, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* C7: the work grows linearly with the text, and the number of stored quotas is bounded. */
static void twenty_thousand_members_are_read_in_linear_time(void **state)
{
    static char head[20000 * 16 + 16];
    size_t bytes = 0;

    (void)state;
    bytes += (size_t)snprintf(head, sizeof head, "RateLimit: ");
    for (int i = 0; i < 20000; i++)
        bytes += (size_t)snprintf(head + bytes, sizeof head - bytes, "%s\"%x\";r=%d", i > 0 ? "," : "", i, 30000 - i);
    for (int i = 0; i < 20; i++) {
        weir_server_limits said = read_head(head, bytes);
        assert_int_equal(said.remaining, 30000 - (WR_SERVER_QUOTAS_MAX - 1));
    }
}

/* ---- the vendors ----------------------------------------------------------------------------- */

/* docs/internals/headers.md lists which vendor sends which field. */
/* Tokens count only when none is left. */
static void token_quota_counts_for_requests_only_when_used_up(void **state)
{
    static const struct row rows[] = {
        {"x-ratelimit-remaining-requests: 59\nx-ratelimit-reset-requests: 1s\nx-ratelimit-remaining-tokens: 10\n"
         "x-ratelimit-reset-tokens: 6m0s",
         NONE, NONE, 59, 1},
        {"x-ratelimit-remaining-requests: 59\nx-ratelimit-reset-requests: 1s\nx-ratelimit-remaining-tokens: 0\n"
         "x-ratelimit-reset-tokens: 6m0s",
         NONE, NONE, 0, 360},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

static void rate_limit_headers_of_vendors_are_parsed(void **state)
{
    static const struct row rows[] = {
        /* GitHub: an instant in seconds */
        {"x-ratelimit-limit: 5000\nx-ratelimit-remaining: 4987\nx-ratelimit-reset: 1794704400\nx-ratelimit-used: 13\n"
         "x-ratelimit-resource: core",
         NONE, 5000, 4987, 3600},
        /* Twitter, Okta: x-rate-limit-* */
        {"x-rate-limit-limit: 900\nx-rate-limit-remaining: 0\nx-rate-limit-reset: 1794701700", NONE, 900, 0, 900},
        /* Discord: fractions, and a duration beside the instant */
        {"X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1794700801.25\n"
         "X-RateLimit-Reset-After: 1.25\nX-RateLimit-Bucket: abcd1234",
         NONE, 5, 0, 1.25},
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset-After: 1.2500001", NONE, NONE, 0, 1.2500001},
        /* Reddit: decimals, no limit, seconds */
        {"X-Ratelimit-Remaining: 599.0\nX-Ratelimit-Used: 1\nX-Ratelimit-Reset: 512", NONE, NONE, 599, 512},
        /* GitLab: an instant, and a date */
        {"RateLimit-Limit: 600\nRateLimit-Observed: 6\nRateLimit-Remaining: 594\nRateLimit-Reset: 1794700860\n"
         "RateLimit-ResetTime: Sun, 15 Nov 2026 00:01:00 GMT",
         NONE, 600, 594, 60},
        /* Docker Hub */
        {"ratelimit-limit: 100;w=21600\nratelimit-remaining: 76;w=21600", NONE, 100, 76, NONE},
        /* Envoy */
        {"x-ratelimit-limit: 10, 10;w=1;name=\"a,b\", 1000;w=60\nx-ratelimit-remaining: 9\nx-ratelimit-reset: 1", NONE,
         10, 9, 1},
        /* Kong */
        {"X-RateLimit-Limit-Minute: 5\nX-RateLimit-Remaining-Minute: 4\nX-RateLimit-Limit-Hour: 100\n"
         "X-RateLimit-Remaining-Hour: 2\nRateLimit-Limit: 5\nRateLimit-Remaining: 4\nRateLimit-Reset: 35",
         NONE, 5, 4, 35},
        /* OpenAI: durations, two quotas */
        {"x-ratelimit-limit-requests: 60\nx-ratelimit-limit-tokens: 150000\nx-ratelimit-remaining-requests: 59\n"
         "x-ratelimit-remaining-tokens: 149984\nx-ratelimit-reset-requests: 1s\nx-ratelimit-reset-tokens: 6m0s",
         NONE, 60, 59, 1},
        {"x-ratelimit-remaining-requests: 59\nx-ratelimit-reset-requests: 120ms\nx-ratelimit-remaining-tokens: 0\n"
         "x-ratelimit-reset-tokens: 6m0.5s",
         NONE, NONE, 0, 360.5},
        /* Anthropic: ISO dates */
        {"anthropic-ratelimit-requests-limit: 50\nanthropic-ratelimit-requests-remaining: 0\n"
         "anthropic-ratelimit-requests-reset: 2026-11-15T00:00:12Z",
         NONE, 50, 0, 12},
        /* Linear, Upstash: milliseconds */
        {"X-RateLimit-Requests-Limit: 1500\nX-RateLimit-Requests-Remaining: 1499\n"
         "X-RateLimit-Requests-Reset: 1794704400000\nX-RateLimit-Complexity-Remaining: 9",
         NONE, 1500, 1499, 3600},
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1794700800500", NONE, NONE, 0, 0.5},
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset-Ms: 1500", NONE, NONE, 0, 1.5},
        /* Vimeo, Atlassian, Akamai: dates */
        {"X-RateLimit-Limit: 50\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 2026-11-15T00:01Z", NONE, 50, 0, 60},
        {"X-RateLimit-Remaining: 1\nX-RateLimit-Reset: Sun, 15 Nov 2026 00:01:00 GMT", NONE, NONE, 1, 60},
        {"X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nX-RateLimit-Next: 2026-11-15T00:00:05.250Z", NONE, 60, 0,
         5.25},
        /* Zendesk, HubSpot */
        {"X-Rate-Limit: 700\nX-Rate-Limit-Remaining: 699", NONE, 700, 699, NONE},
        {"X-HubSpot-RateLimit-Max: 100\nX-HubSpot-RateLimit-Remaining: 98\nX-HubSpot-RateLimit-Daily: 250000", NONE,
         100, 98, NONE},
        {"X-RateLimit-Used: 3\nX-RateLimit-Scope: user\nX-Generate-Limit: 4\nXRateLimit-Limit: 5", NONE, NONE, NONE,
         NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* N6-6 */
static void rate_limit_headers_of_limiter_libraries_are_parsed(void **state)
{
    static const struct row rows[] = {
        /* hapi-rate-limit: quotas of the user, of the path, and of both */
        {"X-RateLimit-PathLimit: 50\nX-RateLimit-PathRemaining: 40\nX-RateLimit-PathReset: 1794700860000\n"
         "X-RateLimit-UserLimit: 20\nX-RateLimit-UserRemaining: 1\nX-RateLimit-UserReset: 1794700810000\n"
         "X-RateLimit-UserPathRemaining: 9",
         NONE, 20, 1, 10},
        {"X-RateLimit-UserLimit: 20\nX-RateLimit-UserRemaining: 0\nX-RateLimit-UserReset: 1794700810000", NONE, 20, 0,
         10},
        {"X-RateLimit-Remaining: 0\nx-ratelimit-after: 5", NONE, NONE, 0, 5},
        {"X-Rate-Limit-Requests-Left: 3\nX-Rate-Limit-Requests-Max: 30", NONE, 30, 3, NONE},
        {"X-RateLimit-Limit: \"30\"\nX-RateLimit-Remaining: \"3\"\nX-RateLimit-Reset: \"9\"", NONE, 30, 3, 9},
        /* AWS: a rate below 1 is not a quota of 0 */
        {"x-amzn-RateLimit-Limit: 0.5", NONE, NONE, NONE, NONE},
        {"x-amzn-RateLimit-Limit: 10.0", NONE, 10, NONE, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* C5, C6, C8 */
static void hostile_quotas_are_bounded(void **state)
{
    static const struct row rows[] = {
        {"X-RateLimit-Remaining: 1e18", NONE, NONE, NONE, NONE},
        {"X-RateLimit-Remaining: 1000000000000000000\nX-RateLimit-Reset: 1", NONE, NONE, 1e18, 1},
        {"X-RateLimit-Remaining: 99999999999999999999999\nX-RateLimit-Reset: 1", NONE, NONE, 1e18, 1},
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1000000000000000", NONE, NONE, 0, CAP},
        /* in microseconds */
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1794700800000000", NONE, NONE, 0, CAP},
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 99999999999999999999999", NONE, NONE, 0, CAP},
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 999999999", NONE, NONE, 0, CAP},
        /* a second ago */
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1794700799", NONE, NONE, 0, 0},
        /* a millisecond ago */
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1794700799999", NONE, NONE, 0, 0},
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1000000000", NONE, NONE, 0, 0}, /* in 2001 */
        {"X-RateLimit-Remaining: 0", NONE, NONE, 0, NONE},
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: -5", NONE, NONE, 0, NONE},
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 5x", NONE, NONE, 0, NONE},
        {"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1h1h1000000000000000000000h", NONE, NONE, 0, CAP},
        /* means unlimited on some servers */
        {"X-RateLimit-Remaining: -1\nX-RateLimit-Limit: -1", NONE, NONE, NONE, NONE},
        {"X-RateLimit-Remaining: \nX-RateLimit-Limit: many", NONE, NONE, NONE, NONE},
        {"X-RateLimit-Remaining: 5, x", NONE, NONE, NONE, NONE},
        {"X-RateLimit-Limit: 0", NONE, 0, 0, NONE},
        {"X-RateLimit-Limit: 0\nX-RateLimit-Remaining: 7\nX-RateLimit-Reset: 60", NONE, 0, 0, 60},
        {"RateLimit: \"a\";r=5;t=0", NONE, NONE, 5, 0},
        {"RateLimit: \"a\";r=5;t=0, \"b\";r=9;t=0", NONE, NONE, 5, 0},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* C9 */
static void odd_rate_limit_header_lines_are_read_or_rejected_never_split(void **state)
{
    static const struct row rows[] = {
        {"rEtRy-AfTeR: 5", 5, NONE, NONE, NONE},
        {"Retry-After : 5", 5, NONE, NONE, NONE},
        {"Retry-After\t: 5", 5, NONE, NONE, NONE},
        {"X: y\n Retry-After: 5", NONE, NONE, NONE, NONE}, /* a folded line */
        {"X: y\rRetry-After: 5", NONE, NONE, NONE, NONE},
        {"Retry-After: 5\r6", NONE, NONE, NONE, NONE},
        {"Retry After: 5", NONE, NONE, NONE, NONE},
        {": 5", NONE, NONE, NONE, NONE},
        {"Retry-After", NONE, NONE, NONE, NONE},
        {"HTTP/1.1 429 Retry-After: 5", NONE, NONE, NONE, NONE},
        {"\r\n", NONE, NONE, NONE, NONE},
    };

    (void)state;
    assert_rows(rows, COUNT(rows));
}

/* S3-18 */
static void stated_limits_are_copied_to_the_outcome(void **state)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = 429};
    static const char head[] = "Retry-After: 5\nX-RateLimit-Limit: 10\nX-RateLimit-Remaining: 0";
    weir_server_limits said = read_head(head, sizeof head - 1);

    (void)state;
    wr_server_limits_to_outcome(&said, 0, &outcome);
    assert_true(outcome.has_retry_after && outcome.has_quota && outcome.status == 429);
    assert_int_equal(outcome.retry_after_ns, 5 * WEIR_SECOND);
    assert_int_equal(outcome.quota_limit, 10);
    assert_int_equal(outcome.quota_remaining, 0);
    assert_int_equal(outcome.quota_reset_ns, -1);
    wr_server_limits_to_outcome(&said, 3 * WEIR_SECOND, &outcome);
    assert_int_equal(outcome.retry_after_ns, 2 * WEIR_SECOND);
    wr_server_limits_to_outcome(&said, WEIR_MINUTE, &outcome);
    assert_int_equal(outcome.retry_after_ns, 1); /* expired, but still stated */
    assert_int_equal(outcome.quota_reset_ns, -1);
    said = read_head("", 0);
    wr_server_limits_to_outcome(&said, 0, &outcome);
    assert_false(outcome.has_retry_after || outcome.has_quota);
    assert_int_equal(outcome.retry_after_ns, 0);
}

static void limits_parsed_from_any_head_are_within_bounds(void **state)
{
    static const char *const seeds[] = {
        "Retry-After: 120\nDate: Sun, 15 Nov 2026 05:00:00 GMT\nX-RateLimit-Reset: 2026-11-15T00:00:12.5Z\n",
        "RateLimit: \"a\";r=5;t=0, \"b\";r=9;t=0\nRateLimit-Policy: \"a\";q=100;w=60;qu=\"requests\";pk=:YQ==:\n",
        "RateLimit: limit=100, remaining=50, reset=30\nX-RateLimit-Limit: 10, 10;w=1;name=\"a,b\", 1000;w=60\n",
        "x-ratelimit-reset-requests: 6m0s\nX-RateLimit-Remaining: 599.0\nX-RateLimit-Reset-After: 1.25\n",
    };
    unsigned said_something = 0;
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 100000; i++) {
        const char *seed = seeds[wr_rng_below(&rng, COUNT(seeds))];
        size_t bytes = strlen(seed) - (size_t)wr_rng_below(&rng, 2) * (size_t)wr_rng_below(&rng, strlen(seed));
        char *head = malloc(bytes);
        assert_non_null(head);
        memcpy(head, seed, bytes);
        for (uint64_t changes = wr_rng_below(&rng, 4); changes > 0; changes--)
            head[wr_rng_below(&rng, bytes)] = (char)wr_rng_below(&rng, 256);
        weir_server_limits said = read_head(head, bytes);
        free(head);
        assert_true(said.retry_after_ns >= -1 && said.retry_after_ns <= WR_SERVER_LIMITS_MAX_NS);
        assert_true(said.reset_ns >= -1 && said.reset_ns <= WR_SERVER_LIMITS_MAX_NS);
        assert_true(said.limit >= -1 && said.remaining >= -1);
        said_something += said.remaining >= 0 || said.retry_after_ns >= 0;
    }
    assert_true(said_something > 10000);
}

WEIR_TESTS(test(unit_of_a_quota_applies_in_any_order_of_its_headers),
           test(token_quota_counts_for_requests_only_when_used_up), test(retry_after_is_seconds_or_a_date),
           test(retry_after_may_have_units_quotes_and_other_time_zones),
           test(epoch_time_in_retry_after_is_not_a_wait_of_decades),
           test(hostile_retry_after_never_wraps_and_garbage_is_absent),
           test(retry_after_of_twenty_thousand_digits_is_the_cap),
           test(retry_after_date_in_the_past_is_0_and_a_far_one_is_capped),
           test(wrong_clock_of_a_server_is_corrected_by_its_date_header),
           test(most_restrictive_of_several_rate_limit_headers_wins), test(rate_limit_headers_of_the_drafts_are_parsed),
           test(quotas_of_other_units_count_only_when_used_up),
           test(malformed_structured_rate_limit_headers_are_ignored_entirely),
           test(twenty_thousand_members_are_read_in_linear_time), test(rate_limit_headers_of_vendors_are_parsed),
           test(rate_limit_headers_of_limiter_libraries_are_parsed), test(hostile_quotas_are_bounded),
           test(odd_rate_limit_header_lines_are_read_or_rejected_never_split),
           test(stated_limits_are_copied_to_the_outcome), test(limits_parsed_from_any_head_are_within_bounds))
