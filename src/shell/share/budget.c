/* SPDX-License-Identifier: MIT */
/* budget.c - makes, reads and frees shared limits. */
#include "shell/share/budget.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/buf.h"
#include "base/error.h"
#include "core/limit/algorithm.h"
#include "shell/clock/clock.h"
#include "shell/memory/memory.h"
#include "shell/share/agency.h"

#include <string.h>

const char *wr_share_source_name(enum wr_share_source source)
{
    static const char *const names[] = {
#define X(source, name) name,
        WR_SHARE_SOURCES(X)
#undef X
    };
    return (unsigned)source < WR_SOURCE_COUNT ? names[source] : "unknown";
}

struct wr_purses *wr_budget_purses(struct wr_budget *budget, const char *key, size_t key_bytes)
{
    return &budget->purses[wr_hash(&budget->hash_key, key, key_bytes) % WR_SHARE_SHELVES];
}

void wr_budget_take_seat(struct wr_budget *budget, const struct wr_seat *seat)
{
    for (size_t i = 0; i < WR_SHARE_SHELVES; i++) {
        (void)pthread_mutex_lock(&budget->purses[i].lock);
        budget->purses[i].seat = *seat;
        (void)pthread_mutex_unlock(&budget->purses[i].lock);
    }
}

/* ---- new and free ---------------------------------------------------------------------------- */

/* Computes the quota of a new key. */
static int peek_new(const weir_allocator *allocator, const weir_stack *stack, weir_quota *ret_quota)
{
    void *state = wr_take(allocator, stack->state_bytes, 8);
    if (state == NULL)
        return WEIR_E_NOMEM;
    weir_stack_start(stack, state, 0);
    weir_stack_peek(stack, state, 0, ret_quota);
    wr_give(allocator, state, stack->state_bytes, 8);
    return 0;
}

/* Adds this node's part of a limit. A limit on requests in flight needs no table, because each
 * key's account counts them. */
static int add_part(struct wr_budget *budget, const weir_limit *limit, weir_limit *limits, uint32_t *count)
{
    weir_limit part;
    int error = wr_share_part(limit, budget->agency->nodes, &part);

    if (error == WEIR_E_ABSENT) {
        budget->has_part = false;
        part = *limit;
    } else if (error < 0) {
        return error;
    }
    if (limit->algorithm == &wr_concurrency) {
        budget->has_flight = true;
        budget->flight_part = part.permits < budget->flight_part ? part.permits : budget->flight_part;
    } else {
        budget->has_rate = true;
        limits[(*count)++] = part;
    }
    return 0;
}

/* Divides the rule by the nodes. If a limit is too small to be divided there is no share, and the
 * table stays empty. */
static int make_part(struct wr_budget *budget)
{
    const weir_stack *stack = &budget->options.stack;
    weir_limit limits[WEIR_STACK_MAX] = {stack->limits[0]};
    uint32_t count = 0;

    budget->has_part = true;
    budget->flight_part = UINT32_MAX;
    for (uint32_t i = 0; i < stack->count; i++) {
        int error = add_part(budget, &stack->limits[i], limits, &count);
        if (error < 0)
            return error;
    }
    return weir_stack_init(&budget->part, limits, count > 0 ? count : 1);
}

static int make_table(struct wr_budget *budget)
{
    weir_table_options options;

    weir_table_options_init(&options);
    options.max_keys = wr_size_of(budget->options.max_keys);
    options.ttl_ns = WEIR_HOUR;
    options.clock = budget->options.clock;
    options.allocator = budget->agency->allocator;
    return weir_table_new(budget->part.limits, budget->part.count, &options, &budget->table);
}

static int fill(struct wr_budget *budget, const struct wr_budget_options *options)
{
    uint8_t secret[WR_HASH_SECRET_BYTES];
    size_t name_bytes = strlen(options->name);

    if (name_bytes >= sizeof budget->name)
        return wr_invalid("the name of a shared rule and its plan is too long; it has at most 511 bytes");
    memcpy(budget->name, options->name, name_bytes + 1);
    budget->options = *options;
    budget->options.name = NULL;
    int error = wr_tariff_make(&options->stack, &budget->tariff);
    if (error == 0)
        error = wr_share_terms_make(&options->stack, budget->agency->nodes, options->overshoot, &budget->terms);
    if (error == 0)
        error = peek_new(budget->agency->allocator, &options->stack, &budget->quota);
    if (error == 0)
        error = wr_random(secret, sizeof secret);
    if (error == 0)
        error = make_part(budget);
    if (error == 0)
        error = make_table(budget);
    if (error == 0)
        wr_hash_key_init(&budget->hash_key, secret);
    return error;
}

