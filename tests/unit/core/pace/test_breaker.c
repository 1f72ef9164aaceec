/* SPDX-License-Identifier: MIT */
/* test_breaker.c - tests the circuit breaker of a gate (S0-30 ... S0-39, S0-87, R7, R8, R23, R30,
 * E6). */
#include "rig.h"

/* Returns options with a breaker and without pacing. */
static weir_pace_options breaker_options(void)
{
    weir_pace_options options = bare_options();
    options.breaker = true;
    return options;
}

/* Returns options for tide without limits, so that only the breaker holds requests. */
static weir_pace_options tide_options(void)
{
    weir_pace_options options = profile_options(WEIR_PROFILE_ADAPTIVE);
    options.max_rate = 0;
    options.max_in_flight = 0;
    return options;
}

static weir_breaker_state state_at(const struct gate_fixture *rig, int64_t now)
{
    return rig_look(rig, now).breaker;
}

/* Reports `times` answers at `now` to requests that this gate did not start, so that push-backs do
 * not matter. */
static void tells(struct gate_fixture *rig, int status, int times, int64_t now)
{
    for (int i = 0; i < times; i++)
        rig_tell_all(rig, NULL, (weir_outcome){.status = status, .latency_ns = MS}, now, 0);
}

static void open_it(struct gate_fixture *rig, int64_t now)
{
    tells(rig, 500, 5, now);
    assert_int_equal(state_at(rig, now), WEIR_BREAKER_OPEN);
}

/* S0-30, S0-87 */
static void error_rate_opens_the_breaker_after_enough_samples(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, breaker_options());
    for (int i = 0; i < 4; i++) { /* 4 failures of 8, never two in a row */
        tells(&rig, 200, 1, T0);
        tells(&rig, 500, 1, T0);
    }
    assert_int_equal(state_at(&rig, T0), WEIR_BREAKER_CLOSED);
    tells(&rig, 200, 1, T0);
    tells(&rig, 500, 1, T0 + S); /* 5 failures of 10 */
    assert_int_equal(rig.news & WR_GATE_CHANGE_BREAKER, WR_GATE_CHANGE_BREAKER);
    assert_int_equal(state_at(&rig, T0 + S), WEIR_BREAKER_OPEN);
    rig_release(&rig);

    rig_init(&rig, breaker_options());
    for (int i = 0; i < 20; i++) { /* failures just below half */
        tells(&rig, 200, 1, T0);
        tells(&rig, 500, i % 5 != 0, T0);
    }
    assert_int_equal(state_at(&rig, T0), WEIR_BREAKER_CLOSED);
    rig_release(&rig);
}

static void errors_outside_the_window_do_not_open_the_breaker(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, breaker_options());
    for (int i = 0; i < 4; i++) {
        tells(&rig, 200, 1, T0);
        tells(&rig, 500, 1, T0);
    }
    tells(&rig, 200, 1, T0);
    tells(&rig, 500, 1, T0 + 30 * S);
    assert_int_equal(state_at(&rig, T0 + 30 * S), WEIR_BREAKER_CLOSED);
    rig_release(&rig);
}

/* S0-31, S0-37, S0-38 */
static void five_failures_in_a_row_open_the_breaker(void **state)
{
    (void)state;
    static const int failures[] = {0, 429, 500, 502, 503, 599, 999};
    static const int no_failures[] = {200, 204, 301, 304, 400, 401, 403, 404, 410, 418};
    struct gate_fixture rig;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        rig_init(&rig, breaker_options());
        tells(&rig, failures[i], 4, T0);
        assert_int_equal(state_at(&rig, T0), WEIR_BREAKER_CLOSED);
        assert_int_equal(rig_look(&rig, T0).consecutive_failures, 4);
        tells(&rig, failures[i], 1, T0);
        assert_int_equal(state_at(&rig, T0), WEIR_BREAKER_OPEN);
        rig_release(&rig);
    }
    for (size_t i = 0; i < sizeof no_failures / sizeof *no_failures; i++) {
        rig_init(&rig, breaker_options());
        tells(&rig, no_failures[i], 100, T0);
        assert_int_equal(state_at(&rig, T0), WEIR_BREAKER_CLOSED);
        tells(&rig, 500, 4, T0);
        tells(&rig, no_failures[i], 1, T0); /* a success ends the row of failures */
        tells(&rig, 500, 4, T0);
        assert_int_equal(state_at(&rig, T0), WEIR_BREAKER_CLOSED);
        rig_release(&rig);
    }
}

