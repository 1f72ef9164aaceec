/* SPDX-License-Identifier: MIT */
/* rules_view.c - figures of a rulebook and its keys, resets of keys, and periodic work. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "core/limit/compare.h"
#include "limiter/table/usage.h"
#include "serve/rules/rules_internal.h"

#include <string.h>

void wr_rules_view_get(struct wr_rules *book, struct wr_rules_view *ret_view)
{
    struct wr_rules_snapshot *snapshot = wr_rules_snapshot_get(book);

    *ret_view = (struct wr_rules_view){.rules = snapshot->count,
                                       .reloads = atomic_load(&book->reloads),
                                       .reloads_failed = atomic_load(&book->reloads_failed),
                                       .holds_max = book->holds.max,
                                       .waiting = atomic_load(&book->waiting),
                                       .restored = atomic_load(&book->restored)};
    wr_cause_counts_sum(book->tallies, ret_view->causes, &ret_view->shadowed);
    (void)pthread_mutex_lock(&book->holds.lock);
    ret_view->holds = book->holds.count;
    (void)pthread_mutex_unlock(&book->holds.lock);
    ret_view->holds_expired = atomic_load(&book->holds.expired);
    ret_view->has_store = snapshot->has_shared;
    if (snapshot->has_shared)
        wr_redis_client_view_get(book->redis_client, &ret_view->store);
    wr_rules_snapshot_unref(snapshot);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void add_table_stats(weir_table_stats *sum, weir_table *table)
{
    weir_table_stats stats;

    if (weir_table_stats_get(table, &stats) != 0)
        return;
    sum->acquired += stats.acquired;
    sum->rejected += stats.rejected;
    sum->created += stats.created;
    sum->removed += stats.removed;
    sum->evicted += stats.evicted;
    sum->overflowed += stats.overflowed;
    sum->keys += stats.keys;
    sum->max_keys += stats.max_keys;
    sum->shards += stats.shards;
    sum->waiters += stats.waiters;
    sum->memory_bytes += stats.memory_bytes;
}

static void add_shared_limit_view(struct wr_shared_limit_view *sum, struct wr_shared_limit *budget)
{
    struct wr_shared_limit_view view;

    wr_shared_limit_view_get(budget, &view);
    for (size_t i = 0; i < WR_SOURCE_COUNT; i++) {
        sum->granted[i] += view.granted[i];
        sum->refused[i] += view.refused[i];
    }
    sum->keys += view.keys;
    sum->owed += view.owed;
    sum->held += view.held;
    sum->damaged += view.damaged;
    if (view.longest_wait_ns > sum->longest_wait_ns)
        sum->longest_wait_ns = view.longest_wait_ns;
    sum->batch = view.batch > sum->batch ? view.batch : sum->batch;
    sum->bound = view.bound > sum->bound ? view.bound : sum->bound;
    sum->overshoot = view.overshoot > sum->overshoot ? view.overshoot : sum->overshoot;
}

/* Appends `count` texts that are `stride` bytes apart, joined by `between`; after a space if the
 * buffer is not empty. */
static void append_joined(struct wr_buf *buf, const char *first, size_t stride, uint32_t count, const char *between)
{
    if (count > 0 && buf->length > 0)
        wr_buf_append_char(buf, ' ');
    for (uint32_t i = 0; i < count; i++) {
        wr_buf_append_string(buf, i > 0 ? between : "");
        wr_buf_append_string(buf, first + i * stride);
    }
}

static void describe_match(const struct wr_rule_match *match, struct wr_buf *buf)
{
    append_joined(buf, match->methods[0], sizeof match->methods[0], match->method_count, "|");
    append_joined(buf, match->hosts[0], sizeof match->hosts[0], match->host_count, "|");
    append_joined(buf, match->paths[0], sizeof match->paths[0], match->path_count, "|");
    for (uint32_t i = 0; i < match->header_count; i++) {
        append_joined(buf, match->headers[i].name, 0, 1, "");
        /* the value may be a secret */
        wr_buf_append_string(buf, match->headers[i].value[0] != '\0' ? ": ..." : "");
    }
}

