/* SPDX-License-Identifier: MIT */
/* test_gate.c - tests the gate's own bounds: spacing, reservations, requests in flight, pauses and
 * time (S1-1 ... S1-5, S1-16, S0-48, R1, R9, R13, R24, V1, H1, H3). */
#include "rig.h"
#include <math.h>

/* S1-3, S1-4, S1-5 */
static void first_start_is_at_once_and_the_next_an_interval_later(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_STRICT));
    rig_send(&rig, T0);
    assert_waits(&rig, T0, WEIR_REASON_PACE, S);
    assert_waits(&rig, T0 + 300 * MS, WEIR_REASON_PACE, 700 * MS);
    assert_waits(&rig, T0 + S - 1, WEIR_REASON_PACE, 1);
    rig_send(&rig, T0 + S);
    rig_send(&rig, T0 + 5 * S);
    assert_waits(&rig, T0 + 5 * S, WEIR_REASON_PACE, S); /* idle time saves nothing up */
    rig_release(&rig);
}

/* S1-2 */
static void interval_is_the_longest_of_all_bounds(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.min_interval_ns = S;
    options.max_rate = 0.5;
    rig_init(&rig, options);
    rig_send(&rig, T0);
    assert_waits(&rig, T0, WEIR_REASON_PACE, 2 * S);
    wr_gate_robots_delay(rig.gate, 1500 * MS, T0);
    assert_waits(&rig, T0, WEIR_REASON_PACE, 2 * S);
    wr_gate_robots_delay(rig.gate, 5 * S, T0);
    assert_waits(&rig, T0, WEIR_REASON_ROBOTS_DELAY, 5 * S);
    wr_gate_robots_delay(rig.gate, -7, T0);
    assert_waits(&rig, T0, WEIR_REASON_PACE, 2 * S);
    wr_gate_robots_delay(rig.gate, INT64_MAX, T0);
    assert_waits(&rig, T0, WEIR_REASON_ROBOTS_DELAY, WEIR_DURATION_MAX);
    rig_release(&rig);
}

/* S1-16 */
static void calls_at_0_and_500_and_1200_ms_start_a_second_apart(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    wr_gate_robots_delay(rig.gate, S, T0);
    rig_send(&rig, T0);
    assert_waits(&rig, T0 + 500 * MS, WEIR_REASON_ROBOTS_DELAY, 500 * MS);
    rig_send(&rig, T0 + S);
    assert_waits(&rig, T0 + 1200 * MS, WEIR_REASON_ROBOTS_DELAY, 800 * MS);
    rig_send(&rig, T0 + 2 * S);
    rig_release(&rig);
}

/* R1: AIMD has four tokens at first. */
static void crawl_delay_forbids_bursts(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_AIMD));
    for (int i = 0; i < 4; i++)
        rig_send(&rig, T0);
    assert_waits(&rig, T0, WEIR_REASON_TOKENS, 500 * MS);
    rig_release(&rig);
    rig_init(&rig, profile_options(WEIR_PROFILE_AIMD));
    wr_gate_robots_delay(rig.gate, S, T0);
    rig_send(&rig, T0);
    assert_waits(&rig, T0, WEIR_REASON_ROBOTS_DELAY, S);
    rig_release(&rig);
}

/* A slow connect followed by a reused connection must not put two requests closer together. */
static void interval_counts_from_the_send_and_a_reservation_blocks_others(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_STRICT));
    uint32_t seq = wr_gate_reserve(rig.gate, &rig.options, T0);
    assert_waits(&rig, T0 + 10 * S, WEIR_REASON_PACE, 110 * S);
    assert_int_equal(wr_gate_ask_again(rig.gate, &rig.options, seq, T0 + 10 * S).verdict, WEIR_GO);
    assert_int_equal(rig_look(&rig, T0).in_flight, 1);
    assert_int_equal(rig_look(&rig, T0).starts, 0);
    struct wr_gate_start start = wr_gate_sent(rig.gate, &rig.options, seq, T0 + 10 * S);
    assert_true(start.seq == 1 && start.in_flight == 1 && start.sent_at == T0 + 10 * S);
    assert_waits(&rig, T0 + 10 * S, WEIR_REASON_PACE, S);
    rig_send(&rig, T0 + 11 * S);
    assert_int_equal(rig_look(&rig, T0 + 11 * S).starts, 2);
    rig_release(&rig);
}

