/* SPDX-License-Identifier: MIT */
/* plot.h - runs of several pacers against one scenario, drawn as SVG that needs nothing else. */
#ifndef WR_CLI_SIMULATE_PLOT_H
#define WR_CLI_SIMULATE_PLOT_H

#include "cli/simulate/track.h"

/* Whether it could be written is the file's to say. */
void wr_plot_write(FILE *file, const struct wr_scenario *scenario, const struct wr_track *tracks, size_t count);

#endif
