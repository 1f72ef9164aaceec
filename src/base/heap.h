/* SPDX-License-Identifier: MIT */
/* heap.h - a priority queue: items in the order of a key, equal keys in the order of pushing.
 *
 *     struct timer { struct wr_heap_item item; ... };
 *
 *     wr_heap_push(&heap, due_at, &timer->item);
 *     while ((item = wr_heap_peek(&heap, &due_at)) != NULL && due_at <= now)
 *         wr_heap_pop(&heap);
 *     wr_heap_remove(&heap, &timer->item);
 *
 * The item is embedded in the caller's struct (as its first member, to cast, or use offsetof) and
 * must not move while it is in the heap. It is also the handle for removal. Pushing sometimes
 * allocates; popping and removing never do.
 */
#ifndef WR_BASE_HEAP_H
#define WR_BASE_HEAP_H

#include "base/seam.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/memory.h>

/* A zeroed item is in no heap. */
struct wr_heap_item {
    size_t place; /* 1-based index of the item's node in the heap; 0: the item is in no heap */
};

struct wr_heap_node;

struct wr_heap {
    const weir_allocator *allocator;
    struct wr_heap_node *nodes;
    size_t count;
    size_t room; /* allocated nodes */
    size_t max;  /* maximum number of items */
    /* pushes so far; breaks ties between equal keys, and takes centuries to wrap */
    uint64_t pushes;
};

/* Initializes a heap for at most `max` items (at least 1). Allocates nothing yet. */
WR_SEAM void wr_heap_init(struct wr_heap *ret_heap, const weir_allocator *allocator, size_t max);

/* Allocates memory for `count` items in all (at most `max`), so that pushing that many cannot fail.
 * Returns WEIR_E_NOMEM if that fails. */
int wr_heap_reserve(struct wr_heap *heap, size_t count);

/* Adds an item that is in no heap. Returns WEIR_E_FULL or WEIR_E_NOMEM if that fails; the heap is
 * then unchanged. */
WR_SEAM int wr_heap_push(struct wr_heap *heap, int64_t key, struct wr_heap_item *item);

/* Returns the first item and its key (`ret_key` may be NULL), or NULL if the heap is empty. */
WR_SEAM struct wr_heap_item *wr_heap_peek(const struct wr_heap *heap, int64_t *ret_key);

/* Removes the first item and returns it; returns NULL if the heap is empty. */
WR_SEAM struct wr_heap_item *wr_heap_pop(struct wr_heap *heap);

/* Removes an item from this heap. Does nothing if the item is in no heap. */
WR_SEAM void wr_heap_remove(struct wr_heap *heap, struct wr_heap_item *item);

static inline bool wr_heap_item_is_queued(const struct wr_heap_item *item)
{
    return item->place != 0;
}

/* Returns the key of an item that is in this heap. */
int64_t wr_heap_key(const struct wr_heap *heap, const struct wr_heap_item *item);

/* Returns the bytes of memory that the heap has allocated. */
size_t wr_heap_bytes(const struct wr_heap *heap);

/* Returns true if the invariant holds: parents come before children, and each item knows its place.
 * For asserts and tests. */
bool wr_heap_ok(const struct wr_heap *heap);

/* Frees the heap. Items that are still in it are marked as being in no heap. */
WR_SEAM void wr_heap_release(struct wr_heap *heap);

#endif
