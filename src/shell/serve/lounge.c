/* SPDX-License-Identifier: MIT */
/* lounge.c - POST /v1/acquire: those who wait for their turn.
 *
 * A waiter stands in the rulebook's line and is polled in its loop's thread: when the line says that it may be its turn
 * (from any thread: a note is posted), and when the time has come that the last poll named (the loop's alarm).
 */
#include "shell/serve/inside.h"

#include "base/alloc.h"
#include "shell/loop/away.h"
#include "shell/loop/round.h"

struct waiter {
    struct wr_heap_item item; /* first */
    struct wr_http_note note;
    struct wr_serve_desk *desk;
    struct wr_http_exchange *exchange; /* NULL: over, and freed when its note has run */
    struct wr_http_loop *loop;
    uint32_t listener;
    struct wr_turn *turn;
    struct wr_serve_order order; /* without the wish */
    int64_t asked_at;            /* when it was read; 0: it waits because it wants to */
    atomic_bool is_posted;
};

static void leave(struct waiter *waiter)
{
    struct wr_serve *serve = waiter->desk->serve;
    wr_turn_free(waiter->turn); /* from here on nobody posts */
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
        return; /* only a wake helps */
    /* there is room: as many can be in the heap as may wait */
    (void)wr_heap_push(&desk->waiters, weir_clock_now(weir_clock_monotonic()) + wait_ns, &waiter->item);
    set_alarm(desk, waiter->loop);
}

/* Answers, or waits on. */
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
    set_alarm(desk, loop); /* it rings at once for those that are left */
}

/* Each listener has an equal part of those who may wait, and one at least. */
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

/* One who waits in this exchange; NULL after a refusal. */
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

/* Takes the exchange back. */
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
