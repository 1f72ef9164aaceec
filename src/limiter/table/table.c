/* SPDX-License-Identifier: MIT */
/* table.c - creates a table, changes its rules, closes and frees it. */
#include "limiter/table/table.h"

#include "base/bits.h"
#include "limiter/memory/memory.h"

#define DEFAULT_MAX_KEYS 1000000
#define KEYS_PER_SHARD 512
/* fewer only if each would have less than FEWEST_KEYS_PER_SHARD keys */
#define FEWEST_SHARDS 16
#define FEWEST_KEYS_PER_SHARD 64 /* among this many keys there is nearly always one to evict */
/* limit of the default: each shard may be a memory mapping, and the kernel allows 65530 */
#define USUAL_SHARDS 16384
#define MOST_SHARDS ((size_t)1 << 21)
#define FEWEST_INLINE_BYTES 24

void weir_table_options_init(weir_table_options *ret_options)
{
    if (ret_options != NULL)
        *ret_options = (weir_table_options){.size = sizeof *ret_options};
}

static int check_table_options(const weir_table_options *options)
{
    if (options->size != sizeof *options)
        return wr_invalid("options->size is not that of weir_table_options; use weir_table_options_init");
    if (options->max_keys > WEIR_KEYS_MAX)
        return wr_invalid("max_keys must be 1 to WEIR_KEYS_MAX, or 0 for 1000000");
    if (options->shards > MOST_SHARDS)
        return wr_invalid("shards must be 1 to 2097152, or 0 for the default");
    if (options->ttl_ns < 0 || options->ttl_ns > WEIR_DURATION_MAX)
        return wr_invalid("ttl_ns must be 0 (never) to WEIR_DURATION_MAX");
    if (options->sweep_every_ns < 0 || options->sweep_every_ns > WEIR_DURATION_MAX)
        return wr_invalid("sweep_every_ns must be 0 (no thread) to WEIR_DURATION_MAX");
    if (options->sweep_every_ns > 0 && options->ttl_ns == 0)
        return wr_invalid("sweep_every_ns needs a ttl_ns; set the time after which idle keys are forgotten");
    return 0;
}

/* Returns the layout of entries. Space in the last cache line after header and state is used for
 * the key. */
static struct wr_layout layout_for(uint32_t state_bytes)
{
    uint32_t offset = (uint32_t)sizeof(struct wr_entry) + (state_bytes + 7) / 8 * 8;
    uint32_t bytes =
        (offset + FEWEST_INLINE_BYTES + WR_CACHE_LINE_BYTES - 1) / WR_CACHE_LINE_BYTES * WR_CACHE_LINE_BYTES;
    return (struct wr_layout){.entry_bytes = bytes, .key_offset = offset, .inline_bytes = bytes - offset};
}

static size_t shards_for(const weir_table_options *options, size_t max_keys)
{
    size_t shards = options->shards;
    if (shards == 0) {
        size_t fewest = max_keys / FEWEST_KEYS_PER_SHARD;
        fewest = fewest < 1 ? 1 : fewest > FEWEST_SHARDS ? FEWEST_SHARDS : fewest;
        shards = max_keys / KEYS_PER_SHARD;
        shards = shards < fewest ? fewest : shards > USUAL_SHARDS ? USUAL_SHARDS : shards;
    }
    return wr_round_up_pow2(shards);
}

/* Updates lone_bucket after plan 0 of plan set `set` has changed. */
static void note_lone_bucket(weir_table *table, bool set)
{
    const weir_stack *stack = &table->plans[set][0];
    bool lone = stack->count == 1 && stack->limits[0].algorithm == &wr_token_bucket;
    table->lone_bucket[set] = lone ? &stack->limits[0] : NULL;
}

/* Returns true if a rule has permits in flight. */
static bool has_release(const weir_stack *stack)
{
    bool has = false;
    for (uint32_t i = 0; i < stack->count; i++)
        has = has || stack->limits[i].algorithm->release != NULL;
    return has;
}

void wr_table_set_bounds(weir_table *table, size_t max_keys, int64_t ttl_ns)
{
    atomic_store_explicit(&table->max_keys, max_keys, memory_order_relaxed);
    atomic_store_explicit(&table->ttl_ns, ttl_ns, memory_order_relaxed);
}

