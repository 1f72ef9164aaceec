/* SPDX-License-Identifier: MIT */
/* memory.h - what a gate makes of what was stored of its host. The store may be old, and damaged. */
#ifndef WR_CORE_PACE_MEMORY_H
#define WR_CORE_PACE_MEMORY_H

#include <weir/pace.h>

/* Every number in its range, and delay and floor nearer to the base: what is above it halves in each half_life_ns since
 * it was saved. */
weir_pace_memory wr_memory_aged(const weir_pace_memory *memory, const weir_pace_options *options, int64_t wall_now);

/* How long the server asked us to wait still, by the wall clock: never longer than when it was saved, nor than
 * retry_after_max_ns, however the clock was set since. */
int64_t wr_memory_wait(const weir_pace_memory *memory, const weir_pace_options *options, int64_t wall_now);

#endif
