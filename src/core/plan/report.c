/* SPDX-License-Identifier: MIT */
/* report.c - measures how long hosts were held and why, and counts the requests sent to them. */
#include "core/plan/plan_state.h"

static void add_saturating(uint32_t *ms, uint64_t more)
{
    *ms = more < UINT32_MAX - *ms ? *ms + (uint32_t)more : UINT32_MAX;
}

/* ---- waiting ---- */

/* Returns why a host that could start a request did not. */
static weir_reason reason_while_ready(const struct wr_plan *plan, const struct wr_plan_host *host)
{
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside)
        if (host_queue->job->limited_at >= host->held_since)
            return WEIR_REASON_JOB_LIMIT;
    return plan->full_at >= host->held_since ? WEIR_REASON_GLOBAL : WEIR_REASON_QUEUE;
}

/* Books the time since the last call, in whole ms, to the current reason; the rest to the next
 * one. */
static void book_held_time(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    int64_t ms = now > host->held_since ? (now - host->held_since) / WEIR_MILLISECOND : 0;
    if (host->held_by == WEIR_REASON_NONE || ms == 0)
        return;
    weir_reason reason = host->held_by == WR_HELD_READY ? reason_while_ready(plan, host) : (weir_reason)host->held_by;
    add_saturating(&host->waited.ms[reason], (uint64_t)ms);
    host->held_since += ms * WEIR_MILLISECOND;
}

void wr_host_set_held_by(const struct wr_plan *plan, struct wr_plan_host *host, uint8_t by, int64_t now)
{
    if (by == host->held_by)
        return;
    if (host->held_by == WEIR_REASON_NONE)
        host->held_since = now;
    book_held_time(plan, host, now);
    host->held_by = by;
}

struct wr_plan_waited wr_host_waited(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    struct wr_plan_waited waited;
    book_held_time(plan, host, now);
    for (int i = 0; i < WR_PLAN_REASONS; i++)
        waited.ms[i] = host->waited.ms[i] - host->taken.ms[i];
    return waited;
}

struct wr_plan_waited wr_task_waited(const struct wr_plan *plan, struct wr_plan_host *host, const struct wr_task *task,
                                     int64_t now)
{
    uint32_t in_all = (uint32_t)(now / WEIR_MILLISECOND) - task->seq;
    uint32_t backoff = task->at > 0 ? (uint32_t)(task->at / WEIR_MILLISECOND) - task->seq : 0;
    uint64_t in_front = 0;
    struct wr_plan_waited waited = wr_host_waited(plan, host, now);
    host->taken = host->waited;
    for (int i = 0; i < WR_PLAN_REASONS; i++)
        in_front += waited.ms[i];
    if (in_front < in_all) { /* other tasks were before it for part of the time */
        uint32_t behind = in_all - (uint32_t)in_front;
        backoff = backoff < behind ? backoff : behind;
        add_saturating(&waited.ms[WEIR_REASON_RETRY], backoff);
        add_saturating(&waited.ms[WEIR_REASON_QUEUE], behind - backoff);
    }
    return waited;
}

/* ---- counts ---- */

static uint32_t slice_at(int64_t now)
{
    return (uint32_t)(now / WR_PLAN_SLICE_NS);
}

static void count_start(struct wr_host_figures *figures, int64_t now)
{
    uint32_t slice = slice_at(now), passed = slice - figures->slice;
    uint16_t *starts = &figures->starts[slice % WR_PLAN_SLICES];
    for (uint32_t i = 0; i < passed && i < WR_PLAN_SLICES; i++)
        figures->starts[(slice - i) % WR_PLAN_SLICES] = 0;
    figures->slice = slice;
    *starts = (uint16_t)(*starts + (*starts < UINT16_MAX));
}

void wr_host_figures_recent(const struct wr_host_figures *figures, int64_t now, uint16_t ret_starts[WR_PLAN_SLICES])
{
    uint32_t slice = slice_at(now);
    for (uint32_t i = 0; i < WR_PLAN_SLICES; i++) {
        uint32_t then = slice - i, age = figures->slice - then; /* huge if `then` is later */
        ret_starts[WR_PLAN_SLICES - 1 - i] = age < WR_PLAN_SLICES ? figures->starts[then % WR_PLAN_SLICES] : 0;
    }
}

bool wr_host_figures_sent(struct wr_host_figures *figures, int64_t least_ns, int64_t now)
{
    count_start(figures, now);
    int64_t gap_ns = now - figures->last_at;
    bool is_hasty = figures->requests > 0 && gap_ns < least_ns;
    if (figures->requests == 0)
        figures->first_at = now;
    else if (gap_ns < figures->closest_ns)
        figures->closest_ns = gap_ns;
    figures->hasty += is_hasty;
    figures->last_at = now;
    figures->requests++;
    return is_hasty;
}

void wr_host_figures_finished(struct wr_host_figures *figures, int status, bool is_rejection)
{
    bool is_success = status >= 200 && status <= 399;
    figures->successes += is_success;
    figures->rejected += is_rejection;
    figures->failures += !is_success && !is_rejection;
}

void wr_host_note_gate_changes(const struct wr_plan *plan, struct wr_plan_host *host, uint32_t news, int status,
                               int64_t now)
{
    int32_t now_s = (int32_t)(now / WEIR_SECOND);
    if (news == 0)
        return;
    host->learned_s = (news & WR_GATE_CHANGE_DELAY) != 0 ? now_s : host->learned_s;
    host->wait_stated_s = (news & WR_GATE_CHANGE_RETRY_AFTER) != 0 ? now_s : host->wait_stated_s;
    host->breaker_changed_s = (news & WR_GATE_CHANGE_BREAKER) != 0 ? now_s : host->breaker_changed_s;
    if (plan->options.news != NULL)
        plan->options.news(plan->options.context, host, news, status, now);
}

void wr_plan_host_report(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now,
                         struct wr_plan_host_report *ret_report)
{
    const struct wr_host_figures *figures = &host->figures;
    struct wr_plan_host copy = *host; /* in a copy, so that the current wait is not booked */
    book_held_time(plan, &copy, now);
    struct wr_span key = wr_plan_host_key(host);
    *ret_report = (struct wr_plan_host_report){.key = key,
                                               .requests = figures->requests,
                                               .successes = figures->successes,
                                               .rejected = figures->rejected,
                                               .failures = figures->failures,
                                               .retries = figures->retries,
                                               .hasty = figures->hasty,
                                               .bytes = figures->bytes,
                                               .closest_ns = figures->closest_ns,
                                               .first_at = figures->first_at,
                                               .last_at = figures->last_at,
                                               .now = {.key = key.data, .key_bytes = key.bytes},
                                               .waited = copy.waited};
    const struct wr_gate *gate = wr_host_gate_of((struct wr_plan_host *)host);
    weir_pace_memory memory;
    wr_gate_inspect(gate, wr_host_pace_options(plan, host), now, &ret_report->now);
    wr_gate_remember(gate, wr_host_pace_options(plan, host), now, 0, &memory);
    ret_report->robots_delay_ns = memory.robots_delay_ns;
}

size_t wr_plan_host_slots(const struct wr_plan *plan)
{
    return plan->hosts.now.room + plan->hosts.moved;
}

struct wr_plan_host *wr_plan_host_next(const struct wr_plan *plan, size_t *cursor)
{
    const struct wr_map_slot *slot = wr_map_next(&plan->hosts, cursor);
    return slot != NULL ? slot->value : NULL;
}
