/* SPDX-License-Identifier: MIT */
/* memory.h - memory and random bytes from the operating system. */
#ifndef WR_LIMITER_MEMORY_MEMORY_H
#define WR_LIMITER_MEMORY_MEMORY_H

#include "base/seam.h"

#include <stddef.h>
#include <weir/memory.h>

/* Returns `allocator`, or the system's allocator if it is NULL. */
WR_SEAM const weir_allocator *wr_allocator_or_system(const weir_allocator *allocator);

/* Returns `allocator`, or the system's allocator without huge pages if it is NULL. It is for
 * threads that must send requests on time: on some machines the first touch of a huge page takes
 * more than 10 ms. */
const weir_allocator *wr_allocator_or_steady(const weir_allocator *allocator);

/* Fills `ret_bytes` with unpredictable bytes. Returns 0, or WEIR_E_SYSTEM if the kernel provides
 * none. */
WR_SEAM int wr_random(void *ret_bytes, size_t bytes);

#endif
