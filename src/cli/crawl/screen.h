/* SPDX-License-Identifier: MIT */
/* screen.h - shows progress and messages on standard error while a crawl runs.
 *
 * On a terminal it redraws a few lines in place, or the whole screen (--view full). Otherwise it
 * writes a line every few seconds. Messages appear above the redrawn lines.
 */
#ifndef WR_CLI_CRAWL_SCREEN_H
#define WR_CLI_CRAWL_SCREEN_H

#include <pthread.h>

#include "cli/view/view.h"

#define WR_SCREEN_SAMPLES 16

enum wr_screen_kind {
    WR_SCREEN_NONE,
    WR_SCREEN_LINES,   /* adds one more line every few seconds */
    WR_SCREEN_REDRAWN, /* redraws a few lines in place */
    WR_SCREEN_VIEW,    /* draws the full screen, see view.h */
};

/* One sample of the progress, to compute the recent rate. */
struct wr_screen_sample {
    int64_t at;
    uint64_t pages;
};

struct wr_screen {
    enum wr_screen_kind kind;
    pthread_mutex_t lock; /* protects `drawn` and writing to standard error */
    size_t drawn;         /* number of lines to erase before the next write */
    struct wr_view *view; /* full-screen view while it is open */
    /* The fields below belong to the thread that calls wr_screen_show. */
    int64_t shown_at; /* elapsed time at the last redraw, ns */
    int64_t last_at;  /* elapsed time before which the slowest host cannot finish, ns */
    struct wr_screen_sample samples[WR_SCREEN_SAMPLES];
    size_t count; /* number of samples ever taken */
};

/* Choices of --view; the first one selects a suitable kind. Ends with NULL. */
extern const char *const wr_screen_views[];

/* Chooses the kind of screen. `view` is an index into wr_screen_views. `shares_output` means that
 * the crawl's lines go to standard output. */
void wr_screen_init(struct wr_screen *ret_screen, int view, bool is_quiet, bool shares_output);
/* Opens the full-screen view, if one was chosen. The engine is running. */
void wr_screen_begin(struct wr_screen *screen, struct wr_engine *engine);
void wr_screen_release(struct wr_screen *screen);

/* Prints a message above the progress, as wr_complain does. Can be called from any thread. */
__attribute__((format(printf, 2, 3))) void wr_screen_say(struct wr_screen *screen, const char *format, ...);

/* Shows the progress if it is time to. `last_at` is the elapsed time (ns) until which some host has
 * work at its own pace. Must be called from one thread. */
void wr_screen_show(struct wr_screen *screen, const struct wr_engine_stats *stats, int64_t last_at);

/* Returns how often the user pressed a key to quit. */
unsigned wr_screen_quit_count(const struct wr_screen *screen);

/* Erases the progress and closes the view. Must be called before the engine is freed. */
void wr_screen_clear(struct wr_screen *screen);

#endif
