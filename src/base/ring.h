/* SPDX-License-Identifier: MIT */
/* ring.h - a first-in, first-out queue with a fixed number of slots.
 *
 *     first         first + count (mod capacity)
 *       v             v
 *     [ a ][ b ][ c ][   ][   ]
 *
 * Elements are copied in and out. All memory is allocated at the start: pushing and popping
 * allocate nothing.
 */
#ifndef WR_BASE_RING_H
#define WR_BASE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/memory.h>

struct wr_ring {
    const weir_allocator *allocator;
    unsigned char *slots;
    size_t each;     /* bytes per element */
    size_t capacity; /* number of slots of the ring */
    size_t first;    /* slot of the oldest element, < capacity */
    size_t count;    /* number of elements, <= capacity */
};

/* Initializes a queue for `capacity` elements of `each` bytes, both at least 1. Returns
 * WEIR_E_NOMEM if that fails. */
int wr_ring_init(struct wr_ring *ret_ring, const weir_allocator *allocator, size_t capacity, size_t each);

/* Appends a copy of the element. Returns false and changes nothing if the ring is full. */
bool wr_ring_push(struct wr_ring *ring, const void *element);

/* Removes the oldest element and copies it out. Returns false and changes nothing if the ring is
 * empty. */
bool wr_ring_pop(struct wr_ring *ring, void *ret_element);

/* Returns the element `index` places after the oldest, or NULL. The pointer is valid until the
 * element is popped. */
void *wr_ring_peek(const struct wr_ring *ring, size_t index);

void wr_ring_release(struct wr_ring *ring);

#endif
