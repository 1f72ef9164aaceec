/* SPDX-License-Identifier: MIT */
/* admission.c - creates and frees counters, which decide about requests by rules. */
#include "limiter/admission/admission.h"

#include "base/alloc.h"
#include "base/ascii.h"
#include "base/bits.h"
#include "base/error.h"
#include "core/admit/key.h"
#include "core/admit/request_headers.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

#include <string.h>

void weir_admission_options_init(weir_admission_options *ret_options)
{
    if (ret_options != NULL)
        *ret_options = (weir_admission_options){.size = sizeof *ret_options};
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Requires a String of RFC 9651, as the name is sent in the RateLimit field. */
static int check_rule_name(const char *name)
{
    static const char right[] = "use 1 ... 64 printable ASCII characters";

    if (name == NULL)
        return wr_invalid_text("rule name", NULL, 0, "it is NULL", WR_NOWHERE, right);
    for (size_t i = 0; name[i] != '\0'; i++) {
        if (i == WEIR_RULE_NAME_MAX)
            return wr_invalid_text("rule name", name, i, "too long", WR_NOWHERE, right);
        if (!wr_ascii_is_printable(name[i]))
            return wr_invalid_text("rule name", name, strlen(name), "not printable ASCII", i, right);
    }
    if (name[0] == '\0')
        return wr_invalid_text("rule name", name, 0, "it is empty", WR_NOWHERE, right);
    return 0;
}

static int check_key_store(const weir_key_store *repository, bool alone)
{
    if (repository == NULL || repository->size != sizeof *repository)
        return wr_invalid("a rule's repository is NULL or its size is not set; make one with weir_table_key_store");
    if (repository->attempt == NULL)
        return wr_invalid("a rule's repository has no attempt; every repository must offer it");
    if (!alone && (repository->reserve == NULL || repository->settle == NULL))
        return wr_invalid("a repository without reserve and settle can only serve a counter of one rule");
    return 0;
}

static int check_rule(const weir_rule *rule, bool alone)
{
    int error;

    if (rule->size != sizeof *rule)
        return wr_invalid("a rule is not filled by weir_rule_init; fill it first");
    error = check_rule_name(rule->name);
    if (error == 0 && rule->key != NULL)
        error = wr_key_check(rule->key);
    if (error == 0)
        error = check_key_store(rule->repository, alone);
    if (error == 0 && (rule->permits == 0 || rule->cost_max == 0))
        error = wr_invalid("a rule's permits or cost_max is 0; both are 1 ... 4294967295");
    if (error == 0 && rule->cost_header != NULL && !wr_header_name_ok(rule->cost_header))
        error = wr_invalid("a rule's cost_header is not a name in lower case; use one as x-cost, or NULL");
    for (size_t i = 0; error == 0 && rule->plans != NULL && i < rule->plan_count; i++)
        error = check_key_store(&rule->plans[i], alone);
    if (error == 0 && rule->plans == NULL && rule->plan_count > 0)
        error = wr_invalid("plans is NULL but plan_count is not 0; give the plans, or 0");
    if (error == 0 && rule->owns_store && rule->repository->free == NULL)
        error = wr_invalid("owns_store, but the repository has no free; clear one or set the other");
    return error;
}

static int check_admission_rules(const weir_rule *rules, size_t count)
{
    if (rules == NULL || count == 0 || count > WEIR_RULES_MAX)
        return wr_invalid("a counter has 1 ... 1000 rules");
    for (size_t i = 0; i < count; i++) {
        int error = check_rule(&rules[i], count == 1);
        if (error < 0)
            return error;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(rules[j].name, rules[i].name) == 0)
                return wr_invalid_text("rule name", rules[i].name, strlen(rules[i].name), "two rules have it",
                                       WR_NOWHERE, "callers tell rules apart by their names: give each its own");
        }
    }
    return 0;
}

/* ---- parts of a request that rules read ------------------------------------------------------ */

static bool has_custom_part(const weir_key_rule *key)
{
    for (size_t i = 0; key->kind == WEIR_KEY_COMPOSITE && i < key->parts_count; i++) {
        if (key->parts[i]->kind == WEIR_KEY_CUSTOM)
            return true;
    }
    return key->kind == WEIR_KEY_CUSTOM;
}

