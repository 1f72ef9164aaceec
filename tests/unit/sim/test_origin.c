/* SPDX-License-Identifier: MIT */
/* test_origin.c - tests the parts of a simulated origin behind its limiter: station, service times,
 * errors and outages. */
#include "lib/alloc.h"
#include "rig.h"

static struct wr_scenario station(uint32_t servers, uint32_t queue)
{
    struct wr_scenario scenario = plain_scenario();
    scenario.origin.station.servers = servers;
    scenario.origin.station.queue = queue;
    return scenario;
}

static void station_serves_in_order_and_refuses_when_its_queue_is_full(void **state)
{
    (void)state;
    struct wr_scenario scenario = station(1, 2);
    ARRIVALS(scenario, OK(0), {10 * MS, 200, -1, 190 * MS}, {20 * MS, 200, -1, 280 * MS}, {30 * MS, 503, -1, 2 * MS},
             {99 * MS, 503, -1, 2 * MS}, {100 * MS, 200, -1, 300 * MS}, {101 * MS, 503, -1, 2 * MS}, OK(500 * MS));
}

static void station_serves_as_many_at_once_as_it_has_servers(void **state)
{
    (void)state;
    struct wr_scenario scenario = station(2, 1);
    ARRIVALS(scenario, OK(0), OK(40 * MS), {50 * MS, 200, -1, 150 * MS}, {60 * MS, 503, -1, 2 * MS},
             {100 * MS, 200, -1, 140 * MS}, {139 * MS, 503, -1, 2 * MS}, {140 * MS, 200, -1, 160 * MS});
}

static void station_without_a_queue_serves_or_refuses(void **state)
{
    (void)state;
    struct wr_scenario scenario = station(1, 0);
    scenario.origin.reject.retry_after = true;
    ARRIVALS(scenario, OK(0), {99 * MS, 503, 1 * S, 2 * MS}, OK(100 * MS));
}

static void limiter_is_applied_before_the_station(void **state)
{
    (void)state;
    struct wr_scenario scenario = station(1, 10);
    scenario.origin.limiter.kind = WR_LIMITER_TOKEN_BUCKET;
    scenario.origin.limiter.rate = 1;
    scenario.origin.limiter.burst = 2;
    ARRIVALS(scenario, OK(0), {0, 200, -1, 200 * MS}, NO(0));
}

static void every_answer_in_an_outage_is_a_503_and_costs_nothing(void **state)
{
    (void)state;
    struct wr_scenario scenario = plain_scenario();
    scenario.origin.limiter.kind = WR_LIMITER_TOKEN_BUCKET;
    scenario.origin.limiter.rate = 0.001;
    scenario.origin.limiter.burst = 2;
    scenario.origin.outage.from_ns = 10 * S;
    scenario.origin.outage.to_ns = 20 * S;
    ARRIVALS(scenario, OK(9999 * MS), {10 * S, 503, -1, 2 * MS}, {19999 * MS, 503, -1, 2 * MS}, OK(20 * S), NO(21 * S));
}

/* Measures mean and deviation of many service times, in ms. */
static void measure(const struct wr_scenario *scenario, double *ret_mean, double *ret_deviation)
{
    enum {
        MANY = 200000
    };
    const double many = MANY;
    struct wr_sim_origin site;
    struct wr_sim_reply reply;
    double sum = 0, squares = 0;
    assert_int_equal(wr_sim_origin_init(&site, &scenario->origin, 1000 * S, 7, weir_allocator_system()), 0);
    for (int i = 0; i < MANY; i++) {
        wr_sim_origin_arrive(&site, 0, &reply);
        double ms = (double)reply.done_at / 1e6;
        sum += ms, squares += ms * ms;
    }
    wr_sim_origin_release(&site);
    *ret_mean = sum / many;
    *ret_deviation = sqrt(squares / many - *ret_mean * *ret_mean);
}

static void assert_near(double is, double should, double share)
{
    if (!(fabs(is - should) <= share * should))
        fail_msg("%g, should be %g", is, should);
}

static void service_times_have_the_configured_mean_and_deviation(void **state)
{
    (void)state;
    double mean, deviation;
    struct wr_scenario scenario = plain_scenario();
    scenario.origin.service.sigma = 0.5;
    measure(&scenario, &mean, &deviation);
    assert_near(mean, 100, 0.01);
    assert_near(deviation, 100 * sqrt(exp(0.25) - 1), 0.02);

    scenario.origin.service.law = WR_LAW_UNIFORM; /* 33 ... 167 ms */
    measure(&scenario, &mean, &deviation);
    assert_near(mean, 100, 0.01);
    assert_near(deviation, 400.0 / 3 / sqrt(12), 0.02);

    scenario.origin.service.law = WR_LAW_LOGNORMAL;
    scenario.origin.service.sigma = 0;
    scenario.origin.service.tail = 0.02; /* 2 % take 2 s each */
    measure(&scenario, &mean, &deviation);
    assert_near(mean, 100 * (1 + 19 * 0.02), 0.02);
}

