/* SPDX-License-Identifier: MIT */
/* test_budget.c - several nodes on one real store: what they admit together, and what they do
 * without it. */
#include "lib/test.h"
#include "share/nodes.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- with a store ---------------------------------------------------------------------------- */

static void nodes_that_ask_for_each_request_admit_exactly_the_limit(void **state)
{
    (void)state;
    struct node nodes[3];
    struct wr_shared_limit_view view;
    uint32_t granted = 0;

    nodes_join(nodes, 3, hourly(100), 0, WR_FALLBACK_SHARE);
    for (int i = 0; i < 50; i++)
        for (int j = 0; j < 3; j++)
            granted += ask_often(nodes[j].budget, 1);
    assert_int_equal(granted, 100);
    while (ask(nodes[0].budget, "k", 1).source != WR_SOURCE_CACHE)
        ; /* a refusal is cached, so the store is not asked again */
    wr_shared_limit_view_get(nodes[0].budget, &view);
    assert_int_equal(view.batch, 0);
    nodes_leave(nodes, 3);
}

static void nodes_with_leases_stay_within_the_limit_and_ask_seldom(void **state)
{
    (void)state;
    struct node nodes[2];
    struct wr_shared_limit_view view;
    uint32_t granted = 0;

    nodes_join(nodes, 2, hourly(10000), 20000, WR_FALLBACK_SHARE);
    for (int i = 0; i < 600; i++)
        for (int j = 0; j < 2; j++)
            granted += ask_often(nodes[j].budget, 10);
    /* all charges fall into one fixed hour; leased permits that were not used lower the number */
    assert_in_range(granted, 8000, 10000);
    for (int i = 0; i < 2; i++) {
        wr_shared_limit_view_get(nodes[i].budget, &view);
        assert_int_equal(view.batch, 100);
        assert_int_equal(view.bound, 200);
        assert_true(view.overshoot <= 100);
        assert_true(view.granted[WR_SOURCE_LEASE] > 20 * view.granted[WR_SOURCE_STORE]);
        assert_true(sent(nodes[i].redis_client) < 6000 / 10);
        node_leave(&nodes[i]);
    }
}

/* H3, V8: other nodes may have taken its membership meanwhile and hold leased permits. */
static void permits_leased_before_the_machine_was_suspended_are_not_spent(void **state)
{
    (void)state;
    struct node node;

    node_join(&node, 1, hourly(10000), 20000, WR_FALLBACK_SHARE);
    while (ask(node.budget, "k", 1).source != WR_SOURCE_LEASE)
        usleep(1000);
    machine_sleeps(3600);
    assert_int_equal(ask(node.budget, "k", 1).source, WR_SOURCE_STORE);
    while (ask(node.budget, "k", 1).source != WR_SOURCE_LEASE)
        usleep(1000); /* until the membership is renewed */
    node_leave(&node);
}

static void request_beyond_the_limit_is_denied_without_asking_the_store(void **state)
{
    (void)state;
    struct node node;

    node_join(&node, 1, hourly(5), 0, WR_FALLBACK_OPEN);
    assert_int_equal(ask(node.budget, "k", 6).decision.verdict, WEIR_DENY);
    assert_int_equal(ask(node.budget, "k", 5).decision.verdict, WEIR_GO);
    node_leave(&node);
}

static void store_request_may_be_freed_before_its_reply(void **state)
{
    (void)state;
    struct node node;
    struct wr_shared_limit_decision told;
    struct wr_shared_request *shared_request;
    sem_t woken;

    node_join(&node, 1, hourly(200), 0, WR_FALLBACK_SHARE);
    (void)sem_init(&woken, 0, 0);
    for (int i = 0; i < 150; i++) {
        assert_int_equal(wr_shared_limit_ask(node.budget, "k", 1, 1, wake_test, &woken, &shared_request, &told), 0);
        assert_non_null(shared_request);
        wr_shared_request_free(shared_request);
    }
    (void)sem_destroy(&woken); /* no callback may come after this */
    while (ask(node.budget, "k", 200).decision.verdict != WEIR_GO)
        usleep(1000); /* until all permits have been returned */
    node_leave(&node);
}

