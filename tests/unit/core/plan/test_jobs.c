/* SPDX-License-Identifier: MIT */
/* test_jobs.c - tests pausing, ending, limits and budgets of jobs. */
#include "core/plan/inspect.h"
#include "rig.h"

static void paused_job_starts_nothing_and_resumes_where_it_was(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 3);
    rig_offer_many(&rig, 1, "b.example", 3);
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_PAUSED), 0);
    rig_fetch(&rig, &action, 200);
    rig.now += M;
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    rig.now += 2 * WEIR_HOUR; /* nothing expires meanwhile */
    action = rig_next(&rig);
    assert_kind(action, WR_PLAN_IDLE);
    assert_int_equal(action.at, WEIR_FOREVER);
    assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_NONE), 0);
    for (int i = 0; i < 5; i++) {
        action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_START);
        rig_fetch(&rig, &action, 200);
    }
    assert_kind(rig_wait(&rig, rig.now), WR_PLAN_DRAINED);
    rig_release(&rig);
}

/* M14: the job is held by a limit, not by a user. A caller without room does not call wr_plan_next,
 * but the wait is still recorded. */
static void pages_of_a_job_at_its_limit_are_held_by_that_limit(void **state)
{
    (void)state;
    for (int is_asked = 0; is_asked < 2; is_asked++) {
        static struct plan_store_fixture rig;
        struct wr_plan_host_report report;
        struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
        rig_plain(&rig);
        rig_offer_many(&rig, 1, "a.example", 3);
        struct wr_plan_action action = rig_wait(&rig, rig.now);
        assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_JOB_LIMIT), 0);
        if (is_asked)
            rig_next(&rig);
        else
            assert_false(wr_plan_reschedule_paused(rig.plan, rig.now));
        rig.now += 3 * S;
        const struct wr_plan_host *host = wr_plan_host_find(rig.plan, wr_span_of("a.example"));
        assert_int_equal(wr_plan_why(rig.plan, host, 1, rig.now).reason, WEIR_REASON_JOB_LIMIT);
        size_t count = wr_plan_bounds(rig.plan, host, rig.now, bounds);
        assert_int_equal(bounds[count - 1].reason, WEIR_REASON_JOB_LIMIT);
        assert_int_equal(bounds[count - 1].wait_ns, WEIR_UNTIL_RELEASE);
        wr_plan_host_report(rig.plan, host, rig.now, &report);
        assert_int_equal(report.waited.ms[WEIR_REASON_JOB_LIMIT], 3000);
        assert_int_equal(report.waited.ms[WEIR_REASON_PAUSED], 0);
        rig_fetch(&rig, &action, 200);
        assert_int_equal(wr_plan_job_end(rig.plan, 1), 0);
        rig_next(&rig);
        rig_release(&rig);
    }
}

/* A paused job frees room that others need. */
static void paused_job_frees_its_windows(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_stats stats;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 20);
    rig_offer_many(&rig, 1, "b.example", 20);
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_PAUSED), 0);
    rig_next(&rig);
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.tasks, 20); /* one page of a.example is in flight */
    rig_fetch(&rig, &action, 200);
    assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_NONE), 0);
    for (int i = 0; i < 39; i++) {
        action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_START);
        rig_fetch(&rig, &action, 200);
    }
    assert_kind(rig_wait(&rig, rig.now), WR_PLAN_DRAINED);
    rig_release(&rig);
}

/* T5: only the plan knows how often a page has failed, and when it may be retried. */
static void page_in_backoff_keeps_its_attempts_while_its_job_is_paused(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    struct wr_task_outcome fate = rig_fetch(&rig, &action, 500);
    assert_int_equal(fate.kind, WR_TASK_OUTCOME_RETRY);
    assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_PAUSED), 0);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_NONE), 0);
    action = rig_page(&rig, rig.now + 10 * S);
    assert_int_equal(action.attempts, 1);
    assert_true(rig.now >= fate.at);
    rig_fetch(&rig, &action, 500);
    action = rig_page(&rig, rig.now + 10 * S);
    fate = rig_fetch(&rig, &action, 500);
    assert_int_equal(fate.kind, WR_TASK_OUTCOME_FAILED); /* the third attempt */
    rig_release(&rig);
}

