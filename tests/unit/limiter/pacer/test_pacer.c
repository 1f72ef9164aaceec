/* SPDX-License-Identifier: MIT */
/* test_pacer.c - tests of a pacer with one caller and one host: starts, responses, permits. */
#include "rig.h"

/* ---- unit tests that seed S1 asks for, on one thread ---- */

static void first_request_to_a_host_does_not_wait(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit permit = acquired(&pacing, "example.org", 0);
    assert_int_equal(permit.waited_ns, 0);
    assert_int_equal(permit.waited_for, WEIR_REASON_NONE);
    assert_true(permit.sent);
    tell(&permit, 200);
    pacing_tear_down(&pacing);
}

static void second_request_within_the_interval_waits_for_the_rest_of_it(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    fetch(&pacing, "example.org", 200);
    pass(&pacing, 300 * MS);
    weir_permit permit;
    weir_decision decision = try_host(&pacing, "example.org", 0, &permit);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.reason, WEIR_REASON_PACE);
    assert_true(decision.wait_ns == 700 * MS);
    pacing_tear_down(&pacing);
}

static void request_after_the_interval_does_not_wait(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    fetch(&pacing, "example.org", 200);
    pass(&pacing, WEIR_SECOND - 1);
    assert_false(host_goes(&pacing, "example.org"));
    pass(&pacing, 1);
    assert_true(host_goes(&pacing, "example.org"));
    pacing_tear_down(&pacing);
}

static void interval_is_the_larger_of_a_second_and_the_crawl_delay(void **state)
{
    (void)state;
    static const struct {
        int64_t crawl_delay_ns, interval_ns;
        weir_reason reason;
    } cases[] = {
        {0, WEIR_SECOND, WEIR_REASON_PACE},
        {200 * MS, WEIR_SECOND, WEIR_REASON_PACE},
        {5 * WEIR_SECOND, 5 * WEIR_SECOND, WEIR_REASON_ROBOTS_DELAY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pacing pacing;
        pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
        assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "h", 1, cases[i].crawl_delay_ns), 0);
        fetch(&pacing, "h", 200);
        weir_permit permit;
        weir_decision decision = try_host(&pacing, "h", 0, &permit);
        assert_true(decision.wait_ns == cases[i].interval_ns);
        assert_int_equal(decision.reason, cases[i].reason);
        pacing_tear_down(&pacing);
    }
}

static void crawl_delay_and_retry_after_apply_to_the_unlimited_profile(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_UNLIMITED);
    for (int i = 0; i < 100; i++)
        fetch(&pacing, "own", 200);
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "own", 3, 2 * WEIR_SECOND), 0);
    assert_true(host_wait(&pacing, "own") == 2 * WEIR_SECOND);
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "own", 3, 0), 0);
    weir_permit permit = acquired(&pacing, "own", 0);
    weir_outcome outcome = answer_retry_after(503, 10 * WEIR_SECOND);
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    assert_true(host_wait(&pacing, "own") >= 10 * WEIR_SECOND);
    assert_true(host_wait(&pacing, "own") <= 11 * WEIR_SECOND);
    pacing_tear_down(&pacing);
}

/* ---- sending ---- */

/* The first request connects slowly and the second reuses a connection: the interval counts from
 * the write of the first. */
static void interval_counts_from_the_write_of_a_request_not_from_its_permit(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit slow = acquired(&pacing, "h", WEIR_REPORTS_SENT), quick;
    assert_false(slow.sent);
    pass(&pacing, 5 * WEIR_SECOND); /* the connect takes this long */
    assert_int_equal(try_host(&pacing, "h", WEIR_REPORTS_SENT, &quick).verdict, WEIR_WAIT);
    assert_int_equal(weir_permit_sent(&slow), 0);
    assert_true(slow.sent);
    assert_true(host_wait(&pacing, "h") == WEIR_SECOND);
    pass(&pacing, WEIR_SECOND);
    quick = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    assert_int_equal(weir_permit_sent(&quick), 0);
    assert_int_equal(weir_permit_sent(&quick), 0); /* a second call has no effect */
    assert_true(quick.held[0].sent_at - slow.held[0].sent_at == WEIR_SECOND);
    tell(&quick, 200);
    tell(&slow, 200);
    pacing_tear_down(&pacing);
}

