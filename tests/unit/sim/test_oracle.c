/* SPDX-License-Identifier: MIT */
/* test_oracle.c - tests how capacities vary and what the oracle computes from them, against
 * integrals computed by hand. */
#include "rig.h"
#include "sim/oracle.h"

static void assert_total(const struct wr_scenario *scenario, double total)
{
    struct wr_sim_origin site;
    assert_null(wr_scenario_wrong(scenario));
    assert_int_equal(wr_sim_origin_init(&site, &scenario->origin, scenario->duration_ns, 1, weir_allocator_system()),
                     0);
    double is = wr_oracle_total(&site, scenario);
    if (!(fabs(is - total) < 1e-6 * total))
        fail_msg("the oracle says %.9g, not %.9g", is, total);
    wr_sim_origin_release(&site);
}

/* Returns a scenario of 600 s with 20/s, a burst of 20, 100 ms service, 50 ms round trip and 64
 * workers. */
static struct wr_scenario bucket(void)
{
    struct wr_scenario scenario = plain_scenario();
    scenario.duration_ns = 600 * S;
    scenario.origin.limiter.kind = WR_LIMITER_TOKEN_BUCKET;
    scenario.origin.limiter.rate = 20;
    scenario.origin.limiter.burst = 20;
    return scenario;
}

static void oracle_of_a_bucket_is_its_rate_and_one_burst(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket();
    assert_total(&scenario, 12020);
    scenario.duration_ns = 1500 * MS;
    assert_total(&scenario, 50);
}

static void oracle_of_a_window_is_its_quota_over_its_length(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket();
    scenario.origin.limiter.kind = WR_LIMITER_FIXED_WINDOW;
    scenario.origin.limiter.quota = 100;
    scenario.origin.limiter.window_ns = 60 * S;
    assert_total(&scenario, 1000);
    scenario.origin.limiter.kind = WR_LIMITER_SLIDING_BAN;
    assert_total(&scenario, 1000);
}

static void oracle_of_concurrency_is_the_number_that_fits_in_the_time(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket();
    scenario.origin.limiter.kind = WR_LIMITER_NONE;
    assert_total(&scenario, 600 * 64 / 0.15);
    scenario.origin.service.tail = 0.02;
    assert_total(&scenario, 600 * 64 / (0.1 * 1.38 + 0.05));
    scenario.origin.service.tail = 0;
    scenario.origin.limiter.kind = WR_LIMITER_CONCURRENCY;
    scenario.origin.limiter.max = 3;
    assert_total(&scenario, 600 * 3 / 0.15);
    scenario.origin.station.servers = 1;
    assert_total(&scenario, 600 * 1 / 0.1);
    scenario.workers = 1;
    assert_total(&scenario, 600 * 1 / 0.15);
}

static void oracle_subtracts_outages_errors_and_other_clients(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket();
    scenario.origin.outage.from_ns = 100 * S + 500 * MS;
    scenario.origin.outage.to_ns = 160 * S;
    assert_total(&scenario, 12020 - 59.5 * 20);
    scenario.origin.outage.to_ns = 0;
    scenario.origin.errors.p500 = 0.1;
    assert_total(&scenario, 12020 * 0.9);
    scenario.origin.errors.p500 = 0;
    scenario.origin.cross = 0.4;
    assert_total(&scenario, 7220);
}

static void oracle_integrates_a_varying_capacity(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket();
    scenario.origin.vary.kind = WR_VARY_STEP; /* 200 s at 5/s */
    assert_total(&scenario, 4000 + 1000 + 4000 + 20);
    scenario.origin.vary.kind = WR_VARY_JUMP; /* 300 s at 50/s */
    assert_total(&scenario, 6000 + 15000 + 20);
    scenario.origin.vary.kind = WR_VARY_SINE;
    scenario.origin.vary.period_ns = 200 * S; /* whole periods */
    assert_total(&scenario, 12020);
    scenario.origin.vary.period_ns = 1200 * S; /* the positive half: mean 1 + 0.5 * 2/pi */
    assert_total(&scenario, 12000 * (1 + 1 / M_PI) + 20);
}

/* The smallest of the limits counts at each moment: the rate, the 426/s of 64 workers / 0.15 s, and
 * the 100/s of the station. */
