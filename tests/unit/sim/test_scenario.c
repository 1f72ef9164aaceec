/* SPDX-License-Identifier: MIT */
/* test_scenario.c - tests scenarios: defaults, refused values, and random ones. */
#include "rig.h"

static void scenario_defaults_are_those_of_the_manual(void **state)
{
    (void)state;
    struct wr_scenario scenario;
    wr_scenario_init(&scenario);
    assert_string_equal(wr_scenario_wrong(&scenario), "name is missing; give the scenario a name");
    assert_int_equal(scenario.duration_ns, 1800 * S);
    assert_int_equal(scenario.workers, 64);
    assert_int_equal(scenario.seeds, 3);
    assert_int_equal(scenario.network.rtt_ns, 50 * MS);
    assert_int_equal(scenario.network.jitter_ns, 0);
    assert_int_equal(scenario.origin.service.mean_ns, 50 * MS);
    assert_true(scenario.origin.service.sigma == 0.5);
    assert_int_equal(scenario.origin.limiter.kind, WR_LIMITER_NONE);
    assert_int_equal(scenario.origin.reject.status, 429);
    assert_false(scenario.origin.reject.retry_after);
    assert_int_equal(scenario.backlog, 0);
    assert_int_equal(scenario.crowd.hosts, 0);
}

/* Makes one change to a valid scenario and checks that it is refused with a text that has
 * `word`. */
#define REFUSED(word, change)                                          \
    do {                                                               \
        struct wr_scenario s = plain_scenario();                       \
        s.origin.limiter.kind = WR_LIMITER_TOKEN_BUCKET;               \
        assert_null(wr_scenario_wrong(&s));                            \
        change;                                                        \
        const char *wrong = wr_scenario_wrong(&s);                     \
        assert_non_null(wrong);                                        \
        if (strstr(wrong, word) == NULL || strchr(wrong, ';') == NULL) \
            fail_msg("%s: %s", word, wrong);                           \
    } while (0)

static void invalid_scenarios_are_refused_and_the_error_says_what_is_valid(void **state)
{
    (void)state;
    REFUSED("duration", s.duration_ns = 0);
    REFUSED("duration", s.duration_ns = 31 * WEIR_DAY);
    REFUSED("workers", s.workers = 0);
    REFUSED("seeds", s.seeds = 0);
    REFUSED("network", s.network.rtt_ns = -1);
    REFUSED("network", s.network.jitter_ns = WEIR_HOUR);
    REFUSED("backlog", s.backlog = UINT32_MAX);
    REFUSED("mean", s.origin.service.mean_ns = 0);
    REFUSED("sigma", s.origin.service.sigma = NAN);
    REFUSED("law", s.origin.service.law = (enum wr_service_law)7);
    REFUSED("tail", s.origin.service.tail = 1.1);
    REFUSED("rate", s.origin.limiter.rate = 0);
    REFUSED("rate", s.origin.limiter.rate = NAN);
    REFUSED("burst", s.origin.limiter.burst = 0.5);
    REFUSED("kind", s.origin.limiter.kind = (enum wr_limiter_kind)77);
    REFUSED("quota", s.origin.limiter.kind = WR_LIMITER_FIXED_WINDOW; s.origin.limiter.quota = 0);
    REFUSED("window", s.origin.limiter.kind = WR_LIMITER_FIXED_WINDOW; s.origin.limiter.window_ns = 0);
    REFUSED("ban", s.origin.limiter.kind = WR_LIMITER_SLIDING_BAN; s.origin.limiter.ban_ns = -1);
    REFUSED("status", s.origin.limiter.kind = WR_LIMITER_SLIDING_BAN; s.origin.limiter.status = 200);
    REFUSED("max", s.origin.limiter.kind = WR_LIMITER_CONCURRENCY; s.origin.limiter.max = 0);
    REFUSED("starts", s.origin.limiter.kind = WR_LIMITER_FIXED_WINDOW;
            s.origin.limiter.starts = (enum wr_window_start)5);
    REFUSED("block", s.origin.limiter.kind = WR_LIMITER_FIXED_WINDOW; s.origin.limiter.block_ns = -1);
    REFUSED("window", s.origin.limiter.kind = WR_LIMITER_SLIDING_COUNTER; s.origin.limiter.window_ns = 0);
    REFUSED("step", s.origin.limiter.kind = WR_LIMITER_SLOW_DOWN; s.origin.limiter.step_ns = 0);
    REFUSED("most", s.origin.limiter.kind = WR_LIMITER_SLOW_DOWN; s.origin.limiter.most_ns = -1);
    REFUSED("how", s.origin.reject.how = (enum wr_reject_how)3);
    REFUSED("delay", s.origin.reject.delay_ns = 2 * WEIR_HOUR);
    REFUSED("wait", s.origin.reject.wait_ns = -1);
    REFUSED("servers", s.origin.station.servers = 5000);
    REFUSED("queue", s.origin.station.queue = UINT32_MAX);
    REFUSED("status", s.origin.reject.status = 200);
    REFUSED("p500", s.origin.errors.p500 = 1);
    REFUSED("p503", s.origin.errors.p503 = -0.1);
    REFUSED("outage", s.origin.outage.from_ns = 2 * S; s.origin.outage.to_ns = S);
    REFUSED("period", s.origin.vary.kind = WR_VARY_SINE);
    REFUSED("kind", s.origin.vary.kind = (enum wr_vary_kind)9);
    REFUSED("cross", s.origin.cross = 1);
    REFUSED("cross", s.origin.cross = 0.1; s.origin.limiter.kind = WR_LIMITER_NONE);
    REFUSED("mix", s.crowd.hosts = 10);
    REFUSED("hosts", s.crowd.hosts = 1000000);
    REFUSED("zipf", s.crowd.hosts = 10; s.crowd.zipf = -1);
    REFUSED("largest", s.crowd.hosts = 10; s.crowd.largest = 0);
    REFUSED("weight", s.crowd.hosts = 10; s.mix_count = 1; s.mix[0].weight = 0);
    REFUSED("sigma", s.crowd.hosts = 10; s.mix_count = 1; s.mix[0].origin.service.sigma = -1);
}