/* Another thread renews the membership three times a second meanwhile. */
static void shared_limits_may_be_created_at_any_moment(void **state)
{
    (void)state;
    struct wr_redis_client *redis_client = node_open(2, PATIENT);
    struct wr_redis_client_view view;
    do {
        wr_shared_limit_free(budget_open(redis_client, hourly(100), 20000, WR_FALLBACK_SHARE));
        wr_redis_client_view_get(redis_client, &view);
    } while (view.wire.answered < 6);
    assert_true(view.seated);
    wr_redis_client_free(redis_client);
}

static void keys_beyond_the_maximum_replace_the_oldest(void **state)
{
    (void)state;
    struct node node;
    struct wr_shared_limit_view view;
    char key[16];

    node_join(&node, 1, hourly(5), 0, WR_FALLBACK_CLOSED);
    for (int i = 0; i < 3000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(ask(node.budget, key, 1).decision.verdict, WEIR_GO);
    }
    wr_shared_limit_view_get(node.budget, &view);
    assert_in_range(view.keys, 500, 1016);
    node_leave(&node);
}

/* ---- returned permits ------------------------------------------------------------------------ */

static void cancelled_permits_return_to_the_lease(void **state)
{
    (void)state;
    struct node node;
    uint32_t granted = 0;

    node_join(&node, 1, hourly(10), 500000, WR_FALLBACK_SHARE);
    for (int i = 0; i < 40; i++) {
        struct wr_shared_limit_decision told = ask(node.budget, "k", 1);
        bool goes = told.decision.verdict == WEIR_GO;
        granted += goes;
        if (goes && i < 8)
            give_back(node.budget, &told, 1, 0);
    }
    /* some of the 8 cancelled permits are granted again; never more than 10 + 8 in all */
    assert_in_range(granted, 12, 18);
    node_leave(&node);
}

static void cancelled_permits_are_available_to_other_nodes(void **state)
{
    (void)state;
    struct node one, two;

    node_join(&one, 2, hourly(10), 0, WR_FALLBACK_CLOSED);
    node_join(&two, 2, hourly(10), 0, WR_FALLBACK_CLOSED);
    struct wr_shared_limit_decision told = ask(one.budget, "k", 10);
    assert_int_equal(told.decision.verdict, WEIR_GO);
    assert_int_equal(ask(two.budget, "k", 1).decision.verdict, WEIR_WAIT);
    give_back(one.budget, &told, 10, 6);
    while (ask(two.budget, "k", 4).decision.verdict != WEIR_GO)
        usleep(1000); /* within a second, for which a refusal is cached */
    assert_int_equal(ask(one.budget, "k", 1).decision.verdict, WEIR_WAIT);
    node_leave(&one);
    node_leave(&two);
}

/* The first node used up the key, and the others have been refused. */
static void reset_key_is_new_at_all_nodes_within_a_second(void **state)
{
    (void)state;
    struct node nodes[3];

    nodes_join(nodes, 3, hourly(10), 0, WR_FALLBACK_CLOSED);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask_often(nodes[i].budget, 11), i == 0 ? 10 : 0);
    assert_int_equal(wr_shared_limit_reset(nodes[2].budget, "k", 1), 0);
    for (int i = 0; i < 3; i++) {
        while (ask(nodes[i].budget, "k", 3).decision.verdict != WEIR_GO)
            usleep(1000);
    }
    /* the nodes do not restore the state from before the reset */
    assert_int_equal(ask_often(nodes[2].budget, 5), 1);
    nodes_leave(nodes, 3);
}

/* ---- without a store ------------------------------------------------------------------------- */

