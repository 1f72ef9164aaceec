/* SPDX-License-Identifier: MIT */
/* test_learn.c - tests of hosts that refuse or fail: the pace that a crawl finds, and what it
 * remembers. */
#include "engine/rig.h"

/* ---- a limit that the server does not report ---- */

#define PAGES 150
#define RATE 30.0
#define BURST 6.0

struct bucket {
    double tokens;
    int64_t at;
    int refused;
};

/* Refuses requests above RATE per second. */
static struct origin_reply answer_limited(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    struct bucket *bucket = rig->site;
    if (bucket->at != 0)
        bucket->tokens += RATE * (double)(request->at - bucket->at) / 1e9;
    bucket->tokens = bucket->at == 0 || bucket->tokens > BURST ? BURST : bucket->tokens;
    bucket->at = request->at;
    if (bucket->tokens < 1) {
        bucket->refused++;
        return (struct origin_reply){.status = 429};
    }
    bucket->tokens -= 1;
    return rig_tree(rig, request, PAGES, NULL);
}

/* Returns the number of retries per page that was refused at first. */
static double retries_of_refused(const struct crawl_fixture *rig)
{
    int retries = 0, refused = 0;
    for (size_t i = 0; i < rig->line_count; i++) {
        int attempts = (int)json_integer_value(json_object_get(rig->lines[i], "attempts"));
        retries += attempts - 1;
        refused += attempts > 1;
    }
    return refused > 0 ? (double)retries / refused : 0;
}

/* S0-94, S0-96: judges the second half of the requests. */
static void pace_settles_below_an_unannounced_limit(void **state)
{
    struct crawl_fixture rig;
    struct bucket bucket = {.at = 0};
    (void)state;
    rig_set_up(&rig, answer_limited);
    rig.site = &bucket;
    rig_profile(&rig, WEIR_PROFILE_ADAPTIVE);
    rig.options.pace.max_rate = 1000;
    rig.options.pace.retry.blocking_retries = 10;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    rig_await_requests(&rig, (PAGES + 1) / 2);
    int half = origin_requests(rig.origin), refused_before = bucket.refused;
    rig_finish(&rig);
    int later = origin_requests(rig.origin) - half, refused = bucket.refused - refused_before;
    double retries = retries_of_refused(&rig);
    print_message("%d refused of %d in the first half, %d of %d in the second; %.2f retries each\n", refused_before,
                  half, refused, later, retries);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    rig_assert_trees(&rig, 1, 1, PAGES);
    assert_true(refused < later / 10);
    assert_true(retries < 3);
    rig_tear_down(&rig);
}

/* ---- a delay that is learned ---- */

#define REFUSALS 6

/* Refuses REFUSALS pages after the first, then none. */
static struct origin_reply answer_busy_at_first(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    int *asked = rig->site;
    if (!rig_is_robots(request) && ++*asked > 1 && *asked <= 1 + REFUSALS)
        return (struct origin_reply){.status = 429};
    return rig_tree(rig, request, 30, NULL);
}

static void learn_quickly(struct crawl_fixture *rig)
{
    rig_profile(rig, WEIR_PROFILE_LEARNED);
    weir_pace_options *pace = &rig->options.pace;
    pace->base_delay_ns = 20 * MS;
    pace->delay_up_ns = 60 * MS;
    pace->delay_down_ns = 60 * MS;
    pace->probe_after = 2;
    pace->concurrency_step_ns = 50 * MS;
    pace->retry.blocking_retries = 20;
    pace->breaker = false;
}

/* ---- the log ---- */

/* Returns 429 three times for the home page. */
static struct origin_reply answer_three_429(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (strcmp(request->path, "/") == 0 && rig_asked_before(rig, request) < 3)
        return (struct origin_reply){.status = 429};
    return rig_tree(rig, request, 12, NULL);
}

struct logged {
    int requests, waits, changes;
    json_int_t longest_ms; /* longest delay */
};

