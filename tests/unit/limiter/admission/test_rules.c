/* SPDX-License-Identifier: MIT */
/* test_rules.c - tests of several rules at once: all or nothing, shadow, failure, malformed (J1,
 * J2, J5, J8, R18, S3-46). */
#include "unit/limiter/admission/rig.h"

#define PEER "203.0.113.7"

static void a_refusal_by_a_later_rule_charges_the_earlier_ones_nothing(void **state)
{
    struct admission_fixture *rig = rig_new();
    weir_rule_stats stats;

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(10));
    rig_add(rig, "at once", WEIR_KEY_IP, at_once(10));
    rig_add(rig, "route", WEIR_KEY_ROUTE, window(2));
    rig_open(rig);
    assert_true(rig_try(rig));
    assert_true(rig_try(rig));
    for (int i = 0; i < 5; i++) {
        assert_false(rig_try(rig));
        assert_int_equal(rig->admission.count, 3);
        assert_string_equal(weir_admission_result_decisive(&rig->admission)->name, "route");
        /* after the permits were given back */
        assert_int_equal(rig->admission.rulings[0].quota.remaining, 8);
        assert_int_equal(rig_left(rig, 0, PEER), 8);
        assert_int_equal(rig_left(rig, 1, PEER), 8);
        assert_int_equal(weir_admission_release(rig->counter, &rig->admission), 0);
        assert_int_equal(rig_left(rig, 1, PEER), 8);
    }
    assert_int_equal(weir_admission_stats_get(rig->counter, 0, &stats), 0);
    assert_int_equal(stats.granted, 2); /* refused requests are not counted */
    assert_int_equal(stats.refused, 0);
    rig_free(rig);
}

/* A caller over its own limit must not use up a limit that all callers share. */
static void rules_after_a_refusal_are_not_asked(void **state)
{
    struct script everybody = {0};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(1));
    rig_add_store(rig, "all", WEIR_KEY_GLOBAL, script_repository(&everybody));
    rig_open(rig);
    assert_true(rig_try(rig));
    for (int i = 0; i < 5; i++)
        assert_false(rig_try(rig));
    assert_int_equal(everybody.asked, 1);
    rig_free(rig);
}

/* R18 */
static void a_global_rule_bounds_all_callers_together(void **state)
{
    struct admission_fixture *rig = rig_new();
    int allowed = 0;

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(2));
    rig_add(rig, "all", WEIR_KEY_GLOBAL, window(5));
    rig_open(rig);
    for (int i = 0; i < 30; i++) {
        char peer[32];
        snprintf(peer, sizeof peer, "192.0.2.%d", i % 10);
        weir_request_init(&rig->request, "GET", "/", peer);
        allowed += rig_try(rig);
    }
    assert_int_equal(allowed, 5);
    assert_int_equal(rig_left(rig, 1, "__global__"), 0);
    rig_free(rig);
}

static void rules_may_ask_for_different_permits(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "requests", WEIR_KEY_IP, window(100));
    rig_add(rig, "work", WEIR_KEY_IP, window(100))->permits = 30;
    rig_open(rig);
    assert_true(rig_try(rig) && rig_try(rig) && rig_try(rig));
    assert_false(rig_try(rig));
    assert_int_equal(rig_left(rig, 0, PEER), 97);
    assert_int_equal(rig_left(rig, 1, PEER), 10);
    rig->request.cost = 10; /* the program sets the cost, which replaces the permits of the rules */
    assert_true(rig_try(rig));
    assert_int_equal(rig_left(rig, 1, PEER), 0);
    rig_free(rig);
}

static void request_for_more_permits_than_the_limit_is_denied(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "r", WEIR_KEY_IP, window(10))->permits = 11;
    rig_open(rig);
    assert_false(rig_try(rig));
    assert_int_equal(rig->admission.rulings[0].decision.verdict, WEIR_DENY);
    assert_int_equal(rig->admission.retry_after_s, 0);
    rig_free(rig);
}

static bool is_post(void *context, const weir_request *request)
{
    (void)context;
    return request->method_bytes == 4 && memcmp(request->method, "POST", 4) == 0;
}

