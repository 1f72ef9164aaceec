/* SPDX-License-Identifier: MIT */
/* test_window.c - tests starts, and the window of tasks that are loaded from the store. */
#include "core/plan/inspect.h"
#include "rig.h"

static void pages_of_a_host_start_in_order_an_interval_after_the_last_send(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 5);
    int64_t sent_at = 0;
    for (int i = 0; i < 5; i++) {
        char url[64];
        struct wr_plan_action action = rig_wait(&rig, rig.now + 2 * S);
        snprintf(url, sizeof url, "http://a.example/%d", i);
        assert_kind(action, WR_PLAN_START);
        assert_url(action, url);
        rig.now += (int64_t)i * 30 * MS; /* time for connecting */
        if (i > 0)
            assert_true(rig.now >= sent_at + S && rig.now <= sent_at + S + 200 * MS);
        sent_at = rig.now;
        assert_int_equal(rig_fetch(&rig, &action, 200).kind, WR_TASK_OUTCOME_DONE);
    }
    assert_kind(rig_wait(&rig, rig.now + S), WR_PLAN_DRAINED);
    rig_release(&rig);
}

static void nothing_starts_while_one_is_reserved_but_unsent(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 3);
    struct wr_plan_action first = rig_wait(&rig, rig.now);
    assert_kind(first, WR_PLAN_START);
    rig.now += 5 * S;
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    rig_send(&rig, &first);
    struct wr_plan_action idle = rig_next(&rig);
    assert_kind(idle, WR_PLAN_IDLE);
    assert_int_equal(idle.at, rig.now + S);
    rig_tell(&rig, &first, 200);
    rig_release(&rig);
}

static void loaded_tasks_start_while_other_loads_wait(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_action loads[2];
    rig_init(&rig);
    rig.options.max_loads = 2;
    rig.store_is_slow = true;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    rig_offer_many(&rig, 1, "b.example", 1);
    rig_offer_many(&rig, 1, "c.example", 1);
    for (int i = 0; i < 2; i++) {
        loads[i] = rig_next(&rig);
        assert_kind(loads[i], WR_PLAN_LOAD);
    }
    assert_kind(rig_next(&rig), WR_PLAN_IDLE); /* the third load waits */
    rig_answer_load(&rig, &loads[0]);
    struct wr_plan_action third = rig_next(&rig);
    assert_kind(third, WR_PLAN_LOAD);
    struct wr_plan_action start = rig_next(&rig);
    assert_kind(start, WR_PLAN_START);
    assert_url(start, "http://a.example/0");
    rig_answer_load(&rig, &loads[1]);
    rig_answer_load(&rig, &third);
    rig_fetch(&rig, &start, 200);
    rig_release(&rig);
}

static void start_given_back_costs_no_attempt_and_does_not_spin(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    for (int i = 0; i < 10; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + S);
        int64_t at = rig.now;
        assert_url(action, "http://a.example/0");
        assert_int_equal(action.attempts, 0);
        wr_plan_task_given_back(rig.plan, action.task, rig.now);
        struct wr_plan_action idle = rig_next(&rig);
        assert_kind(idle, WR_PLAN_IDLE);
        assert_int_equal(idle.at, at + 100 * MS);
    }
    rig_release(&rig);
}

static void sent_and_dropped_request_counts_for_the_interval(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    rig_send(&rig, &action);
    int64_t at = rig.now;
    rig.now += 50 * MS;
    wr_plan_task_given_back(rig.plan, action.task, rig.now);
    action = rig_wait(&rig, at + S);
    assert_kind(action, WR_PLAN_START);
    assert_int_equal(rig.now, at + S);
    rig_release(&rig);
}

