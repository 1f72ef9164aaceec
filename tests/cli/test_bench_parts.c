/* SPDX-License-Identifier: MIT */
/* test_bench_parts.c - the parts of weir bench that measure: samples, key streams, the lower bound,
 * threads. */
#include "lib/test.h"

#include <math.h>
#include <stdatomic.h>
#include <weir/error.h>
#include <weir/time.h>

#include "cli/bench/cost_bound.h"
#include "cli/bench/key_stream.h"
#include "cli/bench/sample.h"
#include "cli/bench/threads.h"

static void median_is_the_middle_value_or_the_mean_of_the_middle_two(void **state)
{
    (void)state;
    static struct wr_sample sample;
    assert_true(wr_sample_median(&sample) == 0);
    wr_sample_add(&sample, 9);
    assert_true(wr_sample_median(&sample) == 9);
    wr_sample_add(&sample, 1);
    assert_true(wr_sample_median(&sample) == 5);
    wr_sample_add(&sample, 2);
    assert_true(wr_sample_median(&sample) == 2);
    assert_true(wr_sample_least(&sample) == 1);
    while (sample.count < WR_SAMPLE_MAX)
        wr_sample_add(&sample, 2);
    wr_sample_add(&sample, 1000); /* ignored, not written past the end */
    assert_int_equal(sample.count, WR_SAMPLE_MAX);
}

static int by_text(const void *left, const void *right)
{
    return memcmp(left, right, 3);
}

static void different_numbers_make_different_keys(void **state)
{
    (void)state;
    static char texts[32768][3];
    assert_int_equal(wr_key_stream_keys_max(3), 32768);
    assert_true(wr_key_stream_keys_max(7) == wr_key_stream_keys_max(1024));
    for (size_t i = 0; i < 32768; i++)
        wr_key_stream_key(i, 3, texts[i]);
    qsort(texts, 32768, 3, by_text);
    for (size_t i = 1; i < 32768; i++)
        assert_true(memcmp(texts[i - 1], texts[i], 3) < 0);
}

/* Counts how often each of 100 keys occurs in 200 000 draws. */
static void count_draws(enum wr_key_distribution dist, size_t ret_counts[100])
{
    struct wr_key_stream stream;
    char text[24];
    memset(ret_counts, 0, 100 * sizeof ret_counts[0]);
    assert_int_equal(wr_key_stream_init(&stream, 200000, 100, 24, dist, weir_test_seed()), 0);
    for (size_t i = 0; i < stream.count; i++) {
        assert_true(stream.numbers[i] < 100);
        wr_key_stream_key(stream.numbers[i], 24, text);
        assert_memory_equal(text, stream.texts + i * 24, 24);
        ret_counts[stream.numbers[i]]++;
    }
    wr_key_stream_release(&stream);
}

static int descending(const void *left, const void *right)
{
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    return (a < b) - (a > b);
}

static void distribution_one_always_draws_the_same_key(void **state)
{
    (void)state;
    size_t counts[100];
    count_draws(WR_DIST_ONE, counts);
    assert_int_equal(counts[0], 200000);
}

/* Checks that the count is within six standard deviations of the expected one. */
static void assert_near(size_t count, double expected)
{
    if (fabs((double)count - expected) > 6 * sqrt(expected))
        fail_msg("%zu, but %.0f were expected", count, expected);
}

static void distribution_uniform_draws_each_key_equally_often(void **state)
{
    (void)state;
    size_t counts[100];
    count_draws(WR_DIST_UNIFORM, counts);
    for (size_t i = 0; i < 100; i++)
        assert_near(counts[i], 2000);
}

static void distribution_zipf_draws_the_kth_key_one_kth_as_often(void **state)
{
    (void)state;
    size_t counts[100];
    double sum = 0;
    for (int k = 1; k <= 100; k++)
        sum += 1.0 / k;
    count_draws(WR_DIST_ZIPF, counts);
    qsort(counts, 100, sizeof counts[0], descending);
    for (size_t k = 1; k <= 10; k++) /* the order of rarer keys depends on chance */
        assert_near(counts[k - 1], 200000 / sum / (double)k);
    assert_near(counts[98] + counts[99], 200000 / sum * (1.0 / 99 + 1.0 / 100));
}

static void lower_bound_table_grants_a_burst_and_then_its_rate(void **state)
{
    (void)state;
    struct wr_cost_bound bound;
    weir_clock *clock;
    uint64_t keys[20] = {0}, other = 1;
    assert_int_equal(weir_clock_fake_new(WEIR_SECOND, NULL, &clock), 0);
    assert_int_equal(wr_cost_bound_init(&bound, 1000, WEIR_MILLISECOND, 10 * WEIR_MILLISECOND), 0);
    assert_int_equal(bound.slots, 1024);
    assert_int_equal(wr_cost_bound_pass(&bound, clock, keys, 20), 10);
    assert_int_equal(wr_cost_bound_pass(&bound, clock, &other, 1), 1);
    weir_clock_fake_advance(clock, 3 * WEIR_MILLISECOND);
    assert_int_equal(wr_cost_bound_pass(&bound, clock, keys, 20), 3);
    weir_clock_fake_advance(clock, -WEIR_MILLISECOND);
    assert_int_equal(wr_cost_bound_pass(&bound, clock, keys, 20), 0);
    wr_cost_bound_release(&bound);
    weir_clock_fake_free(clock);
}

static void add_one(void *context, size_t thread)
{
    atomic_int *calls = context;
    atomic_fetch_add(&calls[thread], 1);
}

static void crew_calls_its_function_once_per_thread(void **state)
{
    (void)state;
    atomic_int calls[8] = {0};
    int64_t wall_ns = -1;
    assert_int_equal(wr_bench_threads_run(8, add_one, calls, &wall_ns), 0);
    assert_true(wall_ns >= 0);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(calls[i], 1);
    wall_ns = -1;
    assert_int_equal(wr_bench_threads_run(WR_BENCH_THREADS_MAX + 1, add_one, calls, &wall_ns), WEIR_E_SYSTEM);
    assert_int_equal(wall_ns, -1);
    assert_int_equal(calls[0], 1);
}

WEIR_TESTS(test(median_is_the_middle_value_or_the_mean_of_the_middle_two), test(different_numbers_make_different_keys),
           test(distribution_one_always_draws_the_same_key), test(distribution_uniform_draws_each_key_equally_often),
           test(distribution_zipf_draws_the_kth_key_one_kth_as_often),
           test(lower_bound_table_grants_a_burst_and_then_its_rate), test(crew_calls_its_function_once_per_thread))
