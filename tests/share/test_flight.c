/* SPDX-License-Identifier: MIT */
/* test_flight.c - limits on requests in flight that several nodes share. */
#include "lib/test.h"
#include "share/nodes.h"

#include <unistd.h>

static weir_limit at_once(uint32_t permits)
{
    weir_limit limit;
    assert_int_equal(weir_limit_concurrency(&limit, permits), 0);
    return limit;
}

static void wait_for_go(struct wr_shared_limit *budget, uint32_t permits)
{
    while (ask(budget, "k", permits).decision.verdict != WEIR_GO)
        usleep(1000);
}

static void nodes_together_keep_the_limit_on_requests_in_flight(void **state)
{
    (void)state;
    struct node nodes[3];
    struct wr_shared_limit_view view;
    uint32_t granted = 0;

    nodes_join(nodes, 3, at_once(10), 10000, WR_FALLBACK_CLOSED);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 3; j++)
            granted += ask_often(nodes[j].budget, 1);
    assert_int_equal(granted, 10);
    struct wr_shared_limit_decision told = ask(nodes[0].budget, "k", 1);
    assert_int_equal(told.decision.verdict, WEIR_WAIT);
    assert_true(told.decision.wait_ns == WEIR_UNTIL_RELEASE);
    assert_int_equal(ask(nodes[0].budget, "k", 11).decision.verdict, WEIR_DENY);
    assert_int_equal(ask(nodes[1].budget, "other", 10).decision.verdict, WEIR_GO);
    wr_shared_limit_view_get(nodes[0].budget, &view);
    assert_int_equal(view.held, 4);
    assert_int_equal(view.batch, 0);
    nodes_leave(nodes, 3);
}

static void request_that_ends_at_one_node_makes_room_at_the_others(void **state)
{
    (void)state;
    struct node one, two;

    node_join(&one, 2, at_once(10), 0, WR_FALLBACK_CLOSED);
    node_join(&two, 2, at_once(10), 0, WR_FALLBACK_CLOSED);
    struct wr_shared_limit_decision told = ask(one.budget, "k", 7); /* a request of weight 7 */
    assert_int_equal(told.decision.verdict, WEIR_GO);
    assert_int_equal(ask(two.budget, "k", 4).decision.verdict, WEIR_WAIT);
    assert_int_equal(ask(two.budget, "k", 3).decision.verdict, WEIR_GO);
    wr_shared_limit_release(one.budget, "k", 1, 5);
    wait_for_go(two.budget, 5);
    assert_int_equal(ask(one.budget, "k", 1).decision.verdict, WEIR_WAIT);
    /* a surplus release frees no permits of another node */
    wr_shared_limit_release(two.budget, "k", 1, 100);
    wait_for_go(one.budget, 8);
    assert_int_equal(ask(two.budget, "k", 1).decision.verdict, WEIR_WAIT);
    give_back(one.budget, &told, 2, 0); /* a cancelled reservation */
    wait_for_go(two.budget, 2);
    node_leave(&one);
    node_leave(&two);
}

/* Requests that outlast their expiry in the store are renewed; requests of silent nodes expire. */
static void long_requests_in_flight_are_renewed_in_the_store(void **state)
{
    (void)state;
    struct node node;

    node_join(&node, 1, at_once(2), 0, WR_FALLBACK_CLOSED);
    assert_int_equal(ask_often(node.budget, 1), 1);
    long long life = store_say(&store, "PTTL weir:{rule\nk}:1"), next;
    assert_in_range(life, 1, 10002);
    do {
        usleep(20000);
        next = store_say(&store, "PTTL weir:{rule\nk}:1");
        bool is_renewed = next > life;
        life = next;
        if (is_renewed)
            break;
        assert_true(life > 0);
    } while (true);
    node_leave(&node);
}