/* G9: the job drains without them. */
static void task_whose_url_is_lost_has_ended(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.window = 2;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 6);
    rig.rows[0].is_lost = rig.rows[2].is_lost = rig.rows[3].is_lost = rig.rows[5].is_lost = true;
    struct wr_plan_action action = rig_wait(&rig, rig.now + 2 * S);
    assert_url(action, "http://a.example/1");
    rig_fetch(&rig, &action, 200);
    action = rig_wait(&rig, rig.now + 2 * S);
    assert_url(action, "http://a.example/4");
    rig_fetch(&rig, &action, 200);
    assert_kind(rig_wait(&rig, rig.now + S), WR_PLAN_DRAINED);
    assert_true(wr_plan_job_is_drained(rig.plan, 1));
    rig_release(&rig);
}

/* An answer that arrives while connecting forbids a reserved start (gate.h). */
static void reserved_start_is_checked_again_before_it_is_sent(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action first = rig_wait(&rig, rig.now);
    rig_send(&rig, &first);
    struct wr_plan_action second = rig_wait(&rig, rig.now + S);
    weir_outcome outcome = {.size = sizeof outcome, .status = 429, .has_retry_after = true, .retry_after_ns = M};
    struct wr_task_outcome fate = wr_plan_page_finished(rig.plan, first.task, &outcome, 0, rig.now);
    assert_int_equal(fate.kind, WR_TASK_OUTCOME_RETRY);
    assert_true((fate.news & WR_GATE_CHANGE_RETRY_AFTER) != 0);
    weir_decision decision = wr_plan_may_send(rig.plan, second.task, rig.now);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.reason, WEIR_REASON_RETRY_AFTER);
    wr_plan_task_given_back(rig.plan, second.task, rig.now);
    int64_t at = rig.now;
    rig_wait(&rig, at + 2 * M);
    assert_true(rig.now >= at + M);
    rig_release(&rig);
}

static void a_window_is_loaded_in_parts_and_in_order(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.window = 8;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 50);
    rig.store_is_slow = true;
    int loads = 0, starts = 0;
    while (starts < 50) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + 2 * S);
        if (action.kind == WR_PLAN_LOAD) {
            assert_true(action.count <= 8);
            assert_int_equal(action.wants_memory, loads == 0);
            rig_answer_load(&rig, &action);
            loads++;
        } else {
            char url[64];
            snprintf(url, sizeof url, "http://a.example/%d", starts++);
            assert_url(action, url);
            rig_fetch(&rig, &action, 200);
        }
    }
    struct wr_plan_stats stats;
    wr_plan_stats_get(rig.plan, &stats);
    assert_true(loads >= 7 && loads <= 14);
    assert_int_equal(stats.tasks, 0);
    rig_release(&rig);
}

static void tasks_that_arrive_during_a_load_are_loaded_by_the_next(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig.store_is_slow = true;
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action load = rig_next(&rig);
    assert_kind(load, WR_PLAN_LOAD);
    assert_offer(rig_offer(&rig, 1, "http://a.example/late"), WR_ADD_URL_NEW);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    /* The load saw only the first two rows of the store. */
    rig.count = 2;
    rig_answer_load(&rig, &load);
    rig.count = 3;
    load = rig_next(&rig);
    assert_kind(load, WR_PLAN_LOAD);
    assert_int_equal(load.after.id, 2);
    rig_answer_load(&rig, &load);
    for (int i = 0; i < 3; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_START);
        rig_fetch(&rig, &action, 200);
    }
    assert_kind(rig_wait(&rig, rig.now), WR_PLAN_DRAINED);
    rig_release(&rig);
}

/* R23: nothing is sent to a host before the store has returned its memory. */
static void a_stored_window_is_honoured_after_a_restart(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    weir_pace_memory memory = {.retry_wall_at = 1700000000 * S + rig.now + 90 * S,
                               .saved_wall_at = 1700000000 * S + rig.now - S};
    rig.memory = &memory;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    int64_t at = rig.now;
    struct wr_plan_action action = rig_wait(&rig, rig.now + 100 * S);
    assert_kind(action, WR_PLAN_START);
    assert_true(rig.now >= at + 90 * S);
    rig_release(&rig);
}

