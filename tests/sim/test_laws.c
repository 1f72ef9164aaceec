/* SPDX-License-Identifier: MIT */
/* test_laws.c - tests the laws V1 and V2 under faults. A random caller drives a gate with random
 * options through a random world, and an observer checks it from outside after every step.
 *
 * The faults: clocks that jump back and forth, answers that are lost, late or out of order,
 * nonsense in status, Retry-After and rate-limit fields, outages, pauses, changes of robots.txt and
 * of options, abandoned reservations, restarts.
 *
 * The second test runs pacers by their names against random origins, and checks the laws by
 * requests and answers.
 *
 * WEIR_TEST_LAW_SEEDS: number of worlds (default 400), and a tenth as many origins.
 * WEIR_TEST_LAW_SEED: only this one. */
#include "base/rng.h"
#include "core/pace/pace_options.h"
#include "lib/test.h"
#include "sim/observer.h"
#include "sim/sim.h"

#define WORKERS 12
#define STEPS 1500

/* One world: its gate, its caller and its clock. */
struct world {
    struct wr_rng rng;
    weir_pace_options options;
    struct wr_gate *gate;
    size_t gate_bytes;
    struct observer observer;
    int64_t now, wall_now;
    struct wr_gate_start flying[WORKERS];
    uint32_t flying_count;
    uint32_t pending; /* a reservation that is not sent; 0: none */
    int mood;         /* behaviour of the host */
    uint32_t starts;
};

static uint64_t below(struct world *world, uint64_t n)
{
    return wr_rng_below(&world->rng, n);
}

static bool once_in(struct world *world, uint64_t n)
{
    return below(world, n) == 0;
}

/* Returns a time from 1 ns to `most`. Each order of magnitude is equally likely. */
static int64_t any_time(struct world *world, int64_t most)
{
    int64_t scale = 1;
    for (uint64_t n = below(world, 19); n > 0 && scale <= most / 10; n--)
        scale *= 10;
    int64_t ns = (int64_t)below(world, (uint64_t)scale * 10) + 1;
    return ns < most ? ns : most;
}

static int64_t nonsense(struct world *world)
{
    static const int64_t numbers[] = {INT64_MIN, INT64_MIN + 1, -WEIR_HOUR, -1, 0, 1, WEIR_DURATION_MAX, INT64_MAX};
    return numbers[below(world, sizeof numbers / sizeof *numbers)];
}

/* ---- options --------------------------------------------------------------------------------- */

static void vary_bounds(struct world *world, weir_pace_options *options)
{
    options->min_interval_ns = once_in(world, 2) ? options->min_interval_ns : any_time(world, 20 * WEIR_SECOND);
    options->max_rate = once_in(world, 2) ? 0 : 0.05 * (double)(1 + below(world, 1000));
    options->max_in_flight = once_in(world, 2) ? 0 : (uint32_t)below(world, 8);
    options->breaker = !once_in(world, 4);
}

static void draw_options(struct world *world)
{
    weir_pace_options *options = &world->options;
    weir_pace_options_profile(options, (weir_profile)below(world, WEIR_PROFILE_ORIGIN_TUNED + 1));
    options->strategy = (weir_strategy)below(world, WEIR_STRATEGY_NONE + 1);
    vary_bounds(world, options);
    options->burst = 1 + (double)below(world, 10);
    options->rate_ceiling = 1 + (double)below(world, 100);
    options->initial_rate = 0.5 + (double)below(world, 10);
    options->consecutive_failures = (uint32_t)(1 + below(world, 8));
    options->open_ns = any_time(world, WEIR_MINUTE) + WEIR_MILLISECOND;
    options->probes = (uint32_t)(1 + below(world, 4));
    options->base_delay_ns = any_time(world, 2 * WEIR_SECOND);
    options->retry_after_max_ns = WEIR_SECOND + any_time(world, WEIR_DAY);
    options->reservation_max_ns = WEIR_MILLISECOND + any_time(world, 2 * WEIR_MINUTE);
    options->jitter_over_ns = any_time(world, WEIR_MINUTE);
    options->latency_ring = (uint32_t)(1 + below(world, 64));
    assert_int_equal(wr_pace_options_check(options, options), 0);
}

