/* SPDX-License-Identifier: MIT */
/* policy_fetch.c - fetches a robots.txt over its redirects, and applies the result to its
 * policy. */
#include "core/web/http/field.h"
#include "core/web/url/redirect.h"
#include "http/net/idna.h"
#include "http/net/policy/policy_internal.h"

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

static void free_hop_text(struct fetch *fetch)
{
    wr_free(fetch->policies->allocator, fetch->hop_text, WR_URL_ROOM, 1);
}

static void free_policy_fetch(struct fetch *fetch)
{
    free_hop_text(fetch);
    wr_free(fetch->policies->allocator, fetch, sizeof *fetch + fetch->text_bytes, _Alignof(struct fetch));
}

struct wr_robots_fetch *wr_robots_fetch_start(struct wr_policies *policies, struct wr_policy *policy,
                                              enum wr_robots_fetch_action how, int64_t now)
{
    size_t text_bytes = policy->key_bytes + (size_t)1;
    struct fetch *fetch = wr_alloc(policies->allocator, sizeof *fetch + text_bytes, _Alignof(struct fetch));
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
    if (how == WR_ROBOTS_FETCH_CONDITIONAL) {
        fetch->seen.etag = (struct wr_span){policy->validators, policy->etag_bytes};
        fetch->seen.modified = (struct wr_span){policy->validators + policy->etag_bytes, policy->modified_bytes};
    }
    struct wr_robots_event started = {.kind = WR_ROBOTS_EVENT_STARTED};
    (void)wr_robots_lifecycle_step(&policy->life, &policies->options.life, &started, now);
    policy->holds++;
    policies->fetching++;
    wr_policies_hold(policies);
    return &fetch->seen;
}

static struct fetch *whole_fetch(struct wr_robots_fetch *seen)
{
    return (struct fetch *)seen;
}

void wr_robots_fetch_send(struct wr_robots_fetch *fetch)
{
    struct wr_policies *policies = whole_fetch(fetch)->policies;
    wr_policies_lock(policies);
    policies->fetches++;
    wr_policies_unlock(policies);
    policies->options.fetch(policies->options.fetch_context, fetch);
}

/* ---- redirects ---- */

/* Parses a redirect target, without user name and password, into allocated memory: *ret_text, or
 * NULL if the target is invalid. Returns WEIR_E_NOMEM without memory. The stack would be too small:
 * a fetcher that ends at once recurses for every hop. */
static int resolve_redirect(const struct fetch *fetch, struct wr_span location, struct wr_url *ret_url, char **ret_text)
{
    *ret_text = NULL;
    if (location.bytes == 0)
        return 0;
    char *text = wr_alloc(fetch->policies->allocator, WR_URL_ROOM, 1);
    if (text == NULL)
        return WEIR_E_NOMEM;
    if (wr_url_parse(location, &fetch->seen.url, wr_idna_libidn2(), text, WR_URL_ROOM, ret_url) == WR_URL_OK) {
        wr_url_drop_userinfo(ret_url, text);
        *ret_text = text;
    } else {
        wr_free(fetch->policies->allocator, text, WR_URL_ROOM, 1);
    }
    return 0;
}

static void follow_redirect_hop(struct fetch *fetch, const struct wr_url *url, char *text)
{
    free_hop_text(fetch);
    fetch->hop_text = text;
    fetch->seen.url = *url;
    fetch->seen.hop++;
    fetch->seen.etag = fetch->seen.modified = (struct wr_span){NULL, 0};
    wr_robots_fetch_send(&fetch->seen);
}

/* ---- ending ---- */

/* Result of a fetch. */
struct yield {
    struct wr_robots_event event;
    enum wr_robots_copy_action copy;
    struct wr_robots_rules *rules; /* parsed, if copy is WR_ROBOTS_COPY_READ */
    struct wr_span etag, modified;
};

static void save_record(const struct fetch *fetch, const struct yield *yield, const struct wr_robots_fetched *fetched)
{
    const struct wr_policies_options *options = &fetch->policies->options;
    if (options->save == NULL || yield->copy == WR_ROBOTS_COPY_KEEP)
        return;
    struct wr_robots_record record = {.robots_url = {fetch->policy->key, fetch->policy->key_bytes},
                                      .kind = yield->copy == WR_ROBOTS_COPY_CONFIRM ? WR_ROBOTS_RECORD_SAME
                                                                                    : WR_ROBOTS_RECORD_NONE,
                                      .max_age_ns = yield->event.max_age_ns,
                                      .fetched_wall_at = fetch->wall_at};
    if (yield->copy == WR_ROBOTS_COPY_READ) {
        record.kind = WR_ROBOTS_RECORD_TEXT;
        record.text = fetched->body;
        if (record.text.bytes > WR_ROBOTS_MAX + 1)
            record.text.bytes = WR_ROBOTS_MAX + 1;
        record.etag = yield->etag;
        record.modified = yield->modified;
    }
    options->save(options->save_context, &record);
}

