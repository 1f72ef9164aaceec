/* SPDX-License-Identifier: MIT */
/* rig.h - limiters and tables on a fake clock. */
#ifndef WEIR_TEST_RIG_H
#define WEIR_TEST_RIG_H

#include "lib/test.h"
#include "lib/worker.h"

#include <sys/resource.h>

/* Sanitizers map terabytes, need large stacks, and are slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Returns true if this machine enforces limits of address space. qemu-user reports success but sets
 * no limit, because it would run out of memory itself. */
static inline bool test_limits_address_space(void)
{
    struct rlimit before, told;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit most = {before.rlim_max - 1, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &most), 0);
    assert_int_equal(getrlimit(RLIMIT_AS, &told), 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    return told.rlim_cur == most.rlim_cur;
}

/* Skips a test that limits the memory of a child process if the machine cannot do that. */
static inline void test_skip_without_limit_of_memory(void)
{
    if (SANITIZED)
        SKIP("sanitizers need terabytes of address space");
    if (!test_limits_address_space())
        SKIP("this machine ignores limits of memory, as qemu-user does");
}

#define KEY_BYTES 32 /* size of the keys made in tests */

static inline weir_limit bucket(uint32_t capacity, uint32_t refill, int64_t period_ns)
{
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, capacity, refill, period_ns), 0);
    return limit;
}

static inline weir_limit concurrency(uint32_t permits)
{
    weir_limit limit;
    assert_int_equal(weir_limit_concurrency(&limit, permits), 0);
    return limit;
}

static inline weir_clock *fake_clock(void)
{
    weir_clock *clock;
    assert_int_equal(weir_clock_fake_new(WEIR_DAY, NULL, &clock), 0);
    return clock;
}

static inline void advance(weir_clock *clock, int64_t by_ns)
{
    assert_int_equal(weir_clock_fake_advance(clock, by_ns), 0);
}

static inline weir_limiter *limiter_of(weir_limit limit, const weir_clock *clock)
{
    weir_limiter_options options = {.size = sizeof options, .clock = clock};
    weir_limiter *limiter;
    assert_int_equal(weir_limiter_new(&limit, 1, &options, &limiter), 0);
    return limiter;
}

static inline weir_table *table_of(weir_limit limit, const weir_clock *clock, size_t max_keys)
{
    weir_table_options options = {.size = sizeof options, .clock = clock, .max_keys = max_keys};
    weir_table *table;
    assert_int_equal(weir_table_new(&limit, 1, &options, &table), 0);
    return table;
}

/* A table with its own fake clock. Set the options before keyed_set_up. */
struct keyed {
    weir_clock *clock;
    weir_table *table;
    weir_table_options options;
    atomic_int finished;
};

static inline void keyed_set_up(struct keyed *keyed, const weir_limit *limit)
{
    keyed->clock = fake_clock();
    keyed->options.size = sizeof keyed->options;
    keyed->options.clock = keyed->clock;
    assert_int_equal(weir_table_new(limit, 1, &keyed->options, &keyed->table), 0);
}

static inline void keyed_tear_down(struct keyed *keyed)
{
    weir_table_free(keyed->table);
    weir_clock_fake_free(keyed->clock);
}

static inline weir_decision try_key(weir_table *table, const char *key, uint32_t permits)
{
    weir_decision decision;
    assert_int_equal(weir_table_try(table, key, strlen(key), permits, &decision), 0);
    return decision;
}

static inline bool takes(weir_table *table, const char *key, uint32_t permits)
{
    return try_key(table, key, permits).verdict == WEIR_GO;
}

static inline bool goes(weir_table *table, const char *key)
{
    return takes(table, key, 1);
}

static inline uint32_t remaining(weir_table *table, const char *key)
{
    weir_quota quota;
    assert_int_equal(weir_table_peek(table, key, strlen(key), &quota), 0);
    return quota.remaining;
}

static inline bool known(weir_table *table, const char *key)
{
    weir_quota quota;
    int found = weir_table_peek(table, key, strlen(key), &quota);
    assert_true(found == 0 || found == WEIR_E_ABSENT);
    return found == 0;
}

static inline weir_table_stats stats_of(weir_table *table)
{
    weir_table_stats stats;
    assert_int_equal(weir_table_stats_get(table, &stats), 0);
    return stats;
}

static inline void ignore_wake(void *context)
{
    (void)context;
}

#endif