static void describe_rule(const struct wr_compiled_rule *rule, struct wr_rule_view *ret_view)
{
    struct wr_buf limits, match, key;

    *ret_view = (struct wr_rule_view){
        .name = rule->rule_stats->name, .shadow = rule->written->shadow, .plans = rule->written->plan_count};
    wr_cause_counts_sum(rule->rule_stats->tallies, ret_view->causes, &ret_view->shadowed);
    for (uint32_t i = 0; i <= rule->written->plan_count; i++)
        add_table_stats(&ret_view->table, rule->rule_tables[i]->table);
    ret_view->is_shared = wr_rule_is_shared(rule->written);
    for (uint32_t i = 0; ret_view->is_shared && i <= rule->written->plan_count; i++)
        add_shared_limit_view(&ret_view->share, rule->rule_tables[i]->budget);
    const struct wr_rule_settings *written = rule->written;
    wr_buf_init_fixed(&limits, ret_view->limits, sizeof ret_view->limits);
    append_joined(&limits, written->limits[0], sizeof written->limits[0], written->limit_count, ", ");
    wr_buf_init_fixed(&key, ret_view->key, sizeof ret_view->key);
    append_joined(&key, written->key[0], sizeof written->key[0], written->key_count, ", ");
    wr_buf_init_fixed(&match, ret_view->match, sizeof ret_view->match);
    describe_match(&written->match, &match);
}

int wr_rule_view_get(struct wr_rules *book, uint32_t index, struct wr_rule_view *ret_view)
{
    struct wr_rules_snapshot *snapshot = wr_rules_snapshot_get(book);
    bool is_there = index < snapshot->count;

    if (is_there)
        describe_rule(&snapshot->rules[index], ret_view);
    wr_rules_snapshot_unref(snapshot);
    return is_there ? 0 : WEIR_E_ABSENT;
}

/* Creates the removed key again, with its full limit. A rulebook that has a copy of the keys
 * (wr_rules_copy) is sent only keys that exist, and must learn of the reset. */
static void recreate_key(const struct wr_rule_table *rule_table, struct wr_span key)
{
    static const struct wr_limit_usage nothing[WEIR_STACK_MAX];

    (void)wr_table_restore_usage(rule_table->table, key, nothing, rule_table->stack.count, 0, WR_RESTORE_ALL);
}

int wr_rules_reset_key(struct wr_rules *book, const char *rule, const char *key, size_t key_bytes)
{
    struct wr_rules_snapshot *snapshot = wr_rules_snapshot_get(book);
    const struct wr_compiled_rule *found = wr_rules_snapshot_find(snapshot, rule);
    int error = WEIR_E_ABSENT;

    for (uint32_t i = 0; found != NULL && i <= found->written->plan_count; i++) {
        const struct wr_rule_table *rule_table = found->rule_tables[i];
        int one = weir_table_remove(rule_table->table, key, key_bytes);
        if (one == 0 && atomic_load(&book->is_copied))
            recreate_key(rule_table, (struct wr_span){key, key_bytes});
        if (rule_table->budget != NULL && one != WEIR_E_INVAL)
            one = wr_shared_limit_reset(rule_table->budget, key, key_bytes);
        error = one == 0 || one == WEIR_E_INVAL || one == WEIR_E_CLOSED ? one : error;
    }
    wr_rules_snapshot_unref(snapshot);
    return error;
}

void wr_rules_tick(struct wr_rules *book)
{
    wr_reservations_expire(book);
    struct wr_rules_snapshot *snapshot = wr_rules_snapshot_get(book);
    for (uint32_t i = 0; i < snapshot->count; i++) {
        for (uint32_t j = 0; j <= snapshot->rules[i].written->plan_count; j++)
            (void)weir_table_sweep(snapshot->rules[i].rule_tables[j]->table);
    }
    wr_rules_snapshot_unref(snapshot);
}

/* ---- top keys -------------------------------------------------------------------------------- */

#define TABLES_MAX (1 + WR_RULE_PLANS_MAX)

/* The top keys of each table of a rule, to be merged. */
struct table_top_keys {
    weir_table *tables[TABLES_MAX];
    weir_table_entry *entries[TABLES_MAX];
    size_t counts[TABLES_MAX], at[TABLES_MAX];
    uint32_t count;
};

