/* SPDX-License-Identifier: MIT */
/* test_refusals.c - tests of requests and settings that are refused, and of what they leave
 * behind. */
#include "rig.h"

#include "lib/test.h"

#include <sys/stat.h>
#include <unistd.h>
#include <weir/time.h>

static const char plain[] = "rules:\n  - {name: a, limit: 5/h fixed_window}\n";
static const struct call somebody = {.peer = "203.0.113.7"};

/* ---- requests ---- */

static void incomplete_request_is_malformed_and_counted(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call_list list;
    struct wr_rules_view view;
    weir_request request = request_of(&somebody, &list);
    rig_open(&rig, plain);
    wr_rules_refuse_malformed(rig.book, WEIR_FAULT_LONG, &rig.verdict);
    assert_true(!rig.verdict.allowed && !rig.verdict.admission.allowed && rig.verdict.admission.count == 0);
    assert_true(rig.verdict.cause == WR_CAUSE_MALFORMED && rig.verdict.status == 400);
    assert_true(rig.verdict.fault == WEIR_FAULT_LONG && rig.verdict.rule == NULL && rig.verdict.hold == 0);
    assert_int_equal(rig.verdict.retry_after_ns, 0);
    request.size = 1;
    wr_rules_try(rig.book, &request, &rig.verdict);
    assert_true(rig.verdict.cause == WR_CAUSE_MALFORMED && rig.verdict.fault == WEIR_FAULT_BYTES);
    wr_rules_view_get(rig.book, &view);
    assert_int_equal(view.causes[WR_CAUSE_MALFORMED], 2);
    assert_int_equal(rig_tally(&rig, "a", WR_CAUSE_MALFORMED), 0); /* no rule was evaluated */
    rig_close(&rig);
}

static void key_with_permits_in_flight_has_a_reservation(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: a, limit: concurrent=1}\n");
    assert_int_equal(wr_rules_try_key(rig.book, "a", "k", 1, 0, &rig.verdict), 0);
    uint64_t hold = rig.verdict.hold;
    assert_true(rig.verdict.allowed && hold != 0);
    assert_int_equal(wr_rules_try_key(rig.book, "a", "k", 1, 0, &rig.verdict), 0);
    assert_true(!rig.verdict.allowed && rig.verdict.hold == 0);
    assert_int_equal(wr_reservation_end(rig.book, hold), 0);
    assert_int_equal(wr_rules_try_key(rig.book, "a", "k", 1, 0, &rig.verdict), 0);
    assert_true(rig.verdict.allowed);
    rig_close(&rig);
}

static void reservation_of_a_listed_key_charges_nothing(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call_list list;
    weir_request request = request_of(&somebody, &list);
    rig_open(&rig, "rules:\n  - {name: a, limit: 5/h fixed_window, allow_keys: [203.0.113.7]}\n");
    wr_rules_reserve(rig.book, &request, 0, &rig.verdict);
    assert_true(rig.verdict.cause == WR_CAUSE_ALLOW_LIST && rig.verdict.hold != 0);
    assert_int_equal(wr_reservation_commit(rig.book, rig.verdict.hold, 1000), 0);
    assert_int_equal(rig_reload(&rig, plain), 0); /* no longer listed */
    assert_int_equal(rig_count(&rig, &somebody, 9), 5);
    rig_close(&rig);
}

/* ---- requests that may wait ---- */

static void wake(void *context)
{
    (void)context;
}

static void pending_request_is_refused_for_its_timeout_or_without_memory(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call_list list;
    struct wr_pending_request *turn;
    weir_request request = request_of(&somebody, &list);
    struct wr_rules_request wish = {.request = &request};
    rig_open(&rig, plain);
    assert_int_equal(wr_rules_enqueue(rig.book, &request, -1, wake, NULL, &turn), WEIR_E_INVAL);
    rig.memory.fail_at = 1;
    assert_int_equal(wr_rules_enqueue(rig.book, &request, 0, wake, NULL, &turn), WEIR_E_NOMEM);
    rig.memory.fail_at = 1;
    assert_int_equal(wr_rules_enqueue_for_store(rig.book, &wish, wake, NULL, &turn), WEIR_E_NOMEM);
    rig.memory.fail_at = 0;
    wr_pending_request_free(NULL);
    rig_close(&rig);
}

