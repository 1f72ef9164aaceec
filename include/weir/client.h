/* SPDX-License-Identifier: MIT */
/* client.h - an HTTP client that paces each host, with robots.txt, redirects and retries.
 *
 *     weir_client_new(NULL, &client);
 *     if (weir_client_fetch(client, "https://example.org/", NULL, NULL, &response) == 0 &&
 *         response->status == 200)
 *         use(response->body, response->body_bytes);
 *     weir_response_free(response);
 *
 * Every HTTP request passes the gate of its host: pages, robots.txt, redirects and retries. The
 * limits of a host (Crawl-delay, Retry-After, RateLimit fields, 429, slowness) bind all callers
 * that use the client or share its pacer.
 *
 * Which function?
 *     get       blocks until the response is there; for scripts and worker threads
 *     fetch     calls back on the client's own thread; for many fetches at once
 *     and handler.h, around your own HTTP library
 *
 * A response with any status is a success: 404 and 500 too. If there is no response, or only a part
 * of it, its `failure` is the reason, and `detail` describes it.
 *
 * Transient errors (no response, 500, 502, ...) are retried, with three attempts in all. After 429,
 * 403 or 503 there are up to three further attempts, when the host's gate opens again. Waiting for
 * the gate does not count as an attempt. POST, PATCH and methods of your own are retried only if
 * the request was not sent. Redirects are followed one by one; your headers and credentials go to
 * the origin of the requested URL only.
 *
 * Threads: every function may be called from any thread. Callbacks run on the client's thread, one
 * at a time. They may call weir, but must not block, and must not close or free the client. After
 * fork() a child may use the objects that it creates itself, but none that were created before.
 */
#ifndef WEIR_CLIENT_H
#define WEIR_CLIENT_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- options --------------------------------------------------------------------------------- */

typedef enum weir_robots_mode {
    WEIR_ROBOTS_RFC9309, /* obey robots.txt; while it is unreachable (5xx), wait; the default */
    WEIR_ROBOTS_ALLOW,   /* obey robots.txt; while it is unreachable, fetch at the usual pace */
    WEIR_ROBOTS_DENY,    /* obey robots.txt; while it is unreachable, fail */
    WEIR_ROBOTS_IGNORE,  /* do not fetch robots.txt: for your own servers and APIs */
} weir_robots_mode;

/* Fill with weir_client_options_init, then change what you need. 0 and NULL mean the default. */
typedef struct weir_client_options {
    size_t size; /* size of this structure */
    /* User-Agent; default "weir/VERSION". Its product token is matched against robots.txt. */
    const char *agent;
    const weir_pace_options *pace; /* default: adaptive; with a shared pacer only its `retry` */
    /* A pacer of yours to share, which must outlive the client; default: the client's own. */
    weir_pacer *pacer;
    weir_robots_mode robots;
    double robots_delay_factor; /* factor of Crawl-delay, 0.01 to 100; default 1 */
    size_t max_robots;          /* most robots.txt files in memory; default 100 000 */
    uint32_t concurrency;       /* most requests in flight, as descriptors allow; default 64 */
    size_t queue_max;           /* most fetches that are not finished; default 1 000 000 */
    /* true: connect to private, loopback and link-local addresses, too; default: refuse them. */
    bool allow_private;
    bool circuit_fails; /* true: an open circuit breaker fails the fetch; default: wait for it */
    /* "http://user:password@proxy:3128"; default: none, and the environment is not read. */
    const char *proxy;
    const char *ca_file; /* file of certificates to trust; default: the system's */
    /* Other rules for statuses, such as "403=permanent, 500=done". The classes are done, transient,
     * blocking and permanent. "api" makes 403 permanent, and 429 and 503 transient. */
    const char *statuses;
    const char *const *headers;    /* "Name: value", ..., NULL; for the requested origin only */
    int64_t connect_timeout_ns;    /* time limit for a connection; default 10 s */
    int64_t first_byte_timeout_ns; /* time limit from sending to the first byte; default 30 s */
    int64_t total_timeout_ns;      /* time limit for one HTTP request; default 2 min */
    /* Time limit for a fetch with waits, hops and retries; default 10 min; WEIR_FOREVER: none. */
    int64_t deadline_ns;
    /* Longest time, counted from the host's last start, for which Retry-After, an open breaker or
     * an unknown robots.txt may hold back the first fetch in the host's queue; default 30 min. If a
     * retry would be later, the client delivers the response that it has. */
    int64_t max_defer_ns;
    uint64_t min_bytes_per_s;  /* least speed of a response, over 30 s; default 64 */
    uint64_t max_header_bytes; /* longest response header; default 256 KiB, also the maximum */
    uint64_t max_body_bytes;   /* longest body after decompression; default 16 MiB, at most 2^40 */
    uint32_t max_redirects;    /* most redirects to follow; default 10; UINT32_MAX: none */
    const weir_allocator *allocator;
} weir_client_options;

