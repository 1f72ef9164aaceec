/* SPDX-License-Identifier: MIT */
/* reserve.h - for a process whose memory is limited (ulimit -v, ulimit -d): how much is left, and some that is kept
 * back.
 *
 * Our own code is told when there is no memory, and says so. Not all libraries bear that halfway through their work. So
 * nothing of theirs is begun while little is left; and what they have begun may use up a reserve, for which the
 * functions below are malloc and the like. Where there is no limit, none of this does anything.
 */
#ifndef WR_SHELL_MEMORY_RESERVE_H
#define WR_SHELL_MEMORY_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

#define WR_MEMORY_LEAST ((size_t)4 << 20) /* bytes: with less left, nothing new is begun */

/* Bytes that may still be had. 0 when the reserve is used up; SIZE_MAX when there is no limit. */
size_t wr_memory_left(void);

/* How often the functions below have failed, all the same. */
size_t wr_reserve_failures(void);

/* As those of C; what they give is for free(3). */
void *wr_reserve_malloc(size_t bytes);
void *wr_reserve_calloc(size_t items, size_t bytes);
void *wr_reserve_realloc(void *block, size_t bytes);
char *wr_reserve_strdup(const char *text);

#endif
