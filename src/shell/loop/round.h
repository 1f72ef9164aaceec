/* SPDX-License-Identifier: MIT */
/* round.h - a round of a loop: what it may do before it looks at its timers again.
 *
 * libuv calls back for all sockets that are ready, however many and however long each takes, and only then looks at the
 * timers. So sockets are polled through a wr_poll, of which a round has an end:
 *
 *     timers ─▶ prepare ─▶ sockets that were put off ─▶ sockets that are ready ─▶ timers …
 *                          └────────── WR_ROUND_NS for both ───────────┘
 *
 * When that time is over, sockets that are ready are put off: they wait in their order and are the first of the next
 * round. A socket that does more than some 100 us in a callback must stop by itself.
 *
 * What is not a socket takes a share of time, and stops when it is used up:
 *
 *     struct wr_share share = wr_share_begin(WR_SHARE_NS);
 *     do one(); while (there_is_more() && wr_share_lasts(&share));
 */
#ifndef WR_SHELL_LOOP_ROUND_H
#define WR_SHELL_LOOP_ROUND_H

#include "base/list.h"

#include <stdint.h>
#include <uv.h>

#define WR_ROUND_NS ((int64_t)2000 * 1000)
#define WR_SHARE_NS ((int64_t)500 * 1000) /* the usual one */

struct wr_share {
    int64_t until;
};

struct wr_share wr_share_begin(int64_t ns);
bool wr_share_lasts(const struct wr_share *share);

/* Of one loop, whose thread alone calls what follows. */
struct wr_round {
    uv_prepare_t prepare;
    uv_idle_t goes_on; /* while sockets wait: the loop polls without waiting */
    struct wr_share share;
    struct wr_list behind; /* wr_polls that are ready and were put off */
    uint32_t behind_count;
    uv_close_cb on_closed;
};

/* Both of its handles are without a reference: they keep no loop running. Cannot fail. */
void wr_round_open(struct wr_round *ret_round, uv_loop_t *loop);
/* `on_closed` is called for each of its WR_ROUND_HANDLES handles, whose data is the round's `data`. */
#define WR_ROUND_HANDLES 2
void wr_round_close(struct wr_round *round, uv_close_cb on_closed, void *data);

/* A socket. */
struct wr_poll {
    uv_poll_t uv; /* `data` is its owner's; and references are */
    struct wr_round *round;
    uv_poll_cb on_ready;
    struct wr_list_link link; /* in round->behind */
    int wanted;               /* events */
    int ready, status;        /* while it is put off */
    bool is_deaf;             /* not polled: there are many that are put off */
    bool is_urgent;           /* never put off */
};

/* As uv_poll_init. */
int wr_poll_init(struct wr_poll *ret_poll, struct wr_round *round, int fd, uv_poll_cb when_ready);
/* What is wanted from now on; 0: nothing. After an error, libuv wants nothing. */
void wr_poll_watch(struct wr_poll *poll, int events);
/* This is told in the next round, as if it had happened then. */
void wr_poll_put_off(struct wr_poll *poll, int events);
/* As uv_close. */
void wr_poll_close(struct wr_poll *poll, uv_close_cb on_closed);

/* Whether something has happened that on_ready was not told yet. */
static inline bool wr_poll_is_behind(const struct wr_poll *poll)
{
    return wr_list_holds(&poll->link);
}

#endif
