/* SPDX-License-Identifier: MIT */
/* state.h - what the parts of the view share: look.c looks, view.c draws, keys.c does what is typed. */
#ifndef WR_CLI_VIEW_STATE_H
#define WR_CLI_VIEW_STATE_H

#include <pthread.h>

#include "cli/view/frame.h"
#include "cli/view/terminal.h"
#include "cli/view/view.h"
#include "shell/engine/look.h"

#define WR_VIEW_EVENTS 32
#define WR_VIEW_SAID 8 /* lines that are kept */
#define WR_VIEW_LINE 256

enum wr_view_asks {
    WR_ASKS_NOTHING,
    WR_ASKS_FILTER,
    WR_ASKS_INTERVAL,
};

struct wr_view {
    struct wr_engine *engine;
    struct wr_terminal terminal;
    struct wr_frame frame;
    int64_t looked_at;
    /* What is looked at. */
    enum wr_look_sort sort;
    bool is_reversed;
    char filter[64];
    size_t filter_bytes;
    struct wr_look *look;                   /* NULL: the crawl is ending */
    size_t chosen, top;                     /* of the hosts: the one that keys are for, and the first that is shown */
    char chosen_key[WEIR_PACE_KEY_MAX + 1]; /* it is followed where it goes; "": the first */
    struct wr_engine_event events[WR_VIEW_EVENTS];
    size_t event_count, event_next;
    uint64_t event_number;
    /* What is typed. */
    enum wr_view_asks asks;
    char answer[64];
    size_t answer_bytes;
    unsigned quits;
    char reply[WR_VIEW_LINE]; /* what went wrong with it; "": nothing */
    /* What was said. */
    pthread_mutex_t lock;
    char said[WR_VIEW_SAID][WR_VIEW_LINE];
    size_t said_count;
};

/* Takes a new look: not for each key, for it costs the loops time. */
void wr_view_look(struct wr_view *view);
/* True: something is to be drawn anew. */
bool wr_view_read_keys(struct wr_view *view);
/* "": nothing was said. */
void wr_view_last_said(struct wr_view *view, char ret_line[WR_VIEW_LINE]);

#endif
