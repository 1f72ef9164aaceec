/* SPDX-License-Identifier: MIT */
/* view_hosts.c - draws the table of hosts in the full-screen view. */
#include "cli/view/view_hosts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/kit/format.h"

#define NAME_MIN 16 /* minimum columns of a host name */
#define NAME_MAX 60

enum view_column {
    WHY,
    PACE,
    LIMIT,
    HISTORY,
    QUEUED,
    FLIGHT,
    REJECTED,
    GOOD,
    COLUMNS
};

/* Columns in display order. A narrow terminal shows only those whose `from` it reaches. */
static const struct view_column_rule {
    const char *head;
    int width, from; /* width of the column, and the terminal width from which it is shown */
} rules[COLUMNS] = {
    [WHY] = {"WAITS FOR", 22, 0},   [PACE] = {"PACE", 8, 48},      [LIMIT] = {"LIMIT", 8, 66},
    [HISTORY] = {"MINUTE", 13, 78}, [QUEUED] = {"QUEUED", 8, 100}, [FLIGHT] = {"FLYING", 7, 108},
    [REJECTED] = {"429", 6, 60},    [GOOD] = {"OK", 8, 116},
};

static bool frame_has_column(const struct wr_text_frame *frame, enum view_column column)
{
    return frame->width >= rules[column].from;
}

static int name_width(const struct wr_text_frame *frame)
{
    int left = frame->width - 2;

    for (enum view_column column = WHY; column < COLUMNS; column++)
        left -= frame_has_column(frame, column) ? rules[column].width : 0;
    return left < NAME_MIN ? NAME_MIN : left > NAME_MAX ? NAME_MAX : left;
}

/* Formats the reason and the wait of a host, such as "retry_after 1m 12s". */
static void format_host_wait(const struct wr_host_view *host, char *ret_text, size_t room)
{
    const weir_decision *why = &host->why;
    char wait[32] = "";

    if (host->state == WR_HOST_IDLE) {
        (void)snprintf(ret_text, room, "-");
        return;
    }
    if (why->wait_ns > 0 && why->wait_ns != WEIR_UNTIL_RELEASE)
        wr_format_duration(why->wait_ns, wait, sizeof wait);
    (void)snprintf(ret_text, room, "%s %s", why->reason == WEIR_REASON_NONE ? "-" : weir_reason_name(why->reason),
                   wait);
}

static enum wr_text_style host_style(const struct wr_host_view *host)
{
    if (host->breaker != WEIR_BREAKER_CLOSED)
        return WR_STYLE_BAD;
    if (host->state == WR_HOST_HELD || host->state == WR_HOST_PAUSED)
        return WR_STYLE_WAITING;
    return host->state == WR_HOST_IDLE ? WR_STYLE_FAINT : WR_STYLE_PLAIN;
}

/* Draws the starts of the last minute as bars, scaled to the largest. */
static void draw_history(struct wr_text_frame *frame, int row, const struct wr_host_view *host)
{
    unsigned most = 1;

    for (size_t i = 0; i < WR_PLAN_SLICES; i++)
        most = host->starts[i] > most ? host->starts[i] : most;
    for (size_t i = 0; i < WR_PLAN_SLICES; i++)
        wr_text_frame_bar(frame, row, (host->starts[i] * WR_TEXT_FRAME_LEVELS + most - 1) / most);
}

static void format_cell(const struct wr_host_view *host, enum view_column column, char *ret_text, size_t room)
{
    ret_text[0] = '\0';
    switch (column) {
    case WHY:
        format_host_wait(host, ret_text, room);
        break;
    case PACE:
        wr_format_rate(host->rate, ret_text, room);
        break;
    case LIMIT:
        wr_format_rate(host->allowed_rate, ret_text, room);
        break;
    case QUEUED:
        (void)snprintf(ret_text, room, "%" PRIu64, host->queued);
        break;
    case FLIGHT:
        (void)snprintf(ret_text, room, "%" PRIu32, host->in_flight);
        break;
    case REJECTED:
        (void)snprintf(ret_text, room, "%" PRIu64, host->rejected);
        break;
    case GOOD:
        (void)snprintf(ret_text, room, "%" PRIu64, host->ok);
        break;
    case HISTORY:
    case COLUMNS:
        break;
    }
}

/* Draws a cell with a blank after it; numbers are aligned right. */
static void draw_cell(struct wr_text_frame *frame, int row, enum view_column column, const char *text)
{
    bool is_text = column == WHY || column == HISTORY;
    int width = rules[column].width - 1;

    if (is_text)
        wr_text_frame_put(frame, row, "%-*.*s ", width, width, text);
    else
        wr_text_frame_put(frame, row, "%*.*s ", width, width, text);
}

void wr_view_draw_hosts_head(struct wr_text_frame *frame, int row)
{
    int width = name_width(frame);

    wr_text_frame_style(frame, row, WR_STYLE_BOLD);
    wr_text_frame_put(frame, row, "  %-*.*s ", width - 1, width - 1, "HOST");
    for (enum view_column column = WHY; column < COLUMNS; column++)
        if (frame_has_column(frame, column))
            draw_cell(frame, row, column, rules[column].head);
    wr_text_frame_style(frame, row, WR_STYLE_PLAIN);
}

void wr_view_draw_host(struct wr_text_frame *frame, int row, const struct wr_host_view *host, bool is_chosen)
{
    int width = name_width(frame);
    char text[64];

    wr_text_frame_style(frame, row, is_chosen ? WR_STYLE_CHOSEN : host_style(host));
    wr_text_frame_put(frame, row, "%c %-*.*s ", is_chosen ? '>' : ' ', width - 1, width - 1, host->key);
    for (enum view_column column = WHY; column < COLUMNS; column++) {
        if (!frame_has_column(frame, column))
            continue;
        if (column == HISTORY) {
            draw_history(frame, row, host);
            wr_text_frame_put(frame, row, " ");
            continue;
        }
        format_cell(host, column, text, sizeof text);
        draw_cell(frame, row, column, text);
    }
    if (is_chosen)
        wr_text_frame_pad(frame, row, frame->width);
    wr_text_frame_style(frame, row, WR_STYLE_PLAIN);
}
