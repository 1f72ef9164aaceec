/* SPDX-License-Identifier: MIT */
/* counter.h - what a counter is made of. It never changes once made, but for the tallies: so there is no lock. */
#ifndef WR_SHELL_COUNTER_COUNTER_H
#define WR_SHELL_COUNTER_COUNTER_H

#include "base/bits.h"

#include <stdatomic.h>
#include <weir/admit.h>

#define WR_OUTCOMES (WEIR_OUTCOME_FAILED + 1)

/* Each has its own cache lines, so that threads that count in different rules do not meet. */
struct wr_counted_rule {
    _Alignas(WR_CACHE_LINE) weir_rule rule;
    weir_repository repository;
    _Alignas(WR_CACHE_LINE) _Atomic uint64_t tallies[WR_OUTCOMES];
};

struct weir_counter {
    weir_counter_options options; /* with clock and allocator filled in */
    uint32_t count;
    struct wr_counted_rule *rules; /* in the same block */
};

#endif
