/* SPDX-License-Identifier: MIT */
/* test_pacer_waiting.c - tests of many callers that wait for one host: order, times, failures. */
#include "rig.h"

/* ---- timelines ---- */

/* S1-16: with a Crawl-delay of 1 s, calls at 0, 0.5 and 1.2 s start at 0, 1.0 and 2.0 s. */
static void calls_at_odd_times_start_a_crawl_delay_apart(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "h", 1, WEIR_SECOND), 0);
    int64_t start_at = weir_clock_now(pacing.clock);
    struct fetcher second, third;
    weir_permit first = acquired(&pacing, "h", 0);
    assert_true(first.held[0].sent_at == start_at);
    pass(&pacing, 500 * MS);
    fetcher_wait(&second, &pacing, "h", 0, WEIR_FOREVER, NULL);
    pass(&pacing, 500 * MS);
    assert_int_equal(fetcher_join(&second), 0);
    assert_true(second.permit.held[0].sent_at == start_at + WEIR_SECOND);
    pass(&pacing, 200 * MS);
    fetcher_wait(&third, &pacing, "h", 0, WEIR_FOREVER, NULL);
    pass(&pacing, 800 * MS);
    assert_int_equal(fetcher_join(&third), 0);
    assert_true(third.permit.held[0].sent_at == start_at + 2 * WEIR_SECOND);
    tell(&first, 200);
    tell(&second.permit, 200);
    tell(&third.permit, 200);
    pacing_tear_down(&pacing);
}

#define WORKERS 5

/* S1-17, S1-6: k callers of a host start in the order of their calls, one per interval. Hosts do
 * not wait for each other. */
static void workers_of_one_host_start_in_order_one_interval_apart(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    int64_t start_at = weir_clock_now(pacing.clock);
    struct fetcher workers[WORKERS];
    workers[0] = (struct fetcher){.pacing = &pacing, .key = "h", .timeout_ns = WEIR_FOREVER};
    fetcher_start(&workers[0]);
    assert_int_equal(fetcher_join(&workers[0]), 0);
    for (int i = 1; i < WORKERS; i++)
        fetcher_wait(&workers[i], &pacing, "h", 0, WEIR_FOREVER, NULL);
    assert_int_equal(look_at(&pacing, "h").waiters, WORKERS - 1);
    assert_true(host_goes(&pacing, "another"));
    assert_false(host_goes(&pacing, "h"));
    for (int i = 1; i < WORKERS; i++) {
        pass(&pacing, WEIR_SECOND - 1);
        assert_int_equal(atomic_load(&pacing.finished), i);
        pass(&pacing, 1);
        assert_int_equal(fetcher_join(&workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(workers[i].place, i);
        assert_true(workers[i].permit.held[0].sent_at == start_at + i * WEIR_SECOND);
        tell(&workers[i].permit, 200);
    }
    assert_int_equal(pacer_stats(&pacing).requests, WORKERS + 1);
    pacing_tear_down(&pacing);
}

/* S1-22: five workers at five hosts start at the same moment. */
static void workers_of_different_hosts_all_start_at_once(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    static const char *const keys[WORKERS] = {"a", "b", "c", "d", "e"};
    struct fetcher workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct fetcher){.pacing = &pacing, .key = keys[i], .timeout_ns = WEIR_FOREVER};
        fetcher_start(&workers[i]);
    }
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(fetcher_join(&workers[i]), 0);
        assert_int_equal(workers[i].permit.waited_ns, 0);
        tell(&workers[i].permit, 200);
    }
    pacing_tear_down(&pacing);
}

/* S1-32: ten workers that each compute their own wait start together; through the pacer they start
 * one by one. */
static void ten_workers_hit_a_host_one_by_one_where_naive_ones_hit_it_together(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    int64_t naive_at[10], last_at = weir_clock_now(pacing.clock);
    struct fetcher workers[10];
    weir_permit first = acquired(&pacing, "h", 0);
    for (int i = 0; i < 10; i++) {
        naive_at[i] = last_at + WEIR_SECOND; /* it does not see the other workers */
        fetcher_wait(&workers[i], &pacing, "h", 0, WEIR_FOREVER, NULL);
    }
    int together = 0, apart = 0;
    for (int i = 0; i < 10; i++) {
        pass(&pacing, WEIR_SECOND);
        assert_int_equal(fetcher_join(&workers[i]), 0);
        together += i > 0 && naive_at[i] - naive_at[i - 1] < WEIR_SECOND;
        apart += workers[i].permit.held[0].sent_at - last_at >= WEIR_SECOND;
        last_at = workers[i].permit.held[0].sent_at;
        tell(&workers[i].permit, 200);
    }
    assert_int_equal(together, 9);
    assert_int_equal(apart, 10);
    tell(&first, 200);
    pacing_tear_down(&pacing);
}

