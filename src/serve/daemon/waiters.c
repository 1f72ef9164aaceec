/* SPDX-License-Identifier: MIT */
/* waiters.c - requests that are waiting for a decision: POST /v1/acquire, and requests to the
 * store.
 *
 * A waiter is in a queue of the rulebook and is polled in its loop's thread. This happens when the
 * queue reports that its turn may have come (from any thread, by a note), and at the time that the
 * last poll named (by the loop's alarm). */
#include "serve/daemon/serve_internal.h"

#include "base/alloc.h"
#include "http/loop/round.h"
#include "http/loop/watchdog.h"

struct decision_waiter {
    struct wr_heap_item item; /* first member; link in worker->waiters */
    struct wr_http_posted_call note;
    struct wr_serve_worker *worker;
    /* NULL: the waiter has finished, and is freed when its note has run */
    struct wr_http_exchange *exchange;
    struct wr_http_loop *loop;
    uint32_t listener;
    struct wr_pending_request *pending;
    struct wr_serve_deferred_reply deferred; /* how to respond; its `rules_request` is not kept */
    int64_t asked_at;                        /* time at which the request was read, ns; 0 for /v1/acquire */
    atomic_bool is_posted;
};

static void remove_waiter(struct decision_waiter *waiter)
{
    struct wr_serve *serve = waiter->worker->serve;
    wr_pending_request_free(waiter->pending); /* after this, on_wake is not called any more */
    waiter->pending = NULL;
    waiter->exchange = NULL;
    wr_heap_remove(&waiter->worker->waiters, &waiter->item);
    (void)atomic_fetch_sub(&serve->waiting, 1);
    (void)atomic_fetch_sub(&serve->waiting_at[waiter->listener], 1);
    if (!atomic_load(&waiter->is_posted))
        wr_free(serve->allocator, waiter, sizeof *waiter, _Alignof(struct decision_waiter));
}

static void set_alarm(struct wr_serve_worker *worker, struct wr_http_loop *loop)
{
    int64_t at = 0;
    if (wr_heap_peek(&worker->waiters, &at) != NULL)
        wr_http_alarm(loop, at);
}

static void schedule_poll(struct decision_waiter *waiter, int64_t wait_ns)
{
    struct wr_serve_worker *worker = waiter->worker;
    if (wait_ns >= WEIR_FOREVER)
        return; /* only on_wake can end the wait */
    /* cannot fail: the heap has room for all that may wait */
    (void)wr_heap_push(&worker->waiters, weir_clock_now(weir_clock_monotonic()) + wait_ns, &waiter->item);
    set_alarm(worker, waiter->loop);
}

/* Responds if the waiter is decided; otherwise waits again. */
static void poll_waiter(struct decision_waiter *waiter)
{
    struct wr_serve_worker *worker = waiter->worker;
    struct wr_http_exchange *exchange = waiter->exchange;
    int64_t wait_ns = 0;
    wr_heap_remove(&worker->waiters, &waiter->item);
    worker->verdict.origin = exchange->listener;
    if (wr_pending_request_poll(waiter->pending, &worker->verdict, &wait_ns)) {
        struct wr_serve_deferred_reply deferred = waiter->deferred;
        int64_t asked_at = waiter->asked_at;
        remove_waiter(waiter);
        worker->asked_at = asked_at;
        worker->is_answered_later = asked_at == 0;
        deferred.reply(worker, exchange, deferred.reply_context);
        if (!worker->is_answered_later)
            wr_serve_record_answer_time(worker, asked_at);
        return;
    }
    schedule_poll(waiter, wait_ns);
}

static void on_note(struct wr_http_posted_call *note)
{
    struct decision_waiter *waiter =
        (struct decision_waiter *)(void *)((char *)note - offsetof(struct decision_waiter, note));
    atomic_store(&waiter->is_posted, false);
    if (waiter->exchange != NULL)
        poll_waiter(waiter);
    else
        wr_free(waiter->worker->serve->allocator, waiter, sizeof *waiter, _Alignof(struct decision_waiter));
}

static void on_wake(void *context)
{
    struct decision_waiter *waiter = context;
    if (!atomic_exchange(&waiter->is_posted, true))
        wr_http_post(waiter->loop, &waiter->note);
}

static void on_exchange_gone(struct wr_http_exchange *exchange)
{
    struct decision_waiter *waiter = exchange->context;
    struct wr_serve_worker *worker = waiter->worker;
    struct wr_serve_deferred_reply deferred = waiter->deferred;
    remove_waiter(waiter);
    if (deferred.drop != NULL)
        deferred.drop(worker, deferred.reply_context);
}

