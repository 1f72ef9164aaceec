/* SPDX-License-Identifier: MIT */
/* test_wall.c - tests that hosts whose firewall refuses us get no requests for a day, and that
 * queued tasks for them end. */
#include "rig.h"

#define BY 3

static struct plan_store_fixture rig;

static void begin(void)
{
    rig_init(&rig);
    rig_begin(&rig);
    rig_job(&rig, 1);
}

static void assert_ends(int count)
{
    for (int i = 0; i < count; i++) {
        struct wr_plan_action action = rig_next(&rig);
        assert_kind(action, WR_PLAN_END);
        assert_false(action.is_denied);
        assert_int_equal(action.blocked_by, BY);
        rig_ended(&rig, &action);
    }
    assert_kind(rig_next(&rig), WR_PLAN_DRAINED);
}

/* Fetches one page of the host, which its firewall refuses. Returns whether the host is now
 * blocked. */
static bool meet_wall(struct wr_plan_host **ret_host)
{
    struct wr_plan_action action = rig_page(&rig, rig.now + M);
    *ret_host = action.host;
    rig_send(&rig, &action);
    bool is_blocked = wr_plan_firewall_seen(rig.plan, action.host, BY, rig.now) == WR_FIREWALL_CHANGE_BLOCKED;
    (void)rig_tell(&rig, &action, 404); /* a status that is not retried */
    rig_ended(&rig, &action);
    return is_blocked;
}

/* U10 */
static void second_refusal_of_a_firewall_ends_all_that_is_queued(void **state)
{
    struct wr_plan_host *host;
    (void)state;
    begin();
    rig_offer_many(&rig, 1, "a.example", 50);
    assert_false(meet_wall(&host));
    assert_true(meet_wall(&host));
    assert_ends(48);
    assert_true(wr_plan_ok(rig.plan));
    rig_release(&rig);
}

static void answer_between_firewall_refusals_restarts_the_count(void **state)
{
    struct wr_plan_host *host;
    (void)state;
    begin();
    rig_offer_many(&rig, 1, "a.example", 10);
    for (int i = 0; i < 4; i++) {
        assert_false(meet_wall(&host));
        struct wr_plan_action action = rig_page(&rig, rig.now + M);
        assert_int_equal(wr_plan_firewall_seen(rig.plan, action.host, 0, rig.now), WR_FIREWALL_CHANGE_NONE);
        (void)rig_fetch(&rig, &action, 200);
        rig_ended(&rig, &action);
    }
    rig_release(&rig);
}

