/* SPDX-License-Identifier: MIT */
/* gate_memory.h - Checks the stored memory of a host, which may be old or damaged. */
#ifndef WR_CORE_PACE_GATE_MEMORY_H
#define WR_CORE_PACE_GATE_MEMORY_H

#include <weir/pace.h>

/* Returns the memory with every number in its valid range. The excess of delay and floor over the
 * base is halved for each half_life_ns since the memory was saved. */
weir_pace_memory wr_memory_aged(const weir_pace_memory *memory, const weir_pace_options *options, int64_t wall_now);

/* Returns how much longer to wait for the server, by the wall clock. The result never exceeds the
 * wait at the time of saving and retry_after_max_ns, however the clock was set since. */
int64_t wr_memory_wait(const weir_pace_memory *memory, const weir_pace_options *options, int64_t wall_now);

#endif
