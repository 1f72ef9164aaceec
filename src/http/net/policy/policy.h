/* SPDX-License-Identifier: MIT */
/* policy.h - each host's robots.txt: fetched when first needed, cached, and asked before requests.
 *
 *     wr_policies_acquire    blocks until robots.txt is known and the host's gate grants a permit
 *     wr_policies_await      blocks until robots.txt is known
 *     wr_policies_ask        returns what is known now, without waiting
 *     wr_policies_enqueue    creates a ticket to poll, for an event loop
 *
 * Ask right before each request, not when a link is found, because rules change while URLs are
 * queued. The ruling is go, deny (with the line that decided) or wait (reason robots, and how
 * long).
 *
 * A policy belongs to one scheme, host and port. The first caller for a policy starts the fetch of
 * its robots.txt, with no lock held. Later callers wait for the same fetch; callers for other hosts
 * never wait for it. core/web/robots/lifecycle decides when to fetch, what failures mean, and how
 * long rules last. Crawl-delay and Request-rate are passed to the pacer before the first page may
 * be fetched. They are passed again with every allowed page, because pacers forget idle hosts. http
 * and https of one host share a gate, which keeps the slower of their delays.
 *
 * Threads: any thread may call any function; one thread at a time may use a ticket. No callback
 * (fetcher, save, wake) is called with a lock held. The registry has no thread of its own: callers
 * that ask, poll or wait start the fetches that are due.
 *
 * Limits: max_hosts policies, and max_bytes of memory for them. The least recently used policy is
 * evicted, except policies that are waited for or being fetched, and those whose server named a
 * retry time that has not come yet. If no policy can be evicted, calls return WEIR_E_FULL.
 */
#ifndef WR_HTTP_NET_POLICY_POLICY_H
#define WR_HTTP_NET_POLICY_POLICY_H

#include "core/web/robots/lifecycle.h"
#include "core/web/url/url.h"

/* ---- fetching: provided by the caller ---- */

/* One request for a robots.txt: GET `url`, no redirect followed. Spans that are not empty are sent
 * as If-None-Match and If-Modified-Since. Valid until wr_robots_fetch_end. */
struct wr_robots_fetch {
    struct wr_url url;
    struct wr_span etag, modified;
    uint32_t hop; /* redirects before this request; if not 0, url may be on another host */
};

/* Sends a request for robots.txt and calls wr_robots_fetch_end once, from any thread or before it
 * returns. Like every request it passes the gate of the url's host and reports its outcome to it.
 * The function must not block if callers of the registry must not. It must have a timeout, because
 * a fetch that never ends blocks its host for ever. */
typedef void wr_robots_fetcher(void *context, struct wr_robots_fetch *fetch);

struct wr_robots_fetched {
    int status; /* 0: no complete response (DNS, TLS, timeout, …); other fields unused */
    /* Decoded body. Pass WR_ROBOTS_MAX + 1 bytes of a longer body, so that the cut is noticed. */
    struct wr_span body;
    struct wr_span location, etag, modified, cache_control; /* field values; empty: absent */
    int64_t retry_after_ns;                                 /* Retry-After; negative: absent */
};

void wr_robots_fetch_end(struct wr_robots_fetch *fetch, const struct wr_robots_fetched *fetched);

/* ---- storing ---- */

enum wr_robots_record_kind {
    WR_ROBOTS_RECORD_TEXT, /* the rules are in `text` */
    WR_ROBOTS_RECORD_NONE, /* the host has no robots.txt */
    WR_ROBOTS_RECORD_SAME, /* the last saved record is still valid; only for save */
};

struct wr_robots_record {
    struct wr_span robots_url; /* key: "https://example.org/robots.txt" */
    enum wr_robots_record_kind kind;
    struct wr_span text;           /* body as received, at most WR_ROBOTS_MAX + 1 bytes */
    struct wr_span etag, modified; /* values of the header fields; empty: absent */
    int64_t max_age_ns;            /* max-age of Cache-Control; negative: absent */
    int64_t fetched_wall_at;       /* wall time of the fetch, ns since 1970 */
};

/* Called with a new record, from the thread that ended the fetch, before waiting callers continue.
 * The record is borrowed. The function should only queue it. It is not called twice: a record that
 * is not saved must be fetched anew later. */
typedef void wr_robots_save(void *context, const struct wr_robots_record *record);

/* ---- the registry ---- */

#define WR_VALIDATOR_MAX 255                     /* most bytes of an ETag or Last-Modified */
#define WR_POLICIES_BYTES_MIN ((size_t)16 << 20) /* least max_bytes: fits the largest robots.txt */
#define WR_POLICIES_HOSTS_MAX ((size_t)10000000) /* largest max_hosts */
#define WR_POLICIES_AGENT_MAX 1024               /* most bytes of `agent` */

