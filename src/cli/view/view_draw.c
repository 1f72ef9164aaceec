/* SPDX-License-Identifier: MIT */
/* view_draw.c - draws the full-screen view of a crawl. */
#include "cli/view/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/kit/console.h"
#include "cli/kit/format.h"
#include "cli/view/view_hosts.h"
#include "cli/view/view_state.h"

#define LOOK_NS (500 * WEIR_MILLISECOND)
#define HEAD_ROWS 4    /* rows of the totals and of the table's head */
#define EVENTS_FROM 18 /* minimum rows of a terminal for events to be shown */

/* ---- totals ---- */

static void draw_totals(struct wr_view *view, const struct wr_view_totals *totals)
{
    const struct wr_engine_stats *stats = totals->stats;
    struct wr_text_frame *frame = &view->frame;
    char passed[32], bytes[32];

    wr_format_duration(stats->elapsed_ns, passed, sizeof passed);
    wr_format_bytes(stats->bytes, bytes, sizeof bytes);
    wr_text_frame_style(frame, 0, WR_STYLE_BOLD);
    wr_text_frame_put(frame, 0, "%" PRIu64 " pages  %.1f/s", stats->pages, totals->rate);
    wr_text_frame_style(frame, 0, WR_STYLE_PLAIN);
    wr_text_frame_put(frame, 0, "  %s, left %s  %" PRIu64 " queued  %" PRIu64 " in flight  %s", passed, totals->left,
                      stats->queued, stats->in_flight, bytes);
    wr_text_frame_put(frame, 1, "%" PRIu64 " rejected  %" PRIu64 " failed  ", stats->rejected, stats->failed);
    for (enum wr_host_state state = WR_HOST_ACTIVE; view->look != NULL && state <= WR_HOST_PAUSED; state++)
        wr_text_frame_put(frame, 1, "%" PRIu64 " %s  ", view->look->sums.states[state], wr_host_state_name(state));
    wr_text_frame_put(frame, 1, "of %" PRIu64 " hosts  %" PRIu64 " denied  %" PRIu64 " retries", stats->hosts,
                      stats->denied, stats->retries);
}

static void draw_note(struct wr_view *view, const struct wr_engine_stats *stats)
{
    struct wr_text_frame *frame = &view->frame;
    char line[WR_VIEW_LINE];

    wr_view_last_message(view, line);
    wr_text_frame_style(frame, 2, WR_STYLE_WAITING);
    if (stats->is_paused)
        wr_text_frame_put(frame, 2, "PAUSED: %s", stats->pause_why);
    else if (stats->is_draining)
        wr_text_frame_put(frame, 2, "finishing requests in flight; q again: stop at once");
    else
        wr_text_frame_put(frame, 2, "%s",
                          view->reply[0] != '\0' ? view->reply
                          : stats->has_no_hosts  ? WR_VIEW_NO_HOSTS_LEFT
                                                 : line);
    wr_text_frame_style(frame, 2, WR_STYLE_PLAIN);
}

/* ---- hosts ---- */

static void draw_hosts(struct wr_view *view, int rows)
{
    const struct wr_host_views *look = view->look;

    wr_view_draw_hosts_head(&view->frame, HEAD_ROWS - 1);
    for (int i = 0; i < rows && look != NULL && view->top + (size_t)i < look->count; i++)
        wr_view_draw_host(&view->frame, HEAD_ROWS + i, &look->hosts[view->top + (size_t)i],
                          view->top + (size_t)i == view->chosen);
    if (look != NULL && look->count == 0 && view->filter_bytes > 0)
        wr_text_frame_put(&view->frame, HEAD_ROWS, "  no host name contains \"%s\"", view->filter);
}

/* ---- events ---- */

