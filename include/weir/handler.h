/* SPDX-License-Identifier: MIT */
/* handler.h - puts a limiter or a pacer around an HTTP library of your own.
 *
 *     weir_handler_options_init(&options);
 *     options.pacer = pacer;
 *     weir_handler_new(&options, &handler);
 *
 *     weir_handler_begin(handler, "api.example.org", 15, NULL, &exchange);   waits for its start
 *     ... send your request; for each field of the answer: ...
 *     weir_exchange_header(exchange, name, value);
 *     weir_exchange_end(exchange, status);                                   0: no response
 *     weir_exchange_free(exchange);
 *
 * An exchange is one request and its response. After an error of your own, weir_exchange_free is
 * enough: it releases an exchange that was not ended, but never permits that were not granted.
 *
 * The limits in responses (Retry-After, RateLimit, X-RateLimit-... and similar fields) are read if
 * the policy says so, and always for a pacer, which obeys them. weir_exchange_limits returns them.
 *
 * Your own retries and breakers can be inside one exchange, which then has one start for all
 * attempts. They can also be separate exchanges, each with a start of its own, which causes less
 * load on the server.
 *
 * With libcurl, use weir_curl_perform of weir/curl.h in place of curl_easy_perform.
 *
 * Threads: a handler may be used from any thread, an exchange by one thread at a time.
 */
#ifndef WEIR_HANDLER_H
#define WEIR_HANDLER_H

#include <weir/pace.h>
#include <weir/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_handler weir_handler;
typedef struct weir_exchange weir_exchange;

/* Called before the error of a request that was not admitted is returned. The decision has the
 * reason and the length of the wait. */
typedef void weir_handler_rejected(void *context, const char *key, size_t key_bytes, int error,
                                   const weir_decision *decision);

/* The policy of a handler. Fill with weir_handler_options_init, then set one of the first three. */
typedef struct weir_handler_options {
    size_t size;                        /* size of this structure */
    weir_pacer *pacer;                  /* pacer; learns from every response */
    weir_limiter *limiter;              /* one limiter for all keys, which may then be NULL */
    const weir_key_store *repository;   /* one limiter per key; copied; must have acquire */
    int64_t acquire_timeout_ns;         /* longest wait; default WEIR_FOREVER; 0: do not wait */
    weir_handler_rejected *on_rejected; /* default NULL: not called */
    void *rejected_context;
    /* true: read the limits in responses; default false, but a pacer always reads them. */
    bool respect_server_headers;
    bool reports_sent;               /* the flag WEIR_REPORTS_SENT; only with a pacer */
    bool waits_breaker;              /* the flag WEIR_WAITS_BREAKER; only with a pacer */
    const weir_clock *clock;         /* default: weir_clock_fast() */
    const weir_clock *wall;          /* ns since 1970; default: the system's clock */
    const weir_allocator *allocator; /* default: the system's allocator */
} weir_handler_options;

/* The limits of the server in a response; -1: unknown. Durations count from its arrival. */
typedef struct weir_server_limits {
    int64_t retry_after_ns;
    int64_t limit;     /* requests per window */
    int64_t remaining; /* requests left in the window; 0: used up */
    int64_t reset_ns;  /* time until the next window */
} weir_server_limits;

/* Sets all options to their defaults. NULL is allowed. */
WEIR_API void weir_handler_options_init(weir_handler_options *ret_options);

/* Creates a handler. The limiter, pacer or repository stays the caller's, and must outlive the
 * handler. WEIR_E_INVAL, WEIR_E_NOMEM. */
WEIR_API int weir_handler_new(const weir_handler_options *options, weir_handler **ret_handler);

/* Frees the handler, after its last exchange is freed. The limiter, pacer or repository is not
 * freed. NULL is allowed. */
WEIR_API void weir_handler_free(weir_handler *handler);

/* Waits until a request to this key may start. The errors are those of weir_pacer_acquire,
 * weir_limiter_acquire or the repository. Before it returns any of them except WEIR_E_INVAL and
 * WEIR_E_NOMEM, on_rejected is called. `cancel` may be NULL. */
WEIR_API int weir_handler_begin(weir_handler *handler, const char *key, size_t key_bytes, weir_cancel *cancel,
                                weir_exchange **ret_exchange);

/* Fixes the start of a request at the moment when it is written, if reports_sent is set; otherwise,
 * and in a second call, it does nothing. WEIR_E_WITHDRAWN: do not write the request, because the
 * host has refused requests meanwhile; free the exchange and begin a new one. */
WEIR_API int weir_exchange_sent(weir_exchange *exchange);

/* Takes one field of the response header. */
WEIR_API void weir_exchange_header(weir_exchange *exchange, const char *name, const char *value);

/* Takes one line of the header as it was received, "Name: value", with or without CR and LF. A
 * status line begins a new header, so the last of several headers counts (100 Continue, redirects
 * that your library follows). Also pass the empty line at the end: a wait that the header asks for
 * then binds all other requests at once, and not only after the body. */
WEIR_API void weir_exchange_line(weir_exchange *exchange, const char *line, size_t line_bytes);

/* Ends the exchange with the status of the response; 0: no response. The pacer learns, and the
 * permits are released. A second call does nothing. */
WEIR_API void weir_exchange_end(weir_exchange *exchange, int status);

/* Returns the limits of the server in the response. NULL if it has none, or if fields are not read.
 * Valid until the exchange is freed. */
WEIR_API const weir_server_limits *weir_exchange_limits(const weir_exchange *exchange);

/* Frees an exchange. If it was not ended, its permits are released with an unknown outcome. NULL is
 * allowed. */
WEIR_API void weir_exchange_free(weir_exchange *exchange);

#ifdef __cplusplus
}
#endif
#endif
