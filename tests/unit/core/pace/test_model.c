/* SPDX-License-Identifier: MIT */
/* test_model.c - runs random sequences of all operations on a gate, and compares it with the model
 * of model.h (V1, V2, H, K2, K7, R23). */
#include <math.h>

#include "base/rng.h"
#include "model.h"

#define FLIGHTS 16
#define STEPS 1500

struct world {
    struct wr_rng rng;
    struct gate_fixture rig;
    struct model *model;
    bool exact; /* no strategy: the gate must decide exactly like the model */
    int64_t now, wall_now;
    uint32_t reservation; /* 0: none, or lost */
    struct wr_gate_start flights[FLIGHTS];
    size_t flight_count;
    uint64_t steps, starts;
};

static uint64_t below(struct world *world, uint64_t n)
{
    return wr_rng_below(&world->rng, n);
}

static bool chance(struct world *world, uint64_t one_in)
{
    return below(world, one_in) == 0;
}

static int64_t pick_ns(struct world *world)
{
    static const int64_t durations[] = {1, MS, 10 * MS, 100 * MS, S, 2 * S, 10 * S, WEIR_MINUTE, WEIR_HOUR};
    return durations[below(world, sizeof durations / sizeof *durations)];
}

/* Returns random options whose values coincide often. */
static weir_pace_options random_options(struct world *world, weir_strategy strategy)
{
    weir_pace_options options = bare_options(), checked;
    options.strategy = strategy;
    options.min_interval_ns = chance(world, 2) ? pick_ns(world) % (10 * S) : 0;
    options.max_rate = chance(world, 2) ? 0 : 0.3 * (double)(1 + below(world, 50));
    options.max_in_flight = (uint32_t)below(world, 5);
    options.breaker = !chance(world, 4);
    options.consecutive_failures = 1 + (uint32_t)below(world, 6);
    options.min_samples = 1 + (uint32_t)below(world, 12);
    options.probes = 1 + (uint32_t)below(world, 4);
    options.open_ns = MS + pick_ns(world);
    options.reservation_max_ns = MS + pick_ns(world);
    options.retry_after_max_ns = chance(world, 3) ? S + pick_ns(world) : WEIR_DAY;
    assert_int_equal(wr_pace_options_check(&options, &checked), 0);
    return checked;
}

static void move_clock(struct world *world)
{
    uint64_t how = below(world, 20);
    int64_t by_ns = 0;
    weir_decision decision = rig_ask(&world->rig, world->now);
    if (how < 6 && decision.verdict == WEIR_WAIT && decision.wait_ns < WEIR_DAY)
        /* when the request is due, or 1 ns before */
        by_ns = decision.wait_ns - (int64_t)below(world, 2);
    else if (how < 14)
        by_ns = (int64_t)below(world, (uint64_t)pick_ns(world) + 1);
    else if (how == 14)
        by_ns = -pick_ns(world);
    else if (how == 15 && chance(world, 20))
        by_ns = 8 * WEIR_HOUR;
    world->now += by_ns;
    world->wall_now += by_ns;
}

static void complain(const struct world *world, weir_decision gate, weir_decision model)
{
    fail_msg("step %llu, %s: the gate says %d, %s, %lld; the model %d, %s, %lld", (unsigned long long)world->steps,
             weir_strategy_name(world->rig.options.strategy), (int)gate.verdict, weir_reason_name(gate.reason),
             (long long)gate.wait_ns, (int)model.verdict, weir_reason_name(model.reason), (long long)model.wait_ns);
}