static void rule_decides_only_requests_that_it_applies_to(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "writes", WEIR_KEY_IP, window(1))->applies = is_post;
    rig_add(rig, "by key only", WEIR_KEY_IP, window(1))->key = NULL;
    rig_open(rig);
    for (int i = 0; i < 3; i++) {
        assert_true(rig_try(rig));
        assert_int_equal(rig->admission.count, 0);
    }
    weir_request_init(&rig->request, "POST", "/a", PEER);
    assert_true(rig_try(rig));
    assert_false(rig_try(rig));
    assert_true(rig_try_key(rig, 1, "x"));
    assert_false(rig_try_key(rig, 1, "x"));
    rig_free(rig);
}

static void too_many_rules_for_one_request_are_refused_and_charged_nothing(void **state)
{
    struct admission_fixture *rig = rig_new();
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};

    (void)state;
    for (int i = 0; i <= WEIR_RULINGS_MAX; i++)
        rig_add(rig, names[i], WEIR_KEY_IP, window(5));
    rig_open(rig);
    assert_int_equal(weir_admission_try(rig->counter, &rig->request, &rig->admission), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "more than 8"));
    assert_false(rig->admission.allowed);
    for (size_t i = 0; i < WEIR_RULINGS_MAX; i++)
        assert_int_equal(rig_left(rig, i, PEER), 5);
    rig_free(rig);
}

/* ---- rules in shadow mode ---- */

static void a_rule_in_shadow_never_refuses_but_counts(void **state)
{
    struct admission_fixture *rig = rig_new();
    weir_rule_stats stats;

    (void)state;
    rig_add(rig, "new", WEIR_KEY_IP, window(2))->shadow = true;
    rig_add(rig, "old", WEIR_KEY_IP, window(1000));
    rig_open(rig);
    for (int i = 0; i < 10; i++) {
        assert_true(rig_try(rig));
        assert_int_equal(rig->admission.retry_after_s, 0);
        assert_int_equal(rig->admission.count, 2);
        assert_true(rig->admission.rulings[1].shadow);
        assert_int_equal(rig->admission.rulings[1].outcome, i < 2 ? WEIR_OUTCOME_GRANTED : WEIR_OUTCOME_REFUSED);
        assert_string_equal(weir_admission_result_decisive(&rig->admission)->name, "old");
    }
    assert_int_equal(weir_admission_stats_get(rig->counter, 0, &stats), 0);
    assert_int_equal(stats.granted, 2);
    assert_int_equal(stats.refused, 8);
    rig_free(rig);
}

static void shadow_rule_is_not_charged_for_requests_that_others_refuse(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "new", WEIR_KEY_IP, window(5))->shadow = true;
    rig_add(rig, "old", WEIR_KEY_IP, window(1));
    rig_open(rig);
    assert_true(rig_try(rig));
    for (int i = 0; i < 10; i++)
        assert_false(rig_try(rig));
    assert_int_equal(rig_left(rig, 0, PEER), 4);
    rig_free(rig);
}

static void shadow_rule_refuses_nothing_even_if_it_fails(void **state)
{
    struct script script = {.error = WEIR_E_SYSTEM};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add_store(rig, "fails", WEIR_KEY_IP, script_repository(&script))->shadow = true;
    rig_add(rig, "malformed", WEIR_KEY_ROUTE, window(5))->shadow = true;
    rig_add(rig, "too dear", WEIR_KEY_IP, window(5))->shadow = true;
    rig->rules[2].permits = 6;
    rig_open(rig);
    weir_request_init(&rig->request, "GET", "no path", PEER);
    assert_true(rig_try(rig));
    assert_int_equal(rig->admission.rulings[0].outcome, WEIR_OUTCOME_FAILED);
    assert_int_equal(rig->admission.rulings[1].outcome, WEIR_OUTCOME_MALFORMED);
    assert_int_equal(rig->admission.rulings[2].outcome, WEIR_OUTCOME_REFUSED);
    assert_int_equal(weir_admission_result_status(&rig->admission), 200);
    assert_true(rig_try_key(rig, 0, "x"));
    assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, 0, NULL, &rig->admission), 0);
    rig_free(rig);
}

