/* SPDX-License-Identifier: MIT */
/* lounge.c - requests that are waiting for a decision: POST /v1/acquire, and requests to the store.
 *
 * A waiter is in a queue of the rulebook and is polled in its loop's thread. This happens when the
 * queue reports that its turn may have come (from any thread, by a note), and at the time that the
 * last poll named (by the loop's alarm). */
#include "shell/serve/inside.h"

#include "base/alloc.h"
#include "shell/loop/away.h"
#include "shell/loop/round.h"

struct waiter {
    struct wr_heap_item item; /* first member; link in desk->waiters */
    struct wr_http_note note;
    struct wr_serve_desk *desk;
    /* NULL: the waiter has finished, and is freed when its note has run */
    struct wr_http_exchange *exchange;
    struct wr_http_loop *loop;
    uint32_t listener;
    struct wr_turn *turn;
    struct wr_serve_order order; /* how to respond; its `wish` is not kept */
    int64_t asked_at;            /* time at which the request was read, ns; 0 for /v1/acquire */
    atomic_bool is_posted;
};

static void leave(struct waiter *waiter)
{
    struct wr_serve *serve = waiter->desk->serve;
    wr_turn_free(waiter->turn); /* after this, on_wake is not called any more */
    waiter->turn = NULL;
    waiter->exchange = NULL;
    wr_heap_remove(&waiter->desk->waiters, &waiter->item);
    (void)atomic_fetch_sub(&serve->waiting, 1);
    (void)atomic_fetch_sub(&serve->waiting_at[waiter->listener], 1);
    if (!atomic_load(&waiter->is_posted))
        wr_give(serve->allocator, waiter, sizeof *waiter, _Alignof(struct waiter));
}

static void set_alarm(struct wr_serve_desk *desk, struct wr_http_loop *loop)
{
    int64_t at = 0;
    if (wr_heap_peek(&desk->waiters, &at) != NULL)
        wr_http_alarm(loop, at);
}

static void sit_down(struct waiter *waiter, int64_t wait_ns)
{
    struct wr_serve_desk *desk = waiter->desk;
    if (wait_ns >= WEIR_FOREVER)
        return; /* only on_wake can end the wait */
    /* cannot fail: the heap has room for all that may wait */
    (void)wr_heap_push(&desk->waiters, weir_clock_now(weir_clock_monotonic()) + wait_ns, &waiter->item);
    set_alarm(desk, waiter->loop);
}

/* Responds if the waiter is decided; otherwise waits again. */
static void poll(struct waiter *waiter)
{
    struct wr_serve_desk *desk = waiter->desk;
    struct wr_http_exchange *exchange = waiter->exchange;
    int64_t wait_ns = 0;
    wr_heap_remove(&desk->waiters, &waiter->item);
    desk->verdict.origin = exchange->listener;
    if (wr_turn_poll(waiter->turn, &desk->verdict, &wait_ns)) {
        struct wr_serve_order order = waiter->order;
        int64_t asked_at = waiter->asked_at;
        leave(waiter);
        desk->asked_at = asked_at;
        desk->is_answered_later = asked_at == 0;
        order.reply(desk, exchange, order.baggage);
        if (!desk->is_answered_later)
            wr_serve_note_answer(desk, asked_at);
        return;
    }
    sit_down(waiter, wait_ns);
}

static void on_note(struct wr_http_note *note)
{
    struct waiter *waiter = (struct waiter *)(void *)((char *)note - offsetof(struct waiter, note));
    atomic_store(&waiter->is_posted, false);
    if (waiter->exchange != NULL)
        poll(waiter);
    else
        wr_give(waiter->desk->serve->allocator, waiter, sizeof *waiter, _Alignof(struct waiter));
}

static void on_wake(void *context)
{
    struct waiter *waiter = context;
    if (!atomic_exchange(&waiter->is_posted, true))
        wr_http_post(waiter->loop, &waiter->note);
}

static void on_gone(struct wr_http_exchange *exchange)
{
    struct waiter *waiter = exchange->context;
    struct wr_serve_desk *desk = waiter->desk;
    struct wr_serve_order order = waiter->order;
    leave(waiter);
    if (order.drop != NULL)
        order.drop(desk, order.baggage);
}

