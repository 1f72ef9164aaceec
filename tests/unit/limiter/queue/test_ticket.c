/* SPDX-License-Identifier: MIT */
/* test_ticket.c - tests of tickets, which wait in a queue without a thread: waking, freeing, races
 * (K3). */
#include "lib/alloc.h"
#include "lib/rig.h"

struct loop {
    weir_clock *clock;
    weir_limiter *limiter;
    int woken;
    weir_ticket *frees; /* ticket that the next wake frees; NULL if none */
};

static void set_up(struct loop *loop, const weir_limit *limit)
{
    *loop = (struct loop){0};
    loop->clock = fake_clock();
    loop->limiter = limiter_of(*limit, loop->clock);
}

static void tear_down(struct loop *loop)
{
    weir_limiter_free(loop->limiter);
    weir_clock_fake_free(loop->clock);
}

static void wake(void *context)
{
    struct loop *loop = context;
    loop->woken++;
    weir_ticket *ticket = loop->frees;
    loop->frees = NULL;
    weir_ticket_free(ticket);
}

static weir_ticket *enqueue_ticket(struct loop *loop, uint32_t permits, int64_t timeout_ns)
{
    weir_ticket *ticket = NULL;
    assert_int_equal(weir_limiter_enqueue(loop->limiter, permits, timeout_ns, wake, loop, &ticket), 0);
    return ticket;
}

static weir_decision poll_ticket(weir_ticket *ticket)
{
    weir_decision decision;
    assert_int_equal(weir_ticket_poll(ticket, &decision), 0);
    return decision;
}

static void ticket_is_granted_at_once_if_a_permit_is_free(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct loop loop;
    set_up(&loop, &limit);
    weir_ticket *ticket = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    assert_int_equal(poll_ticket(ticket).verdict, WEIR_GO);
    /* it stays granted and is charged once */
    assert_int_equal(poll_ticket(ticket).verdict, WEIR_GO);
    weir_ticket_free(ticket);
    assert_int_equal(loop.woken, 0);
    tear_down(&loop);
}

static void ticket_says_when_to_poll_again(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct loop loop;
    set_up(&loop, &limit);
    weir_ticket *first = enqueue_ticket(&loop, 1, WEIR_FOREVER), *second = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    assert_int_equal(poll_ticket(second).verdict, WEIR_WAIT); /* it does not overtake the first */
    assert_int_equal(poll_ticket(first).verdict, WEIR_GO);
    assert_int_equal(loop.woken, 1); /* the second ticket is first now */
    weir_decision decision = poll_ticket(second);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_true(decision.wait_ns == WEIR_SECOND);
    advance(loop.clock, WEIR_SECOND);
    assert_int_equal(poll_ticket(second).verdict, WEIR_GO);
    weir_ticket_free(first);
    weir_ticket_free(second);
    tear_down(&loop);
}

static void release_wakes_the_first_ticket(void **state)
{
    (void)state;
    weir_limit limit = concurrency(1);
    struct loop loop;
    set_up(&loop, &limit);
    weir_decision decision;
    assert_int_equal(weir_limiter_try(loop.limiter, 1, &decision), 0);
    weir_ticket *ticket = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    decision = poll_ticket(ticket);
    assert_int_equal(decision.reason, WEIR_REASON_CONCURRENCY);
    assert_true(decision.wait_ns == WEIR_UNTIL_RELEASE);
    assert_int_equal(weir_limiter_release(loop.limiter, 1), 0);
    assert_int_equal(loop.woken, 1);
    assert_int_equal(poll_ticket(ticket).verdict, WEIR_GO);
    weir_ticket_free(ticket);
    tear_down(&loop);
}

static void freed_ticket_wakes_the_next(void **state)
{
    (void)state;
    weir_limit limit = bucket(2, 1, WEIR_SECOND);
    struct loop loop;
    set_up(&loop, &limit);
    weir_decision decision;
    assert_int_equal(weir_limiter_try(loop.limiter, 1, &decision), 0);
    weir_ticket *large = enqueue_ticket(&loop, 2, WEIR_FOREVER), *small = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    assert_int_equal(poll_ticket(large).verdict, WEIR_WAIT);
    assert_int_equal(poll_ticket(small).verdict, WEIR_WAIT);
    weir_ticket_free(large);
    assert_int_equal(loop.woken, 1);
    assert_int_equal(poll_ticket(small).verdict, WEIR_GO);
    weir_ticket_free(small);
    tear_down(&loop);
}

