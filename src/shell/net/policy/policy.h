/* SPDX-License-Identifier: MIT */
/* policy.h - the hosts' policies: what each one's robots.txt says, fetched when first needed, and kept.
 *
 *     wr_policies_acquire(policies, &url, 0, WEIR_FOREVER, cancel, &permit, &ruling)       blocking, and the gate too
 *     wr_policies_await(policies, &url, WEIR_FOREVER, cancel, &ruling)                     blocking, robots.txt only
 *     wr_policies_ask(policies, &url, &ruling)                                             as far as known now
 *     wr_policies_enqueue(policies, &url, timeout, wake, context, &ticket)                 for an event loop
 *
 * Ask right before each request, not when a link is found: rules change while URLs are queued (B9). The ruling is go,
 * deny (with the line that decided) or wait (reason robots, and for how long).
 *
 * A policy belongs to one scheme, host and port. The first who asks starts the fetch of its robots.txt, with no lock
 * held, and whoever else asks waits for the same one; those who ask about other hosts never do (S4-10, S4-11, K4). When
 * to fetch, what failures mean, and how long rules last is core/rules/robots/lifecycle's to say. Crawl-delay and
 * Request-rate are told to the pacer before the first page may go, and again with every page that may go, for pacers
 * forget idle hosts. http and https of one host share a gate, and the slower of their delays holds.
 *
 * Threads: any, for all functions; one ticket is used by one thread at a time. Nothing of the caller's (fetcher, save,
 * wake) is called with a lock held. There is no thread inside: whoever asks, polls or waits starts what is due.
 *
 * Bounded: max_hosts policies and max_bytes of what is kept of them. The least recently used one makes room, but never
 * one that is waited for or being fetched, nor one whose server named a time that is still to come (S4-18, L5). If
 * there is none, WEIR_E_FULL.
 */
#ifndef WR_SHELL_NET_POLICY_POLICY_H
#define WR_SHELL_NET_POLICY_POLICY_H

#include "core/rules/robots/lifecycle.h"
#include "core/rules/url/url.h"

/* ---- fetching: what the caller brings ---- */

/* One request: GET `url`, no redirect followed. If the spans are not empty, with If-None-Match and If-Modified-Since.
 * Valid until wr_robots_fetch_end. */
struct wr_robots_fetch {
    struct wr_url url;
    struct wr_span etag, modified;
    uint32_t hop; /* 0; else the url is where this redirect of the robots.txt leads, maybe on another host */
};

/* Sends it through the gate of the *url's* host, as every request on the wire, tells that gate how it ended (R20), and
 * then calls wr_robots_fetch_end, once: from any thread, or before it returns. It must not block if those who ask must
 * not. It gives up after a time of its own; a fetch that never ends parks its host for ever. */
typedef void wr_robots_fetcher(void *context, struct wr_robots_fetch *fetch);

struct wr_robots_fetched {
    int status;          /* 0: no answer, or not all of it (DNS, TLS, time-out, …); then nothing else counts */
    struct wr_span body; /* decoded. Hand over WR_ROBOTS_MAX + 1 bytes of what is longer: so the cut line is noticed */
    struct wr_span location, etag, modified, cache_control; /* fields; empty: not there */
    int64_t retry_after_ns;                                 /* negative: not said */
};

void wr_robots_fetch_end(struct wr_robots_fetch *fetch, const struct wr_robots_fetched *fetched);

/* ---- keeping: what a store may have ---- */

enum wr_record_kind {
    WR_RECORD_TEXT, /* the rules are in `text` */
    WR_RECORD_NONE, /* there is no robots.txt */
    WR_RECORD_SAME, /* as saved last, and still true; only for save */
};

struct wr_robots_record {
    struct wr_span robots_url; /* "https://example.org/robots.txt": the key */
    enum wr_record_kind kind;
    struct wr_span text;           /* as it came, at most WR_ROBOTS_MAX + 1 bytes */
    struct wr_span etag, modified; /* empty: none */
    int64_t max_age_ns;            /* negative: not said */
    int64_t fetched_wall_at;       /* ns since 1970 */
};

/* Called when something new is known, from the thread that ended the fetch and before those who wait go on: put it in a
 * queue. The record is borrowed. Nothing is kept for later: what is not saved will be fetched. */
typedef void wr_robots_save(void *context, const struct wr_robots_record *record);

/* ---- the registry ---- */

#define WR_VALIDATOR_MAX 255                     /* bytes; a longer ETag, or one with controls, is not kept */
#define WR_POLICIES_BYTES_MIN ((size_t)16 << 20) /* of max_bytes: the largest robots.txt must fit */
#define WR_POLICIES_HOSTS_MAX ((size_t)10000000) /* of max_hosts */
#define WR_POLICIES_AGENT_MAX 1024               /* bytes; nobody's product token is longer */

