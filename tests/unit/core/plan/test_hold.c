/* SPDX-License-Identifier: MIT */
/* test_hold.c - tests the global hold, when a connection is no longer needed, and hopeless
 * hosts. */
#include "rig.h"

/* R18: a caller with a global limit sets the time of the next start. */
static void nothing_starts_during_a_global_hold(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig.robots_are_known = true;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    rig_offer_many(&rig, 1, "b.example", 2);
    rig_page(&rig, rig.now);
    wr_plan_hold_starts(rig.plan, rig.now + 700 * MS);
    rig_offer_many(&rig, 1, "c.example", 1);
    struct wr_plan_action action = rig_next(&rig);
    assert_kind(action, WR_PLAN_IDLE);
    assert_true(action.at == rig.now + 700 * MS);
    weir_decision why = wr_plan_why(rig.plan, wr_plan_host_find(rig.plan, wr_span_of("b.example")), 1, rig.now);
    assert_int_equal(why.reason, WEIR_REASON_GLOBAL);
    assert_int_equal(why.wait_ns, 700 * MS);
    rig.now += 700 * MS - 1;
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    rig.now++;
    action = rig_page(&rig, rig.now);
    assert_url(action, "http://b.example/0");
    assert_int_equal(action.waited.ms[WEIR_REASON_GLOBAL], 700);
    rig_send(&rig, &action);
    wr_plan_hold_starts(rig.plan, rig.now + S);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    wr_plan_hold_starts(rig.plan, 0); /* the hold is withdrawn */
    action = rig_page(&rig, rig.now);
    assert_url(action, "http://c.example/0");
    rig_release(&rig);
}

static void global_hold_includes_robots_txt_and_errands(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    assert_int_equal(wr_url_parse(wr_span_of("http://b.example/robots.txt"), NULL, NULL, memory, WR_URL_ROOM, &url),
                     WR_URL_OK);
    assert_int_equal(wr_plan_robots_hop_add(rig.plan, &url, 1, rig.now), 0);
    wr_plan_hold_starts(rig.plan, rig.now + S);
    struct wr_plan_action action = rig_next(&rig);
    assert_kind(action, WR_PLAN_IDLE);
    assert_true(action.at == rig.now + S);
    rig.now += S;
    assert_kind(rig_next(&rig), WR_PLAN_ROBOTS_HOP);
    assert_kind(rig_next(&rig), WR_PLAN_ROBOTS);
    rig_release(&rig);
}

/* F3: the process was stopped between reporting the send and writing it. */
static void late_send_of_a_page_moves_the_interval_to_its_time(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_send(&rig, &action);
    rig.now += 90 * S;
    wr_plan_sent_late(rig.plan, action.task, rig.now);
    int64_t out_at = rig.now;
    action = rig_page(&rig, rig.now + 10 * S);
    assert_true(rig.now == out_at + S);
    rig_release(&rig);
}

/* A host that is not ready is not woken earlier because of the global hold. */
static void global_hold_wakes_no_host_that_waits_longer(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_send(&rig, &action);
    wr_plan_hold_starts(rig.plan, rig.now + 400 * MS);
    assert_true(rig_next(&rig).at == rig.now + S);
    rig_release(&rig);
}

static void start_reports_when_its_connection_is_needed_next(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    /* the other pages are in the store, or in the window */
    for (uint32_t window = 1; window <= 64; window += 63) {
        rig_init(&rig);
        rig.options.ignores_robots = false;
        rig.options.window = window;
        rig_begin(&rig);
        rig_job(&rig, 1);
        rig_offer_many(&rig, 1, "a.example", 3);
        struct wr_plan_action action = rig_wait(&rig, rig.now);
        assert_kind(action, WR_PLAN_ROBOTS);
        assert_true(action.next_ns == S);
        rig_robots(&rig, &action, 200, "User-agent: *\nCrawl-delay: 5\n");
        for (int i = 0; i < 2; i++) {
            action = rig_page(&rig, rig.now + 5 * S);
            assert_true(action.next_ns == 5 * S);
            rig_fetch(&rig, &action, 200);
        }
        action = rig_page(&rig, rig.now + 5 * S);
        if (window == 64) /* with a window of 1 there may be more in the store */
            assert_true(action.next_ns == WEIR_FOREVER);
        rig_fetch(&rig, &action, 200);
        rig_release(&rig);
    }
}

