/* SPDX-License-Identifier: MIT */
/* crawl_source.c - the data source for the dashboard of a crawl, combined from responses of its
 * control socket. */
#include "watch/dashboard/crawl_source.h"

#include "base/alloc.h"
#include "base/json.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"
#include "watch/dashboard/host_history.h"

#include <jansson.h>

#define RECORDED_HOSTS 64 /* hosts recorded at a time: the busiest */
#define PAUSE_FACTOR 50   /* pause between queries for the host history, in multiples of their duration */

struct wr_dashboard_crawl {
    struct wr_dashboard_source source;
    struct wr_control_source control;
    struct wr_host_history *history;
    int64_t mark_at; /* earliest time of the next query for the host history */
};

/* ---- queries to the control socket ---- */

/* Appends `before` and the response to a request, without its newline. */
static void ask_control(const struct wr_dashboard_crawl *crawl, const char *before, struct wr_span request,
                        struct wr_buf *answer)
{
    struct wr_buf text;
    wr_buf_init(&text, wr_allocator_or_system(NULL), WR_CONTROL_ANSWER_MAX);
    wr_control_answer(&crawl->control, request, &text);
    wr_buf_append_string(answer, before);
    if (text.error == 0 && text.length > 0)
        wr_buf_append_span(answer, (struct wr_span){text.bytes, text.length - 1});
    else
        wr_buf_append_string(answer, "{\"ok\":false,\"error\":\"out of memory\"}");
    wr_buf_release(&text);
}

static void ask_control_text(const struct wr_dashboard_crawl *crawl, const char *before, const char *request,
                             struct wr_buf *answer)
{
    ask_control(crawl, before, wr_span_of(request), answer);
}

/* ---- host history ---- */

static void record_busiest_hosts(struct wr_dashboard_crawl *crawl)
{
    const struct wr_host_view_query query = {.sort = WR_SORT_RATE, .most = RECORDED_HOSTS};
    const weir_clock *clock = weir_clock_monotonic();
    struct wr_host_views *look;
    int64_t now = weir_clock_now(clock), wall_now = weir_wall_now();
    if (now < crawl->mark_at || wr_engine_inspect_hosts(crawl->control.engine, &query, &look) != 0)
        return;
    int64_t pause_ns = (weir_clock_now(clock) - now) * PAUSE_FACTOR;
    for (size_t i = 0; i < look->count; i++)
        wr_host_history_record(crawl->history, &look->hosts[i], now, wall_now);
    crawl->mark_at = now + (pause_ns > WR_HOST_HISTORY_INTERVAL_NS ? pause_ns : WR_HOST_HISTORY_INTERVAL_NS);
    wr_host_views_free(look);
}

/* Records a host that a viewer has open, as well. */
static void record_host(struct wr_dashboard_crawl *crawl, const char *key)
{
    struct wr_host_view host;
    if (wr_engine_inspect_host(crawl->control.engine, wr_span_of(key), &host) == 0)
        wr_host_history_record(crawl->history, &host, weir_clock_now(weir_clock_monotonic()), weir_wall_now());
}

/* ---- views ---- */

static void append_overview(const struct wr_dashboard_crawl *crawl, struct wr_buf *answer)
{
    ask_control_text(crawl, "{\"ok\":true,\"busy\":", "{\"ask\":\"hosts\",\"sort\":\"rate\",\"most\":8}", answer);
    ask_control_text(crawl, ",\"waiting\":", "{\"ask\":\"hosts\",\"sort\":\"wait\",\"most\":8}", answer);
    ask_control_text(crawl, ",\"events\":", "{\"ask\":\"events\"}", answer);
    wr_buf_append_string(answer, "}");
}

static void append_hosts_view(const struct wr_dashboard_crawl *crawl, const struct wr_dashboard_query *query,
                              struct wr_buf *answer)
{
    /* room for a text of WR_DASHBOARD_TEXT_MAX bytes, all of them escaped, and the other members */
    char memory[2048];
    struct wr_buf request;
    wr_buf_init_fixed(&request, memory, sizeof memory);
    wr_append_json_text(&request, "{\"ask\":\"hosts\",\"sort\":", wr_span_of(query->sort));
    wr_append_json_text(&request, ",\"filter\":", wr_span_of(query->text));
    wr_append_json_count(&request, ",\"most\":", query->most);
    wr_buf_append_string(&request, query->is_reversed ? ",\"reverse\":true}" : ",\"reverse\":false}");
    ask_control(crawl, "", wr_buf_from(&request, 0), answer);
}

