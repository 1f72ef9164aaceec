/* SPDX-License-Identifier: MIT */
/* pace.h - paces the requests to many hosts, and learns each host's limit from its responses.
 *
 * A weir_pacer decides when the next request to a host may start, and learns from every response.
 * It finds each host's limit, stays just below it, and obeys Crawl-delay, Retry-After and
 * rate-limit fields. Use it around your own HTTP calls, from any number of threads:
 *
 *     weir_pacer_new(NULL, NULL, &pacer);
 *     weir_pacer_acquire(pacer, "api.example.org", 15, 0, WEIR_FOREVER, NULL, &permit, NULL);
 *     ... send the request, read the answer ...
 *     weir_outcome outcome = {.size = sizeof outcome, .status = 200, .latency_ns = took_ns};
 *     weir_permit_finish(&permit, &outcome);
 *
 * Report the limits in the response, too: has_retry_after and has_quota. weir/handler.h reads
 * header fields for you.
 *
 * Keys are strings: a host ("example.org", "example.org:8080"; see weir_host_key), an API token, a
 * route, or whatever the server counts by.
 *
 * The earliest start of a request is the maximum of independent bounds: the pace (a strategy that
 * learns), the minimum interval, Crawl-delay, Retry-After, the server's quota, the circuit breaker,
 * and requests in flight. A decision has the bound that holds the request, and the remaining wait.
 *
 * Which profile?
 *     adaptive      learns each host's limit and stays below it; the default
 *     aimd          additive increase, multiplicative decrease, with a token bucket
 *     strict        one start per second and host, no learning
 *     learned       a delay that grows by a second with each 429, and is tested for a shorter one
 *     unlimited     your own servers: only Retry-After, Crawl-delay and requests in flight count
 *     origin-tuned  aimd and learned together, with the numbers that their first users chose
 *
 * A start is the moment when the request is written. Set WEIR_REPORTS_SENT and call
 * weir_permit_sent when you write the request: the time between starts then counts from this call,
 * however long connecting took, and nothing else starts on the host before it. Without the flag,
 * and on hosts without time between starts (unlimited, no Crawl-delay), the request counts as sent
 * when granted.
 *
 * Groups: a request may also have to pass a gate that all hosts of a registrable domain share, and
 * one that all requests to an address share. All gates are asked, and the strictest one counts. The
 * keys of groups are "domain:example.co.uk" and "address:192.0.2.1". They can be inspected, paused
 * and stored like others, but not acquired. Which domain a host belongs to is a question for the
 * public suffix list, which libweir-http has: set domain_of to weir_registrable_domain of web.h.
 *
 * Bounded: there are never more than max_hosts keys, groups included. A new key replaces one that
 * no longer constrains requests. A half-open breaker and unfinished learning constrain for an hour,
 * a Crawl-delay for a day. If every key constrains, the new key is refused (WEIR_E_FULL; try
 * returns WEIR_WAIT), because two hosts that share a gate would break the limits of each of them.
 *
 * Threads: every function may be called from any thread; a permit is used by one thread at a time.
 * Permits do not belong to the thread that acquired them: one that is not sent comes back after
 * reservation_max_ns, and one that was sent stays in flight until its outcome is reported or it is
 * released. After fork() a child may use the objects that it creates itself, but none that were
 * created before.
 */
#ifndef WEIR_PACE_H
#define WEIR_PACE_H

#include <weir/limit.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PACE_KEY_MAX 271 /* most bytes of a key; a host name has up to 253 */
#define WEIR_ADDRESS_MAX 47   /* most bytes of a numeric address */
#define WEIR_PACE_TOP_MAX 1000
#define WEIR_RING_MAX 1024      /* most latencies kept per host */
#define WEIR_WINDOW_BUCKETS 128 /* most steps of an error window */

/* ---- options --------------------------------------------------------------------------------- */

#define WEIR_STRATEGIES(X)                \
    X(WEIR_STRATEGY_TIDE, "tide")         \
    X(WEIR_STRATEGY_FIXED, "fixed")       \
    X(WEIR_STRATEGY_AIMD, "aimd")         \
    X(WEIR_STRATEGY_LEARNED, "learned")   \
    X(WEIR_STRATEGY_AIMD_LEARNED, "both") \
    X(WEIR_STRATEGY_GRADIENT, "gradient") \
    X(WEIR_STRATEGY_PID, "pid")           \
    X(WEIR_STRATEGY_NONE, "none")

