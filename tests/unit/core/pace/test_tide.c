/* SPDX-License-Identifier: MIT */
/* test_tide.c - tests each transition of tide with answers made by hand: start, search, cruise,
 * quota headers and warm starts. Blocks and requests in flight are in test_tide_block.c. */
#include "tide_rig.h"

static void start_sends_one_a_second_and_doubles_within_eight_successes(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = T0;
    assert_int_equal(rig_wait(&rig, now), 0);
    assert_mode(&rig, "start");
    assert_near(rate_at(&rig, now), 1, 1e-6);
    now = succeed(&rig, now, 8);
    assert_true(rate_at(&rig, now) > 2);
    assert_mode(&rig, "start");
    rig_release(&rig);
}

static void first_rejection_halves_the_rate_and_searches(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 20);
    double before = rate_at(&rig, now);
    now = answer(&rig, now, 429);
    assert_near(rate_at(&rig, now), before / 2, before * 0.01);
    assert_mode(&rig, "search");
    rig_release(&rig);
}

/* A bucket of 10 tokens with 5 a second: after a few rejections the rate is 5. */
static void rejections_measure_the_limit_within_one_over_n(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    struct bucket bucket = {.rate = 5, .burst = 10, .tokens = 10, .at = T0};
    int64_t now = T0;
    int rejections = 0;
    while (rejections < 12)
        now = step_bucket(&rig, &bucket, now, &rejections);
    assert_mode(&rig, "cruise");
    assert_near(rate_at(&rig, now), 5, 0.15);
    weir_pace_memory memory = rig_memory(&rig, now);
    assert_near(memory.rate, 5, 0.03);
    rig_release(&rig);
}

/* Within half an hour tide uses 99 % of the bucket's tokens, with few rejections. */
static void cruise_hovers_around_the_limit_and_is_rarely_rejected(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    struct bucket bucket = {.rate = 5, .burst = 10, .tokens = 10, .at = T0};
    int64_t now = T0;
    int rejections = 0, sent = 0;
    for (; now < T0 + 30 * WEIR_MINUTE; sent++)
        now = step_bucket(&rig, &bucket, now, &rejections);
    assert_true(sent - rejections > 0.99 * 5 * 1800);
    assert_true(rejections < 0.004 * sent);
    rig_release(&rig);
}

/* Requests sent before the cut are rejected, too. They carry no new information. */
static void rejections_of_one_round_trip_cut_the_tide_rate_once(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 30);
    struct wr_pace_response answers[5];
    for (int i = 0; i < 5; i++) {
        now += rig_wait(&rig, now);
        rig_send(&rig, now);
        answers[i] = (struct wr_pace_response){.kind = WR_PACE_RESPONSE_REJECTED,
                                               .status = 429,
                                               .seq = rig.seq,
                                               .in_flight_then = rig.in_flight,
                                               .sent_at = now,
                                               .latency_ns = LATENCY,
                                               .retry_after_ns = -1,
                                               .quota_remaining = -1,
                                               .quota_reset_ns = -1};
    }
    now += LATENCY;
    rig.strategy->tell(&rig.options, rig.state, &answers[0], now);
    double rate = rate_at(&rig, now);
    for (int i = 1; i < 5; i++)
        rig.strategy->tell(&rig.options, rig.state, &answers[i], now + i);
    assert_near(rate_at(&rig, now + 5), rate, 0);
    rig_release(&rig);
}

static void search_without_rejections_rises_to_the_geometric_mean(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 20);
    double bad = rate_at(&rig, now);
    now = answer(&rig, now, 429);
    now = succeed(&rig, now, 12);
    assert_near(rate_at(&rig, now), sqrt(bad * bad / 2), bad * 0.01);
    assert_mode(&rig, "search");
    now = succeed(&rig, now, 60);
    assert_mode(&rig, "cruise");
    rig_release(&rig);
}

/* The limit rises from 5 to 20, and tide finds the new one without a signal from the server. */
static void tide_finds_a_limit_that_rose(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    struct bucket bucket = {.rate = 5, .burst = 5, .tokens = 5, .at = T0};
    int64_t now = T0;
    int rejections = 0;
    while (now < T0 + 10 * WEIR_MINUTE)
        now = step_bucket(&rig, &bucket, now, &rejections);
    bucket.rate = 20;
    int64_t until = now + 6 * WEIR_MINUTE;
    while (now < until)
        now = step_bucket(&rig, &bucket, now, &rejections);
    assert_near(rate_at(&rig, now), 20, 2);
    rig_release(&rig);
}