/* F3: the process may be stopped between reporting a send and writing it. */
static void late_send_moves_the_interval_to_its_time(void **state)
{
    (void)state;
    static const struct {
        weir_profile profile;
        int64_t interval_ns;
    } cases[] = {{WEIR_PROFILE_STRICT, S},
                 {WEIR_PROFILE_AIMD, 500 * MS},
                 {WEIR_PROFILE_LEARNED, 500 * MS},
                 {WEIR_PROFILE_UNLIMITED, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gate_fixture rig;
        rig_init(&rig, profile_options(cases[i].profile));
        int64_t out_at = T0 + 90 * S;
        rig_send(&rig, T0);
        wr_gate_sent_late(rig.gate, &rig.options, 0, out_at);
        assert_true(wr_gate_ok(rig.gate, &rig.options));
        if (cases[i].interval_ns > 0)
            assert_waits(&rig, out_at + 1, WEIR_REASON_PACE, cases[i].interval_ns - 1);
        assert_true(rig_goes(&rig, out_at + cases[i].interval_ns));
        wr_gate_robots_delay(rig.gate, 5 * S, out_at);
        assert_waits(&rig, out_at + 1, WEIR_REASON_ROBOTS_DELAY, 5 * S - 1);
        wr_gate_sent_late(rig.gate, &rig.options, 0, T0 + S); /* an earlier time changes nothing */
        assert_waits(&rig, out_at + 1, WEIR_REASON_ROBOTS_DELAY, 5 * S - 1);
        wr_gate_sent_late(rig.gate, &rig.options, 2 * S, out_at + S);
        assert_waits(&rig, out_at + S, WEIR_REASON_ROBOTS_DELAY, 4 * S);
        /* reported a second after the send */
        wr_gate_sent_late(rig.gate, &rig.options, S, out_at + 3 * S);
        assert_waits(&rig, out_at + 3 * S, WEIR_REASON_ROBOTS_DELAY, 4 * S);
        rig_release(&rig);
    }
}

static void slightly_late_send_delays_the_next_and_keeps_the_burst(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_STRICT));
    rig_send(&rig, T0);
    wr_gate_sent_late(rig.gate, &rig.options, 0, T0 + MS);
    assert_waits(&rig, T0 + MS, WEIR_REASON_PACE, S);
    rig_release(&rig);
    rig_init(&rig, profile_options(WEIR_PROFILE_AIMD));
    for (int64_t at = T0; at < T0 + 4 * MS; at += MS) {
        rig_send(&rig, at);
        wr_gate_sent_late(rig.gate, &rig.options, 0, at + MS);
    }
    assert_false(rig_goes(&rig, T0 + 5 * MS));
    rig_release(&rig);
}

static void reservation_that_is_given_back_leaves_no_trace(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_STRICT));
    rig_send(&rig, T0);
    uint32_t seq = wr_gate_reserve(rig.gate, &rig.options, T0 + S);
    wr_gate_give(rig.gate, &rig.options, seq, T0 + S);
    wr_gate_give(rig.gate, &rig.options, seq, T0 + S); /* repeated: no effect */
    assert_int_equal(rig_look(&rig, T0 + S).in_flight, 1);
    assert_int_equal(rig_send(&rig, T0 + S).seq, 2); /* strategies depend on consecutive numbers */
    rig_release(&rig);
}

static void reservation_that_is_not_used_in_time_is_taken_back(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_STRICT));
    uint32_t lost = wr_gate_reserve(rig.gate, &rig.options, T0);
    assert_waits(&rig, T0 + 120 * S - 1, WEIR_REASON_PACE, 1);
    assert_true(rig_goes(&rig, T0 + 120 * S));
    assert_int_equal(rig_look(&rig, T0 + 120 * S).in_flight, 0);
    uint32_t seq = wr_gate_reserve(rig.gate, &rig.options, T0 + 120 * S);
    assert_int_not_equal(seq, lost);
    /* does not release the other's reservation */
    wr_gate_give(rig.gate, &rig.options, lost, T0 + 121 * S);
    assert_false(rig_goes(&rig, T0 + 121 * S));
    assert_int_equal(wr_gate_ask_again(rig.gate, &rig.options, lost, T0 + 121 * S).verdict, WEIR_WAIT);
    wr_gate_sent(rig.gate, &rig.options, seq, T0 + 121 * S);
    /* sent although the reservation expired */
    struct wr_gate_start late = wr_gate_sent(rig.gate, &rig.options, lost, T0 + 130 * S);
    assert_int_equal(rig_look(&rig, T0 + 130 * S).in_flight, 2);
    assert_waits(&rig, T0 + 130 * S, WEIR_REASON_PACE, S);
    rig_tell(&rig, late, 200, T0 + 130 * S);
    assert_int_equal(rig_look(&rig, T0 + 130 * S).in_flight, 1);
    rig_release(&rig);
}

