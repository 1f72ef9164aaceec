/* SPDX-License-Identifier: MIT */
/* test_give_up.c - tests of limit algorithms that report the reason of a refusal, and whether to
 * wait at all. */
#include "lib/rig.h"

/* Parameters of the test's algorithm: NONE grants, BREAKER refuses and fails waiters, any other
 * reason refuses. */
struct give_up_params {
    _Atomic weir_reason held_by;
};

static weir_reason reason_of(const weir_limit *limit)
{
    return atomic_load(&((const struct give_up_params *)limit->params)->held_by);
}

static size_t no_bytes(const weir_limit *limit)
{
    (void)limit;
    return 0;
}

static void start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit, (void)state, (void)now;
}

static int64_t ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    (void)state, (void)now, (void)permits;
    return reason_of(limit) == WEIR_REASON_NONE ? 0 : WEIR_UNTIL_RELEASE;
}

static uint32_t take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    (void)limit, (void)state, (void)now, (void)permits;
    return 0;
}

static void give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark, uint32_t permits)
{
    (void)limit, (void)state, (void)now, (void)at, (void)mark, (void)permits;
}

static void peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    (void)limit, (void)state, (void)now;
    *ret_quota = (weir_quota){.limit = 1};
}

static bool fresh(const weir_limit *limit, const void *state, int64_t now)
{
    (void)limit, (void)state, (void)now;
    return true;
}

static weir_reason why(const weir_limit *limit, const void *state, int64_t now)
{
    (void)state, (void)now;
    return reason_of(limit);
}

static int give_up(const weir_limit *limit, const void *state, int64_t now)
{
    (void)state, (void)now;
    return reason_of(limit) == WEIR_REASON_BREAKER ? WEIR_E_CIRCUIT : 0;
}

static const weir_algorithm moody = {.size = sizeof moody,
                                     .name = "moody",
                                     .reason = WEIR_REASON_PAUSED,
                                     .state_bytes = no_bytes,
                                     .start = start,
                                     .ask = ask,
                                     .take = take,
                                     .give = give,
                                     .peek = peek,
                                     .fresh = fresh,
                                     .why = why,
                                     .give_up = give_up};

static weir_limit give_up_limit(struct give_up_params *mood)
{
    weir_limit limit;
    assert_int_equal(weir_limit_custom(&limit, &moody, 1, 0, mood), 0);
    return limit;
}

static void refusal_names_the_reason_of_its_algorithm(void **state)
{
    (void)state;
    struct give_up_params mood = {WEIR_REASON_CONCURRENCY};
    weir_clock *clock = fake_clock();
    weir_limiter *limiter = limiter_of(give_up_limit(&mood), clock);
    weir_decision decision;
    assert_int_equal(weir_limiter_try(limiter, 1, &decision), 0);
    assert_int_equal(decision.reason, WEIR_REASON_CONCURRENCY);
    mood.held_by = WEIR_REASON_RETRY_AFTER;
    assert_int_equal(weir_limiter_try(limiter, 1, &decision), 0);
    assert_int_equal(decision.reason, WEIR_REASON_RETRY_AFTER);
    weir_limiter_free(limiter);
    weir_clock_fake_free(clock);
}

static void acquire_fails_at_once_if_the_algorithm_gives_up(void **state)
{
    (void)state;
    struct give_up_params mood = {WEIR_REASON_BREAKER};
    weir_clock *clock = fake_clock();
    weir_limiter *limiter = limiter_of(give_up_limit(&mood), clock);
    weir_decision decision;
    assert_int_equal(weir_limiter_acquire(limiter, 1, WEIR_FOREVER, NULL, NULL, &decision), WEIR_E_CIRCUIT);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.reason, WEIR_REASON_BREAKER);
    weir_ticket *ticket;
    assert_int_equal(weir_limiter_enqueue(limiter, 1, WEIR_FOREVER, ignore_wake, NULL, &ticket), WEIR_E_CIRCUIT);
    mood.held_by = WEIR_REASON_NONE;
    assert_int_equal(weir_limiter_acquire(limiter, 1, WEIR_FOREVER, NULL, NULL, &decision), 0);
    weir_limiter_free(limiter);
    weir_clock_fake_free(clock);
}