/* Sets all options to their defaults. NULL is allowed. */
WEIR_API void weir_client_options_init(weir_client_options *ret_options);

typedef struct weir_client weir_client;

/* Creates a client and starts its thread. All options are copied; `options` may be NULL.
 * WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_SYSTEM. */
WEIR_API int weir_client_new(const weir_client_options *options, weir_client **ret_client);

/* ---- responses ------------------------------------------------------------------------------- */

/* Why there is no response, or only a part of it. */
#define WEIR_FAILURES(X)                                                                           \
    X(WEIR_FAILURE_NONE, "none")       /* there is a response */                                   \
    X(WEIR_FAILURE_DNS, "dns")         /* the name has no address, or the lookup failed */         \
    X(WEIR_FAILURE_CONNECT, "connect") /* connection refused, or host unreachable */               \
    X(WEIR_FAILURE_TLS, "tls")         /* TLS failed, or the certificate is not valid */           \
    X(WEIR_FAILURE_PROXY, "proxy")     /* the proxy failed, not the host */                        \
    X(WEIR_FAILURE_CONNECT_TIMEOUT, "connect_timeout")                                             \
    X(WEIR_FAILURE_FIRST_BYTE_TIMEOUT, "first_byte_timeout")                                       \
    X(WEIR_FAILURE_TOTAL_TIMEOUT, "total_timeout")                                                 \
    X(WEIR_FAILURE_SLOW, "slow")           /* slower than min_bytes_per_s */                       \
    X(WEIR_FAILURE_BROKEN, "broken")       /* connection broke before the end of the response */   \
    X(WEIR_FAILURE_FRAMING, "framing")     /* not HTTP, ambiguous framing, or too long a header */ \
    X(WEIR_FAILURE_ENCODING, "encoding")   /* the body cannot be decompressed */                   \
    X(WEIR_FAILURE_ROBOTS, "robots")       /* robots.txt forbids the URL */                        \
    X(WEIR_FAILURE_GUARD, "guard")         /* the address is private, without allow_private */     \
    X(WEIR_FAILURE_REDIRECT, "redirect")   /* too many redirects, or to an invalid URL */          \
    X(WEIR_FAILURE_CIRCUIT, "circuit")     /* breaker is open, and circuit_fails is set */         \
    X(WEIR_FAILURE_DEADLINE, "deadline")   /* deadline_ns has passed */                            \
    X(WEIR_FAILURE_DEFERRED, "deferred")   /* held back for longer than max_defer_ns */            \
    X(WEIR_FAILURE_CANCELLED, "cancelled") /* cancelled by you, or the client was closed */        \
    X(WEIR_FAILURE_INTERNAL, "internal")   /* no memory, file descriptor or room in the pacer */

typedef enum weir_failure {
#define X(failure, name) failure,
    WEIR_FAILURES(X)
#undef X
} weir_failure;

/* Returns the name of a failure: "dns", "robots", ...; "none" for an unknown number. */
WEIR_API const char *weir_failure_name(weir_failure failure);

/* A response. Strings are terminated and never NULL. They are untrusted input from the server:
 * header and body may contain any bytes. */
typedef struct weir_response {
    int status;              /* HTTP status; 0: no response */
    weir_failure failure;    /* with a status: why the response is incomplete or was not used */
    const char *detail;      /* description of the failure; "" if none */
    const char *url;         /* URL after the last redirect, without user name and password */
    const char *address;     /* address of the connection; "" if none */
    const char *body;        /* ends with a NUL; "" if empty, or if on_body got it */
    size_t body_bytes;       /* bytes received, also those that on_body got */
    bool truncated;          /* true: cut at max_body_bytes, by on_body, or by a failure */
    uint32_t hops;           /* redirects that were followed */
    uint32_t attempts;       /* requests that were sent after the last redirect */
    int64_t waited_ns;       /* wait for gates, retries and robots.txt in all */
    weir_reason waited_for;  /* reason of the longest wait; WEIR_REASON_NONE: no wait */
    int64_t latency_ns;      /* time from sending the last request to its first byte; 0: none came */
    int64_t total_ns;        /* time from the call to this response */
    weir_server_limits said; /* limits of the server in the last response */
    uint32_t robots_line;    /* line of robots.txt that forbids the URL; 0: no line does */
} weir_response;

