/* SPDX-License-Identifier: MIT */
/* test_limiter.c - tests of one limiter: try, acquire in order, reserve, change, close (S3-1 to
 * S3-7, S3-37 to S3-44). */
#include "lib/alloc.h"
#include "lib/rig.h"

#define WORKERS 8

struct fixture {
    weir_clock *clock;
    weir_limiter *limiter;
    atomic_int finished;
    test_worker workers[WORKERS];
};

static void set_up(struct fixture *fixture, const weir_limit *limits, size_t count)
{
    *fixture = (struct fixture){0};
    fixture->clock = fake_clock();
    weir_limiter_options options;
    weir_limiter_options_init(&options);
    options.clock = fixture->clock;
    assert_int_equal(weir_limiter_new(limits, count, &options, &fixture->limiter), 0);
}

static void tear_down(struct fixture *fixture)
{
    weir_limiter_free(fixture->limiter);
    weir_clock_fake_free(fixture->clock);
}

static weir_decision try_for(struct fixture *fixture, uint32_t permits)
{
    weir_decision decision;
    assert_int_equal(weir_limiter_try(fixture->limiter, permits, &decision), 0);
    return decision;
}

static bool grants(struct fixture *fixture, uint32_t permits)
{
    return try_for(fixture, permits).verdict == WEIR_GO;
}

static weir_limiter_stats numbers(struct fixture *fixture)
{
    weir_limiter_stats stats;
    assert_int_equal(weir_limiter_stats_get(fixture->limiter, &stats), 0);
    return stats;
}

/* Starts worker `i` and waits until it is in the queue. */
static void start_waiting(struct fixture *fixture, int i, uint32_t permits, int64_t timeout_ns, weir_cancel *cancel)
{
    int waiting = weir_clock_fake_waiters(fixture->clock);
    fixture->workers[i] = (test_worker){.limiter = fixture->limiter,
                                        .permits = permits,
                                        .timeout_ns = timeout_ns,
                                        .cancel = cancel,
                                        .finished = &fixture->finished};
    test_worker_start(&fixture->workers[i]);
    test_await_waiters(fixture->clock, waiting + 1);
}

/* ---- try ---- */

static void try_grants_free_permits_or_returns_the_wait(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 1, WEIR_SECOND);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    assert_true(grants(&fixture, 2));
    weir_decision decision = try_for(&fixture, 1);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.reason, WEIR_REASON_TOKENS);
    assert_true(decision.wait_ns == WEIR_SECOND);
    assert_int_equal(try_for(&fixture, 3).verdict, WEIR_DENY);
    advance(fixture.clock, WEIR_SECOND);
    assert_true(grants(&fixture, 1));
    tear_down(&fixture);
}

static void statistics_count_permits_and_waiters(void **state)
{
    (void)state;
    weir_limit limit = bucket(4, 1, WEIR_SECOND);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    assert_true(grants(&fixture, 3));
    assert_false(grants(&fixture, 2));
    weir_limiter_stats stats = numbers(&fixture);
    assert_int_equal(stats.acquired, 3);
    assert_int_equal(stats.rejected, 2);
    assert_int_equal(stats.current, 1);
    assert_int_equal(stats.max, 4);
    assert_int_equal(stats.queue_depth, 0);
    start_waiting(&fixture, 0, 2, WEIR_FOREVER, NULL);
    assert_int_equal(numbers(&fixture).queue_depth, 1);
    advance(fixture.clock, WEIR_SECOND);
    test_worker_join(&fixture.workers[0]);
    stats = numbers(&fixture);
    assert_int_equal(stats.acquired, 5);
    assert_int_equal(stats.queue_depth, 0);
    tear_down(&fixture);
}

