/* SPDX-License-Identifier: MIT */
/* rate.h - Converts rates to intervals between starts. A rate is an estimate and a double. An
 * interval is a number of whole nanoseconds, computed once when the rate changes and rounded up, so
 * that a rate is never exceeded. */
#ifndef WR_CORE_PACE_RATE_H
#define WR_CORE_PACE_RATE_H

#include <stdint.h>
#include <weir/time.h>

/* Returns x rounded up to whole ns, within 0 ... WEIR_DURATION_MAX. */
static inline int64_t wr_ns_up(double x)
{
    if (!(x < (double)WEIR_DURATION_MAX))
        return WEIR_DURATION_MAX;
    int64_t ns = x > 0 ? (int64_t)x : 0;
    return ns + ((double)ns < x);
}

static inline int64_t wr_rate_interval(double rate)
{
    return rate > 0 ? wr_ns_up((double)WEIR_SECOND / rate) : WEIR_DURATION_MAX;
}

static inline double wr_interval_rate(int64_t interval_ns)
{
    return (double)WEIR_SECOND / (double)interval_ns;
}

static inline double wr_within(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

static inline int64_t wr_ns_within(int64_t ns, int64_t least_ns, int64_t most_ns)
{
    return ns < least_ns ? least_ns : ns > most_ns ? most_ns : ns;
}

#endif