typedef enum weir_strategy {
#define X(strategy, name) strategy,
    WEIR_STRATEGIES(X)
#undef X
} weir_strategy;

#define WEIR_PROFILES(X)                   \
    X(WEIR_PROFILE_ADAPTIVE, "adaptive")   \
    X(WEIR_PROFILE_AIMD, "aimd")           \
    X(WEIR_PROFILE_STRICT, "strict")       \
    X(WEIR_PROFILE_LEARNED, "learned")     \
    X(WEIR_PROFILE_UNLIMITED, "unlimited") \
    X(WEIR_PROFILE_ORIGIN_TUNED, "origin-tuned")

typedef enum weir_profile {
#define X(profile, name) profile,
    WEIR_PROFILES(X)
#undef X
} weir_profile;

/* The number and the times of retries (see weir_retry_delay_ns). */
typedef struct weir_retry_options {
    int64_t base_ns;   /* base of the back-off; default 200 ms */
    int64_t max_ns;    /* longest back-off; default 5 s */
    uint32_t attempts; /* attempts in all on transient errors; default 3 */
    /* Retries after 429, 403 and 503, at the time that the host's gate allows; default 3; none if
     * attempts is 1. */
    uint32_t blocking_retries;
} weir_retry_options;

/* The numbers of one host. Fill with weir_pace_options_init or weir_pace_options_profile, then
 * change what you need. A number of 0 means the default, except where "0: ..." says otherwise. */
typedef struct weir_pace_options {
    size_t size;          /* size of this structure */
    weir_profile profile; /* profile of the initial numbers; no effect afterwards */
    weir_strategy strategy;
    bool off; /* grants every permit at once, ignores feedback, shows nothing */

    /* Bounds that hold under every strategy. */
    int64_t min_interval_ns;    /* least time between two starts; 0: no limit. strict: 1 s */
    double max_rate;            /* most starts per second; 0: no limit. adaptive: 8 */
    uint32_t max_in_flight;     /* most requests in flight; 0: no limit. adaptive: 8 */
    int64_t retry_after_max_ns; /* longest wait for a Retry-After or a quota reset; default 24 h */
    int64_t reservation_max_ns; /* time after which an unsent permit is taken back; default 2 min */
    /* Waits for a server or a breaker above this get up to 10 % longer; default 1 s. */
    int64_t jitter_over_ns;

    /* Options of aimd. initial_rate and min_rate also apply to gradient and pid. */
    double initial_rate;       /* first rate, starts per second; default 2 */
    double min_rate;           /* lowest rate, starts per second; default 0.25 */
    double rate_ceiling;       /* highest rate, starts per second; default 8 */
    double burst;              /* capacity of the token bucket; default 4 */
    double increase;           /* starts per second added after a good response; default 0.25 */
    double decrease;           /* factor of the rate after a bad response, 0 < x < 1; default 0.5 */
    int64_t latency_target_ns; /* a response faster than this is good; default 1 s */
    double degrade_factor;     /* a response slower than this times the target is bad; default 2 */

    /* Options for the measurements of each host. */
    double latency_weight;  /* weight of a new response in the mean latency; default 0.2 */
    uint32_t latency_ring;  /* responses for the 95th percentile; default 64; up to WEIR_RING_MAX */
    int64_t window_ns;      /* time over which the error rate is computed; default 30 s */
    int64_t window_step_ns; /* step of the window, at most WEIR_WINDOW_BUCKETS steps; default 2 s */

    /* Options of the circuit breaker. A 403 is not a failure. But after consecutive_failures
     * rejections in a row, of which the last is a 403, the pacer assumes a ban, and also waits for
     * open_ns. */
    bool breaker;                  /* true: there is a breaker; default true, unlimited: false */
    double error_threshold;        /* share of failures that opens the breaker; default 0.5 */
    uint32_t min_samples;          /* responses needed for error_threshold; default 10 */
    uint32_t consecutive_failures; /* failures in a row that open the breaker; default 5 */
    int64_t open_ns;               /* time for which it is open, under tide at most; default 15 s */
    uint32_t probes;               /* requests that test a half-open host; default 3 */

    /* Options of the strategy `learned`. */
    int64_t base_delay_ns;           /* first and shortest delay between starts; default 500 ms */
    int64_t max_delay_ns;            /* longest delay between starts; default 60 s */
    int64_t delay_up_ns;             /* increase of the delay after a 429; default 1 s */
    int64_t delay_down_ns;           /* decrease of the delay for a test; default 1 s */
    uint32_t probe_after;            /* good responses in a row before a test; default 20 */
    bool learn_on_403, learn_on_503; /* count these statuses as a 429; default false */
    int64_t half_life_ns;            /* idle time that halves the delay above base; default 6 h */
    uint32_t cancel_after;           /* 429s in a row for a WEIR_PACE_HOPELESS; default 0: never */
    int64_t cancel_delay_ns;         /* delay from which cancel_after counts; default 60 s */
    /* Each full step of delay above the base lowers the advised concurrency by one; default 5 s. */
    int64_t concurrency_step_ns;

    weir_retry_options retry;
} weir_pace_options;

