/* SPDX-License-Identifier: MIT */
/* test_clock.c - tests of the fake, fast and monotonic clocks and of parking threads (S0-78, H1,
 * H6). */
#include "lib/alloc.h"
#include "lib/test.h"
#include "lib/worker.h"
#include "limiter/clock/clock.h"
#include "limiter/clock/cpu_slice.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <weir/error.h>

static void fake_clock_stands_still_until_it_is_moved(void **state)
{
    (void)state;
    weir_clock *clock;
    assert_int_equal(weir_clock_fake_new(WEIR_SECOND, NULL, &clock), 0);
    assert_true(weir_clock_now(clock) == WEIR_SECOND);
    assert_true(weir_clock_now(clock) == WEIR_SECOND);
    assert_int_equal(weir_clock_fake_advance(clock, 5), 0);
    assert_true(weir_clock_now(clock) == WEIR_SECOND + 5);
    assert_int_equal(weir_clock_fake_advance(clock, -WEIR_MILLISECOND), 0);
    assert_true(weir_clock_now(clock) == WEIR_SECOND + 5 - WEIR_MILLISECOND);
    weir_clock_fake_free(clock);
}

static void fake_clock_refuses_absurd_times_and_real_clocks(void **state)
{
    (void)state;
    weir_clock *clock = NULL;
    assert_int_equal(weir_clock_fake_new(-1, NULL, &clock), WEIR_E_INVAL);
    assert_null(clock);
    assert_int_equal(weir_clock_fake_new(0, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_clock_fake_new(7, NULL, &clock), 0);
    assert_int_equal(weir_clock_fake_set(clock, INT64_MAX), WEIR_E_INVAL);
    assert_int_equal(weir_clock_fake_advance(clock, INT64_MIN), WEIR_E_INVAL);
    assert_int_equal(weir_clock_fake_advance(clock, -8), WEIR_E_INVAL);
    assert_true(weir_clock_now(clock) == 7);
    weir_clock *real = (weir_clock *)(uintptr_t)weir_clock_monotonic();
    assert_int_equal(weir_clock_fake_set(real, 1), WEIR_E_INVAL);
    assert_int_equal(weir_clock_fake_waiters(real), WEIR_E_INVAL);
    assert_int_equal(weir_clock_fake_set(NULL, 1), WEIR_E_INVAL);
    weir_clock_fake_free(real);
    weir_clock_fake_free(clock);
    weir_clock_fake_free(NULL);
}

static void fake_clock_allocation_failure_is_an_error(void **state)
{
    (void)state;
    test_allocator allocator;
    test_allocator_init(&allocator);
    allocator.fail_at = 1;
    weir_clock *clock = NULL;
    assert_int_equal(weir_clock_fake_new(0, &allocator.allocator, &clock), WEIR_E_NOMEM);
    assert_null(clock);
    assert_int_equal(weir_clock_fake_new(0, &allocator.allocator, &clock), 0);
    weir_clock_fake_free(clock);
    assert_int_equal(allocator.live, 0);
}

struct sleeper {
    struct wr_parker parker;
    weir_clock *clock;
    int64_t until;
    atomic_int done;
};

static void *sleep_until(void *context)
{
    struct sleeper *sleeper = context;
    while (weir_clock_now(sleeper->clock) < sleeper->until)
        wr_park(&sleeper->parker, sleeper->clock, sleeper->until);
    atomic_store(&sleeper->done, 1);
    return NULL;
}

static void fake_clock_wakes_sleepers_whose_time_has_come(void **state)
{
    (void)state;
    weir_clock *clock;
    assert_int_equal(weir_clock_fake_new(0, NULL, &clock), 0);
    struct sleeper sleepers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        sleepers[i] = (struct sleeper){.clock = clock, .until = (i + 1) * WEIR_HOUR};
        assert_int_equal(wr_parker_init(&sleepers[i].parker), 0);
        assert_int_equal(pthread_create(&threads[i], NULL, sleep_until, &sleepers[i]), 0);
    }
    test_await_waiters(clock, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_clock_fake_advance(clock, WEIR_HOUR), 0);
        pthread_join(threads[i], NULL);
        test_await_waiters(clock, 2 - i);
        assert_int_equal(atomic_load(&sleepers[i].done), 1);
        wr_parker_release(&sleepers[i].parker);
    }
    weir_clock_fake_free(clock);
}

static void unpark_before_park_is_not_lost(void **state)
{
    (void)state;
    struct wr_parker parker;
    assert_int_equal(wr_parker_init(&parker), 0);
    wr_unpark(&parker);
    wr_park(&parker, weir_clock_monotonic(), WEIR_FOREVER); /* would block if it were lost */
    wr_parker_release(&parker);
}

