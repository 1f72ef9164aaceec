/* SPDX-License-Identifier: MIT */
/* asleep.c - replaces clock_gettime in a test, so that a suspended machine can be simulated. */
#include "share/rig.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t asleep_s;

void machine_sleeps(int64_t seconds)
{
    (void)atomic_fetch_add(&asleep_s, seconds);
}

int clock_gettime(clockid_t id, struct timespec *at)
{
    int failed = (int)syscall(SYS_clock_gettime, id, at);
    if (failed == 0 && id == CLOCK_BOOTTIME)
        at->tv_sec += (time_t)atomic_load(&asleep_s);
    return failed;
}