static void read_log(const char *path, const char *host, struct logged *ret_logged)
{
    char line[2048];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    *ret_logged = (struct logged){.requests = 0};
    while (fgets(line, sizeof line, file) != NULL) {
        json_error_t error;
        json_t *entry = json_loads(line, 0, &error);
        assert_non_null(entry);
        assert_string_equal(json_string_value(json_object_get(entry, "host")), host);
        bool is_change = strcmp(json_string_value(json_object_get(entry, "kind")), "pace") == 0;
        json_int_t delay_ms = json_integer_value(json_object_get(entry, "delay_ms"));
        const char *reason = json_string_value(json_object_get(entry, "waited_for"));
        json_int_t waited_ms = json_integer_value(json_object_get(entry, "waited_ms"));
        ret_logged->changes += is_change;
        ret_logged->longest_ms = delay_ms > ret_logged->longest_ms ? delay_ms : ret_logged->longest_ms;
        ret_logged->requests += !is_change;
        ret_logged->waits += !is_change && waited_ms > 0 && strcmp(reason, "pace") == 0;
        assert_true(is_change || (waited_ms > 0) == (strcmp(reason, "none") != 0));
        json_decref(entry);
    }
    (void)fclose(file);
}

/* S1-15: each wait is logged with length and host. S2-23: each change of a learned delay is logged
 * with host, delay and failures. */
static void waits_and_changes_of_a_delay_are_logged(void **state)
{
    struct crawl_fixture rig;
    struct logged logged;
    char path[RIG_PATH + 16];
    (void)state;
    rig_set_up(&rig, answer_three_429);
    learn_quickly(&rig);
    (void)snprintf(path, sizeof path, "%s/log", rig.folder);
    rig.options.log_path = path;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_finish(&rig);
    const char *host = rig_url(&rig, 1, "") + strlen("http://");
    read_log(path, host, &logged);
    print_message("%d requests, %d waited for the pace, %d changes of it, to %lld ms\n", logged.requests, logged.waits,
                  logged.changes, (long long)logged.longest_ms);
    assert_int_equal(logged.requests, origin_requests(rig.origin));
    assert_true(logged.waits > 0);
    assert_true(logged.changes >= 4); /* raised three times, then lowered */
    assert_int_equal(logged.longest_ms, 20 + 3 * 60);
    rig_tear_down(&rig);
}

static void take_memory(void *context, const struct wr_store_row *row)
{
    *(weir_pace_memory *)context = row->host.memory;
}

static weir_pace_memory memory_of(const struct crawl_fixture *rig, int host)
{
    struct wr_store *store;
    struct wr_span key = wr_span_of(rig_url(rig, host, ""));
    weir_pace_memory memory = {.delay_ns = -1};
    key = wr_span_after(key, strlen("http://"));
    assert_int_equal(wr_store_open(&(struct wr_store_options){.path = rig->state}, &store), 0);
    assert_int_equal(wr_store_read(store,
                                   &(struct wr_store_query){
                                       .what = WR_STORE_ONE_HOST, .key = key, .row = take_memory, .context = &memory}),
                     0);
    wr_store_free(store);
    return memory;
}

/* S2-31, S2-17, S2-18, S2-24. */
static void delay_rises_with_429_and_falls_again(void **state)
{
    struct crawl_fixture rig;
    int asked = 0, count;
    (void)state;
    rig_set_up(&rig, answer_busy_at_first);
    rig.site = &asked;
    learn_quickly(&rig);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    rig_assert_trees(&rig, 1, 1, 30);
    assert_int_equal(rig.result.stats.rejected, REFUSALS);
    assert_true(rig.result.stats.overrides >= 2); /* concurrency lowered, then restored */
    const int64_t raised_ns = REFUSALS * 60 * MS - STAMP_SLACK_NS;
    int64_t *times = rig_arrivals(&rig, 1, &count), longest_ns = 0, then_ns = INT64_MAX;
    for (int i = 1; i < count; i++) {
        int64_t gap_ns = times[i] - times[i - 1];
        if (longest_ns >= raised_ns && gap_ns < then_ns)
            then_ns = gap_ns;
        longest_ns = gap_ns > longest_ns ? gap_ns : longest_ns;
    }
    print_message("longest %.0f ms, then %.0f ms\n", (double)longest_ns / 1e6, (double)then_ns / 1e6);
    assert_true(longest_ns >= raised_ns);
    assert_true(SANITIZED || then_ns < raised_ns);
    free(times);
    rig_tear_down(&rig);
}

