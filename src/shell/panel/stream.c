/* SPDX-License-Identifier: MIT */
/* stream.c - sends events to viewers: a sample each second, and their view as often as the time
 * budget permits. */
#include "base/alloc.h"
#include "base/json.h"
#include "shell/clock/clock.h"
#include "shell/loop/away.h"
#include "shell/panel/inside.h"

/* samples in the first event, bytes; less than a stream may buffer */
#define HISTORY_BYTES ((size_t)160 << 10)
/* time for views in one tick; the remaining ones follow in the next */
#define TICK_BUDGET_NS (50 * WEIR_MILLISECOND)

static int64_t now_of(const struct wr_panel *panel)
{
    return wr_clock_now(panel->clock);
}

/* ---- views ---- */

static struct wr_panel_view *find_view(const struct wr_panel *panel, const struct wr_panel_query *query)
{
    for (struct wr_list_link *link = panel->views.first; link != NULL; link = link->next) {
        struct wr_panel_view *view = WR_LINKED(link, struct wr_panel_view, link);
        if (memcmp(&view->query, query, sizeof *query) == 0)
            return view;
    }
    return NULL;
}

static struct wr_panel_view *open_view(struct wr_panel *panel, const struct wr_panel_query *query)
{
    struct wr_panel_view *view = find_view(panel, query);
    if (view == NULL) {
        view = wr_take(panel->allocator, sizeof *view, _Alignof(struct wr_panel_view));
        if (view == NULL)
            return NULL;
        memcpy(&view->query, query, sizeof *query);
        wr_buf_init(&view->answer, panel->allocator, WR_PANEL_VIEW_MAX);
        view->due_at = now_of(panel);
        wr_list_push(&panel->views, &view->link);
    }
    view->viewers++;
    return view;
}

static void close_view(struct wr_panel *panel, struct wr_panel_view *view)
{
    if (--view->viewers > 0)
        return;
    wr_list_take(&view->link);
    wr_buf_release(&view->answer);
    wr_give(panel->allocator, view, sizeof *view, _Alignof(struct wr_panel_view));
}

/* Queries the source and stores the response as an event. */
static void ask(struct wr_panel *panel, struct wr_panel_view *view)
{
    int64_t asked_at = now_of(panel);
    wr_buf_clear(&view->answer);
    wr_append_json_text(&view->answer, "event: view\ndata: {\"view\":", wr_span_of(view->query.view));
    wr_buf_append_string(&view->answer, ",\"is\":");
    panel->source->view(panel->source->context, &view->query, &view->answer);
    wr_buf_append_string(&view->answer, "}\n\n");
    if (view->answer.error != 0)
        wr_buf_clear(&view->answer);
    int64_t now = now_of(panel), pause_ns = (now - asked_at) * WR_PANEL_PAUSE;
    view->due_at = now + (pause_ns > WR_PANEL_EVERY_NS ? pause_ns : WR_PANEL_EVERY_NS);
    panel->spent_ns += now - asked_at;
}

void wr_panel_views_renew(struct wr_panel *panel)
{
    for (struct wr_list_link *link = panel->views.first; link != NULL; link = link->next) {
        struct wr_panel_view *view = WR_LINKED(link, struct wr_panel_view, link);
        wr_buf_clear(&view->answer);
        view->due_at = now_of(panel);
    }
}

/* ---- streams ---- */

/* Sends an event. A viewer that does not read loses it. */
static void send(const struct wr_panel_stream *stream, struct wr_span event)
{
    if (event.bytes > 0)
        (void)wr_http_stream_write(stream->exchange, event);
}

static void close_stream(struct wr_http_exchange *exchange)
{
    struct wr_panel_stream *stream = exchange->context;
    struct wr_panel *panel = stream->panel;
    wr_list_take(&stream->link);
    panel->stream_count--;
    close_view(panel, stream->view);
    wr_give(panel->allocator, stream, sizeof *stream, _Alignof(struct wr_panel_stream));
}

static void append_views(const struct wr_panel *panel, struct wr_buf *buf)
{
    for (size_t i = 0; panel->source->views[i] != NULL; i++)
        wr_append_json_text(buf, i > 0 ? "," : ",\"views\":[", wr_span_of(panel->source->views[i]));
    wr_buf_append_string(buf, "]");
}

static void append_hello(struct wr_panel *panel, const struct wr_panel_since *since, bool trusted)
{
    struct wr_buf *buf = &panel->event;
    bool is_same = strcmp(since->run, panel->run) == 0;
    wr_buf_clear(buf);
    wr_append_json_text(buf, "event: hello\ndata: {\"weir\":", wr_span_of(weir_version()));
    wr_append_json_text(buf, ",\"kind\":", wr_span_of(panel->source->kind));
    wr_append_json_text(buf, ",\"run\":", wr_span_of(panel->run));
    append_views(panel, buf);
    wr_buf_append_string(buf, trusted ? ",\"trusted\":true" : ",\"trusted\":false");
    wr_buf_append_string(buf, panel->token[0] != '\0' ? ",\"secured\":true" : ",\"secured\":false");
    wr_append_json_count(buf, ",\"now_ms\":", (uint64_t)(weir_wall_now() / WEIR_MILLISECOND));
    wr_buf_append_string(buf, ",\"history\":[");
    wr_history_append(&panel->history, is_same ? since->number : 0, HISTORY_BYTES, buf);
    wr_buf_append_string(buf, "]}\n\n");
}

