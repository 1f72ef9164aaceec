/* SPDX-License-Identifier: MIT */
/* test_pid.c - tests the PID controller: it is stable on hosts that queue or refuse, and does not
 * wind up (S0-100). */
#include "base/rng.h"
#include "plant.h"

static struct strategy_fixture pid(void)
{
    weir_pace_options options = rig_options();
    struct strategy_fixture rig;
    rig_init(&rig, &wr_pid, &options, NULL, T0);
    return rig;
}

static double rate(const struct strategy_fixture *rig)
{
    return rig_want(rig, T0).rate;
}

static void pid_starts_at_the_initial_rate(void **state)
{
    (void)state;
    struct strategy_fixture rig = pid();
    assert_near(rate(&rig), 2, 0);
    assert_true(rig_try(&rig, T0));
    assert_int_equal(rig_wait(&rig, T0), 500 * MS);
    rig_release(&rig);
}

/* Stores the lowest and the highest rate of ten minutes, sampled every second. */
static void swing(struct plant *plant, struct strategy_fixture *rig, int64_t now, double *ret_least, double *ret_most)
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

static void pid_holds_the_limit_without_wild_swings(void **state)
{
    (void)state;
    const double rates[] = {2, 20, 200};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct plant plant = {.rate = rates[i], .burst = 10, .tokens = 10, .latency_ns = 100 * MS, .workers = 64};
        struct strategy_fixture rig = pid();
        double least, most;
        plant.filled_at = T0;
        int64_t now = plant_run(&plant, &rig, T0, T0 + 10 * WEIR_MINUTE);
        swing(&plant, &rig, now, &least, &most);
        if (least < 0.25 * rates[i] || most > 2 * rates[i] || plant.refused > 0.04 * plant.sent)
            fail_msg("at %g: %g … %g, %u of %u refused", rates[i], least, most, plant.refused, plant.sent);
        rig_release(&rig);
    }
}

static void pid_holds_the_latency_at_its_set_point(void **state)
{
    (void)state;
    struct plant plant = {.served = 50, .latency_ns = 100 * MS, .workers = 200};
    struct strategy_fixture rig = pid();
    int64_t now = plant_run(&plant, &rig, T0, T0 + 5 * WEIR_MINUTE);
    plant_run(&plant, &rig, now, now + 10 * WEIR_MINUTE);
    assert_in_range(plant.ok, 50 * 600 * 90 / 100, 50 * 600 + 1);
    assert_true(plant.latency_sum_ns / plant.ok < 400 * MS);
    rig_release(&rig);
}

/* Hours at another bound (few workers, little work) must not delay the reaction to what comes
 * next. */
static void pid_does_not_wind_up_at_other_bounds(void **state)
{
    (void)state;
    struct plant plant = {.latency_ns = 500 * MS, .workers = 4};
    struct strategy_fixture rig = pid();
    int64_t now = plant_run(&plant, &rig, T0, T0 + 3 * WEIR_HOUR);
    double before = rate(&rig);
    assert_true(before <= 2 * 8 + 2); /* four workers can send eight a second */
    for (int i = 0; i < 10; i++) {
        now += WEIR_SECOND;
        for (int k = 0; k < 4; k++)
            rig_tell(&rig, now, 429, 10 * MS, -1);
    }
    assert_true(rate(&rig) <= before / 3);
    rig_release(&rig);
}

