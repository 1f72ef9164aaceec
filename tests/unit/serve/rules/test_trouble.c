/* SPDX-License-Identifier: MIT */
/* test_trouble.c - tests of internal failures, many keys, inspection, and the example that is
 * shipped. */
#include "rig.h"

#include "lib/test.h"

#include <weir/time.h>

static void rule_that_cannot_decide_follows_on_error_and_is_counted(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        bool allowed;
        enum wr_cause cause;
        int status;
    } rows[] = {
        {"rules:\n  - {name: a, limit: 1/s}\n", false, WR_CAUSE_FAILED, 503},
        {"admission: {on_error: open}\nrules:\n  - {name: a, limit: 1/s}\n", true, WR_CAUSE_FAILED_OPEN, 200},
    };
    for (size_t i = 0; i < 2; i++) {
        struct rules_fixture rig;
        struct wr_rules_view view;
        rig_open(&rig, rows[i].yaml);
        struct call call = {.peer = "203.0.113.7"};
        rig.memory.fail_at = 1; /* no memory for a new key */
        rig.memory.fail_for_ever = true;
        assert_int_equal(rig_try(&rig, &call), rows[i].allowed);
        rig.memory.fail_at = 0;
        rig.memory.fail_for_ever = false;
        assert_int_equal(rig.verdict.cause, rows[i].cause);
        assert_int_equal(rig.verdict.status, rows[i].status);
        assert_int_equal(rig_tally(&rig, "a", rows[i].cause), 1);
        wr_rules_view_get(rig.book, &view);
        assert_int_equal(view.causes[rows[i].cause], 1);
        assert_true(rig_try(&rig, &call)); /* the next request works */
        rig_close(&rig);
    }
}

static void more_matching_rules_than_a_verdict_holds_count_as_a_failure(void **state)
{
    (void)state;
    static const char *const ways[] = {"closed", "open"};
    for (size_t i = 0; i < 2; i++) {
        struct rules_fixture rig;
        char yaml[1024];
        size_t at = (size_t)snprintf(yaml, sizeof yaml, "admission: {match: all, on_error: %s}\nrules:\n", ways[i]);
        for (int rule = 0; rule < 9; rule++)
            at += (size_t)snprintf(yaml + at, sizeof yaml - at, "  - {name: r%d, key: global, limit: 1/h}\n", rule);
        rig_open(&rig, yaml);
        struct call call = {.peer = "203.0.113.7"};
        assert_int_equal(rig_count(&rig, &call, 5), i == 1 ? 5 : 0);
        assert_int_equal(rig.verdict.cause, i == 1 ? WR_CAUSE_FAILED_OPEN : WR_CAUSE_FAILED);
        assert_int_equal(rig.verdict.admission.count, 0);
        rig_close(&rig);
    }
}

static void failed_creation_of_the_rules_leaks_nothing(void **state)
{
    (void)state;
    struct wr_rules_settings *settings =
        settings_of("rules:\n"
                    "  - {name: a, limit: 1/s, plans: [{name: p, limit: 2/s, keys: [1.1.1.1]}]}\n"
                    "  - {name: b, limit: 1/s}\n");
    test_allocator memory;
    struct wr_rules_options options = {.allocator = &memory.allocator};
    struct wr_rules *book;
    char why[WR_CONFIG_WHY_BYTES];
    int error = WEIR_E_NOMEM;
    test_allocator_init(&memory);
    for (long at = 1; error != 0; at++) {
        memory.fail_at = at;
        error = wr_rules_new(settings, &options, &book, why, sizeof why);
        assert_true(error == 0 || (error == WEIR_E_NOMEM && memory.live == 0));
    }
    wr_rules_free(book);
    wr_rules_free(NULL);
    assert_int_equal(memory.live, 0);
    free(settings);
}

/* ---- many keys ---- */

/* Returns the number of different callers: WEIR_TEST_STRANGERS, or 300 000. Ten million take half a
 * minute. */
static long number_of_callers(void)
{
    const char *text = getenv("WEIR_TEST_STRANGERS");
    return text != NULL ? strtol(text, NULL, 10) : 300000;
}