static void pending_request_without_a_timeout_is_decided_at_once(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call_list list;
    weir_request request = request_of(&somebody, &list);
    struct wr_rules_request wish = {.request = &request};
    rig_open(&rig, plain);
    for (int i = 0; i < 7; i++) {
        struct wr_pending_request *turn;
        int64_t wait_ns;
        assert_int_equal(wr_rules_enqueue_for_store(rig.book, &wish, wake, NULL, &turn), 0);
        /* a refused request does not wait either */
        assert_true(wr_pending_request_poll(turn, &rig.verdict, &wait_ns));
        assert_int_equal(rig.verdict.allowed, i < 5);
        assert_int_equal(rig.verdict.cause, i < 5 ? WR_CAUSE_GRANTED : WR_CAUSE_LIMITED);
        /* a second poll returns the same verdict */
        assert_true(wr_pending_request_poll(turn, &rig.verdict, &wait_ns));
        assert_int_equal(rig.verdict.allowed, i < 5);
        wr_pending_request_free(turn);
    }
    assert_int_equal(rig_tally(&rig, "a", WR_CAUSE_GRANTED), 5);
    assert_int_equal(rig_tally(&rig, "a", WR_CAUSE_LIMITED), 2);
    rig_close(&rig);
}

static void pending_request_for_too_many_rules_ends_at_once(void **state)
{
    (void)state;
    static const char *const ways[] = {"closed", "open"};
    for (int opens = 0; opens <= 1; opens++) {
        struct rules_fixture rig;
        struct call_list list;
        struct wr_pending_request *turn;
        struct wr_rules_view view;
        int64_t wait_ns;
        char yaml[1024];
        weir_request request = request_of(&somebody, &list);
        size_t at = (size_t)snprintf(yaml, sizeof yaml, "admission: {match: all, on_error: %s}\nrules:\n", ways[opens]);
        for (int rule = 0; rule < 9; rule++)
            at += (size_t)snprintf(yaml + at, sizeof yaml - at, "  - {name: r%d, key: global, limit: 1/h}\n", rule);
        rig_open(&rig, yaml);
        assert_int_equal(wr_rules_enqueue(rig.book, &request, WEIR_FOREVER, wake, NULL, &turn), 0);
        assert_true(wr_pending_request_poll(turn, &rig.verdict, &wait_ns));
        assert_int_equal(rig.verdict.allowed, opens);
        assert_int_equal(rig.verdict.cause, opens ? WR_CAUSE_FAILED_OPEN : WR_CAUSE_FAILED);
        wr_pending_request_free(turn);
        wr_rules_view_get(rig.book, &view);
        assert_int_equal(view.waiting, 0);
        rig_close(&rig);
    }
}

static void pending_request_without_a_deadline_waits_for_days(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call_list list;
    struct wr_pending_request *turn;
    int64_t wait_ns = 0;
    weir_request request = request_of(&somebody, &list);
    rig_open(&rig, "admission: {lease: 1d}\nrules:\n  - {name: a, limit: concurrent=1}\n");
    assert_true(rig_try(&rig, &somebody));
    uint64_t hold = rig.verdict.hold;
    assert_int_equal(wr_rules_enqueue(rig.book, &request, WEIR_FOREVER, wake, NULL, &turn), 0);
    for (int day = 0; day < 3; day++) {
        assert_false(wr_pending_request_poll(turn, &rig.verdict, &wait_ns));
        rig_advance(&rig, WEIR_DAY);
    }
    assert_int_equal(wr_reservation_end(rig.book, hold), 0);
    assert_true(wr_pending_request_poll(turn, &rig.verdict, &wait_ns));
    assert_true(rig.verdict.allowed);
    wr_pending_request_free(turn);
    rig_close(&rig);
}

