/* SPDX-License-Identifier: MIT */
/* group.c - lets several hosts share a gate besides their own: those of a domain, or of an address.
 *
 * A host whose own gate is open, while its group's is closed, waits in the queue of the group. When
 * the group's gate opens, only the first host in the queue is called, so the cost of a start does
 * not depend on the number of waiting hosts. A host that is called and does not start delays the
 * others by at most WR_RETRY_UNSENT_MIN_NS.
 */
#include "core/plan/plan_state.h"

static struct wr_gate *gate_of_group(struct wr_group *group)
{
    return (struct wr_gate *)(group + 1);
}

static char *key_of_group(const struct wr_plan *plan, struct wr_group *group)
{
    return (char *)(group + 1) + plan->gate_bytes;
}

/* Returns true if the group spaces its starts. This never changes, because its gate never has a
 * Crawl-delay. */
static bool group_spaces_starts(const struct wr_plan *plan, struct wr_group *group)
{
    return wr_gate_spaces(gate_of_group(group), &plan->options.pace);
}

/* ---- queue ---- */

static bool is_member_ready(const struct wr_plan *plan, const struct wr_plan_host *host)
{
    bool ready = host->place.list == &plan->urgent;
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL && !ready;
         host_queue = host_queue->beside)
        ready = wr_list_is_linked(&host_queue->ready);
    return ready;
}

weir_decision wr_group_ask(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now)
{
    struct wr_group *group = host->group;
    weir_decision decision = {.verdict = WEIR_GO};
    if (group == NULL)
        return decision;
    decision = wr_gate_ask(gate_of_group(group), &plan->options.pace, now);
    if (decision.verdict == WEIR_GO && group->line.first != NULL && plan->called != host &&
        !is_member_ready(plan, host))
        return (weir_decision){WEIR_WAIT, WEIR_REASON_QUEUE, WEIR_UNTIL_RELEASE};
    return decision;
}

void wr_group_set_waiting(struct wr_plan_host *host, bool waits)
{
    struct wr_group *group = host->group;
    if (group == NULL)
        return;
    if (waits)
        wr_list_push(&group->line, &host->place);
    else if (host->place.list == &group->line)
        wr_list_remove(&host->place);
}

/* Sets the timer at which the first host in the queue is called. */
static void set_group_timer(struct wr_plan *plan, struct wr_group *group, int64_t at, int64_t now)
{
    wr_heap_remove(&plan->groups_timed, &group->timer);
    if (group->line.first != NULL && at != WEIR_FOREVER)
        wr_heap_push(&plan->groups_timed, at > now ? at : now + 1, &group->timer);
}

void wr_group_reschedule(struct wr_plan *plan, struct wr_group *group, int64_t now)
{
    int64_t at = WEIR_FOREVER;
    if (group == NULL || plan->called != NULL)
        return;
    while (group->line.first != NULL && at == WEIR_FOREVER) {
        weir_decision decision = wr_gate_ask(gate_of_group(group), &plan->options.pace, now);
        if (decision.verdict != WEIR_GO) {
            at = decision.wait_ns != WEIR_UNTIL_RELEASE ? now + decision.wait_ns : WEIR_FOREVER;
            break;
        }
        plan->called = WR_LINKED(group->line.first, struct wr_plan_host, place);
        wr_list_remove(&plan->called->place);
        wr_host_reschedule(plan, plan->called, now);
        if (is_member_ready(plan, plan->called))
            at = now + WR_RETRY_UNSENT_MIN_NS;
        plan->called = NULL;
    }
    set_group_timer(plan, group, at, now);
}

bool wr_groups_move_due(struct wr_plan *plan, int64_t now)
{
    int64_t at;
    for (int i = 0; i < WR_DUE_BATCH; i++) {
        struct wr_heap_item *item = wr_heap_peek(&plan->groups_timed, &at);
        if (item == NULL || at > now)
            return false;
        wr_group_reschedule(plan, (struct wr_group *)(void *)item, now);
    }
    return true;
}

/* ---- members ---- */

static void free_group(struct wr_plan *plan, struct wr_group *group)
{
    wr_heap_remove(&plan->groups_timed, &group->timer);
    wr_list_remove(&group->idle);
    plan->host_bytes_sum -= group->bytes;
    wr_free(plan->options.allocator, group, group->bytes, 16);
}

