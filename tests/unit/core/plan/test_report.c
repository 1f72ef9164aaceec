/* SPDX-License-Identifier: MIT */
/* test_report.c - tests the figures per host for the report at the end of a crawl. */
#include "rig.h"

static struct wr_plan_host_report report_of(const struct plan_store_fixture *rig, const char *host)
{
    struct wr_plan_host_report report;
    wr_plan_host_report(rig->plan, wr_plan_host_find(rig->plan, wr_span_of(host)), rig->now, &report);
    return report;
}

static void host_report_counts_all_requests_by_outcome(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    static const int statuses[] = {200, 429, 404, 301, 0, 503};
    static const int64_t late_ms[] = {0, 700, 40, 90, 500, 0};
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 6);
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    assert_kind(action, WR_PLAN_ROBOTS);
    int64_t first_at = rig.now, last_at = rig.now;
    assert_true(report_of(&rig, "a.example").closest_ns == WEIR_FOREVER);
    rig_robots(&rig, &action, 404, NULL);
    int64_t closest_ns = WEIR_FOREVER;
    for (int i = 0; i < 6; i++) {
        action = rig_page(&rig, rig.now + 10 * S);
        rig.now += late_ms[i] * MS;
        closest_ns = rig.now - last_at < closest_ns ? rig.now - last_at : closest_ns;
        last_at = rig.now;
        rig_fetch(&rig, &action, statuses[i]);
    }
    struct wr_plan_host_report report = report_of(&rig, "a.example");
    assert_int_equal(report.requests, 7);
    assert_int_equal(report.successes, 3); /* the 404 of robots.txt is a success */
    assert_int_equal(report.rejected, 2);
    assert_int_equal(report.failures, 2);
    assert_int_equal(report.retries, 3);
    assert_int_equal(report.bytes, 6000);
    struct wr_plan_stats stats;
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.rejected, report.rejected);
    assert_true(report.closest_ns == closest_ns && closest_ns == S);
    assert_true(report.first_at == first_at && report.last_at == last_at);
    assert_true(report.now.delay_ns == S);
    assert_int_equal(report.now.cap, 4);
    assert_memory_equal(report.key.data, "a.example", 9);
    assert_memory_equal(report.now.key, "a.example", report.now.key_bytes);
    rig_release(&rig);
}

/* S1-29: the figures are computed from send times, independently of the gate. */
static void start_before_its_interval_is_counted_as_hasty(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 4);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_fetch(&rig, &action, 200);
    int64_t late_ns[] = {0, -1, -400 * MS}; /* lateness of a caller that sends at any time */
    for (int i = 0; i < 3; i++) {
        action = rig_page(&rig, rig.now + 2 * S);
        wr_plan_sent(rig.plan, action.task, rig.now + late_ns[i]);
        rig_tell(&rig, &action, 200);
        assert_int_equal(report_of(&rig, "a.example").hasty, i);
    }
    struct wr_plan_stats stats;
    wr_plan_stats_get(rig.plan, &stats);
    assert_int_equal(stats.hasty, 2);
    assert_true(report_of(&rig, "a.example").closest_ns < S);
    rig_release(&rig);
}

/* Requests that were not sent are not counted. */
static void unsent_start_is_not_counted_as_a_request(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    wr_plan_task_given_back(rig.plan, action.task, rig.now);
    assert_int_equal(report_of(&rig, "a.example").requests, 0);
    rig_release(&rig);
}

/* The report includes the current wait, and reading it changes nothing. */
static void report_includes_the_current_wait(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 3);
    for (int i = 0; i < 2; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + S);
        rig_send(&rig, &action);
        rig_tell(&rig, &action, 200);
    }
    rig.now += 300 * MS;
    for (int i = 0; i < 2; i++)
        assert_int_equal(report_of(&rig, "a.example").waited.ms[WEIR_REASON_PACE], 1300);
    rig_release(&rig);
}

static void reports_of_all_hosts_can_be_listed(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char host[32];
    bool seen[100] = {false};
    rig_plain(&rig);
    for (int i = 0; i < 100; i++) {
        snprintf(host, sizeof host, "h%d.example", i);
        rig_offer_many(&rig, 1, host, 1);
    }
    int count = 0;
    struct wr_plan_host *found;
    for (size_t cursor = 0; (found = wr_plan_host_next(rig.plan, &cursor)) != NULL; count++)
        seen[strtol(wr_plan_host_key(found).data + 1, NULL, 10)] = true;
    assert_int_equal(count, 100);
    for (int i = 0; i < 100; i++)
        assert_true(seen[i]);
    rig_release(&rig);
}

struct sum {
    uint32_t hosts, requests;
};

static void add_up(void *context, const struct wr_plan_host_report *report)
{
    struct sum *sum = context;
    assert_memory_equal(report->key.data, "h", 1);
    sum->hosts++;
    sum->requests += report->requests;
}

/* A report over more hosts than the plan has room for is complete. */
static void figures_of_a_dropped_host_are_reported(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char host[32];
    struct sum sum = {0, 0};
    rig_init(&rig);
    rig.options.max_hosts = 10;
    rig.options.host_left = add_up;
    rig.options.context = &sum;
    rig_begin_job(&rig);
    for (int i = 0; i < 50; i++) {
        snprintf(host, sizeof host, "h%d.example", i);
        rig_offer_many(&rig, 1, host, 2);
        for (int page = 0; page < 2; page++) {
            struct wr_plan_action action = rig_page(&rig, rig.now + S);
            rig_send(&rig, &action);
            rig_tell(&rig, &action, 200);
        }
        rig.now += M;
        wr_plan_next_unsaved_host(rig.plan, rig.now, rig.now, &(weir_pace_memory){.floor_ns = 0});
    }
    assert_int_equal(sum.hosts, 40);
    assert_int_equal(sum.requests, 80);
    rig_release(&rig);
}

WEIR_TESTS(test(start_before_its_interval_is_counted_as_hasty), test(host_report_counts_all_requests_by_outcome),
           test(unsent_start_is_not_counted_as_a_request), test(report_includes_the_current_wait),
           test(reports_of_all_hosts_can_be_listed), test(figures_of_a_dropped_host_are_reported))
