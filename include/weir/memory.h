/* SPDX-License-Identifier: MIT */
/* memory.h - where an object's memory comes from.
 *
 * Every object that allocates takes a weir_allocator in its options; NULL means the system's. An object
 * uses one allocator for all of its life, so the allocator must outlive it. Deciding allocates nothing:
 * memory is taken when objects, keys and waiters are made.
 *
 * Threads: an allocator is called from every thread that uses its objects.
 */
#ifndef WEIR_MEMORY_H
#define WEIR_MEMORY_H

#include <stddef.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_allocator {
    /* A zero-filled block of `bytes` (never 0) aligned to `align` (a power of two), or NULL. */
    void *(*take)(void *context, size_t bytes, size_t align);
    /* Gives a block back, with the sizes it was taken with. Never called with NULL. */
    void (*give)(void *context, void *block, size_t bytes, size_t align);
    void *context;
} weir_allocator;

/* The system's allocator, which objects use when they are given none. */
WEIR_API const weir_allocator *weir_allocator_system(void);

#ifdef __cplusplus
}
#endif
#endif