static void count_wake(void *context)
{
    ++*(int *)context;
}

/* Tickets of other limiters. Their wakes become due while a wake is being called. */
struct others {
    weir_limiter *limiters[3];
    weir_ticket *tickets[3];
    int woken[3];
    int freed; /* index of the ticket that the wake frees */
};

static void release_all_and_free_one(void *context)
{
    struct others *others = context;
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_limiter_release(others->limiters[i], 1), 0);
    weir_ticket_free(others->tickets[others->freed]);
    for (int i = 0; i < 3; i++)
        /* wakes are called one after the other, never nested */
        assert_int_equal(others->woken[i], 0);
}

static void ticket_that_is_freed_while_its_wake_is_due_is_not_woken(void **state)
{
    (void)state;
    for (int freed = 0; freed < 3; freed++) {
        weir_limit limit = concurrency(1);
        struct others others = {.freed = freed};
        struct loop loop;
        weir_decision decision;
        weir_ticket *first;
        set_up(&loop, &limit);
        assert_int_equal(weir_limiter_try(loop.limiter, 1, &decision), 0);
        assert_int_equal(weir_limiter_enqueue(loop.limiter, 1, WEIR_FOREVER, release_all_and_free_one, &others, &first),
                         0);
        for (int i = 0; i < 3; i++) {
            others.limiters[i] = limiter_of(limit, loop.clock);
            assert_int_equal(weir_limiter_try(others.limiters[i], 1, &decision), 0);
            assert_int_equal(weir_limiter_enqueue(others.limiters[i], 1, WEIR_FOREVER, count_wake, &others.woken[i],
                                                  &others.tickets[i]),
                             0);
        }
        assert_int_equal(weir_limiter_release(loop.limiter, 1), 0);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(others.woken[i], i != freed);
            if (i != freed)
                weir_ticket_free(others.tickets[i]);
            weir_limiter_free(others.limiters[i]);
        }
        weir_ticket_free(first);
        tear_down(&loop);
    }
}

static void freed_ticket_wakes_the_first_that_is_not_overdue(void **state)
{
    (void)state;
    struct loop loop;
    weir_limit limit = bucket(1, 1, WEIR_HOUR);
    weir_decision decision;
    weir_ticket *tickets[3];
    int woken[3] = {0};
    static const int64_t timeouts[3] = {WEIR_FOREVER, WEIR_SECOND, WEIR_FOREVER};
    set_up(&loop, &limit);
    assert_int_equal(weir_limiter_try(loop.limiter, 1, &decision), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_limiter_enqueue(loop.limiter, 1, timeouts[i], count_wake, &woken[i], &tickets[i]), 0);
    advance(loop.clock, WEIR_SECOND + 1);
    weir_ticket_free(tickets[0]);
    assert_int_equal(woken[2], 1);
    weir_ticket_free(tickets[1]);
    weir_ticket_free(tickets[2]);
    tear_down(&loop);
}

static void enqueue_that_is_granted_or_refused_at_once_is_counted(void **state)
{
    (void)state;
    struct loop loop;
    weir_limit limit = bucket(3, 1, WEIR_HOUR);
    weir_limiter_stats stats;
    weir_ticket *ticket;
    limit.queue_max = 0;
    set_up(&loop, &limit);
    ticket = enqueue_ticket(&loop, 2, 0);
    assert_int_equal(weir_limiter_stats_get(loop.limiter, &stats), 0);
    assert_int_equal(stats.acquired, 2);
    assert_int_equal(weir_limiter_enqueue(loop.limiter, 2, WEIR_DAY, wake, &loop, &ticket), WEIR_E_FULL);
    assert_int_equal(weir_limiter_stats_get(loop.limiter, &stats), 0);
    assert_int_equal(stats.rejected, 2);
    weir_ticket_free(ticket);
    tear_down(&loop);
}