static void pid_leaves_the_minimum_rate_at_once_after_a_long_time(void **state)
{
    (void)state;
    struct strategy_fixture rig = pid();
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

static void page_errors_do_not_change_the_pid_rate(void **state)
{
    (void)state;
    struct strategy_fixture rig = pid();
    for (int i = 0; i < 100; i++)
        rig_tell(&rig, T0 + i * WEIR_SECOND, i % 2 == 0 ? 500 : 0, 10 * MS, -1);
    assert_near(rate(&rig), 2, 0);
    rig_release(&rig);
}

static void pid_rate_is_bounded_whatever_the_minimum_rate(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    struct strategy_fixture rig;
    options.min_rate = 1e9;
    rig_init(&rig, &wr_pid, &options, NULL, T0);
    for (int i = 1; i <= 100; i++) {
        rig_tell(&rig, T0 + i * WEIR_SECOND, 200, 10 * MS, -1);
        assert_near(rate(&rig), 100000, 0);
    }
    rig_release(&rig);
}

/* The formula of pid.c, written independently. Latencies are logarithms of ns. */
struct model {
    double rate, last, before, share, latency, low, sum;
    int64_t sample_at, safe_ns;
    unsigned starts, answers, rejections;
};

static int64_t interval_of(double rate)
{
    return (int64_t)ceil(1e9 / rate);
}

static void model_step(struct model *model, int64_t now)
{
    double seconds = (double)(now - model->sample_at) / 1e9;
    model->share = 0.8 * model->share + 0.2 * model->rejections / (model->answers + model->rejections);
    if (model->answers > 0) {
        double mean = model->sum / model->answers, weight = fmin(0.01 * model->answers, 0.3);
        model->latency = model->latency > 0 ? (1 - weight) * model->latency + weight * mean : mean;
        model->low = model->low > 0 ? fmin(model->low + 0.0002, model->latency) : model->latency;
    }
    double error = fmin(1 - model->share / 0.01, 1 - exp(model->latency - model->low) / 2.5);
    error = fmax(error, -4);
    double change = 0.1 * (error - model->last) + 0.02 * error + 0.05 * (error - 2 * model->last + model->before);
    if (error > 0 && model->rejections == 0)
        model->safe_ns = interval_of(model->rate);
    double rate = model->rate * exp(change);
    if (change <= 0 || rate <= 2 * model->starts / seconds + 1)
        model->rate = fmin(fmax(rate, 0.25), 100000);
    model->before = model->last;
    model->last = error;
    model->sample_at = now;
    model->starts = model->answers = model->rejections = 0;
    model->sum = 0;
}

static void model_tell(struct model *model, int64_t now, int status, int64_t latency_ns)
{
    model->rejections += status == 429;
    model->answers += status == 200;
    if (status == 200)
        model->sum += log((double)(latency_ns > 1000 ? latency_ns : 1000));
    if (model->answers + model->rejections >= 4 && now - model->sample_at >= WEIR_SECOND)
        model_step(model, now);
}

static void assert_as(const struct strategy_fixture *rig, const struct model *model, int64_t now)
{
    weir_pace_memory memory = rig_memory(rig, now);
    assert_near(rate(rig), model->rate, 1e-9 * model->rate);
    assert_near((double)memory.delay_ns, (double)interval_of(model->rate), 1 + 1e-8 * (double)memory.delay_ns);
    assert_near((double)memory.floor_ns, (double)model->safe_ns, 1 + 1e-8 * (double)memory.floor_ns);
    assert_string_equal(rig->strategy->mode(rig->state), model->last > 0 ? "rise" : model->last < 0 ? "fall" : "hold");
}

/* Runs 2000 answers and compares with the model. One in `refused` answers is a rejection (0: none).
 * A request is sent before each answer, unless `idle` is set. */
static void assert_formula_holds(uint64_t seed, unsigned refused, bool idle, int64_t least_ns, int64_t most_ns)
{
    struct strategy_fixture rig = pid();
    struct wr_rng rng;
    struct model model = {.rate = 2, .sample_at = T0};
    int64_t now = T0;
    wr_rng_init(&rng, seed);
    for (int i = 0; i < 2000; i++) {
        int64_t latency_ns = least_ns + (int64_t)wr_rng_below(&rng, (uint64_t)(most_ns - least_ns));
        int status = refused > 0 && wr_rng_below(&rng, refused) == 0 ? 429 : 200;
        if (!idle) {
            rig_send(&rig, now);
            model.starts++;
        }
        now += (int64_t)wr_rng_below(&rng, 500) * MS;
        rig_tell(&rig, now, status, latency_ns, -1);
        model_tell(&model, now, status, latency_ns);
        assert_as(&rig, &model, now);
    }
    rig_release(&rig);
}

static void pid_rate_follows_its_formula_in_each_sample(void **state)
{
    (void)state;
    /* no problems: the rate rises as far as it is used */
    assert_formula_holds(1, 0, false, 50 * MS, 60 * MS);
    /* nothing is sent: the rate does not rise */
    assert_formula_holds(2, 0, true, 50 * MS, 60 * MS);
    assert_formula_holds(3, 0, false, 50 * MS, 5000 * MS); /* quick and slow answers */
    assert_formula_holds(4, 300, false, 50 * MS, 60 * MS); /* rejections around the target share */
    /* many rejections: falls to the minimum rate */
    assert_formula_holds(5, 8, false, 50 * MS, 60 * MS);
    assert_formula_holds(6, 0, false, 0, 2000); /* latencies below 1 us count as 1 us */
}

static void pid_sample_needs_four_answers_and_a_second(void **state)
{
    (void)state;
    struct strategy_fixture rig = pid();
    rig_send(&rig, T0);
    for (int i = 0; i < 4; i++)
        rig_tell(&rig, T0 + WEIR_SECOND - 1, 429, 10 * MS, -1);
    assert_near(rate(&rig), 2, 0);
    rig_tell(&rig, T0 + WEIR_SECOND, 429, 10 * MS, -1);
    double then = rate(&rig);
    assert_true(then < 2);
    for (int i = 0; i < 3; i++)
        rig_tell(&rig, T0 + 10 * WEIR_SECOND, 429, 10 * MS, -1);
    assert_near(rate(&rig), then, 0);
    for (int i = 0; i < 100; i++)
        rig_send(&rig, T0 + 10 * WEIR_SECOND); /* so that the rate counts as used */
    rig_tell(&rig, T0 + 10 * WEIR_SECOND, 429, 10 * MS, -1);
    /* an unchanged error of -4: 0.02 * -4 + 0.05 * (-4 + 2 * 4) */
    assert_near(rate(&rig), then * exp(0.12), 1e-9);
    rig_release(&rig);
}

static void pid_starts_at_the_stored_rate_after_one_interval(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    weir_pace_memory known = {.delay_ns = 250 * MS, .floor_ns = 100 * MS}, unknown = {.floor_ns = 100 * MS};
    struct strategy_fixture rig;
    rig_init(&rig, &wr_pid, &options, &known, T0);
    assert_near(rate(&rig), 4, 0);
    assert_int_equal(rig_wait(&rig, T0), 250 * MS);
    assert_int_equal(rig_memory(&rig, T0).delay_ns, 250 * MS);
    assert_int_equal(rig_memory(&rig, T0).floor_ns, 100 * MS);
    rig_release(&rig);
    rig_init(&rig, &wr_pid, &options, &unknown, T0);
    assert_near(rate(&rig), 2, 0);
    assert_int_equal(rig_wait(&rig, T0), 500 * MS);
    assert_int_equal(rig_memory(&rig, T0).floor_ns, 0);
    rig_release(&rig);
}

static void host_may_be_forgotten_once_its_interval_is_over(void **state)
{
    (void)state;
    struct strategy_fixture rig = pid();
    rig_send(&rig, T0);
    assert_false(rig.strategy->settled(&rig.options, rig.state, T0 + 500 * MS - 1));
    assert_true(rig.strategy->settled(&rig.options, rig.state, T0 + 500 * MS));
    rig_release(&rig);
}

WEIR_TESTS(test(pid_starts_at_the_initial_rate), test(pid_holds_the_limit_without_wild_swings),
           test(pid_holds_the_latency_at_its_set_point), test(pid_does_not_wind_up_at_other_bounds),
           test(pid_leaves_the_minimum_rate_at_once_after_a_long_time), test(page_errors_do_not_change_the_pid_rate),
           test(pid_rate_is_bounded_whatever_the_minimum_rate), test(pid_rate_follows_its_formula_in_each_sample),
           test(pid_sample_needs_four_answers_and_a_second), test(pid_starts_at_the_stored_rate_after_one_interval),
           test(host_may_be_forgotten_once_its_interval_is_over))
