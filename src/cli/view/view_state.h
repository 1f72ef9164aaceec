/* SPDX-License-Identifier: MIT */
/* view_state.h - data shared by the parts of the full-screen view: view_data.c fetches data,
 * view_draw.c draws, view_keys.c handles keys. */
#ifndef WR_CLI_VIEW_VIEW_STATE_H
#define WR_CLI_VIEW_VIEW_STATE_H

#include <pthread.h>

#include "cli/view/terminal.h"
#include "cli/view/text_frame.h"
#include "cli/view/view.h"
#include "crawl/engine/crawl_inspect.h"

#define WR_VIEW_EVENTS 32
#define WR_VIEW_MESSAGES 8 /* number of messages that are kept */
#define WR_VIEW_LINE 256

enum wr_view_input {
    WR_VIEW_INPUT_NONE,
    WR_VIEW_INPUT_FILTER,
    WR_VIEW_INPUT_INTERVAL,
};

struct wr_view {
    struct wr_engine *engine;
    struct wr_terminal terminal;
    struct wr_text_frame frame;
    int64_t refreshed_at;
    /* Data that is shown on the screen. */
    enum wr_host_view_sort sort;
    bool is_reversed;
    char filter[64];
    size_t filter_bytes;
    struct wr_host_views *look; /* latest data of the hosts; NULL: the crawl is ending */
    size_t chosen, top;         /* indexes of hosts: the selected one, and the first one on the screen */
    /* Name of the selected host, by which the selection follows it; "": the first host. */
    char chosen_key[WEIR_PACE_KEY_MAX + 1];
    struct wr_engine_event events[WR_VIEW_EVENTS];
    size_t event_count, event_next;
    uint64_t event_number;
    /* Input from the keyboard. */
    enum wr_view_input asks;
    char answer[64];
    size_t answer_bytes;
    unsigned quits;
    char reply[WR_VIEW_LINE]; /* error of the last input; "": none */
    /* Messages of other threads; `lock` protects them. */
    pthread_mutex_t lock;
    char said[WR_VIEW_MESSAGES][WR_VIEW_LINE];
    size_t message_count;
};

/* Fetches new data. Not for each key, because it costs time on the engine's threads. */
void wr_view_refresh(struct wr_view *view);
/* Handles the keys that were typed. Returns true if the screen must be redrawn. */
bool wr_view_read_keys(struct wr_view *view);
/* Copies the last message; "" without one. */
void wr_view_last_message(struct wr_view *view, char ret_line[WR_VIEW_LINE]);

#endif