static void ticket_is_granted_until_its_deadline_and_not_later(void **state)
{
    (void)state;
    for (int64_t late_ns = 0; late_ns < 2; late_ns++) {
        struct loop loop;
        weir_limit limit = bucket(1, 1, WEIR_SECOND);
        weir_decision decision;
        set_up(&loop, &limit);
        assert_int_equal(weir_limiter_try(loop.limiter, 1, &decision), 0);
        weir_ticket *ticket = enqueue_ticket(&loop, 1, WEIR_SECOND);
        advance(loop.clock, WEIR_SECOND + late_ns);
        assert_int_equal(weir_ticket_poll(ticket, &decision), late_ns == 0 ? 0 : WEIR_E_TIMEOUT);
        weir_ticket_free(ticket);
        assert_int_equal(weir_limiter_stats_get(loop.limiter, NULL), WEIR_E_INVAL);
        tear_down(&loop);
    }
}

static void overdue_ticket_that_is_not_polled_is_passed_over(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_HOUR);
    struct loop loop;
    set_up(&loop, &limit);
    weir_ticket *lazy = enqueue_ticket(&loop, 1, WEIR_SECOND), *next = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    weir_decision decision = poll_ticket(next);
    assert_true(decision.wait_ns == WEIR_SECOND + 1); /* when the ticket before becomes overdue */
    advance(loop.clock, WEIR_SECOND + 1);
    assert_int_equal(poll_ticket(next).verdict, WEIR_GO);
    assert_int_equal(weir_ticket_poll(lazy, &decision), WEIR_E_TIMEOUT);
    assert_int_equal(weir_ticket_poll(lazy, &decision), WEIR_E_TIMEOUT);
    weir_ticket_free(lazy);
    weir_ticket_free(next);
    tear_down(&loop);
}

/* Two tickets that are never polled precede one without a deadline. It is granted when both are
 * overdue, without a wake. */
static void ticket_is_granted_once_all_before_it_are_overdue(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, 1, 1, WEIR_HOUR), 0);
    struct loop loop;
    set_up(&loop, &limit);
    weir_ticket *lazy[] = {enqueue_ticket(&loop, 1, 3 * WEIR_SECOND), enqueue_ticket(&loop, 1, WEIR_SECOND)};
    weir_ticket *last = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    weir_decision decision = poll_ticket(last);
    assert_true(decision.wait_ns == WEIR_SECOND + 1); /* when the ticket before becomes overdue */
    assert_int_equal(weir_clock_fake_advance(loop.clock, decision.wait_ns), 0);
    decision = poll_ticket(last);
    assert_true(decision.wait_ns == 2 * WEIR_SECOND); /* when the first ticket becomes overdue */
    assert_int_equal(weir_clock_fake_advance(loop.clock, decision.wait_ns), 0);
    assert_int_equal(poll_ticket(last).verdict, WEIR_GO);
    assert_int_equal(loop.woken, 0);
    assert_int_equal(weir_ticket_poll(lazy[0], &decision), WEIR_E_TIMEOUT);
    weir_ticket_free(lazy[0]);
    weir_ticket_free(lazy[1]);
    weir_ticket_free(last);
    tear_down(&loop);
}

/* The middle ticket is freed. The last one must be woken, because the ticket before it now has a
 * deadline. */
static void freed_ticket_wakes_the_ticket_behind_it(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, 1, 1, WEIR_HOUR), 0);
    struct loop loop;
    set_up(&loop, &limit);
    weir_ticket *lazy = enqueue_ticket(&loop, 1, WEIR_SECOND), *middle = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    weir_ticket *last = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    assert_true(poll_ticket(last).wait_ns == WEIR_UNTIL_RELEASE);
    weir_ticket_free(middle);
    assert_int_equal(loop.woken, 2); /* the first ticket and the last */
    assert_true(poll_ticket(last).wait_ns == WEIR_SECOND + 1);
    weir_ticket_free(lazy);
    weir_ticket_free(last);
    tear_down(&loop);
}