static void copy_rule(weir_admission *counter, struct wr_admission_rule *counted, const weir_rule *rule)
{
    counted->rule = *rule;
    counted->repository = *rule->repository;
    counted->has_custom_key = rule->key != NULL && has_custom_part(rule->key);
    counted->reads_request = counted->has_custom_key || rule->applies != NULL || rule->plan_of != NULL;
    counter->reads = counter->reads || counted->reads_request;
}

/* ---- create and free ------------------------------------------------------------------------- */

/* Returns the offset of the rules: they are in the counter's block, from the next cache line on. */
static size_t rules_at(void)
{
    return wr_round_up(sizeof(weir_admission), WR_CACHE_LINE);
}

static size_t admission_bytes(size_t count)
{
    return rules_at() + count * sizeof(struct wr_admission_rule);
}

int weir_admission_new(const weir_rule *rules, size_t count, const weir_admission_options *options,
                       weir_admission **ret_counter)
{
    weir_admission_options chosen;
    int error = check_admission_rules(rules, count);

    if (error < 0)
        return error;
    if (ret_counter == NULL)
        return wr_invalid("ret_counter is NULL; it must point to where the counter goes");
    if (options != NULL && options->size != sizeof *options)
        return wr_invalid("the options are not filled by weir_admission_options_init; fill them first");
    if (options != NULL && (options->exact & ~(unsigned)WEIR_EXACT_ALL) != 0)
        return wr_invalid("exact has unknown bits; use bits of WEIR_EXACT_ALL");
    weir_admission_options_init(&chosen);
    if (options != NULL)
        chosen = *options;
    chosen.clock = wr_clock_or_fast(chosen.clock);
    chosen.allocator = wr_allocator_or_system(chosen.allocator);

    weir_admission *counter = wr_alloc(chosen.allocator, admission_bytes(count), WR_CACHE_LINE);
    if (counter == NULL)
        return WEIR_E_NOMEM;
    counter->options = chosen;
    counter->count = (uint32_t)count;
    counter->reads = false;
    counter->rules = (struct wr_admission_rule *)(void *)((char *)counter + rules_at());
    for (size_t i = 0; i < count; i++)
        copy_rule(counter, &counter->rules[i], &rules[i]);
    *ret_counter = counter;
    return 0;
}

/* Returns true if a later rule owns the same repository; that rule frees it. */
static bool is_owned_again(const weir_admission *counter, uint32_t index)
{
    const struct wr_admission_rule *counted = &counter->rules[index];

    for (uint32_t i = index + 1; i < counter->count; i++) {
        const struct wr_admission_rule *other = &counter->rules[i];
        if (other->rule.owns_store && other->repository.context == counted->repository.context &&
            other->repository.free == counted->repository.free)
            return true;
    }
    return false;
}

void weir_admission_free(weir_admission *counter)
{
    if (counter == NULL)
        return;
    for (uint32_t i = 0; i < counter->count; i++) {
        struct wr_admission_rule *counted = &counter->rules[i];
        if (counted->rule.owns_store && !is_owned_again(counter, i))
            counted->repository.free(counted->repository.context);
    }
    wr_free(counter->options.allocator, counter, admission_bytes(counter->count), WR_CACHE_LINE);
}

int weir_admission_stats_get(const weir_admission *counter, uint32_t rule, weir_rule_stats *ret_stats)
{
    if (counter == NULL || rule >= counter->count || ret_stats == NULL)
        return wr_invalid("no such counter or rule, or ret_stats is NULL; rules count from 0");
    struct wr_admission_rule *counted = &counter->rules[rule];
    *ret_stats = (weir_rule_stats){
        .granted = atomic_load_explicit(&counted->tallies[WEIR_OUTCOME_GRANTED], memory_order_relaxed),
        .refused = atomic_load_explicit(&counted->tallies[WEIR_OUTCOME_REFUSED], memory_order_relaxed),
        .malformed = atomic_load_explicit(&counted->tallies[WEIR_OUTCOME_MALFORMED], memory_order_relaxed),
        .failed = atomic_load_explicit(&counted->tallies[WEIR_OUTCOME_FAILED], memory_order_relaxed),
    };
    return 0;
}
