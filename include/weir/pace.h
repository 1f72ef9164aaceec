/* SPDX-License-Identifier: MIT */
/* pace.h - how fast is this host happy?
 *
 * A weir_pacer decides when the next request to a host may start, and learns from every answer: it finds each host's
 * limit, stays just below it, and obeys Crawl-delay, Retry-After and rate-limit fields. Use it around your own HTTP
 * calls, from any number of threads:
 *
 *     weir_pacer_new(NULL, NULL, &pacer);
 *     weir_pacer_acquire(pacer, "api.example.org", 15, 0, WEIR_FOREVER, NULL, &permit, NULL);
 *     ... send the request, read the answer ...
 *     weir_outcome outcome = {.size = sizeof outcome, .status = 200, .latency_ns = took_ns};
 *     weir_permit_tell(&permit, &outcome);
 *
 * Tell what the answer said, too: has_retry_after and has_quota. weir/handler.h reads header fields for you.
 *
 * Keys are strings: a host ("example.org", "example.org:8080"; see weir_host_key), an API token, a route: whatever the
 * other side counts by.
 *
 * One host's earliest start is the maximum of independent bounds: the pace (a strategy that learns), the minimum
 * interval, Crawl-delay, Retry-After, the server's quota, the circuit breaker, requests in flight. A decision says
 * which bound holds and for how long.
 *
 * Which profile?
 *     adaptive      learns each host's limit and stays below it; the default
 *     aimd          additive increase, multiplicative decrease, with a token bucket
 *     strict        one start per second and host, no learning
 *     learned       a delay that grows by a second with each 429 and is probed downwards
 *     unlimited     your own servers: only Retry-After, Crawl-delay and requests in flight bind
 *     origin-tuned  aimd and learned together, with the numbers their first users settled on
 *
 * A start is the moment the request is written. Ask for a permit with WEIR_REPORTS_SENT, call weir_permit_sent when
 * you write, and spacing counts from there, however long connecting took; meanwhile nobody else starts on this host.
 * Without the flag, and on hosts whose starts are not spaced (unlimited, no Crawl-delay), the request counts as sent
 * when granted.
 *
 * Groups: beside the host's own gate a request may have to pass one that all hosts of a registrable domain share, and
 * one of the address it goes to. All are asked, and the strictest wins. Their keys are "domain:example.co.uk" and
 * "address:192.0.2.1": they can be looked at, paused and stored like others, but not acquired.
 *
 * Bounded: there are never more than max_hosts keys, groups included. A new one takes the place of one that constrains
 * nothing any more (a breaker half open or learning half done do so for an hour, a Crawl-delay for a day); where there
 * is none, it is refused (WEIR_E_FULL; try says WEIR_WAIT): to let strangers share a gate would break the promise to
 * each of them.
 *
 * Threads: every function may be called from any thread; one permit is used by one thread at a time. Permits do not
 * belong to the thread that acquired them: one that it leaves behind unsent comes back after reservation_max_ns, one
 * that was sent stays in flight until somebody tells or releases it. After fork() a child may use what it makes itself,
 * and nothing made before.
 */
#ifndef WEIR_PACE_H
#define WEIR_PACE_H

#include <weir/limit.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PACE_KEY_MAX 271 /* bytes of a key: a host of 253, brackets, a port, and room */
#define WEIR_ADDRESS_MAX 47   /* bytes of a numeric address */
#define WEIR_PACE_TOP_MAX 1000
#define WEIR_RING_MAX 1024      /* latencies remembered per host */
#define WEIR_WINDOW_BUCKETS 128 /* of an error window */

/* ---- options ------------------------------------------------------------------------------------------- */

#define WEIR_STRATEGIES(X)                \
    X(WEIR_STRATEGY_TIDE, "tide")         \
    X(WEIR_STRATEGY_FIXED, "fixed")       \
    X(WEIR_STRATEGY_AIMD, "aimd")         \
    X(WEIR_STRATEGY_LEARNED, "learned")   \
    X(WEIR_STRATEGY_BOTH, "both")         \
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

/* How often and when to try again (see weir_retry_delay_ns). */
typedef struct weir_retry_options {
    int64_t base_ns;           /* default 200 ms */
    int64_t max_ns;            /* default 5 s */
    uint32_t attempts;         /* in all, of what fails for the moment; default 3 */
    uint32_t blocking_retries; /* after 429, 403 and 503, at the gate's time; default 3; none if attempts is 1 */
} weir_retry_options;

