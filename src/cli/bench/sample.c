/* SPDX-License-Identifier: MIT */
/* sample.c - collects repeated measurements of the same quantity. */
#include "cli/bench/sample.h"

#include <stdlib.h>

void wr_sample_add(struct wr_sample *sample, double value)
{
    if (sample->count < WR_SAMPLE_MAX)
        sample->values[sample->count++] = value;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double wr_sample_least(const struct wr_sample *sample)
{
    double least = sample->count > 0 ? sample->values[0] : 0;
    for (size_t i = 1; i < sample->count; i++)
        least = sample->values[i] < least ? sample->values[i] : least;
    return least;
}

double wr_sample_median(struct wr_sample *sample)
{
    if (sample->count == 0)
        return 0;
    qsort(sample->values, sample->count, sizeof sample->values[0], by_value);
    return (sample->values[(sample->count - 1) / 2] + sample->values[sample->count / 2]) / 2;
}
