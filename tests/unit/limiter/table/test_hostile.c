/* SPDX-License-Identifier: MIT */
/* test_hostile.c - tests of floods, crowds, clocks that jump, closing while callers wait, and the
 * cost of one key for the others (H1, H3, H6, I4, J3, J4, K3, S0-10, S0-13, S0-78, R9). */
#include "lib/rig.h"
#include "limiter/clock/clock.h"

#include <sched.h>
#include <time.h>

#define WORKERS 8

/* Returns the CPU time of a thread, ns. Other programs on the machine do not affect it. */
static int64_t cpu_ns(clockid_t clock)
{
    struct timespec time;
    assert_int_equal(clock_gettime(clock, &time), 0);
    return time.tv_sec * WEIR_SECOND + time.tv_nsec;
}

/* ---- J3: millions of new keys ---- */

#define TRICKLE_NS (80 * WEIR_SECOND) /* time to refill one permit */

struct flood {
    weir_clock *clock;
    weir_table *table;
    uint64_t strangers;      /* new keys so far */
    uint32_t drained_grants; /* requests granted to the key that was drained before */
};

/* Tries a new key every 4 ms: 20 000 keys, a full table, in the 80 s for which a new key is
 * limited. */
static void flood_with(struct flood *flood, uint64_t count)
{
    char key[KEY_BYTES];
    for (uint64_t i = 0; i < count; i++) {
        (void)snprintf(key, sizeof key, "stranger-%llu", (unsigned long long)flood->strangers++);
        (void)goes(flood->table, key);
        if (i % 1000 != 999)
            continue;
        advance(flood->clock, 4 * WEIR_SECOND);
        assert_true(stats_of(flood->table).keys <= stats_of(flood->table).max_keys);
        flood->drained_grants += goes(flood->table, "drained");
        if (i % 20000 == 19999)
            assert_true(goes(flood->table, "good")); /* its limit is one in 80 s */
    }
}

/* Drains keys that are then idle, so that the table might forget them. */
static void drain_silently(weir_table *table, unsigned count, uint32_t burst)
{
    char key[KEY_BYTES];
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(key, sizeof key, "silent-%u", i);
        assert_int_equal(try_key(table, key, burst).verdict, WEIR_GO);
    }
}

static void expect_left(weir_table *table, unsigned count, uint32_t left)
{
    char key[KEY_BYTES];
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(key, sizeof key, "silent-%u", i);
        assert_int_equal(try_key(table, key, left).verdict, WEIR_GO);
        assert_false(goes(table, key));
    }
}

static void two_million_new_keys_cost_linear_time_and_evict_no_known_key(void **state)
{
    (void)state;
    enum {
        MAX_KEYS = 20000,
        HALF = SANITIZED ? 60000 : 1000000,
        BURST = 200, /* takes longer to refill than the flood lasts */
        SILENT = 50
    };
    struct flood flood = {.clock = fake_clock()};
    flood.table = table_of(bucket(BURST, 1, TRICKLE_NS), flood.clock, MAX_KEYS);
    assert_int_equal(try_key(flood.table, "drained", BURST).verdict, WEIR_GO);
    assert_int_equal(try_key(flood.table, "good", BURST / 2).verdict, WEIR_GO);
    drain_silently(flood.table, SILENT, BURST);
    int64_t began = weir_clock_now(flood.clock);
    flood_with(&flood, 2 * MAX_KEYS);
    size_t bytes = stats_of(flood.table).memory_bytes;
    int64_t start = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    flood_with(&flood, HALF);
    int64_t middle = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    flood_with(&flood, HALF);
    int64_t end = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    assert_true(end - middle <= 3 * (middle - start));
    assert_true(stats_of(flood.table).memory_bytes <= bytes + bytes / 10);
    assert_in_range(stats_of(flood.table).keys, MAX_KEYS / 2, MAX_KEYS);
    /* Drained keys got what was refilled and not a new bucket: they were never forgotten. */
    int64_t trickled = (weir_clock_now(flood.clock) - began) / TRICKLE_NS;
    assert_in_range(flood.drained_grants, trickled - 1, trickled);
    assert_true(trickled < BURST);
    expect_left(flood.table, SILENT, (uint32_t)trickled);
    weir_table_free(flood.table);
    weir_clock_fake_free(flood.clock);
}

/* ---- J4: similar keys ---- */

