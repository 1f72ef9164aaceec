/* SPDX-License-Identifier: MIT */
/* time.h - instants, durations and clocks.
 *
 * All times are int64_t nanoseconds. An instant is monotonic: it counts from an arbitrary point, is
 * at most 2^61 ns away from it, and must never be stored or sent. A duration is at most
 * WEIR_DURATION_MAX. Functions refuse longer ones, so that sums of an instant and a few durations
 * cannot overflow.
 *
 * Objects take a weir_clock in their options; NULL means weir_clock_fast(). Tests use a fake clock:
 * time stands still until the test moves it, and blocked calls wake when their time has come.
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
#define WEIR_FOREVER INT64_MAX               /* a timeout that never expires */

typedef struct weir_clock weir_clock;

/* Returns the clock CLOCK_MONOTONIC of the system. */
WEIR_API const weir_clock *weir_clock_monotonic(void);

/* Returns a clock on the time-stamp counter of the processor, if that is invariant; otherwise the
 * same as weir_clock_monotonic(). It differs from CLOCK_MONOTONIC by at most 50 us, never goes back
 * on one thread, and costs about half. */
WEIR_API const weir_clock *weir_clock_fast(void);

/* Reads a clock, which must not be NULL. */
WEIR_API int64_t weir_clock_now(const weir_clock *clock);

/* Creates a clock that stands at `start_at`, which is 0 to WEIR_DURATION_MAX. WEIR_E_INVAL,
 * WEIR_E_NOMEM. */
WEIR_API int weir_clock_fake_new(int64_t start_at, const weir_allocator *allocator, weir_clock **ret_clock);

/* Moves a fake clock to the instant `now`, which may be earlier, and wakes the calls whose time has
 * come. */
WEIR_API int weir_clock_fake_set(weir_clock *clock, int64_t now);

/* Moves a fake clock by `by_ns`, which may be negative. */
WEIR_API int weir_clock_fake_advance(weir_clock *clock, int64_t by_ns);

/* Returns the number of calls that are blocked on a fake clock now, so that a test knows when its
 * threads have arrived. */
WEIR_API int weir_clock_fake_waiters(const weir_clock *clock);

/* Frees a fake clock. No call may be waiting on it. NULL is allowed. */
WEIR_API void weir_clock_fake_free(weir_clock *clock);

/* Returns nanoseconds since 1970 by the wall clock: for headers and stores, not for decisions. */
WEIR_API int64_t weir_wall_now(void);

#ifdef __cplusplus
}
#endif
#endif
