/* SPDX-License-Identifier: MIT */
/* wakeup.c - wakes a loop from another thread through an eventfd that the loop polls. */
#include "http/loop/wakeup.h"

#include "base/list.h"

#include <assert.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <weir/error.h>

static void on_readable(uv_poll_t *uv, int status, int events)
{
    struct wr_wakeup *wakeup = WR_LINKED(uv, struct wr_wakeup, uv);
    eventfd_t count;

    (void)status;
    (void)events;
    (void)eventfd_read(wakeup->fd, &count);
    /* Clears the flag after the read. Otherwise the read could consume the write of a sender in
     * between, and with the flag set no later sender would write. */
    (void)atomic_exchange(&wakeup->is_sent, false);
    wakeup->on_wakeup(wakeup);
}

int wr_wakeup_init(struct wr_wakeup *ret_wakeup, uv_loop_t *loop, void (*on_wakeup)(struct wr_wakeup *wakeup))
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return WEIR_E_SYSTEM;
    if (uv_poll_init(loop, &ret_wakeup->uv, fd) != 0) {
        (void)close(fd);
        return WEIR_E_SYSTEM;
    }
    ret_wakeup->fd = fd;
    ret_wakeup->on_wakeup = on_wakeup;
    atomic_init(&ret_wakeup->is_sent, false);
    (void)pthread_mutex_init(&ret_wakeup->lock, NULL);
    (void)uv_poll_start(&ret_wakeup->uv, UV_READABLE, on_readable); /* cannot fail */
    return 0;
}

void wr_wakeup_send(struct wr_wakeup *wakeup)
{
    if (atomic_exchange(&wakeup->is_sent, true))
        return;
    (void)pthread_mutex_lock(&wakeup->lock);
    if (wakeup->fd >= 0)
        (void)eventfd_write(wakeup->fd, 1);
    (void)pthread_mutex_unlock(&wakeup->lock);
}

void wr_wakeup_close(struct wr_wakeup *wakeup, uv_close_cb on_closed)
{
    uv_close((uv_handle_t *)&wakeup->uv, on_closed); /* the loop no longer polls fd */
    (void)pthread_mutex_lock(&wakeup->lock);
    assert(wakeup->fd >= 0);
    (void)close(wakeup->fd);
    wakeup->fd = -1;
    (void)pthread_mutex_unlock(&wakeup->lock);
}
