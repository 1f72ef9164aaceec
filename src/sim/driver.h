/* SPDX-License-Identifier: MIT */
/* driver.h - whom the simulator asks: a gate, as weir's users do, or a bare strategy.
 *
 * The comparison pacers are run bare, as published: they know no Retry-After, no breaker and no rate-limit fields.
 */
#ifndef WR_SIM_DRIVER_H
#define WR_SIM_DRIVER_H

#include "sim/origin.h"

struct wr_driver {
    const struct wr_sim_pacer *pacer;
    struct wr_gate *gate;    /* NULL: bare */
    void *state;             /* of the bare strategy; NULL: a gate */
    size_t bytes;            /* of either */
    uint32_t seq, in_flight; /* bare */
    char mode[sizeof((weir_pace_entry *)NULL)->mode];
    const weir_allocator *allocator;
};

/* The pacer must outlive the driver; `memory` may be NULL. WEIR_E_NOMEM. */
int wr_driver_init(struct wr_driver *ret_driver, const struct wr_sim_pacer *pacer, const weir_pace_memory *memory,
                   const weir_allocator *allocator);
void wr_driver_release(struct wr_driver *driver);

/* 0: may start now; else the wait in ns, or WEIR_UNTIL_RELEASE. */
int64_t wr_driver_ask(const struct wr_driver *driver, int64_t now);
struct wr_gate_start wr_driver_sent(struct wr_driver *driver, int64_t now);
void wr_driver_tell(struct wr_driver *driver, const struct wr_gate_start *start, const struct wr_reply *reply,
                    int64_t now, double unit);

/* For those who listen: starts per second, and a word that is good until the next look. */
void wr_driver_look(struct wr_driver *driver, int64_t now, struct wr_sim_event *event);

/* What a gate remembers; nothing, if it is bare. A run that gets this memory begins an hour later. */
void wr_driver_remember(const struct wr_driver *driver, int64_t now, weir_pace_memory *ret_memory);

#endif
