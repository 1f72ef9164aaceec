/* SPDX-License-Identifier: MIT */
/* drawer.c - tables of rules, which outlive a reload, and the two repositories without a table. */
#include "base/alloc.h"
#include "base/bits.h"
#include "core/limit/algorithm.h"
#include "shell/rulebook/book.h"
#include "shell/table/table.h"

#include <string.h>

/* ---- repositories that always or never grant ------------------------------------------------- */

static int always_go(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_decision *ret_decision)
{
    (void)context, (void)key, (void)key_bytes, (void)permits;
    *ret_decision = (weir_decision){WEIR_GO, WEIR_REASON_NONE, 0};
    return 0;
}

static int never_go(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_decision *ret_decision)
{
    (void)context, (void)key, (void)key_bytes, (void)permits;
    *ret_decision = (weir_decision){WEIR_DENY, WEIR_REASON_NONE, WEIR_UNTIL_RELEASE};
    return 0;
}

static int reserve_go(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_receipt *ret_receipt,
                      weir_decision *ret_decision)
{
    if (ret_receipt != NULL)
        memset(ret_receipt, 0, sizeof *ret_receipt);
    return always_go(context, key, key_bytes, permits, ret_decision);
}

static int reserve_none(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_receipt *ret_receipt,
                        weir_decision *ret_decision)
{
    (void)ret_receipt;
    return never_go(context, key, key_bytes, permits, ret_decision);
}

static int settle_nothing(void *context, const char *key, size_t key_bytes, weir_receipt *receipt, uint32_t used)
{
    (void)context, (void)key, (void)key_bytes, (void)receipt, (void)used;
    return 0;
}

weir_repository wr_repository_open(void)
{
    return (weir_repository){
        .size = sizeof(weir_repository), .attempt = always_go, .reserve = reserve_go, .settle = settle_nothing};
}

weir_repository wr_repository_shut(void)
{
    return (weir_repository){
        .size = sizeof(weir_repository), .attempt = never_go, .reserve = reserve_none, .settle = settle_nothing};
}

/* ---- tables ---------------------------------------------------------------------------------- */

static bool fits(const struct wr_rulebook *book, const struct wr_drawer *drawer, const struct wr_drawer_wish *wish)
{
    if (memcmp(drawer->key, wish->rule->key, sizeof drawer->key) != 0)
        return false;
    if (drawer->budget != NULL || wr_rule_is_shared(wish->rule))
        return drawer->budget != NULL && wr_rule_is_shared(wish->rule) && wr_book_budget_is(book, wish, drawer->budget);
    return wr_stack_same_shape(&drawer->stack, wish->stack) && wish->stack->state_bytes <= drawer->table->state_bytes;
}

static int make_table(const struct wr_rulebook *book, const struct wr_drawer_wish *wish, struct wr_drawer *drawer)
{
    weir_table_options options;

    weir_table_options_init(&options);
    options.max_keys = wr_size_of(wish->max_keys);
    options.ttl_ns = wish->forget_ns;
    options.clock = book->clock;
    options.allocator = book->allocator;
    drawer->stack = *wish->stack;
    return weir_table_new(wish->stack->limits, wish->stack->count, &options, &drawer->table);
}

static int make_budget(const struct wr_rulebook *book, const struct wr_drawer_wish *wish, struct wr_drawer *drawer)
{
    int error = wr_book_budget(book, wish, &drawer->budget);

    if (error < 0)
        return error;
    drawer->table = wr_budget_table(drawer->budget);
    drawer->stack = *wr_budget_part(drawer->budget);
    return 0;
}

