/* SPDX-License-Identifier: MIT */
/* The PID controller: S0-100. Stable on hosts that queue and that refuse, and never wound up. */
#include "plant.h"

static struct rig pid(void)
{
    weir_pace_options options = rig_options();
    struct rig rig;
    rig_init(&rig, &wr_pid, &options, NULL, T0);
    return rig;
}

static double rate(const struct rig *rig)
{
    return rig_want(rig, T0).rate;
}

static void begins_at_the_initial_rate(void **state)
{
    (void)state;
    struct rig rig = pid();
    assert_near(rate(&rig), 2, 0);
    assert_true(rig_try(&rig, T0));
    assert_int_equal(rig_wait(&rig, T0), 500 * MS);
    rig_release(&rig);
}

/* Least and most of the rate over ten minutes, minute by minute. */
static void swing(struct plant *plant, struct rig *rig, int64_t now, double *ret_least, double *ret_most)
{
    *ret_least = INFINITY, *ret_most = 0;
    uint32_t refused = 0, sent = 0;
    for (int i = 0; i < 600; i++) {
        now = plant_run(plant, rig, now, now + WEIR_SECOND);
        *ret_least = fmin(*ret_least, rate(rig));
        *ret_most = fmax(*ret_most, rate(rig));
        refused += plant->refused;
        sent += plant->sent;
    }
    plant->refused = refused;
    plant->sent = sent;
}

static void limit_is_held_without_wild_swings(void **state)
{
    (void)state;
    const double rates[] = {2, 20, 200};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct plant plant = {.rate = rates[i], .burst = 10, .tokens = 10, .latency_ns = 100 * MS, .workers = 64};
        struct rig rig = pid();
        double least, most;
        plant.filled_at = T0;
        int64_t now = plant_run(&plant, &rig, T0, T0 + 10 * WEIR_MINUTE);
        swing(&plant, &rig, now, &least, &most);
        if (least < 0.25 * rates[i] || most > 2 * rates[i] || plant.refused > 0.04 * plant.sent)
            fail_msg("at %g: %g … %g, %u of %u refused", rates[i], least, most, plant.refused, plant.sent);
        rig_release(&rig);
    }
}

static void latency_is_held_at_its_set_point(void **state)
{
    (void)state;
    struct plant plant = {.served = 50, .latency_ns = 100 * MS, .workers = 200};
    struct rig rig = pid();
    int64_t now = plant_run(&plant, &rig, T0, T0 + 5 * WEIR_MINUTE);
    plant_run(&plant, &rig, now, now + 10 * WEIR_MINUTE);
    assert_in_range(plant.ok, 50 * 600 * 90 / 100, 50 * 600 + 1);
    assert_true(plant.latency_sum_ns / plant.ok < 400 * MS);
    rig_release(&rig);
}

/* Hours at a bound, by workers or by want of work, must not make it deaf for what comes then. */
static void controller_does_not_wind_up_at_other_bounds(void **state)
{
    (void)state;
    struct plant plant = {.latency_ns = 500 * MS, .workers = 4};
    struct rig rig = pid();
    int64_t now = plant_run(&plant, &rig, T0, T0 + 3 * WEIR_HOUR);
    double before = rate(&rig);
    assert_true(before <= 2 * 8 + 2); /* four workers make eight a second */
    for (int i = 0; i < 10; i++) {
        now += WEIR_SECOND;
        for (int k = 0; k < 4; k++)
            rig_tell(&rig, now, 429, 10 * MS, -1);
    }
    assert_true(rate(&rig) <= before / 3);
    rig_release(&rig);
}

static void long_time_at_the_least_rate_is_left_at_once(void **state)
{
    (void)state;
    struct rig rig = pid();
    int64_t now = T0;
    for (int i = 0; i < 1000; i++)
        rig_tell(&rig, now += WEIR_SECOND, 429, 10 * MS, -1);
    assert_near(rate(&rig), 0.25, 0);
    double share = 0;
    for (int i = 0; i < 200 && rate(&rig) <= 0.25; i++, share++) {
        rig_send(&rig, now += WEIR_SECOND);
        rig_tell(&rig, now, 200, 10 * MS, -1);
    }
    assert_true(rate(&rig) > 0.25);
    assert_true(share < 100);
    rig_release(&rig);
}

static void broken_pages_say_nothing_about_pace(void **state)
{
    (void)state;
    struct rig rig = pid();
    for (int i = 0; i < 100; i++)
        rig_tell(&rig, T0 + i * WEIR_SECOND, i % 2 == 0 ? 500 : 0, 10 * MS, -1);
    assert_near(rate(&rig), 2, 0);
    rig_release(&rig);
}

static void most_is_the_most_whatever_the_least_rate_asks_for(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    struct rig rig;
    options.min_rate = 1e9;
    rig_init(&rig, &wr_pid, &options, NULL, T0);
    for (int i = 1; i <= 100; i++) {
        rig_tell(&rig, T0 + i * WEIR_SECOND, 200, 10 * MS, -1);
        assert_near(rate(&rig), 100000, 0);
    }
    rig_release(&rig);
}

WEIR_TESTS(test(begins_at_the_initial_rate), test(limit_is_held_without_wild_swings),
           test(latency_is_held_at_its_set_point), test(controller_does_not_wind_up_at_other_bounds),
           test(long_time_at_the_least_rate_is_left_at_once), test(broken_pages_say_nothing_about_pace),
           test(most_is_the_most_whatever_the_least_rate_asks_for))