static void tide_follows_a_limit_that_fell_within_seconds(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    struct bucket bucket = {.rate = 20, .burst = 5, .tokens = 5, .at = T0};
    int64_t now = T0;
    int rejections = 0;
    while (now < T0 + 10 * WEIR_MINUTE)
        now = step_bucket(&rig, &bucket, now, &rejections);
    bucket.rate = 5;
    int before = rejections;
    int64_t until = now + 10 * WEIR_SECOND;
    while (now < until)
        now = step_bucket(&rig, &bucket, now, &rejections);
    assert_true(rate_at(&rig, now) < 6);
    assert_true(rejections - before <= 12);
    rig_release(&rig);
}

/* A client that sends a request every ten seconds learns nothing about higher rates. */
static void rare_requests_do_not_raise_the_tide_rate(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 10);
    double rate = rate_at(&rig, now);
    for (int i = 0; i < 500; i++)
        now = answer(&rig, now + 10 * WEIR_SECOND, 200);
    assert_near(rate_at(&rig, now), rate, rate * 0.01);
    rig_release(&rig);
}

/* The gate admits 2 a second: the rate of tide stays near that. */
static void bound_of_the_gate_is_no_evidence_of_capacity(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = T0, last = T0 - WEIR_SECOND;
    for (int i = 0; i < 2000; i++) {
        now += rig_wait(&rig, now);
        now = now > last + WEIR_SECOND / 2 ? now : last + WEIR_SECOND / 2;
        last = now;
        rig_send(&rig, now);
        now += LATENCY;
        rig_tell(&rig, now, 200, LATENCY, -1);
    }
    /* two steps of a sixth above 2.25, where tide notices the bound */
    assert_true(rate_at(&rig, now) < 3);
    rig_release(&rig);
}

static void idle_time_discards_the_measurement_and_keeps_the_rate(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    struct bucket bucket = {.rate = 5, .burst = 10, .tokens = 10, .at = T0};
    int64_t now = T0;
    int rejections = 0;
    while (now < T0 + 5 * WEIR_MINUTE)
        now = step_bucket(&rig, &bucket, now, &rejections);
    double rate = rate_at(&rig, now);
    now += WEIR_HOUR;
    now = answer(&rig, now, 200);
    now = answer(&rig, now, 429);
    assert_true(rate_at(&rig, now) > 0.9 * rate);
    rig_release(&rig);
}

/* R25: single page errors say nothing about pace. */
static void single_5xx_and_lost_answers_do_not_change_the_tide_rate(void **state)
{
    (void)state;
    const int statuses[] = {500, 502, 504, 0};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct strategy_fixture rig = tide(NULL);
        int64_t now = succeed(&rig, T0, 20);
        double rate = rate_at(&rig, now);
        for (int n = 0; n < 5; n++) {
            now = answer(&rig, now, statuses[i]);
            now = succeed(&rig, now, 40);
        }
        assert_true(rate_at(&rig, now) >= rate);
        assert_mode(&rig, "start");
        rig_release(&rig);
    }
}

static void single_403s_do_not_change_the_tide_rate(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 20);
    double rate = rate_at(&rig, now);
    for (int i = 0; i < 10; i++) {
        now = answer(&rig, now, 403);
        now = succeed(&rig, now, 3);
    }
    assert_true(rate_at(&rig, now) >= rate);
    assert_mode(&rig, "start");
    rig_release(&rig);
}

static void single_503s_unrelated_to_the_rate_are_recognised(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = T0;
    for (int i = 0; i < 40; i++) {
        now = succeed(&rig, now, 30);
        now = answer(&rig, now, 503);
    }
    assert_true(rig_memory(&rig, now).traits & WR_TIDE_STRAY_503);
    double rate = rate_at(&rig, now);
    now = answer(&rig, now, 503);
    assert_near(rate_at(&rig, now), rate, 0);
    rig_release(&rig);
}

