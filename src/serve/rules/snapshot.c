/* SPDX-License-Identifier: MIT */
/* snapshot.c - snapshots of the rules: built from the settings, never changed, replaced by a
 * reload. */
#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "limiter/table/table.h"
#include "serve/rules/compile_rule.h"
#include "serve/rules/rules_internal.h"

#include <string.h>

/* ---- names and counters ---------------------------------------------------------------------- */

static int find_rule_stats(struct wr_rules *book, const char *name, struct wr_rule_stats **ret_shelf)
{
    for (struct wr_rule_stats *rule_stats = book->rule_stats_list; rule_stats != NULL; rule_stats = rule_stats->next) {
        if (strcmp(rule_stats->name, name) == 0) {
            *ret_shelf = rule_stats;
            return 0;
        }
    }
    if (book->rule_stats_count == WR_RULE_NAMES_MAX)
        return wr_invalid("10000 names of rules have been used since the start; restart the daemon");
    struct wr_rule_stats *rule_stats = wr_alloc(book->allocator, sizeof *rule_stats, _Alignof(struct wr_rule_stats));
    if (rule_stats == NULL)
        return WEIR_E_NOMEM;
    memcpy(rule_stats->name, name, strlen(name) + 1);
    rule_stats->next = book->rule_stats_list;
    book->rule_stats_list = rule_stats;
    book->rule_stats_count++;
    *ret_shelf = rule_stats;
    return 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Returns the table that the rule, or its plan of this name, had before the reload; NULL if there
 * was none. */
static struct wr_rule_table *former_table(const struct wr_rules_snapshot *old, const struct wr_rule_settings *rule,
                                          const char *plan)
{
    const struct wr_compiled_rule *was = old != NULL ? wr_rules_snapshot_find(old, rule->name) : NULL;

    if (was == NULL || plan == NULL)
        return was == NULL ? NULL : was->rule_tables[0];
    for (uint32_t i = 0; i < was->written->plan_count; i++) {
        if (strcmp(was->written->plans[i].name, plan) == 0)
            return was->rule_tables[1 + i];
    }
    return NULL;
}

static int find_tables(struct wr_rules *book, const struct wr_rules_settings *settings,
                       const struct wr_rules_snapshot *old, struct wr_compiled_rule *rule)
{
    const struct wr_rule_settings *written = rule->written;
    int error = 0;

    rule->max_keys = written->max_keys != 0 ? written->max_keys : settings->max_keys;

    for (uint32_t i = 0; i <= written->plan_count && error == 0; i++) {
        const char *plan = i == 0 ? NULL : written->plans[i - 1].name;
        const struct wr_rule_table_options table_options = {written, plan, &rule->stacks[i], rule->max_keys,
                                                            settings->forget_ns};
        error = wr_rule_table_get(book, &table_options, former_table(old, written, plan), &rule->rule_tables[i]);
        if (error == 0 && wr_rule_is_shared(written))
            /* the part of the limit that this node's table grants */
            rule->stacks[i] = rule->rule_tables[i]->stack;
    }
    return error;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static bool rule_applies(void *context, const weir_request *request)
{
    const struct wr_compiled_rule *rule = context;
    return wr_match_fits(&rule->match, wr_request_reading_of(request));
}

static uint32_t plan_of_header(const struct wr_rule_settings *written, const weir_request *request)
{
    struct wr_span value;

    if (written->plan_header[0] == '\0' || request == NULL ||
        wr_request_header(request, written->plan_header, &value) != WEIR_FAULT_NONE)
        return WR_RULE_PLAN_OWN;
    for (uint32_t i = 0; i < written->plan_count; i++) {
        if (wr_span_is(value, written->plans[i].name))
            return WR_RULE_PLAN_FIRST + i;
    }
    return WR_RULE_PLAN_OWN;
}

/* Returns the plan of a key. For a listed key the list decides, whatever plan_header says. */
static uint32_t plan_of_key(void *context, const weir_request *request, const char *key, size_t key_bytes)
{
    const struct wr_compiled_rule *rule = context;
    const struct wr_numbered_key *word =
        wr_numbered_keys_find(rule->words, rule->word_count, (struct wr_span){key, key_bytes});

    return word != NULL ? word->number : plan_of_header(rule->written, request);
}

static void fill_compiled_rule(const struct wr_rules_snapshot *snapshot, struct wr_compiled_rule *rule)
{
    const struct wr_rule_settings *written = rule->written;

    rule->repository = wr_rule_table_key_store(rule->rule_tables[0]);
    rule->plans[WR_RULE_PLAN_ALLOW - 1] = wr_key_store_grant_all();
    rule->plans[WR_RULE_PLAN_DENY - 1] = wr_key_store_grant_none();
    for (uint32_t i = 0; i < written->plan_count; i++)
        rule->plans[WR_RULE_PLAN_FIRST - 1 + i] = wr_rule_table_key_store(rule->rule_tables[1 + i]);
    weir_rule_init(&rule->rule, rule->rule_stats->name, &rule->key, &rule->repository);
    rule->rule.permits = written->cost;
    rule->rule.cost_header = written->cost_header[0] != '\0' ? written->cost_header : NULL;
    rule->rule.cost_max = written->cost_max != 0 ? written->cost_max : 1;
    rule->rule.shadow = written->shadow;
    rule->rule.open_on_error = snapshot->opens_on_error;
    rule->rule.applies = rule_applies;
    rule->rule.applies_context = rule;
    if (rule->word_count > 0 || written->plan_header[0] != '\0') {
        rule->rule.plans = rule->plans;
        rule->rule.plan_count = WR_RULE_PLAN_FIRST - 1 + written->plan_count;
        rule->rule.plan_of = plan_of_key;
        rule->rule.plan_context = rule;
    }
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static int make_admission(const struct wr_rules *book, const struct wr_rules_settings *settings,
                          struct wr_rules_snapshot *snapshot)
{
    weir_admission_options options;
    weir_rule *rules = wr_alloc_array(book->allocator, snapshot->count, sizeof *rules, _Alignof(weir_rule));

    if (rules == NULL)
        return WEIR_E_NOMEM;
    for (uint32_t i = 0; i < snapshot->count; i++)
        rules[i] = snapshot->rules[i].rule;
    weir_admission_options_init(&options);
    options.first_match = settings->matching == WR_MATCH_FIRST;
    options.clock = book->clock;
    options.allocator = book->allocator;
    int error = weir_admission_new(rules, snapshot->count, &options, &snapshot->counter);
    wr_free(book->allocator, rules, snapshot->count * sizeof *rules, _Alignof(weir_rule));
    return error;
}

static int make_rule(struct wr_rules *book, const struct wr_rules_settings *settings,
                     const struct wr_rules_snapshot *old, struct wr_rules_snapshot *snapshot, uint32_t index)
{
    struct wr_compiled_rule *rule = &snapshot->rules[index];

    int error = wr_compile_rule(snapshot, &snapshot->written[index], rule);
    if (error < 0)
        return error == WEIR_E_INVAL ? wr_invalid_in(rule->written->name) : error;
    error = find_rule_stats(book, rule->written->name, &rule->rule_stats);
    if (error == 0)
        error = find_tables(book, settings, old, rule);
    if (error == 0)
        fill_compiled_rule(snapshot, rule);
    snapshot->has_shared = snapshot->has_shared || wr_rule_is_shared(rule->written);
    return error == WEIR_E_INVAL && wr_rule_is_shared(rule->written) ? wr_invalid_in(rule->written->name) : error;
}

static int fill_snapshot(struct wr_rules *book, const struct wr_rules_settings *settings,
                         const struct wr_rules_snapshot *old, struct wr_rules_snapshot *snapshot)
{
    if (settings->rule_count == 0)
        return wr_invalid("there are no rules; write at least one");
    snapshot->count = settings->rule_count;
    snapshot->rules =
        wr_alloc_array(book->allocator, snapshot->count, sizeof *snapshot->rules, _Alignof(struct wr_compiled_rule));
    snapshot->written =
        wr_alloc_array(book->allocator, snapshot->count, sizeof *snapshot->written, _Alignof(struct wr_rule_settings));
    if (snapshot->rules == NULL || snapshot->written == NULL)
        return WEIR_E_NOMEM;
    memcpy(snapshot->written, settings->rules, snapshot->count * sizeof *snapshot->written);
    memcpy(snapshot->secret, book->secret, sizeof snapshot->secret);
    int error = wr_rules_open_store(book, settings);
    if (error == 0)
        error = wr_compile_admission(settings, snapshot);
    for (uint32_t i = 0; i < snapshot->count && error == 0; i++)
        error = make_rule(book, settings, old, snapshot, i);
    return error == 0 ? make_admission(book, settings, snapshot) : error;
}

int wr_rules_snapshot_new(struct wr_rules *book, const struct wr_rules_settings *settings,
                          const struct wr_rules_snapshot *old, struct wr_rules_snapshot **ret_edition)
{
    struct wr_rules_snapshot *snapshot =
        wr_alloc(book->allocator, sizeof *snapshot, _Alignof(struct wr_rules_snapshot));

    if (snapshot == NULL)
        return WEIR_E_NOMEM;
    atomic_init(&snapshot->holders, 1);
    snapshot->allocator = book->allocator;
    int error = fill_snapshot(book, settings, old, snapshot);
    if (error < 0)
        wr_rules_snapshot_unref(snapshot);
    else
        *ret_edition = snapshot;
    return error;
}

void wr_rules_snapshot_ref(struct wr_rules_snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->holders, 1, memory_order_relaxed);
}

void wr_rules_snapshot_unref(struct wr_rules_snapshot *snapshot)
{
    if (snapshot == NULL || atomic_fetch_sub_explicit(&snapshot->holders, 1, memory_order_acq_rel) != 1)
        return;
    const weir_allocator *allocator = snapshot->allocator;
    weir_admission_free(snapshot->counter);
    for (uint32_t i = 0; snapshot->rules != NULL && i < snapshot->count; i++) {
        for (size_t j = 0; j < 1 + WR_RULE_PLANS_MAX; j++)
            wr_rule_table_unref(snapshot->rules[i].rule_tables[j]);
    }
    wr_free(allocator, snapshot->rules, snapshot->count * sizeof *snapshot->rules, _Alignof(struct wr_compiled_rule));
    wr_free(allocator, snapshot->written, snapshot->count * sizeof *snapshot->written,
            _Alignof(struct wr_rule_settings));
    wr_free(allocator, snapshot, sizeof *snapshot, _Alignof(struct wr_rules_snapshot));
}

const struct wr_compiled_rule *wr_rules_snapshot_find(const struct wr_rules_snapshot *snapshot, const char *rule)
{
    for (uint32_t i = 0; i < snapshot->count; i++) {
        if (strcmp(snapshot->rules[i].written->name, rule) == 0)
            return &snapshot->rules[i];
    }
    return NULL;
}

/* ---- changed limits -------------------------------------------------------------------------- */

/* Returns the next table, from *at on, whose limits differ from those of the snapshot; NULL at the
 * end. */
static struct wr_rule_table *next_changed_table(const struct wr_rules_snapshot *snapshot, size_t *at,
                                                const weir_stack **ret_stack)
{
    for (; *at < (size_t)snapshot->count * (1 + WR_RULE_PLANS_MAX); ++*at) {
        const struct wr_compiled_rule *rule = &snapshot->rules[*at / (1 + WR_RULE_PLANS_MAX)];
        size_t plan = *at % (1 + WR_RULE_PLANS_MAX);
        struct wr_rule_table *rule_table = rule->rule_tables[plan];
        if (rule_table != NULL && memcmp(&rule_table->stack, &rule->stacks[plan], sizeof rule_table->stack) != 0) {
            *ret_stack = &rule->stacks[plan];
            return rule_table;
        }
    }
    return NULL;
}

static void bound_tables(const struct wr_rules_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->count; i++) {
        const struct wr_compiled_rule *rule = &snapshot->rules[i];
        for (size_t j = 0; j < 1 + WR_RULE_PLANS_MAX && rule->rule_tables[j] != NULL; j++)
            wr_table_set_bounds(rule->rule_tables[j]->table, wr_size_of(rule->max_keys), snapshot->forget_ns);
    }
}

/* If memory runs out halfway, the tables changed so far are reverted, which needs no additional
 * memory. */
int wr_rules_snapshot_apply_limits(const struct wr_rules_snapshot *snapshot)
{
    const weir_stack *stack;
    struct wr_rule_table *rule_table;
    size_t end = 0;
    int error = 0;

    while (error == 0 && (rule_table = next_changed_table(snapshot, &end, &stack)) != NULL) {
        error = weir_table_change(rule_table->table, 0, stack->limits, stack->count);
        end += error == 0;
    }
    for (size_t at = 0; error < 0 && (rule_table = next_changed_table(snapshot, &at, &stack)) != NULL && at < end; at++)
        (void)weir_table_change(rule_table->table, 0, rule_table->stack.limits, rule_table->stack.count);
    for (size_t at = 0; error == 0 && (rule_table = next_changed_table(snapshot, &at, &stack)) != NULL; at++)
        rule_table->stack = *stack;
    if (error == 0)
        bound_tables(snapshot);
    return error;
}
