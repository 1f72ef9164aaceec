/* SPDX-License-Identifier: MIT */
/* policy_table.c - finds policies by key, and evicts the least recently used beyond the limits. */
#include "core/web/http/field.h"
#include "http/net/policy/policy_internal.h"

#define EXAMINED_MAX 1024 /* most policies examined to evict one: some 50 us */

/* ---- rules ---- */

int wr_robots_rules_new(const struct wr_policies *policies, struct wr_span text, struct wr_robots_rules **ret_rules)
{
    struct wr_robots_rules *rules = wr_alloc(policies->allocator, sizeof *rules, _Alignof(struct wr_robots_rules));
    if (rules == NULL)
        return WEIR_E_NOMEM;
    int bad = wr_robots_parse(text, &policies->parse, policies->allocator, &rules->robots);
    if (bad != 0) {
        wr_free(policies->allocator, rules, sizeof *rules, _Alignof(struct wr_robots_rules));
        return bad;
    }
    atomic_init(&rules->refs, 1);
    *ret_rules = rules;
    return 0;
}

struct wr_robots_rules *wr_robots_rules_hold(struct wr_robots_rules *rules)
{
    if (rules != NULL)
        (void)atomic_fetch_add_explicit(&rules->refs, 1, memory_order_relaxed);
    return rules;
}

void wr_robots_rules_drop(const struct wr_policies *policies, struct wr_robots_rules *rules)
{
    if (rules == NULL || atomic_fetch_sub_explicit(&rules->refs, 1, memory_order_acq_rel) != 1)
        return;
    wr_robots_free(rules->robots);
    wr_free(policies->allocator, rules, sizeof *rules, _Alignof(struct wr_robots_rules));
}

size_t wr_robots_rules_bytes(const struct wr_robots_rules *rules)
{
    return rules == NULL ? 0 : sizeof *rules + wr_robots_facts(rules->robots)->block_bytes;
}

int64_t wr_robots_rules_delay(const struct wr_policies *policies, const struct wr_robots_rules *rules)
{
    if (rules == NULL)
        return 0;
    double delay_ns = (double)wr_robots_interval_ns(rules->robots) * policies->options.delay_factor;
    int64_t max_ns = policies->parse.delay_max_ns;
    return delay_ns < (double)max_ns ? (int64_t)delay_ns : max_ns;
}

/* ---- one policy ---- */

static size_t validator_bytes(const struct wr_policy *policy)
{
    return (size_t)policy->etag_bytes + policy->modified_bytes;
}

static size_t policy_bytes(size_t key_bytes)
{
    return sizeof(struct wr_policy) + key_bytes;
}

/* Frees rules and validators of a policy. */
static void clear_rules(struct wr_policies *policies, struct wr_policy *policy)
{
    policies->bytes -= wr_robots_rules_bytes(policy->rules) + validator_bytes(policy);
    wr_robots_rules_drop(policies, policy->rules);
    wr_free(policies->allocator, policy->validators, validator_bytes(policy), 1);
    policy->rules = NULL;
    policy->validators = NULL;
    policy->etag_bytes = policy->modified_bytes = 0;
}

void wr_policy_free(struct wr_policies *policies, struct wr_policy *policy)
{
    clear_rules(policies, policy);
    size_t bytes = policy_bytes(policy->key_bytes);
    policies->bytes -= bytes;
    wr_free(policies->allocator, policy, bytes, _Alignof(struct wr_policy));
}

/* Returns the validator, or an empty span if it is too long or could not be sent back. A server or
 * a store may put any bytes into it. */
static struct wr_span usable_validator(struct wr_span validator)
{
    bool is_usable = validator.bytes <= WR_VALIDATOR_MAX && wr_field_is_sound(wr_span_of("ETag"), validator);
    return is_usable ? validator : (struct wr_span){NULL, 0};
}

static void put_validators(struct wr_policies *policies, struct wr_policy *policy, struct wr_span etag,
                           struct wr_span modified)
{
    etag = usable_validator(etag);
    modified = usable_validator(modified);
    policy->validators = wr_alloc(policies->allocator, etag.bytes + modified.bytes, 1);
    if (policy->validators == NULL)
        return; /* it will be fetched without validators */
    if (etag.bytes > 0)
        memcpy(policy->validators, etag.data, etag.bytes);
    if (modified.bytes > 0)
        memcpy(policy->validators + etag.bytes, modified.data, modified.bytes);
    policy->etag_bytes = (uint16_t)etag.bytes;
    policy->modified_bytes = (uint16_t)modified.bytes;
}

void wr_policy_set_rules(struct wr_policies *policies, struct wr_policy *policy, struct wr_robots_rules *rules,
                         struct wr_span etag, struct wr_span modified)
{
    clear_rules(policies, policy);
    policy->rules = rules;
    policy->delay_ns = wr_robots_rules_delay(policies, rules);
    put_validators(policies, policy, etag, modified);
    policies->bytes += wr_robots_rules_bytes(rules) + validator_bytes(policy);
}

int64_t wr_policy_delay(const struct wr_policy *policy)
{
    int64_t other_ns = policy->sibling != NULL ? policy->sibling->delay_ns : 0;
    return policy->delay_ns > other_ns ? policy->delay_ns : other_ns;
}

