/* SPDX-License-Identifier: MIT */
/* test_memory.c - tests the memory that outlives a gate (R23, U3, S2-7 ... S2-9, F2, H2). */
#include "core/pace/gate_memory.h"
#include "rig.h"

#include "base/rng.h"
#include <math.h>

static int64_t base = 500 * MS;

/* R23 */
static void known_host_waits_one_full_interval_after_a_restart(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_memory memory = {.delay_ns = 4 * S, .saved_wall_at = WALL0};
    rig_restore(&rig, profile_options(WEIR_PROFILE_LEARNED), &memory, T0, WALL0);
    assert_waits(&rig, T0, WEIR_REASON_PACE, 4 * S);
    rig_send(&rig, T0 + 4 * S);
    rig_release(&rig);
    memory = (weir_pace_memory){.robots_delay_ns = 7 * S, .saved_wall_at = WALL0};
    rig_restore(&rig, bare_options(), &memory, T0, WALL0);
    assert_waits(&rig, T0, WEIR_REASON_ROBOTS_DELAY, 7 * S);
    rig_send(&rig, T0 + 7 * S);
    assert_waits(&rig, T0 + 7 * S, WEIR_REASON_ROBOTS_DELAY, 7 * S);
    rig_release(&rig);
    memory = (weir_pace_memory){.delay_ns = 0}; /* a known host without learned values */
    rig_restore(&rig, profile_options(WEIR_PROFILE_STRICT), &memory, T0, WALL0);
    assert_waits(&rig, T0, WEIR_REASON_PACE, S);
    rig_release(&rig);
}

static void restore_rested(struct gate_fixture *rig, weir_pace_options options, const weir_pace_memory *memory)
{
    rig_restore(rig, options, memory, T0, WALL0);
    memset(rig->gate, 0, wr_gate_bytes(&rig->options));
    wr_gate_init_rested(rig->gate, &rig->options, memory, T0, WALL0);
}

/* A caller that knows that the host rested for the interval may start at once. A window that the
 * server named still binds. */
static void rested_host_waits_for_no_interval_after_a_restart(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_memory memory = {.delay_ns = 4 * S, .saved_wall_at = WALL0};
    restore_rested(&rig, profile_options(WEIR_PROFILE_LEARNED), &memory);
    rig_send(&rig, T0);
    assert_waits(&rig, T0, WEIR_REASON_PACE, 4 * S);
    rig_release(&rig);
    memory = (weir_pace_memory){.robots_delay_ns = 7 * S, .saved_wall_at = WALL0};
    restore_rested(&rig, bare_options(), &memory);
    rig_send(&rig, T0);
    assert_waits(&rig, T0, WEIR_REASON_ROBOTS_DELAY, 7 * S);
    rig_release(&rig);
    memory = (weir_pace_memory){.retry_wall_at = WALL0 + 9 * S, .saved_wall_at = WALL0};
    restore_rested(&rig, profile_options(WEIR_PROFILE_STRICT), &memory);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, 9 * S);
    rig_release(&rig);
}

/* R23, V2, F2 */
static void window_that_the_server_named_is_honoured_after_a_restart(void **state)
{
    (void)state;
    struct gate_fixture rig, again;
    weir_pace_memory memory;
    rig_init(&rig, profile_options(WEIR_PROFILE_AIMD));
    rig_tell_retry_after(&rig, rig_send(&rig, T0), 429, WEIR_HOUR, T0);
    assert_true(wr_gate_unsaved(rig.gate));
    wr_gate_remember(rig.gate, &rig.options, T0 + WEIR_MINUTE, WALL0, &memory);
    assert_int_equal(memory.retry_wall_at, WALL0 + 59 * WEIR_MINUTE);
    assert_int_equal(memory.saved_wall_at, WALL0);
    /* Another process, with another clock, ten minutes later. */
    rig_restore(&again, profile_options(WEIR_PROFILE_AIMD), &memory, 5 * S, WALL0 + 10 * WEIR_MINUTE);
    assert_waits(&again, 5 * S, WEIR_REASON_RETRY_AFTER, 49 * WEIR_MINUTE);
    rig_release(&again);
    rig_restore(&again, profile_options(WEIR_PROFILE_AIMD), &memory, 5 * S, WALL0 + 2 * WEIR_HOUR);
    /* the window is over; one interval is left */
    assert_int_not_equal(rig_ask(&again, 5 * S).reason, WEIR_REASON_RETRY_AFTER);
    assert_false(rig_goes(&again, 5 * S));
    rig_release(&again);
    rig_release(&rig);
}