static void unused_reservation_is_given_back_and_costs_nothing(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit permit = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    assert_false(host_goes(&pacing, "h"));
    assert_int_equal(look_at(&pacing, "h").in_flight, 1);
    weir_permit_abandon(&permit);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    assert_int_equal(look_at(&pacing, "h").starts, 0);
    assert_true(host_goes(&pacing, "h"));
    pacing_tear_down(&pacing);
}

static void unsent_permit_expires_after_2_minutes(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit lost = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    pass(&pacing, 2 * WEIR_MINUTE - 1);
    assert_false(host_goes(&pacing, "h"));
    pass(&pacing, 1);
    weir_permit next = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    assert_int_equal(look_at(&pacing, "h").in_flight, 1);
    /* too late: the next request holds the start */
    assert_int_equal(weir_permit_sent(&lost), WEIR_E_WITHDRAWN);
    assert_null(lost.pacer);
    assert_int_equal(weir_permit_sent(&next), 0);
    tell(&next, 200);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    pacing_tear_down(&pacing);
}

static void retry_after_withdraws_a_permit_that_was_not_sent(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit first = acquired(&pacing, "h", 0);
    pass(&pacing, WEIR_SECOND);
    weir_permit second = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    weir_outcome outcome = answer_retry_after(429, 30 * WEIR_SECOND);
    assert_int_equal(weir_permit_finish(&first, &outcome), 0);
    assert_int_equal(weir_permit_sent(&second), WEIR_E_WITHDRAWN);
    assert_null(second.pacer);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    assert_int_equal(look_at(&pacing, "h").starts, 1);
    assert_true(host_wait(&pacing, "h") >= 30 * WEIR_SECOND);
    pacing_tear_down(&pacing);
}

/* The head of the response starts the pause. The request stays in flight until its end, which does
 * not lengthen the pause. */
static void retry_after_in_a_head_applies_before_the_request_ends(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit first = acquired(&pacing, "h", 0);
    pass(&pacing, WEIR_SECOND);
    weir_permit second = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    weir_outcome outcome = answer_retry_after(429, 30 * WEIR_SECOND);
    assert_int_equal(weir_permit_head(&first, &outcome), 0);
    assert_int_equal(weir_permit_sent(&second), WEIR_E_WITHDRAWN);
    assert_int_equal(weir_permit_head(&second, &outcome), 0); /* a withdrawn permit holds nothing */
    assert_int_equal(look_at(&pacing, "h").in_flight, 1);
    assert_int_equal(look_at(&pacing, "h").error_streak, 0);
    int64_t wait_ns = host_wait(&pacing, "h");
    assert_true(wait_ns >= 30 * WEIR_SECOND);
    pass(&pacing, 5 * WEIR_SECOND);
    outcome = answer_retry_after(429, 25 * WEIR_SECOND);
    assert_int_equal(weir_permit_finish(&first, &outcome), 0);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    assert_int_equal(host_wait(&pacing, "h"), wait_ns - 5 * WEIR_SECOND);
    pacing_tear_down(&pacing);
}

