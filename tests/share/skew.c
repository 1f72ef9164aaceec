/* SPDX-License-Identifier: MIT */
/* skew.c - library to preload: the wall clock of the process is off by WEIR_TEST_SKEW_S seconds. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)

static long skew(void)
{
    const char *text = getenv("WEIR_TEST_SKEW_S");
    return text != NULL ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t id, struct timespec *at)
{
    int failed = (int)syscall(SYS_clock_gettime, id, at);
    if (failed == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        at->tv_sec += skew();
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *at = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret_at)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret_at != NULL)
        *ret_at = now.tv_sec;
    return now.tv_sec;
}
