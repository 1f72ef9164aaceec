/* SPDX-License-Identifier: MIT */
/* test_pacer_edges.c - tests of a pacer with extreme arguments, and of permits of forgotten
 * hosts. */
#include "limiter/pacer/delay.h"
#include "rig.h"

static void calls_without_a_pacer_or_a_permit_are_refused(void **state)
{
    (void)state;
    weir_pacer_stats stats;
    weir_pace_entry *entries;
    weir_pace_memory memory;
    size_t count;
    weir_outcome outcome = answer(200, MS);
    assert_int_equal(weir_pacer_stats_get(NULL, &stats), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_top(NULL, 1, &entries, &count), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_tell(NULL, "h", 1, &outcome), WEIR_E_INVAL);
    assert_int_equal(weir_permit_finish(NULL, &outcome), WEIR_E_INVAL);
    assert_int_equal(weir_permit_head(NULL, &outcome), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_robots_delay(NULL, "h", 1, 0), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_pause(NULL, "h", 1, true), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_memory(NULL, "h", 1, &memory), WEIR_E_INVAL);
}

static void keys_without_bytes_are_refused_by_each_call(void **state)
{
    (void)state;
    struct pacing pacing;
    weir_pace_memory memory = {.rate = 1};
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "", 0, 0), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "", 0, true), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_seed(pacing.pacer, "", 0, &memory), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_memory(pacing.pacer, "", 0, &memory), WEIR_E_INVAL);
    assert_int_equal(pacer_stats(&pacing).hosts, 0);
    pacing_tear_down(&pacing);
}

static void longest_durations_and_most_hosts_are_allowed(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.options.max_hosts = WEIR_KEYS_MAX;
    pacing.options.shards = 1;
    pacing.options.ttl_ns = pacing.options.throttled_over_ns = WEIR_DURATION_MAX;
    pacing_start(&pacing);
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "h", 1, WEIR_DURATION_MAX), 0);
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "h", 1, WEIR_DURATION_MAX + 1), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "h", 1, -1), WEIR_E_INVAL);
    pacing_tear_down(&pacing);
}

