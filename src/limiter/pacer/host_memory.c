/* SPDX-License-Identifier: MIT */
/* host_memory.c - Imports and exports what is known of hosts: memories, Crawl-delays, pauses. */
#include "core/pace/gate_memory.h"
#include "limiter/pacer/pacer.h"

/* ---- one host ---- */

/* Finds the host of a key, or creates it (*ret_new), and holds its lock. Returns 0, or without a
 * lock WEIR_E_CLOSED, WEIR_E_FULL or WEIR_E_NOMEM. */
static int visit_or_make_host(weir_pacer *pacer, const char *key, size_t key_bytes, struct wr_visit *ret_visit,
                              struct wr_locked_host *ret_seen, bool *ret_new)
{
    struct wr_key_query query = wr_table_query(pacer->table, key, key_bytes, 1, wr_clock_now(pacer->clock));
    struct wr_visit visit = wr_table_begin_visit(pacer->table, &query);
    bool is_new = visit.entry == NULL;
    int bad =
        visit.shard->closed ? WEIR_E_CLOSED : wr_table_get_or_make(pacer->table, visit.shard, &query, &visit.entry);
    if (bad == 0 && visit.entry == NULL)
        bad = WEIR_E_FULL;
    if (bad != 0) {
        wr_lock_give(&visit.shard->lock);
        return wr_failed(bad);
    }
    *ret_visit = visit;
    *ret_seen = wr_locked_host_of(pacer->table, visit.shard, visit.entry, visit.now);
    if (ret_new != NULL)
        *ret_new = is_new;
    return 0;
}

int weir_pacer_robots_delay(weir_pacer *pacer, const char *key, size_t key_bytes, int64_t delay_ns)
{
    struct wr_visit visit;
    struct wr_locked_host seen;
    int bad = wr_pacer_check(pacer, key, key_bytes);
    if (bad != 0)
        return bad;
    if (delay_ns < 0 || delay_ns > WEIR_DURATION_MAX)
        return wr_invalid("delay_ns must be 0 (none) to WEIR_DURATION_MAX");
    bad = visit_or_make_host(pacer, key, key_bytes, &visit, &seen, NULL);
    if (bad != 0)
        return bad;
    wr_gate_robots_delay(seen.gate, delay_ns, seen.now);
    seen.host->changes++;
    wr_visit_end_and_wake(&visit);
    return 0;
}

int weir_pacer_pause(weir_pacer *pacer, const char *key, size_t key_bytes, bool paused)
{
    struct wr_visit visit;
    struct wr_locked_host seen;
    int bad = wr_pacer_check(pacer, key, key_bytes);
    if (bad == 0)
        bad = visit_or_make_host(pacer, key, key_bytes, &visit, &seen, NULL);
    if (bad != 0)
        return bad;
    wr_gate_pause(seen.gate, paused);
    wr_visit_end_and_wake(&visit);
    return 0;
}

int weir_pacer_seed(weir_pacer *pacer, const char *key, size_t key_bytes, const weir_pace_memory *memory)
{
    struct wr_visit visit;
    struct wr_locked_host seen;
    bool is_new;
    int bad = wr_pacer_check(pacer, key, key_bytes);
    if (bad != 0)
        return bad;
    if (memory == NULL)
        return wr_invalid("memory is NULL; it must be the stored state of the key");
    int64_t wall_now = wr_pacer_wall_now(pacer);
    bad = visit_or_make_host(pacer, key, key_bytes, &visit, &seen, &is_new);
    if (bad != 0)
        return bad;
    if (is_new) {
        memset(seen.gate, 0, wr_gate_bytes(seen.pace));
        wr_gate_init(seen.gate, seen.pace, memory, seen.now, wall_now);
    } else {
        int64_t wait_ns = wr_memory_wait(memory, seen.pace, wall_now);
        wr_gate_hold(seen.gate, seen.pace, seen.now + wait_ns, seen.now);
        seen.host->changes++;
    }
    wr_visit_end_and_wake(&visit);
    return 0;
}