void wr_serve_poll_waiters(struct wr_serve_worker *worker, struct wr_http_loop *loop)
{
    WR_DOING("those who wait");
    struct wr_time_slice share = wr_time_slice_begin(WR_TIME_SLICE_NS);
    int64_t at = 0, now = weir_clock_now(weir_clock_monotonic());
    struct wr_heap_item *item;
    while ((item = wr_heap_peek(&worker->waiters, &at)) != NULL && at <= now && wr_time_slice_lasts(&share))
        poll_waiter((struct decision_waiter *)(void *)item);
    set_alarm(worker, loop); /* if waiters are left over, the alarm fires at once */
}

/* Returns true if a waiter may be added. Each listener has an equal share of waiting_max, at least
 * 1. */
static bool listener_has_room(struct wr_serve *serve, uint32_t listener)
{
    uint32_t most = serve->options.waiting_max, part = most / (uint32_t)serve->options.http.listen_count;
    return atomic_load(&serve->waiting) < most && atomic_load(&serve->waiting_at[listener]) < (part > 0 ? part : 1);
}

static struct decision_waiter *waiter_new(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    struct wr_serve *serve = worker->serve;
    if (!listener_has_room(serve, exchange->listener))
        return NULL;
    struct decision_waiter *waiter = wr_alloc(serve->allocator, sizeof *waiter, _Alignof(struct decision_waiter));
    if (waiter == NULL || wr_heap_reserve(&worker->waiters, atomic_load(&serve->waiting) + 1) != 0) {
        wr_free(serve->allocator, waiter, sizeof *waiter, _Alignof(struct decision_waiter));
        return NULL;
    }
    waiter->worker = worker;
    waiter->exchange = exchange;
    waiter->loop = exchange->loop;
    waiter->listener = exchange->listener;
    waiter->note.run = on_note;
    return waiter;
}

/* Creates a waiter for the exchange. Returns NULL after it refused the request. */
static struct decision_waiter *add_waiter(struct wr_serve_worker *worker, struct wr_http_exchange *exchange,
                                          wr_serve_reply_function *reply)
{
    struct decision_waiter *waiter = waiter_new(worker, exchange);
    if (waiter == NULL) {
        wr_http_refuse(exchange, 503, "too many requests wait already; retry later");
        return NULL;
    }
    (void)atomic_fetch_add(&worker->serve->waiting, 1);
    (void)atomic_fetch_add(&worker->serve->waiting_at[waiter->listener], 1);
    waiter->deferred.reply = reply;
    exchange->context = waiter;
    exchange->gone = on_exchange_gone;
    return waiter;
}

/* Frees the waiter and detaches it from the exchange. */
static void detach_waiter(struct decision_waiter *waiter)
{
    struct wr_http_exchange *exchange = waiter->exchange;
    remove_waiter(waiter);
    exchange->context = NULL;
    exchange->gone = NULL;
}

static void reply_verdict(struct wr_serve_worker *worker, struct wr_http_exchange *exchange, void *reply_context)
{
    (void)reply_context;
    wr_serve_reply_verdict(worker, exchange);
}

void wr_serve_acquire(struct wr_serve_worker *worker, struct wr_http_exchange *exchange, const weir_request *request,
                      int64_t timeout_ns)
{
    struct decision_waiter *waiter = add_waiter(worker, exchange, reply_verdict);
    if (waiter == NULL)
        return;
    worker->is_answered_later = true;
    if (wr_rules_enqueue(worker->serve->book, request, timeout_ns, on_wake, waiter, &waiter->pending) == 0) {
        poll_waiter(waiter);
        return;
    }
    detach_waiter(waiter);
    wr_http_refuse(exchange, 503, "out of memory");
}

enum wr_serve_ask_result wr_serve_ask_store(struct wr_serve_worker *worker, struct wr_http_exchange *exchange,
                                            const struct wr_serve_deferred_reply *deferred)
{
    struct decision_waiter *waiter = add_waiter(worker, exchange, deferred->reply);
    int64_t wait_ns = 0;
    if (waiter == NULL)
        return WR_SERVE_REFUSED;
    int error =
        wr_rules_enqueue_for_store(worker->serve->book, deferred->rules_request, on_wake, waiter, &waiter->pending);
    if (error == 0 && !wr_pending_request_poll(waiter->pending, &worker->verdict, &wait_ns)) {
        waiter->deferred = *deferred;
        waiter->asked_at = worker->asked_at;
        worker->is_answered_later = true;
        schedule_poll(waiter, wait_ns);
        return WR_SERVE_DECIDED_LATER;
    }
    detach_waiter(waiter);
    if (error == 0)
        return WR_SERVE_DECIDED_NOW;
    wr_http_refuse(exchange, error == WEIR_E_ABSENT ? 400 : 503,
                   error == WEIR_E_ABSENT ? "there is no such rule" : "out of memory");
    return WR_SERVE_REFUSED;
}
