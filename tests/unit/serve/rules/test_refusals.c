/* SPDX-License-Identifier: MIT */
/* test_refusals.c - requests, settings and turns that are refused, and what they leave behind. */
#include "rig.h"

#include "lib/test.h"

#include <sys/stat.h>
#include <unistd.h>
#include <weir/time.h>

static const char plain[] = "rules:\n  - {name: a, limit: 5/h fixed_window}\n";
static const struct call somebody = {.peer = "203.0.113.7"};

/* ---- requests ------------------------------------------------------------------------------------------ */

static void request_that_is_not_known_well_enough_is_malformed_and_counted(void **state)
{
    (void)state;
    struct rig rig;
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
    assert_int_equal(rig_tally(&rig, "a", WR_CAUSE_MALFORMED), 0); /* no rule was asked */
    rig_close(&rig);
}

static void key_with_permits_in_flight_has_a_hold(void **state)
{
    (void)state;
    struct rig rig;
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

static void listed_key_is_settled_for_nothing(void **state)
{
    (void)state;
    struct rig rig;
    struct call_list list;
    weir_request request = request_of(&somebody, &list);
    rig_open(&rig, "rules:\n  - {name: a, limit: 5/h fixed_window, allow_keys: [203.0.113.7]}\n");
    wr_rules_reserve(rig.book, &request, 0, &rig.verdict);
    assert_true(rig.verdict.cause == WR_CAUSE_ALLOW_LIST && rig.verdict.hold != 0);
    assert_int_equal(wr_reservation_commit(rig.book, rig.verdict.hold, 1000), 0);
    assert_int_equal(rig_reload(&rig, plain), 0); /* not listed any more */
    assert_int_equal(rig_count(&rig, &somebody, 9), 5);
    rig_close(&rig);
}

/* ---- turns --------------------------------------------------------------------------------------------- */

static void wake(void *context)
{
    (void)context;
}

static void turn_is_refused_for_its_timeout_or_for_want_of_memory(void **state)
{
    (void)state;
    struct rig rig;
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

static void wish_for_a_request_is_decided_at_once(void **state)
{
    (void)state;
    struct rig rig;
    struct call_list list;
    weir_request request = request_of(&somebody, &list);
    struct wr_rules_request wish = {.request = &request};
    rig_open(&rig, plain);
    for (int i = 0; i < 7; i++) {
        struct wr_pending_request *turn;
        int64_t wait_ns;
        assert_int_equal(wr_rules_enqueue_for_store(rig.book, &wish, wake, NULL, &turn), 0);
        assert_true(wr_pending_request_poll(turn, &rig.verdict, &wait_ns)); /* refused, it does not wait either */
        assert_int_equal(rig.verdict.allowed, i < 5);
        assert_int_equal(rig.verdict.cause, i < 5 ? WR_CAUSE_GRANTED : WR_CAUSE_LIMITED);
        assert_true(wr_pending_request_poll(turn, &rig.verdict, &wait_ns)); /* the same once more */
        assert_int_equal(rig.verdict.allowed, i < 5);
        wr_pending_request_free(turn);
    }
    assert_int_equal(rig_tally(&rig, "a", WR_CAUSE_GRANTED), 5);
    assert_int_equal(rig_tally(&rig, "a", WR_CAUSE_LIMITED), 2);
    rig_close(&rig);
}

static void turn_for_more_rules_than_a_verdict_holds_is_over_at_once(void **state)
{
    (void)state;
    static const char *const ways[] = {"closed", "open"};
    for (int opens = 0; opens <= 1; opens++) {
        struct rig rig;
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

static void turn_without_an_end_waits_for_days(void **state)
{
    (void)state;
    struct rig rig;
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

static void holds_are_divided_among_at_most_16_origins(void **state)
{
    (void)state;
    static const uint32_t rows[][2] = {{0, 32}, {1, 32}, {2, 16},
                                       {15, 2}, {16, 2}, {17, 32}}; /* origins, part of each */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig rig;
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
        rig.verdict.origin = 1; /* where there is only one, another number is that one */
        wr_rules_reserve(rig.book, &request, 0, &rig.verdict);
        assert_int_equal(rig.verdict.hold != 0, rows[i][1] < 32);
        rig_close(&rig);
    }
}

static void secret_of_the_book_before_is_taken_unless_there_is_an_own_one(void **state)
{
    (void)state;
    struct rig rig;
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
    longest[WR_RULE_WORD_MAX] = '\0'; /* as long as one may be */
    assert_int_equal(wr_rules_adopt_secret(rig.book, settings, longest), 0);
    assert_string_equal(wr_rules_secret(rig.book), longest);
    free(settings);
    rig_close(&rig);
}

/* ---- settings ------------------------------------------------------------------------------------------ */

static void check_refused(struct wr_rules_settings *settings, const char *words)
{
    char why[WR_CONFIG_WHY_BYTES] = "";
    assert_int_equal(wr_rules_check(settings, why, sizeof why), WEIR_E_INVAL);
    if (strstr(why, words) == NULL)
        fail_msg("%s", why);
}

static void settings_that_were_not_read_from_a_file_are_checked_as_well(void **state)
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

static void rules_that_make_no_sense_are_refused_in_a_file(void **state)
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
    struct rig rig;
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

static void names_of_rules_are_used_up_at_ten_thousand(void **state)
{
    (void)state;
    struct rig rig;
    static char yaml[100 * 64];
    rig_open(&rig, plain);
    for (int first = 0; first < 10100; first += 100) {
        size_t at = (size_t)snprintf(yaml, sizeof yaml, "admission: {max_keys: 1}\nrules:\n");
        for (int i = 0; i < 100; i++)
            at += (size_t)snprintf(yaml + at, sizeof yaml - at, "  - {name: r%d, limit: 1/h}\n", first + i);
        bool has_room = first + 100 < 10000; /* the name "a" is one of them */
        assert_int_equal(rig_reload(&rig, yaml), has_room ? 0 : WEIR_E_INVAL);
        if (!has_room)
            assert_non_null(strstr(rig.why, "10000 names of rules have been used since the start"));
    }
    assert_int_equal(rig_reload(&rig, plain), 0); /* a name that is known */
    rig_close(&rig);
}

static void plan_that_comes_with_a_reload_begins_anew(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, "rules:\n  - {name: a, limit: 5/h, plans: [{name: p, limit: 6/h, keys: [203.0.113.7]}]}\n");
    assert_int_equal(rig_count(&rig, &somebody, 9), 6);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: a, limit: 5/h, plans: [{name: q, limit: 7/h, keys: "
                                      "[203.0.113.7]}, {name: p, limit: 6/h, keys: [1.1.1.1]}]}\n"),
                     0);
    assert_int_equal(rig_count(&rig, &somebody, 9), 7);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: a, limit: 5/h, plans: [{name: p, limit: 6/h, keys: "
                                      "[203.0.113.7]}]}\n"),
                     0);
    assert_int_equal(rig_count(&rig, &somebody, 9), 0); /* what it had used of that plan is still known */
    rig_close(&rig);
}

/* ---- from one book to the next ------------------------------------------------------------------------- */

static char path[64];

static void make_path(void)
{
    memcpy(path, "/tmp/weir-refusals-XXXXXX", 26);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

static void hold_of_several_rules_and_plans_goes_on_in_the_next_book(void **state)
{
    (void)state;
    static const char yaml[] =
        "admission: {match: all}\n"
        "rules:\n"
        "  - {name: a, limit: concurrent=9, plans: [{name: p, limit: concurrent=2, keys: [1.1.1.1]},\n"
        "     {name: q, limit: concurrent=3, keys: [2.2.2.2]}]}\n"
        "  - {name: longer-name, key: 'header:x-user-id', limit: concurrent=4}\n";
    struct rig rig, next;
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
    assert_int_equal(rig_count(&next, &call, 9), 1); /* a third on plan q */
    struct call other = {.peer = "3.3.3.3", .headers = {"x-user-id", "alice"}};
    assert_int_equal(rig_count(&next, &other, 9), 1); /* a fourth of alice */
    assert_int_equal(wr_reservation_end(next.book, holds[0]), 0);
    assert_int_equal(rig_count(&next, &other, 9), 1);
    assert_int_equal(wr_reservation_end(next.book, holds[1]), 0);
    assert_int_equal(rig_count(&next, &call, 9), 1);
    rig_close(&rig);
    rig_close(&next);
    unlink(path);
}

static void hold_takes_nothing_along_of_lists_and_of_what_was_refused_in_shadow(void **state)
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
    struct rig rig, next;
    struct wr_rules_copy copy = {false, 0};
    make_path();
    rig_open(&rig, before);
    assert_true(rig_try(&rig, &somebody));
    assert_true(rig_try(&rig, &somebody)); /* b would have refused it */
    assert_true(rig.verdict.shadowed);
    uint64_t hold = rig.verdict.hold;
    assert_int_equal(wr_rules_copy(rig.book, &copy, true, path, rig.why, sizeof rig.why), 0);
    rig_open(&next, after);
    assert_int_equal(wr_rules_load_keys(next.book, path, next.why, sizeof next.why), 0);
    assert_int_equal(rig_count(&next, &somebody, 9), 1); /* of a nothing was taken, of c two */
    assert_int_equal(wr_reservation_end(next.book, hold), 0);
    rig_close(&rig);
    rig_close(&next);
    unlink(path);
}

static void thousands_of_holds_are_handed_on(void **state)
{
    (void)state;
    static const char yaml[] = "rules:\n  - {name: a, limit: concurrent=2}\n";
    struct rig rig, next;
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

static void holds_for_which_there_is_no_memory_leave_nothing_taken(void **state)
{
    (void)state;
    static const char yaml[] = "rules:\n  - {name: a, limit: concurrent=2}\n";
    struct wr_rules_copy copy = {false, 0};
    struct rig rig;
    make_path();
    rig_open(&rig, yaml);
    assert_true(rig_try(&rig, &somebody));
    assert_int_equal(wr_rules_copy(rig.book, &copy, true, path, rig.why, sizeof rig.why), 0);
    bool was_left_out = false;
    for (long at = 1; at <= 8; at++) {
        struct rig next;
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

static void keys_from_a_pipe_are_refused_for_it_cannot_be_read_twice(void **state)
{
    (void)state;
    static const char text[] = "weir-keys 1 5\nend 0\n";
    struct rig rig;
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

WEIR_TESTS(test(turn_without_an_end_waits_for_days), test(holds_are_divided_among_at_most_16_origins),
           test(secret_of_the_book_before_is_taken_unless_there_is_an_own_one),
           test(request_that_is_not_known_well_enough_is_malformed_and_counted),
           test(key_with_permits_in_flight_has_a_hold), test(listed_key_is_settled_for_nothing),
           test(turn_is_refused_for_its_timeout_or_for_want_of_memory), test(wish_for_a_request_is_decided_at_once),
           test(turn_for_more_rules_than_a_verdict_holds_is_over_at_once),
           test(settings_that_were_not_read_from_a_file_are_checked_as_well),
           test(rules_that_make_no_sense_are_refused_in_a_file), test(names_of_rules_are_used_up_at_ten_thousand),
           test(plan_that_comes_with_a_reload_begins_anew),
           test(hold_of_several_rules_and_plans_goes_on_in_the_next_book),
           test(hold_takes_nothing_along_of_lists_and_of_what_was_refused_in_shadow),
           test(thousands_of_holds_are_handed_on), test(holds_for_which_there_is_no_memory_leave_nothing_taken),
           test(keys_from_a_pipe_are_refused_for_it_cannot_be_read_twice))
