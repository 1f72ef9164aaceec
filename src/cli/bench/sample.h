/* SPDX-License-Identifier: MIT */
/* sample.h - collects repeated measurements of the same quantity. */
#ifndef WR_CLI_BENCH_SAMPLE_H
#define WR_CLI_BENCH_SAMPLE_H

#include <stddef.h>

#define WR_SAMPLE_MAX 1000 /* maximum number of values; further ones are ignored */

struct wr_sample {
    double values[WR_SAMPLE_MAX];
    size_t count;
};

void wr_sample_add(struct wr_sample *sample, double value);

/* Returns the median, which other load on the machine disturbs least; 0 without values. Sorts the
 * values. */
double wr_sample_median(struct wr_sample *sample);

/* Returns the smallest value; 0 without values. Of times it is the cost without other load on the
 * machine. */
double wr_sample_least(const struct wr_sample *sample);

#endif
