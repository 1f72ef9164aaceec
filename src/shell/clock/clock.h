/* SPDX-License-Identifier: MIT */
/* clock.h - reading clocks, and sleeping by them.
 *
 * A parker is where one thread sleeps: wr_park returns when wr_unpark was called, when the instant has come, or for no
 * reason; so park in a loop that asks anew what it waits for. An unpark that comes before the park is not lost.
 */
#ifndef WR_SHELL_CLOCK_CLOCK_H
#define WR_SHELL_CLOCK_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <weir/time.h>

struct wr_parker {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool unparked;
    struct wr_parker *next; /* in a fake clock's list */
};

struct weir_clock {
    int64_t (*now)(const weir_clock *clock);
    /* As pthread_cond_timedwait on parker->changed with parker->lock held; WEIR_FOREVER has no end. */
    void (*wait)(const weir_clock *clock, struct wr_parker *parker, int64_t until);
};

static inline int64_t wr_clock_now(const weir_clock *clock)
{
    return clock->now(clock);
}

const weir_clock *wr_clock_or_fast(const weir_clock *clock);

/* WEIR_E_SYSTEM. */
int wr_parker_init(struct wr_parker *ret_parker);
void wr_parker_release(struct wr_parker *parker);

void wr_park(struct wr_parker *parker, const weir_clock *clock, int64_t until);
void wr_unpark(struct wr_parker *parker);

/* The monotonic clock's functions, on which the fast clock stands. */
int64_t wr_monotonic_now(void);

void wr_monotonic_wait(const weir_clock *clock, struct wr_parker *parker, int64_t until);

/* For how long the calling thread has had a processor. */
int64_t wr_thread_cpu_now(void);

/* A monotonic clock that goes on while the machine is suspended: for what others count meanwhile. */
int64_t wr_boottime_now(void);

/* For how long the machine has been suspended since it began, which the monotonic clock does not count. */
int64_t wr_clock_asleep(void);

/* The same in ms, as a mark that is compared with a later one. */
uint32_t wr_clock_sleep_mark(void);
bool wr_clock_slept_since(uint32_t mark);

#endif
