/* SPDX-License-Identifier: MIT */
/* test_both.c - tests AIMD and the learned delay combined: both see every answer, and the larger
 * delay wins. */
#include "strategy_rig.h"

static struct rig begin(const weir_pace_memory *memory)
{
    weir_pace_options options = rig_options();
    struct rig rig;
    rig_init(&rig, &wr_aimd_learned, &options, memory, T0);
    return rig;
}

static void pace_of_learned_is_named_where_both_wait_as_long(void **state)
{
    (void)state;
    weir_pace_memory memory = {.delay_ns = 2 * WEIR_SECOND, .floor_ns = WEIR_SECOND};
    struct rig rig = begin(&memory);
    assert_int_equal(rig_wait(&rig, T0), 2 * WEIR_SECOND);
    assert_int_equal(rig_want(&rig, T0).reason, WEIR_REASON_PACE);
    rig_release(&rig);
}

static void rate_is_the_smaller_of_the_two(void **state)
{
    (void)state;
    struct rig rig = begin(NULL);
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

static void tokens_are_those_of_the_bucket(void **state)
{
    (void)state;
    struct rig rig = begin(NULL);
    assert_near(rig_want(&rig, T0).tokens, 4, 1e-9);
    rig_send(&rig, T0);
    assert_near(rig_want(&rig, T0).tokens, 3, 1e-9);
    assert_int_equal(rig_wait(&rig, T0), 500 * MS); /* the bucket has tokens, but learned waits */
    assert_int_equal(rig_want(&rig, T0).reason, WEIR_REASON_PACE);
    assert_int_equal(rig_want(&rig, T0).cap, UINT32_MAX);
    rig_release(&rig);
}

static void longer_delay_and_longer_floor_are_remembered(void **state)
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
        struct rig rig = begin(NULL);
        for (int k = 0; k < rows[i].times; k++)
            rig_tell(&rig, T0 + k * WEIR_SECOND, rows[i].status, 100 * MS, -1);
        weir_pace_memory memory = rig_memory(&rig, T0 + 10 * WEIR_SECOND);
        assert_int_equal(memory.delay_ns, rows[i].delay_ns);
        assert_near((double)memory.floor_ns, (double)rows[i].floor_ns, (double)MS);
        rig_release(&rig);
    }
    weir_pace_memory both = {.delay_ns = 3 * WEIR_SECOND, .floor_ns = 2 * WEIR_SECOND};
    struct rig rig = begin(&both);
    assert_int_equal(rig_memory(&rig, T0).floor_ns, 2 * WEIR_SECOND);
    assert_int_equal(rig_memory(&rig, T0).delay_ns, 3 * WEIR_SECOND);
    rig_release(&rig);
}

static void probe_of_learned_is_the_mode_and_else_that_of_aimd(void **state)
{
    (void)state;
    struct rig rig = begin(NULL);
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

static void host_may_be_forgotten_once_both_have_nothing_left_to_wait_for(void **state)
{
    (void)state;
    struct rig rig = begin(NULL);
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

static void change_of_the_options_reaches_both(void **state)
{
    (void)state;
    struct rig rig = begin(NULL);
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

WEIR_TESTS(test(pace_of_learned_is_named_where_both_wait_as_long), test(rate_is_the_smaller_of_the_two),
           test(tokens_are_those_of_the_bucket), test(longer_delay_and_longer_floor_are_remembered),
           test(probe_of_learned_is_the_mode_and_else_that_of_aimd),
           test(host_may_be_forgotten_once_both_have_nothing_left_to_wait_for),
           test(change_of_the_options_reaches_both))
