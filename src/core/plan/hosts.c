/* SPDX-License-Identifier: MIT */
/* hosts.c - finds, makes and evicts hosts. Evicts one only for room, and only if nothing is
 * lost. */
#include "core/plan/plan_state.h"

#include <stdalign.h>

static char *key_of_host(const struct wr_plan *plan, struct wr_plan_host *host)
{
    return (char *)(host + 1) + plan->gate_bytes;
}

static size_t host_block_bytes(size_t gate_bytes, size_t key_bytes)
{
    return wr_round_up(sizeof(struct wr_plan_host) + gate_bytes + key_bytes, 8);
}

size_t wr_plan_host_bytes(const struct wr_plan_options *options, size_t key_bytes)
{
    /* Bytes of the slots of a host in the map and the heap. */
    size_t elsewhere = sizeof(struct wr_map_slot) * 2 + sizeof(int64_t) * 3;
    return host_block_bytes(wr_gate_bytes(&options->pace), key_bytes) + sizeof(struct wr_host_queue) + elsewhere;
}

struct wr_plan_host *wr_plan_host_find(const struct wr_plan *plan, struct wr_span key)
{
    return wr_map_get(&plan->hosts, key.data, key.bytes);
}

struct wr_span wr_plan_host_key(const struct wr_plan_host *host)
{
    const char *block = (const char *)host;
    size_t at = host->key_at;
    return (struct wr_span){block + at, host->key_bytes};
}

struct wr_gate *wr_plan_host_gate(struct wr_plan_host *host)
{
    return wr_host_gate_of(host);
}

const weir_pace_options *wr_plan_host_options(const struct wr_plan *plan, const struct wr_plan_host *host)
{
    return wr_host_pace_options(plan, host);
}

/* ---- host_queues ---- */

struct wr_host_queue *wr_host_queue_find(const struct wr_plan_host *host, const struct wr_job *job)
{
    struct wr_host_queue *host_queue = host->host_queues;
    while (host_queue != NULL && host_queue->job != job)
        host_queue = host_queue->beside;
    return host_queue;
}

int wr_host_queue_get_or_make(struct wr_plan *plan, struct wr_plan_host *host, struct wr_job *job,
                              struct wr_host_queue **ret_lane)
{
    struct wr_host_queue *host_queue = wr_host_queue_find(host, job);
    if (host_queue == NULL) {
        host_queue = wr_alloc(plan->options.allocator, sizeof *host_queue, alignof(struct wr_host_queue));
        if (host_queue == NULL)
            return WEIR_E_NOMEM;
        host_queue->host = host;
        host_queue->job = job;
        host_queue->fifo[0] = host_queue->fifo[1] = host_queue->delayed = host_queue->flying = WR_TASKS_NONE;
        host_queue->after = WR_PLAN_FRONT;
        host_queue->beside = host->host_queues;
        host->host_queues = host_queue;
        wr_list_push(&job->host_queues, &host_queue->of_job);
        plan->host_bytes_sum += sizeof *host_queue;
    }
    *ret_lane = host_queue;
    return 0;
}

void wr_host_queue_free(struct wr_plan *plan, struct wr_host_queue *host_queue)
{
    struct wr_host_queue **place = &host_queue->host->host_queues;
    while (*place != host_queue)
        place = &(*place)->beside;
    *place = host_queue->beside;
    if (host_queue->job->next_to_reschedule == &host_queue->of_job)
        host_queue->job->next_to_reschedule = host_queue->of_job.next;
    wr_list_remove(&host_queue->ready);
    wr_list_remove(&host_queue->loads);
    wr_list_remove(&host_queue->of_job);
    plan->host_queues -= host_queue->active;
    plan->host_bytes_sum -= sizeof *host_queue;
    wr_free(plan->options.allocator, host_queue, sizeof *host_queue, alignof(struct wr_host_queue));
}

/* ---- hosts ---- */

static size_t rules_bytes(const struct wr_robots *rules)
{
    return rules != NULL ? wr_robots_facts(rules)->block_bytes : 0;
}

static size_t rules_bytes_of(const struct wr_plan_host *host)
{
    return rules_bytes(host->rules[0]) + rules_bytes(host->rules[1]);
}