/* One host's numbers. Fill with weir_pace_options_init or weir_pace_options_profile, then change what you need. A
 * number of 0 means the default, but where "0: ..." says otherwise. */
typedef struct weir_pace_options {
    size_t size;          /* of this struct */
    weir_profile profile; /* whose numbers these were to begin with; decides nothing any more */
    weir_strategy strategy;
    bool off; /* permits at once, feedback ignored, empty snapshot */

    /* Bounds that hold under every strategy. */
    int64_t min_interval_ns;    /* between starts; 0: none. strict: 1 s */
    double max_rate;            /* starts per second; 0: none. adaptive: 8 */
    uint32_t max_in_flight;     /* 0: none. adaptive: 8 */
    int64_t retry_after_max_ns; /* a longer Retry-After or reset waits this long; default 24 h */
    int64_t reservation_max_ns; /* a permit that is not sent within this is given back; default 2 min */
    int64_t jitter_over_ns;     /* waits longer than this get up to 10 % longer; default 1 s */

    /* aimd; initial and min also bind gradient and pid. */
    double initial_rate;       /* per second; default 2 */
    double min_rate;           /* default 0.25 */
    double rate_ceiling;       /* default 8 */
    double burst;              /* capacity of the token bucket; default 4 */
    double increase;           /* per second, per good answer; default 0.25 */
    double decrease;           /* factor, 0 < x < 1; default 0.5 */
    int64_t latency_target_ns; /* default 1 s */
    double degrade_factor;     /* of the target, from which an answer is too slow; default 2 */

    /* Measurement. */
    double latency_weight;  /* of a new answer in the mean; default 0.2 */
    uint32_t latency_ring;  /* answers the 95th percentile is taken from; default 64, at most WEIR_RING_MAX */
    int64_t window_ns;      /* of the error rate; default 30 s */
    int64_t window_step_ns; /* one bucket of it; default 2 s; at most WEIR_WINDOW_BUCKETS of them */

    /* Breaker. A 403 is no failure; but consecutive_failures rejections in a row that end in one are a ban, and wait
     * open_ns as well. */
    bool breaker;                  /* default true, false under unlimited */
    double error_threshold;        /* share of answers; default 0.5 */
    uint32_t min_samples;          /* default 10 */
    uint32_t consecutive_failures; /* default 5 */
    int64_t open_ns;               /* default 15 s */
    uint32_t probes;               /* half open; default 3 */

    /* learned */
    int64_t base_delay_ns;           /* default 500 ms */
    int64_t max_delay_ns;            /* default 60 s */
    int64_t delay_up_ns;             /* per 429; default 1 s */
    int64_t delay_down_ns;           /* per probe; default 1 s */
    uint32_t probe_after;            /* good answers in a row; default 20 */
    bool learn_on_403, learn_on_503; /* default false */
    int64_t half_life_ns;            /* what is above the base halves in this time of idleness; default 6 h */
    uint32_t
        cancel_after; /* 429s in a row at cancel_delay_ns or more raise WEIR_PACE_HOPELESS; 0: never, the default */
    int64_t cancel_delay_ns;     /* default 60 s */
    int64_t concurrency_step_ns; /* each full step of delay above the base lowers the recommended concurrency by one;
                                    default 5 s */

    weir_retry_options retry;
} weir_pace_options;

/* "tide", "adaptive", …; NULL for a number that is none. */
WEIR_API const char *weir_strategy_name(weir_strategy strategy);
WEIR_API const char *weir_profile_name(weir_profile profile);

/* WEIR_E_INVAL for a name that is none. */
WEIR_API int weir_profile_named(const char *name, weir_profile *ret_profile);

/* The adaptive profile. NULL is fine. */
WEIR_API void weir_pace_options_init(weir_pace_options *ret_options);
/* WEIR_E_INVAL. */
WEIR_API int weir_pace_options_profile(weir_pace_options *ret_options, weir_profile profile);
/* Sets one option by its name and a text, "max_rate" "2.5", "open" "15s", "breaker" "off": for flags and files. The
 * names are those of the fields without _ns, and retry_base, retry_max, retry_attempts, blocking_retries; "profile"
 * sets all of them. WEIR_E_INVAL. */
