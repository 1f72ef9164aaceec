/* SPDX-License-Identifier: MIT */
/* latency.h - how long a host takes to answer: a mean that forgets, and the last answers for a percentile.
 *
 * A sample is kept in 16 bits: whole microseconds up to 4 ms, and 12 significant bits above, so within 0.05 % up to 50
 * days. 0 is "none yet".
 */
#ifndef WR_CORE_PACE_LATENCY_H
#define WR_CORE_PACE_LATENCY_H

#include <weir/pace.h>

struct wr_latency {
    float mean_ns;
    uint16_t at; /* where the next sample goes */
    uint16_t samples[];
};

size_t wr_latency_bytes(const weir_pace_options *options);

/* Fills zeroed memory. The mean begins at the target. */
void wr_latency_init(struct wr_latency *latency, const weir_pace_options *options);
void wr_latency_add(struct wr_latency *latency, const weir_pace_options *options, int64_t latency_ns);

/* The smallest sample that at least 95 % do not exceed; 0: there is none. */
int64_t wr_latency_p95(const struct wr_latency *latency, const weir_pace_options *options);

#endif