/* The holder of an abandoned reservation may never report it. The gate must name a time for its
 * end, even where otherwise only an answer makes room. */
static void abandoned_reservation_ends_by_the_clock(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.max_in_flight = 2;
    rig_init(&rig, options);
    struct wr_gate_start start = rig_send(&rig, T0);
    wr_gate_reserve(rig.gate, &rig.options, T0);
    assert_waits(&rig, T0, WEIR_REASON_PACE, 120 * S);
    assert_true(rig_goes(&rig, T0 + 120 * S));
    rig_send(&rig, T0 + 120 * S);
    assert_waits(&rig, T0 + 120 * S, WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE);
    rig_tell(&rig, start, 200, T0 + 120 * S);
    assert_true(rig_goes(&rig, T0 + 120 * S));
    rig_release(&rig);
}

/* E6 */
static void abandoned_unsent_probe_ends_by_the_clock(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_ADAPTIVE));
    for (int i = 0; i < 5; i++)
        rig_answer(&rig, 500, T0 + i * 2 * S);
    int64_t half_open_at = T0 + 8 * S + rig_ask(&rig, T0 + 8 * S).wait_ns;
    wr_gate_reserve(rig.gate, &rig.options, half_open_at);
    assert_int_equal(rig_look(&rig, half_open_at).breaker, WEIR_BREAKER_HALF_OPEN);
    assert_waits(&rig, half_open_at, WEIR_REASON_PACE, 120 * S);
    assert_true(rig_goes(&rig, half_open_at + 120 * S));
    rig_send(&rig, half_open_at + 120 * S);
    /* tide holds requests, too */
    assert_waits(&rig, half_open_at + 150 * S, WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE);
    rig_release(&rig);
}

/* A caller with an expired reservation is treated like any other: within the cap, and last in the
 * order that strategies count by. */
static void holder_of_an_expired_reservation_has_no_privilege(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.max_in_flight = 2;
    rig_init(&rig, options);
    uint32_t late = wr_gate_reserve(rig.gate, &rig.options, T0);
    struct wr_gate_start first = rig_send(&rig, T0 + 120 * S);
    assert_int_equal(first.seq, 2);
    rig_send(&rig, T0 + 120 * S);
    weir_decision decision = wr_gate_ask_again(rig.gate, &rig.options, late, T0 + 121 * S);
    assert_true(decision.verdict == WEIR_WAIT && decision.reason == WEIR_REASON_CONCURRENCY);
    rig_tell(&rig, first, 200, T0 + 121 * S);
    assert_int_equal(wr_gate_ask_again(rig.gate, &rig.options, late, T0 + 121 * S).verdict, WEIR_GO);
    assert_int_equal(wr_gate_sent(rig.gate, &rig.options, late, T0 + 121 * S).seq, 4);
    assert_int_equal(rig_look(&rig, T0 + 121 * S).in_flight, 2);
    rig_release(&rig);
}

/* K2: an answer arrives between reserving and sending. */
static void holder_of_a_reservation_can_ask_again_before_sending(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    struct wr_gate_start first = rig_send(&rig, T0);
    uint32_t seq = wr_gate_reserve(rig.gate, &rig.options, T0);
    assert_int_equal(wr_gate_ask_again(rig.gate, &rig.options, seq, T0).verdict, WEIR_GO);
    rig_tell_retry_after(&rig, first, 429, 10 * S, T0);
    weir_decision decision = wr_gate_ask_again(rig.gate, &rig.options, seq, T0);
    assert_true(decision.reason == WEIR_REASON_RETRY_AFTER && decision.wait_ns == 10 * S);
    rig_release(&rig);
}

static void gate_reports_whether_it_spaces_starts(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    assert_false(wr_gate_spaces(rig.gate, &rig.options));
    wr_gate_robots_delay(rig.gate, S, T0);
    assert_true(wr_gate_spaces(rig.gate, &rig.options));
    rig_release(&rig);
    rig_init(&rig, profile_options(WEIR_PROFILE_AIMD));
    assert_true(wr_gate_spaces(rig.gate, &rig.options));
    rig_release(&rig);
}

