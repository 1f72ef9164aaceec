/* SPDX-License-Identifier: MIT */
/* wakeup.h - ends the wait of a loop from another thread.
 *
 *     any thread                              the loop's thread
 *     publish the work, wr_wakeup_send ─────▶ on_wakeup: take all work that was published
 *
 * Wake-ups that come before on_wakeup runs are one. Work that was published before wr_wakeup_send is seen by an
 * on_wakeup that begins after it.
 *
 * uv_async_t does the same, but in libuv 1.29 to 1.44 the loop's thread spins until a sender has left uv_async_send
 * (libuv pull request 3879). On a busy machine the sender may have lost its processor there, and the loop spends
 * milliseconds.
 */
#ifndef WR_SHELL_LOOP_WAKEUP_H
#define WR_SHELL_LOOP_WAKEUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct wr_wakeup {
    uv_poll_t uv; /* `data` and references are its owner's */
    void (*on_wakeup)(struct wr_wakeup *wakeup);
    atomic_bool is_sent;  /* and on_wakeup has not begun */
    pthread_mutex_t lock; /* fd is written to, or closed */
    int fd;               /* of eventfd(2); -1: closed */
};

/* 0, or WEIR_E_SYSTEM: then there is nothing to close. Active, and with a reference, until it is closed. */
int wr_wakeup_init(struct wr_wakeup *ret_wakeup, uv_loop_t *loop, void (*on_wakeup)(struct wr_wakeup *wakeup));

/* From any thread, but not from a signal handler. Has no effect after wr_wakeup_close. */
void wr_wakeup_send(struct wr_wakeup *wakeup);

/* As uv_close. */
void wr_wakeup_close(struct wr_wakeup *wakeup, uv_close_cb on_closed);

static inline bool wr_wakeup_is_closing(const struct wr_wakeup *wakeup)
{
    return uv_is_closing((const uv_handle_t *)&wakeup->uv) != 0;
}

#endif
