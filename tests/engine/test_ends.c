/* SPDX-License-Identifier: MIT */
/* test_ends.c - tests of how a crawl ends: drained, stopped, out of budget, failed, cancelled; and
 * of resuming it. */
#include "engine/rig.h"

#define PAGES 30

static struct origin_reply answer_tree(void *context, const struct origin_request *request)
{
    return rig_tree(context, request, PAGES, NULL);
}

static struct origin_reply answer_slowly(void *context, const struct origin_request *request)
{
    struct origin_reply reply = rig_tree(context, request, PAGES, NULL);
    if (!rig_is_robots(request))
        reply.delay_ns = 200 * MS;
    return reply;
}

static void start_with(struct crawl_fixture *rig, int hosts)
{
    rig_start(rig);
    for (int host = 1; host <= hosts; host++)
        rig_seed(rig, "%s", rig_url(rig, host, "/"));
    rig_seeded(rig);
}

/* ---- drain and stop ---- */

/* F3: pages in flight are stored, and no others are fetched. */
static void drain_finishes_requests_in_flight_and_resume_does_the_rest(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_slowly);
    rig.options.loops = 2;
    start_with(&rig, 3);
    rig_await_requests(&rig, 3 + 3 + 4);
    wr_engine_drain(rig.engine);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_STOPPED);
    int asked = origin_requests(rig.origin);
    assert_int_equal(rig.line_count, asked - 3); /* without the three robots.txt */
    assert_int_equal(rig_verdicts(&rig, "fetched"), asked - 3);
    rig_check_store(&rig);
    rig_start(&rig);
    assert_false(rig.is_new);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig.line_count, 3 * PAGES);
    rig_assert_trees(&rig, 1, 3, PAGES);
    assert_int_equal(origin_requests(rig.origin), 3 * PAGES + 3); /* no page is fetched twice */
    rig_tear_down(&rig);
}

/* F3: a stop does not wait for a slow server, and loses no page. */
static struct origin_reply answer_very_slowly(void *context, const struct origin_request *request)
{
    struct origin_reply reply = rig_tree(context, request, PAGES, NULL);
    if (!rig_is_robots(request) && rig_asked_before(context, request) == 0 && request->number > 4)
        reply.delay_ns = WEIR_HOUR;
    return reply;
}

static void stop_abandons_requests_in_flight_and_resume_repeats_them(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_very_slowly);
    rig.options.loops = 2;
    start_with(&rig, 2);
    rig_await_requests(&rig, 7);
    wr_engine_drain(rig.engine);
    assert_false(rig_await_end(&rig, 300 * MS)); /* some requests are in flight */
    wr_engine_stop(rig.engine);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_STOPPED);
    assert_int_equal(rig_verdicts(&rig, "failed"), 0);
    rig_check_store(&rig);
    while (rig.result.end == WR_END_STOPPED) { /* each page is slow once */
        rig_start(&rig);
        rig_seeded(&rig);
        if (!rig_await_end(&rig, 400 * MS))
            wr_engine_stop(rig.engine);
        rig_finish(&rig);
    }
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig.line_count, 2 * PAGES);
    rig_assert_trees(&rig, 1, 2, PAGES);
    rig_tear_down(&rig);
}

/* A drain becomes a stop after drain_ns. */
static void drain_becomes_a_stop_after_its_time(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_very_slowly);
    rig.options.drain_ns = 300 * MS;
    start_with(&rig, 2);
    rig_await_requests(&rig, 7);
    wr_engine_drain(rig.engine);
    assert_true(rig_await_end(&rig, 15 * WEIR_SECOND));
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_STOPPED);
    rig_tear_down(&rig);
}

/* ---- budgets ---- */

static void page_budget_is_kept_exactly(void **state)
{
    (void)state;
    for (uint32_t loops = 1; loops <= 2; loops++) {
        struct crawl_fixture rig;
        rig_set_up(&rig, answer_tree);
        rig.options.loops = loops;
        rig.options.max_pages = 47;
        start_with(&rig, 4);
        rig_finish(&rig);
        assert_int_equal(rig.result.end, WR_END_COMPLETED);
        assert_int_equal(rig_verdicts(&rig, "fetched"), 47);
        assert_int_equal(origin_requests(rig.origin), 47 + 4);
        rig_tear_down(&rig);
    }
}

static struct origin_reply answer_links_across(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    int host = rig_host(request);
    return rig_tree(rig, request, PAGES,
                    rig_text(rig, "<a href=\"%s\">x</a>", rig_url(rig, host % 20 + 1, request->path)));
}

/* Counts pages that one loop finds for the other, too. */
static void page_budget_is_kept_exactly_across_two_linked_loops(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_links_across);
    rig.options.loops = 2;
    rig.options.max_pages = 101;
    start_with(&rig, 1);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(origin_requests(rig.origin) - rig_asked(&rig, -1, "/robots.txt"), 101);
    rig_tear_down(&rig);
}

