/* SPDX-License-Identifier: MIT */
/* test_table_threads.c - tests that many threads are admitted never above, and under load hardly
 * below, what the limit allows (V8, I4, K1, S0-80, S0-91). */
#include "base/rng.h"
#include "lib/test.h"
#include "lib/worker.h"

#define THREADS 8

struct load {
    weir_table *table;
    int keys;
    int64_t until;
    atomic_ullong admitted;
    atomic_int threads;
};

static void key_of(char *text, size_t size, uint64_t number)
{
    (void)snprintf(text, size, "caller-%llu", (unsigned long long)number);
}

static void *try_repeatedly(void *context)
{
    struct load *load = context;
    struct wr_rng rng;
    wr_rng_init(&rng, (uint64_t)atomic_fetch_add(&load->threads, 1));
    uint64_t admitted = 0;
    int64_t now;
    char key[32];
    weir_decision decision;
    do {
        for (int i = 0; i < 64; i++) {
            key_of(key, sizeof key, wr_rng_below(&rng, (uint64_t)load->keys));
            if (weir_table_try(load->table, key, strlen(key), 1, &decision) == 0)
                admitted += decision.verdict == WEIR_GO;
        }
        now = weir_clock_now(weir_clock_monotonic());
    } while (now < load->until);
    atomic_fetch_add(&load->admitted, admitted);
    return NULL;
}

/* Tries `keys` keys of one table from all threads for `for_ns`. */
static void load_table(struct load *load, int64_t for_ns)
{
    pthread_t threads[THREADS];
    load->until = weir_clock_now(weir_clock_monotonic()) + for_ns;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, try_repeatedly, load), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Takes the permits that the threads have left of a key. Returns their number. */
static uint64_t drain(weir_table *table, const char *key)
{
    uint64_t drained = 0;
    weir_decision decision;
    for (;; drained++) {
        assert_int_equal(weir_table_try(table, key, strlen(key), 1, &decision), 0);
        if (decision.verdict != WEIR_GO)
            return drained;
    }
}

static void eight_threads_on_one_key_get_what_the_limit_allows(void **state)
{
    (void)state;
    enum {
        BURST = 4000, /* bridges interruptions of up to 200 ms */
        PER_SECOND = 20000
    };
    weir_limit limit;
    struct load load = {.keys = 1};
    assert_int_equal(weir_limit_token_bucket(&limit, BURST, PER_SECOND, WEIR_SECOND), 0);
    assert_int_equal(weir_table_new(&limit, 1, NULL, &load.table), 0);
    char key[32];
    weir_decision decision;
    key_of(key, sizeof key, 0);
    int64_t began = weir_clock_now(weir_clock_monotonic());
    /* a full bucket would lose permits */
    assert_int_equal(weir_table_try(load.table, key, strlen(key), BURST, &decision), 0);
    load_table(&load, 300 * WEIR_MILLISECOND);
    double admitted = (double)(BURST + atomic_load(&load.admitted) + drain(load.table, key));
    int64_t asked_ns = weir_clock_now(weir_clock_monotonic()) - began;
    double allowed = (double)BURST + (double)PER_SECOND * (double)asked_ns / 1e9;
    assert_true(admitted <= allowed + 2); /* the fast clock's 50 us are one permit */
    assert_true(admitted >= 0.99 * allowed);
    weir_table_free(load.table);
}

static void *reserve_repeatedly(void *context)
{
    struct load *load = context;
    for (int i = 0; i < 10000; i++) {
        weir_receipt receipt;
        weir_decision decision;
        if (weir_table_reserve(load->table, "k", 1, 1, &receipt, &decision) == 0 && decision.verdict == WEIR_GO)
            atomic_fetch_add(&load->admitted, 1);
    }
    return NULL;
}

static void eight_threads_that_reserve_get_exactly_the_burst(void **state)
{
    (void)state;
    enum {
        BURST = 40000
    };
    weir_limit limit;
    struct load load = {.keys = 1};
    pthread_t threads[THREADS];
    assert_int_equal(weir_limit_token_bucket(&limit, BURST, 1, WEIR_DAY / 4), 0);
    assert_int_equal(weir_table_new(&limit, 1, NULL, &load.table), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reserve_repeatedly, &load), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(load.admitted, BURST);
    weir_table_free(load.table);
}

static void *try_both_repeatedly(void *context)
{
    struct load *load = context;
    for (int i = 0; i < 10000; i++) {
        weir_table_part parts[2] = {{.table = load->table, .key = "first", .key_bytes = 5, .permits = 1},
                                    {.table = load->table, .key = "second", .key_bytes = 6, .permits = 1}};
        weir_decision decision;
        if (weir_table_try_all(parts, 2, &decision, NULL) == 0 && decision.verdict == WEIR_GO)
            atomic_fetch_add(&load->admitted, 1);
    }
    return NULL;
}

static void eight_threads_that_try_two_keys_at_once_get_exactly_the_burst(void **state)
{
    (void)state;
    enum {
        BURST = 40000
    };
    weir_limit limit;
    struct load load = {.keys = 2};
    pthread_t threads[THREADS];
    assert_int_equal(weir_limit_token_bucket(&limit, BURST, 1, WEIR_DAY / 4), 0);
    assert_int_equal(weir_table_new(&limit, 1, NULL, &load.table), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, try_both_repeatedly, &load), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(load.admitted, BURST);
    weir_table_free(load.table);
}

