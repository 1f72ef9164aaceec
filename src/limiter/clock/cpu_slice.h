/* SPDX-License-Identifier: MIT */
/* cpu_slice.h - sets how soon the calling thread gets a CPU for which other threads compete.
 *
 * A request that is due must not wait for another thread's whole time slice, which takes some
 * milliseconds. Linux 6.12 and later schedules a thread with a short slice sooner, without a
 * privilege and without taking CPU time from others. On older kernels these functions have no
 * effect.
 */
#ifndef WR_LIMITER_CLOCK_CPU_SLICE_H
#define WR_LIMITER_CLOCK_CPU_SLICE_H

#include "base/seam.h"

/* Asks for short time slices, for a thread that must start its work on time. */
WR_SEAM void wr_cpu_slice_short(void);

/* Asks for long time slices, for a thread that works in batches. It then preempts no other
 * thread. */
void wr_cpu_slice_long(void);

#endif
