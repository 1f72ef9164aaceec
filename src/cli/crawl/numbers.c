/* SPDX-License-Identifier: MIT */
/* numbers.c - what a crawl tells over HTTP while it runs. */
#include "cli/crawl/numbers.h"

#include "base/json.h"
#include "shell/metrics/metrics.h"

static void answer_metrics(struct wr_crawl_watch *watch, struct wr_http_exchange *exchange)
{
    struct wr_span text = wr_crawl_watch_text(watch);
    if (text.bytes == 0)
        wr_http_refuse(exchange, 503, "out of memory");
    else
        wr_http_reply(exchange, 200, wr_span_of("Content-Type: " WR_METRICS_TYPE "\r\nCache-Control: no-store\r\n"),
                      text);
}

/* Whoever watches restarts what answers 503: one host of many that is down is no reason. */
static void answer_health(struct wr_crawl_watch *watch, struct wr_http_exchange *exchange)
{
    struct wr_crawl_health found = wr_crawl_watch_health(watch);
    char memory[256];
    struct wr_buf body;
    wr_buf_init_fixed(&body, memory, sizeof memory);
    wr_append_json_text(&body, "{\"status\": ", wr_span_of(wr_health_name(found.health)));
    wr_append_json_count(&body, ", \"hosts\": ", found.hosts);
    wr_append_json_count(&body, ", \"breakers_open\": ", found.open);
    wr_append_json_count(&body, ", \"breakers_half_open\": ", found.half_open);
    wr_append_json_text(&body, ", \"store\": ", wr_span_of(found.is_store_paused ? "paused" : "ok"));
    wr_buf_append_string(&body, "}\n");
    wr_http_reply(exchange, found.health == WR_HEALTH_UNHEALTHY ? 503 : 200,
                  wr_span_of("Content-Type: application/json\r\nCache-Control: no-store\r\n"), wr_buf_from(&body, 0));
}

bool wr_numbers_answer(struct wr_crawl_watch *watch, const char *const *names, struct wr_http_exchange *exchange)
{
    bool is_metrics = wr_span_is(exchange->path, "/metrics");
    if (!is_metrics && !wr_span_is(exchange->path, "/healthz"))
        return false;
    if (!wr_http_is_ours(exchange, names))
        wr_http_refuse(exchange, 403, "it is not known by this name here; --listen-name NAME makes it known");
    else if (exchange->method != WR_METHOD_GET && exchange->method != WR_METHOD_HEAD)
        wr_http_refuse(exchange, 405, "only GET and HEAD");
    else if (is_metrics)
        answer_metrics(watch, exchange);
    else
        answer_health(watch, exchange);
    return true;
}
