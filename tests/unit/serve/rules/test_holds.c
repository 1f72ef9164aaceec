/* SPDX-License-Identifier: MIT */
/* test_holds.c - tests of reservations, permits in flight and requests that wait. */
#include "rig.h"

#include "lib/test.h"

#include <weir/time.h>

static uint64_t reserve(struct rules_fixture *rig, const struct call *call, int64_t lease_ns)
{
    struct call_list list;
    weir_request request = request_of(call, &list);

    wr_rules_reserve(rig->book, &request, lease_ns, &rig->verdict);
    return rig->verdict.hold;
}

static uint32_t left(struct rules_fixture *rig)
{
    weir_table_entry *entries;
    size_t count;

    assert_int_equal(wr_rules_top_keys(rig->book, "a", WEIR_TOP_USED, 1, &entries, &count), 0);
    uint32_t remaining = count == 0 ? UINT32_MAX : entries[0].quota.remaining;
    wr_rules_top_keys_free(rig->book, entries);
    return remaining;
}

static const struct call somebody = {.peer = "203.0.113.7"};

/* ---- reservations ---- */

static void reservation_is_settled_once_at_its_real_cost(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: a, limit: 100/h, cost: 10}\n");
    uint64_t hold = reserve(&rig, &somebody, 0);
    assert_int_not_equal(hold, 0);
    assert_true(hold < UINT64_C(1) << 53);
    assert_int_equal(left(&rig), 90);
    assert_int_equal(wr_reservation_commit(rig.book, hold, 3), 0);
    assert_int_equal(left(&rig), 97);
    assert_int_equal(wr_reservation_commit(rig.book, hold, 3), WEIR_E_ABSENT);
    hold = reserve(&rig, &somebody, 0);
    assert_int_equal(wr_reservation_commit(rig.book, hold, 15), 0);
    assert_int_equal(left(&rig), 82);
    hold = reserve(&rig, &somebody, 0);
    assert_int_equal(wr_reservation_cancel(rig.book, hold), 0);
    assert_int_equal(left(&rig), 82);
    assert_int_equal(wr_reservation_cancel(rig.book, hold), WEIR_E_ABSENT);
    assert_int_equal(wr_reservation_cancel(rig.book, 0), WEIR_E_ABSENT);
    assert_int_equal(wr_reservation_cancel(rig.book, UINT64_MAX), WEIR_E_ABSENT);
    rig_close(&rig);
}

static void commit_charges_at_most_a_hundred_times_the_limit(void **state)
{
    (void)state;
    static const struct {
        const char *limit;
        uint32_t used;
        int64_t wait; /* time until the next request is granted, ns */
    } rows[] = {
        {"10/h", 1000, 99 * WEIR_HOUR + 6 * WEIR_MINUTE}, /* a debt of 990 permits, and one more */
        {"10/h", 1001, 99 * WEIR_HOUR + 6 * WEIR_MINUTE},
        {"10/h", UINT32_MAX, 99 * WEIR_HOUR + 6 * WEIR_MINUTE},
        {"10/h burst=20", UINT32_MAX, 198 * WEIR_HOUR + 6 * WEIR_MINUTE},
        /* the larger of the two limits counts */
        {"10/h, 1/s", UINT32_MAX, 99 * WEIR_HOUR + 6 * WEIR_MINUTE},
        {"10/h fixed_window", UINT32_MAX, WEIR_HOUR},
        {"4294967295/s", UINT32_MAX, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rules_fixture rig;
        char yaml[128];
        snprintf(yaml, sizeof yaml, "rules:\n  - {name: a, limit: [%s]}\n", rows[i].limit);
        rig_open(&rig, yaml);
        assert_int_equal(wr_reservation_commit(rig.book, reserve(&rig, &somebody, 0), rows[i].used), 0);
        assert_false(rig_try(&rig, &somebody));
        if (rig.verdict.retry_after_ns != rows[i].wait)
            fail_msg("%s: %lld", rows[i].limit, (long long)rig.verdict.retry_after_ns);
        rig_close(&rig);
    }
}

static void a_reservation_outlives_a_reload(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: a, limit: 100/h, cost: 10}\n");
    uint64_t hold = reserve(&rig, &somebody, 0);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: b, limit: 1/h}\n  - {name: a, limit: 100/h}\n"), 0);
    assert_int_equal(wr_reservation_cancel(rig.book, hold), 0);
    assert_int_equal(left(&rig), 100);
    rig_close(&rig);
}