static void ended_job_accepts_and_starts_nothing_and_frees_everything(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_stats stats;
    char host[32];
    rig_plain(&rig);
    rig_job(&rig, 2);
    for (int i = 0; i < 200; i++) {
        snprintf(host, sizeof host, "h%d.example", i);
        rig_offer_many(&rig, 1, host, 3);
    }
    rig_offer_many(&rig, 2, "h7.example", 2);
    struct wr_plan_action first = rig_page(&rig, rig.now), of_two = rig_page(&rig, rig.now);
    struct wr_plan_action second = rig_page(&rig, rig.now);
    assert_int_equal(first.job * 100 + of_two.job * 10 + second.job, 121);
    assert_int_equal(wr_plan_job_end(rig.plan, 1), 0);
    assert_offer(rig_offer(&rig, 1, "http://new.example/"), WR_ADD_URL_OVER);
    rig_fetch(&rig, &of_two, 200);
    struct wr_plan_action action = rig_page(&rig, rig.now + 2 * S);
    assert_int_equal(action.job, 2);
    rig_fetch(&rig, &action, 200);
    assert_int_equal(rig_wait(&rig, rig.now).job, 2); /* DRAINED */
    wr_plan_task_given_back(rig.plan, first.task, rig.now);
    rig_send(&rig, &second);
    assert_int_equal(rig_tell(&rig, &second, 500).kind, WR_TASK_OUTCOME_RETRY);
    action = rig_wait(&rig, rig.now + 2 * S);
    assert_kind(action, WR_PLAN_DRAINED);
    assert_int_equal(wr_plan_job_forget(rig.plan, action.job), 0);
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.tasks, 0);
    rig_release(&rig);
}

/* S2-17, S2-18, R14 */
static void concurrency_falls_by_one_for_each_five_seconds_of_learned_delay_and_recovers(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_stats stats;
    weir_pace_options pace;
    rig_init(&rig);
    weir_pace_options_profile(&pace, WEIR_PROFILE_LEARNED);
    pace.breaker = false;
    assert_int_equal(wr_pace_options_check(&pace, &rig.options.pace), 0);
    rig.options.pace.delay_up_ns = 5 * S;
    rig.options.pace.delay_down_ns = 60 * S;
    rig.options.pace.probe_after = 2;
    rig_begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .concurrency = 3}), 0);
    rig_offer_many(&rig, 1, "a.example", 40);
    struct wr_plan_action action;
    for (int i = 0; i < 2; i++) { /* delays of 5.5 s and 10.5 s: one request at a time */
        action = rig_wait(&rig, rig.now + M);
        rig_fetch(&rig, &action, 429);
    }
    struct wr_plan_action first = rig_wait(&rig, rig.now + M);
    rig_send(&rig, &first);
    rig.now += M;
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    assert_int_equal(wr_plan_why(rig.plan, first.host, 1, rig.now).reason, WEIR_REASON_CONCURRENCY);
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.lowered, 1);
    rig_tell(&rig, &first, 200);
    for (int i = 0; i < 3; i++) {
        action = rig_wait(&rig, rig.now + M);
        rig_fetch(&rig, &action, 200);
    }
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.lowered, 0);
    assert_true(stats.overrides >= 2);
    for (int i = 0; i < 3; i++) { /* all three in flight */
        action = rig_wait(&rig, rig.now + M);
        assert_kind(action, WR_PLAN_START);
        rig_send(&rig, &action);
    }
    rig.now += M;
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    rig_release(&rig);
}

static void job_reports_its_deadline_once(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig_begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .deadline_at = rig.now + 3500 * MS}), 0);
    rig_offer_many(&rig, 1, "a.example", 10);
    int64_t began_at = rig.now;
    for (int i = 0; i < 4; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_START);
        rig_fetch(&rig, &action, 200);
    }
    struct wr_plan_action action = rig_wait(&rig, rig.now + S);
    assert_kind(action, WR_PLAN_OVER);
    assert_int_equal(action.draw, WR_BUDGET_KINDS);
    assert_int_equal(rig.now, began_at + 3500 * MS);
    assert_int_equal(wr_plan_job_end(rig.plan, 1), 0);
    assert_kind(rig_wait(&rig, rig.now), WR_PLAN_DRAINED);
    rig_release(&rig);
}

/* M14, E4: the job is over but not ended, while the caller finishes the requests in flight. A time
 * in the past would make the caller ask without end. */
