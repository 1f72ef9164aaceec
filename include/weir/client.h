/* SPDX-License-Identifier: MIT */
/* client.h - fetch politely: HTTP behind a pacer, with robots.txt, redirects, retries and a guard.
 *
 *     weir_client_new(NULL, &client);
 *     if (weir_client_get(client, "https://example.org/", NULL, NULL, &response) == 0 && response->status == 200)
 *         use(response->body, response->body_bytes);
 *     weir_response_free(response);
 *
 * Every request on the wire passes the gate of its host: page, robots.txt, each redirect, each retry. What a host says
 * (Crawl-delay, Retry-After, RateLimit fields, 429, slowness) is obeyed for all who use the client or share its pacer.
 *
 * Which form?
 *     get       blocks until there is an answer; for scripts and worker threads
 *     fetch     calls back on the client's own thread; for many at once
 *     and handler.h, around an HTTP library of your own
 *
 * An answer with any status is an answer: 404 and 500 too. Where there is none, or not all of it, the response's
 * `failure` says why, and `detail` in words.
 *
 * What fails for the moment (no answer, 500, 502, …) is tried again, three times in all; what a host turns away (429,
 * 403, 503) up to three times more, when the host's gate opens again. Waiting for a turn costs no attempt. POST, PATCH
 * and methods of your own are sent again only if they did not get out. A redirect is followed hop by hop; headers and
 * credentials of yours go to the origin that you asked for, and not beyond it.
 *
 * Threads: everything may be called from any thread. Callbacks come on the client's thread, one at a time; they may
 * call weir, but must not block, and must not close or free the client. After fork() a child may use what it makes
 * itself, and nothing made before.
 */
#ifndef WEIR_CLIENT_H
#define WEIR_CLIENT_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- options ------------------------------------------------------------------------------------------- */

typedef enum weir_robots_mode {
    WEIR_ROBOTS_RFC9309, /* obey; while robots.txt cannot be had (5xx, no answer), wait; the default */
    WEIR_ROBOTS_ALLOW,   /* obey; while it cannot be had, fetch at the host's ordinary pace */
    WEIR_ROBOTS_DENY,    /* obey; while it cannot be had, fail */
    WEIR_ROBOTS_IGNORE,  /* do not ask: your own servers, and APIs */
} weir_robots_mode;

/* Fill with weir_client_options_init, then change what you need. 0 and NULL mean the default. */
typedef struct weir_client_options {
    size_t size;                   /* of this struct */
    const char *agent;             /* User-Agent; default "weir/VERSION". Its product token is what robots.txt names */
    const weir_pace_options *pace; /* default: adaptive. Its `retry` counts also for a shared pacer */
    weir_pacer *pacer;             /* one of yours, to share, which must outlive the client; default: its own */
    weir_robots_mode robots;
    double robots_delay_factor; /* times Crawl-delay, 0.01 … 100; default 1 */
    size_t max_robots;          /* robots.txt files that are remembered; default 100 000 */
    uint32_t concurrency;       /* requests on the wire in all; default 64; fewer if descriptors do not reach */
    size_t queue_max;           /* requests that are not finished; default 1 000 000 */
    bool allow_private;         /* also private, loopback and link-local addresses; default: refused */
    bool circuit_fails;         /* an open circuit breaker is a failure; default: wait for it */
    const char *proxy;          /* "http://user:password@proxy:3128"; default: none, whatever the environment says */
    const char *ca_file;        /* trusted certificates; default: the system's */
    const char *statuses;       /* "403=permanent, 500=done": not as said above. done, transient, blocking, permanent;
                                   "api": 403 is permanent, and 429 and 503 are transient */
    const char *const *headers; /* "Name: value", …, NULL; for the origin of each URL asked for, not beyond */
    int64_t connect_timeout_ns; /* default 10 s */
    int64_t first_byte_timeout_ns; /* of the answer, from when the request is sent; default 30 s */
    int64_t total_timeout_ns;      /* of one request on the wire; default 2 min */
    int64_t deadline_ns;           /* of all: waiting, hops and retries; default 10 min; WEIR_FOREVER: none */
    int64_t max_defer_ns; /* so long a host may hold what is next in line by Retry-After, an open breaker, or unknown
                             robots.txt, counted from its last start; default 30 min. A try that would come later
                             than that is not waited for: the answer that there is counts */
    uint64_t min_bytes_per_s;  /* over 30 s; default 64 */
    uint64_t max_header_bytes; /* default 256 KiB, which is also the most */
    uint64_t max_body_bytes;   /* after decompression; default 16 MiB, at most 2^40 */
    uint32_t max_redirects;    /* default 10; UINT32_MAX: none are followed */
    const weir_allocator *allocator;
} weir_client_options;

