/* SPDX-License-Identifier: MIT */
/* ruling.c - returns a ruling for a URL from the rules known now. */
#include "http/net/policy/policy_internal.h"

/* Returns the key of a policy's gate: the part of the robots.txt URL between scheme and path. */
static struct wr_span gate_key(const struct wr_policy *policy)
{
    struct wr_span key = {policy->key, policy->key_bytes};
    key = wr_span_after(key, wr_span_find(key, ':') + strlen("://"));
    key.bytes -= strlen("/robots.txt");
    return key;
}

/* Another thread may change the delay, or pass a newer one to the pacer, at the same time. So this
 * function compares the delay afterwards and repeats. */
int wr_policy_update_gate_delay(struct wr_policies *policies, struct wr_policy *policy, int64_t delay_ns)
{
    struct wr_span key = gate_key(policy);
    for (;;) {
        int bad = weir_pacer_robots_delay(policies->options.pacer, key.data, key.bytes, delay_ns);
        wr_policies_lock(policies);
        int64_t latest_ns = wr_policy_delay(policy);
        bool done = bad != 0 || latest_ns == delay_ns;
        policy->holds -= done;
        wr_policies_unlock(policies);
        if (done)
            return bad;
        delay_ns = latest_ns;
    }
}

/* State of a policy that was read under the lock. */
struct policy_view {
    struct wr_policy *policy;
    struct wr_robots_action action;
    struct wr_robots_rules *rules; /* rules with a reference, or NULL */
    struct wr_robots_fetch *fetch; /* fetch to be sent; may be NULL */
    int64_t delay_ns;              /* delay for the gate; if not 0, the policy is referenced */
};

static int policy_view(struct wr_policies *policies, int64_t now, struct policy_view *glance)
{
    struct wr_policy *policy = glance->policy;
    struct wr_robots_event wanted = {.kind = WR_ROBOTS_EVENT_WANTED};
    glance->action = wr_robots_lifecycle_step(&policy->life, &policies->options.life, &wanted, now);
    if (glance->action.fetch != WR_ROBOTS_FETCH_NONE) {
        glance->fetch = wr_robots_fetch_start(policies, policy, glance->action.fetch, now);
        if (glance->fetch != NULL)
            return 0;
        if (glance->action.holds == WR_ROBOTS_ACCESS_WAIT)
            return WEIR_E_NOMEM; /* otherwise the old copy serves, and is refreshed later */
    }
    glance->rules = wr_robots_rules_hold(policy->rules);
    glance->delay_ns = wr_policy_delay(policy);
    policy->holds += glance->delay_ns > 0;
    return 0;
}

static int make_ruling(struct wr_policies *policies, struct policy_view *glance, struct wr_span target, int64_t now,
                       struct wr_robots_decision *ret_ruling)
{
    const struct wr_robots *robots = glance->rules != NULL ? glance->rules->robots : NULL;
    struct wr_robots_decision ruling = wr_robots_lifecycle_decide(&glance->action, robots, target, now);
    wr_robots_rules_drop(policies, glance->rules);
    int bad = glance->delay_ns > 0 ? wr_policy_update_gate_delay(policies, glance->policy, glance->delay_ns) : 0;
    if (bad == 0 || ruling.decision.verdict != WEIR_GO)
        *ret_ruling = ruling;
    return ruling.decision.verdict == WEIR_GO ? bad : 0;
}

int wr_policy_ask(struct wr_policies *policies, struct wr_policy *policy, const struct wr_url *url,
                  struct wr_span target, struct wr_robots_decision *ret_ruling)
{
    for (;;) {
        int64_t now = wr_clock_now(policies->clock);
        struct policy_view seen = {.policy = policy};
        wr_policies_lock(policies);
        int bad = policies->closed ? WEIR_E_CLOSED : 0;
        if (bad == 0 && policy == NULL)
            bad = wr_policy_get(policies, url, now, &seen.policy);
        if (bad == 0)
            bad = policy_view(policies, now, &seen);
        wr_policies_unlock(policies);
        if (bad != 0)
            return bad;
        if (seen.fetch == NULL)
            return make_ruling(policies, &seen, target, now, ret_ruling);
        wr_robots_fetch_send(seen.fetch); /* it may have ended already: ask anew */
    }
}

int wr_policies_ask(struct wr_policies *policies, const struct wr_url *url, struct wr_robots_decision *ret_ruling)
{
    return wr_policy_ask(policies, NULL, url, wr_url_target(url), ret_ruling);
}