/* Returns the name of a strategy or profile: "tide", "adaptive", ...; NULL for an unknown
 * number. */
WEIR_API const char *weir_strategy_name(weir_strategy strategy);
WEIR_API const char *weir_profile_name(weir_profile profile);

/* Finds a profile by its name. WEIR_E_INVAL for an unknown name. */
WEIR_API int weir_profile_named(const char *name, weir_profile *ret_profile);

/* Sets the adaptive profile. NULL is allowed. */
WEIR_API void weir_pace_options_init(weir_pace_options *ret_options);
/* Sets a profile. WEIR_E_INVAL. */
WEIR_API int weir_pace_options_profile(weir_pace_options *ret_options, weir_profile profile);
/* Sets one option by its name and a text, for flags and files: "max_rate" "2.5", "open" "15s",
 * "breaker" "off". The names are those of the fields without _ns, and retry_base, retry_max,
 * retry_attempts, blocking_retries. "profile" sets all options. WEIR_E_INVAL. */
WEIR_API int weir_pace_options_set(weir_pace_options *options, const char *name, const char *value);

/* Returns the wait before a retry, with full jitter: uniform between 0 and min(max, base *
 * 2^(attempt-1)). `attempt` counts from 1; `unit` is a random number, 0 <= unit < 1. */
WEIR_API int64_t weir_retry_delay_ns(const weir_retry_options *options, uint32_t attempt, double unit);

/* ---- keys ------------------------------------------------------------------------------------ */

/* Writes the key of a host: the key of "Example.ORG:443" is "example.org". It is in lower case,
 * without a trailing dot. Ports 80 and 443 are dropped, other ports are kept, and IPv6 addresses
 * are in brackets. The key ends with a NUL. Its length goes to *ret_bytes (may be NULL).
 * WEIR_E_INVAL (not a host), WEIR_E_SPACE. */
WEIR_API int weir_host_key(const char *host, size_t host_bytes, char *ret_key, size_t key_size, size_t *ret_bytes);

/* ---- the pacer ------------------------------------------------------------------------------- */

typedef struct weir_pacer weir_pacer;

#define WEIR_PACE_EVENTS(X)                                                                         \
    X(WEIR_PACE_WAITING, "waiting")         /* an acquire waits: reason, wait_ns */                 \
    X(WEIR_PACE_CHANGED, "changed")         /* the learned delay changed: delay_ns, error_streak */ \
    X(WEIR_PACE_RETRY_AFTER, "retry_after") /* the server named a time: wait_ns */                  \
    X(WEIR_PACE_BREAKER, "breaker")         /* the state of the breaker changed: breaker */         \
    X(WEIR_PACE_REJECTED, "rejected")       /* a response with 429, 403, 503 or similar: status */  \
    X(WEIR_PACE_HOPELESS, "hopeless")       /* cancel_after was reached */

typedef enum weir_pace_event_kind {
#define X(kind, name) kind,
    WEIR_PACE_EVENTS(X)
#undef X
} weir_pace_event_kind;

typedef enum weir_breaker_state {
    WEIR_BREAKER_CLOSED,
    WEIR_BREAKER_OPEN,
    WEIR_BREAKER_HALF_OPEN,
} weir_breaker_state;

