/* SPDX-License-Identifier: MIT */
/* plot.h - draws runs of several pacers against one scenario as self-contained SVG. */
#ifndef WR_CLI_SIMULATE_PLOT_H
#define WR_CLI_SIMULATE_PLOT_H

#include "cli/simulate/track.h"

/* Draws the plot. The caller checks the file for write errors. */
void wr_plot_write(FILE *file, const struct wr_scenario *scenario, const struct wr_track *tracks, size_t count);

#endif