static void global_limit_in_flight_is_never_exceeded(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char host[32];
    struct wr_plan_action flying[7];
    rig_init(&rig);
    rig.options.max_in_flight = 7;
    rig_begin_job(&rig);
    for (int i = 0; i < 20; i++) {
        snprintf(host, sizeof host, "h%d.example", i);
        rig_offer_many(&rig, 1, host, 2);
    }
    for (int i = 0; i < 7; i++) {
        flying[i] = rig_next(&rig);
        assert_kind(flying[i], WR_PLAN_START);
    }
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    weir_decision why = wr_plan_why(rig.plan, wr_plan_host_find(rig.plan, wr_span_of("h19.example")), 1, rig.now);
    assert_int_equal(why.reason, WEIR_REASON_GLOBAL);
    rig_fetch(&rig, &flying[3], 200);
    assert_kind(rig_next(&rig), WR_PLAN_START);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    rig_release(&rig);
}

/* V6: with many hosts the windows are smaller, but each host has one. */
static void many_hosts_share_the_room_for_tasks(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char host[32];
    rig_init(&rig);
    rig.options.max_tasks = 256;
    rig_begin_job(&rig);
    for (int i = 0; i < 100; i++) {
        snprintf(host, sizeof host, "h%d.example", i);
        rig_offer_many(&rig, 1, host, 20);
    }
    int served[100] = {0};
    for (int i = 0; i < 100 * 20; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + 5 * S);
        struct wr_plan_stats stats;
        assert_kind(action, WR_PLAN_START);
        served[strtol(action.url.data + 8, NULL, 10)]++;
        rig_send(&rig, &action);
        rig_tell(&rig, &action, 200);
        wr_plan_stats_get(rig.plan, &stats);
        assert_true(stats.tasks <= 256);
        if (i == 200)
            for (int h = 0; h < 100; h++)
                assert_true(served[h] >= 1);
    }
    assert_true(rig.now <= 100 * S + 40 * S);
    rig_release(&rig);
}

static void fetching_pages_allocates_no_memory(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 40);
    struct wr_plan_action action = rig_next(&rig);
    long takes = rig.allocator.takes;
    for (int i = 0; i < 39; i++) {
        rig_fetch(&rig, &action, i % 5 == 0 ? 503 : 200);
        action = rig_wait(&rig, rig.now + M);
    }
    assert_int_equal(rig.allocator.takes, takes);
    rig_release(&rig);
}

/* L2: all hosts are known when memory runs out. Each waits for its robots.txt, and the windows use
 * all room except that of one robots.txt. */
static void plan_without_more_memory_fetches_all_queued_pages(void **state)
{
    (void)state;
    enum {
        HOSTS = 2500
    };
    static struct plan_store_fixture rig;
    char url[64];
    int fetched = 0;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig_begin_job(&rig);
    for (int i = 0; i < HOSTS; i++) {
        snprintf(url, sizeof url, "http://h%d.example/", i);
        assert_offer(rig_offer(&rig, 1, url), WR_ADD_URL_NEW);
    }
    rig.allocator.fail_for_ever = true;
    rig.allocator.fail_at = 1;
    while (fetched < HOSTS) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + 2 * S);
        if (action.kind == WR_PLAN_ROBOTS) {
            rig_robots(&rig, &action, 404, NULL);
            continue;
        }
        assert_kind(action, WR_PLAN_START);
        rig_fetch(&rig, &action, 200);
        fetched++;
    }
    assert_kind(rig_wait(&rig, rig.now + S), WR_PLAN_DRAINED);
    rig_release(&rig);
}