/* ---- the world ------------------------------------------------------------------------------- */

static void gate_new(struct world *world, const weir_pace_memory *memory)
{
    free(world->gate);
    world->gate_bytes = wr_gate_bytes(&world->options);
    world->gate = calloc(1, world->gate_bytes); /* exact size, so that sanitizers detect overruns */
    assert_non_null(world->gate);
    wr_gate_init(world->gate, &world->options, memory, world->now, world->wall_now);
}

static void world_init(struct world *world, uint64_t seed)
{
    *world = (struct world){.wall_now = 1700000000 * WEIR_SECOND};
    wr_rng_init(&world->rng, seed);
    draw_options(world);
    world->now = once_in(world, 3) ? 0 : any_time(world, 1000 * WEIR_DAY);
    gate_new(world, NULL);
    observer_init(&world->observer, &world->options, world->now);
}

static void world_release(struct world *world)
{
    free(world->gate);
}

static void pass(struct world *world, int64_t ns)
{
    world->now += ns;
    world->wall_now += ns;
}

/* ---- actions of the caller ------------------------------------------------------------------- */

static void write_request(struct world *world, uint32_t seq)
{
    observer_start(&world->observer, world->gate, world->now);
    world->flying[world->flying_count++] = wr_gate_sent(world->gate, &world->options, seq, world->now);
    world->starts++;
}

/* The caller asks again before it sends, because something may have happened since the
 * reservation. */
static void step_pending(struct world *world)
{
    uint32_t seq = world->pending;
    if (once_in(world, 2))
        return; /* the caller is still connecting */
    world->pending = 0;
    if (!once_in(world, 4) && world->flying_count < WORKERS &&
        wr_gate_ask_again(world->gate, &world->options, seq, world->now).verdict == WEIR_GO) {
        write_request(world, seq);
        return;
    }
    wr_gate_give(world->gate, &world->options, seq, world->now);
    observer_given(&world->observer);
}

/* Checks that a wait is exact: the request is refused 1 ns before its end and granted at its end,
 * if nothing else happens. */
static void check_wait(struct world *world, weir_decision decision)
{
    struct observer *observer = &world->observer;
    const char *wrong = NULL;
    if (decision.wait_ns <= 0)
        wrong = "a wait of 0 ns or less";
    if (decision.wait_ns == WEIR_UNTIL_RELEASE || wrong != NULL || decision.wait_ns > WEIR_DURATION_MAX / 2) {
        observer->broken = observer->broken != NULL ? observer->broken : wrong;
        return;
    }
    int64_t then = world->now + decision.wait_ns;
    if (wr_gate_ask(world->gate, &world->options, then - 1).verdict == WEIR_GO)
        wrong = "a wait is longer than it must be";
    if (decision.reason != WEIR_REASON_BREAKER && wr_gate_ask(world->gate, &world->options, then).verdict != WEIR_GO)
        wrong = "a wait is over, but the request is still refused";
    observer->broken = observer->broken != NULL ? observer->broken : wrong;
}

static void step_ask(struct world *world)
{
    weir_decision decision = wr_gate_ask(world->gate, &world->options, world->now);
    if (decision.verdict != WEIR_GO) {
        check_wait(world, decision);
        if (decision.wait_ns < WEIR_HOUR && once_in(world, 2))
            pass(world, decision.wait_ns);
        return;
    }
    if (world->flying_count == WORKERS)
        return;
    observer_go(&world->observer, world->gate, world->now);
    uint32_t seq = wr_gate_reserve(world->gate, &world->options, world->now);
    observer_reserved(&world->observer);
    if (world->pending == 0 && once_in(world, 4))
        world->pending = seq;
    else
        write_request(world, seq);
}

/* ---- actions of the host --------------------------------------------------------------------- */

enum {
    HEALTHY,
    LIMITED,
    BROKEN,
    SILENT,
    MAD,
    MOODS
};

