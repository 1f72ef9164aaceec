/* SPDX-License-Identifier: MIT */
/* test_limiter.c - tests the limits of simulated origins against timelines computed by hand. */
#include "rig.h"

static struct wr_scenario bucket(double rate, double burst)
{
    struct wr_scenario scenario = plain_scenario();
    scenario.origin.limiter.kind = WR_LIMITER_TOKEN_BUCKET;
    scenario.origin.limiter.rate = rate;
    scenario.origin.limiter.burst = burst;
    return scenario;
}

static struct wr_scenario window(uint32_t quota, int64_t window_ns)
{
    struct wr_scenario scenario = plain_scenario();
    scenario.origin.limiter.kind = WR_LIMITER_FIXED_WINDOW;
    scenario.origin.limiter.quota = quota;
    scenario.origin.limiter.window_ns = window_ns;
    return scenario;
}

static struct wr_scenario ban(uint32_t quota, int64_t window_ns, int64_t ban_ns)
{
    struct wr_scenario scenario = window(quota, window_ns);
    scenario.origin.limiter.kind = WR_LIMITER_SLIDING_BAN;
    scenario.origin.limiter.ban_ns = ban_ns;
    return scenario;
}

static void simulated_bucket_admits_its_burst_and_then_its_rate(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket(2, 3);
    ARRIVALS(scenario, OK(0), OK(0), OK(0), NO(0), NO(499 * MS), OK(500 * MS), NO(501 * MS), OK(1000 * MS),
             /* the bucket is full, and not more */
             OK(60 * S), OK(60 * S), OK(60 * S), NO(60 * S));
}

static void simulated_bucket_takes_no_token_for_a_rejection(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket(0.2, 1);
    ARRIVALS(scenario, OK(0), NO(1 * S), NO(2 * S), NO(3 * S), NO(4 * S), OK(5 * S), NO(9999 * MS), OK(10 * S));
}

static void simulated_retry_after_is_in_whole_seconds_rounded_up(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket(0.4, 1);
    scenario.origin.reject.retry_after = true;
    ARRIVALS(scenario, OK(0), {0, 429, 3 * S, 2 * MS}, {499 * MS, 429, 3 * S, 2 * MS}, {500 * MS, 429, 2 * S, 2 * MS},
             {2400 * MS, 429, 1 * S, 2 * MS}, OK(2500 * MS));
}

static void simulated_windows_begin_at_63_hundredths_of_their_length(void **state)
{
    (void)state;
    struct wr_scenario scenario = window(2, 100 * S);
    ARRIVALS(scenario, OK(0), OK(1 * S), NO(2 * S), NO(62999 * MS), OK(63 * S), OK(64 * S), NO(162999 * MS),
             OK(163 * S));
}

static void simulated_window_states_its_end(void **state)
{
    (void)state;
    struct wr_scenario scenario = window(1, 100 * S);
    scenario.origin.reject.retry_after = true;
    ARRIVALS(scenario, OK(0), {2500 * MS, 429, 61 * S, 2 * MS}, {62999 * MS, 429, 1 * S, 2 * MS}, OK(63 * S));
}

static void simulated_ban_begins_above_the_quota_of_a_sliding_window(void **state)
{
    (void)state;
    struct wr_scenario scenario = ban(2, 10 * S, 30 * S);
    scenario.origin.limiter.status = 403;
    ARRIVALS(scenario, OK(0), OK(9 * S), OK(10 * S) /* the first is 10 s old */, {18 * S, 403, -1, 2 * MS},
             {47999 * MS, 403, -1, 2 * MS}, OK(48 * S), OK(48 * S), {49 * S, 403, -1, 2 * MS});
}

static void requests_during_a_simulated_ban_extend_it_only_if_configured(void **state)
{
    (void)state;
    struct wr_scenario scenario = ban(1, 1 * S, 30 * S);
    scenario.origin.reject.retry_after = true;
    ARRIVALS(scenario, OK(0), {500 * MS, 429, 30 * S, 2 * MS}, {20500 * MS, 429, 10 * S, 2 * MS}, OK(30500 * MS));
    scenario.origin.limiter.extend = true;
    ARRIVALS(scenario, OK(0), {500 * MS, 429, 30 * S, 2 * MS}, {20500 * MS, 429, 30 * S, 2 * MS},
             {30500 * MS, 429, 30 * S, 2 * MS}, OK(60500 * MS));
}

