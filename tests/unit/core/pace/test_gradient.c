/* SPDX-License-Identifier: MIT */
/* test_gradient.c - tests the latency gradient on hosts that queue, refuse, or accept everything
 * (S0-99, S0-103). */
#include "base/rng.h"
#include "plant.h"

static struct strategy_fixture gradient(void)
{
    weir_pace_options options = rig_options();
    struct strategy_fixture rig;
    rig_init(&rig, &wr_gradient, &options, NULL, T0);
    return rig;
}

static void gradient_starts_at_the_initial_rate_with_one_in_flight(void **state)
{
    (void)state;
    struct strategy_fixture rig = gradient();
    assert_near(rig_want(&rig, T0).rate, 2, 0);
    assert_int_equal(rig_want(&rig, T0).cap, 1);
    assert_true(rig_try(&rig, T0));
    assert_int_equal(rig_wait(&rig, T0), 500 * MS);
    rig_release(&rig);
}

/* The controller finds the queue of the host by its delay alone. No request is refused, and the
 * queue stays short. */
static void gradient_keeps_the_queue_of_the_host_full_and_short(void **state)
{
    (void)state;
    struct plant plant = {.served = 50, .latency_ns = 100 * MS, .workers = 200};
    struct strategy_fixture rig = gradient();
    int64_t now = plant_run(&plant, &rig, T0, T0 + WEIR_MINUTE);
    now = plant_run(&plant, &rig, now, now + 5 * WEIR_MINUTE);
    assert_in_range(plant.ok, 50 * 300 * 95 / 100, 50 * 300 + 1);
    assert_true(plant.latency_sum_ns / plant.ok < 500 * MS);
    rig_release(&rig);
}

static void host_without_a_limit_gets_requests_from_all_workers(void **state)
{
    (void)state;
    struct plant plant = {.latency_ns = 200 * MS, .workers = 64};
    struct strategy_fixture rig = gradient();
    int64_t now = plant_run(&plant, &rig, T0, T0 + WEIR_MINUTE);
    plant_run(&plant, &rig, now, now + WEIR_MINUTE);
    assert_true(plant.ok > 60 * 64 * 5 * 95 / 100);
    rig_release(&rig);
}

static void refusals_cut_the_gradient_window_to_the_limit_of_the_host(void **state)
{
    (void)state;
    const double rates[] = {1, 20, 200};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct plant plant = {.rate = rates[i], .burst = 10, .tokens = 10, .latency_ns = 100 * MS, .workers = 64};
        struct strategy_fixture rig = gradient();
        plant.filled_at = T0;
        int64_t now = plant_run(&plant, &rig, T0, T0 + 10 * WEIR_MINUTE);
        plant_run(&plant, &rig, now, now + 20 * WEIR_MINUTE);
        if (plant.ok < 0.8 * rates[i] * 1200 || plant.refused > 0.04 * plant.sent)
            fail_msg("at %g: %u sent, %u good, %u refused", rates[i], plant.sent, plant.ok, plant.refused);
        rig_release(&rig);
    }
}

