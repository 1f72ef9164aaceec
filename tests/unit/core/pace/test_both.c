/* SPDX-License-Identifier: MIT */
/* test_both.c - tests AIMD and the learned delay combined: both see every answer, and the larger
 * delay wins. */
#include "strategy_rig.h"

static struct strategy_fixture begin(const weir_pace_memory *memory)
{
    weir_pace_options options = rig_options();
    struct strategy_fixture rig;
    rig_init(&rig, &wr_aimd_learned, &options, memory, T0);
    return rig;
}

static void equal_waits_of_aimd_and_learned_have_reason_pace(void **state)
{
    (void)state;
    weir_pace_memory memory = {.delay_ns = 2 * WEIR_SECOND, .floor_ns = WEIR_SECOND};
    struct strategy_fixture rig = begin(&memory);
    assert_int_equal(rig_wait(&rig, T0), 2 * WEIR_SECOND);
    assert_int_equal(rig_want(&rig, T0).reason, WEIR_REASON_PACE);
    rig_release(&rig);
}

static void combined_rate_is_the_smaller_of_aimd_and_learned(void **state)
{
    (void)state;
    struct strategy_fixture rig = begin(NULL);
    assert_near(rig_want(&rig, T0).rate, 2, 1e-9); /* both allow two a second */
    for (int i = 1; i <= 8; i++)
        rig_tell(&rig, T0 + i * 10 * WEIR_SECOND, 200, 100 * MS, -1);
    /* aimd is at 4, learned still at 2 */
    assert_near(rig_want(&rig, T0 + WEIR_MINUTE).rate, 2, 1e-9);
    rig_tell(&rig, T0 + 2 * WEIR_MINUTE, 500, 100 * MS, -1);
    rig_tell(&rig, T0 + 2 * WEIR_MINUTE, 500, 100 * MS, -1);
    assert_near(rig_want(&rig, T0 + 2 * WEIR_MINUTE).rate, 1, 1e-9); /* only aimd reacts to 500 */
    rig_tell(&rig, T0 + 2 * WEIR_MINUTE, 429, 100 * MS, -1);
    rig_tell(&rig, T0 + 2 * WEIR_MINUTE, 429, 100 * MS, -1);
    rig_tell(&rig, T0 + 2 * WEIR_MINUTE, 429, 100 * MS, -1);
    rig_tell(&rig, T0 + 2 * WEIR_MINUTE, 429, 100 * MS, -1);
    /* aimd is at its minimum of a quarter */
    assert_near(rig_want(&rig, T0 + 2 * WEIR_MINUTE).rate, 1 / 4.5, 1e-9);
    rig_release(&rig);
}

static void combined_strategy_reports_the_tokens_of_aimd(void **state)
{
    (void)state;
    struct strategy_fixture rig = begin(NULL);
    assert_near(rig_want(&rig, T0).tokens, 4, 1e-9);
    rig_send(&rig, T0);
    assert_near(rig_want(&rig, T0).tokens, 3, 1e-9);
    assert_int_equal(rig_wait(&rig, T0), 500 * MS); /* the bucket has tokens, but learned waits */
    assert_int_equal(rig_want(&rig, T0).reason, WEIR_REASON_PACE);
    assert_int_equal(rig_want(&rig, T0).cap, UINT32_MAX);
    rig_release(&rig);
}

