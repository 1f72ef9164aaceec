/* SPDX-License-Identifier: MIT */
/* serve_metrics.c - GET /metrics: the metrics of rules, connections and the daemon itself. */
#include "serve/daemon/serve_internal.h"

#include "watch/metrics/daemon_metrics.h"

static void write_daemon_state(struct wr_metrics *metrics, struct wr_serve *serve)
{
    struct wr_serve_view view;
    wr_serve_view_get(serve, &view);
    wr_metrics_gauge(metrics, "weir_serve_waiting_acquires", "Requests to /v1/acquire in flight.",
                     (double)view.waiting);
    wr_metrics_family(metrics, "weir_serve_saves_total", WR_METRIC_COUNTER, "Attempts to save the state, by result.");
    wr_metrics_count(metrics, WR_METRIC_LABEL("result", wr_span_of("ok")), view.saves);
    wr_metrics_count(metrics, WR_METRIC_LABEL("result", wr_span_of("failed")), view.saves_failed);
    wr_metrics_family(metrics, "weir_serve_lines_lost_total", WR_METRIC_COUNTER,
                      "Log lines dropped because standard error was full.");
    wr_metrics_count(metrics, NULL, view.lost);
    wr_metrics_family(metrics, "weir_serve_health", WR_METRIC_GAUGE, "1 for the status that /healthz reports.");
    for (int i = WR_SERVE_OK; i <= WR_SERVE_UNHEALTHY; i++)
        wr_metrics_count(metrics, WR_METRIC_LABEL("status", wr_span_of(wr_serve_health_name((enum wr_serve_health)i))),
                         (enum wr_serve_health)i == view.health);
}

static void write_times(struct wr_metrics *metrics, struct wr_serve *serve)
{
    struct wr_histogram_sum sum = {0};
    int64_t longest_ns = 0;
    for (int i = 0; i < WR_HTTP_LOOPS_MAX && serve->workers[i] != NULL; i++) {
        int64_t own_ns = atomic_load_explicit(&serve->workers[i]->longest_ns, memory_order_relaxed);
        longest_ns = own_ns > longest_ns ? own_ns : longest_ns;
        wr_histogram_sum(&serve->workers[i]->check_times, &sum);
    }
    wr_metrics_family(metrics, "weir_serve_check_seconds", WR_METRIC_HISTOGRAM,
                      "Time from reading a request to /check to its response, for every 16th request.");
    wr_metrics_histogram(metrics, NULL, &wr_check_buckets, &sum);
    wr_metrics_family(metrics, "weir_serve_longest_answer_seconds", WR_METRIC_GAUGE,
                      "Longest time from reading a request to its response, except /v1/acquire, which waits.");
    wr_metrics_seconds(metrics, NULL, longest_ns);
}

static void write_daemon_metrics(void *context, struct wr_metrics *metrics)
{
    struct wr_serve *serve = context;
    write_daemon_state(metrics, serve);
    write_times(metrics, serve);
    wr_metrics_daemon(metrics, serve->book, serve->http);
}

int wr_serve_metrics_open(struct wr_serve *serve)
{
    const struct wr_metrics_page_options options = {.write = write_daemon_metrics, .context = serve};
    return wr_metrics_page_new(&options, &serve->metrics);
}
