/* SPDX-License-Identifier: MIT */
/* rig.h - a net on a loop of its own, a hostile server, and names that a test makes up. */
#ifndef WEIR_TEST_NET_RIG_H
#define WEIR_TEST_NET_RIG_H

#include "lib/rig.h"

#include "http/net/net.h"
#include "lib/alloc.h"
#include "lib/hostile.h"

#define GOT_BODY_MAX 65536
#define RIG_NAMES 16

/* A name that is known here; others are absent. */
struct rig_name {
    const char *name;
    const char *addresses[4]; /* those of the n-th lookup; the last stays */
};

struct rig {
    test_allocator memory;
    uv_loop_t loop;
    struct wr_resolver *resolver;
    struct wr_net *net;
    struct hostile *server;
    struct rig_name names[RIG_NAMES];
    atomic_int lookups;
};

/* One transfer, and what came of it. */
struct got {
    struct rig *rig;
    struct wr_transfer *transfer;
    struct wr_net_result result;
    char words[256];
    bool is_done;
    int sends;
    int refuse_from; /* before_send says no from this call on; 0: never */
    int64_t sent_at[8];
    int64_t pauses_ns; /* so long before_send takes, after it has looked at the clock */
    int lates;         /* calls of on_late */
    int64_t late_at;
    int heads;
    bool wants_no_body;
    size_t stop_after; /* on_body says no after so many bytes; 0: never */
    bool cancels_in_body;
    bool holds; /* the body, at each call of on_body */
    int bodies; /* calls of on_body */
    size_t body_bytes;
    char body[GOT_BODY_MAX + 1]; /* the first of it */
    char fields[4096];           /* "Name: value\n" */
    char lines[4096];            /* of the heads, as they came */
    struct got *then;            /* to be started from inside on_head */
    const char *then_url;
};

/* Private addresses are allowed. Time limits are a minute and more, which no stalled machine exceeds: a test of a limit
 * shortens that one. With WEIR_TEST_LIBCURL in the environment, nothing goes the http1 way: each suite runs both ways.
 */
struct wr_net_options rig_options(void);

void rig_set_up(struct rig *ret_rig, struct wr_net_options options);
void rig_tear_down(struct rig *rig);

/* Starts a GET; the loop is not run. */
void rig_start(struct rig *rig, const char *url, struct got *ret_got);
int rig_try(struct rig *rig, const char *url, const struct wr_net_request *request, struct got *got);

/* Runs the loop until nothing is under way. */
void rig_run(struct rig *rig);

/* A turn of the loop that does not wait for events: what a test waits for may have come before the loop would wait. */
void rig_turn(struct rig *rig);

/* Starts a GET, and runs the loop. */
void rig_get(struct rig *rig, const char *url, struct got *ret_got);

/* "http://127.0.0.1:port/" in a buffer that the next call overwrites. */
const char *rig_url(int port);
const char *rig_url_of(const char *scheme, const char *host, int port, const char *path);

/* A GET to a port that follows these steps on each connection. Returns the port. */
int rig_get_steps(struct rig *rig, const struct hostile_step *steps, struct got *ret_got);

/* Bytes of memory that the process has used at most since the last call of rig_memory_mark. */
void rig_memory_mark(void);
long rig_memory_grown(void);

#define MS WEIR_MILLISECOND
#define SLOW (SANITIZED ? 5 : 1) /* how much longer the processor takes */

#endif