/* R13, V1 */
static void requests_in_flight_never_exceed_the_most_allowed(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.max_in_flight = 2;
    rig_init(&rig, options);
    struct wr_gate_start first = rig_send(&rig, T0), second = rig_send(&rig, T0);
    assert_waits(&rig, T0 + WEIR_DAY, WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE);
    rig_tell(&rig, first, 200, T0 + WEIR_DAY);
    rig_send(&rig, T0 + WEIR_DAY);
    assert_waits(&rig, T0 + WEIR_DAY, WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE);
    wr_gate_drop(rig.gate, &rig.options, &second, T0 + WEIR_DAY);
    assert_true(rig_goes(&rig, T0 + WEIR_DAY));
    assert_int_equal(rig_look(&rig, T0 + WEIR_DAY).cap, 2);
    rig_release(&rig);
}

static void surplus_ends_of_requests_free_no_place(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.max_in_flight = 1;
    rig_init(&rig, options);
    struct wr_gate_start start = rig_send(&rig, T0);
    for (int i = 0; i < 3; i++)
        wr_gate_drop(rig.gate, &rig.options, &start, T0);
    wr_gate_reserve(rig.gate, &rig.options, T0);
    wr_gate_drop(rig.gate, &rig.options, &start, T0); /* does not release the reservation */
    assert_true(wr_gate_ok(rig.gate, &rig.options));
    assert_false(rig_goes(&rig, T0));
    rig_release(&rig);
}

static void paused_host_waits_until_it_is_resumed(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    wr_gate_pause(rig.gate, true);
    assert_waits(&rig, T0 + WEIR_DAY, WEIR_REASON_PAUSED, WEIR_UNTIL_RELEASE);
    wr_gate_pause(rig.gate, false);
    assert_true(rig_goes(&rig, T0));
    rig_release(&rig);
}

/* H1 */
static void clock_going_back_only_delays(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_STRICT));
    struct wr_gate_start start = rig_send(&rig, T0);
    assert_waits(&rig, T0 - WEIR_HOUR, WEIR_REASON_PACE, WEIR_HOUR + S);
    /* counts from the latest `now` seen */
    rig_tell_retry_after(&rig, start, 429, 10 * S, T0 - WEIR_HOUR);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, 10 * S);
    assert_waits(&rig, T0 - WEIR_HOUR, WEIR_REASON_RETRY_AFTER, WEIR_HOUR + 10 * S);
    rig_send(&rig, T0 + 10 * S);
    assert_waits(&rig, T0, WEIR_REASON_PACE, 11 * S);
    rig_release(&rig);
}

/* H3 */
static void after_8_hours_asleep_there_is_one_start_and_no_burst(void **state)
{
    (void)state;
    static const weir_profile profiles[] = {WEIR_PROFILE_STRICT, WEIR_PROFILE_LEARNED};
    for (size_t i = 0; i < 2; i++) {
        struct gate_fixture rig;
        rig_init(&rig, profile_options(profiles[i]));
        rig_answer(&rig, 200, T0);
        int64_t now = T0 + 8 * WEIR_HOUR;
        rig_answer(&rig, 200, now);
        assert_waits(&rig, now, WEIR_REASON_PACE, profiles[i] == WEIR_PROFILE_STRICT ? S : 500 * MS);
        rig_release(&rig);
    }
    struct gate_fixture rig;
    int starts = 0;
    rig_init(&rig, profile_options(WEIR_PROFILE_ADAPTIVE));
    rig_answer(&rig, 200, T0);
    rig_answer(&rig, 200, T0 + 8 * WEIR_HOUR);
    assert_false(rig_goes(&rig, T0 + 8 * WEIR_HOUR + 100 * MS)); /* at most 8 a second */
    rig_release(&rig);
    rig_init(&rig, profile_options(WEIR_PROFILE_AIMD));
    rig_answer(&rig, 404, T0);
    for (; rig_goes(&rig, T0 + 8 * WEIR_HOUR); starts++)
        rig_send(&rig, T0 + 8 * WEIR_HOUR);
    assert_int_equal(starts, 4); /* one full bucket */
    rig_release(&rig);
}

