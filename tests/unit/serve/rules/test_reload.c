/* SPDX-License-Identifier: MIT */
/* test_reload.c - tests of reloading the rules while requests arrive. */
#include "rig.h"

#include "lib/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <weir/time.h>

static void rule_that_keeps_its_name_keeps_the_usage_of_its_callers(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n"
                   "  - {name: a, match: {path: /a}, limit: 5/h}\n"
                   "  - {name: b, limit: 5/h}\n");
    struct call a = {.target = "/a", .peer = "203.0.113.7"}, b = {.target = "/b", .peer = "203.0.113.7"};
    assert_int_equal(rig_count(&rig, &a, 4), 4);
    assert_int_equal(rig_count(&rig, &b, 9), 5);
    assert_int_equal(rig_reload(&rig, "rules:\n"
                                      "  - {name: new, match: {path: /new}, limit: 1/h}\n"
                                      "  - {name: b, limit: 5/h, shadow: true}\n"
                                      "  - {name: a, match: {path: '/a**'}, limit: 7/h}\n"),
                     0);
    assert_int_equal(rig_count(&rig, &a, 9), 1); /* the one permit that was left is carried over */
    assert_int_equal(rig_count(&rig, &b, 9), 9);
    assert_true(rig.verdict.shadowed);
    assert_int_equal(rig_tally(&rig, "a", WR_CAUSE_GRANTED), 5);
    rig_close(&rig);
}

/* Plans are matched by name, in any order. */
static void plans_that_keep_their_names_keep_the_usage_of_their_callers(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n"
                   "  - {name: a, key: 'header:k', limit: 3/h, plans: [{name: p, limit: 5/h, keys: [pp]},\n"
                   "                                                   {name: q, limit: 9/h, keys: [qq]}]}\n");
    struct call x = {.headers = {"k", "x"}}, p = {.headers = {"k", "pp"}}, q = {.headers = {"k", "qq"}};
    assert_int_equal(rig_count(&rig, &x, 1) + rig_count(&rig, &p, 2) + rig_count(&rig, &q, 4), 7);
    assert_int_equal(
        rig_reload(&rig, "rules:\n"
                         "  - {name: a, key: 'header:k', limit: 3/h, plans: [{name: q, limit: 9/h, keys: [qq]},\n"
                         "                                                   {name: p, limit: 5/h, keys: [pp]}]}\n"),
        0);
    assert_int_equal(rig_count(&rig, &x, 20), 2);
    assert_int_equal(rig_count(&rig, &p, 20), 3);
    assert_int_equal(rig_count(&rig, &q, 20), 5);
    rig_close(&rig);
}

static void a_lower_limit_is_in_force_at_once(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: a, limit: 100/s}\n");
    struct call call = {.peer = "203.0.113.7"};
    assert_true(rig_try(&rig, &call));
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: a, limit: 1/s burst=2}\n"), 0);
    assert_int_equal(rig_count(&rig, &call, 9), 2);
    rig_advance(&rig, WEIR_SECOND);
    assert_int_equal(rig_count(&rig, &call, 9), 1);
    rig_close(&rig);
}

static void reloaded_memory_bounds_apply_and_forget_no_key(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: a, limit: 2/h}\n");
    struct call known = {.peer = "203.0.113.7"}, next = {.peer = "203.0.113.8"}, last = {.peer = "203.0.113.9"};
    assert_int_equal(rig_count(&rig, &known, 9), 2);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: a, limit: 2/h, max_keys: 1}\n"), 0);
    assert_int_equal(rig_count(&rig, &known, 9), 0);
    /* one key has a place; the others share a limiter */
    assert_int_equal(rig_count(&rig, &next, 9), 2);
    assert_int_equal(rig_count(&rig, &last, 9), 0);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: a, limit: 2/h}\nadmission: {max_keys: 9, forget: 1m}\n"), 0);
    assert_int_equal(rig_count(&rig, &known, 9), 0);
    assert_int_equal(rig_count(&rig, &last, 9), 2);
    rig_advance(&rig, 2 * WEIR_HOUR);
    wr_rules_tick(rig.book);
    struct wr_rule_view view;
    assert_int_equal(wr_rule_view_get(rig.book, 0, &view), 0);
    assert_int_equal(view.table.max_keys, 9);
    assert_int_equal(view.table.keys, 0);
    rig_close(&rig);
}