static const char several[] = "admission: {match: all}\n"
                              "rules:\n"
                              "  - {name: b, key: 'header:user', limit: 20/h}\n"
                              "  - {name: a, limit: 10/h}\n";

static void reservation_of_several_rules_is_settled_by_the_key_of_each(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, several);
    struct call alice = {.peer = "203.0.113.7", .headers = {"user", "alice"}, .cost = 4};
    struct call bob = {.peer = "203.0.113.8", .headers = {"user", "robert"}, .cost = 3};
    uint64_t first = reserve(&rig, &alice, 0), second = reserve(&rig, &bob, 0);
    assert_true(first != 0 && second != 0);
    assert_int_equal(wr_reservation_commit(rig.book, first, 1), 0);
    assert_int_equal(wr_reservation_cancel(rig.book, second), 0);
    alice.cost = bob.cost = 1;
    assert_int_equal(rig_count(&rig, &alice, 30), 9);
    assert_int_equal(rig_count(&rig, &bob, 30), 10);
    alice.peer = bob.peer = "203.0.113.9"; /* at this address only the rule by user knows them */
    assert_int_equal(rig_count(&rig, &alice, 30), 10);
    alice.peer = bob.peer = "203.0.113.10";
    assert_int_equal(rig_count(&rig, &alice, 30), 0);
    assert_int_equal(rig_count(&rig, &bob, 30), 10);
    rig_close(&rig);
}

static void reservations_are_bounded_and_end_with_their_lease(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_rules_view view;
    rig_open(&rig, "admission: {holds: 2, lease: 10s}\nrules:\n  - {name: a, limit: 100/h}\n");
    uint64_t first = reserve(&rig, &somebody, WEIR_SECOND);
    assert_int_not_equal(reserve(&rig, &somebody, 0), first);
    assert_int_equal(reserve(&rig, &somebody, 0), 0);
    assert_false(rig.verdict.allowed);
    assert_int_equal(rig.verdict.cause, WR_CAUSE_FULL);
    assert_int_equal(rig.verdict.status, 503);
    assert_int_equal(left(&rig), 98); /* the permit without a reservation was returned */
    rig_advance(&rig, WEIR_SECOND);
    wr_rules_tick(rig.book);
    assert_int_equal(wr_reservation_commit(rig.book, first, 1), WEIR_E_ABSENT);
    assert_int_not_equal(reserve(&rig, &somebody, 0), 0);
    wr_rules_view_get(rig.book, &view);
    assert_int_equal(view.holds, 2);
    assert_int_equal(view.holds_expired, 1);
    assert_int_equal(view.causes[WR_CAUSE_FULL], 1);
    assert_int_equal(view.causes[WR_CAUSE_GRANTED], 3);
    rig_close(&rig);
}