static void gate_works_at_negative_and_far_instants(void **state)
{
    (void)state;
    static const int64_t begins[] = {0, -WEIR_DURATION_MAX, WEIR_DURATION_MAX, -2 * WEIR_DURATION_MAX + 1,
                                     2 * WEIR_DURATION_MAX - WEIR_DAY};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        struct gate_fixture rig;
        weir_pace_options options = profile_options(WEIR_PROFILE_STRICT);
        int64_t now = begins[i];
        rig_restore(&rig, options, NULL, now, 0);
        rig_answer(&rig, 200, now);
        assert_waits(&rig, now, WEIR_REASON_PACE, S);
        rig_tell_retry_after(&rig, rig_send(&rig, now + S), 503, INT64_MAX, now + S);
        assert_waits(&rig, now + S, WEIR_REASON_RETRY_AFTER, WEIR_DAY);
        assert_true(rig_look(&rig, now + S).error_rate == 0.5);
        rig_release(&rig);
    }
}

/* R24, S0-48, S1-30 */
static void disabled_pacing_admits_everything_and_records_nothing(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = profile_options(WEIR_PROFILE_STRICT);
    options.off = true;
    rig_init(&rig, options);
    wr_gate_robots_delay(rig.gate, WEIR_HOUR, T0);
    wr_gate_pause(rig.gate, true);
    wr_gate_hold(rig.gate, &rig.options, T0 + WEIR_HOUR, T0);
    for (int i = 0; i < 100; i++) {
        struct wr_gate_start start = rig_send(&rig, T0);
        assert_int_equal(rig_tell_retry_after(&rig, start, 429, WEIR_HOUR, T0), 0);
    }
    assert_int_equal(wr_gate_ask_again(rig.gate, &rig.options, 0, T0).verdict, WEIR_GO);
    assert_true(wr_gate_forgettable(rig.gate, &rig.options, T0));
    weir_pace_entry entry = rig_look(&rig, T0), empty = {0};
    assert_memory_equal(&entry, &empty, sizeof entry);
    weir_pace_bound bounds[WEIR_PACE_BOUNDS_MAX];
    assert_int_equal(wr_gate_bounds(rig.gate, &rig.options, T0, bounds), 0);
    rig_release(&rig);
}

/* R9 */
static void host_may_be_forgotten_only_if_no_bound_holds(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = profile_options(WEIR_PROFILE_STRICT);
#define FORGETTABLE(at) wr_gate_forgettable(rig.gate, &rig.options, (at))
    rig_init(&rig, options);
    assert_true(FORGETTABLE(T0));
    struct wr_gate_start start = rig_send(&rig, T0);
    assert_false(FORGETTABLE(T0 + WEIR_DAY)); /* a request is in flight */
    rig_tell(&rig, start, 200, T0);
    assert_false(FORGETTABLE(T0 + 2 * S - 1)); /* kept for twice the interval */
    assert_true(FORGETTABLE(T0 + 2 * S));
    uint32_t seq = wr_gate_reserve(rig.gate, &rig.options, T0 + 2 * S);
    assert_false(FORGETTABLE(T0 + 4 * S));
    assert_true(FORGETTABLE(T0 + 122 * S)); /* the reservation has expired */
    wr_gate_give(rig.gate, &rig.options, seq, T0 + 4 * S);
    wr_gate_pause(rig.gate, true);
    assert_false(FORGETTABLE(T0 + WEIR_DAY));
    wr_gate_pause(rig.gate, false);
    wr_gate_hold(rig.gate, &rig.options, T0 + 100 * S, T0 + 4 * S);
    assert_false(FORGETTABLE(T0 + 100 * S - 1));
    assert_true(FORGETTABLE(T0 + 100 * S));
    for (int i = 0; i < 5; i++)
        rig_tell_all(&rig, NULL, (weir_outcome){.status = 500}, T0 + 100 * S, 0);
    assert_false(FORGETTABLE(T0 + 115 * S + WEIR_HOUR - 1)); /* the breaker is half open */
    /* V6: a dead host is kept for an hour */
    assert_true(FORGETTABLE(T0 + 115 * S + WEIR_HOUR));
    rig_release(&rig);
}

/* V1: a host with a request every few minutes keeps its Crawl-delay, until its robots.txt is too
 * old. */