/* Service times must be positive and bounded: pacers divide by latencies, and clocks add them
 * up. */
static void service_takes_at_least_a_nanosecond_and_never_overflows(void **state)
{
    (void)state;
    const int64_t means_ns[] = {WEIR_MICROSECOND, WEIR_HOUR};
    struct wr_sim_reply reply;
    for (size_t i = 0; i < 2; i++) {
        struct wr_scenario scenario = plain_scenario();
        struct wr_sim_origin site;
        scenario.origin.service.mean_ns = means_ns[i];
        scenario.origin.service.sigma = 3;
        scenario.origin.service.tail = 0.5;
        assert_null(wr_scenario_wrong(&scenario));
        assert_int_equal(wr_sim_origin_init(&site, &scenario.origin, 1000 * S, 7, weir_allocator_system()), 0);
        for (int k = 0; k < 100000; k++) {
            wr_sim_origin_arrive(&site, 0, &reply);
            assert_in_range(reply.done_at, 1, 30 * WEIR_DAY);
        }
        wr_sim_origin_release(&site);
    }
}

static void errors_have_the_configured_rate_and_service_time(void **state)
{
    (void)state;
    struct wr_scenario scenario = plain_scenario();
    struct wr_sim_origin site;
    struct wr_sim_reply reply;
    int broken = 0, busy = 0;
    scenario.origin.errors.p500 = 0.05;
    scenario.origin.errors.p503 = 0.02;
    assert_int_equal(wr_sim_origin_init(&site, &scenario.origin, 1000 * S, 7, weir_allocator_system()), 0);
    for (int i = 0; i < 100000; i++) {
        wr_sim_origin_arrive(&site, 0, &reply);
        assert_int_equal(reply.cause, reply.status == 200 ? WR_REPLY_GOOD : WR_REPLY_BROKEN);
        assert_int_equal(reply.done_at, 100 * MS);
        broken += reply.status == 500;
        busy += reply.status == 503;
    }
    wr_sim_origin_release(&site);
    assert_in_range(broken, 4800, 5200);
    assert_in_range(busy, 1780, 2020);
}

/* The requests that fail do not depend on how many random numbers the service times use. They
 * depend on the seed. */
static void random_streams_of_an_origin_are_independent(void **state)
{
    (void)state;
    struct wr_scenario plain = plain_scenario();
    plain.origin.errors.p500 = 0.5;
    struct wr_scenario tailed = plain;
    tailed.origin.service.tail = 0.5;
    struct wr_sim_origin one, other, foreign;
    struct wr_sim_reply reply, again;
    int differ = 0;
    assert_int_equal(wr_sim_origin_init(&one, &plain.origin, 1000 * S, 5, weir_allocator_system()), 0);
    assert_int_equal(wr_sim_origin_init(&other, &tailed.origin, 1000 * S, 5, weir_allocator_system()), 0);
    assert_int_equal(wr_sim_origin_init(&foreign, &plain.origin, 1000 * S, 6, weir_allocator_system()), 0);
    for (int i = 0; i < 1000; i++) {
        wr_sim_origin_arrive(&one, 0, &reply);
        wr_sim_origin_arrive(&other, 0, &again);
        assert_int_equal(reply.status, again.status);
        wr_sim_origin_arrive(&foreign, 0, &again);
        differ += reply.status != again.status;
    }
    assert_in_range(differ, 400, 600);
    wr_sim_origin_release(&one);
    wr_sim_origin_release(&other);
    wr_sim_origin_release(&foreign);
}

static void origin_without_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    test_allocator memory;
    struct wr_scenario scenario = station(3, 5);
    scenario.origin.limiter.kind = WR_LIMITER_SLIDING_BAN;
    scenario.origin.vary.kind = WR_VARY_WALK;
    scenario.origin.vary.period_ns = 10 * S;
    for (int n = 1;; n++) {
        struct wr_sim_origin site;
        test_allocator_init(&memory);
        memory.fail_at = n;
        int error = wr_sim_origin_init(&site, &scenario.origin, 1000 * S, 1, &memory.allocator);
        if (error == 0)
            wr_sim_origin_release(&site);
        assert_int_equal(memory.live, 0);
        if (error == 0) {
            assert_int_equal(n, 4); /* walk, ring, station, and one that was not reached */
            return;
        }
        assert_int_equal(error, WEIR_E_NOMEM);
    }
}

WEIR_TESTS(test(station_serves_in_order_and_refuses_when_its_queue_is_full),
           test(station_serves_as_many_at_once_as_it_has_servers), test(station_without_a_queue_serves_or_refuses),
           test(limiter_is_applied_before_the_station), test(every_answer_in_an_outage_is_a_503_and_costs_nothing),
           test(service_times_have_the_configured_mean_and_deviation),
           test(service_takes_at_least_a_nanosecond_and_never_overflows),
           test(errors_have_the_configured_rate_and_service_time), test(random_streams_of_an_origin_are_independent),
           test(origin_without_memory_is_an_error_and_leaks_nothing))