/* S0-32, S0-33, R30: the breaker half-opens by time alone, without a call. */
static void open_breaker_waits_until_its_time_has_passed(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, breaker_options());
    open_it(&rig, T0);
    assert_waits(&rig, T0, WEIR_REASON_BREAKER, 15 * S);
    assert_waits(&rig, T0 + 15 * S - 1, WEIR_REASON_BREAKER, 1);
    assert_true(rig_goes(&rig, T0 + 15 * S));
    assert_int_equal(state_at(&rig, T0 + 15 * S), WEIR_BREAKER_HALF_OPEN);
    assert_waits(&rig, T0 + 15 * S - 1, WEIR_REASON_BREAKER, 1); /* asking changes no state */
    rig_release(&rig);
}

/* R30: a caller that does not wait for an open breaker learns of it, whatever other bounds hold. */
static void open_breaker_is_named_before_all_other_bounds(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = breaker_options();
    options.max_in_flight = 1;
    rig_init(&rig, options);
    rig_send(&rig, T0);
    open_it(&rig, T0);
    wr_gate_pause(rig.gate, true);
    wr_gate_hold(rig.gate, &rig.options, T0 + WEIR_HOUR, T0);
    assert_waits(&rig, T0, WEIR_REASON_BREAKER, 15 * S);
    assert_waits(&rig, T0 + 15 * S, WEIR_REASON_PAUSED, WEIR_UNTIL_RELEASE);
    wr_gate_pause(rig.gate, false);
    assert_waits(&rig, T0 + 15 * S, WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE);
    rig_release(&rig);
}

/* S0-34, R8, E6 */
static void half_open_breaker_keeps_probes_in_flight_within_its_budget(void **state)
{
    (void)state;
    struct gate_fixture rig;
    struct wr_gate_start probes[3];
    int count = 0;
    int64_t now = T0 + 15 * S;
    rig_init(&rig, breaker_options());
    open_it(&rig, T0);
    for (int asker = 0; asker < 64; asker++)
        if (rig_goes(&rig, now + asker)) {
            assert_true(count < 3);
            probes[count++] = rig_send(&rig, now + asker);
        }
    assert_int_equal(count, 3);
    assert_waits(&rig, now + 64, WEIR_REASON_BREAKER, WEIR_UNTIL_RELEASE);
    rig_tell(&rig, probes[0], 200, now + 65); /* one success frees one place */
    rig_send(&rig, now + 66);
    assert_waits(&rig, now + 66, WEIR_REASON_BREAKER, WEIR_UNTIL_RELEASE);
    /* a request that was given up frees one, too */
    wr_gate_drop(rig.gate, &rig.options, &probes[1], now + 67);
    assert_true(rig_goes(&rig, now + 67));
    rig_release(&rig);
}

/* E6: the budget counts a reservation and requests that were in flight before. */
static void probe_budget_counts_reservations_and_earlier_requests_in_flight(void **state)
{
    (void)state;
    struct gate_fixture rig;
    int64_t now = T0 + 15 * S;
    rig_init(&rig, breaker_options());
    struct wr_gate_start old = rig_send(&rig, T0);
    rig_send(&rig, T0);
    open_it(&rig, T0);
    uint32_t seq = wr_gate_reserve(rig.gate, &rig.options, now);
    assert_false(rig_goes(&rig, now));
    wr_gate_sent(rig.gate, &rig.options, seq, now);
    assert_waits(&rig, now, WEIR_REASON_BREAKER, WEIR_UNTIL_RELEASE);
    rig_tell(&rig, old, 200, now);
    assert_true(rig_goes(&rig, now));
    rig_release(&rig);
}

/* S0-35, S0-87 */
static void three_good_probes_close_the_breaker(void **state)
{
    (void)state;
    struct gate_fixture rig;
    int64_t now = T0 + 15 * S;
    rig_init(&rig, breaker_options());
    open_it(&rig, T0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(state_at(&rig, now), WEIR_BREAKER_HALF_OPEN);
        rig_answer(&rig, 200, now);
    }
    assert_int_equal(rig.news & WR_GATE_CHANGE_BREAKER, WR_GATE_CHANGE_BREAKER);
    assert_int_equal(state_at(&rig, now), WEIR_BREAKER_CLOSED);
    assert_true(rig_look(&rig, now).error_rate == 0); /* failures before the probes are cleared */
    rig_answer(&rig, 500, now);
    assert_int_equal(state_at(&rig, now), WEIR_BREAKER_CLOSED);
    rig_release(&rig);
}