static void too_many_rules_in_shadow_refuse_nothing(void **state)
{
    struct admission_fixture *rig = rig_new();
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};

    (void)state;
    for (int i = 0; i < 10; i++)
        rig_add(rig, names[i], WEIR_KEY_IP, window(5))->shadow = i < 9;
    rig_open(rig);
    (void)weir_admission_try(NULL, NULL, NULL);
    const char *detail = weir_error_detail();
    assert_true(rig_try(rig));
    assert_int_equal(rig->admission.count, WEIR_RULINGS_MAX);
    assert_ptr_equal(weir_error_detail(), detail);
    rig_free(rig);
}

/* ---- malformed requests ---- */

/* J5 */
static void a_request_without_a_usable_key_is_refused(void **state)
{
    struct admission_fixture *rig = rig_new();
    weir_rule_stats stats;

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(5));
    rig_add(rig, "route", WEIR_KEY_ROUTE, window(5));
    rig_open(rig);
    weir_request_init(&rig->request, "GET", NULL, PEER);
    assert_false(rig_try(rig));
    assert_int_equal(rig->admission.rulings[1].outcome, WEIR_OUTCOME_MALFORMED);
    assert_int_equal(rig->admission.rulings[1].fault, WEIR_FAULT_MISSING);
    assert_int_equal(weir_admission_result_status(&rig->admission), 400);
    assert_int_equal(rig_left(rig, 0, PEER), 5);
    assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, 0, NULL, &rig->admission), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "\"route\": missing"));
    assert_int_equal(weir_admission_stats_get(rig->counter, 1, &stats), 0);
    assert_int_equal(stats.malformed, 2);
    rig_free(rig);
}

/* J1, J2: forged X-Forwarded-For fields and rotated IPv6 addresses count as one caller, through all
 * layers. */
static void forged_and_rotated_addresses_drain_one_bucket(void **state)
{
    static const struct {
        const char *peer, *forwarded;
    } attempts[] = {
        {"2001:db8:1:2::1", "1.1.1.1"}, {"2001:db8:1:2:ffff::2", "2.2.2.2"},
        {"[2001:DB8:1:2::3]:99", "x"},  {"2001:0db8:0001:0002::4", "10.0.0.1, 10.0.0.2"},
        {"2001:db8:1:2::5%eth0", ""},
    };
    struct admission_fixture *rig = rig_new();
    weir_network proxies;
    int allowed = 0;

    (void)state;
    assert_int_equal(weir_network_parse("10.0.0.0/8", &proxies), 0);
    rig_add(rig, "ip", WEIR_KEY_IP, window(2));
    rig->keys[0].trusted = &proxies;
    rig->keys[0].trusted_count = 1;
    rig_open(rig);
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        weir_header header = {"X-Forwarded-For", attempts[i].forwarded};
        weir_header_list list = {&header, 1};
        weir_request_init(&rig->request, "GET", "/", attempts[i].peer);
        rig->request.header = weir_header_list_find;
        rig->request.header_context = &list;
        allowed += rig_try(rig);
    }
    assert_int_equal(allowed, 2);
    rig_free(rig);
}

/* J8 */
static void cost_header_outside_its_bounds_is_malformed(void **state)
{
    static const char *const costs[] = {"0", "-1", "1e18", "NaN", "99999999999999999999", "11", "1;1"};
    struct admission_fixture *rig = rig_new();
    weir_header header = {"X-Cost", "10"};
    weir_header_list list = {&header, 1};

    (void)state;
    rig_add(rig, "r", WEIR_KEY_IP, window(30))->cost_header = "x-cost";
    rig->rules[0].cost_max = 10;
    rig_open(rig);
    rig->request.header = weir_header_list_find;
    rig->request.header_context = &list;
    assert_true(rig_try(rig));
    assert_int_equal(rig_left(rig, 0, PEER), 20);
    (void)weir_admission_try(NULL, NULL, NULL);
    const char *detail = weir_error_detail();
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        header.value = costs[i];
        assert_false(rig_try(rig));
        assert_int_equal(rig->admission.rulings[0].fault, WEIR_FAULT_COST);
        assert_int_equal(weir_admission_result_status(&rig->admission), 400);
        assert_ptr_equal(weir_error_detail(), detail); /* a bad header is no error of the program */
    }
    assert_int_equal(rig_left(rig, 0, PEER), 20);
    rig_free(rig);
}

