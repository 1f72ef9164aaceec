/* SPDX-License-Identifier: MIT */
/* relay.h - shares one gate per host among processes, which pass it on through a store (Redis).
 *
 *     struct wr_relay *relay;
 *     weir_pacer_new(&pace, &how, &pacer);
 *     wr_relay_new(&options, pacer, &relay);  before the first call for a permit
 *     ...
 *     wr_relay_free(relay);                   after the last permit has ended; then free the pacer
 *
 * Callers of the pacer wait until the host's gate is in this process (WEIR_REASON_SHARE). Outcomes
 * are sent to the process that has the gate. docs/internals/share.md explains it. Only the relay's
 * own thread talks to the store, and no other thread waits for it.
 */
#ifndef WR_SHELL_RELAY_RELAY_H
#define WR_SHELL_RELAY_RELAY_H

#include "shell/share/wire.h"

#include <weir/pace.h>

struct wr_relay;

/* All texts are copied. */
struct wr_relay_options {
    struct wr_wire_options wire; /* connection to the store; timeout 0: WR_RELAY_TIMEOUT */
    const char *prefix;          /* prefix of keys in the store; NULL: "weir" */
    /* Called when the store becomes unreachable (`why`) or reachable (NULL), from the relay's
     * thread. May be NULL. */
    void (*notice)(void *context, const char *why);
    void *notice_context;
};

#define WR_RELAY_TIMEOUT (500 * WEIR_MILLISECOND)
#define WR_RELAY_PREFIX_MAX 100

struct wr_relay_view {
    /* turns received, passed on, and lost because the store did not answer */
    uint64_t turns, passed, lost;
    struct wr_wire_view wire;
};

/* Starts to share the pacer's gates. Fails with WEIR_E_INVAL, WEIR_E_NOMEM or WEIR_E_SYSTEM. */
int wr_relay_new(const struct wr_relay_options *options, weir_pacer *pacer, struct wr_relay **ret_relay);

void wr_relay_look(struct wr_relay *relay, struct wr_relay_view *ret_view);

/* Passes on all gates that are here. Takes a round trip, or 1 s if the store does not answer. NULL
 * is allowed. */
void wr_relay_free(struct wr_relay *relay);

#endif
