/* SPDX-License-Identifier: MIT */
/* test_group.c - tests hosts that share the gate of a group beside their own, such as one machine
 * with a thousand names (D8). */
#include "rig.h"

/* Returns the part of the host name after its first dot. */
static struct wr_span domain_of(void *context, struct wr_span key)
{
    (void)context;
    size_t dot = wr_span_find(key, '.');
    return dot < key.bytes ? wr_span_after(key, dot + 1) : (struct wr_span){NULL, 0};
}

static void begin(struct plan_store_fixture *rig)
{
    rig_init(rig);
    rig->options.pace.jitter_over_ns = WEIR_DURATION_MAX;
    rig->options.group_of = domain_of;
    rig_begin_job(rig);
}

static struct wr_plan_host *host_of(const struct plan_store_fixture *rig, const char *key)
{
    return wr_plan_host_find(rig->plan, wr_span_of(key));
}

/* The host that has been ready for the longest time goes first. */
static void hosts_of_a_group_take_turns_at_its_pace(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    static const char hosts[] = "abc";
    begin(&rig);
    for (int i = 0; i < 3; i++) {
        char host[32];
        snprintf(host, sizeof host, "%c.one.example", hosts[i]);
        rig_offer_many(&rig, 1, host, 4);
    }
    int64_t began_at = rig.now;
    for (int i = 0; i < 12; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + S);
        assert_int_equal(action.url.data[7], hosts[i % 3]);
        assert_int_equal(rig.now, began_at + i * S);
        rig_send(&rig, &action);
        rig_tell(&rig, &action, 200);
    }
    rig_release(&rig);
}

static void hosts_outside_a_group_are_not_slowed_by_it(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin(&rig);
    rig_offer_many(&rig, 1, "a.one.example", 2);
    rig_offer_many(&rig, 1, "a.two.example", 2);
    rig_offer_many(&rig, 1, "alone", 2);
    for (int i = 0; i < 3; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now);
        rig_send(&rig, &action);
        rig_tell(&rig, &action, 200);
    }
    assert_int_equal(wr_plan_host_group_key(rig.plan, host_of(&rig, "alone")).bytes, 0);
    assert_true(wr_span_is(wr_plan_host_group_key(rig.plan, host_of(&rig, "a.two.example")), "two.example"));
    rig_release(&rig);
}

static void retry_after_of_one_host_binds_its_group(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    weir_outcome outcome = {.size = sizeof outcome, .status = 429, .has_retry_after = true, .retry_after_ns = 7 * S};
    for (int heard = 0; heard < 2; heard++) {
        begin(&rig);
        rig_offer_many(&rig, 1, "a.one.example", 1);
        rig_offer_many(&rig, 1, "b.one.example", 1);
        struct wr_plan_action action = rig_page(&rig, rig.now);
        rig_send(&rig, &action);
        if (heard)
            wr_plan_response_head(rig.plan, action.task, &outcome, rig.now);
        else
            wr_plan_page_finished(rig.plan, action.task, &outcome, 0, rig.now);
        weir_decision why = wr_plan_why(rig.plan, host_of(&rig, "b.one.example"), 1, rig.now);
        assert_int_equal(why.reason, WEIR_REASON_RETRY_AFTER);
        assert_int_equal(why.wait_ns, 7 * S);
        int64_t told_at = rig.now;
        struct wr_plan_action other = rig_page(&rig, rig.now + 7 * S);
        assert_int_equal(rig.now, told_at + 7 * S);
        assert_int_equal(other.waited.ms[WEIR_REASON_RETRY_AFTER], 7000);
        wr_plan_task_given_back(rig.plan, other.task, rig.now);
        if (heard)
            rig_tell(&rig, &action, 200);
        rig_release(&rig);
    }
}

/* Without spacing, only the number of requests in flight is limited. */
static void limit_in_flight_applies_to_a_group(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    weir_pace_options pace;
    struct wr_plan_action flying[3];
    char host[32];
    rig_init(&rig);
    weir_pace_options_profile(&pace, WEIR_PROFILE_UNLIMITED);
    pace.max_in_flight = 3;
    assert_int_equal(wr_pace_options_check(&pace, &rig.options.pace), 0);
    rig.options.group_of = domain_of;
    rig_begin_job(&rig);
    for (int i = 0; i < 50; i++) {
        snprintf(host, sizeof host, "h%d.one.example", i);
        rig_offer_many(&rig, 1, host, 2);
    }
    for (int i = 0; i < 70; i++) {
        if (i >= 3) {
            assert_kind(rig_next(&rig), WR_PLAN_IDLE);
            rig_tell(&rig, &flying[i % 3], 200);
        }
        flying[i % 3] = rig_page(&rig, rig.now); /* without waiting */
        if (i % 7 == 0) {
            wr_plan_task_given_back(rig.plan, flying[i % 3].task, rig.now); /* another host is next */
            flying[i % 3] = rig_page(&rig, rig.now);
        }
        rig_send(&rig, &flying[i % 3]);
    }
    rig_release(&rig);
}

