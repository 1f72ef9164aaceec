/* SPDX-License-Identifier: MIT */
/* rig.h - a fixture for tests of weir_admission: tables on a fake clock, and a scripted key
 * store. */
#ifndef WEIR_TEST_COUNTER_RIG_H
#define WEIR_TEST_COUNTER_RIG_H

#include "lib/alloc.h"
#include "lib/test.h"

#include <weir/admit.h>

#define RULES_MAX 10

struct admission_fixture {
    test_allocator memory;
    weir_clock *clock;
    size_t count;
    weir_table *tables[RULES_MAX];
    weir_key_store repositories[RULES_MAX];
    weir_key_rule keys[RULES_MAX];
    weir_rule rules[RULES_MAX];
    weir_admission_options options;
    weir_admission *counter;
    weir_request request;
    weir_admission_result admission;
};

static inline struct admission_fixture *rig_new(void)
{
    struct admission_fixture *rig = calloc(1, sizeof *rig);

    assert_non_null(rig);
    test_allocator_init(&rig->memory);
    assert_int_equal(weir_clock_fake_new(WEIR_HOUR, NULL, &rig->clock), 0);
    weir_admission_options_init(&rig->options);
    rig->options.allocator = &rig->memory.allocator;
    rig->options.clock = rig->clock;
    weir_request_init(&rig->request, "GET", "/a", "203.0.113.7");
    return rig;
}

/* Adds a rule whose key store is not a table. */
static inline weir_rule *rig_add_store(struct admission_fixture *rig, const char *name, weir_key_kind kind,
                                       weir_key_store store)
{
    size_t i = rig->count++;

    assert_in_range(i, 0, RULES_MAX - 1);
    rig->repositories[i] = store;
    weir_key_rule_init(&rig->keys[i], kind);
    weir_rule_init(&rig->rules[i], name, &rig->keys[i], &rig->repositories[i]);
    return &rig->rules[i];
}

/* Adds a rule with a table of its own. */
static inline weir_rule *rig_add(struct admission_fixture *rig, const char *name, weir_key_kind kind, weir_limit limit)
{
    weir_table_options options;
    weir_table *table;

    weir_table_options_init(&options);
    options.clock = rig->clock;
    options.allocator = &rig->memory.allocator;
    options.max_keys = 1000;
    assert_int_equal(weir_table_new(&limit, 1, &options, &table), 0);
    rig->tables[rig->count] = table;
    return rig_add_store(rig, name, kind, weir_table_key_store(table));
}

static inline void rig_open(struct admission_fixture *rig)
{
    assert_int_equal(weir_admission_new(rig->rules, rig->count, &rig->options, &rig->counter), 0);
}

/* Returns a limit of `permits` requests per minute and key. */
static inline weir_limit window(uint32_t permits)
{
    weir_limit limit;
    assert_int_equal(weir_limit_fixed_window(&limit, permits, WEIR_MINUTE), 0);
    return limit;
}

static inline weir_limit at_once(uint32_t permits)
{
    weir_limit limit;
    assert_int_equal(weir_limit_concurrency(&limit, permits), 0);
    return limit;
}

/* Frees everything, tables too, and fails the test if memory is still allocated. */
static inline void rig_free(struct admission_fixture *rig)
{
    weir_admission_free(rig->counter);
    for (size_t i = 0; i < rig->count; i++) {
        if (!rig->rules[i].owns_store)
            weir_table_free(rig->tables[i]);
    }
    assert_int_equal(atomic_load(&rig->memory.live), 0);
    assert_int_equal(atomic_load(&rig->memory.live_bytes), 0);
    weir_clock_fake_free(rig->clock);
    free(rig);
}

/* Returns true if the rules allow the fixture's request now. */
static inline bool rig_try(struct admission_fixture *rig)
{
    assert_int_equal(weir_admission_try(rig->counter, &rig->request, &rig->admission), 0);
    return rig->admission.allowed;
}

static inline bool rig_try_key(struct admission_fixture *rig, uint32_t rule, const char *key)
{
    assert_int_equal(weir_admission_try_key(rig->counter, rule, key, strlen(key), 0, &rig->admission), 0);
    return rig->admission.allowed;
}

/* Returns the permits that a key has left, or UINT32_MAX if the key was never used. */
static inline uint32_t rig_left(struct admission_fixture *rig, size_t rule, const char *key)
{
    weir_quota quota;
    int error = weir_table_peek(rig->tables[rule], key, strlen(key), &quota);

    if (error == WEIR_E_ABSENT)
        return UINT32_MAX;
    assert_int_equal(error, 0);
    return quota.remaining;
}

/* ---- a scripted key store: returns what the test set, and counts the calls ---- */

struct script {
    int error;
    weir_decision decision;
    weir_quota quota;
    int asked, settled, released, freed;
    uint32_t permits; /* permits of the last call */
};

static inline int script_attempt(void *context, const char *key, size_t key_bytes, uint32_t permits,
                                 weir_decision *ret_decision)
{
    struct script *script = context;

    (void)key;
    assert_in_range(key_bytes, 1, WEIR_KEY_MAX);
    script->asked++;
    script->permits = permits;
    if (script->error == 0)
        *ret_decision = script->decision;
    return script->error;
}

static inline int script_reserve(void *context, const char *key, size_t key_bytes, uint32_t permits,
                                 weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    int error = script_attempt(context, key, key_bytes, permits, ret_decision);

    if (error == 0 && ret_decision->verdict == WEIR_GO && ret_receipt != NULL)
        *ret_receipt = (weir_receipt){.permits = permits};
    return error;
}

static inline int script_acquire(void *context, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                                 weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    (void)timeout_ns;
    (void)cancel;
    return script_reserve(context, key, key_bytes, permits, ret_receipt, ret_decision);
}

static inline int script_settle(void *context, const char *key, size_t key_bytes, weir_receipt *receipt, uint32_t used)
{
    struct script *script = context;

    (void)key;
    (void)key_bytes;
    script->settled++;
    script->permits = used;
    receipt->permits = 0;
    return script->error;
}

static inline int script_release(void *context, const char *key, size_t key_bytes, uint32_t permits)
{
    struct script *script = context;

    (void)key;
    (void)key_bytes;
    script->released++;
    script->permits = permits;
    return script->error;
}

static inline int script_peek(void *context, const char *key, size_t key_bytes, weir_quota *ret_quota)
{
    struct script *script = context;

    (void)key;
    (void)key_bytes;
    if (script->quota.limit == 0)
        return WEIR_E_ABSENT;
    *ret_quota = script->quota;
    return 0;
}

static inline void script_free(void *context)
{
    struct script *script = context;
    script->freed++;
}

static inline weir_key_store script_repository(struct script *script)
{
    return (weir_key_store){.size = sizeof(weir_key_store),
                            .context = script,
                            .attempt = script_attempt,
                            .acquire = script_acquire,
                            .reserve = script_reserve,
                            .settle = script_settle,
                            .release = script_release,
                            .peek = script_peek,
                            .free = script_free};
}

#endif
