/* SPDX-License-Identifier: MIT */
/* screen.h - standard error while a crawl runs: how far it is, and what goes wrong on the way.
 *
 * On a terminal a few lines that are drawn again in place, or all of it (--view full); elsewhere a line every few
 * seconds. What is said meanwhile goes above them.
 */
#ifndef WR_CLI_CRAWL_SCREEN_H
#define WR_CLI_CRAWL_SCREEN_H

#include <pthread.h>

#include "cli/view/view.h"

#define WR_SCREEN_SAMPLES 16

enum wr_screen_kind {
    WR_SCREEN_NONE,
    WR_SCREEN_LINES,   /* now and then one more */
    WR_SCREEN_REDRAWN, /* in place */
    WR_SCREEN_VIEW,    /* the whole terminal, see view.h */
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
    struct wr_view *view; /* while it is open */
    /* Of who shows: */
    int64_t shown_at; /* when last, by the elapsed time */
    int64_t last_at;  /* the slowest host is not done before */
    struct wr_screen_sample samples[WR_SCREEN_SAMPLES];
    size_t count; /* of samples ever taken */
};

/* What the user may ask for; the first: whatever suits. */
extern const char *const wr_screen_views[];

/* `view` is an index into wr_screen_views. `shares_output`: other lines go to standard output. */
void wr_screen_init(struct wr_screen *ret_screen, int view, bool is_quiet, bool shares_output);
/* The crawl runs: from here on it can be looked at. */
void wr_screen_begin(struct wr_screen *screen, struct wr_engine *engine);
void wr_screen_release(struct wr_screen *screen);

/* A complaint, see wr_complain. Any thread. */
__attribute__((format(printf, 2, 3))) void wr_screen_say(struct wr_screen *screen, const char *format, ...);

/* Shows how far it is, if it is time to. `last_at`, as elapsed time: some host has something to do until then, at its
 * own pace. One thread. */
void wr_screen_show(struct wr_screen *screen, const struct wr_engine_stats *stats, int64_t last_at);

/* How often the user asked to quit, by keys. */
unsigned wr_screen_quits(const struct wr_screen *screen);

/* Takes away what is drawn; the crawl must not have been freed. */
void wr_screen_clear(struct wr_screen *screen);

#endif
