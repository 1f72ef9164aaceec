/* SPDX-License-Identifier: MIT */
/* fetch.c - fetches a robots.txt over its redirects, and applies the result to its policy. */
#include "core/rules/http/field.h"
#include "core/rules/url/redirect.h"
#include "shell/net/idna.h"
#include "shell/net/policy/parts.h"

/* One fetch. The fetcher sees only the first member. It holds references to policy and registry. */
struct fetch {
    struct wr_robots_fetch seen;
    struct wr_policies *policies;
    struct wr_policy *policy;
    int64_t wall_at;   /* wall time when the first request was sent */
    char *hop_text;    /* text of the url after a redirect; NULL: it is in `text` */
    size_t text_bytes; /* size of `text` */
    char text[];
};

static void free_hop(struct fetch *fetch)
{
    wr_give(fetch->policies->allocator, fetch->hop_text, WR_URL_ROOM, 1);
}

static void free_fetch(struct fetch *fetch)
{
    free_hop(fetch);
    wr_give(fetch->policies->allocator, fetch, sizeof *fetch + fetch->text_bytes, _Alignof(struct fetch));
}

struct wr_robots_fetch *wr_fetch_start(struct wr_policies *policies, struct wr_policy *policy, enum wr_life_fetch how,
                                       int64_t now)
{
    size_t text_bytes = policy->key_bytes + (size_t)1;
    struct fetch *fetch = wr_take(policies->allocator, sizeof *fetch + text_bytes, _Alignof(struct fetch));
    if (fetch == NULL)
        return NULL;
    fetch->policies = policies;
    fetch->policy = policy;
    fetch->text_bytes = text_bytes;
    fetch->wall_at = wr_policies_wall(policies);
    struct wr_span key = {policy->key, policy->key_bytes};
    enum wr_url_fault fault = wr_url_parse(key, NULL, NULL, fetch->text, text_bytes, &fetch->seen.url);
    assert(fault == WR_URL_OK);
    (void)fault;
    if (how == WR_FETCH_CONDITIONAL) {
        fetch->seen.etag = (struct wr_span){policy->validators, policy->etag_bytes};
        fetch->seen.modified = (struct wr_span){policy->validators + policy->etag_bytes, policy->modified_bytes};
    }
    struct wr_life_event started = {.kind = WR_LIFE_STARTED};
    (void)wr_lifecycle_step(&policy->life, &policies->options.life, &started, now);
    policy->holds++;
    policies->fetching++;
    wr_policies_hold(policies);
    return &fetch->seen;
}

static struct fetch *whole(struct wr_robots_fetch *seen)
{
    return (struct fetch *)seen;
}

void wr_fetch_send(struct wr_robots_fetch *fetch)
{
    struct wr_policies *policies = whole(fetch)->policies;
    wr_policies_lock(policies);
    policies->fetches++;
    wr_policies_unlock(policies);
    policies->options.fetch(policies->options.fetch_context, fetch);
}

/* ---- redirects ---- */

/* Parses a redirect target, without user name and password, into allocated memory: *ret_text, or
 * NULL if the target is invalid. Returns WEIR_E_NOMEM without memory. The stack would be too small:
 * a fetcher that ends at once recurses for every hop. */
static int resolve(const struct fetch *fetch, struct wr_span location, struct wr_url *ret_url, char **ret_text)
{
    *ret_text = NULL;
    if (location.bytes == 0)
        return 0;
    char *text = wr_take(fetch->policies->allocator, WR_URL_ROOM, 1);
    if (text == NULL)
        return WEIR_E_NOMEM;
    if (wr_url_parse(location, &fetch->seen.url, wr_idna_libidn2(), text, WR_URL_ROOM, ret_url) == WR_URL_OK) {
        wr_url_drop_userinfo(ret_url, text);
        *ret_text = text;
    } else {
        wr_give(fetch->policies->allocator, text, WR_URL_ROOM, 1);
    }
    return 0;
}

static void follow(struct fetch *fetch, const struct wr_url *url, char *text)
{
    free_hop(fetch);
    fetch->hop_text = text;
    fetch->seen.url = *url;
    fetch->seen.hop++;
    fetch->seen.etag = fetch->seen.modified = (struct wr_span){NULL, 0};
    wr_fetch_send(&fetch->seen);
}

/* ---- ending ---- */

/* Result of a fetch. */
struct yield {
    struct wr_life_event event;
    enum wr_life_copy copy;
    struct wr_rules *rules; /* parsed, if copy is WR_COPY_READ */
    struct wr_span etag, modified;
};

static void save(const struct fetch *fetch, const struct yield *yield, const struct wr_robots_fetched *fetched)
{
    const struct wr_policies_options *options = &fetch->policies->options;
    if (options->save == NULL || yield->copy == WR_COPY_KEEP)
        return;
    struct wr_robots_record record = {.robots_url = {fetch->policy->key, fetch->policy->key_bytes},
                                      .kind = yield->copy == WR_COPY_CONFIRM ? WR_RECORD_SAME : WR_RECORD_NONE,
                                      .max_age_ns = yield->event.max_age_ns,
                                      .fetched_wall_at = fetch->wall_at};
    if (yield->copy == WR_COPY_READ) {
        record.kind = WR_RECORD_TEXT;
        record.text = fetched->body;
        if (record.text.bytes > WR_ROBOTS_MAX + 1)
            record.text.bytes = WR_ROBOTS_MAX + 1;
        record.etag = yield->etag;
        record.modified = yield->modified;
    }
    options->save(options->save_context, &record);
}

