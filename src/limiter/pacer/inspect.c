/* SPDX-License-Identifier: MIT */
/* inspect.c - Inspects a pacer: one host, the most active hosts, and totals. */
#include "limiter/pacer/delay.h"
#include "limiter/pacer/pacer.h"

#define TOP_DEFAULT 10

/* ---- one host ---- */

static bool is_pacing_off(const weir_pacer *pacer)
{
    return atomic_load_explicit(&pacer->off, memory_order_relaxed);
}

/* Fills in the entry of a host. The lock is held. The entry points to the caller's key. */
static void inspect_entry(const struct wr_visit *visit, const char *key, size_t key_bytes, weir_pace_entry *ret_entry,
                          weir_pace_bound *ret_bounds, size_t *ret_count)
{
    struct wr_locked_host seen = wr_locked_host_of(visit->table, visit->shard, visit->entry, visit->now);
    const struct wr_queue *line = wr_key_queue(visit->table, visit->shard, visit->entry);
    *ret_entry = (weir_pace_entry){.key = key, .key_bytes = key_bytes, .waiters = line != NULL ? line->depth : 0};
    wr_gate_inspect(seen.gate, seen.pace, seen.now, ret_entry);
    if (wr_pacer_host_is_remote(seen.host, seen.now))
        ret_entry->decision = wr_pacer_host_ask(seen.host, seen.pace, seen.now);
    if (ret_bounds != NULL)
        *ret_count = wr_gate_bounds(seen.gate, seen.pace, seen.now, ret_bounds);
}

static bool inspect_host(weir_pacer *pacer, const char *key, size_t key_bytes, weir_pace_entry *ret_entry,
                         weir_pace_bound *ret_bounds, size_t *ret_count)
{
    struct wr_key_query query = wr_table_query(pacer->table, key, key_bytes, 1, wr_clock_now(pacer->clock));
    struct wr_visit visit = wr_table_begin_visit(pacer->table, &query);
    if (visit.entry != NULL)
        inspect_entry(&visit, key, key_bytes, ret_entry, ret_bounds, ret_count);
    wr_lock_give(&visit.shard->lock);
    return visit.entry != NULL;
}

int weir_pacer_inspect(weir_pacer *pacer, const char *key, size_t key_bytes, weir_pace_entry *ret_entry,
                       weir_pace_bound *ret_bounds, size_t *ret_count)
{
    int bad = wr_pacer_check(pacer, key, key_bytes);
    if (bad != 0)
        return bad;
    if (ret_entry == NULL)
        return wr_invalid("ret_entry is NULL; it must point to where the host goes");
    if ((ret_bounds == NULL) != (ret_count == NULL))
        return wr_invalid("ret_bounds and ret_count go together: both or none");
    bool found = !is_pacing_off(pacer) && inspect_host(pacer, key, key_bytes, ret_entry, ret_bounds, ret_count);
    return found ? 0 : wr_failed(WEIR_E_ABSENT);
}

int64_t wr_pacer_delay(weir_pacer *pacer, const char *key, size_t key_bytes)
{
    int64_t delay_ns = 0;
    if (is_pacing_off(pacer))
        return 0;
    struct wr_key_query query = wr_table_query(pacer->table, key, key_bytes, 1, wr_clock_now(pacer->clock));
    struct wr_visit visit = wr_table_begin_visit(pacer->table, &query);
    if (visit.entry != NULL) {
        struct wr_locked_host seen = wr_locked_host_of(pacer->table, visit.shard, visit.entry, visit.now);
        delay_ns = wr_gate_delay(seen.gate, seen.pace, seen.now);
    }
    wr_lock_give(&visit.shard->lock);
    return delay_ns;
}

uint32_t weir_pacer_concurrency(weir_pacer *pacer, const char *key, size_t key_bytes, uint32_t concurrency)
{
    if (wr_pacer_check(pacer, key, key_bytes) != 0 || is_pacing_off(pacer))
        return concurrency;
    struct wr_key_query query = wr_table_query(pacer->table, key, key_bytes, 1, wr_clock_now(pacer->clock));
    struct wr_visit visit = wr_table_begin_visit(pacer->table, &query);
    if (visit.entry != NULL) {
        struct wr_locked_host seen = wr_locked_host_of(pacer->table, visit.shard, visit.entry, visit.now);
        weir_pace_entry entry = {.key = NULL};
        wr_gate_inspect(seen.gate, seen.pace, seen.now, &entry);
        int64_t above_ns = entry.delay_ns - seen.pace->base_delay_ns;
        int64_t steps = above_ns > 0 ? above_ns / seen.pace->concurrency_step_ns : 0;
        concurrency = steps < concurrency ? concurrency - (uint32_t)steps : 1;
        concurrency = entry.cap < concurrency ? entry.cap : concurrency;
    }
    wr_lock_give(&visit.shard->lock);
    return concurrency > 0 ? concurrency : 1;
}

/* ---- the most active hosts ---- */

/* A result in one block: its size, the entries, then their keys. */
struct top_hosts {
    size_t bytes;
    weir_pace_entry entries[];
};

