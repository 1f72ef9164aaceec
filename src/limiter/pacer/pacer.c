/* SPDX-License-Identifier: MIT */
/* pacer.c - Creates, changes and frees a pacer. */
#include "limiter/pacer/pacer.h"

#include "limiter/memory/memory.h"

#define MAX_HOSTS 1000000
#define HOSTS_PER_SHARD \
    4096 /* shards are few and large: a gate is ten times a limiter; a shard has at least 16 gates */
#define FEWEST_SHARDS 16
#define TTL_NS (2 * WEIR_MINUTE)
#define THROTTLED_OVER_NS (10 * WEIR_MILLISECOND)

static const char *const event_names[] = {
#define X(kind, name) [kind] = (name),
    WEIR_PACE_EVENTS(X)
#undef X
};

const char *weir_pace_event_name(weir_pace_event_kind kind)
{
    return (size_t)kind < sizeof event_names / sizeof *event_names ? event_names[kind] : NULL;
}

int64_t wr_pacer_wall_now(const weir_pacer *pacer)
{
    return pacer->wall != NULL ? wr_clock_now(pacer->wall) : weir_wall_now();
}

int wr_pacer_check(const weir_pacer *pacer, const char *key, size_t key_bytes)
{
    if (pacer == NULL)
        return wr_invalid("pacer is NULL; make one with weir_pacer_new");
    if (key == NULL)
        return wr_invalid("key is NULL; it must be 1 to WEIR_PACE_KEY_MAX bytes");
    if (key_bytes == 0 || key_bytes > WEIR_PACE_KEY_MAX)
        return wr_invalid("key_bytes must be 1 to WEIR_PACE_KEY_MAX; hash longer keys first");
    return 0;
}

void wr_pacer_notify(const weir_pacer *pacer, const weir_pace_event *event)
{
    if (pacer->listener != NULL)
        pacer->listener(pacer->listener_context, event);
}

/* ---- options ---- */

void weir_pacer_options_init(weir_pacer_options *ret_options)
{
    if (ret_options != NULL)
        *ret_options = (weir_pacer_options){.size = sizeof *ret_options};
}

static bool duration_ok(int64_t duration_ns)
{
    return duration_ns >= 0 && duration_ns <= WEIR_DURATION_MAX;
}

static int check_pacer_options(const weir_pacer_options *options)
{
    if (options->size != sizeof *options)
        return wr_invalid("options->size is not that of weir_pacer_options; use weir_pacer_options_init");
    if (options->max_hosts > WEIR_KEYS_MAX)
        return wr_invalid("max_hosts must be 1 to WEIR_KEYS_MAX, or 0 for 1000000");
    if (!duration_ok(options->ttl_ns))
        return wr_invalid("ttl_ns must be 1 ns to WEIR_DURATION_MAX, or 0 for 2 minutes");
    if (options->sweep_every_ns > WEIR_DURATION_MAX)
        return wr_invalid("sweep_every_ns must be at most WEIR_DURATION_MAX; 0 is ttl_ns/2, and less is never");
    if (!duration_ok(options->throttled_over_ns))
        return wr_invalid("throttled_over_ns must be 1 ns to WEIR_DURATION_MAX, or 0 for 10 ms");
    if ((options->groups & ~(uint32_t)(WEIR_GROUP_DOMAIN | WEIR_GROUP_ADDRESS)) != 0)
        return wr_invalid("groups must be of WEIR_GROUP_DOMAIN and WEIR_GROUP_ADDRESS, or 0");
    if ((options->groups & WEIR_GROUP_DOMAIN) != 0 && options->domain_of == NULL)
        return wr_invalid("groups: WEIR_GROUP_DOMAIN needs domain_of; set it to weir_registrable_domain of weir/web.h");
    return 0;
}

/* ---- creation ---- */

static weir_table_options table_options(const weir_pacer_options *options)
{
    weir_table_options table;
    weir_table_options_init(&table);
    table.max_keys = options->max_hosts != 0 ? options->max_hosts : MAX_HOSTS;
    table.shards = options->shards;
    if (table.shards == 0 && table.max_keys >= HOSTS_PER_SHARD) {
        table.shards = table.max_keys / HOSTS_PER_SHARD;
        table.shards = table.shards > FEWEST_SHARDS ? table.shards : FEWEST_SHARDS;
    }
    table.ttl_ns = options->ttl_ns != 0 ? options->ttl_ns : TTL_NS;
    table.sweep_every_ns = options->sweep_every_ns != 0 ? options->sweep_every_ns : (table.ttl_ns + 1) / 2;
    if (table.sweep_every_ns < 0)
        table.sweep_every_ns = 0;
    table.clock = options->clock;
    table.allocator = options->allocator;
    return table;
}

