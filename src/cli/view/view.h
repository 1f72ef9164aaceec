/* SPDX-License-Identifier: MIT */
/* view.h - the live view of a crawl: totals, the hosts that hold things up and why, what happens, and keys to steer.
 *
 * It has the whole terminal while it is open; what is said meanwhile stands in it, and is said again when it closes.
 */
#ifndef WR_CLI_VIEW_VIEW_H
#define WR_CLI_VIEW_VIEW_H

#include "shell/engine/engine.h"

struct wr_view;

#define WR_VIEW_HAS_NONE "waits: other processes have all hosts that are not done"

/* NULL: there is no terminal to draw on, or no memory. */
struct wr_view *wr_view_open(struct wr_engine *engine);
/* Gives the terminal back, and says what was said. */
void wr_view_close(struct wr_view *view);

/* What the crawl does as a whole. */
struct wr_view_totals {
    const struct wr_engine_stats *stats;
    double rate;      /* pages a second, lately */
    const char *left; /* how long it will take, in words */
};

/* Reads keys and does what they ask for; draws, if it is time to. One thread. */
void wr_view_turn(struct wr_view *view, const struct wr_view_totals *totals);

/* How often the user asked to quit: once, to end what is in flight; twice, at once. */
unsigned wr_view_quits(const struct wr_view *view);

/* A line that the user should see. Any thread. */
void wr_view_say(struct wr_view *view, const char *line);

#endif