static void pacer_without_options_has_the_defaults(void **state)
{
    (void)state;
    weir_pacer *pacer;
    weir_pace_options pace;
    weir_permit permit;
    weir_decision decision;
    assert_int_equal(weir_pace_options_profile(&pace, WEIR_PROFILE_STRICT), 0);
    assert_int_equal(weir_pacer_new(&pace, NULL, &pacer), 0);
    assert_int_equal(weir_pacer_try(pacer, "h", 1, NULL, 0, &permit, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    weir_permit_abandon(&permit);
    weir_pacer_free(pacer);
}

/* Returns the wait after a Retry-After of an hour, with jitter drawn from this seed. */
static int64_t jittered(uint64_t seed)
{
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.options.seed = seed;
    pacing_start(&pacing);
    weir_permit permit = acquired(&pacing, "h", 0);
    weir_outcome outcome = answer_retry_after(429, WEIR_HOUR);
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    int64_t wait_ns = host_wait(&pacing, "h");
    assert_true(wait_ns >= WEIR_HOUR);
    pacing_tear_down(&pacing);
    return wait_ns;
}

static void pacers_with_the_same_seed_draw_the_same_jitter(void **state)
{
    (void)state;
    assert_int_equal(jittered(7), jittered(7));
    assert_true(jittered(7) != jittered(8));
    assert_true(jittered(0) != jittered(0) || jittered(0) != jittered(0)); /* seed 0 means random */
}

static void wait_counts_as_throttled_beyond_throttled_over_ns(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.options.throttled_over_ns = 400 * MS;
    pacing_start(&pacing);
    static const int64_t waits_ms[] = {400, 401};
    for (int i = 0; i < 2; i++) {
        struct fetcher fetcher;
        fetch(&pacing, "h", 200);
        pass(&pacing, WEIR_SECOND - waits_ms[i] * MS);
        fetcher_wait(&fetcher, &pacing, "h", 0, WEIR_FOREVER, NULL);
        pass(&pacing, waits_ms[i] * MS);
        assert_int_equal(fetcher_join(&fetcher), 0);
        tell(&fetcher.permit, 200);
        assert_int_equal(pacer_stats(&pacing).throttled, i);
        pass(&pacing, WEIR_SECOND);
    }
    pacing_tear_down(&pacing);
}

static void recommended_concurrency_is_at_least_one(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    assert_int_equal(weir_pacer_concurrency(pacing.pacer, "stranger", 8, 0), 1);
    fetch(&pacing, "known", 200);
    assert_int_equal(weir_pacer_concurrency(pacing.pacer, "known", 5, 0), 1);
    pacing_tear_down(&pacing);
}

static void delay_of_an_unknown_host_is_0(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    fetch(&pacing, "example.org", 200);
    assert_int_equal(wr_pacer_delay(pacing.pacer, "example.org", 11), WEIR_SECOND);
    assert_int_equal(wr_pacer_delay(pacing.pacer, "example.com", 11), 0);
    assert_int_equal(wr_pacer_delay(pacing.pacer, "example.org", 10), 0);
    pacing_tear_down(&pacing);
}

/* The permit passed to the failed call is a copy of one in flight: only the original may end that
 * request. */
static void failed_acquire_leaves_the_requests_in_flight_alone(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit permit = acquired(&pacing, "h", 0), again = permit;
    assert_int_equal(look_at(&pacing, "h").in_flight, 1);
    assert_int_equal(weir_pacer_acquire(pacing.pacer, "h", 1, 0, 0, NULL, &again, NULL), WEIR_E_TIMEOUT);
    assert_null(again.pacer);
    assert_int_equal(look_at(&pacing, "h").in_flight, 1);
    tell(&permit, 200);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    pacing_tear_down(&pacing);
}

static void cancelled_acquire_never_returns_go(void **state)
{
    (void)state;
    struct pacing pacing;
    weir_permit permit;
    weir_decision decision = {.verdict = WEIR_GO};
    weir_cancel *cancel;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
    weir_cancel_fire(cancel);
    assert_int_equal(weir_pacer_acquire(pacing.pacer, "h", 1, 0, WEIR_FOREVER, cancel, &permit, &decision),
                     WEIR_E_CANCELLED); /* although the host was free */
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_true(host_goes(&pacing, "h"));
    weir_cancel_free(cancel);
    pacing_tear_down(&pacing);
}

static void ticket_of_a_disabled_pacer_is_granted_once(void **state)
{
    (void)state;
    struct pacing pacing;
    weir_pace_ticket *ticket;
    weir_permit permit;
    weir_decision decision;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.pace.off = true;
    pacing_start(&pacing);
    assert_int_equal(weir_pacer_enqueue(pacing.pacer, "h", 1, NULL, 0, WEIR_FOREVER, ignore_wake, NULL, &ticket), 0);
    assert_int_equal(weir_pace_ticket_poll(ticket, &permit, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_int_equal(weir_pace_ticket_poll(ticket, &permit, &decision), WEIR_E_INVAL);
    weir_pace_ticket_free(ticket);
    pacing_tear_down(&pacing);
}

/* The host was forgotten and then added again: an old permit does not change its state. */
static void late_send_to_a_forgotten_host_does_not_delay_the_new_one(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_permit old = acquired(&pacing, "h", 0);
    assert_int_equal(weir_pacer_forget(pacing.pacer, "h", 1), 0);
    pass(&pacing, 10 * WEIR_SECOND);
    fetch(&pacing, "h", 200);
    pass(&pacing, 600 * MS);
    weir_permit_sent_late(&old);
    assert_int_equal(host_wait(&pacing, "h"), 400 * MS);
    weir_permit_abandon(&old);
    assert_int_equal(host_wait(&pacing, "h"), 400 * MS);
    pacing_tear_down(&pacing);
}

WEIR_TESTS(test(calls_without_a_pacer_or_a_permit_are_refused), test(keys_without_bytes_are_refused_by_each_call),
           test(longest_durations_and_most_hosts_are_allowed), test(pacer_without_options_has_the_defaults),
           test(pacers_with_the_same_seed_draw_the_same_jitter),
           test(wait_counts_as_throttled_beyond_throttled_over_ns), test(recommended_concurrency_is_at_least_one),
           test(delay_of_an_unknown_host_is_0), test(failed_acquire_leaves_the_requests_in_flight_alone),
           test(cancelled_acquire_never_returns_go), test(ticket_of_a_disabled_pacer_is_granted_once),
           test(late_send_to_a_forgotten_host_does_not_delay_the_new_one))
