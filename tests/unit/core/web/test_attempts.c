/* SPDX-License-Identifier: MIT */
/* test_attempts.c - tests whether and when a request is retried (S0-42, S0-43, R5). */
#include "lib/test.h"

#include "base/rng.h"
#include "core/web/retry/attempts.h"

#define S WEIR_SECOND
#define MS WEIR_MILLISECOND
#define NOW (1000 * S)

static const weir_retry_options options = {.base_ns = 200 * MS, .max_ns = 5 * S, .attempts = 3, .blocking_retries = 3};

static struct wr_attempts fresh(void)
{
    return (struct wr_attempts){.deadline_at = WEIR_FOREVER};
}

static enum wr_retry_step after(struct wr_attempts *attempts, enum wr_status_class ended)
{
    return wr_attempts_after(attempts, &options, ended, 0, NOW, 0.5).what;
}

/* S0-42, S0-64 */
static void transient_failure_gets_three_attempts(void **state)
{
    struct wr_attempts attempts = fresh();

    (void)state;
    assert_int_equal(after(&attempts, WR_STATUS_TRANSIENT), WR_RETRY_QUEUE);
    assert_int_equal(after(&attempts, WR_STATUS_TRANSIENT), WR_RETRY_QUEUE);
    assert_int_equal(after(&attempts, WR_STATUS_TRANSIENT), WR_RETRY_SPENT);
    assert_int_equal(after(&attempts, WR_STATUS_TRANSIENT), WR_RETRY_SPENT);
}

/* S2-11, S2-21: three retries are four attempts. */
static void refused_request_is_retried_three_times(void **state)
{
    struct wr_attempts attempts = fresh();

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(after(&attempts, WR_STATUS_BLOCKING), WR_RETRY_QUEUE);
    assert_int_equal(after(&attempts, WR_STATUS_BLOCKING), WR_RETRY_SPENT);
}

/* T8: with one attempt there is no second request, whatever the outcome of the first. */
static void with_one_attempt_nothing_is_retried(void **state)
{
    static const weir_retry_options once = {.attempts = 1, .blocking_retries = 3}, twice = {.attempts = 2};

    (void)state;
    for (enum wr_status_class ended = WR_STATUS_DONE; ended <= WR_STATUS_PERMANENT; ended++) {
        struct wr_attempts attempts = fresh();
        enum wr_retry_step next = wr_attempts_after(&attempts, &once, ended, 0, NOW, 0.5).what;
        assert_true(next != WR_RETRY_QUEUE && next != WR_RETRY_SLEEP);
    }
    struct wr_attempts attempts = fresh();
    assert_int_equal(wr_attempts_after(&attempts, &twice, WR_STATUS_BLOCKING, 0, NOW, 0.5).what, WR_RETRY_QUEUE);
}

static void transient_and_blocking_attempts_are_counted_separately(void **state)
{
    struct wr_attempts attempts = fresh();

    (void)state;
    assert_int_equal(after(&attempts, WR_STATUS_BLOCKING), WR_RETRY_QUEUE);
    assert_int_equal(after(&attempts, WR_STATUS_TRANSIENT), WR_RETRY_QUEUE);
    assert_int_equal(after(&attempts, WR_STATUS_BLOCKING), WR_RETRY_QUEUE);
    assert_int_equal(after(&attempts, WR_STATUS_TRANSIENT), WR_RETRY_QUEUE);
    assert_int_equal(after(&attempts, WR_STATUS_BLOCKING), WR_RETRY_QUEUE);
    assert_int_equal(after(&attempts, WR_STATUS_TRANSIENT), WR_RETRY_SPENT);
}

static void done_and_permanent_statuses_end_the_attempts_at_once(void **state)
{
    struct wr_attempts attempts = fresh();

    (void)state;
    assert_int_equal(after(&attempts, WR_STATUS_PERMANENT), WR_RETRY_PERMANENT);
    assert_int_equal(after(&attempts, WR_STATUS_DONE), WR_RETRY_DONE);
    assert_int_equal(attempts.failures + attempts.blocks, 0);
}

/* R5 */
static void the_delay_is_the_longer_of_backoff_and_gate(void **state)
{
    static const struct {
        int64_t gate_wait_ns;
        double unit;
        int64_t first_ns, second_ns;
    } rows[] = {
        {0, 0.5, 100 * MS, 200 * MS},
        {0, 0, 0, 0},
        {150 * MS, 0.5, 150 * MS, 200 * MS},
        {60 * S, 0.5, 60 * S, 60 * S},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_attempts attempts = fresh();
        struct wr_next_attempt next =
            wr_attempts_after(&attempts, &options, WR_STATUS_TRANSIENT, rows[i].gate_wait_ns, NOW, rows[i].unit);
        assert_int_equal(next.delay_ns, rows[i].first_ns);
        next = wr_attempts_after(&attempts, &options, WR_STATUS_TRANSIENT, rows[i].gate_wait_ns, NOW, rows[i].unit);
        assert_int_equal(next.delay_ns, rows[i].second_ns);
    }
}

/* R5, S0-47 */
static void unsent_request_costs_no_attempt(void **state)
{
    struct wr_attempts attempts = fresh();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct wr_next_attempt next = wr_attempts_defer(&attempts, 15 * S, NOW + i * S);
        assert_int_equal(next.what, WR_RETRY_QUEUE);
        assert_int_equal(next.delay_ns, 15 * S);
    }
    transient_failure_gets_three_attempts(state);
    assert_int_equal(attempts.failures + attempts.blocks, 0);
}

