/* SPDX-License-Identifier: MIT */
/* test_retry.c - tests retries, deferral and its end (R5, R6), and the reasons why a host waits
 * (R28). */
#include "rig.h"

static void begin(struct plan_store_fixture *rig, int urls)
{
    rig_plain(rig);
    rig_offer_many(rig, 1, "a.example", urls);
}

static void a_transient_failure_is_tried_three_times_and_a_blocked_one_four(void **state)
{
    (void)state;
    static const struct {
        int status, tries;
        enum wr_retry_step why;
    } table[] = {{0, 3, WR_RETRY_SPENT},   {500, 3, WR_RETRY_SPENT}, {429, 4, WR_RETRY_SPENT},
                 {503, 4, WR_RETRY_SPENT}, {403, 4, WR_RETRY_SPENT}, {404, 1, WR_RETRY_PERMANENT},
                 {200, 1, WR_RETRY_DONE},  {304, 1, WR_RETRY_DONE},  {999, 4, WR_RETRY_SPENT}};
    static struct plan_store_fixture rig;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        begin(&rig, 1);
        struct wr_task_outcome fate = {.kind = WR_TASK_OUTCOME_RETRY};
        int tries = 0;
        while (fate.kind == WR_TASK_OUTCOME_RETRY) {
            struct wr_plan_action action = rig_wait(&rig, rig.now + 20 * S);
            assert_kind(action, WR_PLAN_START);
            assert_int_equal(action.attempts, tries);
            fate = rig_fetch(&rig, &action, table[i].status);
            assert_int_equal(fate.attempts, ++tries);
            assert_true(fate.kind != WR_TASK_OUTCOME_RETRY || fate.at >= rig.now);
        }
        assert_int_equal(tries, table[i].tries);
        assert_int_equal(fate.why, table[i].why);
        assert_kind(rig_wait(&rig, rig.now + S), WR_PLAN_DRAINED);
        rig_release(&rig);
    }
}

/* U1: a task in backoff does not block others. */
static void other_tasks_start_while_one_is_in_backoff(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.pace.retry.base_ns = rig.options.pace.retry.max_ns = 60 * S;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 4);
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    struct wr_task_outcome fate = rig_fetch(&rig, &action, 500);
    assert_int_equal(fate.kind, WR_TASK_OUTCOME_RETRY);
    for (int i = 1; i < 4; i++) {
        char url[64];
        snprintf(url, sizeof url, "http://a.example/%d", i);
        action = rig_wait(&rig, rig.now + S);
        assert_url(action, url);
        rig_fetch(&rig, &action, 200);
    }
    weir_decision why = wr_plan_why(rig.plan, action.host, 1, rig.now);
    assert_int_equal(why.reason, WEIR_REASON_RETRY);
    assert_int_equal(why.wait_ns, fate.at - rig.now);
    action = rig_wait(&rig, fate.at);
    assert_url(action, "http://a.example/0");
    assert_int_equal(rig.now, fate.at);
    rig_release(&rig);
}

static void retry_waits_at_least_as_long_as_the_gate(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin(&rig, 1);
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    rig_send(&rig, &action);
    weir_outcome outcome = {.size = sizeof outcome, .status = 429, .has_retry_after = true, .retry_after_ns = 40 * S};
    struct wr_task_outcome fate = wr_plan_page_finished(rig.plan, action.task, &outcome, 0, rig.now);
    assert_true(fate.at >= rig.now + 40 * S);
    rig_wait(&rig, rig.now + 50 * S);
    rig_release(&rig);
}

static void retry_does_not_wait_for_the_expiry_of_another_reservation(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin(&rig, 2);
    struct wr_plan_action first = rig_wait(&rig, rig.now);
    rig_send(&rig, &first);
    struct wr_plan_action second = rig_wait(&rig, rig.now + 20 * S); /* about to be sent */
    assert_kind(second, WR_PLAN_START);
    struct wr_task_outcome fate = rig_tell(&rig, &first, 500);
    assert_int_equal(fate.kind, WR_TASK_OUTCOME_RETRY);
    assert_true(fate.at < rig.now + 20 * S);
    rig_release(&rig);
}

/* R6: a Retry-After of hours expires the tasks of a host. Waiting for the host's own pace never
 * does. */
