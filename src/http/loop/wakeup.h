/* SPDX-License-Identifier: MIT */
/* wakeup.h - wakes a loop from another thread.
 *
 *     any thread                              the loop's thread
 *     publish the work, wr_wakeup_send ─────▶ on_wakeup: take all published work
 *
 * Several wake-ups before on_wakeup runs become one. An on_wakeup that begins after wr_wakeup_send
 * sees all work that was published before it.
 *
 * uv_async_t does the same. But in libuv 1.29 to 1.44 the loop's thread spins until a sender has
 * left uv_async_send (libuv pull request 3879). On a busy machine the sender may be preempted
 * there, and the loop wastes milliseconds.
 */
#ifndef WR_HTTP_LOOP_WAKEUP_H
#define WR_HTTP_LOOP_WAKEUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct wr_wakeup {
    uv_poll_t uv; /* the owner sets `data` and references or unreferences the handle */
    void (*on_wakeup)(struct wr_wakeup *wakeup);
    atomic_bool is_sent;  /* true from wr_wakeup_send until on_wakeup begins */
    pthread_mutex_t lock; /* held while fd is written or closed */
    int fd;               /* descriptor of an eventfd(2); -1: closed */
};

/* Starts a wake-up that is active and referenced until it is closed. Returns 0, or WEIR_E_SYSTEM,
 * after which there is nothing to close. */
int wr_wakeup_init(struct wr_wakeup *ret_wakeup, uv_loop_t *loop, void (*on_wakeup)(struct wr_wakeup *wakeup));

/* Wakes the loop from any thread, not from a signal handler. No effect after wr_wakeup_close. */
void wr_wakeup_send(struct wr_wakeup *wakeup);

/* Closes the wake-up like uv_close. */
void wr_wakeup_close(struct wr_wakeup *wakeup, uv_close_cb on_closed);

static inline bool wr_wakeup_is_closing(const struct wr_wakeup *wakeup)
{
    return uv_is_closing((const uv_handle_t *)&wakeup->uv) != 0;
}

#endif
