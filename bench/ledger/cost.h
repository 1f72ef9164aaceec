/* SPDX-License-Identifier: MIT */
/* cost.h - figures of bench/ledger.json: what is measured, and how often.
 *
 * Instructions are counted by valgrind, while cost_measured runs. They must be equal in each run: clocks are
 * simulated, and what the system would draw at random is the same sequence each time (drawn.c).
 */
#ifndef WR_BENCH_LEDGER_COST_H
#define WR_BENCH_LEDGER_COST_H

#include "limiter/clock/clock.h"

#include <stdint.h>
#include <weir/time.h>

struct cost_figure {
    const char *name;
    uint32_t rounds; /* that are counted, after as many that are not */
    void (*set_up)(void);
    void (*round)(uint32_t number); /* 0 … 2 * rounds - 1 */
    void (*tear_down)(void);
};

/* Each list ends with a figure without a name. */
extern const struct cost_figure cost_limits[], cost_paces[], cost_serves[], cost_pages[];

/* A clock that only the rounds move, by what they add to `now`. */
struct cost_clock {
    weir_clock clock;
    int64_t now;
};

extern struct cost_clock cost_clock;

/* Ends the program if `holds` is false. */
void cost_need(bool holds, const char *what);

/* 24 bytes of text: the key of a caller, or a host. */
#define COST_KEY_BYTES 24
void cost_key(uint64_t number, char ret_key[COST_KEY_BYTES + 1]);

#endif