static void reservations_are_divided_among_at_most_16_origins(void **state)
{
    (void)state;
    /* number of origins, number of reservations for each */
    static const uint32_t rows[][2] = {{0, 32}, {1, 32}, {2, 16}, {15, 2}, {16, 2}, {17, 32}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rules_fixture rig;
        struct call_list list;
        uint32_t taken = 0;
        weir_request request = request_of(&somebody, &list);
        struct wr_rules_settings *settings =
            settings_of("admission: {holds: 32}\nrules:\n  - {name: a, limit: 99/s}\n");
        rig_open(&rig, plain);
        wr_rules_free(rig.book);
        struct wr_rules_options options = {
            .clock = rig.clock, .allocator = &rig.memory.allocator, .origins = rows[i][0]};
        assert_int_equal(wr_rules_new(settings, &options, &rig.book, rig.why, sizeof rig.why), 0);
        free(settings);
        for (int k = 0; k < 40; k++) {
            rig.verdict.origin = 0;
            wr_rules_reserve(rig.book, &request, 0, &rig.verdict);
            taken += rig.verdict.hold != 0;
        }
        assert_int_equal(taken, rows[i][1]);
        rig.verdict.origin = 1; /* a single origin has any number */
        wr_rules_reserve(rig.book, &request, 0, &rig.verdict);
        assert_int_equal(rig.verdict.hold != 0, rows[i][1] < 32);
        rig_close(&rig);
    }
}

static void secret_of_the_previous_instance_is_taken_unless_one_is_set(void **state)
{
    (void)state;
    struct rules_fixture rig;
    static char longest[WR_RULE_WORD_MAX + 2];
    struct wr_rules_settings *settings = settings_of(plain);
    rig_open(&rig, plain);
    char own[WR_RULE_WORD_MAX + 1];
    snprintf(own, sizeof own, "%s", wr_rules_secret(rig.book));
    memset(longest, 'x', sizeof longest - 1);
    assert_int_equal(wr_rules_adopt_secret(rig.book, settings, ""), 0);
    assert_string_equal(wr_rules_secret(rig.book), own);
    assert_int_equal(wr_rules_adopt_secret(rig.book, settings, longest), 0);
    assert_string_equal(wr_rules_secret(rig.book), own);
    memcpy(settings->secret, "hush", 5);
    assert_int_equal(wr_rules_adopt_secret(rig.book, settings, "another"), 0);
    assert_string_equal(wr_rules_secret(rig.book), own);
    settings->secret[0] = '\0';
    longest[WR_RULE_WORD_MAX] = '\0'; /* the longest secret that is allowed */
    assert_int_equal(wr_rules_adopt_secret(rig.book, settings, longest), 0);
    assert_string_equal(wr_rules_secret(rig.book), longest);
    free(settings);
    rig_close(&rig);
}

/* ---- settings ---- */

static void check_refused(struct wr_rules_settings *settings, const char *words)
{
    char why[WR_CONFIG_WHY_BYTES] = "";
    assert_int_equal(wr_rules_check(settings, why, sizeof why), WEIR_E_INVAL);
    if (strstr(why, words) == NULL)
        fail_msg("%s", why);
}

