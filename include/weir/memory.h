/* SPDX-License-Identifier: MIT */
/* memory.h - the memory allocator that objects use.
 *
 * Every object that allocates takes a weir_allocator in its options; NULL means the system's
 * allocator. An object uses one allocator for all of its life, so the allocator must outlive it.
 * Decisions allocate nothing: the library takes memory when it creates objects, keys and waiters.
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
    /* Returns a zero-filled block of `bytes` (never 0) aligned to `align` (a power of two), or NULL
     * if there is no memory. */
    void *(*take)(void *context, size_t bytes, size_t align);
    /* Frees a block. The sizes are those that were passed to `take`. Never called with NULL. */
    void (*give)(void *context, void *block, size_t bytes, size_t align);
    void *context;
} weir_allocator;

/* Returns the system's allocator, which objects use if they are given none. */
WEIR_API const weir_allocator *weir_allocator_system(void);

#ifdef __cplusplus
}
#endif
#endif
