/* SPDX-License-Identifier: MIT */
/* shared_limit.c - makes, reads and frees shared limits. */
#include "cluster/limit/shared_limit.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/buf.h"
#include "base/error.h"
#include "cluster/limit/redis_client.h"
#include "core/limit/algorithm.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

#include <string.h>

const char *wr_decision_source_name(enum wr_decision_source source)
{
    static const char *const names[] = {
#define X(source, name) name,
        WR_DECISION_SOURCES(X)
#undef X
    };
    return (unsigned)source < WR_SOURCE_COUNT ? names[source] : "unknown";
}

struct wr_key_accounts *wr_shared_limit_accounts(struct wr_shared_limit *budget, const char *key, size_t key_bytes)
{
    return &budget->key_accounts[wr_hash(&budget->hash_key, key, key_bytes) % WR_SHARED_LIMIT_SHARDS];
}

void wr_shared_limit_set_membership(struct wr_shared_limit *budget, const struct wr_membership *membership)
{
    for (size_t i = 0; i < WR_SHARED_LIMIT_SHARDS; i++) {
        (void)pthread_mutex_lock(&budget->key_accounts[i].lock);
        budget->key_accounts[i].membership = *membership;
        (void)pthread_mutex_unlock(&budget->key_accounts[i].lock);
    }
}

/* ---- new and free ---------------------------------------------------------------------------- */

/* Computes the quota of a new key. */
static int peek_new_key(const weir_allocator *allocator, const weir_stack *stack, weir_quota *ret_quota)
{
    void *state = wr_alloc(allocator, stack->state_bytes, 8);
    if (state == NULL)
        return WEIR_E_NOMEM;
    weir_stack_start(stack, state, 0);
    weir_stack_peek(stack, state, 0, ret_quota);
    wr_free(allocator, state, stack->state_bytes, 8);
    return 0;
}

/* Adds this node's part of a limit. A limit on requests in flight needs no table, because each
 * key's account counts them. */
