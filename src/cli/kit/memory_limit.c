/* SPDX-License-Identifier: MIT */
/* memory_limit.c - reduces the address space that threads use. Normally a thread takes 64 MB for a
 * heap of its own and 8 MB for a stack that it hardly uses. Where address space is limited (ulimit
 * -v), threads share one heap and have small stacks. */
#include "cli/kit/memory_limit.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <uv.h>

#include "limiter/memory/reserve.h"

#define STACK_BYTES ((size_t)1 << 20)
#define HEAP_BYTES (64 << 20)

static void set_stacks(void)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return;
    if (pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0)
        (void)pthread_setattr_default_np(&attributes);
    (void)pthread_attr_destroy(&attributes);
}

static void *crypto_malloc(size_t bytes, const char *file, int line)
{
    (void)file, (void)line;
    return wr_reserve_malloc(bytes);
}

static void *crypto_realloc(void *block, size_t bytes, const char *file, int line)
{
    (void)file, (void)line;
    return wr_reserve_realloc(block, bytes);
}

static void crypto_free(void *block, const char *file, int line)
{
    (void)file, (void)line;
    free(block);
}

/* Makes heaps start at their full size. A growing heap asks the kernel for each page of 4 KB, and
 * other threads wait meanwhile. Pages take no memory before they are used. */
static void widen_heaps(void)
{
#ifdef M_TOP_PAD
    (void)mallopt(M_TOP_PAD, HEAP_BYTES);
#endif
}

void wr_memory_limit_apply(void)
{
    if (wr_memory_left() == SIZE_MAX) {
        widen_heaps();
        return;
    }
#ifdef M_ARENA_MAX
    (void)mallopt(M_ARENA_MAX, 1);
#endif
    set_stacks();
    /* These allocators fall back to a reserve. libuv aborts if its table of descriptors cannot
     * grow, and OpenSSL reports a valid certificate as invalid when memory runs out. */
    (void)CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free);
    (void)uv_replace_allocator(wr_reserve_malloc, wr_reserve_realloc, wr_reserve_calloc, free);
}
