/* SPDX-License-Identifier: MIT */
/* rig.h - test fixture: a net on its own loop, a hostile server, and a resolver with invented
 * names. */
#ifndef WEIR_TEST_NET_RIG_H
#define WEIR_TEST_NET_RIG_H

#include "lib/rig.h"

#include "http/net/net.h"
#include "lib/alloc.h"
#include "lib/hostile.h"

#define GOT_BODY_MAX 65536
#define RIG_NAMES 16

/* A host name that the fixture's resolver finds; all other names are absent. */
struct rig_name {
    const char *name;
    const char *addresses[4]; /* result of the n-th lookup; later lookups repeat the last one */
};

struct net_fixture {
    test_allocator memory;
    uv_loop_t loop;
    struct wr_resolver *resolver;
    struct wr_net *net;
    struct hostile *server;
    struct rig_name names[RIG_NAMES];
    atomic_int lookups;
};

/* One transfer and what its callbacks reported. */
struct got {
    struct net_fixture *rig;
    struct wr_transfer *transfer;
    struct wr_net_result result;
    char words[256];
    bool is_done;
    int sends;
    int refuse_from; /* before_send returns false from this call on; 0: never */
    int64_t sent_at[8];
    int64_t pauses_ns; /* time that before_send sleeps after it has read the clock, ns */
    int lates;         /* number of on_late calls */
    int64_t late_at;
    int heads;
    bool wants_no_body;
    size_t stop_after; /* on_body returns false after this many bytes; 0: never */
    bool cancels_in_body;
    bool holds; /* on_body pauses the body at each call */
    int bodies; /* number of on_body calls */
    size_t body_bytes;
    char body[GOT_BODY_MAX + 1]; /* start of the body, at most GOT_BODY_MAX bytes */
    char fields[4096];           /* "Name: value\n" of each response field */
    char lines[4096];            /* raw lines of all response heads */
    struct got *then;            /* transfer that on_head starts; NULL: none */
    const char *then_url;
};

/* Returns options that allow private addresses. All time limits are a minute or more, so that a
 * stalled machine does not exceed them; a test of a limit shortens that limit. With
 * WEIR_TEST_LIBCURL in the environment, libcurl handles every request: each suite runs with and
 * without it. */
struct wr_net_options rig_options(void);

void rig_set_up(struct net_fixture *ret_rig, struct wr_net_options options);
void rig_tear_down(struct net_fixture *rig);

/* Starts a GET. Does not run the loop. */
void rig_start(struct net_fixture *rig, const char *url, struct got *ret_got);
int rig_try(struct net_fixture *rig, const char *url, const struct wr_net_request *request, struct got *got);

/* Runs the loop until no work is left. */
void rig_run(struct net_fixture *rig);

/* Runs one round of the loop without blocking: the event that a test waits for may come before the
 * loop would block. */
void rig_turn(struct net_fixture *rig);

/* Starts a GET and runs the loop until it is done. */
void rig_get(struct net_fixture *rig, const char *url, struct got *ret_got);

/* Returns "http://127.0.0.1:port/" in a static buffer that the next call overwrites. */
const char *rig_url(int port);
const char *rig_url_of(const char *scheme, const char *host, int port, const char *path);

/* Sends a GET to a new port, which follows these steps on each connection. Returns the port. */
int rig_get_steps(struct net_fixture *rig, const struct hostile_step *steps, struct got *ret_got);

/* Returns the growth of the peak resident memory since the last rig_memory_mark, bytes. */
void rig_memory_mark(void);
long rig_memory_grown(void);

#define MS WEIR_MILLISECOND
#define SLOW (SANITIZED ? 5 : 1) /* factor for time limits: sanitizers make the processor slower */

#endif