/* Sets the rules of an origin without an update of the gate. */
static void put_rules(struct wr_plan *plan, struct wr_plan_host *host, bool is_https, struct wr_robots *rules)
{
    plan->rules_bytes += rules_bytes(rules);
    plan->rules_bytes -= rules_bytes(host->rules[is_https]);
    wr_robots_free(host->rules[is_https]);
    host->rules[is_https] = rules;
    wr_heap_remove(&plan->largest, &host->large);
    size_t bytes = rules_bytes_of(host);
    /* If this fails for lack of memory, the rules are just never dropped. */
    if (bytes > WR_RULES_SMALL)
        (void)wr_heap_push(&plan->largest, -(int64_t)bytes, &host->large);
}

void wr_host_set_rules(struct wr_plan *plan, struct wr_plan_host *host, bool is_https, struct wr_robots *rules,
                       int64_t now)
{
    int64_t longest_ns = 0;
    put_rules(plan, host, is_https, rules);
    for (int i = 0; i < WR_ORIGINS; i++) {
        int64_t ns = host->rules[i] != NULL ? wr_robots_interval_ns(host->rules[i]) : 0;
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    longest_ns = (int64_t)((double)longest_ns * plan->options.delay_factor);
    wr_gate_robots_delay(wr_host_gate_of(host), longest_ns, now);
}

int wr_host_set_pace(struct wr_plan *plan, struct wr_plan_host *host, int64_t interval_ns)
{
    size_t bytes = sizeof *host->pace;
    if (interval_ns == 0 && host->pace != NULL) {
        wr_free(plan->options.allocator, host->pace, bytes, alignof(weir_pace_options));
        plan->host_bytes_sum -= bytes;
        host->pace = NULL;
    }
    if (interval_ns == 0)
        return 0;
    if (host->pace == NULL) {
        host->pace = wr_alloc(plan->options.allocator, bytes, alignof(weir_pace_options));
        if (host->pace == NULL)
            return WEIR_E_NOMEM;
        plan->host_bytes_sum += bytes;
    }
    *host->pace = plan->options.pace;
    host->pace->min_interval_ns = interval_ns;
    host->pace->max_rate = 0;
    return 0;
}

/* Frees a host, except its place in the map. */
static void free_host(struct wr_plan *plan, struct wr_plan_host *host)
{
    while (host->host_queues != NULL)
        wr_host_queue_free(plan, host->host_queues);
    wr_host_unschedule(plan, host);
    wr_group_leave(plan, host);
    wr_list_remove(&host->expires);
    wr_list_remove(&host->unsaved);
    wr_list_remove(&host->recalls);
    for (int i = 0; i < WR_ORIGINS; i++)
        put_rules(plan, host, i == 1, NULL);
    plan->stats.lowered -= host->steps > 0;
    (void)wr_host_set_pace(plan, host, 0);
    plan->host_bytes_sum -= host->bytes;
    wr_free(plan->options.allocator, host, host->bytes, 16);
}

void wr_hosts_free(struct wr_plan *plan)
{
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(&plan->hosts, &cursor)) != NULL;)
        free_host(plan, slot->value);
    wr_map_release(&plan->hosts);
}

void wr_host_remove(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    struct wr_span key = wr_plan_host_key(host);
    if (plan->options.host_left != NULL) {
        struct wr_plan_host_report report;
        wr_plan_host_report(plan, host, now, &report);
        plan->options.host_left(plan->options.context, &report);
    }
    wr_map_remove(&plan->hosts, key.data, key.bytes);
    free_host(plan, host);
}

static bool is_forgettable(const struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    return host->lease == 0 && host->claims == 0 && !wr_gate_unsaved(wr_host_gate_of(host)) &&
           wr_gate_forgettable(wr_host_gate_of(host), wr_host_pace_options(plan, host), now) &&
           wr_robots_lifecycle_may_forget(&host->robots[0], now) &&
           wr_robots_lifecycle_may_forget(&host->robots[1], now);
}

/* Evicts the host idle longest of those that may go. Moves the others to the end of the list. */
static bool evict_idle_host(struct wr_plan *plan, int64_t now)
{
    for (int i = 0; i < WR_EVICT_TRIES && plan->idle.first != NULL; i++) {
        struct wr_plan_host *host = WR_LINKED(plan->idle.first, struct wr_plan_host, place);
        if (is_forgettable(plan, host, now)) {
            wr_host_remove(plan, host, now);
            return true;
        }
        wr_list_remove(&host->place);
        wr_list_push(&plan->idle, &host->place);
    }
    return false;
}

/* Drops the rules of a host, which must fetch its robots.txt once more before its next page. Until
 * then its Crawl-delay holds, and so does a time that its server stated. */