WEIR_API int weir_pace_options_set(weir_pace_options *options, const char *name, const char *value);

/* Full jitter: uniform between 0 and min(max, base * 2^(attempt - 1)); `attempt` counts from 1, `unit` is a random
 * number, 0 <= unit < 1. */
WEIR_API int64_t weir_retry_delay_ns(const weir_retry_options *options, uint32_t attempt, double unit);

/* ---- keys ---------------------------------------------------------------------------------------------- */

/* The host key of "Example.ORG:443" is "example.org": lower case, no trailing dot, ports 80 and 443 dropped, others
 * kept, IPv6 in brackets. Writes it with a NUL, and its length to *ret_bytes (may be NULL). WEIR_E_INVAL (no such
 * host), WEIR_E_SPACE. */
WEIR_API int weir_host_key(const char *host, size_t host_bytes, char *ret_key, size_t key_size, size_t *ret_bytes);

/* ---- the pacer ----------------------------------------------------------------------------------------- */

typedef struct weir_pacer weir_pacer;

#define WEIR_PACE_EVENTS(X)                                                                 \
    X(WEIR_PACE_WAITING, "waiting")         /* an acquire waits: reason, wait_ns */         \
    X(WEIR_PACE_CHANGED, "changed")         /* the learned delay: delay_ns, error_streak */ \
    X(WEIR_PACE_RETRY_AFTER, "retry_after") /* the server named a time: wait_ns */          \
    X(WEIR_PACE_BREAKER, "breaker")         /* the breaker's state */                       \
    X(WEIR_PACE_REJECTED, "rejected")       /* a 429, or what counts like one: status */    \
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

/* "waiting", "changed", …; NULL for a number that is none. */
WEIR_API const char *weir_pace_event_name(weir_pace_event_kind kind);

typedef struct weir_pace_event {
    weir_pace_event_kind kind;
    const char *key; /* not terminated; valid during the call */
    size_t key_bytes;
    weir_reason reason; /* what holds now */
    int64_t wait_ns;    /* for how long; may be WEIR_UNTIL_RELEASE */
    int64_t delay_ns;   /* between starts, as learned so far */
    uint32_t error_streak;
    int status;
    weir_breaker_state breaker;
} weir_pace_event;

/* Called with no lock held, from the thread that caused it; may call weir, weir_pacer_free too. */
typedef void weir_pace_listener(void *context, const weir_pace_event *event);

typedef enum weir_pace_group {
    WEIR_GROUP_NONE = 0,
    WEIR_GROUP_DOMAIN = 1,  /* also one gate per registrable domain: a.example.co.uk and b.example.co.uk share it */
    WEIR_GROUP_ADDRESS = 2, /* also one gate per address, where weir_pacer_acquire_at names it */
} weir_pace_group;

/* Fill with weir_pacer_options_init, then change what you need. 0 means the default. */
typedef struct weir_pacer_options {
    size_t size;               /* of this struct */
    size_t max_hosts;          /* default 1 000 000 */
    size_t shards;             /* locks; rounded up to a power of two; default: one per 4096 hosts, 16 or more */
    int64_t ttl_ns;            /* idle time after which a host is forgotten, if it constrains nothing; default 2 min */
    int64_t sweep_every_ns;    /* > 0: a thread sweeps this often; default ttl/2; < 0: no thread */
    uint32_t groups;           /* of weir_pace_group; default none */
    bool keeps_unsaved;        /* true: a host whose learning was not exported is not forgotten; default false */
    int64_t throttled_over_ns; /* an acquire that waits longer counts as throttled; default 10 ms */
    uint64_t seed;             /* of the jitter; default: random */
    weir_pace_listener *listener;
    void *listener_context;
    const weir_clock *clock;         /* default: weir_clock_fast() */
    const weir_clock *wall;          /* ns since 1970, for what is stored; default: the system's */
    const weir_allocator *allocator; /* default: the system's */
} weir_pacer_options;

