/* SPDX-License-Identifier: MIT */
/* test_waiting.c - tests of the decisions that failed waits return (S3-37 to S3-44). */
#include "lib/rig.h"

struct waiting {
    weir_clock *clock;
    weir_limiter *limiter; /* NULL if `table` is tested */
    weir_table *table;
    atomic_int finished;
    test_worker workers[4];
};

/* Starts worker `i` and waits until it is in the queue. */
static void start_waiting(struct waiting *waiting, int i, uint32_t permits, int64_t timeout_ns, weir_cancel *cancel)
{
    int before = weir_clock_fake_waiters(waiting->clock);
    waiting->workers[i] = (test_worker){.limiter = waiting->limiter,
                                        .table = waiting->table,
                                        .key = "k",
                                        .permits = permits,
                                        .timeout_ns = timeout_ns,
                                        .cancel = cancel,
                                        .finished = &waiting->finished};
    test_worker_start(&waiting->workers[i]);
    test_await_waiters(waiting->clock, before + 1);
}

static void expect_decision(weir_decision decision, weir_verdict verdict, weir_reason reason, int64_t wait_ns)
{
    assert_int_equal(decision.verdict, verdict);
    assert_int_equal(decision.reason, reason);
    assert_true(decision.wait_ns == wait_ns);
}

/* Joins worker `i`, which must have failed with `error`. Returns its decision. */
static weir_decision failed_decision(struct waiting *waiting, int i, int error)
{
    test_worker_join(&waiting->workers[i]);
    assert_int_equal(waiting->workers[i].result, error);
    return waiting->workers[i].decision;
}

static weir_decision refused(weir_limiter *limiter, uint32_t permits, weir_cancel *cancel, int error)
{
    weir_decision decision;
    assert_int_equal(weir_limiter_acquire(limiter, permits, 0, cancel, NULL, &decision), error);
    return decision;
}

static void failed_acquire_returns_the_reason_and_the_wait(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 1, WEIR_MINUTE);
    limit.queue_max = 2;
    struct waiting waiting = {.clock = fake_clock()};
    waiting.limiter = limiter_of(limit, waiting.clock);
    weir_cancel *cancel;
    assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
    assert_int_equal(weir_limiter_acquire(waiting.limiter, 2, 0, NULL, NULL, NULL), 0);
    start_waiting(&waiting, 0, 2, WEIR_FOREVER, NULL);
    start_waiting(&waiting, 1, 1, 30 * WEIR_SECOND, NULL);
    expect_decision(refused(waiting.limiter, 1, NULL, WEIR_E_FULL), WEIR_WAIT, WEIR_REASON_TOKENS, WEIR_MINUTE);
    expect_decision(refused(waiting.limiter, 3, NULL, WEIR_E_NEVER), WEIR_DENY, WEIR_REASON_TOKENS, WEIR_UNTIL_RELEASE);
    /* It timed out behind another waiter; the rule alone would delay it 30 s more. */
    advance(waiting.clock, 30 * WEIR_SECOND);
    expect_decision(failed_decision(&waiting, 1, WEIR_E_TIMEOUT), WEIR_WAIT, WEIR_REASON_TOKENS, 30 * WEIR_SECOND);
    start_waiting(&waiting, 2, 1, 30 * WEIR_SECOND, NULL);
    advance(waiting.clock, 30 * WEIR_SECOND); /* a permit is free, but another waiter is first */
    expect_decision(failed_decision(&waiting, 2, WEIR_E_TIMEOUT), WEIR_WAIT, WEIR_REASON_QUEUE, WEIR_MILLISECOND);
    start_waiting(&waiting, 3, 2, WEIR_FOREVER, cancel);
    advance(waiting.clock, 20 * WEIR_SECOND);
    weir_cancel_fire(cancel);
    expect_decision(failed_decision(&waiting, 3, WEIR_E_CANCELLED), WEIR_WAIT, WEIR_REASON_TOKENS, 40 * WEIR_SECOND);
    expect_decision(refused(waiting.limiter, 2, cancel, WEIR_E_CANCELLED), WEIR_WAIT, WEIR_REASON_TOKENS,
                    40 * WEIR_SECOND);
    advance(waiting.clock, 40 * WEIR_SECOND);
    (void)failed_decision(&waiting, 0, 0);
    advance(waiting.clock, 2 * WEIR_MINUTE); /* only the cancellation refuses it */
    expect_decision(refused(waiting.limiter, 1, cancel, WEIR_E_CANCELLED), WEIR_WAIT, WEIR_REASON_NONE, 0);
    weir_limiter_free(waiting.limiter);
    weir_cancel_free(cancel);
    weir_clock_fake_free(waiting.clock);
}