/* A window that the server named is unsaved even if nothing else changed. */
static void new_window_named_by_the_server_is_unsaved(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    assert_int_equal(rig_tell_retry_after(&rig, rig_send(&rig, T0), 200, S, T0), WR_GATE_CHANGE_RETRY_AFTER);
    assert_true(wr_gate_unsaved(rig.gate));
    wr_gate_saved(rig.gate);
    wr_gate_hold(rig.gate, &rig.options, T0 + S, T0);
    assert_false(wr_gate_unsaved(rig.gate)); /* this window was known */
    wr_gate_hold(rig.gate, &rig.options, T0 + S + 1, T0);
    assert_true(wr_gate_unsaved(rig.gate));
    rig_release(&rig);
}

/* S2-8: the gate's own push-backs are not stored. */
static void own_push_back_is_not_stored(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_memory memory;
    rig_init(&rig, bare_options());
    rig_answer(&rig, 429, T0);
    assert_waits(&rig, T0, WEIR_REASON_PACE, 100 * MS);
    wr_gate_remember(rig.gate, &rig.options, T0, WALL0, &memory);
    assert_int_equal(memory.retry_wall_at, 0);
    rig_release(&rig);
}

/* H2 */
static void stored_deadline_is_clamped_however_the_wall_clock_was_set(void **state)
{
    (void)state;
    static const struct {
        int64_t retry_wall_at, saved_wall_at, wall_now, wait_ns;
    } rows[] = {
        {WALL0 + WEIR_HOUR, WALL0, WALL0 + WEIR_MINUTE, 59 * WEIR_MINUTE},
        /* clock set back: no longer than it was */
        {WALL0 + WEIR_HOUR, WALL0, WALL0 - WEIR_DAY, WEIR_HOUR},
        {WALL0 + WEIR_HOUR, WALL0, 0, WEIR_HOUR},              /* clock at 1970 */
        {WALL0 + WEIR_HOUR, WALL0, WALL0 + 400 * WEIR_DAY, 0}, /* clock set forward */
        {WALL0 + 3650 * WEIR_DAY, WALL0, WALL0, WEIR_DAY},     /* clamped to a day */
        /* the time of saving is not known */
        {WALL0 + 3650 * WEIR_DAY, 0, WALL0, WEIR_DAY},
        {INT64_MAX, INT64_MIN, INT64_MIN, WEIR_DAY}, /* a damaged store */
        {INT64_MIN, INT64_MAX, INT64_MAX, 0},
        {0, WALL0, WALL0, 0},
    };
    weir_pace_options options = bare_options();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_pace_memory memory = {.retry_wall_at = rows[i].retry_wall_at, .saved_wall_at = rows[i].saved_wall_at};
        assert_int_equal(wr_memory_wait(&memory, &options, rows[i].wall_now), rows[i].wait_ns);
    }
}

/* U3 */
static void stored_delay_above_the_base_halves_in_each_half_life(void **state)
{
    (void)state;
    static const struct {
        int64_t age_ns;
        double share;
    } rows[] = {
        {0, 1},        {6 * WEIR_HOUR, 0.5}, {12 * WEIR_HOUR, 0.25}, {3 * WEIR_HOUR, 0.70710678}, {3650 * WEIR_DAY, 0},
        {-WEIR_DAY, 1} /* saved in the future */};
    weir_pace_options options = profile_options(WEIR_PROFILE_LEARNED);
    weir_pace_memory memory = {.delay_ns = 60 * S, .floor_ns = 10 * S, .saved_wall_at = WALL0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_pace_memory aged = wr_memory_aged(&memory, &options, WALL0 + rows[i].age_ns);
        double delay = (double)base + rows[i].share * (double)(60 * S - base);
        double floor = (double)base + rows[i].share * (double)(10 * S - base);
        assert_true(fabs((double)aged.delay_ns - delay) < (double)MS &&
                    fabs((double)aged.floor_ns - floor) < (double)MS);
    }
    memory.delay_ns = base / 2; /* below the base: unchanged */
    assert_int_equal(wr_memory_aged(&memory, &options, WALL0 + WEIR_DAY).delay_ns, base / 2);
}

static void damaged_memory_is_clamped_into_range(void **state)
{
    (void)state;
    weir_pace_options options = profile_options(WEIR_PROFILE_LEARNED);
    weir_pace_memory worst = {.delay_ns = INT64_MAX,
                              .floor_ns = INT64_MIN,
                              .robots_delay_ns = INT64_MAX,
                              .retry_wall_at = INT64_MAX,
                              .saved_wall_at = INT64_MIN,
                              .rate = (double)NAN,
                              .cap = UINT32_MAX,
                              .traits = UINT32_MAX,
                              .block_ns = INT64_MIN,
                              .breaker_open = true};
    weir_pace_memory aged = wr_memory_aged(&worst, &options, WALL0);
    assert_true(aged.delay_ns == 60 * S && aged.floor_ns == 0 && aged.robots_delay_ns == WEIR_DURATION_MAX);
    assert_true(aged.rate == 0 && aged.block_ns == 0);
    for (int i = 0; weir_strategy_name((weir_strategy)i) != NULL; i++) {
        struct gate_fixture rig;
        options.strategy = (weir_strategy)i;
        rig_restore(&rig, options, &worst, T0, WALL0);
        assert_true(rig_ask(&rig, T0).wait_ns <= WEIR_DURATION_MAX);
        rig_answer(&rig, 200, T0 + WEIR_DURATION_MAX); /* after 36 years of Crawl-delay */
        rig_release(&rig);
    }
}

