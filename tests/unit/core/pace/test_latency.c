/* SPDX-License-Identifier: MIT */
/* test_latency.c - tests the mean and the percentile of latencies (S0-24, S0-26). */
#include "base/rng.h"
#include "core/pace/latency.h"
#include "rig.h"

static struct wr_latency *latency_new(const weir_pace_options *options)
{
    struct wr_latency *latency = calloc(1, wr_latency_bytes(options));
    assert_non_null(latency);
    wr_latency_init(latency, options);
    return latency;
}

/* Checks that `ns` is at most 0.05 % or a microsecond below `wanted_ns`, and not above it. */
static void assert_close(int64_t ns, int64_t wanted_ns)
{
    int64_t off = ns - wanted_ns;
    if (off > 0 || -off > wanted_ns / 2000 + 1000)
        fail_msg("%lld ns, not %lld", (long long)ns, (long long)wanted_ns);
}

/* S0-24 */
static void mean_begins_at_the_target_and_takes_a_fifth_of_each_answer(void **state)
{
    (void)state;
    weir_pace_options options = bare_options();
    struct wr_latency *latency = latency_new(&options);
    const int64_t seen_ms[] = {2000, 0, 500, 500}, mean_ms[] = {1200, 960, 868, 794};
    assert_int_equal((int64_t)latency->mean_ns, S);
    for (size_t i = 0; i < 4; i++) {
        wr_latency_add(latency, &options, seen_ms[i] * MS);
        int64_t off = (int64_t)latency->mean_ns - mean_ms[i] * MS;
        assert_true(off <= MS / 2 && off >= -MS / 2);
    }
    free(latency);
}

static void latency_weight_and_target_are_options(void **state)
{
    (void)state;
    weir_pace_options options = bare_options();
    options.latency_weight = 0.5;
    options.latency_target_ns = 100 * MS;
    struct wr_latency *latency = latency_new(&options);
    wr_latency_add(latency, &options, 300 * MS);
    assert_int_equal((int64_t)latency->mean_ns, 200 * MS);
    free(latency);
}

/* S0-26 */
static void percentile_is_the_95th_of_the_last_64(void **state)
{
    (void)state;
    weir_pace_options options = bare_options();
    struct wr_latency *latency = latency_new(&options);
    assert_int_equal(wr_latency_p95(latency, &options), 0);
    wr_latency_add(latency, &options, 7 * MS);
    assert_close(wr_latency_p95(latency, &options), 7 * MS);
    for (int64_t i = 1; i <= 1000; i++) /* the last 64 are 937 ... 1000 */
        wr_latency_add(latency, &options, i * MS);
    assert_close(wr_latency_p95(latency, &options), 997 * MS); /* the 61st of the sorted 64 */
    free(latency);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void percentile_is_that_of_a_sorted_list_in_rings_of_every_size(void **state)
{
    (void)state;
    static const uint32_t rings[] = {1, 2, 19, 20, 21, 64, 100, WEIR_RING_MAX};
    struct wr_rng rng;
    wr_rng_init(&rng, weir_test_seed());
    for (size_t r = 0; r < sizeof rings / sizeof *rings; r++) {
        weir_pace_options options = bare_options();
        options.latency_ring = rings[r];
        struct wr_latency *latency = latency_new(&options);
        int64_t kept[WEIR_RING_MAX], sorted[WEIR_RING_MAX];
        for (size_t n = 1; n <= 2 * rings[r] + 1; n++) {
            int64_t ns = (int64_t)wr_rng_below(&rng, UINT64_C(1) << wr_rng_below(&rng, 51));
            size_t count = n < rings[r] ? n : rings[r];
            kept[(n - 1) % rings[r]] = ns;
            wr_latency_add(latency, &options, ns);
            memcpy(sorted, kept, sizeof kept);
            qsort(sorted, count, sizeof *sorted, by_size);
            int64_t p95 = sorted[(count * 95 + 99) / 100 - 1];
            assert_close(wr_latency_p95(latency, &options), p95 < 1000 ? 1000 : p95);
        }
        free(latency);
    }
}

static void extreme_latencies_are_clamped(void **state)
{
    (void)state;
    weir_pace_options options = bare_options();
    options.latency_ring = 1;
    struct wr_latency *latency = latency_new(&options);
    wr_latency_add(latency, &options, WEIR_DURATION_MAX);
    assert_true(wr_latency_p95(latency, &options) > 50 * WEIR_DAY);
    wr_latency_add(latency, &options, -5);
    assert_int_equal(wr_latency_p95(latency, &options), WEIR_MICROSECOND);
    free(latency);
}

WEIR_TESTS(test(mean_begins_at_the_target_and_takes_a_fifth_of_each_answer),
           test(latency_weight_and_target_are_options), test(percentile_is_the_95th_of_the_last_64),
           test(percentile_is_that_of_a_sorted_list_in_rings_of_every_size), test(extreme_latencies_are_clamped))
