/* SPDX-License-Identifier: MIT */
/* crawl.c - the data source for the dashboard of a crawl, combined from responses of its control
 * socket. */
#include "shell/panel/crawl.h"

#include "base/alloc.h"
#include "base/json.h"
#include "shell/clock/clock.h"
#include "shell/memory/memory.h"
#include "shell/panel/trail.h"

#include <jansson.h>

#define TRAILED 64 /* hosts recorded at a time: the busiest */
#define PAUSE 50   /* pause between queries for the host history, in multiples of their duration */

struct wr_panel_crawl {
    struct wr_panel_source source;
    struct wr_desk_source desk;
    struct wr_trail *trail;
    int64_t mark_at; /* earliest time of the next query for the host history */
};

/* ---- queries to the control socket ---- */

/* Appends `before` and the response to a request, without its newline. */
static void ask(const struct wr_panel_crawl *crawl, const char *before, struct wr_span request, struct wr_buf *answer)
{
    struct wr_buf text;
    wr_buf_init(&text, wr_allocator_or_system(NULL), WR_DESK_ANSWER_MAX);
    wr_desk_answer(&crawl->desk, request, &text);
    wr_buf_append_string(answer, before);
    if (text.error == 0 && text.length > 0)
        wr_buf_append_span(answer, (struct wr_span){text.bytes, text.length - 1});
    else
        wr_buf_append_string(answer, "{\"ok\":false,\"error\":\"out of memory\"}");
    wr_buf_release(&text);
}

static void ask_word(const struct wr_panel_crawl *crawl, const char *before, const char *request, struct wr_buf *answer)
{
    ask(crawl, before, wr_span_of(request), answer);
}

/* ---- host history ---- */

static void mark_busiest(struct wr_panel_crawl *crawl)
{
    const struct wr_look_query query = {.sort = WR_SORT_RATE, .most = TRAILED};
    const weir_clock *clock = weir_clock_monotonic();
    struct wr_look *look;
    int64_t now = weir_clock_now(clock), wall_now = weir_wall_now();
    if (now < crawl->mark_at || wr_engine_look(crawl->desk.engine, &query, &look) != 0)
        return;
    int64_t pause_ns = (weir_clock_now(clock) - now) * PAUSE;
    for (size_t i = 0; i < look->count; i++)
        wr_trail_mark(crawl->trail, &look->hosts[i], now, wall_now);
    crawl->mark_at = now + (pause_ns > WR_TRAIL_EVERY_NS ? pause_ns : WR_TRAIL_EVERY_NS);
    wr_look_free(look);
}

/* Records a host that a viewer has open, as well. */
static void mark_one(struct wr_panel_crawl *crawl, const char *key)
{
    struct wr_look_host host;
    if (wr_engine_look_host(crawl->desk.engine, wr_span_of(key), &host) == 0)
        wr_trail_mark(crawl->trail, &host, weir_clock_now(weir_clock_monotonic()), weir_wall_now());
}

/* ---- views ---- */

static void append_overview(const struct wr_panel_crawl *crawl, struct wr_buf *answer)
{
    ask_word(crawl, "{\"ok\":true,\"busy\":", "{\"ask\":\"hosts\",\"sort\":\"rate\",\"most\":8}", answer);
    ask_word(crawl, ",\"waiting\":", "{\"ask\":\"hosts\",\"sort\":\"wait\",\"most\":8}", answer);
    ask_word(crawl, ",\"events\":", "{\"ask\":\"events\"}", answer);
    wr_buf_append_string(answer, "}");
}

static void append_hosts(const struct wr_panel_crawl *crawl, const struct wr_panel_query *query, struct wr_buf *answer)
{
    /* room for a text of WR_PANEL_TEXT_MAX bytes, all of them escaped, and the other members */
    char memory[2048];
    struct wr_buf request;
    wr_buf_init_fixed(&request, memory, sizeof memory);
    wr_append_json_text(&request, "{\"ask\":\"hosts\",\"sort\":", wr_span_of(query->sort));
    wr_append_json_text(&request, ",\"filter\":", wr_span_of(query->text));
    wr_append_json_count(&request, ",\"most\":", query->most);
    wr_buf_append_string(&request, query->is_reversed ? ",\"reverse\":true}" : ",\"reverse\":false}");
    ask(crawl, "", wr_buf_from(&request, 0), answer);
}

