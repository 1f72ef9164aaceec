/* SPDX-License-Identifier: MIT */
/* compare.h - which of two decisions is worse, and which of two quotas is scarcer: the same wherever several rules
 * meet. */
#ifndef WR_CORE_LIMIT_COMPARE_H
#define WR_CORE_LIMIT_COMPARE_H

#include <weir/limit.h>

/* Whether `a` holds longer than `b`: "never" above "until a release" above any time above "go". */
static inline bool wr_decision_worse(const weir_decision *a, const weir_decision *b)
{
    return a->verdict > b->verdict || (a->verdict == b->verdict && a->wait_ns > b->wait_ns);
}

/* What is left of a quota, in 2^-32. An algorithm of others may tell a limit of 0: nothing is left of it, and nobody
 * divides by it. */
static inline uint64_t wr_quota_share(const weir_quota *quota)
{
    return quota->limit == 0 ? 0 : ((uint64_t)quota->remaining << 32) / quota->limit;
}

/* Whether less of `a` is left than of `b`, by share; of equals the one that takes longer to come back. */
static inline bool wr_quota_scarcer(const weir_quota *a, const weir_quota *b)
{
    uint64_t share_a = wr_quota_share(a), share_b = wr_quota_share(b);
    return share_a < share_b || (share_a == share_b && a->reset_ns > b->reset_ns);
}

#endif
