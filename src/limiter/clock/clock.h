/* SPDX-License-Identifier: MIT */
/* clock.h - reads clocks, and parks threads until a time of a clock.
 *
 * A parker is the place where one thread sleeps. wr_park returns after wr_unpark, at the given
 * time, or spuriously: call it in a loop that checks the condition. An unpark before the park is
 * not lost.
 */
#ifndef WR_LIMITER_CLOCK_CLOCK_H
#define WR_LIMITER_CLOCK_CLOCK_H

#include "base/seam.h"

#include <pthread.h>
#include <stdbool.h>
#include <weir/time.h>

struct wr_parker {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool unparked;
    struct wr_parker *next; /* next parker in the list of a fake clock */
};

struct weir_clock {
    int64_t (*now)(const weir_clock *clock);
    /* Waits like pthread_cond_timedwait on parker->changed, with parker->lock held. WEIR_FOREVER
     * means no timeout. */
    void (*wait)(const weir_clock *clock, struct wr_parker *parker, int64_t until);
};

static inline int64_t wr_clock_now(const weir_clock *clock)
{
    return clock->now(clock);
}

WR_SEAM const weir_clock *wr_clock_or_fast(const weir_clock *clock);

/* Returns 0, or WEIR_E_SYSTEM if the mutex or the condition variable cannot be made. */
WR_SEAM int wr_parker_init(struct wr_parker *ret_parker);
WR_SEAM void wr_parker_release(struct wr_parker *parker);

WR_SEAM void wr_park(struct wr_parker *parker, const weir_clock *clock, int64_t until);
WR_SEAM void wr_unpark(struct wr_parker *parker);

/* Functions of the monotonic clock; the fast clock is built on them. */
WR_SEAM int64_t wr_monotonic_now(void);

void wr_monotonic_wait(const weir_clock *clock, struct wr_parker *parker, int64_t until);

/* Returns the CPU time that the calling thread has used, ns. */
WR_SEAM int64_t wr_thread_cpu_now(void);

/* Returns the time since boot including suspension, ns: for times that other machines count too. */
int64_t wr_boottime_now(void);

/* Returns the total time for which the machine was suspended since boot, ns. The monotonic clock
 * leaves it out. */
int64_t wr_clock_suspended_ns(void);

/* Returns the total suspended time in ms, as a mark. wr_clock_slept_since returns true if the
 * machine was suspended for at least 100 ms since the mark was taken. */
uint32_t wr_clock_sleep_mark(void);
bool wr_clock_slept_since(uint32_t mark);

#endif