static void init_table(weir_table *table, const weir_stack *stack, const weir_table_options *options)
{
    table->clock = wr_clock_or_fast(options->clock);
    size_t max_keys = options->max_keys != 0 ? options->max_keys : DEFAULT_MAX_KEYS;
    wr_table_set_bounds(table, max_keys, options->ttl_ns);
    table->shard_count = shards_for(options, max_keys);
    wr_blocks_init(&table->blocks, table->allocator, table->shard_count);
    table->shard_bits = (unsigned)__builtin_ctzll(table->shard_count);
    table->state_bytes = stack->state_bytes;
    table->layout = layout_for(stack->state_bytes);
    table->plans[0][0] = *stack;
    note_lone_bucket(table, 0);
    table->overflow.refuses = has_release(stack);
    atomic_init(&table->plan_count, 1);
    table->plan_of = options->plan_of;
    table->plan_context = options->plan_context;
    table->made_at = wr_clock_now(table->clock);
    table->sweep_every_ns = options->sweep_every_ns;
    atomic_init(&table->holds, 1);
}

/* Allocates what a new table needs, except its thread. After a failure, free_table frees it. */
static int make_table_parts(weir_table *table)
{
    uint8_t secret[WR_HASH_SECRET_BYTES];
    int bad = wr_random(secret, sizeof secret);
    if (bad != 0)
        return bad;
    wr_hash_key_init(&table->hash_key, secret);
    table->shards =
        wr_alloc_array(table->allocator, table->shard_count, sizeof *table->shards, _Alignof(struct wr_shard));
    table->overflow.state = wr_alloc(table->allocator, table->state_bytes, 8);
    if (table->shards == NULL || table->overflow.state == NULL)
        return WEIR_E_NOMEM;
    weir_stack_start(&table->plans[0][0], table->overflow.state, table->made_at);
    return 0;
}

static void free_table(weir_table *table)
{
    for (size_t i = 0; table->shards != NULL && i < table->shard_count; i++)
        wr_shard_release(&table->shards[i], &table->layout, &table->blocks);
    wr_free(table->allocator, table->shards, table->shard_count * sizeof *table->shards, _Alignof(struct wr_shard));
    wr_free(table->allocator, table->overflow.state, table->state_bytes, 8);
    (void)pthread_mutex_destroy(&table->changing);
    wr_free(table->allocator, table, sizeof *table, _Alignof(weir_table));
}

void wr_table_unref(void *owner)
{
    weir_table *table = owner;
    if (atomic_fetch_sub_explicit(&table->holds, 1, memory_order_acq_rel) == 1)
        free_table(table);
}

int weir_table_new(const weir_limit *limits, size_t count, const weir_table_options *options, weir_table **ret_table)
{
    weir_table_options defaults;
    weir_table_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    if (ret_table == NULL)
        return wr_invalid("ret_table is NULL; it must point to where the table goes");
    weir_stack stack;
    if (check_table_options(options) != 0 || weir_stack_init(&stack, limits, count) != 0)
        return WEIR_E_INVAL;
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    weir_table *table = wr_alloc(allocator, sizeof *table, _Alignof(weir_table));
    if (table == NULL)
        return WEIR_E_NOMEM;
    table->allocator = allocator;
    if (pthread_mutex_init(&table->changing, NULL) != 0) {
        wr_free(allocator, table, sizeof *table, _Alignof(weir_table));
        return WEIR_E_SYSTEM;
    }
    init_table(table, &stack, options);
    int bad = make_table_parts(table);
    if (bad == 0)
        bad = wr_janitor_start(table);
    if (bad != 0) {
        free_table(table);
        return bad;
    }
    *ret_table = table;
    return 0;
}

/* ---- plans ---- */

static int check_plan(const weir_table *table, const weir_limit *limits, size_t count, weir_stack *ret_stack)
{
    if (wr_table_check_table(table) != 0 || weir_stack_init(ret_stack, limits, count) != 0)
        return WEIR_E_INVAL;
    if (ret_stack->state_bytes > table->state_bytes)
        return wr_invalid("these rules need more state per key than the table was made for; make plan 0 the largest");
    return 0;
}

int weir_table_add_plan(weir_table *table, const weir_limit *limits, size_t count, uint32_t *ret_plan)
{
    weir_stack stack;
    if (check_plan(table, limits, count, &stack) != 0)
        return WEIR_E_INVAL;
    (void)pthread_mutex_lock(&table->changing);
    unsigned plan = atomic_load(&table->plan_count);
    if (plan < WEIR_PLANS_MAX) {
        table->plans[0][plan] = table->plans[1][plan] = stack;
        atomic_store(&table->plan_count, plan + 1);
    }
    (void)pthread_mutex_unlock(&table->changing);
    if (plan == WEIR_PLANS_MAX)
        return WEIR_E_FULL;
    if (ret_plan != NULL)
        *ret_plan = plan;
    return 0;
}

/* A change of one plan: the old and new rules, and a buffer for converting a state. */
struct change {
    weir_table *table;
    const weir_stack *from, *to;
    void *scratch; /* buffer of table->state_bytes */
    uint32_t plan;
    int64_t now;
};

