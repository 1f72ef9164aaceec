/* SPDX-License-Identifier: MIT */
/* svg.h - what all pictures share: their looks, by day and by night, texts and a scale of time. */
#ifndef WR_CLI_SIMULATE_SVG_H
#define WR_CLI_SIMULATE_SVG_H

#include <stdio.h>

/* All in pixels. */
#define WR_SVG_WIDTH 960
#define WR_SVG_LEFT 58
#define WR_SVG_RIGHT 18
#define WR_SVG_PLOT_WIDTH (WR_SVG_WIDTH - WR_SVG_LEFT - WR_SVG_RIGHT)

/* Begins a picture, with its title; end it with "</svg>". */
void wr_svg_begin(FILE *file, double height, const char *title);

void wr_svg_text(FILE *file, const char *class, const char *anchor, double x, double y, const char *text);

/* Where this instant is, of a picture that shows so many seconds. */
double wr_svg_x(double duration_s, double at_s);

/* The numbers of seconds, minutes or hours below an axis at `y`, whichever are short. */
void wr_svg_times(FILE *file, double duration_s, double y);

/* The lines of a panel from `bottom` up by `height`, for requests a second from 0 to `top`. */
void wr_svg_grid(FILE *file, double top, double bottom, double height);

/* A tick of a rug below the axis, of at most `height`, the longer the more it stands for: one is half as long as a
 * hundred. Within a path. */
void wr_svg_tick(FILE *file, double x, double y, double height, double count);

#endif