/* NULL is fine. */
WEIR_API void weir_client_options_init(weir_client_options *ret_options);

typedef struct weir_client weir_client;

/* Starts the client's thread. All of `options`, which may be NULL, is copied. WEIR_E_INVAL, WEIR_E_NOMEM,
 * WEIR_E_SYSTEM. */
WEIR_API int weir_client_new(const weir_client_options *options, weir_client **ret_client);

/* ---- responses ----------------------------------------------------------------------------------------- */

/* Why there is no answer, or not all of one. */
#define WEIR_FAILURES(X)                                                                                 \
    X(WEIR_FAILURE_NONE, "none")       /* there is an answer */                                          \
    X(WEIR_FAILURE_DNS, "dns")         /* the name has no address, or nobody could tell */               \
    X(WEIR_FAILURE_CONNECT, "connect") /* nobody listens, or the way is barred */                        \
    X(WEIR_FAILURE_TLS, "tls")         /* no secure connection, or not with whom we asked for */         \
    X(WEIR_FAILURE_PROXY, "proxy")     /* the proxy is to blame, not the host */                         \
    X(WEIR_FAILURE_CONNECT_TIMEOUT, "connect_timeout")                                                   \
    X(WEIR_FAILURE_FIRST_BYTE_TIMEOUT, "first_byte_timeout")                                             \
    X(WEIR_FAILURE_TOTAL_TIMEOUT, "total_timeout")                                                       \
    X(WEIR_FAILURE_SLOW, "slow")           /* min_bytes_per_s */                                         \
    X(WEIR_FAILURE_BROKEN, "broken")       /* the connection broke before the answer was whole */        \
    X(WEIR_FAILURE_FRAMING, "framing")     /* not HTTP, to be read in two ways, or too large a header */ \
    X(WEIR_FAILURE_ENCODING, "encoding")   /* what came cannot be decompressed */                        \
    X(WEIR_FAILURE_ROBOTS, "robots")       /* robots.txt says no */                                      \
    X(WEIR_FAILURE_GUARD, "guard")         /* it leads to a private address */                           \
    X(WEIR_FAILURE_REDIRECT, "redirect")   /* too many, or to what is no http URL */                     \
    X(WEIR_FAILURE_CIRCUIT, "circuit")     /* the host's breaker is open, and circuit_fails */           \
    X(WEIR_FAILURE_DEADLINE, "deadline")   /* deadline_ns */                                             \
    X(WEIR_FAILURE_DEFERRED, "deferred")   /* max_defer_ns */                                            \
    X(WEIR_FAILURE_CANCELLED, "cancelled") /* by you, or because the client was closed */                \
    X(WEIR_FAILURE_INTERNAL, "internal")   /* no memory, no file descriptor, no room in the pacer */

typedef enum weir_failure {
#define X(failure, name) failure,
    WEIR_FAILURES(X)
#undef X
} weir_failure;

/* "dns", "robots", …; "none" for a number that is no failure. */
WEIR_API const char *weir_failure_name(weir_failure failure);

/* Texts are terminated, and never NULL. They are a stranger's: bytes of any kind may be in headers and body. */
typedef struct weir_response {
    int status;             /* 0: no answer */
    weir_failure failure;   /* with a status: of an answer that is not whole */
    const char *detail;     /* the failure in words; "" if there is none */
    const char *url;        /* of the last hop, without user name and password */
    const char *address;    /* that was connected to; "" if none was */
    const char *body;       /* NUL behind it; "" if there is none, or on_body had it */
    size_t body_bytes;      /* that came, also those that on_body had */
    bool truncated;         /* at max_body_bytes, by on_body, or by a failure */
    uint32_t hops;          /* redirects followed */
    uint32_t attempts;      /* requests that were sent, but for hops */
    int64_t waited_ns;      /* for turns, retries and robots.txt, in all */
    weir_reason waited_for; /* what held it longest at a time; NONE: nothing did */
    int64_t latency_ns;     /* of the last request: from sending to the first byte; 0: none came */
    int64_t total_ns;       /* from asking to this */
    weir_said said;         /* of limits, by the last answer */
    uint32_t robots_line;   /* the line that decided, if robots.txt said no; 0: no line did */
} weir_response;