static void settings_that_do_not_come_from_a_file_are_checked_as_well(void **state)
{
    (void)state;
    struct wr_rules_settings *settings = settings_of(plain);
    settings->rule_count = 0;
    check_refused(settings, "there are no rules");
    settings->rule_count = 1;
    memcpy(settings->forwarded_header, "X-Forwarded-For", 16);
    check_refused(settings, "forwarded_header is not the name of a header in lower case");
    memcpy(settings->forwarded_header, "x-forwarded-for", 16);
    settings->holds_max = 0;
    check_refused(settings, "holds is out of range");
    settings->holds_max = (1U << 21) + 1;
    check_refused(settings, "holds is out of range");
    settings->holds_max = 1;
    settings->rules[0].malformed = WR_MISSING_SHARE;
    settings->rules[0].missing = WR_MISSING_REFUSE;
    check_refused(settings, "malformed keys share one, but missing ones are refused");
    settings->rules[0].missing = WR_MISSING_SHARE;
    memcpy(settings->rules[0].limits[0], "5/parsec", 9);
    check_refused(settings, "parsec");
    memcpy(settings->rules[0].limits[0], "5/h", 4);
    settings->rules[0].key_count = 2;
    memcpy(settings->rules[0].key[0], "ip", 3);
    memcpy(settings->rules[0].key[1], "nose", 5);
    check_refused(settings, "nose");
    settings->rules[0].key_count = 0;
    settings->rules[0].match.header_count = 1;
    memcpy(settings->rules[0].match.headers[0].name, "x", 2);
    assert_int_equal(wr_rules_check(settings, (char[WR_CONFIG_WHY_BYTES]){""}, WR_CONFIG_WHY_BYTES), 0);
    free(settings);
}

static void invalid_rules_are_refused_in_a_file(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{name: a, limit: []}", "limit"},
        {"{name: a, limit: 5/h, plans: [{name: p, limit: 6/h, keys: [x]}, {name: p, limit: 7/h, keys: [y]}]}",
         "two plans have this name"},
        {"{name: a, limit: 5/h, malformed: share, missing: refuse}", "malformed keys share one"},
        {"{name: a, limit: 5/h, plans: [{name: p, limit: 6/h}]}", "a plan without keys"},
        {"{name: a, limit: 5/h, cost_header: x-cost}", "cost_header and cost_max belong together"},
        {"{name: a, limit: 5/h, cost_max: 3}", "cost_header and cost_max belong together"},
        {"{name: a, limit: 5/h, match: {method: [get]}}", "not in capitals"},
        {"{name: a, limit: 5/h, match: {header: [{name: X-A}]}}", "lower case"},
    };
    struct rules_fixture rig;
    rig_open(&rig, plain);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml, "rules:\n  - %s\n", rows[i][0]);
        assert_int_equal(rig_reload(&rig, yaml), WEIR_E_INVAL);
        if (strstr(rig.why, rows[i][1]) == NULL)
            fail_msg("%s: %s", rows[i][0], rig.why);
    }
    rig_close(&rig);
}

static void at_most_ten_thousand_rule_names_are_used(void **state)
{
    (void)state;
    struct rules_fixture rig;
    static char yaml[100 * 64];
    rig_open(&rig, plain);
    for (int first = 0; first < 10100; first += 100) {
        size_t at = (size_t)snprintf(yaml, sizeof yaml, "admission: {max_keys: 1}\nrules:\n");
        for (int i = 0; i < 100; i++)
            at += (size_t)snprintf(yaml + at, sizeof yaml - at, "  - {name: r%d, limit: 1/h}\n", first + i);
        bool has_room = first + 100 < 10000; /* the name "a" counts, too */
        assert_int_equal(rig_reload(&rig, yaml), has_room ? 0 : WEIR_E_INVAL);
        if (!has_room)
            assert_non_null(strstr(rig.why, "10000 names of rules have been used since the start"));
    }
    assert_int_equal(rig_reload(&rig, plain), 0); /* a known name */
    rig_close(&rig);
}

static void plan_added_by_a_reload_starts_with_its_full_limit(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: a, limit: 5/h, plans: [{name: p, limit: 6/h, keys: [203.0.113.7]}]}\n");
    assert_int_equal(rig_count(&rig, &somebody, 9), 6);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: a, limit: 5/h, plans: [{name: q, limit: 7/h, keys: "
                                      "[203.0.113.7]}, {name: p, limit: 6/h, keys: [1.1.1.1]}]}\n"),
                     0);
    assert_int_equal(rig_count(&rig, &somebody, 9), 7);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: a, limit: 5/h, plans: [{name: p, limit: 6/h, keys: "
                                      "[203.0.113.7]}]}\n"),
                     0);
    assert_int_equal(rig_count(&rig, &somebody, 9), 0); /* the usage of that plan is still known */
    rig_close(&rig);
}