/* Applies the result of a fetch to its policy. The lock is held. */
static void apply(struct fetch *fetch, struct yield *yield)
{
    struct wr_policies *policies = fetch->policies;
    struct wr_policy *policy = fetch->policy;
    int64_t now = wr_clock_now(policies->clock);
    size_t bytes = wr_rules_bytes(yield->rules) + 2 * WR_VALIDATOR_MAX;
    if (yield->copy == WR_COPY_READ && !wr_policy_room(policies, bytes, now)) {
        yield->event.kind = WR_LIFE_FAILED;
        yield->copy = WR_COPY_KEEP;
    }
    if (yield->copy == WR_COPY_READ || yield->copy == WR_COPY_DROP)
        wr_policy_put(policies, policy, wr_rules_hold(yield->rules), yield->etag, yield->modified);
    yield->event.has_validators = policy->validators != NULL;
    yield->event.unit = wr_rng_unit(&policies->rng);
    (void)wr_lifecycle_step(&policy->life, &policies->options.life, &yield->event, now);
    policies->failures += policy->life.failures > 0;
    policy->round++;
}

static void end(struct fetch *fetch, struct yield *yield)
{
    struct wr_policies *policies = fetch->policies;
    struct wr_policy *policy = fetch->policy;
    wr_policies_lock(policies);
    int64_t old_ns = wr_policy_delay(policy);
    if (!policies->closed)
        apply(fetch, yield);
    int64_t delay_ns = wr_policy_delay(policy);
    policy->holds += delay_ns != old_ns;
    policies->fetching--;
    wr_policies_unlock(policies);
    wr_rules_drop(policies, yield->rules);
    /* Allowed pages pass on the delay as well. This call matters if the delay became shorter. */
    if (delay_ns != old_ns)
        (void)wr_policy_tell_delay(policies, policy, delay_ns);
    wr_policy_wake(policies, policy);
    wr_policies_lock(policies);
    policy->holds--;
    wr_policies_unlock(policies);
    free_fetch(fetch);
    wr_policies_drop(policies);
}

static struct wr_life_event event_of(const struct wr_robots_fetched *fetched, bool leads)
{
    return (struct wr_life_event){.kind = fetched->status == 0 ? WR_LIFE_FAILED : WR_LIFE_ANSWERED,
                                  .status = fetched->status,
                                  .leads = leads,
                                  .max_age_ns = wr_max_age_ns(fetched->cache_control),
                                  .retry_after_ns = fetched->retry_after_ns};
}

/* Returns what the lifecycle does with a response, and counts a redirect. */
static struct wr_life_action judge(struct fetch *fetch, const struct wr_life_event *event)
{
    struct wr_policies *policies = fetch->policies;
    struct wr_life_action action = {.fetch = WR_FETCH_NOT};
    wr_policies_lock(policies);
    if (!policies->closed)
        action = wr_lifecycle_foresee(&fetch->policy->life, event);
    if (action.fetch == WR_FETCH_ON)
        (void)wr_lifecycle_step(&fetch->policy->life, &policies->options.life, event, wr_clock_now(policies->clock));
    wr_policies_unlock(policies);
    return action;
}

/* Parses the received rules. Without memory for them, the fetch counts as failed. */
static void read_rules(const struct fetch *fetch, const struct wr_robots_fetched *fetched, struct yield *yield)
{
    if (wr_rules_new(fetch->policies, fetched->body, &yield->rules) != 0) {
        yield->event.kind = WR_LIFE_FAILED;
        yield->copy = WR_COPY_KEEP;
    } else if (fetch->seen.hop == 0) {
        yield->etag = fetched->etag;
        yield->modified = fetched->modified;
    }
}

static void finish(struct fetch *fetch, const struct wr_robots_fetched *fetched)
{
    struct wr_url url;
    char *text;
    int bad = resolve(fetch, fetched->location, &url, &text);
    struct yield yield = {.event = event_of(fetched, text != NULL)};
    if (bad != 0)
        yield.event.kind = WR_LIFE_FAILED;
    struct wr_life_action action = judge(fetch, &yield.event);
    if (action.fetch == WR_FETCH_ON) {
        follow(fetch, &url, text);
        return;
    }
    wr_give(fetch->policies->allocator, text, WR_URL_ROOM, 1);
    yield.copy = action.copy;
    if (action.copy == WR_COPY_READ)
        read_rules(fetch, fetched, &yield);
    save(fetch, &yield, fetched);
    end(fetch, &yield);
}

void wr_robots_fetch_end(struct wr_robots_fetch *fetch, const struct wr_robots_fetched *fetched)
{
    finish(whole(fetch), fetched);
}