static struct top_hosts *make_top_hosts(const weir_pacer *pacer, const weir_table_entry *rows, size_t count)
{
    size_t bytes = sizeof(struct top_hosts) + count * sizeof(weir_pace_entry);
    for (size_t i = 0; i < count; i++)
        bytes += rows[i].key_bytes;
    struct top_hosts *answer = wr_alloc(pacer->allocator, bytes, _Alignof(struct top_hosts));
    if (answer != NULL)
        answer->bytes = bytes;
    return answer;
}

/* Inspects the hosts of these rows, except forgotten ones. Returns their number. */
static size_t inspect_rows(weir_pacer *pacer, struct top_hosts *answer, const weir_table_entry *rows, size_t count)
{
    char *key = (char *)&answer->entries[count];
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(key, rows[i].key, rows[i].key_bytes);
        found += inspect_host(pacer, key, rows[i].key_bytes, &answer->entries[found], NULL, NULL);
        key += rows[i].key_bytes;
    }
    return found;
}

int weir_pacer_top(weir_pacer *pacer, size_t most, weir_pace_entry **ret_entries, size_t *ret_count)
{
    weir_table_entry *rows;
    size_t count;
    if (pacer == NULL)
        return wr_invalid("pacer is NULL; make one with weir_pacer_new");
    if (ret_entries == NULL || ret_count == NULL)
        return wr_invalid("ret_entries and ret_count must not be NULL");
    if (most > WEIR_PACE_TOP_MAX)
        return wr_invalid("most must be 1 to WEIR_PACE_TOP_MAX, or 0 for 10");
    if (is_pacing_off(pacer)) {
        *ret_entries = NULL;
        *ret_count = 0;
        return 0;
    }
    int bad = weir_table_top(pacer->table, WEIR_TOP_RECENT, most != 0 ? most : TOP_DEFAULT, &rows, &count);
    if (bad != 0)
        return wr_failed(bad);
    struct top_hosts *answer = make_top_hosts(pacer, rows, count);
    if (answer != NULL) {
        *ret_count = inspect_rows(pacer, answer, rows, count);
        *ret_entries = answer->entries;
    }
    weir_table_top_free(pacer->table, rows);
    return answer != NULL ? 0 : wr_failed(WEIR_E_NOMEM);
}

void weir_pacer_top_free(weir_pacer *pacer, weir_pace_entry *entries)
{
    if (pacer == NULL || entries == NULL)
        return;
    struct top_hosts *answer = (struct top_hosts *)(void *)((char *)entries - offsetof(struct top_hosts, entries));
    wr_free(pacer->allocator, answer, answer->bytes, _Alignof(struct top_hosts));
}

/* ---- totals ---- */

struct circuits {
    const weir_pacer *pacer;
    int64_t now;
    size_t open, half_open;
};

static bool count_circuit(void *context, struct wr_shard *shard, struct wr_entry *entry)
{
    struct circuits *circuits = context;
    struct wr_locked_host seen = wr_locked_host_of(circuits->pacer->table, shard, entry, circuits->now);
    weir_breaker_state state = wr_gate_breaker(seen.gate, seen.now);
    circuits->open += state == WEIR_BREAKER_OPEN;
    circuits->half_open += state == WEIR_BREAKER_HALF_OPEN;
    return true;
}

static void sum_pacer_counts(weir_pacer *pacer, weir_pacer_stats *stats)
{
    for (size_t i = 0; i < WR_PACER_COUNTS; i++) {
        const struct wr_pacer_counts *tally = &pacer->tallies[i];
        stats->requests += atomic_load_explicit(&tally->requests, memory_order_relaxed);
        stats->throttled += atomic_load_explicit(&tally->throttled, memory_order_relaxed);
        stats->denied += atomic_load_explicit(&tally->denied, memory_order_relaxed);
        stats->retries += atomic_load_explicit(&tally->retries, memory_order_relaxed);
        stats->rejected += atomic_load_explicit(&tally->rejected, memory_order_relaxed);
        stats->waited_ns += atomic_load_explicit(&tally->waited_ns, memory_order_relaxed);
    }
}

int weir_pacer_stats_get(weir_pacer *pacer, weir_pacer_stats *ret_stats)
{
    weir_table_stats table;
    if (pacer == NULL)
        return wr_invalid("pacer is NULL; make one with weir_pacer_new");
    if (ret_stats == NULL)
        return wr_invalid("ret_stats is NULL; it must point to where the numbers go");
    *ret_stats = (weir_pacer_stats){0};
    if (is_pacing_off(pacer))
        return 0;
    struct circuits circuits = {.pacer = pacer, .now = wr_clock_now(pacer->clock)};
    struct wr_walk walk = {0, 0};
    (void)wr_table_walk(pacer->table, &walk, count_circuit, &circuits);
    (void)weir_table_stats_get(pacer->table, &table);
    sum_pacer_counts(pacer, ret_stats);
    ret_stats->hosts = table.keys;
    ret_stats->evicted = table.evicted;
    ret_stats->waiters = table.waiters;
    ret_stats->open_circuits = circuits.open;
    ret_stats->half_open_circuits = circuits.half_open;
    ret_stats->memory_bytes = sizeof *pacer + table.memory_bytes;
    return 0;
}