void wr_groups_free(struct wr_plan *plan)
{
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(&plan->groups, &cursor)) != NULL;)
        free_group(plan, slot->value);
    wr_map_release(&plan->groups);
    wr_heap_release(&plan->groups_timed);
}

/* Evicts a group that has no hosts, and that a new one would equal. */
static bool evict_group(struct wr_plan *plan, int64_t now)
{
    for (int i = 0; i < WR_EVICT_TRIES && plan->idle_groups.first != NULL; i++) {
        struct wr_group *group = WR_LINKED(plan->idle_groups.first, struct wr_group, idle);
        wr_list_remove(&group->idle);
        if (wr_gate_forgettable(gate_of_group(group), &plan->options.pace, now)) {
            wr_map_remove(&plan->groups, key_of_group(plan, group), group->key_bytes);
            free_group(plan, group);
            return true;
        }
        wr_list_push(&plan->idle_groups, &group->idle);
    }
    return false;
}

static int make_group(struct wr_plan *plan, struct wr_span key, int64_t now, struct wr_group **ret_group)
{
    if (plan->groups.count >= plan->options.max_hosts && !evict_group(plan, now))
        return WEIR_E_FULL;
    size_t bytes = wr_round_up(sizeof(struct wr_group) + plan->gate_bytes + key.bytes, 8);
    struct wr_group *group = wr_alloc(plan->options.allocator, bytes, 16);
    if (group == NULL)
        return WEIR_E_NOMEM;
    group->bytes = (uint32_t)bytes;
    group->key_bytes = (uint16_t)key.bytes;
    memcpy(key_of_group(plan, group), key.data, key.bytes);
    wr_gate_init(gate_of_group(group), &plan->options.pace, NULL, now, 0);
    int error = wr_heap_make_room(&plan->groups_timed, plan->groups.count);
    if (error == 0)
        error = wr_map_put(&plan->groups, key_of_group(plan, group), key.bytes, group, NULL);
    if (error != 0) {
        wr_free(plan->options.allocator, group, bytes, 16);
        return error;
    }
    plan->host_bytes_sum += bytes;
    *ret_group = group;
    return 0;
}

void wr_group_leave(struct wr_plan *plan, struct wr_plan_host *host)
{
    struct wr_group *group = host->group;
    if (group == NULL)
        return;
    wr_group_set_waiting(host, false);
    host->group = NULL;
    if (--group->members == 0)
        wr_list_push(&plan->idle_groups, &group->idle);
}

int wr_group_join(struct wr_plan *plan, struct wr_plan_host *host, struct wr_span key, int64_t now)
{
    struct wr_group *group = key.bytes > 0 ? wr_map_get(&plan->groups, key.data, key.bytes) : NULL;
    if (key.bytes > 0 && group == NULL) {
        int error = make_group(plan, key, now, &group);
        if (error != 0)
            return error;
    }
    wr_group_leave(plan, host);
    if (group == NULL)
        return 0;
    host->group = group;
    group->members++;
    wr_list_remove(&group->idle);
    return 0;
}

int wr_plan_host_group(struct wr_plan *plan, struct wr_plan_host *host, struct wr_span key, int64_t now)
{
    struct wr_span is = wr_plan_host_group_key(plan, host);
    struct wr_group *before = host->group;
    if (key.bytes > WEIR_PACE_KEY_MAX)
        return WEIR_E_INVAL;
    bool is_same = key.bytes == is.bytes && (is.bytes == 0 || memcmp(key.data, is.data, is.bytes) == 0);
    if (is_same || host->grouped > 0)
        return 0;
    int error = wr_group_join(plan, host, key, now);
    if (error == 0) {
        wr_host_reschedule(plan, host, now);
        wr_group_reschedule(plan, before, now);
    }
    return error;
}

struct wr_span wr_plan_host_group_key(const struct wr_plan *plan, const struct wr_plan_host *host)
{
    if (host->group == NULL)
        return (struct wr_span){NULL, 0};
    return (struct wr_span){key_of_group(plan, host->group), host->group->key_bytes};
}