static void pages_per_host_are_bounded(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_tree);
    rig.options.loops = 2;
    rig.options.host_pages = 11;
    start_with(&rig, 3);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig.line_count, 33);
    for (int host = 1; host <= 3; host++) {
        int count;
        free(rig_arrivals(&rig, host, &count));
        assert_int_equal(count, 11 + 1);
    }
    rig_tear_down(&rig);
}

static void links_are_followed_to_the_given_depth(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_tree);
    rig.options.max_depth = 2;
    start_with(&rig, 1);
    rig_finish(&rig);
    assert_int_equal(rig.line_count, 1 + 2 + 4);
    assert_int_equal(rig_number(&rig, rig_url(&rig, 1, "/6"), "depth"), 2);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/6"), "referrer"), rig_url(&rig, 1, "/2"));
    rig_tear_down(&rig);
}

/* The report shows that the crawl is only a part of the site. */
static void links_skipped_by_a_budget_are_counted(void **state)
{
    static const struct {
        uint64_t max_pages;
        uint32_t host_pages, max_depth;
        uint64_t beyond, deeper;
    } cases[] = {{7, 0, 0, 8, 0}, {0, 7, 0, 8, 0}, {0, 0, 2, 0, 8}, {0, 0, 0, 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct crawl_fixture rig;
        rig_set_up(&rig, answer_tree);
        rig.options.max_pages = cases[i].max_pages;
        rig.options.host_pages = cases[i].host_pages;
        rig.options.max_depth = cases[i].max_depth;
        rig.options.concurrency = 1;
        start_with(&rig, 1);
        rig_finish(&rig);
        assert_int_equal(rig.result.stats.beyond, cases[i].beyond);
        assert_int_equal(rig.result.stats.deeper, cases[i].deeper);
        rig_tear_down(&rig);
    }
}

static struct origin_reply answer_long(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    static char filler[10001];
    memset(filler, 'x', sizeof filler - 1);
    return rig_tree(rig, request, 1000, filler);
}

/* Requests in flight may exceed the budget. */
static void bytes_of_a_crawl_are_bounded(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_long);
    rig.options.max_bytes = 300000;
    rig.options.concurrency = 4;
    start_with(&rig, 2);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_BUDGET);
    assert_true(rig.result.stats.bytes >= 200000 && rig.result.stats.bytes <= 300000 + 8 * 11000);
    rig_tear_down(&rig);
}

static void time_of_a_crawl_is_bounded(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_tree);
    rig_space(&rig, 200 * MS);
    rig.options.max_time_ns = WEIR_SECOND;
    int64_t began_at = monotonic();
    start_with(&rig, 2);
    rig_finish(&rig);
    int64_t took_ns = monotonic() - began_at;
    assert_int_equal(rig.result.end, WR_END_BUDGET);
    assert_true(took_ns >= 900 * MS);
    assert_true(rig.line_count <= 12);
    rig_tear_down(&rig);
}

/* Links of pages that were in flight at the time limit are kept, too. */
static void crawl_that_reaches_its_time_limit_loses_no_page(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_slowly);
    rig.options.max_time_ns = 500 * MS; /* only the first page is answered by then */
    rig.options.max_pages = 1000;
    start_with(&rig, 2);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_BUDGET);
    assert_true(rig.line_count > 0 && rig.line_count < 2 * (size_t)PAGES);
    rig.options.max_time_ns = 0;
    rig_start(&rig);
    assert_false(rig.is_new);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    rig_assert_trees(&rig, 1, 2, PAGES);
    assert_int_equal(rig.line_count, 2 * PAGES);
    rig_tear_down(&rig);
}

/* ---- jobs that are over ---- */

static void finished_job_accepts_no_seeds(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_tree);
    start_with(&rig, 1);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    const struct wr_engine_open_options place = {.state_path = rig.state};
    assert_int_equal(wr_engine_open(&place, &rig.engine), 0);
    rig.options.resume_job = rig.result.job;
    assert_int_equal(wr_engine_start(rig.engine, &rig.options), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "over"));
    rig_tear_down(&rig);
}

/* ---- failures ---- */

/* Returns 500 for all pages except the first one, 7 and 12. */
static struct origin_reply answer_failing(void *context, const struct origin_request *request)
{
    long n = strtol(request->path + 1, NULL, 10);
    if (!rig_is_robots(request) && n >= 1 && n != 7 && n != 12)
        return (struct origin_reply){.status = 500};
    if (n == 0 && !rig_is_robots(request)) {
        struct crawl_fixture *rig = context;
        char *text = NULL;
        size_t bytes;
        FILE *stream = open_memstream(&text, &bytes);
        for (int i = 1; i < 60; i++)
            (void)fprintf(stream, "<a href=/%d>", i);
        (void)fclose(stream);
        const char *kept = rig_text(rig, "%s", text);
        free(text);
        return rig_html(kept);
    }
    return rig_tree(context, request, 60, NULL);
}