/* A permit for one request, in memory of the caller's. It may be handed on, but not used from two copies. */
typedef struct weir_permit {
    weir_pacer *pacer;      /* NULL: nothing is held */
    int64_t granted_at;     /* by the pacer's clock */
    int64_t waited_ns;      /* how long the caller was held */
    weir_reason waited_for; /* what held it at first; NONE: nothing did */
    bool sent;
    /* The rest is the pacer's: the gates that are held, host, domain, address, and where they are found again. */
    uint8_t gates;
    uint16_t key_bytes, domain_at, domain_bytes, address_bytes;
    uint64_t hash; /* of the key */
    struct {
        int64_t sent_at;
        uint32_t life, seq, in_flight;
    } held[3];
    char key[WEIR_PACE_KEY_MAX + 1];
    char address[WEIR_ADDRESS_MAX + 1];
} weir_permit;

/* How a request ended. */
typedef struct weir_outcome {
    size_t size;        /* of this struct */
    int status;         /* of the answer; 0: none came (network error, time-out) */
    int64_t latency_ns; /* from sending to the answer's head; 0: unknown, taken from the permit */
    bool has_retry_after;
    int64_t retry_after_ns; /* as sent; negative counts as 0 */
    bool has_quota;
    int64_t quota_limit;     /* of rate-limit fields; -1: not said */
    int64_t quota_remaining; /* -1: not said */
    int64_t quota_reset_ns;  /* -1: not said */
    uint32_t attempt;        /* 1, 2, …; 0 is 1. More than 1 counts as a retry */
} weir_outcome;

/* NULL is fine for either. */
WEIR_API void weir_pacer_options_init(weir_pacer_options *ret_options);
/* `pace` (NULL: adaptive) is copied. WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_SYSTEM. */
WEIR_API int weir_pacer_new(const weir_pace_options *pace, const weir_pacer_options *options, weir_pacer **ret_pacer);

#define WEIR_REPORTS_SENT 1u  /* weir_permit_sent will be called when the request is written */
#define WEIR_WAITS_BREAKER 2u /* wait for an open breaker instead of WEIR_E_CIRCUIT */

/* Waits until a request to this key may start, first come first served, for at most `timeout_ns`. WEIR_E_CIRCUIT: the
 * breaker is open. WEIR_E_FULL: max_hosts. Else as weir_limiter_acquire; after WEIR_E_CANCELLED, WEIR_E_TIMEOUT and
 * WEIR_E_CIRCUIT weir_error_detail names the key and what held it. `cancel` and `ret_decision` may be NULL. Whatever
 * the permit held before is forgotten; after a failure it holds nothing. */
WEIR_API int weir_pacer_acquire(weir_pacer *pacer, const char *key, size_t key_bytes, uint32_t flags,
                                int64_t timeout_ns, weir_cancel *cancel, weir_permit *ret_permit,
                                weir_decision *ret_decision);

/* The same, for a request to this numeric address, which has a gate of its own under WEIR_GROUP_ADDRESS. */
WEIR_API int weir_pacer_acquire_at(weir_pacer *pacer, const char *key, size_t key_bytes, const char *address,
                                   uint32_t flags, int64_t timeout_ns, weir_cancel *cancel, weir_permit *ret_permit,
                                   weir_decision *ret_decision);

/* Now or not at all. The permit holds something only if the verdict is WEIR_GO. `address` may be NULL. */
WEIR_API int weir_pacer_try(weir_pacer *pacer, const char *key, size_t key_bytes, const char *address, uint32_t flags,
                            weir_permit *ret_permit, weir_decision *ret_decision);

/* For event loops: stands in the queue, as weir_limiter_enqueue. Poll as weir_ticket_poll; on WEIR_GO the permit is
 * handed over, once. WEIR_E_WITHDRAWN: the host named a time in the very moment of granting; enqueue anew. `address`
 * may be NULL. Free every ticket: the pacer stays until then. */
typedef struct weir_pace_ticket weir_pace_ticket;
WEIR_API int weir_pacer_enqueue(weir_pacer *pacer, const char *key, size_t key_bytes, const char *address,
                                uint32_t flags, int64_t timeout_ns, weir_wake *wake, void *context,
                                weir_pace_ticket **ret_ticket);
WEIR_API int weir_pace_ticket_poll(weir_pace_ticket *ticket, weir_permit *ret_permit, weir_decision *ret_decision);
WEIR_API void weir_pace_ticket_free(weir_pace_ticket *ticket);

/* The request is being written now: fixes its start. WEIR_E_WITHDRAWN: do not write it. Since the permit was granted
 * the host named a time, was paused, got a Crawl-delay, or more than reservation_max_ns went by and another came first;
 * the permit holds nothing any more, so acquire anew. Called again, or without WEIR_REPORTS_SENT: a no-op. */
