/* SPDX-License-Identifier: MIT */
/* terms.c - computes the permits that nodes may hold, and one node's part of a rule. */
#include "core/cluster/permit_lease.h"

#include "base/error.h"
#include "core/limit/algorithm.h"

/* Returns true if permits of this rule can be held. Held permits of spaced starts would make a
 * burst, and permits in flight belong to requests. */
static bool is_leasable(const weir_limit *limit)
{
    return limit->algorithm != &wr_leaky_bucket && limit->algorithm != &wr_concurrency;
}

int wr_permit_lease_terms_make(const weir_stack *stack, uint32_t nodes, uint32_t overshoot,
                               struct wr_permit_lease_terms *ret_terms)
{
    uint32_t limit = UINT32_MAX;

    if (nodes == 0 || nodes > WR_CLUSTER_NODES_MAX)
        return wr_invalid("nodes is out of range; it must be 1 ... 10000");
    if (overshoot > WR_OVERSHOOT_MAX)
        return wr_invalid("overshoot is too large; it must be 0 ... 100 %");
    for (uint32_t i = 0; i < stack->count; i++) {
        const weir_limit *rule = &stack->limits[i];
        if (!is_leasable(rule))
            overshoot = 0;
        limit = rule->permits < limit ? rule->permits : limit;
    }
    *ret_terms = (struct wr_permit_lease_terms){
        .nodes = nodes,
        .batch = (uint32_t)((uint64_t)limit * overshoot / WR_OVERSHOOT_MAX / nodes),
    };
    return 0;
}

uint64_t wr_permit_lease_bound(const struct wr_permit_lease_terms *terms)
{
    return (uint64_t)terms->nodes * terms->batch;
}

int wr_limit_node_part(const weir_limit *limit, uint32_t nodes, weir_limit *ret_limit)
{
    const weir_algorithm *algorithm = limit->algorithm;
    uint32_t permits = limit->permits / nodes;
    int64_t slower_ns = limit->period_ns <= WEIR_DURATION_MAX / nodes ? limit->period_ns * nodes : WEIR_DURATION_MAX;

    if (algorithm == &wr_leaky_bucket)
        return weir_limit_leaky_bucket(ret_limit, limit->permits, slower_ns);
    if (permits == 0)
        return WEIR_E_ABSENT;
    if (algorithm == &wr_token_bucket)
        return weir_limit_token_bucket(ret_limit, permits, limit->refill, slower_ns);
    if (algorithm == &wr_stepped_bucket)
        return weir_limit_stepped_bucket(ret_limit, permits, limit->refill, slower_ns, limit->initial / nodes);
    if (algorithm == &wr_fixed_window)
        return weir_limit_fixed_window(ret_limit, permits, limit->period_ns);
    if (algorithm == &wr_sliding_window)
        return weir_limit_sliding_window(ret_limit, permits, limit->period_ns);
    if (algorithm == &wr_sliding_log)
        return weir_limit_sliding_log(ret_limit, permits, limit->period_ns);
    if (algorithm == &wr_concurrency)
        return weir_limit_concurrency(ret_limit, permits);
    return wr_invalid("a custom algorithm cannot be shared; use one of the six built-in ones");
}