/* U4 */
static void unsent_request_is_deferred_by_a_minimum_delay(void **state)
{
    struct wr_attempts attempts = fresh();

    (void)state;
    assert_int_equal(wr_attempts_defer(&attempts, 0, NOW).delay_ns, WR_RETRY_UNSENT_MIN_NS);
    assert_int_equal(wr_attempts_defer(&attempts, 1, NOW).delay_ns, WR_RETRY_UNSENT_MIN_NS);
    assert_int_equal(wr_attempts_defer(&attempts, 1, NOW).what, WR_RETRY_QUEUE);
    attempts.is_inline = true; /* the worker waits with the request */
    assert_int_equal(wr_attempts_defer(&attempts, 1, NOW).what, WR_RETRY_SLEEP);
}

/* U13 */
static void nothing_waits_beyond_the_deadline(void **state)
{
    struct wr_attempts attempts = {.deadline_at = NOW + 10 * S};

    (void)state;
    assert_int_equal(wr_attempts_defer(&attempts, 10 * S - 1, NOW).what, WR_RETRY_QUEUE);
    assert_int_equal(wr_attempts_defer(&attempts, 10 * S, NOW).what, WR_RETRY_LATE);
    assert_int_equal(wr_attempts_defer(&attempts, 0, NOW + 20 * S).what, WR_RETRY_LATE);
    assert_int_equal(wr_attempts_after(&attempts, &options, WR_STATUS_BLOCKING, 60 * S, NOW, 0.5).what, WR_RETRY_LATE);
    attempts.is_inline = true;
    assert_int_equal(wr_attempts_after(&attempts, &options, WR_STATUS_BLOCKING, 60 * S, NOW, 0.5).what, WR_RETRY_LATE);
    assert_int_equal(wr_attempts_defer(&(struct wr_attempts){.deadline_at = WEIR_FOREVER}, WEIR_DURATION_MAX, NOW).what,
                     WR_RETRY_QUEUE);
}

/* Works off some requests that always fail, with one worker in virtual time. Returns the time it
 * takes. At most one request is in flight, whether the worker sleeps or queues the request. */
static int64_t work_off(bool is_inline, int requests)
{
    struct wr_attempts attempts[8];
    int64_t ready_at[8], now = NOW;
    int left = requests, sent = 0;

    assert_true(requests <= 8);
    for (int i = 0; i < requests; i++) {
        attempts[i] = (struct wr_attempts){.deadline_at = WEIR_FOREVER, .is_inline = is_inline};
        ready_at[i] = now;
    }
    while (left > 0) {
        int first = -1;
        for (int i = 0; i < requests; i++)
            if (ready_at[i] != WEIR_FOREVER && (first < 0 || ready_at[i] < ready_at[first]))
                first = i;
        now = ready_at[first] > now ? ready_at[first] : now;
        struct wr_next_attempt next = {WR_RETRY_SLEEP, 0};
        while (next.what == WR_RETRY_SLEEP) {
            now += next.delay_ns + 10 * MS; /* sleeps first if so decided */
            sent++;
            next = wr_attempts_after(&attempts[first], &options, WR_STATUS_TRANSIENT, 0, now, 0.5);
            assert_true(is_inline ? next.what != WR_RETRY_QUEUE : next.what != WR_RETRY_SLEEP);
        }
        ready_at[first] = next.what == WR_RETRY_QUEUE ? now + next.delay_ns : WEIR_FOREVER;
        left -= next.what == WR_RETRY_SPENT;
    }
    assert_int_equal(sent, 3 * requests);
    return now - NOW;
}

/* S0-43 */
static void inline_retry_sleeps_in_the_worker_and_the_queue_frees_it(void **state)
{
    (void)state;
    assert_int_equal(work_off(true, 4), 4 * (3 * 10 + 100 + 200) * MS);
    assert_in_range(work_off(false, 4), 330 * MS, 400 * MS);
}

/* S0-96: fewer than two retries on average, for a mix of successes and failures. */
static void transient_failures_cost_at_most_two_retries(void **state)
{
    struct wr_rng rng;
    int retries = 0;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 1000; i++) {
        struct wr_attempts attempts = fresh();
        while (after(&attempts, wr_rng_below(&rng, 10) < 7 ? WR_STATUS_TRANSIENT : WR_STATUS_DONE) == WR_RETRY_QUEUE)
            retries++;
    }
    assert_in_range(retries, 1000, 1999);
}

WEIR_TESTS(test(transient_failure_gets_three_attempts), test(refused_request_is_retried_three_times),
           test(with_one_attempt_nothing_is_retried), test(transient_and_blocking_attempts_are_counted_separately),
           test(done_and_permanent_statuses_end_the_attempts_at_once),
           test(the_delay_is_the_longer_of_backoff_and_gate), test(unsent_request_costs_no_attempt),
           test(unsent_request_is_deferred_by_a_minimum_delay), test(nothing_waits_beyond_the_deadline),
           test(inline_retry_sleeps_in_the_worker_and_the_queue_frees_it),
           test(transient_failures_cost_at_most_two_retries))
