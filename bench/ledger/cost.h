/* SPDX-License-Identifier: MIT */
/* cost.h - the figures of bench/ledger.json and their numbers of rounds.
 *
 * Valgrind counts the instructions while cost_measured runs. The counts must be equal in each run:
 * clocks are simulated, and the system's random numbers are the same sequence each time (drawn.c).
 */
#ifndef WR_BENCH_LEDGER_COST_H
#define WR_BENCH_LEDGER_COST_H

#include "limiter/clock/clock.h"

#include <stdint.h>
#include <weir/time.h>

struct cost_figure {
    const char *name;
    uint32_t rounds; /* measured rounds; as many unmeasured rounds run before them */
    void (*set_up)(void);
    void (*round)(uint32_t number); /* 0 … 2 * rounds - 1 */
    void (*tear_down)(void);
};

/* Each list ends with an entry that has no name. */
extern const struct cost_figure cost_limits[], cost_paces[], cost_serves[], cost_pages[];

/* A simulated clock: only the rounds advance it, by adding to `now`. */
struct cost_clock {
    weir_clock clock;
    int64_t now;
};

extern struct cost_clock cost_clock;

/* Ends the program if `holds` is false. */
void cost_need(bool holds, const char *what);

/* Writes a text of 24 bytes: the key of a caller, or a host. */
#define COST_KEY_BYTES 24
void cost_key(uint64_t number, char ret_key[COST_KEY_BYTES + 1]);

#endif
