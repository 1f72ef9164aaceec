/* SPDX-License-Identifier: MIT */
/* round.c - runs the rounds of a loop, and defers ready sockets when a round's time is over. */
#include "shell/loop/round.h"

#include "shell/loop/away.h"

#include <weir/time.h>

/* Up to this number, deferred sockets are still polled: cheaper than to stop and restart polling.
 * Beyond it, libuv would ask the kernel for their readiness several times in one round. */
#define BEHIND_POLLED_MAX 500

struct wr_share wr_share_begin(int64_t ns)
{
    return (struct wr_share){weir_clock_now(weir_clock_fast()) + ns};
}

bool wr_share_lasts(const struct wr_share *share)
{
    return weir_clock_now(weir_clock_fast()) < share->until;
}

/* ---- deferred sockets ---- */

static struct wr_poll *poll_of(uv_poll_t *uv)
{
    return WR_LINKED(uv, struct wr_poll, uv);
}

static void put_off(struct wr_poll *poll, int status, int events)
{
    struct wr_round *round = poll->round;

    if (!wr_list_holds(&poll->link)) {
        wr_list_push(&round->behind, &poll->link);
        round->behind_count++;
        poll->ready = poll->status = 0;
    }
    poll->ready |= events;
    poll->status = status < 0 ? status : poll->status;
    if (round->behind_count > BEHIND_POLLED_MAX && !poll->is_deaf) {
        (void)uv_poll_stop(&poll->uv);
        poll->is_deaf = true;
    }
}

static void on_ready(uv_poll_t *uv, int status, int events)
{
    struct wr_poll *poll = poll_of(uv);

    if (!poll->is_urgent && (wr_list_holds(&poll->link) || !wr_share_lasts(&poll->round->share)))
        put_off(poll, status, events);
    else
        poll->on_ready(uv, status, events);
}

static void leave(struct wr_poll *poll)
{
    if (!wr_list_holds(&poll->link))
        return;
    wr_list_take(&poll->link);
    poll->round->behind_count--;
}

static void listen_again(struct wr_poll *poll)
{
    bool was_deaf = poll->is_deaf;

    poll->is_deaf = false;
    if (was_deaf)
        wr_poll_watch(poll, poll->wanted);
}

/* Reports the deferred events of a poll, except those that its owner no longer waits for. */
static void serve(struct wr_poll *poll)
{
    int status = poll->status, events = poll->ready & poll->wanted;

    leave(poll);
    listen_again(poll);
    if (status < 0 || events != 0)
        poll->on_ready(&poll->uv, status, status < 0 ? 0 : events);
}

/* ---- rounds ---- */

static void on_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct wr_round *round = WR_LINKED(prepare, struct wr_round, prepare);

    wr_away_look();
    round->share = wr_share_begin(WR_ROUND_NS);
    while (round->behind.first != NULL && wr_share_lasts(&round->share))
        serve(WR_LINKED(round->behind.first, struct wr_poll, link));
    if (round->behind.first != NULL)
        (void)uv_idle_start(&round->goes_on, on_idle);
    else
        (void)uv_idle_stop(&round->goes_on);
}

void wr_round_open(struct wr_round *ret_round, uv_loop_t *loop)
{
    *ret_round = (struct wr_round){.behind_count = 0};
    (void)uv_prepare_init(loop, &ret_round->prepare);
    (void)uv_idle_init(loop, &ret_round->goes_on);
    uv_unref((uv_handle_t *)&ret_round->prepare);
    uv_unref((uv_handle_t *)&ret_round->goes_on);
    (void)uv_prepare_start(&ret_round->prepare, on_prepare);
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
    ret_poll->is_deaf = ret_poll->is_urgent = false;
    return uv_poll_init(round->prepare.loop, &ret_poll->uv, fd);
}

void wr_poll_watch(struct wr_poll *poll, int events)
{
    poll->wanted = events;
    if (poll->is_deaf)
        return;
    if (events != 0)
        (void)uv_poll_start(&poll->uv, events, on_ready); /* cannot fail after uv_poll_init */
    else
        (void)uv_poll_stop(&poll->uv);
}

void wr_poll_put_off(struct wr_poll *poll, int events)
{
    put_off(poll, 0, events);
    (void)uv_idle_start(&poll->round->goes_on, on_idle); /* wakes the loop */
}

void wr_poll_close(struct wr_poll *poll, uv_close_cb on_closed)
{
    leave(poll);
    uv_close((uv_handle_t *)&poll->uv, on_closed);
}
