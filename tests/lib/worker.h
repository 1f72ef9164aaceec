/* SPDX-License-Identifier: MIT */
/* worker.h - threads that acquire, and functions that wait for them without sleeping. */
#ifndef WEIR_TEST_WORKER_H
#define WEIR_TEST_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <weir/table.h>

/* Returns when exactly `count` blocked calls wait on the fake clock; fails the test after a
 * minute. */
void test_await_waiters(const weir_clock *clock, int count);

/* Returns when *number is at least `least`; fails the test after a minute. */
void test_await_number(const atomic_int *number, int least);

/* A thread that makes one blocking acquire. */
typedef struct test_worker {
    pthread_t thread;
    weir_limiter *limiter; /* used if `table` is NULL */
    weir_table *table;
    const char *key;
    uint32_t permits;
    int64_t timeout_ns;
    weir_cancel *cancel;
    atomic_int *finished; /* incremented at the end */
    int place;            /* out: number of workers that finished before */
    int result;           /* out: result of the acquire */
    weir_receipt receipt; /* out, if granted */
    weir_decision decision;
} test_worker;

void test_worker_start(test_worker *worker);
void test_worker_join(test_worker *worker);

#endif