static void simulated_concurrency_limit_counts_requests_in_service(void **state)
{
    (void)state;
    struct wr_scenario scenario = plain_scenario();
    scenario.origin.limiter.kind = WR_LIMITER_CONCURRENCY;
    scenario.origin.limiter.max = 2;
    scenario.origin.reject.status = 503;
    ARRIVALS(scenario, OK(0), OK(50 * MS), {99 * MS, 503, -1, 2 * MS}, OK(100 * MS), {149 * MS, 503, -1, 2 * MS},
             OK(150 * MS));
}

static void origin_without_a_limiter_admits_everything(void **state)
{
    (void)state;
    struct wr_scenario scenario = plain_scenario();
    ARRIVALS(scenario, OK(0), OK(0), OK(0), OK(0), OK(0), OK(0), OK(0), OK(0));
}

/* ---- variation ------------------------------------------------------------------------------- */

static void bucket_of_a_step_refills_at_a_quarter_in_the_middle_third(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket(1, 1);
    scenario.duration_ns = 30 * S;
    scenario.origin.vary.kind = WR_VARY_STEP;
    ARRIVALS(scenario, OK(0), OK(1 * S), OK(9500 * MS),
             /* half a token until 10 s; the other half takes 2 s */
             NO(11999 * MS), OK(12 * S), NO(15999 * MS), OK(16 * S),
             /* three quarters until 19 s; the last quarter takes 1 s */
             NO(19 * S), OK(20 * S), OK(21 * S));
}

static void quota_of_a_jump_is_larger_in_the_second_half(void **state)
{
    (void)state;
    struct wr_scenario scenario = window(2, 100 * S);
    scenario.duration_ns = 126 * S;
    scenario.origin.vary.kind = WR_VARY_JUMP;
    ARRIVALS(scenario, OK(0), OK(0), NO(0), OK(63 * S), OK(63 * S), OK(63 * S), OK(63 * S), OK(63 * S), NO(63 * S));
}

static void origin_without_a_limiter_varies_its_service_time(void **state)
{
    (void)state;
    struct wr_scenario scenario = plain_scenario();
    scenario.duration_ns = 30 * S;
    scenario.origin.vary.kind = WR_VARY_STEP;
    ARRIVALS(scenario, OK(0), {15 * S, 200, -1, 400 * MS}, OK(20 * S));
}

/* Other clients send 1000 requests in 1000 s: of the bucket's 2000 tokens about half are left. */
static void other_clients_take_their_share_of_a_simulated_bucket(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket(2, 2);
    struct wr_sim_origin site;
    struct wr_sim_reply reply;
    int ok = 0;
    scenario.origin.cross = 0.5;
    assert_int_equal(wr_sim_origin_init(&site, &scenario.origin, 1000 * S, 1, weir_allocator_system()), 0);
    for (int64_t at = 0; at < 1000 * S; at += 900 * MS) {
        wr_sim_origin_arrive(&site, at, &reply);
        ok += reply.status == 200;
    }
    wr_sim_origin_release(&site);
    assert_in_range(ok, 900, 1090); /* 1112 requests in all */
}

/* ---- headers --------------------------------------------------------------------------------- */

static void check_headers(struct wr_sim_origin *site, int64_t at, int64_t limit, int64_t remaining, int64_t reset_ns)
{
    struct wr_sim_reply reply;
    wr_sim_origin_arrive(site, at, &reply);
    assert_int_equal(reply.quota_limit, limit);
    assert_int_equal(reply.quota_remaining, remaining);
    assert_int_equal(reply.quota_reset_ns, reset_ns);
}

static void simulated_headers_count_a_window_down(void **state)
{
    (void)state;
    struct wr_scenario scenario = window(3, 100 * S);
    struct wr_sim_origin site;
    scenario.origin.reject.headers = true;
    assert_int_equal(wr_sim_origin_init(&site, &scenario.origin, 1000 * S, 1, weir_allocator_system()), 0);
    check_headers(&site, 0, 3, 2, 63 * S);
    check_headers(&site, 500 * MS, 3, 1, 63 * S);
    check_headers(&site, 62 * S, 3, 0, 1 * S);
    check_headers(&site, 62 * S, 3, 0, 1 * S); /* a rejection */
    check_headers(&site, 63 * S, 3, 2, 100 * S);
    wr_sim_origin_release(&site);
}