int wr_drawer_get(const struct wr_rulebook *book, const struct wr_drawer_wish *wish, struct wr_drawer *old,
                  struct wr_drawer **ret_drawer)
{
    if (old != NULL && fits(book, old, wish)) {
        atomic_fetch_add_explicit(&old->holders, 1, memory_order_relaxed);
        *ret_drawer = old;
        return 0;
    }
    struct wr_drawer *drawer = wr_take(book->allocator, sizeof *drawer, _Alignof(struct wr_drawer));
    if (drawer == NULL)
        return WEIR_E_NOMEM;
    int error = wr_rule_is_shared(wish->rule) ? make_budget(book, wish, drawer) : make_table(book, wish, drawer);
    if (error < 0) {
        wr_give(book->allocator, drawer, sizeof *drawer, _Alignof(struct wr_drawer));
        return error;
    }
    atomic_init(&drawer->holders, 1);
    drawer->allocator = book->allocator;
    for (uint32_t i = 0; i < wish->stack->count; i++)
        drawer->has_release = drawer->has_release || wish->stack->limits[i].algorithm->release != NULL;
    memcpy(drawer->key, wish->rule->key, sizeof drawer->key);
    *ret_drawer = drawer;
    return 0;
}

void wr_drawer_drop(struct wr_drawer *drawer)
{
    if (drawer == NULL || atomic_fetch_sub_explicit(&drawer->holders, 1, memory_order_acq_rel) != 1)
        return;
    if (drawer->budget != NULL)
        wr_budget_free(drawer->budget); /* the shared limit frees its table as well */
    else
        weir_table_free(drawer->table);
    wr_give(drawer->allocator, drawer, sizeof *drawer, _Alignof(struct wr_drawer));
}

struct wr_drawer *wr_drawer_of(const struct wr_edition *edition, const weir_ruling *ruling)
{
    const struct wr_edition_rule *rule = &edition->rules[ruling->rule];

    if (ruling->plan == WR_PLAN_OWN)
        return rule->drawers[0];
    return ruling->plan >= WR_PLAN_FIRST ? rule->drawers[ruling->plan - WR_PLAN_FIRST + 1] : NULL;
}

/* ---- a shared limit as a repository ---------------------------------------------------------- */

/* Decides by permits held here. Returns WEIR_E_CLOSED if the store must be asked, which only a
 * pending request can do. */
static int budget_reserve_peek(void *context, const char *key, size_t key_bytes, uint32_t permits,
                               weir_receipt *ret_receipt, weir_decision *ret_decision, weir_quota *ret_quota)
{
    struct wr_share_told told;
    struct wr_errand *errand;
    int error = wr_budget_ask(context, key, key_bytes, permits, NULL, NULL, &errand, &told);

    if (error < 0)
        return error;
    *ret_decision = told.decision;
    *ret_quota = told.quota;
    if (told.decision.verdict == WEIR_GO)
        *ret_receipt = wr_budget_receipt(&told, permits);
    return 0;
}

static int budget_reserve(void *context, const char *key, size_t key_bytes, uint32_t permits, weir_receipt *ret_receipt,
                          weir_decision *ret_decision)
{
    weir_quota quota;
    return budget_reserve_peek(context, key, key_bytes, permits, ret_receipt, ret_decision, &quota);
}

static int budget_attempt(void *context, const char *key, size_t key_bytes, uint32_t permits,
                          weir_decision *ret_decision)
{
    weir_receipt receipt;
    return budget_reserve(context, key, key_bytes, permits, &receipt, ret_decision);
}

static int budget_settle(void *context, const char *key, size_t key_bytes, weir_receipt *receipt, uint32_t used)
{
    const struct wr_grant grant = {
        .permits = receipt->permits,
        .source = receipt->place > 0 ? (enum wr_share_source)(receipt->place - 1) : WR_SOURCE_STORE,
        .charged_at = receipt->place > 0 ? receipt->at : 0,
    };
    wr_budget_settle(context, key, key_bytes, &grant, used);
    receipt->permits = 0;
    return 0;
}

static int budget_release(void *context, const char *key, size_t key_bytes, uint32_t permits)
{
    wr_budget_release(context, key, key_bytes, permits);
    return 0;
}

weir_repository wr_drawer_repository(struct wr_drawer *drawer)
{
    if (drawer->budget == NULL)
        return weir_table_repository(drawer->table);
    return (weir_repository){.size = sizeof(weir_repository),
                             .context = drawer->budget,
                             .attempt = budget_attempt,
                             .reserve = budget_reserve,
                             .reserve_peek = budget_reserve_peek,
                             .settle = budget_settle,
                             .release = budget_release};
}