static void all_waiters_fail_when_the_algorithm_gives_up(void **state)
{
    (void)state;
    struct give_up_params mood = {WEIR_REASON_CONCURRENCY};
    weir_clock *clock = fake_clock();
    weir_table *table = table_of(give_up_limit(&mood), clock, 10);
    atomic_int finished = 0;
    test_worker workers[3];
    for (int i = 0; i < 3; i++) {
        workers[i] =
            (test_worker){.table = table, .key = "k", .permits = 1, .timeout_ns = WEIR_FOREVER, .finished = &finished};
        test_worker_start(&workers[i]);
        test_await_waiters(clock, i + 1);
    }
    mood.held_by = WEIR_REASON_BREAKER;
    /* each waiter that is woken wakes the next */
    assert_int_equal(weir_table_release(table, "k", 1, 1), 0);
    for (int i = 0; i < 3; i++) {
        test_worker_join(&workers[i]);
        assert_int_equal(workers[i].result, WEIR_E_CIRCUIT);
        assert_int_equal(workers[i].decision.reason, WEIR_REASON_BREAKER);
    }
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

static int64_t ask_nothing(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    (void)limit, (void)state, (void)now, (void)permits;
    return 0;
}

/* Records the time of the call in the parameters. */
static int give_up_always(const weir_limit *limit, const void *state, int64_t now)
{
    (void)state;
    *(int64_t *)limit->params = now;
    return WEIR_E_CIRCUIT;
}

static void ticket_granted_at_once_does_not_call_give_up(void **state)
{
    (void)state;
    int64_t asked_at = -1;
    weir_clock *clock = fake_clock();
    weir_algorithm hopeless = moody;
    weir_limit limits[2];
    weir_limiter *limiter;
    weir_limiter_options options;
    weir_ticket *ticket;
    hopeless.ask = ask_nothing;
    hopeless.give_up = give_up_always;
    assert_int_equal(weir_limit_custom(&limits[0], &hopeless, 1, 0, &asked_at), 0);
    assert_int_equal(weir_limit_concurrency(&limits[1], 1), 0);
    weir_limiter_options_init(&options);
    options.clock = clock;
    assert_int_equal(weir_limiter_new(limits, 2, &options, &limiter), 0);
    assert_int_equal(weir_limiter_enqueue(limiter, 1, 0, ignore_wake, NULL, &ticket), 0);
    assert_int_equal(asked_at, -1);
    weir_ticket_free(ticket);
    assert_int_equal(weir_limiter_release(limiter, 1), 0);
    assert_int_equal(weir_limiter_try(limiter, 1, &(weir_decision){0}), 0);
    advance(clock, WEIR_SECOND);
    assert_int_equal(weir_limiter_enqueue(limiter, 1, WEIR_SECOND, ignore_wake, NULL, &ticket), WEIR_E_CIRCUIT);
    assert_int_equal(asked_at, weir_clock_now(clock));
    weir_limiter_free(limiter);
    weir_clock_fake_free(clock);
}

/* A ticket that its first poll would grant is not failed by give_up. */
static void ticket_that_can_be_granted_is_not_failed_by_give_up(void **state)
{
    (void)state;
    int64_t asked_at = -1;
    weir_clock *clock = fake_clock();
    weir_algorithm hopeless = moody;
    weir_limit limit;
    weir_ticket *ticket;
    weir_decision decision;
    hopeless.ask = ask_nothing;
    hopeless.give_up = give_up_always;
    assert_int_equal(weir_limit_custom(&limit, &hopeless, 1, 0, &asked_at), 0);
    weir_limiter *limiter = limiter_of(limit, clock);
    assert_int_equal(weir_limiter_enqueue(limiter, 1, WEIR_SECOND, ignore_wake, NULL, &ticket), 0);
    assert_int_equal(weir_ticket_poll(ticket, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    weir_ticket_free(ticket);
    weir_limiter_free(limiter);
    weir_clock_fake_free(clock);
}

WEIR_TESTS(test(ticket_that_can_be_granted_is_not_failed_by_give_up),
           test(ticket_granted_at_once_does_not_call_give_up), test(refusal_names_the_reason_of_its_algorithm),
           test(acquire_fails_at_once_if_the_algorithm_gives_up), test(all_waiters_fail_when_the_algorithm_gives_up))