/* ---- failing key stores ---- */

static void failing_key_store_refuses_unless_the_rule_is_open_on_error(void **state)
{
    static const int errors[] = {WEIR_E_SYSTEM, WEIR_E_NOMEM, WEIR_E_CLOSED, WEIR_E_INVAL};
    struct script script = {0};
    struct admission_fixture *rig = rig_new();
    weir_rule_stats stats;

    (void)state;
    rig_add(rig, "first", WEIR_KEY_IP, window(5));
    rig_add_store(rig, "closed", WEIR_KEY_IP, script_repository(&script));
    rig_add_store(rig, "open", WEIR_KEY_IP, script_repository(&script))->open_on_error = true;
    rig->rules[2].applies = is_post;
    rig_open(rig);
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        script.error = errors[i];
        assert_false(rig_try(rig));
        assert_int_equal(rig->admission.rulings[1].outcome, WEIR_OUTCOME_FAILED);
        assert_int_equal(rig->admission.rulings[1].error, errors[i]);
        assert_int_equal(weir_admission_result_status(&rig->admission), 503);
        assert_int_equal(rig->admission.retry_after_s, 1);
        assert_int_equal(rig_left(rig, 0, PEER), 5); /* the permit was given back */
        assert_false(rig_try_key(rig, 1, "x"));
        assert_true(rig_try_key(rig, 2, "x"));
        assert_int_equal(rig->admission.rulings[0].outcome, WEIR_OUTCOME_FAILED);
        assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, 0, NULL, &rig->admission), errors[i]);
    }
    assert_int_equal(weir_admission_stats_get(rig->counter, 1, &stats), 0);
    assert_int_equal(stats.failed, 12);
    assert_int_equal(weir_admission_stats_get(rig->counter, 2, &stats), 0);
    assert_int_equal(stats.failed, 4);
    rig_free(rig);
}

static void request_allowed_by_a_failed_rule_takes_no_permits_from_it(void **state)
{
    struct script script = {.error = WEIR_E_SYSTEM};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add_store(rig, "open", WEIR_KEY_IP, script_repository(&script))->open_on_error = true;
    rig_open(rig);
    assert_true(rig_try(rig));
    assert_int_equal(weir_admission_release(rig->counter, &rig->admission), 0);
    assert_int_equal(weir_admission_cancel(rig->counter, &rig->admission), 0);
    assert_int_equal(script.released + script.settled, 0);
    rig_free(rig);
}

/* ---- callbacks and response fields ---- */

struct heard {
    int calls;
    char names[64];
    const weir_request *request;
};

static void hear(void *context, const weir_request *request, const weir_admission_result *admission,
                 const weir_ruling *ruling)
{
    struct heard *heard = context;

    size_t bytes = strlen(heard->names);

    heard->calls++;
    heard->request = request;
    snprintf(heard->names + bytes, sizeof heard->names - bytes, "%s%s", ruling->name, admission->allowed ? "+" : "-");
}

/* S3-46, S3-16 */
static void rejected_callback_is_called_for_each_refusal(void **state)
{
    struct heard heard = {0};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "shadow", WEIR_KEY_IP, window(1))->shadow = true;
    rig_add(rig, "ip", WEIR_KEY_IP, window(2));
    rig->options.rejected = hear;
    rig->options.rejected_context = &heard;
    rig_open(rig);
    assert_true(rig_try(rig));
    assert_int_equal(heard.calls, 0);
    assert_true(rig_try(rig));
    assert_false(rig_try(rig));
    assert_string_equal(heard.names, "shadow+ip-");
    assert_ptr_equal(heard.request, &rig->request);
    assert_false(rig_try_key(rig, 1, PEER));
    assert_int_equal(heard.calls, 3);
    assert_null(heard.request);
    rig_free(rig);
}