bool wr_group_ok(const struct wr_plan *plan, struct wr_group *group)
{
    return wr_gate_ok(gate_of_group(group), &plan->options.pace) &&
           (group->members > 0) != wr_list_is_linked(&group->idle) &&
           (group->line.first != NULL || !wr_heap_item_is_queued(&group->timer));
}

/* ---- requests ---- */

static struct wr_gate_start group_gate_start(const struct wr_task *task)
{
    return (struct wr_gate_start){task->group_seq, task->group_in_flight, task->at};
}

static void set_group_gate_start(struct wr_task *task, struct wr_gate_start start)
{
    task->group_seq = start.seq;
    task->group_in_flight = wr_task_clamp(start.in_flight);
}

void wr_group_reserve(struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now)
{
    struct wr_group *group = host->group;
    if (group == NULL)
        return;
    task->flags |= WR_TASK_GROUPED;
    host->grouped++;
    task->group_seq = wr_gate_reserve(gate_of_group(group), &plan->options.pace, now);
    if (!group_spaces_starts(plan, group))
        set_group_gate_start(task, wr_gate_sent(gate_of_group(group), &plan->options.pace, task->group_seq, now));
}

weir_decision wr_group_may_send(struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now)
{
    struct wr_group *group = host->group;
    if (group == NULL)
        return (weir_decision){.verdict = WEIR_GO};
    /* The request started before its host joined the group. */
    if ((task->flags & WR_TASK_GROUPED) == 0) {
        weir_decision decision = wr_gate_ask(gate_of_group(group), &plan->options.pace, now);
        if (decision.verdict == WEIR_GO)
            wr_group_reserve(plan, host, task, now);
        return decision;
    }
    if (!group_spaces_starts(plan, group))
        return wr_gate_ask_unwritten(gate_of_group(group), &plan->options.pace, now);
    return wr_gate_ask_again(gate_of_group(group), &plan->options.pace, task->group_seq, now);
}

void wr_group_sent(const struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now)
{
    struct wr_group *group = host->group;
    if ((task->flags & WR_TASK_GROUPED) == 0)
        return;
    if (group_spaces_starts(plan, group))
        set_group_gate_start(task, wr_gate_sent(gate_of_group(group), &plan->options.pace, task->group_seq, now));
    else
        wr_gate_written(gate_of_group(group), &plan->options.pace, now);
}

static void uncount_grouped_task(struct wr_plan_host *host, struct wr_task *task)
{
    task->flags &= (uint8_t)~WR_TASK_GROUPED;
    host->grouped--;
}

void wr_group_drop(const struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task, int64_t now)
{
    struct wr_group *group = host->group;
    struct wr_gate_start start = group_gate_start(task);
    if ((task->flags & WR_TASK_GROUPED) == 0)
        return;
    if ((task->flags & WR_TASK_SENT) != 0 || !group_spaces_starts(plan, group))
        wr_gate_drop(gate_of_group(group), &plan->options.pace, &start, now);
    else
        wr_gate_give(gate_of_group(group), &plan->options.pace, start.seq, now);
    uncount_grouped_task(host, task);
}

void wr_group_tell(const struct wr_plan *plan, struct wr_plan_host *host, struct wr_task *task,
                   const weir_outcome *outcome, double unit, int64_t now)
{
    struct wr_gate_start start = group_gate_start(task);
    if ((task->flags & WR_TASK_GROUPED) == 0)
        return;
    wr_gate_tell(gate_of_group(host->group), &plan->options.pace, &start, outcome, now, unit);
    uncount_grouped_task(host, task);
}

void wr_group_tell_head(const struct wr_plan *plan, struct wr_plan_host *host, const struct wr_task *task,
                        const weir_outcome *outcome, double unit, int64_t now)
{
    struct wr_gate_start start = group_gate_start(task);
    if ((task->flags & WR_TASK_GROUPED) != 0)
        wr_gate_tell_head(gate_of_group(host->group), &plan->options.pace, &start, outcome, now, unit);
}

struct wr_gate *wr_group_gate(const struct wr_plan_host *host)
{
    return host->group != NULL ? gate_of_group(host->group) : NULL;
}

int64_t wr_group_delay(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now)
{
    return host->group != NULL ? wr_gate_delay(gate_of_group(host->group), &plan->options.pace, now) : 0;
}
