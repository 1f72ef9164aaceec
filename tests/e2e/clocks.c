/* SPDX-License-Identifier: MIT */
/* clocks.c - preloaded (LD_PRELOAD), simulates a machine with a wrong clock, or one that has
 * slept.
 *
 * WEIR_TEST_CLOCKS names a file of two int64: the milliseconds that the wall clock is ahead, and
 * the milliseconds that the machine has slept. Both may change at any time.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *added_ms;

__attribute__((constructor)) static void look(void)
{
    const char *path = getenv("WEIR_TEST_CLOCKS");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd >= 0 ? mmap(NULL, 2 * sizeof *added_ms, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    added_ms = page != MAP_FAILED ? page : NULL;
    (void)close(fd);
}

static void add(struct timespec *at, int64_t ms)
{
    int64_t ns = at->tv_nsec + ms % 1000 * 1000000;

    at->tv_sec += (time_t)(ms / 1000 + (ns < 0 ? -1 : ns / 1000000000));
    at->tv_nsec = (long)((ns + 1000000000) % 1000000000);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *at)
{
    int result = (int)syscall(SYS_clock_gettime, id, at);

    if (result == 0 && added_ms != NULL && (id == CLOCK_REALTIME || id == CLOCK_BOOTTIME))
        add(at, added_ms[id == CLOCK_BOOTTIME]);
    return result;
}