/* Returns the name of an event: "waiting", "changed", ...; NULL for an unknown number. */
WEIR_API const char *weir_pace_event_name(weir_pace_event_kind kind);

typedef struct weir_pace_event {
    weir_pace_event_kind kind;
    const char *key; /* not terminated; valid during the call */
    size_t key_bytes;
    weir_reason reason; /* reason for which a request would wait now */
    int64_t wait_ns;    /* length of this wait; may be WEIR_UNTIL_RELEASE */
    int64_t delay_ns;   /* learned delay between starts */
    uint32_t error_streak;
    int status;
    weir_breaker_state breaker;
} weir_pace_event;

/* Called with no lock held, from the thread that caused the event. It may call weir, including
 * weir_pacer_free. */
typedef void weir_pace_listener(void *context, const weir_pace_event *event);

typedef enum weir_pace_group {
    WEIR_GROUP_NONE = 0,
    /* All hosts of a registrable domain also share a gate: a.example.co.uk and b.example.co.uk. */
    WEIR_GROUP_DOMAIN = 1,
    /* All requests to one address also share a gate, if weir_pacer_acquire_at names the address. */
    WEIR_GROUP_ADDRESS = 2,
} weir_pace_group;

/* Returns the length of the registrable domain at the end of `host`, such as that of
 * "example.co.uk" in "www.example.co.uk"; 0 if the host has none. `host` is lower case, has no port
 * and no NUL. May be called from any thread, and must not call weir. */
typedef size_t weir_domain_of(void *context, const char *host, size_t host_bytes);

/* Fill with weir_pacer_options_init, then change what you need. 0 means the default. */
typedef struct weir_pacer_options {
    size_t size;      /* size of this structure */
    size_t max_hosts; /* most keys; default 1 000 000 */
    /* Number of locks, rounded up to a power of two; default: one per 4096 hosts, at least 16. */
    size_t shards;
    /* Idle time after which a host is forgotten, if it constrains no requests; default 2 min. */
    int64_t ttl_ns;
    int64_t sweep_every_ns;    /* > 0: a thread sweeps this often; default ttl/2; < 0: no thread */
    uint32_t groups;           /* set of weir_pace_group; default none */
    bool keeps_unsaved;        /* true: keep a host until its state was exported; default false */
    int64_t throttled_over_ns; /* an acquire that waits longer counts as throttled; default 10 ms */
    uint64_t seed;             /* seed of the jitter; default: random */
    weir_pace_listener *listener;
    void *listener_context;
    const weir_clock *clock;         /* default: weir_clock_fast() */
    const weir_clock *wall;          /* ns since 1970, for memories; default: the system's */
    const weir_allocator *allocator; /* default: the system's allocator */
    weir_domain_of *domain_of;       /* WEIR_GROUP_DOMAIN: weir_registrable_domain (weir/web.h) */
    void *domain_context;
} weir_pacer_options;

/* A permit for one request, in the caller's memory. It may be moved, but only one copy used. */
typedef struct weir_permit {
    weir_pacer *pacer;      /* NULL: the permit holds nothing */
    int64_t granted_at;     /* instant of the grant, by the pacer's clock */
    int64_t waited_ns;      /* time that the caller waited */
    weir_reason waited_for; /* first reason of the wait; WEIR_REASON_NONE: no wait */
    bool sent;
    /* The rest is private: the gates that are held, of host, domain and address, and their keys. */
    uint8_t gates;
    uint16_t key_bytes, domain_at, domain_bytes, address_bytes;
    uint64_t hash; /* hash of the key */
    struct {
        int64_t sent_at;
        uint32_t life, seq, in_flight;
    } held[3];
    char key[WEIR_PACE_KEY_MAX + 1];
    char address[WEIR_ADDRESS_MAX + 1];
} weir_permit;

/* The outcome of a request. */
typedef struct weir_outcome {
    size_t size; /* size of this structure */
    int status;  /* status of the response; 0: no response (network error, timeout) */
    /* Time from sending to the response header; 0: unknown, the pacer takes the permit's time. */
    int64_t latency_ns;
    bool has_retry_after;
    int64_t retry_after_ns; /* time that the server sent; a negative value counts as 0 */
    bool has_quota;
    int64_t quota_limit;     /* requests per window, by the rate-limit fields; -1: unknown */
    int64_t quota_remaining; /* requests left in the window; -1: unknown */
    int64_t quota_reset_ns;  /* time until the window ends; -1: unknown */
    uint32_t attempt;        /* number of the attempt; 0 means 1; above 1 it counts as a retry */
} weir_outcome;

