/* SPDX-License-Identifier: MIT */
/* algorithm.h - what the algorithms of this room share.
 *
 * Instants are within +-2^61 ns and durations at most WEIR_DURATION_MAX = 2^60, so an instant plus a few durations fits
 * int64_t. A product of a time and a count does not: those are 128 bits wide.
 *
 * Invariant of every state: it never depends on a `now` that was only asked about. ask, peek and fresh look at the
 * state as it will be at `now` and leave it alone; a refusal charges nothing.
 */
#ifndef WR_CORE_LIMIT_ALGORITHM_H
#define WR_CORE_LIMIT_ALGORITHM_H

#include "base/bits.h"
#include <weir/limit.h>

#define WR_STATE_BYTES_MAX ((size_t)1 << 20)

extern const weir_algorithm wr_token_bucket;
extern const weir_algorithm wr_stepped_bucket;
extern const weir_algorithm wr_fixed_window;
extern const weir_algorithm wr_sliding_window;
extern const weir_algorithm wr_sliding_log;
extern const weir_algorithm wr_leaky_bucket;
extern const weir_algorithm wr_concurrency;

/* 0, or WEIR_E_INVAL if the rule was not made by one of the weir_limit functions, or its fields were changed since;
 * only queue_max may be. */
int wr_limit_check(const weir_limit *limit);

/* Whether both have the same algorithms in the same order, so that the state of one can be carried over to the other.
 */
bool wr_stack_same_shape(const weir_stack *a, const weir_stack *b);

/* After a refusal: 0, or the error of the first rule that is not worth waiting for. */
int wr_stack_give_up(const weir_stack *stack, const void *state, int64_t now);

/* The mark of algorithms that charge to an instant: how much later than `now` that was, because the clock went back or
 * another thread was faster. `at` plus the mark is then the instant again. A step back of more than 4 s does not fit:
 * such a charge may not be found again, and stays. */
static inline uint32_t wr_late_mark(int64_t charged_at, int64_t now)
{
    int64_t late_ns = charged_at - now;
    return late_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)late_ns;
}

/* A mark that tells an instant from others, be they close by or far off. */
static inline uint32_t wr_instant_mark(int64_t at)
{
    return (uint32_t)((uint64_t)at * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* A window that is measured anew with another length: its start is kept while `now` lies inside, else it is now. What
 * was counted stays counted in both cases, for nobody knows how recent it is. */
static inline int64_t wr_window_carry(int64_t start_at, int64_t window_ns, int64_t now)
{
    return now - start_at < window_ns ? start_at : now;
}

#endif
