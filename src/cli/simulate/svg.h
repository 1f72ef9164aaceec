/* SPDX-License-Identifier: MIT */
/* svg.h - draws the common parts of all plots: light and dark style, texts and axes. */
#ifndef WR_CLI_SIMULATE_SVG_H
#define WR_CLI_SIMULATE_SVG_H

#include <stdio.h>

/* Sizes in pixels. */
#define WR_SVG_WIDTH 960
#define WR_SVG_LEFT 58
#define WR_SVG_RIGHT 18
#define WR_SVG_PLOT_WIDTH (WR_SVG_WIDTH - WR_SVG_LEFT - WR_SVG_RIGHT)

/* Begins a plot with its title. The caller ends it with "</svg>". */
void wr_svg_begin(FILE *file, double height, const char *title);

void wr_svg_text(FILE *file, const char *class, const char *anchor, double x, double y, const char *text);

/* Returns the position of a time in a plot of `duration_s` seconds. */
double wr_svg_x(double duration_s, double at_s);

/* Writes the times below an axis at `y`, in seconds, minutes or hours, whichever are short. */
void wr_svg_times(FILE *file, double duration_s, double y);

/* Draws the grid of a panel from `bottom` up by `height`, for 0 to `top` requests per second. */
void wr_svg_grid(FILE *file, double top, double bottom, double height);

/* Adds a tick to a path. It grows with the logarithm of `count` up to `height`: a tick for 1 is
 * half as long as one for 100. */
void wr_svg_tick(FILE *file, double x, double y, double height, double count);

#endif
