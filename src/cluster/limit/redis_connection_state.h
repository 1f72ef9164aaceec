/* SPDX-License-Identifier: MIT */
/* redis_connection_state.h - internals of a connection to the store. */
#ifndef WR_CLUSTER_LIMIT_REDIS_CONNECTION_STATE_H
#define WR_CLUSTER_LIMIT_REDIS_CONNECTION_STATE_H

#include "base/list.h"
#include "base/rng.h"
#include "cluster/limit/redis_connection.h"

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#define WR_SCRIPT_DIGEST_DIGITS 40

/* Limits of the answer that is being read, and why one was refused. */
struct wr_redis_reply_limits {
    redisReplyObjectFunctions own, *usual;
    size_t elements, bytes; /* size of the answer so far */
    const char *why;        /* NULL: not refused */
};

struct wr_redis_connection {
    const weir_allocator *allocator;
    redisAsyncContext *redis; /* NULL: not connected */
    uv_timer_t timer;
    struct wr_list waiting; /* commands without an answer, oldest first */
    struct wr_outage outage;
    struct wr_rng rng;
    int64_t timeout_ns;
    int port; /* -1: the address is a path */
    char address[108], user[256], password[256];
    char digests[WR_SCRIPT_COUNT][WR_SCRIPT_DIGEST_DIGITS + 1];
    struct wr_redis_connection_view view;
    struct wr_redis_reply_limits strict;
};

/* A command in progress. It leaves the list when its result is reported; its callback frees it. */
struct wr_redis_command {
    struct wr_list_link link;
    struct wr_redis_connection *wire;
    wr_redis_on_reply *told;
    void *context;
    int64_t until;
    enum wr_redis_script script;
    bool in_full; /* the script was sent in full, not by digest */
    /* a probe of a store that is down; a second timeout tells a late store from a lost one */
    bool is_probe;
    bool is_late;
    int count;
    size_t key_bytes, arg_bytes[WR_REDIS_ARGS_MAX], text_bytes;
    char text[]; /* the key of the script, then its arguments */
};

int wr_redis_command_write(struct wr_redis_command *ask, redisAsyncContext *redis);

/* Connects. Returns WEIR_E_SYSTEM if that fails at once; the breaker counts it. */
int wr_redis_connection_open(struct wr_redis_connection *wire);

/* Closes the connection. All its commands are reported with NULL. */
void wr_redis_connection_close(struct wr_redis_connection *wire);

/* strict.c. Makes the connection fail on answers without a question, or of excessive size. */
void wr_redis_reply_limits_set(struct wr_redis_connection *wire, redisAsyncContext *redis);

/* Returns false if the unfinished answer is larger than an answer may be. */
bool wr_redis_reply_limits_hold(const redisAsyncContext *redis);

/* Reads the answers that have arrived. */
void wr_redis_connection_read(struct wr_redis_connection *wire);

/* Starts the timeouts of commands when the connection is established. */
void wr_redis_connection_opened(struct wr_redis_connection *wire);

/* Counts a failure of the connection. */
void wr_redis_connection_failed(struct wr_redis_connection *wire, const char *why);

/* Called before hiredis frees a connection. If it is the current one, it failed. No effect if
 * repeated. */
void wr_redis_connection_ended(const redisAsyncContext *redis, int status);

#endif