#define SLOW_NS (300 * MS)

static struct origin_reply answer_slowly_and_busy(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    int *asked = rig->site;
    if (!rig_is_robots(request) && ++*asked > 1 && *asked <= 1 + REFUSALS)
        return (struct origin_reply){.status = 429};
    struct origin_reply reply = rig_tree(rig, request, 12, NULL);
    reply.delay_ns = rig_is_robots(request) ? 0 : SLOW_NS;
    return reply;
}

/* S2-17, R14: after three steps of delay one of four concurrent requests is left, though the delay
 * alone allows more. */
static void host_that_refused_gets_fewer_concurrent_requests(void **state)
{
    struct crawl_fixture rig;
    int asked = 0, last = 0;
    (void)state;
    rig_set_up(&rig, answer_slowly_and_busy);
    rig.site = &asked;
    learn_quickly(&rig);
    rig.options.pace.delay_up_ns = 15 * MS;
    rig.options.pace.concurrency_step_ns = 25 * MS;
    rig.options.pace.probe_after = 1000;
    rig.options.concurrency = 4;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_finish(&rig);
    rig_assert_trees(&rig, 1, 1, 12);
    for (int i = 3 + REFUSALS; i < origin_requests(rig.origin); i++) {
        struct origin_request before = origin_request(rig.origin, i - 1), now = origin_request(rig.origin, i);
        if (now.at < before.done_at)
            fail_msg("request %d arrived while another was in progress", i);
        last = i;
    }
    assert_int_equal(last, 1 + REFUSALS + 12 - 1);
    rig_tear_down(&rig);
}

static struct origin_reply answer_always_busy(void *context, const struct origin_request *request)
{
    return rig_is_robots(request) || strcmp(request->path, "/") == 0 ? rig_tree(context, request, 30, NULL)
                                                                     : (struct origin_reply){.status = 429};
}

/* S2-31, R23: a learned delay is stored, and applies in the next run. */
static void learned_delay_is_kept_in_the_next_run(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_always_busy);
    learn_quickly(&rig);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    rig_await_requests(&rig, 8);
    wr_engine_drain(rig.engine);
    rig_finish(&rig);
    int64_t delay_ns = memory_of(&rig, 1).delay_ns;
    print_message("learned: %.0f ms\n", (double)delay_ns / 1e6);
    assert_true(delay_ns >= 5 * 60 * MS);
    int before = origin_requests(rig.origin);
    int64_t restarted_at = monotonic();
    rig_start(&rig);
    rig_seeded(&rig);
    rig_await_requests(&rig, before + 2);
    wr_engine_stop(rig.engine);
    rig_finish(&rig);
    assert_true(origin_request(rig.origin, before).at - restarted_at >= delay_ns - STAMP_SLACK_NS);
    assert_true(origin_request(rig.origin, before + 1).at - origin_request(rig.origin, before).at >=
                delay_ns - STAMP_SLACK_NS);
    rig_tear_down(&rig);
}

/* ---- Retry-After ---- */

static struct origin_reply answer_later(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (rig_host(request) == 1 && strcmp(request->path, "/5") == 0 && rig_asked_before(rig, request) == 0)
        return (struct origin_reply){.status = 429, .fields = "Retry-After: 2\r\n", .stall_ns = 500 * MS};
    return rig_tree(rig, request, 60, NULL);
}

/* V2: applies from the head of the response, however long the body takes. Requests sent before that
 * cannot be withdrawn. */
