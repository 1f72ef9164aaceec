/* SPDX-License-Identifier: MIT */
/* engine_metrics.c - writes the metrics of a crawl, and judges its health. */
#include "crawl/engine/engine_metrics.h"

#include <math.h>
#include <stdlib.h>

#include "crawl/engine/engine_state.h"
#include "http/loop/watchdog.h"
#include "watch/metrics/metrics.h"

/* Usual number of hosts with their own metrics; each takes 15 us to write. */
#define USUAL_HOSTS 100
#define FRESH_NS (250 * WEIR_MILLISECOND) /* how long a text is reused */
#define SHARE 100                         /* reading the figures takes at most 1/SHARE of the loops' time */
#define TEXT_MAX ((size_t)4 << 20)

struct wr_engine_metrics {
    struct wr_engine *engine;
    size_t hosts;
    struct wr_host_views *look; /* the last look; NULL: none */
    int64_t look_at;            /* earliest time of the next look */
    int64_t read_at;
    bool has_read;
    struct wr_crawl_health health;
    struct wr_buf text;
};

/* Returns the sum of a counter, given by its offset, over all loops. */
static uint64_t sum_counter(const struct wr_engine *engine, size_t at)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < engine->loop_count; i++) {
        const char *counts = (const char *)&engine->loops[i].counts;
        sum += atomic_load_explicit((const _Atomic uint64_t *)(const void *)(counts + at), memory_order_relaxed);
    }
    return sum;
}

#define AT(what) offsetof(struct wr_crawl_counts, what)
#define AT_EACH(what, index) (AT(what) + (size_t)(index) * sizeof(_Atomic uint64_t))

/* ---- counters ---- */

static void write_crawl_counters(struct wr_metrics *metrics, const struct wr_engine *engine)
{
    static const struct {
        const char *name, *help;
        size_t at;
    } counters[] = {
        {"weir_crawl_throttled_total", "Requests that waited more than 10 ms before they could start.", AT(throttled)},
        {"weir_crawl_rejected_total", "Responses with status 429, 403 or 503.", AT(rejected)},
        {"weir_crawl_retries_total", "Retries of pages.", AT(retries)},
        {"weir_crawl_server_waits_total", "Waits that servers asked for (Retry-After, an exhausted quota).", AT(heard)},
        {"weir_crawl_concurrency_overrides_total", "Changes of a host's concurrency.", AT(overrides)},
        {"weir_crawl_cancellations_total", "Crawls ended by consecutive 429 responses at a long delay.",
         AT(cancellations)},
        {"weir_crawl_hasty_starts_total", "Requests sent sooner than the limit of their host allows. Must stay 0.",
         AT(hasty)},
        {"weir_crawl_body_bytes_total", "Bytes of response bodies read.", AT(bytes)},
        {"weir_crawl_accepted_urls_total", "URLs found and accepted for fetching.", AT(accepted)},
    };
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        wr_metrics_counter(metrics, counters[i].name, counters[i].help, sum_counter(engine, counters[i].at));
}

static void write_request_metrics(struct wr_metrics *metrics, const struct wr_engine *engine)
{
    uint64_t robots = sum_counter(engine, AT(robots)), all = sum_counter(engine, AT(requests));
    wr_metrics_family(metrics, "weir_crawl_requests_total", WR_METRIC_COUNTER,
                      "Requests sent, including those that could not connect.");
    wr_metrics_count(metrics, WR_METRIC_LABEL("kind", wr_span_of("page")), all > robots ? all - robots : 0);
    wr_metrics_count(metrics, WR_METRIC_LABEL("kind", wr_span_of("robots")), robots);
    wr_metrics_family(metrics, "weir_crawl_decisions_total", WR_METRIC_COUNTER,
                      "Finished URLs by verdict, as in the output lines.");
    for (int i = 0; i < WR_VERDICTS_COUNT; i++)
        wr_metrics_count(metrics, WR_METRIC_LABEL("verdict", wr_span_of(wr_page_verdict_name((enum wr_page_verdict)i))),
                         sum_counter(engine, AT_EACH(verdicts, i)));
    wr_metrics_family(metrics, "weir_crawl_breaker_changes_total", WR_METRIC_COUNTER, "Changes of circuit breakers.");
    wr_metrics_count(metrics, WR_METRIC_LABEL("to", wr_span_of("open")),
                     sum_counter(engine, AT_EACH(breakers, WEIR_BREAKER_OPEN)));
    wr_metrics_count(metrics, WR_METRIC_LABEL("to", wr_span_of("closed")),
                     sum_counter(engine, AT_EACH(breakers, WEIR_BREAKER_CLOSED)));
}

