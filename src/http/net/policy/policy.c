/* SPDX-License-Identifier: MIT */
/* policy.c - creates, loads, inspects and closes the registry of robots.txt policies. */
#include "base/error.h"
#include "http/net/idna.h"
#include "http/net/policy/policy_internal.h"
#include "limiter/memory/memory.h"
#include "limiter/pacer/pacer.h"

#define AGENT "weir"
#define MAX_HOSTS 100000
#define MAX_BYTES ((size_t)256 << 20)
#define FACTOR_MIN 0.01
#define FACTOR_MAX 100
#define SKEW_NS WEIR_MINUTE /* accepted advance of the clock of the machine that wrote a record */

/* ---- options ---- */

static int check_policies_options(const struct wr_policies_options *options)
{
    if (options->pacer == NULL)
        return wr_invalid("pacer is NULL; without one nothing would keep to Crawl-delay");
    if (options->fetch == NULL)
        return wr_invalid("fetch is NULL; it must be a function that fetches robots.txt");
    if (options->agent != NULL && (options->agent[0] == '\0' || strlen(options->agent) > WR_POLICIES_AGENT_MAX))
        return wr_invalid("agent must be a product token of 1 to 1024 bytes, or NULL for weir");
    if (options->delay_max_ns < 0 || options->delay_max_ns > WEIR_DURATION_MAX)
        return wr_invalid("delay_max_ns must be 1 ns to WEIR_DURATION_MAX, or 0 for a day");
    if (options->delay_factor != 0 && !(options->delay_factor >= FACTOR_MIN && options->delay_factor <= FACTOR_MAX))
        return wr_invalid("delay_factor must be 0.01 to 100, or 0 for 1");
    if (options->max_hosts > WR_POLICIES_HOSTS_MAX)
        return wr_invalid("max_hosts must be 1 to 10000000, or 0 for 100000");
    if (options->max_bytes != 0 && options->max_bytes < WR_POLICIES_BYTES_MIN)
        return wr_invalid("max_bytes must be at least 16 MiB, or 0 for 256 MiB");
    return 0;
}

static void fill_policies_defaults(struct wr_policies *policies)
{
    struct wr_policies_options *options = &policies->options;
    policies->clock = wr_clock_or_fast(options->clock);
    options->max_hosts = options->max_hosts != 0 ? options->max_hosts : MAX_HOSTS;
    options->max_bytes = options->max_bytes != 0 ? options->max_bytes : MAX_BYTES;
    options->delay_factor = options->delay_factor != 0 ? options->delay_factor : 1;
    policies->parse.delay_max_ns = options->delay_max_ns != 0 ? options->delay_max_ns : WR_ROBOTS_DELAY_MAX_NS;
    policies->parse.agent = wr_span_of(policies->agent);
    atomic_init(&policies->holds, 1);
    wr_map_init(&policies->map, policies->allocator, &policies->hash_key, options->max_hosts);
}

static int init_policies(struct wr_policies *policies)
{
    uint8_t secret[WR_HASH_SECRET_BYTES];
    uint64_t seed = policies->options.seed;
    if (wr_random(secret, sizeof secret) != 0 || (seed == 0 && wr_random(&seed, sizeof seed) != 0))
        return WEIR_E_SYSTEM;
    wr_hash_key_init(&policies->hash_key, secret);
    wr_rng_init(&policies->rng, seed);
    return pthread_mutex_init(&policies->lock, NULL) == 0 ? 0 : WEIR_E_SYSTEM;
}

static size_t policies_bytes(const char *agent)
{
    return sizeof(struct wr_policies) + strlen(agent) + 1;
}

int wr_policies_new(const struct wr_policies_options *options, struct wr_policies **ret_policies)
{
    struct wr_robots_lifecycle_options life;
    int bad = check_policies_options(options);
    if (bad == 0)
        bad = wr_robots_lifecycle_options_check(&options->life, &life);
    if (bad != 0)
        return bad;
    const char *agent = options->agent != NULL ? options->agent : AGENT;
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    struct wr_policies *policies = wr_alloc(allocator, policies_bytes(agent), _Alignof(struct wr_policies));
    if (policies == NULL)
        return WEIR_E_NOMEM;
    policies->options = *options;
    policies->options.life = life;
    policies->allocator = allocator;
    memcpy(policies->agent, agent, strlen(agent));
    fill_policies_defaults(policies);
    bad = init_policies(policies);
    if (bad != 0) {
        wr_free(allocator, policies, policies_bytes(agent), _Alignof(struct wr_policies));
        return bad;
    }
    wr_pacer_ref(options->pacer); /* a fetch may end after the owner has freed the pacer */
    *ret_policies = policies;
    return 0;
}

/* ---- ending ---- */

void wr_policies_hold(struct wr_policies *policies)
{
    (void)atomic_fetch_add_explicit(&policies->holds, 1, memory_order_relaxed);
}

void wr_policies_drop(struct wr_policies *policies)
{
    if (atomic_fetch_sub_explicit(&policies->holds, 1, memory_order_acq_rel) != 1)
        return;
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(&policies->map, &cursor)) != NULL;)
        wr_policy_free(policies, slot->value);
    wr_map_release(&policies->map);
    (void)pthread_mutex_destroy(&policies->lock);
    wr_pacer_unref(policies->options.pacer);
    wr_free(policies->allocator, policies, policies_bytes(policies->agent), _Alignof(struct wr_policies));
}

