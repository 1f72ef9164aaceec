/* SPDX-License-Identifier: MIT */
/* heap.c - a 4-ary min-heap whose items know their places.
 *
 *     place   1 | 2 3 4 5 | 6 7 8 9 | 10 ...      parent(p) = (p + 2) / 4, first child(p) = 4p - 2
 *
 * With four children instead of two there are half the levels, and siblings share one or two cache
 * lines. Keys are stored in the nodes, so that comparing does not touch the items.
 */
#include "base/heap.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#define ARITY 4
#define FIRST_ROOM 16

struct wr_heap_node {
    int64_t key;
    uint64_t order; /* number of the push; breaks ties between equal keys */
    struct wr_heap_item *item;
};

void wr_heap_init(struct wr_heap *ret_heap, const weir_allocator *allocator, size_t max)
{
    assert(max >= 1);
    *ret_heap = (struct wr_heap){.allocator = allocator, .max = max};
}

static size_t heap_parent(size_t place)
{
    return (place + ARITY - 2) / ARITY;
}

static size_t heap_first_child(size_t place)
{
    return place * ARITY - (ARITY - 2);
}

static bool node_is_before(const struct wr_heap_node *a, const struct wr_heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static struct wr_heap_node *node_at(const struct wr_heap *heap, size_t place)
{
    return &heap->nodes[place - 1];
}

static void set_node(struct wr_heap *heap, size_t place, struct wr_heap_node node)
{
    *node_at(heap, place) = node;
    node.item->place = place;
}

/* Puts `node` into the free place `place` or above it, moving nodes with later keys down. */
static void sift_up(struct wr_heap *heap, size_t place, struct wr_heap_node node)
{
    for (; place > 1; place = heap_parent(place)) {
        const struct wr_heap_node *parent = node_at(heap, heap_parent(place));
        if (!node_is_before(&node, parent))
            break;
        set_node(heap, place, *parent);
    }
    set_node(heap, place, node);
}

/* Returns the place of the child with the earliest key, 0 if there are no children. */
static size_t first_among_children(const struct wr_heap *heap, size_t place)
{
    size_t child = heap_first_child(place);
    if (child > heap->count)
        return 0;
    size_t end = heap->count - child < ARITY ? heap->count + 1 : child + ARITY;
    size_t first = child;
    for (child++; child < end; child++)
        if (node_is_before(node_at(heap, child), node_at(heap, first)))
            first = child;
    return first;
}

/* Puts `node` into the free place `place` or below it, moving nodes with earlier keys up. */
static void sift_down(struct wr_heap *heap, size_t place, struct wr_heap_node node)
{
    size_t child;
    while ((child = first_among_children(heap, place)) != 0 && node_is_before(node_at(heap, child), &node)) {
        set_node(heap, place, *node_at(heap, child));
        place = child;
    }
    set_node(heap, place, node);
}

static int reallocate_nodes(struct wr_heap *heap, size_t room)
{
    struct wr_heap_node *nodes = wr_alloc_array(heap->allocator, room, sizeof *nodes, alignof(struct wr_heap_node));
    if (nodes == NULL)
        return WEIR_E_NOMEM;
    if (heap->count > 0)
        memcpy(nodes, heap->nodes, heap->count * sizeof *nodes);
    wr_free(heap->allocator, heap->nodes, heap->room * sizeof *nodes, alignof(struct wr_heap_node));
    heap->nodes = nodes;
    heap->room = room;
    return 0;
}

static int grow_heap(struct wr_heap *heap)
{
    size_t room = heap->room == 0 ? FIRST_ROOM : heap->room * 2;
    return reallocate_nodes(heap, room < heap->max ? room : heap->max);
}

int wr_heap_reserve(struct wr_heap *heap, size_t count)
{
    assert(count <= heap->max);
    return count <= heap->room ? 0 : reallocate_nodes(heap, count);
}

int wr_heap_push(struct wr_heap *heap, int64_t key, struct wr_heap_item *item)
{
    assert(item->place == 0);
    if (heap->count == heap->max)
        return WEIR_E_FULL;
    if (heap->count == heap->room && grow_heap(heap) != 0)
        return WEIR_E_NOMEM;
    heap->count++;
    sift_up(heap, heap->count, (struct wr_heap_node){key, heap->pushes++, item});
    return 0;
}

int64_t wr_heap_key(const struct wr_heap *heap, const struct wr_heap_item *item)
{
    assert(wr_heap_item_is_queued(item));
    return node_at(heap, item->place)->key;
}

struct wr_heap_item *wr_heap_peek(const struct wr_heap *heap, int64_t *ret_key)
{
    if (heap->count == 0)
        return NULL;
    if (ret_key != NULL)
        *ret_key = heap->nodes[0].key;
    return heap->nodes[0].item;
}

struct wr_heap_item *wr_heap_pop(struct wr_heap *heap)
{
    struct wr_heap_item *item = wr_heap_peek(heap, NULL);
    if (item != NULL)
        wr_heap_remove(heap, item);
    return item;
}

void wr_heap_remove(struct wr_heap *heap, struct wr_heap_item *item)
{
    size_t place = item->place;
    if (place == 0)
        return;
    assert(place <= heap->count && node_at(heap, place)->item == item);
    struct wr_heap_node last = *node_at(heap, heap->count);
    heap->count--;
    item->place = 0;
    if (last.item == item)
        return;
    /* The last node fills the free place. It may come from another branch, so that it may have to
     * move up as well as down. */
    if (place > 1 && node_is_before(&last, node_at(heap, heap_parent(place))))
        sift_up(heap, place, last);
    else
        sift_down(heap, place, last);
}

size_t wr_heap_bytes(const struct wr_heap *heap)
{
    return heap->room * sizeof *heap->nodes;
}

bool wr_heap_ok(const struct wr_heap *heap)
{
    if (heap->count > heap->room || heap->room > heap->max)
        return false;
    for (size_t place = 1; place <= heap->count; place++) {
        if (node_at(heap, place)->item->place != place)
            return false;
        if (place > 1 && !node_is_before(node_at(heap, heap_parent(place)), node_at(heap, place)))
            return false;
    }
    return true;
}

void wr_heap_release(struct wr_heap *heap)
{
    for (size_t place = 1; place <= heap->count; place++)
        node_at(heap, place)->item->place = 0;
    wr_free(heap->allocator, heap->nodes, heap->room * sizeof *heap->nodes, alignof(struct wr_heap_node));
    *heap = (struct wr_heap){0};
}