static void reservation_is_settled_at_the_permits_used(void **state)
{
    (void)state;
    weir_limit limit = bucket(10, 1, WEIR_SECOND);
    static const struct {
        uint32_t reserved, used, left;
    } rows[] = {{4, 4, 6}, {4, 1, 9}, {4, 0, 10}, {4, 7, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture fixture;
        set_up(&fixture, &limit, 1);
        weir_receipt receipt;
        weir_decision decision;
        assert_int_equal(weir_limiter_reserve(fixture.limiter, rows[i].reserved, &receipt, &decision), 0);
        assert_int_equal(decision.verdict, WEIR_GO);
        assert_int_equal(weir_limiter_settle(fixture.limiter, &receipt, rows[i].used), 0);
        /* the second settle has no effect */
        assert_int_equal(weir_limiter_settle(fixture.limiter, &receipt, 0), 0);
        assert_int_equal(numbers(&fixture).current, rows[i].left);
        tear_down(&fixture);
    }
}

/* ---- first come, first served ---- */

static void pass_time(struct fixture *fixture)
{
    advance(fixture->clock, WEIR_SECOND);
}

static void release_one(struct fixture *fixture)
{
    assert_int_equal(weir_limiter_release(fixture->limiter, 1), 0);
}

/* Drains the limiter, queues eight workers, and makes one permit available at a time. */
static void expect_fifo(const weir_limit *limit, void (*make_one_available)(struct fixture *))
{
    struct fixture fixture;
    set_up(&fixture, limit, 1);
    assert_true(grants(&fixture, 1));
    for (int i = 0; i < WORKERS; i++)
        start_waiting(&fixture, i, 1, WEIR_FOREVER, NULL);
    for (int i = 0; i < WORKERS; i++) {
        make_one_available(&fixture);
        test_await_number(&fixture.finished, i + 1);
        test_await_waiters(fixture.clock, WORKERS - 1 - i);
        assert_int_equal(atomic_load(&fixture.finished), i + 1);
    }
    for (int i = 0; i < WORKERS; i++) {
        test_worker_join(&fixture.workers[i]);
        assert_int_equal(fixture.workers[i].result, 0);
        assert_int_equal(fixture.workers[i].place, i);
    }
    tear_down(&fixture);
}

static void waiters_are_served_in_order_of_arrival(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    expect_fifo(&limit, pass_time);
    assert_int_equal(weir_limit_stepped_bucket(&limit, 1, 1, WEIR_SECOND, 1), 0);
    expect_fifo(&limit, pass_time);
    assert_int_equal(weir_limit_leaky_bucket(&limit, WORKERS, WEIR_SECOND), 0);
    expect_fifo(&limit, pass_time);
    assert_int_equal(weir_limit_fixed_window(&limit, 1, WEIR_SECOND), 0);
    expect_fifo(&limit, pass_time);
    assert_int_equal(weir_limit_sliding_log(&limit, 1, WEIR_SECOND), 0);
    expect_fifo(&limit, pass_time);
    assert_int_equal(weir_limit_concurrency(&limit, 1), 0);
    expect_fifo(&limit, release_one);
}

static void try_is_refused_while_a_caller_waits(void **state)
{
    (void)state;
    weir_limit limit = bucket(5, 1, WEIR_SECOND);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    assert_true(grants(&fixture, 5));
    start_waiting(&fixture, 0, 5, WEIR_FOREVER, NULL);
    advance(fixture.clock, 3 * WEIR_SECOND); /* three permits are free, a waiter needs five */
    weir_decision decision = try_for(&fixture, 1);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.reason, WEIR_REASON_QUEUE);
    assert_true(decision.wait_ns > 0);
    assert_int_equal(numbers(&fixture).rejected, 1);
    advance(fixture.clock, 2 * WEIR_SECOND);
    test_worker_join(&fixture.workers[0]);
    assert_int_equal(fixture.workers[0].result, 0);
    tear_down(&fixture);
}

static void a_stream_of_tries_cannot_starve_a_waiter(void **state)
{
    (void)state;
    weir_limit limit = bucket(3, 1, WEIR_SECOND);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    assert_true(grants(&fixture, 3));
    start_waiting(&fixture, 0, 3, WEIR_FOREVER, NULL);
    for (int i = 0; i < 30; i++) {
        assert_false(grants(&fixture, 1));
        if (i % 10 == 9)
            advance(fixture.clock, WEIR_SECOND);
    }
    test_worker_join(&fixture.workers[0]);
    assert_int_equal(fixture.workers[0].result, 0);
    tear_down(&fixture);
}