static void plan_of_a_finished_job_names_no_time_in_the_past(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig_begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .deadline_at = rig.now + 500 * MS}), 0);
    rig_offer_many(&rig, 1, "a.example", 10);
    struct wr_plan_action page = rig_wait(&rig, rig.now + S);
    assert_kind(page, WR_PLAN_START);
    assert_kind(rig_wait(&rig, rig.now + S), WR_PLAN_OVER);
    assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_JOB_LIMIT), 0);
    struct wr_plan_action action = rig_next(&rig);
    assert_kind(action, WR_PLAN_IDLE);
    assert_true(action.at > rig.now);
    rig_fetch(&rig, &page, 200);
    assert_int_equal(wr_plan_job_end(rig.plan, 1), 0);
    assert_kind(rig_wait(&rig, rig.now), WR_PLAN_DRAINED);
    rig_release(&rig);
}

static void bytes_are_drawn_from_the_ledger_and_end_the_job(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_ledger ledger;
    bool is_last;
    rig_init(&rig);
    rig_begin(&rig);
    wr_ledger_init(&ledger, WR_LEDGER_UNLIMITED, 3500, 0);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .has_byte_budget = true}), 0);
    rig_offer_many(&rig, 1, "a.example", 10);
    int starts = 0;
    for (;;) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + S);
        if (action.kind == WR_PLAN_OVER)
            break;
        if (action.kind == WR_PLAN_TAKE_BUDGET) {
            uint64_t granted = wr_ledger_take_budget(&ledger, action.draw, action.count, &is_last);
            wr_plan_grant_budget(rig.plan, 1, action.draw, granted, is_last);
            continue;
        }
        rig_fetch(&rig, &action, 200); /* a page has 1000 bytes */
        starts++;
    }
    assert_int_equal(starts, 4);
    rig_release(&rig);
}

static struct wr_plan_action next_draw(struct plan_store_fixture *rig)
{
    struct wr_plan_action action = rig_wait(rig, rig->now + S);
    assert_kind(action, WR_PLAN_TAKE_BUDGET);
    assert_int_equal(action.draw, WR_BUDGET_BYTES);
    return action;
}

static void fetch_page(struct plan_store_fixture *rig)
{
    struct wr_plan_action action = rig_page(rig, rig->now + S);
    rig_fetch(rig, &action, 200); /* a page has 1000 bytes */
}

/* A page may be larger than what is left of the budget. The excess is subtracted from the next
 * grants. */
static void bytes_beyond_the_budget_are_subtracted_from_the_next_grants(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig_begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .has_byte_budget = true}), 0);
    rig_offer_many(&rig, 1, "a.example", 10);
    next_draw(&rig);
    /* asks once for bytes and starts nothing until they are granted */
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    assert_int_equal(wr_plan_grant_budget(rig.plan, 1, WR_BUDGET_BYTES, 2400, false), 0);
    fetch_page(&rig);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE); /* more than half of the grant is left */
    fetch_page(&rig);
    next_draw(&rig);  /* 400 bytes are left */
    fetch_page(&rig); /* 600 bytes are owed */
    rig.now += M;
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    assert_int_equal(wr_plan_grant_budget(rig.plan, 1, WR_BUDGET_BYTES, 600, false), 0);
    next_draw(&rig);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE); /* the debt is paid and nothing is left */
    assert_int_equal(wr_plan_grant_budget(rig.plan, 1, WR_BUDGET_BYTES, 1, false), 0);
    fetch_page(&rig); /* starts with one byte: then 999 are owed */
    next_draw(&rig);
    assert_int_equal(wr_plan_grant_budget(rig.plan, 1, WR_BUDGET_BYTES, 999, true), 0);
    assert_kind(rig_next(&rig), WR_PLAN_OVER);
    rig_release(&rig);
}

