/* SPDX-License-Identifier: MIT */
/* The latency gradient: S0-99, S0-103. Hosts that queue, refuse, or take whatever comes. */
#include "plant.h"

static struct rig gradient(void)
{
    weir_pace_options options = rig_options();
    struct rig rig;
    rig_init(&rig, &wr_gradient, &options, NULL, T0);
    return rig;
}

static void begins_at_the_initial_rate_with_one_in_flight(void **state)
{
    (void)state;
    struct rig rig = gradient();
    assert_near(rig_want(&rig, T0).rate, 2, 0);
    assert_int_equal(rig_want(&rig, T0).cap, 1);
    assert_true(rig_try(&rig, T0));
    assert_int_equal(rig_wait(&rig, T0), 500 * MS);
    rig_release(&rig);
}

/* The queue over there is found by its delay alone: no request is refused, and it stays short. */
static void queue_is_kept_full_and_short(void **state)
{
    (void)state;
    struct plant plant = {.served = 50, .latency_ns = 100 * MS, .workers = 200};
    struct rig rig = gradient();
    int64_t now = plant_run(&plant, &rig, T0, T0 + WEIR_MINUTE);
    now = plant_run(&plant, &rig, now, now + 5 * WEIR_MINUTE);
    assert_in_range(plant.ok, 50 * 300 * 95 / 100, 50 * 300 + 1);
    assert_true(plant.latency_sum_ns / plant.ok < 500 * MS);
    rig_release(&rig);
}

static void host_without_a_limit_is_asked_by_all_workers(void **state)
{
    (void)state;
    struct plant plant = {.latency_ns = 200 * MS, .workers = 64};
    struct rig rig = gradient();
    int64_t now = plant_run(&plant, &rig, T0, T0 + WEIR_MINUTE);
    plant_run(&plant, &rig, now, now + WEIR_MINUTE);
    assert_true(plant.ok > 60 * 64 * 5 * 95 / 100);
    rig_release(&rig);
}

static void refusals_cut_the_window_and_the_limit_is_held(void **state)
{
    (void)state;
    const double rates[] = {1, 20, 200};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct plant plant = {.rate = rates[i], .burst = 10, .tokens = 10, .latency_ns = 100 * MS, .workers = 64};
        struct rig rig = gradient();
        plant.filled_at = T0;
        int64_t now = plant_run(&plant, &rig, T0, T0 + 10 * WEIR_MINUTE);
        plant_run(&plant, &rig, now, now + 20 * WEIR_MINUTE);
        if (plant.ok < 0.8 * rates[i] * 1200 || plant.refused > 0.04 * plant.sent)
            fail_msg("at %g: %u sent, %u good, %u refused", rates[i], plant.sent, plant.ok, plant.refused);
        rig_release(&rig);
    }
}

/* Eight that were in flight together come back refused: that is one piece of news. */
static void one_round_trip_cuts_once(void **state)
{
    (void)state;
    struct rig rig = gradient();
    for (int i = 0; i < 200; i++)
        rig_tell(&rig, T0 + i * WEIR_SECOND, 200, 100 * MS, -1);
    int64_t now = T0 + 200 * WEIR_SECOND;
    double before = rig_want(&rig, now).rate;
    for (int i = 0; i < 8; i++)
        rig_tell(&rig, now + i * MS, 429, 10 * MS, -1);
    assert_near(rig_want(&rig, now).rate, before * 0.8, before * 0.001);
    rig_tell(&rig, now + WEIR_SECOND, 429, 10 * MS, -1);
    assert_near(rig_want(&rig, now).rate, before * 0.64, before * 0.001);
    rig_release(&rig);
}

static void rate_stays_above_its_least(void **state)
{
    (void)state;
    for (int warm = 0; warm <= 1; warm++) {
        struct rig rig = gradient();
        if (warm)
            rig_tell(&rig, T0, 200, 100 * MS, -1);
        for (int i = 1; i < 100; i++)
            rig_tell(&rig, T0 + i * WEIR_MINUTE, 429, 10 * MS, -1);
        assert_near(rig_want(&rig, T0).rate, 0.25, 1e-6);
        rig_release(&rig);
    }
}

/* Errors of a page, lost connections and idle windows teach nothing. */
static void window_that_is_not_used_does_not_grow(void **state)
{
    (void)state;
    struct plant plant = {.latency_ns = 200 * MS, .workers = 2};
    struct rig rig = gradient();
    plant_run(&plant, &rig, T0, T0 + 10 * WEIR_MINUTE);
    assert_true(rig_want(&rig, T0).cap <= 8);
    double before = rig_want(&rig, T0).rate;
    for (int i = 0; i < 100; i++)
        rig_tell(&rig, T0 + (700 + i) * WEIR_SECOND, i % 2 == 0 ? 500 : 0, 10 * MS, -1);
    assert_near(rig_want(&rig, T0).rate, before, 0);
    rig_release(&rig);
}

/* The largest least rate there is, at answers of an hour: no number of requests that a cap could not hold. */
static void window_is_bounded_whatever_the_least_rate_asks_for(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    struct rig rig;
    options.min_rate = 1e9;
    rig_init(&rig, &wr_gradient, &options, NULL, T0);
    for (int i = 1; i <= 10; i++) {
        rig_tell(&rig, T0 + i * WEIR_DAY, i % 3 == 0 ? 429 : 200, WEIR_HOUR, -1);
        assert_in_range(rig_want(&rig, T0).cap, 1, 1001);
    }
    rig_release(&rig);
}

WEIR_TESTS(test(begins_at_the_initial_rate_with_one_in_flight), test(queue_is_kept_full_and_short),
           test(host_without_a_limit_is_asked_by_all_workers), test(refusals_cut_the_window_and_the_limit_is_held),
           test(one_round_trip_cuts_once), test(rate_stays_above_its_least),
           test(window_that_is_not_used_does_not_grow), test(window_is_bounded_whatever_the_least_rate_asks_for))
