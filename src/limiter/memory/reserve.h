/* SPDX-License-Identifier: MIT */
/* reserve.h - for a process with limited memory (ulimit -v, ulimit -d): measures what is left, and
 * keeps a reserve.
 *
 * Weir's own code handles a failed allocation and reports it. Some libraries fail badly when malloc
 * fails in the middle of their work. So no library call that needs memory starts while little is
 * left, and calls in progress may use up a reserve: the functions below replace malloc and the like
 * for them. Without a limit none of this has any effect.
 */
#ifndef WR_LIMITER_MEMORY_RESERVE_H
#define WR_LIMITER_MEMORY_RESERVE_H

#include "base/seam.h"

#include <stdbool.h>
#include <stddef.h>

#define WR_MEMORY_LEAST ((size_t)4 << 20) /* bytes; with less left, no new work starts */

/* Returns the bytes that can still be allocated: 0 if the reserve is used up, SIZE_MAX if there is
 * no limit or usage cannot be read. */
WR_SEAM size_t wr_memory_left(void);

/* Returns how many of the allocations below have failed, even with the reserve. */
WR_SEAM size_t wr_reserve_failures(void);

/* Allocate like the functions of the C library, with the reserve as a fallback. Free the memory
 * with free(3). */
WR_SEAM void *wr_reserve_malloc(size_t bytes);
WR_SEAM void *wr_reserve_calloc(size_t items, size_t bytes);
WR_SEAM void *wr_reserve_realloc(void *block, size_t bytes);
WR_SEAM char *wr_reserve_strdup(const char *text);

#endif
