/* SPDX-License-Identifier: MIT */
/* test_trouble.c - tests of weir_admission with allocation failures and invalid arguments (L1,
 * K3). */
#include "unit/limiter/admission/rig.h"

/* Fails the first, second, third, ... allocation of weir_admission_new. */
static void weir_admission_new_without_memory_fails_and_leaks_nothing(void **state)
{
    struct admission_fixture *rig = rig_new();
    int error = WEIR_E_NOMEM;
    long fail_at = 1;

    (void)state;
    rig_add(rig, "one", WEIR_KEY_IP, window(1));
    rig_add(rig, "two", WEIR_KEY_USER, window(1));
    for (; error == WEIR_E_NOMEM; fail_at++) {
        weir_admission *counter = (weir_admission *)(uintptr_t)8;
        long live = atomic_load(&rig->memory.live);
        atomic_store(&rig->memory.fail_at, fail_at);
        error = weir_admission_new(rig->rules, rig->count, &rig->options, &counter);
        atomic_store(&rig->memory.fail_at, 0);
        if (error == 0) {
            rig->counter = counter;
            break;
        }
        assert_ptr_equal(counter, (void *)(uintptr_t)8);
        assert_int_equal(atomic_load(&rig->memory.live), live);
    }
    assert_int_equal(error, 0);
    assert_true(fail_at > 1);
    assert_true(rig_try(rig));
    rig_free(rig);
}

/* If memory for a new key is short, the request is refused, or allowed if the rule is open on
 * error. Later requests work as before. */
static void open_on_error_decides_requests_whose_key_finds_no_memory(void **state)
{
    for (int open = 0; open < 2; open++) {
        struct admission_fixture *rig = rig_new();
        bool failed = false;

        (void)state;
        rig_add(rig, "ip", WEIR_KEY_IP, window(1000));
        rig_add(rig, "route", WEIR_KEY_ROUTE, window(1000))->open_on_error = open;
        rig->rules[0].open_on_error = open;
        rig_open(rig);
        atomic_store(&rig->memory.fail_for_ever, true);
        atomic_store(&rig->memory.fail_at, 1);
        for (int i = 0; i < 900; i++) {
            char peer[32], target[32];
            snprintf(peer, sizeof peer, "10.0.%d.%d", i / 250, i % 250);
            snprintf(target, sizeof target, "/%d", i);
            weir_request_init(&rig->request, "GET", target, peer);
            bool allowed = rig_try(rig);
            bool was_short = false;
            for (uint32_t j = 0; j < rig->admission.count; j++)
                was_short = was_short || rig->admission.rulings[j].error == WEIR_E_NOMEM;
            assert_int_equal(allowed, !was_short || open);
            failed = failed || was_short;
        }
        atomic_store(&rig->memory.fail_at, 0);
        atomic_store(&rig->memory.fail_for_ever, false);
        assert_true(failed); /* otherwise no allocation failed and the test shows nothing */
        weir_request_init(&rig->request, "GET", "/after", "192.0.2.1");
        assert_true(rig_try(rig));
        rig_free(rig);
    }
}

/* A known key is decided, released, settled and cancelled without an allocation. */
static void admission_of_known_keys_allocates_nothing(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(3));
    rig_add(rig, "at once", WEIR_KEY_ROUTE, at_once(100));
    rig_add(rig, "shadow", WEIR_KEY_IP, window(2))->shadow = true;
    rig_open(rig);
    assert_true(rig_try(rig));
    long takes = atomic_load(&rig->memory.takes);
    for (int i = 0; i < 100; i++) {
        (void)rig_try(rig);
        (void)weir_admission_settle(rig->counter, &rig->admission, 0, 1);
        assert_int_equal(weir_admission_release(rig->counter, &rig->admission), 0);
        assert_int_equal(weir_admission_cancel(rig->counter, &rig->admission), 0);
        (void)rig_try_key(rig, 0, "203.0.113.7");
        assert_int_equal(weir_admission_release_key(rig->counter, 0, "203.0.113.7", 11, 0), 0);
    }
    assert_int_equal(atomic_load(&rig->memory.takes), takes);
    rig_free(rig);
}

/* ---- invalid arguments ---- */