static void enqueue_with_zero_timeout_is_granted_if_permits_are_free(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, 1, 1, WEIR_HOUR), 0);
    struct loop loop;
    set_up(&loop, &limit);
    weir_ticket *now = enqueue_ticket(&loop, 1, 0), *never = enqueue_ticket(&loop, 1, 0);
    assert_int_equal(weir_clock_fake_advance(loop.clock, 1), 0);
    assert_int_equal(poll_ticket(now).verdict, WEIR_GO);
    weir_decision decision;
    assert_int_equal(weir_ticket_poll(never, &decision), WEIR_E_TIMEOUT);
    weir_ticket_free(now);
    weir_ticket_free(never);
    tear_down(&loop);
}

enum {
    CROWD = 100000
};

struct crowd {
    weir_limiter *limiter;
    int granted, deepest, depth;
};

/* One ticket of the crowd. It is polled as soon as it is woken, and releases its permit at once. */
struct member {
    struct crowd *crowd;
    weir_ticket *ticket;
};

static void poll_and_release(void *context)
{
    struct member *member = context;
    struct crowd *crowd = member->crowd;
    weir_decision decision;
    crowd->depth++;
    crowd->deepest = crowd->depth > crowd->deepest ? crowd->depth : crowd->deepest;
    if (weir_ticket_poll(member->ticket, &decision) == 0 && decision.verdict == WEIR_GO) {
        crowd->granted++;
        assert_int_equal(weir_limiter_release(crowd->limiter, 1), 0);
    }
    crowd->depth--;
}

static void wakes_that_wake_do_not_nest(void **state)
{
    (void)state;
    static struct crowd crowd;
    static struct member members[CROWD];
    weir_limit limit;
    weir_decision decision;
    assert_int_equal(weir_limit_concurrency(&limit, 1), 0);
    assert_int_equal(weir_limiter_new(&limit, 1, NULL, &crowd.limiter), 0);
    assert_int_equal(weir_limiter_try(crowd.limiter, 1, &decision), 0);
    for (int i = 0; i < CROWD; i++) {
        members[i].crowd = &crowd;
        assert_int_equal(
            weir_limiter_enqueue(crowd.limiter, 1, WEIR_FOREVER, poll_and_release, &members[i], &members[i].ticket), 0);
    }
    assert_int_equal(weir_limiter_release(crowd.limiter, 1), 0);
    assert_int_equal(crowd.granted, CROWD);
    assert_int_equal(crowd.deepest, 1);
    for (int i = 0; i < CROWD; i++)
        weir_ticket_free(members[i].ticket);
    weir_limiter_free(crowd.limiter);
}

/* Many tickets time out together. They are passed over once, not once per try and poll. */
static void hundred_thousand_overdue_tickets_are_passed_over_once(void **state)
{
    (void)state;
    static weir_ticket *tickets[CROWD];
    weir_limit limit;
    weir_decision decision;
    assert_int_equal(weir_limit_concurrency(&limit, 1), 0);
    struct loop loop;
    set_up(&loop, &limit);
    assert_int_equal(weir_limiter_try(loop.limiter, 1, &decision), 0);
    for (int i = 0; i < CROWD; i++)
        tickets[i] = enqueue_ticket(&loop, 1, WEIR_SECOND);
    assert_int_equal(weir_clock_fake_advance(loop.clock, 2 * WEIR_SECOND), 0);
    int64_t began = weir_clock_now(weir_clock_monotonic());
    for (int i = CROWD - 1; i >= 0; i--) {
        assert_int_equal(weir_limiter_try(loop.limiter, 1, &decision), 0);
        assert_int_equal(weir_ticket_poll(tickets[i], &decision), WEIR_E_TIMEOUT);
        weir_ticket_free(tickets[i]);
    }
    /* quadratic time takes minutes */
    assert_true(weir_clock_now(weir_clock_monotonic()) - began < 10 * WEIR_SECOND);
    tear_down(&loop);
}

static void free_the_limiter(void *context)
{
    struct loop *loop = context;
    weir_limiter *limiter = loop->limiter;
    loop->limiter = NULL;
    weir_limiter_free(limiter);
}

