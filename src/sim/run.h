/* SPDX-License-Identifier: MIT */
/* run.h - one pacer against one origin. */
#ifndef WR_SIM_RUN_H
#define WR_SIM_RUN_H

#include "sim/sim.h"

/* Drives run->pacer against `origin`, with the rest as run->scenario says, until `backlog` (0: no end) is done or the
 * duration is over. `ret_ideal_s`: how long the oracle takes for the backlog; NAN without one. WEIR_E_NOMEM. */
int wr_play(const struct wr_sim_run *run, const struct wr_origin *origin, uint32_t backlog, struct wr_score *ret_score,
            double *ret_ideal_s);

#endif