static void crawl_delay_is_not_forgotten_within_a_day(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_STRICT));
    wr_gate_robots_delay(rig.gate, 10 * S, T0);
    assert_false(FORGETTABLE(T0 + WEIR_DAY - 1));
    assert_true(FORGETTABLE(T0 + WEIR_DAY));
    rig_tell(&rig, rig_send(&rig, T0 + WEIR_HOUR), 200, T0 + WEIR_HOUR);
    assert_false(FORGETTABLE(T0 + WEIR_HOUR + WEIR_DAY - 1));
    assert_true(FORGETTABLE(T0 + WEIR_HOUR + WEIR_DAY));
    wr_gate_robots_delay(rig.gate, 0, T0 + WEIR_HOUR);
    assert_true(FORGETTABLE(T0 + 2 * WEIR_HOUR));
    rig_release(&rig);
}

/* V6 */
static void idle_host_is_forgotten_in_any_state_of_its_strategy(void **state)
{
    (void)state;
    static const int answers[] = {200, 429, 503, 403, 500, 0};
    for (int strategy = 0; weir_strategy_name((weir_strategy)strategy) != NULL; strategy++)
        for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
            struct gate_fixture rig;
            weir_pace_options options = profile_options(WEIR_PROFILE_ADAPTIVE);
            options.strategy = (weir_strategy)strategy;
            rig_init(&rig, options);
            int64_t now = T0;
            for (int k = 0; k < 6; k++) {
                now += rig_ask(&rig, now).wait_ns;
                rig_answer(&rig, answers[i], now);
            }
            assert_true(FORGETTABLE(now + WEIR_DAY));
            rig_release(&rig);
        }
#undef FORGETTABLE
}

/* The list of bounds that `weir why` prints. */
static void every_bound_of_a_gate_is_listed_with_its_own_wait(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = profile_options(WEIR_PROFILE_AIMD);
    options.min_interval_ns = 100 * MS;
    options.max_in_flight = 1;
    rig_init(&rig, options);
    wr_gate_robots_delay(rig.gate, 300 * MS, T0);
    rig_tell_retry_after(&rig, rig_send(&rig, T0), 429, 7 * S, T0);
    struct wr_gate_start start = rig_send(&rig, T0 + 7 * S);
    weir_pace_bound bounds[WEIR_PACE_BOUNDS_MAX];
    size_t count = wr_gate_bounds(rig.gate, &rig.options, T0 + 7 * S, bounds);
    static const weir_pace_bound wanted[] = {
        {WEIR_REASON_PACE, 100 * MS, 100 * MS},
        {WEIR_REASON_TOKENS, 0, S},
        {WEIR_REASON_ROBOTS_DELAY, 300 * MS, 300 * MS},
        {WEIR_REASON_RETRY_AFTER, 0, 0},
        {WEIR_REASON_RATE_LIMIT_RESET, 0, 0},
        {WEIR_REASON_BREAKER, 0, 0},
        {WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE, 0},
        {WEIR_REASON_PAUSED, 0, 0},
    };
    assert_int_equal(count, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(bounds[i].reason, wanted[i].reason);
        assert_int_equal(bounds[i].wait_ns, wanted[i].wait_ns);
        assert_int_equal(bounds[i].value_ns, wanted[i].value_ns);
    }
    rig_tell_retry_after(&rig, start, 503, 9 * S, T0 + 7 * S);
    wr_gate_bounds(rig.gate, &rig.options, T0 + 8 * S, bounds);
    assert_int_equal(bounds[3].wait_ns, 8 * S);
    rig_release(&rig);
}

/* The first entry is the gate's own spacing, including push-backs and reservations; the fifth is
 * the breaker. */
static void push_backs_reservations_and_the_breaker_are_listed_until_they_end(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_bound bounds[WEIR_PACE_BOUNDS_MAX];
    weir_pace_options options = bare_options();
    options.breaker = true;
    rig_init(&rig, options);
    rig_answer(&rig, 429, T0);
    size_t count = wr_gate_bounds(rig.gate, &rig.options, T0 + 30 * MS, bounds);
    assert_int_equal(count, 7); /* without a strategy */
    assert_true(bounds[0].reason == WEIR_REASON_PACE && bounds[0].wait_ns == 70 * MS);
    wr_gate_reserve(rig.gate, &rig.options, T0 + S);
    wr_gate_bounds(rig.gate, &rig.options, T0 + 2 * S, bounds);
    assert_int_equal(bounds[0].wait_ns, 119 * S);
    for (int i = 0; i < 5; i++)
        rig_tell_all(&rig, NULL, (weir_outcome){.status = 500}, T0 + 2 * S, 0);
    wr_gate_bounds(rig.gate, &rig.options, T0 + 7 * S, bounds);
    assert_int_equal(bounds[4].reason, WEIR_REASON_BREAKER);
    assert_true(bounds[4].wait_ns == 10 * S && bounds[4].value_ns == 15 * S);
    assert_int_equal(wr_gate_breaker(rig.gate, T0 + 7 * S), WEIR_BREAKER_OPEN);
    assert_int_equal(wr_gate_breaker(rig.gate, T0 + 17 * S), WEIR_BREAKER_HALF_OPEN);
    rig_release(&rig);
}

