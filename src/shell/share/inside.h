/* SPDX-License-Identifier: MIT */
/* inside.h - what a wire is made of. */
#ifndef WR_SHELL_SHARE_INSIDE_H
#define WR_SHELL_SHARE_INSIDE_H

#include "base/list.h"
#include "base/rng.h"
#include "shell/share/wire.h"

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#define WR_DIGEST_DIGITS 40

/* What is read of an answer, and why it was refused. */
struct wr_strict {
    redisReplyObjectFunctions own, *usual;
    size_t elements, bytes; /* of the one that is being read */
    const char *why;        /* NULL: it was not */
};

struct wr_wire {
    const weir_allocator *allocator;
    redisAsyncContext *redis; /* NULL: not connected */
    uv_timer_t timer;
    struct wr_list waiting; /* asks, oldest first */
    struct wr_outage outage;
    struct wr_rng rng;
    int64_t timeout_ns;
    int port; /* -1: the address is a path */
    char address[108], user[256], password[256];
    char digests[WR_SCRIPT_COUNT][WR_DIGEST_DIGITS + 1];
    struct wr_wire_view view;
    struct wr_strict strict;
};

/* One command on its way. Told when it leaves the list; freed by its callback. */
struct wr_ask {
    struct wr_list_link link;
    struct wr_wire *wire;
    wr_wire_told *told;
    void *context;
    int64_t until;
    enum wr_script script;
    bool in_full;  /* the script itself was sent */
    bool is_probe; /* nobody waits for it: when its time is over it may still show whether the store is late or gone */
    bool is_late;
    int count;
    size_t key_bytes, arg_bytes[WR_WIRE_ARGS_MAX], text_bytes;
    char text[]; /* the key, then the arguments */
};

int wr_ask_write(struct wr_ask *ask, redisAsyncContext *redis);

/* WEIR_E_SYSTEM; the breaker knows. */
int wr_wire_connect(struct wr_wire *wire);

/* Ends the connection; all that is on it is told NULL. */
void wr_wire_let_go(struct wr_wire *wire);

/* strict.c: answers that nobody asked for, or that are too large, end the connection. */
void wr_strict_set(struct wr_wire *wire, redisAsyncContext *redis);

/* Whether what was read of an answer that is not whole is no more than one may have. */
bool wr_strict_has_end(const redisAsyncContext *redis);

/* Reads what is there. */
void wr_wire_read(struct wr_wire *wire);

/* It stands: from now on the time-out counts. */
void wr_wire_connected(struct wr_wire *wire);

/* The connection broke by itself. */
void wr_wire_broke(struct wr_wire *wire, const char *why);

/* hiredis is about to free it. If it is ours it broke; again is a no-op. */
void wr_wire_ended(const redisAsyncContext *redis, int status);

#endif
