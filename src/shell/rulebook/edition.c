/* SPDX-License-Identifier: MIT */
/* edition.c - snapshots of the rules: built from the settings, never changed, replaced by a
 * reload. */
#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "shell/rulebook/book.h"
#include "shell/rulebook/reading.h"
#include "shell/table/table.h"

#include <string.h>

/* ---- names and counters ---------------------------------------------------------------------- */

static int find_shelf(struct wr_rulebook *book, const char *name, struct wr_shelf **ret_shelf)
{
    for (struct wr_shelf *shelf = book->shelves; shelf != NULL; shelf = shelf->next) {
        if (strcmp(shelf->name, name) == 0) {
            *ret_shelf = shelf;
            return 0;
        }
    }
    if (book->shelf_count == WR_SHELVES_MAX)
        return wr_invalid("10000 names of rules have been used since the start; start anew");
    struct wr_shelf *shelf = wr_take(book->allocator, sizeof *shelf, _Alignof(struct wr_shelf));
    if (shelf == NULL)
        return WEIR_E_NOMEM;
    memcpy(shelf->name, name, strlen(name) + 1);
    shelf->next = book->shelves;
    book->shelves = shelf;
    book->shelf_count++;
    *ret_shelf = shelf;
    return 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Returns the table that the rule, or its plan of this name, had before the reload; NULL if there
 * was none. */
static struct wr_drawer *former(const struct wr_edition *old, const struct wr_book_rule *rule, const char *plan)
{
    const struct wr_edition_rule *was = old != NULL ? wr_edition_find(old, rule->name) : NULL;

    if (was == NULL || plan == NULL)
        return was == NULL ? NULL : was->drawers[0];
    for (uint32_t i = 0; i < was->written->plan_count; i++) {
        if (strcmp(was->written->plans[i].name, plan) == 0)
            return was->drawers[1 + i];
    }
    return NULL;
}

static int find_tables(struct wr_rulebook *book, const struct wr_rulebook_settings *settings,
                       const struct wr_edition *old, struct wr_edition_rule *rule)
{
    const struct wr_book_rule *written = rule->written;
    int error = 0;

    rule->max_keys = written->max_keys != 0 ? written->max_keys : settings->max_keys;

    for (uint32_t i = 0; i <= written->plan_count && error == 0; i++) {
        const char *plan = i == 0 ? NULL : written->plans[i - 1].name;
        const struct wr_drawer_wish wish = {written, plan, &rule->stacks[i], rule->max_keys, settings->forget_ns};
        error = wr_drawer_get(book, &wish, former(old, written, plan), &rule->drawers[i]);
        if (error == 0 && wr_rule_is_shared(written))
            /* the part of the limit that this node's table grants */
            rule->stacks[i] = rule->drawers[i]->stack;
    }
    return error;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static bool applies(void *context, const weir_request *request)
{
    const struct wr_edition_rule *rule = context;
    return wr_match_fits(&rule->match, wr_asked_of(request));
}

static uint32_t plan_by_header(const struct wr_book_rule *written, const weir_request *request)
{
    struct wr_span value;

    if (written->plan_header[0] == '\0' || request == NULL ||
        wr_request_header(request, written->plan_header, &value) != WEIR_FAULT_NONE)
        return WR_PLAN_OWN;
    for (uint32_t i = 0; i < written->plan_count; i++) {
        if (wr_span_is(value, written->plans[i].name))
            return WR_PLAN_FIRST + i;
    }
    return WR_PLAN_OWN;
}

/* Returns the plan of a key. For a listed key the list decides, whatever plan_header says. */
static uint32_t plan_of(void *context, const weir_request *request, const char *key, size_t key_bytes)
{
    const struct wr_edition_rule *rule = context;
    const struct wr_word *word = wr_words_find(rule->words, rule->word_count, (struct wr_span){key, key_bytes});

    return word != NULL ? word->number : plan_by_header(rule->written, request);
}

static void fill_rule(const struct wr_edition *edition, struct wr_edition_rule *rule)
{
    const struct wr_book_rule *written = rule->written;

    rule->repository = wr_drawer_repository(rule->drawers[0]);
    rule->plans[WR_PLAN_ALLOW - 1] = wr_repository_open();
    rule->plans[WR_PLAN_DENY - 1] = wr_repository_shut();
    for (uint32_t i = 0; i < written->plan_count; i++)
        rule->plans[WR_PLAN_FIRST - 1 + i] = wr_drawer_repository(rule->drawers[1 + i]);
    weir_rule_init(&rule->rule, rule->shelf->name, &rule->key, &rule->repository);
    rule->rule.permits = written->cost;
    rule->rule.cost_header = written->cost_header[0] != '\0' ? written->cost_header : NULL;
    rule->rule.cost_max = written->cost_max != 0 ? written->cost_max : 1;
    rule->rule.shadow = written->shadow;
    rule->rule.open_on_error = edition->opens_on_error;
    rule->rule.applies = applies;
    rule->rule.applies_context = rule;
    if (rule->word_count > 0 || written->plan_header[0] != '\0') {
        rule->rule.plans = rule->plans;
        rule->rule.plan_count = WR_PLAN_FIRST - 1 + written->plan_count;
        rule->rule.plan_of = plan_of;
        rule->rule.plan_context = rule;
    }
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static int make_counter(const struct wr_rulebook *book, const struct wr_rulebook_settings *settings,
                        struct wr_edition *edition)
{
    weir_counter_options options;
    weir_rule *rules = wr_take_array(book->allocator, edition->count, sizeof *rules, _Alignof(weir_rule));

    if (rules == NULL)
        return WEIR_E_NOMEM;
    for (uint32_t i = 0; i < edition->count; i++)
        rules[i] = edition->rules[i].rule;
    weir_counter_options_init(&options);
    options.first_match = settings->matching == WR_MATCH_FIRST;
    options.clock = book->clock;
    options.allocator = book->allocator;
    int error = weir_counter_new(rules, edition->count, &options, &edition->counter);
    wr_give(book->allocator, rules, edition->count * sizeof *rules, _Alignof(weir_rule));
    return error;
}

static int make_rule(struct wr_rulebook *book, const struct wr_rulebook_settings *settings,
                     const struct wr_edition *old, struct wr_edition *edition, uint32_t index)
{
    struct wr_edition_rule *rule = &edition->rules[index];

    int error = wr_read_rule(edition, &edition->written[index], rule);
    if (error < 0)
        return error == WEIR_E_INVAL ? wr_invalid_in(rule->written->name) : error;
    error = find_shelf(book, rule->written->name, &rule->shelf);
    if (error == 0)
        error = find_tables(book, settings, old, rule);
    if (error == 0)
        fill_rule(edition, rule);
    edition->has_shared = edition->has_shared || wr_rule_is_shared(rule->written);
    return error == WEIR_E_INVAL && wr_rule_is_shared(rule->written) ? wr_invalid_in(rule->written->name) : error;
}

static int fill(struct wr_rulebook *book, const struct wr_rulebook_settings *settings, const struct wr_edition *old,
                struct wr_edition *edition)
{
    if (settings->rule_count == 0)
        return wr_invalid("there are no rules; write at least one");
    edition->count = settings->rule_count;
    edition->rules =
        wr_take_array(book->allocator, edition->count, sizeof *edition->rules, _Alignof(struct wr_edition_rule));
    edition->written =
        wr_take_array(book->allocator, edition->count, sizeof *edition->written, _Alignof(struct wr_book_rule));
    if (edition->rules == NULL || edition->written == NULL)
        return WEIR_E_NOMEM;
    memcpy(edition->written, settings->rules, edition->count * sizeof *edition->written);
    memcpy(edition->secret, book->secret, sizeof edition->secret);
    int error = wr_book_join(book, settings);
    if (error == 0)
        error = wr_read_admission(settings, edition);
    for (uint32_t i = 0; i < edition->count && error == 0; i++)
        error = make_rule(book, settings, old, edition, i);
    return error == 0 ? make_counter(book, settings, edition) : error;
}

int wr_edition_new(struct wr_rulebook *book, const struct wr_rulebook_settings *settings, const struct wr_edition *old,
                   struct wr_edition **ret_edition)
{
    struct wr_edition *edition = wr_take(book->allocator, sizeof *edition, _Alignof(struct wr_edition));

    if (edition == NULL)
        return WEIR_E_NOMEM;
    atomic_init(&edition->holders, 1);
    edition->allocator = book->allocator;
    int error = fill(book, settings, old, edition);
    if (error < 0)
        wr_edition_drop(edition);
    else
        *ret_edition = edition;
    return error;
}

void wr_edition_hold(struct wr_edition *edition)
{
    atomic_fetch_add_explicit(&edition->holders, 1, memory_order_relaxed);
}

void wr_edition_drop(struct wr_edition *edition)
{
    if (edition == NULL || atomic_fetch_sub_explicit(&edition->holders, 1, memory_order_acq_rel) != 1)
        return;
    const weir_allocator *allocator = edition->allocator;
    weir_counter_free(edition->counter);
    for (uint32_t i = 0; edition->rules != NULL && i < edition->count; i++) {
        for (size_t j = 0; j < 1 + WR_BOOK_PLANS_MAX; j++)
            wr_drawer_drop(edition->rules[i].drawers[j]);
    }
    wr_give(allocator, edition->rules, edition->count * sizeof *edition->rules, _Alignof(struct wr_edition_rule));
    wr_give(allocator, edition->written, edition->count * sizeof *edition->written, _Alignof(struct wr_book_rule));
    wr_give(allocator, edition, sizeof *edition, _Alignof(struct wr_edition));
}

const struct wr_edition_rule *wr_edition_find(const struct wr_edition *edition, const char *rule)
{
    for (uint32_t i = 0; i < edition->count; i++) {
        if (strcmp(edition->rules[i].written->name, rule) == 0)
            return &edition->rules[i];
    }
    return NULL;
}

/* ---- changed limits -------------------------------------------------------------------------- */

/* Returns the next table, from *at on, whose limits differ from those of the edition; NULL at the
 * end. */
static struct wr_drawer *next_changed(const struct wr_edition *edition, size_t *at, const weir_stack **ret_stack)
{
    for (; *at < (size_t)edition->count * (1 + WR_BOOK_PLANS_MAX); ++*at) {
        const struct wr_edition_rule *rule = &edition->rules[*at / (1 + WR_BOOK_PLANS_MAX)];
        size_t plan = *at % (1 + WR_BOOK_PLANS_MAX);
        struct wr_drawer *drawer = rule->drawers[plan];
        if (drawer != NULL && memcmp(&drawer->stack, &rule->stacks[plan], sizeof drawer->stack) != 0) {
            *ret_stack = &rule->stacks[plan];
            return drawer;
        }
    }
    return NULL;
}

static void bound_tables(const struct wr_edition *edition)
{
    for (uint32_t i = 0; i < edition->count; i++) {
        const struct wr_edition_rule *rule = &edition->rules[i];
        for (size_t j = 0; j < 1 + WR_BOOK_PLANS_MAX && rule->drawers[j] != NULL; j++)
            wr_table_bound(rule->drawers[j]->table, wr_size_of(rule->max_keys), edition->forget_ns);
    }
}

/* If memory runs out halfway, the tables changed so far are reverted, which needs no additional
 * memory. */
int wr_edition_enforce(const struct wr_edition *edition)
{
    const weir_stack *stack;
    struct wr_drawer *drawer;
    size_t end = 0;
    int error = 0;

    while (error == 0 && (drawer = next_changed(edition, &end, &stack)) != NULL) {
        error = weir_table_change(drawer->table, 0, stack->limits, stack->count);
        end += error == 0;
    }
    for (size_t at = 0; error < 0 && (drawer = next_changed(edition, &at, &stack)) != NULL && at < end; at++)
        (void)weir_table_change(drawer->table, 0, drawer->stack.limits, drawer->stack.count);
    for (size_t at = 0; error == 0 && (drawer = next_changed(edition, &at, &stack)) != NULL; at++)
        drawer->stack = *stack;
    if (error == 0)
        bound_tables(edition);
    return error;
}