/* S0-36, R8 */
static void first_bad_probe_reopens_the_breaker_for_the_full_time(void **state)
{
    (void)state;
    struct gate_fixture rig;
    int64_t now = T0 + 20 * S;
    rig_init(&rig, breaker_options());
    open_it(&rig, T0);
    rig_answer(&rig, 200, now);
    struct wr_gate_start slow = rig_send(&rig, now);
    rig_answer(&rig, 500, now);
    assert_int_equal(rig.news & WR_GATE_CHANGE_BREAKER, WR_GATE_CHANGE_BREAKER);
    assert_waits(&rig, now, WEIR_REASON_BREAKER, 15 * S);
    rig_tell(&rig, slow, 0, now + S); /* other probes of this round do not prolong it */
    assert_waits(&rig, now + S, WEIR_REASON_BREAKER, 14 * S);
    now += 15 * S;
    rig_answer(&rig, 200, now); /* the count of successes restarts at 0 */
    rig_answer(&rig, 200, now);
    assert_int_equal(state_at(&rig, now), WEIR_BREAKER_HALF_OPEN);
    rig_answer(&rig, 200, now);
    assert_int_equal(state_at(&rig, now), WEIR_BREAKER_CLOSED);
    rig_release(&rig);
}

static void answers_to_requests_sent_before_the_probes_are_no_probes(void **state)
{
    (void)state;
    struct gate_fixture rig;
    struct wr_gate_start old[8];
    int64_t now = T0 + 15 * S;
    rig_init(&rig, breaker_options());
    for (int i = 0; i < 8; i++)
        old[i] = rig_send(&rig, T0);
    open_it(&rig, T0 + S);
    for (int i = 0; i < 4; i++)
        rig_tell(&rig, old[i], 200, now + 2 * S);
    assert_int_equal(state_at(&rig, now + 2 * S), WEIR_BREAKER_HALF_OPEN);
    rig_tell(&rig, old[4], 0, now + 2 * S);
    assert_int_equal(state_at(&rig, now + 2 * S), WEIR_BREAKER_HALF_OPEN);
    for (int i = 5; i < 8; i++)
        wr_gate_drop(rig.gate, &rig.options, &old[i], now + 2 * S);
    for (int i = 0; i < 3; i++)
        rig_answer(&rig, 200, now + 3 * S);
    assert_int_equal(state_at(&rig, now + 3 * S), WEIR_BREAKER_CLOSED);
    rig_release(&rig);
}

/* S0-39, R7 */
static void answers_with_retry_after_never_open_the_breaker(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, breaker_options());
    for (int i = 0; i < 100; i++) {
        weir_outcome outcome = {
            .status = i % 2 ? 429 : 503, .latency_ns = MS, .has_retry_after = true, .retry_after_ns = 1};
        rig_tell_all(&rig, NULL, outcome, T0, 0);
    }
    assert_int_equal(state_at(&rig, T0), WEIR_BREAKER_CLOSED);
    assert_int_equal(rig_look(&rig, T0).consecutive_failures, 0);
    /* these answers still count in the error rate */
    assert_true(rig_look(&rig, T0).error_rate == 1);
    assert_int_equal(rig_look(&rig, T0).rejected, 100);
    tells(&rig, 200, 4, T0);
    tells(&rig, 500, 4, T0); /* 4 failures of 8 that count */
    assert_int_equal(state_at(&rig, T0), WEIR_BREAKER_CLOSED);
    rig_release(&rig);

    rig_init(&rig, breaker_options()); /* such an answer does not open it after a probe */
    open_it(&rig, T0);
    rig_tell_retry_after(&rig, rig_send(&rig, T0 + 15 * S), 503, 30 * S, T0 + 15 * S);
    assert_int_equal(state_at(&rig, T0 + 15 * S), WEIR_BREAKER_HALF_OPEN);
    assert_waits(&rig, T0 + 15 * S, WEIR_REASON_RETRY_AFTER, 30 * S);
    rig_release(&rig);
}

/* A15: a host that sends "Retry-After: 0" with every failure still opens the breaker. */
static void retry_after_of_0_does_not_keep_the_breaker_closed(void **state)
{
    (void)state;
    static const struct {
        weir_profile profile;
        int status;
    } rows[] = {
        {WEIR_PROFILE_ADAPTIVE, 500}, {WEIR_PROFILE_AIMD, 429},    {WEIR_PROFILE_STRICT, 503},
        {WEIR_PROFILE_STRICT, 502},   {WEIR_PROFILE_LEARNED, 500}, {WEIR_PROFILE_ORIGIN_TUNED, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gate_fixture rig;
        rig_init(&rig, profile_options(rows[i].profile));
        for (int k = 0; k < 5; k++)
            rig_tell_retry_after(&rig, rig_send(&rig, T0 + k * 10 * S), rows[i].status, -k, T0 + k * 10 * S);
        assert_int_equal(state_at(&rig, T0 + 40 * S), WEIR_BREAKER_OPEN);
        rig_release(&rig);
    }
}

static void disabled_breaker_never_opens(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    tells(&rig, 500, 100, T0);
    assert_int_equal(state_at(&rig, T0), WEIR_BREAKER_CLOSED);
    assert_true(rig_goes(&rig, T0));
    assert_true(rig_look(&rig, T0).error_rate == 1);
    rig_release(&rig);
}

static void open_time_is_jittered_upwards_only(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, breaker_options());
    tells(&rig, 500, 4, T0);
    rig_tell_all(&rig, NULL, (weir_outcome){.status = 500}, T0, 0.5);
    assert_waits(&rig, T0, WEIR_REASON_BREAKER, 15 * S + 750 * MS);
    rig_release(&rig);
}

