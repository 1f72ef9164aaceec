/* SPDX-License-Identifier: MIT */
/* plan.c - creates and frees a plan, and checks its invariants. */
#include "core/plan/plan.h"

#include "base/error.h"
#include "core/plan/plan_state.h"

#include <stdalign.h>

#define JOBS 64
#define HOSTS 100000
#define TASKS 262144
#define TEXT_BYTES ((size_t)32 << 20)
#define RULES_BYTES ((size_t)64 << 20)
#define KNOWN ((size_t)16 << 20)
#define WINDOW 64
#define IN_FLIGHT 256
#define LOADS 1024
#define HOPS 10
#define REPEATS 3
#define VARIANTS 1000
#define SITEMAPS 10000
#define MAX_DEFER_NS (30 * WEIR_MINUTE)

static uint32_t number_or_default(uint32_t number, uint32_t otherwise)
{
    return number != 0 ? number : otherwise;
}

static int check_plan_options(const struct wr_plan_options *given, struct wr_plan_options *ret_options)
{
    struct wr_plan_options options = *given;
    options.max_jobs = number_or_default(options.max_jobs, JOBS);
    options.max_hosts = number_or_default(options.max_hosts, HOSTS);
    options.max_tasks = number_or_default(options.max_tasks, TASKS);
    options.text_bytes = options.text_bytes != 0 ? options.text_bytes : TEXT_BYTES;
    options.rules_bytes = options.rules_bytes != 0 ? options.rules_bytes : RULES_BYTES;
    options.known_max = options.known_max != 0 ? options.known_max : KNOWN;
    options.window = number_or_default(options.window, WINDOW);
    options.max_loads = number_or_default(options.max_loads, LOADS);
    options.max_in_flight = number_or_default(options.max_in_flight, IN_FLIGHT);
    options.max_hops = number_or_default(options.max_hops, HOPS);
    options.max_repeats = number_or_default(options.max_repeats, REPEATS);
    options.max_variants = number_or_default(options.max_variants, VARIANTS);
    options.max_sitemaps = number_or_default(options.max_sitemaps, SITEMAPS);
    options.delay_factor = options.delay_factor != 0 ? options.delay_factor : 1;
    options.max_defer_ns = options.max_defer_ns != 0 ? options.max_defer_ns : MAX_DEFER_NS;
    if (options.hash_key == NULL || options.allocator == NULL)
        return wr_invalid("a plan needs hash_key and allocator");
    if (options.max_jobs > 4096 || options.max_hosts > 1U << 28 || options.max_tasks > 1U << 28)
        return wr_invalid("at most 4096 jobs, and 2^28 hosts and tasks");
    if (options.window > 4096 || options.max_hops > 255 || options.max_variants > 65534 || options.max_sitemaps > 65534)
        return wr_invalid("window is at most 4096, max_hops 255, max_variants and max_sitemaps 65534");
    if (!(options.delay_factor >= 0.01 && options.delay_factor <= 100))
        return wr_invalid("delay_factor is 0.01 ... 100, or 0 for 1");
    if (options.text_bytes < (size_t)1 << 16)
        return wr_invalid("text_bytes is at least 64 KiB");
    if (options.max_defer_ns < 0 || options.max_defer_ns > WEIR_DURATION_MAX)
        return wr_invalid("max_defer_ns is 0 ... WEIR_DURATION_MAX");
    *ret_options = options;
    return 0;
}

static int make_plan_parts(struct wr_plan *plan)
{
    const struct wr_plan_options *options = &plan->options;
    /* Tasks for robots.txt and errands, which are in no window. */
    uint32_t beside = options->max_in_flight + WR_POOL_BLOCK;
    plan->jobs = wr_alloc_array(options->allocator, options->max_jobs, sizeof *plan->jobs, alignof(struct wr_job));
    int error = plan->jobs == NULL ? WEIR_E_NOMEM : 0;
    if (error == 0)
        error = wr_pool_init(&plan->pool, options->allocator, options->max_tasks + beside,
                             options->text_bytes + (size_t)beside * WR_CELL_TEXT);
    if (error == 0)
        error = wr_pool_reserve(&plan->pool, beside);
    if (error == 0)
        error = wr_known_urls_init(&plan->known, options->allocator, options->known_max);
    if (error == 0)
        error = wr_variants_init(&plan->variants, options->allocator);
    return error;
}

int wr_plan_new(const struct wr_plan_options *given, struct wr_plan **ret_plan)
{
    struct wr_plan_options options;
    int error = check_plan_options(given, &options);
    if (error != 0)
        return error;
    struct wr_plan *plan = wr_alloc(options.allocator, sizeof *plan, alignof(struct wr_plan));
    if (plan == NULL)
        return WEIR_E_NOMEM;
    plan->options = options;
    plan->full_at = -WEIR_DURATION_MAX;
    if (options.statuses != NULL)
        plan->statuses = *options.statuses;
    else
        wr_statuses_init(&plan->statuses, WR_STATUSES_JOBS);
    plan->gate_bytes = wr_round_up(wr_gate_bytes(&options.pace), 8);
    wr_rng_init(&plan->rng, options.seed);
    wr_map_init(&plan->hosts, options.allocator, options.hash_key, options.max_hosts);
    wr_heap_init(&plan->timed, options.allocator, options.max_hosts);
    wr_heap_init(&plan->largest, options.allocator, options.max_hosts);
    wr_map_init(&plan->groups, options.allocator, options.hash_key, options.max_hosts);
    wr_heap_init(&plan->groups_timed, options.allocator, options.max_hosts);
    plan->pool.allocator = plan->known.allocator = plan->variants.allocator = options.allocator;
    error = make_plan_parts(plan);
    if (error != 0) {
        wr_plan_free(plan);
        return error;
    }
    *ret_plan = plan;
    return 0;
}

