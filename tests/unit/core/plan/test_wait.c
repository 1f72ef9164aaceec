/* SPDX-License-Identifier: MIT */
/* test_wait.c - tests for how long a page was held, and for which reason (R28). */
#include "rig.h"

#define waited_is(action, ...) expect_waited(&(action).waited, &(struct wr_plan_waited){.ms = {__VA_ARGS__}}, __LINE__)

static void expect_waited(const struct wr_plan_waited *waited, const struct wr_plan_waited *expected, int line)
{
    for (int i = 0; i < WR_PLAN_REASONS; i++)
        if (waited->ms[i] != expected->ms[i])
            fail_msg("line %d: reason %d: %u ms, expected %u", line, i, waited->ms[i], expected->ms[i]);
}

/* Begins with one start per interval, and waits without jitter. */
static void begin(struct plan_store_fixture *rig, int64_t interval_ns)
{
    weir_pace_options pace;
    rig_init(rig);
    weir_pace_options_profile(&pace, WEIR_PROFILE_STRICT);
    pace.min_interval_ns = interval_ns;
    pace.max_in_flight = 4;
    pace.jitter_over_ns = WEIR_DURATION_MAX;
    assert_int_equal(wr_pace_options_check(&pace, &rig->options.pace), 0);
    rig_begin_job(rig);
}

/* R28: a page behind others waits for the queue, and the first page for the bound of its host. */
static void a_page_waits_behind_others_and_then_for_its_hosts_pace(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 3);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    waited_is(action, 0);
    rig_fetch(&rig, &action, 200);
    action = rig_page(&rig, rig.now + S);
    waited_is(action, [WEIR_REASON_PACE] = 1000);
    rig_fetch(&rig, &action, 200);
    action = rig_page(&rig, rig.now + S);
    waited_is(action, [WEIR_REASON_QUEUE] = 1000, [WEIR_REASON_PACE] = 1000);
    rig_fetch(&rig, &action, 200);
    rig_release(&rig);
}

/* The binding reason changes: each gets its part, and nothing is counted twice. */
static void each_reason_of_a_wait_gets_its_part(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    weir_outcome outcome = {.size = sizeof outcome, .status = 200, .has_retry_after = true, .retry_after_ns = 7 * S};
    begin(&rig, S);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_send(&rig, &action);
    rig.now += 400 * MS;
    wr_plan_page_finished(rig.plan, action.task, &outcome, 0, rig.now);
    rig.now += 2 * S; /* a user pauses the host meanwhile */
    struct wr_plan_host *host = wr_plan_host_find(rig.plan, wr_span_of("a.example"));
    wr_gate_pause(wr_plan_host_gate(host), true);
    wr_plan_host_changed(rig.plan, host, rig.now);
    rig.now += 600 * MS;
    wr_gate_pause(wr_plan_host_gate(host), false);
    wr_plan_host_changed(rig.plan, host, rig.now);
    action = rig_page(&rig, rig.now + 10 * S);
    waited_is(action, [WEIR_REASON_PACE] = 400, [WEIR_REASON_RETRY_AFTER] = 6400, [WEIR_REASON_PAUSED] = 600);
    rig_fetch(&rig, &action, 200);
    rig_release(&rig);
}

/* The wait applies before the body has arrived. */
static void retry_after_in_a_response_head_binds_at_once(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    weir_outcome head = {.size = sizeof head, .status = 429, .has_retry_after = true, .retry_after_ns = 7 * S};
    begin(&rig, S);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action slow = rig_page(&rig, rig.now);
    rig_send(&rig, &slow);
    struct wr_plan_action next = rig_page(&rig, rig.now + S), none;
    uint32_t news = wr_plan_response_head(rig.plan, slow.task, &head, rig.now);
    assert_int_equal(news, WR_GATE_CHANGE_RETRY_AFTER);
    weir_decision decision = wr_plan_may_send(rig.plan, next.task, rig.now);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.reason, WEIR_REASON_RETRY_AFTER);
    assert_int_equal(decision.wait_ns, 7 * S);
    wr_plan_task_given_back(rig.plan, next.task, rig.now);
    int64_t heard_at = rig.now;
    next = rig_page(&rig, rig.now + 10 * S);
    assert_int_equal(rig.now, heard_at + 7 * S);
    waited_is(next, [WEIR_REASON_RETRY_AFTER] = 7000);
    assert_int_equal(
        wr_plan_response_head(rig.plan, slow.task, &(weir_outcome){.size = sizeof head, .status = 200}, rig.now), 0);
    rig_send(&rig, &next);
    rig_tell(&rig, &next, 200);
    rig_tell(&rig, &slow, 200);
    wr_plan_next(rig.plan, rig.now, &none);
    rig_release(&rig);
}

