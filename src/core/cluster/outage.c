/* SPDX-License-Identifier: MIT */
/* outage.c - the circuit breaker for the store: when to ask, stop asking, and probe. */
#include "core/cluster/permit_lease.h"

/* Returns the wait until the next probe. Its upper bound doubles with each failed probe; the wait
 * is random between half of the bound and all of it. */
static int64_t backoff(uint32_t looks, uint64_t chance)
{
    int64_t most = looks < 16 ? WR_OUTAGE_FIRST << looks : WR_OUTAGE_LONGEST;
    most = most < WR_OUTAGE_LONGEST ? most : WR_OUTAGE_LONGEST;
    return most / 2 + (int64_t)(chance % (uint64_t)(most / 2 + 1));
}

bool wr_outage_may_ask(struct wr_outage *outage, int64_t now)
{
    if (!outage->down)
        return true;
    if (outage->probing || now < outage->probe_at)
        return false;
    outage->probing = true;
    return true;
}

bool wr_outage_missed(struct wr_outage *outage, int64_t now, bool broken, uint64_t chance)
{
    if (outage->down) {
        /* otherwise the call was sent before the outage and says nothing new */
        if (outage->probing) {
            outage->misses += outage->misses < UINT32_MAX;
            outage->probe_at = now + backoff(outage->misses, chance);
            /* the store answers, though late; `broken` overrules this below */
            outage->lost = false;
        }
        outage->lost = outage->lost || broken;
        outage->probing = false;
        return false;
    }
    outage->misses++;
    if (!broken && outage->misses < WR_OUTAGE_MISSES)
        return false;
    *outage = (struct wr_outage){.down = true, .lost = broken, .probe_at = now + backoff(0, chance)};
    return true;
}

bool wr_outage_answered(struct wr_outage *outage)
{
    bool was_down = outage->down;
    *outage = (struct wr_outage){0};
    return was_down;
}