static void long_retry_after_expires_all_tasks_of_a_host_and_its_pace_none(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.window = 4;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 10);
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    rig_send(&rig, &action);
    int64_t at = rig.now;
    weir_outcome outcome = {.size = sizeof outcome, .status = 503, .has_retry_after = true};
    outcome.retry_after_ns = 5 * WEIR_HOUR;
    assert_int_equal(wr_plan_page_finished(rig.plan, action.task, &outcome, 0, rig.now).kind, WR_TASK_OUTCOME_RETRY);
    for (int i = 0; i < 10; i++) {
        action = rig_wait(&rig, at + 31 * M);
        assert_kind(action, WR_PLAN_END);
        assert_int_equal(action.reason, WEIR_REASON_RETRY_AFTER);
        assert_true(rig.now >= at + 30 * M);
        rig_ended(&rig, &action);
    }
    assert_kind(rig_wait(&rig, rig.now), WR_PLAN_DRAINED);
    rig_release(&rig);

    rig_init(&rig);
    rig.options.pace.min_interval_ns = 20 * M;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 8);
    for (int i = 0; i < 8; i++) {
        action = rig_wait(&rig, rig.now + 21 * M);
        assert_kind(action, WR_PLAN_START);
        rig_fetch(&rig, &action, 200);
    }
    rig_release(&rig);
}

/* R6: tasks behind an open breaker are not attempted, and expire after some time. */
static void tasks_behind_an_open_breaker_expire_after_max_defer(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.pace.open_ns = WEIR_HOUR;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 10);
    int64_t at = 0;
    int starts = 0, ends = 0;
    struct wr_plan_action action;
    for (action = rig_wait(&rig, rig.now + 31 * M); action.kind == WR_PLAN_START; starts++) {
        at = rig.now;
        rig_fetch(&rig, &action, 0);
        action = rig_wait(&rig, rig.now + 31 * M);
    }
    assert_in_range(starts, 5, 12); /* the number of failures that opens the breaker */
    for (; action.kind == WR_PLAN_END; ends++) {
        assert_int_equal(action.reason, WEIR_REASON_BREAKER);
        assert_true(rig.now >= at + 30 * M);
        rig_ended(&rig, &action);
        action = rig_wait(&rig, rig.now);
    }
    assert_kind(action, WR_PLAN_DRAINED);
    assert_true(ends >= 5);
    rig_release(&rig);
}

/* T3, R6: waiting for a probe in flight counts like any other wait. The time for which the global
 * hold delayed the probe does not count. */
static void max_defer_counts_from_the_last_start(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    /* without spacing, the start counts from its action */
    rig.options.pace.strategy = WEIR_STRATEGY_NONE;
    rig.options.pace.min_interval_ns = 0;
    rig.options.pace.open_ns = 10 * S;
    rig.options.pace.probes = 1;
    rig.options.max_defer_ns = 20 * S;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 10);
    struct wr_plan_host *host = wr_plan_host_find(rig.plan, wr_span_of("a.example"));
    struct wr_plan_action action;
    do {
        action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_START);
        rig_fetch(&rig, &action, 0);
    } while (wr_plan_why(rig.plan, host, 1, rig.now).reason != WEIR_REASON_BREAKER);
    int64_t opened_at = rig.now;
    wr_plan_hold_starts(rig.plan, opened_at + 25 * S);
    action = rig_wait(&rig, opened_at + 25 * S);
    assert_kind(action, WR_PLAN_START);
    assert_int_equal(rig.now, opened_at + 25 * S);
    rig_send(&rig, &action);
    assert_int_equal(wr_plan_why(rig.plan, host, 1, rig.now).reason, WEIR_REASON_BREAKER);
    action = rig_wait(&rig, rig.now + 21 * S);
    assert_kind(action, WR_PLAN_END);
    assert_int_equal(action.reason, WEIR_REASON_BREAKER);
    assert_int_equal(rig.now, opened_at + 45 * S);
    rig_release(&rig);
}

