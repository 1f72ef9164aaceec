/* SPDX-License-Identifier: MIT */
/* test_receipt.c - tests that permits acquired by waiting can be settled like those granted at once
 * (R17). */
#include "lib/test.h"
#include "lib/worker.h"

struct fixture {
    weir_clock *clock;
    weir_limiter *limiter;
    weir_table *table;
    atomic_int finished;
    int woken;
};

/* Creates a limiter and a table with the same limit, on a fake clock. */
static void set_up(struct fixture *fixture, const weir_limit *limit)
{
    *fixture = (struct fixture){0};
    assert_int_equal(weir_clock_fake_new(WEIR_HOUR, NULL, &fixture->clock), 0);
    weir_limiter_options one = {.size = sizeof one, .clock = fixture->clock};
    assert_int_equal(weir_limiter_new(limit, 1, &one, &fixture->limiter), 0);
    weir_table_options many = {.size = sizeof many, .clock = fixture->clock, .max_keys = 16, .shards = 1};
    assert_int_equal(weir_table_new(limit, 1, &many, &fixture->table), 0);
}

static void tear_down(struct fixture *fixture)
{
    weir_limiter_free(fixture->limiter);
    weir_table_free(fixture->table);
    weir_clock_fake_free(fixture->clock);
}

static weir_limit bucket_of_ten(void)
{
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, 10, 1, WEIR_SECOND), 0);
    return limit;
}

static weir_limit one_at_once(void)
{
    weir_limit limit;
    assert_int_equal(weir_limit_concurrency(&limit, 1), 0);
    return limit;
}

static uint32_t left(struct fixture *fixture)
{
    weir_quota quota;
    assert_int_equal(weir_limiter_peek(fixture->limiter, &quota), 0);
    return quota.remaining;
}

static uint32_t left_of(struct fixture *fixture, const char *key)
{
    weir_quota quota;
    assert_int_equal(weir_table_peek(fixture->table, key, strlen(key), &quota), 0);
    return quota.remaining;
}

/* Runs a worker that waits, advances the clock by `takes_ns`, and joins the worker. */
static void wait_for(struct fixture *fixture, test_worker *worker, int64_t takes_ns)
{
    worker->timeout_ns = WEIR_FOREVER;
    worker->finished = &fixture->finished;
    test_worker_start(worker);
    test_await_waiters(fixture->clock, 1);
    assert_int_equal(weir_clock_fake_advance(fixture->clock, takes_ns), 0);
    test_worker_join(worker);
    assert_int_equal(worker->result, 0);
}

static void permits_acquired_by_waiting_can_be_settled(void **state)
{
    (void)state;
    weir_limit limit = bucket_of_ten();
    struct fixture fixture;
    set_up(&fixture, &limit);
    weir_receipt receipt = {0};
    /* at once */
    assert_int_equal(weir_limiter_acquire(fixture.limiter, 8, WEIR_FOREVER, NULL, &receipt, NULL), 0);
    assert_int_equal(receipt.permits, 8);
    test_worker worker = {.limiter = fixture.limiter, .permits = 5};
    wait_for(&fixture, &worker, 3 * WEIR_SECOND);
    assert_int_equal(worker.receipt.permits, 5);
    /* the time of the grant, not of the call */
    assert_true(worker.receipt.at == WEIR_HOUR + 3 * WEIR_SECOND);
    assert_int_equal(left(&fixture), 0);
    assert_int_equal(weir_limiter_settle(fixture.limiter, &worker.receipt, 2), 0);
    assert_int_equal(left(&fixture), 3);
    assert_int_equal(weir_limiter_settle(fixture.limiter, &worker.receipt, 0), 0); /* no effect */
    assert_int_equal(left(&fixture), 3);
    assert_int_equal(weir_limiter_settle(fixture.limiter, &receipt, 7), 0);
    assert_int_equal(left(&fixture), 4);
    tear_down(&fixture);
}

