/* SPDX-License-Identifier: MIT */
/* test_view.c - tests of what the rules report about themselves and their counts, and of errors in
 * lists. */
#include "rig.h"

#include "lib/test.h"

#include <weir/time.h>

static struct wr_rule_view rule_at(struct rules_fixture *rig, uint32_t index)
{
    struct wr_rule_view view;
    assert_int_equal(wr_rule_view_get(rig->book, index, &view), 0);
    return view;
}

/* The value of a header may be a secret, so the view does not show it. */
static void rule_view_is_short_and_hides_header_values(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_rule_view view;
    rig_open(&rig, "rules:\n"
                   "  - name: a\n"
                   "    match: {method: [GET, POST], host: [example.org, '*.example.com'], path: [/x, '/y/**'],\n"
                   "            header: [{name: x-token, value: hidden}, {name: x-flag}]}\n"
                   "    key: [ip, route]\n"
                   "    limit: [3/s, 100/h fixed_window]\n"
                   "  - {name: b, limit: 1/s, shadow: true}\n");
    view = rule_at(&rig, 0);
    assert_string_equal(view.name, "a");
    assert_string_equal(view.match, "GET|POST example.org|*.example.com /x|/y/** x-token: ... x-flag");
    assert_string_equal(view.key, "ip, route");
    assert_string_equal(view.limits, "3/s, 100/h fixed_window");
    assert_false(view.shadow || view.is_shared);
    view = rule_at(&rig, 1);
    assert_string_equal(view.match, "");
    assert_true(view.shadow);
    assert_int_equal(wr_rule_view_get(rig.book, 2, &view), WEIR_E_ABSENT);
    rig_close(&rig);
}

static void views_report_the_counts_each_time(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_rules_view view;
    struct wr_rule_view rule;
    rig_open(&rig, "rules:\n  - {name: a, limit: 2/h}\n  - {name: b, limit: 1/h}\n");
    struct call call = {.peer = "203.0.113.7"};
    assert_int_equal(rig_count(&rig, &call, 5), 2);
    memset(&view, 1, sizeof view);
    memset(&rule, 1, sizeof rule);
    for (int i = 0; i < 2; i++) {
        wr_rules_view_get(rig.book, &view);
        assert_int_equal(view.rules, 2);
        assert_int_equal(view.causes[WR_CAUSE_GRANTED], 2);
        assert_int_equal(view.causes[WR_CAUSE_LIMITED], 3);
        assert_true(view.shadowed == 0 && view.reloads_failed == (uint64_t)i);
        assert_int_equal(wr_rule_view_get(rig.book, 0, &rule), 0);
        assert_int_equal(rule.causes[WR_CAUSE_GRANTED], 2);
        assert_int_equal(rule.causes[WR_CAUSE_LIMITED], 3);
        assert_true(rule.shadowed == 0 && rule.table.keys == 1);
        wr_rules_count_failed_reload(rig.book); /* counts a reload of an unreadable file */
    }
    rig_close(&rig);
}

