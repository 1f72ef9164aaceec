/* SPDX-License-Identifier: MIT */
/* test_time.c - tests that a crawl ends at its time limit whatever its hosts do, and that the wait
 * is attributed to the limit.
 *
 * No test measures seconds: the servers hold their responses for an hour, so the end of the crawl
 * is the proof. The crawl's clock stands still until the crawl is in the right state, and is never
 * ahead of the real clock. So no machine is too slow to add the seeds in time.
 */
#include "crawl/engine/crawl_inspect.h"
#include "crawl/store/store.h"
#include "engine/held.h"
#include "engine/rig.h"

#define PAGES 30
#define LONG WEIR_HOUR
#define TIME (400 * MS)
#define GRACE (200 * MS)

static atomic_bool is_kind; /* true: the server answers everything at once */

/* ---- servers ---- */

static struct origin_reply answer_kindly(void *context, const struct origin_request *request)
{
    return rig_tree(context, request, PAGES, NULL);
}

static bool is_first_page(const struct origin_request *request)
{
    return strcmp(request->path, "/") == 0;
}

static struct origin_reply never_answers(void *context, const struct origin_request *request)
{
    struct origin_reply reply = answer_kindly(context, request);
    if (!is_kind && !is_first_page(request) && !rig_is_robots(request))
        reply.delay_ns = LONG;
    return reply;
}

static struct origin_reply stops_in_the_middle(void *context, const struct origin_request *request)
{
    struct origin_reply reply = answer_kindly(context, request);
    if (!is_kind && !is_first_page(request) && !rig_is_robots(request))
        reply.stall_ns = LONG;
    return reply;
}

static struct origin_reply robots_never_come(void *context, const struct origin_request *request)
{
    struct origin_reply reply = answer_kindly(context, request);
    if (!is_kind && rig_is_robots(request))
        reply.delay_ns = LONG;
    return reply;
}

static struct origin_reply robots_never_end(void *context, const struct origin_request *request)
{
    struct origin_reply reply = answer_kindly(context, request);
    if (!is_kind && rig_is_robots(request))
        reply = (struct origin_reply){.body = "User-agent: *\n", .stall_ns = LONG};
    return reply;
}

static struct origin_reply crawl_delay_is_long(void *context, const struct origin_request *request)
{
    if (rig_is_robots(request))
        return (struct origin_reply){.body = "User-agent: *\nCrawl-delay: 3600\n"};
    return answer_kindly(context, request);
}

static struct origin_reply says_later(void *context, const struct origin_request *request)
{
    if (is_first_page(request) || rig_is_robots(request))
        return answer_kindly(context, request);
    return (struct origin_reply){.status = 503, .fields = "Retry-After: 3600\r\n"};
}

static void names_hang(void *context, const char *name, struct wr_dns_answer *ret_answer)
{
    (void)context, (void)name, (void)ret_answer;
    for (;;)
        sleep_ns(LONG);
}

/* ---- a crawl with a short time limit ---- */

static atomic_int told; /* warnings that the crawl is finishing */

static void note_warning(void *context, const char *line)
{
    (void)context;
    (void)atomic_fetch_add(&told, strstr(line, "--max-time): finishing the requests in flight, for at most ") != NULL);
}

static void begin(struct crawl_fixture *rig, origin_answer *answer)
{
    is_kind = false;
    told = 0;
    rig_set_up(rig, answer);
    rig->options.loops = 2;
    rig->options.max_time_ns = TIME;
    rig->options.drain_ns = GRACE;
    rig->options.pace.max_in_flight = 1; /* so that some pages are left */
    rig->options.warn = note_warning;
    hold_clock();
}

static void end(struct crawl_fixture *rig)
{
    rig_tear_down(rig);
    free_clock();
}

/* Adds two seeds, and lets the clock run when this number of requests has arrived. */
static void seed_two(struct crawl_fixture *rig, int requests)
{
    start_held(rig);
    rig_seed(rig, "%s", rig_url(rig, 1, "/"));
    rig_seed(rig, "%s", rig_url(rig, 2, "/"));
    rig_seeded(rig);
    rig_await_requests(rig, requests);
    let_clock_run();
}

struct waits {
    int64_t ns[WEIR_REASON_QUEUE + 1];
};

static void add_waits(void *context, const struct wr_engine_host_report *host)
{
    struct waits *waits = context;
    for (int reason = 0; reason <= WEIR_REASON_QUEUE; reason++)
        waits->ns[reason] += host->waited_ns[reason];
}