static void simulated_headers_state_a_bucket_and_a_ban(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket(1, 4);
    struct wr_sim_origin site;
    scenario.origin.reject.headers = true;
    assert_int_equal(wr_sim_origin_init(&site, &scenario.origin, 1000 * S, 1, weir_allocator_system()), 0);
    check_headers(&site, 0, 4, 3, 1 * S);
    /* 2.5 tokens are left; the bucket is full in 1.5 s */
    check_headers(&site, 500 * MS, 4, 2, 2 * S);
    wr_sim_origin_release(&site);

    scenario = ban(1, 10 * S, 30 * S);
    scenario.origin.reject.headers = true;
    assert_int_equal(wr_sim_origin_init(&site, &scenario.origin, 1000 * S, 1, weir_allocator_system()), 0);
    check_headers(&site, 0, 1, 0, 10 * S);
    check_headers(&site, 4 * S, 1, 0, 30 * S);
    assert_int_equal(site.origin_limiter.bans, 1);
    wr_sim_origin_release(&site);
}

/* A bucket that gets a token in eleven days: the wait for ten thousand tokens in ns exceeds 64
 * bits. */
static void stated_wait_is_at_most_a_billion_seconds(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket(1e-6, 1e7);
    struct wr_sim_origin site;
    scenario.origin.reject.headers = true;
    assert_int_equal(wr_sim_origin_init(&site, &scenario.origin, 1000 * S, 1, weir_allocator_system()), 0);
    check_headers(&site, 0, 10000000, 9999999, 1000000 * S);
    for (int i = 0; i < 20000; i++)
        wr_sim_origin_arrive(&site, 0, &(struct wr_sim_reply){0});
    check_headers(&site, 0, 10000000, 9979998, 1000000000 * S);
    wr_sim_origin_release(&site);
}

static void origin_without_headers_states_no_limit(void **state)
{
    (void)state;
    struct wr_scenario scenario = window(3, 100 * S);
    struct wr_sim_origin site;
    assert_int_equal(wr_sim_origin_init(&site, &scenario.origin, 1000 * S, 1, weir_allocator_system()), 0);
    check_headers(&site, 0, -1, -1, -1);
    wr_sim_origin_release(&site);
}

static void window_may_begin_with_a_request(void **state)
{
    (void)state;
    struct wr_scenario scenario = window(2, 10 * S);
    scenario.origin.limiter.starts = WR_STARTS_BY_REQUEST;
    scenario.origin.reject.retry_after = true;
    ARRIVALS(scenario, OK(3 * S), OK(4 * S), {5 * S, 429, 8 * S, 2 * MS}, {12999 * MS, 429, 1 * S, 2 * MS}, OK(20 * S),
             OK(29 * S), {29 * S, 429, 1 * S, 2 * MS}, OK(30 * S));
}

static void request_above_the_quota_blocks_and_restarts_the_count(void **state)
{
    (void)state;
    struct wr_scenario scenario = window(2, 4 * S);
    scenario.origin.limiter.starts = WR_STARTS_BY_REQUEST;
    scenario.origin.limiter.block_ns = 10 * S;
    ARRIVALS(scenario, OK(0), OK(1 * S), NO(2 * S), NO(5 * S), NO(11999 * MS), OK(12 * S), OK(13 * S), NO(14 * S),
             NO(23 * S), OK(24 * S));
    scenario.origin.limiter.extend = true;
    ARRIVALS(scenario, OK(0), OK(1 * S), NO(2 * S), NO(5 * S), NO(12 * S), NO(21 * S), OK(31 * S));
}

/* 2 in any 10 s; rejected requests do not count. */
static void sliding_window_admits_one_for_each_that_leaves_it(void **state)
{
    (void)state;
    struct wr_scenario scenario = window(2, 10 * S);
    scenario.origin.limiter.kind = WR_LIMITER_SLIDING_BAN;
    scenario.origin.limiter.ban_ns = 0;
    scenario.origin.reject.retry_after = true;
    ARRIVALS(scenario, OK(0), OK(4 * S), {5 * S, 429, 5 * S, 2 * MS}, OK(10 * S), {13 * S, 429, 1 * S, 2 * MS},
             OK(14 * S));
}

