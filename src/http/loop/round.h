/* SPDX-License-Identifier: MIT */
/* round.h - limits the time that a loop spends on sockets before it looks at its timers again.
 *
 * libuv calls back for all sockets that are ready, regardless of their number and duration. Only
 * then does it look at the timers. So sockets are polled through a wr_poll, and each round of the
 * loop has a time limit:
 *
 *     timers ─▶ prepare ─▶ deferred sockets ─▶ sockets that are ready ─▶ timers …
 *                          └───────── WR_ROUND_NS for both ─────────┘
 *
 * When that time is over, sockets that become ready are deferred. They wait in order and are first
 * in the next round. A callback must limit itself to some 100 us.
 *
 * Work other than sockets takes a slice of time, and stops when the slice is used up:
 *
 *     struct wr_time_slice slice = wr_time_slice_begin(WR_TIME_SLICE_NS);
 *     do one(); while (there_is_more() && wr_time_slice_lasts(&slice));
 */
#ifndef WR_HTTP_LOOP_ROUND_H
#define WR_HTTP_LOOP_ROUND_H

#include "base/list.h"

#include <stdint.h>
#include <uv.h>

#define WR_ROUND_NS ((int64_t)2000 * 1000)
#define WR_TIME_SLICE_NS ((int64_t)500 * 1000) /* the usual slice */

struct wr_time_slice {
    int64_t until;
};

struct wr_time_slice wr_time_slice_begin(int64_t ns);
bool wr_time_slice_lasts(const struct wr_time_slice *slice);

/* The rounds of one loop. All wr_round_ and wr_poll_ functions run on the loop's thread. */
struct wr_round {
    uv_prepare_t prepare;
    uv_idle_t goes_on; /* active while sockets are deferred: the loop polls without waiting */
    struct wr_time_slice slice;
    struct wr_list deferred; /* wr_polls that are ready and deferred, in order */
    uint32_t deferred_count;
    uv_close_cb on_closed;
};

/* Starts the rounds of a loop. Both handles are unreferenced, so they do not keep the loop running.
 * Cannot fail. */
void wr_round_open(struct wr_round *ret_round, uv_loop_t *loop);
/* Closes both handles. Sets their `data` and calls `on_closed` for each, WR_ROUND_HANDLES times. */
#define WR_ROUND_HANDLES 2
void wr_round_close(struct wr_round *round, uv_close_cb on_closed, void *data);

/* A polled socket. */
struct wr_poll {
    uv_poll_t uv; /* its owner sets `data` and references or unreferences it */
    struct wr_round *round;
    uv_poll_cb on_ready;
    struct wr_list_link link; /* in round->deferred while deferred */
    int wanted;               /* events to poll for */
    int ready, status;        /* events and error that are deferred */
    bool is_unpolled;         /* not polled, because too many sockets are deferred */
    bool is_urgent;           /* never deferred */
};

/* Initialises a poll like uv_poll_init, with the same errors. */
int wr_poll_init(struct wr_poll *ret_poll, struct wr_round *round, int fd, uv_poll_cb when_ready);
/* Sets the events to poll for; 0: none. After on_ready reports an error, libuv polls for none. */
void wr_poll_watch(struct wr_poll *poll, int events);
/* Reports `events` to on_ready in the next round, as if they happened then. */
void wr_poll_defer(struct wr_poll *poll, int events);
/* Removes a poll from its round and closes it like uv_close. */
void wr_poll_close(struct wr_poll *poll, uv_close_cb on_closed);

/* Returns true if the poll has deferred events that on_ready has not received yet. */
static inline bool wr_poll_is_deferred(const struct wr_poll *poll)
{
    return wr_list_is_linked(&poll->link);
}

#endif