static void reservation_without_memory_is_returned_and_on_error_decides(void **state)
{
    (void)state;
    static const char *const ways[] = {"closed", "open"};
    for (size_t i = 0; i < 2; i++) {
        struct rules_fixture rig;
        struct wr_rules_view view;
        char yaml[128];
        snprintf(yaml, sizeof yaml, "admission: {on_error: %s}\nrules:\n  - {name: a, limit: concurrent=2}\n", ways[i]);
        rig_open(&rig, yaml);
        /* the key exists, so only the reservation needs memory */
        assert_true(rig_try(&rig, &somebody));
        assert_int_equal(wr_reservation_end(rig.book, rig.verdict.hold), 0);
        rig.memory.fail_at = 1;
        assert_int_equal(rig_try(&rig, &somebody), i == 1);
        rig.memory.fail_at = 0;
        assert_int_equal(rig.verdict.hold, 0);
        assert_int_equal(rig.verdict.cause, i == 1 ? WR_CAUSE_FAILED_OPEN : WR_CAUSE_FAILED);
        assert_int_equal(rig.verdict.status, i == 1 ? 200 : 503);
        wr_rules_view_get(rig.book, &view);
        assert_int_equal(view.causes[rig.verdict.cause], 1);
        assert_int_equal(rig_count(&rig, &somebody, 5), 2);
        rig_close(&rig);
    }
}

static void only_requests_that_a_rule_decided_can_be_reserved(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "admission: {allow: [10.0.0.0/8]}\nrules:\n  - {name: a, match: {path: /a}, limit: 1/h}\n");
    const struct call unmatched = {.target = "/", .peer = "203.0.113.7"}, listed = {.target = "/a", .peer = "10.0.0.1"};
    assert_int_equal(reserve(&rig, &unmatched, 0), 0);
    assert_true(rig.verdict.allowed);
    assert_int_equal(reserve(&rig, &listed, 0), 0);
    assert_true(rig.verdict.allowed);
    const struct call matched = {.target = "/a", .peer = "203.0.113.7"};
    assert_int_not_equal(reserve(&rig, &matched, 0), 0);
    rig_close(&rig);
}

static void permits_in_flight_are_held_until_their_end_or_lease(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "admission: {lease: 5s}\nrules:\n  - {name: a, limit: concurrent=2}\n");
    assert_true(rig_try(&rig, &somebody));
    uint64_t hold = rig.verdict.hold;
    assert_int_not_equal(hold, 0);
    assert_true(rig_try(&rig, &somebody));
    assert_false(rig_try(&rig, &somebody));
    assert_int_equal(rig.verdict.retry_after_ns, WEIR_UNTIL_RELEASE);
    assert_int_equal(wr_reservation_end(rig.book, hold), 0);
    /* a second end would release another permit */
    assert_int_equal(wr_reservation_end(rig.book, hold), WEIR_E_ABSENT);
    assert_true(rig_try(&rig, &somebody));
    assert_false(rig_try(&rig, &somebody));
    rig_advance(&rig, 5 * WEIR_SECOND);
    wr_rules_tick(rig.book); /* both leases have ended */
    assert_int_equal(rig_count(&rig, &somebody, 5), 2);
    rig_close(&rig);
}

/* ---- requests that wait ---- */

static void wake(void *context)
{
    ++*(int *)context;
}

struct waiter {
    struct wr_pending_request *turn;
    int woken;
    int64_t wait_ns;
    struct wr_verdict verdict;
};

static void join(struct rules_fixture *rig, const struct call *call, int64_t timeout_ns, struct waiter *waiter)
{
    struct call_list list;
    weir_request request = request_of(call, &list);

    waiter->woken = 0;
    assert_int_equal(wr_rules_enqueue(rig->book, &request, timeout_ns, wake, &waiter->woken, &waiter->turn), 0);
}

static bool poll_turn(struct waiter *waiter)
{
    return wr_pending_request_poll(waiter->turn, &waiter->verdict, &waiter->wait_ns);
}

