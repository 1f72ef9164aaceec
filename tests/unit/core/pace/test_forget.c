/* SPDX-License-Identifier: MIT */
/* test_forget.c - tests that a gate can forget what it learned. */
#include "rig.h"

static void forgetting_drops_learned_values_and_keeps_those_the_server_named(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = profile_options(WEIR_PROFILE_ADAPTIVE);
    rig_init(&rig, options);
    wr_gate_robots_delay(rig.gate, 3 * S, T0);
    double fresh = rig_look(&rig, T0).rate;
    int64_t now = T0;
    rig_send(&rig, now);
    for (int i = 0; i < 20; i++) {
        now += 100 * S;
        rig_answer(&rig, i % 2 == 0 ? 429 : 200, now);
    }
    now += 1000 * S;
    rig_tell_retry_after(&rig, rig_send(&rig, now), 429, 30 * S, now);
    assert_true(rig_look(&rig, now).rate < fresh && rig_look(&rig, now).rejected > 0);
    wr_gate_forget(rig.gate, &rig.options, now);
    assert_true(wr_gate_ok(rig.gate, &rig.options));
    weir_pace_entry entry = rig_look(&rig, now);
    assert_true(entry.rate == fresh && entry.rejected == 0 && entry.in_flight == 1);
    assert_int_equal(rig_ask(&rig, now).reason, WEIR_REASON_RETRY_AFTER);
    assert_int_equal(rig_ask(&rig, now).wait_ns, 30 * S);
    assert_int_equal(wr_gate_delay(rig.gate, &rig.options, now), 3 * S);
    assert_true(wr_gate_unsaved(rig.gate));
    rig_release(&rig);
}

/* The holder of a reservation must ask again after forgetting, and nothing is counted twice. */
static void forgetting_takes_a_reservation_back(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = profile_options(WEIR_PROFILE_ADAPTIVE);
    options.min_interval_ns = S;
    rig_init(&rig, options);
    rig_answer(&rig, 200, T0);
    uint32_t seq = wr_gate_reserve(rig.gate, &rig.options, T0 + S);
    wr_gate_forget(rig.gate, &rig.options, T0 + S);
    assert_int_equal(rig_look(&rig, T0 + S).in_flight, 0);
    assert_int_equal(wr_gate_ask_again(rig.gate, &rig.options, seq, T0 + S).verdict, WEIR_GO);
    struct wr_gate_start start = wr_gate_sent(rig.gate, &rig.options, seq, T0 + S);
    assert_int_equal(rig_look(&rig, T0 + S).in_flight, 1);
    assert_int_equal(rig_ask(&rig, T0 + S).wait_ns, S);
    rig_tell(&rig, start, 200, T0 + 2 * S);
    assert_int_equal(rig_look(&rig, T0 + 2 * S).in_flight, 0);
    rig_release(&rig);
}

WEIR_TESTS(test(forgetting_drops_learned_values_and_keeps_those_the_server_named),
           test(forgetting_takes_a_reservation_back))