static void describe_event(const struct wr_engine_event *event, char *ret_text, size_t room)
{
    char wait[32] = "";

    if (event->wait_ns > 0)
        wr_format_duration(event->wait_ns, wait, sizeof wait);
    switch (event->kind) {
    case WR_EVENT_REJECTED:
        (void)snprintf(ret_text, room, "answered %d", event->status);
        break;
    case WR_EVENT_RETRY_AFTER:
        (void)snprintf(ret_text, room, "asks for a pause of %s", wait);
        break;
    case WR_EVENT_BREAKER:
        (void)snprintf(ret_text, room, "%s %s",
                       event->breaker == WEIR_BREAKER_CLOSED ? "answers again" : "fails too often: paused for", wait);
        break;
    case WR_EVENT_HOPELESS:
        (void)snprintf(ret_text, room, "answers every request with status 429");
        break;
    case WR_EVENT_PACE:
        (void)snprintf(ret_text, room, "interval: %s", event->wait_ns > 0 ? wait : "as for all hosts");
        break;
    case WR_EVENT_PAUSED:
    case WR_EVENT_RESUMED:
    case WR_EVENT_FORGOTTEN:
        (void)snprintf(ret_text, room, "%s", wr_event_name(event->kind));
        break;
    }
}

static void draw_events(struct wr_view *view, int from, int rows)
{
    struct wr_text_frame *frame = &view->frame;
    char text[96];

    for (int i = 0; i < rows && (size_t)i < view->event_count; i++) {
        const struct wr_engine_event *event = &view->events[(view->event_next - 1 - (size_t)i) % WR_VIEW_EVENTS];
        time_t seconds = (time_t)(event->wall_at / WEIR_SECOND);
        struct tm local;
        describe_event(event, text, sizeof text);
        if (localtime_r(&seconds, &local) == NULL)
            continue;
        wr_text_frame_style(frame, from + i, WR_STYLE_FAINT);
        wr_text_frame_put(frame, from + i, "%02d:%02d:%02d %s %s", local.tm_hour, local.tm_min, local.tm_sec,
                          event->key, text);
        wr_text_frame_style(frame, from + i, WR_STYLE_PLAIN);
    }
}

/* ---- last line ---- */

static void draw_keys(struct wr_view *view, int row)
{
    struct wr_text_frame *frame = &view->frame;

    wr_text_frame_style(frame, row, WR_STYLE_BOLD);
    if (view->asks == WR_VIEW_INPUT_FILTER)
        wr_text_frame_put(frame, row, "filter: %s_", view->answer);
    else if (view->asks == WR_VIEW_INPUT_INTERVAL)
        wr_text_frame_put(frame, row, "time between requests to %s (500ms, 2s; 0: as for all hosts): %s_",
                          view->chosen_key, view->answer);
    else if (frame->width < 70)
        wr_text_frame_put(frame, row, "s:%s r / p i f q  (arrows)", wr_host_view_sort_name(view->sort));
    else
        wr_text_frame_put(frame, row, "s sort: %s%s  r reverse  / filter%s%s  p pause  i interval  f forget  q quit",
                          wr_host_view_sort_name(view->sort), view->is_reversed ? " reversed" : "",
                          view->filter_bytes > 0 ? ": " : "", view->filter);
    wr_text_frame_style(frame, row, WR_STYLE_PLAIN);
}

/* ---- screen ---- */

/* Scrolls so that the selected host is on the screen. */
static void scroll_to_selection(struct wr_view *view, size_t rows)
{
    if (view->chosen < view->top)
        view->top = view->chosen;
    if (view->chosen >= view->top + rows)
        view->top = view->chosen - rows + 1;
}

static void draw_view(struct wr_view *view, const struct wr_view_totals *totals)
{
    int width, height;

    wr_terminal_size(&width, &height);
    wr_text_frame_begin(&view->frame, width, height);
    height = view->frame.height;
    int events = height >= EVENTS_FROM ? height / 6 : 0;
    int rows = height - HEAD_ROWS - 1 - events;
    scroll_to_selection(view, rows > 0 ? (size_t)rows : 1);
    draw_totals(view, totals);
    draw_note(view, totals->stats);
    draw_hosts(view, rows);
    draw_events(view, height - 1 - events, events);
    draw_keys(view, height - 1);
    wr_text_frame_write(&view->frame, STDERR_FILENO);
}

void wr_view_update(struct wr_view *view, const struct wr_view_totals *totals)
{
    bool is_typed = wr_view_read_keys(view);
    bool is_due = view->look == NULL || totals->stats->elapsed_ns - view->refreshed_at >= LOOK_NS;

    if (is_due) {
        view->refreshed_at = totals->stats->elapsed_ns;
        wr_view_refresh(view);
    }
    if (is_typed || is_due)
        draw_view(view, totals);
}
