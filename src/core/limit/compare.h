/* SPDX-License-Identifier: MIT */
/* compare.h - orders decisions by severity and quotas by scarcity, for every place where several
 * rules meet. */
#ifndef WR_CORE_LIMIT_COMPARE_H
#define WR_CORE_LIMIT_COMPARE_H

#include <weir/limit.h>

/* Returns true if `a` blocks longer than `b`: "never" is longer than "until a release", which is
 * longer than any time, which is longer than "go". */
static inline bool wr_decision_worse(const weir_decision *a, const weir_decision *b)
{
    return a->verdict > b->verdict || (a->verdict == b->verdict && a->wait_ns > b->wait_ns);
}

/* Returns the fraction of a quota that is left, in units of 2^-32. It is 0 if the limit is 0, which
 * a custom algorithm may report: this avoids a division by zero. */
static inline uint64_t wr_quota_share(const weir_quota *quota)
{
    return quota->limit == 0 ? 0 : ((uint64_t)quota->remaining << 32) / quota->limit;
}

/* Returns true if a smaller fraction of `a` is left than of `b`. If the fractions are equal, the
 * quota that takes longer to reset is scarcer. */
static inline bool wr_quota_scarcer(const weir_quota *a, const weir_quota *b)
{
    uint64_t share_a = wr_quota_share(a), share_b = wr_quota_share(b);
    return share_a < share_b || (share_a == share_b && a->reset_ns > b->reset_ns);
}

#endif
