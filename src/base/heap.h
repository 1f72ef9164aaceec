/* SPDX-License-Identifier: MIT */
/* heap.h - what is due first? Items in the order of a key, equal keys in the order they came.
 *
 *     struct timer { struct wr_heap_item item; … };
 *
 *     wr_heap_push(&heap, due_at, &timer->item);
 *     while ((item = wr_heap_peek(&heap, &due_at)) != NULL && due_at <= now)
 *         wr_heap_pop(&heap);
 *     wr_heap_remove(&heap, &timer->item);
 *
 * The item lies in whatever waits (put it first and cast, or use offsetof) and must stay put while it is in the heap;
 * it is also the handle to remove by. Pushing takes memory now and then; popping and removing never do.
 */
#ifndef WR_BASE_HEAP_H
#define WR_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/memory.h>

/* All zero: in no heap. */
struct wr_heap_item {
    size_t place; /* of its node, from 1 */
};

struct wr_heap_node;

struct wr_heap {
    const weir_allocator *allocator;
    struct wr_heap_node *nodes;
    size_t count;
    size_t room;     /* nodes taken */
    size_t max;      /* most items */
    uint64_t pushes; /* so far; breaks ties, and does not wrap within centuries */
};

/* At most `max` items, which is at least 1. Takes no memory yet. */
void wr_heap_init(struct wr_heap *ret_heap, const weir_allocator *allocator, size_t max);

/* Takes memory for `count` items (at most `max`) in all, so that pushing them cannot fail. WEIR_E_NOMEM. */
int wr_heap_reserve(struct wr_heap *heap, size_t count);

/* WEIR_E_FULL, WEIR_E_NOMEM: the heap is as it was. The item must be in no heap. */
int wr_heap_push(struct wr_heap *heap, int64_t key, struct wr_heap_item *item);

/* The first item and its key (`ret_key` may be NULL), or NULL. */
struct wr_heap_item *wr_heap_peek(const struct wr_heap *heap, int64_t *ret_key);

/* Takes the first item out, or returns NULL. */
struct wr_heap_item *wr_heap_pop(struct wr_heap *heap);

/* Takes an item of this heap out; one that is in no heap is left alone. */
void wr_heap_remove(struct wr_heap *heap, struct wr_heap_item *item);

static inline bool wr_heap_item_waits(const struct wr_heap_item *item)
{
    return item->place != 0;
}

/* The key of an item that waits in this heap. */
int64_t wr_heap_key(const struct wr_heap *heap, const struct wr_heap_item *item);

/* The memory that it has taken. */
size_t wr_heap_bytes(const struct wr_heap *heap);

/* Invariant: parents before children, and each item knows its place. For asserts and tests. */
bool wr_heap_ok(const struct wr_heap *heap);

/* Items still inside are let go. */
void wr_heap_release(struct wr_heap *heap);

#endif