static void finish(struct crawl_fixture *rig, struct waits *ret_waits)
{
    *ret_waits = (struct waits){.ns = {0}};
    if (!rig_await_end(rig, (SANITIZED ? 200 : 60) * WEIR_SECOND))
        fail_msg("the crawl does not end at its time limit");
    wr_engine_finish(rig->engine, &rig->result);
    (void)wr_engine_report(rig->engine, add_waits, ret_waits);
    wr_engine_free(rig->engine);
    rig->engine = NULL;
    rig_read_lines(rig);
}

static void on_job(void *context, const struct wr_store_row *row)
{
    (void)snprintf(context, 256, "%s: %.*s", wr_job_status_name(row->job.status), (int)row->job.why.bytes,
                   row->job.why.data);
}

/* Returns status and reason of the job in the state file, as in "running: why". */
static const char *job_in_state(const struct crawl_fixture *rig)
{
    static char text[256];
    struct wr_store *store;
    assert_int_equal(wr_store_open(&(struct wr_store_options){.path = rig->state}, &store), 0);
    assert_int_equal(wr_store_read(store,
                                   &(struct wr_store_query){
                                       .what = WR_STORE_JOBS, .job = rig->result.job, .row = on_job, .context = text}),
                     0);
    wr_store_free(store);
    return text;
}

static void assert_waits_have_reason_job_limit(struct crawl_fixture *rig, const struct waits *waits, const char *status)
{
    char expected[512];
    assert_int_equal(rig->result.end, WR_END_BUDGET);
    assert_string_equal(rig->result.why, "the time limit was reached (--max-time)");
    assert_int_equal(told, 1);
    assert_int_equal(waits->ns[WEIR_REASON_PAUSED], 0);
    assert_int_equal(rig_verdicts(rig, "failed") + rig_verdicts(rig, "expired"), 0);
    (void)snprintf(expected, sizeof expected, "%s: %s", status, rig->result.why);
    assert_string_equal(job_in_state(rig), expected);
    rig_check_store(rig);
}