static void append_host(struct wr_panel_crawl *crawl, const struct wr_panel_query *query, struct wr_buf *answer)
{
    char memory[2048];
    struct wr_buf request;
    mark_one(crawl, query->name);
    wr_buf_init_fixed(&request, memory, sizeof memory);
    wr_append_json_text(&request, "{\"ask\":\"host\",\"host\":", wr_span_of(query->name));
    wr_buf_append_string(&request, "}");
    ask(crawl, "{\"ok\":true,\"host\":", wr_buf_from(&request, 0), answer);
    wr_buf_clear(&request);
    wr_buf_append_string(&request, "{\"ask\":\"why\",\"url\":\"http://");
    wr_append_json_inside(&request, wr_span_of(query->name));
    wr_buf_append_string(&request, "/\"}");
    ask(crawl, ",\"why\":", wr_buf_from(&request, 0), answer);
    ask_word(crawl, ",\"events\":", "{\"ask\":\"events\"}", answer);
    wr_buf_append_string(answer, ",\"trail\":");
    wr_trail_append(crawl->trail, query->name, answer);
    wr_buf_append_string(answer, "}");
}

static void on_sample(void *context, struct wr_buf *answer)
{
    struct wr_panel_crawl *crawl = context;
    mark_busiest(crawl);
    ask_word(crawl, "", "{\"ask\":\"status\"}", answer);
}

static void on_view(void *context, const struct wr_panel_query *query, struct wr_buf *answer)
{
    struct wr_panel_crawl *crawl = context;
    if (strcmp(query->view, "hosts") == 0)
        append_hosts(crawl, query, answer);
    else if (strcmp(query->view, "host") == 0)
        append_host(crawl, query, answer);
    else if (strcmp(query->view, "jobs") == 0)
        ask_word(crawl, "", "{\"ask\":\"jobs\"}", answer);
    else
        append_overview(crawl, answer);
}

/* ---- commands ---- */

/* Returns true for commands of the control socket that the dashboard may send. */
static bool may_ask(const char *what)
{
    static const char *const commands[] = {"pause", "resume", "set", "forget", "cancel", "drain"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0] && what != NULL; i++)
        if (strcmp(commands[i], what) == 0)
            return true;
    return false;
}

static void on_command(void *context, struct wr_span request, struct wr_buf *answer)
{
    json_error_t mistake;
    json_t *root =
        json_loadb(request.data != NULL ? request.data : "", request.bytes, JSON_REJECT_DUPLICATES, &mistake);
    if (may_ask(json_string_value(json_object_get(root, "ask"))))
        ask(context, "", request, answer);
    else
        wr_buf_append_string(answer, "{\"ok\":false,\"error\":\"there is no such command\"}");
    json_decref(root);
}

/* ---- the source ---- */

int wr_panel_crawl_new(struct wr_engine *engine, struct wr_panel_crawl **ret_crawl)
{
    static const char *const views[] = {"overview", "hosts", "jobs", NULL};
    const weir_allocator *allocator = wr_allocator_or_system(NULL);
    struct wr_panel_crawl *crawl = wr_take(allocator, sizeof *crawl, _Alignof(struct wr_panel_crawl));
    if (crawl == NULL)
        return WEIR_E_NOMEM;
    int error = wr_trail_new(allocator, &crawl->trail);
    if (error != 0) {
        wr_give(allocator, crawl, sizeof *crawl, _Alignof(struct wr_panel_crawl));
        return error;
    }
    crawl->desk = (struct wr_desk_source){.engine = engine, .store = wr_engine_store(engine)};
    crawl->source = (struct wr_panel_source){crawl, "crawl", views, on_sample, on_view, on_command};
    *ret_crawl = crawl;
    return 0;
}

void wr_panel_crawl_free(struct wr_panel_crawl *crawl)
{
    if (crawl == NULL)
        return;
    wr_trail_free(crawl->trail);
    wr_give(wr_allocator_or_system(NULL), crawl, sizeof *crawl, _Alignof(struct wr_panel_crawl));
}

const struct wr_panel_source *wr_panel_crawl_source(const struct wr_panel_crawl *crawl)
{
    return &crawl->source;
}
