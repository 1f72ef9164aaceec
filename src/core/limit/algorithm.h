/* SPDX-License-Identifier: MIT */
/* algorithm.h - declarations that all rate limit algorithms share.
 *
 * Instants are within +-2^61 ns and durations at most WEIR_DURATION_MAX = 2^60 ns, so an instant
 * plus a few durations fits int64_t. A product of a time and a count does not fit; those are 128
 * bits wide.
 *
 * Invariant of every state: it never depends on a `now` that only a query has passed. ask, peek and
 * fresh compute the state at `now` without changing it. A refusal charges nothing.
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

/* Returns 0, or WEIR_E_INVAL if the rule was not made by a weir_limit function or if a field other
 * than queue_max was changed afterwards. */
int wr_limit_check(const weir_limit *limit);

/* Returns true if both stacks have the same algorithms in the same order, so that weir_stack_carry
 * can copy a state from one to the other. */
bool wr_stack_same_shape(const weir_stack *a, const weir_stack *b);

/* Returns, after a refusal, 0, or the error of the first rule for which waiting is pointless. */
int wr_stack_wait_error(const weir_stack *stack, const void *state, int64_t now);

/* Returns the mark of a charge to the instant `charged_at`: how much later than `now` it is, ns. It
 * is later if the clock went back or another thread was faster. `at` plus the mark is then that
 * instant. More than 4 s does not fit: such a charge may not be found later, and is then not given
 * back. */
static inline uint32_t wr_late_mark(int64_t charged_at, int64_t now)
{
    int64_t late_ns = charged_at - now;
    return late_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)late_ns;
}

/* Returns a hash of an instant. Instants have different marks whether they are close together or
 * far apart. */
static inline uint32_t wr_instant_mark(int64_t at)
{
    return (uint32_t)((uint64_t)at * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* Returns the start of a window whose length changes: the old start if `now` lies inside the new
 * window, else `now`. The count is kept in both cases, because its age within the window is not
 * known. */
static inline int64_t wr_window_carry(int64_t start_at, int64_t window_ns, int64_t now)
{
    return now - start_at < window_ns ? start_at : now;
}

#endif
