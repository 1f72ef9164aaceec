/* SPDX-License-Identifier: MIT */
/* test_pacer_trouble.c - tests of error messages, allocation failures, forks, odd keys, and threads
 * at a half-open breaker. */
#include "rig.h"

#include "lib/alloc.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- error messages ---- */

#define OLD "ret_decision is NULL; a verdict must be looked at"

/* Sets the error detail of another failure, which must not be taken for the next one. */
static void fail_before(struct pacing *pacing)
{
    weir_permit permit;
    assert_int_equal(weir_pacer_try(pacing->pacer, "h", 1, NULL, 0, &permit, NULL), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(), OLD);
}

static void assert_said(struct pacing *pacing, int result, int expected)
{
    assert_int_equal(result, expected);
    assert_string_equal(weir_error_detail(), weir_error_text(expected));
    fail_before(pacing);
}

static void error_of_a_failed_call_replaces_that_of_an_older_one(void **state)
{
    (void)state;
    struct pacing pacing;
    weir_pace_entry entry;
    weir_pace_memory memory = {0};
    weir_permit permit;
    weir_decision decision;
    weir_pace_ticket *ticket;
    char room[4];
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.options.max_hosts = 1;
    pacing_start(&pacing);
    weir_pacer *pacer = pacing.pacer;
    weir_permit held = acquired(&pacing, "h", WEIR_REPORTS_SENT);
    fail_before(&pacing);
    assert_said(&pacing, weir_host_key("example.org", 11, room, sizeof room, NULL), WEIR_E_SPACE);
    assert_said(&pacing, weir_pacer_inspect(pacer, "k", 1, &entry, NULL, NULL), WEIR_E_ABSENT);
    assert_said(&pacing, weir_pacer_memory(pacer, "k", 1, &memory), WEIR_E_ABSENT);
    assert_said(&pacing, weir_pacer_forget(pacer, "k", 1), WEIR_E_ABSENT);
    assert_said(&pacing, weir_pacer_acquire(pacer, "k", 1, 0, 0, NULL, &permit, &decision), WEIR_E_FULL);
    assert_said(&pacing, weir_pacer_enqueue(pacer, "k", 1, NULL, 0, 0, ignore_wake, NULL, &ticket), WEIR_E_FULL);
    assert_said(&pacing, weir_pacer_robots_delay(pacer, "k", 1, 1), WEIR_E_FULL);
    assert_said(&pacing, weir_pacer_pause(pacer, "k", 1, true), WEIR_E_FULL);
    assert_said(&pacing, weir_pacer_seed(pacer, "k", 1, &memory), WEIR_E_FULL);
    assert_int_equal(weir_pacer_pause(pacer, "h", 1, true), 0);
    assert_said(&pacing, weir_permit_sent(&held), WEIR_E_WITHDRAWN);
    weir_pacer_close(pacer);
    assert_said(&pacing, weir_pacer_acquire(pacer, "h", 1, 0, 0, NULL, &permit, NULL), WEIR_E_CLOSED);
    assert_said(&pacing, weir_pacer_try(pacer, "h", 1, NULL, 0, &permit, &decision), WEIR_E_CLOSED);
    assert_said(&pacing, weir_pacer_pause(pacer, "h", 1, true), WEIR_E_CLOSED);
    assert_said(&pacing, weir_pacer_forget(pacer, "h", 1), WEIR_E_CLOSED);
    pacing_tear_down(&pacing);
}

static void failed_waits_name_the_key_and_the_reason(void **state)
{
    (void)state;
    static const char words[] = "domain rate limiter timed out: \"h\" is held by pace";
    struct pacing pacing;
    weir_permit permit;
    weir_decision decision;
    weir_pace_ticket *ticket;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    fetch(&pacing, "h", 200);
    fail_before(&pacing);
    assert_int_equal(weir_pacer_acquire(pacing.pacer, "h", 1, 0, 0, NULL, &permit, NULL), WEIR_E_TIMEOUT);
    assert_string_equal(weir_error_detail(), words);
    assert_int_equal(weir_pacer_enqueue(pacing.pacer, "h", 1, NULL, 0, 0, ignore_wake, NULL, &ticket), 0);
    pass(&pacing, 1);
    for (int i = 0; i < 2; i++) { /* a second poll reports the same error */
        fail_before(&pacing);
        assert_int_equal(weir_pace_ticket_poll(ticket, &permit, &decision), WEIR_E_TIMEOUT);
        assert_string_equal(weir_error_detail(), words);
    }
    weir_pace_ticket_free(ticket);
    pacing_tear_down(&pacing);
}

