/* SPDX-License-Identifier: MIT */
/* shared_gate.h - shares one gate per host among processes, which pass it on through a store
 * (Redis).
 *
 *     struct wr_shared_gate *relay;
 *     weir_pacer_new(&pace, &how, &pacer);
 *     wr_shared_gate_new(&options, pacer, &relay);  before the first call for a permit
 *     ...
 *     wr_shared_gate_free(relay);                   after the last permit has ended; then free the pacer
 *
 * Callers of the pacer wait until the host's gate is in this process (WEIR_REASON_SHARE). Outcomes
 * are sent to the process that has the gate. docs/internals/share.md explains it. Only the relay's
 * own thread talks to the store, and no other thread waits for it.
 */
#ifndef WR_CLUSTER_GATE_SHARED_GATE_H
#define WR_CLUSTER_GATE_SHARED_GATE_H

#include "cluster/limit/redis_connection.h"

#include <weir/pace.h>

struct wr_shared_gate;

/* All texts are copied. */
struct wr_shared_gate_options {
    struct wr_redis_connection_options wire; /* connection to the store; timeout 0: WR_SHARED_GATE_TIMEOUT */
    const char *prefix;                      /* prefix of keys in the store; NULL: "weir" */
    /* Called when the store becomes unreachable (`why`) or reachable (NULL), from the relay's
     * thread. May be NULL. */
    void (*notice)(void *context, const char *why);
    void *notice_context;
};

#define WR_SHARED_GATE_TIMEOUT (500 * WEIR_MILLISECOND)
#define WR_SHARED_GATE_PREFIX_MAX 100

struct wr_shared_gate_view {
    /* turns received, passed on, and lost because the store did not answer */
    uint64_t turns, passed, lost;
    struct wr_redis_connection_view wire;
};

/* Starts to share the pacer's gates. Fails with WEIR_E_INVAL, WEIR_E_NOMEM or WEIR_E_SYSTEM. */
int wr_shared_gate_new(const struct wr_shared_gate_options *options, weir_pacer *pacer,
                       struct wr_shared_gate **ret_relay);

void wr_shared_gate_view_get(struct wr_shared_gate *relay, struct wr_shared_gate_view *ret_view);

/* Passes on all gates that are here. Takes a round trip, or 1 s if the store does not answer. NULL
 * is allowed. */
void wr_shared_gate_free(struct wr_shared_gate *relay);

#endif
