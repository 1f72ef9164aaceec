/* SPDX-License-Identifier: MIT */
/* view.h - full-screen view of a crawl: totals, the hosts with their waits and reasons, events, and
 * keys to control the crawl.
 *
 * While open it uses the whole terminal. Messages appear in it and are printed when it closes.
 */
#ifndef WR_CLI_VIEW_VIEW_H
#define WR_CLI_VIEW_VIEW_H

#include "crawl/engine/engine.h"

struct wr_view;

#define WR_VIEW_NO_HOSTS_LEFT "waits: other processes hold all hosts that are not done"

/* Opens the view. Returns NULL if there is no suitable terminal or no memory. */
struct wr_view *wr_view_open(struct wr_engine *engine);
/* Restores the terminal and prints the last messages. */
void wr_view_close(struct wr_view *view);

/* Totals of the crawl. */
struct wr_view_totals {
    const struct wr_engine_stats *stats;
    double rate;      /* recent rate in pages per second */
    const char *left; /* estimate of the remaining time, as text */
};

/* Handles keys, and redraws the screen if it is time to. Must be called from one thread. */
void wr_view_update(struct wr_view *view, const struct wr_view_totals *totals);

/* Returns how often the user asked to quit: once lets requests in flight finish, twice stops at
 * once. */
unsigned wr_view_quit_count(const struct wr_view *view);

/* Shows a message. Can be called from any thread. */
void wr_view_say(struct wr_view *view, const char *line);

#endif