static void millions_of_callers_stay_within_max_keys_and_reset_no_drained_key(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_rule_view view;
    rig_open(&rig, "admission: {max_keys: 20000}\n"
                   "rules:\n  - {name: user, key: 'header:x-user-id', limit: 5/h}\n");
    struct call drained = {.headers = {"x-user-id", "drained"}}, known = {.headers = {"x-user-id", "known"}};
    assert_int_equal(rig_count(&rig, &drained, 9), 5);
    assert_int_equal(rig_count(&rig, &known, 2), 2);
    char name[32];
    struct call stranger = {.headers = {"x-user-id", name}};
    long bytes = 0, granted = 0;
    for (long i = 0, end = number_of_callers(); i < end; i++) {
        snprintf(name, sizeof name, "stranger-%ld", i);
        granted += rig_try(&rig, &stranger);
        if (i == 100000)
            bytes = rig.memory.live_bytes;
    }
    assert_true(rig.memory.live_bytes <= bytes + (64 << 10)); /* constant once the table is full */
    assert_true(rig.memory.live_bytes < 8 << 20);
    /* keys with a place, and 5 of the limiter that the others share */
    assert_true(granted <= 20000 + 5);
    assert_false(rig_try(&rig, &drained));
    assert_int_equal(rig_count(&rig, &known, 9), 3);
    assert_int_equal(wr_rule_view_get(rig.book, 0, &view), 0);
    assert_true(view.table.keys <= 20000);
    assert_true(view.table.overflowed > 0);
    rig_close(&rig);
}

/* ---- inspection ---- */

static void top_keys_of_all_plans_are_listed_and_one_can_be_reset(void **state)
{
    (void)state;
    struct rules_fixture rig;
    weir_table_entry *top;
    size_t count;
    rig_open(&rig, "rules:\n"
                   "  - {name: a, key: 'header:k', limit: 1/h, plans: [{name: p, limit: 2/h, keys: [pro]}]}\n");
    struct call call = {.headers = {"k", "x"}};
    assert_int_equal(rig_count(&rig, &call, 3), 1);
    call.headers[1] = "pro";
    assert_int_equal(rig_count(&rig, &call, 9), 2);
    call.headers[1] = "calm";
    assert_int_equal(rig_count(&rig, &call, 1), 1);
    assert_int_equal(wr_rules_top_keys(rig.book, "a", WEIR_TOP_DENIED, 2, &top, &count), 0);
    assert_int_equal(count, 2);
    assert_memory_equal(top[0].key, "pro", 3);
    assert_int_equal(top[0].denied, 7);
    assert_int_equal(top[0].plan, 1);
    assert_memory_equal(top[1].key, "x", 1);
    wr_rules_top_keys_free(rig.book, top);
    assert_int_equal(wr_rules_top_keys(rig.book, "b", WEIR_TOP_DENIED, 2, &top, &count), WEIR_E_ABSENT);
    assert_int_equal(wr_rules_reset_key(rig.book, "a", "pro", 3), 0);
    assert_int_equal(wr_rules_reset_key(rig.book, "a", "pro", 3), WEIR_E_ABSENT);
    assert_int_equal(wr_rules_reset_key(rig.book, "b", "pro", 3), WEIR_E_ABSENT);
    call.headers[1] = "pro";
    assert_int_equal(rig_count(&rig, &call, 9), 2);
    rig_close(&rig);
}

static void key_of_a_known_rule_can_be_tried_and_others_are_refused(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: a, key: 'header:k', limit: 3/h}\n");
    assert_int_equal(wr_rules_try_key(rig.book, "a", "x", 1, 2, &rig.verdict), 0);
    assert_true(rig.verdict.allowed);
    assert_int_equal(wr_rules_try_key(rig.book, "a", "x", 1, 2, &rig.verdict), 0);
    assert_false(rig.verdict.allowed);
    assert_int_equal(wr_rules_try_key(rig.book, "nobody", "x", 1, 0, &rig.verdict), WEIR_E_ABSENT);
    assert_int_equal(wr_rules_try_key(rig.book, "a", "", 0, 0, &rig.verdict), WEIR_E_INVAL);
    struct call call = {.headers = {"k", "x"}};
    assert_int_equal(rig_count(&rig, &call, 5), 1);
    rig_close(&rig);
}

