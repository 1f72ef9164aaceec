/* SPDX-License-Identifier: MIT */
/* test_rules.c - tests of which rule decides, by which key, and of the verdict. */
#include "rig.h"

#include "lib/test.h"

#include <weir/time.h>

static const char simple[] = "rules:\n"
                             "  - name: login\n"
                             "    match: {method: POST, path: /login}\n"
                             "    limit: 2/m\n"
                             "  - name: api\n"
                             "    match: {path: /api/**}\n"
                             "    key: header:x-user-id\n"
                             "    limit: [3/s, 4/h fixed_window]\n"
                             "  - name: site\n"
                             "    limit: 5/s\n";

static void first_matching_rule_decides(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, simple);
    struct call login = {.method = "POST", .target = "/login?next=/", .peer = "203.0.113.7"};
    struct call page = {.method = "GET", .target = "/login", .peer = "203.0.113.7"};
    assert_int_equal(rig_count(&rig, &login, 10), 2);
    assert_string_equal(rig.verdict.rule, "login");
    assert_int_equal(rig.verdict.cause, WR_CAUSE_LIMITED);
    assert_int_equal(rig.verdict.status, 429);
    assert_int_equal(rig.verdict.retry_after_ns, 30 * WEIR_SECOND);
    /* the limit of "site", which was not charged before */
    assert_int_equal(rig_count(&rig, &page, 10), 5);
    assert_int_equal(rig_tally(&rig, "login", WR_CAUSE_GRANTED), 2);
    assert_int_equal(rig_tally(&rig, "login", WR_CAUSE_LIMITED), 8);
    assert_int_equal(rig_tally(&rig, "site", WR_CAUSE_GRANTED), 5);
    rig_close(&rig);
}

static void all_limits_of_a_stack_must_grant(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, simple);
    struct call call = {.method = "GET", .target = "/api/x", .headers = {"X-User-Id", "alice"}};
    assert_int_equal(rig_count(&rig, &call, 10), 3);
    rig_advance(&rig, WEIR_SECOND);
    assert_int_equal(rig_count(&rig, &call, 10), 1);
    call.headers[1] = "bob";
    assert_int_equal(rig_count(&rig, &call, 10), 3);
    rig_close(&rig);
}

static void with_match_all_every_matching_rule_must_grant(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "admission: {match: all}\n"
                   "rules:\n"
                   "  - {name: user, key: 'header:x-user-id', limit: 2/s}\n"
                   "  - {name: everybody, key: global, limit: 3/s}\n");
    struct call alice = {.headers = {"x-user-id", "alice"}}, bob = {.headers = {"x-user-id", "bob"}};
    assert_int_equal(rig_count(&rig, &alice, 5), 2);
    assert_string_equal(rig.verdict.rule, "user");
    assert_int_equal(rig_count(&rig, &bob, 5), 1);
    assert_string_equal(rig.verdict.rule, "everybody");
    rig_advance(&rig, WEIR_SECOND / 2); /* bob was not charged for what the global rule refused */
    assert_int_equal(rig_count(&rig, &bob, 5), 1);
    rig_close(&rig);
}

static void request_without_a_matching_rule_is_allowed_and_counted(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_rules_view view;
    rig_open(&rig, "rules:\n  - {name: a, match: {host: example.org}, limit: 1/s}\n");
    struct call call = {.host = "example.com", .peer = "203.0.113.7"};
    assert_int_equal(rig_count(&rig, &call, 5), 5);
    assert_int_equal(rig.verdict.cause, WR_CAUSE_UNMATCHED);
    assert_null(rig.verdict.rule);
    wr_rules_view_get(rig.book, &view);
    assert_int_equal(view.causes[WR_CAUSE_UNMATCHED], 5);
    rig_close(&rig);
}

static void shadow_rule_counts_and_refuses_no_request(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_rule_view view;
    rig_open(&rig, "rules:\n"
                   "  - {name: new, limit: 1/s, shadow: true}\n"
                   "  - {name: old, limit: 3/s}\n");
    struct call call = {.peer = "203.0.113.7"};
    assert_true(rig_try(&rig, &call));
    assert_false(rig.verdict.shadowed);
    assert_true(rig_try(&rig, &call));
    assert_true(rig.verdict.shadowed);
    assert_string_equal(rig.verdict.rule, "old");
    assert_int_equal(rig_count(&rig, &call, 5), 1);
    assert_int_equal(wr_rule_view_get(rig.book, 0, &view), 0);
    assert_true(view.shadow);
    assert_int_equal(view.shadowed, 2);
    assert_int_equal(view.causes[WR_CAUSE_LIMITED], 0);
    rig_close(&rig);
}

static void verdict_of_a_grant_has_quotas_and_response_fields(void **state)
{
    (void)state;
    struct rules_fixture rig;
    char fields[WEIR_FIELDS_BYTES_MAX];
    size_t bytes;
    rig_open(&rig, "rules:\n  - {name: a, limit: 10/s burst=20}\n");
    struct call call = {.peer = "203.0.113.7"};
    assert_true(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.status, 200);
    assert_string_equal(rig.verdict.rule, "a");
    assert_int_equal(rig.verdict.admission.rulings[0].quota.limit, 20);
    assert_int_equal(rig.verdict.admission.rulings[0].quota.remaining, 19);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: b, limit: 1/s}\n"), 0);
    /* The name in a verdict stays valid after a reload. */
    assert_int_equal(weir_fields_format(&rig.verdict.admission, WEIR_FIELD_RATELIMIT, 0, fields, sizeof fields, &bytes),
                     0);
    assert_string_equal(fields, "RateLimit: \"a\";r=19;t=1\r\n");
    rig_close(&rig);
}

WEIR_TESTS(test(first_matching_rule_decides), test(all_limits_of_a_stack_must_grant),
           test(with_match_all_every_matching_rule_must_grant),
           test(request_without_a_matching_rule_is_allowed_and_counted),
           test(shadow_rule_counts_and_refuses_no_request), test(verdict_of_a_grant_has_quotas_and_response_fields))