static void robots_txt_passes_the_group_gate_and_delays_only_its_host(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.group_of = domain_of;
    rig.options.ignores_robots = false;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.one.example", 3);
    rig_offer_many(&rig, 1, "b.one.example", 5);
    int64_t began_at = rig.now;
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    assert_kind(action, WR_PLAN_ROBOTS);
    rig_robots(&rig, &action, 200, "User-agent: *\nCrawl-delay: 3\n");
    action = rig_wait(&rig, rig.now + S);
    assert_kind(action, WR_PLAN_ROBOTS);
    assert_int_equal(rig.now, began_at + S);
    rig_robots(&rig, &action, 404, NULL);
    static const char order[] = "babbabb";
    for (int i = 0; i < 7; i++) {
        action = rig_page(&rig, rig.now + S);
        assert_int_equal(action.url.data[7], order[i]);
        assert_int_equal(rig.now, began_at + (i + 2) * S);
        rig_fetch(&rig, &action, 200);
    }
    rig_release(&rig);
}

/* The address of a host is known after it is resolved, just before the request is sent. */
static void host_that_joins_a_group_before_sending_asks_its_gate(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_span address = wr_span_of("192.0.2.1");
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    rig_offer_many(&rig, 1, "b.example", 2);
    struct wr_plan_action a = rig_page(&rig, rig.now), b = rig_page(&rig, rig.now);
    int64_t began_at = rig.now;
    assert_int_equal(wr_plan_host_group(rig.plan, a.host, address, rig.now), 0);
    assert_int_equal(wr_plan_may_send(rig.plan, a.task, rig.now).verdict, WEIR_GO);
    assert_int_equal(wr_plan_host_group(rig.plan, b.host, address, rig.now), 0);
    assert_int_equal(wr_plan_may_send(rig.plan, b.task, rig.now).verdict,
                     WEIR_WAIT); /* the other host is about to send */
    wr_plan_sent(rig.plan, a.task, rig.now);
    assert_int_equal(wr_plan_may_send(rig.plan, b.task, rig.now).verdict, WEIR_WAIT);
    wr_plan_task_given_back(rig.plan, b.task, rig.now);
    rig_tell(&rig, &a, 200);
    b = rig_page(&rig, rig.now + S);
    assert_url(b, "http://b.example/0");
    assert_int_equal(rig.now, began_at + S);
    rig_send(&rig, &b);
    rig_tell(&rig, &b, 200);
    a = rig_page(&rig, rig.now + S);
    assert_int_equal(rig.now, began_at + 2 * S);
    rig_send(&rig, &a);
    rig_release(&rig);
}

static void a_host_keeps_its_group_while_it_has_requests_there(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin(&rig);
    rig_offer_many(&rig, 1, "a.one.example", 2);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    struct wr_plan_host *host = action.host;
    rig_send(&rig, &action);
    assert_int_equal(wr_plan_host_group(rig.plan, host, wr_span_of("two"), rig.now), 0);
    assert_true(wr_span_is(wr_plan_host_group_key(rig.plan, host), "one.example"));
    rig_tell(&rig, &action, 200);
    assert_int_equal(wr_plan_host_group(rig.plan, host, wr_span_of("two"), rig.now), 0);
    assert_true(wr_span_is(wr_plan_host_group_key(rig.plan, host), "two"));
    assert_int_equal(wr_plan_host_group(rig.plan, host, (struct wr_span){NULL, 0}, rig.now), 0);
    assert_int_equal(wr_plan_host_group_key(rig.plan, host).bytes, 0);
    rig_release(&rig);
}