static void assert_no_counter(struct admission_fixture *rig, size_t count, const char *because)
{
    weir_admission *counter = NULL;

    assert_int_equal(weir_admission_new(rig->rules, count, &rig->options, &counter), WEIR_E_INVAL);
    if (strstr(weir_error_detail(), because) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", weir_error_detail(), because);
    assert_null(counter);
}

static void invalid_rules_are_refused_with_the_reason(void **state)
{
    static const char long_name[] = "0123456789012345678901234567890123456789012345678901234567890123x";
    struct script script = {0};
    struct admission_fixture *rig = rig_new();
    weir_rule *rule = rig_add_store(rig, "r", WEIR_KEY_IP, script_repository(&script));
    weir_rule good;

    (void)state;
    rig_add_store(rig, "s", WEIR_KEY_IP, script_repository(&script));
    good = *rule;
#define REFUSED(change, count, because)                    \
    do {                                                   \
        *rule = good;                                      \
        rig->repositories[0] = script_repository(&script); \
        weir_key_rule_init(&rig->keys[0], WEIR_KEY_IP);    \
        change;                                            \
        assert_no_counter(rig, count, because);            \
    } while (0)
    REFUSED((void)0, 0, "1 ... 1000");
    REFUSED((void)0, WEIR_RULES_MAX + 1, "1 ... 1000");
    REFUSED(rule->size = 0, 1, "weir_rule_init");
    REFUSED(rule->name = NULL, 1, "1 ... 64");
    REFUSED(rule->name = "", 1, "empty");
    REFUSED(rule->name = "a\nb", 1, "printable ASCII at character 2");
    REFUSED(rule->name = "caf\xc3\xa9", 1, "printable ASCII at character 4");
    REFUSED(rule->name = long_name, 1, "too long");
    REFUSED(rule->name = "s", 2, "two rules have it");
    REFUSED(rule->permits = 0, 1, "permits");
    REFUSED(rule->cost_max = 0, 1, "cost_max");
    REFUSED(rule->cost_header = "X-Cost", 1, "lower case");
    REFUSED(rule->cost_header = "", 1, "lower case");
    REFUSED(rule->repository = NULL, 1, "weir_table_key_store");
    REFUSED(rig->repositories[0].size = 1, 1, "weir_table_key_store");
    REFUSED(rig->repositories[0].attempt = NULL, 1, "attempt");
    REFUSED(rig->repositories[0].reserve = NULL, 2, "reserve");
    REFUSED(rig->repositories[0].settle = NULL, 2, "settle");
    REFUSED((rule->owns_store = true, rig->repositories[0].free = NULL), 1, "free");
    REFUSED(rig->keys[0].v6_prefix = 0, 1, "1 ... 128");
    REFUSED(rig->options.size = 0, 1, "weir_admission_options_init");
#undef REFUSED
    assert_int_equal(weir_admission_new(NULL, 1, NULL, &rig->counter), WEIR_E_INVAL);
    weir_admission_options_init(&rig->options);
    *rule = good;
    assert_int_equal(weir_admission_new(rule, 1, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(script.freed, 0);
    rig_free(rig);
}

static void invalid_admission_calls_are_refused_and_change_nothing(void **state)
{
    static char megabyte[1 << 20];
    struct admission_fixture *rig = rig_new();
    weir_rule_stats stats;
    weir_admission_result *admission = &rig->admission;

    (void)state;
    rig_add(rig, "r", WEIR_KEY_IP, window(5));
    rig_open(rig);
    assert_int_equal(weir_admission_try(NULL, &rig->request, admission), WEIR_E_INVAL);
    assert_int_equal(weir_admission_try(rig->counter, NULL, admission), WEIR_E_INVAL);
    assert_int_equal(weir_admission_try(rig->counter, &rig->request, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_admission_try_key(NULL, 0, "a", 1, 1, admission), WEIR_E_INVAL);
    assert_int_equal(weir_admission_try_key(rig->counter, 1, "a", 1, 1, admission), WEIR_E_INVAL);
    assert_int_equal(weir_admission_try_key(rig->counter, 0, NULL, 1, 1, admission), WEIR_E_INVAL);
    assert_int_equal(weir_admission_try_key(rig->counter, 0, "a", 0, 1, admission), WEIR_E_INVAL);
    assert_int_equal(weir_admission_try_key(rig->counter, 0, megabyte, sizeof megabyte, 1, admission), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "1 ... 1024"));
    assert_int_equal(weir_admission_try_key(rig->counter, 0, "a", 1, 1, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_admission_release_key(NULL, 0, "a", 1, 1), WEIR_E_INVAL);
    assert_int_equal(weir_admission_release_key(rig->counter, 9, "a", 1, 1), WEIR_E_INVAL);
    assert_int_equal(weir_admission_release_key(rig->counter, 0, NULL, 1, 1), WEIR_E_INVAL);
    assert_int_equal(weir_admission_release_key(rig->counter, 0, megabyte, sizeof megabyte, 1), WEIR_E_INVAL);
    assert_int_equal(weir_admission_stats_get(NULL, 0, &stats), WEIR_E_INVAL);
    assert_int_equal(weir_admission_stats_get(rig->counter, 1, &stats), WEIR_E_INVAL);
    assert_int_equal(weir_admission_stats_get(rig->counter, 0, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_admission_release(NULL, admission), WEIR_E_INVAL);
    assert_int_equal(weir_admission_release(rig->counter, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_admission_cancel(rig->counter, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_admission_settle(rig->counter, NULL, 0, 0), WEIR_E_INVAL);
    assert_int_equal(rig_left(rig, 0, "a"), UINT32_MAX);
    weir_admission_free(NULL);
    weir_admission_options_init(NULL);
    weir_rule_init(NULL, NULL, NULL, NULL);
    rig_free(rig);
}

static void result_of_another_admission_is_refused(void **state)
{
    struct admission_fixture *rig = rig_new();
    weir_admission *small;

    (void)state;
    rig_add(rig, "one", WEIR_KEY_IP, window(5));
    rig_add(rig, "two", WEIR_KEY_IP, window(5));
    rig_open(rig);
    assert_int_equal(weir_admission_new(rig->rules, 1, &rig->options, &small), 0);
    assert_true(rig_try(rig));
    assert_int_equal(weir_admission_release(small, &rig->admission), WEIR_E_INVAL);
    assert_int_equal(weir_admission_cancel(small, &rig->admission), WEIR_E_INVAL);
    rig->admission.count = WEIR_RULINGS_MAX + 1; /* weir_admission_try never sets this many rulings */
    assert_int_equal(weir_admission_release(rig->counter, &rig->admission), WEIR_E_INVAL);
    weir_admission_free(small);
    rig_free(rig);
}

WEIR_TESTS(test(weir_admission_new_without_memory_fails_and_leaks_nothing),
           test(open_on_error_decides_requests_whose_key_finds_no_memory),
           test(admission_of_known_keys_allocates_nothing), test(invalid_rules_are_refused_with_the_reason),
           test(invalid_admission_calls_are_refused_and_change_nothing), test(result_of_another_admission_is_refused))
