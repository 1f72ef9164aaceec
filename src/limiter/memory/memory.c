/* SPDX-License-Identifier: MIT */
/* memory.c - the default allocator and random bytes, both from the operating system. */
#include "limiter/memory/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <weir/error.h>

/* Blocks of at least this size, and page-aligned blocks, are mapped directly from the kernel. They
 * are zeroed without being touched, and return to the kernel when freed. A heap would keep the
 * holes of growing tables. */
#define MAP_FROM_BYTES ((size_t)32 << 10)
#define PAGE_ALIGN 4096
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static bool is_mapped(size_t bytes, size_t align)
{
    return align == PAGE_ALIGN || (bytes >= MAP_FROM_BYTES && align < PAGE_ALIGN);
}

static void *map_block(size_t bytes, bool wants_huge_pages)
{
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return NULL;
    if (wants_huge_pages && bytes >= HUGE_PAGE_BYTES)
        /* huge pages need fewer page walks; a failure costs only speed */
        (void)madvise(block, bytes, MADV_HUGEPAGE);
    return block;
}

static void *take_zeroed(size_t bytes, size_t align, bool wants_huge_pages)
{
    if (is_mapped(bytes, align))
        return map_block(bytes, wants_huge_pages);
    if (align <= _Alignof(max_align_t))
        return calloc(1, bytes);
    if (bytes > SIZE_MAX - align)
        return NULL;
    void *block = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (block != NULL)
        memset(block, 0, bytes);
    return block;
}

static void *system_take(void *context, size_t bytes, size_t align)
{
    (void)context;
    return take_zeroed(bytes, align, true);
}

static void *steady_take(void *context, size_t bytes, size_t align)
{
    (void)context;
    return take_zeroed(bytes, align, false);
}

static void system_give(void *context, void *block, size_t bytes, size_t align)
{
    (void)context;
    if (is_mapped(bytes, align))
        (void)munmap(block, bytes);
    else
        free(block);
}

const weir_allocator *weir_allocator_system(void)
{
    static const weir_allocator system = {system_take, system_give, NULL};
    return &system;
}

const weir_allocator *wr_allocator_or_system(const weir_allocator *allocator)
{
    return allocator != NULL ? allocator : weir_allocator_system();
}

const weir_allocator *wr_allocator_or_steady(const weir_allocator *allocator)
{
    static const weir_allocator steady = {steady_take, system_give, NULL};
    return allocator != NULL ? allocator : &steady;
}

int wr_random(void *ret_bytes, size_t bytes)
{
    char *to = ret_bytes;
    while (bytes > 0) {
        ssize_t got = getrandom(to, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return WEIR_E_SYSTEM;
        to += got;
        bytes -= (size_t)got;
    }
    return 0;
}
