/* SPDX-License-Identifier: MIT */
/* parts.h - what the parts of the registry share.
 *
 *     policy.c  making, ending, looking         ask.c   one answer, now
 *     room.c    finding, making room            wait.c  tickets, and waiting
 *     fetch.c   fetching, and what came of it
 *
 *     map: robots.txt URL ──▶ policy ──▶ rules (counted, so that they are matched without the lock)
 *                              │  ▲
 *                              │  └── ticket, ticket, …
 *     newest ◀──▶ policy ◀──▶ policy ◀──▶ oldest
 *
 * One lock guards everything; it is held for a lookup and a step of the lifecycle, never while matching, parsing, or
 * calling anything that is not ours.
 */
#ifndef WR_SHELL_NET_POLICY_PARTS_H
#define WR_SHELL_NET_POLICY_PARTS_H

#include "base/alloc.h"
#include "base/map.h"
#include "base/rng.h"
#include "shell/clock/clock.h"
#include "shell/line/line.h"
#include "shell/net/policy/policy.h"

#define WR_POLICY_KEY_MAX 280 /* "https://", a host of 255, ":65535", "/robots.txt" */

/* Compiled rules, and how many look at them. */
struct wr_rules {
    atomic_uint refs;
    struct wr_robots *robots;
};

struct wr_policy {
    struct wr_lifecycle life;
    struct wr_rules *rules; /* NULL: there are none */
    char *validators;       /* ETag and Last-Modified, one after the other; NULL: none */
    struct wr_policy *newer, *older;
    struct wr_policy *sibling; /* of the other scheme: it has the same gate. NULL: unknown */
    struct wr_policy_ticket *first, *last;
    int64_t delay_ns; /* of its own robots.txt */
    uint64_t round;   /* of telling its tickets */
    uint32_t holds;   /* tickets, a fetch, and whoever else needs it to stay */
    uint16_t etag_bytes, modified_bytes;
    uint16_t key_bytes;
    char key[]; /* the URL of its robots.txt */
};

struct wr_policy_ticket {
    struct weir_ticket call; /* for its wake only: it is in no line */
    struct wr_policies *policies;
    struct wr_policy *policy;
    struct wr_policy_ticket *next, *prev;
    uint64_t round; /* the last that it was told of */
    int64_t deadline_at;
};

struct wr_policies {
    struct wr_policies_options options;
    struct wr_robots_options parse;
    const weir_clock *clock;
    const weir_allocator *allocator;
    struct wr_hash_key hash_key;
    atomic_uint holds;    /* the owner's, the tickets' and the fetches' */
    pthread_mutex_t lock; /* of all that follows */
    struct wr_map map;
    struct wr_policy *newest, *oldest;
    struct wr_rng rng;
    size_t bytes; /* of policies, rules and validators */
    size_t fetching, waiters;
    uint64_t fetches, failures, evicted;
    bool closed;
    char agent[]; /* what parse.agent points to */
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

/* ---- room.c: with the lock held ---- */

/* The policy of this URL, or NULL. */
struct wr_policy *wr_policy_find(struct wr_policies *policies, const struct wr_url *url);

/* Finds or makes it, and makes it the newest. WEIR_E_CLOSED, WEIR_E_FULL, WEIR_E_NOMEM. */
int wr_policy_get(struct wr_policies *policies, const struct wr_url *url, int64_t now, struct wr_policy **ret_policy);

/* Makes it the newest. */
void wr_policy_touch(struct wr_policies *policies, struct wr_policy *policy);

/* Whether `bytes` more fit, once others have gone. */
bool wr_policy_room(struct wr_policies *policies, size_t bytes, int64_t now);

/* Gives it these rules, which are the policy's from now on (NULL: none), and validators, if there is memory. There must
 * be room. */
void wr_policy_put(struct wr_policies *policies, struct wr_policy *policy, struct wr_rules *rules, struct wr_span etag,
                   struct wr_span modified);

/* What its gate has to keep, by its own robots.txt and its sibling's. */
int64_t wr_policy_delay(const struct wr_policy *policy);

void wr_policy_free(struct wr_policies *policies, struct wr_policy *policy);

/* ---- rules: any time ---- */

/* WEIR_E_NOMEM. */
int wr_rules_new(const struct wr_policies *policies, struct wr_span text, struct wr_rules **ret_rules);
struct wr_rules *wr_rules_hold(struct wr_rules *rules);
void wr_rules_drop(const struct wr_policies *policies, struct wr_rules *rules);
size_t wr_rules_bytes(const struct wr_rules *rules);
int64_t wr_rules_delay(const struct wr_policies *policies, const struct wr_rules *rules);

/* ---- fetch.c ---- */

/* With the lock held: marks a fetch as started and prepares it; NULL for want of memory, and then nothing happened.
 * Give it to wr_fetch_send without the lock. */
struct wr_robots_fetch *wr_fetch_start(struct wr_policies *policies, struct wr_policy *policy, enum wr_life_fetch how,
                                       int64_t now);
void wr_fetch_send(struct wr_robots_fetch *fetch);

/* ---- ask.c: without the lock ---- */

/* As wr_policies_ask; for `policy`, which must be held, or if that is NULL for the url's. */
int wr_policy_ask(struct wr_policies *policies, struct wr_policy *policy, const struct wr_url *url,
                  struct wr_span target, struct wr_ruling *ret_ruling);

/* Tells the pacer a held policy's delay until it is the one that it has, and lets go of the hold. Errors of
 * weir_pacer_robots_delay. */
int wr_policy_tell_delay(struct wr_policies *policies, struct wr_policy *policy, int64_t delay_ns);

/* ---- wait.c: without the lock ---- */

/* Wakes all tickets of a held policy that have not been told of this round. */
void wr_policy_wake(struct wr_policies *policies, struct wr_policy *policy);

#endif