static int add_node_part(struct wr_shared_limit *budget, const weir_limit *limit, weir_limit *limits, uint32_t *count)
{
    weir_limit part;
    int error = wr_limit_node_part(limit, budget->redis_client->nodes, &part);

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
static int make_node_part(struct wr_shared_limit *budget)
{
    const weir_stack *stack = &budget->options.stack;
    weir_limit limits[WEIR_STACK_MAX] = {stack->limits[0]};
    uint32_t count = 0;

    budget->has_part = true;
    budget->flight_part = UINT32_MAX;
    for (uint32_t i = 0; i < stack->count; i++) {
        int error = add_node_part(budget, &stack->limits[i], limits, &count);
        if (error < 0)
            return error;
    }
    return weir_stack_init(&budget->part, limits, count > 0 ? count : 1);
}

static int make_node_table(struct wr_shared_limit *budget)
{
    weir_table_options options;

    weir_table_options_init(&options);
    options.max_keys = wr_size_of(budget->options.max_keys);
    options.ttl_ns = WEIR_HOUR;
    options.clock = budget->options.clock;
    options.allocator = budget->redis_client->allocator;
    return weir_table_new(budget->part.limits, budget->part.count, &options, &budget->table);
}

static int fill_shared_limit(struct wr_shared_limit *budget, const struct wr_shared_limit_options *options)
{
    uint8_t secret[WR_HASH_SECRET_BYTES];
    size_t name_bytes = strlen(options->name);

    if (name_bytes >= sizeof budget->name)
        return wr_invalid("the name of a shared rule and its plan is too long; it has at most 511 bytes");
    memcpy(budget->name, options->name, name_bytes + 1);
    budget->options = *options;
    budget->options.name = NULL;
    int error = wr_charge_limits_make(&options->stack, &budget->charge_limits);
    if (error == 0)
        error = wr_permit_lease_terms_make(&options->stack, budget->redis_client->nodes, options->overshoot,
                                           &budget->terms);
    if (error == 0)
        error = peek_new_key(budget->redis_client->allocator, &options->stack, &budget->quota);
    if (error == 0)
        error = wr_random(secret, sizeof secret);
    if (error == 0)
        error = make_node_part(budget);
    if (error == 0)
        error = make_node_table(budget);
    if (error == 0)
        wr_hash_key_init(&budget->hash_key, secret);
    return error;
}

static void init_key_accounts(struct wr_shared_limit *budget)
{
    size_t max = (size_t)(budget->options.max_keys / WR_SHARED_LIMIT_SHARDS) + 1;

    for (size_t i = 0; i < WR_SHARED_LIMIT_SHARDS; i++) {
        (void)pthread_mutex_init(&budget->key_accounts[i].lock, NULL);
        wr_map_init(&budget->key_accounts[i].map, budget->redis_client->allocator, &budget->hash_key, max);
    }
}

static void name_shared_limit(struct wr_shared_limit *budget, uint32_t number)
{
    struct wr_buf who;

    wr_buf_init_fixed(&who, budget->who, sizeof budget->who);
    wr_buf_append_string(&who, budget->redis_client->who);
    wr_buf_append_char(&who, '-');
    wr_buf_append_u64(&who, number);
}

int wr_shared_limit_new(struct wr_redis_client *redis_client, const struct wr_shared_limit_options *options,
                        struct wr_shared_limit **ret_budget)
{
    struct wr_shared_limit *budget =
        wr_alloc(redis_client->allocator, sizeof *budget, _Alignof(struct wr_shared_limit));

    if (budget == NULL)
        return WEIR_E_NOMEM;
    budget->redis_client = redis_client;
    atomic_init(&budget->holders, 1);
    int error = fill_shared_limit(budget, options);
    if (error < 0) {
        wr_free(redis_client->allocator, budget, sizeof *budget, _Alignof(struct wr_shared_limit));
        return error;
    }
    init_key_accounts(budget);
    (void)pthread_mutex_lock(&redis_client->lock);
    name_shared_limit(budget, ++redis_client->budget_count);
    for (size_t i = 0; i < WR_SHARED_LIMIT_SHARDS; i++)
        budget->key_accounts[i].life = redis_client->lives;
    wr_list_push(&redis_client->budgets, &budget->link);
    wr_shared_limit_set_membership(budget, &redis_client->membership);
    (void)pthread_mutex_unlock(&redis_client->lock);
    *ret_budget = budget;
    return 0;
}

bool wr_shared_limit_has_options(const struct wr_shared_limit *budget, const struct wr_redis_client *redis_client,
                                 const struct wr_shared_limit_options *options)
{
    const struct wr_shared_limit_options *own = &budget->options;

    return budget->redis_client == redis_client && strcmp(budget->name, options->name) == 0 &&
           memcmp(&own->stack, &options->stack, sizeof own->stack) == 0 && own->overshoot == options->overshoot &&
           own->fallback == options->fallback && own->max_keys == options->max_keys;
}

void wr_shared_limit_ref(struct wr_shared_limit *budget)
{
    (void)atomic_fetch_add_explicit(&budget->holders, 1, memory_order_relaxed);
}

void wr_shared_limit_unref(struct wr_shared_limit *budget)
{
    if (atomic_fetch_sub_explicit(&budget->holders, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < WR_SHARED_LIMIT_SHARDS; i++)
        wr_key_accounts_release(budget, &budget->key_accounts[i]);
    weir_table_free(budget->table);
    wr_free(budget->redis_client->allocator, budget, sizeof *budget, _Alignof(struct wr_shared_limit));
}

void wr_shared_limit_free(struct wr_shared_limit *budget)
{
    if (budget == NULL)
        return;
    (void)pthread_mutex_lock(&budget->redis_client->lock);
    wr_list_remove(&budget->link);
    (void)pthread_mutex_unlock(&budget->redis_client->lock);
    wr_shared_limit_unref(budget);
}

weir_table *wr_shared_limit_table(struct wr_shared_limit *budget)
{
    return budget->table;
}

const weir_stack *wr_shared_limit_node_part(const struct wr_shared_limit *budget)
{
    return &budget->part;
}

void wr_shared_limit_view_get(struct wr_shared_limit *budget, struct wr_shared_limit_view *ret_view)
{
    *ret_view =
        (struct wr_shared_limit_view){.batch = budget->terms.batch, .bound = wr_permit_lease_bound(&budget->terms)};
    for (size_t i = 0; i < WR_SHARED_LIMIT_SHARDS; i++) {
        struct wr_key_accounts *key_accounts = &budget->key_accounts[i];
        (void)pthread_mutex_lock(&key_accounts->lock);
        for (size_t j = 0; j < WR_SOURCE_COUNT; j++) {
            ret_view->granted[j] += key_accounts->granted[j];
            ret_view->refused[j] += key_accounts->refused[j];
        }
        ret_view->keys += key_accounts->map.count;
        ret_view->owed += key_accounts->owed;
        ret_view->held += key_accounts->held;
        ret_view->damaged += key_accounts->damaged;
        if (key_accounts->overshoot > ret_view->overshoot)
            ret_view->overshoot = key_accounts->overshoot;
        if (key_accounts->longest_wait_ns > ret_view->longest_wait_ns)
            ret_view->longest_wait_ns = key_accounts->longest_wait_ns;
        (void)pthread_mutex_unlock(&key_accounts->lock);
    }
}