static struct wr_panel_stream *open_stream(struct wr_panel *panel, struct wr_http_exchange *exchange,
                                           const struct wr_panel_query *query)
{
    struct wr_panel_view *view = open_view(panel, query);
    struct wr_panel_stream *stream =
        view != NULL ? wr_take(panel->allocator, sizeof *stream, _Alignof(struct wr_panel_stream)) : NULL;
    if (stream == NULL) {
        if (view != NULL)
            close_view(panel, view);
        return NULL;
    }
    stream->panel = panel;
    stream->exchange = exchange;
    stream->view = view;
    wr_list_push(&panel->streams, &stream->link);
    panel->stream_count++;
    exchange->context = stream;
    exchange->gone = close_stream;
    return stream;
}

void wr_panel_stream_begin(struct wr_panel *panel, struct wr_http_exchange *exchange, bool trusted)
{
    struct wr_panel_query query;
    struct wr_panel_since since;
    if (wr_panel_query_parse(exchange->query, &query, &since) != 0) {
        wr_http_refuse(exchange, 400, weir_error_detail());
        return;
    }
    if (!wr_panel_has_view(panel, query.view)) {
        wr_http_refuse(exchange, 404, "there is no such view here");
        return;
    }
    struct wr_panel_stream *stream = open_stream(panel, exchange, &query);
    if (stream == NULL) {
        wr_http_refuse(exchange, 503, "out of memory");
        return;
    }
    wr_http_stream_begin(exchange, 200,
                         wr_span_of(WR_PANEL_FIELDS "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                                                    "X-Accel-Buffering: no\r\n"));
    append_hello(panel, &since, trusted);
    send(stream, wr_buf_from(&panel->event, 0));
    if (stream->view->answer.length == 0 && panel->spent_ns < TICK_BUDGET_NS)
        ask(panel, stream->view);
    send(stream, wr_buf_from(&stream->view->answer, 0));
}

/* ---- ticks ---- */

static void take_sample(struct wr_panel *panel)
{
    struct wr_buf *text = wr_history_next(&panel->history);
    wr_append_json_count(text, "{\"number\":", panel->history.number + 1);
    wr_append_json_count(text, ",\"at_ms\":", (uint64_t)(weir_wall_now() / WEIR_MILLISECOND));
    wr_buf_append_string(text, ",\"is\":");
    panel->source->sample(panel->source->context, text);
    wr_buf_append_string(text, "}");
    uint64_t before = panel->history.number;
    wr_history_keep(&panel->history);
    if (panel->history.number == before)
        return;
    wr_buf_clear(&panel->event);
    wr_buf_append_string(&panel->event, "event: sample\ndata: ");
    wr_buf_append_span(&panel->event, wr_history_last(&panel->history));
    wr_buf_append_string(&panel->event, "\n\n");
    for (struct wr_list_link *link = panel->streams.first; link != NULL; link = link->next)
        send(WR_LINKED(link, struct wr_panel_stream, link), wr_buf_from(&panel->event, 0));
}

static void show(struct wr_panel *panel, struct wr_panel_view *view)
{
    ask(panel, view);
    for (struct wr_list_link *link = panel->streams.first; link != NULL; link = link->next) {
        const struct wr_panel_stream *stream = WR_LINKED(link, struct wr_panel_stream, link);
        if (stream->view == view)
            send(stream, wr_buf_from(&view->answer, 0));
    }
    wr_list_take(&view->link);
    wr_list_push(&panel->views, &view->link);
}

void wr_panel_tick(struct wr_panel *panel)
{
    WR_DOING("ticks of the dashboard");
    int64_t now = now_of(panel);
    panel->spent_ns = 0;
    if (now >= panel->sample_at) {
        take_sample(panel);
        panel->sample_at += WR_PANEL_EVERY_NS;
        if (panel->sample_at < now) /* the tick was late by more than one interval */
            panel->sample_at = now + WR_PANEL_EVERY_NS;
    }
    /* Updated views move to the end of the list, so the round ends with the view that was last at
     * its start. */
    struct wr_list_link *last = panel->views.last, *next;
    for (struct wr_list_link *link = panel->views.first; link != NULL; link = next) {
        next = link == last ? NULL : link->next;
        struct wr_panel_view *view = WR_LINKED(link, struct wr_panel_view, link);
        if (panel->spent_ns >= TICK_BUDGET_NS)
            return;
        if (view->due_at <= now)
            show(panel, view);
    }
}