int weir_pacer_memory(weir_pacer *pacer, const char *key, size_t key_bytes, weir_pace_memory *ret_memory)
{
    int bad = wr_pacer_check(pacer, key, key_bytes);
    if (bad != 0)
        return bad;
    if (ret_memory == NULL)
        return wr_invalid("ret_memory is NULL; it must point to where the memory goes");
    int64_t wall_now = wr_pacer_wall_now(pacer);
    struct wr_key_query query = wr_table_query(pacer->table, key, key_bytes, 1, wr_clock_now(pacer->clock));
    struct wr_visit visit = wr_table_begin_visit(pacer->table, &query);
    if (visit.entry != NULL) {
        struct wr_locked_host seen = wr_locked_host_of(pacer->table, visit.shard, visit.entry, visit.now);
        wr_gate_remember(seen.gate, seen.pace, seen.now, wall_now, ret_memory);
    }
    wr_lock_give(&visit.shard->lock);
    return visit.entry != NULL ? 0 : wr_failed(WEIR_E_ABSENT);
}

int weir_pacer_forget(weir_pacer *pacer, const char *key, size_t key_bytes)
{
    int bad = wr_pacer_check(pacer, key, key_bytes);
    return bad != 0 ? bad : wr_failed(weir_table_remove(pacer->table, key, key_bytes));
}

/* ---- all hosts ---- */

#define AT_ONCE 16 /* hosts copied under the lock before they are saved without it */

struct copy {
    weir_pace_memory memory;
    uint32_t life, changes;
    size_t key_bytes;
    char key[WEIR_PACE_KEY_MAX];
};

struct export
{
    const weir_pacer *pacer;
    int64_t wall_now;
    size_t count;
    struct copy copies[AT_ONCE];
};

static bool copy_unsaved(void *context, struct wr_shard *shard, struct wr_entry *entry)
{
    struct export *export = context;
    const weir_table *table = export->pacer->table;
    struct wr_locked_host seen = wr_locked_host_of(table, shard, entry, wr_clock_now(export->pacer->clock));
    if (!wr_gate_unsaved(seen.gate))
        return true;
    struct copy *copy = &export->copies[export->count++];
    wr_gate_remember(seen.gate, seen.pace, seen.now, export->wall_now, &copy->memory);
    copy->life = seen.host->life;
    copy->changes = seen.host->changes;
    copy->key_bytes = entry->key_bytes;
    memcpy(copy->key, wr_entry_key(entry, &table->layout), copy->key_bytes);
    return export->count < AT_ONCE;
}

/* Marks a host as saved, unless it changed after it was copied. */
static void note_saved(weir_pacer *pacer, const struct copy *copy)
{
    struct wr_key_query query = wr_table_query(pacer->table, copy->key, copy->key_bytes, 1, 0);
    struct wr_visit visit = wr_table_begin_visit(pacer->table, &query);
    if (visit.entry != NULL) {
        struct wr_locked_host seen = wr_locked_host_of(pacer->table, visit.shard, visit.entry, 0);
        if (seen.host->life == copy->life && seen.host->changes == copy->changes)
            wr_gate_saved(seen.gate);
    }
    wr_lock_give(&visit.shard->lock);
}

size_t weir_pacer_export(weir_pacer *pacer, weir_pacer_save *save, void *context)
{
    struct wr_walk walk = {0, 0};
    struct export export;
    size_t saved = 0;
    bool more;
    if (pacer == NULL || save == NULL)
        return 0;
    wr_pacer_ref(pacer); /* `save` may free the pacer */
    do {
        export.pacer = pacer;
        export.wall_now = wr_pacer_wall_now(pacer);
        export.count = 0;
        more = wr_table_walk(pacer->table, &walk, copy_unsaved, &export);
        for (size_t i = 0; i < export.count; i++) {
            const struct copy *copy = &export.copies[i];
            if (!save(context, copy->key, copy->key_bytes, &copy->memory))
                continue;
            note_saved(pacer, copy);
            saved++;
        }
    } while (more);
    wr_pacer_unref(pacer);
    return saved;
}
