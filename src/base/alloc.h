/* SPDX-License-Identifier: MIT */
/* alloc.h - taking memory from the allocator an object was given.
 *
 * Blocks come zero-filled. Whoever takes remembers the size: giving back needs it again.
 */
#ifndef WR_BASE_ALLOC_H
#define WR_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>
#include <weir/memory.h>

/* A block, or NULL: also for 0 bytes, which an allocator is never asked for. */
static inline void *wr_take(const weir_allocator *allocator, size_t bytes, size_t align)
{
    return bytes == 0 ? NULL : allocator->take(allocator->context, bytes, align);
}

/* As wr_take, of count * each bytes; NULL also if that overflows. */
static inline void *wr_take_array(const weir_allocator *allocator, size_t count, size_t each, size_t align)
{
    if (each != 0 && count > SIZE_MAX / each)
        return NULL;
    return wr_take(allocator, count * each, align);
}

/* Gives back what was taken with the same sizes. NULL is fine. */
static inline void wr_give(const weir_allocator *allocator, void *block, size_t bytes, size_t align)
{
    if (block != NULL)
        allocator->give(allocator->context, block, bytes, align);
}

#endif