/* 0 and NULL mean the default, where there is one. */
struct wr_policies_options {
    weir_pacer *pacer;        /* whose gates the requests pass; not NULL */
    wr_robots_fetcher *fetch; /* not NULL */
    void *fetch_context;
    wr_robots_save *save; /* NULL: nobody stores anything */
    void *save_context;
    const char *agent; /* copied; default "weir" */
    struct wr_life_options life;
    int64_t delay_max_ns; /* a longer Crawl-delay is taken for this; default WR_ROBOTS_DELAY_MAX_NS */
    double delay_factor;  /* times Crawl-delay, 0.01 … 100; default 1 */
    size_t max_hosts;     /* default 100 000 */
    size_t max_bytes;     /* default 256 MiB; at least WR_POLICIES_BYTES_MIN */
    uint64_t seed;        /* of the jitter; default: random */
    const weir_clock *clock;
    const weir_clock *wall; /* for what is stored; default: the system's */
    const weir_allocator *allocator;
};

struct wr_policies;

/* WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_SYSTEM. */
int wr_policies_new(const struct wr_policies_options *options, struct wr_policies **ret_policies);

/* Everybody who waits, and all later calls, fail with WEIR_E_CLOSED. May be called again. */
void wr_policies_close(struct wr_policies *policies);

/* Closes, and frees once the last ticket is freed and the last fetch has ended. NULL is fine. */
void wr_policies_free(struct wr_policies *policies);

/* Puts a stored record in; one whose host is known already is ignored. What is stored in the future, or too old, is
 * used only once the server has confirmed it. WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_FULL, WEIR_E_CLOSED. */
int wr_policies_load(struct wr_policies *policies, const struct wr_robots_record *record);

/* ---- asking ---- */

/* Never waits for a fetch, but may start one; then poll with a ticket, or ask again later. WEIR_E_NOMEM, WEIR_E_CLOSED;
 * WEIR_E_FULL: here, or in the pacer. */
int wr_policies_ask(struct wr_policies *policies, const struct wr_url *url, struct wr_ruling *ret_ruling);

/* Waits until it is go or deny, for at most `timeout_ns`. WEIR_E_TIMEOUT, WEIR_E_CANCELLED, WEIR_E_SYSTEM,
 * WEIR_E_INVAL, and as ask. `cancel` may be NULL. */
int wr_policies_await(struct wr_policies *policies, const struct wr_url *url, int64_t timeout_ns, weir_cancel *cancel,
                      struct wr_ruling *ret_ruling);

/* Waits for robots.txt and then for the host's gate (weir_pacer_acquire, with its flags), and asks again before it lets
 * go: rules may have changed in between. The permit holds something only if the ruling is go. Errors of both. */
int wr_policies_acquire(struct wr_policies *policies, const struct wr_url *url, uint32_t flags, int64_t timeout_ns,
                        weir_cancel *cancel, weir_permit *ret_permit, struct wr_ruling *ret_ruling);

/* For event loops: poll at once, then after wait_ns or when woken, whichever is first. `wake` is as in limit.h. If the
 * call fails it is never called. WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_FULL, WEIR_E_CLOSED. */
struct wr_policy_ticket;
int wr_policies_enqueue(struct wr_policies *policies, const struct wr_url *url, int64_t timeout_ns, weir_wake *wake,
                        void *context, struct wr_policy_ticket **ret_ticket);

/* For any target (wr_url_target) on the ticket's host. 0 with a ruling; if that is to wait, WEIR_E_TIMEOUT once the
 * time is over. WEIR_E_CLOSED, WEIR_E_NOMEM, WEIR_E_FULL (in the pacer). */
int wr_policy_ticket_poll(struct wr_policy_ticket *ticket, struct wr_span target, struct wr_ruling *ret_ruling);
void wr_policy_ticket_free(struct wr_policy_ticket *ticket);

/* ---- looking ---- */

struct wr_policy_look {
    enum wr_life_state state;
    bool has_rules;
    bool is_clamped;  /* its Crawl-delay was longer than delay_max_ns */
    bool is_cut;      /* there was more than WR_ROBOTS_MAX */
    uint32_t rules;   /* that apply to us */
    uint32_t waiters; /* tickets */
    int64_t age_ns;   /* of what is known; -1: nothing is */
    int64_t retry_ns; /* failing: until it is fetched again */
    int64_t delay_ns; /* what its gate was told to keep, https and http together */
};

/* WEIR_E_ABSENT. */
int wr_policies_look(struct wr_policies *policies, const struct wr_url *url, struct wr_policy_look *ret_look);

struct wr_policies_stats {
    size_t hosts, bytes;
    size_t fetching, waiters; /* now */
    uint64_t fetches;         /* requests handed to the fetcher, redirects included */
    uint64_t failures;        /* fetches that left nothing known */
    uint64_t evicted;
};

struct wr_policies_stats wr_policies_stats(struct wr_policies *policies);

#endif
