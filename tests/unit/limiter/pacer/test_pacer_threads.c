/* SPDX-License-Identifier: MIT */
/* test_pacer_threads.c - tests of many threads and many hosts, where an observer records each start
 * (S0-91, K1). */
#include "rig.h"

#include "base/rng.h"

#define THREADS_MAX 50
#define STARTS_MAX 64

/* Records the time of each start at a host. */
struct observed {
    pthread_mutex_t lock;
    int count;
    int64_t starts[STARTS_MAX];
};

static void observe_start(struct observed *observed, int64_t at)
{
    assert_int_equal(pthread_mutex_lock(&observed->lock), 0);
    assert_in_range(observed->count, 0, STARTS_MAX - 1);
    observed->starts[observed->count++] = at;
    assert_int_equal(pthread_mutex_unlock(&observed->lock), 0);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the least time between two starts, ns. */
static int64_t closest(struct observed *observed)
{
    int64_t least_ns = WEIR_DURATION_MAX;
    qsort(observed->starts, (size_t)observed->count, sizeof *observed->starts, by_time);
    for (int i = 1; i < observed->count; i++)
        if (observed->starts[i] - observed->starts[i - 1] < least_ns)
            least_ns = observed->starts[i] - observed->starts[i - 1];
    return least_ns;
}

/* ---- fifty threads on ten hosts ---- */

#define HOSTS 10
#define ROUNDS 4 /* requests of each thread */

struct crowd {
    struct pacing pacing;
    struct observed hosts[HOSTS];
    atomic_int next, granted;
};

static void *crawl(void *context)
{
    struct crowd *crowd = context;
    int self = atomic_fetch_add(&crowd->next, 1);
    for (int i = 0; i < ROUNDS; i++) {
        int host = (self + i) % HOSTS;
        char key[KEY_BYTES];
        (void)snprintf(key, sizeof key, "host%d.example", host);
        weir_permit permit;
        uint32_t flags = i % 2 == 0 ? WEIR_REPORTS_SENT : 0;
        int sent;
        /* The clock advances while the kernel interrupts a thread, so its permit may be
         * withdrawn. */
        do {
            assert_int_equal(
                weir_pacer_acquire(crowd->pacing.pacer, key, strlen(key), flags, WEIR_FOREVER, NULL, &permit, NULL), 0);
            (void)atomic_fetch_add(&crowd->granted, 1);
            if (i % 8 == 2)
                (void)sched_yield(); /* the connect */
            sent = weir_permit_sent(&permit);
        } while (sent == WEIR_E_WITHDRAWN);
        assert_int_equal(sent, 0);
        observe_start(&crowd->hosts[host], permit.held[0].sent_at);
        tell(&permit, 200);
    }
    (void)atomic_fetch_add(&crowd->pacing.finished, 1);
    return NULL;
}

static void fifty_threads_on_ten_hosts_never_start_two_requests_within_the_interval(void **state)
{
    (void)state;
    static struct crowd crowd;
    pthread_t threads[THREADS_MAX];
    pacing_set_up(&crowd.pacing, WEIR_PROFILE_STRICT);
    atomic_store(&crowd.next, 0);
    atomic_store(&crowd.granted, 0);
    for (int i = 0; i < HOSTS; i++) {
        crowd.hosts[i] = (struct observed){.count = 0};
        assert_int_equal(pthread_mutex_init(&crowd.hosts[i].lock, NULL), 0);
    }
    for (int i = 0; i < THREADS_MAX; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crawl, &crowd), 0);
    for (int64_t until = patience_ends_at() + 50 * WEIR_SECOND; atomic_load(&crowd.pacing.finished) < THREADS_MAX;) {
        pass(&crowd.pacing, 37 * MS);
        keep_waiting(until);
    }
    for (int i = 0; i < THREADS_MAX; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    int starts = 0;
    for (int i = 0; i < HOSTS; i++) {
        starts += crowd.hosts[i].count;
        assert_true(closest(&crowd.hosts[i]) >= WEIR_SECOND);
        assert_int_equal(pthread_mutex_destroy(&crowd.hosts[i].lock), 0);
    }
    assert_int_equal(starts, THREADS_MAX * ROUNDS);
    assert_int_equal(pacer_stats(&crowd.pacing).requests, atomic_load(&crowd.granted));
    pacing_tear_down(&crowd.pacing);
}

/* ---- a failing host and a good one ---- */

/* Returns the requests to "good" in a minute of virtual time, with or without another host that
 * always fails. */
static int good_starts(bool with_bad)
{
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_AIMD);
    int starts = 0;
    for (int i = 0; i < 6000; i++) {
        weir_permit permit;
        if (try_host(&pacing, "good", 0, &permit).verdict == WEIR_GO) {
            starts++;
            tell(&permit, 200);
        }
        if (with_bad && try_host(&pacing, "bad", 0, &permit).verdict == WEIR_GO)
            tell(&permit, i % 3 == 0 ? 0 : i % 3 == 1 ? 429 : 500);
        pass(&pacing, 10 * MS);
    }
    if (with_bad)
        assert_true(look_at(&pacing, "bad").breaker != WEIR_BREAKER_CLOSED);
    pacing_tear_down(&pacing);
    return starts;
}