/* H2: no value of a damaged store lets a burst through or holds a host for years under tide. */
static void absurd_stored_rates_are_clamped_into_range(void **state)
{
    (void)state;
    static const double rates[] = {1e-300,           1e-45,      1e-30, 1e-12, 1e-5, 1, 1e9, 1e10, 1e308, -1,
                                   (double)INFINITY, (double)NAN};
    static const uint32_t traits[] = {0, 1, 2, 4, 8, 15, UINT32_MAX};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        for (size_t k = 0; k < sizeof traits / sizeof *traits; k++) {
            struct gate_fixture rig;
            weir_pace_memory memory = {
                .rate = rates[i], .traits = traits[k], .cap = UINT32_MAX, .saved_wall_at = WALL0};
            weir_pace_options options = profile_options(WEIR_PROFILE_ADAPTIVE);
            options.max_rate = options.max_in_flight = 0;
            rig_restore(&rig, options, &memory, T0, WALL0);
            int64_t first_at = T0 + rig_ask(&rig, T0).wait_ns;
            assert_in_range(first_at - T0, 1, WEIR_DAY);
            rig_answer(&rig, 200, first_at);
            assert_true(rig_ask(&rig, first_at).wait_ns <= 2 * WEIR_DAY);
            weir_pace_entry entry = rig_look(&rig, first_at);
            assert_true(entry.rate > 1e-6 && entry.delay_ns > 0 && entry.cap > 0 && entry.cap < UINT32_MAX);
            rig_release(&rig);
        }
}

/* S2-9 */
static void learned_delay_is_restored_after_a_restart(void **state)
{
    (void)state;
    struct gate_fixture rig, again;
    weir_pace_memory memory;
    weir_pace_options options = profile_options(WEIR_PROFILE_LEARNED);
    options.breaker = false;
    rig_init(&rig, options);
    for (int64_t i = 0; i < 5; i++)
        rig_answer(&rig, 429, T0 + i * 10 * S);
    wr_gate_remember(rig.gate, &rig.options, T0 + 60 * S, WALL0, &memory);
    assert_int_equal(memory.delay_ns, 5500 * MS);
    rig_restore(&again, options, &memory, 5 * S, WALL0);
    assert_int_equal(rig_look(&again, 5 * S).delay_ns, 5500 * MS);
    rig_release(&rig);
    rig_release(&again);
}

/* Sets up a gate of this strategy that received the eight statuses repeatedly, 200 answers in
 * all. */
static void learn(struct gate_fixture *rig, weir_strategy strategy, const int *statuses)
{
    weir_pace_options options = profile_options(WEIR_PROFILE_ADAPTIVE);
    options.strategy = strategy;
    rig_init(rig, options);
    wr_gate_robots_delay(rig->gate, 3 * S, T0);
    int64_t now = T0;
    for (size_t i = 0; i < 200; i++) {
        for (weir_decision decision = rig_ask(rig, now); decision.verdict != WEIR_GO; decision = rig_ask(rig, now))
            now += decision.wait_ns;
        rig_answer(rig, statuses[i % 8], now);
        now += 700 * MS;
    }
}