static void job_is_over_with_its_last_byte(void **state)
{
    static const struct {
        uint64_t granted;
        int pages;
    } cases[] = {{1999, 2}, {2000, 2}, {2001, 3}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        static struct plan_store_fixture rig;
        rig_init(&rig);
        rig_begin(&rig);
        assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .has_byte_budget = true}), 0);
        rig_offer_many(&rig, 1, "a.example", 10);
        next_draw(&rig);
        assert_int_equal(wr_plan_grant_budget(rig.plan, 1, WR_BUDGET_BYTES, cases[i].granted, true), 0);
        for (int page = 0; page < cases[i].pages; page++)
            fetch_page(&rig);
        struct wr_plan_action action = rig_next(&rig);
        assert_kind(action, WR_PLAN_OVER);
        assert_int_equal(action.draw, WR_BUDGET_BYTES);
        rig.now += M;
        /* OVER is reported once, and nothing starts after it */
        assert_kind(rig_next(&rig), WR_PLAN_IDLE);
        rig_release(&rig);
    }
}

/* The hosts of a paused job get no requests, neither for pages nor for a robots.txt that is due. */
static void paused_job_asks_for_no_robots_txt(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    struct wr_plan_action action = rig_next(&rig);
    assert_kind(action, WR_PLAN_ROBOTS);
    rig_robots(&rig, &action, 404, NULL);
    action = rig_page(&rig, rig.now + S);
    assert_int_equal(rig_fetch(&rig, &action, 500).kind, WR_TASK_OUTCOME_RETRY);
    assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_PAUSED), 0);
    rig.now += 2 * WEIR_DAY;
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_NONE), 0);
    assert_kind(rig_next(&rig), WR_PLAN_ROBOTS);
    rig_release(&rig);
}

/* One request is always allowed, however slow the host has become. */
static void concurrency_of_a_slow_host_is_never_less_than_one(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    weir_pace_options pace;
    rig_init(&rig);
    weir_pace_options_profile(&pace, WEIR_PROFILE_LEARNED);
    pace.breaker = false;
    assert_int_equal(wr_pace_options_check(&pace, &rig.options.pace), 0);
    rig.options.pace.delay_up_ns = 30 * S; /* six steps of 5 s */
    rig_begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .concurrency = 3}), 0);
    rig_offer_many(&rig, 1, "a.example", 10);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_fetch(&rig, &action, 429);
    action = rig_page(&rig, rig.now + 10 * M);
    rig_send(&rig, &action);
    rig.now += 10 * M;
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    assert_int_equal(wr_plan_why(rig.plan, action.host, 1, rig.now).reason, WEIR_REASON_CONCURRENCY);
    rig_tell(&rig, &action, 200);
    rig_release(&rig);
}

static void slow_hosts_are_counted_until_they_leave(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_stats stats;
    weir_pace_options pace;
    rig_init(&rig);
    weir_pace_options_profile(&pace, WEIR_PROFILE_LEARNED);
    pace.breaker = false;
    assert_int_equal(wr_pace_options_check(&pace, &rig.options.pace), 0);
    rig.options.pace.delay_up_ns = 30 * S;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    rig_offer_many(&rig, 1, "b.example", 1);
    rig_offer_many(&rig, 1, "c.example", 1);
    struct wr_plan_host *hosts[3];
    for (int i = 0; i < 3; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + M);
        hosts[i] = action.host;
        rig_fetch(&rig, &action, i < 2 ? 429 : 200);
    }
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.lowered, 2);
    assert_int_equal(stats.overrides, 2);
    assert_true(wr_plan_host_remove(rig.plan, hosts[2], rig.now)); /* this host was not slow */
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.lowered, 2);
    wr_plan_host_forget_learned(rig.plan, hosts[0], rig.now);
    wr_plan_host_forget_learned(rig.plan, hosts[0], rig.now);
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.lowered, 1);
    struct wr_plan_action action = rig_page(&rig, rig.now + 10 * M);
    rig_fetch(&rig, &action, 404);
    if (action.host == hosts[0]) {
        action = rig_page(&rig, rig.now + 10 * M);
        rig_fetch(&rig, &action, 404);
    }
    assert_ptr_equal(action.host, hosts[1]);
    assert_true(wr_plan_host_remove(rig.plan, hosts[1], rig.now));
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.lowered, 0);
    rig_release(&rig);
}