/* 4 in 10 s: at 15 s, half of the first window's 4 requests still count. */
static void sliding_counter_counts_a_share_of_the_previous_window(void **state)
{
    (void)state;
    struct wr_scenario scenario = window(4, 10 * S);
    scenario.origin.limiter.kind = WR_LIMITER_SLIDING_COUNTER;
    scenario.origin.limiter.starts = WR_STARTS_BY_REQUEST;
    ARRIVALS(scenario, OK(0), OK(1 * S), OK(2 * S), OK(3 * S), NO(4 * S), NO(9 * S), OK(15 * S), OK(15 * S), NO(15 * S),
             OK(40 * S));
    scenario.origin.limiter.counts_refused = true;
    ARRIVALS(scenario, OK(0), OK(1 * S), OK(2 * S), OK(3 * S), NO(4 * S), NO(9 * S), NO(9 * S), NO(15 * S), OK(40 * S));
}

static void requests_beyond_the_quota_take_longer_each(void **state)
{
    (void)state;
    struct wr_scenario scenario = window(2, 10 * S);
    scenario.origin.limiter.kind = WR_LIMITER_SLOW_DOWN;
    scenario.origin.limiter.step_ns = 300 * MS;
    scenario.origin.limiter.most_ns = 500 * MS;
    ARRIVALS(scenario, OK(0), OK(1 * S), {2 * S, 200, -1, 400 * MS}, {3 * S, 200, -1, 600 * MS},
             {4 * S, 200, -1, 600 * MS}, OK(10 * S));
}

static void simulated_refusals_may_be_late_resets_or_missing(void **state)
{
    (void)state;
    struct wr_scenario scenario = bucket(1, 1);
    scenario.origin.reject.status = 500;
    scenario.origin.reject.delay_ns = 5 * S;
    ARRIVALS(scenario, OK(0), {0, 500, -1, 5002 * MS});
    scenario.origin.reject.how = WR_REJECT_SILENCE;
    /* no effect: there is no answer that could carry it */
    scenario.origin.reject.retry_after = true;
    ARRIVALS(scenario, OK(0), {0, 0, -1, 5 * S});
    scenario.origin.reject.delay_ns = 0;
    ARRIVALS(scenario, OK(0), {0, 0, -1, 30 * S});
    scenario.origin.reject.how = WR_REJECT_RESET;
    ARRIVALS(scenario, OK(0), {0, 0, -1, 2 * MS});
}

static void retry_after_may_be_fixed_and_on_successes(void **state)
{
    (void)state;
    struct wr_scenario scenario = window(2, 10 * S);
    scenario.origin.limiter.starts = WR_STARTS_BY_REQUEST;
    scenario.origin.reject.retry_after = scenario.origin.reject.always = true;
    scenario.origin.reject.wait_ns = 7 * S;
    ARRIVALS(scenario, {0, 200, 10 * S, 100 * MS}, {4 * S, 200, 6 * S, 100 * MS}, {9 * S, 429, 7 * S, 2 * MS});
}

WEIR_TESTS(test(simulated_bucket_admits_its_burst_and_then_its_rate),
           test(simulated_bucket_takes_no_token_for_a_rejection),
           test(simulated_retry_after_is_in_whole_seconds_rounded_up),
           test(simulated_windows_begin_at_63_hundredths_of_their_length), test(simulated_window_states_its_end),
           test(simulated_ban_begins_above_the_quota_of_a_sliding_window),
           test(requests_during_a_simulated_ban_extend_it_only_if_configured),
           test(simulated_concurrency_limit_counts_requests_in_service),
           test(origin_without_a_limiter_admits_everything),
           test(bucket_of_a_step_refills_at_a_quarter_in_the_middle_third),
           test(quota_of_a_jump_is_larger_in_the_second_half), test(origin_without_a_limiter_varies_its_service_time),
           test(other_clients_take_their_share_of_a_simulated_bucket), test(simulated_headers_count_a_window_down),
           test(simulated_headers_state_a_bucket_and_a_ban), test(stated_wait_is_at_most_a_billion_seconds),
           test(origin_without_headers_states_no_limit), test(window_may_begin_with_a_request),
           test(request_above_the_quota_blocks_and_restarts_the_count),
           test(sliding_counter_counts_a_share_of_the_previous_window),
           test(sliding_window_admits_one_for_each_that_leaves_it), test(requests_beyond_the_quota_take_longer_each),
           test(simulated_refusals_may_be_late_resets_or_missing), test(retry_after_may_be_fixed_and_on_successes))
