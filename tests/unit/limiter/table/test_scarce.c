/* SPDX-License-Identifier: MIT */
/* test_scarce.c - tests of threads that end, processes that fork, little memory and small stacks
 * (K5, L2, L3). */
#include "lib/rig.h"

#include <limits.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- K5: permits outlive threads; processes fork ---- */

static void permits_of_an_exited_thread_stay_in_flight_until_released(void **state)
{
    (void)state;
    weir_clock *clock = fake_clock();
    weir_table *table = table_of(concurrency(2), clock, 0);
    atomic_int finished = 0;
    test_worker worker = {.table = table, .key = "k", .permits = 2, .timeout_ns = 0, .finished = &finished};
    test_worker_start(&worker);
    test_worker_join(&worker); /* ended with two permits, which belong to the key */
    assert_int_equal(worker.result, 0);
    weir_decision decision = try_key(table, "k", 1);
    assert_int_equal(decision.reason, WEIR_REASON_CONCURRENCY);
    assert_true(decision.wait_ns == WEIR_UNTIL_RELEASE);
    advance(clock, WEIR_DAY); /* time does not return them */
    assert_false(goes(table, "k"));
    assert_int_equal(weir_table_release(table, "k", 1, 2), 0); /* any thread may release them */
    assert_int_equal(try_key(table, "k", 2).verdict, WEIR_GO);
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

/* Runs `body` in a child process, where cmocka must not continue. Fails the test if it returns an
 * error message. */
static void expect_in_child(const char *(*body)(void))
{
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(60);
        const char *wrong = body();
        if (wrong != NULL)
            (void)dprintf(STDERR_FILENO, "in the child: %s\n", wrong);
        _exit(wrong != NULL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static const char *use_objects_of_its_own(void)
{
    weir_limit limit;
    weir_limiter *limiter;
    weir_table *table;
    weir_decision decision;
    char key[KEY_BYTES];
    if (weir_limit_token_bucket(&limit, 2, 1, WEIR_HOUR) != 0)
        return "no limit";
    if (weir_limiter_new(&limit, 1, NULL, &limiter) != 0 || weir_table_new(&limit, 1, NULL, &table) != 0)
        return "no limiter or table";
    for (int i = 0; i < 3; i++)
        if (weir_limiter_try(limiter, 1, &decision) != 0 || (decision.verdict == WEIR_GO) != (i < 2))
            return "the limiter decides wrongly";
    for (int i = 0; i < 3000; i++) {
        int bytes = snprintf(key, sizeof key, "key-%d", i % 1000);
        if (weir_table_try(table, key, (size_t)bytes, 1, &decision) != 0 || (decision.verdict == WEIR_GO) != (i < 2000))
            return "the table decides wrongly";
    }
    weir_table_free(table);
    weir_limiter_free(limiter);
    return NULL;
}

static void forked_child_can_use_weir(void **state)
{
    (void)state;
    weir_clock *clock = fake_clock();
    weir_limit limit = bucket(1, 1, WEIR_HOUR);
    weir_table_options options = {
        .size = sizeof options, .clock = clock, .ttl_ns = WEIR_HOUR, .sweep_every_ns = WEIR_HOUR};
    weir_table *table, *other = table_of(limit, NULL, 0);
    assert_int_equal(weir_table_new(&limit, 1, &options, &table), 0);
    atomic_int finished = 0;
    test_worker worker = {.table = table, .key = "k", .permits = 1, .timeout_ns = WEIR_FOREVER, .finished = &finished};
    assert_true(goes(table, "k") && goes(other, "k"));
    test_worker_start(&worker);
    /* the worker and the janitor: the child does not have these threads */
    test_await_waiters(clock, 2);
    expect_in_child(use_objects_of_its_own);
    assert_false(goes(other, "k")); /* the parent continues */
    advance(clock, WEIR_HOUR);
    test_worker_join(&worker);
    assert_int_equal(worker.result, 0);
    weir_table_free(other);
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

/* ---- L2: little memory ---- */

static rlim_t mapped_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%lu", &pages) != 1)
            pages = 0;
        (void)fclose(file);
    }
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static int try_number(weir_table *table, unsigned number, weir_decision *ret_decision)
{
    char key[KEY_BYTES];
    int bytes = snprintf(key, sizeof key, "stranger-%u", number);
    return weir_table_try(table, key, (size_t)bytes, 1, ret_decision);
}

/* Checks that every key has spent its only permit, and that the next key is not there. Returns an
 * error message, or NULL. */
static const char *check_keys(weir_table *table, unsigned keys)
{
    weir_decision decision;
    weir_quota quota;
    char key[KEY_BYTES];
    for (unsigned i = 0; i < keys; i++)
        if (try_number(table, i, &decision) != 0 || decision.verdict != WEIR_WAIT)
            return "a key has changed";
    int bytes = snprintf(key, sizeof key, "stranger-%u", keys / 2);
    if (weir_table_peek(table, key, (size_t)bytes, &quota) != 0 || quota.remaining != 0)
        return "cannot peek at a key";
    bytes = snprintf(key, sizeof key, "stranger-%u", keys);
    if (weir_table_peek(table, key, (size_t)bytes, &quota) != WEIR_E_ABSENT)
        return "a key without memory was added";
    weir_table_stats stats;
    if (weir_table_stats_get(table, &stats) != 0 || stats.keys != keys || stats.created != keys)
        return "wrong number of keys";
    return NULL;
}

static const char *fill_64_megabytes(void)
{
    weir_limit limit;
    weir_table_options options = {.size = sizeof options, .max_keys = 10000000};
    weir_table *table;
    weir_decision decision;
    struct rlimit before, little;
    if (mapped_bytes() == 0 || getrlimit(RLIMIT_AS, &before) != 0)
        return "cannot tell the memory in use";
    little = (struct rlimit){mapped_bytes() + ((rlim_t)64 << 20), before.rlim_max};
    if (setrlimit(RLIMIT_AS, &little) != 0 || weir_limit_token_bucket(&limit, 1, 1, WEIR_DAY) != 0 ||
        weir_table_new(&limit, 1, &options, &table) != 0)
        return "cannot begin";
    unsigned keys = 0;
    int bad;
    while ((bad = try_number(table, keys, &decision)) == 0 && keys < options.max_keys)
        keys++;
    if (bad != WEIR_E_NOMEM || keys < 100000)
        return "memory did not run out as it should";
    const char *wrong = check_keys(table, keys);
    if (wrong != NULL)
        return wrong;
    if (setrlimit(RLIMIT_AS, &before) != 0 || try_number(table, keys, &decision) != 0 || decision.verdict != WEIR_GO)
        return "does not go on when there is memory again";
    weir_table_free(table);
    return NULL;
}

static void table_out_of_memory_returns_an_error_and_keeps_its_keys(void **state)
{
    (void)state;
    test_skip_without_limit_of_memory();
    expect_in_child(fill_64_megabytes);
}

/* ---- L3: small stacks ---- */

#define SMALL_STACK_BYTES ((size_t)64 << 10)

static bool want_none(void *context, const weir_table_entry *entry)
{
    (void)context;
    return entry->key_bytes == 0;
}

/* Fills in eight limits, the most that there can be. */
static int large_rules(weir_limit *ret_limits)
{
    int bad = 0;
    for (int i = 0; i < WEIR_STACK_MAX; i++)
        bad |= weir_limit_sliding_log(&ret_limits[i], 100, WEIR_HOUR);
    return bad;
}

static int use_limiter(const weir_limit *limits)
{
    weir_limiter *limiter;
    weir_decision decision;
    weir_receipt receipt;
    weir_quota quota;
    weir_limiter_stats stats;
    weir_ticket *ticket;
    int bad = weir_limiter_new(limits, WEIR_STACK_MAX, NULL, &limiter);
    if (bad != 0)
        return bad;
    bad |= weir_limiter_try(limiter, 1, &decision);
    bad |= weir_limiter_reserve(limiter, 2, &receipt, &decision);
    bad |= weir_limiter_settle(limiter, &receipt, 1);
    bad |= weir_limiter_acquire(limiter, 1, WEIR_FOREVER, NULL, &receipt, &decision);
    bad |= weir_limiter_settle(limiter, &receipt, 0);
    /* waits */
    bad |= weir_limiter_acquire(limiter, 99, 1, NULL, NULL, &decision) != WEIR_E_TIMEOUT;
    bad |= weir_limiter_release(limiter, 1);
    bad |= weir_limiter_change(limiter, limits, WEIR_STACK_MAX);
    bad |= weir_limiter_peek(limiter, &quota) | weir_limiter_stats_get(limiter, &stats);
    bad |= weir_limiter_enqueue(limiter, 1, WEIR_FOREVER, ignore_wake, NULL, &ticket);
    bad |= weir_ticket_poll(ticket, &decision) | weir_ticket_receipt(ticket, &receipt);
    weir_ticket_free(ticket);
    weir_limiter_close(limiter);
    weir_limiter_free(limiter);
    return bad != 0 ? bad : quota.remaining == 98 ? 0 : WEIR_E_SYSTEM;
}

static int use_batches(weir_table *table)
{
    weir_table_item items[40];
    weir_table_part parts[WEIR_STACK_MAX];
    weir_decision decision;
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
        items[i] = (weir_table_item){.key = "many", .key_bytes = 1 + i % 4, .permits = 1};
    for (size_t i = 0; i < WEIR_STACK_MAX; i++)
        parts[i] = (weir_table_part){.table = table, .key = "every", .key_bytes = 1 + i % 5, .permits = 1};
    return weir_table_try_many(table, items, sizeof items / sizeof items[0]) |
           weir_table_try_all(parts, WEIR_STACK_MAX, &decision, NULL);
}

static int use_table(const weir_limit *limits)
{
    weir_table *table;
    weir_decision decision;
    weir_receipt receipt;
    weir_quota quota;
    weir_table_stats stats;
    weir_table_entry *entries;
    weir_ticket *ticket;
    size_t count;
    static const char longest[WEIR_KEY_MAX] = "k";
    int bad = weir_table_new(limits, WEIR_STACK_MAX, NULL, &table);
    if (bad != 0)
        return bad;
    bad |= weir_table_add_plan(table, limits, WEIR_STACK_MAX, NULL);
    bad |= weir_table_try(table, longest, sizeof longest, 1, &decision);
    bad |= weir_table_reserve(table, longest, sizeof longest, 2, &receipt, &decision);
    bad |= weir_table_settle(table, longest, sizeof longest, &receipt, 1);
    bad |= weir_table_acquire(table, longest, sizeof longest, 1, WEIR_FOREVER, NULL, &receipt, &decision);
    bad |= weir_table_settle(table, longest, sizeof longest, &receipt, 0);
    bad |= weir_table_acquire(table, longest, sizeof longest, 99, 1, NULL, NULL, &decision) != WEIR_E_TIMEOUT;
    bad |= weir_table_release(table, longest, sizeof longest, 1);
    bad |= weir_table_enqueue(table, "line", 4, 1, WEIR_FOREVER, ignore_wake, NULL, &ticket);
    bad |= weir_ticket_poll(ticket, &decision);
    weir_ticket_free(ticket);
    bad |= use_batches(table);
    bad |= weir_table_change(table, 0, limits, WEIR_STACK_MAX);
    bad |= weir_table_peek(table, longest, sizeof longest, &quota) | weir_table_stats_get(table, &stats);
    bad |= weir_table_top(table, WEIR_TOP_USED, 1000, &entries, &count);
    weir_table_top_free(table, entries);
    bad |= weir_table_remove_where(table, want_none, NULL) != 0 || weir_table_sweep(table) != 0;
    bad |= weir_table_remove(table, "line", 4);
    weir_table_close(table);
    weir_table_free(table);
    return bad != 0 ? bad : quota.remaining == 98 ? 0 : WEIR_E_SYSTEM;
}

static int use_stack(const weir_limit *limits)
{
    static _Alignas(8) unsigned char memory[WEIR_STACK_MAX * 1024], other[sizeof memory];
    weir_stack stack;
    weir_receipt receipt;
    weir_quota quota;
    int bad = weir_stack_init(&stack, limits, WEIR_STACK_MAX);
    if (bad != 0 || stack.state_bytes > sizeof memory)
        return WEIR_E_SPACE;
    weir_stack_start(&stack, memory, 0);
    bad |= weir_stack_ask(&stack, memory, 0, 1).verdict != WEIR_GO;
    bad |= weir_stack_try(&stack, memory, 0, 1, &receipt).verdict != WEIR_GO;
    weir_stack_settle(&stack, memory, 0, &receipt, 0);
    weir_stack_take(&stack, memory, 0, 2, NULL);
    weir_stack_release(&stack, memory, 1);
    bad |= weir_stack_fresh(&stack, memory, 0);
    bad |= weir_stack_carry(&stack, memory, &stack, other, 0);
    weir_stack_peek(&stack, other, 0, &quota);
    return bad != 0 ? bad : quota.remaining == 98 ? 0 : WEIR_E_SYSTEM;
}

static void *use_all(void *context)
{
    weir_limit limits[WEIR_STACK_MAX];
    int *results = context;
    if (large_rules(limits) != 0)
        return NULL;
    results[0] = use_limiter(limits);
    results[1] = use_table(limits);
    results[2] = use_stack(limits);
    return context;
}

static void every_limiter_call_runs_on_a_stack_of_64_kilobytes(void **state)
{
    (void)state;
    if (SANITIZED || (size_t)PTHREAD_STACK_MIN > SMALL_STACK_BYTES)
        SKIP("sanitizers, or this machine's threads, need larger stacks");
    pthread_attr_t attributes;
    pthread_t thread;
    void *done;
    int results[] = {1, 1, 1};
    assert_int_equal(pthread_attr_init(&attributes), 0);
    /* plus a guard page */
    assert_int_equal(pthread_attr_setstacksize(&attributes, SMALL_STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, use_all, results), 0);
    assert_int_equal(pthread_join(thread, &done), 0);
    assert_ptr_equal(done, results);
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        assert_int_equal(results[i], 0);
    (void)pthread_attr_destroy(&attributes);
}

WEIR_TESTS(test(permits_of_an_exited_thread_stay_in_flight_until_released), test(forked_child_can_use_weir),
           test(table_out_of_memory_returns_an_error_and_keeps_its_keys),
           test(every_limiter_call_runs_on_a_stack_of_64_kilobytes))
