/* SPDX-License-Identifier: MIT */
/* test_run.c - tests simulation runs: repeatable to the bit, comparable between pacers, and with
 * errors for lack of memory. */
#include "lib/alloc.h"
#include "lib/test.h"
#include "sim/listed.h"

#include <math.h>

static struct wr_sim_pacer pacer_named(const char *text)
{
    struct wr_sim_pacer pacer;
    if (wr_sim_pacer_named(text, &pacer) < 0)
        fail_msg("%s", weir_error_detail());
    return pacer;
}

static struct wr_score run_once(const struct wr_scenario *scenario, const char *text, uint64_t seed)
{
    struct wr_sim_pacer pacer = pacer_named(text);
    struct wr_sim_run run = {scenario, &pacer, seed, NULL, NULL, NULL, NULL, weir_allocator_system()};
    struct wr_score score;
    assert_int_equal(wr_sim_run(&run, &score), 0);
    return score;
}

static struct wr_scenario short_random(uint32_t index)
{
    struct wr_scenario scenario;
    wr_scenario_random(5, index, &scenario);
    scenario.duration_ns = 120 * WEIR_SECOND;
    scenario.network.jitter_ns = index % 2 == 0 ? 5 * WEIR_MILLISECOND : 0;
    if (scenario.origin.outage.to_ns > 0) {
        scenario.origin.outage.from_ns = 40 * WEIR_SECOND;
        scenario.origin.outage.to_ns = 50 * WEIR_SECOND;
    }
    return scenario;
}

/* All members of a score are doubles, so that it has no padding. */
static void assert_same(const struct wr_score *one, const struct wr_score *other)
{
    assert_memory_equal(one, other, sizeof *one);
}

static void same_seed_gives_a_bitwise_equal_score(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 33; i++) {
        struct wr_scenario scenario = short_random(i);
        struct wr_score one = run_once(&scenario, "aimd", 9), other = run_once(&scenario, "aimd", 9);
        assert_same(&one, &other);
    }
}

static void another_seed_gives_another_run(void **state)
{
    (void)state;
    int differ = 0;
    for (uint32_t i = 0; i < 33; i++) {
        struct wr_scenario scenario = short_random(i);
        struct wr_score one = run_once(&scenario, "aimd", 9), other = run_once(&scenario, "aimd", 10);
        differ += memcmp(&one, &other, sizeof one) != 0;
    }
    assert_true(differ >= 30);
}

static void score_is_the_mean_of_its_seeds(void **state)
{
    (void)state;
    struct wr_scenario scenario = short_random(6);
    struct wr_sim_pacer pacer = pacer_named("aimd");
    struct wr_score mean, one = run_once(&scenario, "aimd", 4), other = run_once(&scenario, "aimd", 5);
    assert_int_equal(wr_sim_score(&scenario, &pacer, 2, 4, false, weir_allocator_system(), &mean), 0);
    assert_true(mean.ok == (one.ok + other.ok) / 2);
    assert_true(mean.goodput == (one.goodput + other.goodput) / 2);
}

/* ---- scores computed by hand ----------------------------------------------------------------- */

/* Returns a scenario with 1/s, burst 1, service of exactly 50 ms and a round trip of 50 ms. */
static struct wr_scenario one_a_second(void)
{
    struct wr_scenario scenario = *listed_named("P1e-tb10-b1strict");
    scenario.duration_ns = 1000 * WEIR_SECOND;
    scenario.origin.limiter.rate = 1;
    scenario.origin.service.sigma = 0;
    return scenario;
}

static void scores_of_a_simple_run_equal_those_computed_by_hand(void **state)
{
    (void)state;
    struct wr_scenario scenario = one_a_second();
    struct wr_score score = run_once(&scenario, "fixed:interval=1s", 1);
    assert_true(score.oracle == 1001);
    assert_true(score.sent == 1000); /* at 0, 1, ... 999 s */
    assert_true(score.ok == 1000);
    assert_true(score.rejections == 0);
    assert_true(score.goodput == 1000.0 / 1001);
    assert_true(score.t90_s == 0);
    assert_true(isnan(score.recovery_s));
    assert_true(isnan(score.makespan_s));
    assert_true(fabs(score.latency_inflation - 1) < 1e-9);
    assert_true(fabs(score.overshoot - 1) < 1e-9);
}