static void append_host_view(struct wr_dashboard_crawl *crawl, const struct wr_dashboard_query *query,
                             struct wr_buf *answer)
{
    char memory[2048];
    struct wr_buf request;
    record_host(crawl, query->name);
    wr_buf_init_fixed(&request, memory, sizeof memory);
    wr_append_json_text(&request, "{\"ask\":\"host\",\"host\":", wr_span_of(query->name));
    wr_buf_append_string(&request, "}");
    ask_control(crawl, "{\"ok\":true,\"host\":", wr_buf_from(&request, 0), answer);
    wr_buf_clear(&request);
    wr_buf_append_string(&request, "{\"ask\":\"why\",\"url\":\"http://");
    wr_append_json_escaped(&request, wr_span_of(query->name));
    wr_buf_append_string(&request, "/\"}");
    ask_control(crawl, ",\"why\":", wr_buf_from(&request, 0), answer);
    ask_control_text(crawl, ",\"events\":", "{\"ask\":\"events\"}", answer);
    wr_buf_append_string(answer, ",\"trail\":");
    wr_host_history_append(crawl->history, query->name, answer);
    wr_buf_append_string(answer, "}");
}

static void on_crawl_sample(void *context, struct wr_buf *answer)
{
    struct wr_dashboard_crawl *crawl = context;
    record_busiest_hosts(crawl);
    ask_control_text(crawl, "", "{\"ask\":\"status\"}", answer);
}

static void on_crawl_view(void *context, const struct wr_dashboard_query *query, struct wr_buf *answer)
{
    struct wr_dashboard_crawl *crawl = context;
    if (strcmp(query->view, "hosts") == 0)
        append_hosts_view(crawl, query, answer);
    else if (strcmp(query->view, "host") == 0)
        append_host_view(crawl, query, answer);
    else if (strcmp(query->view, "jobs") == 0)
        ask_control_text(crawl, "", "{\"ask\":\"jobs\"}", answer);
    else
        append_overview(crawl, answer);
}

/* ---- commands ---- */

/* Returns true for commands of the control socket that the dashboard may send. */
static bool is_allowed_command(const char *what)
{
    static const char *const commands[] = {"pause", "resume", "set", "forget", "cancel", "drain"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0] && what != NULL; i++)
        if (strcmp(commands[i], what) == 0)
            return true;
    return false;
}

static void on_crawl_command(void *context, struct wr_span request, struct wr_buf *answer)
{
    json_error_t mistake;
    json_t *root =
        json_loadb(request.data != NULL ? request.data : "", request.bytes, JSON_REJECT_DUPLICATES, &mistake);
    if (is_allowed_command(json_string_value(json_object_get(root, "ask"))))
        ask_control(context, "", request, answer);
    else
        wr_buf_append_string(answer, "{\"ok\":false,\"error\":\"there is no such command\"}");
    json_decref(root);
}

/* ---- the source ---- */

int wr_dashboard_crawl_new(struct wr_engine *engine, struct wr_dashboard_crawl **ret_crawl)
{
    static const char *const views[] = {"overview", "hosts", "jobs", NULL};
    const weir_allocator *allocator = wr_allocator_or_system(NULL);
    struct wr_dashboard_crawl *crawl = wr_alloc(allocator, sizeof *crawl, _Alignof(struct wr_dashboard_crawl));
    if (crawl == NULL)
        return WEIR_E_NOMEM;
    int error = wr_host_history_new(allocator, &crawl->history);
    if (error != 0) {
        wr_free(allocator, crawl, sizeof *crawl, _Alignof(struct wr_dashboard_crawl));
        return error;
    }
    crawl->control = (struct wr_control_source){.engine = engine, .store = wr_engine_store(engine)};
    crawl->source =
        (struct wr_dashboard_source){crawl, "crawl", views, on_crawl_sample, on_crawl_view, on_crawl_command};
    *ret_crawl = crawl;
    return 0;
}

void wr_dashboard_crawl_free(struct wr_dashboard_crawl *crawl)
{
    if (crawl == NULL)
        return;
    wr_host_history_free(crawl->history);
    wr_free(wr_allocator_or_system(NULL), crawl, sizeof *crawl, _Alignof(struct wr_dashboard_crawl));
}

const struct wr_dashboard_source *wr_dashboard_crawl_source(const struct wr_dashboard_crawl *crawl)
{
    return &crawl->source;
}
