/* SPDX-License-Identifier: MIT */
/* handler.h - a limiter or a pacer around an HTTP library of your own.
 *
 *     weir_handler_options_init(&options);
 *     options.pacer = pacer;
 *     weir_handler_new(&options, &handler);
 *
 *     weir_handler_begin(handler, "api.example.org", 15, NULL, &exchange);   waits for its turn
 *     ... send your request; for each field of the answer: ...
 *     weir_exchange_header(exchange, name, value);
 *     weir_exchange_end(exchange, status);                                   0: no answer came
 *     weir_exchange_free(exchange);
 *
 * An exchange is one request and its answer. weir_exchange_free may be all that a failing path calls: what was not
 * ended is released there, and what was never granted is never released.
 *
 * What answers say of limits (Retry-After, RateLimit, X-RateLimit-… and their kin) is read if the policy says so, and
 * always for a pacer, which obeys it. It can then be looked at: see weir_exchange_said.
 *
 * Retries and breakers of your own go inside an exchange (one turn for all attempts) or around it (a turn for each,
 * which is kinder to the server): both work.
 *
 * With libcurl, weir/curl.h does all this in the place of curl_easy_perform.
 *
 * Threads: a handler may be used from any thread, an exchange by one at a time.
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

/* A request was not admitted, and `error` is about to be returned. The decision tells what holds, and for how long. */
typedef void weir_handler_rejected(void *context, const char *key, size_t key_bytes, int error,
                                   const weir_decision *decision);

/* The policy. Fill with weir_handler_options_init, then give one of the first three. */
typedef struct weir_handler_options {
    size_t size;                        /* of this struct */
    weir_pacer *pacer;                  /* learns from every answer */
    weir_limiter *limiter;              /* one for all keys, which may then be NULL */
    const weir_repository *repository;  /* one for each key; copied. It must offer acquire */
    int64_t acquire_timeout_ns;         /* default WEIR_FOREVER; 0: now or not at all */
    weir_handler_rejected *on_rejected; /* default: nobody is told */
    void *rejected_context;
    bool respect_server_headers;     /* read what answers say of limits; default false, but a pacer always does */
    bool reports_sent;               /* weir_exchange_sent will be called: see WEIR_REPORTS_SENT; pacers only */
    bool waits_breaker;              /* see WEIR_WAITS_BREAKER; pacers only */
    const weir_clock *clock;         /* default: weir_clock_fast() */
    const weir_clock *wall;          /* ns since 1970; default: the system's */
    const weir_allocator *allocator; /* default: the system's */
} weir_handler_options;

/* What an answer said of its server's limits. -1: not said. Durations count from when it came. */
typedef struct weir_said {
    int64_t retry_after_ns;
    int64_t limit;     /* requests per window */
    int64_t remaining; /* 0: used up */
    int64_t reset_ns;  /* until the window begins anew */
} weir_said;

/* NULL is fine. */
WEIR_API void weir_handler_options_init(weir_handler_options *ret_options);

/* The limiter, pacer or repository stays the caller's, and must outlive the handler. WEIR_E_INVAL, WEIR_E_NOMEM. */
WEIR_API int weir_handler_new(const weir_handler_options *options, weir_handler **ret_handler);

/* Frees the handler, once its last exchange is freed too; what it stood before stays as it is. NULL is fine. */
WEIR_API void weir_handler_free(weir_handler *handler);

/* Waits until a request to this key may start. The errors are those of weir_pacer_acquire, weir_limiter_acquire or the
 * repository; after each but WEIR_E_INVAL and WEIR_E_NOMEM on_rejected was called. `cancel` may be NULL. */
WEIR_API int weir_handler_begin(weir_handler *handler, const char *key, size_t key_bytes, weir_cancel *cancel,
                                weir_exchange **ret_exchange);

/* The request is being written now. WEIR_E_WITHDRAWN: do not write it, the host said no meanwhile; free the exchange
 * and begin anew. Matters if reports_sent; else, and when called again, a no-op. */
WEIR_API int weir_exchange_sent(weir_exchange *exchange);

/* One field of the answer's head. */
WEIR_API void weir_exchange_header(weir_exchange *exchange, const char *name, const char *value);

/* One line of the head as it came, "Name: value", with or without CR and LF. A status line begins a head anew: of
 * several (100 Continue, redirects that your library follows) the last counts. Pass the empty line behind them, too:
 * then a time that the head names binds all others at once, and not when the body has come. */
WEIR_API void weir_exchange_line(weir_exchange *exchange, const char *line, size_t line_bytes);

/* The answer had this status; 0: none came. The pacer learns, and what was taken is released. Again: a no-op. */
WEIR_API void weir_exchange_end(weir_exchange *exchange, int status);

/* What the answer said of limits. NULL if it said nothing, or nobody reads it. Valid until the exchange is freed. */
WEIR_API const weir_said *weir_exchange_said(const weir_exchange *exchange);

/* Releases what was not ended: of that, nothing is known. NULL is fine. */
WEIR_API void weir_exchange_free(weir_exchange *exchange);

#ifdef __cplusplus
}
#endif
#endif