/* ---- list from newest to oldest ---- */

static void unlink_policy(struct wr_policies *policies, struct wr_policy *policy)
{
    *(policy->newer != NULL ? &policy->newer->older : &policies->newest) = policy->older;
    *(policy->older != NULL ? &policy->older->newer : &policies->oldest) = policy->newer;
}

static void link_newest(struct wr_policies *policies, struct wr_policy *policy)
{
    policy->newer = NULL;
    policy->older = policies->newest;
    *(policies->newest != NULL ? &policies->newest->newer : &policies->oldest) = policy;
    policies->newest = policy;
}

void wr_policy_touch(struct wr_policies *policies, struct wr_policy *policy)
{
    if (policies->newest == policy)
        return;
    unlink_policy(policies, policy);
    link_newest(policies, policy);
}

/* ---- eviction ---- */

static void evict_policy(struct wr_policies *policies, struct wr_policy *policy)
{
    if (policy->sibling != NULL)
        policy->sibling->sibling = NULL;
    unlink_policy(policies, policy);
    (void)wr_map_remove(&policies->map, policy->key, policy->key_bytes);
    wr_policy_free(policies, policy);
    policies->evicted++;
}

/* Evicts the oldest policy that may be evicted. Those that may not become the newest: they are in
 * use, and need no second check soon. */
static bool evict_oldest(struct wr_policies *policies, int64_t now)
{
    size_t most = policies->map.count < EXAMINED_MAX ? policies->map.count : EXAMINED_MAX;
    for (size_t i = 0; i < most; i++) {
        struct wr_policy *policy = policies->oldest;
        if (policy->holds == 0 && wr_robots_lifecycle_may_forget(&policy->life, now)) {
            evict_policy(policies, policy);
            return true;
        }
        wr_policy_touch(policies, policy);
    }
    return false;
}

bool wr_policy_make_room(struct wr_policies *policies, size_t bytes, int64_t now)
{
    size_t max = policies->options.max_bytes;
    bool may = true;
    while (may && (policies->bytes > max || bytes > max - policies->bytes))
        may = evict_oldest(policies, now);
    return may;
}

/* ---- finding by key ---- */

static struct wr_span policy_key(const struct wr_url *url, char memory[WR_POLICY_KEY_MAX + 1])
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, WR_POLICY_KEY_MAX + 1);
    wr_url_append_robots(&buf, url);
    assert(buf.error == 0);
    return (struct wr_span){memory, buf.length};
}

struct wr_policy *wr_policy_find(struct wr_policies *policies, const struct wr_url *url)
{
    char memory[WR_POLICY_KEY_MAX + 1];
    struct wr_span key = policy_key(url, memory);
    return wr_map_get(&policies->map, key.data, key.bytes);
}

/* Links the policies of http and https on the same host, which share one gate: "h" for http://h:80
 * and https://h:443, and "h:port" for both schemes on any other port. */
static void link_sibling(struct wr_policies *policies, struct wr_policy *policy)
{
    char memory[WR_POLICY_KEY_MAX + 1];
    struct wr_buf buf;
    size_t scheme_bytes = (size_t)((const char *)memchr(policy->key, ':', policy->key_bytes) - policy->key);
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_buf_append_string(&buf, scheme_bytes == 4 ? "https" : "http");
    wr_buf_append(&buf, policy->key + scheme_bytes, policy->key_bytes - scheme_bytes);
    policy->sibling = buf.error == 0 ? wr_map_get(&policies->map, buf.bytes, buf.length) : NULL;
    if (policy->sibling != NULL)
        policy->sibling->sibling = policy;
}

static int make_policy(struct wr_policies *policies, struct wr_span key, int64_t now, struct wr_policy **ret_policy)
{
    size_t bytes = policy_bytes(key.bytes);
    bool full = policies->map.count >= policies->options.max_hosts && !evict_oldest(policies, now);
    if (full || !wr_policy_make_room(policies, bytes, now))
        return WEIR_E_FULL;
    struct wr_policy *policy = wr_alloc(policies->allocator, bytes, _Alignof(struct wr_policy));
    if (policy == NULL)
        return WEIR_E_NOMEM;
    policy->key_bytes = (uint16_t)key.bytes;
    memcpy(policy->key, key.data, key.bytes);
    int bad = wr_map_put(&policies->map, policy->key, key.bytes, policy, NULL);
    if (bad != 0) {
        wr_free(policies->allocator, policy, bytes, _Alignof(struct wr_policy));
        return bad;
    }
    policies->bytes += bytes;
    link_newest(policies, policy);
    link_sibling(policies, policy);
    *ret_policy = policy;
    return 0;
}

int wr_policy_get(struct wr_policies *policies, const struct wr_url *url, int64_t now, struct wr_policy **ret_policy)
{
    char memory[WR_POLICY_KEY_MAX + 1];
    struct wr_span key = policy_key(url, memory);
    if (policies->closed)
        return WEIR_E_CLOSED;
    struct wr_policy *policy = wr_map_get(&policies->map, key.data, key.bytes);
    if (policy == NULL)
        return make_policy(policies, key, now, ret_policy);
    wr_policy_touch(policies, policy);
    *ret_policy = policy;
    return 0;
}
