/* SPDX-License-Identifier: MIT */
/* test_metrics.c - tests of the metrics and the health of a crawl, judged by what the servers
 * received. */
#include "crawl/engine/engine_metrics.h"
#include "crawl/engine/engine_state.h"
#include "engine/rig.h"

#include <math.h>
#include <stdio.h>

#define PAGES 40
#define TEXT (1 << 20)

static char text[TEXT];

/* Returns the metrics as text, with all events that precede the call. */
static const char *read_all(struct wr_engine_metrics *watch)
{
    sleep_ns(600 * MS); /* loops publish twice per second */
    struct wr_span found = wr_engine_metrics_text(watch);
    assert_true(found.bytes > 0 && found.bytes < TEXT);
    memcpy(text, found.data, found.bytes);
    text[found.bytes] = '\0';
    return text;
}

/* Returns the sample of this series, or NAN if there is no such series. */
static double sample(const char *series)
{
    size_t bytes = strlen(series);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, series, bytes) == 0 && line[bytes] == ' ')
            return strtod(line + bytes, NULL);
        if (*line == '\0')
            break;
    }
    return NAN;
}

/* Returns the sum of all samples whose line begins so. Sets their number unless ret_count is
 * NULL. */
static double sum(const char *start, int *ret_count)
{
    double added = 0;
    int count = 0;
    size_t bytes = strlen(start);
    for (const char *line = text; (line = strstr(line, start)) != NULL; line += bytes) {
        if (line > text && line[-1] != '\n')
            continue;
        added += strtod(memrchr(line, ' ', strcspn(line, "\n")), NULL);
        count++;
    }
    if (ret_count != NULL)
        *ret_count = count;
    return added;
}

static void watch_new(struct crawl_fixture *rig, size_t hosts, struct wr_engine_metrics **ret_watch)
{
    assert_int_equal(wr_engine_metrics_new(rig->engine, hosts, ret_watch), 0);
}

/* ---- numbers ---- */

/* Returns 429 once for every tenth page. */
static struct origin_reply answer_some_429(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    int page = 0;
    if (sscanf(request->path, "/%d", &page) == 1 && page % 10 == 5 && rig_asked_before(rig, request) == 0)
        return (struct origin_reply){.status = 429, .fields = "Retry-After: 0\r\n"};
    return rig_tree(rig, request, PAGES, NULL);
}

static void crawl_metrics_agree_with_the_servers_log(void **state)
{
    struct crawl_fixture rig;
    struct wr_engine_metrics *watch;
    (void)state;
    rig_set_up(&rig, answer_some_429);
    rig.options.loops = 2;
    rig_space(&rig, 5 * MS);
    rig_start(&rig);
    for (int host = 1; host <= 3; host++)
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
    rig_seeded(&rig);
    watch_new(&rig, 10, &watch);
    assert_true(rig_await_end(&rig, 60 * WEIR_SECOND));
    (void)read_all(watch);
    int asked = origin_requests(rig.origin);
    assert_true(sample("weir_crawl_requests_total{kind=\"page\"}") == asked - 3);
    assert_true(sample("weir_crawl_requests_total{kind=\"robots\"}") == 3);
    assert_true(sample("weir_crawl_decisions_total{verdict=\"fetched\"}") == 3 * PAGES);
    assert_true(sample("weir_crawl_answers_total{code=\"200\"}") == 3 * PAGES);
    assert_true(sample("weir_crawl_answers_total{code=\"404\"}") == 3); /* robots.txt */
    assert_true(sample("weir_crawl_answers_total{code=\"429\"}") == 3 * 4);
    assert_true(sum("weir_crawl_answers_total{", NULL) == asked);
    assert_true(sample("weir_crawl_rejected_total") == 3 * 4);
    assert_true(sample("weir_crawl_retries_total") == 3 * 4);
    assert_true(sample("weir_crawl_hasty_starts_total") == 0);
    assert_true(sample("weir_crawl_queued_urls") == 0 && sample("weir_crawl_in_flight_requests") == 0);
    assert_true(sample("weir_store_commits_total") > 0);
    assert_true(sample("weir_store_commit_seconds_count") >= sample("weir_store_commits_total"));
    wr_engine_metrics_free(watch);
    rig_finish(&rig);
    rig_tear_down(&rig);
}