/* Eight requests that were in flight together are refused: this is one signal. */
static void rejections_of_one_round_trip_cut_the_window_once(void **state)
{
    (void)state;
    struct strategy_fixture rig = gradient();
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

static void gradient_rate_stays_above_its_minimum(void **state)
{
    (void)state;
    for (int warm = 0; warm <= 1; warm++) {
        struct strategy_fixture rig = gradient();
        if (warm)
            rig_tell(&rig, T0, 200, 100 * MS, -1);
        for (int i = 1; i < 100; i++)
            rig_tell(&rig, T0 + i * WEIR_MINUTE, 429, 10 * MS, -1);
        assert_near(rig_want(&rig, T0).rate, 0.25, 1e-6);
        rig_release(&rig);
    }
}

/* Page errors, lost connections and idle windows teach nothing. */
static void unused_gradient_window_does_not_grow(void **state)
{
    (void)state;
    struct plant plant = {.latency_ns = 200 * MS, .workers = 2};
    struct strategy_fixture rig = gradient();
    plant_run(&plant, &rig, T0, T0 + 10 * WEIR_MINUTE);
    assert_true(rig_want(&rig, T0).cap <= 8);
    double before = rig_want(&rig, T0).rate;
    for (int i = 0; i < 100; i++)
        rig_tell(&rig, T0 + (700 + i) * WEIR_SECOND, i % 2 == 0 ? 500 : 0, 10 * MS, -1);
    assert_near(rig_want(&rig, T0).rate, before, 0);
    rig_release(&rig);
}

/* The largest minimum rate, with answers that take an hour: the cap stays bounded. */
static void gradient_window_is_bounded_whatever_the_minimum_rate(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    struct strategy_fixture rig;
    options.min_rate = 1e9;
    rig_init(&rig, &wr_gradient, &options, NULL, T0);
    for (int i = 1; i <= 10; i++) {
        rig_tell(&rig, T0 + i * WEIR_DAY, i % 3 == 0 ? 429 : 200, WEIR_HOUR, -1);
        assert_in_range(rig_want(&rig, T0).cap, 1, 1001);
    }
    rig_release(&rig);
}

/* The formulas of gradient.c, written independently. */
struct model {
    double window, refused, mean, low, sum;
    int64_t interval_ns, stepped_at, cut_at, safe_ns;
    unsigned answers, used;
};

static void model_window(struct model *model, double window)
{
    model->window = fmin(fmax(window, 0.25 * model->mean / 1e9), 1000);
    model->interval_ns = (int64_t)ceil(model->mean / model->window);
}

static void model_begin_round(struct model *model, int64_t now)
{
    model->stepped_at = now;
    model->answers = model->used = 0;
    model->sum = 0;
}

static void model_rejected(struct model *model, int64_t now)
{
    model->cut_at = now;
    model_begin_round(model, now);
    if (model->mean > 0) {
        model->refused = model->window;
        model_window(model, model->window * 0.8);
    } else {
        model->interval_ns = (int64_t)ceil(1e9 / fmax(0.25, 1e9 / (double)model->interval_ns * 0.8));
    }
}

static void model_step(struct model *model, int64_t now)
{
    model->mean = model->mean + 0.25 * (model->sum / model->answers - model->mean);
    model->low = fmin(model->low * (1 + (double)(now - model->stepped_at) / 3600e9), model->mean);
    double ratio = fmax(fmin(2 * model->low / model->mean, 1), 0.5);
    double away = model->refused > 0 ? model->window / model->refused - 1 : 1;
    double growth = (model->window < 1 ? model->window : sqrt(model->window)) * fmax(fmin(away * away, 1), 0.001);
    if (ratio >= 1)
        model->safe_ns = model->interval_ns;
    model_window(model, model->window * ratio + (2.0 * model->used >= model->window ? growth : 0));
    model_begin_round(model, now);
}

static void model_tell(struct model *model, int64_t now, int status, int64_t latency_ns)
{
    double latency = fmax((double)latency_ns, 1000);
    if (status == 429 && now - latency_ns >= model->cut_at)
        model_rejected(model, now);
    if (status != 200)
        return;
    if (model->mean <= 0) {
        model->mean = model->low = latency;
        model_window(model, latency / (double)model->interval_ns);
    }
    model->sum += latency;
    model->answers++;
    if (now - latency_ns >= model->stepped_at)
        model_step(model, now);
}

static void assert_as(const struct strategy_fixture *rig, const struct model *model, int64_t now)
{
    weir_pace_memory memory = rig_memory(rig, now);
    assert_near((double)memory.delay_ns, (double)model->interval_ns, 1 + 1e-9 * (double)model->interval_ns);
    assert_near((double)memory.floor_ns, (double)model->safe_ns, 1 + 1e-9 * (double)model->safe_ns);
    assert_near(rig_want(rig, now).rate, 1e9 / (double)model->interval_ns, 1e-6 * rig_want(rig, now).rate);
    if (fabs(model->window - round(model->window)) > 1e-6)
        assert_int_equal(rig_want(rig, now).cap, model->mean > 0 ? (uint32_t)model->window + 1 : 1);
    assert_string_equal(rig->strategy->mode(rig->state), model->refused > 0 ? "near" : "open");
}

/* Runs 2000 answers and compares with the model. One in `refused` answers is a rejection (0: none).
 * Up to `burst` requests are sent before each answer. In every other hundred, answers take `slower`
 * times as long. */
static void assert_formula_holds(uint64_t seed, unsigned refused, unsigned burst, int64_t least_ns, int64_t most_ns,
                                 int slower)
{
    struct strategy_fixture rig = gradient();
    struct wr_rng rng;
    struct model model = {.interval_ns = 500 * MS, .stepped_at = T0, .cut_at = T0};
    int64_t now = T0;
    wr_rng_init(&rng, seed);
    for (int i = 0; i < 2000; i++) {
        int64_t latency_ns = least_ns + (int64_t)wr_rng_below(&rng, (uint64_t)(most_ns - least_ns));
        int status = refused > 0 && wr_rng_below(&rng, refused) == 0 ? 429 : 200;
        latency_ns *= i / 100 % 2 == 0 ? slower : 1;
        for (uint64_t k = wr_rng_below(&rng, burst + 1); k > 0; k--) {
            rig_send(&rig, now);
            model.used = model.used < rig.in_flight ? rig.in_flight : model.used;
        }
        now += (int64_t)wr_rng_below(&rng, 100) * MS;
        rig_tell(&rig, now, status, latency_ns, -1);
        model_tell(&model, now, status, latency_ns);
        assert_as(&rig, &model, now);
    }
    rig_release(&rig);
}

static void gradient_window_follows_its_formulas_in_each_round(void **state)
{
    (void)state;
    assert_formula_holds(1, 0, 2, 50 * MS, 60 * MS, 1);   /* no problems */
    assert_formula_holds(2, 0, 0, 50 * MS, 60 * MS, 1);   /* nothing is sent: no growth */
    assert_formula_holds(3, 0, 2, 50 * MS, 3000 * MS, 1); /* quick and slow answers */
    assert_formula_holds(4, 50, 2, 50 * MS, 60 * MS, 1);  /* a few rejections */
    assert_formula_holds(5, 2, 2, 50 * MS, 60 * MS, 1);   /* falls to the minimum rate */
    assert_formula_holds(6, 1, 1, 50 * MS, 60 * MS, 1);   /* rejections only */
    assert_formula_holds(7, 20, 2, 0, 2000, 1);           /* latencies below 1 us count as 1 us */
    assert_formula_holds(8, 30, 1, 500 * MS, 20 * WEIR_SECOND, 1);
    /* slow at first: the lowest latency comes later */
    assert_formula_holds(9, 0, 2, 50 * MS, 60 * MS, 20);
    assert_formula_holds(10, 60, 1, 5 * MS, 60 * MS, 5);
}

static void gradient_starts_at_the_stored_interval_of_a_known_host(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    weir_pace_memory known = {.delay_ns = 250 * MS, .floor_ns = 100 * MS}, unknown = {.floor_ns = 100 * MS};
    struct strategy_fixture rig;
    rig_init(&rig, &wr_gradient, &options, &known, T0);
    assert_int_equal(rig_wait(&rig, T0), 250 * MS);
    assert_int_equal(rig_memory(&rig, T0).delay_ns, 250 * MS);
    assert_int_equal(rig_memory(&rig, T0).floor_ns, 100 * MS);
    rig_release(&rig);
    rig_init(&rig, &wr_gradient, &options, &unknown, T0);
    assert_int_equal(rig_wait(&rig, T0), 500 * MS);
    assert_int_equal(rig_memory(&rig, T0).floor_ns, 0);
    rig_release(&rig);
}

static void host_may_be_forgotten_once_its_interval_is_over(void **state)
{
    (void)state;
    struct strategy_fixture rig = gradient();
    rig_send(&rig, T0);
    assert_false(rig.strategy->settled(&rig.options, rig.state, T0 + 500 * MS - 1));
    assert_true(rig.strategy->settled(&rig.options, rig.state, T0 + 500 * MS));
    rig_release(&rig);
}

WEIR_TESTS(test(gradient_starts_at_the_initial_rate_with_one_in_flight),
           test(gradient_keeps_the_queue_of_the_host_full_and_short),
           test(host_without_a_limit_gets_requests_from_all_workers),
           test(refusals_cut_the_gradient_window_to_the_limit_of_the_host),
           test(rejections_of_one_round_trip_cut_the_window_once), test(gradient_rate_stays_above_its_minimum),
           test(unused_gradient_window_does_not_grow), test(gradient_window_is_bounded_whatever_the_minimum_rate),
           test(gradient_window_follows_its_formulas_in_each_round),
           test(gradient_starts_at_the_stored_interval_of_a_known_host),
           test(host_may_be_forgotten_once_its_interval_is_over))