typedef void draw(uint64_t seed, uint32_t index, struct wr_scenario *ret_scenario);

static void check_drawn(draw *drawn, char letter, uint32_t families)
{
    struct wr_scenario scenario;
    char prefix[16];
    for (uint32_t seed = 1; seed <= 30; seed++)
        for (uint32_t i = 0; i < 110; i++) {
            drawn(seed, i, &scenario);
            const char *wrong = wr_scenario_wrong(&scenario);
            if (wrong != NULL)
                fail_msg("%s: %s", scenario.name, wrong);
            snprintf(prefix, sizeof prefix, "%c%u-r%u-", letter, i % families + 1, i);
            assert_memory_equal(scenario.name, prefix, strlen(prefix));
            assert_true(strlen(scenario.name) < sizeof scenario.name - 1);
        }
}

static void random_scenarios_are_valid_and_named_after_their_family(void **state)
{
    (void)state;
    check_drawn(wr_scenario_random, 'P', 11);
    check_drawn(wr_scenario_random_real, 'R', 13);
}

static bool same(const struct wr_scenario *one, const struct wr_scenario *other)
{
    return strcmp(one->name, other->name) == 0 && one->network.rtt_ns == other->network.rtt_ns &&
           one->origin.service.mean_ns == other->origin.service.mean_ns &&
           one->origin.service.sigma == other->origin.service.sigma;
}

static void check_depends(draw *drawn, uint32_t families)
{
    struct wr_scenario one, other;
    uint32_t differ = 0;
    for (uint32_t i = 0; i < families; i++) {
        drawn(3, i, &one);
        drawn(3, i, &other);
        assert_true(same(&one, &other));
        drawn(4, i, &other);
        differ += !same(&one, &other);
    }
    assert_int_equal(differ, families);
}

static void random_scenarios_depend_on_seed_and_index_alone(void **state)
{
    (void)state;
    check_depends(wr_scenario_random, 11);
    check_depends(wr_scenario_random_real, 13);
}

/* The ranges are those of docs/scenarios.md, and both ends are reached. */
static void random_scenario_rates_span_their_range(void **state)
{
    (void)state;
    struct wr_scenario scenario;
    double least = 1e9, most = 0;
    for (uint32_t i = 0; i < 11 * 300; i += 11) {
        wr_scenario_random(1, i, &scenario);
        assert_int_equal(scenario.origin.limiter.kind, WR_LIMITER_TOKEN_BUCKET);
        assert_false(scenario.origin.reject.retry_after);
        least = fmin(least, scenario.origin.limiter.rate);
        most = fmax(most, scenario.origin.limiter.rate);
    }
    assert_true(least >= 0.2 && least < 0.3);
    assert_true(most <= 200 && most > 150);
}

WEIR_TESTS(test(scenario_defaults_are_those_of_the_manual),
           test(invalid_scenarios_are_refused_and_the_error_says_what_is_valid),
           test(random_scenarios_are_valid_and_named_after_their_family),
           test(random_scenarios_depend_on_seed_and_index_alone), test(random_scenario_rates_span_their_range))