/* Applies the result of a fetch to its policy. The lock is held. */
static void apply_result(struct fetch *fetch, struct yield *yield)
{
    struct wr_policies *policies = fetch->policies;
    struct wr_policy *policy = fetch->policy;
    int64_t now = wr_clock_now(policies->clock);
    size_t bytes = wr_robots_rules_bytes(yield->rules) + 2 * WR_VALIDATOR_MAX;
    if (yield->copy == WR_ROBOTS_COPY_READ && !wr_policy_make_room(policies, bytes, now)) {
        yield->event.kind = WR_ROBOTS_EVENT_FAILED;
        yield->copy = WR_ROBOTS_COPY_KEEP;
    }
    if (yield->copy == WR_ROBOTS_COPY_READ || yield->copy == WR_ROBOTS_COPY_DROP)
        wr_policy_set_rules(policies, policy, wr_robots_rules_hold(yield->rules), yield->etag, yield->modified);
    yield->event.has_validators = policy->validators != NULL;
    yield->event.unit = wr_rng_unit(&policies->rng);
    (void)wr_robots_lifecycle_step(&policy->life, &policies->options.life, &yield->event, now);
    policies->failures += policy->life.failures > 0;
    policy->round++;
}

static void end_fetch(struct fetch *fetch, struct yield *yield)
{
    struct wr_policies *policies = fetch->policies;
    struct wr_policy *policy = fetch->policy;
    wr_policies_lock(policies);
    int64_t old_ns = wr_policy_delay(policy);
    if (!policies->closed)
        apply_result(fetch, yield);
    int64_t delay_ns = wr_policy_delay(policy);
    policy->holds += delay_ns != old_ns;
    policies->fetching--;
    wr_policies_unlock(policies);
    wr_robots_rules_drop(policies, yield->rules);
    /* Allowed pages pass on the delay as well. This call matters if the delay became shorter. */
    if (delay_ns != old_ns)
        (void)wr_policy_update_gate_delay(policies, policy, delay_ns);
    wr_policy_wake(policies, policy);
    wr_policies_lock(policies);
    policy->holds--;
    wr_policies_unlock(policies);
    free_policy_fetch(fetch);
    wr_policies_drop(policies);
}

static struct wr_robots_event response_event(const struct wr_robots_fetched *fetched, bool leads)
{
    return (struct wr_robots_event){.kind = fetched->status == 0 ? WR_ROBOTS_EVENT_FAILED : WR_ROBOTS_EVENT_ANSWERED,
                                    .status = fetched->status,
                                    .leads = leads,
                                    .max_age_ns = wr_max_age_ns(fetched->cache_control),
                                    .retry_after_ns = fetched->retry_after_ns};
}

/* Returns what the lifecycle does with a response, and counts a redirect. */
static struct wr_robots_action foresee_action(struct fetch *fetch, const struct wr_robots_event *event)
{
    struct wr_policies *policies = fetch->policies;
    struct wr_robots_action action = {.fetch = WR_ROBOTS_FETCH_NONE};
    wr_policies_lock(policies);
    if (!policies->closed)
        action = wr_robots_lifecycle_preview(&fetch->policy->life, event);
    if (action.fetch == WR_ROBOTS_FETCH_REDIRECT)
        (void)wr_robots_lifecycle_step(&fetch->policy->life, &policies->options.life, event,
                                       wr_clock_now(policies->clock));
    wr_policies_unlock(policies);
    return action;
}

/* Parses the received rules. Without memory for them, the fetch counts as failed. */
static void parse_rules(const struct fetch *fetch, const struct wr_robots_fetched *fetched, struct yield *yield)
{
    if (wr_robots_rules_new(fetch->policies, fetched->body, &yield->rules) != 0) {
        yield->event.kind = WR_ROBOTS_EVENT_FAILED;
        yield->copy = WR_ROBOTS_COPY_KEEP;
    } else if (fetch->seen.hop == 0) {
        yield->etag = fetched->etag;
        yield->modified = fetched->modified;
    }
}

static void finish_fetch(struct fetch *fetch, const struct wr_robots_fetched *fetched)
{
    struct wr_url url;
    char *text;
    int bad = resolve_redirect(fetch, fetched->location, &url, &text);
    struct yield yield = {.event = response_event(fetched, text != NULL)};
    if (bad != 0)
        yield.event.kind = WR_ROBOTS_EVENT_FAILED;
    struct wr_robots_action action = foresee_action(fetch, &yield.event);
    if (action.fetch == WR_ROBOTS_FETCH_REDIRECT) {
        follow_redirect_hop(fetch, &url, text);
        return;
    }
    wr_free(fetch->policies->allocator, text, WR_URL_ROOM, 1);
    yield.copy = action.copy;
    if (action.copy == WR_ROBOTS_COPY_READ)
        parse_rules(fetch, fetched, &yield);
    save_record(fetch, &yield, fetched);
    end_fetch(fetch, &yield);
}

void wr_robots_fetch_end(struct wr_robots_fetch *fetch, const struct wr_robots_fetched *fetched)
{
    finish_fetch(whole_fetch(fetch), fetched);
}
