/* SPDX-License-Identifier: MIT */
/* ring.h - first in, first out, in a fixed number of slots.
 *
 *     first         first + count (mod capacity)
 *       v             v
 *     [ a ][ b ][ c ][   ][   ]
 *
 * Elements are copied in and out. All memory is taken at once: pushing and popping take none.
 */
#ifndef WR_BASE_RING_H
#define WR_BASE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/memory.h>

struct wr_ring {
    const weir_allocator *allocator;
    unsigned char *slots;
    size_t each;     /* bytes of an element */
    size_t capacity; /* slots */
    size_t first;    /* slot of the oldest element, < capacity */
    size_t count;    /* elements, <= capacity */
};

/* `capacity` elements of `each` bytes, both at least 1. WEIR_E_NOMEM. */
int wr_ring_init(struct wr_ring *ret_ring, const weir_allocator *allocator, size_t capacity, size_t each);

/* False, and nothing happened, if the ring is full. */
bool wr_ring_push(struct wr_ring *ring, const void *element);

/* Takes the oldest element out. False, and nothing happened, if there is none. */
bool wr_ring_pop(struct wr_ring *ring, void *ret_element);

/* The element that `index` pops would leave as the oldest, or NULL. Stays where it is until popped. */
void *wr_ring_peek(const struct wr_ring *ring, size_t index);

void wr_ring_release(struct wr_ring *ring);

#endif