static int status_of(struct world *world)
{
    static const int limited[] = {200, 429, 429, 403, 503};
    static const int broken[] = {500, 502, 503, 504, 200};
    static const int mad[] = {0,   -1,  1,   99,  100, 204, 304,       404,      418,
                              429, 451, 529, 599, 600, 999, INT32_MAX, INT32_MIN};
    switch (world->mood) {
    case LIMITED:
        return limited[below(world, 5)];
    case BROKEN:
        return broken[below(world, 5)];
    case SILENT:
        return 0;
    case MAD:
        return mad[below(world, sizeof mad / sizeof *mad)];
    default:
        return once_in(world, 30) ? 429 : 200;
    }
}

static weir_outcome outcome_of(struct world *world)
{
    bool mad = world->mood == MAD && once_in(world, 2);
    weir_outcome outcome = {.size = sizeof outcome, .status = status_of(world)};
    outcome.latency_ns = mad ? nonsense(world) : any_time(world, WEIR_MINUTE);
    outcome.has_retry_after = once_in(world, outcome.status != 200 ? 3 : 60);
    outcome.retry_after_ns = mad ? nonsense(world) : any_time(world, WEIR_HOUR);
    outcome.has_quota = once_in(world, 6);
    outcome.quota_limit = mad ? nonsense(world) : 60;
    outcome.quota_remaining = mad ? nonsense(world) : (int64_t)below(world, 11) - 1;
    outcome.quota_reset_ns = mad ? nonsense(world) : any_time(world, WEIR_MINUTE);
    return outcome;
}

static weir_breaker_state breaker_of(struct world *world)
{
    weir_pace_entry entry = {.key = NULL};
    wr_gate_inspect(world->gate, &world->options, world->now, &entry);
    return entry.breaker;
}

static void tell(struct world *world, const struct wr_gate_start *start, const weir_outcome *outcome)
{
    weir_breaker_state before = breaker_of(world);
    double unit = wr_rng_unit(&world->rng);
    wr_gate_tell(world->gate, &world->options, start, outcome, world->now, unit);
    observer_told(&world->observer, world->gate, start, outcome, before, world->now);
}