static void fallback_decides_if_the_store_is_down_at_the_start(void **state)
{
    (void)state;
    weir_limit limit;
    store_kill(&store);
    struct wr_redis_client *redis_client = node_open(2, PATIENT);
    assert_int_equal(weir_limit_token_bucket(&limit, 10, 20, WEIR_SECOND), 0);
    struct wr_shared_limit *open = budget_open(redis_client, limit, 0, WR_FALLBACK_OPEN);
    struct wr_shared_limit *shut = budget_open(redis_client, limit, 0, WR_FALLBACK_CLOSED);
    struct wr_shared_limit *part = budget_open(redis_client, limit, 0, WR_FALLBACK_SHARE);

    wait_until(redis_client, true);
    assert_int_equal(ask_often(open, 100), 100);
    assert_int_equal(ask_often(shut, 100), 0);
    struct wr_shared_limit_decision told = ask(part, "k", 1);
    assert_int_equal(told.source, WR_SOURCE_SHARE);
    assert_int_equal(told.decision.verdict, WEIR_WAIT); /* the local share starts empty ... */
    while (ask(part, "k", 1).decision.verdict != WEIR_GO)
        usleep(10000); /* ... and fills at half of the rate, the part of one of two nodes */
    struct wr_shared_limit_view view;
    wr_shared_limit_view_get(open, &view);
    assert_int_equal(view.owed, 100);
    assert_int_equal(view.granted[WR_SOURCE_OPEN], 100);
    wr_shared_limit_free(open);
    wr_shared_limit_free(shut);
    wr_shared_limit_free(part);
    wr_redis_client_free(redis_client);
    store_start(&store);
}

static void local_share_below_one_permit_is_closed(void **state)
{
    (void)state;
    store_kill(&store);
    struct wr_redis_client *redis_client = node_open(8, PATIENT);
    struct wr_shared_limit *budget = budget_open(redis_client, hourly(7), 0, WR_FALLBACK_SHARE);
    struct wr_shared_limit_decision told = ask(budget, "k", 1);

    assert_int_equal(told.decision.verdict, WEIR_WAIT);
    assert_int_equal(told.source, WR_SOURCE_CLOSED);
    wr_shared_limit_free(budget);
    wr_redis_client_free(redis_client);
    store_start(&store);
}

/* Permits admitted without the store are charged when it is back. */
static void permits_admitted_in_an_outage_are_charged_afterwards(void **state)
{
    (void)state;
    struct node node;

    node_join(&node, 1, hourly(100), 0, WR_FALLBACK_OPEN);
    assert_int_equal(ask_often(node.budget, 30), 30);
    store_kill(&store);
    wait_until(node.redis_client, true);
    assert_int_equal(ask_often(node.budget, 60), 60);
    store_start(&store);
    wait_until(node.redis_client, false);
    node_settle(&node);
    /* the restarted store had lost the first 30; the node reported them again */
    assert_int_equal(ask_often(node.budget, 50), 10);
    node_leave(&node);
}

/* A debt larger than the bucket is charged like any other, and the bucket fills again
 * afterwards. */
static void debt_larger_than_a_bucket_is_charged_once(void **state)
{
    (void)state;
    struct node node;
    weir_limit limit;

    assert_int_equal(weir_limit_token_bucket(&limit, 10, 20, WEIR_SECOND), 0);
    node_join(&node, 1, limit, 0, WR_FALLBACK_OPEN);
    assert_int_equal(ask_often(node.budget, 10), 10);
    store_kill(&store);
    wait_until(node.redis_client, true);
    assert_int_equal(ask_often(node.budget, 60), 60);
    store_start(&store);
    wait_until(node.redis_client, false);
    node_settle(&node);
    while (ask(node.budget, "k", 1).decision.verdict != WEIR_GO)
        usleep(1000);
    node_leave(&node);
}

/* Charges are sent a few at a time: otherwise requests would wait behind them beyond their timeout,
 * and the breaker would open again. */