static void random_key(uint64_t i, char *key)
{
    uint64_t mixed = i + 0x9e3779b97f4a7c15; /* splitmix64 */
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    (void)snprintf(key, KEY_BYTES, "%016llx", (unsigned long long)(mixed ^ mixed >> 31));
}

static void sequential_key(uint64_t i, char *key)
{
    (void)snprintf(key, KEY_BYTES, "%llu", (unsigned long long)i);
}

static void prefixed_key(uint64_t i, char *key)
{
    (void)snprintf(key, KEY_BYTES, "tenant-0-user-%010llu", (unsigned long long)i);
}

/* Makes keys of 16 lengths that consist of 'a', except their first bytes, which are never 'a'. */
static void repeated_key(uint64_t i, char *key)
{
    size_t bytes = 8 + i % 16;
    memset(key, 'a', bytes);
    key[bytes] = '\0';
    for (uint64_t at = 0, rest = i / 16; rest != 0; rest /= 100)
        key[at++] = (char)(128 + rest % 100);
}

/* Fills a table with keys of one kind. Returns its memory, and the CPU time that this took. */
static size_t fill(void (*key_of)(uint64_t i, char *key), int64_t *ret_cpu_ns)
{
    enum {
        KEYS = SANITIZED ? 50000 : 200000
    };
    weir_clock *clock = fake_clock();
    weir_table *table = table_of(bucket(1, 1, WEIR_HOUR), clock, 1000000);
    char key[KEY_BYTES];
    int64_t began = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t i = 0; i < KEYS; i++) {
        key_of(i, key);
        assert_true(goes(table, key)); /* each key is new */
    }
    *ret_cpu_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    weir_table_stats stats = stats_of(table);
    assert_int_equal(stats.keys, KEYS);
    weir_table_free(table);
    weir_clock_fake_free(clock);
    return stats.memory_bytes;
}

static void similar_keys_cost_no_more_than_random_ones(void **state)
{
    (void)state;
    void (*const families[])(uint64_t, char *) = {sequential_key, prefixed_key, repeated_key};
    int64_t random_ns, alike_ns;
    size_t random_bytes = fill(random_key, &random_ns);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        size_t bytes = fill(families[i], &alike_ns);
        assert_in_range(bytes, random_bytes - random_bytes / 4, random_bytes + random_bytes / 4);
        assert_true(alike_ns <= 4 * random_ns);
    }
}

/* ---- I4: many threads at one key ---- */

#define CROWD 64
#define ASKS 10000 /* calls of each thread: enough for all threads to run at once */

struct crowd {
    weir_table *table;
    pthread_barrier_t start;
    atomic_uint granted;
    atomic_int finished;
};

static void *ask_many_times(void *context)
{
    struct crowd *crowd = context;
    unsigned granted = 0;
    (void)pthread_barrier_wait(&crowd->start);
    for (int i = 0; i < ASKS; i++) {
        weir_decision decision;
        if (weir_table_try(crowd->table, "hot", 3, 1, &decision) == 0)
            granted += decision.verdict == WEIR_GO;
    }
    atomic_fetch_add(&crowd->granted, granted);
    atomic_fetch_add(&crowd->finished, 1);
    return NULL;
}

static void sixty_four_threads_on_one_key_get_exactly_the_burst(void **state)
{
    (void)state;
    enum {
        BURST = 400009
    };
    weir_clock *clock = fake_clock();
    struct crowd crowd = {.table = table_of(bucket(BURST, 1, WEIR_MINUTE), clock, 0)};
    assert_int_equal(pthread_barrier_init(&crowd.start, NULL, CROWD), 0);
    pthread_t threads[CROWD];
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many_times, &crowd), 0);
    test_await_number(&crowd.finished, CROWD); /* no thread is stuck */
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&crowd.granted), BURST);
    assert_int_equal(stats_of(crowd.table).acquired, BURST);
    assert_int_equal(stats_of(crowd.table).rejected, CROWD * ASKS - BURST);
    pthread_barrier_destroy(&crowd.start);
    weir_table_free(crowd.table);
    weir_clock_fake_free(clock);
}

