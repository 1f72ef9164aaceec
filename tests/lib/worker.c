/* SPDX-License-Identifier: MIT */
/* worker.c - threads that acquire, and functions that wait for them. */
#include "lib/worker.h"

#include "lib/test.h"

#include <sched.h>
#include <time.h>

static int64_t patience_ends_at(void)
{
    return weir_clock_now(weir_clock_monotonic()) + WEIR_MINUTE;
}

static void keep_waiting(int64_t until)
{
    assert_true(weir_clock_now(weir_clock_monotonic()) < until);
    (void)sched_yield();
}

void test_await_waiters(const weir_clock *clock, int count)
{
    for (int64_t until = patience_ends_at(); weir_clock_fake_waiters(clock) != count;)
        keep_waiting(until);
}

void test_await_number(const atomic_int *number, int least)
{
    for (int64_t until = patience_ends_at(); atomic_load(number) < least;)
        keep_waiting(until);
}

static void *work(void *context)
{
    test_worker *worker = context;
    worker->result = worker->table != NULL
                         ? weir_table_acquire(worker->table, worker->key, strlen(worker->key), worker->permits,
                                              worker->timeout_ns, worker->cancel, &worker->receipt, &worker->decision)
                         : weir_limiter_acquire(worker->limiter, worker->permits, worker->timeout_ns, worker->cancel,
                                                &worker->receipt, &worker->decision);
    worker->place = atomic_fetch_add(worker->finished, 1);
    return NULL;
}

void test_worker_start(test_worker *worker)
{
    assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
}

void test_worker_join(test_worker *worker)
{
    assert_int_equal(pthread_join(worker->thread, NULL), 0);
}
