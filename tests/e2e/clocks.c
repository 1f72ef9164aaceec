/* SPDX-License-Identifier: MIT */
/* clocks.c - for LD_PRELOAD: a machine whose clock is wrong, or that slept. WEIR_TEST_CLOCKS is a file of two int64:
 * the seconds that the wall clock is ahead, and those that the machine has slept; both may change at any time. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *seconds;

__attribute__((constructor)) static void look(void)
{
    const char *path = getenv("WEIR_TEST_CLOCKS");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd >= 0 ? mmap(NULL, 2 * sizeof *seconds, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    seconds = page != MAP_FAILED ? page : NULL;
    (void)close(fd);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *at)
{
    int result = (int)syscall(SYS_clock_gettime, id, at);

    if (result == 0 && seconds != NULL && id == CLOCK_REALTIME)
        at->tv_sec += (time_t)seconds[0];
    if (result == 0 && seconds != NULL && id == CLOCK_BOOTTIME)
        at->tv_sec += (time_t)seconds[1];
    return result;
}
