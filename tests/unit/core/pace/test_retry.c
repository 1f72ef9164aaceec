/* SPDX-License-Identifier: MIT */
/* test_retry.c - tests the delays between attempts (S0-41, S0-88). */
#include "base/rng.h"
#include "lib/test.h"
#include <math.h>
#include <weir/pace.h>

#define MS WEIR_MILLISECOND
#define ALMOST_1 0.99999999999

/* S0-88 */
static void delays_double_up_to_the_maximum(void **state)
{
    (void)state;
    static const int64_t most_ms[] = {200, 400, 800, 1600, 3200, 5000, 5000, 5000};
    weir_retry_options options = {.base_ns = 200 * MS, .max_ns = 5000 * MS};
    for (uint32_t attempt = 1; attempt <= 8; attempt++) {
        int64_t delay_ns = weir_retry_delay_ns(&options, attempt, ALMOST_1);
        assert_true(delay_ns < most_ms[attempt - 1] * MS && delay_ns > most_ms[attempt - 1] * MS - MS);
        assert_int_equal(weir_retry_delay_ns(&options, attempt, 0), 0);
        assert_int_equal(weir_retry_delay_ns(&options, attempt, 0.5), most_ms[attempt - 1] * MS / 2);
    }
}

/* S0-41 */
static void jitter_is_spread_over_the_whole_delay(void **state)
{
    (void)state;
    struct wr_rng rng;
    int tenths[10] = {0};
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 10000; i++) {
        int64_t delay_ns = weir_retry_delay_ns(NULL, 2, wr_rng_unit(&rng));
        assert_true(delay_ns >= 0 && delay_ns < 400 * MS);
        tenths[delay_ns / (40 * MS)]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(tenths[i], 800, 1200);
}

static void extreme_retry_options_neither_overflow_nor_skip_the_wait(void **state)
{
    (void)state;
    weir_retry_options endless = {.base_ns = INT64_MAX, .max_ns = INT64_MAX};
    weir_retry_options slow = {.base_ns = 1, .max_ns = WEIR_DURATION_MAX};
    weir_retry_options odd = {.base_ns = -1, .max_ns = -1};
    assert_int_equal(weir_retry_delay_ns(&endless, UINT32_MAX, 0.5), WEIR_DURATION_MAX / 2);
    assert_int_equal(weir_retry_delay_ns(&slow, UINT32_MAX, 0.5), WEIR_DURATION_MAX / 2);
    assert_int_equal(weir_retry_delay_ns(&odd, 0, 0.5), 100 * MS);
    assert_int_equal(weir_retry_delay_ns(NULL, 1, 2.0), 200 * MS);
    assert_int_equal(weir_retry_delay_ns(NULL, 1, (double)NAN), 200 * MS);
}

WEIR_TESTS(test(delays_double_up_to_the_maximum), test(jitter_is_spread_over_the_whole_delay),
           test(extreme_retry_options_neither_overflow_nor_skip_the_wait))