static void combined_strategy_stores_the_longer_delay_and_the_longer_floor(void **state)
{
    (void)state;
    static const struct {
        int status, times;
        int64_t delay_ns, floor_ns;
    } rows[] = {
        /* learned keeps 500 ms; the last safe rate of aimd was 2.75 */
        {200, 4, 500 * MS, 364 * MS},
        {500, 2, 2000 * MS, 0}, /* only aimd reacts: it halves its rate twice */
        {429, 4, 4500 * MS, 0}, /* learned adds a second each time; aimd ends at a quarter */
        {429, 2, 2500 * MS, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strategy_fixture rig = begin(NULL);
        for (int k = 0; k < rows[i].times; k++)
            rig_tell(&rig, T0 + k * WEIR_SECOND, rows[i].status, 100 * MS, -1);
        weir_pace_memory memory = rig_memory(&rig, T0 + 10 * WEIR_SECOND);
        assert_int_equal(memory.delay_ns, rows[i].delay_ns);
        assert_near((double)memory.floor_ns, (double)rows[i].floor_ns, (double)MS);
        rig_release(&rig);
    }
    weir_pace_memory both = {.delay_ns = 3 * WEIR_SECOND, .floor_ns = 2 * WEIR_SECOND};
    struct strategy_fixture rig = begin(&both);
    assert_int_equal(rig_memory(&rig, T0).floor_ns, 2 * WEIR_SECOND);
    assert_int_equal(rig_memory(&rig, T0).delay_ns, 3 * WEIR_SECOND);
    rig_release(&rig);
}

static void combined_mode_is_a_probe_of_learned_or_the_mode_of_aimd(void **state)
{
    (void)state;
    struct strategy_fixture rig = begin(NULL);
    assert_string_equal(rig.strategy->mode(rig.state), "hold");
    rig_tell(&rig, T0, 200, 100 * MS, -1);
    assert_string_equal(rig.strategy->mode(rig.state), "raise");
    rig_tell(&rig, T0, 429, 100 * MS, -1);
    assert_string_equal(rig.strategy->mode(rig.state), "cut");
    for (int i = 0; i < 20; i++)
        rig_tell(&rig, T0 + i * WEIR_SECOND, 200, 100 * MS, -1);
    assert_string_equal(rig.strategy->mode(rig.state), "probe");
    rig_release(&rig);
}

static void host_may_be_forgotten_once_neither_aimd_nor_learned_waits(void **state)
{
    (void)state;
    struct strategy_fixture rig = begin(NULL);
    rig_send(&rig, T0); /* one token is missing for 500 ms, as long as the delay */
    assert_false(rig.strategy->settled(&rig.options, rig.state, T0 + 500 * MS - 1));
    assert_true(rig.strategy->settled(&rig.options, rig.state, T0 + 500 * MS));
    rig_send(&rig, T0 + 500 * MS);
    rig_send(&rig, T0 + 500 * MS); /* two tokens are missing: the bucket takes longer */
    assert_false(rig.strategy->settled(&rig.options, rig.state, T0 + 1500 * MS - 1));
    assert_true(rig.strategy->settled(&rig.options, rig.state, T0 + 1500 * MS));
    rig_tell(&rig, T0 + 1500 * MS, 429, 100 * MS, -1); /* learned waits for a delay of 1.5 s */
    assert_false(rig.strategy->settled(&rig.options, rig.state, T0 + 3000 * MS - 1));
    assert_true(rig.strategy->settled(&rig.options, rig.state, T0 + 3000 * MS));
    rig_release(&rig);
}

static void change_of_options_reaches_both_aimd_and_learned(void **state)
{
    (void)state;
    struct strategy_fixture rig = begin(NULL);
    rig_send(&rig, T0);
    rig.options.rate_ceiling = 1; /* limits aimd to one a second */
    rig.options.min_rate = 0.25;
    rig.strategy->change(&rig.options, rig.state, T0);
    assert_near(rig_want(&rig, T0).rate, 1, 1e-9);
    rig.options.base_delay_ns = 3 * WEIR_SECOND; /* limits learned to one in three seconds */
    rig.strategy->change(&rig.options, rig.state, T0);
    assert_near(rig_want(&rig, T0).rate, 1.0 / 3, 1e-9);
    assert_int_equal(rig_wait(&rig, T0), 3 * WEIR_SECOND);
    rig_release(&rig);
}

WEIR_TESTS(test(equal_waits_of_aimd_and_learned_have_reason_pace),
           test(combined_rate_is_the_smaller_of_aimd_and_learned), test(combined_strategy_reports_the_tokens_of_aimd),
           test(combined_strategy_stores_the_longer_delay_and_the_longer_floor),
           test(combined_mode_is_a_probe_of_learned_or_the_mode_of_aimd),
           test(host_may_be_forgotten_once_neither_aimd_nor_learned_waits),
           test(change_of_options_reaches_both_aimd_and_learned))
