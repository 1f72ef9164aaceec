/* SPDX-License-Identifier: MIT */
/* screen.h - standard error while a crawl runs: how far it is, and what goes wrong on the way.
 *
 * On a terminal a few lines that are drawn again in place, elsewhere a line every few seconds. What is said meanwhile
 * goes above them.
 */
#ifndef WR_CLI_CRAWL_SCREEN_H
#define WR_CLI_CRAWL_SCREEN_H

#include <pthread.h>

#include "shell/engine/engine.h"

#define WR_SCREEN_SAMPLES 16

enum wr_screen_kind {
    WR_SCREEN_NONE,
    WR_SCREEN_LINES,   /* now and then one more */
    WR_SCREEN_REDRAWN, /* in place */
};

/* How fast it goes lately. */
struct wr_screen_sample {
    int64_t at;
    uint64_t pages;
};

struct wr_screen {
    enum wr_screen_kind kind;
    pthread_mutex_t lock; /* of `drawn`, and of who writes */
    size_t drawn;         /* lines that are to be drawn over */
    /* Of who shows: */
    int64_t shown_at; /* when last, by the elapsed time */
    struct wr_screen_sample samples[WR_SCREEN_SAMPLES];
    size_t count; /* of samples ever taken */
};

/* `shares_output`: other lines go to standard output. */
void wr_screen_init(struct wr_screen *ret_screen, bool is_quiet, bool shares_output);
void wr_screen_release(struct wr_screen *screen);

/* A complaint, see wr_complain. Any thread. */
__attribute__((format(printf, 2, 3))) void wr_screen_say(struct wr_screen *screen, const char *format, ...);

/* Shows how far it is, if it is time to. One thread. */
void wr_screen_show(struct wr_screen *screen, const struct wr_engine_stats *stats);

/* Takes away what is drawn. */
void wr_screen_clear(struct wr_screen *screen);

#endif
