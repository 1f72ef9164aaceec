/* SPDX-License-Identifier: MIT */
/* wire.h - scripts sent to a store (Redis, Valkey) from an event loop, each answered or missed in time.
 *
 *     struct wr_wire *wire;
 *     wr_wire_new(&options, loop, &wire);
 *     wr_wire_send(wire, WR_SCRIPT_SEAT, &call, on_told, context);
 *
 * Every send that succeeds is told once: the answer, or NULL if it did not come within the time-out, the connection
 * broke or the store could not. Then the breaker counts (core/share), and while it is open sends fail at once, but for
 * one probe now and then, which connects anew; its time-out is a second, so that a store that is late is not taken for
 * one that is gone. A store that does not know a script is sent it.
 *
 * Threads: none; each loop has a wire of its own.
 */
#ifndef WR_SHELL_SHARE_WIRE_H
#define WR_SHELL_SHARE_WIRE_H

#include "core/share/share.h"
#include "shell/share/script.h"

#include <uv.h>

#define WR_WIRE_ARGS_MAX (11 + 4 * WEIR_STACK_MAX)
#define WR_WIRE_TIMEOUT (4 * WEIR_MILLISECOND) /* default; the loop counts in ms, so that is 5 at most */
#define WR_WIRE_ASKS_MAX 65536                 /* on their way at once */

struct redisReply;
struct wr_wire;

/* Texts are copied. */
struct wr_wire_options {
    const char *path; /* of a Unix socket; else: */
    const char *host; /* an address */
    int port;
    const char *user, *password; /* NULL: none */
    int64_t timeout_ns;          /* 0: WR_WIRE_TIMEOUT */
    const weir_allocator *allocator;
};

/* What a script is called with. Any bytes. */
struct wr_call {
    const char *key;
    size_t key_bytes;
    int count;
    const char *args[WR_WIRE_ARGS_MAX];
    size_t arg_bytes[WR_WIRE_ARGS_MAX];
};

struct wr_wire_view {
    bool down, lost; /* as struct wr_outage has it */
    bool connected;
    uint32_t asks;                                       /* on their way */
    uint64_t sent, answered, timed_out, refused, broken; /* refused: the store could not */
    uint64_t connects, reloads, outages;
    char why[320]; /* the last trouble, for people: where, and what */
};

/* `reply` is good during the call, and not an error. */
typedef void wr_wire_told(void *context, const struct redisReply *reply);

/* Connects with the first send. WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_SYSTEM. */
int wr_wire_new(const struct wr_wire_options *options, uv_loop_t *loop, struct wr_wire **ret_wire);

/* WEIR_E_CLOSED: the store is down, and nothing was sent. WEIR_E_FULL, WEIR_E_NOMEM. `told` is never called from
 * within. */
int wr_wire_send(struct wr_wire *wire, enum wr_script script, const struct wr_call *call, wr_wire_told *told,
                 void *context);

bool wr_wire_is_down(const struct wr_wire *wire);
bool wr_wire_is_lost(const struct wr_wire *wire);
void wr_wire_view_get(const struct wr_wire *wire, struct wr_wire_view *ret_view);

/* Tells what is on its way NULL, and frees once the loop has run. NULL is fine. */
void wr_wire_free(struct wr_wire *wire);

#endif
