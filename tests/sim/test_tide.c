/* SPDX-License-Identifier: MIT */
/* test_tide.c - runs tide on the 34 scenarios of the reference, and on random ones that it was not
 * tuned for. One seed of each takes seconds; the figures of three seeds differ by less than the
 * slack here. docs/internals/tide.md has them. */
#include "lib/test.h"
#include "sim/listed.h"

#include <math.h>

struct mean {
    double goodput, rejected;
    int count;
};

static struct wr_score score_of(const struct wr_scenario *scenario, bool warm)
{
    struct wr_sim_pacer pacer;
    struct wr_score score;
    assert_int_equal(wr_sim_pacer_named("tide", &pacer), 0);
    assert_int_equal(wr_sim_score(scenario, &pacer, 1, 1, warm, weir_allocator_system(), &score), 0);
    return score;
}

static void add(struct mean *mean, const struct wr_score *score)
{
    mean->goodput += (fmin(1, score->goodput) - mean->goodput) / ++mean->count;
    mean->rejected += (score->rejected - mean->rejected) / mean->count;
}

/* Computes the means over all scenarios, and over each family P1 ... P11. */
static void run_listed(bool warm, struct mean *ret_all, struct mean ret_families[12])
{
    for (size_t i = 0; i < LISTED_COUNT; i++) {
        struct wr_score score = score_of(listed(i), warm);
        long family = strtol(listed(i)->name + 1, NULL, 10);
        assert_true(family >= 1 && family <= 11);
        add(ret_all, &score);
        add(&ret_families[family], &score);
    }
    print_message("%s: %.4f at %.5f\n", warm ? "warm" : "cold", ret_all->goodput, ret_all->rejected);
}

static void assert_reaches(const char *what, const struct mean *mean, double goodput, double rejected)
{
    if (mean->goodput < goodput || mean->rejected > rejected)
        fail_msg("%s: goodput %.4f at %.5f rejected, and not %.4f at %.5f", what, mean->goodput, mean->rejected,
                 goodput, rejected);
}

static void cold_tide_is_within_two_percent_of_the_oracle_with_few_rejections(void **state)
{
    (void)state;
    struct mean all = {0}, families[12] = {{0}};
    run_listed(false, &all, families);
    assert_reaches("all", &all, 0.975, 0.0035);
    assert_reaches("P4", &families[4], 0.90, 0.01);
    assert_reaches("P6", &families[6], 0.95, 0.01);
    assert_reaches("P8", &families[8], 0.99, 0);
    for (int i = 1; i <= 11; i++)
        if (i != 4 && i != 6)
            assert_reaches("a family", &families[i], 0.97, 0.01);
}

static void warm_tide_is_closer_to_the_oracle_with_fewer_rejections(void **state)
{
    (void)state;
    struct mean all = {0}, families[12] = {{0}};
    run_listed(true, &all, families);
    assert_reaches("all", &all, 0.98, 0.0015);
    assert_reaches("P4", &families[4], 0.97, 0.0005);
    assert_reaches("P8", &families[8], 0.995, 0);
}