/* S0-8, S0-97 */
static void failing_host_does_not_change_the_pace_of_others(void **state)
{
    (void)state;
    int alone = good_starts(false);
    assert_in_range(alone, 100, 600);
    assert_int_equal(good_starts(true), alone);
}

/* ---- all calls at once ---- */

#define MESS_THREADS 8
#define MESS_STEPS (SANITIZED ? 1500 : 6000)

struct mess {
    struct pacing pacing;
    weir_cancel *cancel;
    uint64_t seed;
    atomic_int next;
};

static bool save_nothing(void *context, const char *key, size_t key_bytes, const weir_pace_memory *memory)
{
    (void)context, (void)key, (void)key_bytes, (void)memory;
    return true;
}

static void request(struct mess *mess, struct wr_rng *rng, const char *key, const char *address)
{
    static const int statuses[] = {200, 200, 200, 200, 429, 500, 0, 403, 503};
    weir_permit permit;
    weir_decision decision;
    uint32_t flags = (uint32_t)wr_rng_below(rng, 4);
    bool waits = wr_rng_below(rng, 3) == 0;
    weir_cancel *cancel = wr_rng_below(rng, 2) == 0 ? mess->cancel : NULL;
    int result = waits ? weir_pacer_acquire_at(mess->pacing.pacer, key, strlen(key), address, flags, 20 * MS, cancel,
                                               &permit, &decision)
                       : weir_pacer_try(mess->pacing.pacer, key, strlen(key), address, flags, &permit, &decision);
    assert_true(result == 0 || result == WEIR_E_TIMEOUT || result == WEIR_E_CIRCUIT || result == WEIR_E_CLOSED ||
                result == WEIR_E_CANCELLED || result == WEIR_E_FULL);
    if (result != 0)
        return;
    int sent = weir_permit_sent(&permit);
    assert_true(sent == 0 || sent == WEIR_E_WITHDRAWN);
    weir_outcome outcome = answer(statuses[wr_rng_below(rng, 9)], MS);
    outcome.has_retry_after = wr_rng_below(rng, 10) == 0;
    outcome.retry_after_ns = 5 * MS;
    if (wr_rng_below(rng, 10) > 0)
        assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    weir_permit_abandon(&permit);
}

static void poll_ticket(struct mess *mess, struct wr_rng *rng, const char *key, const char *address)
{
    weir_pace_ticket *ticket;
    weir_permit permit;
    weir_decision decision;
    if (weir_pacer_enqueue(mess->pacing.pacer, key, strlen(key), address, 0, 10 * MS, ignore_wake, NULL, &ticket) != 0)
        return;
    for (int i = 0; i < 3; i++) {
        if (weir_pace_ticket_poll(ticket, &permit, &decision) != 0)
            break;
        if (decision.verdict == WEIR_GO) {
            tell(&permit, 200);
            break;
        }
        pass(&mess->pacing, (int64_t)wr_rng_below(rng, 3) * MS);
    }
    weir_pace_ticket_free(ticket);
}

static void meddle(struct mess *mess, struct wr_rng *rng, const char *key)
{
    weir_pacer *pacer = mess->pacing.pacer;
    weir_pace_entry entry, *entries;
    weir_pacer_stats stats;
    weir_pace_options pace = mess->pacing.pace;
    size_t count;
    switch (wr_rng_below(rng, 10)) {
    case 0:
        (void)weir_pacer_forget(pacer, key, strlen(key));
        break;
    case 1:
        (void)weir_pacer_sweep(pacer);
        break;
    case 2:
        pace.min_interval_ns = (int64_t)wr_rng_below(rng, 3) * MS;
        assert_int_equal(weir_pacer_change(pacer, &pace), 0);
        break;
    case 3:
        (void)weir_pacer_export(pacer, save_nothing, NULL);
        break;
    case 4:
        assert_int_equal(weir_pacer_top(pacer, 5, &entries, &count), 0);
        weir_pacer_top_free(pacer, entries);
        break;
    case 5:
        assert_int_equal(weir_pacer_stats_get(pacer, &stats), 0);
        break;
    case 6:
        (void)weir_pacer_pause(pacer, key, strlen(key), true);
        (void)weir_pacer_pause(pacer, key, strlen(key), false);
        break;
    case 7:
        (void)weir_pacer_robots_delay(pacer, key, strlen(key), (int64_t)wr_rng_below(rng, 2) * MS);
        break;
    case 8:
        (void)weir_pacer_seed(pacer, key, strlen(key), &(weir_pace_memory){.delay_ns = MS});
        break;
    default:
        (void)weir_pacer_inspect(pacer, key, strlen(key), &entry, NULL, NULL);
        break;
    }
}