static void debts_of_thousands_of_keys_are_charged_a_few_at_a_time(void **state)
{
    (void)state;
    enum {
        KEYS = 5000
    };
    struct node node = {.redis_client = node_open(1, PATIENT)};
    struct wr_shared_limit_options options = {.name = "rule", .fallback = WR_FALLBACK_OPEN, .max_keys = 100000};
    struct wr_redis_client_view view;
    weir_limit limit = hourly(100);
    char key[16];

    assert_int_equal(weir_stack_init(&options.stack, &limit, 1), 0);
    assert_int_equal(wr_shared_limit_new(node.redis_client, &options, &node.budget), 0);
    store_kill(&store);
    wait_until(node.redis_client, true);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(ask(node.budget, key, 1).source, WR_SOURCE_OPEN);
    }
    store_start(&store);
    wait_until(node.redis_client, false);
    while (store_say(&store, "DBSIZE") < KEYS) {
        wr_redis_client_view_get(node.redis_client, &view);
        assert_true(view.wire.asks <= 64);
        usleep(1000);
    }
    node_settle(&node);
    node_leave(&node);
}

static void remaining_lease_is_spent_before_the_fallback(void **state)
{
    (void)state;
    struct node node;

    node_join(&node, 1, hourly(1000), 100000, WR_FALLBACK_CLOSED);
    do
        assert_int_equal(ask_often(node.budget, 1), 1);
    while (ask(node.budget, "k", 1).source != WR_SOURCE_LEASE);
    store_kill(&store);
    wait_until(node.redis_client, true);
    struct wr_shared_limit_decision told = ask(node.budget, "k", 1);
    /* the machine was too slow, and the membership has expired */
    if (told.source == WR_SOURCE_CLOSED)
        assert_int_equal(told.decision.verdict, WEIR_WAIT);
    else
        assert_int_equal(told.decision.verdict, WEIR_GO);
    do /* the membership expires without the store, and the lease with it */
        told = ask(node.budget, "k", 1);
    while (told.source != WR_SOURCE_CLOSED);
    node_leave(&node);
    store_start(&store);
}

/* One node knows the state of the key but gets no more requests for it; the other knows nothing. */
static void nodes_restore_the_state_of_a_store_that_lost_it(void **state)
{
    (void)state;
    static const int64_t period = WEIR_HOUR;
    weir_limit limits[5];

    weir_limit_token_bucket(&limits[0], 100, 1, period);
    weir_limit_stepped_bucket(&limits[1], 100, 1, period, 100);
    weir_limit_fixed_window(&limits[2], 100, period);
    weir_limit_sliding_window(&limits[3], 100, period);
    weir_limit_sliding_log(&limits[4], 100, period);
    for (int i = 0; i < 5; i++) {
        struct node one, two;
        node_join(&one, 2, limits[i], 0, WR_FALLBACK_CLOSED);
        node_join(&two, 2, limits[i], 0, WR_FALLBACK_CLOSED);
        assert_int_equal(ask_often(one.budget, 100), 100);
        store_say(&store, "FLUSHALL");
        uint32_t granted = 0;
        struct wr_shared_limit_decision told;
        do { /* until the first node notices the loss, when it renews its membership */
            told = ask(two.budget, "k", 1);
            granted += told.decision.verdict == WEIR_GO;
            usleep(50000);
        } while (told.decision.verdict == WEIR_GO);
        if (granted >= 90)
            fail_msg("limit %d: %u were admitted again", i, granted);
        node_leave(&one);
        node_leave(&two);
        store_say(&store, "FLUSHALL");
    }
}

/* Requests to a store that hangs end within the timeout; later ones do not wait. */
static void requests_to_a_hanging_store_end_with_the_fallback(void **state)
{
    (void)state;
    struct wr_redis_client *redis_client = node_open(1, 100 * MS);
    struct wr_shared_limit *budget = budget_open(redis_client, hourly(100000), 0, WR_FALLBACK_OPEN);

    wait_until(redis_client, false);
    kill(store.pid, SIGSTOP);
    struct wr_shared_limit_decision told;
    do
        told = ask(budget, "k", 1);
    while (told.source == WR_SOURCE_STORE);
    assert_int_equal(told.source, WR_SOURCE_OPEN);
    assert_int_equal(told.decision.verdict, WEIR_GO);
    wait_until(redis_client, true);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(ask(budget, "k", 1).source, WR_SOURCE_OPEN);
    kill(store.pid, SIGCONT);
    wait_until(redis_client, false);
    do
        told = ask(budget, "k", 1);
    while (told.source != WR_SOURCE_STORE);
    wr_shared_limit_free(budget);
    wr_redis_client_free(redis_client);
}

