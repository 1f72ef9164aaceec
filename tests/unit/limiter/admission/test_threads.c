/* SPDX-License-Identifier: MIT */
/* test_threads.c - tests that many threads at one weir_admission are admitted exactly up to the
 * limits (V8, K1). */
#include "unit/limiter/admission/rig.h"

#include <pthread.h>

#define THREADS 8
#define ROUNDS 2000

struct crowd {
    struct admission_fixture *rig;
    pthread_t threads[THREADS];
    atomic_int next;      /* index of the next thread */
    atomic_long allowed;  /* admitted requests */
    atomic_long inside;   /* requests between try and release */
    atomic_long too_many; /* times that more than inside_max requests were inside */
    long inside_max;
};

static void crowd_run(struct crowd *crowd, void *(*work)(void *context))
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&crowd->threads[i], NULL, work, crowd), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(crowd->threads[i], NULL), 0);
}

/* Tries ROUNDS requests. Threads do not use cmocka's assertions; errors show in the sums. */
static void *try_often(void *context)
{
    struct crowd *crowd = context;
    int who = atomic_fetch_add(&crowd->next, 1);
    weir_admission_result admission;
    weir_request request;
    char peer[32];

    snprintf(peer, sizeof peer, "192.0.2.%d", who % 4);
    weir_request_init(&request, "GET", "/", peer);
    for (int i = 0; i < ROUNDS; i++) {
        if (weir_admission_try(crowd->rig->counter, &request, &admission) == 0 && admission.allowed)
            atomic_fetch_add(&crowd->allowed, 1);
    }
    return NULL;
}

static void threads_at_one_rule_are_admitted_exactly_its_limit(void **state)
{
    struct admission_fixture *rig = rig_new();
    struct crowd crowd = {.rig = rig};
    weir_rule_stats stats;

    (void)state;
    rig_add(rig, "all", WEIR_KEY_GLOBAL, window(777));
    rig_open(rig);
    crowd_run(&crowd, try_often);
    assert_int_equal(atomic_load(&crowd.allowed), 777);
    assert_int_equal(weir_admission_stats_get(rig->counter, 0, &stats), 0);
    assert_int_equal(stats.granted, 777);
    assert_int_equal(stats.refused, THREADS * ROUNDS - 777);
    rig_free(rig);
}

/* Four addresses with 1000 permits each share 2500. The first rule gets back every permit of a
 * request that the second rule refuses. */
static void threads_at_two_rules_charge_both_alike(void **state)
{
    struct admission_fixture *rig = rig_new();
    struct crowd crowd = {.rig = rig};
    long used = 0;

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(1000));
    rig_add(rig, "all", WEIR_KEY_GLOBAL, window(2500));
    rig_open(rig);
    crowd_run(&crowd, try_often);
    assert_int_equal(atomic_load(&crowd.allowed), 2500);
    assert_int_equal(rig_left(rig, 1, "__global__"), 0);
    for (int i = 0; i < 4; i++) {
        char peer[32];
        snprintf(peer, sizeof peer, "192.0.2.%d", i);
        uint32_t left = rig_left(rig, 0, peer);
        used += 1000 - (long)(left == UINT32_MAX ? 1000 : left);
    }
    assert_int_equal(used, 2500);
    rig_free(rig);
}

static void *admit_and_release(void *context)
{
    struct crowd *crowd = context;
    weir_admission_result admission;
    weir_request request;

    weir_request_init(&request, "GET", "/", "192.0.2.1");
    for (int i = 0; i < ROUNDS; i++) {
        if (weir_admission_try(crowd->rig->counter, &request, &admission) != 0 || !admission.allowed)
            continue;
        if (atomic_fetch_add(&crowd->inside, 1) >= crowd->inside_max)
            atomic_fetch_add(&crowd->too_many, 1);
        atomic_fetch_add(&crowd->allowed, 1);
        atomic_fetch_sub(&crowd->inside, 1);
        if (i % 3 == 0)
            (void)weir_admission_cancel(crowd->rig->counter, &admission);
        (void)weir_admission_release(crowd->rig->counter, &admission);
    }
    return NULL;
}

static void concurrent_threads_never_exceed_a_limit_in_flight(void **state)
{
    struct admission_fixture *rig = rig_new();
    struct crowd crowd = {.rig = rig, .inside_max = 3};

    (void)state;
    rig_add(rig, "many at once", WEIR_KEY_IP, at_once(100));
    rig_add(rig, "three at once", WEIR_KEY_GLOBAL, at_once(3));
    rig_open(rig);
    crowd_run(&crowd, admit_and_release);
    assert_true(atomic_load(&crowd.allowed) > 0);
    assert_int_equal(atomic_load(&crowd.too_many), 0);
    assert_int_equal(rig_left(rig, 0, "192.0.2.1"), 100);
    assert_int_equal(rig_left(rig, 1, "__global__"), 3);
    rig_free(rig);
}

static void *acquire_and_release(void *context)
{
    struct crowd *crowd = context;
    weir_admission_result admission;
    weir_request request;

    weir_request_init(&request, "GET", "/", "192.0.2.1");
    for (int i = 0; i < ROUNDS / 10; i++) {
        if (weir_admission_acquire(crowd->rig->counter, &request, WEIR_FOREVER, NULL, &admission) != 0)
            break;
        if (atomic_fetch_add(&crowd->inside, 1) >= crowd->inside_max)
            atomic_fetch_add(&crowd->too_many, 1);
        atomic_fetch_add(&crowd->allowed, 1);
        atomic_fetch_sub(&crowd->inside, 1);
        (void)weir_admission_release(crowd->rig->counter, &admission);
    }
    return NULL;
}

/* All callers wait for the rules in the same order, so they cannot deadlock. */
static void waiting_threads_are_all_admitted(void **state)
{
    struct admission_fixture *rig = rig_new();
    struct crowd crowd = {.rig = rig, .inside_max = 2};

    (void)state;
    rig_add(rig, "three at once", WEIR_KEY_IP, at_once(3));
    rig_add(rig, "two at once", WEIR_KEY_GLOBAL, at_once(2));
    rig_open(rig);
    crowd_run(&crowd, acquire_and_release);
    assert_int_equal(atomic_load(&crowd.allowed), THREADS * (ROUNDS / 10));
    assert_int_equal(atomic_load(&crowd.too_many), 0);
    assert_int_equal(rig_left(rig, 0, "192.0.2.1"), 3);
    assert_int_equal(rig_left(rig, 1, "__global__"), 2);
    rig_free(rig);
}

WEIR_TESTS(test(threads_at_one_rule_are_admitted_exactly_its_limit), test(threads_at_two_rules_charge_both_alike),
           test(concurrent_threads_never_exceed_a_limit_in_flight), test(waiting_threads_are_all_admitted))
