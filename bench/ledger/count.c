/* SPDX-License-Identifier: MIT */
/* count.c - preloaded (LD_PRELOAD), counts the calls that allocate memory. When the program ends,
 * it writes their number to the file that WEIR_LEDGER_COUNT names. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_ulong taken;

/* glibc's own functions; finding them with dlsym would call calloc. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t items, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

#define SHOWN __attribute__((visibility("default")))

static void note(void)
{
    (void)atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed);
}

SHOWN void *malloc(size_t bytes)
{
    note();
    return __libc_malloc(bytes);
}

SHOWN void *calloc(size_t items, size_t bytes)
{
    note();
    return __libc_calloc(items, bytes);
}

SHOWN void *realloc(void *block, size_t bytes)
{
    note();
    return __libc_realloc(block, bytes);
}

SHOWN void *aligned_alloc(size_t align, size_t bytes)
{
    note();
    return __libc_memalign(align, bytes);
}

SHOWN int posix_memalign(void **ret_block, size_t align, size_t bytes)
{
    note();
    void *block = __libc_memalign(align, bytes);
    if (block == NULL)
        return ENOMEM;
    *ret_block = block;
    return 0;
}

__attribute__((destructor)) static void write_count(void)
{
    char text[32];
    const char *path = getenv("WEIR_LEDGER_COUNT");
    int fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int bytes = snprintf(text, sizeof text, "%lu\n", atomic_load(&taken));
    if (fd >= 0) {
        (void)!write(fd, text, (size_t)bytes);
        (void)close(fd);
    }
}