static void response_fields_report_all_rules(void **state)
{
    struct admission_fixture *rig = rig_new();
    char fields[WEIR_FIELDS_BYTES_MAX];
    size_t bytes;

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(2));
    rig_add(rig, "at once", WEIR_KEY_GLOBAL, at_once(50));
    rig_add(rig, "shadow", WEIR_KEY_IP, window(9))->shadow = true;
    rig_open(rig);
    assert_true(rig_try(rig));
    assert_true(rig_try(rig));
    assert_int_equal(weir_fields_format(&rig->admission, WEIR_FIELDS_ALL, WEIR_DAY, fields, sizeof fields, &bytes), 0);
    assert_string_equal(fields, "RateLimit: \"ip\";r=0;t=60, \"at once\";r=48\r\n"
                                "RateLimit-Policy: \"ip\";q=2;w=60, \"at once\";q=50;qu=\"concurrent-requests\"\r\n"
                                "X-RateLimit-Limit: 2\r\n"
                                "X-RateLimit-Remaining: 0\r\n"
                                "X-RateLimit-Reset: 86460\r\n");
    assert_int_equal(weir_clock_fake_advance(rig->clock, 20 * WEIR_SECOND + 1), 0);
    assert_false(rig_try(rig));
    assert_int_equal(weir_fields_format(&rig->admission, WEIR_FIELDS_ALL, WEIR_DAY, fields, sizeof fields, &bytes), 0);
    assert_string_equal(fields, "Retry-After: 40\r\n"
                                "RateLimit: \"ip\";r=0;t=40\r\n"
                                "RateLimit-Policy: \"ip\";q=2;w=60\r\n"
                                "X-RateLimit-Limit: 2\r\n"
                                "X-RateLimit-Remaining: 0\r\n"
                                "X-RateLimit-Reset: 86440\r\n");
    rig_free(rig);
}

static void quotas_are_not_looked_up_with_without_quota(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(2));
    rig->options.without_quota = true;
    rig_open(rig);
    assert_true(rig_try(rig));
    assert_int_equal(rig->admission.rulings[0].quota.limit, 0);
    rig_free(rig);
}

/* V10: no response field may contain a key, which can be a token. */
static void no_key_is_ever_written_into_a_response(void **state)
{
    weir_header header = {"Authorization", "Bearer 5ecret"};
    weir_header_list list = {&header, 1};
    struct admission_fixture *rig = rig_new();
    char fields[WEIR_FIELDS_BYTES_MAX];
    size_t bytes;

    (void)state;
    rig_add(rig, "token", WEIR_KEY_USER, window(1));
    rig->keys[0].header = "authorization";
    rig_open(rig);
    rig->request.header = weir_header_list_find;
    rig->request.header_context = &list;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rig_try(rig), i == 0);
        assert_int_equal(weir_fields_format(&rig->admission, WEIR_FIELDS_ALL, 0, fields, sizeof fields, &bytes), 0);
        assert_null(strstr(fields, "5ecret"));
        assert_non_null(strstr(fields, "token"));
    }
    rig_free(rig);
}

WEIR_TESTS(test(a_refusal_by_a_later_rule_charges_the_earlier_ones_nothing), test(rules_after_a_refusal_are_not_asked),
           test(a_global_rule_bounds_all_callers_together), test(rules_may_ask_for_different_permits),
           test(request_for_more_permits_than_the_limit_is_denied), test(rule_decides_only_requests_that_it_applies_to),
           test(too_many_rules_for_one_request_are_refused_and_charged_nothing),
           test(a_rule_in_shadow_never_refuses_but_counts),
           test(shadow_rule_is_not_charged_for_requests_that_others_refuse),
           test(shadow_rule_refuses_nothing_even_if_it_fails), test(too_many_rules_in_shadow_refuse_nothing),
           test(a_request_without_a_usable_key_is_refused), test(forged_and_rotated_addresses_drain_one_bucket),
           test(cost_header_outside_its_bounds_is_malformed),
           test(failing_key_store_refuses_unless_the_rule_is_open_on_error),
           test(request_allowed_by_a_failed_rule_takes_no_permits_from_it),
           test(rejected_callback_is_called_for_each_refusal), test(response_fields_report_all_rules),
           test(quotas_are_not_looked_up_with_without_quota), test(no_key_is_ever_written_into_a_response))