/* A field of the answer's head, in any case of letters, the first of several; NULL if there is none. */
WEIR_API const char *weir_response_header(const weir_response *response, const char *name);

/* NULL is fine. */
WEIR_API void weir_response_free(weir_response *response);

/* ---- requests ------------------------------------------------------------------------------------------ */

/* One request. Fill with weir_fetch_options_init, then change what you need; 0 and NULL mean the default, which is the
 * client's where it has one. Copied, but for `body`, which must stay until the response is there. */
typedef struct weir_fetch_options {
    size_t size;        /* of this struct */
    const char *method; /* default "GET" */
    const char *const
        *headers; /* "Name: value", …, NULL; beside the client's. "Name:" leaves one of the client's out */
    const void *body;
    size_t body_bytes;
    const char *etag, *last_modified; /* of what you have: the answer is 304 if it is still right */
    const char *key;                  /* what the other side counts by, instead of the host: an API token, a route */
    uint64_t max_body_bytes;
    int64_t deadline_ns;
    uint32_t attempts; /* 1: no retries at all */
    bool ignore_robots;
    /* The body as it comes, instead of in the response; that of the answer that is delivered, not of redirects and
     * failed attempts. On the client's thread. Return false to stop: the response is then truncated. */
    bool (*on_body)(void *context, const char *bytes, size_t count);
    /* Before on_body, once: is the body of an answer with this status wanted? False: on_body gets nothing of it, and
     * the response is truncated. */
    bool (*on_status)(void *context, int status);
    void *context; /* of both */
} weir_fetch_options;

/* NULL is fine. */
WEIR_API void weir_fetch_options_init(weir_fetch_options *ret_options);

/* Fetches, and waits for the response, which is the caller's to free. `options` and `cancel` may be NULL. 0 if there is
 * a response, whatever it says. WEIR_E_INVAL (the URL, the options, or called from a callback), WEIR_E_NOMEM,
 * WEIR_E_FULL (queue_max), WEIR_E_CLOSED, WEIR_E_SYSTEM. */
WEIR_API int weir_client_get(weir_client *client, const char *url, const weir_fetch_options *options,
                             weir_cancel *cancel, weir_response **ret_response);

/* The response is the callee's to free. */
typedef void weir_fetched(void *context, weir_response *response);

/* One fetch under way, for cancelling. */
typedef struct weir_fetch weir_fetch;

/* Fetches, and calls `fetched` with `context` once, on the client's thread: never from within this call, and never if
 * it fails. `ret_fetch` may be NULL; else free what it gets. Errors as weir_client_get. */
WEIR_API int weir_client_fetch(weir_client *client, const char *url, const weir_fetch_options *options,
                               weir_fetched *fetched, void *context, weir_fetch **ret_fetch);

/* Ends it soon with WEIR_FAILURE_CANCELLED, unless it has ended. The callback comes in any case. This and the next may
 * also be called after weir_client_free has returned. */
WEIR_API void weir_fetch_cancel(weir_fetch *fetch);

/* Lets go of it; the fetch goes on. NULL is fine. */
WEIR_API void weir_fetch_free(weir_fetch *fetch);

/* ---- looking and ending -------------------------------------------------------------------------------- */

typedef struct weir_client_stats {
    uint64_t requests; /* on the wire so far, robots.txt and hops included */
    uint64_t retries;  /* of them */
    uint64_t robots;   /* of them, for robots.txt */
    uint64_t finished; /* responses */
    uint64_t body_bytes;
    size_t unfinished; /* fetches under way or waiting */
    size_t in_flight;  /* requests on the wire now */
} weir_client_stats;

WEIR_API int weir_client_stats_get(weir_client *client, weir_client_stats *ret_stats);

/* The pacer that it asks: to look at, to pause a host, to seed and to export. Valid as long as the client, unless it is
 * yours. */
WEIR_API weir_pacer *weir_client_pacer(weir_client *client);

/* Ends all that is under way with WEIR_FAILURE_CANCELLED, and refuses more with WEIR_E_CLOSED. Returns when the last
 * callback has returned. May be called again. */
WEIR_API void weir_client_close(weir_client *client);

/* Closes and frees. Nobody may be in weir_client_get any more. NULL is fine. */
WEIR_API void weir_client_free(weir_client *client);

#ifdef __cplusplus
}
#endif
#endif