/* A host that leaves the queue of a group does not stop the queue. */
static void host_that_moves_to_another_group_starts_and_the_rest_follow(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin(&rig);
    rig_offer_many(&rig, 1, "a.one.example", 1);
    rig_offer_many(&rig, 1, "b.one.example", 1);
    rig_offer_many(&rig, 1, "c.one.example", 1);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_send(&rig, &action);
    rig_tell(&rig, &action, 200);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    assert_int_equal(wr_plan_host_group(rig.plan, host_of(&rig, "b.one.example"), wr_span_of("two"), rig.now), 0);
    action = rig_page(&rig, rig.now);
    assert_url(action, "http://b.one.example/0");
    rig_fetch(&rig, &action, 200);
    action = rig_page(&rig, rig.now + S);
    assert_url(action, "http://c.one.example/0");
    rig_release(&rig);
}

/* A host keeps its place in the queue of its group if its state changes. */
static void waiting_host_keeps_its_place_in_the_group_queue(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin(&rig);
    rig_offer_many(&rig, 1, "a.one.example", 1);
    rig_offer_many(&rig, 1, "b.one.example", 1);
    rig_offer_many(&rig, 1, "c.one.example", 1);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_fetch(&rig, &action, 200);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    wr_plan_host_changed(rig.plan, host_of(&rig, "b.one.example"), rig.now);
    action = rig_page(&rig, rig.now + S);
    assert_url(action, "http://b.one.example/0");
    rig_release(&rig);
}

static void last_host_of_a_group_queue_may_move(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin(&rig);
    rig_offer_many(&rig, 1, "a.one.example", 1);
    rig_offer_many(&rig, 1, "b.one.example", 1);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_send(&rig, &action);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    assert_int_equal(wr_plan_host_group(rig.plan, host_of(&rig, "b.one.example"), wr_span_of("two"), rig.now), 0);
    action = rig_page(&rig, rig.now);
    assert_url(action, "http://b.one.example/0");
    assert_true(rig_next(&rig).at > rig.now + S); /* no host waits for the first group */
    rig_release(&rig);
}

/* The group has learned a delay that this host has not. */
static void start_reports_the_delay_of_its_group(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    weir_pace_options pace;
    rig_init(&rig);
    weir_pace_options_profile(&pace, WEIR_PROFILE_LEARNED);
    assert_int_equal(wr_pace_options_check(&pace, &rig.options.pace), 0);
    rig.options.pace.delay_up_ns = 5 * S;
    rig.options.group_of = domain_of;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.one.example", 1);
    rig_offer_many(&rig, 1, "b.one.example", 2);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_fetch(&rig, &action, 429);
    action = rig_page(&rig, rig.now + 10 * S);
    assert_url(action, "http://b.one.example/0");
    assert_true(action.next_ns >= 5 * S);
    rig_release(&rig);
}

/* If the job of the first host in a queue may not start requests, the next host does. */
static void host_that_cannot_start_does_not_block_its_group(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 2, .concurrency = 1}), 0);
    rig_offer_many(&rig, 2, "busy.two.example", 1);
    struct wr_plan_action busy = rig_page(&rig, rig.now);
    rig_send(&rig, &busy);
    rig_offer_many(&rig, 1, "first.one.example", 1);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_send(&rig, &action);
    rig_offer_many(&rig, 2, "a.one.example", 1);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    rig_offer_many(&rig, 1, "b.one.example", 1);
    rig_tell(&rig, &action, 200);
    int64_t began_at = rig.now;
    action = rig_page(&rig, rig.now + 2 * S);
    assert_url(action, "http://b.one.example/0");
    assert_true(rig.now - began_at <= S + 100 * MS);
    rig_fetch(&rig, &action, 200);
    rig_tell(&rig, &busy, 200);
    action = rig_page(&rig, rig.now + S);
    assert_url(action, "http://a.one.example/0");
    rig_release(&rig);
}

/* There are at most max_hosts groups. A group without hosts is dropped once a new one would be
 * equal. */
static void groups_are_bounded_and_dropped_once_nothing_is_lost(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char key[16];
    rig_init(&rig);
    rig.options.max_hosts = 3;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 9);
    rig_offer_many(&rig, 1, "b.example", 1);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    struct wr_plan_host *b = host_of(&rig, "b.example");
    assert_int_equal(wr_plan_host_group(rig.plan, action.host, wr_span_of("x"), rig.now), 0);
    rig_send(&rig, &action);
    rig_tell(&rig, &action, 200);
    assert_int_equal(wr_plan_host_group(rig.plan, action.host, wr_span_of("y"), rig.now), 0);
    assert_int_equal(wr_plan_host_group(rig.plan, b, wr_span_of("z"), rig.now), 0);
    /* a request passed x a moment ago */
    assert_int_equal(wr_plan_host_group(rig.plan, b, wr_span_of("w"), rig.now), WEIR_E_FULL);
    assert_true(wr_span_is(wr_plan_host_group_key(rig.plan, b), "z"));
    rig.now += M;
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "g%d", i);
        assert_int_equal(wr_plan_host_group(rig.plan, b, wr_span_of(key), rig.now), 0);
    }
    struct wr_span too_long = {rig.rows[0].url, WEIR_PACE_KEY_MAX + 1};
    assert_int_equal(wr_plan_host_group(rig.plan, b, too_long, rig.now), WEIR_E_INVAL);
    rig_release(&rig);
}

