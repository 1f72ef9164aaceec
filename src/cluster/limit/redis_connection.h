/* SPDX-License-Identifier: MIT */
/* redis_connection.h - sends scripts to a store (Redis, Valkey) from an event loop, with a timeout
 * for each answer.
 *
 *     struct wr_redis_connection *wire;
 *     wr_redis_connection_new(&options, loop, &wire);
 *     wr_redis_connection_send(wire, WR_SCRIPT_MEMBERSHIP, &call, on_told, context);
 *
 * Every successful send is reported once: with the answer, or with NULL if it did not come in time,
 * the connection failed, or the store returned an error. Then the breaker counts a miss
 * (core/cluster). While it is open, sends fail at once, except for a probe now and then, which
 * reconnects. A probe has a timeout of a second, so that a store that is late does not count as
 * lost. A script that the store does not know is sent in full.
 *
 * Threads: none; each loop has its own wire.
 */
#ifndef WR_CLUSTER_LIMIT_REDIS_CONNECTION_H
#define WR_CLUSTER_LIMIT_REDIS_CONNECTION_H

#include "cluster/limit/script.h"
#include "core/cluster/permit_lease.h"

#include <uv.h>

#define WR_REDIS_ARGS_MAX (11 + 4 * WEIR_STACK_MAX)
/* default timeout; the loop counts in ms, so 5 ms at most */
#define WR_REDIS_TIMEOUT (4 * WEIR_MILLISECOND)
#define WR_REDIS_COMMANDS_MAX 65536 /* most commands in progress */

struct redisReply;
struct wr_redis_connection;

/* All texts are copied. */
struct wr_redis_connection_options {
    const char *path; /* path of a Unix socket; NULL: `host` and `port` */
    const char *host; /* name or address */
    int port;
    const char *user, *password; /* credentials; NULL: none */
    int64_t timeout_ns;          /* timeout of an answer; 0: WR_REDIS_TIMEOUT */
    const weir_allocator *allocator;
};

/* The key and the arguments of a script; any bytes. */
struct wr_redis_call {
    const char *key;
    size_t key_bytes;
    int count;
    const char *args[WR_REDIS_ARGS_MAX];
    size_t arg_bytes[WR_REDIS_ARGS_MAX];
};

struct wr_redis_connection_view {
    bool down, lost; /* state of the breaker, see struct wr_outage */
    bool connected;
    uint32_t asks;                                       /* commands in progress */
    uint64_t sent, answered, timed_out, refused, broken; /* refused: answered with an error */
    uint64_t connects, reloads, outages;
    char why[320]; /* last failure for users: the address and the reason */
};

/* Reports the answer; NULL: none. `reply` is never an error, and valid during the call. */
typedef void wr_redis_on_reply(void *context, const struct redisReply *reply);

/* Makes a wire. It connects with the first send. Fails with WEIR_E_INVAL, WEIR_E_NOMEM or
 * WEIR_E_SYSTEM. */
int wr_redis_connection_new(const struct wr_redis_connection_options *options, uv_loop_t *loop,
                            struct wr_redis_connection **ret_wire);

/* Sends a script. Returns WEIR_E_CLOSED if the store is down, WEIR_E_FULL, or WEIR_E_NOMEM; then
 * nothing is sent. `told` is never called within this call. */
int wr_redis_connection_send(struct wr_redis_connection *wire, enum wr_redis_script script,
                             const struct wr_redis_call *call, wr_redis_on_reply *told, void *context);

bool wr_redis_connection_is_down(const struct wr_redis_connection *wire);
bool wr_redis_connection_is_lost(const struct wr_redis_connection *wire);
void wr_redis_connection_view_get(const struct wr_redis_connection *wire, struct wr_redis_connection_view *ret_view);

/* Reports all commands in progress with NULL; the memory is freed when the loop has run. NULL is
 * allowed. */
void wr_redis_connection_free(struct wr_redis_connection *wire);

#endif
