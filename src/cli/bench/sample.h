/* SPDX-License-Identifier: MIT */
/* sample.h - the same thing measured several times. */
#ifndef WR_CLI_BENCH_SAMPLE_H
#define WR_CLI_BENCH_SAMPLE_H

#include <stddef.h>

#define WR_SAMPLE_MAX 1000 /* further values are not taken */

struct wr_sample {
    double values[WR_SAMPLE_MAX];
    size_t count;
};

void wr_sample_add(struct wr_sample *sample, double value);

/* The middle value: what a neighbour on the machine disturbs least. 0 without values. Sorts them. */
double wr_sample_median(struct wr_sample *sample);

/* The least: of times, what it takes while nobody else wants the machine. 0 without values. */
double wr_sample_least(const struct wr_sample *sample);

#endif
