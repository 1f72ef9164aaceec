/* SPDX-License-Identifier: MIT */
/* memory.h - what the system gives: memory and random bytes. */
#ifndef WR_SHELL_MEMORY_MEMORY_H
#define WR_SHELL_MEMORY_MEMORY_H

#include <stddef.h>
#include <weir/memory.h>

/* The given allocator, or the system's for NULL. */
const weir_allocator *wr_allocator_or_system(const weir_allocator *allocator);

/* The given allocator, or for NULL the system's without huge pages: for who has hosts to ask on time. The first touch
 * of one takes more than ten milliseconds on some machines. */
const weir_allocator *wr_allocator_or_steady(const weir_allocator *allocator);

/* Unpredictable bytes. WEIR_E_SYSTEM. */
int wr_random(void *ret_bytes, size_t bytes);

#endif