static void retry_after_pauses_its_whole_host_and_no_other(void **state)
{
    struct crawl_fixture rig;
    struct origin_request named = {.number = 0};
    int others = 0;
    (void)state;
    rig_set_up(&rig, answer_later);
    rig.options.loops = 2;
    rig_space(&rig, 25 * MS);
    rig_start(&rig);
    for (int host = 1; host <= 4; host++)
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
    rig_finish(&rig);
    rig_assert_trees(&rig, 1, 4, 60);
    for (int i = 0; i < origin_requests(rig.origin); i++) {
        struct origin_request request = origin_request(rig.origin, i);
        bool is_first = named.told_at == 0 && rig_host(&request) == 1 && strcmp(request.path, "/5") == 0;
        named = is_first ? request : named;
        if (named.told_at == 0 || request.at <= named.done_at + 4 * STAMP_SLACK_NS ||
            request.at >= named.done_at + 2 * WEIR_SECOND - STAMP_SLACK_NS)
            continue;
        others += rig_host(&request) != 1;
        if (rig_host(&request) == 1)
            fail_msg("%s came %.3f s after Retry-After: 2", request.path, (double)(request.at - named.done_at) / 1e9);
    }
    assert_true(others > 5);
    rig_tear_down(&rig);
}

/* ---- one failing host ---- */

/* Host 1 refuses every page after 300 ms. */
static struct origin_reply answer_one_bad(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (rig_host(request) == 1 && !rig_is_robots(request))
        return (struct origin_reply){.status = 503, .delay_ns = 300 * MS};
    return rig_tree(rig, request, 20, NULL);
}

static int64_t last_arrival(const struct crawl_fixture *rig, int host, int least)
{
    int count;
    int64_t *times = rig_arrivals(rig, host, &count), last_at = count > 0 ? times[count - 1] : 0;
    assert_true(count >= least);
    free(times);
    return last_at;
}

/* S0-97: the failing host has more URLs than requests in flight are allowed, and the other hosts
 * are done before it. */
static void failing_host_slows_no_other(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_one_bad);
    rig.options.loops = 2;
    rig.options.concurrency = 16;
    rig.options.failure_threshold = UINT32_MAX;
    rig.options.pace.retry.blocking_retries = 1;
    rig_space(&rig, 20 * MS);
    rig_start(&rig);
    for (int i = 0; i < 40; i++)
        rig_seed(&rig, "http://127.0.0.1:%d/bad/%d", rig.port, i);
    for (int host = 2; host <= 10; host++)
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
    rig_finish(&rig);
    assert_int_equal(rig_verdicts(&rig, "fetched"), 9 * 20);
    assert_int_equal(rig_verdicts(&rig, "failed"), 40);
    int64_t bad_at = last_arrival(&rig, 1, 40);
    for (int host = 2; host <= 10; host++)
        if (last_arrival(&rig, host, 21) >= bad_at)
            fail_msg("host %d waited for the failing host", host);
    rig_tear_down(&rig);
}

/* ---- one failure ---- */

static struct origin_reply answer_503_once(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (strcmp(request->path, "/5") == 0 && rig_asked_before(rig, request) == 0)
        return (struct origin_reply){.status = 503};
    return rig_tree(rig, request, 20, NULL);
}

/* The server names no time, so the retry comes soon. */
static void single_503_delays_its_page_by_seconds_at_most(void **state)
{
    static const weir_profile profiles[] = {WEIR_PROFILE_ADAPTIVE, WEIR_PROFILE_LEARNED, WEIR_PROFILE_AIMD};
    (void)state;
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        struct crawl_fixture rig;
        rig_set_up(&rig, answer_503_once);
        rig_profile(&rig, profiles[i]);
        rig_start(&rig);
        rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
        rig_finish(&rig);
        rig_assert_trees(&rig, 1, 1, 20);
        assert_int_equal(rig_number(&rig, rig_url(&rig, 1, "/5"), "attempts"), 2);
        json_t *waits = json_object_get(rig_line(&rig, rig_url(&rig, 1, "/5")), "wait_ms");
        const char *reason;
        json_t *ms;
        json_object_foreach(waits, reason, ms) if (json_integer_value(ms) > 10000)
            fail_msg("the page waited %lld ms for %s", (long long)json_integer_value(ms), reason);
        rig_tear_down(&rig);
    }
}

ENGINE_TESTS(test(waits_and_changes_of_a_delay_are_logged), test(pace_settles_below_an_unannounced_limit),
             test(delay_rises_with_429_and_falls_again), test(host_that_refused_gets_fewer_concurrent_requests),
             test(learned_delay_is_kept_in_the_next_run), test(retry_after_pauses_its_whole_host_and_no_other),
             test(failing_host_slows_no_other), test(single_503_delays_its_page_by_seconds_at_most))
