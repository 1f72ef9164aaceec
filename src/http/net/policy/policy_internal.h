/* SPDX-License-Identifier: MIT */
/* policy_internal.h - declarations that the parts of the robots.txt registry share.
 *
 *     policy.c        create, load, inspect, close  ruling.c       one ruling, without waiting
 *     policy_table.c  find, evict                   policy_wait.c  tickets, and blocking waits
 *     policy_fetch.c  fetch, and apply the result
 *
 *     map: robots.txt URL ──▶ policy ──▶ rules (reference-counted: matched without the lock)
 *                              │  ▲
 *                              │  └── ticket, ticket, …
 *     newest ◀──▶ policy ◀──▶ policy ◀──▶ oldest
 *
 * One lock guards everything. It is held for a lookup and a step of the lifecycle, never while
 * matching, parsing or calling callbacks.
 */
#ifndef WR_HTTP_NET_POLICY_POLICY_INTERNAL_H
#define WR_HTTP_NET_POLICY_POLICY_INTERNAL_H

#include "base/alloc.h"
#include "base/map.h"
#include "base/rng.h"
#include "http/net/policy/policy.h"
#include "limiter/clock/clock.h"
#include "limiter/queue/queue.h"

#define WR_POLICY_KEY_MAX 280 /* fits "https://", a host of 255, ":65535", "/robots.txt" */

/* Compiled rules with a reference count. */
struct wr_robots_rules {
    atomic_uint refs;
    struct wr_robots *robots;
};

struct wr_policy {
    struct wr_robots_lifecycle life;
    struct wr_robots_rules *rules; /* rules of the robots.txt; NULL: none */
    char *validators;              /* ETag followed by Last-Modified; NULL: no validators */
    struct wr_policy *newer, *older;
    struct wr_policy *sibling; /* policy of the other scheme, same gate; NULL: unknown */
    struct wr_policy_ticket *first, *last;
    int64_t delay_ns; /* delay from this policy's own robots.txt */
    uint64_t round;   /* number of wake-up rounds; each wakes every ticket once */
    uint32_t holds;   /* references: tickets, a fetch, callers that need it */
    uint16_t etag_bytes, modified_bytes;
    uint16_t key_bytes;
    char key[]; /* URL of the robots.txt */
};

struct wr_policy_ticket {
    struct weir_ticket call; /* for the wake callback only; not in a queue of waiters */
    struct wr_policies *policies;
    struct wr_policy *policy;
    struct wr_policy_ticket *next, *prev;
    uint64_t round; /* the last round in which the ticket was woken */
    int64_t deadline_at;
};

struct wr_policies {
    struct wr_policies_options options;
    struct wr_robots_options parse;
    const weir_clock *clock;
    const weir_allocator *allocator;
    struct wr_hash_key hash_key;
    atomic_uint holds;    /* references: owner, tickets, fetches */
    pthread_mutex_t lock; /* guards all fields below */
    struct wr_map map;
    struct wr_policy *newest, *oldest;
    struct wr_rng rng;
    size_t bytes; /* memory of policies, rules and validators */
    size_t fetching, waiters;
    uint64_t fetches, failures, evicted;
    bool closed;
    char agent[]; /* user agent; parse.agent points to it */
};

static inline void wr_policies_lock(struct wr_policies *policies)
{
    (void)pthread_mutex_lock(&policies->lock);
}

static inline void wr_policies_unlock(struct wr_policies *policies)
{
    (void)pthread_mutex_unlock(&policies->lock);
}

void wr_policies_hold(struct wr_policies *policies);
void wr_policies_drop(struct wr_policies *policies);

int64_t wr_policies_wall(const struct wr_policies *policies);

/* ---- policy_table.c: the lock is held ---- */

/* Returns the policy of a URL, or NULL. */
struct wr_policy *wr_policy_find(struct wr_policies *policies, const struct wr_url *url);

/* Finds or creates the policy of a URL, and makes it the newest. Returns WEIR_E_CLOSED, WEIR_E_FULL
 * or WEIR_E_NOMEM on failure. */
int wr_policy_get(struct wr_policies *policies, const struct wr_url *url, int64_t now, struct wr_policy **ret_policy);

/* Makes a policy the newest, so that it is evicted last. */
void wr_policy_touch(struct wr_policies *policies, struct wr_policy *policy);

/* Returns true if `bytes` more fit, after evicting policies if necessary. */
bool wr_policy_make_room(struct wr_policies *policies, size_t bytes, int64_t now);

/* Replaces the rules (NULL: none) and validators of a policy, and takes over `rules`. Without
 * memory it has no validators. There must be room. */
void wr_policy_set_rules(struct wr_policies *policies, struct wr_policy *policy, struct wr_robots_rules *rules,
                         struct wr_span etag, struct wr_span modified);

/* Returns the delay for the gate: the longer one of this policy and its sibling. */
int64_t wr_policy_delay(const struct wr_policy *policy);

void wr_policy_free(struct wr_policies *policies, struct wr_policy *policy);

/* ---- rules: with or without the lock ---- */

/* Parses a robots.txt into rules with one reference. Returns WEIR_E_NOMEM without memory. */
int wr_robots_rules_new(const struct wr_policies *policies, struct wr_span text, struct wr_robots_rules **ret_rules);
struct wr_robots_rules *wr_robots_rules_hold(struct wr_robots_rules *rules);
void wr_robots_rules_drop(const struct wr_policies *policies, struct wr_robots_rules *rules);
size_t wr_robots_rules_bytes(const struct wr_robots_rules *rules);
int64_t wr_robots_rules_delay(const struct wr_policies *policies, const struct wr_robots_rules *rules);

/* ---- policy_fetch.c ---- */

/* Marks a fetch as started and prepares it. The lock is held. Returns NULL without memory, with
 * nothing changed. Pass the fetch to wr_robots_fetch_send after unlocking. */
struct wr_robots_fetch *wr_robots_fetch_start(struct wr_policies *policies, struct wr_policy *policy,
                                              enum wr_robots_fetch_action how, int64_t now);
void wr_robots_fetch_send(struct wr_robots_fetch *fetch);

/* ---- ruling.c: the lock is not held ---- */

/* Like wr_policies_ask, for a referenced policy; if `policy` is NULL, for that of the url. */
int wr_policy_ask(struct wr_policies *policies, struct wr_policy *policy, const struct wr_url *url,
                  struct wr_span target, struct wr_robots_decision *ret_ruling);

/* Passes a policy's delay to the pacer, repeatedly until the delay is unchanged. Drops one
 * reference to the policy. Returns the errors of weir_pacer_robots_delay. */
int wr_policy_update_gate_delay(struct wr_policies *policies, struct wr_policy *policy, int64_t delay_ns);

/* ---- policy_wait.c: the lock is not held ---- */

/* Wakes all tickets of a referenced policy that have not been woken in this round. */
void wr_policy_wake(struct wr_policies *policies, struct wr_policy *policy);

#endif