static void nodes_report_requests_in_flight_again_to_an_emptied_store(void **state)
{
    (void)state;
    struct node one, two;

    node_join(&one, 2, at_once(5), 0, WR_FALLBACK_CLOSED);
    node_join(&two, 2, at_once(5), 0, WR_FALLBACK_CLOSED);
    assert_int_equal(ask_often(one.budget, 5), 5);
    store_say(&store, "FLUSHALL");
    /* until the other node has noticed the loss */
    while (ask(two.budget, "k", 5).decision.verdict == WEIR_GO) {
        wr_shared_limit_release(two.budget, "k", 1, 5);
        usleep(10000);
    }
    node_leave(&one);
    node_leave(&two);
}

/* A rule with both kinds of limits: each is asked, and neither is charged for what the other
 * refused. */
static void rate_limits_and_limits_in_flight_work_in_one_rule(void **state)
{
    (void)state;
    struct wr_redis_client *redis_client = node_open(1, PATIENT);
    struct wr_shared_limit_options options = {.name = "rule", .max_keys = 1000, .fallback = WR_FALLBACK_CLOSED};
    struct wr_shared_limit *budget;
    weir_limit limits[] = {hourly(5), at_once(2)};

    assert_int_equal(weir_stack_init(&options.stack, limits, 2), 0);
    assert_int_equal(wr_shared_limit_new(redis_client, &options, &budget), 0);
    wait_until(redis_client, false);
    assert_int_equal(ask_often(budget, 4), 2);
    wr_shared_limit_release(budget, "k", 1, 2);
    assert_int_equal(ask_often(budget, 4), 2);
    wr_shared_limit_release(budget, "k", 1, 2);
    assert_int_equal(ask_often(budget, 4), 1);
    wr_shared_limit_free(budget);
    wr_redis_client_free(redis_client);
}

static void without_the_store_each_node_has_its_share_in_flight(void **state)
{
    (void)state;
    struct node node;
    struct wr_shared_limit_decision told;

    node_join(&node, 2, at_once(7), 0, WR_FALLBACK_SHARE);
    assert_int_equal(ask_often(node.budget, 2), 2);
    store_kill(&store);
    wait_until(node.redis_client, true);
    /* the local share is three, and two are in flight */
    assert_int_equal(ask_often(node.budget, 5), 1);
    wr_shared_limit_release(node.budget, "k", 1, 2);
    assert_int_equal(ask_often(node.budget, 5), 2);
    store_start(&store);
    wait_until(node.redis_client, false);
    do
        told = ask(node.budget, "k", 4); /* three of seven are in flight */
    while (told.decision.verdict != WEIR_GO);
    assert_int_equal(ask(node.budget, "k", 1).decision.verdict, WEIR_WAIT);
    node_leave(&node);
}

/* Requests handed over by another process end at this node. */
static void requests_handed_over_by_another_process_count_as_in_flight(void **state)
{
    (void)state;
    struct node one, two;

    node_join(&one, 2, at_once(5), 0, WR_FALLBACK_CLOSED);
    node_join(&two, 2, at_once(5), 0, WR_FALLBACK_CLOSED);
    assert_int_equal(wr_shared_limit_resume(one.budget, "k", 1, 4), 0);
    while (ask(two.budget, "k", 2).decision.verdict == WEIR_GO)
        wr_shared_limit_release(two.budget, "k", 1, 2);
    wr_shared_limit_release(one.budget, "k", 1, 4);
    wait_for_go(two.budget, 5);
    node_leave(&one);
    node_leave(&two);
}

WEIR_TESTS(served(nodes_together_keep_the_limit_on_requests_in_flight),
           served(request_that_ends_at_one_node_makes_room_at_the_others),
           served(long_requests_in_flight_are_renewed_in_the_store),
           served(nodes_report_requests_in_flight_again_to_an_emptied_store),
           served(rate_limits_and_limits_in_flight_work_in_one_rule),
           served(without_the_store_each_node_has_its_share_in_flight),
           served(requests_handed_over_by_another_process_count_as_in_flight))