static void pending_requests_are_granted_in_order_and_not_overtaken(void **state)
{
    (void)state;
    struct rules_fixture rig;
    static struct waiter first, second;
    rig_open(&rig, "rules:\n  - {name: a, limit: 1/s}\n");
    assert_true(rig_try(&rig, &somebody));
    join(&rig, &somebody, WEIR_FOREVER, &first);
    join(&rig, &somebody, WEIR_FOREVER, &second);
    assert_false(poll_turn(&first));
    assert_int_equal(first.wait_ns, WEIR_SECOND);
    assert_false(poll_turn(&second));
    rig_advance(&rig, WEIR_SECOND);
    assert_false(rig_try(&rig, &somebody));
    assert_false(poll_turn(&second));
    assert_true(poll_turn(&first));
    assert_true(first.verdict.allowed);
    assert_string_equal(first.verdict.rule, "a");
    rig_advance(&rig, WEIR_SECOND);
    assert_true(poll_turn(&second));
    assert_true(second.verdict.allowed);
    wr_pending_request_free(first.turn);
    wr_pending_request_free(second.turn);
    rig_close(&rig);
}

static void pending_request_times_out_and_charges_nothing(void **state)
{
    (void)state;
    struct rules_fixture rig;
    static struct waiter waiter;
    rig_open(&rig, "admission: {match: all}\n"
                   "rules:\n"
                   "  - {name: wide, key: global, limit: 2/h}\n"
                   "  - {name: a, limit: 1/h}\n");
    assert_true(rig_try(&rig, &somebody));
    join(&rig, &somebody, WEIR_SECOND, &waiter);
    assert_false(poll_turn(&waiter)); /* holds a permit of "wide" and waits for "a" */
    struct call other = {.peer = "198.51.100.1"};
    assert_false(rig_try(&rig, &other));
    rig_advance(&rig, WEIR_SECOND);
    assert_true(poll_turn(&waiter));
    assert_false(waiter.verdict.allowed);
    assert_int_equal(waiter.verdict.cause, WR_CAUSE_TIMED_OUT);
    assert_int_equal(waiter.verdict.status, 429);
    assert_true(rig_try(&rig, &other));
    wr_pending_request_free(waiter.turn);
    rig_close(&rig);
}

static void freed_pending_request_returns_its_permits(void **state)
{
    (void)state;
    struct rules_fixture rig;
    static struct waiter waiter;
    struct wr_rules_view view;
    rig_open(&rig, "admission: {match: all}\n"
                   "rules:\n"
                   "  - {name: wide, key: global, limit: [2/h, concurrent=2]}\n"
                   "  - {name: a, limit: 1/h}\n");
    assert_true(rig_try(&rig, &somebody));
    join(&rig, &somebody, WEIR_FOREVER, &waiter);
    assert_false(poll_turn(&waiter));
    wr_rules_view_get(rig.book, &view);
    assert_int_equal(view.waiting, 1);
    wr_pending_request_free(waiter.turn);
    wr_rules_view_get(rig.book, &view);
    assert_int_equal(view.waiting, 0);
    struct call other = {.peer = "198.51.100.1"};
    assert_true(rig_try(&rig, &other));
    rig_close(&rig);
}

static void pending_request_for_permits_in_flight_is_woken_and_reserved(void **state)
{
    (void)state;
    struct rules_fixture rig;
    static struct waiter waiter, last;
    rig_open(&rig, "rules:\n  - {name: a, limit: concurrent=1}\n");
    assert_true(rig_try(&rig, &somebody));
    join(&rig, &somebody, WEIR_MINUTE, &waiter);
    assert_false(poll_turn(&waiter));
    assert_int_equal(waiter.woken, 0);
    assert_int_equal(wr_reservation_end(rig.book, rig.verdict.hold), 0);
    assert_int_equal(waiter.woken, 1);
    assert_true(poll_turn(&waiter));
    uint64_t hold = waiter.verdict.hold;
    assert_int_not_equal(hold, 0);
    assert_true(poll_turn(&waiter));
    assert_int_equal(waiter.verdict.hold, 0); /* the reservation is returned once */
    wr_pending_request_free(waiter.turn);
    assert_false(rig_try(&rig, &somebody));
    assert_int_equal(wr_reservation_end(rig.book, hold), 0);
    join(&rig, &somebody, 0, &last);
    assert_true(poll_turn(&last));
    assert_int_equal(wr_reservation_end(rig.book, last.verdict.hold), 0);
    wr_pending_request_free(last.turn);
    join(&rig, &somebody, 0, &last); /* granted, and freed before it was polled */
    wr_pending_request_free(last.turn);
    assert_true(rig_try(&rig, &somebody));
    rig_close(&rig);
}