WEIR_API int weir_permit_sent(weir_permit *permit);

/* The request that was said to be sent got out only now: between the two the process was stopped, or had no processor.
 * The next start waits for as much longer; after a whole interval it waits for another from here. Worth calling right
 * before or after writing, where some microseconds went by. A permit that holds nothing, or was not sent: a no-op. */
WEIR_API void weir_permit_late(weir_permit *permit);

/* The head of its answer is there, and the rest may take its time: what it says of waiting (Retry-After, a quota that
 * is used up) binds all others from now on. The request goes on: tell as well how it ended, of waiting what is left. A
 * permit that holds nothing: a no-op. WEIR_E_INVAL. */
WEIR_API int weir_permit_hear(weir_permit *permit, const weir_outcome *outcome);

/* The request ended so: its gates learn, and the permit is let go. A permit that holds nothing: a no-op. One that was
 * not sent counts as sent now: tell of a connection that failed, too. WEIR_E_INVAL. */
WEIR_API int weir_permit_tell(weir_permit *permit, const weir_outcome *outcome);

/* The request was given up, and nothing is known of it. One that was not sent is given back. A permit that holds
 * nothing: a no-op, so it may be repeated. */
WEIR_API void weir_permit_release(weir_permit *permit);

/* Feedback by key, for those who do not hold the permit; it ends nothing in flight. A key that is not known, or that
 * can be none: a no-op. */
WEIR_API int weir_pacer_tell(weir_pacer *pacer, const char *key, size_t key_bytes, const weir_outcome *outcome);

/* robots.txt said Crawl-delay: at least this between starts, and no burst. 0 takes it back. Makes the key, which is
 * kept for a day after its last use: robots.txt must be read again by then. WEIR_E_INVAL, WEIR_E_FULL, WEIR_E_NOMEM,
 * WEIR_E_CLOSED: so do all that make a key. */
WEIR_API int weir_pacer_robots_delay(weir_pacer *pacer, const char *key, size_t key_bytes, int64_t delay_ns);

/* No starts (or starts again). Makes the key. */
WEIR_API int weir_pacer_pause(weir_pacer *pacer, const char *key, size_t key_bytes, bool paused);

/* Other numbers for all hosts at once: what was learned and what is in flight stays, waiters are judged anew. The
 * strategy, the ring and the window must stay what they were. WEIR_E_INVAL. */
WEIR_API int weir_pacer_change(weir_pacer *pacer, const weir_pace_options *pace);

/* ---- what was learned ---------------------------------------------------------------------------------- */

/* What is worth storing of a host. Instants are wall time in ns since 1970, 0: none. All zero is "nothing known". */
typedef struct weir_pace_memory {
    int64_t delay_ns; /* between starts, as settled on */
    int64_t floor_ns; /* the last safe one */
    int64_t robots_delay_ns;
    int64_t retry_wall_at; /* no start before (Retry-After, quota reset) */
    int64_t saved_wall_at; /* when this was true */
    double rate;           /* tide: starts per second */
    uint32_t cap;          /* tide: most in flight, 0: unknown */
    uint32_t traits;       /* tide: what kind of limit it is; see core/pace */
    int64_t block_ns;      /* tide: length of the last ban */
    bool breaker_open;
} weir_pace_memory;

/* Starts a key with what was stored: aged, clamped, one full interval before the first start, an open breaker half
 * open. Makes the key; one that is already known keeps what it knows, and only learns of a later retry_wall_at. */
WEIR_API int weir_pacer_seed(weir_pacer *pacer, const char *key, size_t key_bytes, const weir_pace_memory *memory);

/* One key's memory now. WEIR_E_ABSENT. */
WEIR_API int weir_pacer_memory(weir_pacer *pacer, const char *key, size_t key_bytes, weir_pace_memory *ret_memory);

/* Calls `save` for every key whose memory changed since it was last saved, and counts it as saved if that returns true
 * and nothing changed meanwhile: the last word is never lost. No lock is held. Returns how many were saved. */
typedef bool weir_pacer_save(void *context, const char *key, size_t key_bytes, const weir_pace_memory *memory);
WEIR_API size_t weir_pacer_export(weir_pacer *pacer, weir_pacer_save *save, void *context);