/* A host that waits for a time is in the heap: the head of a response moves it. */
static void head_of_a_response_delays_a_host_that_is_due_soon(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    weir_outcome head = {.size = sizeof head, .status = 200, .has_retry_after = true, .retry_after_ns = 3 * S};
    begin(&rig, S);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action slow = rig_page(&rig, rig.now);
    rig_send(&rig, &slow);
    assert_int_equal(rig_next(&rig).at, rig.now + S);
    wr_plan_response_head(rig.plan, slow.task, &head, rig.now);
    assert_int_equal(rig_next(&rig).at, rig.now + 3 * S);
    rig_tell(&rig, &slow, 200);
    rig_release(&rig);
}

static void a_page_waits_for_robots_txt(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action robots = rig_wait(&rig, rig.now);
    assert_kind(robots, WR_PLAN_ROBOTS);
    waited_is(robots, 0);
    rig.now += 290 * MS;
    /* the request is sent now, and answered after 10 ms */
    rig_robots(&rig, &robots, 200, "User-agent: *\nDisallow: /0\n");
    struct wr_plan_action denied = rig_wait(&rig, rig.now + S);
    assert_kind(denied, WR_PLAN_END);
    waited_is(denied, [WEIR_REASON_ROBOTS] = 300, [WEIR_REASON_PACE] = 990);
    struct wr_plan_action page = rig_page(&rig, rig.now);
    waited_is(page, [WEIR_REASON_QUEUE] = 1290);
    rig_fetch(&rig, &page, 200);
    rig_release(&rig);
}

/* The backoff belongs to one page; other pages are started meanwhile. */
static void retried_page_waits_for_its_backoff(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin(&rig, 100 * MS);
    rig_offer_many(&rig, 1, "a.example", 1);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    struct wr_task_outcome fate = rig_fetch(&rig, &action, 500);
    assert_int_equal(fate.kind, WR_TASK_OUTCOME_RETRY);
    int64_t failed_at = rig.now;
    uint32_t backoff = (uint32_t)((fate.at - failed_at) / MS);
    assert_true(backoff > 100); /* longer than the interval */
    action = rig_page(&rig, rig.now + 10 * S);
    uint32_t pace = (uint32_t)((rig.now - failed_at) / MS) - backoff;
    waited_is(action, [WEIR_REASON_RETRY] = backoff, [WEIR_REASON_PACE] = pace);
    rig_offer(&rig, 1, "http://a.example/other");
    fate = rig_fetch(&rig, &action, 500);
    failed_at = rig.now;
    backoff = (uint32_t)((fate.at - failed_at) / MS);
    struct wr_plan_action other = rig_page(&rig, rig.now + 10 * S);
    assert_url(other, "http://a.example/other");
    rig_fetch(&rig, &other, 200);
    action = rig_page(&rig, rig.now + 10 * S);
    uint32_t in_all = (uint32_t)((rig.now - failed_at) / MS);
    assert_true(action.waited.ms[WEIR_REASON_RETRY] + 1 >= backoff);
    assert_true(action.waited.ms[WEIR_REASON_RETRY] + action.waited.ms[WEIR_REASON_PACE] + 1 >= in_all);
    assert_int_equal(action.waited.ms[WEIR_REASON_QUEUE], 0);
    rig_fetch(&rig, &action, 200);
    rig_release(&rig);
}

