/* SPDX-License-Identifier: MIT */
/* clock.c - reads the system's clocks, and parks threads until a time of any clock. */
#include "limiter/clock/clock.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>
#include <weir/error.h>

#define CLOCK_TRIES 100 /* attempts to read two clocks within 1 ms of each other */
/* Shorter suspensions are ignored: two clocks are never read at exactly the same time. */
#define ASLEEP_MS 100

static int64_t read_clock(clockid_t id)
{
    struct timespec at;
    (void)clock_gettime(id, &at); /* cannot fail for these clocks */
    return (int64_t)at.tv_sec * WEIR_SECOND + at.tv_nsec;
}

int64_t wr_monotonic_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t wr_thread_cpu_now(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int64_t wr_boottime_now(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

/* Reads both clocks, and repeats that if the thread may have been preempted in between: then the
 * difference of the clocks is meaningless. */
int64_t wr_clock_suspended_ns(void)
{
    int64_t before, after, booted;
    int tries = 0;
    do {
        before = wr_monotonic_now();
        booted = wr_boottime_now();
        after = wr_monotonic_now();
    } while (after - before > WEIR_MILLISECOND && ++tries < CLOCK_TRIES);
    return booted - after;
}

uint32_t wr_clock_sleep_mark(void)
{
    return (uint32_t)(wr_clock_suspended_ns() / WEIR_MILLISECOND);
}

bool wr_clock_slept_since(uint32_t mark)
{
    return (int32_t)(wr_clock_sleep_mark() - mark) >= ASLEEP_MS;
}

int64_t weir_wall_now(void)
{
    return read_clock(CLOCK_REALTIME);
}

static int64_t monotonic_now(const weir_clock *clock)
{
    (void)clock;
    return wr_monotonic_now();
}

void wr_monotonic_wait(const weir_clock *clock, struct wr_parker *parker, int64_t until)
{
    (void)clock;
    if (until == WEIR_FOREVER) {
        (void)pthread_cond_wait(&parker->changed, &parker->lock);
        return;
    }
    struct timespec at = {.tv_sec = (time_t)(until / WEIR_SECOND), .tv_nsec = (long)(until % WEIR_SECOND)};
    (void)pthread_cond_timedwait(&parker->changed, &parker->lock, &at);
}

const weir_clock *weir_clock_monotonic(void)
{
    static const weir_clock monotonic = {monotonic_now, wr_monotonic_wait};
    return &monotonic;
}

const weir_clock *wr_clock_or_fast(const weir_clock *clock)
{
    return clock != NULL ? clock : weir_clock_fast();
}

int64_t weir_clock_now(const weir_clock *clock)
{
    return wr_clock_now(clock);
}

int wr_parker_init(struct wr_parker *ret_parker)
{
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0)
        return WEIR_E_SYSTEM;
    int bad = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    bad = bad != 0 ? bad : pthread_cond_init(&ret_parker->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    if (bad != 0)
        return WEIR_E_SYSTEM;
    if (pthread_mutex_init(&ret_parker->lock, NULL) != 0) {
        (void)pthread_cond_destroy(&ret_parker->changed);
        return WEIR_E_SYSTEM;
    }
    ret_parker->unparked = false;
    ret_parker->next = NULL;
    return 0;
}

void wr_parker_release(struct wr_parker *parker)
{
    (void)pthread_mutex_destroy(&parker->lock);
    (void)pthread_cond_destroy(&parker->changed);
}

void wr_park(struct wr_parker *parker, const weir_clock *clock, int64_t until)
{
    (void)pthread_mutex_lock(&parker->lock);
    if (!parker->unparked)
        clock->wait(clock, parker, until);
    parker->unparked = false;
    (void)pthread_mutex_unlock(&parker->lock);
}

void wr_unpark(struct wr_parker *parker)
{
    (void)pthread_mutex_lock(&parker->lock);
    parker->unparked = true;
    (void)pthread_cond_signal(&parker->changed);
    (void)pthread_mutex_unlock(&parker->lock);
}