static void begin_hopeless(struct plan_store_fixture *rig)
{
    weir_pace_options pace;
    rig_init(rig);
    weir_pace_options_profile(&pace, WEIR_PROFILE_LEARNED);
    pace.breaker = false;
    pace.cancel_after = 4;
    assert_int_equal(wr_pace_options_check(&pace, &rig->options.pace), 0);
    rig->options.pace.retry.blocking_retries = 1000;
    rig->options.pace.delay_up_ns = 30 * S;
    rig->options.pace.cancel_delay_ns = 60 * S;
    rig->options.max_defer_ns = WEIR_DAY;
}

/* S2-14: 429s in a row at the longest delay. S2-24: the counters. */
static void hopeless_host_is_reported_once_by_a_page(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_stats stats;
    int said = 0, told = 0;
    begin_hopeless(&rig);
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    for (int i = 1; i <= 12; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + WEIR_HOUR);
        struct wr_task_outcome fate = rig_fetch(&rig, &action, 429);
        said += (fate.news & WR_GATE_CHANGE_HOPELESS) != 0;
        told = said == 1 && told == 0 ? i : told;
    }
    assert_int_equal(said, 1);
    assert_int_equal(told, 5); /* the first 429 came at a shorter delay */
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.rejected, 12);
    assert_int_equal(stats.retries, 12);
    assert_int_equal(stats.hopeless, 1);
    assert_int_equal(stats.lowered, 1);
    rig_release(&rig);
}

/* A robots.txt request belongs to no job: the next page reports the hopeless host, unless that page
 * succeeds. */
static void host_hopeless_since_robots_txt_is_reported_by_the_next_page(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    for (int status = 200; status <= 429; status += 229) {
        begin_hopeless(&rig);
        rig.options.ignores_robots = false;
        rig_begin(&rig);
        rig_job(&rig, 1);
        rig_offer_many(&rig, 1, "a.example", 2);
        struct wr_plan_action action;
        struct wr_plan_stats stats;
        for (int i = 0; i < 5; i++) {
            action = rig_wait(&rig, rig.now + WEIR_DAY);
            assert_kind(action, WR_PLAN_ROBOTS);
            rig_robots(&rig, &action, 429, NULL);
        }
        action = rig_wait(&rig, rig.now + WEIR_DAY);
        if (action.kind == WR_PLAN_ROBOTS) {
            struct wr_robots_event event = {
                .kind = WR_ROBOTS_EVENT_ANSWERED, .status = 404, .max_age_ns = -1, .retry_after_ns = -1};
            /* continues the row of rejections */
            weir_outcome outcome = {.size = sizeof outcome, .status = 429};
            rig_send(&rig, &action);
            wr_plan_robots_finished(rig.plan, action.task, &outcome, &event, NULL, false, rig.now);
            action = rig_page(&rig, rig.now + WEIR_DAY);
        }
        struct wr_task_outcome fate = rig_fetch(&rig, &action, status);
        assert_int_equal(fate.news & WR_GATE_CHANGE_HOPELESS, status == 429 ? WR_GATE_CHANGE_HOPELESS : 0);
        action = rig_page(&rig, rig.now + WEIR_DAY);
        fate = rig_fetch(&rig, &action, 429);
        assert_int_equal(fate.news & WR_GATE_CHANGE_HOPELESS, 0);
        wr_plan_stats_get(rig.plan, &stats);
        assert_int_equal(stats.hopeless, status == 429);
        rig_release(&rig);
    }
}

WEIR_TESTS(test(nothing_starts_during_a_global_hold), test(global_hold_includes_robots_txt_and_errands),
           test(late_send_of_a_page_moves_the_interval_to_its_time), test(global_hold_wakes_no_host_that_waits_longer),
           test(start_reports_when_its_connection_is_needed_next), test(hopeless_host_is_reported_once_by_a_page),
           test(host_hopeless_since_robots_txt_is_reported_by_the_next_page))