static void pending_requests_follow_the_new_rate_after_a_reload(void **state)
{
    (void)state;
    struct rules_fixture rig;
    static struct waiter waiter;
    rig_open(&rig, "rules:\n  - {name: a, limit: 10/s burst=1}\n");
    assert_true(rig_try(&rig, &somebody));
    join(&rig, &somebody, WEIR_MINUTE, &waiter);
    assert_false(poll_turn(&waiter));
    assert_int_equal(waiter.wait_ns, WEIR_SECOND / 10);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: a, limit: 1/s burst=1}\n"), 0);
    assert_int_equal(waiter.woken, 1);
    rig_advance(&rig, WEIR_SECOND / 10);
    assert_false(poll_turn(&waiter));
    rig_advance(&rig, WEIR_SECOND);
    assert_true(poll_turn(&waiter));
    assert_true(waiter.verdict.allowed);
    wr_pending_request_free(waiter.turn);
    assert_int_equal(rig_count(&rig, &somebody, 5), 0);
    rig_close(&rig);
}

static void pending_request_that_needs_no_wait_ends_at_once(void **state)
{
    (void)state;
    struct rules_fixture rig;
    static struct waiter waiter;
    rig_open(&rig, "admission: {deny: 203.0.113.0/24}\n"
                   "rules:\n"
                   "  - {name: s, key: global, limit: 1/h, shadow: true}\n"
                   "  - {name: a, match: {path: /a}, key: 'header:k', missing: refuse, deny_keys: [x], limit: 1/s}\n");
    join(&rig, &somebody, WEIR_FOREVER, &waiter);
    assert_true(poll_turn(&waiter));
    assert_int_equal(waiter.verdict.cause, WR_CAUSE_DENY_LIST);
    wr_pending_request_free(waiter.turn);
    static const struct {
        struct call call;
        enum wr_cause cause;
    } rows[] = {{{.target = "/b"}, WR_CAUSE_UNMATCHED},
                {{.target = "/a"}, WR_CAUSE_MALFORMED},
                {{.target = "/a", .headers = {"k", "x"}}, WR_CAUSE_DENY_LIST},
                {{.target = "/a", .headers = {"k", "y"}}, WR_CAUSE_GRANTED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        join(&rig, &rows[i].call, WEIR_FOREVER, &waiter);
        assert_true(poll_turn(&waiter));
        assert_int_equal(waiter.verdict.cause, rows[i].cause);
        wr_pending_request_free(waiter.turn);
    }
    assert_true(waiter.verdict.shadowed);
    rig_close(&rig);
}

WEIR_TESTS(test(reservation_of_several_rules_is_settled_by_the_key_of_each),
           test(reservation_is_settled_once_at_its_real_cost), test(commit_charges_at_most_a_hundred_times_the_limit),
           test(a_reservation_outlives_a_reload), test(reservations_are_bounded_and_end_with_their_lease),
           test(reservation_without_memory_is_returned_and_on_error_decides),
           test(only_requests_that_a_rule_decided_can_be_reserved),
           test(permits_in_flight_are_held_until_their_end_or_lease),
           test(pending_requests_are_granted_in_order_and_not_overtaken),
           test(pending_request_times_out_and_charges_nothing), test(freed_pending_request_returns_its_permits),
           test(pending_request_for_permits_in_flight_is_woken_and_reserved),
           test(pending_requests_follow_the_new_rate_after_a_reload),
           test(pending_request_that_needs_no_wait_ends_at_once))
