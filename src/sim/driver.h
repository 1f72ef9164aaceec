/* SPDX-License-Identifier: MIT */
/* driver.h - The pacer of a simulation: a gate, as weir's users have it, or a bare strategy.
 *
 * The comparison pacers run bare, as published: no Retry-After, breaker, rate-limit fields.
 */
#ifndef WR_SIM_DRIVER_H
#define WR_SIM_DRIVER_H

#include "sim/origin.h"

struct wr_driver {
    const struct wr_sim_pacer *pacer;
    struct wr_gate *gate;    /* NULL for a bare strategy */
    void *state;             /* state of the bare strategy; NULL for a gate */
    size_t bytes;            /* size of the gate or of the state */
    uint32_t seq, in_flight; /* counters of a bare strategy */
    char mode[sizeof((weir_pace_entry *)NULL)->mode];
    const weir_allocator *allocator;
};

/* Creates a driver. The pacer must outlive it; `memory` may be NULL. Returns 0 or WEIR_E_NOMEM. */
int wr_driver_init(struct wr_driver *ret_driver, const struct wr_sim_pacer *pacer, const weir_pace_memory *memory,
                   const weir_allocator *allocator);
void wr_driver_release(struct wr_driver *driver);

/* Returns 0 if a request may start now, otherwise the wait in ns or WEIR_UNTIL_RELEASE. */
int64_t wr_driver_ask(const struct wr_driver *driver, int64_t now);
struct wr_gate_start wr_driver_sent(struct wr_driver *driver, int64_t now);
void wr_driver_tell(struct wr_driver *driver, const struct wr_gate_start *start, const struct wr_sim_reply *reply,
                    int64_t now, double unit);

/* Fills in the rate and the mode for a listener. The mode is valid until the next call. */
void wr_driver_inspect(struct wr_driver *driver, int64_t now, struct wr_sim_event *event);

/* Fills in the memory of a gate; a bare strategy has none. The next run begins an hour later. */
void wr_driver_remember(const struct wr_driver *driver, int64_t now, weir_pace_memory *ret_memory);

#endif
