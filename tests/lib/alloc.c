/* SPDX-License-Identifier: MIT */
/* alloc.c - the allocator of the tests. */
#include "lib/alloc.h"

#include <stdlib.h>
#include <string.h>

/* Header before each block: the size and alignment that were asked for. */
struct label {
    size_t bytes, align;
};

static struct label *label_of(void *block)
{
    return (struct label *)block - 1;
}

static void *take(void *context, size_t bytes, size_t align)
{
    test_allocator *self = context;
    atomic_fetch_add(&self->takes, 1);
    if (atomic_load(&self->fail_at) > 0 && atomic_fetch_sub(&self->fail_at, 1) == 1) {
        if (atomic_load(&self->fail_for_ever))
            atomic_store(&self->fail_at, 1);
        return NULL;
    }
    size_t room = align > sizeof(struct label) ? align : sizeof(struct label);
    char *base = aligned_alloc(room, room + (bytes + room - 1) / room * room);
    if (base == NULL)
        return NULL;
    void *block = base + room;
    *label_of(block) = (struct label){bytes, align};
    memset(block, 0, bytes);
    atomic_fetch_add(&self->live, 1);
    atomic_fetch_add(&self->live_bytes, (long)bytes);
    return block;
}

static void give(void *context, void *block, size_t bytes, size_t align)
{
    test_allocator *self = context;
    if (label_of(block)->bytes != bytes || label_of(block)->align != align)
        abort(); /* a caller must give back a block with its size and alignment */
    size_t room = align > sizeof(struct label) ? align : sizeof(struct label);
    atomic_fetch_sub(&self->live, 1);
    atomic_fetch_sub(&self->live_bytes, (long)bytes);
    free((char *)block - room);
}

void test_allocator_init(test_allocator *ret_allocator)
{
    memset(ret_allocator, 0, sizeof *ret_allocator);
    ret_allocator->allocator = (weir_allocator){take, give, ret_allocator};
}
