/* SPDX-License-Identifier: MIT */
/* cost_bound.c - implements the lower bound for the cost of a keyed limiter. */
#include "cli/bench/cost_bound.h"

#include <stdbool.h>
#include <weir/error.h>
#include <weir/memory.h>

#include "base/bits.h"

int wr_cost_bound_init(struct wr_cost_bound *ret_bound, size_t keys, int64_t cost_ns, int64_t burst_ns)
{
    struct wr_cost_bound bound = {.slots = 2, .shift = 63, .cost_ns = cost_ns, .burst_ns = burst_ns};
    /* weir_table uses it as well: both get the same kind of pages. */
    const weir_allocator *system = weir_allocator_system();
    for (; bound.slots < keys; bound.shift--)
        bound.slots *= 2;
    bound.arrivals = system->take(system->context, bound.slots * sizeof *bound.arrivals, WR_CACHE_LINE);
    if (bound.arrivals == NULL)
        return WEIR_E_NOMEM;
    *ret_bound = bound;
    return 0;
}

void wr_cost_bound_release(struct wr_cost_bound *bound)
{
    const weir_allocator *system = weir_allocator_system();
    if (bound->arrivals != NULL)
        system->give(system->context, bound->arrivals, bound->slots * sizeof *bound->arrivals, WR_CACHE_LINE);
}

static inline bool try_bound_slot(struct wr_cost_bound *bound, uint64_t key, int64_t now)
{
    _Atomic int64_t *arrival = &bound->arrivals[(key * UINT64_C(0x9E3779B97F4A7C15)) >> bound->shift];
    int64_t old = atomic_load_explicit(arrival, memory_order_relaxed);
    for (;;) {
        int64_t next = (old > now ? old : now) + bound->cost_ns;
        if (next > now + bound->burst_ns)
            return false;
        if (atomic_compare_exchange_weak_explicit(arrival, &old, next, memory_order_acq_rel, memory_order_relaxed))
            return true;
    }
}

size_t wr_cost_bound_pass(struct wr_cost_bound *bound, const weir_clock *clock, const uint64_t *keys, size_t count)
{
    size_t granted = 0;
    for (size_t i = 0; i < count; i++)
        granted += try_bound_slot(bound, keys[i], weir_clock_now(clock));
    return granted;
}