static int init_pacer(weir_pacer *pacer, const weir_pace_options *pace, const weir_pacer_options *options)
{
    pacer->clock = wr_clock_or_fast(options->clock);
    pacer->wall = options->wall;
    pacer->groups = options->groups;
    pacer->domain_of = options->domain_of;
    pacer->domain_context = options->domain_context;
    pacer->keeps_unsaved = options->keeps_unsaved;
    pacer->throttled_over_ns = options->throttled_over_ns != 0 ? options->throttled_over_ns : THROTTLED_OVER_NS;
    pacer->seed = options->seed;
    pacer->listener = options->listener;
    pacer->listener_context = options->listener_context;
    pacer->rules[0] = (struct wr_pacer_rule){*pace, pacer};
    atomic_init(&pacer->off, pace->off);
    atomic_init(&pacer->holds, 1);
    return pacer->seed != 0 ? 0 : wr_random(&pacer->seed, sizeof pacer->seed);
}

static int make_host_table(weir_pacer *pacer, const weir_pacer_options *options)
{
    weir_limit limit;
    weir_table_options table = table_options(options);
    if (weir_limit_custom(&limit, &wr_gate_algorithm, 1, 0, &pacer->rules[0]) != 0)
        return WEIR_E_INVAL;
    return weir_table_new(&limit, 1, &table, &pacer->table);
}

int weir_pacer_new(const weir_pace_options *pace, const weir_pacer_options *options, weir_pacer **ret_pacer)
{
    weir_pacer_options defaults;
    weir_pace_options checked;
    weir_pacer_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    if (ret_pacer == NULL)
        return wr_invalid("ret_pacer is NULL; it must point to where the pacer goes");
    if (check_pacer_options(options) != 0 || wr_pace_options_check(pace, &checked) != 0)
        return WEIR_E_INVAL;
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    weir_pacer *pacer = wr_alloc(allocator, sizeof *pacer, _Alignof(weir_pacer));
    if (pacer == NULL)
        return wr_failed(WEIR_E_NOMEM);
    pacer->allocator = allocator;
    int bad = pthread_mutex_init(&pacer->changing, NULL) == 0 ? 0 : WEIR_E_SYSTEM;
    if (bad == 0) {
        bad = init_pacer(pacer, &checked, options);
        if (bad == 0)
            bad = make_host_table(pacer, options);
        if (bad != 0)
            (void)pthread_mutex_destroy(&pacer->changing);
    }
    if (bad != 0) {
        wr_free(allocator, pacer, sizeof *pacer, _Alignof(weir_pacer));
        return wr_failed(bad);
    }
    *ret_pacer = pacer;
    return 0;
}

/* ---- changes ---- */

static int check_change(const weir_pace_options *from, const weir_pace_options *to)
{
    if (from->strategy != to->strategy || from->latency_ring != to->latency_ring || from->window_ns != to->window_ns ||
        from->window_step_ns != to->window_step_ns)
        return wr_invalid("strategy, latency_ring, window and window_step must stay as they are; make a new pacer");
    return 0;
}

static int change_pacer_rule(weir_pacer *pacer, const weir_pace_options *pace)
{
    struct wr_pacer_rule *idle = &pacer->rules[!pacer->rule_set];
    weir_limit limit;
    if (check_change(&pacer->rules[pacer->rule_set].pace, pace) != 0)
        return WEIR_E_INVAL;
    *idle = (struct wr_pacer_rule){*pace, pacer};
    int bad = weir_limit_custom(&limit, &wr_gate_algorithm, 1, 0, idle);
    if (bad == 0)
        bad = wr_table_change_rules(pacer->table, 0, &limit, 1);
    if (bad == 0) {
        pacer->rule_set = !pacer->rule_set;
        atomic_store(&pacer->off, pace->off);
    }
    return bad;
}

int weir_pacer_change(weir_pacer *pacer, const weir_pace_options *pace)
{
    weir_pace_options checked;
    if (pacer == NULL)
        return wr_invalid("pacer is NULL; make one with weir_pacer_new");
    if (wr_pace_options_check(pace, &checked) != 0)
        return WEIR_E_INVAL;
    (void)pthread_mutex_lock(&pacer->changing);
    int bad = change_pacer_rule(pacer, &checked);
    (void)pthread_mutex_unlock(&pacer->changing); /* before the wakes, which may change it too */
    if (bad == 0)
        wr_table_wake_changed(pacer->table);
    return bad;
}

/* ---- release ---- */

void wr_pacer_ref(weir_pacer *pacer)
{
    (void)atomic_fetch_add_explicit(&pacer->holds, 1, memory_order_relaxed);
}

void wr_pacer_unref(weir_pacer *pacer)
{
    if (atomic_fetch_sub_explicit(&pacer->holds, 1, memory_order_acq_rel) != 1)
        return;
    weir_table_free(pacer->table);
    (void)pthread_mutex_destroy(&pacer->changing);
    wr_free(pacer->allocator, pacer, sizeof *pacer, _Alignof(weir_pacer));
}

size_t weir_pacer_sweep(weir_pacer *pacer)
{
    return pacer != NULL ? weir_table_sweep(pacer->table) : 0;
}

void weir_pacer_close(weir_pacer *pacer)
{
    if (pacer != NULL)
        weir_table_close(pacer->table);
}

void weir_pacer_free(weir_pacer *pacer)
{
    if (pacer == NULL)
        return;
    weir_pacer_close(pacer);
    wr_pacer_unref(pacer);
}