static void sixty_four_waiters_of_one_key_are_all_served(void **state)
{
    (void)state;
    static test_worker workers[CROWD];
    weir_clock *clock = fake_clock();
    weir_table *table = table_of(concurrency(1), clock, 0);
    atomic_int finished = 0;
    assert_true(goes(table, "hot"));
    for (int i = 0; i < CROWD; i++) {
        workers[i] = (test_worker){
            .table = table, .key = "hot", .permits = 1, .timeout_ns = WEIR_FOREVER, .finished = &finished};
        test_worker_start(&workers[i]);
    }
    test_await_waiters(clock, CROWD);
    for (int i = 1; i <= CROWD; i++) { /* one request ends, the next starts */
        assert_int_equal(weir_table_release(table, "hot", 3, 1), 0);
        test_await_number(&finished, i);
        test_await_waiters(clock, CROWD - i);
        assert_int_equal(atomic_load(&finished), i);
    }
    for (int i = 0; i < CROWD; i++) {
        test_worker_join(&workers[i]);
        assert_int_equal(workers[i].result, 0);
    }
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

/* ---- H: clocks ---- */

static uint32_t grants_now(weir_table *table, const char *key)
{
    uint32_t grants = 0;
    while (goes(table, key))
        assert_in_range(++grants, 1, 1000);
    return grants;
}

static void clock_jump_ahead_gives_one_burst_and_jump_back_only_delays(void **state)
{
    (void)state;
    enum {
        BURST = 10
    };
    static const struct {
        int64_t move_ns;
        uint32_t grants;
    } timeline[] = {
        {0, BURST},             /* a new key */
        {8 * WEIR_HOUR, BURST}, /* suspended for a night: not 28 800 */
        {-WEIR_HOUR, 0},        /* set back: used permits stay used */
        {59 * WEIR_MINUTE, 0},  /* still before the last grant */
        {WEIR_MINUTE, 0},       /* at the last grant: no time has passed */
        {3 * WEIR_SECOND, 3},   /* the usual pace from here on */
        {-WEIR_DAY, 0},         /* before the key was added */
        {WEIR_DAY + WEIR_SECOND, 1},
        {20 * 365 * WEIR_DAY, BURST}, /* to another epoch */
    };
    weir_clock *clock = fake_clock();
    weir_table *table = table_of(bucket(BURST, 1, WEIR_SECOND), clock, 0);
    for (size_t i = 0; i < sizeof timeline / sizeof timeline[0]; i++) {
        advance(clock, timeline[i].move_ns);
        assert_int_equal(grants_now(table, "k"), timeline[i].grants);
        weir_decision decision = try_key(table, "k", 1);
        assert_int_equal(decision.verdict, WEIR_WAIT);
        /* delayed, never locked out */
        assert_in_range(decision.wait_ns, 1, WEIR_DAY + 2 * WEIR_SECOND);
    }
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

static void stopped_clock_makes_no_call_block_and_no_waiter_spin(void **state)
{
    (void)state;
    weir_clock *clock = fake_clock();
    weir_table *table = table_of(bucket(5, 1, WEIR_SECOND), clock, 0);
    atomic_int finished = 0;
    test_worker worker = {
        .table = table, .key = "waited for", .permits = 1, .timeout_ns = WEIR_FOREVER, .finished = &finished};
    assert_int_equal(grants_now(table, "waited for"), 5);
    test_worker_start(&worker);
    test_await_waiters(clock, 1);
    clockid_t of_worker;
    assert_int_equal(pthread_getcpuclockid(worker.thread, &of_worker), 0);
    int64_t worked_ns = cpu_ns(of_worker), began = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    assert_int_equal(grants_now(table, "asked"), 5);
    for (int i = 0; i < 500000; i++)
        assert_false(goes(table, "asked")); /* refused at once, though no time passes */
    int64_t busy_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    assert_true(cpu_ns(of_worker) - worked_ns < busy_ns / 10); /* the waiter sleeps */
    assert_int_equal(atomic_load(&finished), 0);
    weir_table_close(table); /* the waiter can be stopped */
    test_worker_join(&worker);
    assert_int_equal(worker.result, WEIR_E_CLOSED);
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

/* ---- K3: closing and freeing while callers wait ---- */

/* Drains eight keys and starts a worker that waits for each. */
static void start_waiters(test_worker *workers, weir_table *table, const weir_clock *clock, weir_cancel *cancel,
                          atomic_int *finished)
{
    static const char *const keys[WORKERS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    for (int i = 0; i < WORKERS; i++) {
        assert_true(goes(table, keys[i]));
        workers[i] = (test_worker){.table = table,
                                   .key = keys[i],
                                   .permits = 1,
                                   .timeout_ns = WEIR_FOREVER,
                                   .cancel = cancel,
                                   .finished = finished};
        test_worker_start(&workers[i]);
    }
    test_await_waiters(clock, WORKERS);
}

static void expect_all(test_worker *workers, int result)
{
    for (int i = 0; i < WORKERS; i++) {
        test_worker_join(&workers[i]);
        assert_int_equal(workers[i].result, result);
    }
}

static void table_closed_and_freed_under_waiters_fails_each_of_them(void **state)
{
    (void)state;
    test_worker workers[WORKERS];
    weir_clock *clock = fake_clock();
    atomic_int finished = 0;
    for (int closes = 0; closes <= 2; closes++) { /* freeing alone must end the waits, too */
        weir_table *table = table_of(concurrency(1), clock, 0);
        start_waiters(workers, table, clock, NULL, &finished);
        assert_int_equal(stats_of(table).waiters, WORKERS);
        for (int i = 0; i < closes; i++)
            weir_table_close(table);
        weir_table_free(table); /* while the waiters return */
        expect_all(workers, WEIR_E_CLOSED);
    }
    weir_clock_fake_free(clock);
}

static void one_cancel_ends_waits_for_many_keys_and_leaves_them_unchanged(void **state)
{
    (void)state;
    test_worker workers[WORKERS];
    weir_clock *clock = fake_clock();
    weir_table *table = table_of(concurrency(1), clock, 0);
    weir_cancel *cancel;
    atomic_int finished = 0;
    assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
    start_waiters(workers, table, clock, cancel, &finished);
    weir_cancel_fire(cancel);
    weir_cancel_fire(cancel);
    expect_all(workers, WEIR_E_CANCELLED);
    assert_int_equal(stats_of(table).waiters, 0);
    for (int i = 0; i < WORKERS; i++) {
        assert_false(goes(table, workers[i].key)); /* one is in flight, as before */
        assert_int_equal(weir_table_release(table, workers[i].key, 1, 1), 0);
        assert_true(goes(table, workers[i].key));
    }
    weir_cancel_free(cancel);
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

/* ---- S0-10, S0-13, S0-78, R9: the cost of one key for the others ---- */

#define NEIGHBOURS 40

struct street {
    weir_table *table;
    atomic_int making, made, finished, next;
};

/* Is called with the lock of the new key's shard held. For the key "slow" it blocks until the test
 * continues. */
static uint32_t block_while_slow_is_added(void *context, const char *key, size_t key_bytes)
{
    struct street *street = context;
    if (key_bytes != 4 || memcmp(key, "slow", 4) != 0)
        return 0;
    atomic_store(&street->making, 1);
    while (atomic_load(&street->made) == 0)
        (void)sched_yield();
    return 0;
}

static void *add_slow_key(void *context)
{
    struct street *street = context;
    weir_decision decision;
    (void)weir_table_try(street->table, "slow", 4, 1, &decision);
    return NULL;
}

static void *try_neighbour(void *context)
{
    struct street *street = context;
    weir_decision decision;
    char key[KEY_BYTES];
    int bytes = snprintf(key, sizeof key, "neighbour-%d", atomic_fetch_add(&street->next, 1));
    (void)weir_table_try(street->table, key, (size_t)bytes, 1, &decision);
    atomic_fetch_add(&street->finished, 1);
    return NULL;
}

static void lock_held_for_one_key_does_not_delay_the_others(void **state)
{
    (void)state;
    weir_limit limit = bucket(1, 1, WEIR_SECOND);
    struct street street = {0};
    weir_table_options options = {
        .size = sizeof options, .shards = 16, .plan_of = block_while_slow_is_added, .plan_context = &street};
    pthread_t slow, threads[NEIGHBOURS];
    assert_int_equal(weir_table_new(&limit, 1, &options, &street.table), 0);
    assert_int_equal(pthread_create(&slow, NULL, add_slow_key, &street), 0);
    test_await_number(&street.making, 1);
    for (int i = 0; i < NEIGHBOURS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, try_neighbour, &street), 0);
    test_await_number(&street.finished, NEIGHBOURS / 2); /* most keys are in other shards */
    atomic_store(&street.made, 1);
    pthread_join(slow, NULL);
    for (int i = 0; i < NEIGHBOURS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(stats_of(street.table).keys, NEIGHBOURS + 1);
    weir_table_free(street.table);
}

static atomic_int clock_reads;

static int64_t read_and_count(const weir_clock *clock)
{
    (void)clock;
    atomic_fetch_add(&clock_reads, 1);
    return WEIR_HOUR;
}

static void a_decision_reads_the_clock_once(void **state)
{
    (void)state;
    const weir_clock clock = {.now = read_and_count};
    weir_table *table = table_of(bucket(1, 1, WEIR_HOUR), &clock, 0);
    weir_decision decision;
    weir_receipt receipt;
    weir_table_item items[40];
    weir_table_part parts[2] = {{.table = table, .key = "a", .key_bytes = 1, .permits = 1},
                                {.table = table, .key = "b", .key_bytes = 1, .permits = 1}};
    for (size_t i = 0; i < 40; i++)
        items[i] = (weir_table_item){.key = "items", .key_bytes = 1 + i % 5, .permits = 1};
    for (int i = 0; i < 2; i++) { /* granted, then refused */
        atomic_store(&clock_reads, 0);
        (void)goes(table, "k");
        assert_int_equal(atomic_load(&clock_reads), 1);
        assert_int_equal(weir_table_reserve(table, "r", 1, 1, &receipt, &decision), 0);
        assert_int_equal(atomic_load(&clock_reads), 2);
        assert_int_equal(weir_table_try_many(table, items, 40), 0);
        assert_int_equal(atomic_load(&clock_reads), 3);
        assert_int_equal(weir_table_try_all(parts, 2, &decision, NULL), 0);
        assert_int_equal(atomic_load(&clock_reads), 4);
    }
    weir_table_free(table);
}

static void key_that_is_tried_or_waited_for_is_not_forgotten(void **state)
{
    (void)state;
    weir_clock *clock = fake_clock();
    weir_limit limit = bucket(2, 1, WEIR_SECOND);
    weir_table_options options = {
        .size = sizeof options, .clock = clock, .max_keys = 16, .shards = 1, .ttl_ns = 2 * WEIR_MINUTE};
    weir_table *table;
    weir_ticket *ticket;
    weir_decision decision;
    assert_int_equal(weir_table_new(&limit, 1, &options, &table), 0);
    assert_true(goes(table, "idle") && goes(table, "asked"));
    /* The ticket was not polled, so the limiter of its key is unused. */
    assert_int_equal(weir_table_enqueue(table, "waited", 6, 1, WEIR_FOREVER, ignore_wake, NULL, &ticket), 0);
    advance(clock, 90 * WEIR_SECOND);
    assert_int_equal(try_key(table, "asked", 3).verdict, WEIR_DENY); /* a refusal counts as use */
    advance(clock, 60 * WEIR_SECOND);
    assert_int_equal(weir_table_sweep(table), 1);
    assert_true(!known(table, "idle") && known(table, "asked") && known(table, "waited"));
    advance(clock, WEIR_HOUR);
    for (int i = 0; i < 200; i++) { /* the table is full and evicts a key for each new one */
        char key[KEY_BYTES];
        (void)snprintf(key, sizeof key, "stranger-%d", i);
        (void)goes(table, key);
        advance(clock, WEIR_SECOND);
    }
    assert_true(stats_of(table).evicted > 100 && known(table, "waited"));
    assert_int_equal(weir_ticket_poll(ticket, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    weir_ticket_free(ticket);
    weir_table_free(table);
    weir_clock_fake_free(clock);
}

WEIR_TESTS(test(lock_held_for_one_key_does_not_delay_the_others), test(a_decision_reads_the_clock_once),
           test(key_that_is_tried_or_waited_for_is_not_forgotten),
           test(two_million_new_keys_cost_linear_time_and_evict_no_known_key),
           test(similar_keys_cost_no_more_than_random_ones), test(sixty_four_threads_on_one_key_get_exactly_the_burst),
           test(sixty_four_waiters_of_one_key_are_all_served),
           test(clock_jump_ahead_gives_one_burst_and_jump_back_only_delays),
           test(stopped_clock_makes_no_call_block_and_no_waiter_spin),
           test(table_closed_and_freed_under_waiters_fails_each_of_them),
           test(one_cancel_ends_waits_for_many_keys_and_leaves_them_unchanged))
