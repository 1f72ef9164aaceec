/* SPDX-License-Identifier: MIT */
/* test_lock.c - tests of the lock of a queue of waiters, and of cancellation of several waiters at
 * once. */
#include "lib/test.h"
#include "limiter/clock/clock.h"
#include "limiter/queue/lock.h"
#include "limiter/queue/queue.h"

#include <pthread.h>

#define THREADS 4

struct shared {
    struct wr_lock lock;
    int inside;  /* threads that hold the lock; the lock protects it */
    int crowded; /* times that more than one thread held the lock */
    long count;  /* times that the lock was taken; the lock protects it */
    long rounds; /* rounds per thread */
};

static void *take_and_give(void *context)
{
    struct shared *shared = context;
    for (long i = 0; i < shared->rounds; i++) {
        wr_lock_wait(&shared->lock); /* the path of a thread that finds the lock taken */
        shared->crowded += ++shared->inside != 1;
        shared->count++;
        shared->inside--;
        wr_lock_give(&shared->lock);
    }
    return NULL;
}

static void waiting_for_a_lock_takes_it(void **state)
{
    (void)state;
    struct wr_lock lock = {0};
    wr_lock_wait(&lock);
    assert_int_equal(atomic_load(&lock.taken), 1);
    wr_lock_give(&lock);
    assert_int_equal(atomic_load(&lock.taken), 0);
    wr_lock_take(&lock);
    assert_int_equal(atomic_load(&lock.taken), 1);
    wr_lock_give(&lock);
}

static void threads_that_wait_for_a_lock_take_it_one_at_a_time(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    struct shared shared = {.rounds = 20000};
    wr_lock_take(&shared.lock);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &shared), 0);
    wr_lock_give(&shared.lock);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(shared.crowded, 0);
    assert_int_equal(shared.count, THREADS * shared.rounds);
}

static void cancel_wakes_joined_waiters_and_no_others(void **state)
{
    (void)state;
    for (int leaves = 0; leaves < 3; leaves++) {
        struct wr_parker parkers[3];
        struct wr_cancel_link links[3];
        weir_cancel *cancel;
        assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(wr_parker_init(&parkers[i]), 0);
            links[i] = (struct wr_cancel_link){.parker = &parkers[i]};
            wr_cancel_join(cancel, &links[i]);
        }
        wr_cancel_leave(cancel, &links[leaves]);
        weir_cancel_fire(cancel);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(parkers[i].unparked, i != leaves);
            wr_parker_release(&parkers[i]);
        }
        weir_cancel_free(cancel);
    }
}

WEIR_TESTS(test(waiting_for_a_lock_takes_it), test(threads_that_wait_for_a_lock_take_it_one_at_a_time),
           test(cancel_wakes_joined_waiters_and_no_others))
