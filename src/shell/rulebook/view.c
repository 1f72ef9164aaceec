/* SPDX-License-Identifier: MIT */
/* view.c - figures of a rulebook and its keys, resets of keys, and periodic work. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "core/limit/compare.h"
#include "shell/rulebook/book.h"
#include "shell/table/past.h"

#include <string.h>

void wr_rulebook_view_get(struct wr_rulebook *book, struct wr_rulebook_view *ret_view)
{
    struct wr_edition *edition = wr_book_borrow(book);

    *ret_view = (struct wr_rulebook_view){.rules = edition->count,
                                          .reloads = atomic_load(&book->reloads),
                                          .reloads_failed = atomic_load(&book->reloads_failed),
                                          .holds_max = book->holds.max,
                                          .waiting = atomic_load(&book->waiting),
                                          .restored = atomic_load(&book->restored)};
    wr_causes_sum(book->tallies, ret_view->causes, &ret_view->shadowed);
    (void)pthread_mutex_lock(&book->holds.lock);
    ret_view->holds = book->holds.count;
    (void)pthread_mutex_unlock(&book->holds.lock);
    ret_view->holds_expired = atomic_load(&book->holds.expired);
    ret_view->has_store = edition->has_shared;
    if (edition->has_shared)
        wr_agency_view_get(book->agency, &ret_view->store);
    wr_edition_drop(edition);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void add_stats(weir_table_stats *sum, weir_table *table)
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

static void add_share(struct wr_budget_view *sum, struct wr_budget *budget)
{
    struct wr_budget_view view;

    wr_budget_view_get(budget, &view);
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
static void append_list(struct wr_buf *buf, const char *first, size_t stride, uint32_t count, const char *between)
{
    if (count > 0 && buf->length > 0)
        wr_buf_append_char(buf, ' ');
    for (uint32_t i = 0; i < count; i++) {
        wr_buf_append_string(buf, i > 0 ? between : "");
        wr_buf_append_string(buf, first + i * stride);
    }
}

static void describe_match(const struct wr_book_match *match, struct wr_buf *buf)
{
    append_list(buf, match->methods[0], sizeof match->methods[0], match->method_count, "|");
    append_list(buf, match->hosts[0], sizeof match->hosts[0], match->host_count, "|");
    append_list(buf, match->paths[0], sizeof match->paths[0], match->path_count, "|");
    for (uint32_t i = 0; i < match->header_count; i++) {
        append_list(buf, match->headers[i].name, 0, 1, "");
        /* the value may be a secret */
        wr_buf_append_string(buf, match->headers[i].value[0] != '\0' ? ": ..." : "");
    }
}

static void describe(const struct wr_edition_rule *rule, struct wr_rule_view *ret_view)
{
    struct wr_buf limits, match, key;

    *ret_view = (struct wr_rule_view){
        .name = rule->shelf->name, .shadow = rule->written->shadow, .plans = rule->written->plan_count};
    wr_causes_sum(rule->shelf->tallies, ret_view->causes, &ret_view->shadowed);
    for (uint32_t i = 0; i <= rule->written->plan_count; i++)
        add_stats(&ret_view->table, rule->drawers[i]->table);
    ret_view->is_shared = wr_rule_is_shared(rule->written);
    for (uint32_t i = 0; ret_view->is_shared && i <= rule->written->plan_count; i++)
        add_share(&ret_view->share, rule->drawers[i]->budget);
    const struct wr_book_rule *written = rule->written;
    wr_buf_init_fixed(&limits, ret_view->limits, sizeof ret_view->limits);
    append_list(&limits, written->limits[0], sizeof written->limits[0], written->limit_count, ", ");
    wr_buf_init_fixed(&key, ret_view->key, sizeof ret_view->key);
    append_list(&key, written->key[0], sizeof written->key[0], written->key_count, ", ");
    wr_buf_init_fixed(&match, ret_view->match, sizeof ret_view->match);
    describe_match(&written->match, &match);
}

int wr_rulebook_rule_get(struct wr_rulebook *book, uint32_t index, struct wr_rule_view *ret_view)
{
    struct wr_edition *edition = wr_book_borrow(book);
    bool is_there = index < edition->count;

    if (is_there)
        describe(&edition->rules[index], ret_view);
    wr_edition_drop(edition);
    return is_there ? 0 : WEIR_E_ABSENT;
}

/* Creates the removed key again, with its full limit. A rulebook that has a copy of the keys
 * (wr_rulebook_copy) is sent only keys that exist, and must learn of the reset. */
static void leave_word(const struct wr_drawer *drawer, struct wr_span key)
{
    static const struct wr_past nothing[WEIR_STACK_MAX];

    (void)wr_table_recall(drawer->table, key, nothing, drawer->stack.count, 0, WR_RECALL_ALL);
}

