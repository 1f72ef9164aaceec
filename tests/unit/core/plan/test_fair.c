/* SPDX-License-Identifier: MIT */
/* test_fair.c - tests fairness between hosts and between jobs (S0-104, S4-2, I2), and hosts without
 * spacing. */
#include "rig.h"

/* S4-2: a host with a delay of 10 s does not slow the other 99. */
static void a_slow_host_does_not_slow_the_others(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char host[32];
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "slow.example", 10);
    for (int i = 1; i < 100; i++) {
        snprintf(host, sizeof host, "h%d.example", i);
        rig_offer_many(&rig, 1, host, 10);
    }
    struct wr_plan_action action = rig_next(&rig);
    wr_gate_robots_delay(wr_plan_host_gate(wr_plan_host_find(rig.plan, wr_span_of("slow.example"))), 10 * S, rig.now);
    int64_t began_at = rig.now;
    int slow = 0;
    for (int i = 0; i < 990 + 1; i++) {
        slow += action.url.data[7] == 's';
        rig_send(&rig, &action);
        rig_tell(&rig, &action, 200);
        action = rig_page(&rig, began_at + 11 * S);
    }
    assert_true(rig.now <= began_at + 10 * S);
    assert_true(slow <= 2);
    rig_release(&rig);
}

/* The host that has been ready for the longest time goes first. */
static void hosts_ready_together_start_in_the_order_of_their_arrival(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char host[32];
    rig_init(&rig);
    rig.options.max_in_flight = 10;
    rig_begin_job(&rig);
    for (int i = 0; i < 500; i++) {
        snprintf(host, sizeof host, "h%d.example", i);
        rig_offer_many(&rig, 1, host, 2);
    }
    for (int i = 0; i < 1000; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + S);
        assert_int_equal(strtol(action.url.data + 8, NULL, 10), i % 500);
        rig_send(&rig, &action);
        rig.now += 3 * MS;
        rig_tell(&rig, &action, 200);
    }
    rig_release(&rig);
}

/* A large job that started earlier does not delay a small one. */
static void jobs_take_turns_over_all_hosts(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char host[32];
    rig_init(&rig);
    rig.options.max_in_flight = 1;
    rig_begin_job(&rig);
    rig_job(&rig, 2);
    for (int i = 0; i < 200; i++) {
        snprintf(host, sizeof host, "h%d.example", i);
        rig_offer_many(&rig, 1, host, 2);
    }
    int of[3] = {0};
    for (int i = 0; i < 100; i++) {
        if (i == 20)
            for (int h = 0; h < 10; h++) {
                snprintf(host, sizeof host, "new%d.example", h);
                rig_offer_many(&rig, 2, host, 1);
            }
        struct wr_plan_action action = rig_page(&rig, rig.now + S);
        of[action.job]++;
        rig_send(&rig, &action);
        rig_tell(&rig, &action, 200);
        if (i == 40)
            assert_true(of[2] >= 9);
    }
    assert_int_equal(of[2], 10);
    rig_release(&rig);
}

static void jobs_take_turns_at_one_host_too(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    int of[4] = {0};
    rig_init(&rig);
    rig_begin(&rig);
    for (uint32_t job = 1; job <= 3; job++) {
        rig_job(&rig, job);
        rig_offer_many(&rig, job, "a.example", job == 1 ? 300 : 30);
        /* so that the turns of the hosts do not coincide */
        rig_offer_many(&rig, job, job == 2 ? "b.example" : "c.example", 30);
    }
    for (int i = 0; i < 120; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + S);
        if (action.url.data[7] == 'a') {
            of[action.job]++;
            for (int a = 1; a <= 3; a++)
                for (int b = 1; b <= 3; b++)
                    assert_true(of[a] - of[b] <= 1);
        }
        rig_fetch(&rig, &action, 200);
    }
    assert_true(of[2] >= 10);
    rig_release(&rig);
}

