/* SPDX-License-Identifier: MIT */
/* test_window.c - tests the window that counts answers and errors (S0-28, S0-29, S0-86). */
#include "base/rng.h"
#include "core/pace/window.h"
#include "rig.h"

#include <math.h>

static struct wr_window *window_new(const weir_pace_options *options, int64_t now)
{
    struct wr_window *window = calloc(1, wr_window_bytes(options));
    assert_non_null(window);
    wr_window_init(window, options, now);
    return window;
}

static uint32_t total_at(const struct wr_window *window, const weir_pace_options *options, int64_t now)
{
    return wr_window_sum(window, options, now).total;
}

static double rate_at(const struct wr_window *window, const weir_pace_options *options, int64_t now)
{
    struct wr_window_sums sums = wr_window_sum(window, options, now);
    return wr_window_error_rate(&sums);
}

/* S0-28 */
static void window_counts_answers_by_kind(void **state)
{
    (void)state;
    weir_pace_options options = bare_options();
    struct wr_window *window = window_new(&options, T0);
    for (unsigned i = 0; i <= WR_WINDOW_OK; i++)
        for (unsigned kind = i; kind <= WR_WINDOW_OK; kind++)
            wr_window_add(window, &options, (enum wr_window_kind)kind, T0 + (int64_t)i * S);
    struct wr_window_sums sums = wr_window_sum(window, &options, T0 + 4 * S);
    assert_int_equal(sums.total, 1 + 2 + 3 + 4 + 5);
    for (unsigned kind = 0; kind < WR_WINDOW_KINDS; kind++)
        assert_int_equal(sums.failures[kind], kind + 1);
    wr_window_clear(window);
    assert_int_equal(total_at(window, &options, T0 + 4 * S), 0);
    free(window);
}

static void good_rate_counts_the_share_of_the_oldest_bucket(void **state)
{
    (void)state;
    weir_pace_options options = bare_options();
    int64_t step = options.window_step_ns, now = T0 - T0 % step;
    struct wr_window *window = window_new(&options, now);
    for (int i = 0; i < 20; i++) {
        for (int n = 0; n < i; n++)
            wr_window_add(window, &options, WR_WINDOW_OK, now);
        wr_window_add(window, &options, WR_WINDOW_SERVER, now);
        now += step;
    }
    now -= step / 2; /* the last five buckets hold 15 to 19; half of the bucket with 14 counts */
    double seconds = 5 * (double)step / 1e9;
    assert_true(fabs(wr_window_good_rate(window, &options, 5 * step, now) - 92 / seconds) < 1e-6);
    assert_true(fabs(wr_window_good_rate(window, &options, 5 * step, now + 2 * step) - 62 / seconds) < 1e-6);
    assert_true(wr_window_good_rate(window, &options, 5 * step, now + WEIR_HOUR) == 0);
    assert_true(wr_window_good_rate(window, &options, 0, now) == 0);
    free(window);
}

/* S0-29 */
static void error_rate_is_errors_over_answers_and_0_without_any(void **state)
{
    (void)state;
    weir_pace_options options = bare_options();
    struct wr_window *window = window_new(&options, T0);
    assert_true(rate_at(window, &options, T0) == 0);
    wr_window_add(window, &options, WR_WINDOW_SERVER, T0);
    assert_true(rate_at(window, &options, T0) == 1);
    wr_window_add(window, &options, WR_WINDOW_OK, T0);
    wr_window_add(window, &options, WR_WINDOW_OK, T0);
    wr_window_add(window, &options, WR_WINDOW_SOFT, T0);
    assert_true(rate_at(window, &options, T0) == 0.5);
    assert_true(rate_at(window, &options, T0 + WEIR_HOUR) == 0);
    free(window);
}