/* Compares a decision with the model. The model does not distinguish the reasons of timed waits. */
static void check(const struct world *world, weir_decision gate)
{
    weir_decision model = model_ask(*world->model, world->now);
    bool timed = model.verdict == WEIR_WAIT && model.reason == WEIR_REASON_PACE;
    bool same =
        gate.verdict == model.verdict && gate.wait_ns == model.wait_ns && (timed || gate.reason == model.reason);
    if (world->exact ? !same : gate.verdict == WEIR_GO && model.verdict != WEIR_GO)
        complain(world, gate, model);
    weir_breaker_state shown = rig_look(&world->rig, world->now).breaker;
    int64_t t = world->now > world->model->latest_at ? world->now : world->model->latest_at;
    bool is_open = world->model->tripped && t < world->model->open_until;
    assert_int_equal(shown, is_open                 ? WEIR_BREAKER_OPEN
                            : world->model->tripped ? WEIR_BREAKER_HALF_OPEN
                                                    : WEIR_BREAKER_CLOSED);
}

static void step_send(struct world *world)
{
    if (world->reservation == 0 || world->flight_count == FLIGHTS)
        return;
    model_see(world->model, world->now);
    bool expired = !world->model->reserved;
    weir_decision again = wr_gate_ask_again(world->rig.gate, &world->rig.options, world->reservation, world->now);
    /* some callers send nevertheless */
    if (again.verdict != WEIR_GO && !(expired && chance(world, 4))) {
        wr_gate_give(world->rig.gate, &world->rig.options, world->reservation, world->now);
        world->model->reserved = false;
    } else {
        world->flights[world->flight_count++] =
            wr_gate_sent(world->rig.gate, &world->rig.options, world->reservation, world->now);
        model_sent(world->model);
        world->starts++;
    }
    world->reservation = 0;
}

static void step_try(struct world *world)
{
    weir_decision decision = rig_ask(&world->rig, world->now);
    check(world, decision);
    if (decision.verdict != WEIR_GO || world->reservation != 0)
        return;
    model_see(world->model, world->now);
    world->reservation = wr_gate_reserve(world->rig.gate, &world->rig.options, world->now);
    world->model->reserved = true;
    world->model->reserved_at = world->model->latest_at;
    if (!chance(world, 3))
        step_send(world);
}

static weir_outcome random_outcome(struct world *world)
{
    static const int statuses[] = {200, 200, 200, 301, 404, 429, 403, 500, 503, 0, 529, 600, 999};
    weir_outcome outcome = {.size = sizeof outcome,
                            .status = statuses[below(world, sizeof statuses / sizeof *statuses)],
                            .latency_ns = 1 + pick_ns(world)};
    outcome.has_retry_after = chance(world, 8);
    outcome.retry_after_ns = chance(world, 8) ? INT64_MAX : chance(world, 8) ? INT64_MIN : pick_ns(world);
    outcome.has_quota = chance(world, 8);
    outcome.quota_limit = (int64_t)below(world, 4) - 1;
    outcome.quota_remaining = (int64_t)below(world, 4) - 1;
    outcome.quota_reset_ns = chance(world, 4) ? -1 : chance(world, 8) ? INT64_MAX : pick_ns(world) - S;
    return outcome;
}

static void step_end(struct world *world)
{
    if (world->flight_count == 0)
        return;
    size_t which = (size_t)below(world, world->flight_count);
    struct wr_gate_start start = world->flights[which];
    world->flights[which] = world->flights[--world->flight_count];
    model_see(world->model, world->now);
    if (chance(world, 10)) {
        wr_gate_drop(world->rig.gate, &world->rig.options, &start, world->now);
        world->model->flying--;
        return;
    }
    weir_outcome outcome = random_outcome(world);
    rig_tell_all(&world->rig, &start, outcome, world->now, 0);
    model_tell(world->model, start.sent_at, &outcome);
}

