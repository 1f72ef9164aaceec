/* SPDX-License-Identifier: MIT */
/* test_change.c - tests changes of the options while requests are in flight (K7). */
#include "rig.h"

/* Replaces the options and carries the gate over. */
static void change(struct gate_fixture *rig, weir_pace_options options, int64_t now)
{
    struct gate_fixture old = *rig;
    assert_int_equal(wr_pace_options_check(&options, &rig->options), 0);
    rig->gate = calloc(1, wr_gate_bytes(&rig->options));
    assert_non_null(rig->gate);
    wr_gate_carry(old.gate, &old.options, rig->gate, &rig->options, now);
    assert_true(wr_gate_ok(rig->gate, &rig->options));
    rig_release(&old);
}

/* K7 */
static void new_rate_of_a_gate_applies_at_once_without_leftovers(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.max_rate = 10;
    rig_init(&rig, options);
    for (int i = 0; i < 5; i++)
        rig_send(&rig, T0 + i * 100 * MS);
    options.max_rate = 1;
    change(&rig, options, T0 + 450 * MS);
    assert_waits(&rig, T0 + 450 * MS, WEIR_REASON_PACE, 950 * MS);
    rig_send(&rig, T0 + 1400 * MS);
    assert_waits(&rig, T0 + 1400 * MS, WEIR_REASON_PACE, S);
    options.max_rate = 100;
    change(&rig, options, T0 + 1400 * MS);
    assert_waits(&rig, T0 + 1400 * MS, WEIR_REASON_PACE, 10 * MS);
    assert_int_equal(rig_look(&rig, T0).in_flight, 6);
    rig_release(&rig);
}

/* K7: learned values are brought within the new bounds, and the change adds no token. */
static void new_bounds_of_a_strategy_hold_at_once(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = profile_options(WEIR_PROFILE_AIMD);
    options.initial_rate = 8;
    rig_init(&rig, options);
    for (int i = 0; i < 4; i++)
        rig_send(&rig, T0);
    assert_waits(&rig, T0, WEIR_REASON_TOKENS, 125 * MS);
    options.rate_ceiling = 1;
    change(&rig, options, T0 + 50 * MS);
    assert_waits(&rig, T0 + 50 * MS, WEIR_REASON_TOKENS, 600 * MS); /* 0.4 of a token is left */
    assert_true(rig_look(&rig, T0 + 50 * MS).rate == 1);
    rig_release(&rig);
    static const weir_profile profiles[] = {WEIR_PROFILE_LEARNED, WEIR_PROFILE_ORIGIN_TUNED};
    for (size_t i = 0; i < 2; i++) {
        options = profile_options(profiles[i]);
        rig_init(&rig, options);
        rig_send(&rig, T0);
        assert_waits(&rig, T0, WEIR_REASON_PACE, 500 * MS);
        options.base_delay_ns = 5 * S;
        change(&rig, options, T0 + 100 * MS);
        assert_waits(&rig, T0 + 100 * MS, WEIR_REASON_PACE, 4900 * MS);
        rig_send(&rig, T0 + 5 * S);
        assert_waits(&rig, T0 + 5 * S, WEIR_REASON_PACE, 5 * S);
        rig_release(&rig);
    }
}

/* K7: a bucket of four tokens shrinks to one. */
static void saved_up_burst_is_not_carried_into_a_smaller_bucket(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = profile_options(WEIR_PROFILE_AIMD);
    rig_init(&rig, options);
    options.burst = 1;
    change(&rig, options, T0);
    rig_send(&rig, T0);
    assert_false(rig_goes(&rig, T0));
    rig_release(&rig);
}

static void change_keeps_waits_within_the_new_bounds(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.breaker = true;
    rig_init(&rig, options);
    rig_tell_retry_after(&rig, rig_send(&rig, T0), 503, WEIR_HOUR, T0);
    options.retry_after_max_ns = WEIR_MINUTE;
    change(&rig, options, T0);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, WEIR_MINUTE);
    for (int i = 0; i < 5; i++)
        rig_tell_all(&rig, NULL, (weir_outcome){.status = 500}, T0, 0);
    assert_waits(&rig, T0, WEIR_REASON_BREAKER, 15 * S);
    options.open_ns = S;
    change(&rig, options, T0);
    assert_waits(&rig, T0, WEIR_REASON_BREAKER, S);
    options.breaker = false;
    change(&rig, options, T0);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, WEIR_MINUTE);
    rig_release(&rig);
}

/* Requests that were in flight when pacing was switched off do not stay in flight for ever. */
static void switching_pacing_off_and_on_loses_no_ends_of_requests(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    rig_init(&rig, options);
    struct wr_gate_start first = rig_send(&rig, T0), second = rig_send(&rig, T0);
    uint32_t seq = wr_gate_reserve(rig.gate, &rig.options, T0);
    options.off = true;
    change(&rig, options, T0);
    rig_tell(&rig, first, 200, T0);
    wr_gate_drop(rig.gate, &rig.options, &second, T0);
    struct wr_gate_start third = wr_gate_sent(rig.gate, &rig.options, seq, T0);
    struct wr_gate_start free = rig_send(&rig, T0); /* started while off: not counted */
    options.off = false;
    change(&rig, options, T0);
    rig_tell(&rig, free, 200, T0);
    assert_int_equal(rig_look(&rig, T0).in_flight, 1);
    rig_tell(&rig, third, 200, T0);
    assert_int_equal(rig_look(&rig, T0).in_flight, 0);
    rig_release(&rig);
}

WEIR_TESTS(test(new_rate_of_a_gate_applies_at_once_without_leftovers), test(new_bounds_of_a_strategy_hold_at_once),
           test(saved_up_burst_is_not_carried_into_a_smaller_bucket), test(change_keeps_waits_within_the_new_bounds),
           test(switching_pacing_off_and_on_loses_no_ends_of_requests))
