/* SPDX-License-Identifier: MIT */
/* crawl_stats.c - statistics of a crawl, and a report of what each host was asked. */
#include "base/alloc.h"
#include "crawl/engine/engine_state.h"

#include <math.h>
#include <stdlib.h>

/* ---- statistics ---- */

static uint64_t sum_loop_counts(const struct wr_engine *engine, size_t offset)
{
    uint64_t total = 0;
    for (uint32_t i = 0; engine->loops != NULL && i < engine->loop_count; i++) {
        const char *counts = (const char *)&engine->loops[i].counts;
        total += atomic_load_explicit((const _Atomic uint64_t *)(const void *)(counts + offset), memory_order_relaxed);
    }
    return total;
}

#define SUM(what) sum_loop_counts(engine, offsetof(struct wr_crawl_counts, what))

void wr_engine_stats_get(struct wr_engine *engine, struct wr_engine_stats *ret_stats)
{
    int phase = atomic_load(&engine->phase);
    struct wr_engine_stats stats = {
        .pages = SUM(pages),
        .fetched = SUM(fetched),
        .unchanged = SUM(unchanged),
        .failed = SUM(failed),
        .denied = SUM(denied),
        .beyond = SUM(beyond) + atomic_load(&engine->beyond),
        .deeper = SUM(deeper),
        .unread = SUM(unread),
        .blocked = SUM(blocked),
        .blocked_hosts = atomic_load(&engine->blocked_hosts),
        .redirects = SUM(redirects),
        .requests = SUM(requests),
        .robots = SUM(robots),
        .rejected = SUM(rejected),
        .retries = SUM(retries),
        .overrides = SUM(overrides),
        .bytes = SUM(bytes),
        .accepted = engine->accepted_before + SUM(accepted),
        .in_flight = SUM(in_flight),
        .hosts = SUM(hosts),
        .connections = SUM(connections),
        .memory_bytes = (size_t)SUM(memory_bytes),
        .robots_bytes = atomic_load(&engine->robots_held),
        .elapsed_ns = weir_clock_now(engine->clock) - engine->began_at,
        .is_shared = engine->is_shared,
        .is_seeding = !atomic_load(&engine->is_seeded),
        .is_draining = phase == WR_PHASE_DRAINS || phase == WR_PHASE_STOPS,
        .is_answered = atomic_load(&engine->answered_at) != 0,
        .is_paused = atomic_load(&engine->is_store_paused),
    };
    uint64_t ended = engine->ended_before + stats.pages;
    stats.queued = stats.accepted > ended ? stats.accepted - ended : 0;
    if (engine->is_shared) /* other processes find and end URLs as well */
        stats.queued = atomic_load(&engine->queued_in_all);
    stats.has_no_hosts = engine->is_shared && atomic_load(&engine->leases) == 0 && stats.queued > 0;
    (void)pthread_mutex_lock(&engine->lock);
    memcpy(stats.pause_why, engine->pause_why, sizeof stats.pause_why);
    (void)pthread_mutex_unlock(&engine->lock);
    *ret_stats = stats;
}

/* ---- hosts ---- */

struct reported_host {
    struct wr_engine_host_report told; /* `told.key` points to `key` */
    int64_t first_at, last_at;
    size_t key_bytes;
    char key[];
};

struct wr_host_reports {
    pthread_mutex_t lock;
    struct wr_map hosts;
    uint64_t left_out;
};

int wr_host_reports_new(struct wr_engine *engine)
{
    struct wr_host_reports *tally = wr_alloc(engine->allocator, sizeof *tally, _Alignof(struct wr_host_reports));
    if (tally == NULL)
        return WEIR_E_NOMEM;
    (void)pthread_mutex_init(&tally->lock, NULL);
    wr_map_init(&tally->hosts, engine->allocator, &engine->hash_key, WR_ENGINE_REPORT_MAX);
    engine->tally = tally;
    return 0;
}

static struct reported_host *find_reported_host(struct wr_engine *engine, struct wr_span key)
{
    struct wr_host_reports *tally = engine->tally;
    struct reported_host *host = wr_map_get(&tally->hosts, key.data, key.bytes);
    if (host != NULL)
        return host;
    host = wr_alloc(engine->allocator, sizeof *host + key.bytes, _Alignof(struct reported_host));
    if (host == NULL)
        return NULL;
    host->key_bytes = key.bytes;
    memcpy(host->key, key.data, key.bytes);
    host->told.key = (struct wr_span){host->key, key.bytes};
    if (wr_map_put(&tally->hosts, host->key, key.bytes, host, NULL) == 0)
        return host;
    wr_free(engine->allocator, host, sizeof *host + key.bytes, _Alignof(struct reported_host));
    return NULL;
}

