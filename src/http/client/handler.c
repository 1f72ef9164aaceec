/* SPDX-License-Identifier: MIT */
/* handler.c - a limiter or pacer for any HTTP library: acquires, reads heads, reports, releases. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/web/http/field.h"
#include "core/web/http/server_limits.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

#include <stdatomic.h>
#include <string.h>
#include <weir/handler.h>

struct weir_handler {
    weir_handler_options options; /* clock and allocator filled in */
    weir_key_store repository;
    atomic_size_t holds; /* references: one of the owner, one of each exchange */
};

struct weir_exchange {
    weir_handler *handler;
    bool is_held; /* a permit or receipt is held and must be released */
    bool is_answered;
    int64_t sent_at, answered_at;
    int64_t head_at; /* when the last head began */
    weir_permit permit;
    struct wr_server_limits limits; /* limits in the head; valid if is_answered */
    weir_server_limits said;        /* limits that the server named; valid after the end */
    size_t key_bytes;
    char key[]; /* key for a repository */
};

/* ---- handlers ---- */

void weir_handler_options_init(weir_handler_options *ret_options)
{
    if (ret_options != NULL)
        *ret_options = (weir_handler_options){.size = sizeof *ret_options, .acquire_timeout_ns = WEIR_FOREVER};
}

static int check_handler_options(const weir_handler_options *options)
{
    if (options == NULL || options->size != sizeof *options)
        return wr_invalid("options is NULL or its size is not set; use weir_handler_options_init");
    int count = (options->pacer != NULL) + (options->limiter != NULL) + (options->repository != NULL);
    if (count != 1)
        return wr_invalid("a handler needs one of pacer, limiter and repository");
    if (options->repository != NULL &&
        (options->repository->size != sizeof(weir_key_store) || options->repository->acquire == NULL))
        return wr_invalid("repository: its size is not set, or it has no acquire");
    if (options->pacer == NULL && (options->reports_sent || options->waits_breaker))
        return wr_invalid("reports_sent and waits_breaker are for pacers; clear them");
    bool waits = options->acquire_timeout_ns >= 0 && options->acquire_timeout_ns <= WEIR_DURATION_MAX;
    if (!waits && options->acquire_timeout_ns != WEIR_FOREVER)
        return wr_invalid("acquire_timeout_ns must be 0 ... WEIR_DURATION_MAX, or WEIR_FOREVER");
    return 0;
}

int weir_handler_new(const weir_handler_options *options, weir_handler **ret_handler)
{
    if (ret_handler == NULL)
        return wr_invalid("ret_handler is NULL; it must point to where the handler goes");
    if (check_handler_options(options) != 0)
        return WEIR_E_INVAL;
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    weir_handler *handler = wr_alloc(allocator, sizeof *handler, _Alignof(weir_handler));
    if (handler == NULL)
        return WEIR_E_NOMEM;
    handler->options = *options;
    handler->options.allocator = allocator;
    handler->options.clock = wr_clock_or_fast(options->clock);
    if (options->repository != NULL) {
        handler->repository = *options->repository;
        handler->options.repository = &handler->repository;
    }
    atomic_init(&handler->holds, 1);
    *ret_handler = handler;
    return 0;
}

void weir_handler_free(weir_handler *handler)
{
    if (handler != NULL && atomic_fetch_sub(&handler->holds, 1) == 1)
        wr_free(handler->options.allocator, handler, sizeof *handler, _Alignof(weir_handler));
}

/* ---- acquiring ---- */

static size_t exchange_bytes(size_t key_bytes)
{
    return sizeof(weir_exchange) + key_bytes;
}