static void carry_entry_state(const struct change *change, void *state)
{
    memset(change->scratch, 0, change->table->state_bytes);
    /* cannot fail: the shapes were compared */
    (void)weir_stack_carry(change->from, state, change->to, change->scratch, change->now);
    memcpy(state, change->scratch, change->table->state_bytes);
}

static void change_shard(const struct change *change, struct wr_shard *shard)
{
    wr_lock_take(&shard->lock);
    size_t slot = 0;
    struct wr_entry *entry;
    while ((entry = wr_shard_next(shard, &change->table->layout, &slot)) != NULL)
        if (entry->plan == change->plan)
            carry_entry_state(change, wr_entry_state(entry));
    shard->plan_set = !shard->plan_set;
    wr_shard_mark_changed(shard);
    wr_lock_give(&shard->lock);
}

/* Wakes the first waiter of each marked queue, to check the new rules. */
static void wake_changed(weir_table *table, struct wr_shard *shard)
{
    struct weir_ticket *first;
    do {
        int64_t now = wr_clock_now(table->clock);
        wr_lock_take(&shard->lock);
        first = wr_shard_next_changed(shard, now);
        wr_lock_give(&shard->lock);
        wr_ticket_wake(first);
    } while (first != NULL);
}

static void change_overflow(const struct change *change)
{
    struct wr_overflow *overflow = &change->table->overflow;
    wr_lock_take(&overflow->lock);
    if (change->plan == 0)
        carry_entry_state(change, overflow->state);
    overflow->plan_set = !overflow->plan_set;
    wr_lock_give(&overflow->lock);
}

static int change_plan(weir_table *table, uint32_t plan, const weir_stack *stack)
{
    if (plan >= atomic_load(&table->plan_count))
        return wr_invalid("no such plan; weir_table_add_plan returns its number");
    bool idle = !table->plan_set;
    struct change change = {.table = table,
                            .from = &table->plans[!idle][plan],
                            .to = stack,
                            .plan = plan,
                            .now = wr_clock_now(table->clock)};
    if (!wr_stack_same_shape(change.from, stack))
        return wr_invalid("the algorithms differ; there must be the same ones in the same order");
    change.scratch = wr_alloc(table->allocator, table->state_bytes, 8);
    if (change.scratch == NULL)
        return WEIR_E_NOMEM;
    memcpy(table->plans[idle], table->plans[!idle], sizeof table->plans[idle]);
    table->plans[idle][plan] = *stack;
    note_lone_bucket(table, idle);
    change_overflow(&change);
    for (size_t i = 0; i < table->shard_count; i++)
        change_shard(&change, &table->shards[i]);
    table->plan_set = idle;
    wr_free(table->allocator, change.scratch, table->state_bytes, 8);
    return 0;
}

int wr_table_change_rules(weir_table *table, uint32_t plan, const weir_limit *limits, size_t count)
{
    weir_stack stack;
    if (check_plan(table, limits, count, &stack) != 0)
        return WEIR_E_INVAL;
    (void)pthread_mutex_lock(&table->changing);
    int bad = change_plan(table, plan, &stack);
    /* unlock before the wakes, which may change the table as well */
    (void)pthread_mutex_unlock(&table->changing);
    return bad;
}

void wr_table_wake_changed(weir_table *table)
{
    /* keep the table: a wake may free it */
    atomic_fetch_add_explicit(&table->holds, 1, memory_order_relaxed);
    for (size_t i = 0; i < table->shard_count; i++)
        wake_changed(table, &table->shards[i]);
    wr_table_unref(table);
}

int weir_table_change(weir_table *table, uint32_t plan, const weir_limit *limits, size_t count)
{
    int bad = wr_table_change_rules(table, plan, limits, count);
    if (bad == 0)
        wr_table_wake_changed(table);
    return bad;
}

/* ---- closing ---- */

static void close_shard(struct wr_shard *shard)
{
    struct weir_ticket *ticket;
    do {
        wr_lock_take(&shard->lock);
        shard->closed = true;
        ticket = wr_shard_next_unnotified(shard);
        wr_lock_give(&shard->lock);
        wr_ticket_wake(ticket);
    } while (ticket != NULL);
}

void weir_table_close(weir_table *table)
{
    if (table == NULL)
        return;
    wr_janitor_stop(table);
    for (size_t i = 0; i < table->shard_count; i++)
        close_shard(&table->shards[i]);
}

void weir_table_free(weir_table *table)
{
    if (table == NULL)
        return;
    weir_table_close(table);
    wr_table_unref(table);
}
