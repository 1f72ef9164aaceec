/* SPDX-License-Identifier: MIT */
/* inside.h - internals of a connection to the store. */
#ifndef WR_SHELL_SHARE_INSIDE_H
#define WR_SHELL_SHARE_INSIDE_H

#include "base/list.h"
#include "base/rng.h"
#include "shell/share/wire.h"

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#define WR_DIGEST_DIGITS 40

/* Limits of the answer that is being read, and why one was refused. */
struct wr_strict {
    redisReplyObjectFunctions own, *usual;
    size_t elements, bytes; /* size of the answer so far */
    const char *why;        /* NULL: not refused */
};

struct wr_wire {
    const weir_allocator *allocator;
    redisAsyncContext *redis; /* NULL: not connected */
    uv_timer_t timer;
    struct wr_list waiting; /* commands without an answer, oldest first */
    struct wr_outage outage;
    struct wr_rng rng;
    int64_t timeout_ns;
    int port; /* -1: the address is a path */
    char address[108], user[256], password[256];
    char digests[WR_SCRIPT_COUNT][WR_DIGEST_DIGITS + 1];
    struct wr_wire_view view;
    struct wr_strict strict;
};

/* A command in progress. It leaves the list when its result is reported; its callback frees it. */
struct wr_ask {
    struct wr_list_link link;
    struct wr_wire *wire;
    wr_wire_told *told;
    void *context;
    int64_t until;
    enum wr_script script;
    bool in_full; /* the script was sent in full, not by digest */
    /* a probe of a store that is down; a second timeout tells a late store from a lost one */
    bool is_probe;
    bool is_late;
    int count;
    size_t key_bytes, arg_bytes[WR_WIRE_ARGS_MAX], text_bytes;
    char text[]; /* the key of the script, then its arguments */
};

int wr_ask_write(struct wr_ask *ask, redisAsyncContext *redis);

/* Connects. Returns WEIR_E_SYSTEM if that fails at once; the breaker counts it. */
int wr_wire_connect(struct wr_wire *wire);

/* Closes the connection. All its commands are reported with NULL. */
void wr_wire_let_go(struct wr_wire *wire);

/* strict.c. Makes the connection fail on answers without a question, or of excessive size. */
void wr_strict_set(struct wr_wire *wire, redisAsyncContext *redis);

/* Returns false if the unfinished answer is larger than an answer may be. */
bool wr_strict_has_end(const redisAsyncContext *redis);

/* Reads the answers that have arrived. */
void wr_wire_read(struct wr_wire *wire);

/* Starts the timeouts of commands when the connection is established. */
void wr_wire_connected(struct wr_wire *wire);

/* Counts a failure of the connection. */
void wr_wire_broke(struct wr_wire *wire, const char *why);

/* Called before hiredis frees a connection. If it is the current one, it failed. No effect if
 * repeated. */
void wr_wire_ended(const redisAsyncContext *redis, int status);

#endif