/* R24: without an interval between starts, a slow connect delays no other request. */
static void slow_connects_delay_no_request_without_an_interval(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_UNLIMITED);
    pacing.pace.max_in_flight = 3;
    pacing_start(&pacing);
    weir_permit slow[3], more;
    for (int i = 0; i < 3; i++)
        slow[i] = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    assert_int_equal(try_host(&pacing, "h", WEIR_REPORTS_SENT, &more).reason, WEIR_REASON_CONCURRENCY);
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(weir_permit_sent(&slow[0]), 0);
    weir_permit_abandon(&slow[1]);
    assert_int_equal(look_at(&pacing, "h").in_flight, 2);
    weir_outcome outcome = answer_retry_after(503, WEIR_MINUTE);
    assert_int_equal(weir_permit_finish(&slow[0], &outcome), 0);
    assert_int_equal(weir_permit_sent(&slow[2]), WEIR_E_WITHDRAWN); /* V2, K2 */
    assert_null(slow[2].pacer);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    pass(&pacing, 2 * WEIR_MINUTE);
    slow[0] = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    slow[1] = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    pass(&pacing, WEIR_MINUTE);
    assert_int_equal(weir_permit_sent(&slow[1]), 0);
    /* from now on there is an interval */
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "h", 1, WEIR_SECOND), 0);
    assert_int_equal(weir_permit_sent(&slow[0]), WEIR_E_WITHDRAWN);
    assert_int_equal(host_wait(&pacing, "h"), WEIR_SECOND);
    tell(&slow[1], 200);
    pass(&pacing, WEIR_SECOND);
    slow[0] = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    assert_int_equal(try_host(&pacing, "h", WEIR_REPORTS_SENT, &more).reason, WEIR_REASON_PACE);
    weir_permit_abandon(&slow[0]);
    pacing_tear_down(&pacing);
}

static void pause_withdraws_a_permit_that_was_not_sent(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit permit = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "h", 1, true), 0);
    assert_int_equal(weir_permit_sent(&permit), WEIR_E_WITHDRAWN);
    assert_true(host_wait(&pacing, "h") == WEIR_UNTIL_RELEASE);
    assert_int_equal(look_at(&pacing, "h").decision.reason, WEIR_REASON_PAUSED);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "h", 1, false), 0);
    assert_true(host_goes(&pacing, "h"));
    pacing_tear_down(&pacing);
}

/* ---- the end of a permit ---- */

static void permit_ends_once_however_often_it_is_finished_or_abandoned(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_UNLIMITED);
    pacing.pace.max_in_flight = 3;
    pacing_start(&pacing);
    weir_permit permits[3];
    for (int i = 0; i < 3; i++)
        permits[i] = acquired(&pacing, "h", 0);
    assert_int_equal(try_host(&pacing, "h", 0, &(weir_permit){0}).reason, WEIR_REASON_CONCURRENCY);
    for (int i = 0; i < 3; i++) {
        tell(&permits[0], 200);
        weir_permit_abandon(&permits[0]);
    }
    assert_int_equal(look_at(&pacing, "h").in_flight, 2);
    weir_permit_abandon(&permits[1]);
    weir_permit_abandon(&permits[1]);
    tell(&permits[1], 500);
    assert_int_equal(look_at(&pacing, "h").in_flight, 1);
    /* the outcome that came after the release was ignored */
    assert_int_equal(look_at(&pacing, "h").consecutive_failures, 0);
    weir_permit_abandon(&(weir_permit){0});
    weir_permit_abandon(NULL);
    weir_permit_abandon(&permits[2]);
    pacing_tear_down(&pacing);
}

static void permit_of_a_forgotten_host_does_not_end_requests_of_the_new_host(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_UNLIMITED);
    weir_permit old[2] = {acquired(&pacing, "h", 0), acquired(&pacing, "h", WEIR_REPORTS_SENT)};
    assert_int_equal(weir_pacer_forget(pacing.pacer, "h", 1), 0);
    weir_permit young = acquired(&pacing, "h", 0);
    tell(&old[0], 200);
    assert_int_equal(weir_permit_sent(&old[1]), WEIR_E_WITHDRAWN);
    assert_int_equal(look_at(&pacing, "h").in_flight, 1);
    tell(&young, 200);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    assert_int_equal(weir_pacer_forget(pacing.pacer, "nobody", 6), WEIR_E_ABSENT);
    pacing_tear_down(&pacing);
}