static void tide_is_banned_at_most_twice(void **state)
{
    (void)state;
    const char *const names[] = {"P4a-sw100-60-ban60", "P4b-sw50-10-ban30ra", "P4c-sw20-10-ban120-403"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(score_of(listed_named(names[i]), false).bans <= 2);
}

/* Checks rejections and goodput on random origins. */
static void tide_finds_the_limits_of_random_origins(void **state)
{
    (void)state;
    struct mean all = {0};
    int good = 0;
    for (uint32_t i = 0; i < 110; i++) {
        struct wr_scenario scenario;
        wr_scenario_random(7, i, &scenario);
        struct wr_score score = score_of(&scenario, false);
        add(&all, &score);
        good += score.goodput >= 0.95 && (score.rejected <= 0.005 || score.rejections <= 6);
    }
    print_message("drawn: %.4f at %.5f, %d of 110\n", all.goodput, all.rejected, good);
    assert_reaches("drawn", &all, 0.96, 0.004);
    assert_true(good >= 80);
}

/* N6-6, A15, A16: models of real limiters, measured in the second half of ten minutes. */
static void tide_finds_the_limits_of_models_of_real_limiters(void **state)
{
    (void)state;
    static const double least[] = {0.85, 0.75, 0.70, 0.95, 0.60, 0.60, 0.93, 0.85, 0.93, 0.75, 0.98, 0.60, 0.80};
    struct mean all = {0}, families[13] = {{0}};
    for (uint32_t i = 0; i < 260; i++) {
        struct wr_scenario scenario;
        wr_scenario_random_real(11, i, &scenario);
        scenario.seeds = 1;
        struct wr_score score = score_of(&scenario, false);
        score.goodput = score.late_goodput;
        score.rejected = score.late_rejected;
        add(&all, &score);
        add(&families[i % 13], &score);
    }
    print_message("real: %.4f at %.5f\n", all.goodput, all.rejected);
    assert_reaches("real", &all, 0.88, 0.01);
    for (size_t i = 0; i < 13; i++)
        assert_reaches("a family", &families[i], least[i], 0.04);
}

/* N6-6: with a sliding window, the number of requests accepted between two refusals reflects the
 * demand, not the limit. */
static void quota_of_a_sliding_window_is_not_taken_for_a_bucket(void **state)
{
    (void)state;
    for (int counts_refused = 0; counts_refused < 2; counts_refused++) {
        struct wr_scenario scenario;
        wr_scenario_init(&scenario);
        (void)snprintf(scenario.name, sizeof scenario.name, "slides");
        scenario.duration_ns = 600 * WEIR_SECOND;
        scenario.origin.limiter.kind = WR_LIMITER_SLIDING_COUNTER;
        scenario.origin.limiter.starts = WR_STARTS_BY_REQUEST;
        scenario.origin.limiter.counts_refused = counts_refused;
        scenario.origin.limiter.quota = 100;
        scenario.origin.limiter.window_ns = 10 * WEIR_SECOND;
        struct wr_score score = score_of(&scenario, false);
        print_message("slides: %.4f at %.5f\n", score.late_goodput, score.late_rejected);
        assert_true(score.late_goodput > 0.9);
        assert_true(score.late_rejected < 0.01);
    }
}

/* N6-6: headers state the remaining quota and its reset, in seconds rounded up. */
static void quota_stated_in_headers_is_used_up_without_a_refusal(void **state)
{
    (void)state;
    for (int by_request = 0; by_request < 2; by_request++) {
        struct wr_scenario scenario;
        wr_scenario_init(&scenario);
        (void)snprintf(scenario.name, sizeof scenario.name, "fields");
        scenario.duration_ns = 300 * WEIR_SECOND;
        scenario.origin.limiter.kind = WR_LIMITER_FIXED_WINDOW;
        scenario.origin.limiter.quota = 50;
        scenario.origin.limiter.window_ns = 10 * WEIR_SECOND;
        scenario.origin.limiter.starts = by_request ? WR_STARTS_BY_REQUEST : WR_STARTS_BY_CLOCK;
        scenario.origin.reject.headers = true;
        struct wr_score score = score_of(&scenario, false);
        assert_int_equal(score.rejections, 0);
        assert_true(score.late_goodput > 0.98);
    }
}

/* Scores a scenario with a near server, so that nearly all requests in flight are in the server. */
static struct wr_score score_near(struct wr_scenario *scenario)
{
    scenario->duration_ns = 240 * WEIR_SECOND;
    scenario->network.rtt_ns = 10 * WEIR_MILLISECOND;
    scenario->origin.reject.how = WR_REJECT_RESET;
    return score_of(scenario, false);
}

/* A16, N6-6: the server resets connections of a fifth concurrent request, whatever the rate. */
static void concurrency_limit_that_resets_connections_is_found(void **state)
{
    (void)state;
    struct wr_scenario scenario = *listed_named("P10a-conc4");
    scenario.origin.service.mean_ns = 220 * WEIR_MILLISECOND;
    scenario.origin.service.sigma = 0.1;
    struct wr_score score = score_near(&scenario);
    print_message("concurrency: %.4f at %.5f\n", score.goodput, score.rejected);
    assert_true(score.goodput >= 0.88);
    assert_true(score.rejected <= 0.01);
}

/* A16, N6-6: the server resets connections until its window ends, as if it were down. */
static void window_that_resets_connections_is_no_outage(void **state)
{
    (void)state;
    struct wr_scenario scenario = *listed_named("P3c-fw60-min-bare");
    scenario.origin.limiter.quota = 100;
    scenario.origin.limiter.window_ns = 20 * WEIR_SECOND;
    struct wr_score score = score_near(&scenario);
    print_message("window: %.4f at %.5f\n", score.goodput, score.rejected);
    assert_true(score.goodput >= 0.98);
    assert_true(score.rejected <= 0.055);
}

static void tide_recovers_within_a_tenth_of_an_outage(void **state)
{
    (void)state;
    const char *const names[] = {"P9a-free-out60", "P9b-tb20-out60"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct wr_score score = score_of(listed_named(names[i]), false);
        assert_true(score.recovery_s <= 8); /* a tenth of 60 s, and time to notice it */
        assert_true(score.waste <= 16 + 20);
    }
}

WEIR_TESTS(test(cold_tide_is_within_two_percent_of_the_oracle_with_few_rejections),
           test(warm_tide_is_closer_to_the_oracle_with_fewer_rejections), test(tide_is_banned_at_most_twice),
           test(tide_finds_the_limits_of_random_origins), test(tide_finds_the_limits_of_models_of_real_limiters),
           test(quota_of_a_sliding_window_is_not_taken_for_a_bucket),
           test(quota_stated_in_headers_is_used_up_without_a_refusal),
           test(concurrency_limit_that_resets_connections_is_found), test(window_that_resets_connections_is_no_outage),
           test(tide_recovers_within_a_tenth_of_an_outage))
