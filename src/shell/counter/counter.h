/* SPDX-License-Identifier: MIT */
/* counter.h - what a counter is made of. It never changes once made, but for the tallies: so there is no lock. */
#ifndef WEIR_SHELL_COUNTER_H
#define WEIR_SHELL_COUNTER_H

#include <stdatomic.h>
#include <weir/admit.h>

#define WR_OUTCOMES (WEIR_OUTCOME_FAILED + 1)
#define WR_CACHE_LINE 64

/* A rule in force. Each has its own cache lines, so that threads that count in different rules do not meet. */
struct wr_post {
    _Alignas(WR_CACHE_LINE) weir_rule rule;
    weir_repository repository;
    _Alignas(WR_CACHE_LINE) _Atomic uint64_t tallies[WR_OUTCOMES];
};

struct weir_counter {
    weir_counter_options options; /* with clock and allocator filled in */
    uint32_t count;
    struct wr_post *posts; /* in the same block */
};

#endif