/* Writes the responses by status. Servers may send any number, so only usual ones have a label. */
static void write_status_metrics(struct wr_metrics *metrics, const struct wr_engine *engine)
{
    static const int known[] = {200, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401,
                                403, 404, 405, 410, 429, 451, 500, 501, 502, 503, 504};
    uint64_t others = 0;
    wr_metrics_family(metrics, "weir_crawl_answers_total", WR_METRIC_COUNTER,
                      "Responses by status; none: no response.");
    for (int status = 1; status < WR_STATUSES_COUNT; status++)
        others += sum_counter(engine, AT_EACH(statuses, status));
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint64_t count = sum_counter(engine, AT_EACH(statuses, known[i]));
        char text[16];
        struct wr_buf code;
        wr_buf_init_fixed(&code, text, sizeof text);
        wr_buf_append_u64(&code, (uint64_t)known[i]);
        wr_metrics_count(metrics, WR_METRIC_LABEL("code", wr_span_of(text)), count);
        others -= count < others ? count : others;
    }
    wr_metrics_count(metrics, WR_METRIC_LABEL("code", wr_span_of(WR_METRICS_OTHER)), others);
    wr_metrics_count(metrics, WR_METRIC_LABEL("code", wr_span_of("none")), sum_counter(engine, AT_EACH(statuses, 0)));
}

/* ---- gauges ---- */

/* Writes the queued URLs. All processes of a shared job report the same number; a label names the
 * job, so that it is not added up. */
static void write_queued_urls(struct wr_metrics *metrics, const struct wr_engine *engine, uint64_t queued)
{
    char text[24];
    struct wr_buf crawl;
    wr_buf_init_fixed(&crawl, text, sizeof text);
    wr_buf_append_u64(&crawl, (uint64_t)engine->job);
    wr_metrics_family(metrics, "weir_crawl_queued_urls", WR_METRIC_GAUGE,
                      "URLs accepted and not finished; with crawl: of all processes of the job.");
    wr_metrics_count(metrics, engine->is_shared ? WR_METRIC_LABEL("crawl", wr_span_of(text)) : NULL, queued);
}

static void write_crawl_gauges(struct wr_metrics *metrics, struct wr_engine *engine)
{
    struct wr_engine_stats stats;
    wr_engine_stats_get(engine, &stats);
    write_queued_urls(metrics, engine, stats.queued);
    wr_metrics_gauge(metrics, "weir_crawl_in_flight_requests", "Requests in flight.", (double)stats.in_flight);
    wr_metrics_gauge(metrics, "weir_crawl_connections", "Open connections.", (double)stats.connections);
    wr_metrics_gauge(metrics, "weir_crawl_known_urls", "URLs remembered so that each is fetched once.",
                     (double)sum_counter(engine, AT(known)));
    wr_metrics_gauge(metrics, "weir_crawl_plan_memory_bytes", "Memory of hosts, queues and rules.",
                     (double)stats.memory_bytes);
    wr_metrics_gauge(metrics, "weir_crawl_max_hosts", "Maximum of hosts in memory.", (double)engine->options.max_hosts);
    wr_metrics_gauge(metrics, "weir_crawl_lowered_hosts", "Hosts whose concurrency is lowered.",
                     (double)sum_counter(engine, AT(lowered)));
    wr_metrics_gauge(metrics, "weir_crawl_blocked_hosts", "Hosts whose firewall blocks the crawler.",
                     (double)stats.blocked_hosts);
    wr_metrics_gauge(metrics, "weir_crawl_elapsed_seconds", "Duration of this run.",
                     (double)stats.elapsed_ns / (double)WEIR_SECOND);
    wr_metrics_gauge(metrics, "weir_crawl_draining", "1 while the crawl finishes its requests in flight and ends.",
                     stats.is_draining);
}