static void check_refused(const char *yaml, const char *said)
{
    char why[WR_CONFIG_WHY_BYTES] = "";
    struct wr_rules_settings *settings = settings_of(yaml);
    assert_int_equal(wr_rules_check(settings, why, sizeof why), WEIR_E_INVAL);
    free(settings);
    if (strstr(why, said) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", why, said);
    assert_null(strstr(why, "mallory")); /* a listed key may be a token, so no message quotes it */
}

/* A key may be listed once only. */
static void error_of_a_key_listed_twice_names_its_later_place(void **state)
{
    (void)state;
    static const struct {
        const char *lists, *said;
    } rows[] = {
        {"allow_keys: [a, mallory, mallory]", "item 3 of allow_keys"},
        {"deny_keys: [mallory, mallory]", "item 2 of deny_keys"},
        {"allow_keys: [mallory], deny_keys: [a, mallory]", "deny_keys"},
        {"deny_keys: [mallory], plans: [{name: p, limit: 9/h, keys: [x, mallory]}]", "of"},
        {"plans: [{name: p, limit: 9/h, keys: [x, mallory]}, {name: q, limit: 8/h, keys: [mallory]}]", "of"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml, "rules:\n  - {name: r, key: 'header:x-user', limit: 1/h, %s}\n", rows[i].lists);
        check_refused(yaml, rows[i].said);
        check_refused(yaml, "twice");
    }
}

static int denied(const char *key, const char *listed, const struct call *call)
{
    char yaml[512];
    struct rules_fixture rig;
    snprintf(yaml, sizeof yaml, "rules:\n  - {name: r, key: %s, limit: 9/h, deny_keys: ['%s']}\n", key, listed);
    rig_open(&rig, yaml);
    bool is_denied = !rig_try(&rig, call) && rig.verdict.cause == WR_CAUSE_DENY_LIST;
    rig_close(&rig);
    return is_denied;
}

static void listed_keys_match_the_spellings_of_requests(void **state)
{
    (void)state;
    struct call login = {.target = "/login", .host = "example.org", .method = "POST"};
    assert_true(denied("route", "/Login/", &login));
    assert_true(denied("host", "Example.ORG:80", &login));
    assert_true(denied("method", "post", &login));
    struct call pair = {.headers = {"a", "x", "b", "y:"}};
    /* an escaped ':' ends the last part */
    assert_true(denied("['header:a', 'header:b']", "x:y\\:", &pair));
    pair.headers[3] = "y";
    assert_true(denied("['header:a', 'header:b']", "x:y", &pair));
    assert_false(denied("['header:a', 'header:b']", "x:y\\:", &pair));
}

static void plan_header_without_plans_is_refused(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n"
                   "  - {name: r, limit: 1/h, plan_header: x-plan, plans: [{name: p, limit: 2/h}]}\n");
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: r, limit: 1/h, plan_header: x-plan}\n"), WEIR_E_INVAL);
    assert_non_null(strstr(rig.why, "plan_header without plans"));
    rig_close(&rig);
}

static void most_recent_keys_of_all_plans_come_first(void **state)
{
    (void)state;
    struct rules_fixture rig;
    weir_table_entry *top;
    size_t count;
    static const char *const keys[] = {"one", "pro", "two", "max"};
    rig_open(&rig, "rules:\n"
                   "  - {name: a, key: 'header:k', limit: 9/h, plans: [{name: p, limit: 9/h, keys: [pro, max]}]}\n");
    for (size_t i = 0; i < 4; i++) {
        struct call call = {.headers = {"k", keys[i]}};
        assert_true(rig_try(&rig, &call));
        rig_advance(&rig, WEIR_MINUTE);
    }
    assert_int_equal(wr_rules_top_keys(rig.book, "a", WEIR_TOP_RECENT, 3, &top, &count), 0);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_memory_equal(top[i].key, keys[3 - i], 3);
    wr_rules_top_keys_free(rig.book, top);
    rig_close(&rig);
}

static void listed_key_whose_stored_form_is_too_long_is_refused(void **state)
{
    (void)state;
    static const char yaml[] = /* tokens are stored as digests, which are longer */
        "rules:\n  - {name: r, limit: 1/h, key: ['token:a', 'token:b', 'token:c', 'token:d', 'token:e'],\n"
        "     deny_keys: ['1:2:3:4:5']}\n";
    check_refused(yaml, "too long after normalisation");
    check_refused(yaml, "item 1 of deny_keys");
}

WEIR_TESTS(test(listed_keys_match_the_spellings_of_requests), test(plan_header_without_plans_is_refused),
           test(most_recent_keys_of_all_plans_come_first), test(rule_view_is_short_and_hides_header_values),
           test(views_report_the_counts_each_time), test(error_of_a_key_listed_twice_names_its_later_place),
           test(listed_key_whose_stored_form_is_too_long_is_refused))