static void oracle_uses_the_smallest_limit_at_each_moment(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket();
    scenario.origin.limiter.rate = 80;
    scenario.origin.vary.kind = WR_VARY_JUMP; /* 80/s, then 200/s */
    scenario.origin.station.servers = 10;
    assert_total(&scenario, 300 * 80 + 300 * 100 + 20);
}

static void variation_factor_is_the_derivative_of_its_sum(void **state)
{
    (void)state;
    const enum wr_vary_kind kinds[] = {WR_VARY_NONE, WR_VARY_STEP, WR_VARY_JUMP, WR_VARY_SINE, WR_VARY_WALK};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct wr_scenario scenario = bucket();
        struct wr_vary vary;
        double sum = 0, step = 0.01;
        scenario.origin.vary.kind = kinds[i];
        scenario.origin.vary.period_ns = 7 * S;
        assert_int_equal(wr_vary_init(&vary, &scenario.origin, 60 * S, 3, weir_allocator_system()), 0);
        for (double t = 0; t < 59.995; t += step) {
            sum += wr_vary_factor(&vary, t + step / 2) * step;
            assert_true(fabs(wr_vary_sum(&vary, t + step) - sum) < 0.02);
        }
        wr_vary_release(&vary);
    }
}

static void random_walk_of_capacity_moves_within_its_bounds(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket();
    struct wr_vary vary;
    double least = 9, most = 0;
    scenario.origin.vary.kind = WR_VARY_WALK;
    scenario.origin.vary.period_ns = 1 * S;
    assert_int_equal(wr_vary_init(&vary, &scenario.origin, 2000 * S, 3, weir_allocator_system()), 0);
    assert_true(wr_vary_factor(&vary, 0) == 1);
    assert_true(wr_vary_factor(&vary, 0.99) == 1);
    for (double t = 0; t < 2000; t++) {
        least = fmin(least, wr_vary_factor(&vary, t));
        most = fmax(most, wr_vary_factor(&vary, t));
    }
    wr_vary_release(&vary);
    assert_true(least == 0.3);
    assert_true(most == 1.5);
}

static void oracle_of_a_backlog_takes_the_rate_and_one_last_answer(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket();
    struct wr_sim_origin site;
    assert_int_equal(wr_sim_origin_init(&site, &scenario.origin, scenario.duration_ns, 1, weir_allocator_system()), 0);
    assert_true(fabs(wr_oracle_makespan(&site, &scenario, 20) - 0.15) < 1e-9);
    assert_true(fabs(wr_oracle_makespan(&site, &scenario, 30) - 0.65) < 1e-9);
    assert_true(fabs(wr_oracle_makespan(&site, &scenario, 1020) - 50.15) < 1e-9);
    assert_true(wr_oracle_makespan(&site, &scenario, 1000000) == 600);
    wr_sim_origin_release(&site);
}

static void oracle_rate_is_zero_in_an_outage(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket();
    struct wr_sim_origin site;
    scenario.origin.outage.from_ns = 100 * S;
    scenario.origin.outage.to_ns = 160 * S;
    scenario.origin.vary.kind = WR_VARY_STEP;
    assert_int_equal(wr_sim_origin_init(&site, &scenario.origin, scenario.duration_ns, 1, weir_allocator_system()), 0);
    assert_true(wr_oracle_rate(&site, &scenario, 99) == 20);
    assert_true(wr_oracle_rate(&site, &scenario, 100) == 0);
    assert_true(wr_oracle_rate(&site, &scenario, 160) == 20);
    assert_true(wr_oracle_rate(&site, &scenario, 300) == 5);
    wr_sim_origin_release(&site);
}

WEIR_TESTS(test(oracle_of_a_bucket_is_its_rate_and_one_burst), test(oracle_of_a_window_is_its_quota_over_its_length),
           test(oracle_of_concurrency_is_the_number_that_fits_in_the_time),
           test(oracle_subtracts_outages_errors_and_other_clients), test(oracle_integrates_a_varying_capacity),
           test(oracle_uses_the_smallest_limit_at_each_moment), test(variation_factor_is_the_derivative_of_its_sum),
           test(random_walk_of_capacity_moves_within_its_bounds),
           test(oracle_of_a_backlog_takes_the_rate_and_one_last_answer), test(oracle_rate_is_zero_in_an_outage))
