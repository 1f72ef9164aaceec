/* SPDX-License-Identifier: MIT */
/* lease.c - handles hosts that this plan holds by a lease, because other processes share them. */
#include "core/plan/plan_state.h"

void wr_plan_host_lease(struct wr_plan *plan, struct wr_plan_host *host, uint64_t token, int64_t until, int64_t now)
{
    host->lease = token;
    host->leased_until = until;
    wr_host_reschedule(plan, host, now);
}

uint64_t wr_plan_host_lease_token(const struct wr_plan_host *host)
{
    return host->lease;
}

bool wr_host_is_leased(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now)
{
    return !plan->options.leases || (host->lease != 0 && now < host->leased_until && !host->yields);
}

void wr_plan_host_yield_lease(struct wr_plan *plan, struct wr_plan_host *host, bool yields, int64_t now)
{
    /* Errands are first, or they would wait here forever. */
    host->yields = yields && host->errands.count == 0;
    wr_host_reschedule(plan, host, now);
}

bool wr_plan_host_yields_lease(const struct wr_plan_host *host)
{
    return host->yields;
}

void wr_plan_host_was_released(struct wr_plan_host *host, int64_t held_ns)
{
    host->has_rested = true;
    host->held_ns = held_ns;
}

/* Returns true if a release would lose counts in progress: failures of its robots.txt, or responses
 * that make a job hopeless. The next process that leases the host starts both from 0. */
static bool release_loses_counts(const struct wr_plan *plan, const struct wr_plan_host *host,
                                 const struct wr_host_readiness *standing)
{
    bool is = plan->options.pace.cancel_after > 0;
    for (uint32_t origin = 0; origin < WR_ORIGINS; origin++)
        is |= (standing->wanted & ~standing->open) >> origin & 1 && host->robots[origin].failures > 0 &&
              !host->robots[origin].named_time;
    return is;
}

int64_t wr_plan_host_releasable_until(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now,
                                      int64_t *ret_held_ns)
{
    struct wr_host_readiness standing;
    *ret_held_ns = 0;
    if (!host->remembered || host->lacks_lease || host->expiring != 0 || wr_plan_host_is_busy(host) ||
        wr_host_is_blocked(host, now))
        return now;
    wr_host_readiness_of(plan, host, now, &standing);
    bool wants = standing.urgent || standing.wanted != 0;
    if (!wants || standing.gate.verdict == WEIR_GO || standing.lines || release_loses_counts(plan, host, &standing))
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

bool wr_host_lacks_lease(const struct wr_plan *plan, const struct wr_plan_host *host)
{
    return plan->options.leases && host->lease == 0;
}

void wr_plan_host_lease_lost(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    struct wr_host_queue *host_queue = host->host_queues, *beside;
    host->lease = 0;
    for (; host_queue != NULL; host_queue = beside) {
        beside = host_queue->beside;
        wr_job_task_ended(host_queue->job, (int64_t)host_queue->in_store);
        wr_host_queue_drop_tasks(plan, host_queue);
        if (host_queue->in_flight == 0 && !host_queue->loading)
            wr_host_queue_free(plan, host_queue);
    }
    wr_host_reschedule(plan, host, now);
}

bool wr_plan_host_is_idle(const struct wr_plan_host *host)
{
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside)
        if (host_queue->in_store > 0)
            return false;
    return host->claims == 0 && (host->hop | host->asked | host->away) == 0;
}

void wr_plan_host_begin_post(struct wr_plan_host *host)
{
    host->claims++;
    host->owed++;
}

void wr_plan_host_end_post(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    assert(host->owed > 0 && host->claims > 0);
    host->claims--;
    host->owed--;
    wr_host_reschedule(plan, host, now);
}

bool wr_plan_host_remove(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    if (!wr_plan_host_is_idle(host))
        return false;
    wr_host_remove(plan, host, now);
    return true;
}

bool wr_plan_host_is_busy(const struct wr_plan_host *host)
{
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside)
        if (host_queue->in_flight > 0 || host_queue->loading)
            return true;
    return (host->hop | host->asked | host->away) != 0 || host->errands.count > 0 || host->owed > 0;
}

void wr_plan_host_set_lease_seen(struct wr_plan_host *host, uint64_t beat, int64_t rests_since)
{
    host->marked = beat;
    host->rested = rests_since;
}

uint64_t wr_plan_host_lease_beat(const struct wr_plan_host *host)
{
    return host->marked;
}

int64_t wr_plan_host_idle_since(const struct wr_plan_host *host)
{
    return host->rested;
}