static void write_store_metrics(struct wr_metrics *metrics, const struct wr_engine *engine)
{
    struct wr_store_stats stats;
    wr_store_stats_get(engine->store, &stats);
    wr_metrics_counter(metrics, "weir_store_commits_total", "Transactions committed.", stats.commits);
    wr_metrics_counter(metrics, "weir_store_changes_total", "Changes stored.", stats.changes);
    wr_metrics_counter(metrics, "weir_store_round_trips_total", "Round trips to the database.", stats.round_trips);
    wr_metrics_counter(metrics, "weir_store_pauses_total", "Pauses because the disk was full.", stats.pauses);
    wr_metrics_gauge(metrics, "weir_store_paused", "1 while the crawl waits because nothing can be stored.",
                     stats.state != WR_STORE_RUNNING);
    wr_metrics_gauge(metrics, "weir_store_queued_changes", "Changes waiting to be stored.",
                     (double)stats.queue_changes);
    wr_metrics_gauge(metrics, "weir_store_queued_bytes", "Memory of changes waiting to be stored.",
                     (double)stats.queue_bytes);
    wr_metrics_family(metrics, "weir_store_lag_seconds", WR_METRIC_GAUGE,
                      "Age of the oldest change waiting to be stored.");
    wr_metrics_seconds(metrics, NULL, stats.lag_ns);
    wr_metrics_family(metrics, "weir_store_commit_seconds", WR_METRIC_HISTOGRAM, "Duration of a transaction.");
    wr_metrics_histogram(metrics, NULL, &wr_store_commit_buckets, &stats.commit_times);
}

/* ---- waits ---- */

static void write_wait_metrics(struct wr_metrics *metrics, const struct wr_engine *engine)
{
    wr_metrics_family(metrics, "weir_crawl_wait_seconds", WR_METRIC_HISTOGRAM,
                      "Waits of pages before their request, by reason; none: no wait.");
    for (int reason = 0; reason < WR_PLAN_REASONS; reason++) {
        struct wr_histogram_sum sum = {0};
        for (uint32_t i = 0; i < engine->loop_count; i++)
            wr_histogram_sum(&engine->loops[i].counts.waits[reason], &sum);
        wr_metrics_histogram(metrics, WR_METRIC_LABEL("reason", wr_span_of(weir_reason_name((weir_reason)reason))),
                             &wr_wait_buckets, &sum);
    }
    struct wr_histogram_sum lag = {0};
    for (uint32_t i = 0; i < engine->loop_count; i++)
        wr_histogram_sum(&engine->loops[i].counts.lag, &lag);
    wr_metrics_family(metrics, "weir_crawl_loop_lag_seconds", WR_METRIC_HISTOGRAM,
                      "Delay of due work in the event loops.");
    wr_metrics_histogram(metrics, NULL, &wr_lag_buckets, &lag);
}

/* ---- hosts ---- */

static void write_host_states(struct wr_metrics *metrics, const struct wr_host_view_sums *sums)
{
    static const char *const breakers[] = {"closed", "open", "half_open"};
    wr_metrics_family(metrics, "weir_crawl_hosts", WR_METRIC_GAUGE, "Hosts in memory, by state.");
    for (int i = 0; i < WR_HOST_STATES_COUNT; i++)
        wr_metrics_count(metrics, WR_METRIC_LABEL("state", wr_span_of(wr_host_state_name((enum wr_host_state)i))),
                         sums->states[i]);
    wr_metrics_family(metrics, "weir_crawl_breakers", WR_METRIC_GAUGE,
                      "Circuit breakers of hosts in memory, by state.");
    for (size_t i = 0; i < sizeof breakers / sizeof breakers[0]; i++)
        wr_metrics_count(metrics, WR_METRIC_LABEL("state", wr_span_of(breakers[i])), sums->breakers[i]);
}

struct host_family {
    const char *name, *help;
    double (*value)(const struct wr_host_view *host);
};

static double host_rate(const struct wr_host_view *host)
{
    return host->rate;
}

static double host_allowed_rate(const struct wr_host_view *host)
{
    return host->allowed_rate;
}

static double host_queued_urls(const struct wr_host_view *host)
{
    return (double)host->queued;
}

static double host_in_flight(const struct wr_host_view *host)
{
    return host->in_flight;
}

static double host_max_in_flight(const struct wr_host_view *host)
{
    return host->cap == UINT32_MAX ? (double)INFINITY : (double)host->cap;
}

static double host_tokens(const struct wr_host_view *host)
{
    return host->tokens;
}