/* S2-15, S2-16: a success resets the count of failures in a row. */
static void job_fails_after_the_threshold_of_failures_in_a_row(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_failing);
    rig.options.failure_threshold = 9;
    rig.options.concurrency = 1;
    rig.options.pace.retry.attempts = 1;
    start_with(&rig, 1);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_FAILED);
    assert_int_equal(rig_verdicts(&rig, "failed"), 6 + 4 + 9);
    assert_int_equal(rig_verdicts(&rig, "fetched"), 3);
    assert_int_equal(rig_asked(&rig, 1, "/22"), 0);
    rig_tear_down(&rig);
}

/* A crawl whose network failed can be resumed. */
static void failed_job_can_be_resumed_and_counts_failures_from_zero(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_failing);
    rig.options.failure_threshold = 9;
    rig.options.concurrency = 1;
    rig.options.pace.retry.attempts = 1;
    start_with(&rig, 1);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_FAILED);
    int64_t job = rig.result.job;
    size_t before = rig.line_count;
    rig_start(&rig);
    assert_false(rig.is_new);
    rig_finish(&rig);
    assert_int_equal(rig.result.job, job);
    assert_int_equal(rig.result.end, WR_END_FAILED);
    assert_int_equal(rig.line_count, before + 9);
    rig.options.failure_threshold = UINT32_MAX;
    rig_start(&rig);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig.line_count, 60); /* each page once */
    assert_int_equal(origin_requests(rig.origin), 60 + 1);
    rig_check_store(&rig);
    rig.options.appends = true;
    rig_start(&rig); /* the old job has no URLs left, so this is a new job */
    assert_true(rig.is_new);
    wr_engine_stop(rig.engine);
    rig_finish(&rig);
    rig_tear_down(&rig);
}

/* Its seeds must be given again, like those of a job that was stopped. */
static void job_that_failed_before_all_seeds_arrived_is_pending(void **state)
{
    struct crawl_fixture rig;
    struct wr_engine_job job;
    (void)state;
    rig_set_up(&rig, answer_failing);
    rig.options.failure_threshold = 5;
    rig.options.concurrency = 1;
    rig.options.pace.retry.attempts = 1;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    assert_true(rig_await_end(&rig, 30 * WEIR_SECOND));
    wr_engine_finish(rig.engine, &rig.result);
    assert_int_equal(rig.result.end, WR_END_FAILED);
    wr_engine_free(rig.engine);
    const struct wr_engine_open_options place = {.state_path = rig.state};
    assert_int_equal(wr_engine_open(&place, &rig.engine), 0);
    assert_int_equal(wr_engine_find_job(rig.engine, 0, &job), 0);
    assert_int_equal(job.status, WR_JOB_PENDING);
    assert_false(job.is_seeded);
    rig_tear_down(&rig);
}

static struct origin_reply answer_429(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.status = rig_is_robots(request) ? 404 : 429};
}

/* S2-14. */
static void job_is_cancelled_after_repeated_429_at_a_long_delay(void **state)
{
    struct crawl_fixture rig;
    weir_pace_options given;
    (void)state;
    rig_set_up(&rig, answer_429);
    assert_int_equal(weir_pace_options_profile(&given, WEIR_PROFILE_LEARNED), 0);
    given.base_delay_ns = 10 * MS;
    given.delay_up_ns = 20 * MS;
    given.cancel_after = 5;
    given.cancel_delay_ns = 50 * MS;
    given.breaker = false;
    given.retry.blocking_retries = 20;
    rig.options.pace = given;
    rig.options.failure_threshold = UINT32_MAX;
    start_with(&rig, 1);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_CANCELLED);
    int count = rig_asked(&rig, 1, "/");
    print_message("%d requests\n", count);
    assert_true(count >= 5 && count <= 9);
    rig_tear_down(&rig);
}

ENGINE_TESTS(test(drain_finishes_requests_in_flight_and_resume_does_the_rest),
             test(stop_abandons_requests_in_flight_and_resume_repeats_them), test(drain_becomes_a_stop_after_its_time),
             test(page_budget_is_kept_exactly), test(page_budget_is_kept_exactly_across_two_linked_loops),
             test(pages_per_host_are_bounded), test(links_are_followed_to_the_given_depth),
             test(links_skipped_by_a_budget_are_counted), test(bytes_of_a_crawl_are_bounded),
             test(time_of_a_crawl_is_bounded), test(crawl_that_reaches_its_time_limit_loses_no_page),
             test(finished_job_accepts_no_seeds), test(job_fails_after_the_threshold_of_failures_in_a_row),
             test(failed_job_can_be_resumed_and_counts_failures_from_zero),
             test(job_that_failed_before_all_seeds_arrived_is_pending),
             test(job_is_cancelled_after_repeated_429_at_a_long_delay))