/* Sets all options to their defaults. NULL is allowed. */
WEIR_API void weir_pacer_options_init(weir_pacer_options *ret_options);
/* Creates a pacer. `pace` is copied (NULL: adaptive); `options` may be NULL. WEIR_E_INVAL,
 * WEIR_E_NOMEM, WEIR_E_SYSTEM. */
WEIR_API int weir_pacer_new(const weir_pace_options *pace, const weir_pacer_options *options, weir_pacer **ret_pacer);

#define WEIR_REPORTS_SENT 1u  /* weir_permit_sent will be called when the request is written */
#define WEIR_WAITS_BREAKER 2u /* wait for an open breaker instead of WEIR_E_CIRCUIT */

/* Waits until a request to this key may start, for at most `timeout_ns`. Waiters are granted in
 * order. WEIR_E_CIRCUIT: the breaker is open. WEIR_E_FULL: max_hosts, or too many waiters. The
 * other errors are those of weir_limiter_acquire. After WEIR_E_CANCELLED, WEIR_E_TIMEOUT and
 * WEIR_E_CIRCUIT weir_error_detail names the key and the reason for the wait. `cancel` and
 * `ret_decision` may be NULL. The former content of the permit is overwritten; after a failure the
 * permit holds nothing. */
WEIR_API int weir_pacer_acquire(weir_pacer *pacer, const char *key, size_t key_bytes, uint32_t flags,
                                int64_t timeout_ns, weir_cancel *cancel, weir_permit *ret_permit,
                                weir_decision *ret_decision);

/* Does the same for a numeric address, which has its own gate under WEIR_GROUP_ADDRESS. */
WEIR_API int weir_pacer_acquire_at(weir_pacer *pacer, const char *key, size_t key_bytes, const char *address,
                                   uint32_t flags, int64_t timeout_ns, weir_cancel *cancel, weir_permit *ret_permit,
                                   weir_decision *ret_decision);

/* Decides without waiting. The permit holds something only if the verdict is WEIR_GO. `address` may
 * be NULL. */
WEIR_API int weir_pacer_try(weir_pacer *pacer, const char *key, size_t key_bytes, const char *address, uint32_t flags,
                            weir_permit *ret_permit, weir_decision *ret_decision);

/* Enters the queue, for event loops, as weir_limiter_enqueue does. Poll as weir_ticket_poll says.
 * With WEIR_GO the poll returns the permit, once. WEIR_E_WITHDRAWN: the host named a time at the
 * moment of the grant; enqueue again. `address` may be NULL. Free every ticket: the pacer exists
 * until then. */
typedef struct weir_pace_ticket weir_pace_ticket;
WEIR_API int weir_pacer_enqueue(weir_pacer *pacer, const char *key, size_t key_bytes, const char *address,
                                uint32_t flags, int64_t timeout_ns, weir_wake *wake, void *context,
                                weir_pace_ticket **ret_ticket);
WEIR_API int weir_pace_ticket_poll(weir_pace_ticket *ticket, weir_permit *ret_permit, weir_decision *ret_decision);
WEIR_API void weir_pace_ticket_free(weir_pace_ticket *ticket);

/* Fixes the start of the request: call it when you write the request. WEIR_E_WITHDRAWN: do not send
 * it. Since the permit was granted, the host named a time, was paused or got a Crawl-delay, or more
 * than reservation_max_ns passed and another request came first. The permit then holds nothing;
 * acquire a new one. Does nothing in a second call, or without WEIR_REPORTS_SENT. */
WEIR_API int weir_permit_sent(weir_permit *permit);

/* Reports that the request was written only now, because the process was stopped or had no
 * processor after weir_permit_sent. The next start waits longer by this delay, or by a whole
 * interval from now if the delay was at least that long. Call it right before or after writing, if
 * some microseconds have passed. Does nothing for a permit that holds nothing or was not sent. */
WEIR_API void weir_permit_sent_late(weir_permit *permit);