/* F3: the process was stopped between weir_permit_sent and the write. */
static void interval_counts_from_a_late_send(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit permit = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    weir_permit_sent_late(&permit); /* no effect before weir_permit_sent */
    assert_int_equal(weir_permit_sent(&permit), 0);
    pass(&pacing, 90 * WEIR_SECOND);
    weir_permit_sent_late(&permit);
    assert_true(host_wait(&pacing, "h") == WEIR_SECOND);
    tell(&permit, 200);
    pass(&pacing, WEIR_SECOND);
    weir_permit_sent_late(&permit); /* no effect after the end */
    weir_permit_sent_late(NULL);
    assert_true(host_goes(&pacing, "h"));
    pacing_tear_down(&pacing);
}

static void failed_connection_can_be_reported_before_sending(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    for (int i = 0; i < 5; i++) {
        weir_permit permit = acquired(&pacing, "h", WEIR_REPORTS_SENT);
        tell(&permit, 0);
        pass(&pacing, WEIR_SECOND);
    }
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    assert_int_equal(look_at(&pacing, "h").breaker, WEIR_BREAKER_OPEN);
    pacing_tear_down(&pacing);
}

static void outcome_without_a_permit_is_learned_and_ends_no_request(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit permit = acquired(&pacing, "h", 0);
    weir_outcome outcome = answer_retry_after(429, 20 * WEIR_SECOND);
    assert_int_equal(weir_pacer_tell(pacing.pacer, "h", 1, &outcome), 0);
    assert_int_equal(look_at(&pacing, "h").in_flight, 1);
    assert_true(host_wait(&pacing, "h") >= 20 * WEIR_SECOND);
    weir_permit_abandon(&permit);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    assert_int_equal(pacer_stats(&pacing).rejected, 1);
    /* A key that the pacer does not know, and invalid keys, have no effect. */
    assert_int_equal(weir_pacer_tell(pacing.pacer, "stranger", 8, &outcome), 0);
    assert_false(host_known(&pacing, "stranger"));
    assert_int_equal(weir_pacer_tell(pacing.pacer, "", 0, &outcome), 0);
    assert_int_equal(weir_pacer_tell(pacing.pacer, NULL, 3, &outcome), 0);
    pacing_tear_down(&pacing);
}

static void latency_is_measured_from_the_permit_if_not_reported(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit permit = acquired(&pacing, "h", 0);
    pass(&pacing, 640 * MS);
    weir_outcome outcome = answer(200, 0);
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    int64_t p95_ns = look_at(&pacing, "h").p95_latency_ns;
    assert_true(p95_ns > 639 * MS && p95_ns < 641 * MS);
    pacing_tear_down(&pacing);
}

/* ---- the breaker ---- */

static void open_breaker_fails_acquire_at_once_and_counts_the_denial(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_AIMD);
    for (int i = 0; i < 5; i++) {
        pass(&pacing, 10 * WEIR_SECOND);
        fetch(&pacing, "h", 500);
    }
    weir_permit permit;
    weir_decision decision;
    assert_int_equal(weir_pacer_acquire(pacing.pacer, "h", 1, 0, WEIR_FOREVER, NULL, &permit, &decision),
                     WEIR_E_CIRCUIT);
    assert_null(permit.pacer);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.reason, WEIR_REASON_BREAKER);
    assert_true(decision.wait_ns >= 15 * WEIR_SECOND && decision.wait_ns <= 17 * WEIR_SECOND);
    assert_string_equal(weir_error_detail(), "domain rate limiter refused: \"h\" is held by breaker");
    assert_int_equal(try_host(&pacing, "h", 0, &permit).reason, WEIR_REASON_BREAKER);
    weir_pacer_stats stats = pacer_stats(&pacing);
    assert_int_equal(stats.denied, 2);
    assert_int_equal(stats.open_circuits, 1);
    assert_int_equal(stats.half_open_circuits, 0);
    assert_int_equal(weir_pacer_acquire(pacing.pacer, "other", 5, 0, 0, NULL, &permit, NULL), 0);
    weir_permit_abandon(&permit);
    pass(&pacing, decision.wait_ns);
    assert_int_equal(pacer_stats(&pacing).half_open_circuits, 1);
    for (int i = 0; i < 3; i++) {
        pass(&pacing, 10 * WEIR_SECOND);
        fetch(&pacing, "h", 200);
    }
    assert_int_equal(look_at(&pacing, "h").breaker, WEIR_BREAKER_CLOSED);
    pacing_tear_down(&pacing);
}