static void quota_of_headers_is_spread_over_the_time_until_reset(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 30);
    assert_true(rate_at(&rig, now) > 2);
    now += rig_wait(&rig, now);
    rig_send(&rig, now);
    now += LATENCY;
    rig.in_flight--;
    struct wr_pace_response answer = {.kind = WR_PACE_RESPONSE_OK,
                                      .status = 200,
                                      .seq = rig.seq,
                                      .in_flight_then = 1,
                                      .sent_at = now - LATENCY,
                                      .latency_ns = LATENCY,
                                      .retry_after_ns = -1,
                                      .quota_limit = 60,
                                      .quota_remaining = 30,
                                      .quota_reset_ns = 60 * WEIR_SECOND};
    rig.strategy->tell(&rig.options, rig.state, &answer, now);
    /* the 31st request is due when the quota is restored */
    assert_near(rate_at(&rig, now), 31 / 60.0, 1e-6);
    assert_true(rate_at(&rig, now + 61 * WEIR_SECOND) > 2);
    rig_release(&rig);
}

static void warm_start_begins_just_below_the_stored_rate(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 12, .cap = 9};
    struct strategy_fixture rig = tide(&memory);
    assert_mode(&rig, "cruise");
    double rate = rate_at(&rig, T0);
    assert_true(rate < 12 && rate > 0.95 * 12);
    assert_int_equal(rig_want(&rig, T0).cap, 9);
    rig_release(&rig);
}

/* The limit was 12 and is now 3: a stored rate is not trusted without confirmation. */
static void warm_start_is_corrected_by_the_first_rejections(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 12, .cap = 9};
    struct strategy_fixture rig = tide(&memory);
    struct bucket bucket = {.rate = 3, .burst = 5, .tokens = 5, .at = T0};
    int64_t now = T0;
    int rejections = 0;
    while (now < T0 + WEIR_MINUTE)
        now = step_bucket(&rig, &bucket, now, &rejections);
    assert_near(rate_at(&rig, now), 3, 0.5);
    assert_true(rejections < 15);
    rig_release(&rig);
}

static void tide_memory_holds_the_learned_values(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 40);
    weir_pace_memory memory = rig_memory(&rig, now);
    assert_true(memory.traits & WR_TIDE_FREE);
    assert_near(memory.rate, rate_at(&rig, now), 1e-3);
    assert_near((double)memory.delay_ns, 1e9 / memory.rate, 2);
    rig_release(&rig);
    rig_init(&rig, &wr_tide, &rig.options, &memory, T0);
    assert_mode(&rig, "start");
    assert_near(rate_at(&rig, T0), memory.rate, 1e-3);
    rig_release(&rig);
}

/* The gate ensures that time does not go back, but it may jump forward. */
static void tide_survives_jumps_of_time(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = T0;
    for (int i = 0; i < 60; i++) {
        now = answer(&rig, now, i % 7 == 6 ? 429 : 200);
        now += i % 5 == 4 ? 1000 * WEIR_HOUR : 0;
        double rate = rate_at(&rig, now);
        assert_true(rate > 0 && rate < 1e6);
        assert_true(rig_wait(&rig, now) < WEIR_HOUR);
    }
    rig_release(&rig);
}

static void state_of_tide_is_at_most_192_bytes(void **state)
{
    (void)state;
    assert_true(wr_tide.state_bytes <= 192);
}

WEIR_TESTS(test(start_sends_one_a_second_and_doubles_within_eight_successes),
           test(first_rejection_halves_the_rate_and_searches), test(rejections_measure_the_limit_within_one_over_n),
           test(cruise_hovers_around_the_limit_and_is_rarely_rejected),
           test(rejections_of_one_round_trip_cut_the_tide_rate_once),
           test(search_without_rejections_rises_to_the_geometric_mean), test(tide_finds_a_limit_that_rose),
           test(tide_follows_a_limit_that_fell_within_seconds), test(rare_requests_do_not_raise_the_tide_rate),
           test(bound_of_the_gate_is_no_evidence_of_capacity),
           test(idle_time_discards_the_measurement_and_keeps_the_rate),
           test(single_5xx_and_lost_answers_do_not_change_the_tide_rate), test(single_403s_do_not_change_the_tide_rate),
           test(single_503s_unrelated_to_the_rate_are_recognised),
           test(quota_of_headers_is_spread_over_the_time_until_reset),
           test(warm_start_begins_just_below_the_stored_rate), test(warm_start_is_corrected_by_the_first_rejections),
           test(tide_memory_holds_the_learned_values), test(tide_survives_jumps_of_time),
           test(state_of_tide_is_at_most_192_bytes))