static double host_latency(const struct wr_host_view *host)
{
    return (double)host->latency_ns / (double)WEIR_SECOND;
}

static double host_slow_latency(const struct wr_host_view *host)
{
    return (double)host->slow_latency_ns / (double)WEIR_SECOND;
}

static double host_error_rate(const struct wr_host_view *host)
{
    return host->error_rate;
}

static double host_failures(const struct wr_host_view *host)
{
    return host->failures;
}

/* Returns the wait of a host in seconds; infinite if no time is known at which it ends. */
static double host_wait(const struct wr_host_view *host)
{
    if (host->why.verdict == WEIR_GO)
        return 0;
    return host->why.wait_ns == WEIR_UNTIL_RELEASE ? (double)INFINITY : (double)host->why.wait_ns / (double)WEIR_SECOND;
}

static double host_breaker_is_open(const struct wr_host_view *host)
{
    return host->breaker == WEIR_BREAKER_OPEN;
}

static double host_hasty_starts(const struct wr_host_view *host)
{
    return host->hasty;
}

/* Returns false for a host with the name that stands for all others. */
static bool has_own_metrics(const struct wr_host_view *host)
{
    return strcmp(host->key, WR_METRICS_OTHER) != 0;
}

static void write_host_family(struct wr_metrics *metrics, const struct wr_host_views *look,
                              const struct host_family *family)
{
    wr_metrics_family(metrics, family->name, WR_METRIC_GAUGE, family->help);
    for (size_t i = 0; i < look->count; i++)
        if (has_own_metrics(&look->hosts[i]))
            wr_metrics_number(metrics, WR_METRIC_LABEL("host", wr_span_of(look->hosts[i].key)),
                              family->value(&look->hosts[i]));
}

/* Writes the value of all hosts less those with their own metrics. It is at least 0, although hosts
 * were looked at one after the other. */
static void write_other_hosts(struct wr_metrics *metrics, const struct wr_host_views *look,
                              const struct host_family *family, double all)
{
    for (size_t i = 0; i < look->count; i++)
        all -= has_own_metrics(&look->hosts[i]) ? family->value(&look->hosts[i]) : 0;
    wr_metrics_number(metrics, WR_METRIC_LABEL("host", wr_span_of(WR_METRICS_OTHER)), all > 0 ? all : 0);
}

static void write_top_hosts(struct wr_metrics *metrics, const struct wr_host_views *look)
{
    static const struct host_family summed[] = {
        {"weir_crawl_host_queued_urls", "URLs of the host waiting in its queue.", host_queued_urls},
        {"weir_crawl_host_in_flight_requests", "Requests to the host in flight.", host_in_flight},
    };
    static const struct host_family own[] = {
        {"weir_crawl_host_starts_per_second", "Requests per second to the host in the last 30 s.", host_rate},
        {"weir_crawl_host_allowed_starts_per_second",
         "Allowed requests per second to the host: learned, set, or asked for by its server.", host_allowed_rate},
        {"weir_crawl_host_max_in_flight_requests", "Maximum of requests to the host in flight.", host_max_in_flight},
        {"weir_crawl_host_tokens", "Tokens in the bucket of the host; 0 without a bucket.", host_tokens},
        {"weir_crawl_host_latency_seconds", "Mean response time of the host's latest responses.", host_latency},
        {"weir_crawl_host_latency_p95_seconds", "95th percentile of the response time of the host's latest responses.",
         host_slow_latency},
        {"weir_crawl_host_error_ratio", "Share of failures among the host's latest responses.", host_error_rate},
        {"weir_crawl_host_consecutive_failures", "Failures of the host in a row.", host_failures},
        {"weir_crawl_host_wait_seconds", "Time until the next request to the host; +Inf: paused.", host_wait},
        {"weir_crawl_host_breaker_open", "1 while the circuit breaker of the host is open.", host_breaker_is_open},
        {"weir_crawl_host_hasty_starts", "Requests sent to the host sooner than its limit allows. Must be 0.",
         host_hasty_starts},
    };
    write_host_family(metrics, look, &summed[0]);
    write_other_hosts(metrics, look, &summed[0], (double)look->sums.queued);
    write_host_family(metrics, look, &summed[1]);
    write_other_hosts(metrics, look, &summed[1], (double)look->sums.in_flight);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        write_host_family(metrics, look, &own[i]);
}

/* ---- health ---- */

