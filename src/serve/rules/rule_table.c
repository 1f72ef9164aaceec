/* SPDX-License-Identifier: MIT */
/* rule_table.c - tables of rules, which outlive a reload, and the two repositories without a
 * table. */
#include "base/alloc.h"
#include "base/bits.h"
#include "core/limit/algorithm.h"
#include "limiter/table/table.h"
#include "serve/rules/rules_internal.h"

#include <string.h>

/* ---- repositories that always or never grant ------------------------------------------------- */

static int grant_always(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_decision *ret_decision)
{
    (void)context, (void)key, (void)key_bytes, (void)permits;
    *ret_decision = (weir_decision){WEIR_GO, WEIR_REASON_NONE, 0};
    return 0;
}

static int grant_never(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_decision *ret_decision)
{
    (void)context, (void)key, (void)key_bytes, (void)permits;
    *ret_decision = (weir_decision){WEIR_DENY, WEIR_REASON_NONE, WEIR_UNTIL_RELEASE};
    return 0;
}

static int reserve_always(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_receipt *ret_receipt,
                          weir_decision *ret_decision)
{
    if (ret_receipt != NULL)
        memset(ret_receipt, 0, sizeof *ret_receipt);
    return grant_always(context, key, key_bytes, permits, ret_decision);
}

static int reserve_never(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_receipt *ret_receipt,
                         weir_decision *ret_decision)
{
    (void)ret_receipt;
    return grant_never(context, key, key_bytes, permits, ret_decision);
}

static int settle_nothing(void *context, const char *key, size_t key_bytes, weir_receipt *receipt, uint32_t used)
{
    (void)context, (void)key, (void)key_bytes, (void)receipt, (void)used;
    return 0;
}

weir_key_store wr_key_store_grant_all(void)
{
    return (weir_key_store){
        .size = sizeof(weir_key_store), .attempt = grant_always, .reserve = reserve_always, .settle = settle_nothing};
}

weir_key_store wr_key_store_grant_none(void)
{
    return (weir_key_store){
        .size = sizeof(weir_key_store), .attempt = grant_never, .reserve = reserve_never, .settle = settle_nothing};
}

/* ---- tables ---------------------------------------------------------------------------------- */

static bool table_fits(const struct wr_rules *book, const struct wr_rule_table *rule_table,
                       const struct wr_rule_table_options *table_options)
{
    if (memcmp(rule_table->key, table_options->rule->key, sizeof rule_table->key) != 0)
        return false;
    if (rule_table->budget != NULL || wr_rule_is_shared(table_options->rule))
        return rule_table->budget != NULL && wr_rule_is_shared(table_options->rule) &&
               wr_rules_shared_limit_fits(book, table_options, rule_table->budget);
    return wr_stack_same_shape(&rule_table->stack, table_options->stack) &&
           table_options->stack->state_bytes <= rule_table->table->state_bytes;
}

static int make_own_table(const struct wr_rules *book, const struct wr_rule_table_options *table_options,
                          struct wr_rule_table *rule_table)
{
    weir_table_options options;

    weir_table_options_init(&options);
    options.max_keys = wr_size_of(table_options->max_keys);
    options.ttl_ns = table_options->forget_ns;
    options.clock = book->clock;
    options.allocator = book->allocator;
    rule_table->stack = *table_options->stack;
    return weir_table_new(table_options->stack->limits, table_options->stack->count, &options, &rule_table->table);
}

static int make_shared_table(const struct wr_rules *book, const struct wr_rule_table_options *table_options,
                             struct wr_rule_table *rule_table)
{
    int error = wr_rules_shared_limit_new(book, table_options, &rule_table->budget);

    if (error < 0)
        return error;
    rule_table->table = wr_shared_limit_table(rule_table->budget);
    rule_table->stack = *wr_shared_limit_node_part(rule_table->budget);
    return 0;
}