static void a_large_request_is_not_overtaken_by_small_ones(void **state)
{
    (void)state;
    weir_limit limit = bucket(4, 1, WEIR_SECOND);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    assert_true(grants(&fixture, 4));
    start_waiting(&fixture, 0, 4, WEIR_FOREVER, NULL);
    start_waiting(&fixture, 1, 1, WEIR_FOREVER, NULL);
    for (int i = 0; i < 3; i++) {
        advance(fixture.clock, WEIR_SECOND);
        assert_int_equal(atomic_load(&fixture.finished), 0);
    }
    advance(fixture.clock, WEIR_SECOND);
    test_worker_join(&fixture.workers[0]);
    test_await_waiters(fixture.clock, 1);
    advance(fixture.clock, WEIR_SECOND);
    test_worker_join(&fixture.workers[1]);
    assert_int_equal(fixture.workers[0].place, 0);
    assert_int_equal(fixture.workers[1].place, 1);
    tear_down(&fixture);
}

static void leaky_bucket_refuses_waiters_beyond_its_capacity(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_leaky_bucket(&limit, 2, WEIR_SECOND), 0);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    assert_true(grants(&fixture, 1));
    assert_int_equal(try_for(&fixture, 1).reason, WEIR_REASON_PACE);
    start_waiting(&fixture, 0, 1, WEIR_FOREVER, NULL);
    start_waiting(&fixture, 1, 1, WEIR_FOREVER, NULL);
    assert_int_equal(weir_limiter_acquire(fixture.limiter, 1, WEIR_FOREVER, NULL, NULL, NULL), WEIR_E_FULL);
    for (int i = 0; i < 2; i++) {
        advance(fixture.clock, WEIR_SECOND);
        test_worker_join(&fixture.workers[i]);
        test_await_waiters(fixture.clock, 1 - i);
    }
    tear_down(&fixture);
}

/* ---- deadlines and cancellation ---- */

static void acquire_ends_at_its_deadline(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_HOUR);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    assert_true(grants(&fixture, 1));
    start_waiting(&fixture, 0, 1, 5 * WEIR_SECOND, NULL);
    advance(fixture.clock, 5 * WEIR_SECOND - 1);
    assert_int_equal(atomic_load(&fixture.finished), 0);
    advance(fixture.clock, 1);
    test_worker_join(&fixture.workers[0]);
    assert_int_equal(fixture.workers[0].result, WEIR_E_TIMEOUT);
    assert_int_equal(fixture.workers[0].decision.reason, WEIR_REASON_TOKENS);
    /* when to retry */
    assert_true(fixture.workers[0].decision.wait_ns == WEIR_HOUR - 5 * WEIR_SECOND);
    assert_int_equal(numbers(&fixture).rejected, 1);
    tear_down(&fixture);
}

static void acquire_with_zero_timeout_acts_as_try(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    weir_decision decision;
    assert_int_equal(weir_limiter_acquire(fixture.limiter, 1, 0, NULL, NULL, &decision), 0);
    assert_int_equal(weir_limiter_acquire(fixture.limiter, 1, 0, NULL, NULL, &decision), WEIR_E_TIMEOUT);
    assert_true(decision.wait_ns == WEIR_SECOND);
    assert_int_equal(weir_limiter_acquire(fixture.limiter, 2, 0, NULL, NULL, &decision), WEIR_E_NEVER);
    tear_down(&fixture);
}

static void waiter_that_is_cancelled_or_times_out_makes_way_for_the_next(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 1, WEIR_SECOND);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    weir_cancel *cancel;
    assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
    assert_true(grants(&fixture, 2));
    start_waiting(&fixture, 0, 2, WEIR_FOREVER, cancel); /* first in the queue; cancelled */
    start_waiting(&fixture, 1, 2, WEIR_SECOND, NULL);    /* second in the queue; times out */
    /* third in the queue; gets the permit that is free by then */
    start_waiting(&fixture, 2, 1, WEIR_FOREVER, NULL);
    weir_cancel_fire(cancel);
    test_worker_join(&fixture.workers[0]);
    assert_int_equal(fixture.workers[0].result, WEIR_E_CANCELLED);
    test_await_waiters(fixture.clock, 2);
    advance(fixture.clock, WEIR_SECOND);
    test_worker_join(&fixture.workers[1]);
    test_worker_join(&fixture.workers[2]);
    assert_int_equal(fixture.workers[1].result, WEIR_E_TIMEOUT);
    assert_int_equal(fixture.workers[2].result, 0);
    assert_int_equal(weir_limiter_acquire(fixture.limiter, 1, WEIR_FOREVER, cancel, NULL, NULL), WEIR_E_CANCELLED);
    weir_cancel_free(cancel);
    tear_down(&fixture);
}