/* Returns a field of the response header: the first with this name, in any case of letters; NULL if
 * there is no such field. */
WEIR_API const char *weir_response_header(const weir_response *response, const char *name);

/* Frees a response. NULL is allowed. */
WEIR_API void weir_response_free(weir_response *response);

/* ---- requests -------------------------------------------------------------------------------- */

/* The options of one fetch. Fill with weir_fetch_options_init, then change what you need. 0 and
 * NULL mean the default, which is the client's if it has one. All options are copied, except
 * `body`, which must exist until the response is there. */
typedef struct weir_fetch_options {
    size_t size;        /* size of this structure */
    const char *method; /* default "GET" */
    const char *const
        /* "Name: value", ..., NULL; added to the client's. "Name:" omits one of the client's. */
        *headers;
    const void *body;
    size_t body_bytes;
    const char *etag, *last_modified; /* validators of your copy: 304 if it is still valid */
    const char *key;                  /* key that the server counts by, if not the host: a token */
    uint64_t max_body_bytes;
    int64_t deadline_ns;
    uint32_t attempts; /* most attempts; 1: no retries */
    bool ignore_robots;
    /* Gets the body as it comes, instead of the response, on the client's thread. Bodies of
     * redirects and of attempts that are retried are not passed on. Return false to stop: the
     * response is then truncated. */
    bool (*on_body)(void *context, const char *bytes, size_t count);
    /* Called once before on_body: returns whether to read the body of a response with this status.
     * After false, on_body gets nothing, and the response is truncated. */
    bool (*on_status)(void *context, int status);
    void *context; /* argument of both callbacks */
} weir_fetch_options;

/* Sets all options to their defaults. NULL is allowed. */
WEIR_API void weir_fetch_options_init(weir_fetch_options *ret_options);

/* Fetches a URL and waits for the response, which the caller frees. `options` and `cancel` may be
 * NULL. Returns 0 if there is a response, whatever its status or failure. WEIR_E_INVAL (the URL,
 * the options, or a call from a callback), WEIR_E_NOMEM, WEIR_E_FULL (queue_max), WEIR_E_CLOSED,
 * WEIR_E_SYSTEM. */
WEIR_API int weir_client_fetch(weir_client *client, const char *url, const weir_fetch_options *options,
                               weir_cancel *cancel, weir_response **ret_response);

/* Receives the response of a fetch. The callee must free it. */
typedef void weir_fetched(void *context, weir_response *response);

/* A handle for cancelling one fetch. */
typedef struct weir_fetch weir_fetch;

/* Fetches a URL, and calls `fetched` with `context` once, on the client's thread: never from within
 * this call, and never if this call fails. If `ret_fetch` is not NULL, it gets a handle that the
 * caller frees. The errors are those of weir_client_fetch. */
WEIR_API int weir_client_fetch_async(weir_client *client, const char *url, const weir_fetch_options *options,
                                     weir_fetched *fetched, void *context, weir_fetch **ret_fetch);

/* Ends the fetch soon with WEIR_FAILURE_CANCELLED, unless it has ended. The callback is called in
 * any case. This function and weir_fetch_free may be called after weir_client_free, too. */
WEIR_API void weir_fetch_cancel(weir_fetch *fetch);

/* Frees the handle; the fetch continues. NULL is allowed. */
WEIR_API void weir_fetch_free(weir_fetch *fetch);

/* ---- watching and closing -------------------------------------------------------------------- */

typedef struct weir_client_stats {
    uint64_t requests; /* requests that were sent so far, also for robots.txt and redirects */
    uint64_t retries;  /* requests that were retries */
    uint64_t robots;   /* requests for robots.txt */
    uint64_t finished; /* responses delivered */
    uint64_t body_bytes;
    size_t unfinished; /* fetches in progress or waiting */
    size_t in_flight;  /* requests in flight now */
} weir_client_stats;

WEIR_API int weir_client_stats_get(weir_client *client, weir_client_stats *ret_stats);

/* Returns the client's pacer: use it to inspect or pause a host, and to seed and export memories.
 * Valid as long as the client, unless it is your own. */
WEIR_API weir_pacer *weir_client_pacer(weir_client *client);

/* Ends all fetches with WEIR_FAILURE_CANCELLED, and refuses new ones with WEIR_E_CLOSED. Returns
 * after the last callback has returned. May be called repeatedly. */
WEIR_API void weir_client_close(weir_client *client);

/* Closes and frees the client. No call of weir_client_fetch may be in progress. NULL is allowed. */
WEIR_API void weir_client_free(weir_client *client);

#ifdef __cplusplus
}
#endif
#endif
