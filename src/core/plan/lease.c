/* SPDX-License-Identifier: MIT */
/* lease.c - handles hosts that this plan holds by a lease, because other processes share them. */
#include "core/plan/state.h"

void wr_plan_host_lease(struct wr_plan *plan, struct wr_plan_host *host, uint64_t token, int64_t until, int64_t now)
{
    host->lease = token;
    host->leased_until = until;
    wr_host_settle(plan, host, now);
}

uint64_t wr_plan_host_token(const struct wr_plan_host *host)
{
    return host->lease;
}

bool wr_host_is_lent(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now)
{
    return !plan->options.leases || (host->lease != 0 && now < host->leased_until && !host->yields);
}

void wr_plan_host_yield(struct wr_plan *plan, struct wr_plan_host *host, bool yields, int64_t now)
{
    /* Errands are first, or they would wait here forever. */
    host->yields = yields && host->errands.count == 0;
    wr_host_settle(plan, host, now);
}

bool wr_plan_host_yields(const struct wr_plan_host *host)
{
    return host->yields;
}

void wr_plan_host_rested_for(struct wr_plan_host *host, int64_t held_ns)
{
    host->has_rested = true;
    host->held_ns = held_ns;
}

/* Returns true if a release would lose counts in progress: failures of its robots.txt, or responses
 * that make a job hopeless. The next process that leases the host starts both from 0. */
static bool is_counted(const struct wr_plan *plan, const struct wr_plan_host *host, const struct wr_standing *standing)
{
    bool is = plan->options.pace.cancel_after > 0;
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++)
        is |= (standing->wanted & ~standing->open) >> origin & 1 && host->robots[origin].failures > 0 &&
              !host->robots[origin].named_time;
    return is;
}

int64_t wr_plan_host_rests_until(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now,
                                 int64_t *ret_held_ns)
{
    struct wr_standing standing;
    *ret_held_ns = 0;
    if (!host->remembered || host->unlent || host->expiring != 0 || wr_plan_host_flies(host) ||
        wr_host_is_blocked(host, now))
        return now;
    wr_host_stand(plan, host, now, &standing);
    bool wants = standing.urgent || standing.wanted != 0;
    if (!wants || standing.gate.verdict == WEIR_GO || standing.lines || is_counted(plan, host, &standing))
        return now;
    if (standing.gate.wait_ns == WEIR_UNTIL_RELEASE)
        return wr_gate_paused(wr_host_gate_of(host)) ? WEIR_FOREVER : now;
    int64_t at = now + standing.gate.wait_ns;
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++) {
        int64_t could_at = (host->held >> origin & 1) != 0 ? host->could_at[origin] : now;
        int64_t held_ns = now - could_at, expires_at = could_at + plan->options.max_defer_ns;
        if ((standing.held >> origin & 1) == 0)
            continue;
        *ret_held_ns = held_ns > *ret_held_ns ? held_ns : *ret_held_ns;
        at = expires_at < at ? expires_at : at;
    }
    return at;
}

bool wr_host_is_lost(const struct wr_plan *plan, const struct wr_plan_host *host)
{
    return plan->options.leases && host->lease == 0;
}

void wr_plan_host_lose(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    struct wr_lane *lane = host->lanes, *beside;
    host->lease = 0;
    for (; lane != NULL; lane = beside) {
        beside = lane->beside;
        wr_job_task_ended(lane->job, (int64_t)lane->in_store);
        wr_lane_purge(plan, lane);
        if (lane->in_flight == 0 && !lane->loading)
            wr_lane_free(plan, lane);
    }
    wr_host_settle(plan, host, now);
}

bool wr_plan_host_rests(const struct wr_plan_host *host)
{
    for (const struct wr_lane *lane = host->lanes; lane != NULL; lane = lane->beside)
        if (lane->in_store > 0)
            return false;
    return host->claims == 0 && (host->hop | host->asked | host->away) == 0;
}

void wr_plan_host_owe(struct wr_plan_host *host)
{
    host->claims++;
    host->owed++;
}

void wr_plan_host_pay(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    assert(host->owed > 0 && host->claims > 0);
    host->claims--;
    host->owed--;
    wr_host_settle(plan, host, now);
}

bool wr_plan_host_leave(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    if (!wr_plan_host_rests(host))
        return false;
    wr_host_forget(plan, host, now);
    return true;
}

bool wr_plan_host_flies(const struct wr_plan_host *host)
{
    for (const struct wr_lane *lane = host->lanes; lane != NULL; lane = lane->beside)
        if (lane->in_flight > 0 || lane->loading)
            return true;
    return (host->hop | host->asked | host->away) != 0 || host->errands.count > 0 || host->owed > 0;
}

void wr_plan_host_mark(struct wr_plan_host *host, uint64_t beat, int64_t rests_since)
{
    host->marked = beat;
    host->rested = rests_since;
}

uint64_t wr_plan_host_marked(const struct wr_plan_host *host)
{
    return host->marked;
}

int64_t wr_plan_host_rested(const struct wr_plan_host *host)
{
    return host->rested;
}