static uint32_t denials_of_the_only_key(weir_table *table)
{
    weir_table_entry *entries;
    size_t count;
    assert_int_equal(weir_table_top(table, WEIR_TOP_DENIED, 1, &entries, &count), 0);
    assert_int_equal(count, 1);
    uint32_t denied = entries[0].denied;
    weir_table_top_free(table, entries);
    return denied;
}

static void waiters_that_time_out_count_as_refused_and_get_the_wait(void **state)
{
    (void)state;
    struct waiting waiting = {.clock = fake_clock()};
    waiting.table = table_of(bucket(1, 1, WEIR_MINUTE), waiting.clock, 0);
    weir_ticket *ticket;
    weir_decision decision;
    assert_true(goes(waiting.table, "k"));
    for (int i = 0; i < 2; i++)
        start_waiting(&waiting, i, 1, WEIR_SECOND, NULL);
    assert_int_equal(weir_table_enqueue(waiting.table, "k", 1, 1, WEIR_SECOND, ignore_wake, NULL, &ticket), 0);
    assert_int_equal(denials_of_the_only_key(waiting.table), 0);
    advance(waiting.clock, WEIR_SECOND);
    for (int i = 0; i < 2; i++)
        expect_decision(failed_decision(&waiting, i, WEIR_E_TIMEOUT), WEIR_WAIT, WEIR_REASON_TOKENS, 59 * WEIR_SECOND);
    assert_int_equal(weir_ticket_poll(ticket, &decision), WEIR_E_TIMEOUT);
    weir_ticket_free(ticket);
    assert_int_equal(denials_of_the_only_key(waiting.table), 3);
    assert_int_equal(stats_of(waiting.table).rejected, 3);
    weir_table_free(waiting.table);
    weir_clock_fake_free(waiting.clock);
}

/* The deadline of a ticket limits only the wait that a poll returns. */
static void poll_of_a_ticket_returns_the_time_of_the_next_poll(void **state)
{
    (void)state;
    weir_clock *clock = fake_clock();
    weir_limiter *limiter = limiter_of(bucket(1, 1, WEIR_MINUTE), clock);
    weir_ticket *ticket;
    weir_decision decision;
    assert_int_equal(weir_limiter_try(limiter, 1, &decision), 0);
    assert_int_equal(weir_limiter_enqueue(limiter, 1, WEIR_SECOND, ignore_wake, NULL, &ticket), 0);
    assert_int_equal(weir_ticket_poll(ticket, &decision), 0);
    expect_decision(decision, WEIR_WAIT, WEIR_REASON_TOKENS, WEIR_SECOND);
    weir_ticket_free(ticket);
    weir_limiter_free(limiter);
    weir_clock_fake_free(clock);
}

/* ---- wakes during a change ---- */

struct woken {
    struct keyed *keyed;
    const weir_limit *limit;
    int count;
};

static void count_wake(void *context)
{
    ((struct woken *)context)->count++;
}

static void change_add_and_close(void *context)
{
    struct woken *woken = context;
    weir_table *table = woken->keyed->table;
    if (woken->count++ > 0)
        return;
    assert_int_equal(weir_table_change(table, 0, woken->limit, 1), 0);
    assert_int_equal(weir_table_add_plan(table, woken->limit, 1, NULL), 0);
    weir_table_close(table);
}

static weir_ticket *wait_for(struct keyed *keyed, const char *key, int64_t timeout_ns, weir_wake *wake, void *context)
{
    weir_ticket *ticket;
    assert_int_equal(weir_table_enqueue(keyed->table, key, strlen(key), 1, timeout_ns, wake, context, &ticket), 0);
    return ticket;
}

