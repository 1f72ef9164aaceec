/* SPDX-License-Identifier: MIT */
/* time.h - instants, durations and clocks.
 *
 * All times are int64_t nanoseconds. An instant is monotonic: it counts from an arbitrary point, lies within
 * 2^61 ns of it either way, and must never be stored or sent. A duration is at most WEIR_DURATION_MAX; longer
 * ones are refused at the door, so that sums of an instant and a few durations cannot overflow.
 *
 * Objects take a weir_clock in their options; NULL means weir_clock_fast(). Tests use a fake clock: time
 * stands still until the test moves it, and blocked calls wake when their time has come.
 *
 * Threads: every function here may be called from any thread.
 */
#ifndef WEIR_TIME_H
#define WEIR_TIME_H

#include <stdint.h>
#include <weir/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_NANOSECOND ((int64_t)1)
#define WEIR_MICROSECOND ((int64_t)1000)
#define WEIR_MILLISECOND ((int64_t)1000000)
#define WEIR_SECOND ((int64_t)1000000000)
#define WEIR_MINUTE (60 * WEIR_SECOND)
#define WEIR_HOUR (60 * WEIR_MINUTE)
#define WEIR_DAY (24 * WEIR_HOUR)

#define WEIR_DURATION_MAX ((int64_t)1 << 60) /* 36 years */
#define WEIR_FOREVER INT64_MAX               /* as a time-out: wait as long as it takes */

typedef struct weir_clock weir_clock;

/* CLOCK_MONOTONIC. */
WEIR_API const weir_clock *weir_clock_monotonic(void);

/* The time-stamp counter where it is invariant, else the same as weir_clock_monotonic(). Within 50 us of
 * CLOCK_MONOTONIC, never going back on one thread, and about half the cost. */
WEIR_API const weir_clock *weir_clock_fast(void);

/* Now, by this clock. `clock` must not be NULL. */
WEIR_API int64_t weir_clock_now(const weir_clock *clock);

/* Makes a clock that stands at `start_at` (0 … WEIR_DURATION_MAX). WEIR_E_INVAL, WEIR_E_NOMEM. */
WEIR_API int weir_clock_fake_new(int64_t start_at, const weir_allocator *allocator, weir_clock **ret_clock);

/* Moves a fake clock to `now`, also back, and wakes whoever waits for an instant that has come. */
WEIR_API int weir_clock_fake_set(weir_clock *clock, int64_t now);

/* Moves a fake clock by `by_ns`, which may be negative. */
WEIR_API int weir_clock_fake_advance(weir_clock *clock, int64_t by_ns);

/* How many blocked calls wait on a fake clock now; lets a test know that its threads have arrived. */
WEIR_API int weir_clock_fake_waiters(const weir_clock *clock);

/* Nobody may be waiting on it. NULL is fine. */
WEIR_API void weir_clock_fake_free(weir_clock *clock);

/* Nanoseconds since 1970 by the wall clock: for headers and stores, never for deciding. */
WEIR_API int64_t weir_wall_now(void);

#ifdef __cplusplus
}
#endif
#endif