static void eight_threads_on_ten_thousand_keys_get_what_the_limits_allow(void **state)
{
    (void)state;
    enum {
        KEYS = 10000,
        BURST = 3
    };
    weir_limit limit;
    struct load load = {.keys = KEYS};
    assert_int_equal(weir_limit_token_bucket(&limit, BURST, 1, WEIR_HOUR), 0);
    assert_int_equal(weir_table_new(&limit, 1, NULL, &load.table), 0);
    load_table(&load, 500 * WEIR_MILLISECOND);
    char key[32];
    uint64_t left = 0;
    for (uint64_t i = 0; i < KEYS; i++) { /* left by the random choice of keys */
        key_of(key, sizeof key, i);
        left += drain(load.table, key);
    }
    /* no permit is lost or doubled */
    assert_int_equal(atomic_load(&load.admitted) + left, KEYS * BURST);
    weir_table_free(load.table);
}

/* ---- all calls at once, for the race detectors ---- */

struct chaos {
    weir_table *table;
    weir_limit limits[2];
    atomic_bool stop;
    atomic_int in_flight[16], worst;
    atomic_int threads;
};

static void hold_and_release(struct chaos *chaos, uint64_t number, int result)
{
    char key[32];
    if (result != 0)
        return;
    int now = atomic_fetch_add(&chaos->in_flight[number], 1) + 1;
    int worst = atomic_load(&chaos->worst);
    while (now > worst && !atomic_compare_exchange_weak(&chaos->worst, &worst, now))
        ;
    atomic_fetch_sub(&chaos->in_flight[number], 1);
    key_of(key, sizeof key, number);
    (void)weir_table_release(chaos->table, key, strlen(key), 1);
}

static void *use_keys(void *context)
{
    struct chaos *chaos = context;
    struct wr_rng rng;
    wr_rng_init(&rng, (uint64_t)atomic_fetch_add(&chaos->threads, 1));
    char key[32];
    weir_decision decision = {0};
    weir_quota quota;
    while (!atomic_load(&chaos->stop)) {
        uint64_t number = wr_rng_below(&rng, 16);
        key_of(key, sizeof key, number);
        int result = wr_rng_below(&rng, 2) == 0 ? weir_table_try(chaos->table, key, strlen(key), 1, &decision)
                                                : weir_table_acquire(chaos->table, key, strlen(key), 1,
                                                                     100 * WEIR_MICROSECOND, NULL, NULL, &decision);
        if (result == 0 && decision.verdict != WEIR_GO)
            result = WEIR_E_TIMEOUT;
        hold_and_release(chaos, number, result);
        (void)weir_table_peek(chaos->table, key, strlen(key), &quota);
    }
    return NULL;
}

static void *change_and_look(void *context)
{
    struct chaos *chaos = context;
    for (int i = 0; !atomic_load(&chaos->stop); i++) {
        weir_table_entry *entries = NULL;
        weir_table_stats stats;
        size_t count;
        (void)weir_table_change(chaos->table, 0, &chaos->limits[i % 2], 1);
        (void)weir_table_stats_get(chaos->table, &stats);
        if (weir_table_top(chaos->table, WEIR_TOP_USED, 5, &entries, &count) == 0)
            weir_table_top_free(chaos->table, entries);
        (void)weir_table_sweep(chaos->table);
        char key[32];
        key_of(key, sizeof key, 1000 + (uint64_t)i); /* evicts another key */
        weir_decision decision;
        (void)weir_table_try(chaos->table, key, strlen(key), 1, &decision);
        (void)weir_table_release(chaos->table, key, strlen(key), 1);
    }
    return NULL;
}

static void concurrent_use_change_eviction_and_close_of_a_table_are_safe(void **state)
{
    (void)state;
    struct chaos chaos = {0};
    weir_table_options options = {.size = sizeof options, .max_keys = 24, .shards = 2, .ttl_ns = 1};
    assert_int_equal(weir_limit_concurrency(&chaos.limits[0], 2), 0);
    assert_int_equal(weir_limit_concurrency(&chaos.limits[1], 3), 0);
    assert_int_equal(weir_table_new(&chaos.limits[0], 1, &options, &chaos.table), 0);
    pthread_t threads[6], changer;
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_keys, &chaos), 0);
    assert_int_equal(pthread_create(&changer, NULL, change_and_look, &chaos), 0);
    int64_t until = weir_clock_now(weir_clock_monotonic()) + 300 * WEIR_MILLISECOND;
    while (weir_clock_now(weir_clock_monotonic()) < until)
        (void)weir_table_sweep(chaos.table);
    weir_table_close(chaos.table); /* under full load */
    atomic_store(&chaos.stop, true);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    pthread_join(changer, NULL);
    assert_in_range(atomic_load(&chaos.worst), 1, 3);
    weir_table_free(chaos.table);
}

WEIR_TESTS(test(eight_threads_that_try_two_keys_at_once_get_exactly_the_burst),
           test(eight_threads_that_reserve_get_exactly_the_burst),
           test(eight_threads_on_one_key_get_what_the_limit_allows),
           test(eight_threads_on_ten_thousand_keys_get_what_the_limits_allow),
           test(concurrent_use_change_eviction_and_close_of_a_table_are_safe))