/* S0-106: each start is in the histogram of the reason that it waited for, or of no reason. */
static void crawl_metrics_have_waits_by_reason(void **state)
{
    struct crawl_fixture rig;
    struct wr_engine_metrics *watch;
    (void)state;
    rig_set_up(&rig, answer_some_429);
    rig_space(&rig, 50 * MS);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    watch_new(&rig, 10, &watch);
    assert_true(rig_await_end(&rig, 60 * WEIR_SECOND));
    (void)read_all(watch);
    double pages = sample("weir_crawl_requests_total{kind=\"page\"}");
    assert_true(sample("weir_crawl_wait_seconds_count{reason=\"pace\"}") > pages * 0.7);
    double held = sample("weir_crawl_wait_seconds_sum{reason=\"pace\"}");
    print_message("%g s held by pace, of %g pages\n", held, pages);
    assert_true(held > 0.7 * 0.04 * pages && held < 60);
    assert_true(sample("weir_crawl_wait_seconds_count{reason=\"queue\"}") > pages / 2);
    assert_true(sample("weir_crawl_throttled_total") > pages * 0.7 && sample("weir_crawl_throttled_total") <= pages);
    int reasons = 0;
    (void)sum("weir_crawl_wait_seconds_count{", &reasons);
    assert_int_equal(reasons, WR_PLAN_REASONS);
    assert_true(sample("weir_crawl_loop_lag_seconds_count") > 0);
    wr_engine_metrics_free(watch);
    rig_finish(&rig);
    rig_tear_down(&rig);
}

/* S1-29: a correct crawl has no such start, so the test sets the count. */
static void crawl_metrics_count_starts_that_came_too_soon(void **state)
{
    struct crawl_fixture rig;
    struct wr_engine_metrics *watch;
    (void)state;
    rig_set_up(&rig, answer_some_429);
    rig.options.loops = 2;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    watch_new(&rig, 10, &watch);
    assert_true(rig_await_end(&rig, 60 * WEIR_SECOND));
    sleep_ns(600 * MS); /* the loops have ended */
    for (int i = 0; i < 2; i++)
        atomic_store(&rig.engine->loops[i].counts.hasty, 3);
    (void)read_all(watch);
    assert_true(sample("weir_crawl_hasty_starts_total") == 6);
    wr_engine_metrics_free(watch);
    rig_finish(&rig);
    rig_tear_down(&rig);
}

/* ---- hosts ---- */

static struct origin_reply answer_plain(void *context, const struct origin_request *request)
{
    return rig_tree(context, request, PAGES, NULL);
}

/* S0-75: the first hosts have their own series, and all others share one. */
static void hosts_beyond_the_first_few_share_one_metric_series(void **state)
{
    struct crawl_fixture rig;
    struct wr_engine_metrics *watch;
    (void)state;
    rig_set_up(&rig, answer_plain);
    rig.options.loops = 2;
    rig_space(&rig, 100 * MS);
    rig_start(&rig);
    for (int host = 1; host <= 30; host++)
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
    rig_seeded(&rig);
    rig_await_requests(&rig, 200);
    for (int host = 1; host <= 30; host++) {
        char key[64];
        (void)snprintf(key, sizeof key, "127.0.0.%d:%d", host, rig.port);
        assert_int_equal(wr_engine_pause(rig.engine, wr_span_of(key), true), 0);
    }
    sleep_ns(300 * MS);
    watch_new(&rig, 5, &watch);
    (void)read_all(watch);
    int series = 0;
    double queued = sum("weir_crawl_host_queued_urls{", &series);
    assert_int_equal(series, 6);
    assert_true(queued == sample("weir_crawl_queued_urls") && queued > 0);
    assert_true(sample("weir_crawl_host_queued_urls{host=\"other\"}") > sample("weir_crawl_queued_urls") / 2);
    (void)sum("weir_crawl_host_allowed_starts_per_second{", &series);
    assert_int_equal(series, 5);
    assert_true(sum("weir_crawl_host_allowed_starts_per_second{", NULL) == 50);
    assert_true(sum("weir_crawl_host_starts_per_second{", NULL) > 1);
    assert_true(isinf(sum("weir_crawl_host_wait_seconds{", NULL)));
    assert_true(sum("weir_crawl_host_latency_seconds{", NULL) > 0);
    assert_true(sample("weir_crawl_hosts{state=\"paused\"}") == 30 && sum("weir_crawl_hosts{", NULL) == 30);
    assert_true(sample("weir_crawl_breakers{state=\"closed\"}") == 30);
    wr_engine_metrics_free(watch);
    wr_engine_stop(rig.engine);
    rig_finish(&rig);
    rig_tear_down(&rig);
}