static void *use_pacer_at_random(void *context)
{
    static const char *const keys[] = {"a.example.org", "b.example.org", "example.org", "a.example.com", "example.com"};
    static const char *const addresses[] = {"192.0.2.1", "192.0.2.2", NULL};
    struct mess *mess = context;
    struct wr_rng rng;
    wr_rng_init(&rng, mess->seed + (uint64_t)atomic_fetch_add(&mess->next, 1));
    for (int i = 0; i < MESS_STEPS; i++) {
        const char *key = keys[wr_rng_below(&rng, 5)], *address = addresses[wr_rng_below(&rng, 3)];
        uint64_t what = wr_rng_below(&rng, 20);
        if (what == 0)
            meddle(mess, &rng, key);
        else if (what < 3)
            poll_ticket(mess, &rng, key, address);
        else
            request(mess, &rng, key, address);
        pass(&mess->pacing, (int64_t)wr_rng_below(&rng, 2) * MS);
    }
    (void)atomic_fetch_add(&mess->pacing.finished, 1);
    return NULL;
}

/* K1, K3, U6: at the end no request is in flight and no memory leaked. */
static void concurrent_use_change_forget_and_export_leak_no_permit(void **state)
{
    (void)state;
    static struct mess mess;
    pthread_t threads[MESS_THREADS];
    mess.seed = weir_test_seed();
    pacing_init(&mess.pacing, WEIR_PROFILE_UNLIMITED);
    mess.pacing.pace.breaker = true;
    mess.pacing.pace.open_ns = 3 * MS;
    mess.pacing.pace.max_in_flight = 2;
    mess.pacing.options.groups = WEIR_GROUP_DOMAIN | WEIR_GROUP_ADDRESS;
    pacing_start(&mess.pacing);
    assert_int_equal(weir_cancel_new(NULL, &mess.cancel), 0);
    atomic_store(&mess.next, 0);
    for (int i = 0; i < MESS_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_pacer_at_random, &mess), 0);
    for (int64_t until = patience_ends_at() + WEIR_MINUTE; atomic_load(&mess.pacing.finished) < MESS_THREADS;) {
        pass(&mess.pacing, MS); /* otherwise all threads might wait for the clock */
        keep_waiting(until);
        if (atomic_load(&mess.pacing.finished) == MESS_THREADS / 2)
            weir_cancel_fire(mess.cancel);
    }
    for (int i = 0; i < MESS_THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    weir_pace_entry *entries;
    size_t count;
    assert_int_equal(weir_pacer_top(mess.pacing.pacer, 100, &entries, &count), 0);
    assert_in_range(count, 1, 9);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(entries[i].in_flight, 0);
        assert_int_equal(entries[i].waiters, 0);
    }
    weir_pacer_top_free(mess.pacing.pacer, entries);
    weir_cancel_free(mess.cancel);
    pacing_tear_down(&mess.pacing);
}

/* ---- outcomes ---- */

/* K2: after a Retry-After was reported no request starts before its end, in whatever stage it
 * was. */
struct race {
    struct pacing pacing;
    _Atomic int64_t named_at; /* 1 after the report has returned; 0 before */
    atomic_int early;
};

static void *start_repeatedly(void *context)
{
    struct race *race = context;
    for (int i = 0; i < 2000; i++) {
        weir_permit permit;
        weir_decision decision;
        bool named = atomic_load(&race->named_at) != 0;
        assert_int_equal(weir_pacer_try(race->pacing.pacer, "h", 1, NULL, WEIR_REPORTS_SENT, &permit, &decision), 0);
        if (decision.verdict != WEIR_GO)
            continue;
        (void)sched_yield();
        named = named || atomic_load(&race->named_at) != 0;
        if (weir_permit_sent(&permit) == 0 && named)
            (void)atomic_fetch_add(&race->early, 1);
        weir_permit_abandon(&permit);
    }
    return NULL;
}

static void no_request_starts_after_a_retry_after_was_reported(void **state)
{
    (void)state;
    for (int round = 0; round < (SANITIZED ? 5 : 20); round++) {
        struct race race = {.named_at = 0};
        pthread_t threads[4];
        pacing_set_up(&race.pacing, WEIR_PROFILE_UNLIMITED);
        weir_permit permit = acquired(&race.pacing, "h", 0);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, start_repeatedly, &race), 0);
        weir_outcome outcome = answer_retry_after(503, WEIR_HOUR);
        assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
        atomic_store(&race.named_at, 1);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(atomic_load(&race.early), 0);
        assert_int_equal(look_at(&race.pacing, "h").in_flight, 0);
        pacing_tear_down(&race.pacing);
    }
}

WEIR_TESTS(test(fifty_threads_on_ten_hosts_never_start_two_requests_within_the_interval),
           test(failing_host_does_not_change_the_pace_of_others),
           test(concurrent_use_change_forget_and_export_leak_no_permit),
           test(no_request_starts_after_a_retry_after_was_reported))