/* ---- L1: allocation failures, call by call ---- */

enum call {
    CALL_ACQUIRE,
    CALL_WAIT,
    CALL_TRY,
    CALL_ENQUEUE,
    CALL_STAND,
    CALL_ROBOTS,
    CALL_PAUSE,
    CALL_SEED,
    CALL_TOP,
    CALLS
};

static int call(weir_pacer *pacer, enum call which)
{
    weir_permit permit;
    weir_decision decision;
    weir_pace_ticket *ticket;
    weir_pace_memory memory = {.delay_ns = WEIR_SECOND};
    weir_pace_entry *entries;
    size_t count;
    int result = 0;
    switch (which) {
    case CALL_ACQUIRE:
        return weir_pacer_acquire(pacer, "new", 3, 0, 0, NULL, &permit, NULL);
    case CALL_WAIT: /* a queue of waiters is allocated for it */
        result = weir_pacer_acquire(pacer, "h", 1, 0, 1, NULL, &permit, NULL);
        return result == WEIR_E_TIMEOUT ? 0 : result;
    case CALL_TRY:
        return weir_pacer_try(pacer, "new", 3, NULL, 0, &permit, &decision);
    case CALL_ENQUEUE:
    case CALL_STAND:
        result = weir_pacer_enqueue(pacer, which == CALL_STAND ? "h" : "new", which == CALL_STAND ? 1 : 3, NULL, 0, 0,
                                    ignore_wake, NULL, &ticket);
        if (result == 0)
            weir_pace_ticket_free(ticket);
        return result;
    case CALL_ROBOTS:
        return weir_pacer_robots_delay(pacer, "new", 3, WEIR_SECOND);
    case CALL_PAUSE:
        return weir_pacer_pause(pacer, "new", 3, true);
    case CALL_SEED:
        return weir_pacer_seed(pacer, "new", 3, &memory);
    default:
        result = weir_pacer_top(pacer, 3, &entries, &count);
        if (result == 0)
            weir_pacer_top_free(pacer, entries);
        return result;
    }
}

/* Fails the n-th allocation of one call, on a pacer that knows "h". Returns the result of the
 * call. */
static int call_without_memory(struct pacing *pacing, test_allocator *allocator, enum call which, long n)
{
    pacing_start(pacing);
    weir_permit permit;
    if (which == CALL_WAIT || which == CALL_STAND || which == CALL_TOP)
        permit = acquired(pacing, "h", 0);
    fail_before(pacing);
    atomic_store(&allocator->fail_at, n);
    int result = call(pacing->pacer, which);
    atomic_store(&allocator->fail_at, 0);
    if (result == WEIR_E_NOMEM) {
        assert_string_equal(weir_error_detail(), "out of memory");
        assert_int_equal(call(pacing->pacer, which), 0); /* the next call succeeds */
    }
    if (which == CALL_WAIT || which == CALL_STAND || which == CALL_TOP)
        tell(&permit, 200);
    weir_pacer_free(pacing->pacer);
    return result;
}

/* Uses the system's clock: on the fake clock a wait of 1 ns would never end. */
static void each_pacer_call_reports_a_failed_allocation(void **state)
{
    (void)state;
    for (enum call which = 0; which < CALLS; which++) {
        struct pacing pacing;
        test_allocator allocator;
        test_allocator_init(&allocator);
        pacing_init(&pacing, WEIR_PROFILE_STRICT);
        pacing.options.allocator = &allocator.allocator;
        pacing.options.clock = NULL;
        pacing.options.max_hosts = 100;
        pacing.pace.min_interval_ns = WEIR_DAY;
        int failed = 0, result = WEIR_E_NOMEM;
        for (long n = 1; result != 0; n++) {
            result = call_without_memory(&pacing, &allocator, which, n);
            assert_true(result == 0 || result == WEIR_E_NOMEM);
            assert_int_equal(atomic_load(&allocator.live), 0);
            failed += result != 0;
        }
        assert_in_range(failed, 1, 10);
        pacing.pacer = NULL;
        pacing_tear_down(&pacing);
    }
}