static weir_exchange *make_exchange(weir_handler *handler, const char *key, size_t key_bytes)
{
    const weir_handler_options *options = &handler->options;
    if (options->repository == NULL || key == NULL)
        key_bytes = 0; /* the permit has the key, or a limiter needs none */
    weir_exchange *exchange = wr_alloc(options->allocator, exchange_bytes(key_bytes), _Alignof(weir_exchange));
    if (exchange == NULL)
        return NULL;
    (void)atomic_fetch_add(&handler->holds, 1);
    exchange->handler = handler;
    exchange->said = (weir_server_limits)WR_NO_LIMITS_REPORTED;
    exchange->key_bytes = key_bytes;
    if (key_bytes > 0)
        memcpy(exchange->key, key, key_bytes);
    return exchange;
}

static int acquire_permit(weir_exchange *exchange, const char *key, size_t key_bytes, weir_cancel *cancel,
                          weir_decision *ret_decision)
{
    const weir_handler *handler = exchange->handler;
    const weir_handler_options *options = &handler->options;
    uint32_t flags =
        (options->reports_sent ? WEIR_REPORTS_SENT : 0) | (options->waits_breaker ? WEIR_WAITS_BREAKER : 0);
    weir_receipt receipt;
    if (options->pacer != NULL)
        return weir_pacer_acquire(options->pacer, key, key_bytes, flags, options->acquire_timeout_ns, cancel,
                                  &exchange->permit, ret_decision);
    if (options->limiter != NULL)
        return weir_limiter_acquire(options->limiter, 1, options->acquire_timeout_ns, cancel, &receipt, ret_decision);
    return handler->repository.acquire(handler->repository.context, key, key_bytes, 1, options->acquire_timeout_ns,
                                       cancel, &receipt, ret_decision);
}

int weir_handler_begin(weir_handler *handler, const char *key, size_t key_bytes, weir_cancel *cancel,
                       weir_exchange **ret_exchange)
{
    weir_decision decision = {WEIR_WAIT, WEIR_REASON_NONE, 0};
    if (handler == NULL || ret_exchange == NULL)
        return wr_invalid("handler and ret_exchange must not be NULL");
    if (key == NULL && handler->options.limiter == NULL)
        return wr_invalid("key is NULL, which only a limiter accepts");
    if (key_bytes > WEIR_KEY_MAX)
        return wr_invalid("key_bytes must be at most WEIR_KEY_MAX; hash longer keys first");
    weir_exchange *exchange = make_exchange(handler, key, key_bytes);
    if (exchange == NULL)
        return WEIR_E_NOMEM;
    int error = acquire_permit(exchange, key, key_bytes, cancel, &decision);
    if (error == 0) {
        exchange->is_held = true;
        exchange->sent_at = wr_clock_now(handler->options.clock);
        *ret_exchange = exchange;
        return 0;
    }
    if (error != WEIR_E_INVAL && error != WEIR_E_NOMEM && handler->options.on_rejected != NULL)
        handler->options.on_rejected(handler->options.rejected_context, key, key_bytes, error, &decision);
    weir_exchange_free(exchange);
    return error;
}

int weir_exchange_sent(weir_exchange *exchange)
{
    if (exchange == NULL)
        return wr_invalid("exchange is NULL; it must come from weir_handler_begin");
    if (!exchange->is_held || exchange->permit.pacer == NULL || exchange->permit.sent)
        return 0;
    int error = weir_permit_sent(&exchange->permit);
    exchange->is_held = error == 0;
    exchange->sent_at = wr_clock_now(exchange->handler->options.clock);
    return error;
}

/* ---- the response ---- */

/* Returns true if the handler needs the head of the response. */
static bool needs_head(const weir_exchange *exchange)
{
    if (exchange == NULL || !exchange->is_held)
        return false;
    const weir_handler_options *options = &exchange->handler->options;
    return options->respect_server_headers || options->pacer != NULL;
}

static void begin_head(weir_exchange *exchange)
{
    const weir_handler_options *options = &exchange->handler->options;
    wr_server_limits_init(&exchange->limits, options->wall != NULL ? wr_clock_now(options->wall) : weir_wall_now());
    exchange->head_at = wr_clock_now(options->clock);
    if (!exchange->is_answered)
        exchange->answered_at = exchange->head_at;
    exchange->is_answered = true;
}