/* Options. 0 and NULL mean the default, if there is one. */
struct wr_policies_options {
    weir_pacer *pacer;        /* pacer whose gates the requests pass; not NULL */
    wr_robots_fetcher *fetch; /* sends requests for robots.txt; not NULL */
    void *fetch_context;
    wr_robots_save *save; /* stores new records; NULL: they are not stored */
    void *save_context;
    const char *agent; /* user agent, copied; default "weir" */
    struct wr_robots_lifecycle_options life;
    /* Longest Crawl-delay; longer ones are reduced to it. Default WR_ROBOTS_DELAY_MAX_NS. */
    int64_t delay_max_ns;
    double delay_factor; /* factor for Crawl-delay, 0.01 … 100; default 1 */
    size_t max_hosts;    /* most policies; default 100 000 */
    size_t max_bytes;    /* most memory; default 256 MiB; at least WR_POLICIES_BYTES_MIN */
    uint64_t seed;       /* random seed for jitter; default: random */
    const weir_clock *clock;
    const weir_clock *wall; /* wall clock for stored records; default: the system's */
    const weir_allocator *allocator;
};

struct wr_policies;

/* Creates a registry. Returns WEIR_E_INVAL, WEIR_E_NOMEM or WEIR_E_SYSTEM on failure. */
int wr_policies_new(const struct wr_policies_options *options, struct wr_policies **ret_policies);

/* Closes the registry: waiting and later calls fail with WEIR_E_CLOSED. May be called twice. */
void wr_policies_close(struct wr_policies *policies);

/* Closes the registry, and frees it after the last ticket and the last fetch. NULL is allowed. */
void wr_policies_free(struct wr_policies *policies);

/* Loads a stored record, unless something is known of its host already. A record that is too old or
 * has a future date is used only after the server has confirmed it. Returns WEIR_E_INVAL,
 * WEIR_E_NOMEM, WEIR_E_FULL or WEIR_E_CLOSED on failure. */
int wr_policies_load(struct wr_policies *policies, const struct wr_robots_record *record);

/* ---- asking ---- */

/* Returns a ruling without waiting, but may start a fetch. On wait, poll a ticket or ask later.
 * Returns WEIR_E_NOMEM, WEIR_E_CLOSED, or WEIR_E_FULL (here or in the pacer) on failure. */
int wr_policies_ask(struct wr_policies *policies, const struct wr_url *url, struct wr_robots_decision *ret_ruling);

/* Waits for at most `timeout_ns` until the ruling is go or deny. Errors: WEIR_E_TIMEOUT,
 * WEIR_E_CANCELLED, WEIR_E_SYSTEM, WEIR_E_INVAL, those of wr_policies_ask. `cancel` may be NULL. */
int wr_policies_await(struct wr_policies *policies, const struct wr_url *url, int64_t timeout_ns, weir_cancel *cancel,
                      struct wr_robots_decision *ret_ruling);

/* Waits for robots.txt and then for the host's gate (weir_pacer_acquire, with its flags). Then asks
 * robots.txt a second time, because rules may have changed during the wait. The permit holds
 * something only if the ruling is go. Errors: those of both calls. */
int wr_policies_acquire(struct wr_policies *policies, const struct wr_url *url, uint32_t flags, int64_t timeout_ns,
                        weir_cancel *cancel, weir_permit *ret_permit, struct wr_robots_decision *ret_ruling);

/* Creates a ticket for an event loop. Poll it at once, and then after wait_ns or when woken,
 * whichever comes first. `wake` is as in limit.h; it is never called if this function fails.
 * Returns WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_FULL or WEIR_E_CLOSED on failure. */
struct wr_policy_ticket;
int wr_policies_enqueue(struct wr_policies *policies, const struct wr_url *url, int64_t timeout_ns, weir_wake *wake,
                        void *context, struct wr_policy_ticket **ret_ticket);

/* Returns 0 and a ruling for any target (wr_url_target) on the ticket's host. Returns
 * WEIR_E_TIMEOUT if the ruling is to wait and the timeout has passed. Other errors: WEIR_E_CLOSED,
 * WEIR_E_NOMEM, WEIR_E_FULL (in the pacer). */
int wr_policy_ticket_poll(struct wr_policy_ticket *ticket, struct wr_span target,
                          struct wr_robots_decision *ret_ruling);
void wr_policy_ticket_free(struct wr_policy_ticket *ticket);

/* ---- inspecting ---- */

struct wr_policy_info {
    enum wr_robots_state state;
    bool has_rules;
    bool is_clamped;  /* the Crawl-delay was reduced to delay_max_ns */
    bool is_cut;      /* the robots.txt had more than WR_ROBOTS_MAX bytes */
    uint32_t rules;   /* rules that apply to this agent */
    uint32_t waiters; /* number of tickets on this policy */
    int64_t age_ns;   /* age of the known rules; -1: nothing is known */
    int64_t retry_ns; /* time until the next fetch after a failure; 0: none needed */
    int64_t delay_ns; /* delay passed to the gate, the longer of http and https */
};

/* Describes the policy of a URL. Returns WEIR_E_ABSENT if it has no policy. */
int wr_policies_inspect(struct wr_policies *policies, const struct wr_url *url, struct wr_policy_info *ret_look);

struct wr_policies_stats {
    size_t hosts, bytes;
    size_t fetching, waiters; /* fetches and tickets at present */
    uint64_t fetches;         /* requests passed to the fetcher, redirects included */
    uint64_t failures;        /* fetches that failed */
    uint64_t evicted;
};

struct wr_policies_stats wr_policies_stats(struct wr_policies *policies);

#endif