static void host_view_shows_the_state_of_the_gate(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = profile_options(WEIR_PROFILE_AIMD);
    rig_init(&rig, options);
    weir_pace_entry entry = {.key = "a", .key_bytes = 1, .waiters = 7};
    weir_outcome good = {.status = 200, .latency_ns = 500 * MS}, bad = {.status = 429, .latency_ns = 2 * MS};
    struct wr_gate_start first = rig_send(&rig, T0), second = rig_send(&rig, T0);
    rig_send(&rig, T0);
    rig_tell_all(&rig, &first, good, T0 + S, 0);
    rig_tell_all(&rig, &second, bad, T0 + S, 0);
    wr_gate_inspect(rig.gate, &rig.options, T0 + S, &entry);
    /* set by the caller and kept */
    assert_true(entry.key != NULL && entry.key_bytes == 1 && entry.waiters == 7);
    assert_true(fabs(entry.rate - 1.125) < 1e-9);
    assert_true(entry.tokens > 2 && entry.tokens <= 4);
    assert_int_equal(entry.delay_ns, 888888889);
    assert_true(entry.p95_latency_ns > 499 * MS && entry.p95_latency_ns <= 500 * MS);
    assert_true(entry.mean_latency_ns > 720 * MS && entry.mean_latency_ns < 721 * MS);
    assert_true(entry.error_rate == 0.5);
    assert_true(entry.breaker == WEIR_BREAKER_CLOSED && entry.consecutive_failures == 1);
    assert_true(entry.error_streak == 1 && entry.success_streak == 0);
    assert_true(entry.in_flight == 1 && entry.cap == UINT32_MAX);
    assert_true(entry.starts == 3 && entry.rejected == 1);
    assert_true(entry.decision.reason == WEIR_REASON_PACE && entry.decision.wait_ns == 100 * MS);
    assert_int_equal(entry.last_success_at, T0 + S);
    assert_true(strlen(entry.mode) > 0);
    rig_release(&rig);
}

WEIR_TESTS(test(first_start_is_at_once_and_the_next_an_interval_later), test(interval_is_the_longest_of_all_bounds),
           test(calls_at_0_and_500_and_1200_ms_start_a_second_apart), test(crawl_delay_forbids_bursts),
           test(interval_counts_from_the_send_and_a_reservation_blocks_others),
           test(late_send_moves_the_interval_to_its_time), test(slightly_late_send_delays_the_next_and_keeps_the_burst),
           test(reservation_that_is_given_back_leaves_no_trace),
           test(reservation_that_is_not_used_in_time_is_taken_back), test(abandoned_reservation_ends_by_the_clock),
           test(abandoned_unsent_probe_ends_by_the_clock), test(holder_of_an_expired_reservation_has_no_privilege),
           test(holder_of_a_reservation_can_ask_again_before_sending), test(gate_reports_whether_it_spaces_starts),
           test(requests_in_flight_never_exceed_the_most_allowed), test(surplus_ends_of_requests_free_no_place),
           test(paused_host_waits_until_it_is_resumed), test(clock_going_back_only_delays),
           test(after_8_hours_asleep_there_is_one_start_and_no_burst), test(gate_works_at_negative_and_far_instants),
           test(disabled_pacing_admits_everything_and_records_nothing),
           test(host_may_be_forgotten_only_if_no_bound_holds), test(crawl_delay_is_not_forgotten_within_a_day),
           test(idle_host_is_forgotten_in_any_state_of_its_strategy),
           test(every_bound_of_a_gate_is_listed_with_its_own_wait),
           test(push_backs_reservations_and_the_breaker_are_listed_until_they_end),
           test(host_view_shows_the_state_of_the_gate))
