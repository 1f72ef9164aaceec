/* SPDX-License-Identifier: MIT */
/* metrics_endpoint.c - answers /metrics and /healthz of a running crawl. */
#include "cli/crawl/metrics_endpoint.h"

#include "base/json.h"
#include "watch/metrics/metrics_page.h"

/* Answers 503 only if the whole crawl is unhealthy. A supervisor restarts a process that answers
 * 503, so one failing host of many must not cause it. */
static void answer_health(struct wr_engine_metrics *watch, struct wr_http_exchange *exchange)
{
    struct wr_crawl_health found = wr_engine_metrics_health(watch);
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

bool wr_crawl_metrics_answer(struct wr_engine_metrics *watch, struct wr_http_exchange *exchange)
{
    bool is_metrics = wr_span_is(exchange->path, "/metrics");
    if (!is_metrics && !wr_span_is(exchange->path, "/healthz"))
        return false;
    if (!wr_metrics_may_read(exchange))
        return true;
    if (is_metrics)
        wr_metrics_reply(exchange, wr_engine_metrics_text(watch));
    else
        answer_health(watch, exchange);
    return true;
}