/* The outage is too short for the breaker. Permits admitted meanwhile are charged even without
 * another request. */
static void permits_admitted_after_one_missed_reply_are_charged(void **state)
{
    (void)state;
    struct node node = {.redis_client = node_open(1, 100 * MS)};
    struct wr_shared_limit_decision told;

    node.budget = budget_open(node.redis_client, hourly(100000), 0, WR_FALLBACK_OPEN);
    wait_until(node.redis_client, false);
    kill(store.pid, SIGSTOP);
    do
        told = ask(node.budget, "k", 1);
    while (told.source == WR_SOURCE_STORE);
    kill(store.pid, SIGCONT);
    node_settle(&node);
    node_leave(&node);
}

/* The local share is for outages: a missed reply does not open a share that has filled
 * meanwhile. */
static void missed_reply_admits_no_request_to_a_used_up_key(void **state)
{
    (void)state;
    struct node node = {.redis_client = node_open(1, 100 * MS)};
    struct wr_shared_limit_decision told;

    node.budget = budget_open(node.redis_client, hourly(50), 0, WR_FALLBACK_SHARE);
    wait_until(node.redis_client, false);
    /* the first outage empties the share, which is then full again at once */
    for (int i = 0; i < 2; i++) {
        do
            told = ask(node.budget, "k", 1);
        while (told.decision.verdict == WEIR_GO);
        kill(store.pid, SIGSTOP);
        do
            told = ask(node.budget, "k", 1);
        while (told.source == WR_SOURCE_STORE || told.source == WR_SOURCE_CACHE);
        assert_int_equal(told.decision.verdict, WEIR_WAIT);
        kill(store.pid, SIGCONT);
        wait_until(node.redis_client, false);
    }
    node_leave(&node);
}

/* ---- late replies ---------------------------------------------------------------------------- */

struct asker {
    struct wr_shared_limit *budget;
    pthread_t thread;
    atomic_bool *is_over;
    uint32_t granted, late;
};

static void *keep_asking(void *context)
{
    struct asker *asker = context;
    while (!atomic_load(asker->is_over)) {
        struct wr_shared_limit_decision told = ask(asker->budget, "k", 1);
        asker->granted += told.decision.verdict == WEIR_GO;
        asker->late += told.source == WR_SOURCE_LATE;
        usleep(told.source == WR_SOURCE_STORE ? 0 : 200);
    }
    return NULL;
}

/* Suspends the store repeatedly for longer than the timeout: replies are late; the breakers of some
 * nodes open, and those of others do not. */
static void falter(int64_t for_ns)
{
    for (int64_t end = weir_clock_now(weir_clock_monotonic()) + for_ns; weir_clock_now(weir_clock_monotonic()) < end;) {
        kill(store.pid, SIGSTOP);
        usleep(15000);
        kill(store.pid, SIGCONT);
        usleep(25000);
    }
}

/* Three nodes with the default timeout, which expires all the time: the worst case of a busy
 * machine. */