static void a_waiter_that_timed_out_takes_no_permit(void **state)
{
    (void)state;
    weir_limit limit = concurrency(1);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    assert_true(grants(&fixture, 1));
    start_waiting(&fixture, 0, 1, WEIR_SECOND, NULL);
    start_waiting(&fixture, 1, 1, WEIR_FOREVER, NULL);
    advance(fixture.clock, WEIR_SECOND);
    test_worker_join(&fixture.workers[0]);
    assert_int_equal(fixture.workers[0].result, WEIR_E_TIMEOUT);
    release_one(&fixture);
    test_worker_join(&fixture.workers[1]);
    assert_int_equal(fixture.workers[1].result, 0);
    assert_false(grants(&fixture, 1));
    release_one(&fixture);
    release_one(&fixture); /* no effect: nothing is in flight */
    assert_true(grants(&fixture, 1));
    assert_false(grants(&fixture, 1));
    tear_down(&fixture);
}

/* ---- change and close ---- */

static void changed_limits_apply_at_once_to_waiters(void **state)
{
    (void)state;
    weir_limit fast, slow, other;
    assert_int_equal(weir_limit_token_bucket(&fast, 10, 10, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_token_bucket(&slow, 10, 1, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_concurrency(&other, 1), 0);
    struct fixture fixture;
    set_up(&fixture, &fast, 1);
    assert_true(grants(&fixture, 10));
    for (int i = 0; i < WORKERS; i++)
        start_waiting(&fixture, i, 1, WEIR_FOREVER, NULL);
    assert_int_equal(weir_limiter_change(fixture.limiter, &slow, 1), 0);
    assert_int_equal(weir_limiter_change(fixture.limiter, &other, 1), WEIR_E_INVAL);
    advance(fixture.clock, WEIR_SECOND - 1); /* at the old rate nine would have been granted */
    assert_int_equal(atomic_load(&fixture.finished), 0);
    advance(fixture.clock, 1);
    test_await_number(&fixture.finished, 1);
    test_await_waiters(fixture.clock, WORKERS - 1);
    assert_int_equal(atomic_load(&fixture.finished), 1);
    assert_int_equal(weir_limiter_change(fixture.limiter, &fast, 1), 0);
    for (int i = 1; i < WORKERS; i++) {
        advance(fixture.clock, 100 * WEIR_MILLISECOND);
        test_await_number(&fixture.finished, i + 1);
        test_await_waiters(fixture.clock, WORKERS - 1 - i);
    }
    for (int i = 0; i < WORKERS; i++)
        test_worker_join(&fixture.workers[i]);
    tear_down(&fixture);
}

static void closing_a_limiter_fails_its_waiters_and_all_later_calls(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_HOUR);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    assert_true(grants(&fixture, 1));
    for (int i = 0; i < WORKERS; i++)
        start_waiting(&fixture, i, 1, WEIR_FOREVER, NULL);
    weir_limiter_close(fixture.limiter);
    for (int i = 0; i < WORKERS; i++) {
        test_worker_join(&fixture.workers[i]);
        assert_int_equal(fixture.workers[i].result, WEIR_E_CLOSED);
    }
    weir_limiter_close(fixture.limiter);
    weir_decision decision;
    weir_receipt receipt = {0};
    weir_limiter_stats stats;
    weir_quota quota;
    weir_limiter *limiter = fixture.limiter;
    assert_int_equal(weir_limiter_try(limiter, 1, &decision), WEIR_E_CLOSED);
    assert_int_equal(weir_limiter_acquire(limiter, 1, WEIR_FOREVER, NULL, NULL, &decision), WEIR_E_CLOSED);
    assert_int_equal(weir_limiter_reserve(limiter, 1, &receipt, &decision), WEIR_E_CLOSED);
    assert_int_equal(weir_limiter_settle(limiter, &receipt, 0), WEIR_E_CLOSED);
    assert_int_equal(weir_limiter_release(limiter, 1), WEIR_E_CLOSED);
    assert_int_equal(weir_limiter_change(limiter, &limit, 1), WEIR_E_CLOSED);
    assert_int_equal(weir_limiter_stats_get(limiter, &stats), WEIR_E_CLOSED);
    assert_int_equal(weir_limiter_peek(limiter, &quota), WEIR_E_CLOSED);
    assert_string_equal(weir_error_text(WEIR_E_CLOSED), "the object has been closed");
    tear_down(&fixture);
}

static void freeing_a_limiter_fails_its_waiters_and_leaks_nothing(void **state)
{
    (void)state;
    test_allocator allocator;
    test_allocator_init(&allocator);
    weir_limit limit = concurrency(1);
    struct fixture fixture = {0};
    assert_int_equal(weir_clock_fake_new(0, NULL, &fixture.clock), 0);
    weir_limiter_options options = {.size = sizeof options, .clock = fixture.clock, .allocator = &allocator.allocator};
    assert_int_equal(weir_limiter_new(&limit, 1, &options, &fixture.limiter), 0);
    assert_true(grants(&fixture, 1));
    for (int i = 0; i < WORKERS; i++)
        start_waiting(&fixture, i, 1, WEIR_FOREVER, NULL);
    weir_limiter_free(fixture.limiter);
    for (int i = 0; i < WORKERS; i++) {
        test_worker_join(&fixture.workers[i]);
        assert_int_equal(fixture.workers[i].result, WEIR_E_CLOSED);
    }
    assert_int_equal(allocator.live, 0);
    weir_limiter_free(NULL);
    weir_clock_fake_free(fixture.clock);
}

/* ---- invalid arguments and allocation failures ---- */

static void invalid_limiter_calls_are_refused_and_change_nothing(void **state)
{
    (void)state;
    weir_limit limit = bucket(3, 1, WEIR_SECOND);
    struct fixture fixture;
    set_up(&fixture, &limit, 1);
    weir_limiter *limiter = fixture.limiter, *made = NULL;
    weir_limiter_options options = {.size = 3};
    weir_decision decision;
    weir_receipt receipt;
    weir_ticket *ticket = NULL;
    assert_int_equal(weir_limiter_new(&limit, 1, &options, &made), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "weir_limiter_options_init"));
    assert_int_equal(weir_limiter_new(NULL, 1, NULL, &made), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_new(&limit, 0, NULL, &made), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_new(&limit, 9, NULL, &made), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_new(&limit, 1, NULL, NULL), WEIR_E_INVAL);
    assert_null(made);
    assert_int_equal(weir_limiter_try(NULL, 1, &decision), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_try(limiter, 0, &decision), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_try(limiter, 1, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_acquire(limiter, 1, -1, NULL, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_acquire(limiter, 1, WEIR_DURATION_MAX + 1, NULL, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_acquire(limiter, 1, WEIR_FOREVER - 1, NULL, NULL, NULL), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "WEIR_DURATION_MAX"));
    assert_int_equal(weir_limiter_enqueue(limiter, 1, WEIR_FOREVER - 1, ignore_wake, NULL, &ticket), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_acquire(limiter, 0, 1, NULL, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_reserve(limiter, 1, &receipt, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_settle(limiter, NULL, 1), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_release(limiter, 0), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_change(limiter, NULL, 1), WEIR_E_INVAL);
    assert_int_equal(weir_limiter_enqueue(limiter, 1, 0, NULL, NULL, &ticket), WEIR_E_INVAL);
    assert_int_equal(weir_ticket_poll(NULL, &decision), WEIR_E_INVAL);
    assert_int_equal(weir_cancel_new(NULL, NULL), WEIR_E_INVAL);
    weir_limiter_options_init(NULL);
    weir_limiter_close(NULL);
    weir_cancel_fire(NULL);
    weir_cancel_free(NULL);
    weir_ticket_free(NULL);
    assert_int_equal(numbers(&fixture).current, 3);
    tear_down(&fixture);
}

/* Makes every call that may allocate, with an allocator that fails once. Returns 0 if all
 * allocations succeeded. */
static int use_everything(test_allocator *allocator)
{
    weir_limit limit = bucket(1, 1, WEIR_HOUR);
    weir_limiter_options options = {.size = sizeof options, .allocator = &allocator->allocator};
    weir_limiter *limiter = NULL;
    weir_ticket *ticket = NULL;
    weir_cancel *cancel = NULL;
    weir_decision decision;
    int bad = weir_limiter_new(&limit, 1, &options, &limiter);
    if (bad == 0) {
        bad = weir_limiter_enqueue(limiter, 1, WEIR_FOREVER, ignore_wake, NULL, &ticket);
        int changed = weir_limiter_change(limiter, &limit, 1);
        int made = weir_cancel_new(&allocator->allocator, &cancel);
        bad = bad != 0 ? bad : changed != 0 ? changed : made;
        if (ticket != NULL)
            assert_int_equal(weir_ticket_poll(ticket, &decision), 0);
        else
            assert_int_equal(weir_limiter_try(limiter, 1, &decision), 0);
        assert_int_equal(decision.verdict, WEIR_GO); /* still usable */
    }
    weir_ticket_free(ticket);
    weir_cancel_free(cancel);
    weir_limiter_free(limiter);
    return bad;
}

static void each_limiter_call_may_fail_for_memory_without_a_leak(void **state)
{
    (void)state;
    test_allocator allocator;
    int bad = WEIR_E_NOMEM;
    for (long n = 1; bad != 0; n++) {
        test_allocator_init(&allocator);
        allocator.fail_at = n;
        bad = use_everything(&allocator);
        assert_true(bad == 0 || bad == WEIR_E_NOMEM);
        assert_int_equal(allocator.live, 0);
        assert_in_range(n, 1, 20);
    }
}

static void limiter_decisions_allocate_nothing(void **state)
{
    (void)state;
    test_allocator allocator;
    test_allocator_init(&allocator);
    weir_limit limit;
    assert_int_equal(weir_limit_sliding_log(&limit, 100, WEIR_SECOND), 0);
    weir_limiter_options options = {.size = sizeof options, .allocator = &allocator.allocator};
    weir_limiter *limiter;
    assert_int_equal(weir_limiter_new(&limit, 1, &options, &limiter), 0);
    long takes = allocator.takes;
    weir_decision decision;
    weir_receipt receipt;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(weir_limiter_reserve(limiter, 1, &receipt, &decision), 0);
        if (decision.verdict == WEIR_GO && i % 2 == 0)
            assert_int_equal(weir_limiter_settle(limiter, &receipt, 0), 0);
    }
    assert_int_equal(allocator.takes, takes);
    weir_limiter_free(limiter);
}

WEIR_TESTS(test(try_grants_free_permits_or_returns_the_wait), test(statistics_count_permits_and_waiters),
           test(reservation_is_settled_at_the_permits_used), test(waiters_are_served_in_order_of_arrival),
           test(try_is_refused_while_a_caller_waits), test(a_stream_of_tries_cannot_starve_a_waiter),
           test(a_large_request_is_not_overtaken_by_small_ones), test(leaky_bucket_refuses_waiters_beyond_its_capacity),
           test(acquire_ends_at_its_deadline), test(acquire_with_zero_timeout_acts_as_try),
           test(waiter_that_is_cancelled_or_times_out_makes_way_for_the_next),
           test(a_waiter_that_timed_out_takes_no_permit), test(changed_limits_apply_at_once_to_waiters),
           test(closing_a_limiter_fails_its_waiters_and_all_later_calls),
           test(freeing_a_limiter_fails_its_waiters_and_leaks_nothing),
           test(invalid_limiter_calls_are_refused_and_change_nothing),
           test(each_limiter_call_may_fail_for_memory_without_a_leak), test(limiter_decisions_allocate_nothing))