static void a_wake_may_free_the_limiter_that_is_being_changed(void **state)
{
    (void)state;
    weir_limit one, two;
    assert_int_equal(weir_limit_concurrency(&one, 1), 0);
    assert_int_equal(weir_limit_concurrency(&two, 2), 0);
    struct loop loop;
    set_up(&loop, &one);
    weir_decision decision;
    weir_ticket *ticket;
    assert_int_equal(weir_limiter_try(loop.limiter, 1, &decision), 0);
    assert_int_equal(weir_limiter_enqueue(loop.limiter, 1, WEIR_FOREVER, free_the_limiter, &loop, &ticket), 0);
    assert_int_equal(weir_limiter_change(loop.limiter, &two, 1), 0);
    assert_null(loop.limiter);
    assert_int_equal(weir_ticket_poll(ticket, &decision), WEIR_E_CLOSED);
    weir_ticket_free(ticket);
    tear_down(&loop);
}

static void wake_may_free_its_own_ticket(void **state)
{
    (void)state;
    weir_limit limit = concurrency(1);
    struct loop loop;
    set_up(&loop, &limit);
    weir_decision decision;
    assert_int_equal(weir_limiter_try(loop.limiter, 1, &decision), 0);
    loop.frees = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    assert_int_equal(weir_limiter_release(loop.limiter, 1), 0);
    assert_int_equal(loop.woken, 1);
    assert_int_equal(weir_limiter_try(loop.limiter, 1, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO); /* the queue is empty */
    tear_down(&loop);
}

static void closing_wakes_all_tickets_and_they_outlive_the_limiter(void **state)
{
    (void)state;
    weir_limit limit = concurrency(1);
    struct loop loop;
    set_up(&loop, &limit);
    weir_decision decision;
    assert_int_equal(weir_limiter_try(loop.limiter, 1, &decision), 0);
    weir_ticket *tickets[100];
    for (int i = 0; i < 100; i++)
        tickets[i] = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    weir_limiter_free(loop.limiter);
    assert_int_equal(loop.woken, 100);
    for (int i = 0; i < 100; i += 2)
        assert_int_equal(weir_ticket_poll(tickets[i], &decision), WEIR_E_CLOSED);
    for (int i = 0; i < 100; i++)
        weir_ticket_free(tickets[i]);
    weir_clock_fake_free(loop.clock);
}

static void enqueue_refuses_too_many_permits_and_a_full_queue(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_leaky_bucket(&limit, 2, WEIR_SECOND), 0);
    struct loop loop;
    set_up(&loop, &limit);
    weir_ticket *tickets[2], *none = NULL;
    assert_int_equal(weir_limiter_enqueue(loop.limiter, 3, WEIR_FOREVER, wake, &loop, &none), WEIR_E_NEVER);
    tickets[0] = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    tickets[1] = enqueue_ticket(&loop, 1, WEIR_FOREVER);
    assert_int_equal(weir_limiter_enqueue(loop.limiter, 1, WEIR_FOREVER, wake, &loop, &none), WEIR_E_FULL);
    assert_null(none);
    weir_ticket_free(tickets[0]);
    weir_ticket_free(tickets[1]);
    tear_down(&loop);
}

/* ---- races, on real threads in real time ---- */

#define THREADS 8
#define AT_MOST 3

struct race {
    weir_limiter *limiter;
    weir_cancel *cancel;
    atomic_int in_flight, most_in_flight, grants, seed;
};

/* Acquires with timeouts of a few microseconds, so that grants, timeouts and releases often
 * coincide. */
static void *race_for_permits(void *context)
{
    struct race *race = context;
    unsigned seed = (unsigned)atomic_fetch_add(&race->seed, 1);
    for (int i = 0; i < 4000; i++) {
        int64_t timeout_ns = (int64_t)(rand_r(&seed) % 40) * WEIR_MICROSECOND;
        if (weir_limiter_acquire(race->limiter, 1, timeout_ns, race->cancel, NULL, NULL) != 0)
            continue;
        atomic_fetch_add(&race->grants, 1);
        int now = atomic_fetch_add(&race->in_flight, 1) + 1;
        int most = atomic_load(&race->most_in_flight);
        while (now > most && !atomic_compare_exchange_weak(&race->most_in_flight, &most, now))
            ;
        atomic_fetch_sub(&race->in_flight, 1);
        (void)weir_limiter_release(race->limiter, 1);
    }
    return NULL;
}