static void permits_of_a_key_acquired_by_waiting_can_be_settled(void **state)
{
    (void)state;
    weir_limit limit = bucket_of_ten();
    struct fixture fixture;
    set_up(&fixture, &limit);
    weir_receipt receipt = {0};
    assert_int_equal(weir_table_acquire(fixture.table, "k", 1, 8, WEIR_FOREVER, NULL, &receipt, NULL), 0);
    assert_int_equal(receipt.permits, 8);
    test_worker worker = {.table = fixture.table, .key = "k", .permits = 5};
    wait_for(&fixture, &worker, 3 * WEIR_SECOND);
    assert_int_equal(worker.receipt.permits, 5);
    assert_int_equal(left_of(&fixture, "k"), 0);
    assert_int_equal(weir_table_settle(fixture.table, "k", 1, &worker.receipt, 2), 0);
    assert_int_equal(left_of(&fixture, "k"), 3);
    assert_int_equal(weir_table_settle(fixture.table, "k", 1, &worker.receipt, 0), 0);
    assert_int_equal(left_of(&fixture, "k"), 3);
    assert_int_equal(weir_table_settle(fixture.table, "k", 1, &receipt, 7), 0);
    assert_int_equal(left_of(&fixture, "k"), 4);
    tear_down(&fixture);
}

/* A key store, which is a table here, passes the receipt on. */
static void key_store_returns_a_receipt_for_acquired_permits(void **state)
{
    (void)state;
    weir_limit limit = bucket_of_ten();
    struct fixture fixture;
    set_up(&fixture, &limit);
    weir_key_store store = weir_table_key_store(fixture.table);
    weir_receipt receipt = {0};
    weir_decision decision;
    assert_int_equal(store.acquire(store.context, "k", 1, 8, 0, NULL, &receipt, &decision), 0);
    assert_int_equal(store.settle(store.context, "k", 1, &receipt, 0), 0);
    assert_int_equal(left_of(&fixture, "k"), 10);
    tear_down(&fixture);
}

static void permits_of_the_shared_limiter_are_settled_there(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, 1, 1, WEIR_HOUR), 0);
    struct fixture fixture;
    set_up(&fixture, &limit);
    weir_decision decision;
    weir_receipt receipt = {0};
    for (char key = 'a'; key < 'a' + 16; key++)
        assert_int_equal(weir_table_try(fixture.table, &key, 1, 1, &decision), 0);
    assert_int_equal(weir_table_acquire(fixture.table, "new", 3, 1, 0, NULL, &receipt, NULL), 0);
    assert_int_equal(weir_table_acquire(fixture.table, "newer", 5, 1, 0, NULL, NULL, NULL), WEIR_E_FULL);
    assert_int_equal(weir_table_settle(fixture.table, "new", 3, &receipt, 0), 0);
    assert_int_equal(weir_table_acquire(fixture.table, "newer", 5, 1, 0, NULL, NULL, NULL), 0);
    tear_down(&fixture);
}

static void cancelled_acquire_at_a_full_table_returns_the_wait(void **state)
{
    (void)state;
    weir_limit limit;
    weir_cancel *cancel;
    struct fixture fixture;
    weir_decision decision;
    weir_table_stats stats;
    assert_int_equal(weir_limit_token_bucket(&limit, 1, 1, WEIR_HOUR), 0);
    set_up(&fixture, &limit);
    assert_int_equal(weir_table_stats_get(fixture.table, &stats), 0);
    assert_int_equal(stats.shards, 1);
    for (char key = 'a'; key < 'a' + 17; key++)
        assert_int_equal(weir_table_try(fixture.table, &key, 1, 1, &decision), 0);
    assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
    weir_cancel_fire(cancel);
    decision = (weir_decision){0};
    assert_int_equal(weir_table_acquire(fixture.table, "new", 3, 1, WEIR_DAY, cancel, NULL, &decision),
                     WEIR_E_CANCELLED);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.wait_ns, WEIR_HOUR);
    weir_cancel_free(cancel);
    tear_down(&fixture);
}