struct merged_top_keys {
    size_t bytes;
    weir_table_entry entries[];
};

static bool ranks_before(weir_table_order order, const weir_table_entry *a, const weir_table_entry *b)
{
    switch (order) {
    case WEIR_TOP_DENIED:
        return a->denied > b->denied;
    case WEIR_TOP_USED:
        return wr_quota_share(&a->quota) < wr_quota_share(&b->quota);
    default:
        return a->idle_ns < b->idle_ns;
    }
}

/* Returns the next entry in this order, from all tables; NULL at the end. */
static const weir_table_entry *next_top_key(struct table_top_keys *tops, weir_table_order order, uint32_t *ret_plan)
{
    const weir_table_entry *best = NULL;

    for (uint32_t i = 0; i < tops->count; i++) {
        const weir_table_entry *head = &tops->entries[i][tops->at[i]];
        if (tops->at[i] < tops->counts[i] && (best == NULL || ranks_before(order, head, best))) {
            best = head;
            *ret_plan = i;
        }
    }
    if (best != NULL)
        tops->at[*ret_plan]++;
    return best;
}

static struct merged_top_keys *merge_top_keys(const weir_allocator *allocator, struct table_top_keys *tops,
                                              weir_table_order order, size_t most, size_t *ret_count)
{
    size_t room = 0, keys_bytes = 0, count = 0;

    for (uint32_t i = 0; i < tops->count; i++) {
        room += tops->counts[i];
        for (size_t j = 0; j < tops->counts[i]; j++)
            keys_bytes += tops->entries[i][j].key_bytes;
    }
    size_t bytes = sizeof(struct merged_top_keys) + room * sizeof(weir_table_entry) + keys_bytes;
    struct merged_top_keys *answer = wr_alloc(allocator, bytes, _Alignof(struct merged_top_keys));
    if (answer == NULL)
        return NULL;
    answer->bytes = bytes;
    char *keys = (char *)&answer->entries[room];
    const weir_table_entry *entry;
    uint32_t plan;
    while (count < most && (entry = next_top_key(tops, order, &plan)) != NULL) {
        answer->entries[count] = *entry;
        answer->entries[count].plan = plan;
        answer->entries[count++].key = memcpy(keys, entry->key, entry->key_bytes);
        keys += entry->key_bytes;
    }
    *ret_count = count;
    return answer;
}

static int find_top_keys(const struct wr_compiled_rule *rule, weir_table_order order, size_t most,
                         struct table_top_keys *tops)
{
    for (; tops->count <= rule->written->plan_count; tops->count++) {
        weir_table *table = rule->rule_tables[tops->count]->table;
        int error = weir_table_top(table, order, most, &tops->entries[tops->count], &tops->counts[tops->count]);
        if (error < 0)
            return error;
        tops->tables[tops->count] = table;
    }
    return 0;
}

int wr_rules_top_keys(struct wr_rules *book, const char *rule, weir_table_order order, size_t most,
                      weir_table_entry **ret_entries, size_t *ret_count)
{
    struct wr_rules_snapshot *snapshot = wr_rules_snapshot_get(book);
    const struct wr_compiled_rule *found = wr_rules_snapshot_find(snapshot, rule);
    struct table_top_keys tops = {.count = 0};
    int error = found == NULL ? WEIR_E_ABSENT : find_top_keys(found, order, most, &tops);
    struct merged_top_keys *answer = error == 0 ? merge_top_keys(book->allocator, &tops, order, most, ret_count) : NULL;

    for (uint32_t i = 0; i < tops.count; i++)
        weir_table_top_free(tops.tables[i], tops.entries[i]);
    wr_rules_snapshot_unref(snapshot);
    if (error == 0 && answer == NULL)
        return WEIR_E_NOMEM;
    if (error == 0)
        *ret_entries = answer->entries;
    return error;
}

void wr_rules_top_keys_free(struct wr_rules *book, weir_table_entry *entries)
{
    if (entries == NULL)
        return;
    struct merged_top_keys *answer =
        (struct merged_top_keys *)(void *)((char *)entries - offsetof(struct merged_top_keys, entries));
    wr_free(book->allocator, answer, answer->bytes, _Alignof(struct merged_top_keys));
}