/* M14, N1-7. */
static void time_limit_ends_a_crawl_whose_hosts_never_answer(void **state)
{
    static const struct {
        origin_answer *answer;
        int requests; /* robots.txt, the first page and the next one, of two hosts */
    } hosts[] = {{never_answers, 6},    {stops_in_the_middle, 6}, {robots_never_come, 2},
                 {robots_never_end, 2}, {says_later, 6},          {crawl_delay_is_long, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        struct crawl_fixture rig;
        struct waits waits;
        begin(&rig, hosts[i].answer);
        seed_two(&rig, hosts[i].requests);
        finish(&rig, &waits);
        assert_waits_have_reason_job_limit(&rig, &waits, "running");
        if (i < 4) { /* a request was in flight, so the others waited for the grace period */
            assert_true(waits.ns[WEIR_REASON_JOB_LIMIT] > 0);
            is_kind = true;
            rig.options.max_time_ns = 0;
            rig_start(&rig);
            assert_false(rig.is_new);
            rig_finish(&rig);
            assert_int_equal(rig.result.end, WR_END_COMPLETED);
            rig_assert_trees(&rig, 1, 2, PAGES);
            assert_string_equal(job_in_state(&rig), "completed: ");
        }
        end(&rig);
    }
}

static void time_limit_ends_a_crawl_whose_names_are_never_answered(void **state)
{
    struct crawl_fixture rig;
    struct waits waits;
    (void)state;
    begin(&rig, answer_kindly);
    rig.options.lookup = names_hang;
    start_held(&rig);
    rig_seed(&rig, "http://hanging.test:%d/", rig.port);
    rig_seeded(&rig);
    let_clock_run();
    finish(&rig, &waits);
    assert_waits_have_reason_job_limit(&rig, &waits, "running");
    end(&rig);
}

static void time_limit_ends_a_crawl_whose_hosts_are_paused(void **state)
{
    struct crawl_fixture rig;
    struct waits waits;
    char key[64];
    (void)state;
    begin(&rig, answer_kindly);
    start_held(&rig);
    (void)snprintf(key, sizeof key, "127.0.0.1:%d", rig.port);
    assert_int_equal(wr_engine_pause(rig.engine, wr_span_of(key), true), 0);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    let_clock_run();
    finish(&rig, &waits);
    assert_waits_have_reason_job_limit(&rig, &waits, "running");
    assert_int_equal(origin_requests(rig.origin), 0);
    end(&rig);
}

/* Some seeds are missing and must be given again. The state file says so, too. */
static void time_limit_ends_a_crawl_that_waits_for_seeds(void **state)
{
    struct crawl_fixture rig;
    struct waits waits;
    (void)state;
    begin(&rig, answer_kindly);
    start_held(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    let_clock_run();
    finish(&rig, &waits);
    assert_waits_have_reason_job_limit(&rig, &waits, "pending");
    end(&rig);
}

/* ---- during the grace period ---- */

static void await_finishing(void)
{
    int64_t until = monotonic() + WEIR_MINUTE;
    while (told == 0) {
        assert_true(monotonic() < until);
        sleep_ns(MS);
    }
}

static bool holds(const struct wr_why *why, weir_reason reason)
{
    for (size_t i = 0; i < why->bound_count; i++)
        if (why->bounds[i].reason == reason && why->bounds[i].wait_ns == WEIR_UNTIL_RELEASE)
            return true;
    return false;
}

/* Waits until a host is held for this reason: the loop learns of the limit after the engine.
 * Returns the reason. */
static weir_reason held_for(struct crawl_fixture *rig, const char *key, weir_reason expected)
{
    struct wr_host_view seen;
    int64_t until = monotonic() + WEIR_MINUTE;
    do {
        assert_int_equal(wr_engine_inspect_host(rig->engine, wr_span_of(key), &seen), 0);
    } while (seen.why.reason != expected && monotonic() < until);
    return seen.why.reason;
}

/* M14: inspection reports the reason for the wait, and a stop works as usual. */
static void host_waits_with_reason_job_limit_after_the_time_limit(void **state)
{
    struct crawl_fixture rig;
    struct waits waits;
    struct wr_why why;
    struct wr_host_views *look;
    struct wr_url url;
    char key[64], memory[WR_URL_ROOM];
    (void)state;
    begin(&rig, never_answers);
    rig.options.drain_ns = LONG;
    seed_two(&rig, 6);
    await_finishing();
    (void)snprintf(key, sizeof key, "127.0.0.1:%d", rig.port);
    assert_int_equal(held_for(&rig, key, WEIR_REASON_JOB_LIMIT), WEIR_REASON_JOB_LIMIT);
    assert_int_equal(wr_url_parse(wr_span_of(rig_url(&rig, 1, "/2")), NULL, NULL, memory, sizeof memory, &url),
                     WR_URL_OK);
    assert_int_equal(wr_engine_why(rig.engine, &url, &why), 0);
    assert_true(holds(&why, WEIR_REASON_JOB_LIMIT));
    assert_false(holds(&why, WEIR_REASON_PAUSED));
    assert_int_equal(why.expected_ns, -1);
    assert_int_equal(wr_engine_inspect_hosts(rig.engine, &(struct wr_host_view_query){.sort = WR_SORT_NAME}, &look), 0);
    assert_int_equal(look->sums.states[WR_HOST_PAUSED], 0); /* like the metrics */
    wr_host_views_free(look);
    assert_false(rig_await_end(&rig, 0));
    wr_engine_drain(rig.engine); /* the first signal */
    wr_engine_stop(rig.engine);  /* the second signal */
    finish(&rig, &waits);
    assert_waits_have_reason_job_limit(&rig, &waits, "running");
    end(&rig);
}

/* The grace period also bounds the end of a failed job. */
static struct origin_reply fails_or_never_answers(void *context, const struct origin_request *request)
{
    struct origin_reply reply = answer_kindly(context, request);
    if (rig_is_robots(request) || is_first_page(request))
        return reply;
    if (rig_host(request) == 1)
        return (struct origin_reply){.status = 500};
    reply.delay_ns = LONG;
    return reply;
}

static void failed_job_waits_at_most_its_grace_period_for_requests_in_flight(void **state)
{
    struct crawl_fixture rig;
    struct waits waits;
    (void)state;
    begin(&rig, fails_or_never_answers);
    rig.options.max_time_ns = 0;
    rig.options.failure_threshold = 2;
    rig.options.pace.retry.attempts = 1;
    rig_space(&rig, 100 * MS);
    seed_two(&rig, 0);
    finish(&rig, &waits);
    assert_int_equal(rig.result.end, WR_END_FAILED);
    assert_int_equal(waits.ns[WEIR_REASON_PAUSED], 0);
    assert_string_equal(job_in_state(&rig), "failed: too many failures in a row");
    end(&rig);
}

ENGINE_TESTS(test(time_limit_ends_a_crawl_whose_hosts_never_answer),
             test(time_limit_ends_a_crawl_whose_names_are_never_answered),
             test(time_limit_ends_a_crawl_whose_hosts_are_paused), test(time_limit_ends_a_crawl_that_waits_for_seeds),
             test(host_waits_with_reason_job_limit_after_the_time_limit),
             test(failed_job_waits_at_most_its_grace_period_for_requests_in_flight))