static void no_permit_is_lost_or_doubled_when_grants_race_deadlines(void **state)
{
    (void)state;
    weir_limit limit;
    struct race race = {0};
    assert_int_equal(weir_limit_concurrency(&limit, AT_MOST), 0);
    assert_int_equal(weir_limiter_new(&limit, 1, NULL, &race.limiter), 0);
    assert_int_equal(weir_cancel_new(NULL, &race.cancel), 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race_for_permits, &race), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_in_range(atomic_load(&race.most_in_flight), 1, AT_MOST);
    weir_limiter_stats stats;
    assert_int_equal(weir_limiter_stats_get(race.limiter, &stats), 0);
    assert_int_equal(stats.current, AT_MOST); /* every permit was returned */
    assert_int_equal(stats.queue_depth, 0);
    assert_int_equal(stats.acquired, atomic_load(&race.grants));
    weir_cancel_free(race.cancel);
    weir_limiter_free(race.limiter);
}

/* Retries a wait that cannot succeed until it is cancelled or the limiter is closed. Returns the
 * final error. */
static void *wait_for_the_end(void *context)
{
    struct race *race = context;
    int result;
    do
        result = weir_limiter_acquire(race->limiter, 1, 50 * WEIR_MICROSECOND, race->cancel, NULL, NULL);
    while (result == WEIR_E_TIMEOUT);
    return (void *)(intptr_t)result;
}

static void cancel_and_close_end_all_waits_under_races(void **state)
{
    (void)state;
    weir_limit limit = concurrency(1);
    for (int round = 0; round < 40; round++) {
        struct race race = {0};
        weir_decision decision;
        assert_int_equal(weir_limiter_new(&limit, 1, NULL, &race.limiter), 0);
        assert_int_equal(weir_cancel_new(NULL, &race.cancel), 0);
        assert_int_equal(weir_limiter_try(race.limiter, 1, &decision), 0);
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, wait_for_the_end, &race), 0);
        if (round % 2 == 0)
            weir_cancel_fire(race.cancel);
        else
            weir_limiter_close(race.limiter);
        for (int i = 0; i < THREADS; i++) {
            void *result;
            pthread_join(threads[i], &result);
            assert_int_equal((int)(intptr_t)result, round % 2 == 0 ? WEIR_E_CANCELLED : WEIR_E_CLOSED);
        }
        weir_cancel_free(race.cancel);
        weir_limiter_free(race.limiter);
    }
}

WEIR_TESTS(
    test(ticket_that_is_freed_while_its_wake_is_due_is_not_woken),
    test(enqueue_that_is_granted_or_refused_at_once_is_counted), test(freed_ticket_wakes_the_first_that_is_not_overdue),
    test(ticket_is_granted_until_its_deadline_and_not_later), test(ticket_is_granted_at_once_if_a_permit_is_free),
    test(ticket_says_when_to_poll_again), test(release_wakes_the_first_ticket), test(freed_ticket_wakes_the_next),
    test(overdue_ticket_that_is_not_polled_is_passed_over), test(ticket_is_granted_once_all_before_it_are_overdue),
    test(freed_ticket_wakes_the_ticket_behind_it), test(enqueue_with_zero_timeout_is_granted_if_permits_are_free),
    test(wakes_that_wake_do_not_nest), test(hundred_thousand_overdue_tickets_are_passed_over_once),
    test(a_wake_may_free_the_limiter_that_is_being_changed), test(wake_may_free_its_own_ticket),
    test(closing_wakes_all_tickets_and_they_outlive_the_limiter),
    test(enqueue_refuses_too_many_permits_and_a_full_queue),
    test(no_permit_is_lost_or_doubled_when_grants_race_deadlines), test(cancel_and_close_end_all_waits_under_races))