/* Would block if a change held its lock while it calls wakes. */
static void wake_may_change_and_close_the_table_during_a_change(void **state)
{
    (void)state;
    weir_limit one, two;
    assert_int_equal(weir_limit_concurrency(&one, 1), 0);
    assert_int_equal(weir_limit_concurrency(&two, 2), 0);
    struct keyed keyed = {0};
    keyed_set_up(&keyed, &one);
    struct woken woken = {&keyed, &two, 0};
    assert_int_equal(try_key(keyed.table, "k", 1).verdict, WEIR_GO);
    weir_ticket *ticket = wait_for(&keyed, "k", WEIR_FOREVER, change_add_and_close, &woken);
    assert_int_equal(weir_table_change(keyed.table, 0, &two, 1), 0);
    assert_true(woken.count > 0);
    weir_decision decision;
    assert_int_equal(weir_ticket_poll(ticket, &decision), WEIR_E_CLOSED);
    weir_ticket_free(ticket);
    keyed_tear_down(&keyed);
}

static void move_the_clock(void *context)
{
    struct woken *woken = context;
    woken->count++;
    assert_int_equal(weir_clock_fake_advance(woken->keyed->clock, 10 * WEIR_SECOND), 0);
}

/* Time passes while a change calls wakes. It wakes the waiter that is first by then, not the one
 * that was first at the start. */
static void change_wakes_the_waiter_that_is_first_when_wakes_are_called(void **state)
{
    (void)state;
    weir_limit one, two;
    assert_int_equal(weir_limit_concurrency(&one, 1), 0);
    assert_int_equal(weir_limit_concurrency(&two, 2), 0);
    struct keyed keyed = {.options = {.shards = 1}};
    keyed_set_up(&keyed, &one);
    struct woken slow = {&keyed, &two, 0}, late = slow, next = slow;
    assert_int_equal(try_key(keyed.table, "a", 1).verdict, WEIR_GO);
    assert_int_equal(try_key(keyed.table, "b", 1).verdict, WEIR_GO);
    weir_ticket *tickets[] = {wait_for(&keyed, "b", WEIR_SECOND, count_wake, &late),
                              wait_for(&keyed, "b", WEIR_FOREVER, count_wake, &next),
                              wait_for(&keyed, "a", WEIR_FOREVER, move_the_clock, &slow)};
    assert_int_equal(weir_table_change(keyed.table, 0, &two, 1), 0);
    assert_int_equal(slow.count, 1);
    assert_int_equal(late.count, 0);
    assert_int_equal(next.count, 1);
    for (int i = 0; i < 3; i++)
        weir_ticket_free(tickets[i]);
    keyed_tear_down(&keyed);
}

/* A receipt of an earlier call must not be taken for one of this reserve. */
static void reserve_refused_behind_waiters_leaves_an_empty_receipt(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, 2, 1, WEIR_HOUR), 0);
    struct keyed keyed = {0};
    keyed_set_up(&keyed, &limit);
    struct woken woken = {&keyed, &limit, 0};
    weir_receipt receipt;
    weir_decision decision;
    assert_int_equal(weir_table_reserve(keyed.table, "k", 1, 1, &receipt, &decision), 0);
    assert_int_equal(receipt.permits, 1);
    weir_ticket *ticket = wait_for(&keyed, "k", WEIR_FOREVER, count_wake, &woken);
    assert_int_equal(weir_table_reserve(keyed.table, "k", 1, 1, &receipt, &decision), 0);
    assert_int_equal(decision.reason, WEIR_REASON_QUEUE);
    assert_int_equal(receipt.permits, 0);
    weir_ticket_free(ticket);
    keyed_tear_down(&keyed);
}

WEIR_TESTS(test(failed_acquire_returns_the_reason_and_the_wait),
           test(waiters_that_time_out_count_as_refused_and_get_the_wait),
           test(poll_of_a_ticket_returns_the_time_of_the_next_poll),
           test(wake_may_change_and_close_the_table_during_a_change),
           test(change_wakes_the_waiter_that_is_first_when_wakes_are_called),
           test(reserve_refused_behind_waiters_leaves_an_empty_receipt))
