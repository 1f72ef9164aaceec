/* SPDX-License-Identifier: MIT */
/* reserve.c - measures the memory left under a limit, and holds a reserve: an untouched mapping
 * that is unmapped when malloc fails, so that a second malloc succeeds. */
#include "limiter/memory/reserve.h"

#include "base/bits.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define RESERVE_BYTES ((size_t)2 << 20)
#define STATM_FIELDS 7

static pthread_once_t once = PTHREAD_ONCE_INIT;
static size_t space_max = SIZE_MAX, data_max = SIZE_MAX; /* limits in bytes; SIZE_MAX: no limit */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *reserve; /* protected by `lock`; NULL: used up or not needed */
static atomic_size_t failures;

/* ---- memory left ---- */

static size_t limit_of(struct rlimit limit)
{
    return limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : wr_size_of(limit.rlim_cur);
}

static void *map_reserve(void)
{
    void *block = mmap(NULL, RESERVE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block != MAP_FAILED ? block : NULL;
}

static bool is_limited(void)
{
    return space_max != SIZE_MAX || data_max != SIZE_MAX;
}

static void read_limits_once(void)
{
    struct rlimit space = {.rlim_cur = RLIM_INFINITY}, data = space;
    (void)getrlimit(RLIMIT_AS, &space);
    (void)getrlimit(RLIMIT_DATA, &data);
    space_max = limit_of(space);
    data_max = limit_of(data);
    if (is_limited())
        reserve = map_reserve();
}

/* Reads the bytes of address space and of writable memory in use. Returns false if /proc/self/statm
 * is not readable. */
static bool read_used(size_t *ret_space, size_t *ret_data)
{
    char text[256];
    size_t pages[STATM_FIELDS] = {0}, page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    char *at = text;
    for (size_t i = 0; i < STATM_FIELDS; i++)
        pages[i] = (size_t)strtoul(at, &at, 10);
    *ret_space = pages[0] * page_bytes;
    *ret_data = pages[5] * page_bytes;
    return true;
}

static size_t room_below(size_t max, size_t used)
{
    return max == SIZE_MAX ? SIZE_MAX : max > used ? max - used : 0;
}

/* Returns true if the reserve exists. Maps a new one first if the old one was used up. */
static bool renew_reserve(void)
{
    (void)pthread_mutex_lock(&lock);
    if (reserve == NULL)
        reserve = map_reserve();
    bool is = reserve != NULL;
    (void)pthread_mutex_unlock(&lock);
    return is;
}

size_t wr_memory_left(void)
{
    size_t space, data;
    (void)pthread_once(&once, read_limits_once);
    if (!is_limited())
        return SIZE_MAX;
    if (!renew_reserve())
        return 0;
    if (!read_used(&space, &data))
        return SIZE_MAX;
    size_t in_space = room_below(space_max, space), in_data = room_below(data_max, data);
    return in_space < in_data ? in_space : in_data;
}

/* ---- the reserve ---- */

size_t wr_reserve_failures(void)
{
    return atomic_load_explicit(&failures, memory_order_relaxed);
}

static void *count_failure(void *block)
{
    if (block == NULL)
        (void)atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
    return block;
}

/* Unmaps the reserve. Returns true if that freed memory, so that an allocation is worth a retry. */
static bool unmap_reserve(void)
{
    (void)pthread_mutex_lock(&lock);
    void *block = reserve;
    reserve = NULL;
    (void)pthread_mutex_unlock(&lock);
    return block != NULL && munmap(block, RESERVE_BYTES) == 0;
}

void *wr_reserve_malloc(size_t bytes)
{
    void *block = malloc(bytes);
    if (block != NULL)
        return block;
    return count_failure(unmap_reserve() ? malloc(bytes) : NULL);
}

void *wr_reserve_calloc(size_t items, size_t bytes)
{
    void *block = calloc(items, bytes);
    if (block != NULL)
        return block;
    return count_failure(unmap_reserve() ? calloc(items, bytes) : NULL);
}

void *wr_reserve_realloc(void *block, size_t bytes)
{
    void *moved = realloc(block, bytes);
    if (moved != NULL || bytes == 0)
        return moved;
    return count_failure(unmap_reserve() ? realloc(block, bytes) : NULL);
}

char *wr_reserve_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = wr_reserve_malloc(bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}
