/* SPDX-License-Identifier: MIT */
/* relay.h - one gate for each host, for many processes: it goes from one to the next, through a store (Redis).
 *
 *     struct wr_relay *relay;
 *     weir_pacer_new(&pace, &how, &pacer);
 *     wr_relay_new(&options, pacer, &relay);      before anything is asked of the pacer
 *     …
 *     wr_relay_free(relay);                       after the last permit has ended, and before the pacer is freed
 *
 * Whoever asks the pacer then waits until the host's gate is here (WEIR_REASON_SHARE), and its answers go to where it
 * is. docs/internals/share.md says how and why. One thread, which alone talks to the store: nobody else waits for it.
 */
#ifndef WR_SHELL_RELAY_RELAY_H
#define WR_SHELL_RELAY_RELAY_H

#include "shell/share/wire.h"

#include <weir/pace.h>

struct wr_relay;

/* Texts are copied. */
struct wr_relay_options {
    struct wr_wire_options wire; /* a time-out of 0: WR_RELAY_TIMEOUT */
    const char *prefix;          /* of keys in the store; NULL: "weir" */
    /* The store cannot be reached (`why`), or can be again (NULL). From the relay's thread. NULL: nobody is told. */
    void (*notice)(void *context, const char *why);
    void *notice_context;
};

#define WR_RELAY_TIMEOUT (500 * WEIR_MILLISECOND)
#define WR_RELAY_PREFIX_MAX 100

struct wr_relay_view {
    uint64_t turns, passed, lost; /* turns that came; that were passed on; that ended because the store was not heard */
    struct wr_wire_view wire;
};

/* WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_SYSTEM. */
int wr_relay_new(const struct wr_relay_options *options, weir_pacer *pacer, struct wr_relay **ret_relay);

void wr_relay_look(struct wr_relay *relay, struct wr_relay_view *ret_view);

/* Passes on what is here, which takes a round trip, or a second if the store does not answer. NULL is fine. */
void wr_relay_free(struct wr_relay *relay);

#endif