static void idle_keys_are_forgotten(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_rule_view view;
    rig_open(&rig, "admission: {forget: 1m}\nrules:\n  - {name: a, limit: 1/s}\n");
    struct call call = {.peer = "203.0.113.7"};
    assert_true(rig_try(&rig, &call));
    rig_advance(&rig, 2 * WEIR_MINUTE);
    wr_rules_tick(rig.book);
    assert_int_equal(wr_rule_view_get(rig.book, 0, &view), 0);
    assert_int_equal(view.table.keys, 0);
    assert_string_equal(view.limits, "1/s");
    assert_int_equal(wr_rule_view_get(rig.book, 1, &view), WEIR_E_ABSENT);
    rig_close(&rig);
}

/* ---- the example ---- */

static void shipped_example_does_what_its_comments_say(void **state)
{
    (void)state;
    static const struct {
        struct call call;
        int times, granted;
        const char *rule;
    } rows[] = {
        {{"POST", "/login", NULL, "1.1.1.1", {0}, 0}, 9, 5, "login"},
        {{"GET", "/api/x", "api.example.org", "1.1.1.1", {"x-user-id", "ann"}, 0}, 99, 20, "api"},
        {{"GET", "/api/x", "a.example.org", "1.1.1.1", {"x-user-id", "bob", "x-plan", "pro"}, 0}, 999, 200, "api"},
        {{"GET", "/api/x", "a.example.org", "1.1.1.1", {"x-user-id", "mallory"}, 0}, 9, 0, "api"},
        {{"GET", "/search", NULL, "1.1.1.1", {"authorization", "x", "x-search-cost", "50"}, 0}, 99, 12, "search"},
        {{"GET", "/files/a", NULL, "1.1.1.1", {0}, 0}, 9, 4, "downloads"},
        {{"GET", "/articles/1", NULL, "1.1.1.1", {"user-agent", "a bot"}, 0}, 99, 40, "site"},
        {{"GET", "/static/a.css", NULL, "1.1.1.1", {0}, 0}, 999, 999, NULL},
        {{"POST", "/login", NULL, "10.1.1.1", {0}, 0}, 99, 99, NULL},
        {{"GET", "/", NULL, "203.0.113.1", {0}, 0}, 9, 0, NULL},
    };
    struct rules_fixture rig = {0};
    test_allocator_init(&rig.memory);
    assert_int_equal(weir_clock_fake_new(WEIR_SECOND, NULL, &rig.clock), 0);
    struct wr_rules_options options = {.clock = rig.clock, .allocator = &rig.memory.allocator};
    struct wr_rules_settings *settings = malloc(sizeof *settings);
    assert_non_null(settings);
    wr_rules_settings_init(settings);
    if (wr_config_read(&wr_rules_schema, EXAMPLE, weir_allocator_system(), settings, rig.why, sizeof rig.why) != 0 ||
        wr_rules_new(settings, &options, &rig.book, rig.why, sizeof rig.why) != 0)
        fail_msg("%s", rig.why);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rig_count(&rig, &rows[i].call, rows[i].times) != rows[i].granted)
            fail_msg("row %zu", i);
        assert_true(rows[i].rule == NULL ? rig.verdict.rule == NULL : strcmp(rows[i].rule, rig.verdict.rule) == 0);
    }
    assert_int_equal(wr_rules_reload(rig.book, settings, rig.why, sizeof rig.why), 0);
    assert_int_equal(rig_count(&rig, &rows[0].call, 9), 0);
    free(settings);
    rig_close(&rig);
}

WEIR_TESTS(test(rule_that_cannot_decide_follows_on_error_and_is_counted),
           test(more_matching_rules_than_a_verdict_holds_count_as_a_failure),
           test(failed_creation_of_the_rules_leaks_nothing),
           test(millions_of_callers_stay_within_max_keys_and_reset_no_drained_key),
           test(top_keys_of_all_plans_are_listed_and_one_can_be_reset),
           test(key_of_a_known_rule_can_be_tried_and_others_are_refused), test(idle_keys_are_forgotten),
           test(shipped_example_does_what_its_comments_say))
