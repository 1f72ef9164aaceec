/* SPDX-License-Identifier: MIT */
/* view_keys.c - handles the keys of the full-screen view. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/view/view_state.h"

#define PAGE 10

static void move_selection(struct wr_view *view, ptrdiff_t by)
{
    ptrdiff_t count = view->look == NULL ? 0 : (ptrdiff_t)view->look->count;
    ptrdiff_t to = (ptrdiff_t)view->chosen + by;

    if (count == 0)
        return;
    view->chosen = (size_t)(to < 0 ? 0 : to >= count ? count - 1 : to);
    memcpy(view->chosen_key, view->look->hosts[view->chosen].key, sizeof view->chosen_key);
}

/* Returns the selected host; NULL if there are no hosts. */
static struct wr_host_view *selected_host(struct wr_view *view)
{
    move_selection(view, 0);
    return view->look == NULL || view->look->count == 0 ? NULL : &view->look->hosts[view->chosen];
}

/* Shows a message until the next key. */
static void set_reply(struct wr_view *view, const char *line)
{
    (void)snprintf(view->reply, sizeof view->reply, "%s", line);
}

static void reply_error(struct wr_view *view, int error)
{
    if (error != 0)
        set_reply(view, error == WEIR_E_ABSENT   ? "this host has no more URLs"
                        : error == WEIR_E_CLOSED ? "the crawl is ending"
                                                 : wr_error_message(error));
}

static void begin_input(struct wr_view *view, enum wr_view_input what)
{
    view->asks = what;
    view->answer_bytes = 0;
    view->answer[0] = '\0';
}

static void set_interval(struct wr_view *view)
{
    int64_t interval_ns = 0;
    bool is_none = strcmp(view->answer, "0") == 0;

    if (!is_none && wr_parse_duration(view->answer, view->answer_bytes, &interval_ns) != 0)
        set_reply(view, "not a duration; use 500ms, 2s or 1m; 0 removes the setting");
    else
        reply_error(view, wr_engine_set_pace(view->engine, wr_span_of(view->chosen_key), interval_ns));
}

static void set_filter(struct wr_view *view)
{
    memcpy(view->filter, view->answer, sizeof view->filter);
    view->filter_bytes = view->answer_bytes;
    view->chosen_key[0] = '\0';
    view->top = 0;
}

static void apply_input_key(struct wr_view *view, int key)
{
    enum wr_view_input asked = view->asks;

    if (key == WR_KEY_ERASE && view->answer_bytes > 0)
        view->answer[--view->answer_bytes] = '\0';
    else if (key >= ' ' && key < 127 && view->answer_bytes + 1 < sizeof view->answer) {
        view->answer[view->answer_bytes++] = (char)key;
        view->answer[view->answer_bytes] = '\0';
    }
    if (key != WR_KEY_ENTER && key != WR_KEY_ESCAPE)
        return;
    view->asks = WR_VIEW_INPUT_NONE;
    if (key == WR_KEY_ENTER && asked == WR_VIEW_INPUT_INTERVAL)
        set_interval(view);
    if (asked == WR_VIEW_INPUT_FILTER) {
        if (key == WR_KEY_ESCAPE)
            begin_input(view, WR_VIEW_INPUT_NONE);
        set_filter(view);
    }
}

static void apply_control_key(struct wr_view *view, int key)
{
    struct wr_host_view *host = selected_host(view);

    if (host == NULL)
        return;
    if (key == 'p') {
        int error = wr_engine_pause(view->engine, wr_span_of(host->key), !host->is_paused);
        host->is_paused ^= error == 0; /* valid until the next data arrives */
        reply_error(view, error);
    } else if (key == 'f')
        reply_error(view, wr_engine_forget(view->engine, wr_span_of(host->key)));
    else
        begin_input(view, WR_VIEW_INPUT_INTERVAL);
}

static void apply_move_key(struct wr_view *view, int key)
{
    if (key == WR_KEY_UP || key == 'k')
        move_selection(view, -1);
    else if (key == WR_KEY_DOWN || key == 'j')
        move_selection(view, 1);
    else if (key == WR_KEY_PAGE_UP || key == WR_KEY_PAGE_DOWN)
        move_selection(view, key == WR_KEY_PAGE_UP ? -PAGE : PAGE);
}

static void apply_command_key(struct wr_view *view, int key)
{
    switch (key) {
    case 's':
        view->sort = view->sort == WR_SORT_NAME ? WR_SORT_WAIT : view->sort + 1;
        view->chosen_key[0] = '\0';
        break;
    case 'r':
        view->is_reversed = !view->is_reversed;
        view->chosen_key[0] = '\0';
        break;
    case '/':
        begin_input(view, WR_VIEW_INPUT_FILTER);
        break;
    case 'p':
    case 'f':
    case 'i':
        apply_control_key(view, key);
        break;
    case 'q':
        view->quits++;
        break;
    default:
        apply_move_key(view, key);
    }
}

bool wr_view_read_keys(struct wr_view *view)
{
    bool is_typed = false;

    for (int key = wr_terminal_key(&view->terminal); key != WR_KEY_NONE; key = wr_terminal_key(&view->terminal)) {
        is_typed = true;
        view->reply[0] = '\0';
        if (view->asks != WR_VIEW_INPUT_NONE)
            apply_input_key(view, key);
        else
            apply_command_key(view, key);
    }
    return is_typed;
}