static void failed_weir_pacer_new_leaks_nothing(void **state)
{
    (void)state;
    int result = WEIR_E_NOMEM;
    long n = 1;
    for (; result != 0; n++) {
        struct pacing pacing;
        test_allocator allocator;
        test_allocator_init(&allocator);
        pacing_init(&pacing, WEIR_PROFILE_ADAPTIVE);
        pacing.options.allocator = &allocator.allocator;
        pacing.options.sweep_every_ns = WEIR_HOUR;
        atomic_store(&allocator.fail_at, n);
        (void)weir_pacer_new(NULL, NULL, NULL);
        result = weir_pacer_new(&pacing.pace, &pacing.options, &pacing.pacer);
        if (result != 0) {
            assert_int_equal(result, WEIR_E_NOMEM);
            assert_string_equal(weir_error_detail(), "out of memory");
            assert_null(pacing.pacer);
            assert_int_equal(atomic_load(&allocator.live), 0);
        }
        pacing_tear_down(&pacing);
    }
    assert_in_range(n, 3, 20); /* the pacer and parts of its table */
}

/* ---- K5: a fork while other threads wait ---- */

static const char *pace_on_its_own(void)
{
    weir_pacer *pacer;
    weir_pacer_options options;
    weir_permit permit;
    weir_decision decision;
    weir_outcome outcome = answer(200, MS);
    weir_pacer_options_init(&options);
    /* ThreadSanitizer forbids threads after a fork */
    options.sweep_every_ns = SANITIZED ? -1 : WEIR_HOUR;
    if (weir_pacer_new(NULL, &options, &pacer) != 0)
        return "no pacer";
    if (weir_pacer_acquire(pacer, "h", 1, 0, WEIR_SECOND, NULL, &permit, NULL) != 0)
        return "the first request does not go";
    if (weir_pacer_try(pacer, "h", 1, NULL, 0, &(weir_permit){0}, &decision) != 0 || decision.verdict == WEIR_GO)
        return "nothing is spaced";
    if (weir_permit_finish(&permit, &outcome) != 0)
        return "no answer can be told";
    if (weir_pacer_acquire(pacer, "h", 1, 0, WEIR_MINUTE, NULL, &permit, NULL) != 0)
        return "waiting fails";
    weir_permit_abandon(&permit);
    weir_pacer_free(pacer);
    return NULL;
}

static void child_forked_while_others_wait_can_pace_on_its_own(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing_start(&pacing);
    fetch(&pacing, "h", 200);
    struct fetcher waiter;
    fetcher_wait(&waiter, &pacing, "h", 0, WEIR_FOREVER, NULL);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(60);
        const char *wrong = pace_on_its_own();
        if (wrong != NULL)
            (void)dprintf(STDERR_FILENO, "in the child: %s\n", wrong);
        _exit(wrong != NULL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pass(&pacing, WEIR_SECOND); /* the parent continues */
    assert_int_equal(fetcher_join(&waiter), 0);
    tell(&waiter.permit, 200);
    pacing_tear_down(&pacing);
}

/* ---- keys ---- */

static void keys_of_any_bytes_are_distinct_and_returned_unchanged(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        size_t bytes;
    } keys[] = {{"a", 1},       {"a\0", 2},       {"a\0b", 3},       {"a\0c", 3}, {"\0", 1},
                {"\0\0", 2},    {"a\n", 2},       {"\r\n", 2},       {" ", 1},    {"\xff\xfe", 2},
                {"domain:", 7}, {"a/b?c=d&e", 9}, {"token\x1b[m", 8}};
    size_t count = sizeof keys / sizeof *keys;
    struct pacing pacing;
    weir_permit permit;
    weir_decision decision;
    pacing_init(&pacing, WEIR_PROFILE_STRICT);
    pacing.options.groups = WEIR_GROUP_DOMAIN | WEIR_GROUP_ADDRESS;
    pacing_start(&pacing);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(weir_pacer_try(pacing.pacer, keys[i].key, keys[i].bytes, NULL, 0, &permit, &decision), 0);
        assert_int_equal(decision.verdict, WEIR_GO); /* so no earlier key is the same */
        tell(&permit, 200);
        assert_int_equal(weir_pacer_try(pacing.pacer, keys[i].key, keys[i].bytes, NULL, 0, &permit, &decision), 0);
        assert_int_equal(decision.verdict, WEIR_WAIT);
    }
    weir_pace_entry *entries;
    size_t listed;
    assert_int_equal(weir_pacer_top(pacing.pacer, 100, &entries, &listed), 0);
    assert_int_equal(listed, count);
    for (size_t i = 0; i < count; i++) {
        size_t found = 0;
        for (size_t k = 0; k < count; k++)
            found += entries[k].key_bytes == keys[i].bytes && memcmp(entries[k].key, keys[i].key, keys[i].bytes) == 0;
        assert_int_equal(found, 1);
    }
    weir_pacer_top_free(pacing.pacer, entries);
    pacing_tear_down(&pacing);
}