static void exact_rules_stay_within_the_limit_however_late_the_store_is(void **state)
{
    (void)state;
    enum {
        NODES = 3,
        RATE = 1000
    };
    weir_limit bucket, limits[2] = {hourly(3000)};
    assert_int_equal(weir_limit_token_bucket(&bucket, RATE, RATE, WEIR_SECOND), 0);
    limits[1] = bucket;
    for (int i = 0; i < 2; i++) {
        struct node nodes[NODES];
        struct asker askers[NODES];
        atomic_bool is_over = false;
        uint64_t granted = 0, late = 0;
        for (int j = 0; j < NODES; j++) {
            nodes[j].redis_client = node_open(NODES, 0);
            nodes[j].budget = budget_open(nodes[j].redis_client, limits[i], 0, WR_FALLBACK_SHARE);
        }
        int64_t begin = weir_clock_now(weir_clock_monotonic());
        for (int j = 0; j < NODES; j++) {
            askers[j] = (struct asker){.budget = nodes[j].budget, .is_over = &is_over};
            assert_int_equal(pthread_create(&askers[j].thread, NULL, keep_asking, &askers[j]), 0);
        }
        falter(1500 * MS);
        atomic_store(&is_over, true);
        for (int j = 0; j < NODES; j++) {
            assert_int_equal(pthread_join(askers[j].thread, NULL), 0);
            granted += askers[j].granted;
            late += askers[j].late;
        }
        int64_t took_ns = weir_clock_now(weir_clock_monotonic()) - begin;
        uint64_t most = i == 0 ? 3000 : RATE + (uint64_t)took_ns * RATE / WEIR_SECOND;
        if (granted > most || late == 0)
            fail_msg("limit %d: %llu of %llu were admitted, %llu answers were late", i, (unsigned long long)granted,
                     (unsigned long long)most, (unsigned long long)late);
        nodes_leave(nodes, NODES);
        store_say(&store, "FLUSHALL");
    }
}

/* After a second of silence the store counts as lost: then the local share decides. */
static void store_silent_for_long_is_lost_and_local_shares_decide(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, 100, 100, WEIR_SECOND), 0);
    struct wr_redis_client *redis_client = node_open(1, 50 * MS);
    struct wr_shared_limit *budget = budget_open(redis_client, limit, 0, WR_FALLBACK_SHARE);
    struct wr_shared_limit_decision told;

    wait_until(redis_client, false);
    kill(store.pid, SIGSTOP);
    do
        told = ask(budget, "k", 1);
    while (told.source == WR_SOURCE_STORE || told.source == WR_SOURCE_CACHE);
    assert_int_equal(told.source, WR_SOURCE_LATE);
    assert_int_equal(told.decision.verdict, WEIR_WAIT);
    do
        usleep(1000);
    while (ask(budget, "k", 1).source == WR_SOURCE_LATE);
    while (ask(budget, "k", 1).decision.verdict != WEIR_GO)
        usleep(1000);
    kill(store.pid, SIGCONT);
    wait_until(redis_client, false);
    wr_shared_limit_free(budget);
    wr_redis_client_free(redis_client);
}

WEIR_TESTS(
    served(nodes_that_ask_for_each_request_admit_exactly_the_limit), served(shared_limits_may_be_created_at_any_moment),
    served(permits_leased_before_the_machine_was_suspended_are_not_spent),
    served(nodes_with_leases_stay_within_the_limit_and_ask_seldom),
    served(request_beyond_the_limit_is_denied_without_asking_the_store),
    served(store_request_may_be_freed_before_its_reply), served(keys_beyond_the_maximum_replace_the_oldest),
    served(cancelled_permits_return_to_the_lease), served(cancelled_permits_are_available_to_other_nodes),
    served(reset_key_is_new_at_all_nodes_within_a_second), served(fallback_decides_if_the_store_is_down_at_the_start),
    served(local_share_below_one_permit_is_closed), served(permits_admitted_in_an_outage_are_charged_afterwards),
    served(debt_larger_than_a_bucket_is_charged_once), served(debts_of_thousands_of_keys_are_charged_a_few_at_a_time),
    served(remaining_lease_is_spent_before_the_fallback), served(nodes_restore_the_state_of_a_store_that_lost_it),
    served(requests_to_a_hanging_store_end_with_the_fallback),
    served(permits_admitted_after_one_missed_reply_are_charged),
    served(missed_reply_admits_no_request_to_a_used_up_key),
    served(exact_rules_stay_within_the_limit_however_late_the_store_is),
    served(store_silent_for_long_is_lost_and_local_shares_decide))