/* ---- from one instance to the next ---- */

static char path[64];

static void make_path(void)
{
    memcpy(path, "/tmp/weir-refusals-XXXXXX", 26);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

static void reservation_of_several_rules_and_plans_moves_to_the_next_instance(void **state)
{
    (void)state;
    static const char yaml[] =
        "admission: {match: all}\n"
        "rules:\n"
        "  - {name: a, limit: concurrent=9, plans: [{name: p, limit: concurrent=2, keys: [1.1.1.1]},\n"
        "     {name: q, limit: concurrent=3, keys: [2.2.2.2]}]}\n"
        "  - {name: longer-name, key: 'header:x-user-id', limit: concurrent=4}\n";
    struct rules_fixture rig, next;
    struct wr_rules_copy copy = {false, 0};
    struct call call = {.peer = "2.2.2.2", .headers = {"x-user-id", "alice"}};
    uint64_t holds[2];
    make_path();
    rig_open(&rig, yaml);
    for (int i = 0; i < 2; i++) {
        assert_true(rig_try(&rig, &call));
        holds[i] = rig.verdict.hold;
    }
    assert_int_equal(wr_rules_copy(rig.book, &copy, true, path, rig.why, sizeof rig.why), 0);
    rig_open(&next, yaml);
    assert_int_equal(wr_rules_load_keys(next.book, path, next.why, sizeof next.why), 0);
    assert_int_equal(rig_count(&next, &call, 9), 1); /* the third permit of plan q */
    struct call other = {.peer = "3.3.3.3", .headers = {"x-user-id", "alice"}};
    assert_int_equal(rig_count(&next, &other, 9), 1); /* the fourth permit of alice */
    assert_int_equal(wr_reservation_end(next.book, holds[0]), 0);
    assert_int_equal(rig_count(&next, &other, 9), 1);
    assert_int_equal(wr_reservation_end(next.book, holds[1]), 0);
    assert_int_equal(rig_count(&next, &call, 9), 1);
    rig_close(&rig);
    rig_close(&next);
    unlink(path);
}

static void reservation_carries_no_permits_of_lists_and_refusing_shadow_rules(void **state)
{
    (void)state;
    static const char before[] = "admission: {match: all}\n"
                                 "rules:\n"
                                 "  - {name: a, limit: concurrent=1, allow_keys: [203.0.113.7]}\n"
                                 "  - {name: b, limit: concurrent=1, shadow: true}\n"
                                 "  - {name: c, limit: concurrent=2}\n";
    static const char after[] = "admission: {match: all}\n"
                                "rules:\n"
                                "  - {name: a, limit: concurrent=1}\n"
                                "  - {name: b, limit: concurrent=1, shadow: true}\n"
                                "  - {name: c, limit: concurrent=3}\n";
    struct rules_fixture rig, next;
    struct wr_rules_copy copy = {false, 0};
    make_path();
    rig_open(&rig, before);
    assert_true(rig_try(&rig, &somebody));
    assert_true(rig_try(&rig, &somebody)); /* the shadow rule b would have refused it */
    assert_true(rig.verdict.shadowed);
    uint64_t hold = rig.verdict.hold;
    assert_int_equal(wr_rules_copy(rig.book, &copy, true, path, rig.why, sizeof rig.why), 0);
    rig_open(&next, after);
    assert_int_equal(wr_rules_load_keys(next.book, path, next.why, sizeof next.why), 0);
    /* rule a was charged nothing, rule c two */
    assert_int_equal(rig_count(&next, &somebody, 9), 1);
    assert_int_equal(wr_reservation_end(next.book, hold), 0);
    rig_close(&rig);
    rig_close(&next);
    unlink(path);
}

static void thousands_of_reservations_move_to_the_next_instance(void **state)
{
    (void)state;
    static const char yaml[] = "rules:\n  - {name: a, limit: concurrent=2}\n";
    struct rules_fixture rig, next;
    struct wr_rules_copy copy = {false, 0};
    struct wr_rules_view view;
    char peer[32];
    struct call call = {.peer = peer};
    make_path();
    rig_open(&rig, yaml);
    for (int i = 0; i < 3000; i++) {
        snprintf(peer, sizeof peer, "10.0.%d.%d", i / 250, i % 250);
        assert_true(rig_try(&rig, &call));
    }
    assert_int_equal(wr_rules_copy(rig.book, &copy, true, path, rig.why, sizeof rig.why), 0);
    rig_open(&next, yaml);
    assert_int_equal(wr_rules_load_keys(next.book, path, next.why, sizeof next.why), 0);
    wr_rules_view_get(next.book, &view);
    assert_int_equal(view.holds, 3000);
    assert_int_equal(rig_count(&next, &call, 9), 1);
    rig_close(&rig);
    rig_close(&next);
    unlink(path);
}

static void reservations_loaded_without_memory_charge_nothing(void **state)
{
    (void)state;
    static const char yaml[] = "rules:\n  - {name: a, limit: concurrent=2}\n";
    struct wr_rules_copy copy = {false, 0};
    struct rules_fixture rig;
    make_path();
    rig_open(&rig, yaml);
    assert_true(rig_try(&rig, &somebody));
    assert_int_equal(wr_rules_copy(rig.book, &copy, true, path, rig.why, sizeof rig.why), 0);
    bool was_left_out = false;
    for (long at = 1; at <= 8; at++) {
        struct rules_fixture next;
        struct wr_rules_view view;
        rig_open(&next, yaml);
        next.memory.fail_at = at;
        int error = wr_rules_load_keys(next.book, path, next.why, sizeof next.why);
        next.memory.fail_at = 0;
        wr_rules_view_get(next.book, &view);
        assert_true(error == 0 || error == WEIR_E_NOMEM);
        was_left_out |= error == 0 && view.holds == 0;
        assert_int_equal(rig_count(&next, &somebody, 9), 2 - (int)view.holds);
        rig_close(&next);
    }
    assert_true(was_left_out);
    rig_close(&rig);
    unlink(path);
}

static void key_file_that_is_a_pipe_is_refused(void **state)
{
    (void)state;
    static const char text[] = "weir-keys 1 5\nend 0\n";
    struct rules_fixture rig;
    int ends[2];
    char name[32];
    rig_open(&rig, plain);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, sizeof text - 1), sizeof text - 1);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    assert_int_equal(wr_rules_load_keys(rig.book, name, rig.why, sizeof rig.why), WEIR_E_INVAL);
    close(ends[0]);
    close(ends[1]);
    rig_close(&rig);
}

WEIR_TESTS(test(pending_request_without_a_deadline_waits_for_days),
           test(reservations_are_divided_among_at_most_16_origins),
           test(secret_of_the_previous_instance_is_taken_unless_one_is_set),
           test(incomplete_request_is_malformed_and_counted), test(key_with_permits_in_flight_has_a_reservation),
           test(reservation_of_a_listed_key_charges_nothing),
           test(pending_request_is_refused_for_its_timeout_or_without_memory),
           test(pending_request_without_a_timeout_is_decided_at_once),
           test(pending_request_for_too_many_rules_ends_at_once),
           test(settings_that_do_not_come_from_a_file_are_checked_as_well), test(invalid_rules_are_refused_in_a_file),
           test(at_most_ten_thousand_rule_names_are_used), test(plan_added_by_a_reload_starts_with_its_full_limit),
           test(reservation_of_several_rules_and_plans_moves_to_the_next_instance),
           test(reservation_carries_no_permits_of_lists_and_refusing_shadow_rules),
           test(thousands_of_reservations_move_to_the_next_instance),
           test(reservations_loaded_without_memory_charge_nothing), test(key_file_that_is_a_pipe_is_refused))