int wr_rule_table_get(const struct wr_rules *book, const struct wr_rule_table_options *table_options,
                      struct wr_rule_table *old, struct wr_rule_table **ret_drawer)
{
    if (old != NULL && table_fits(book, old, table_options)) {
        atomic_fetch_add_explicit(&old->holders, 1, memory_order_relaxed);
        *ret_drawer = old;
        return 0;
    }
    struct wr_rule_table *rule_table = wr_alloc(book->allocator, sizeof *rule_table, _Alignof(struct wr_rule_table));
    if (rule_table == NULL)
        return WEIR_E_NOMEM;
    int error = wr_rule_is_shared(table_options->rule) ? make_shared_table(book, table_options, rule_table)
                                                       : make_own_table(book, table_options, rule_table);
    if (error < 0) {
        wr_free(book->allocator, rule_table, sizeof *rule_table, _Alignof(struct wr_rule_table));
        return error;
    }
    atomic_init(&rule_table->holders, 1);
    rule_table->allocator = book->allocator;
    for (uint32_t i = 0; i < table_options->stack->count; i++)
        rule_table->has_release = rule_table->has_release || table_options->stack->limits[i].algorithm->release != NULL;
    memcpy(rule_table->key, table_options->rule->key, sizeof rule_table->key);
    *ret_drawer = rule_table;
    return 0;
}

void wr_rule_table_unref(struct wr_rule_table *rule_table)
{
    if (rule_table == NULL || atomic_fetch_sub_explicit(&rule_table->holders, 1, memory_order_acq_rel) != 1)
        return;
    if (rule_table->budget != NULL)
        wr_shared_limit_free(rule_table->budget); /* the shared limit frees its table as well */
    else
        weir_table_free(rule_table->table);
    wr_free(rule_table->allocator, rule_table, sizeof *rule_table, _Alignof(struct wr_rule_table));
}

struct wr_rule_table *wr_rule_table_of(const struct wr_rules_snapshot *snapshot, const weir_ruling *ruling)
{
    const struct wr_compiled_rule *rule = &snapshot->rules[ruling->rule];

    if (ruling->plan == WR_RULE_PLAN_OWN)
        return rule->rule_tables[0];
    return ruling->plan >= WR_RULE_PLAN_FIRST ? rule->rule_tables[ruling->plan - WR_RULE_PLAN_FIRST + 1] : NULL;
}

/* ---- a shared limit as a repository ---------------------------------------------------------- */

/* Decides by permits held here. Returns WEIR_E_CLOSED if the store must be asked, which only a
 * pending request can do. */
static int shared_limit_reserve_peek(void *context, const char *key, size_t key_bytes, uint32_t permits,
                                     weir_receipt *ret_receipt, weir_decision *ret_decision, weir_quota *ret_quota)
{
    struct wr_shared_limit_decision told;
    struct wr_shared_request *shared_request;
    int error = wr_shared_limit_ask(context, key, key_bytes, permits, NULL, NULL, &shared_request, &told);

    if (error < 0)
        return error;
    *ret_decision = told.decision;
    *ret_quota = told.quota;
    if (told.decision.verdict == WEIR_GO)
        *ret_receipt = wr_shared_limit_receipt(&told, permits);
    return 0;
}

static int shared_limit_reserve(void *context, const char *key, size_t key_bytes, uint32_t permits,
                                weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    weir_quota quota;
    return shared_limit_reserve_peek(context, key, key_bytes, permits, ret_receipt, ret_decision, &quota);
}

static int shared_limit_attempt(void *context, const char *key, size_t key_bytes, uint32_t permits,
                                weir_decision *ret_decision)
{
    weir_receipt receipt;
    return shared_limit_reserve(context, key, key_bytes, permits, &receipt, ret_decision);
}

static int shared_limit_settle(void *context, const char *key, size_t key_bytes, weir_receipt *receipt, uint32_t used)
{
    const struct wr_shared_limit_grant grant = {
        .permits = receipt->permits,
        .source = receipt->place > 0 ? (enum wr_decision_source)(receipt->place - 1) : WR_SOURCE_STORE,
        .charged_at = receipt->place > 0 ? receipt->at : 0,
    };
    wr_shared_limit_settle(context, key, key_bytes, &grant, used);
    receipt->permits = 0;
    return 0;
}

static int shared_limit_release(void *context, const char *key, size_t key_bytes, uint32_t permits)
{
    wr_shared_limit_release(context, key, key_bytes, permits);
    return 0;
}

weir_key_store wr_rule_table_key_store(struct wr_rule_table *rule_table)
{
    if (rule_table->budget == NULL)
        return weir_table_key_store(rule_table->table);
    return (weir_key_store){.size = sizeof(weir_key_store),
                            .context = rule_table->budget,
                            .attempt = shared_limit_attempt,
                            .reserve = shared_limit_reserve,
                            .reserve_peek = shared_limit_reserve_peek,
                            .settle = shared_limit_settle,
                            .release = shared_limit_release};
}
