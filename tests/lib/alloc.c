/* SPDX-License-Identifier: MIT */
/* alloc.c - the tests' allocator. */
#include "lib/alloc.h"

#include <stdlib.h>
#include <string.h>

static void *take(void *context, size_t bytes, size_t align)
{
    test_allocator *self = context;
    atomic_fetch_add(&self->takes, 1);
    if (atomic_load(&self->fail_at) > 0 && atomic_fetch_sub(&self->fail_at, 1) == 1) {
        if (atomic_load(&self->fail_for_ever))
            atomic_store(&self->fail_at, 1);
        return NULL;
    }
    if (align < sizeof(void *))
        align = sizeof(void *);
    void *block = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (block == NULL)
        return NULL;
    memset(block, 0, bytes);
    atomic_fetch_add(&self->live, 1);
    atomic_fetch_add(&self->live_bytes, (long)bytes);
    return block;
}

static void give(void *context, void *block, size_t bytes, size_t align)
{
    test_allocator *self = context;
    (void)align;
    atomic_fetch_sub(&self->live, 1);
    atomic_fetch_sub(&self->live_bytes, (long)bytes);
    free(block);
}

void test_allocator_init(test_allocator *ret_allocator)
{
    memset(ret_allocator, 0, sizeof *ret_allocator);
    ret_allocator->allocator = (weir_allocator){take, give, ret_allocator};
}