void wr_serve_lounge_look(struct wr_serve_desk *desk, struct wr_http_loop *loop)
{
    WR_DOING("those who wait");
    struct wr_share share = wr_share_begin(WR_SHARE_NS);
    int64_t at = 0, now = weir_clock_now(weir_clock_monotonic());
    struct wr_heap_item *item;
    while ((item = wr_heap_peek(&desk->waiters, &at)) != NULL && at <= now && wr_share_lasts(&share))
        poll((struct waiter *)(void *)item);
    set_alarm(desk, loop); /* if waiters are left over, the alarm fires at once */
}

/* Returns true if a waiter may be added. Each listener has an equal share of waiting_max, at least
 * 1. */
static bool has_room(struct wr_serve *serve, uint32_t listener)
{
    uint32_t most = serve->options.waiting_max, part = most / (uint32_t)serve->options.http.listen_count;
    return atomic_load(&serve->waiting) < most && atomic_load(&serve->waiting_at[listener]) < (part > 0 ? part : 1);
}

static struct waiter *waiter_new(struct wr_serve_desk *desk, struct wr_http_exchange *exchange)
{
    struct wr_serve *serve = desk->serve;
    if (!has_room(serve, exchange->listener))
        return NULL;
    struct waiter *waiter = wr_take(serve->allocator, sizeof *waiter, _Alignof(struct waiter));
    if (waiter == NULL || wr_heap_reserve(&desk->waiters, atomic_load(&serve->waiting) + 1) != 0) {
        wr_give(serve->allocator, waiter, sizeof *waiter, _Alignof(struct waiter));
        return NULL;
    }
    waiter->desk = desk;
    waiter->exchange = exchange;
    waiter->loop = exchange->loop;
    waiter->listener = exchange->listener;
    waiter->note.run = on_note;
    return waiter;
}

/* Creates a waiter for the exchange. Returns NULL after it refused the request. */
static struct waiter *come_in(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, wr_serve_reply *reply)
{
    struct waiter *waiter = waiter_new(desk, exchange);
    if (waiter == NULL) {
        wr_http_refuse(exchange, 503, "too many wait already; come again");
        return NULL;
    }
    (void)atomic_fetch_add(&desk->serve->waiting, 1);
    (void)atomic_fetch_add(&desk->serve->waiting_at[waiter->listener], 1);
    waiter->order.reply = reply;
    exchange->context = waiter;
    exchange->gone = on_gone;
    return waiter;
}

/* Frees the waiter and detaches it from the exchange. */
static void go_out(struct waiter *waiter)
{
    struct wr_http_exchange *exchange = waiter->exchange;
    leave(waiter);
    exchange->context = NULL;
    exchange->gone = NULL;
}

static void reply_verdict(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, void *baggage)
{
    (void)baggage;
    wr_serve_reply_verdict(desk, exchange);
}

void wr_serve_acquire(struct wr_serve_desk *desk, struct wr_http_exchange *exchange, const weir_request *request,
                      int64_t timeout_ns)
{
    struct waiter *waiter = come_in(desk, exchange, reply_verdict);
    if (waiter == NULL)
        return;
    desk->is_answered_later = true;
    if (wr_rulebook_enqueue(desk->serve->book, request, timeout_ns, on_wake, waiter, &waiter->turn) == 0) {
        poll(waiter);
        return;
    }
    go_out(waiter);
    wr_http_refuse(exchange, 503, "out of memory");
}

enum wr_serve_asked wr_serve_ask(struct wr_serve_desk *desk, struct wr_http_exchange *exchange,
                                 const struct wr_serve_order *order)
{
    struct waiter *waiter = come_in(desk, exchange, order->reply);
    int64_t wait_ns = 0;
    if (waiter == NULL)
        return WR_ASKED_IN_VAIN;
    int error = wr_rulebook_enqueue_wish(desk->serve->book, order->wish, on_wake, waiter, &waiter->turn);
    if (error == 0 && !wr_turn_poll(waiter->turn, &desk->verdict, &wait_ns)) {
        waiter->order = *order;
        waiter->asked_at = desk->asked_at;
        desk->is_answered_later = true;
        sit_down(waiter, wait_ns);
        return WR_ASKED_LATER;
    }
    go_out(waiter);
    if (error == 0)
        return WR_ASKED_NOW;
    wr_http_refuse(exchange, error == WEIR_E_ABSENT ? 400 : 503,
                   error == WEIR_E_ABSENT ? "there is no such rule" : "out of memory");
    return WR_ASKED_IN_VAIN;
}