static void blocked_host_gets_requests_after_a_day_and_others_always(void **state)
{
    struct wr_plan_host *host;
    (void)state;
    begin();
    rig_offer_many(&rig, 1, "a.example", 2);
    (void)meet_wall(&host);
    assert_true(meet_wall(&host));
    int64_t blocked_at = rig.now;
    assert_kind(rig_next(&rig), WR_PLAN_DRAINED);
    assert_offer(rig_offer(&rig, 1, "http://a.example/more"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://b.example/"), WR_ADD_URL_NEW);
    for (int i = 0; i < 2; i++) {
        struct wr_plan_action action = rig_next(&rig);
        if (action.kind == WR_PLAN_START) {
            assert_url(action, "http://b.example/");
            (void)rig_fetch(&rig, &action, 200);
        } else {
            assert_kind(action, WR_PLAN_END);
            assert_int_equal(action.blocked_by, BY);
        }
        rig_ended(&rig, &action);
    }
    rig.now = blocked_at + WEIR_DAY + S;
    assert_offer(rig_offer(&rig, 1, "http://a.example/later"), WR_ADD_URL_NEW);
    struct wr_plan_action later = rig_page(&rig, rig.now + M);
    assert_url(later, "http://a.example/later");
    assert_int_equal(wr_plan_firewall_seen(rig.plan, host, 0, rig.now), WR_FIREWALL_CHANGE_LIFTED);
    assert_int_equal(wr_plan_firewall_seen(rig.plan, host, 0, rig.now), WR_FIREWALL_CHANGE_NONE);
    rig_release(&rig);
}

/* A page that waits for its connection meanwhile is not sent. */
static void page_about_to_be_sent_is_stopped_by_a_block(void **state)
{
    struct wr_plan_host *host;
    (void)state;
    begin();
    rig_offer_many(&rig, 1, "a.example", 3);
    (void)meet_wall(&host);
    struct wr_plan_action action = rig_page(&rig, rig.now + M);
    assert_int_equal(wr_plan_firewall_seen(rig.plan, host, BY, rig.now), WR_FIREWALL_CHANGE_BLOCKED);
    /* an answer of a request in flight */
    assert_int_equal(wr_plan_firewall_seen(rig.plan, host, 0, rig.now), WR_FIREWALL_CHANGE_NONE);
    assert_int_equal(wr_plan_may_send(rig.plan, action.task, rig.now).verdict, WEIR_WAIT);
    wr_plan_task_given_back(rig.plan, action.task, rig.now);
    assert_ends(2);
    rig_release(&rig);
}

/* A blocked host gets no robots.txt request, either. */
static void stored_firewall_block_holds_from_the_start(void **state)
{
    (void)state;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig.blocked_ns = WEIR_HOUR;
    rig.blocked_by = BY;
    rig_begin(&rig);
    rig_job(&rig, 1);
    rig_offer_many(&rig, 1, "a.example", 5);
    assert_ends(5);
    rig.now += WEIR_HOUR;
    assert_offer(rig_offer(&rig, 1, "http://a.example/later"), WR_ADD_URL_NEW);
    assert_kind(rig_wait(&rig, rig.now + M), WR_PLAN_ROBOTS);
    rig_release(&rig);
}

/* After a block, the next block takes two refusals, not one. */
static void refusals_after_a_block_are_counted_from_zero(void **state)
{
    struct wr_plan_host *host;
    (void)state;
    begin();
    rig_offer_many(&rig, 1, "a.example", 2);
    (void)meet_wall(&host);
    assert_true(meet_wall(&host));
    assert_kind(rig_next(&rig), WR_PLAN_DRAINED);
    for (int day = 0; day < 2; day++) {
        char url[64];
        rig.now += WR_PLAN_BLOCKED_NS;
        for (int i = 0; i < 2; i++) {
            snprintf(url, sizeof url, "http://a.example/%d/%d", day, i);
            assert_offer(rig_offer(&rig, 1, url), WR_ADD_URL_NEW);
        }
        assert_false(meet_wall(&host));
        assert_true(meet_wall(&host));
        assert_kind(rig_wait(&rig, rig.now), WR_PLAN_DRAINED);
    }
    rig_release(&rig);
}

static void block_ends_queued_tasks_first(void **state)
{
    (void)state;
    begin();
    rig_offer_many(&rig, 1, "a.example", 4);
    for (int i = 0; i < 2; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + M);
        (void)rig_fetch(&rig, &action, 404);
        assert_int_equal(wr_plan_firewall_seen(rig.plan, action.host, BY, rig.now),
                         i == 1 ? WR_FIREWALL_CHANGE_BLOCKED : WR_FIREWALL_CHANGE_NONE);
    }
    assert_ends(2);
    rig_release(&rig);
}

static void end_of_a_stored_block_is_reported_once(void **state)
{
    (void)state;
    rig_init(&rig);
    rig.blocked_by = BY; /* the block has ended */
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    assert_int_equal(wr_plan_firewall_seen(rig.plan, action.host, 0, rig.now), WR_FIREWALL_CHANGE_LIFTED);
    assert_int_equal(wr_plan_firewall_seen(rig.plan, action.host, 0, rig.now), WR_FIREWALL_CHANGE_NONE);
    (void)rig_fetch(&rig, &action, 200);
    rig_release(&rig);
}

static void stored_block_lasts_no_longer_than_a_new_one(void **state)
{
    (void)state;
    rig_init(&rig);
    rig.blocked_ns = 10 * WR_PLAN_BLOCKED_NS;
    rig.blocked_by = BY;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    assert_ends(1);
    rig.now += WR_PLAN_BLOCKED_NS - 1;
    assert_offer(rig_offer(&rig, 1, "http://a.example/early"), WR_ADD_URL_NEW);
    assert_ends(1);
    rig.now++;
    assert_offer(rig_offer(&rig, 1, "http://a.example/late"), WR_ADD_URL_NEW);
    struct wr_plan_action action = rig_next(&rig);
    assert_kind(action, WR_PLAN_START);
    assert_url(action, "http://a.example/late");
    rig_release(&rig);
}

/* An errand serves another host, whose robots.txt leads to this one. */
static void errand_is_sent_to_a_blocked_host_and_a_page_is_not(void **state)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    (void)state;
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig.robots_are_known = true;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 3);
    struct wr_plan_action page = rig_page(&rig, rig.now);
    for (int i = 0; i < WR_PLAN_FIREWALL_PAGES; i++)
        (void)wr_plan_firewall_seen(rig.plan, page.host, BY, rig.now);
    rig.now += S;
    weir_decision decision = wr_plan_may_send(rig.plan, page.task, rig.now);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.reason, WEIR_REASON_BREAKER);
    assert_int_equal(decision.wait_ns, WR_PLAN_BLOCKED_NS - S);
    wr_plan_task_given_back(rig.plan, page.task, rig.now);
    assert_ends(3);
    assert_int_equal(wr_url_parse(wr_span_of("http://a.example/r"), NULL, NULL, memory, sizeof memory, &url),
                     WR_URL_OK);
    assert_int_equal(wr_plan_robots_hop_add(rig.plan, &url, 7, rig.now), 0);
    struct wr_plan_action errand = rig_wait(&rig, rig.now + S);
    assert_kind(errand, WR_PLAN_ROBOTS_HOP);
    rig_send(&rig, &errand);
    assert_int_equal(wr_plan_robots_hop_finished(rig.plan, errand.task, NULL, rig.now), 0);
    rig_release(&rig);
}

WEIR_TESTS(test(block_ends_queued_tasks_first), test(refusals_after_a_block_are_counted_from_zero),
           test(end_of_a_stored_block_is_reported_once), test(stored_block_lasts_no_longer_than_a_new_one),
           test(errand_is_sent_to_a_blocked_host_and_a_page_is_not),
           test(second_refusal_of_a_firewall_ends_all_that_is_queued),
           test(answer_between_firewall_refusals_restarts_the_count),
           test(blocked_host_gets_requests_after_a_day_and_others_always),
           test(page_about_to_be_sent_is_stopped_by_a_block), test(stored_firewall_block_holds_from_the_start))