/* ---- pacing that is off ---- */

static void disabled_pacer_permits_at_once_and_learns_and_shows_nothing(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.pace.off = true;
    pacing_start(&pacing);
    weir_outcome outcome = answer_retry_after(429, WEIR_HOUR);
    for (int i = 0; i < 10; i++) {
        weir_permit permit;
        weir_decision decision;
        assert_int_equal(weir_pacer_acquire(pacing.pacer, "h", 1, 0, 0, NULL, &permit, &decision), 0);
        assert_int_equal(decision.verdict, WEIR_GO);
        assert_int_equal(weir_permit_sent(&permit), 0);
        assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
        assert_int_equal(weir_pacer_tell(pacing.pacer, "h", 1, &outcome), 0);
        assert_int_equal(weir_pacer_try(pacing.pacer, "h", 1, NULL, 0, &permit, &decision), 0);
        assert_int_equal(decision.verdict, WEIR_GO);
    }
    weir_pace_ticket *ticket;
    weir_permit permit;
    weir_decision decision;
    assert_int_equal(weir_pacer_enqueue(pacing.pacer, "h", 1, NULL, 0, 0, ignore_wake, NULL, &ticket), 0);
    assert_int_equal(weir_pace_ticket_poll(ticket, &permit, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    weir_pace_ticket_free(ticket);
    weir_pacer_stats stats = pacer_stats(&pacing), nothing = {0};
    assert_memory_equal(&stats, &nothing, sizeof stats);
    weir_pace_entry *entries;
    size_t count;
    assert_int_equal(weir_pacer_top(pacing.pacer, 0, &entries, &count), 0);
    assert_int_equal(count, 0);
    weir_pacer_top_free(pacing.pacer, entries);
    assert_int_equal(weir_pacer_concurrency(pacing.pacer, "h", 1, 7), 7);
    pacing.pace.off = false;
    assert_int_equal(weir_pacer_change(pacing.pacer, &pacing.pace), 0);
    assert_true(host_goes(&pacing, "h"));
    assert_false(host_goes(&pacing, "h"));
    pacing_tear_down(&pacing);
}

/* ---- invalid arguments ---- */

static void invalid_pacer_calls_are_refused_and_change_nothing(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_pacer *pacer = pacing.pacer;
    weir_permit permit;
    weir_decision decision;
    weir_pace_ticket *ticket;
    char key[WEIR_PACE_KEY_MAX + 1];
    memset(key, 'k', sizeof key);
    weir_outcome outcome = {.size = 3};
    weir_pace_memory memory = {0};
    assert_int_equal(weir_pacer_acquire(NULL, "h", 1, 0, 0, NULL, &permit, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_acquire(pacer, NULL, 1, 0, 0, NULL, &permit, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_acquire(pacer, "h", 0, 0, 0, NULL, &permit, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_acquire(pacer, key, sizeof key, 0, 0, NULL, &permit, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_acquire(pacer, "h", 1, 4, 0, NULL, &permit, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_acquire(pacer, "h", 1, 0, -1, NULL, &permit, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_acquire(pacer, "h", 1, 0, 0, NULL, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_try(pacer, "h", 1, NULL, 0, &permit, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_enqueue(pacer, "h", 1, NULL, 0, 0, NULL, NULL, &ticket), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_enqueue(pacer, "h", 1, NULL, 0, 0, ignore_wake, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pace_ticket_poll(NULL, &permit, &decision), WEIR_E_INVAL);
    assert_int_equal(weir_permit_sent(NULL), WEIR_E_INVAL);
    assert_int_equal(weir_permit_finish(NULL, &outcome), WEIR_E_INVAL);
    assert_int_equal(weir_permit_finish(&permit, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_permit_finish(&permit, &outcome), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_tell(pacer, "h", 1, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_robots_delay(pacer, "h", 1, -1), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_pause(pacer, "h", 0, true), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_seed(pacer, "h", 1, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_memory(pacer, "h", 1, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_memory(pacer, "h", 1, &memory), WEIR_E_ABSENT);
    assert_int_equal(weir_pacer_stats_get(pacer, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_change(NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_export(NULL, NULL, NULL), 0);
    assert_int_equal(weir_pacer_sweep(NULL), 0);
    weir_pacer_close(NULL);
    weir_pacer_free(NULL);
    weir_pace_ticket_free(NULL);
    assert_int_equal(pacer_stats(&pacing).hosts, 0);
    assert_null(weir_pace_event_name((weir_pace_event_kind)99));
    pacing_tear_down(&pacing);
}

static void bad_options_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const weir_pacer_options bad[] = {
        {.size = 1},
        {.size = sizeof bad[0], .max_hosts = (size_t)WEIR_KEYS_MAX + 1},
        {.size = sizeof bad[0], .ttl_ns = -1},
        {.size = sizeof bad[0], .sweep_every_ns = WEIR_DURATION_MAX + 1},
        {.size = sizeof bad[0], .throttled_over_ns = -1},
        {.size = sizeof bad[0], .groups = 4},
        {.size = sizeof bad[0], .shards = SIZE_MAX},
    };
    weir_pacer *pacer;
    weir_pace_options pace;
    assert_int_equal(weir_pace_options_profile(&pace, WEIR_PROFILE_STRICT), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(weir_pacer_new(&pace, &bad[i], &pacer), WEIR_E_INVAL);
        assert_non_null(strchr(weir_error_detail(), ' '));
    }
    pace.max_rate = -1;
    assert_int_equal(weir_pacer_new(&pace, NULL, &pacer), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_new(NULL, NULL, NULL), WEIR_E_INVAL);
}

WEIR_TESTS(test(first_request_to_a_host_does_not_wait),
           test(second_request_within_the_interval_waits_for_the_rest_of_it),
           test(request_after_the_interval_does_not_wait), test(interval_is_the_larger_of_a_second_and_the_crawl_delay),
           test(crawl_delay_and_retry_after_apply_to_the_unlimited_profile),
           test(interval_counts_from_the_write_of_a_request_not_from_its_permit),
           test(unused_reservation_is_given_back_and_costs_nothing), test(unsent_permit_expires_after_2_minutes),
           test(retry_after_in_a_head_applies_before_the_request_ends),
           test(retry_after_withdraws_a_permit_that_was_not_sent),
           test(slow_connects_delay_no_request_without_an_interval), test(pause_withdraws_a_permit_that_was_not_sent),
           test(permit_ends_once_however_often_it_is_finished_or_abandoned),
           test(permit_of_a_forgotten_host_does_not_end_requests_of_the_new_host),
           test(interval_counts_from_a_late_send), test(failed_connection_can_be_reported_before_sending),
           test(outcome_without_a_permit_is_learned_and_ends_no_request),
           test(latency_is_measured_from_the_permit_if_not_reported),
           test(open_breaker_fails_acquire_at_once_and_counts_the_denial),
           test(disabled_pacer_permits_at_once_and_learns_and_shows_nothing),
           test(invalid_pacer_calls_are_refused_and_change_nothing), test(bad_options_are_refused_with_the_reason))