static void retry_after_holds_present_and_later_callers(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.pace.jitter_over_ns = WEIR_HOUR;
    pacing_start(&pacing);
    int64_t start_at = weir_clock_now(pacing.clock);
    weir_permit first = acquired(&pacing, "h", 0);
    struct fetcher early, late;
    fetcher_wait(&early, &pacing, "h", 0, WEIR_FOREVER, NULL);
    pass(&pacing, 500 * MS);
    weir_outcome outcome = answer_retry_after(429, 20 * WEIR_SECOND);
    assert_int_equal(weir_permit_finish(&first, &outcome), 0);
    fetcher_wait(&late, &pacing, "h", 0, WEIR_FOREVER, NULL);
    pass(&pacing, 20 * WEIR_SECOND - 1);
    assert_int_equal(atomic_load(&pacing.finished), 0);
    pass(&pacing, 1);
    assert_int_equal(fetcher_join(&early), 0);
    assert_true(early.permit.held[0].sent_at == start_at + 20500 * MS);
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(fetcher_join(&late), 0);
    assert_int_equal(late.permit.waited_for, WEIR_REASON_RETRY_AFTER);
    tell(&early.permit, 200);
    tell(&late.permit, 200);
    pacing_tear_down(&pacing);
}

/* A request that connects slowly holds up those behind it. The interval counts from its send. */
static void next_caller_waits_until_the_one_before_has_sent(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit slow = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    struct fetcher next;
    fetcher_wait(&next, &pacing, "h", WEIR_REPORTS_SENT, WEIR_FOREVER, NULL);
    pass(&pacing, 30 * WEIR_SECOND);
    assert_int_equal(atomic_load(&pacing.finished), 0);
    assert_int_equal(weir_permit_sent(&slow), 0);
    test_await_waiters(pacing.clock, 1);
    pass(&pacing, WEIR_SECOND - 1);
    assert_int_equal(atomic_load(&pacing.finished), 0);
    pass(&pacing, 1);
    assert_int_equal(fetcher_join(&next), 0);
    assert_int_equal(weir_permit_sent(&next.permit), 0);
    assert_true(next.permit.held[0].sent_at - slow.held[0].sent_at == WEIR_SECOND);
    tell(&slow, 200);
    tell(&next.permit, 200);
    pacing_tear_down(&pacing);
}

static void permit_given_back_starts_the_next_caller_at_once(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit unused = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    struct fetcher next;
    fetcher_wait(&next, &pacing, "h", 0, WEIR_FOREVER, NULL);
    weir_permit_abandon(&unused);
    assert_int_equal(fetcher_join(&next), 0);
    tell(&next.permit, 200);
    pacing_tear_down(&pacing);
}

/* R13: an interval between starts allows overlapping requests; a limit in flight does not. */
static void response_starts_the_next_caller_at_a_limit_in_flight(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.pace.max_in_flight = 2;
    pacing_start(&pacing);
    weir_permit first = acquired(&pacing, "h", 0);
    pass(&pacing, WEIR_SECOND);
    weir_permit second = acquired(&pacing, "h", 0); /* the first is still in flight */
    pass(&pacing, WEIR_SECOND);
    struct fetcher third;
    fetcher_wait(&third, &pacing, "h", 0, WEIR_FOREVER, NULL);
    assert_int_equal(look_at(&pacing, "h").decision.reason, WEIR_REASON_CONCURRENCY);
    pass(&pacing, WEIR_HOUR);
    assert_int_equal(atomic_load(&pacing.finished), 0);
    tell(&first, 200);
    assert_int_equal(fetcher_join(&third), 0);
    tell(&second, 200);
    tell(&third.permit, 200);
    pacing_tear_down(&pacing);
}

/* ---- callers that stop waiting ---- */