/* Reports the response header; the body may take long. A wait that the header asks for
 * (Retry-After, a quota that is used up) binds all other requests at once. The request continues:
 * report its outcome, too, with the remaining wait. Does nothing for a permit that holds nothing.
 * WEIR_E_INVAL. */
WEIR_API int weir_permit_head(weir_permit *permit, const weir_outcome *outcome);

/* Reports the outcome to the pacer and ends the permit. Its gates learn from the outcome. A request
 * that was not sent counts as sent now, so that a failed connection can be reported. Does nothing
 * for a permit that holds nothing. WEIR_E_INVAL. */
WEIR_API int weir_permit_finish(weir_permit *permit, const weir_outcome *outcome);

/* Ends a request whose outcome is unknown. If it was not sent, the permit is given back. Does
 * nothing for a permit that holds nothing, so it may be called repeatedly. */
WEIR_API void weir_permit_abandon(weir_permit *permit);

/* Reports an outcome by key, without a permit. It ends no request. Does nothing for a key that is
 * unknown, empty or too long. WEIR_E_INVAL. */
WEIR_API int weir_pacer_tell(weir_pacer *pacer, const char *key, size_t key_bytes, const weir_outcome *outcome);

/* Sets the Crawl-delay of robots.txt: the least time between starts, without bursts. 0 removes it.
 * Creates the key, which is kept for a day after its last use: robots.txt must be read again by
 * then. WEIR_E_INVAL, WEIR_E_FULL, WEIR_E_NOMEM, WEIR_E_CLOSED, like all functions that create
 * keys. */
WEIR_API int weir_pacer_robots_delay(weir_pacer *pacer, const char *key, size_t key_bytes, int64_t delay_ns);

/* Pauses a host, or resumes it. Creates the key. */
WEIR_API int weir_pacer_pause(weir_pacer *pacer, const char *key, size_t key_bytes, bool paused);

/* Changes the options of all hosts at once. The learned state and requests in flight stay, and
 * waiters are checked again. The strategy, the latency ring and the window cannot change.
 * WEIR_E_INVAL. */
WEIR_API int weir_pacer_change(weir_pacer *pacer, const weir_pace_options *pace);

/* ---- learned state --------------------------------------------------------------------------- */

/* The state of a host that is worth storing. Instants are wall time in ns since 1970; 0: none. All
 * zero: nothing is known. */
typedef struct weir_pace_memory {
    int64_t delay_ns; /* settled delay between starts */
    int64_t floor_ns; /* last safe delay between starts; 0: none */
    int64_t robots_delay_ns;
    int64_t retry_wall_at; /* no start before this (Retry-After, quota reset) */
    int64_t saved_wall_at; /* instant at which this state was read */
    double rate;           /* tide: starts per second */
    uint32_t cap;          /* tide: most requests in flight; 0: unknown */
    uint32_t traits;       /* tide: kind of the limit; see core/pace/tide.h */
    int64_t block_ns;      /* tide: length of the last ban */
    bool breaker_open;
} weir_pace_memory;

/* Creates a key with a stored memory. The memory is aged and clamped. The first start waits for one
 * full interval, and an open breaker is half open. A key that exists already keeps its state, and
 * takes over only a later retry_wall_at. */
WEIR_API int weir_pacer_seed(weir_pacer *pacer, const char *key, size_t key_bytes, const weir_pace_memory *memory);

/* Returns the current memory of one key. WEIR_E_ABSENT. */
WEIR_API int weir_pacer_memory(weir_pacer *pacer, const char *key, size_t key_bytes, weir_pace_memory *ret_memory);

/* Calls `save`, with no lock held, for every key whose memory changed since it was last saved. A
 * key counts as saved if `save` returns true and the memory did not change meanwhile, so the latest
 * state is never lost. Returns the number of keys saved. */
typedef bool weir_pacer_save(void *context, const char *key, size_t key_bytes, const weir_pace_memory *memory);
WEIR_API size_t weir_pacer_export(weir_pacer *pacer, weir_pacer_save *save, void *context);

/* Forgets a key and its bounds; its waiters fail with WEIR_E_CLOSED. WEIR_E_ABSENT. */
WEIR_API int weir_pacer_forget(weir_pacer *pacer, const char *key, size_t key_bytes);

/* ---- watching -------------------------------------------------------------------------------- */