/* A job that may not start more requests does not block another job at the same host. */
static void a_job_at_its_limit_does_not_hold_up_others_at_its_hosts(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig_begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .concurrency = 1}), 0);
    rig_job(&rig, 2);
    rig_offer_many(&rig, 1, "x.example", 1);
    rig_offer_many(&rig, 1, "a.example", 5);
    rig_offer_many(&rig, 2, "a.example", 5);
    struct wr_plan_action stuck = rig_page(&rig, rig.now);
    assert_url(stuck, "http://x.example/0");
    rig_send(&rig, &stuck);
    for (int i = 0; i < 5; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_START);
        assert_int_equal(action.job, 2);
        rig_fetch(&rig, &action, 200);
    }
    assert_kind(rig_wait(&rig, rig.now + S), WR_PLAN_DRAINED);
    weir_decision why = wr_plan_why(rig.plan, wr_plan_host_find(rig.plan, wr_span_of("a.example")), 1, rig.now + 2 * S);
    assert_int_equal(why.reason, WEIR_REASON_JOB_LIMIT);
    rig.now += 2 * S;
    rig_tell(&rig, &stuck, 200);
    assert_int_equal(rig_page(&rig, rig.now).job, 1);
    rig_release(&rig);
}

/* If starts are not spaced (gate.h), a connecting request blocks no other, and a Retry-After still
 * binds. */
static void hosts_without_spacing_start_several_at_once(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    weir_pace_options pace;
    struct wr_plan_action flying[6];
    rig_init(&rig);
    weir_pace_options_profile(&pace, WEIR_PROFILE_UNLIMITED);
    pace.max_in_flight = 6;
    assert_int_equal(wr_pace_options_check(&pace, &rig.options.pace), 0);
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 20);
    for (int i = 0; i < 6; i++) {
        flying[i] = rig_page(&rig, rig.now);
        assert_kind(flying[i], WR_PLAN_START);
    }
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    rig_send(&rig, &flying[0]);
    weir_outcome outcome = {.size = sizeof outcome, .status = 429, .has_retry_after = true, .retry_after_ns = 7 * S};
    wr_plan_page_finished(rig.plan, flying[0].task, &outcome, 0, rig.now);
    for (int i = 1; i < 6; i++) {
        assert_int_not_equal(wr_plan_may_send(rig.plan, flying[i].task, rig.now).verdict, WEIR_GO);
        wr_plan_task_given_back(rig.plan, flying[i].task, rig.now);
    }
    int64_t at = rig.now;
    assert_kind(rig_page(&rig, rig.now + 10 * S), WR_PLAN_START);
    assert_true(rig.now >= at + 7 * S);
    rig_release(&rig);
}

/* However many robots.txt files are due at once, a page that is due waits for at most one of
 * them. */
static void many_new_hosts_delay_no_page_that_is_due(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char host[32];
    int robots = 0, most = 0;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig_begin_job(&rig);
    for (int i = 0; i < 10; i++) {
        snprintf(host, sizeof host, "old%d.example", i);
        rig_offer_many(&rig, 1, host, 2);
    }
    for (int i = 0; i < 10; i++) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_ROBOTS);
        rig_robots(&rig, &action, 404, NULL);
    }
    rig.now += 2 * S; /* the pages of the old hosts are due */
    for (int i = 0; i < 50; i++) {
        snprintf(host, sizeof host, "new%d.example", i);
        rig_offer_many(&rig, 1, host, 1);
    }
    for (int pages = 0; pages < 10;) {
        struct wr_plan_action action = rig_next(&rig);
        bool is_page = action.kind == WR_PLAN_START;
        if (!is_page)
            assert_kind(action, WR_PLAN_ROBOTS);
        pages += is_page;
        robots = is_page ? 0 : robots + 1;
        most = robots > most ? robots : most;
        rig_send(&rig, &action);
    }
    assert_int_equal(most, 1);
    rig_release(&rig);
}

WEIR_TESTS(test(a_slow_host_does_not_slow_the_others), test(hosts_ready_together_start_in_the_order_of_their_arrival),
           test(jobs_take_turns_over_all_hosts), test(jobs_take_turns_at_one_host_too),
           test(a_job_at_its_limit_does_not_hold_up_others_at_its_hosts),
           test(hosts_without_spacing_start_several_at_once), test(many_new_hosts_delay_no_page_that_is_due))