static void keys_that_are_too_long_are_refused(void **state)
{
    (void)state;
    static char key[65536];
    static const size_t sizes[] = {0, WEIR_PACE_KEY_MAX + 1, 65536, SIZE_MAX};
    struct pacing pacing;
    weir_permit permit;
    weir_decision decision;
    memset(key, 'k', sizeof key);
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(weir_pacer_try(pacing.pacer, key, sizes[i], NULL, 0, &permit, &decision), WEIR_E_INVAL);
        assert_int_equal(weir_pacer_pause(pacing.pacer, key, sizes[i], true), WEIR_E_INVAL);
        weir_outcome outcome = answer(200, MS);
        assert_int_equal(weir_pacer_tell(pacing.pacer, key, sizes[i], &outcome), 0);
    }
    assert_int_equal(weir_pacer_try(pacing.pacer, key, WEIR_PACE_KEY_MAX, NULL, 0, &permit, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    tell(&permit, 200);
    pacing_tear_down(&pacing);
}

/* ---- E6: a breaker that is half open many times, and 64 threads ---- */

#define STORMERS 64
#define STORM_TRIES (SANITIZED ? 200 : 2000)

struct storm {
    weir_pacer *pacer;
    atomic_int in_flight, most, granted, wrong;
};

/* Reports a failure for every probe, so the breaker never closes. At no time are more requests in
 * flight than it has probes. */
static void *storm(void *context)
{
    struct storm *storm = context;
    weir_outcome outcome = answer(500, MS);
    for (int i = 0; i < STORM_TRIES; i++) {
        weir_permit permit;
        weir_decision decision;
        uint32_t flags = i % 2 == 0 ? 0 : WEIR_REPORTS_SENT;
        if (weir_pacer_try(storm->pacer, "h", 1, NULL, flags, &permit, &decision) != 0)
            (void)atomic_fetch_add(&storm->wrong, 1);
        if (permit.pacer == NULL) {
            (void)sched_yield();
            continue;
        }
        int now = atomic_fetch_add(&storm->in_flight, 1) + 1;
        for (int most = atomic_load(&storm->most); now > most;)
            if (atomic_compare_exchange_weak(&storm->most, &most, now))
                break;
        (void)atomic_fetch_add(&storm->granted, 1);
        (void)sched_yield();
        (void)atomic_fetch_sub(&storm->in_flight, 1);
        if (weir_permit_sent(&permit) != 0)
            continue; /* another probe failed meanwhile: the breaker is open */
        if (i % 5 == 0)
            weir_permit_abandon(&permit);
        else if (weir_permit_finish(&permit, &outcome) != 0)
            (void)atomic_fetch_add(&storm->wrong, 1);
    }
    return NULL;
}

static void storm_of_threads_never_gets_more_probes_than_the_budget(void **state)
{
    (void)state;
    struct pacing pacing;
    struct storm context = {.pacer = NULL};
    pthread_t threads[STORMERS];
    weir_outcome outcome = answer(500, MS);
    pacing_init(&pacing, WEIR_PROFILE_UNLIMITED);
    pacing.options.clock = NULL;
    pacing.pace.breaker = true;
    pacing.pace.open_ns = MS;
    pacing_start(&pacing);
    context.pacer = pacing.pacer;
    fetch(&pacing, "h", 200);
    for (int i = 0; i < 5; i++)
        assert_int_equal(weir_pacer_tell(pacing.pacer, "h", 1, &outcome), 0);
    assert_int_not_equal(look_at(&pacing, "h").breaker, WEIR_BREAKER_CLOSED);
    for (int i = 0; i < STORMERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, storm, &context), 0);
    for (int i = 0; i < STORMERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&context.wrong), 0);
    assert_in_range(atomic_load(&context.most), 1, 3);
    assert_true(atomic_load(&context.granted) > 0);
    assert_int_equal(look_at(&pacing, "h").in_flight, 0);
    assert_int_not_equal(look_at(&pacing, "h").breaker, WEIR_BREAKER_CLOSED);
    print_message("%d probes, at most %d at a time\n", atomic_load(&context.granted), atomic_load(&context.most));
    pacing_tear_down(&pacing);
}

WEIR_TESTS(test(error_of_a_failed_call_replaces_that_of_an_older_one), test(failed_waits_name_the_key_and_the_reason),
           test(each_pacer_call_reports_a_failed_allocation), test(failed_weir_pacer_new_leaks_nothing),
           test(child_forked_while_others_wait_can_pace_on_its_own),
           test(keys_of_any_bytes_are_distinct_and_returned_unchanged), test(keys_that_are_too_long_are_refused),
           test(storm_of_threads_never_gets_more_probes_than_the_budget))