static void rule_of_another_kind_starts_with_its_full_limit(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: a, limit: 2/h}\n");
    struct call call = {.peer = "203.0.113.7"};
    assert_int_equal(rig_count(&rig, &call, 9), 2);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: a, limit: 3/h sliding_window}\n"), 0);
    assert_int_equal(rig_count(&rig, &call, 9), 3);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: a, key: global, limit: 3/h sliding_window}\n"), 0);
    assert_int_equal(rig_count(&rig, &call, 9), 3);
    rig_close(&rig);
}

/* Invalid settings, and the start of the error message of each. */
static const struct {
    const char *yaml, *why;
} mistakes[] = {
    {"rules: []\n", "there are no rules; write at least one"},
    {"rules:\n  - {name: a}\n", "weir.yaml:2:5: limit is missing"},
    {"rules:\n  - {name: a, limit: fast}\n", "weir.yaml:2:22: limit \"fast\": a word that is not understood"},
    {"rules:\n  - {name: a, limit: [1/s, 5/m fixed_windw]}\n",
     "weir.yaml:2:28: limit \"5/m fixed_windw\": a word that is not understood at character 5"},
    {"rules:\n  - {name: a, limit: 5/parsec}\n", "weir.yaml:2:22: rate \"5/parsec\": unknown unit at character 3"},
    {"rules:\n  - {name: a, limit: 0/m}\n", "weir.yaml:2:22: rate \"0/m\": too small"},
    {"rules:\n  - {name: a, limit: 5/m burst=0}\n", "weir.yaml:2:22: limit \"5/m burst=0\": a word that is"},
    {"rules:\n  - {name: a, limit: 1/s, plans: [{name: p, limit: x, keys: [1.1.1.1]}]}\n",
     "weir.yaml:2:52: limit \"x\": a word"},
    {"rules:\n  - {name: a, limit: 1/s, match: {header: [{name: X-A}]}}\n", "weir.yaml:2:51: header \"X-A\": not"},
    {"rules:\n  - {name: a, limit: 1/s, cost_header: X-A, cost_max: 2}\n", "weir.yaml:2:40: header \"X-A\": not"},
    {"admission: {trusted: [unix, localhost]}\nrules:\n  - {name: a, limit: 1/s}\n",
     "weir.yaml:1:29: network \"localhost\": not an IP address"},
    {"rules:\n  - {name: a, limit: 1/s, key: ipp}\n", "weir.yaml:2:32: key \"ipp\": unknown"},
    {"rules:\n  - {name: a, limit: 1/s, match: {path: login}}\n",
     "weir.yaml:2:41: path \"login\": it does not begin with '/'"},
    {"rules:\n  - {name: a, limit: 1/s}\n  - {name: a, limit: 2/s}\n", "rule name \"a\": two rules have it"},
    {"rules:\n  - {name: a, limitt: 1/s}\n",
     "weir.yaml:2:15: unknown key \"limitt\" in a rule; did you mean \"limit\""},
    {"rules:\n  - {name: a, limit: 1/s, cost: -1}\n", "weir.yaml:2:33: cost is \"-1\"; it must be a whole number"},
    {"rules:\n  - {name: a, limit: 1/s, cost: 0}\n", "weir.yaml:2:33: cost is \"0\""},
    {"rules:\n  - {name: a, limit: 1/s, cost_header: x-c}\n", "weir.yaml:2:5: cost_header and cost_max belong"},
    {"rules:\n  - {name: a, limit: 1/s, allow_keys: [x], deny_keys: [x], key: 'header:x-a'}\n",
     "a: item 1 of deny_keys: it is listed twice"},
    {"admission: {deny: [300.1.1.1]}\nrules:\n  - {name: a, limit: 1/s}\n", "weir.yaml:1:20: network \"300.1.1.1\""},
    {"admission: {match: some}\nrules:\n  - {name: a, limit: 1/s}\n", "weir.yaml:1:20: match is \"some\""},
    {"rules:\n\t- {}\n", "weir.yaml:2:1: a tab; write spaces"},
    {"rules:\n  - {name: a, limit: 1/s, key: 'header:cookie'}\n",
     "weir.yaml:2:32: key \"header:cookie\": its values are secrets"},
    /* rules that would never match, or never grant */
    {"rules:\n  - {name: a, limit: 1/s, match: {method: get}}\n", "weir.yaml:2:43: method \"get\": not in capitals"},
    {"rules:\n  - {name: a, limit: 1/s, match: {host: 'example.org:80'}}\n",
     "weir.yaml:2:41: host \"example.org:80\": no request host"},
    {"rules:\n  - {name: a, limit: 1/s, match: {host: example.org.}}\n",
     "weir.yaml:2:41: host \"example.org.\": no request host"},
    {"rules:\n  - {name: a, limit: 3/s, cost: 4}\n",
     "a: limit \"3/s\": a request costs more than the limit ever grants"},
    {"rules:\n  - {name: a, limit: 9/s, cost: 4, plans: [{name: p, limit: 3/s, keys: [1.1.1.1]}]}\n",
     "a: limit \"3/s\": a request costs more"},
    {"rules:\n  - {name: a, limit: 1/s, plan_header: X-Plan, plans: [{name: p, limit: 2/s}]}\n",
     "weir.yaml:2:40: header \"X-Plan\": not a name in lower case"},
    {"rules:\n  - {name: a, limit: 1/s, plans: [{name: p, limit: 2/s}]}\n", "weir.yaml:2:5: a plan without keys"},
    {"rules:\n  - {name: a, limit: 1/s, deny_keys: [10.0.0.0/8]}\n", "a: item 1 of deny_keys: more than one caller"},
    {"rules:\n  - {name: a, limit: 1/s, deny_keys: [mallory]}\n", "a: item 1 of deny_keys: not an IP address"},
    {"rules:\n  - {name: a, limit: 1/s, allow_keys: ['2001:db8::1'], deny_keys: ['2001:db8::2']}\n",
     "a: item 1 of deny_keys: it is listed twice"},
};

