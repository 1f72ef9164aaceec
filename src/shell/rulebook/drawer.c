/* SPDX-License-Identifier: MIT */
/* drawer.c - tables, which outlive editions; and the two stores that need none. */
#include "base/alloc.h"
#include "core/limit/algorithm.h"
#include "shell/rulebook/book.h"
#include "shell/table/table.h"

#include <string.h>

/* ---- everybody and nobody ------------------------------------------------------------------------------ */

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

/* ---- tables -------------------------------------------------------------------------------------------- */

static bool fits(const struct wr_drawer *drawer, const struct wr_book_rule *rule, const weir_stack *stack)
{
    return wr_stack_same_shape(&drawer->stack, stack) && stack->state_bytes <= drawer->table->state_bytes &&
           memcmp(drawer->key, rule->key, sizeof rule->key) == 0;
}

static int make(const struct wr_rulebook *book, const weir_stack *stack, uint64_t max_keys, int64_t forget_ns,
                weir_table **ret_table)
{
    weir_table_options options;

    weir_table_options_init(&options);
    options.max_keys = max_keys;
    options.ttl_ns = forget_ns;
    options.clock = book->clock;
    options.allocator = book->allocator;
    return weir_table_new(stack->limits, stack->count, &options, ret_table);
}

int wr_drawer_get(const struct wr_rulebook *book, const struct wr_book_rule *rule, const weir_stack *stack,
                  uint64_t max_keys, int64_t forget_ns, struct wr_drawer *old, struct wr_drawer **ret_drawer)
{
    if (old != NULL && fits(old, rule, stack)) {
        atomic_fetch_add_explicit(&old->holders, 1, memory_order_relaxed);
        *ret_drawer = old;
        return 0;
    }
    struct wr_drawer *drawer = wr_take(book->allocator, sizeof *drawer, _Alignof(struct wr_drawer));
    if (drawer == NULL)
        return WEIR_E_NOMEM;
    int error = make(book, stack, max_keys, forget_ns, &drawer->table);
    if (error < 0) {
        wr_give(book->allocator, drawer, sizeof *drawer, _Alignof(struct wr_drawer));
        return error;
    }
    atomic_init(&drawer->holders, 1);
    drawer->allocator = book->allocator;
    drawer->stack = *stack;
    for (uint32_t i = 0; i < stack->count; i++)
        drawer->has_release = drawer->has_release || stack->limits[i].algorithm->release != NULL;
    memcpy(drawer->key, rule->key, sizeof drawer->key);
    *ret_drawer = drawer;
    return 0;
}

void wr_drawer_drop(struct wr_drawer *drawer)
{
    if (drawer == NULL || atomic_fetch_sub_explicit(&drawer->holders, 1, memory_order_acq_rel) != 1)
        return;
    weir_table_free(drawer->table);
    wr_give(drawer->allocator, drawer, sizeof *drawer, _Alignof(struct wr_drawer));
}
