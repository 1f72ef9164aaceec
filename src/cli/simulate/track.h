/* SPDX-License-Identifier: MIT */
/* track.h - records the events of one run, as lines of a trace and as sums over time for a plot. */
#ifndef WR_CLI_SIMULATE_TRACK_H
#define WR_CLI_SIMULATE_TRACK_H

#include <stdio.h>

#include "sim/sim.h"

#define WR_TRACK_BINS 2400 /* number of bins of equal length, more than a plot has pixels */
#define WR_TRACK_MODES 16  /* maximum number of modes of a pacer; further ones count as the last */
#define WR_TRACK_MODE_BYTES 16

struct wr_track_bin {
    uint32_t sent, ok, rejected; /* rejected: 429, 403 and 503, including those of an outage */
    double limit;                /* limit per second at the end of the bin; NAN: no event */
    int mode;                    /* index into `modes`; -1: no event */
};

struct wr_track {
    const struct wr_sim_pacer *pacer;
    FILE *trace; /* output of the trace; NULL: no trace */
    double bin_s;
    struct wr_track_bin bins[WR_TRACK_BINS];
    char modes[WR_TRACK_MODES][WR_TRACK_MODE_BYTES];
    int mode_count;
    struct wr_score score;
};

void wr_track_init(struct wr_track *ret_track, const struct wr_sim_pacer *pacer, const struct wr_scenario *scenario,
                   FILE *trace);

wr_sim_listener wr_track_on_event; /* listener whose context is a struct wr_track */

#endif