static void cancelled_wait_ends_at_once_and_leaves_no_gap(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    int64_t start_at = weir_clock_now(pacing.clock);
    weir_permit first = acquired(&pacing, "example.org", 0);
    weir_cancel *cancel;
    assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
    struct fetcher doomed, next;
    fetcher_wait(&doomed, &pacing, "example.org", 0, WEIR_FOREVER, cancel);
    fetcher_wait(&next, &pacing, "example.org", 0, WEIR_FOREVER, NULL);
    weir_cancel_fire(cancel);
    assert_int_equal(fetcher_join(&doomed), WEIR_E_CANCELLED);
    assert_string_equal(doomed.detail, "domain rate limiter cancelled: \"example.org\" is held by pace");
    assert_null(doomed.permit.pacer);
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(fetcher_join(&next), 0);
    assert_true(next.permit.held[0].sent_at == start_at + WEIR_SECOND);
    weir_permit never;
    assert_int_equal(weir_pacer_acquire(pacing.pacer, "fresh", 5, 0, WEIR_FOREVER, cancel, &never, NULL),
                     WEIR_E_CANCELLED);
    tell(&first, 200);
    tell(&next.permit, 200);
    assert_int_equal(look_at(&pacing, "example.org").in_flight, 0);
    weir_cancel_free(cancel);
    pacing_tear_down(&pacing);
}

/* S1-9 */
static void deadline_of_two_minutes_bounds_the_wait(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit first = acquired(&pacing, "h", 0);
    weir_outcome outcome = answer_retry_after(503, WEIR_HOUR);
    assert_int_equal(weir_permit_finish(&first, &outcome), 0);
    struct fetcher patient;
    fetcher_wait(&patient, &pacing, "h", 0, 2 * WEIR_MINUTE, NULL);
    pass(&pacing, 2 * WEIR_MINUTE - 1);
    assert_int_equal(atomic_load(&pacing.finished), 0);
    pass(&pacing, 1);
    assert_int_equal(fetcher_join(&patient), WEIR_E_TIMEOUT);
    assert_int_equal(patient.decision.reason, WEIR_REASON_RETRY_AFTER);
    assert_true(patient.decision.wait_ns >= WEIR_HOUR - 2 * WEIR_MINUTE);
    assert_string_equal(patient.detail, "domain rate limiter timed out: \"h\" is held by retry_after");
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    assert_int_equal(look_at(&pacing, "h").waiters, 0);
    pacing_tear_down(&pacing);
}

static void open_host(struct pacing *pacing, const char *key)
{
    weir_outcome outcome = answer(500, MS);
    for (int i = 0; i < 5; i++)
        assert_int_equal(weir_pacer_tell(pacing->pacer, key, strlen(key), &outcome), 0);
}

/* S0-32, R30: callers that wait already fail when the breaker opens, also behind one with
 * WEIR_WAITS_BREAKER. */
static void opening_breaker_fails_waiters_except_with_waits_breaker(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.pace.jitter_over_ns = WEIR_HOUR;
    pacing_start(&pacing);
    fetch(&pacing, "h", 200);
    struct fetcher impatient[3], insistent[2];
    fetcher_wait(&impatient[0], &pacing, "h", 0, WEIR_FOREVER, NULL);
    fetcher_wait(&insistent[0], &pacing, "h", WEIR_WAITS_BREAKER, WEIR_FOREVER, NULL);
    fetcher_wait(&impatient[1], &pacing, "h", 0, WEIR_FOREVER, NULL);
    fetcher_wait(&insistent[1], &pacing, "h", WEIR_WAITS_BREAKER, WEIR_FOREVER, NULL);
    fetcher_wait(&impatient[2], &pacing, "h", 0, WEIR_FOREVER, NULL);
    open_host(&pacing, "h");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fetcher_join(&impatient[i]), WEIR_E_CIRCUIT);
        assert_int_equal(impatient[i].decision.reason, WEIR_REASON_BREAKER);
    }
    test_await_waiters(pacing.clock, 2);
    assert_int_equal(pacer_stats(&pacing).denied, 3);
    pass(&pacing, 15 * WEIR_SECOND);
    assert_int_equal(fetcher_join(&insistent[0]), 0);
    tell(&insistent[0].permit, 200);
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(fetcher_join(&insistent[1]), 0);
    tell(&insistent[1].permit, 200);
    pacing_tear_down(&pacing);
}