/* S0-86: T0 is a multiple of the 2 s of a bucket. */
static void window_drops_a_bucket_exactly_at_its_edge(void **state)
{
    (void)state;
    weir_pace_options options = bare_options();
    struct wr_window *window = window_new(&options, T0);
    wr_window_add(window, &options, WR_WINDOW_OK, T0);
    wr_window_add(window, &options, WR_WINDOW_OK, T0 + 2 * S - 1);
    wr_window_add(window, &options, WR_WINDOW_OK, T0 + 2 * S);
    assert_int_equal(total_at(window, &options, T0 + 30 * S - 1), 3);
    assert_int_equal(total_at(window, &options, T0 + 30 * S), 1);
    assert_int_equal(total_at(window, &options, T0 + 32 * S - 1), 1);
    assert_int_equal(total_at(window, &options, T0 + 32 * S), 0);
    /* reuses the place of the first bucket */
    wr_window_add(window, &options, WR_WINDOW_OK, T0 + 30 * S);
    assert_int_equal(total_at(window, &options, T0 + 30 * S), 2);
    wr_window_add(window, &options, WR_WINDOW_OK, T0 + WEIR_DAY);
    assert_int_equal(total_at(window, &options, T0 + WEIR_DAY), 1);
    free(window);
}

static void full_window_buckets_are_halved_and_keep_their_error_share(void **state)
{
    (void)state;
    weir_pace_options options = bare_options();
    struct wr_window *window = window_new(&options, T0);
    for (int i = 0; i < 400000; i++)
        wr_window_add(window, &options, i % 4 == 0 ? WR_WINDOW_LOST : WR_WINDOW_OK, T0);
    assert_true(rate_at(window, &options, T0) > 0.245 && rate_at(window, &options, T0) < 0.255);
    wr_window_clear(window);
    for (int i = 0; i < 400000; i++)
        wr_window_add(window, &options, WR_WINDOW_OK, T0);
    assert_true(total_at(window, &options, T0) >= 32767);
    free(window);
}

static void window_buckets_are_as_long_before_time_0_as_after_it(void **state)
{
    (void)state;
    weir_pace_options options = bare_options();
    struct wr_window *window = window_new(&options, -S);
    wr_window_add(window, &options, WR_WINDOW_OK, -S);
    assert_int_equal(total_at(window, &options, 28 * S - 1), 1);
    assert_int_equal(total_at(window, &options, 28 * S), 0);
    free(window);
}

/* Compares the window with a list of all answers. */
static void window_counts_equal_those_of_a_list(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{30 * S, 2 * S}, {S, S}, {10 * S, 3 * S}, {128 * S, S}, {MS, MS}};
    struct wr_rng rng;
    wr_rng_init(&rng, weir_test_seed());
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
        weir_pace_options options = bare_options();
        int64_t step_ns = options.window_step_ns = shapes[shape][1], at[200];
        options.window_ns = shapes[shape][0];
        int64_t buckets = (options.window_ns + step_ns - 1) / step_ns, now = T0;
        struct wr_window *window = window_new(&options, now);
        for (int i = 0; i < 200; i++) {
            uint32_t kept = 0;
            now += (int64_t)wr_rng_below(&rng, (uint64_t)(wr_rng_below(&rng, 8) == 0 ? 30 * S : step_ns));
            wr_window_add(window, &options, WR_WINDOW_OK, at[i] = now);
            for (int j = 0; j <= i; j++)
                kept += now / step_ns - at[j] / step_ns < buckets;
            assert_int_equal(total_at(window, &options, now), kept);
        }
        free(window);
    }
}

WEIR_TESTS(test(window_counts_answers_by_kind), test(good_rate_counts_the_share_of_the_oldest_bucket),
           test(error_rate_is_errors_over_answers_and_0_without_any), test(window_drops_a_bucket_exactly_at_its_edge),
           test(full_window_buckets_are_halved_and_keep_their_error_share),
           test(window_buckets_are_as_long_before_time_0_as_after_it), test(window_counts_equal_those_of_a_list))
