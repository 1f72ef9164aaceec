/* SPDX-License-Identifier: MIT */
/* worker.h - threads that acquire, and waiting for them without sleeping. */
#ifndef WEIR_TEST_WORKER_H
#define WEIR_TEST_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <weir/table.h>

/* Returns when exactly `count` blocked calls wait on the fake clock; fails the test after a minute. */
void test_await_waiters(const weir_clock *clock, int count);

/* Returns when *number is at least `least`; fails the test after a minute. */
void test_await_number(const atomic_int *number, int least);

/* One thread in one blocking acquire. */
typedef struct test_worker {
    pthread_t thread;
    weir_limiter *limiter; /* or: */
    weir_table *table;
    const char *key;
    uint32_t permits;
    int64_t timeout_ns;
    weir_cancel *cancel;
    atomic_int *finished; /* counted up at the end */
    int place;            /* out: how many had finished before */
    int result;           /* out */
    weir_receipt receipt; /* out, if granted */
    weir_decision decision;
} test_worker;

void test_worker_start(test_worker *worker);
void test_worker_join(test_worker *worker);

#endif