/* Forgets a key, and what it forbade; waiters on it fail with WEIR_E_CLOSED. WEIR_E_ABSENT. */
WEIR_API int weir_pacer_forget(weir_pacer *pacer, const char *key, size_t key_bytes);

/* ---- looking ------------------------------------------------------------------------------------------- */

/* One bound of a host, as `weir why` lists them. */
typedef struct weir_pace_bound {
    weir_reason reason;
    int64_t wait_ns;  /* from now; 0: does not hold; WEIR_UNTIL_RELEASE */
    int64_t value_ns; /* the interval or window behind it, 0: none */
} weir_pace_bound;

#define WEIR_PACE_BOUNDS_MAX 12

typedef struct weir_pace_entry {
    const char *key; /* not terminated; valid as long as the list */
    size_t key_bytes;
    double rate;      /* starts per second that the strategy allows; INFINITY: any */
    double tokens;    /* of aimd's bucket; else 0 */
    int64_t delay_ns; /* between starts, all bounds but waiting times taken together */
    int64_t mean_latency_ns, p95_latency_ns;
    double error_rate; /* of the window */
    weir_breaker_state breaker;
    uint32_t consecutive_failures;
    uint32_t error_streak, success_streak;
    uint32_t in_flight;
    uint32_t cap; /* most in flight; UINT32_MAX: any number */
    uint32_t waiters;
    uint64_t starts, rejected; /* modulo 2^32 */
    weir_decision decision;    /* now */
    int64_t last_success_at;   /* by the pacer's clock; 0: none */
    char mode[12];             /* the strategy's own word: "cruise", "probe", … */
    char limit[12];            /* what kind of limit tide believes in: "none", "rate", "window", "concurrency", "ban",
                                  "queue", "blocked", "unknown"; "" under other strategies */
    char limit_why[160];       /* its figures, and what they are concluded from: a sentence without its end */
} weir_pace_entry;

typedef struct weir_pacer_stats {
    uint64_t requests;  /* permits granted */
    uint64_t throttled; /* of them, after a wait longer than throttled_over_ns */
    uint64_t denied;    /* by an open breaker */
    uint64_t retries;
    uint64_t rejected;  /* answers 429, or what counts like one */
    uint64_t waited_ns; /* by all acquires together */
    uint64_t evicted;   /* hosts that made room for new ones */
    size_t hosts, open_circuits, half_open_circuits, waiters;
    size_t memory_bytes;
} weir_pacer_stats;

/* Over all keys, without stopping traffic. Looks at every one, so do not call it a thousand times a second. */
WEIR_API int weir_pacer_stats_get(weir_pacer *pacer, weir_pacer_stats *ret_stats);

/* One key, and its bounds (at most WEIR_PACE_BOUNDS_MAX; `ret_bounds` may be NULL). The entry's key is the caller's.
 * WEIR_E_ABSENT. */
WEIR_API int weir_pacer_look(weir_pacer *pacer, const char *key, size_t key_bytes, weir_pace_entry *ret_entry,
                             weir_pace_bound *ret_bounds, size_t *ret_count);

/* The `most` (1 … WEIR_PACE_TOP_MAX; 0: 10) most recently active keys, without stopping traffic. *ret_entries is one
 * block: give it to weir_pacer_top_free. */
WEIR_API int weir_pacer_top(weir_pacer *pacer, size_t most, weir_pace_entry **ret_entries, size_t *ret_count);
WEIR_API void weir_pacer_top_free(weir_pacer *pacer, weir_pace_entry *entries);

/* How many requests of a job that wants `concurrency` should be in flight to this key now: one less for each full
 * concurrency_step_ns that the delay is above its base, no more than the gate lets in flight, at least 1. */
WEIR_API uint32_t weir_pacer_concurrency(weir_pacer *pacer, const char *key, size_t key_bytes, uint32_t concurrency);

/* Forgets idle keys now. Returns how many. */
WEIR_API size_t weir_pacer_sweep(weir_pacer *pacer);

/* Fails all waiters and later calls with WEIR_E_CLOSED. May be called again. Permits may still be told or released. */
WEIR_API void weir_pacer_close(weir_pacer *pacer);
/* Closes, and frees once the last waiter has left. No permit may be held. NULL is fine. */
WEIR_API void weir_pacer_free(weir_pacer *pacer);

#ifdef __cplusplus
}
#endif
#endif