static void drop_rules(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    static const struct wr_robots_event dropped = {.kind = WR_ROBOTS_EVENT_DROPPED};
    for (int i = 0; i < WR_ORIGINS; i++) {
        wr_robots_lifecycle_step(&host->robots[i], &plan->options.robots, &dropped, now);
        put_rules(plan, host, i == 1, NULL);
    }
    plan->stats.dropped++;
    wr_host_reschedule(plan, host, now);
}

/* Drops the rules of the host with the most, if they are larger than `bytes`. So an operator with
 * huge files harms only its own hosts. As the new rules are smaller, two hosts never drop each
 * other's in turn. */
static bool drop_largest_rules(struct wr_plan *plan, const struct wr_plan_host *host, size_t bytes, int64_t now)
{
    int64_t key;
    struct wr_heap_item *item = wr_heap_peek(&plan->largest, &key);
    /* With WR_ROBOTS_ON_ERROR_ALLOW, nothing would bind until the next fetch. */
    bool may_drop = plan->options.robots.on_error != WR_ROBOTS_ON_ERROR_ALLOW;
    if (!may_drop || item == NULL || -key <= (int64_t)bytes)
        return false;
    struct wr_plan_host *other = WR_LINKED(item, struct wr_plan_host, large);
    if (other == host)
        return false;
    drop_rules(plan, other, now);
    return true;
}

bool wr_rules_fit(struct wr_plan *plan, const struct wr_plan_host *host, bool is_https, const struct wr_robots *rules,
                  int64_t now)
{
    size_t more = rules_bytes(rules), less = rules_bytes(host->rules[is_https]);
    size_t bytes = rules_bytes_of(host) - less + more;
    while (plan->rules_bytes - less + more > plan->options.rules_bytes)
        if (!evict_idle_host(plan, now) && !drop_largest_rules(plan, host, bytes, now))
            return false;
    return true;
}

int wr_heap_make_room(struct wr_heap *heap, size_t count)
{
    size_t room = heap->room;
    if (count < room)
        return 0;
    room = room == 0 ? 64 : room * 2;
    return wr_heap_reserve(heap, room < heap->max ? room : heap->max);
}

static int make_host(struct wr_plan *plan, struct wr_span key, int64_t now, struct wr_plan_host **ret_host)
{
    size_t bytes = host_block_bytes(plan->gate_bytes, key.bytes);
    struct wr_plan_host *host = wr_alloc(plan->options.allocator, bytes, 16);
    if (host == NULL)
        return WEIR_E_NOMEM;
    host->bytes = (uint32_t)bytes;
    host->figures.closest_ns = WEIR_FOREVER;
    host->key_bytes = (uint16_t)key.bytes;
    host->key_at = (uint32_t)(sizeof *host + plan->gate_bytes);
    host->errands = WR_TASKS_NONE;
    memcpy(key_of_host(plan, host), key.data, key.bytes);
    wr_gate_init(wr_host_gate_of(host), &plan->options.pace, NULL, now, 0);
    int error = wr_heap_make_room(&plan->timed, plan->hosts.count);
    if (error == 0 && plan->options.group_of != NULL)
        error = wr_group_join(plan, host, plan->options.group_of(plan->options.context, key), now);
    if (error == 0)
        error = wr_map_put(&plan->hosts, key_of_host(plan, host), key.bytes, host, NULL);
    if (error != 0) {
        wr_group_leave(plan, host);
        wr_free(plan->options.allocator, host, bytes, 16);
        return error;
    }
    plan->host_bytes_sum += bytes;
    *ret_host = host;
    return 0;
}

int wr_host_get_or_make(struct wr_plan *plan, struct wr_span key, int64_t now, struct wr_plan_host **ret_host)
{
    struct wr_plan_host *host = wr_plan_host_find(plan, key);
    if (host != NULL) {
        *ret_host = host;
        return 0;
    }
    assert(key.bytes <= WEIR_PACE_KEY_MAX);
    if (plan->hosts.count >= plan->options.max_hosts && !evict_idle_host(plan, now))
        return WEIR_E_FULL;
    return make_host(plan, key, now, ret_host);
}

void wr_plan_host_changed(struct wr_plan *plan, struct wr_plan_host *host, int64_t now)
{
    wr_host_reschedule(plan, host, now);
}

/* ---- stored memory ---- */

