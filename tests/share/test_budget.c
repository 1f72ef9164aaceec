/* SPDX-License-Identifier: MIT */
/* test_budget.c - several nodes on one real store: what they admit together, and what they do without it. */
#include "lib/test.h"
#include "share/rig.h"
#include "shell/clock/clock.h"
#include "shell/share/budget.h"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#define MS WEIR_MILLISECOND
#define PATIENT (20 * WEIR_SECOND) /* a loaded machine is slow, not down */

static struct store store;

static int open_store(void **state)
{
    (void)state;
    store_open(&store);
    return 0;
}

static int close_store(void **state)
{
    (void)state;
    store_close(&store);
    return 0;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

static struct wr_agency *node_open(uint32_t nodes, int64_t timeout_ns)
{
    struct wr_agency_options options = {.wire = {.path = store.path, .timeout_ns = timeout_ns}, .nodes = nodes};
    struct wr_agency *agency = NULL;
    assert_int_equal(wr_agency_new(&options, &agency), 0);
    assert_true(wr_agency_is(agency, &options));
    assert_int_equal(wr_agency_start(agency), 0);
    return agency;
}

static void wait_until(struct wr_agency *agency, bool down)
{
    struct wr_agency_view view;
    do {
        usleep(1000);
        wr_agency_view_get(agency, &view);
    } while (view.wire.down != down || (!down && !view.seated));
}

static struct wr_budget *budget_open(struct wr_agency *agency, weir_limit limit, uint32_t overshoot,
                                     enum wr_fallback fallback)
{
    struct wr_budget_options options = {.name = "rule", .overshoot = overshoot, .fallback = fallback, .max_keys = 1000};
    struct wr_budget *budget = NULL;
    assert_int_equal(weir_stack_init(&options.stack, &limit, 1), 0);
    assert_int_equal(wr_budget_new(agency, &options, &budget), 0);
    return budget;
}

static weir_limit hourly(uint32_t permits)
{
    weir_limit limit;
    assert_int_equal(weir_limit_fixed_window(&limit, permits, WEIR_HOUR), 0);
    return limit;
}

static void on_wake(void *context)
{
    (void)sem_post(context);
}

static struct wr_share_told ask(struct wr_budget *budget, const char *key, uint32_t permits)
{
    struct wr_share_told told;
    struct wr_errand *errand = NULL;
    sem_t woken;

    (void)sem_init(&woken, 0, 0);
    assert_int_equal(wr_budget_ask(budget, key, strlen(key), permits, on_wake, &woken, &errand, &told), 0);
    if (errand != NULL) {
        while (sem_wait(&woken) != 0)
            ;
        assert_true(wr_errand_poll(errand, &told));
        wr_errand_free(errand);
    }
    (void)sem_destroy(&woken);
    return told;
}

static uint32_t ask_often(struct wr_budget *budget, int times)
{
    uint32_t granted = 0;
    for (int i = 0; i < times; i++)
        granted += ask(budget, "k", 1).decision.verdict == WEIR_GO;
    return granted;
}

static uint64_t sent(struct wr_agency *agency)
{
    struct wr_agency_view view;
    usleep(500000); /* it is looked at with each beat */
    wr_agency_view_get(agency, &view);
    return view.wire.sent;
}

/* ---- with a store -------------------------------------------------------------------------------------- */

static void nodes_that_ask_for_each_request_admit_just_the_limit(void **state)
{
    (void)state;
    struct wr_agency *agencies[3];
    struct wr_budget *budgets[3];
    uint32_t granted = 0;

    for (int i = 0; i < 3; i++) {
        agencies[i] = node_open(3, PATIENT);
        wait_until(agencies[i], false);
        budgets[i] = budget_open(agencies[i], hourly(100), 0, WR_FALLBACK_SHARE);
    }
    for (int i = 0; i < 50; i++)
        for (int j = 0; j < 3; j++)
            granted += ask_often(budgets[j], 1);
    assert_int_equal(granted, 100);
    struct wr_budget_view view;
    wr_budget_view_get(budgets[0], &view);
    assert_int_equal(view.batch, 0);
    assert_true(view.refused[WR_SOURCE_CACHE] > 0); /* refused once, it is not asked again */
    assert_int_equal(view.refused[WR_SOURCE_STORE], 1);
    for (int i = 0; i < 3; i++) {
        wr_budget_free(budgets[i]);
        wr_agency_free(agencies[i]);
    }
}

static void nodes_that_lease_admit_no_more_than_the_limit_and_ask_seldom(void **state)
{
    (void)state;
    struct wr_agency *agencies[2];
    struct wr_budget *budgets[2];
    struct wr_budget_view view;
    uint32_t granted = 0;

    for (int i = 0; i < 2; i++) {
        agencies[i] = node_open(2, PATIENT);
        wait_until(agencies[i], false);
        budgets[i] = budget_open(agencies[i], hourly(10000), 20000, WR_FALLBACK_SHARE);
    }
    for (int i = 0; i < 600; i++)
        for (int j = 0; j < 2; j++)
            granted += ask_often(budgets[j], 10);
    assert_in_range(granted, 8000, 10000); /* in a fixed hour all was charged in it; what is held was not admitted */
    for (int i = 0; i < 2; i++) {
        wr_budget_view_get(budgets[i], &view);
        assert_int_equal(view.batch, 100);
        assert_int_equal(view.bound, 200);
        assert_true(view.overshoot <= 100);
        assert_true(view.granted[WR_SOURCE_LEASE] > 20 * view.granted[WR_SOURCE_STORE]);
        assert_true(sent(agencies[i]) < 6000 / 10);
        wr_budget_free(budgets[i]);
        wr_agency_free(agencies[i]);
    }
}

static void more_than_can_ever_be_granted_is_denied_without_asking(void **state)
{
    (void)state;
    struct wr_agency *agency = node_open(1, PATIENT);
    struct wr_budget *budget = budget_open(agency, hourly(5), 0, WR_FALLBACK_OPEN);

    wait_until(agency, false);
    assert_int_equal(ask(budget, "k", 6).decision.verdict, WEIR_DENY);
    assert_int_equal(ask(budget, "k", 5).decision.verdict, WEIR_GO);
    wr_budget_free(budget);
    wr_agency_free(agency);
}

static void what_was_cancelled_is_held_again_where_leases_are(void **state)
{
    (void)state;
    struct wr_agency *agency = node_open(1, PATIENT);
    struct wr_budget *budget = budget_open(agency, hourly(10), 500000, WR_FALLBACK_SHARE);
    uint32_t granted = 0;

    wait_until(agency, false);
    for (int i = 0; i < 40; i++) {
        bool goes = ask(budget, "k", 1).decision.verdict == WEIR_GO;
        granted += goes;
        if (goes && i < 8)
            wr_budget_settle(budget, "k", 1, 1, 0);
    }
    assert_in_range(granted, 12, 18); /* some came back; never more than there were and came back */
    wr_budget_free(budget);
    wr_agency_free(agency);
}

static void an_errand_may_be_freed_before_its_answer(void **state)
{
    (void)state;
    struct wr_agency *agency = node_open(1, PATIENT);
    struct wr_budget *budget = budget_open(agency, hourly(1000), 0, WR_FALLBACK_SHARE);
    struct wr_share_told told;
    struct wr_errand *errand;
    sem_t woken;

    wait_until(agency, false);
    (void)sem_init(&woken, 0, 0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(wr_budget_ask(budget, "k", 1, 1, on_wake, &woken, &errand, &told), 0);
        assert_non_null(errand);
        wr_errand_free(errand);
    }
    (void)sem_destroy(&woken); /* nobody is woken any more */
    wr_budget_free(budget);
    wr_agency_free(agency);
}

static void keys_beyond_the_most_take_the_place_of_the_oldest(void **state)
{
    (void)state;
    struct wr_agency *agency = node_open(1, PATIENT);
    struct wr_budget *budget = budget_open(agency, hourly(5), 0, WR_FALLBACK_CLOSED);
    struct wr_budget_view view;
    char key[16];

    wait_until(agency, false);
    for (int i = 0; i < 3000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(ask(budget, key, 1).decision.verdict, WEIR_GO);
    }
    wr_budget_view_get(budget, &view);
    assert_in_range(view.keys, 500, 1016);
    wr_budget_free(budget);
    wr_agency_free(agency);
}

/* ---- without ------------------------------------------------------------------------------------------- */

static void a_store_that_is_down_at_the_start_leaves_the_fallback(void **state)
{
    (void)state;
    weir_limit limit;
    store_kill(&store);
    struct wr_agency *agency = node_open(2, PATIENT);
    assert_int_equal(weir_limit_token_bucket(&limit, 10, 20, WEIR_SECOND), 0);
    struct wr_budget *open = budget_open(agency, limit, 0, WR_FALLBACK_OPEN);
    struct wr_budget *shut = budget_open(agency, limit, 0, WR_FALLBACK_CLOSED);
    struct wr_budget *part = budget_open(agency, limit, 0, WR_FALLBACK_SHARE);

    wait_until(agency, true);
    assert_int_equal(ask_often(open, 100), 100);
    assert_int_equal(ask_often(shut, 100), 0);
    struct wr_share_told told = ask(part, "k", 1);
    assert_int_equal(told.source, WR_SOURCE_SHARE);
    assert_int_equal(told.decision.verdict, WEIR_WAIT); /* it begins used up ... */
    while (ask(part, "k", 1).decision.verdict != WEIR_GO)
        usleep(10000); /* ... and fills as its half of the rate lets it */
    struct wr_budget_view view;
    wr_budget_view_get(open, &view);
    assert_int_equal(view.owed, 100);
    assert_int_equal(view.granted[WR_SOURCE_OPEN], 100);
    wr_budget_free(open);
    wr_budget_free(shut);
    wr_budget_free(part);
    wr_agency_free(agency);
    store_start(&store);
}

static void a_share_that_is_less_than_one_is_closed(void **state)
{
    (void)state;
    store_kill(&store);
    struct wr_agency *agency = node_open(8, PATIENT);
    struct wr_budget *budget = budget_open(agency, hourly(7), 0, WR_FALLBACK_SHARE);
    struct wr_share_told told = ask(budget, "k", 1);

    assert_int_equal(told.decision.verdict, WEIR_WAIT);
    assert_int_equal(told.source, WR_SOURCE_CLOSED);
    wr_budget_free(budget);
    wr_agency_free(agency);
    store_start(&store);
}

/* Admitted without the store, and charged when it is back: then nothing is left. */
static void what_was_admitted_meanwhile_is_charged_when_the_store_is_back(void **state)
{
    (void)state;
    struct wr_agency *agency = node_open(1, PATIENT);
    struct wr_budget *budget = budget_open(agency, hourly(100), 0, WR_FALLBACK_OPEN);
    struct wr_budget_view view;

    wait_until(agency, false);
    assert_int_equal(ask_often(budget, 30), 30);
    store_kill(&store);
    wait_until(agency, true);
    assert_int_equal(ask_often(budget, 60), 60);
    store_start(&store);
    wait_until(agency, false);
    do {
        usleep(1000);
        wr_budget_view_get(budget, &view);
    } while (view.owed > 0);
    assert_int_equal(ask_often(budget, 50), 10); /* it had forgotten the 30, and was told of them too */
    wr_budget_free(budget);
    wr_agency_free(agency);
}

static void the_remaining_lease_is_spent_first(void **state)
{
    (void)state;
    struct wr_agency *agency = node_open(1, PATIENT);
    struct wr_budget *budget = budget_open(agency, hourly(1000), 100000, WR_FALLBACK_CLOSED);

    wait_until(agency, false);
    do
        assert_int_equal(ask_often(budget, 1), 1);
    while (ask(budget, "k", 1).source != WR_SOURCE_LEASE);
    store_kill(&store);
    wait_until(agency, true);
    struct wr_share_told told = ask(budget, "k", 1);
    if (told.source == WR_SOURCE_CLOSED) /* the machine was too slow, and the seat has gone */
        assert_int_equal(told.decision.verdict, WEIR_WAIT);
    else
        assert_int_equal(told.decision.verdict, WEIR_GO);
    do /* the seat goes with the store, and the lease with the seat */
        told = ask(budget, "k", 0 + 1);
    while (told.source != WR_SOURCE_CLOSED);
    wr_budget_free(budget);
    wr_agency_free(agency);
    store_start(&store);
}

/* One that hangs: whoever asked is answered in time, and afterwards nobody waits. */
static void errands_to_a_store_that_hangs_end_as_the_fallback_says(void **state)
{
    (void)state;
    struct wr_agency *agency = node_open(1, 100 * MS);
    struct wr_budget *budget = budget_open(agency, hourly(100000), 0, WR_FALLBACK_OPEN);

    wait_until(agency, false);
    kill(store.pid, SIGSTOP);
    struct wr_share_told told;
    do
        told = ask(budget, "k", 1);
    while (told.source == WR_SOURCE_STORE);
    assert_int_equal(told.source, WR_SOURCE_OPEN);
    assert_int_equal(told.decision.verdict, WEIR_GO);
    wait_until(agency, true);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(ask(budget, "k", 1).source, WR_SOURCE_OPEN);
    kill(store.pid, SIGCONT);
    wait_until(agency, false);
    do
        told = ask(budget, "k", 1);
    while (told.source != WR_SOURCE_STORE);
    wr_budget_free(budget);
    wr_agency_free(agency);
}

/* Too short a while for the breaker: what was admitted then is charged all the same, also if nobody asks again. */
static void what_one_missed_answer_admitted_is_charged_too(void **state)
{
    (void)state;
    struct wr_agency *agency = node_open(1, 100 * MS);
    struct wr_budget *budget = budget_open(agency, hourly(100000), 0, WR_FALLBACK_OPEN);
    struct wr_budget_view view;
    struct wr_share_told told;

    wait_until(agency, false);
    kill(store.pid, SIGSTOP);
    do
        told = ask(budget, "k", 1);
    while (told.source == WR_SOURCE_STORE);
    kill(store.pid, SIGCONT);
    do {
        usleep(1000);
        wr_budget_view_get(budget, &view);
    } while (view.owed > 0);
    wr_budget_free(budget);
    wr_agency_free(agency);
}

#define served(function) cmocka_unit_test_setup_teardown(function, open_store, close_store)

WEIR_TESTS(served(nodes_that_ask_for_each_request_admit_just_the_limit),
           served(nodes_that_lease_admit_no_more_than_the_limit_and_ask_seldom),
           served(more_than_can_ever_be_granted_is_denied_without_asking),
           served(what_was_cancelled_is_held_again_where_leases_are), served(an_errand_may_be_freed_before_its_answer),
           served(keys_beyond_the_most_take_the_place_of_the_oldest),
           served(a_store_that_is_down_at_the_start_leaves_the_fallback),
           served(a_share_that_is_less_than_one_is_closed),
           served(what_was_admitted_meanwhile_is_charged_when_the_store_is_back),
           served(the_remaining_lease_is_spent_first), served(errands_to_a_store_that_hangs_end_as_the_fallback_says),
           served(what_one_missed_answer_admitted_is_charged_too))