/* Answers one of the requests in flight, in random order. Some are never answered. */
static void step_answer(struct world *world)
{
    weir_outcome outcome = outcome_of(world);
    if (world->flying_count == 0) {
        if (once_in(world, 10))
            tell(world, NULL, &outcome); /* feedback without a reservation */
        return;
    }
    uint64_t place = below(world, world->flying_count);
    struct wr_gate_start start = world->flying[place];
    world->flying[place] = world->flying[--world->flying_count];
    if (once_in(world, 20)) {
        wr_gate_drop(world->gate, &world->options, &start, world->now);
        observer_dropped(&world->observer);
    } else {
        tell(world, &start, &outcome);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void step_restart(struct world *world)
{
    weir_pace_memory memory;
    int64_t down_ns = any_time(world, WEIR_HOUR);
    wr_gate_remember(world->gate, &world->options, world->now, world->wall_now, &memory);
    /* the wall clock may be set back meanwhile */
    world->wall_now += once_in(world, 4) ? -down_ns : down_ns;
    world->now = any_time(world, WEIR_DAY); /* another boot with another clock */
    world->flying_count = world->pending = 0;
    gate_new(world, &memory);
    observer_restart(&world->observer, down_ns, world->now);
}

static void step_change(struct world *world)
{
    weir_pace_options after = world->options;
    vary_bounds(world, &after);
    after.breaker = world->options.breaker;
    if (wr_pace_options_check(&after, &after) < 0 || wr_gate_bytes(&after) != world->gate_bytes)
        return;
    struct wr_gate *gate = calloc(1, world->gate_bytes);
    assert_non_null(gate);
    wr_gate_carry(world->gate, &world->options, gate, &after, world->now);
    free(world->gate);
    world->gate = gate;
    world->options = after;
    observer_change(&world->observer, &world->options);
}

static void step_robots(struct world *world)
{
    int64_t delay_ns = once_in(world, 3) ? 0 : any_time(world, 30 * WEIR_SECOND);
    if (once_in(world, 20))
        delay_ns = -1;
    wr_gate_robots_delay(world->gate, delay_ns, world->now);
    observer_robots(&world->observer, delay_ns);
}

static void step_pause(struct world *world)
{
    world->observer.paused = !world->observer.paused;
    wr_gate_pause(world->gate, world->observer.paused);
}

static void step_hold(struct world *world)
{
    int64_t until = world->now + any_time(world, WEIR_HOUR);
    wr_gate_hold(world->gate, &world->options, until, world->now);
    observer_hold(&world->observer, until);
}

/* Changes the clock that the caller reads, not the true time. */
static void step_clock(struct world *world)
{
    int64_t by_ns = any_time(world, WEIR_HOUR);
    world->now += once_in(world, 3) ? by_ns : -by_ns;
    if (world->now < 0)
        world->now = 0;
}

static void step_fault(struct world *world)
{
    switch (below(world, 40)) {
    case 0:
        step_restart(world);
        return;
    case 1:
    case 2:
        step_change(world);
        return;
    case 3:
    case 4:
        step_robots(world);
        return;
    case 5:
        step_hold(world);
        return;
    case 6:
    case 7:
        step_clock(world);
        return;
    case 8:
        step_pause(world);
        return;
    case 9:
    case 10:
    case 11:
        world->mood = (int)below(world, MOODS);
        return;
    default:
        if (world->observer.paused)
            step_pause(world);
    }
}

static void step(struct world *world)
{
    if (once_in(world, 3))
        pass(world, any_time(world, once_in(world, 20) ? WEIR_HOUR : 5 * WEIR_SECOND));
    observer_time(&world->observer, world->now);
    observer_look(&world->observer, world->gate, world->now);
    if (world->pending != 0 && once_in(world, 2))
        step_pending(world);
    else if (once_in(world, 2))
        step_ask(world);
    else if (once_in(world, 8))
        step_fault(world);
    else
        step_answer(world);
    observer_time(&world->observer, world->now);
    observer_look(&world->observer, world->gate, world->now);
}

/* Checks that the gate grants a request some time after all faults have ended. */
static void check_it_ends_well(struct world *world)
{
    const weir_outcome good = {.size = sizeof good, .status = 200, .latency_ns = WEIR_MILLISECOND};
    wr_gate_pause(world->gate, false);
    wr_gate_robots_delay(world->gate, 0, world->now);
    wr_gate_give(world->gate, &world->options, world->pending, world->now);
    while (world->flying_count > 0)
        wr_gate_tell(world->gate, &world->options, &world->flying[--world->flying_count], &good, world->now, 0.5);
    for (int i = 0; i < 100; i++) {
        weir_decision decision = wr_gate_ask(world->gate, &world->options, world->now);
        if (decision.verdict == WEIR_GO)
            return;
        if (decision.wait_ns == WEIR_UNTIL_RELEASE)
            break;
        world->now += decision.wait_ns;
    }
    world->observer.broken = "nothing is in flight, but requests are refused for ever";
}

static void run_world(uint64_t seed)
{
    struct world world;
    int i;
    world_init(&world, seed);
    for (i = 0; i < STEPS && world.observer.broken == NULL; i++)
        step(&world);
    if (world.observer.broken == NULL)
        check_it_ends_well(&world);
    if (world.observer.broken != NULL)
        fail_msg("step %d, strategy %s: %s (%s)\nto repeat: WEIR_TEST_LAW_SEED=%llu", i,
                 weir_strategy_name(world.options.strategy), world.observer.broken, world.observer.detail,
                 (unsigned long long)seed);
    world_release(&world);
}

/* ---- simulated origins ----------------------------------------------------------------------- */

/* Log of requests and answers, with the bounds that follow from them. */
struct log {
    const struct wr_sim_pacer *pacer;
    int64_t last_start_at, window_end;
    const char *broken;
    int64_t broken_at;
};

static void log_break(struct log *log, const char *law, int64_t at)
{
    if (log->broken == NULL) {
        log->broken = law;
        log->broken_at = at;
    }
}

static void log_start(struct log *log, const struct wr_sim_event *event)
{
    const weir_pace_options *options = &log->pacer->options;
    double spacing_ns = options->max_rate > 0 ? 1e9 / options->max_rate : 0;
    if (event->at < log->last_start_at + options->min_interval_ns ||
        (double)event->at < (double)log->last_start_at + spacing_ns)
        log_break(log, "V1: closer than the interval", event->at);
    if (options->max_in_flight > 0 && event->in_flight > options->max_in_flight)
        log_break(log, "V1: more in flight than max_in_flight", event->at);
    if (event->at < log->window_end)
        log_break(log, "V2: a start within a server's window", event->at);
    log->last_start_at = event->at;
}

static void log_answer(struct log *log, const struct wr_sim_event *event)
{
    int64_t wait_ns = event->retry_after_ns;
    if (!log->pacer->ignores_quota_fields && event->quota_remaining == 0 && event->quota_reset_ns > wait_ns)
        wait_ns = event->quota_reset_ns;
    if (wait_ns > 0 && event->at + wait_ns > log->window_end)
        log->window_end = event->at + wait_ns;
}

static void log_event(void *context, const struct wr_sim_event *event)
{
    if (event->kind == WR_SIM_SENT)
        log_start(context, event);
    else
        log_answer(context, event);
}

/* No pacer sends more than some dozens of requests a second: laws are broken at low rates. */
static const char *const pacer_texts[] = {
    "adaptive",
    "adaptive:max_in_flight=2",
    "adaptive:min_interval=250ms",
    "strict",
    "strict:min_interval=300ms",
    "aimd:headers=true",
    "aimd:max=20,burst=10,max_in_flight=4",
    "aimd:min_interval=70ms",
    "learned:headers=true",
    "learned:max_rate=1.5",
    "both",
    "gradient:max_rate=20,max_in_flight=3",
    "pid:max_rate=20",
    "none:max_rate=15",
};

static void run_origin(uint64_t seed)
{
    uint32_t index = (uint32_t)(seed % 11);
    const char *text = pacer_texts[seed % (sizeof pacer_texts / sizeof *pacer_texts)];
    struct wr_scenario scenario;
    struct wr_sim_pacer pacer;
    struct wr_score score;
    if (wr_sim_pacer_named(text, &pacer) < 0)
        fail_msg("%s: %s", text, weir_error_detail());
    wr_scenario_random(seed, index, &scenario);
    struct log log = {.pacer = &pacer, .last_start_at = -WEIR_DURATION_MAX, .window_end = -WEIR_DURATION_MAX};
    assert_int_equal(
        wr_sim_watch(&scenario, &pacer, seed, seed % 2 == 0, weir_allocator_system(), log_event, &log, &score), 0);
    if (log.broken != NULL)
        fail_msg("%s, %s: %s at %lld ns\nto repeat: weir simulate --random %u --seed %llu --seeds 1 --pacer %s%s "
                 "--trace FILE",
                 scenario.name, text, log.broken, (long long)log.broken_at, index + 1, (unsigned long long)seed, text,
                 seed % 2 == 0 ? " --warm" : "");
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

static void for_each_seed(void (*run)(uint64_t seed), uint64_t share)
{
    uint64_t only = number_from("WEIR_TEST_LAW_SEED", 0);
    uint64_t seeds = only != 0 ? only : number_from("WEIR_TEST_LAW_SEEDS", 400) / share;
    for (uint64_t seed = only != 0 ? only : 1; seed <= seeds; seed++)
        run(seed);
}

static void gates_keep_the_laws_under_all_faults(void **state)
{
    (void)state;
    for_each_seed(run_world, 1);
}

static void pacers_keep_the_laws_against_every_kind_of_origin(void **state)
{
    (void)state;
    for_each_seed(run_origin, 10);
}

WEIR_TESTS(test(gates_keep_the_laws_under_all_faults), test(pacers_keep_the_laws_against_every_kind_of_origin))