void wr_plan_free(struct wr_plan *plan)
{
    if (plan == NULL)
        return;
    const weir_allocator *allocator = plan->options.allocator;
    wr_hosts_free(plan);
    wr_groups_free(plan);
    wr_heap_release(&plan->timed);
    wr_heap_release(&plan->largest);
    wr_pool_release(&plan->pool);
    wr_known_urls_release(&plan->known);
    wr_variants_release(&plan->variants);
    wr_free(allocator, plan->jobs, plan->options.max_jobs * sizeof *plan->jobs, alignof(struct wr_job));
    wr_free(allocator, plan, sizeof *plan, alignof(struct wr_plan));
}

void wr_plan_stats_get(const struct wr_plan *plan, struct wr_plan_stats *ret_stats)
{
    *ret_stats = plan->stats;
    ret_stats->hosts = plan->hosts.count;
    ret_stats->tasks = plan->pool.used;
    ret_stats->in_flight = plan->in_flight;
    ret_stats->known = plan->known.count;
    ret_stats->rules_bytes = plan->rules_bytes;
    ret_stats->known_bytes = wr_known_urls_bytes(&plan->known);
    ret_stats->memory_bytes = sizeof *plan + plan->options.max_jobs * sizeof *plan->jobs + wr_map_bytes(&plan->hosts) +
                              wr_map_bytes(&plan->groups) + wr_heap_bytes(&plan->timed) +
                              wr_heap_bytes(&plan->largest) + wr_heap_bytes(&plan->groups_timed) +
                              wr_pool_bytes(&plan->pool) + ret_stats->known_bytes +
                              WR_VARIANT_SLOTS * sizeof(uint64_t) + plan->host_bytes_sum;
}

/* ---- invariants ---- */

/* Sums over all hosts, to compare with the plan's counts. */
struct count {
    uint64_t tasks, in_flight;
};

static bool host_queue_ok(const struct wr_host_queue *host_queue, struct count *count)
{
    uint32_t listed = host_queue->fifo[0].count + host_queue->fifo[1].count + host_queue->delayed.count;
    count->tasks += listed + host_queue->in_flight;
    count->in_flight += host_queue->in_flight;
    return listed == host_queue->queued[0] + host_queue->queued[1] &&
           host_queue->flying.count == host_queue->in_flight &&
           (host_queue->since <= host_queue->in_store || !host_queue->loading);
}

/* Returns true unless the host has work and no list, timer or event would bring it up. */
static bool host_ok(struct wr_plan *plan, struct wr_plan_host *host, struct count *count)
{
    bool waits = wr_list_is_linked(&host->place) || wr_heap_item_is_queued(&host->timer) || host->expiring != 0;
    uint64_t queued = host->errands.count, flies = 0;
    for (const struct wr_host_queue *host_queue = host->host_queues; host_queue != NULL;
         host_queue = host_queue->beside) {
        if (!host_queue_ok(host_queue, count))
            return false;
        bool stands_still = host_queue->job->paused || host_queue->job->ended;
        if (!stands_still && host_queue->in_store > 0 &&
            host_queue->queued[0] + host_queue->queued[1] + host_queue->in_flight == 0 && !host_queue->loading &&
            !wr_list_is_linked(&host_queue->loads) && host_queue->job->next_to_reschedule == NULL)
            return false; /* no LOAD would ever follow for this host queue */
        waits |= wr_list_is_linked(&host_queue->ready) || wr_list_is_linked(&host_queue->loads) || host_queue->loading;
        queued += stands_still ? 0 : host_queue->queued[0] + host_queue->queued[1];
        flies += host_queue->in_flight;
    }
    count->tasks += host->errands.count;
    waits |= queued == 0 || flies > 0 || host->claims > queued || wr_list_is_linked(&host->recalls) ||
             host->recalling || host->lacks_lease || wr_gate_paused(wr_host_gate_of(host));
    return waits && wr_gate_ok(wr_host_gate_of(host), wr_host_pace_options(plan, host)) &&
           wr_robots_lifecycle_ok(&host->robots[0], &plan->options.robots) &&
           wr_robots_lifecycle_ok(&host->robots[1], &plan->options.robots);
}

bool wr_plan_ok(const struct wr_plan *plan)
{
    struct count count = {0, 0};
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(&plan->hosts, &cursor)) != NULL;)
        if (!host_ok((struct wr_plan *)plan, slot->value, &count))
            return false;
    for (size_t cursor = 0; (slot = wr_map_next(&plan->groups, &cursor)) != NULL;)
        if (!wr_group_ok(plan, slot->value))
            return false;
    /* Tasks in flight for robots.txt and errands. */
    uint64_t others = plan->in_flight - count.in_flight;
    return wr_heap_ok(&plan->timed) && wr_heap_ok(&plan->largest) && wr_heap_ok(&plan->groups_timed) &&
           count.in_flight <= plan->in_flight && plan->in_flight <= plan->options.max_in_flight &&
           count.tasks + others == plan->pool.used && plan->hosts.count <= plan->options.max_hosts &&
           plan->rules_bytes <= plan->options.rules_bytes;
}