/* R8 */
static void under_tide_only_a_broken_host_opens_the_breaker(void **state)
{
    (void)state;
    static const int rejections[] = {429, 403, 503}, failures[] = {0, 500, 502, 504};
    struct gate_fixture rig;
    for (size_t i = 0; i < 3; i++) {
        rig_init(&rig, tide_options());
        tells(&rig, rejections[i], 50, T0);
        assert_int_equal(state_at(&rig, T0), WEIR_BREAKER_CLOSED);
        rig_release(&rig);
    }
    for (size_t i = 0; i < 4; i++) {
        rig_init(&rig, tide_options());
        tells(&rig, failures[i], 5, T0);
        assert_int_equal(state_at(&rig, T0), WEIR_BREAKER_OPEN);
        rig_release(&rig);
    }
}

/* R8, E6: one probe at a time, at intervals of at most a tenth of the outage. */
static void tide_notices_the_end_of_an_outage_within_a_tenth_of_its_length(void **state)
{
    (void)state;
    struct gate_fixture rig;
    int64_t now = T0 + S, probes = 0;
    weir_pace_options options = tide_options();
    options.open_ns = WEIR_HOUR;
    rig_init(&rig, options);
    tells(&rig, 200, 1, T0);
    tells(&rig, 0, 5, now);
    while (now < T0 + WEIR_HOUR) {
        weir_decision decision = rig_ask(&rig, now);
        if (decision.verdict != WEIR_GO) {
            /* tide starts at half a request a second */
            assert_true(decision.wait_ns <= (now - T0) / 10 + 2 * S);
            now += decision.wait_ns;
            continue;
        }
        struct wr_gate_start probe = rig_send(&rig, now);
        assert_false(rig_goes(&rig, now + S)); /* one probe is in flight */
        rig_tell(&rig, probe, 0, now + 1);
        probes++;
    }
    assert_true(probes < 100); /* about ln(3600) / ln(1.1) probes */
    rig_release(&rig);
}

/* R23 */
static void open_breaker_is_half_open_after_a_restart(void **state)
{
    (void)state;
    struct gate_fixture rig, again;
    weir_pace_memory memory;
    rig_init(&rig, breaker_options());
    open_it(&rig, T0);
    wr_gate_remember(rig.gate, &rig.options, T0 + S, WALL0, &memory);
    assert_true(memory.breaker_open);
    rig_restore(&again, breaker_options(), &memory, 5 * S, WALL0 + S);
    assert_int_equal(state_at(&again, 5 * S), WEIR_BREAKER_HALF_OPEN);
    for (int i = 0; i < 3; i++)
        rig_send(&again, 5 * S);
    assert_waits(&again, 5 * S, WEIR_REASON_BREAKER, WEIR_UNTIL_RELEASE);
    rig_release(&rig);
    rig_release(&again);
}

WEIR_TESTS(test(error_rate_opens_the_breaker_after_enough_samples),
           test(errors_outside_the_window_do_not_open_the_breaker), test(five_failures_in_a_row_open_the_breaker),
           test(open_breaker_waits_until_its_time_has_passed), test(open_breaker_is_named_before_all_other_bounds),
           test(half_open_breaker_keeps_probes_in_flight_within_its_budget),
           test(probe_budget_counts_reservations_and_earlier_requests_in_flight),
           test(three_good_probes_close_the_breaker), test(first_bad_probe_reopens_the_breaker_for_the_full_time),
           test(answers_to_requests_sent_before_the_probes_are_no_probes),
           test(answers_with_retry_after_never_open_the_breaker),
           test(retry_after_of_0_does_not_keep_the_breaker_closed), test(disabled_breaker_never_opens),
           test(open_time_is_jittered_upwards_only), test(under_tide_only_a_broken_host_opens_the_breaker),
           test(tide_notices_the_end_of_an_outage_within_a_tenth_of_its_length),
           test(open_breaker_is_half_open_after_a_restart))