/* One bound of a host, as `weir why` lists them. */
typedef struct weir_pace_bound {
    weir_reason reason;
    int64_t wait_ns;  /* wait from now; 0: does not hold now; may be WEIR_UNTIL_RELEASE */
    int64_t value_ns; /* interval or window of the bound; 0: none */
} weir_pace_bound;

#define WEIR_PACE_BOUNDS_MAX 12

typedef struct weir_pace_entry {
    const char *key; /* not terminated; valid as long as the list */
    size_t key_bytes;
    double rate;      /* starts per second that the strategy allows; INFINITY: no limit */
    double tokens;    /* tokens in the bucket of aimd; otherwise 0 */
    int64_t delay_ns; /* time between starts, by all bounds except waiting times */
    int64_t mean_latency_ns, p95_latency_ns;
    double error_rate; /* share of failures in the window */
    weir_breaker_state breaker;
    uint32_t consecutive_failures;
    uint32_t error_streak, success_streak;
    uint32_t in_flight;
    uint32_t cap; /* most requests in flight; UINT32_MAX: no limit */
    uint32_t waiters;
    uint64_t starts, rejected; /* counts so far, modulo 2^32 */
    weir_decision decision;    /* decision for a request now */
    int64_t last_success_at;   /* last success, by the pacer's clock; 0: none */
    char mode[12];             /* mode of the strategy: "cruise", "probe", ... */
    /* Kind of limit that tide assumes: "none", "rate", "window", "concurrency", "ban", "queue",
     * "blocked", "unknown"; "" under other strategies. */
    char limit[12];
    /* The figures of this limit and their evidence: a sentence without a full stop. */
    char limit_why[160];
} weir_pace_entry;

typedef struct weir_pacer_stats {
    uint64_t requests;  /* permits granted */
    uint64_t throttled; /* permits granted after a wait longer than throttled_over_ns */
    uint64_t denied;    /* permits refused by an open breaker */
    uint64_t retries;
    uint64_t rejected;  /* responses with 429, 403, 503 or similar */
    uint64_t waited_ns; /* time that all acquires waited together */
    uint64_t evicted;   /* hosts that were replaced by new ones */
    size_t hosts, open_circuits, half_open_circuits, waiters;
    size_t memory_bytes;
} weir_pacer_stats;

/* Returns counters over all keys, without stopping traffic. It reads every key, so do not call it a
 * thousand times a second. */
WEIR_API int weir_pacer_stats_get(weir_pacer *pacer, weir_pacer_stats *ret_stats);

/* Describes one key and lists its bounds, at most WEIR_PACE_BOUNDS_MAX. `ret_bounds` and
 * `ret_count` may both be NULL. The entry's key is the caller's. WEIR_E_ABSENT. */
WEIR_API int weir_pacer_inspect(weir_pacer *pacer, const char *key, size_t key_bytes, weir_pace_entry *ret_entry,
                                weir_pace_bound *ret_bounds, size_t *ret_count);

/* Lists the `most` (1 to WEIR_PACE_TOP_MAX; 0: 10) most recently active keys, without stopping
 * traffic. *ret_entries is one block: free it with weir_pacer_top_free. */
WEIR_API int weir_pacer_top(weir_pacer *pacer, size_t most, weir_pace_entry **ret_entries, size_t *ret_count);
WEIR_API void weir_pacer_top_free(weir_pacer *pacer, weir_pace_entry *entries);

/* Returns how many requests of a job that wants `concurrency` should be in flight to this key now:
 * one less for each full concurrency_step_ns of delay above the base, at most what the gate allows
 * in flight, at least 1. */
WEIR_API uint32_t weir_pacer_concurrency(weir_pacer *pacer, const char *key, size_t key_bytes, uint32_t concurrency);

/* Forgets idle keys now. Returns their number. */
WEIR_API size_t weir_pacer_sweep(weir_pacer *pacer);

/* Fails all waiters and later calls with WEIR_E_CLOSED. May be called repeatedly. Outcomes may
 * still be reported, permits released and memories exported. */
WEIR_API void weir_pacer_close(weir_pacer *pacer);
/* Closes the pacer, and frees it after the last waiter has left and the last ticket is freed. No
 * permit may be held. NULL is allowed. */
WEIR_API void weir_pacer_free(weir_pacer *pacer);

#ifdef __cplusplus
}
#endif
#endif