/* Returns the CPU time of the loop's thread when all pages have been requested. With `asks`, the
 * test reads metrics all the time. */
static int64_t cpu_of_crawl(struct crawl_fixture *rig, bool asks, int *ret_times, int *ret_changes)
{
    struct wr_engine_metrics *watch;
    clockid_t clock;
    struct timespec used;
    double before = -1;
    rig_set_up(rig, answer_plain);
    rig_space(rig, 20 * MS);
    rig_start(rig);
    rig_seed(rig, "%s", rig_url(rig, 1, "/"));
    watch_new(rig, 5, &watch);
    int64_t began_at = monotonic();
    for (*ret_times = *ret_changes = 0; origin_requests(rig->origin) < PAGES; ++*ret_times) {
        if (!asks) {
            sleep_ns(MS);
            continue;
        }
        struct wr_span found = wr_engine_metrics_text(watch);
        memcpy(text, found.data, found.bytes);
        text[found.bytes] = '\0';
        double now = sample("weir_crawl_elapsed_seconds");
        *ret_changes += now > before;
        before = now;
    }
    assert_true(*ret_changes <= (monotonic() - began_at) / (250 * MS) + 1);
    assert_int_equal(pthread_getcpuclockid(rig->engine->loops[0].thread, &clock), 0);
    assert_int_equal(clock_gettime(clock, &used), 0);
    wr_engine_metrics_free(watch);
    rig_finish(rig); /* ended here, so that the loop's thread existed until now */
    rig_assert_trees(rig, 1, 1, PAGES);
    rig_tear_down(rig);
    return used.tv_sec * WEIR_SECOND + used.tv_nsec;
}

/* I5: metrics that are requested all the time are rendered rarely. They take no time of the
 * loop. */
static void constant_scraping_costs_the_crawl_no_time(void **state)
{
    struct crawl_fixture rig;
    int times, changes;
    (void)state;
    int64_t alone_ns = cpu_of_crawl(&rig, false, &times, &changes);
    int64_t watched_ns = cpu_of_crawl(&rig, true, &times, &changes);
    print_message("%d requests, rendered %d times; the loop used %.1f ms, and %.1f ms without requests\n", times,
                  changes, (double)watched_ns / 1e6, (double)alone_ns / 1e6);
    assert_true(changes >= 1);
    /* else the loop would compute all the time */
    assert_true(watched_ns < 3 * alone_ns + 100 * MS);
}

/* ---- a crawl that is cancelled ---- */

static struct origin_reply answer_429(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.status = rig_is_robots(request) ? 404 : 429};
}