static void a_bad_file_leaves_the_old_rules_in_force(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_rules_view view;
    rig_open(&rig, "rules:\n  - {name: a, limit: 2/h}\n");
    struct call call = {.peer = "203.0.113.7"};
    assert_true(rig_try(&rig, &call));
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        assert_int_equal(rig_reload(&rig, mistakes[i].yaml), WEIR_E_INVAL);
        if (strncmp(rig.why, mistakes[i].why, strlen(mistakes[i].why)) != 0)
            fail_msg("%s\n   not: %s", rig.why, mistakes[i].why);
    }
    assert_int_equal(rig_count(&rig, &call, 9), 1);
    wr_rules_view_get(rig.book, &view);
    assert_int_equal(view.reloads, 0);
    rig_close(&rig);
}

static void a_reload_without_memory_changes_nothing(void **state)
{
    (void)state;
    static const char other[] = "rules:\n"
                                "  - {name: a, limit: 100/h, plans: [{name: p, limit: 200/h, keys: [1.1.1.1]}]}\n"
                                "  - {name: b, limit: 100/h}\n"
                                "  - {name: c, limit: 1/h}\n";
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n"
                   "  - {name: a, match: {path: /a}, limit: 3/h, plans: [{name: p, limit: 5/h, keys: [1.1.1.1]}]}\n"
                   "  - {name: b, limit: 4/h}\n");
    struct call a = {.target = "/a", .peer = "203.0.113.7"}, b = {.target = "/b", .peer = "203.0.113.7"};
    assert_true(rig_try(&rig, &a));
    assert_true(rig_try(&rig, &b));
    struct wr_rules_settings *settings = settings_of(other);
    int error = WEIR_E_NOMEM;
    for (long at = 1; error == WEIR_E_NOMEM; at++) {
        long live = rig.memory.live;
        rig.memory.fail_at = at;
        error = wr_rules_reload(rig.book, settings, rig.why, sizeof rig.why);
        rig.memory.fail_at = 0;
        if (error == 0)
            break;
        assert_int_equal(error, WEIR_E_NOMEM);
        /* the name of a rule may stay allocated */
        assert_in_range(rig.memory.live, live, live + 1);
    }
    free(settings);
    assert_int_equal(error, 0);
    rig_close(&rig);
}