static void read_head_field(weir_exchange *exchange, struct wr_span name, struct wr_span value)
{
    if (!exchange->is_answered)
        begin_head(exchange);
    wr_server_limits_field(&exchange->limits, name, value);
}

void weir_exchange_header(weir_exchange *exchange, const char *name, const char *value)
{
    if (needs_head(exchange) && name != NULL && value != NULL)
        read_head_field(exchange, wr_span_of(name), wr_span_of(value));
}

static weir_outcome exchange_outcome(const weir_exchange *exchange, int status)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = status};
    if (exchange->is_answered)
        wr_server_limits_to_outcome(&exchange->said, wr_clock_now(exchange->handler->options.clock) - exchange->head_at,
                                    &outcome);
    return outcome;
}

/* Reports a waiting time in the head at once, so that it binds the host's other requests even while
 * the body arrives slowly. */
static void report_head_limits(weir_exchange *exchange)
{
    if (!exchange->is_answered || exchange->handler->options.pacer == NULL)
        return;
    exchange->said = wr_server_limits_result(&exchange->limits);
    weir_outcome outcome = exchange_outcome(exchange, 0);
    if (outcome.has_retry_after || outcome.has_quota)
        (void)weir_permit_head(&exchange->permit, &outcome);
}

static bool is_end_of_head(const char *line, size_t line_bytes)
{
    return line_bytes == 0 || line[0] == '\r' || line[0] == '\n';
}

static bool is_http_status_line(const char *line, size_t line_bytes)
{
    return line_bytes >= 5 && memcmp(line, "HTTP/", 5) == 0;
}

void weir_exchange_line(weir_exchange *exchange, const char *line, size_t line_bytes)
{
    struct wr_span name, value;
    if (!needs_head(exchange) || line == NULL)
        return;
    if (is_http_status_line(line, line_bytes))
        begin_head(exchange);
    else if (is_end_of_head(line, line_bytes))
        report_head_limits(exchange);
    else if (wr_field_parse((struct wr_span){line, line_bytes}, &name, &value))
        read_head_field(exchange, name, value);
}

/* ---- ending ---- */

static void release_permit(weir_exchange *exchange)
{
    const weir_handler *handler = exchange->handler;
    if (handler->options.limiter != NULL)
        (void)weir_limiter_release(handler->options.limiter, 1);
    else if (handler->options.repository != NULL && handler->repository.release != NULL)
        (void)handler->repository.release(handler->repository.context, exchange->key, exchange->key_bytes, 1);
    else
        weir_permit_abandon(&exchange->permit);
    exchange->is_held = false;
}

static void report_outcome(weir_exchange *exchange, int status)
{
    weir_outcome outcome = exchange_outcome(exchange, status);
    if (exchange->is_answered && exchange->answered_at > exchange->sent_at)
        outcome.latency_ns = exchange->answered_at - exchange->sent_at;
    (void)weir_permit_finish(&exchange->permit, &outcome);
}

void weir_exchange_end(weir_exchange *exchange, int status)
{
    if (exchange == NULL || !exchange->is_held)
        return;
    if (exchange->is_answered)
        exchange->said = wr_server_limits_result(&exchange->limits);
    if (exchange->handler->options.pacer != NULL)
        report_outcome(exchange, status);
    release_permit(exchange);
}

const weir_server_limits *weir_exchange_limits(const weir_exchange *exchange)
{
    if (exchange == NULL)
        return NULL;
    const weir_server_limits *said = &exchange->said;
    bool is_any = said->retry_after_ns >= 0 || said->limit >= 0 || said->remaining >= 0 || said->reset_ns >= 0;
    return is_any ? said : NULL;
}

void weir_exchange_free(weir_exchange *exchange)
{
    if (exchange == NULL)
        return;
    weir_handler *handler = exchange->handler;
    if (exchange->is_held)
        release_permit(exchange);
    wr_free(handler->options.allocator, exchange, exchange_bytes(exchange->key_bytes), _Alignof(weir_exchange));
    weir_handler_free(handler);
}
