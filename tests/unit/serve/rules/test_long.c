/* SPDX-License-Identifier: MIT */
/* test_long.c - tests of requests that take too many steps to compare with the rules (M12,
 * N1-2). */
#include "rig.h"

#include "core/admit/match.h"
#include "lib/test.h"

#include <weir/time.h>

#define FIELD_BYTES (16 * 1024)

static char field[FIELD_BYTES + 1];

/* Fills the field with text without a '0', so that a pattern "*0...*" reads all of it. */
static void fill_field(void)
{
    memset(field, 'a', FIELD_BYTES);
    field[FIELD_BYTES] = '\0';
}

/* Returns YAML: one rule for all requests, then `count` rules for an x-b field with "0" and the
 * number of the rule. */
static const char *rules_of(const char *admission, int count, const char *each)
{
    static char yaml[64 * 1024];
    size_t at =
        (size_t)snprintf(yaml, sizeof yaml,
                         "admission: {match: all, %s}\nrules:\n  - {name: all, key: global, limit: 1/h}\n", admission);

    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(yaml + at, sizeof yaml - at,
                               "  - {name: r%d, key: global, limit: 1/h, %s match: {header: [{name: x-a}, "
                               "{name: x-b, value: '*0%d*'}]}}\n",
                               i, each, i);
    assert_true(at < sizeof yaml);
    return yaml;
}

static const struct call long_call = {.peer = "203.0.113.7", .headers = {"x-a", field, "x-b", field}};
static const struct call short_call = {.peer = "203.0.113.7"};

static void request_that_takes_too_many_steps_is_refused_even_if_on_error_open(void **state)
{
    static const char *const ways[] = {"on_error: closed", "on_error: open"};
    (void)state;
    fill_field();
    for (size_t i = 0; i < 2; i++) {
        struct rules_fixture rig;
        rig_open(&rig, rules_of(ways[i], 90, ""));
        assert_false(rig_try(&rig, &long_call));
        assert_int_equal(rig.verdict.cause, WR_CAUSE_MALFORMED);
        assert_int_equal(rig.verdict.fault, WEIR_FAULT_WORK);
        assert_true(rig_try(&rig, &short_call)); /* the rule for all requests was not charged */
        assert_false(rig_try(&rig, &short_call));
        rig_close(&rig);
    }
}

static void pending_request_that_takes_too_many_steps_is_refused(void **state)
{
    struct call_list list;
    struct wr_pending_request *turn;
    struct rules_fixture rig;
    int64_t wait_ns;
    (void)state;
    fill_field();
    rig_open(&rig, rules_of("on_error: open", 90, ""));
    weir_request request = request_of(&long_call, &list);
    assert_int_equal(wr_rules_enqueue(rig.book, &request, WEIR_MINUTE, NULL, NULL, &turn), 0);
    assert_true(wr_pending_request_poll(turn, &rig.verdict, &wait_ns));
    assert_false(rig.verdict.allowed);
    assert_int_equal(rig.verdict.fault, WEIR_FAULT_WORK);
    wr_pending_request_free(turn);
    assert_true(rig_try(&rig, &short_call));
    rig_close(&rig);
}

static void long_request_is_fully_compared_with_few_rules(void **state)
{
    struct rules_fixture rig;
    (void)state;
    fill_field();
    memcpy(field + FIELD_BYTES - 2, "03", 2);
    rig_open(&rig, rules_of("on_error: closed", 6, ""));
    assert_true(rig_try(&rig, &long_call));
    assert_int_equal(rig.verdict.admission.count, 2);
    assert_string_equal(rig.verdict.admission.rulings[1].name, "r3");
    rig_close(&rig);
}

static void shadow_rules_that_take_too_many_steps_refuse_nothing(void **state)
{
    struct rules_fixture rig;
    (void)state;
    fill_field();
    rig_open(&rig, rules_of("on_error: closed", 90, "shadow: true,"));
    assert_true(rig_try(&rig, &long_call));
    assert_int_equal(rig.verdict.cause, WR_CAUSE_GRANTED);
    rig_close(&rig);
}

WEIR_TESTS(test(request_that_takes_too_many_steps_is_refused_even_if_on_error_open),
           test(pending_request_that_takes_too_many_steps_is_refused),
           test(long_request_is_fully_compared_with_few_rules),
           test(shadow_rules_that_take_too_many_steps_refuse_nothing))
