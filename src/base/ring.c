/* SPDX-License-Identifier: MIT */
/* ring.c - a first-in, first-out queue of fixed capacity. */
#include "base/ring.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>
#include <weir/error.h>

int wr_ring_init(struct wr_ring *ret_ring, const weir_allocator *allocator, size_t capacity, size_t each)
{
    assert(capacity >= 1 && each >= 1);
    unsigned char *slots = wr_alloc_array(allocator, capacity, each, alignof(max_align_t));
    if (slots == NULL)
        return WEIR_E_NOMEM;
    *ret_ring = (struct wr_ring){.allocator = allocator, .slots = slots, .each = each, .capacity = capacity};
    return 0;
}

/* Returns the slot of the element `index` places after the oldest; `index` is at most `count`. It
 * avoids the remainder operator: capacities need not be powers of two, and a division would cost
 * more than the rest of the function. */
static unsigned char *ring_slot_at(const struct wr_ring *ring, size_t index)
{
    size_t until_wrap = ring->capacity - ring->first;
    size_t at = index < until_wrap ? ring->first + index : index - until_wrap;
    return ring->slots + at * ring->each;
}

bool wr_ring_push(struct wr_ring *ring, const void *element)
{
    if (ring->count == ring->capacity)
        return false;
    memcpy(ring_slot_at(ring, ring->count), element, ring->each);
    ring->count++;
    return true;
}

bool wr_ring_pop(struct wr_ring *ring, void *ret_element)
{
    if (ring->count == 0)
        return false;
    memcpy(ret_element, ring_slot_at(ring, 0), ring->each);
    ring->first = ring->first + 1 < ring->capacity ? ring->first + 1 : 0;
    ring->count--;
    return true;
}

void *wr_ring_peek(const struct wr_ring *ring, size_t index)
{
    return index < ring->count ? ring_slot_at(ring, index) : NULL;
}

void wr_ring_release(struct wr_ring *ring)
{
    wr_free(ring->allocator, ring->slots, ring->capacity * ring->each, alignof(max_align_t));
    *ring = (struct wr_ring){0};
}