/* Half a window is left then, so that the store has time to answer. */
static void remaining_tasks_are_loaded_when_the_window_is_half_empty(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_host_brief glance;
    rig_init(&rig);
    rig.options.window = 12;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 40);
    struct wr_plan_action action = rig_next(&rig);
    assert_kind(action, WR_PLAN_START);
    rig.store_is_slow = true;
    for (uint64_t left = 39; left > 28 + 6; left--) {
        wr_plan_host_brief(rig.plan, action.host, rig.now, &glance);
        assert_int_equal(glance.queued, left); /* in the window and in the store */
        rig_fetch(&rig, &action, 200);
        action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_START);
    }
    rig_fetch(&rig, &action, 200);
    struct wr_plan_action load = rig_next(&rig);
    assert_kind(load, WR_PLAN_LOAD);
    assert_int_equal(load.count, 12 - 6);
    assert_int_equal(load.after.id, 12);
    rig_answer_load(&rig, &load);
    wr_plan_host_brief(rig.plan, load.host, rig.now, &glance);
    assert_int_equal(glance.queued, 28 + 6);
    rig_release(&rig);
}

/* All memory without the rules: the limits on memory depend on this figure. */
static void reported_memory_equals_allocated_memory(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_stats stats;
    rig_init(&rig);
    rig_begin_job(&rig);
    for (int i = 0; i < 150; i++) {
        char host[32];
        snprintf(host, sizeof host, "h%d.example", i);
        rig_offer_many(&rig, 1, host, 2);
        struct wr_plan_action action = rig_next(&rig);
        assert_kind(action, WR_PLAN_START);
        if (i % 3 == 0)
            assert_int_equal(wr_plan_host_group(rig.plan, action.host, wr_span_of(host), rig.now), 0);
        if (i % 5 == 0)
            assert_int_equal(wr_plan_host_pace(rig.plan, action.host, S, rig.now), 0);
        wr_plan_stats_get(rig.plan, &stats);
        assert_int_equal(stats.memory_bytes, rig.allocator.live_bytes);
        rig_fetch(&rig, &action, 200);
    }
    assert_true(stats.memory_bytes < 1 << 20 ? stats.hosts == 150 : stats.memory_bytes < (size_t)4 << 20);
    rig_release(&rig);
}

/* L1: each call succeeds or changes nothing. */
static void plan_reports_failed_allocations_and_leaks_nothing(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    for (long n = 1; n < 40; n++) {
        rig_init(&rig);
        rig.allocator.fail_at = n;
        if (wr_plan_new(&rig.options, &rig.plan) == 0) {
            rig.allocator.fail_at = n > 12 ? n - 12 : n;
            rig_job(&rig, 1);
            for (int i = 0; i < 100; i++) {
                char url[64];
                snprintf(url, sizeof url, "http://h%d.example/", i);
                enum wr_add_url_verdict verdict = rig_offer(&rig, 1, url);
                assert_true(verdict == WR_ADD_URL_NEW || verdict == WR_ADD_URL_MEMORY);
            }
            assert_true(wr_plan_ok(rig.plan));
            wr_plan_free(rig.plan);
        }
        assert_int_equal(rig.allocator.live, 0);
    }
}

WEIR_TESTS(test(remaining_tasks_are_loaded_when_the_window_is_half_empty),
           test(reported_memory_equals_allocated_memory),
           test(pages_of_a_host_start_in_order_an_interval_after_the_last_send),
           test(nothing_starts_while_one_is_reserved_but_unsent), test(loaded_tasks_start_while_other_loads_wait),
           test(start_given_back_costs_no_attempt_and_does_not_spin),
           test(sent_and_dropped_request_counts_for_the_interval), test(task_whose_url_is_lost_has_ended),
           test(reserved_start_is_checked_again_before_it_is_sent), test(a_window_is_loaded_in_parts_and_in_order),
           test(tasks_that_arrive_during_a_load_are_loaded_by_the_next),
           test(a_stored_window_is_honoured_after_a_restart), test(global_limit_in_flight_is_never_exceeded),
           test(many_hosts_share_the_room_for_tasks), test(fetching_pages_allocates_no_memory),
           test(plan_without_more_memory_fetches_all_queued_pages),
           test(plan_reports_failed_allocations_and_leaks_nothing))