enum limit {
    LIMIT_ALL,
    LIMIT_JOB,
    LIMIT_HOST,
    LIMIT_PAUSE,
    LIMIT_STORE
};

/* Waits that a host's pace does not cause. */
static void global_job_and_host_limits_are_distinct_wait_reasons(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    static const struct {
        enum limit limit;
        weir_reason reason;
    } cases[] = {{LIMIT_ALL, WEIR_REASON_GLOBAL},
                 {LIMIT_JOB, WEIR_REASON_JOB_LIMIT},
                 {LIMIT_HOST, WEIR_REASON_CONCURRENCY},
                 {LIMIT_PAUSE, WEIR_REASON_PAUSED},
                 {LIMIT_STORE, WEIR_REASON_QUEUE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum limit limit = cases[i].limit;
        weir_pace_options pace;
        struct wr_plan_waited expected = {.ms = {[WEIR_REASON_PACE] = 0}};
        rig_init(&rig);
        weir_pace_options_profile(&pace, WEIR_PROFILE_UNLIMITED);
        pace.max_in_flight = limit == LIMIT_HOST ? 1 : 6;
        assert_int_equal(wr_pace_options_check(&pace, &rig.options.pace), 0);
        rig.options.max_in_flight = limit == LIMIT_ALL ? 1 : 0;
        rig_begin(&rig);
        assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .concurrency = limit == LIMIT_JOB}),
                         0);
        rig_offer_many(&rig, 1, "a.example", 1);
        struct wr_plan_action first = rig_page(&rig, rig.now), none;
        rig_send(&rig, &first);
        rig.store_is_slow = limit == LIMIT_STORE;
        rig_offer(&rig, 1, limit == LIMIT_HOST ? "http://a.example/1" : "http://b.example/1");
        none = rig_next(&rig);
        if (limit == LIMIT_PAUSE) {
            wr_plan_task_given_back(rig.plan, none.task, rig.now);
            wr_plan_job_pause(rig.plan, 1, WEIR_REASON_PAUSED);
            rig_next(&rig);
        }
        rig.now += 3 * S;
        if (limit == LIMIT_PAUSE)
            wr_plan_job_pause(rig.plan, 1, WEIR_REASON_NONE);
        if (limit == LIMIT_STORE)
            rig_answer_load(&rig, &none);
        else
            rig_tell(&rig, &first, 200);
        struct wr_plan_action action = rig_page(&rig, rig.now);
        expected.ms[cases[i].reason] = 3000;
        expect_waited(&action.waited, &expected, (int)i);
        rig_fetch(&rig, &action, 200);
        if (limit == LIMIT_STORE)
            rig_tell(&rig, &first, 200);
        wr_plan_job_end(rig.plan, 1);
        rig_next(&rig);
        rig_release(&rig);
    }
}

/* Microseconds are summed without rounding losses. */
static void short_waits_are_summed_without_rounding(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_host_report report;
    begin(&rig, 300 * WEIR_MICROSECOND);
    rig_offer_many(&rig, 1, "a.example", 101);
    for (int i = 0; i < 101; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + S);
        rig_send(&rig, &action);
        rig_tell(&rig, &action, 200);
    }
    wr_plan_host_report(rig.plan, wr_plan_host_find(rig.plan, wr_span_of("a.example")), rig.now, &report);
    assert_in_range(report.waited.ms[WEIR_REASON_PACE], 29, 30);
    rig_release(&rig);
}

WEIR_TESTS(test(a_page_waits_behind_others_and_then_for_its_hosts_pace), test(each_reason_of_a_wait_gets_its_part),
           test(retry_after_in_a_response_head_binds_at_once), test(head_of_a_response_delays_a_host_that_is_due_soon),
           test(a_page_waits_for_robots_txt), test(retried_page_waits_for_its_backoff),
           test(global_job_and_host_limits_are_distinct_wait_reasons), test(short_waits_are_summed_without_rounding))