static void half_of_the_requests_at_twice_the_rate_are_rejected(void **state)
{
    (void)state;
    struct wr_scenario scenario = one_a_second();
    struct wr_score score = run_once(&scenario, "fixed:interval=500ms", 1);
    assert_true(score.sent == 2000);
    assert_true(score.rejections == 1000 && score.ok == 1000);
    assert_true(score.rejected == 0.5);
    assert_true(fabs(score.overshoot - 2) < 1e-9);
}

static void pacer_below_nine_tenths_of_the_rate_has_no_t90(void **state)
{
    (void)state;
    struct wr_scenario scenario = one_a_second();
    assert_true(isnan(run_once(&scenario, "fixed:interval=1500ms", 1).t90_s));
    assert_true(run_once(&scenario, "fixed:interval=1100ms", 1).t90_s == 0);
}

static void recovery_time_counts_from_the_end_of_the_outage(void **state)
{
    (void)state;
    struct wr_scenario scenario = one_a_second();
    scenario.origin.outage.from_ns = 300 * WEIR_SECOND;
    scenario.origin.outage.to_ns = 400 * WEIR_SECOND;
    struct wr_score score = run_once(&scenario, "fixed:interval=1s", 1);
    assert_true(score.waste == 100);
    assert_true(score.oracle == 901);
    assert_true(score.recovery_s == 0);
    scenario.origin.outage.to_ns = 0;
    /* 2.5/s in the second half, which a pacer of 1/s does not reach */
    scenario.origin.vary.kind = WR_VARY_JUMP;
    assert_true(isnan(run_once(&scenario, "fixed:interval=1s", 1).recovery_s));
}

/* Answers take 2 s: two workers send 1/s, whatever the pacer permits. */
static void workers_limit_the_requests_in_flight(void **state)
{
    (void)state;
    struct wr_scenario scenario = one_a_second();
    scenario.origin.limiter.kind = WR_LIMITER_NONE;
    scenario.origin.service.mean_ns = 1950 * WEIR_MILLISECOND;
    scenario.workers = 2;
    struct wr_score score = run_once(&scenario, "none", 1);
    assert_true(score.sent == 1000);
    assert_true(score.ok == 998); /* the last two answers are too late */
}

static void backlog_ends_with_its_last_answer(void **state)
{
    (void)state;
    struct wr_scenario scenario = one_a_second();
    scenario.backlog = 101;
    struct wr_score score = run_once(&scenario, "fixed:interval=1s", 1);
    assert_true(score.sent == 101 && score.ok == 101 && score.oracle == 101);
    assert_true(fabs(score.makespan_s - 100.1) < 1e-9); /* 100 s and one latency */
    assert_true(fabs(score.goodput - 1) < 1e-9);
    score = run_once(&scenario, "fixed:interval=2s", 1);
    assert_true(fabs(score.makespan_s - 200.1) < 1e-9);
    assert_true(fabs(score.goodput - 100.1 / 200.1) < 1e-9);
    /* does not end in time: 50 of 101 in 1000 s */
    score = run_once(&scenario, "fixed:interval=20s", 1);
    assert_true(score.makespan_s > 2000 && score.goodput < 0.06);
}

/* Jitter may reorder requests, but none is lost. The round trip is longer by the mean of the
 * half-normal distribution. */
static void jitter_delays_and_loses_nothing(void **state)
{
    (void)state;
    struct wr_scenario scenario = one_a_second();
    scenario.origin.limiter.burst = 100;
    scenario.network.jitter_ns = 900 * WEIR_MILLISECOND;
    struct wr_score score = run_once(&scenario, "fixed:interval=1s", 1);
    assert_true(score.sent == 1000);
    assert_true(score.ok >= 995 && score.rejections == 0);
    assert_true(fabs(score.latency_inflation - 1) < 0.05);
}

/* ---- crowds ---------------------------------------------------------------------------------- */