static int64_t closest_of(int64_t known_ns, int64_t ns)
{
    return ns == WEIR_FOREVER || (known_ns != 0 && known_ns < ns) ? known_ns : ns;
}

static void add_host_report(struct reported_host *host, const struct wr_plan_host_report *report)
{
    struct wr_engine_host_report *told = &host->told;
    if (told->requests == 0)
        host->first_at = report->first_at;
    host->last_at = report->last_at;
    told->requests += report->requests;
    told->ok += report->successes;
    told->rejected += report->rejected;
    told->failed += report->failures;
    told->retries += report->retries;
    told->hasty += report->hasty;
    told->bytes += report->bytes;
    told->robots_delay_ns = report->robots_delay_ns;
    told->closest_ns = closest_of(told->closest_ns, report->closest_ns);
    told->allowed_rate =
        report->now.delay_ns > 0 ? (double)WEIR_SECOND / (double)report->now.delay_ns : (double)INFINITY;
    told->interval_ns = report->now.delay_ns;
    for (size_t i = 0; i <= WEIR_REASON_QUEUE; i++)
        told->waited_ns[i] += (int64_t)report->waited.ms[i] * WEIR_MILLISECOND;
    int64_t over_ns = host->last_at - host->first_at;
    told->reached_rate =
        told->requests > 1 && over_ns > 0 ? (double)(told->requests - 1) * (double)WEIR_SECOND / (double)over_ns : 0;
}

void wr_host_reports_add(struct wr_engine *engine, const struct wr_plan_host_report *report)
{
    struct wr_host_reports *tally = engine->tally;
    if (report->requests == 0)
        return;
    (void)pthread_mutex_lock(&tally->lock);
    struct reported_host *host = find_reported_host(engine, report->key);
    if (host != NULL)
        add_host_report(host, report);
    else
        tally->left_out++;
    (void)pthread_mutex_unlock(&tally->lock);
}

static int more_requests_first(const void *a, const void *b)
{
    const struct reported_host *one = *(struct reported_host *const *)a, *other = *(struct reported_host *const *)b;
    if (one->told.requests != other->told.requests)
        return one->told.requests > other->told.requests ? -1 : 1;
    size_t bytes = one->key_bytes < other->key_bytes ? one->key_bytes : other->key_bytes;
    int order = memcmp(one->key, other->key, bytes);
    return order != 0 ? order : (one->key_bytes > other->key_bytes) - (one->key_bytes < other->key_bytes);
}

uint64_t wr_engine_report(struct wr_engine *engine, wr_engine_on_host *tell, void *context)
{
    const struct wr_map_slot *slot;
    struct wr_host_reports *tally = engine->tally;
    size_t count = tally->hosts.count, filled = 0;
    void **list = calloc(count + 1, sizeof(void *));
    if (list == NULL)
        return tally->left_out + count;
    for (size_t cursor = 0; (slot = wr_map_next(&tally->hosts, &cursor)) != NULL;)
        list[filled++] = slot->value;
    qsort(list, filled, sizeof(void *), more_requests_first);
    for (size_t i = 0; i < filled; i++)
        tell(context, &((const struct reported_host *)list[i])->told);
    free(list);
    return tally->left_out;
}

void wr_engine_report_statuses(const struct wr_engine *engine, uint64_t ret_counts[WR_STATUSES_COUNT])
{
    memset(ret_counts, 0, WR_STATUSES_COUNT * sizeof ret_counts[0]);
    for (uint32_t i = 0; engine->loops != NULL && i < engine->loop_count; i++)
        for (size_t status = 0; status < WR_STATUSES_COUNT; status++)
            ret_counts[status] += engine->loops[i].counts.statuses[status];
}

void wr_host_reports_free(struct wr_engine *engine)
{
    const struct wr_map_slot *slot;
    struct wr_host_reports *tally = engine->tally;
    if (tally == NULL)
        return;
    for (size_t cursor = 0; (slot = wr_map_next(&tally->hosts, &cursor)) != NULL;) {
        struct reported_host *host = slot->value;
        wr_free(engine->allocator, host, sizeof *host + host->key_bytes, _Alignof(struct reported_host));
    }
    wr_map_release(&tally->hosts);
    (void)pthread_mutex_destroy(&tally->lock);
    wr_free(engine->allocator, tally, sizeof *tally, _Alignof(struct wr_host_reports));
    engine->tally = NULL;
}