static void limits_are_unchanged_if_a_reload_runs_out_of_memory(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call a = {.target = "/a", .peer = "203.0.113.7"}, b = {.target = "/b", .peer = "203.0.113.7"};
    struct wr_rules_settings *settings = settings_of("rules:\n"
                                                     "  - {name: a, match: {path: /a}, limit: 100/h}\n"
                                                     "  - {name: b, limit: 100/h}\n");
    for (long at = 1; at < 100; at++) {
        rig_open(&rig, "rules:\n"
                       "  - {name: a, match: {path: /a}, limit: 3/h}\n"
                       "  - {name: b, limit: 4/h}\n");
        rig.memory.fail_at = at;
        int error = wr_rules_reload(rig.book, settings, rig.why, sizeof rig.why);
        rig.memory.fail_at = 0;
        assert_int_equal(rig_count(&rig, &a, 200), error == 0 ? 100 : 3);
        assert_int_equal(rig_count(&rig, &b, 200), error == 0 ? 100 : 4);
        rig_close(&rig);
        if (error == 0)
            break;
    }
    free(settings);
}

/* ---- threads ---- */

#define THREADS 4
#define LIMIT 5000

struct asker {
    pthread_t thread;
    struct wr_rules *book;
    atomic_bool *stop;
    atomic_long *granted, *asked;
};

static void *ask(void *context)
{
    struct asker *asker = context;
    struct wr_verdict *verdict = malloc(sizeof *verdict);
    weir_request request;

    assert_non_null(verdict);
    weir_request_init(&request, "GET", "/a/b", "203.0.113.7");
    while (!atomic_load(asker->stop)) {
        wr_rules_try(asker->book, &request, verdict);
        assert_string_equal(verdict->rule, "kept"); /* a name stays valid after a reload */
        atomic_fetch_add(asker->granted, verdict->allowed);
        atomic_fetch_add(asker->asked, 1);
    }
    free(verdict);
    return NULL;
}

static void reloads_under_load_never_grant_more_than_allowed(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "rules:\n  - {name: other, match: {path: /x}, limit: 1/s}\n  - {name: kept, key: ip, limit: 5000/h "
        "fixed_window}\n",
        "rules:\n  - {name: kept, match: {path: '/a/**'}, key: ip, limit: 5000/h fixed_window}\n"
        "  - {name: gone, limit: 1/s, plans: [{name: p, limit: 2/s, keys: [1.1.1.1]}]}\n",
        "admission: {match: all}\nrules:\n  - {name: kept, key: ip, limit: 5000/h fixed_window}\n",
    };
    struct wr_rules_settings *settings[3];
    struct rules_fixture rig;
    struct asker askers[THREADS];
    atomic_bool stop = false;
    atomic_long granted = 0, asked = 0;
    rig_open(&rig, texts[0]);
    for (size_t i = 0; i < 3; i++)
        settings[i] = settings_of(texts[i]);
    for (size_t i = 0; i < THREADS; i++) {
        askers[i] = (struct asker){.book = rig.book, .stop = &stop, .granted = &granted, .asked = &asked};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
    int reloads = 0;
    for (; reloads < 30 || (atomic_load(&asked) < 2 * LIMIT && reloads < 100000); reloads++) {
        assert_int_equal(wr_rules_reload(rig.book, settings[reloads % 3], rig.why, sizeof rig.why), 0);
        struct wr_rule_view view;
        (void)wr_rule_view_get(rig.book, 0, &view);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
    assert_int_equal(atomic_load(&granted), LIMIT);
    assert_int_equal(rig_tally(&rig, "kept", WR_CAUSE_GRANTED), LIMIT);
    assert_int_equal(rig_tally(&rig, "kept", WR_CAUSE_LIMITED), atomic_load(&asked) - LIMIT);
    for (size_t i = 0; i < 3; i++)
        free(settings[i]);
    rig_close(&rig);
}

WEIR_TESTS(test(plans_that_keep_their_names_keep_the_usage_of_their_callers),
           test(rule_that_keeps_its_name_keeps_the_usage_of_its_callers), test(a_lower_limit_is_in_force_at_once),
           test(reloaded_memory_bounds_apply_and_forget_no_key), test(rule_of_another_kind_starts_with_its_full_limit),
           test(a_bad_file_leaves_the_old_rules_in_force), test(a_reload_without_memory_changes_nothing),
           test(limits_are_unchanged_if_a_reload_runs_out_of_memory),
           test(reloads_under_load_never_grant_more_than_allowed))