/* A closed registry neither adds nor removes policies, so the map is iterated without the lock. */
void wr_policies_close(struct wr_policies *policies)
{
    const struct wr_map_slot *slot;
    if (policies == NULL)
        return;
    wr_policies_lock(policies);
    bool was_closed = policies->closed;
    policies->closed = true;
    for (size_t cursor = 0; !was_closed && (slot = wr_map_next(&policies->map, &cursor)) != NULL;)
        ((struct wr_policy *)slot->value)->round++;
    wr_policies_unlock(policies);
    for (size_t cursor = 0; (slot = wr_map_next(&policies->map, &cursor)) != NULL;)
        wr_policy_wake(policies, slot->value);
}

void wr_policies_free(struct wr_policies *policies)
{
    if (policies == NULL)
        return;
    wr_policies_close(policies);
    wr_policies_drop(policies);
}

/* ---- stored records ---- */

int64_t wr_policies_wall(const struct wr_policies *policies)
{
    return policies->options.wall != NULL ? wr_clock_now(policies->options.wall) : weir_wall_now();
}

/* Returns the age of a stored record, ns; -1 if its date is too far in the future to know it. */
static int64_t record_age(const struct wr_policies *policies, int64_t wall_at)
{
    int64_t wall_now = wr_policies_wall(policies);
    if (wall_at < 0)
        return WEIR_DURATION_MAX;
    if (wall_at <= wall_now)
        return wall_now - wall_at;
    return wall_at - wall_now <= SKEW_NS ? 0 : -1;
}

/* Puts a parsed record into the registry. The lock is held. */
static int load_record(struct wr_policies *policies, const struct wr_url *url, const struct wr_robots_record *record,
                       struct wr_robots_rules *rules)
{
    int64_t now = wr_clock_now(policies->clock);
    struct wr_policy *policy;
    int bad = wr_policy_get(policies, url, now, &policy);
    if (bad != 0)
        return bad;
    struct wr_robots_event event = {.kind = WR_ROBOTS_EVENT_LOADED,
                                    .has_rules = rules != NULL,
                                    .max_age_ns = record->max_age_ns,
                                    .age_ns = record_age(policies, record->fetched_wall_at)};
    if (policy->life.fetching || policy->life.has_copy || policy->life.failures > 0)
        return 0;
    policy->holds++;
    bool fits = wr_policy_make_room(policies, wr_robots_rules_bytes(rules) + 2 * WR_VALIDATOR_MAX, now);
    policy->holds--;
    if (!fits)
        return WEIR_E_FULL;
    wr_policy_set_rules(policies, policy, wr_robots_rules_hold(rules), record->etag, record->modified);
    event.has_validators = policy->validators != NULL;
    (void)wr_robots_lifecycle_step(&policy->life, &policies->options.life, &event, now);
    return 0;
}

int wr_policies_load(struct wr_policies *policies, const struct wr_robots_record *record)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    struct wr_robots_rules *rules = NULL;
    if (record->kind != WR_ROBOTS_RECORD_TEXT && record->kind != WR_ROBOTS_RECORD_NONE)
        return wr_invalid("the record's kind must be text or none");
    if (wr_url_parse(record->robots_url, NULL, wr_idna_libidn2(), memory, sizeof memory, &url) != WR_URL_OK)
        return wr_invalid("the record's robots_url is not the URL of a robots.txt");
    int bad = record->kind == WR_ROBOTS_RECORD_TEXT ? wr_robots_rules_new(policies, record->text, &rules) : 0;
    if (bad != 0)
        return bad;
    wr_policies_lock(policies);
    bad = load_record(policies, &url, record, rules);
    wr_policies_unlock(policies);
    wr_robots_rules_drop(policies, rules);
    return bad;
}

/* ---- inspecting ---- */

static struct wr_policy_info describe_policy(const struct wr_policy *policy, int64_t now)
{
    const struct wr_robots_lifecycle *life = &policy->life;
    struct wr_policy_info look = {.state = wr_robots_lifecycle_state(life, now),
                                  .has_rules = policy->rules != NULL,
                                  .age_ns = life->has_copy ? now - life->copied_at : -1,
                                  .retry_ns = life->failures > 0 && life->retry_at > now ? life->retry_at - now : 0,
                                  .delay_ns = wr_policy_delay(policy)};
    if (policy->rules != NULL) {
        const struct wr_robots_facts *facts = wr_robots_facts(policy->rules->robots);
        look.rules = facts->rules;
        look.is_clamped = facts->is_clamped;
        look.is_cut = facts->is_cut;
    }
    for (const struct wr_policy_ticket *ticket = policy->first; ticket != NULL; ticket = ticket->next)
        look.waiters++;
    return look;
}

int wr_policies_inspect(struct wr_policies *policies, const struct wr_url *url, struct wr_policy_info *ret_look)
{
    int64_t now = wr_clock_now(policies->clock);
    wr_policies_lock(policies);
    const struct wr_policy *policy = wr_policy_find(policies, url);
    if (policy != NULL)
        *ret_look = describe_policy(policy, now);
    wr_policies_unlock(policies);
    return policy != NULL ? 0 : WEIR_E_ABSENT;
}

struct wr_policies_stats wr_policies_stats(struct wr_policies *policies)
{
    wr_policies_lock(policies);
    struct wr_policies_stats stats = {.hosts = policies->map.count,
                                      .bytes = policies->bytes,
                                      .fetching = policies->fetching,
                                      .waiters = policies->waiters,
                                      .fetches = policies->fetches,
                                      .failures = policies->failures,
                                      .evicted = policies->evicted};
    wr_policies_unlock(policies);
    return stats;
}
