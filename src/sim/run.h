/* SPDX-License-Identifier: MIT */
/* run.h - Runs one pacer against one origin. */
#ifndef WR_SIM_RUN_H
#define WR_SIM_RUN_H

#include "sim/sim.h"

/* Runs run->pacer against `origin` in run->scenario until the backlog is done (0: unlimited) or the
 * duration is over. Stores the oracle's time, or NAN. Returns 0 or WEIR_E_NOMEM. */
int wr_sim_play(const struct wr_sim_run *run, const struct wr_origin *origin, uint32_t backlog,
                struct wr_score *ret_score, double *ret_ideal_s);

#endif
