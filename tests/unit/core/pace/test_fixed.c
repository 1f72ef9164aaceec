/* SPDX-License-Identifier: MIT */
/* test_fixed.c - tests the constant pace (S1-1 ... S1-6, S1-32, S0-103), and AIMD and the learned
 * delay combined (R2). */
#include "strategy_rig.h"

/* S1-2 … S1-5 */
static void starts_are_one_interval_apart_and_the_first_is_at_once(void **state)
{
    (void)state;
    const struct {
        int64_t at_ms, start_ms;
    } rows[] = {{0, 0}, {500, 1000}, {1200, 2000}, {3000, 3000}, {3400, 4000}, {90000, 90000}};
    weir_pace_options options = rig_options();
    struct strategy_fixture rig;
    rig_init(&rig, &wr_fixed, &options, NULL, T0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t now = T0 + rows[i].at_ms * MS;
        assert_int_equal(now + rig_wait(&rig, now), T0 + rows[i].start_ms * MS);
        assert_int_equal(rig_want(&rig, now).reason, WEIR_REASON_PACE);
        rig_send(&rig, now + rig_wait(&rig, now));
    }
    rig_release(&rig);
}

/* S1-2, S0-103 */
static void interval_is_the_minimum_or_a_second_and_no_answer_changes_it(void **state)
{
    (void)state;
    const int64_t rows[][2] = {{0, WEIR_SECOND}, {250 * MS, 250 * MS}, {5 * WEIR_SECOND, 5 * WEIR_SECOND}};
    const int answers[] = {200, 429, 503, 500, 403, 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_pace_options options = rig_options();
        options.min_interval_ns = rows[i][0];
        struct strategy_fixture rig;
        rig_init(&rig, &wr_fixed, &options, NULL, T0);
        int64_t now = T0;
        for (size_t k = 0; k < sizeof answers / sizeof *answers; k++) {
            assert_true(rig_try(&rig, now));
            rig_tell(&rig, now + MS, answers[k], MS, -1);
            assert_int_equal(rig_wait(&rig, now + MS), rows[i][1] - MS);
            now += rows[i][1];
        }
        assert_int_equal(rig_memory(&rig, now).delay_ns, rows[i][1]);
        assert_int_equal(rig_memory(&rig, now).floor_ns, rows[i][1]);
        rig_release(&rig);
    }
}

/* Returns whether any two starts to one host were closer than a second, as an observer on the
 * network would see. */
static bool observer_saw_a_breach(const int64_t *starts_at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (llabs(starts_at[i] - starts_at[k]) < WEIR_SECOND)
                return true;
    return false;
}

enum {
    WORKERS = 10,
    ROUNDS = 5
};

/* S1-32: compares ten workers that each sleep a second between their own requests with ten workers
 * that share one state. */
static void ten_workers_with_separate_pauses_break_the_spacing_of_a_shared_state(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    for (int naive = 0; naive <= 1; naive++) {
        struct strategy_fixture rigs[WORKERS];
        int64_t starts_at[WORKERS * ROUNDS], now[WORKERS];
        size_t count = 0;
        for (int i = 0; i < WORKERS; i++) {
            rig_init(&rigs[i], &wr_fixed, &options, NULL, T0);
            now[i] = T0 + i * MS;
        }
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < WORKERS; i++) {
                struct strategy_fixture *rig = &rigs[naive ? i : 0];
                now[i] += rig_wait(rig, now[i]);
                rig_send(rig, now[i]);
                starts_at[count++] = now[i];
            }
        }
        assert_int_equal(observer_saw_a_breach(starts_at, count), naive);
        for (int i = 0; i < WORKERS; i++)
            rig_release(&rigs[i]);
    }
}

/* R2: AIMD and the learned delay combined. */
static void combined_wait_is_the_larger_of_aimd_and_learned_never_the_sum(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    struct strategy_fixture both, aimd, learned;
    rig_init(&both, &wr_aimd_learned, &options, NULL, T0);
    rig_init(&aimd, &wr_aimd, &options, NULL, T0);
    rig_init(&learned, &wr_learned, &options, NULL, T0);
    const int answers[] = {200, 500, 503, 200, 429, 200, 200, 500, 500, 200, 429, 200};
    bool by_rate = false, by_delay = false;
    int64_t now = T0;
    for (int i = 0; i < 600; i++) {
        int64_t wait_ns = rig_wait(&both, now), a = rig_wait(&aimd, now), b = rig_wait(&learned, now);
        assert_int_equal(wait_ns, a > b ? a : b);
        if (wait_ns > 0)
            assert_int_equal(rig_want(&both, now).reason, a > b ? WEIR_REASON_TOKENS : WEIR_REASON_PACE);
        by_rate = by_rate || a > b;
        by_delay = by_delay || b > a;
        now += wait_ns;
        int status = answers[i / 10 % 12];
        struct strategy_fixture *all[] = {&both, &aimd, &learned};
        for (int k = 0; k < 3; k++) {
            rig_send(all[k], now);
            rig_tell(all[k], now + 10 * MS, status, 10 * MS, -1);
        }
        now += 10 * MS;
        int64_t delays[] = {rig_memory(&aimd, now).delay_ns, rig_memory(&learned, now).delay_ns};
        assert_int_equal(rig_memory(&both, now).delay_ns, delays[0] > delays[1] ? delays[0] : delays[1]);
    }
    assert_true(by_rate && by_delay);
    rig_release(&both);
    rig_release(&aimd);
    rig_release(&learned);
}

/* R2: each strategy can start from the memory of another. */
static void any_strategy_starts_from_the_memory_of_another(void **state)
{
    (void)state;
    const struct wr_strategy *const all[] = {&wr_aimd, &wr_learned, &wr_aimd_learned, &wr_gradient, &wr_pid};
    weir_pace_options options = rig_options();
    weir_pace_memory memory = {.delay_ns = 3 * WEIR_SECOND, .floor_ns = 2 * WEIR_SECOND};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct strategy_fixture rig;
        rig_init(&rig, all[i], &options, &memory, T0);
        assert_int_equal(rig_wait(&rig, T0), 3 * WEIR_SECOND);
        assert_int_equal(rig_memory(&rig, T0).delay_ns, 3 * WEIR_SECOND);
        assert_int_equal(rig_memory(&rig, T0).floor_ns, 2 * WEIR_SECOND);
        assert_false(all[i]->settled(&options, rig.state, T0));
        rig_release(&rig);
    }
}

WEIR_TESTS(test(starts_are_one_interval_apart_and_the_first_is_at_once),
           test(interval_is_the_minimum_or_a_second_and_no_answer_changes_it),
           test(ten_workers_with_separate_pauses_break_the_spacing_of_a_shared_state),
           test(combined_wait_is_the_larger_of_aimd_and_learned_never_the_sum),
           test(any_strategy_starts_from_the_memory_of_another))
