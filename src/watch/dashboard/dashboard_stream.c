/* SPDX-License-Identifier: MIT */
/* dashboard_stream.c - sends events to viewers: a sample each second, and their view as often as
 * the time budget permits. */
#include "base/alloc.h"
#include "base/json.h"
#include "http/loop/watchdog.h"
#include "limiter/clock/clock.h"
#include "watch/dashboard/dashboard_internal.h"

/* samples in the first event, bytes; less than a stream may buffer */
#define HISTORY_BYTES ((size_t)160 << 10)
/* time for views in one tick; the remaining ones follow in the next */
#define TICK_BUDGET_NS (50 * WEIR_MILLISECOND)

static int64_t dashboard_now(const struct wr_dashboard *dashboard)
{
    return wr_clock_now(dashboard->clock);
}

/* ---- views ---- */

static struct wr_dashboard_view *find_view(const struct wr_dashboard *dashboard, const struct wr_dashboard_query *query)
{
    for (struct wr_list_link *link = dashboard->views.first; link != NULL; link = link->next) {
        struct wr_dashboard_view *view = WR_LINKED(link, struct wr_dashboard_view, link);
        if (memcmp(&view->query, query, sizeof *query) == 0)
            return view;
    }
    return NULL;
}

static struct wr_dashboard_view *open_view(struct wr_dashboard *dashboard, const struct wr_dashboard_query *query)
{
    struct wr_dashboard_view *view = find_view(dashboard, query);
    if (view == NULL) {
        view = wr_alloc(dashboard->allocator, sizeof *view, _Alignof(struct wr_dashboard_view));
        if (view == NULL)
            return NULL;
        memcpy(&view->query, query, sizeof *query);
        wr_buf_init(&view->answer, dashboard->allocator, WR_DASHBOARD_VIEW_MAX);
        view->due_at = dashboard_now(dashboard);
        wr_list_push(&dashboard->views, &view->link);
    }
    view->viewers++;
    return view;
}

static void close_view(struct wr_dashboard *dashboard, struct wr_dashboard_view *view)
{
    if (--view->viewers > 0)
        return;
    wr_list_remove(&view->link);
    wr_buf_release(&view->answer);
    wr_free(dashboard->allocator, view, sizeof *view, _Alignof(struct wr_dashboard_view));
}

/* Queries the source and stores the response as an event. */
static void query_source(struct wr_dashboard *dashboard, struct wr_dashboard_view *view)
{
    int64_t asked_at = dashboard_now(dashboard);
    wr_buf_clear(&view->answer);
    wr_append_json_text(&view->answer, "event: view\ndata: {\"view\":", wr_span_of(view->query.view));
    wr_buf_append_string(&view->answer, ",\"is\":");
    dashboard->source->view(dashboard->source->context, &view->query, &view->answer);
    wr_buf_append_string(&view->answer, "}\n\n");
    if (view->answer.error != 0)
        wr_buf_clear(&view->answer);
    int64_t now = dashboard_now(dashboard), pause_ns = (now - asked_at) * WR_DASHBOARD_PAUSE_FACTOR;
    view->due_at = now + (pause_ns > WR_DASHBOARD_INTERVAL_NS ? pause_ns : WR_DASHBOARD_INTERVAL_NS);
    dashboard->spent_ns += now - asked_at;
}

void wr_dashboard_discard_views(struct wr_dashboard *dashboard)
{
    for (struct wr_list_link *link = dashboard->views.first; link != NULL; link = link->next) {
        struct wr_dashboard_view *view = WR_LINKED(link, struct wr_dashboard_view, link);
        wr_buf_clear(&view->answer);
        view->due_at = dashboard_now(dashboard);
    }
}

/* ---- streams ---- */

/* Sends an event. A viewer that does not read loses it. */
static void send_event(const struct wr_dashboard_stream *stream, struct wr_span event)
{
    if (event.bytes > 0)
        (void)wr_http_stream_write(stream->exchange, event);
}

static void close_stream(struct wr_http_exchange *exchange)
{
    struct wr_dashboard_stream *stream = exchange->context;
    struct wr_dashboard *dashboard = stream->dashboard;
    wr_list_remove(&stream->link);
    dashboard->stream_count--;
    close_view(dashboard, stream->view);
    wr_free(dashboard->allocator, stream, sizeof *stream, _Alignof(struct wr_dashboard_stream));
}

static void append_views(const struct wr_dashboard *dashboard, struct wr_buf *buf)
{
    for (size_t i = 0; dashboard->source->views[i] != NULL; i++)
        wr_append_json_text(buf, i > 0 ? "," : ",\"views\":[", wr_span_of(dashboard->source->views[i]));
    wr_buf_append_string(buf, "]");
}

static void append_hello(struct wr_dashboard *dashboard, const struct wr_dashboard_since *since, bool trusted)
{
    struct wr_buf *buf = &dashboard->event;
    bool is_same = strcmp(since->run, dashboard->run) == 0;
    wr_buf_clear(buf);
    wr_append_json_text(buf, "event: hello\ndata: {\"weir\":", wr_span_of(weir_version()));
    wr_append_json_text(buf, ",\"kind\":", wr_span_of(dashboard->source->kind));
    wr_append_json_text(buf, ",\"run\":", wr_span_of(dashboard->run));
    append_views(dashboard, buf);
    wr_buf_append_string(buf, trusted ? ",\"trusted\":true" : ",\"trusted\":false");
    wr_buf_append_string(buf, dashboard->token[0] != '\0' ? ",\"secured\":true" : ",\"secured\":false");
    wr_append_json_count(buf, ",\"now_ms\":", (uint64_t)(weir_wall_now() / WEIR_MILLISECOND));
    wr_buf_append_string(buf, ",\"history\":[");
    wr_sample_history_append(&dashboard->history, is_same ? since->number : 0, HISTORY_BYTES, buf);
    wr_buf_append_string(buf, "]}\n\n");
}

