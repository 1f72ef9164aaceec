/* SPDX-License-Identifier: MIT */
/* latency.h - The latency of one host: a moving mean, and the last samples for a percentile.
 *
 * A sample takes 16 bits: whole microseconds up to 4 ms, and 12 significant bits above, so the
 * error is below 0.05 % up to 50 days. 0 means "no sample".
 */
#ifndef WR_CORE_PACE_LATENCY_H
#define WR_CORE_PACE_LATENCY_H

#include <weir/pace.h>

struct wr_latency {
    float mean_ns;
    uint16_t at; /* index of the next sample */
    uint16_t samples[];
};

size_t wr_latency_bytes(const weir_pace_options *options);

/* Initialises zeroed memory. The mean starts at the target latency. */
void wr_latency_init(struct wr_latency *latency, const weir_pace_options *options);
void wr_latency_add(struct wr_latency *latency, const weir_pace_options *options, int64_t latency_ns);

/* Returns the smallest sample that 95 % of all samples do not exceed; 0 without samples. */
int64_t wr_latency_p95(const struct wr_latency *latency, const weir_pace_options *options);

#endif