static void resumed_job_loads_the_tasks_of_the_store(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 5);
    rig_offer_many(&rig, 1, "b.example", 5);
    wr_plan_free(rig.plan);
    rig.rows[2].ended = rig.rows[7].ended = true;
    rig_begin_job(&rig);
    for (size_t i = 0; i < rig.count; i++)
        wr_plan_add_known_url(rig.plan, 1, rig.rows[i].fingerprint);
    assert_int_equal(wr_plan_hosts_row(rig.plan, 1, wr_span_of("a.example"), 4, rig.now), 0);
    assert_int_equal(wr_plan_hosts_row(rig.plan, 1, wr_span_of("b.example"), 4, rig.now), 0);
    assert_offer(rig_offer(&rig, 1, "http://a.example/2"), WR_ADD_URL_KNOWN);
    for (int i = 0; i < 8; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_START);
        rig_fetch(&rig, &action, 200);
    }
    assert_kind(rig_wait(&rig, rig.now), WR_PLAN_DRAINED);
    rig_release(&rig);
}

/* Rows without a URL have ended in this plan, whatever the caller does with them. */
static void tasks_without_a_url_are_loaded_from_the_start_once_more(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 5);
    rig.store_is_slow = true;
    struct wr_plan_action load = rig_next(&rig);
    assert_kind(load, WR_PLAN_LOAD);
    wr_plan_restore_host(rig.plan, load.host, &(struct wr_plan_stored_host){.pace = NULL}, rig.now, 0);
    for (size_t i = 0; i < rig.count; i++) {
        const struct wr_plan_row row = {.fingerprint = rig.rows[i].fingerprint, .position = {(int64_t)i + 1, 0}};
        assert_int_equal(wr_plan_load_row(rig.plan, load.host, 1, &row, rig.now), 0);
    }
    /* the load is under way */
    assert_int_equal(wr_plan_hosts_row(rig.plan, 1, wr_span_of("a.example"), 5, rig.now), 0);
    wr_plan_load_end(rig.plan, load.host, 1, true, 5, rig.now);
    assert_true(wr_plan_job_is_drained(rig.plan, 1));
    rig.store_is_slow = false;
    assert_int_equal(wr_plan_hosts_row(rig.plan, 1, wr_span_of("a.example"), 5, rig.now), 0);
    /* repeated: counts once */
    assert_int_equal(wr_plan_hosts_row(rig.plan, 1, wr_span_of("a.example"), 5, rig.now), 0);
    assert_false(wr_plan_job_is_drained(rig.plan, 1));
    for (int i = 0; i < 5; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_START);
        rig_fetch(&rig, &action, 200);
    }
    assert_kind(rig_wait(&rig, rig.now), WR_PLAN_DRAINED);
    rig_release(&rig);
}

static void learned_memory_is_returned_once_per_change(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    weir_pace_memory memory;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    assert_null(wr_plan_next_unsaved_host(rig.plan, rig.now, 1700000000 * S, &memory));
    rig_send(&rig, &action);
    weir_outcome outcome = {.size = sizeof outcome, .status = 429, .has_retry_after = true, .retry_after_ns = 9 * S};
    wr_plan_page_finished(rig.plan, action.task, &outcome, 0, rig.now);
    assert_ptr_equal(wr_plan_next_unsaved_host(rig.plan, rig.now, 1700000000 * S, &memory), action.host);
    assert_true(memory.retry_wall_at >= 1700000009 * S);
    assert_null(wr_plan_next_unsaved_host(rig.plan, rig.now, 1700000000 * S, &memory));
    rig_release(&rig);
}

WEIR_TESTS(test(bytes_beyond_the_budget_are_subtracted_from_the_next_grants), test(job_is_over_with_its_last_byte),
           test(paused_job_asks_for_no_robots_txt), test(concurrency_of_a_slow_host_is_never_less_than_one),
           test(slow_hosts_are_counted_until_they_leave),
           test(page_in_backoff_keeps_its_attempts_while_its_job_is_paused),
           test(paused_job_starts_nothing_and_resumes_where_it_was),
           test(pages_of_a_job_at_its_limit_are_held_by_that_limit), test(paused_job_frees_its_windows),
           test(ended_job_accepts_and_starts_nothing_and_frees_everything),
           test(concurrency_falls_by_one_for_each_five_seconds_of_learned_delay_and_recovers),
           test(job_reports_its_deadline_once), test(plan_of_a_finished_job_names_no_time_in_the_past),
           test(bytes_are_drawn_from_the_ledger_and_end_the_job), test(resumed_job_loads_the_tasks_of_the_store),
           test(tasks_without_a_url_are_loaded_from_the_start_once_more),
           test(learned_memory_is_returned_once_per_change))
