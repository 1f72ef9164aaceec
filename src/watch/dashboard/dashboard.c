/* SPDX-License-Identifier: MIT */
/* dashboard.c - routes requests to the dashboard: access control, files and commands. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "http/loop/watchdog.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"
#include "watch/dashboard/dashboard_internal.h"
#include "watch/dashboard/web_files.h"

/* ---- create and free ---- */

static int generate_run_id(struct wr_dashboard *dashboard)
{
    uint32_t numbers[2];
    struct wr_buf text;
    int error = wr_random(numbers, sizeof numbers);
    wr_buf_init_fixed(&text, dashboard->run, sizeof dashboard->run);
    for (size_t i = 0; i < 2 && error == 0; i++)
        wr_buf_append_hex(&text, numbers[i], 8, WR_HEX_SMALL);
    return error;
}

static int fill_dashboard(struct wr_dashboard *dashboard, const struct wr_dashboard_options *options)
{
    size_t bytes = options->token != NULL ? strlen(options->token) : 0;
    if (bytes > WR_DASHBOARD_TOKEN_MAX || (bytes > 0 && bytes < WR_DASHBOARD_TOKEN_MIN))
        return wr_invalid("the token must have 16 to 255 characters");
    memcpy(dashboard->token, options->token != NULL ? options->token : "", bytes);
    dashboard->source = options->source;
    dashboard->clock = options->clock != NULL ? options->clock : weir_clock_monotonic();
    dashboard->sample_at = wr_clock_now(dashboard->clock);
    wr_buf_init(&dashboard->event, dashboard->allocator, WR_DASHBOARD_VIEW_MAX);
    int error = generate_run_id(dashboard);
    return error != 0 ? error
                      : wr_sample_history_init(&dashboard->history, WR_DASHBOARD_SAMPLES + 1, dashboard->allocator);
}

int wr_dashboard_new(const struct wr_dashboard_options *options, struct wr_dashboard **ret_panel)
{
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    struct wr_dashboard *dashboard = wr_alloc(allocator, sizeof *dashboard, _Alignof(struct wr_dashboard));
    if (dashboard == NULL)
        return WEIR_E_NOMEM;
    dashboard->allocator = allocator;
    int error = fill_dashboard(dashboard, options);
    if (error != 0) {
        wr_free(allocator, dashboard, sizeof *dashboard, _Alignof(struct wr_dashboard));
        return error;
    }
    *ret_panel = dashboard;
    return 0;
}

void wr_dashboard_free(struct wr_dashboard *dashboard)
{
    if (dashboard == NULL)
        return;
    assert(dashboard->stream_count == 0);
    wr_sample_history_release(&dashboard->history);
    wr_buf_release(&dashboard->event);
    wr_free(dashboard->allocator, dashboard, sizeof *dashboard, _Alignof(struct wr_dashboard));
}

/* ---- access control ---- */

