/* SPDX-License-Identifier: MIT */
/* alloc.h - allocates and frees memory through an object's allocator.
 *
 * Blocks are zero-filled. The caller must remember the size of a block, because freeing needs it.
 */
#ifndef WR_BASE_ALLOC_H
#define WR_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>
#include <weir/memory.h>

/* Allocates `bytes`. Returns NULL if that fails or `bytes` is 0; the allocator is never called for
 * 0 bytes. */
static inline void *wr_alloc(const weir_allocator *allocator, size_t bytes, size_t align)
{
    return bytes == 0 ? NULL : allocator->take(allocator->context, bytes, align);
}

/* Allocates count * each bytes like wr_alloc. Returns NULL also if the product overflows. */
static inline void *wr_alloc_array(const weir_allocator *allocator, size_t count, size_t each, size_t align)
{
    if (each != 0 && count > SIZE_MAX / each)
        return NULL;
    return wr_alloc(allocator, count * each, align);
}

/* Frees a block; `bytes` and `align` must be those of its allocation. `block` may be NULL. */
static inline void wr_free(const weir_allocator *allocator, void *block, size_t bytes, size_t align)
{
    if (block != NULL)
        allocator->give(allocator->context, block, bytes, align);
}

#endif