const char *wr_health_name(enum wr_engine_health_level health)
{
    static const char *const names[] = {
#define X(health, name) [health] = (name),
        WR_HEALTHS(X)
#undef X
    };
    return (size_t)health < sizeof names / sizeof names[0] ? names[health] : NULL;
}

static enum wr_engine_health_level judge_health(const struct wr_crawl_health *found)
{
    if (found->is_store_paused || (found->open > 0 && 2 * found->open >= found->hosts))
        return WR_HEALTH_UNHEALTHY;
    return found->open > 0 ? WR_HEALTH_DEGRADED : WR_HEALTH_OK;
}

static void find_health(struct wr_engine_metrics *watch)
{
    struct wr_crawl_health found = {.is_store_paused = atomic_load(&watch->engine->is_store_paused)};
    if (watch->look != NULL) {
        found.hosts = watch->look->sums.matched;
        found.open = watch->look->sums.breakers[WEIR_BREAKER_OPEN];
        found.half_open = watch->look->sums.breakers[WEIR_BREAKER_HALF_OPEN];
    }
    found.health = judge_health(&found);
    watch->health = found;
}

/* ---- looks at hosts ---- */

/* Looks at the hosts if it is time. The longer a look takes, the rarer looks are. */
static void refresh_host_views(struct wr_engine_metrics *watch, int64_t now)
{
    struct wr_host_views *look = NULL;
    const struct wr_host_view_query query = {.sort = WR_SORT_RATE, .most = watch->hosts, .hasty_first = true};
    if (now < watch->look_at)
        return;
    int error = wr_engine_inspect_hosts(watch->engine, &query, &look);
    wr_host_views_free(watch->look);
    watch->look = error == 0 ? look : NULL;
    watch->look_at = weir_clock_now(watch->engine->clock) + FRESH_NS;
    if (error == 0)
        watch->look_at += look->took_ns / watch->engine->loop_count * SHARE;
}

static void write_crawl_metrics(struct wr_engine_metrics *watch)
{
    struct wr_metrics metrics = {.buf = &watch->text};
    wr_buf_clear(&watch->text);
    write_request_metrics(&metrics, watch->engine);
    write_crawl_counters(&metrics, watch->engine);
    write_status_metrics(&metrics, watch->engine);
    write_crawl_gauges(&metrics, watch->engine);
    write_wait_metrics(&metrics, watch->engine);
    write_store_metrics(&metrics, watch->engine);
    if (watch->look != NULL) {
        write_host_states(&metrics, &watch->look->sums);
        write_top_hosts(&metrics, watch->look);
    }
    wr_metrics_program(&metrics);
}

static void refresh_crawl_metrics(struct wr_engine_metrics *watch)
{
    int64_t now = weir_clock_now(watch->engine->clock);
    if (watch->has_read && now - watch->read_at < FRESH_NS)
        return;
    WR_DOING("the numbers of a crawl");
    watch->read_at = now;
    watch->has_read = true;
    if (watch->hosts > USUAL_HOSTS)
        wr_watchdog_excuse(WR_WATCHDOG_HOST_METRICS);
    refresh_host_views(watch, now);
    find_health(watch);
    write_crawl_metrics(watch);
}

int wr_engine_metrics_new(struct wr_engine *engine, size_t hosts, struct wr_engine_metrics **ret_watch)
{
    struct wr_engine_metrics *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return WEIR_E_NOMEM;
    watch->engine = engine;
    watch->hosts = hosts < WR_ENGINE_METRICS_HOSTS_MAX ? hosts : WR_ENGINE_METRICS_HOSTS_MAX;
    wr_buf_init(&watch->text, engine->allocator, TEXT_MAX);
    *ret_watch = watch;
    return 0;
}

struct wr_span wr_engine_metrics_text(struct wr_engine_metrics *watch)
{
    refresh_crawl_metrics(watch);
    return watch->text.error == 0 ? wr_buf_from(&watch->text, 0) : (struct wr_span){NULL, 0};
}

struct wr_crawl_health wr_engine_metrics_health(struct wr_engine_metrics *watch)
{
    refresh_crawl_metrics(watch);
    return watch->health;
}

void wr_engine_metrics_free(struct wr_engine_metrics *watch)
{
    if (watch == NULL)
        return;
    wr_host_views_free(watch->look);
    wr_buf_release(&watch->text);
    free(watch);
}