static struct wr_dashboard_stream *open_stream(struct wr_dashboard *dashboard, struct wr_http_exchange *exchange,
                                               const struct wr_dashboard_query *query)
{
    struct wr_dashboard_view *view = open_view(dashboard, query);
    struct wr_dashboard_stream *stream =
        view != NULL ? wr_alloc(dashboard->allocator, sizeof *stream, _Alignof(struct wr_dashboard_stream)) : NULL;
    if (stream == NULL) {
        if (view != NULL)
            close_view(dashboard, view);
        return NULL;
    }
    stream->dashboard = dashboard;
    stream->exchange = exchange;
    stream->view = view;
    wr_list_push(&dashboard->streams, &stream->link);
    dashboard->stream_count++;
    exchange->context = stream;
    exchange->gone = close_stream;
    return stream;
}

void wr_dashboard_stream_begin(struct wr_dashboard *dashboard, struct wr_http_exchange *exchange, bool trusted)
{
    struct wr_dashboard_query query;
    struct wr_dashboard_since since;
    if (wr_dashboard_query_parse(exchange->query, &query, &since) != 0) {
        wr_http_refuse(exchange, 400, weir_error_detail());
        return;
    }
    if (!wr_dashboard_has_view(dashboard, query.view)) {
        wr_http_refuse(exchange, 404, "there is no such view here");
        return;
    }
    struct wr_dashboard_stream *stream = open_stream(dashboard, exchange, &query);
    if (stream == NULL) {
        wr_http_refuse(exchange, 503, "out of memory");
        return;
    }
    wr_http_stream_begin(exchange, 200,
                         wr_span_of(WR_DASHBOARD_FIELDS "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                                                        "X-Accel-Buffering: no\r\n"));
    append_hello(dashboard, &since, trusted);
    send_event(stream, wr_buf_from(&dashboard->event, 0));
    if (stream->view->answer.length == 0 && dashboard->spent_ns < TICK_BUDGET_NS)
        query_source(dashboard, stream->view);
    send_event(stream, wr_buf_from(&stream->view->answer, 0));
}

/* ---- ticks ---- */

static void record_sample(struct wr_dashboard *dashboard)
{
    struct wr_buf *text = wr_sample_history_next(&dashboard->history);
    wr_append_json_count(text, "{\"number\":", dashboard->history.number + 1);
    wr_append_json_count(text, ",\"at_ms\":", (uint64_t)(weir_wall_now() / WEIR_MILLISECOND));
    wr_buf_append_string(text, ",\"is\":");
    dashboard->source->sample(dashboard->source->context, text);
    wr_buf_append_string(text, "}");
    uint64_t before = dashboard->history.number;
    wr_sample_history_commit(&dashboard->history);
    if (dashboard->history.number == before)
        return;
    wr_buf_clear(&dashboard->event);
    wr_buf_append_string(&dashboard->event, "event: sample\ndata: ");
    wr_buf_append_span(&dashboard->event, wr_sample_history_last(&dashboard->history));
    wr_buf_append_string(&dashboard->event, "\n\n");
    for (struct wr_list_link *link = dashboard->streams.first; link != NULL; link = link->next)
        send_event(WR_LINKED(link, struct wr_dashboard_stream, link), wr_buf_from(&dashboard->event, 0));
}

static void update_view(struct wr_dashboard *dashboard, struct wr_dashboard_view *view)
{
    query_source(dashboard, view);
    for (struct wr_list_link *link = dashboard->streams.first; link != NULL; link = link->next) {
        const struct wr_dashboard_stream *stream = WR_LINKED(link, struct wr_dashboard_stream, link);
        if (stream->view == view)
            send_event(stream, wr_buf_from(&view->answer, 0));
    }
    wr_list_remove(&view->link);
    wr_list_push(&dashboard->views, &view->link);
}

void wr_dashboard_tick(struct wr_dashboard *dashboard)
{
    WR_DOING("ticks of the dashboard");
    int64_t now = dashboard_now(dashboard);
    dashboard->spent_ns = 0;
    if (now >= dashboard->sample_at) {
        record_sample(dashboard);
        dashboard->sample_at += WR_DASHBOARD_INTERVAL_NS;
        if (dashboard->sample_at < now) /* the tick was late by more than one interval */
            dashboard->sample_at = now + WR_DASHBOARD_INTERVAL_NS;
    }
    /* Updated views move to the end of the list, so the round ends with the view that was last at
     * its start. */
    struct wr_list_link *last = dashboard->views.last, *next;
    for (struct wr_list_link *link = dashboard->views.first; link != NULL; link = next) {
        next = link == last ? NULL : link->next;
        struct wr_dashboard_view *view = WR_LINKED(link, struct wr_dashboard_view, link);
        if (dashboard->spent_ns >= TICK_BUDGET_NS)
            return;
        if (view->due_at <= now)
            update_view(dashboard, view);
    }
}