/* R8: a half-open breaker allows three requests in flight; the others wait and do not fail. */
static void half_open_breaker_lets_its_probes_through_and_the_others_wait(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_UNLIMITED);
    pacing.pace.breaker = true;
    pacing.pace.jitter_over_ns = WEIR_HOUR;
    pacing_start(&pacing);
    fetch(&pacing, "h", 200);
    open_host(&pacing, "h");
    pass(&pacing, 15 * WEIR_SECOND);
    weir_permit probes[3];
    for (int i = 0; i < 3; i++)
        probes[i] = acquired(&pacing, "h", 0);
    struct fetcher others[4];
    for (int i = 0; i < 4; i++)
        fetcher_wait(&others[i], &pacing, "h", 0, WEIR_FOREVER, NULL);
    pass(&pacing, WEIR_HOUR);
    assert_int_equal(atomic_load(&pacing.finished), 0);
    for (int i = 0; i < 3; i++)
        tell(&probes[i], 200);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fetcher_join(&others[i]), 0);
        tell(&others[i].permit, 200);
    }
    assert_int_equal(look_at(&pacing, "h").breaker, WEIR_BREAKER_CLOSED);
    pacing_tear_down(&pacing);
}

/* ---- changes of options ---- */

/* K7 */
static void stricter_options_apply_at_once_to_waiters(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.pace.min_interval_ns = 100 * MS; /* 10 starts per second */
    pacing_start(&pacing);
    int64_t last_at = weir_clock_now(pacing.clock);
    weir_permit first = acquired(&pacing, "h", 0);
    struct fetcher waiters[10];
    for (int i = 0; i < 10; i++)
        fetcher_wait(&waiters[i], &pacing, "h", 0, WEIR_FOREVER, NULL);
    pacing.pace.min_interval_ns = WEIR_SECOND;
    assert_int_equal(weir_pacer_change(pacing.pacer, &pacing.pace), 0);
    for (int i = 0; i < 10; i++) {
        pass(&pacing, WEIR_SECOND - 1);
        assert_int_equal(atomic_load(&pacing.finished), i);
        pass(&pacing, 1);
        assert_int_equal(fetcher_join(&waiters[i]), 0);
        assert_true(waiters[i].permit.held[0].sent_at - last_at == WEIR_SECOND);
        last_at = waiters[i].permit.held[0].sent_at;
        tell(&waiters[i].permit, 200);
    }
    tell(&first, 200);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    pacing_tear_down(&pacing);
}

static void looser_options_release_waiters_at_once(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_UNLIMITED);
    pacing.pace.min_interval_ns = WEIR_SECOND;
    pacing_start(&pacing);
    fetch(&pacing, "h", 200);
    struct fetcher waiter;
    fetcher_wait(&waiter, &pacing, "h", 0, WEIR_FOREVER, NULL);
    pass(&pacing, 200 * MS);
    pacing.pace.min_interval_ns = 200 * MS;
    assert_int_equal(weir_pacer_change(pacing.pacer, &pacing.pace), 0);
    assert_int_equal(fetcher_join(&waiter), 0);
    tell(&waiter.permit, 200);
    pacing_tear_down(&pacing);
}

static void change_of_strategy_ring_or_window_is_refused(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_pace_options other;
    assert_int_equal(weir_pace_options_profile(&other, WEIR_PROFILE_AIMD), 0);
    assert_int_equal(weir_pacer_change(pacing.pacer, &other), WEIR_E_INVAL);
    other = pacing.pace;
    other.latency_ring = 128;
    assert_int_equal(weir_pacer_change(pacing.pacer, &other), WEIR_E_INVAL);
    other = pacing.pace;
    other.window_ns = WEIR_MINUTE;
    assert_int_equal(weir_pacer_change(pacing.pacer, &other), WEIR_E_INVAL);
    other = pacing.pace;
    other.min_interval_ns = -1;
    assert_int_equal(weir_pacer_change(pacing.pacer, &other), WEIR_E_INVAL);
    fetch(&pacing, "h", 200);
    assert_true(host_wait(&pacing, "h") == WEIR_SECOND); /* the old options hold */
    for (int i = 1; i <= 5; i++) {                       /* valid options still take effect */
        pacing.pace.min_interval_ns = i * WEIR_SECOND;
        assert_int_equal(weir_pacer_change(pacing.pacer, &pacing.pace), 0);
        assert_true(host_wait(&pacing, "h") == i * WEIR_SECOND);
    }
    pacing_tear_down(&pacing);
}

/* ---- closing and freeing ---- */