static void group_change_without_memory_keeps_the_old_group(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    int failed = 0;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    (void)rig_page(&rig, rig.now);
    struct wr_plan_host *host = host_of(&rig, "a.example");
    assert_int_equal(wr_plan_host_group(rig.plan, host, wr_span_of("x"), rig.now), 0);
    struct wr_plan_stats before, after;
    wr_plan_stats_get(rig.plan, &before);
    for (long n = 1;; n++) {
        char key[16];
        for (int i = 0; i < 200; i++) { /* so that maps and heaps must grow, too */
            snprintf(key, sizeof key, "g%ld.%d", n, i);
            rig.allocator.fail_at = n;
            int error = wr_plan_host_group(rig.plan, host, wr_span_of(key), rig.now);
            rig.allocator.fail_at = 0;
            if (error != 0) {
                failed++;
                assert_int_equal(error, WEIR_E_NOMEM);
                assert_true(wr_span_is(wr_plan_host_group_key(rig.plan, host), "x"));
            } else {
                assert_true(wr_span_is(wr_plan_host_group_key(rig.plan, host), key));
                assert_int_equal(wr_plan_host_group(rig.plan, host, wr_span_of("x"), rig.now), 0);
            }
        }
        if (n == 4)
            break;
    }
    assert_true(failed >= 200);
    wr_plan_stats_get(rig.plan, &after);
    assert_int_equal(after.memory_bytes, rig.allocator.live_bytes);
    rig_release(&rig);
}

/* The cost of a start does not depend on the number of waiting hosts: only the first in the queue
 * is looked at. */
static void only_the_first_host_of_a_group_queue_is_asked(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    static const char *const hosts[] = {"b.one.example", "c.one.example", "d.one.example"};
    static const struct {
        int64_t after;
        weir_reason reasons[3];
    } cases[] = {{0, {WEIR_REASON_PACE, WEIR_REASON_PACE, WEIR_REASON_PACE}},
                 {S, {WEIR_REASON_GLOBAL, WEIR_REASON_QUEUE, WEIR_REASON_QUEUE}},
                 {100 * MS, {WEIR_REASON_GLOBAL, WEIR_REASON_GLOBAL, WEIR_REASON_QUEUE}}};
    begin(&rig);
    rig_offer_many(&rig, 1, "a.one.example", 1);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_send(&rig, &action);
    rig_tell(&rig, &action, 200);
    for (int i = 0; i < 3; i++)
        rig_offer_many(&rig, 1, hosts[i], 1);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    wr_plan_hold_starts(rig.plan, rig.now + M);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rig.now += cases[i].after;
        assert_kind(rig_next(&rig), WR_PLAN_IDLE);
        for (int h = 0; h < 3; h++)
            assert_int_equal(wr_plan_why(rig.plan, host_of(&rig, hosts[h]), 1, rig.now).reason, cases[i].reasons[h]);
    }
    rig_release(&rig);
}

WEIR_TESTS(test(group_change_without_memory_keeps_the_old_group), test(hosts_of_a_group_take_turns_at_its_pace),
           test(hosts_outside_a_group_are_not_slowed_by_it), test(retry_after_of_one_host_binds_its_group),
           test(limit_in_flight_applies_to_a_group), test(robots_txt_passes_the_group_gate_and_delays_only_its_host),
           test(host_that_joins_a_group_before_sending_asks_its_gate),
           test(a_host_keeps_its_group_while_it_has_requests_there),
           test(host_that_moves_to_another_group_starts_and_the_rest_follow),
           test(waiting_host_keeps_its_place_in_the_group_queue), test(last_host_of_a_group_queue_may_move),
           test(start_reports_the_delay_of_its_group), test(host_that_cannot_start_does_not_block_its_group),
           test(groups_are_bounded_and_dropped_once_nothing_is_lost),
           test(only_the_first_host_of_a_group_queue_is_asked))
