/* SPDX-License-Identifier: MIT */
/* The gate's own bounds: spacing, reservations, in flight. */
#include "rig.h"

/* S1-16 */
static void calls_at_0_and_500_and_1200_ms_start_a_second_apart(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig, bare_options());
    wr_gate_robots_delay(rig.gate, S, T0);
    rig_send(&rig, T0);
    assert_waits(&rig, T0 + 500 * MS, WEIR_REASON_ROBOTS_DELAY, 500 * MS);
    rig_send(&rig, T0 + S);
    assert_waits(&rig, T0 + 1200 * MS, WEIR_REASON_ROBOTS_DELAY, 800 * MS);
    rig_send(&rig, T0 + 2 * S);
    rig_release(&rig);
}

WEIR_TESTS(test(calls_at_0_and_500_and_1200_ms_start_a_second_apart))