static void closing_a_pacer_fails_waiters_and_keeps_permits_usable(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit first = acquired(&pacing, "h", 0), permit;
    weir_permit unsent = acquired(&pacing, "k", WEIR_REPORTS_SENT);
    struct fetcher waiters[2];
    fetcher_wait(&waiters[0], &pacing, "h", 0, WEIR_FOREVER, NULL);
    fetcher_wait(&waiters[1], &pacing, "h", WEIR_WAITS_BREAKER, WEIR_FOREVER, NULL);
    weir_pacer_close(pacing.pacer);
    weir_pacer_close(pacing.pacer);
    assert_int_equal(fetcher_join(&waiters[0]), WEIR_E_CLOSED);
    assert_int_equal(fetcher_join(&waiters[1]), WEIR_E_CLOSED);
    assert_int_equal(weir_pacer_acquire(pacing.pacer, "h", 1, 0, 0, NULL, &permit, NULL), WEIR_E_CLOSED);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "h", 1, true), WEIR_E_CLOSED);
    tell(&first, 500);
    weir_permit_abandon(&unsent);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    assert_int_equal(look_at(&pacing, "h").consecutive_failures, 1);
    assert_int_equal(look_at(&pacing, "k").in_flight, 0);
    pacing_tear_down(&pacing);
}

static void freeing_a_pacer_fails_waiters_and_leaks_nothing(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    fetch(&pacing, "h", 200);
    struct fetcher waiters[3];
    for (int i = 0; i < 3; i++)
        fetcher_wait(&waiters[i], &pacing, "h", 0, WEIR_FOREVER, NULL);
    weir_pacer_free(pacing.pacer);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fetcher_join(&waiters[i]), WEIR_E_CLOSED);
    pacing.pacer = NULL;
    pacing_tear_down(&pacing);
}

static void forgetting_a_host_fails_its_waiters(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    fetch(&pacing, "h", 200);
    struct fetcher waiter;
    fetcher_wait(&waiter, &pacing, "h", 0, WEIR_FOREVER, NULL);
    assert_int_equal(weir_pacer_forget(pacing.pacer, "h", 1), 0);
    assert_int_equal(fetcher_join(&waiter), WEIR_E_CLOSED);
    assert_true(host_goes(&pacing, "h"));
    pacing_tear_down(&pacing);
}

/* K5: any thread may end the permit of a thread that has exited. */
static void permit_of_an_exited_thread_can_be_finished_by_another(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    struct fetcher worker = {.pacing = &pacing, .key = "h", .flags = WEIR_REPORTS_SENT};
    fetcher_start(&worker);
    assert_int_equal(fetcher_join(&worker), 0);
    assert_int_equal(look_at(&pacing, "h").in_flight, 1);
    assert_int_equal(weir_permit_sent(&worker.permit), 0);
    tell(&worker.permit, 200);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    assert_int_equal(look_at(&pacing, "h").success_streak, 1);
    pacing_tear_down(&pacing);
}

/* ---- event loops ---- */

static void count_wake(void *context)
{
    (void)atomic_fetch_add((atomic_int *)context, 1);
}

static weir_pace_ticket *enqueued(struct pacing *pacing, const char *key, uint32_t flags, int64_t timeout_ns,
                                  atomic_int *wakes)
{
    weir_pace_ticket *ticket;
    assert_int_equal(
        weir_pacer_enqueue(pacing->pacer, key, strlen(key), NULL, flags, timeout_ns, count_wake, wakes, &ticket), 0);
    return ticket;
}

static weir_decision polled(weir_pace_ticket *ticket, weir_permit *ret_permit)
{
    weir_decision decision;
    assert_int_equal(weir_pace_ticket_poll(ticket, ret_permit, &decision), 0);
    assert_int_equal(decision.verdict == WEIR_GO, ret_permit->pacer != NULL);
    return decision;
}