int wr_rulebook_reset(struct wr_rulebook *book, const char *rule, const char *key, size_t key_bytes)
{
    struct wr_edition *edition = wr_book_borrow(book);
    const struct wr_edition_rule *found = wr_edition_find(edition, rule);
    int error = WEIR_E_ABSENT;

    for (uint32_t i = 0; found != NULL && i <= found->written->plan_count; i++) {
        const struct wr_drawer *drawer = found->drawers[i];
        int one = weir_table_remove(drawer->table, key, key_bytes);
        if (one == 0 && atomic_load(&book->is_copied))
            leave_word(drawer, (struct wr_span){key, key_bytes});
        if (drawer->budget != NULL && one != WEIR_E_INVAL)
            one = wr_budget_reset(drawer->budget, key, key_bytes);
        error = one == 0 || one == WEIR_E_INVAL || one == WEIR_E_CLOSED ? one : error;
    }
    wr_edition_drop(edition);
    return error;
}

void wr_rulebook_tick(struct wr_rulebook *book)
{
    wr_holds_expire(book);
    struct wr_edition *edition = wr_book_borrow(book);
    for (uint32_t i = 0; i < edition->count; i++) {
        for (uint32_t j = 0; j <= edition->rules[i].written->plan_count; j++)
            (void)weir_table_sweep(edition->rules[i].drawers[j]->table);
    }
    wr_edition_drop(edition);
}

/* ---- top keys -------------------------------------------------------------------------------- */

#define TABLES_MAX (1 + WR_BOOK_PLANS_MAX)

/* The top keys of each table of a rule, to be merged. */
struct tops {
    weir_table *tables[TABLES_MAX];
    weir_table_entry *entries[TABLES_MAX];
    size_t counts[TABLES_MAX], at[TABLES_MAX];
    uint32_t count;
};

struct answer {
    size_t bytes;
    weir_table_entry entries[];
};

static bool before(weir_table_order order, const weir_table_entry *a, const weir_table_entry *b)
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
static const weir_table_entry *next(struct tops *tops, weir_table_order order, uint32_t *ret_plan)
{
    const weir_table_entry *best = NULL;

    for (uint32_t i = 0; i < tops->count; i++) {
        const weir_table_entry *head = &tops->entries[i][tops->at[i]];
        if (tops->at[i] < tops->counts[i] && (best == NULL || before(order, head, best))) {
            best = head;
            *ret_plan = i;
        }
    }
    if (best != NULL)
        tops->at[*ret_plan]++;
    return best;
}

static struct answer *merge(const weir_allocator *allocator, struct tops *tops, weir_table_order order, size_t most,
                            size_t *ret_count)
{
    size_t room = 0, keys_bytes = 0, count = 0;

    for (uint32_t i = 0; i < tops->count; i++) {
        room += tops->counts[i];
        for (size_t j = 0; j < tops->counts[i]; j++)
            keys_bytes += tops->entries[i][j].key_bytes;
    }
    size_t bytes = sizeof(struct answer) + room * sizeof(weir_table_entry) + keys_bytes;
    struct answer *answer = wr_take(allocator, bytes, _Alignof(struct answer));
    if (answer == NULL)
        return NULL;
    answer->bytes = bytes;
    char *keys = (char *)&answer->entries[room];
    const weir_table_entry *entry;
    uint32_t plan;
    while (count < most && (entry = next(tops, order, &plan)) != NULL) {
        answer->entries[count] = *entry;
        answer->entries[count].plan = plan;
        answer->entries[count++].key = memcpy(keys, entry->key, entry->key_bytes);
        keys += entry->key_bytes;
    }
    *ret_count = count;
    return answer;
}

static int find_tops(const struct wr_edition_rule *rule, weir_table_order order, size_t most, struct tops *tops)
{
    for (; tops->count <= rule->written->plan_count; tops->count++) {
        weir_table *table = rule->drawers[tops->count]->table;
        int error = weir_table_top(table, order, most, &tops->entries[tops->count], &tops->counts[tops->count]);
        if (error < 0)
            return error;
        tops->tables[tops->count] = table;
    }
    return 0;
}

int wr_rulebook_top(struct wr_rulebook *book, const char *rule, weir_table_order order, size_t most,
                    weir_table_entry **ret_entries, size_t *ret_count)
{
    struct wr_edition *edition = wr_book_borrow(book);
    const struct wr_edition_rule *found = wr_edition_find(edition, rule);
    struct tops tops = {.count = 0};
    int error = found == NULL ? WEIR_E_ABSENT : find_tops(found, order, most, &tops);
    struct answer *answer = error == 0 ? merge(book->allocator, &tops, order, most, ret_count) : NULL;

    for (uint32_t i = 0; i < tops.count; i++)
        weir_table_top_free(tops.tables[i], tops.entries[i]);
    wr_edition_drop(edition);
    if (error == 0 && answer == NULL)
        return WEIR_E_NOMEM;
    if (error == 0)
        *ret_entries = answer->entries;
    return error;
}

void wr_rulebook_top_free(struct wr_rulebook *book, weir_table_entry *entries)
{
    if (entries == NULL)
        return;
    struct answer *answer = (struct answer *)(void *)((char *)entries - offsetof(struct answer, entries));
    wr_give(book->allocator, answer, answer->bytes, _Alignof(struct answer));
}