static void open_purses(struct wr_budget *budget)
{
    size_t max = (size_t)(budget->options.max_keys / WR_SHARE_SHELVES) + 1;

    for (size_t i = 0; i < WR_SHARE_SHELVES; i++) {
        (void)pthread_mutex_init(&budget->purses[i].lock, NULL);
        wr_map_init(&budget->purses[i].map, budget->agency->allocator, &budget->hash_key, max);
    }
}

static void name_budget(struct wr_budget *budget, uint32_t number)
{
    struct wr_buf who;

    wr_buf_init_fixed(&who, budget->who, sizeof budget->who);
    wr_buf_append_string(&who, budget->agency->who);
    wr_buf_append_char(&who, '-');
    wr_buf_append_u64(&who, number);
}

int wr_budget_new(struct wr_agency *agency, const struct wr_budget_options *options, struct wr_budget **ret_budget)
{
    struct wr_budget *budget = wr_take(agency->allocator, sizeof *budget, _Alignof(struct wr_budget));

    if (budget == NULL)
        return WEIR_E_NOMEM;
    budget->agency = agency;
    atomic_init(&budget->holders, 1);
    int error = fill(budget, options);
    if (error < 0) {
        wr_give(agency->allocator, budget, sizeof *budget, _Alignof(struct wr_budget));
        return error;
    }
    open_purses(budget);
    (void)pthread_mutex_lock(&agency->lock);
    name_budget(budget, ++agency->budget_count);
    for (size_t i = 0; i < WR_SHARE_SHELVES; i++)
        budget->purses[i].life = agency->lives;
    wr_list_push(&agency->budgets, &budget->link);
    wr_budget_take_seat(budget, &agency->seat);
    (void)pthread_mutex_unlock(&agency->lock);
    *ret_budget = budget;
    return 0;
}

bool wr_budget_is(const struct wr_budget *budget, const struct wr_agency *agency,
                  const struct wr_budget_options *options)
{
    const struct wr_budget_options *own = &budget->options;

    return budget->agency == agency && strcmp(budget->name, options->name) == 0 &&
           memcmp(&own->stack, &options->stack, sizeof own->stack) == 0 && own->overshoot == options->overshoot &&
           own->fallback == options->fallback && own->max_keys == options->max_keys;
}

void wr_budget_hold(struct wr_budget *budget)
{
    (void)atomic_fetch_add_explicit(&budget->holders, 1, memory_order_relaxed);
}

void wr_budget_drop(struct wr_budget *budget)
{
    if (atomic_fetch_sub_explicit(&budget->holders, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < WR_SHARE_SHELVES; i++)
        wr_purses_release(budget, &budget->purses[i]);
    weir_table_free(budget->table);
    wr_give(budget->agency->allocator, budget, sizeof *budget, _Alignof(struct wr_budget));
}

void wr_budget_free(struct wr_budget *budget)
{
    if (budget == NULL)
        return;
    (void)pthread_mutex_lock(&budget->agency->lock);
    wr_list_take(&budget->link);
    (void)pthread_mutex_unlock(&budget->agency->lock);
    wr_budget_drop(budget);
}

weir_table *wr_budget_table(struct wr_budget *budget)
{
    return budget->table;
}

const weir_stack *wr_budget_part(const struct wr_budget *budget)
{
    return &budget->part;
}

void wr_budget_view_get(struct wr_budget *budget, struct wr_budget_view *ret_view)
{
    *ret_view = (struct wr_budget_view){.batch = budget->terms.batch, .bound = wr_share_bound(&budget->terms)};
    for (size_t i = 0; i < WR_SHARE_SHELVES; i++) {
        struct wr_purses *purses = &budget->purses[i];
        (void)pthread_mutex_lock(&purses->lock);
        for (size_t j = 0; j < WR_SOURCE_COUNT; j++) {
            ret_view->granted[j] += purses->granted[j];
            ret_view->refused[j] += purses->refused[j];
        }
        ret_view->keys += purses->map.count;
        ret_view->owed += purses->owed;
        ret_view->held += purses->held;
        ret_view->damaged += purses->damaged;
        if (purses->overshoot > ret_view->overshoot)
            ret_view->overshoot = purses->overshoot;
        if (purses->longest_wait_ns > ret_view->longest_wait_ns)
            ret_view->longest_wait_ns = purses->longest_wait_ns;
        (void)pthread_mutex_unlock(&purses->lock);
    }
}