/* T3, R6: only time for which the host held the page counts. */
static void max_defer_counts_from_when_the_host_began_to_hold_the_page(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.pace.strategy = WEIR_STRATEGY_NONE;
    rig.options.pace.min_interval_ns = 0;
    rig.options.max_defer_ns = 20 * S;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action slow = rig_page(&rig, rig.now);
    rig_send(&rig, &slow);
    int64_t sent_at = rig.now;
    wr_plan_hold_starts(rig.plan, sent_at + M);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    rig.now += 19 * S; /* only the global hold kept the second page */
    weir_outcome outcome = {.size = sizeof outcome, .status = 200, .has_retry_after = true, .retry_after_ns = M};
    wr_plan_page_finished(rig.plan, slow.task, &outcome, 0, rig.now);
    struct wr_plan_action action = rig_wait(&rig, sent_at + M);
    assert_kind(action, WR_PLAN_END);
    assert_int_equal(action.reason, WEIR_REASON_RETRY_AFTER);
    assert_int_equal(rig.now, sent_at + 39 * S);
    rig_release(&rig);
}

/* E4: the wait starts anew after each probe, so that an hour without network costs only the
 * attempts of the probes. */
static void an_open_breaker_defers_at_no_cost_and_recovers(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.pace.strategy = WEIR_STRATEGY_FIXED;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 400);
    int64_t began_at = rig.now;
    int starts = 0, failed = 0, done = 0;
    while (done + failed < 400) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + 2 * M);
        assert_kind(action, WR_PLAN_START);
        bool is_away = rig.now < began_at + WEIR_HOUR;
        starts += is_away;
        struct wr_task_outcome fate = rig_fetch(&rig, &action, is_away ? 0 : 200);
        failed += fate.kind == WR_TASK_OUTCOME_FAILED;
        done += fate.kind == WR_TASK_OUTCOME_DONE;
    }
    assert_true(starts < 300); /* a probe every 15 s, not every second */
    assert_true(done >= 300);
    rig_release(&rig);
}

static void every_wait_has_a_reason_and_an_end(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin(&rig, 3);
    struct wr_plan_host *host = wr_plan_host_find(rig.plan, wr_span_of("a.example"));
    assert_int_equal(wr_plan_why(rig.plan, host, 1, rig.now).reason, WEIR_REASON_QUEUE);
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    rig_send(&rig, &action);
    weir_decision why = wr_plan_why(rig.plan, host, 1, rig.now);
    assert_int_equal(why.reason, WEIR_REASON_PACE);
    assert_int_equal(why.wait_ns, S);
    wr_plan_job_pause(rig.plan, 1, WEIR_REASON_PAUSED);
    assert_int_equal(wr_plan_why(rig.plan, host, 1, rig.now).reason, WEIR_REASON_PAUSED);
    wr_plan_job_pause(rig.plan, 1, WEIR_REASON_NONE);
    weir_outcome outcome = {.size = sizeof outcome, .status = 200, .has_retry_after = true, .retry_after_ns = 9 * S};
    wr_plan_page_finished(rig.plan, action.task, &outcome, 0, rig.now);
    why = wr_plan_why(rig.plan, host, 1, rig.now);
    assert_int_equal(why.reason, WEIR_REASON_RETRY_AFTER);
    assert_true(why.wait_ns >= 9 * S && why.wait_ns <= 10 * S);
    rig.now += 10 * S;
    assert_int_equal(wr_plan_why(rig.plan, host, 1, rig.now).verdict, WEIR_GO);
    wr_plan_job_change(rig.plan, &(struct wr_plan_job){.id = 1, .concurrency = 1});
    action = rig_wait(&rig, rig.now);
    rig_send(&rig, &action);
    rig.now += 2 * S;
    assert_int_equal(wr_plan_why(rig.plan, host, 1, rig.now).reason, WEIR_REASON_CONCURRENCY);
    rig_release(&rig);
}

WEIR_TESTS(test(a_transient_failure_is_tried_three_times_and_a_blocked_one_four),
           test(other_tasks_start_while_one_is_in_backoff), test(retry_waits_at_least_as_long_as_the_gate),
           test(retry_does_not_wait_for_the_expiry_of_another_reservation),
           test(long_retry_after_expires_all_tasks_of_a_host_and_its_pace_none),
           test(tasks_behind_an_open_breaker_expire_after_max_defer), test(max_defer_counts_from_the_last_start),
           test(max_defer_counts_from_when_the_host_began_to_hold_the_page),
           test(an_open_breaker_defers_at_no_cost_and_recovers), test(every_wait_has_a_reason_and_an_end))