/* Storing and restoring repeatedly does not change the memory. */
static void memory_is_unchanged_by_storing_and_restoring(void **state)
{
    (void)state;
    static const int histories[][8] = {{200, 200, 200, 200, 200, 200, 200, 200},
                                       {200, 200, 200, 429, 200, 200, 200, 200},
                                       {429, 429, 429, 429, 429, 429, 429, 429},
                                       {500, 500, 500, 500, 500, 500, 0, 0},
                                       {200, 403, 403, 403, 403, 403, 403, 403}};
    for (int i = 0; weir_strategy_name((weir_strategy)i) != NULL; i++)
        for (size_t k = 0; k < sizeof histories / sizeof *histories; k++) {
            struct gate_fixture rig;
            weir_pace_memory first, again;
            learn(&rig, (weir_strategy)i, histories[k]);
            wr_gate_remember(rig.gate, &rig.options, T0 + WEIR_DAY, WALL0, &first);
            weir_pace_options options = rig.options;
            rig_release(&rig);
            again = first;
            for (int round = 0; round < 3; round++) {
                rig_restore(&rig, options, &again, T0, WALL0);
                wr_gate_remember(rig.gate, &rig.options, T0, WALL0, &again);
                if (i == WEIR_STRATEGY_TIDE && round == 0)
                    first = again; /* after a ban, tide restarts at its floor or above */
                rig_release(&rig);
            }
            /* intervals are rounded up: 1 ns a round */
            assert_in_range(again.delay_ns - first.delay_ns, 0, 3);
            assert_true(again.floor_ns == first.floor_ns);
            assert_true(again.rate == first.rate && again.cap == first.cap && again.traits == first.traits);
            assert_true(again.block_ns == first.block_ns);
            assert_int_equal(again.robots_delay_ns, first.robots_delay_ns);
            assert_int_equal(again.breaker_open, first.breaker_open);
            assert_int_equal(again.saved_wall_at, first.saved_wall_at);
        }
}

static weir_pace_memory random_memory(struct wr_rng *rng)
{
    weir_pace_memory memory;
    unsigned char bytes[sizeof memory];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = wr_rng_below(rng, 4) == 0 ? 0 : (unsigned char)wr_rng_next(rng);
    bytes[offsetof(weir_pace_memory, breaker_open)] &= 1;
    memcpy(&memory, bytes, sizeof memory);
    return memory;
}

/* H2: whatever a store returns, requests are sent within two days or the Crawl-delay, and the gate
 * stays valid. */
static void memory_of_random_values_starts_a_valid_gate(void **state)
{
    (void)state;
    struct wr_rng rng;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 4000; i++) {
        struct gate_fixture rig;
        weir_pace_memory memory = random_memory(&rng), again;
        weir_pace_options options = profile_options(WEIR_PROFILE_ADAPTIVE);
        options.strategy = (weir_strategy)(i % (WEIR_STRATEGY_NONE + 1));
        options.max_rate = options.max_in_flight = 0;
        rig_restore(&rig, options, &memory, T0, WALL0);
        int64_t now = T0, most_ns = 2 * WEIR_DAY;
        for (int k = 0; k < 8; k++) {
            weir_decision decision = rig_ask(&rig, now);
            int64_t robots_ns = memory.robots_delay_ns > 0 ? memory.robots_delay_ns : 0;
            assert_true(decision.wait_ns <= (robots_ns > most_ns ? robots_ns : most_ns));
            if (decision.verdict == WEIR_GO)
                rig_answer(&rig, k % 3 == 2 ? 429 : 200, now);
            now += decision.wait_ns < WEIR_DAY ? decision.wait_ns : WEIR_DAY;
            assert_true(wr_gate_ok(rig.gate, &rig.options));
        }
        wr_gate_remember(rig.gate, &rig.options, now, WALL0, &again);
        assert_true(again.delay_ns >= 0 && again.delay_ns <= WEIR_DURATION_MAX && again.floor_ns >= 0);
        assert_true(again.rate >= 0 && again.rate <= 1e9 && again.cap <= 1000000 && again.block_ns >= 0);
        rig_release(&rig);
    }
}

static void crawl_delay_is_stored_and_changes_are_unsaved(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_memory memory;
    rig_init(&rig, bare_options());
    assert_false(wr_gate_unsaved(rig.gate));
    wr_gate_robots_delay(rig.gate, 3 * S, T0);
    assert_true(wr_gate_unsaved(rig.gate));
    wr_gate_saved(rig.gate);
    wr_gate_robots_delay(rig.gate, 3 * S, T0);
    assert_false(wr_gate_unsaved(rig.gate)); /* unchanged: nothing to save */
    wr_gate_remember(rig.gate, &rig.options, T0, WALL0, &memory);
    assert_int_equal(memory.robots_delay_ns, 3 * S);
    assert_false(memory.breaker_open);
    rig_release(&rig);
}

WEIR_TESTS(test(known_host_waits_one_full_interval_after_a_restart),
           test(rested_host_waits_for_no_interval_after_a_restart),
           test(window_that_the_server_named_is_honoured_after_a_restart),
           test(new_window_named_by_the_server_is_unsaved), test(own_push_back_is_not_stored),
           test(stored_deadline_is_clamped_however_the_wall_clock_was_set),
           test(stored_delay_above_the_base_halves_in_each_half_life), test(damaged_memory_is_clamped_into_range),
           test(absurd_stored_rates_are_clamped_into_range), test(learned_delay_is_restored_after_a_restart),
           test(memory_is_unchanged_by_storing_and_restoring), test(memory_of_random_values_starts_a_valid_gate),
           test(crawl_delay_is_stored_and_changes_are_unsaved))