static void failed_acquire_leaves_the_receipt_unchanged(void **state)
{
    (void)state;
    weir_limit limit = one_at_once();
    struct fixture fixture;
    set_up(&fixture, &limit);
    weir_receipt receipt = {.permits = 77};
    static const struct {
        uint32_t permits;
        int error;
    } cases[] = {{1, WEIR_E_TIMEOUT}, {2, WEIR_E_NEVER}, {0, WEIR_E_INVAL}};
    assert_int_equal(weir_limiter_acquire(fixture.limiter, 1, 0, NULL, NULL, NULL), 0);
    assert_int_equal(weir_table_acquire(fixture.table, "k", 1, 1, 0, NULL, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t permits = cases[i].permits;
        assert_int_equal(weir_limiter_acquire(fixture.limiter, permits, 0, NULL, &receipt, NULL), cases[i].error);
        assert_int_equal(weir_table_acquire(fixture.table, "k", 1, permits, 0, NULL, &receipt, NULL), cases[i].error);
        assert_int_equal(receipt.permits, 77);
    }
    tear_down(&fixture);
}

/* ---- event loops ---- */

static void count_wakes(void *context)
{
    struct fixture *fixture = context;
    fixture->woken++;
}

static weir_ticket *enqueue_ticket(struct fixture *fixture, int64_t timeout_ns)
{
    weir_ticket *ticket = NULL;
    assert_int_equal(weir_limiter_enqueue(fixture->limiter, 1, timeout_ns, count_wakes, fixture, &ticket), 0);
    return ticket;
}

static weir_verdict poll_ticket(weir_ticket *ticket)
{
    weir_decision decision;
    assert_int_equal(weir_ticket_poll(ticket, &decision), 0);
    return decision.verdict;
}

static void a_granted_ticket_has_a_receipt(void **state)
{
    (void)state;
    weir_limit limit = one_at_once();
    struct fixture fixture;
    set_up(&fixture, &limit);
    weir_ticket *first = enqueue_ticket(&fixture, WEIR_FOREVER), *second = enqueue_ticket(&fixture, WEIR_FOREVER);
    weir_receipt receipt = {0};
    assert_int_equal(poll_ticket(first), WEIR_GO);
    assert_int_equal(fixture.woken, 1);
    assert_int_equal(poll_ticket(second), WEIR_WAIT);
    assert_int_equal(weir_ticket_receipt(first, &receipt), 0);
    assert_int_equal(receipt.permits, 1);
    assert_int_equal(weir_limiter_settle(fixture.limiter, &receipt, 0), 0);
    assert_int_equal(fixture.woken, 2); /* the returned permit is for the next ticket */
    assert_int_equal(poll_ticket(second), WEIR_GO);
    assert_int_equal(weir_ticket_receipt(second, &receipt), 0);
    weir_limiter_close(fixture.limiter);
    assert_int_equal(weir_ticket_receipt(second, &receipt), 0); /* stays granted */
    weir_ticket_free(first);
    weir_ticket_free(second);
    tear_down(&fixture);
}

static void ticket_that_is_not_granted_has_no_receipt(void **state)
{
    (void)state;
    weir_limit limit = one_at_once();
    struct fixture fixture;
    set_up(&fixture, &limit);
    weir_decision decision;
    weir_receipt receipt = {.permits = 77};
    weir_ticket *ticket = enqueue_ticket(&fixture, WEIR_SECOND);
    /* it was not polled yet */
    assert_int_equal(weir_ticket_receipt(ticket, &receipt), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "poll"));
    assert_int_equal(poll_ticket(ticket), WEIR_GO);
    weir_ticket *late = enqueue_ticket(&fixture, WEIR_SECOND);
    assert_int_equal(poll_ticket(late), WEIR_WAIT);
    assert_int_equal(weir_ticket_receipt(late, &receipt), WEIR_E_INVAL);
    assert_int_equal(weir_clock_fake_advance(fixture.clock, WEIR_SECOND), 0);
    assert_int_equal(weir_ticket_poll(late, &decision), WEIR_E_TIMEOUT);
    assert_int_equal(weir_ticket_receipt(late, &receipt), WEIR_E_INVAL);
    assert_int_equal(weir_ticket_receipt(NULL, &receipt), WEIR_E_INVAL);
    assert_int_equal(weir_ticket_receipt(ticket, NULL), WEIR_E_INVAL);
    assert_int_equal(receipt.permits, 77);
    weir_ticket_free(ticket);
    weir_ticket_free(late);
    tear_down(&fixture);
}

WEIR_TESTS(test(cancelled_acquire_at_a_full_table_returns_the_wait), test(permits_acquired_by_waiting_can_be_settled),
           test(permits_of_a_key_acquired_by_waiting_can_be_settled),
           test(key_store_returns_a_receipt_for_acquired_permits),
           test(permits_of_the_shared_limiter_are_settled_there), test(failed_acquire_leaves_the_receipt_unchanged),
           test(a_granted_ticket_has_a_receipt), test(ticket_that_is_not_granted_has_no_receipt))