static void fast_clock_never_goes_back(void **state)
{
    (void)state;
    const weir_clock *fast = weir_clock_fast();
    int64_t last = weir_clock_now(fast), began = last;
    /* The loop lasts for several anchors, at which the fast clock reads the real one. */
    for (long i = 0; i < 3000000 || last - began < 30 * WEIR_MILLISECOND; i++) {
        int64_t now = weir_clock_now(fast);
        assert_true(now >= last);
        last = now;
    }
}

/* Reads the fast clock between two readings of the monotonic clock, and counts a reading that is
 * more than 50 us outside them. */
static void *compare_clocks(void *context)
{
    atomic_int *wrong = context;
    const weir_clock *fast = weir_clock_fast();
    int64_t began = wr_monotonic_now(), after = began;
    while (after - began < 60 * WEIR_MILLISECOND) {
        int64_t before = wr_monotonic_now();
        int64_t now = weir_clock_now(fast);
        after = wr_monotonic_now();
        if (now < before - 50 * WEIR_MICROSECOND || now > after + 50 * WEIR_MICROSECOND)
            atomic_fetch_add(wrong, 1);
    }
    return NULL;
}

static void fast_clock_stays_within_50_us_of_the_monotonic_one_on_every_thread(void **state)
{
    (void)state;
    atomic_int wrong = 0;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compare_clocks, &wrong), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
}

static void wall_clock_returns_the_time_of_day(void **state)
{
    (void)state;
    assert_true(weir_wall_now() > INT64_C(1767225600) * WEIR_SECOND); /* 2026-01-01 in Unix time */
}

/* Scheduling of a thread: the policy it began with, and the policy and nice value it ended with. */
struct treatment {
    int asked, policy, nice;
};

static void *request_cpu_slices(void *context)
{
    struct treatment *treatment = context;
    (void)sched_setscheduler(0, treatment->asked, &(struct sched_param){.sched_priority = 0});
    (void)setpriority(PRIO_PROCESS, 0, 7); /* on Linux this applies to the calling thread only */
    wr_cpu_slice_short();
    wr_cpu_slice_long();
    treatment->policy = sched_getscheduler(0);
    treatment->nice = getpriority(PRIO_PROCESS, 0);
    return NULL;
}

static struct treatment treatment_of(int policy)
{
    struct treatment treatment = {.asked = policy};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, request_cpu_slices, &treatment), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return treatment;
}

static void threads_request_long_cpu_slices_and_keep_idle_policy_and_nice(void **state)
{
    (void)state;
    struct treatment ordinary = treatment_of(SCHED_OTHER), idle = treatment_of(SCHED_IDLE);
    assert_int_equal(ordinary.policy, SCHED_BATCH);
    assert_int_equal(ordinary.nice, 7);
    assert_int_equal(idle.policy, SCHED_IDLE);
    assert_int_equal(idle.nice, 7);
}

/* Stores the longest sleep of the machine that the clock reported, ns. More threads than processors
 * run this, so the kernel interrupts them at any instruction. */
static void *measure_longest_sleep(void *context)
{
    int64_t *longest_ns = context, first = wr_clock_suspended_ns();
    for (int i = 0; i < 400000; i++) {
        int64_t slept_ns = wr_clock_suspended_ns() - first;
        slept_ns = slept_ns < 0 ? -slept_ns : slept_ns;
        *longest_ns = slept_ns > *longest_ns ? slept_ns : *longest_ns;
    }
    return NULL;
}

static void preempted_threads_do_not_report_machine_sleep(void **state)
{
    (void)state;
    enum {
        THREADS = 16
    };
    pthread_t threads[THREADS];
    int64_t longest_ns[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, measure_longest_sleep, &longest_ns[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_in_range(longest_ns[i], 0, 2 * WEIR_MILLISECOND);
}

WEIR_TESTS(test(fake_clock_stands_still_until_it_is_moved), test(fake_clock_refuses_absurd_times_and_real_clocks),
           test(fake_clock_allocation_failure_is_an_error), test(fake_clock_wakes_sleepers_whose_time_has_come),
           test(unpark_before_park_is_not_lost), test(fast_clock_never_goes_back),
           test(fast_clock_stays_within_50_us_of_the_monotonic_one_on_every_thread),
           test(wall_clock_returns_the_time_of_day), test(preempted_threads_do_not_report_machine_sleep),
           test(threads_request_long_cpu_slices_and_keep_idle_policy_and_nice))