/* S2-24: the metrics count 429s, retries, cancellations and lowered concurrency. */
static void crawl_cancelled_by_429s_shows_in_the_metrics(void **state)
{
    struct crawl_fixture rig;
    struct wr_engine_metrics *watch;
    (void)state;
    rig_set_up(&rig, answer_429);
    rig_profile(&rig, WEIR_PROFILE_LEARNED);
    rig.options.pace.base_delay_ns = 10 * MS;
    rig.options.pace.delay_up_ns = 20 * MS;
    rig.options.pace.concurrency_step_ns = 20 * MS;
    rig.options.pace.cancel_after = 5;
    rig.options.pace.cancel_delay_ns = 50 * MS;
    rig.options.pace.breaker = false;
    rig.options.pace.retry.blocking_retries = 20;
    rig.options.failure_threshold = UINT32_MAX;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    watch_new(&rig, 5, &watch);
    assert_true(rig_await_end(&rig, 60 * WEIR_SECOND));
    (void)read_all(watch);
    double rejected = origin_requests(rig.origin) - 1; /* all except robots.txt */
    assert_true(sample("weir_crawl_cancellations_total") == 1);
    assert_true(sample("weir_crawl_rejected_total") == rejected);
    assert_true(sample("weir_crawl_retries_total") == rejected);
    assert_true(sample("weir_crawl_concurrency_overrides_total") >= 1);
    wr_engine_metrics_free(watch);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_CANCELLED);
    rig_tear_down(&rig);
}

/* ---- health ---- */

/* Returns 500 for pages of the first `*site` hosts. */
static struct origin_reply answer_broken(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    const int *broken = rig->site;
    if (!rig_is_robots(request) && rig_host(request) <= *broken)
        return (struct origin_reply){.status = 500};
    return rig_tree(rig, request, PAGES, NULL);
}

static struct wr_crawl_health health_with(int broken)
{
    struct crawl_fixture rig;
    struct wr_engine_metrics *watch;
    rig_set_up(&rig, answer_broken);
    rig.site = &broken;
    rig.options.loops = 2;
    rig.options.pace.breaker = true;
    rig.options.pace.consecutive_failures = 2;
    rig.options.pace.open_ns = WEIR_MINUTE;
    rig.options.failure_threshold = UINT32_MAX;
    rig_space(&rig, 100 * MS);
    rig_start(&rig);
    for (int host = 1; host <= 4; host++)
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
    rig_seeded(&rig);
    watch_new(&rig, 5, &watch);
    struct wr_crawl_health health = wr_engine_metrics_health(watch);
    for (int64_t until = monotonic() + 30 * WEIR_SECOND; health.hosts < 4 || health.open < (uint64_t)broken;) {
        assert_true(monotonic() < until);
        sleep_ns(50 * MS);
        health = wr_engine_metrics_health(watch);
    }
    (void)read_all(watch);
    assert_true(sample("weir_crawl_breakers{state=\"open\"}") == broken);
    assert_true(sample("weir_crawl_breaker_changes_total{to=\"open\"}") == broken);
    wr_engine_metrics_free(watch);
    wr_engine_stop(rig.engine);
    rig_finish(&rig);
    rig_tear_down(&rig);
    return health;
}

/* U14 */
static void open_breakers_degrade_health_and_half_of_them_make_it_unhealthy(void **state)
{
    (void)state;
    assert_int_equal(health_with(0).health, WR_HEALTH_OK);
    assert_int_equal(health_with(1).health, WR_HEALTH_DEGRADED);
    assert_int_equal(health_with(2).health, WR_HEALTH_UNHEALTHY);
    assert_string_equal(wr_health_name(WR_HEALTH_UNHEALTHY), "unhealthy");
    assert_null(wr_health_name(WR_HEALTH_UNHEALTHY + 1));
}

ENGINE_TESTS(test(crawl_metrics_agree_with_the_servers_log), test(crawl_metrics_have_waits_by_reason),
             test(crawl_metrics_count_starts_that_came_too_soon),
             test(hosts_beyond_the_first_few_share_one_metric_series), test(constant_scraping_costs_the_crawl_no_time),
             test(crawl_cancelled_by_429s_shows_in_the_metrics),
             test(open_breakers_degrade_health_and_half_of_them_make_it_unhealthy))
