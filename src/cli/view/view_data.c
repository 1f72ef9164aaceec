/* SPDX-License-Identifier: MIT */
/* view_data.c - opens and closes the full-screen view, stores its messages and fetches its data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kit/console.h"
#include "cli/view/view_state.h"

#define HOSTS_MOST 500 /* maximum number of hosts to scroll over; a filter finds the others */

/* ---- start and end ---- */

struct wr_view *wr_view_open(struct wr_engine *engine)
{
    struct wr_view *view = wr_terminal_fits() ? calloc(1, sizeof *view) : NULL;

    if (view == NULL)
        return NULL;
    view->engine = engine;
    view->frame.has_color = wr_terminal_has_color();
    view->frame.has_unicode = wr_terminal_has_unicode();
    if (!wr_terminal_open(&view->terminal)) {
        free(view);
        return NULL;
    }
    (void)pthread_mutex_init(&view->lock, NULL);
    return view;
}

void wr_view_close(struct wr_view *view)
{
    if (view == NULL)
        return;
    wr_terminal_close(&view->terminal);
    size_t kept = view->message_count < WR_VIEW_MESSAGES ? view->message_count : WR_VIEW_MESSAGES;
    for (size_t i = view->message_count - kept; i < view->message_count; i++)
        wr_complain("%s", view->said[i % WR_VIEW_MESSAGES]);
    wr_host_views_free(view->look);
    (void)pthread_mutex_destroy(&view->lock);
    free(view);
}

void wr_view_say(struct wr_view *view, const char *line)
{
    (void)pthread_mutex_lock(&view->lock);
    (void)snprintf(view->said[view->message_count++ % WR_VIEW_MESSAGES], WR_VIEW_LINE, "%s", line);
    (void)pthread_mutex_unlock(&view->lock);
}

void wr_view_last_message(struct wr_view *view, char ret_line[WR_VIEW_LINE])
{
    ret_line[0] = '\0';
    (void)pthread_mutex_lock(&view->lock);
    if (view->message_count > 0)
        memcpy(ret_line, view->said[(view->message_count - 1) % WR_VIEW_MESSAGES], WR_VIEW_LINE);
    (void)pthread_mutex_unlock(&view->lock);
}

unsigned wr_view_quit_count(const struct wr_view *view)
{
    return view->quits;
}

/* ---- data ---- */

static void take_events(struct wr_view *view)
{
    struct wr_engine_event fresh[WR_VIEW_EVENTS];
    size_t count;

    do {
        count = wr_engine_events(view->engine, view->event_number, fresh, WR_VIEW_EVENTS);
        for (size_t i = 0; i < count; i++)
            view->events[view->event_next++ % WR_VIEW_EVENTS] = fresh[i];
        view->event_number = count > 0 ? fresh[count - 1].number : view->event_number;
    } while (count == WR_VIEW_EVENTS);
    view->event_count = view->event_next < WR_VIEW_EVENTS ? view->event_next : WR_VIEW_EVENTS;
}

/* Moves the selection to the current row of the selected host. If the host is gone, selects the
 * host at its row. */
static void follow_chosen(struct wr_view *view)
{
    const struct wr_host_views *look = view->look;

    for (size_t i = 0; view->chosen_key[0] != '\0' && i < look->count; i++)
        if (strcmp(look->hosts[i].key, view->chosen_key) == 0) {
            view->chosen = i;
            return;
        }
    if (view->chosen_key[0] == '\0' || look->count == 0)
        view->chosen = 0;
    else if (view->chosen >= look->count)
        view->chosen = look->count - 1;
    if (view->chosen_key[0] != '\0' && look->count > 0 && view->asks != WR_VIEW_INPUT_INTERVAL)
        memcpy(view->chosen_key, look->hosts[view->chosen].key, sizeof view->chosen_key);
}

void wr_view_refresh(struct wr_view *view)
{
    struct wr_host_view_query query = {.sort = view->sort,
                                       .is_reversed = view->is_reversed,
                                       .filter = {view->filter, view->filter_bytes},
                                       .most = HOSTS_MOST};
    struct wr_host_views *look;

    take_events(view);
    if (wr_engine_inspect_hosts(view->engine, &query, &look) == 0) {
        wr_host_views_free(view->look);
        view->look = look;
        follow_chosen(view);
    }
}