/* Returns a scenario with three hosts of 40, 20 and 13 URLs, each at 1/s. */
static struct wr_scenario small_crowd(void)
{
    struct wr_scenario scenario = one_a_second();
    scenario.crowd.hosts = 3;
    scenario.crowd.zipf = 1;
    scenario.crowd.largest = 40;
    scenario.mix_count = 1;
    scenario.mix[0].weight = 1;
    scenario.mix[0].origin = scenario.origin;
    return scenario;
}

static void crowd_takes_as_long_as_its_slowest_host(void **state)
{
    (void)state;
    struct wr_scenario scenario = small_crowd();
    struct wr_score score = run_once(&scenario, "fixed:interval=2s", 1);
    assert_true(score.sent == 73 && score.ok == 73 && score.oracle == 73);
    assert_true(fabs(score.makespan_s - 78.1) < 1e-9);
    /* the oracle takes 39 s and one latency */
    assert_true(fabs(score.goodput - 39.1 / 78.1) < 1e-9);
}

static void crowd_is_the_same_for_every_run_and_pacer(void **state)
{
    (void)state;
    struct wr_scenario scenario = small_crowd();
    scenario.mix_count = 2;
    scenario.mix[1] = scenario.mix[0];
    scenario.mix[1].origin.limiter.rate = 0.1;
    struct wr_score one = run_once(&scenario, "fixed:interval=1s", 1), other = run_once(&scenario, "fixed", 2);
    assert_true(one.oracle == other.oracle);
    assert_true(fabs(one.goodput * one.makespan_s - other.goodput * other.makespan_s) < 1e-9);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The host allows one request in 5 s: a run with memory is rejected less often. */
static void warm_run_starts_from_the_memory_of_the_previous_run(void **state)
{
    (void)state;
    struct wr_scenario scenario = *listed_named("P1a-tb0.2-b5");
    struct wr_sim_pacer pacer = pacer_named("learned");
    struct wr_score cold, warm;
    assert_int_equal(wr_sim_score(&scenario, &pacer, 1, 1, false, weir_allocator_system(), &cold), 0);
    assert_int_equal(wr_sim_score(&scenario, &pacer, 1, 1, true, weir_allocator_system(), &warm), 0);
    assert_true(warm.rejections < cold.rejections);
}

/* Delays of 1, 2 and 4 s for 40, 20 and 13 URLs: the last host takes longest, 13 times its own
 * delay. */
static void each_host_of_a_crowd_has_its_own_memory(void **state)
{
    (void)state;
    struct wr_scenario scenario = small_crowd();
    struct wr_sim_pacer pacer = pacer_named("learned:probe_after=1000");
    const weir_pace_memory memory[3] = {
        {.delay_ns = WEIR_SECOND}, {.delay_ns = 2 * WEIR_SECOND}, {.delay_ns = 4 * WEIR_SECOND}};
    weir_pace_memory after[3];
    struct wr_sim_run run = {&scenario, &pacer, 1, memory, after, NULL, NULL, weir_allocator_system()};
    struct wr_score score;
    assert_int_equal(wr_sim_run(&run, &score), 0);
    assert_true(score.ok == 73 && score.rejections == 0);
    assert_true(fabs(score.makespan_s - 52.1) < 1e-9);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(after[i].delay_ns, memory[i].delay_ns);
}

static void run_without_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const struct wr_scenario scenarios[] = {short_random(3), short_random(4), small_crowd()};
    for (size_t i = 0; i < 3; i++) {
        struct wr_sim_pacer pacer = pacer_named("aimd");
        for (int n = 1;; n++) {
            test_allocator memory;
            struct wr_score score = {.goodput = -1};
            test_allocator_init(&memory);
            memory.fail_at = n;
            int error = wr_sim_score(&scenarios[i], &pacer, 1, 1, true, &memory.allocator, &score);
            assert_int_equal(memory.live, 0);
            if (error == 0) {
                assert_true(n > 5);
                break;
            }
            assert_int_equal(error, WEIR_E_NOMEM);
            assert_true(score.goodput == -1);
        }
    }
}

/* ---- listeners ------------------------------------------------------------------------------- */

struct heard {
    double sent, ok;
    int64_t last_at;
    bool in_order;
};