/* Returns true if the peer is on this machine. */
static bool is_local_peer(struct wr_span peer)
{
    static const char *const starts[] = {"127.", "unix:"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (peer.bytes >= strlen(starts[i]) && memcmp(peer.data, starts[i], strlen(starts[i])) == 0)
            return true;
    return wr_span_is(peer, "::1");
}

/* Refuses a request; `fields` has additional header fields, or is "". */
static void refuse_with_fields(struct wr_http_exchange *exchange, int status, const char *fields, const char *why)
{
    char head_memory[1024], memory[512];
    struct wr_buf head, body;
    wr_buf_init_fixed(&head, head_memory, sizeof head_memory);
    wr_buf_append_string(&head, WR_DASHBOARD_FIELDS "Content-Type: application/json\r\nCache-Control: no-store\r\n");
    wr_buf_append_string(&head, fields);
    wr_buf_init_fixed(&body, memory, sizeof memory);
    wr_append_json_text(&body, "{\"ok\":false,\"error\":", wr_span_of(why));
    wr_buf_append_string(&body, "}\n");
    wr_http_reply(exchange, status, wr_buf_from(&head, 0), wr_buf_from(&body, 0));
}

static void refuse_viewer(struct wr_http_exchange *exchange, int status, const char *why)
{
    refuse_with_fields(exchange, status, status == 401 ? "WWW-Authenticate: Bearer\r\n" : "", why);
}

bool wr_dashboard_admit(struct wr_dashboard *dashboard, struct wr_http_exchange *exchange, bool *ret_trusted)
{
    *ret_trusted = wr_http_has_token(exchange, dashboard->token);
    if (*ret_trusted || is_local_peer(exchange->peer))
        return true;
    refuse_viewer(exchange, 401, "requests from other machines need the token");
    return false;
}

bool wr_dashboard_has_view(const struct wr_dashboard *dashboard, const char *view)
{
    const char *whole = strcmp(view, "host") == 0 ? "hosts" : view;
    for (size_t i = 0; dashboard->source->views[i] != NULL; i++)
        if (strcmp(dashboard->source->views[i], whole) == 0)
            return true;
    return false;
}

/* ---- files ---- */

static bool has_cached_file(const struct wr_http_exchange *exchange, const char *tag)
{
    uint32_t cursor = 0;
    struct wr_span value;
    return wr_request_find(exchange->request, "if-none-match", &cursor, &value) && wr_span_is(value, tag);
}

/* Sends a file. Needs no token, because the files contain only public source code. */
static void send_file(struct wr_http_exchange *exchange, const struct wr_dashboard_file *file)
{
    char memory[1024];
    struct wr_buf fields;
    if (exchange->method != WR_METHOD_GET && exchange->method != WR_METHOD_HEAD) {
        refuse_with_fields(exchange, 405, "Allow: GET, HEAD\r\n", "use GET or HEAD for a page");
        return;
    }
    wr_buf_init_fixed(&fields, memory, sizeof memory);
    wr_buf_append_string(&fields, WR_DASHBOARD_FIELDS "Cache-Control: no-cache\r\nContent-Type: ");
    wr_buf_append_string(&fields, file->type);
    wr_buf_append_string(&fields, "\r\nETag: ");
    wr_buf_append_string(&fields, file->tag);
    wr_buf_append_string(&fields, "\r\n");
    bool is_known = has_cached_file(exchange, file->tag);
    wr_http_reply(exchange, is_known ? 304 : 200, wr_buf_from(&fields, 0),
                  is_known ? WR_HTTP_NOTHING : (struct wr_span){(const char *)file->data, file->bytes});
}

/* ---- commands ---- */

static void answer_post(struct wr_dashboard *dashboard, struct wr_http_exchange *exchange, bool is_command)
{
    bool trusted;
    if (!wr_dashboard_admit(dashboard, exchange, &trusted))
        return;
    if (exchange->method != WR_METHOD_POST)
        refuse_with_fields(exchange, 405, "Allow: POST\r\n", "use POST for commands");
    else if (dashboard->token[0] == '\0')
        refuse_viewer(exchange, 403, "controls are off, because no token is set");
    else if (!trusted)
        refuse_viewer(exchange, 401, "this request needs the token");
    else {
        wr_buf_clear(&dashboard->event);
        if (is_command) {
            dashboard->source->command(dashboard->source->context, exchange->body, &dashboard->event);
            wr_dashboard_discard_views(dashboard);
        } else
            wr_buf_append_string(&dashboard->event, "{\"ok\":true}\n");
        if (dashboard->event.error != 0)
            refuse_viewer(exchange, 500, weir_error_text(dashboard->event.error));
        else
            wr_http_reply(
                exchange, 200,
                wr_span_of(WR_DASHBOARD_FIELDS "Content-Type: application/json\r\nCache-Control: no-store\r\n"),
                wr_buf_from(&dashboard->event, 0));
    }
}

/* ---- routing ---- */

static void answer_stream(struct wr_dashboard *dashboard, struct wr_http_exchange *exchange)
{
    bool trusted;
    if (!wr_dashboard_admit(dashboard, exchange, &trusted))
        return;
    if (exchange->method != WR_METHOD_GET)
        refuse_with_fields(exchange, 405, "Allow: GET\r\n", "use GET for a stream");
    else if (dashboard->stream_count >= WR_DASHBOARD_STREAMS)
        refuse_viewer(exchange, 503, "too many streams are open; retry later");
    else
        wr_dashboard_stream_begin(dashboard, exchange, trusted);
}

bool wr_dashboard_answer(struct wr_dashboard *dashboard, struct wr_http_exchange *exchange)
{
    WR_DOING("the dashboard");
    for (size_t i = 0; i < wr_dashboard_files_count; i++)
        if (wr_span_is(exchange->path, wr_dashboard_files[i].path)) {
            send_file(exchange, &wr_dashboard_files[i]);
            return true;
        }
    if (wr_span_is(exchange->path, "/panel/stream"))
        answer_stream(dashboard, exchange);
    else if (wr_span_is(exchange->path, "/panel/command"))
        answer_post(dashboard, exchange, true);
    else if (wr_span_is(exchange->path, "/panel/token"))
        answer_post(dashboard, exchange, false);
    else
        return false;
    return true;
}
