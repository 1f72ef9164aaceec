/* SPDX-License-Identifier: MIT */
/* panel.c - routes requests to the dashboard: access control, files and commands. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "shell/clock/clock.h"
#include "shell/loop/away.h"
#include "shell/memory/memory.h"
#include "shell/panel/files.h"
#include "shell/panel/inside.h"

/* ---- create and free ---- */

static int draw_run(struct wr_panel *panel)
{
    uint32_t numbers[2];
    struct wr_buf text;
    int error = wr_random(numbers, sizeof numbers);
    wr_buf_init_fixed(&text, panel->run, sizeof panel->run);
    for (size_t i = 0; i < 2 && error == 0; i++)
        wr_buf_append_hex(&text, numbers[i], 8, WR_HEX_SMALL);
    return error;
}

static int fill(struct wr_panel *panel, const struct wr_panel_options *options)
{
    size_t bytes = options->token != NULL ? strlen(options->token) : 0;
    if (bytes > WR_PANEL_TOKEN_MAX || (bytes > 0 && bytes < WR_PANEL_TOKEN_MIN))
        return wr_invalid("a token of 16 to 255 characters is wanted");
    memcpy(panel->token, options->token != NULL ? options->token : "", bytes);
    panel->source = options->source;
    panel->clock = options->clock != NULL ? options->clock : weir_clock_monotonic();
    panel->sample_at = wr_clock_now(panel->clock);
    wr_buf_init(&panel->event, panel->allocator, WR_PANEL_VIEW_MAX);
    int error = draw_run(panel);
    return error != 0 ? error : wr_history_init(&panel->history, WR_PANEL_KEPT + 1, panel->allocator);
}

int wr_panel_new(const struct wr_panel_options *options, struct wr_panel **ret_panel)
{
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    struct wr_panel *panel = wr_take(allocator, sizeof *panel, _Alignof(struct wr_panel));
    if (panel == NULL)
        return WEIR_E_NOMEM;
    panel->allocator = allocator;
    int error = fill(panel, options);
    if (error != 0) {
        wr_give(allocator, panel, sizeof *panel, _Alignof(struct wr_panel));
        return error;
    }
    *ret_panel = panel;
    return 0;
}

void wr_panel_free(struct wr_panel *panel)
{
    if (panel == NULL)
        return;
    assert(panel->stream_count == 0);
    wr_history_release(&panel->history);
    wr_buf_release(&panel->event);
    wr_give(panel->allocator, panel, sizeof *panel, _Alignof(struct wr_panel));
}

/* ---- access control ---- */