static void hear(void *context, const struct wr_sim_event *event)
{
    struct heard *heard = context;
    heard->in_order &= event->at >= heard->last_at;
    heard->last_at = event->at;
    heard->sent += event->kind == WR_SIM_SENT;
    heard->ok += event->kind == WR_SIM_ANSWERED && event->status == 200;
    assert_non_null(event->mode);
    assert_true(event->limit == 1);
    assert_true(event->in_flight <= 64);
}

static void listener_receives_every_start_and_answer_in_order(void **state)
{
    (void)state;
    struct wr_scenario scenario = one_a_second();
    struct wr_sim_pacer pacer = pacer_named("aimd");
    struct heard heard = {.in_order = true};
    struct wr_score score;
    assert_int_equal(wr_sim_watch(&scenario, &pacer, 1, false, weir_allocator_system(), hear, &heard, &score), 0);
    assert_true(heard.in_order);
    assert_true(heard.sent == score.sent && heard.sent > 100);
    assert_true(heard.ok == score.ok);
}

/* ---- pacers by name -------------------------------------------------------------------------- */

static void pacers_are_chosen_by_name_with_numeric_options(void **state)
{
    (void)state;
    for (const struct wr_sim_pacer_name *name = wr_sim_pacer_names(); name->name != NULL; name++)
        assert_true(name->what[0] != '\0');
    struct wr_sim_pacer pacer = pacer_named("aimd:alpha=0.1,beta=0.7,start=1,min=0.5,max=500,burst=5,headers=true");
    assert_string_equal(pacer.name, "aimd:alpha=0.1,beta=0.7,start=1,min=0.5,max=500,burst=5,headers=true");
    assert_true(pacer.options.increase == 0.1 && pacer.options.decrease == 0.7 && pacer.options.initial_rate == 1);
    assert_true(pacer.options.min_rate == 0.5 && pacer.options.rate_ceiling == 500 && pacer.options.burst == 5);
    assert_false(pacer.ignores_quota_fields);
    assert_true(pacer_named("aimd").ignores_quota_fields);
    assert_true(pacer_named("none:max=3").options.max_rate == 3);
    assert_true(pacer_named("fixed:min_interval=2s").options.min_interval_ns == 2 * WEIR_SECOND);
}

static void unknown_pacers_are_refused_and_change_nothing(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "nobody",
        "Aimd",
        "aimd:",
        "aimd:alpha",
        "aimd:=1",
        "aimd:alpha=",
        "aimd:alpha=x",
        "aimd:zeta=1",
        "aimd:alpha=0.1,",
        "aimd:,",
        "aimd,alpha=0.1",
        "aimd:headers=2",
        "aimd:min=9,max=2",
        "aimd:alpha=0.1,,beta=0.5",
    };
    struct wr_sim_pacer pacer = {.name = "untouched"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (wr_sim_pacer_named(wrong[i], &pacer) != WEIR_E_INVAL)
            fail_msg("\"%s\" was taken", wrong[i]);
        assert_string_equal(pacer.name, "untouched");
    }
    char longest[200] = "aimd:alpha=0.1";
    memset(longest + strlen(longest), '0', sizeof longest - 1 - strlen(longest));
    assert_int_equal(wr_sim_pacer_named(longest, &pacer), WEIR_E_INVAL);
}

WEIR_TESTS(test(same_seed_gives_a_bitwise_equal_score), test(another_seed_gives_another_run),
           test(score_is_the_mean_of_its_seeds), test(scores_of_a_simple_run_equal_those_computed_by_hand),
           test(half_of_the_requests_at_twice_the_rate_are_rejected),
           test(pacer_below_nine_tenths_of_the_rate_has_no_t90), test(recovery_time_counts_from_the_end_of_the_outage),
           test(workers_limit_the_requests_in_flight), test(backlog_ends_with_its_last_answer),
           test(jitter_delays_and_loses_nothing), test(crowd_takes_as_long_as_its_slowest_host),
           test(crowd_is_the_same_for_every_run_and_pacer), test(warm_run_starts_from_the_memory_of_the_previous_run),
           test(each_host_of_a_crowd_has_its_own_memory), test(run_without_memory_is_an_error_and_leaks_nothing),
           test(listener_receives_every_start_and_answer_in_order),
           test(pacers_are_chosen_by_name_with_numeric_options), test(unknown_pacers_are_refused_and_change_nothing))