static void restore_robots(struct wr_plan *plan, struct wr_plan_host *host, const struct wr_plan_stored_host *memory,
                           int64_t now)
{
    for (int i = 0; i < WR_ORIGINS; i++) {
        if (!memory->robots[i].is_known)
            continue;
        if (!wr_rules_fit(plan, host, i == 1, memory->robots[i].rules, now)) {
            wr_robots_free(memory->robots[i].rules);
            continue; /* robots.txt is fetched once more when there is room */
        }
        struct wr_robots_event event = {.kind = WR_ROBOTS_EVENT_LOADED,
                                        .has_rules = memory->robots[i].rules != NULL,
                                        .has_validators = memory->robots[i].has_validators,
                                        .max_age_ns = memory->robots[i].max_age_ns,
                                        .age_ns = memory->robots[i].age_ns};
        wr_robots_lifecycle_step(&host->robots[i], &plan->options.robots, &event, now);
        wr_host_set_rules(plan, host, i == 1, memory->robots[i].rules, now);
    }
}

/* How far the clock of the process that stored a host may be behind ours. Each process compares its
 * clock with that of the store to the second, and misses a difference of less than half a second. A
 * host that has rested did so by the clock of the store alone. */
#define CLOCKS_NS (2 * WEIR_SECOND)

static int64_t wall_clock_of_others(const struct wr_plan *plan, const struct wr_plan_host *host,
                                    const weir_pace_memory *pace, int64_t wall_now)
{
    bool is_over = host->has_rested && pace->retry_wall_at <= wall_now;
    return plan->options.leases && !is_over ? wall_now - CLOCKS_NS : wall_now;
}

/* Restores pause, interval and gate. Values that a user set while the store was asked are newer. */
static void restore_pace(struct wr_plan *plan, struct wr_plan_host *host, const struct wr_plan_stored_host *memory,
                         int64_t now, int64_t wall_now)
{
    struct wr_gate *gate = wr_host_gate_of(host);
    bool is_paused = host->steered ? wr_gate_paused(gate) : memory->is_paused;
    if (!host->steered)
        /* Without memory for it, the host uses the common options. */
        (void)wr_host_set_pace(plan, host, memory->set_interval_ns);
    if (memory->pace != NULL) {
        int64_t saved_at = memory->pace->saved_wall_at;
        int64_t age_ns = saved_at > 0 && saved_at < wall_now ? wall_now - saved_at : 0;
        memset(gate, 0, plan->gate_bytes);
        (host->has_rested ? wr_gate_init_rested
                          : wr_gate_init)(gate, wr_host_pace_options(plan, host), memory->pace, now,
                                          wall_clock_of_others(plan, host, memory->pace, wall_now));
        host->learned_s = (int32_t)((now - age_ns) / WEIR_SECOND);
        host->wait_stated_s = memory->pace->retry_wall_at > wall_now ? host->learned_s : 0;
    }
    wr_gate_pause(gate, is_paused);
}

void wr_plan_restore_host(struct wr_plan *plan, struct wr_plan_host *host, const struct wr_plan_stored_host *memory,
                          int64_t now, int64_t wall_now)
{
    if (host->remembered) {
        for (int i = 0; i < WR_ORIGINS; i++)
            if (memory->robots[i].is_known)
                wr_robots_free(memory->robots[i].rules);
        return;
    }
    host->remembered = true;
    restore_pace(plan, host, memory, now, wall_now);
    restore_robots(plan, host, memory, now);
    if (memory->blocked_by != 0)
        host->blocked_by = memory->blocked_by;
    if (memory->blocked_ns > 0)
        host->blocked_until = now + (memory->blocked_ns < WR_PLAN_BLOCKED_NS ? memory->blocked_ns : WR_PLAN_BLOCKED_NS);
    wr_host_reschedule(plan, host, now);
}

const struct wr_plan_host *wr_plan_next_unsaved_host(struct wr_plan *plan, int64_t now, int64_t wall_now,
                                                     weir_pace_memory *ret_memory)
{
    while (plan->unsaved.first != NULL) {
        struct wr_plan_host *host = WR_LINKED(plan->unsaved.first, struct wr_plan_host, unsaved);
        struct wr_gate *gate = wr_host_gate_of(host);
        wr_list_remove(&host->unsaved);
        if (!wr_gate_unsaved(gate))
            continue;
        wr_gate_remember(gate, wr_host_pace_options(plan, host), now, wall_now, ret_memory);
        wr_gate_saved(gate);
        return host;
    }
    return NULL;
}

const struct wr_robots *wr_plan_host_rules(const struct wr_plan_host *host, bool is_https)
{
    return host->rules[is_https];
}