/* Returns true if the peer is on this machine. */
static bool is_near(struct wr_span peer)
{
    static const char *const starts[] = {"127.", "unix:"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (peer.bytes >= strlen(starts[i]) && memcmp(peer.data, starts[i], strlen(starts[i])) == 0)
            return true;
    return wr_span_is(peer, "::1");
}

/* Refuses a request; `fields` has additional header fields, or is "". */
static void refuse_with(struct wr_http_exchange *exchange, int status, const char *fields, const char *why)
{
    char head_memory[1024], memory[512];
    struct wr_buf head, body;
    wr_buf_init_fixed(&head, head_memory, sizeof head_memory);
    wr_buf_append_string(&head, WR_PANEL_FIELDS "Content-Type: application/json\r\nCache-Control: no-store\r\n");
    wr_buf_append_string(&head, fields);
    wr_buf_init_fixed(&body, memory, sizeof memory);
    wr_append_json_text(&body, "{\"ok\":false,\"error\":", wr_span_of(why));
    wr_buf_append_string(&body, "}\n");
    wr_http_reply(exchange, status, wr_buf_from(&head, 0), wr_buf_from(&body, 0));
}

static void refuse(struct wr_http_exchange *exchange, int status, const char *why)
{
    refuse_with(exchange, status, status == 401 ? "WWW-Authenticate: Bearer\r\n" : "", why);
}

bool wr_panel_admit(struct wr_panel *panel, struct wr_http_exchange *exchange, bool *ret_trusted)
{
    *ret_trusted = wr_http_has_token(exchange, panel->token);
    if (*ret_trusted || is_near(exchange->peer))
        return true;
    refuse(exchange, 401, "requests from other machines need the token");
    return false;
}

bool wr_panel_has_view(const struct wr_panel *panel, const char *view)
{
    const char *whole = strcmp(view, "host") == 0 ? "hosts" : view;
    for (size_t i = 0; panel->source->views[i] != NULL; i++)
        if (strcmp(panel->source->views[i], whole) == 0)
            return true;
    return false;
}

/* ---- files ---- */

static bool has_it_already(const struct wr_http_exchange *exchange, const char *tag)
{
    uint32_t cursor = 0;
    struct wr_span value;
    return wr_request_find(exchange->request, "if-none-match", &cursor, &value) && wr_span_is(value, tag);
}

/* Sends a file. Needs no token, because the files contain only public source code. */
static void give_file(struct wr_http_exchange *exchange, const struct wr_panel_file *file)
{
    char memory[1024];
    struct wr_buf fields;
    if (exchange->method != WR_METHOD_GET && exchange->method != WR_METHOD_HEAD) {
        refuse_with(exchange, 405, "Allow: GET, HEAD\r\n", "a page can only be read");
        return;
    }
    wr_buf_init_fixed(&fields, memory, sizeof memory);
    wr_buf_append_string(&fields, WR_PANEL_FIELDS "Cache-Control: no-cache\r\nContent-Type: ");
    wr_buf_append_string(&fields, file->type);
    wr_buf_append_string(&fields, "\r\nETag: ");
    wr_buf_append_string(&fields, file->tag);
    wr_buf_append_string(&fields, "\r\n");
    bool is_known = has_it_already(exchange, file->tag);
    wr_http_reply(exchange, is_known ? 304 : 200, wr_buf_from(&fields, 0),
                  is_known ? WR_HTTP_NOTHING : (struct wr_span){(const char *)file->data, file->bytes});
}

/* ---- commands ---- */

static void obey(struct wr_panel *panel, struct wr_http_exchange *exchange, bool is_command)
{
    bool trusted;
    if (!wr_panel_admit(panel, exchange, &trusted))
        return;
    if (exchange->method != WR_METHOD_POST)
        refuse_with(exchange, 405, "Allow: POST\r\n", "commands are posted");
    else if (panel->token[0] == '\0')
        refuse(exchange, 403, "there is no token, and so there are no controls");
    else if (!trusted)
        refuse(exchange, 401, "this needs the token");
    else {
        wr_buf_clear(&panel->event);
        if (is_command) {
            panel->source->command(panel->source->context, exchange->body, &panel->event);
            wr_panel_views_renew(panel);
        } else
            wr_buf_append_string(&panel->event, "{\"ok\":true}\n");
        if (panel->event.error != 0)
            refuse(exchange, 500, weir_error_text(panel->event.error));
        else
            wr_http_reply(exchange, 200,
                          wr_span_of(WR_PANEL_FIELDS "Content-Type: application/json\r\nCache-Control: no-store\r\n"),
                          wr_buf_from(&panel->event, 0));
    }
}

/* ---- routing ---- */

static void watch(struct wr_panel *panel, struct wr_http_exchange *exchange)
{
    bool trusted;
    if (!wr_panel_admit(panel, exchange, &trusted))
        return;
    if (exchange->method != WR_METHOD_GET)
        refuse_with(exchange, 405, "Allow: GET\r\n", "a stream can only be read");
    else if (panel->stream_count >= WR_PANEL_STREAMS)
        refuse(exchange, 503, "too many look already");
    else
        wr_panel_stream_begin(panel, exchange, trusted);
}

bool wr_panel_answer(struct wr_panel *panel, struct wr_http_exchange *exchange)
{
    WR_DOING("the dashboard");
    for (size_t i = 0; i < wr_panel_files_count; i++)
        if (wr_span_is(exchange->path, wr_panel_files[i].path)) {
            give_file(exchange, &wr_panel_files[i]);
            return true;
        }
    if (wr_span_is(exchange->path, "/panel/stream"))
        watch(panel, exchange);
    else if (wr_span_is(exchange->path, "/panel/command"))
        obey(panel, exchange, true);
    else if (wr_span_is(exchange->path, "/panel/token"))
        obey(panel, exchange, false);
    else
        return false;
    return true;
}