static void ticket_says_when_to_poll_and_hands_its_permit_over_once(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    atomic_int wakes = 0;
    weir_permit permit;
    fetch(&pacing, "h", 200);
    weir_pace_ticket *first = enqueued(&pacing, "h", 0, WEIR_FOREVER, &wakes);
    weir_pace_ticket *second = enqueued(&pacing, "h", WEIR_REPORTS_SENT, WEIR_FOREVER, &wakes);
    assert_true(polled(first, &permit).wait_ns == WEIR_SECOND);
    assert_int_equal(polled(second, &permit).verdict, WEIR_WAIT);
    pass(&pacing, WEIR_SECOND);
    /* it does not overtake the first */
    assert_int_equal(polled(second, &permit).verdict, WEIR_WAIT);
    assert_int_equal(polled(first, &permit).verdict, WEIR_GO);
    assert_true(permit.sent);
    assert_true(permit.waited_ns == WEIR_SECOND);
    assert_true(atomic_load(&wakes) > 0); /* the second ticket must be polled */
    weir_decision decision;
    weir_permit again;
    assert_int_equal(weir_pace_ticket_poll(first, &again, &decision), WEIR_E_INVAL);
    weir_pace_ticket_free(first);
    tell(&permit, 200);
    assert_true(polled(second, &permit).wait_ns == WEIR_SECOND);
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(polled(second, &permit).verdict, WEIR_GO);
    weir_pace_ticket_free(second);
    assert_int_equal(weir_permit_sent(&permit), 0);
    tell(&permit, 200);
    pacing_tear_down(&pacing);
}

static void ticket_that_is_freed_or_fails_holds_nothing(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    atomic_int wakes = 0;
    weir_permit permit;
    weir_decision decision;
    fetch(&pacing, "h", 200);
    weir_pace_ticket *left = enqueued(&pacing, "h", 0, WEIR_FOREVER, &wakes);
    weir_pace_ticket *late = enqueued(&pacing, "h", 0, 500 * MS, &wakes);
    weir_pace_ticket *stuck = enqueued(&pacing, "h", 0, WEIR_FOREVER, &wakes);
    weir_pace_ticket_free(left);
    pass(&pacing, 500 * MS);
    assert_int_equal(weir_pace_ticket_poll(late, &permit, &decision), WEIR_E_TIMEOUT);
    assert_int_equal(weir_pace_ticket_poll(late, &permit, &decision), WEIR_E_TIMEOUT);
    weir_pace_ticket_free(late);
    open_host(&pacing, "h");
    assert_int_equal(weir_pace_ticket_poll(stuck, &permit, &decision), WEIR_E_CIRCUIT);
    weir_pace_ticket_free(stuck);
    weir_pace_ticket *never;
    assert_int_equal(weir_pacer_enqueue(pacing.pacer, "h", 1, NULL, 0, WEIR_FOREVER, count_wake, &wakes, &never),
                     WEIR_E_CIRCUIT);
    assert_int_equal(pacer_stats(&pacing).denied, 2);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    assert_int_equal(look_at(&pacing, "h").waiters, 0);
    weir_pace_ticket *closed = enqueued(&pacing, "k", 0, WEIR_FOREVER, &wakes);
    weir_pacer_free(pacing.pacer); /* the pacer is kept until the ticket is freed */
    assert_int_equal(weir_pace_ticket_poll(closed, &permit, &decision), WEIR_E_CLOSED);
    weir_pace_ticket_free(closed);
    pacing.pacer = NULL;
    pacing_tear_down(&pacing);
}

WEIR_TESTS(
    test(calls_at_odd_times_start_a_crawl_delay_apart), test(workers_of_one_host_start_in_order_one_interval_apart),
    test(workers_of_different_hosts_all_start_at_once),
    test(ten_workers_hit_a_host_one_by_one_where_naive_ones_hit_it_together),
    test(retry_after_holds_present_and_later_callers), test(next_caller_waits_until_the_one_before_has_sent),
    test(permit_given_back_starts_the_next_caller_at_once), test(response_starts_the_next_caller_at_a_limit_in_flight),
    test(cancelled_wait_ends_at_once_and_leaves_no_gap), test(deadline_of_two_minutes_bounds_the_wait),
    test(opening_breaker_fails_waiters_except_with_waits_breaker),
    test(half_open_breaker_lets_its_probes_through_and_the_others_wait),
    test(stricter_options_apply_at_once_to_waiters), test(looser_options_release_waiters_at_once),
    test(change_of_strategy_ring_or_window_is_refused), test(closing_a_pacer_fails_waiters_and_keeps_permits_usable),
    test(freeing_a_pacer_fails_waiters_and_leaks_nothing), test(forgetting_a_host_fails_its_waiters),
    test(permit_of_an_exited_thread_can_be_finished_by_another),
    test(ticket_says_when_to_poll_and_hands_its_permit_over_once), test(ticket_that_is_freed_or_fails_holds_nothing))
