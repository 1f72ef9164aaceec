/* SPDX-License-Identifier: MIT */
/* retry.c - the delay before a retry: exponential with full jitter, so that requests that failed
 * together are not retried together. */
#include <weir/pace.h>

#define BASE_NS (200 * WEIR_MILLISECOND)
#define MAX_NS (5 * WEIR_SECOND)

/* Returns min(max, base * 2^(attempt - 1)). */
static int64_t longest_delay_ns(int64_t base_ns, int64_t max_ns, uint32_t attempt)
{
    int64_t delay_ns = base_ns;
    for (uint32_t n = 1; n < attempt && delay_ns < max_ns; n++)
        /* delay_ns < max_ns <= WEIR_DURATION_MAX, so that doubling does not overflow */
        delay_ns *= 2;
    return delay_ns < max_ns ? delay_ns : max_ns;
}

int64_t weir_retry_delay_ns(const weir_retry_options *options, uint32_t attempt, double unit)
{
    int64_t base_ns = options != NULL && options->base_ns > 0 ? options->base_ns : BASE_NS;
    int64_t max_ns = options != NULL && options->max_ns > 0 ? options->max_ns : MAX_NS;
    max_ns = max_ns < WEIR_DURATION_MAX ? max_ns : WEIR_DURATION_MAX;
    base_ns = base_ns < max_ns ? base_ns : max_ns;
    if (!(unit >= 0 && unit < 1))
        return longest_delay_ns(base_ns, max_ns, attempt);
    return (int64_t)((double)longest_delay_ns(base_ns, max_ns, attempt) * unit);
}