static void step_order(struct world *world)
{
    int64_t until = world->now + pick_ns(world) - S;
    uint64_t order = below(world, 3);
    if (order != 1) /* wr_gate_pause has no `now` */
        model_see(world->model, world->now);
    switch (order) {
    case 0:
        world->model->robots_delay_ns = chance(world, 2) ? 0 : pick_ns(world);
        wr_gate_robots_delay(world->rig.gate, world->model->robots_delay_ns, world->now);
        break;
    case 1:
        world->model->paused = chance(world, 4);
        wr_gate_pause(world->rig.gate, world->model->paused);
        break;
    default:
        wr_gate_hold(world->rig.gate, &world->rig.options, until, world->now);
        int64_t latest = world->model->latest_at + world->model->options.retry_after_max_ns;
        model_hold(world->model, until < latest ? until : latest);
    }
}

static void step_change(struct world *world)
{
    struct gate_fixture old = world->rig;
    world->rig.options = random_options(world, old.options.strategy);
    world->rig.gate = calloc(1, wr_gate_bytes(&world->rig.options));
    assert_non_null(world->rig.gate);
    model_see(world->model, world->now);
    wr_gate_carry(old.gate, &old.options, world->rig.gate, &world->rig.options, world->now);
    model_change(world->model, &world->rig.options);
    rig_release(&old);
}

/* R23: stores the memory, ends the process, and starts another one later with another clock. */
static void step_restart(struct world *world)
{
    struct gate_fixture old = world->rig;
    weir_pace_memory memory;
    int64_t away_ns = pick_ns(world);
    model_see(world->model, world->now);
    wr_gate_remember(old.gate, &old.options, world->now, world->wall_now, &memory);
    world->wall_now += away_ns;
    world->now = T0 + (int64_t)below(world, WEIR_DAY);
    rig_restore(&world->rig, old.options, &memory, world->now, world->wall_now);
    model_restart(world->model, world->now, away_ns);
    world->flight_count = 0;
    world->reservation = 0;
    rig_release(&old);
}

static void step(struct world *world)
{
    uint64_t verb = below(world, 100);
    world->steps++;
    move_clock(world);
    if (verb < 55)
        step_try(world);
    else if (verb < 62)
        step_send(world);
    else if (verb < 92)
        step_end(world);
    else if (verb < 97)
        step_order(world);
    else if (verb < 99)
        step_change(world);
    else if (!world->exact)
        step_restart(world);
    assert_true(wr_gate_ok(world->rig.gate, &world->rig.options));
    check(world, rig_ask(&world->rig, world->now));
}

static void run(struct world *world, weir_strategy strategy)
{
    weir_pace_options options = random_options(world, strategy);
    world->exact = strategy == WEIR_STRATEGY_NONE;
    world->now = T0;
    world->wall_now = WALL0;
    world->flight_count = world->reservation = 0;
    rig_restore(&world->rig, options, NULL, world->now, world->wall_now);
    model_init(world->model, &world->rig.options, world->now);
    for (int i = 0; i < STEPS; i++)
        step(world);
    rig_release(&world->rig);
}

static void run_many(weir_strategy strategy, uint64_t seed, int runs)
{
    static struct model model;
    struct world world = {.model = &model};
    wr_rng_init(&world.rng, seed);
    for (int i = 0; i < runs; i++)
        run(&world, strategy);
    print_message("%s: %llu steps, %llu starts\n", weir_strategy_name(strategy), (unsigned long long)world.steps,
                  (unsigned long long)world.starts);
    assert_true(world.starts > world.steps / 50); /* too few starts would test little */
}

static void gate_without_a_strategy_decides_as_its_model(void **state)
{
    (void)state;
    run_many(WEIR_STRATEGY_NONE, weir_test_seed(), 60);
}

/* V1, V2 */
static void no_strategy_starts_what_the_laws_forbid(void **state)
{
    (void)state;
    uint64_t seed = weir_test_seed();
    for (int i = 0; weir_strategy_name((weir_strategy)i) != NULL; i++)
        if (i != WEIR_STRATEGY_NONE)
            run_many((weir_strategy)i, seed + (uint64_t)i, 10);
}

WEIR_TESTS(test(gate_without_a_strategy_decides_as_its_model), test(no_strategy_starts_what_the_laws_forbid))
