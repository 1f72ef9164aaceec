/* SPDX-License-Identifier: MIT */
/* test_http_round_trip.c - tests that core/web parses the headers that core/admit writes, as in a
 * weir behind a weir. */
#include "lib/test.h"

#include "base/rng.h"
#include "core/web/http/field.h"
#include "core/web/http/server_limits.h"

#include <weir/admit.h>

#define WALL (1794700800 * WEIR_SECOND)

static weir_server_limits read_fields(const weir_admission_result *admission, unsigned fields, int64_t wall_ns)
{
    char buffer[WEIR_FIELDS_BYTES_MAX];
    struct wr_span rest = {buffer, 0}, name, value;
    struct wr_server_limits limits;

    assert_int_equal(weir_fields_format(admission, fields, wall_ns, buffer, sizeof buffer, &rest.bytes), 0);
    wr_server_limits_init(&limits, wall_ns);
    while (rest.bytes > 0) {
        size_t end = wr_span_find(rest, '\n') + 1;
        assert_true(end <= rest.bytes);
        assert_true(wr_field_parse((struct wr_span){rest.data, end}, &name, &value));
        wr_server_limits_field(&limits, name, value);
        rest = wr_span_after(rest, end);
    }
    return wr_server_limits_result(&limits);
}

static void rule(weir_admission_result *admission, const char *name, weir_quota quota)
{
    weir_ruling *ruling = &admission->rulings[admission->count++];

    memset(ruling, 0, sizeof *ruling);
    ruling->name = name;
    ruling->outcome = WEIR_OUTCOME_GRANTED;
    ruling->quota = quota;
}

static int64_t seconds_up(int64_t ns)
{
    return (ns + WEIR_SECOND - 1) / WEIR_SECOND * WEIR_SECOND;
}

static void every_family_of_written_limit_headers_is_parsed_back(void **state)
{
    static const unsigned families[] = {
        WEIR_FIELD_RATELIMIT | WEIR_FIELD_RATELIMIT_POLICY,
        WEIR_FIELD_X_LIMIT | WEIR_FIELD_X_REMAINING | WEIR_FIELD_X_RESET,
        WEIR_FIELDS_ALL,
    };
    static weir_admission_result admission;
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 3000; i++) {
        weir_quota quota = {.limit = (uint32_t)wr_rng_below(&rng, 1000000) + 1,
                            .reset_ns = (int64_t)wr_rng_below(&rng, 30 * (uint64_t)WEIR_DAY),
                            .period_ns = WEIR_MINUTE};
        quota.remaining = (uint32_t)wr_rng_below(&rng, quota.limit + 1);
        admission = (weir_admission_result){.allowed = true};
        rule(&admission, "a \"name\" with \\ and, and; in it", quota);
        weir_server_limits said = read_fields(&admission, families[i % 3], WALL);
        assert_int_equal(said.limit, quota.limit);
        assert_int_equal(said.remaining, quota.remaining);
        assert_int_equal(said.reset_ns, seconds_up(quota.reset_ns));
        assert_int_equal(said.retry_after_ns, -1);
    }
}

static void headers_of_a_refusal_are_parsed_back_with_their_time(void **state)
{
    static weir_admission_result admission;

    (void)state;
    admission = (weir_admission_result){.allowed = false, .retry_after_s = 3};
    rule(&admission, "per-ip", (weir_quota){100, 0, 10 * WEIR_SECOND, 10 * WEIR_SECOND});
    admission.rulings[0].outcome = WEIR_OUTCOME_REFUSED;
    admission.rulings[0].decision = (weir_decision){WEIR_WAIT, WEIR_REASON_TOKENS, 2 * WEIR_SECOND + 1};
    weir_server_limits said = read_fields(&admission, WEIR_FIELDS_ALL, WALL + 1);
    assert_int_equal(said.retry_after_ns, 3 * WEIR_SECOND);
    assert_int_equal(said.limit, 100);
    assert_int_equal(said.remaining, 0);
    /* The header has whole seconds: read a nanosecond after one begins, it is up to a second
     * longer. */
    assert_in_range(said.reset_ns, 3 * WEIR_SECOND, 4 * WEIR_SECOND);
}

static void tightest_of_several_written_rules_is_parsed_back(void **state)
{
    static weir_admission_result admission;

    (void)state;
    admission = (weir_admission_result){.allowed = true};
    rule(&admission, "user", (weir_quota){50, 25, 30 * WEIR_SECOND, WEIR_MINUTE});
    rule(&admission, "at once", (weir_quota){8, 0, 0, 0});
    rule(&admission, "all", (weir_quota){1000, 10, WEIR_MINUTE, WEIR_HOUR});
    weir_server_limits said = read_fields(&admission, WEIR_FIELD_RATELIMIT | WEIR_FIELD_RATELIMIT_POLICY, WALL);
    assert_int_equal(said.limit, 1000);
    assert_int_equal(said.remaining, 10);
    assert_int_equal(said.reset_ns, WEIR_MINUTE);
}

WEIR_TESTS(test(every_family_of_written_limit_headers_is_parsed_back),
           test(headers_of_a_refusal_are_parsed_back_with_their_time),
           test(tightest_of_several_written_rules_is_parsed_back))
