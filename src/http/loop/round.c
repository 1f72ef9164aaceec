/* SPDX-License-Identifier: MIT */
/* round.c - runs the rounds of a loop, and defers ready sockets when a round's time is over. */
#include "http/loop/round.h"

#include "http/loop/watchdog.h"

#include <weir/time.h>

/* Up to this number, deferred sockets are still polled: cheaper than to stop and restart polling.
 * Beyond it, libuv would ask the kernel for their readiness several times in one round. */
#define BEHIND_POLLED_MAX 500

struct wr_time_slice wr_time_slice_begin(int64_t ns)
{
    return (struct wr_time_slice){weir_clock_now(weir_clock_fast()) + ns};
}

bool wr_time_slice_lasts(const struct wr_time_slice *slice)
{
    return weir_clock_now(weir_clock_fast()) < slice->until;
}

/* ---- deferred sockets ---- */

static struct wr_poll *poll_of(uv_poll_t *uv)
{
    return WR_LINKED(uv, struct wr_poll, uv);
}

static void defer_events(struct wr_poll *poll, int status, int events)
{
    struct wr_round *round = poll->round;

    if (!wr_list_is_linked(&poll->link)) {
        wr_list_push(&round->deferred, &poll->link);
        round->deferred_count++;
        poll->ready = poll->status = 0;
    }
    poll->ready |= events;
    poll->status = status < 0 ? status : poll->status;
    if (round->deferred_count > BEHIND_POLLED_MAX && !poll->is_unpolled) {
        (void)uv_poll_stop(&poll->uv);
        poll->is_unpolled = true;
    }
}

static void on_poll_ready(uv_poll_t *uv, int status, int events)
{
    struct wr_poll *poll = poll_of(uv);

    if (!poll->is_urgent && (wr_list_is_linked(&poll->link) || !wr_time_slice_lasts(&poll->round->slice)))
        defer_events(poll, status, events);
    else
        poll->on_ready(uv, status, events);
}

static void drop_deferred(struct wr_poll *poll)
{
    if (!wr_list_is_linked(&poll->link))
        return;
    wr_list_remove(&poll->link);
    poll->round->deferred_count--;
}

static void resume_polling(struct wr_poll *poll)
{
    bool was_deaf = poll->is_unpolled;

    poll->is_unpolled = false;
    if (was_deaf)
        wr_poll_watch(poll, poll->wanted);
}

/* Reports the deferred events of a poll, except those that its owner no longer waits for. */
static void report_deferred(struct wr_poll *poll)
{
    int status = poll->status, events = poll->ready & poll->wanted;

    drop_deferred(poll);
    resume_polling(poll);
    if (status < 0 || events != 0)
        poll->on_ready(&poll->uv, status, status < 0 ? 0 : events);
}

/* ---- rounds ---- */

static void on_round_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void on_round_prepare(uv_prepare_t *prepare)
{
    struct wr_round *round = WR_LINKED(prepare, struct wr_round, prepare);

    wr_watchdog_turn();
    round->slice = wr_time_slice_begin(WR_ROUND_NS);
    while (round->deferred.first != NULL && wr_time_slice_lasts(&round->slice))
        report_deferred(WR_LINKED(round->deferred.first, struct wr_poll, link));
    if (round->deferred.first != NULL)
        (void)uv_idle_start(&round->goes_on, on_round_idle);
    else
        (void)uv_idle_stop(&round->goes_on);
}

void wr_round_open(struct wr_round *ret_round, uv_loop_t *loop)
{
    *ret_round = (struct wr_round){.deferred_count = 0};
    (void)uv_prepare_init(loop, &ret_round->prepare);
    (void)uv_idle_init(loop, &ret_round->goes_on);
    uv_unref((uv_handle_t *)&ret_round->prepare);
    uv_unref((uv_handle_t *)&ret_round->goes_on);
    (void)uv_prepare_start(&ret_round->prepare, on_round_prepare);
}

void wr_round_close(struct wr_round *round, uv_close_cb on_closed, void *data)
{
    round->prepare.data = round->goes_on.data = data;
    uv_close((uv_handle_t *)&round->prepare, on_closed);
    uv_close((uv_handle_t *)&round->goes_on, on_closed);
}

/* ---- polls ---- */

int wr_poll_init(struct wr_poll *ret_poll, struct wr_round *round, int fd, uv_poll_cb when_ready)
{
    ret_poll->round = round;
    ret_poll->on_ready = when_ready;
    ret_poll->link = (struct wr_list_link){NULL, NULL, NULL};
    ret_poll->wanted = ret_poll->ready = ret_poll->status = 0;
    ret_poll->is_unpolled = ret_poll->is_urgent = false;
    return uv_poll_init(round->prepare.loop, &ret_poll->uv, fd);
}

void wr_poll_watch(struct wr_poll *poll, int events)
{
    poll->wanted = events;
    if (poll->is_unpolled)
        return;
    if (events != 0)
        (void)uv_poll_start(&poll->uv, events, on_poll_ready); /* cannot fail after uv_poll_init */
    else
        (void)uv_poll_stop(&poll->uv);
}

void wr_poll_defer(struct wr_poll *poll, int events)
{
    defer_events(poll, 0, events);
    (void)uv_idle_start(&poll->round->goes_on, on_round_idle); /* wakes the loop */
}

void wr_poll_close(struct wr_poll *poll, uv_close_cb on_closed)
{
    drop_deferred(poll);
    uv_close((uv_handle_t *)&poll->uv, on_closed);
}
