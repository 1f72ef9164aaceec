/* SPDX-License-Identifier: MIT */
/* test_pacer_crawl.c - tests of crawls in virtual time: many hosts, a host with a limit, a host
 * that recovers. */
#include "rig.h"

/* S1-26: a hundred hosts, each with one start per second. */
static void hundred_hosts_make_a_hundred_starts_a_second_and_none_more_than_one(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    int64_t last_at[100];
    int starts = 0;
    for (int tick = 0; tick < 60 * 50; tick++) { /* one minute in steps of 20 ms */
        for (int i = 0; i < 100; i++) {
            char key[KEY_BYTES];
            weir_permit permit;
            (void)snprintf(key, sizeof key, "host%d.example", i);
            if (try_host(&pacing, key, 0, &permit).verdict != WEIR_GO)
                continue;
            assert_true(tick < 50 || permit.held[0].sent_at - last_at[i] >= WEIR_SECOND);
            last_at[i] = permit.held[0].sent_at;
            starts++;
            tell(&permit, 200);
        }
        pass(&pacing, 20 * MS);
    }
    assert_in_range(starts, 60 * 99, 60 * 100);
    assert_true(pacer_stats(&pacing).memory_bytes < 10 * 1000 * 1000);
    pacing_tear_down(&pacing);
}

/* S1-25: the host answers 429 to a request within a second of the one before. */
static void host_that_allows_one_request_a_second_never_sends_429(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    int64_t came_at = 0;
    int starts = 0, rejected = 0;
    for (int tick = 0; tick < 6000; tick++) {
        for (int worker = 0; worker < 10; worker++) {
            weir_permit permit;
            if (try_host(&pacing, "h", 0, &permit).verdict != WEIR_GO)
                continue;
            int64_t now = weir_clock_now(pacing.clock);
            bool too_soon = starts > 0 && now - came_at < WEIR_SECOND;
            came_at = now;
            starts++;
            rejected += too_soon;
            tell(&permit, too_soon ? 429 : 200);
        }
        pass(&pacing, 10 * MS);
    }
    assert_int_equal(starts, 60);
    assert_int_equal(rejected, 0);
    pacing_tear_down(&pacing);
}

/* S0-4: a sent request spends its token, however it ends. A request that was never sent spends
 * none. */
static void abandoned_permit_returns_its_token_only_if_not_sent(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_AIMD); /* a burst of four, then two per second */
    for (int i = 0; i < 10; i++) {
        weir_permit unused = acquired(&pacing, "h", WEIR_REPORTS_SENT);
        weir_permit_abandon(&unused);
        weir_permit_abandon(&unused);
    }
    for (int i = 0; i < 4; i++)
        assert_true(host_goes(&pacing, "h"));
    weir_permit permit;
    weir_decision decision = try_host(&pacing, "h", 0, &permit);
    assert_int_equal(decision.reason, WEIR_REASON_TOKENS);
    assert_true(decision.wait_ns == 500 * MS);
    pacing_tear_down(&pacing);
}

/* Runs `requests` requests to a host that allows one every three seconds. Returns the number of its
 * 429 responses. */
static int run_job(struct pacing *pacing, int requests)
{
    int64_t came_at = weir_clock_now(pacing->clock) - WEIR_MINUTE;
    int rejected = 0;
    for (int i = 0; i < requests;) {
        weir_permit permit;
        weir_decision decision = try_host(pacing, "h", 0, &permit);
        if (decision.verdict != WEIR_GO) {
            pass(pacing, decision.wait_ns);
            continue;
        }
        int64_t now = weir_clock_now(pacing->clock);
        bool too_soon = now - came_at < 3 * WEIR_SECOND;
        came_at = now;
        rejected += too_soon;
        tell(&permit, too_soon ? 429 : 200);
        i++;
    }
    return rejected;
}

/* S2-32: the 429 responses stop, and the next job, in another process, starts with what this one
 * learned. */
static void next_job_starts_with_the_delay_that_this_one_learned(void **state)
{
    (void)state;
    struct pacing pacing, next;
    weir_pace_memory memory;
    pacing_set_up(&pacing, WEIR_PROFILE_LEARNED);
    assert_int_equal(run_job(&pacing, 10), 3); /* delays of 0.5, 1.5 and 2.5 s are too short */
    assert_int_equal(run_job(&pacing, 8), 0);
    assert_int_equal(weir_pacer_memory(pacing.pacer, "h", 1, &memory), 0);
    assert_true(memory.delay_ns == 3500 * MS);
    pacing_set_up(&next, WEIR_PROFILE_LEARNED);
    assert_int_equal(weir_pacer_seed(next.pacer, "h", 1, &memory), 0);
    assert_int_equal(run_job(&next, 15), 0);
    pacing_tear_down(&next);
    pacing_tear_down(&pacing);
}

/* R14: the bounds are what the job wants, what the delay leaves of it, and the gate's limit in
 * flight. */
static void recommended_concurrency_is_the_smallest_of_its_bounds(void **state)
{
    (void)state;
    static const struct {
        uint32_t wanted, in_flight_max;
        int64_t delay_ns;
        uint32_t right;
    } cases[] = {{4, 0, 0, 4},
                 {4, 2, 0, 2},
                 {4, 8, 0, 4},
                 {4, 0, 10500 * MS, 2},
                 {4, 3, 10500 * MS, 2},
                 {4, 1, 10500 * MS, 1},
                 {4, 0, 60 * WEIR_SECOND, 1},
                 {0, 0, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pacing pacing;
        weir_pace_memory memory = {.delay_ns = cases[i].delay_ns};
        pacing_init(&pacing, WEIR_PROFILE_LEARNED);
        pacing.pace.max_in_flight = cases[i].in_flight_max;
        pacing_start(&pacing);
        assert_int_equal(weir_pacer_seed(pacing.pacer, "h", 1, &memory), 0);
        assert_int_equal(weir_pacer_concurrency(pacing.pacer, "h", 1, cases[i].wanted), cases[i].right);
        pacing_tear_down(&pacing);
    }
}

/* U1 */
static void thread_serves_other_hosts_while_a_ticket_waits(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    weir_pace_ticket *slow;
    weir_permit permit;
    weir_decision decision;
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "slow", 4, WEIR_MINUTE), 0);
    fetch(&pacing, "slow", 200);
    assert_int_equal(weir_pacer_enqueue(pacing.pacer, "slow", 4, NULL, 0, WEIR_FOREVER, ignore_wake, NULL, &slow), 0);
    for (int i = 0; i < 60; i++) {
        assert_int_equal(weir_pace_ticket_poll(slow, &permit, &decision), 0);
        assert_int_equal(decision.verdict, WEIR_WAIT);
        assert_true(decision.wait_ns == WEIR_MINUTE - i * WEIR_SECOND);
        fetch(&pacing, "quick", 200);
        pass(&pacing, WEIR_SECOND);
    }
    assert_int_equal(weir_pace_ticket_poll(slow, &permit, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    tell(&permit, 200);
    weir_pace_ticket_free(slow);
    assert_int_equal(look_at(&pacing, "quick").starts, 60);
    pacing_tear_down(&pacing);
}

/* ---- statistics ---- */

struct reading {
    struct pacing *pacing;
    atomic_bool ends;
    uint64_t readings;
    bool fell; /* true if a counter decreased */
};

static void *read_statistics(void *context)
{
    struct reading *reading = context;
    weir_pacer_stats last = {0};
    do {
        weir_pacer_stats stats;
        bool bad = weir_pacer_stats_get(reading->pacing->pacer, &stats) != 0;
        reading->fell |= bad || stats.requests < last.requests || stats.rejected < last.rejected ||
                         stats.retries < last.retries || stats.hosts < last.hosts;
        last = stats;
        reading->readings++;
    } while (!atomic_load(&reading->ends));
    return NULL;
}

/* S0-77, S0-98, S1-28: a thread reads as an exporter would, during the requests. Counters never
 * decrease. */
static void statistics_can_be_read_while_requests_run(void **state)
{
    (void)state;
    struct pacing pacing;
    pthread_t thread;
    struct reading reading = {.pacing = &pacing};
    pacing_set_up(&pacing, WEIR_PROFILE_UNLIMITED);
    assert_int_equal(pthread_create(&thread, NULL, read_statistics, &reading), 0);
    char key[KEY_BYTES];
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof key, "host%d", i % 100);
        weir_permit permit = acquired(&pacing, key, 0);
        weir_outcome outcome = answer(i % 50 == 7 ? 429 : 200, MS);
        outcome.attempt = i % 10 == 0 ? 2 : 1;
        assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
        pass(&pacing, WEIR_SECOND);
    }
    atomic_store(&reading.ends, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(reading.fell);
    assert_true(reading.readings > 0);
    weir_pacer_stats stats = pacer_stats(&pacing);
    assert_int_equal(stats.requests, 5000);
    assert_int_equal(stats.rejected, 100);
    assert_int_equal(stats.retries, 500);
    assert_int_equal(stats.hosts, 100);
    pacing_tear_down(&pacing);
}

/* S0-67 */
static void host_is_forgotten_after_two_idle_minutes_by_default(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    fetch(&pacing, "h", 200);
    pass(&pacing, 2 * WEIR_MINUTE - WEIR_SECOND);
    assert_int_equal(weir_pacer_sweep(pacing.pacer), 0);
    pass(&pacing, 2 * WEIR_SECOND);
    assert_int_equal(weir_pacer_sweep(pacing.pacer), 1);
    pacing_tear_down(&pacing);
}

#define PROBERS 64

struct prober {
    struct pacing *pacing;
    pthread_barrier_t *begin;
    pthread_t thread;
    weir_permit permit;
};

static void *probe(void *context)
{
    struct prober *prober = context;
    weir_decision decision;
    (void)pthread_barrier_wait(prober->begin);
    assert_int_equal(weir_pacer_try(prober->pacing->pacer, "h", 1, NULL, 0, &prober->permit, &decision), 0);
    return NULL;
}

/* Starts 64 threads at once. Returns the number of them that got a permit. */
static int probes_let_through(struct pacing *pacing, struct prober probers[PROBERS])
{
    pthread_barrier_t begin;
    int through = 0;
    assert_int_equal(pthread_barrier_init(&begin, NULL, PROBERS), 0);
    for (int i = 0; i < PROBERS; i++) {
        probers[i] = (struct prober){.pacing = pacing, .begin = &begin};
        assert_int_equal(pthread_create(&probers[i].thread, NULL, probe, &probers[i]), 0);
    }
    for (int i = 0; i < PROBERS; i++) {
        assert_int_equal(pthread_join(probers[i].thread, NULL), 0);
        through += probers[i].permit.pacer != NULL;
    }
    assert_int_equal(pthread_barrier_destroy(&begin), 0);
    return through;
}

/* E6, R8: 64 workers at a half-open breaker get three probes under most strategies, one under
 * tide. */
static void half_open_breaker_never_has_more_probes_in_flight_than_its_budget(void **state)
{
    (void)state;
    static const struct {
        weir_profile profile;
        int budget;
    } cases[] = {{WEIR_PROFILE_UNLIMITED, 3}, {WEIR_PROFILE_ADAPTIVE, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pacing pacing;
        static struct prober probers[PROBERS];
        pacing_init(&pacing, cases[i].profile);
        pacing.pace.breaker = true;
        pacing.pace.max_rate = 0;
        pacing_start(&pacing);
        fetch(&pacing, "h", 200);
        for (int k = 0; k < 5; k++) {
            weir_outcome outcome = answer(500, MS);
            assert_int_equal(weir_pacer_tell(pacing.pacer, "h", 1, &outcome), 0);
        }
        assert_int_equal(look_at(&pacing, "h").breaker, WEIR_BREAKER_OPEN);
        assert_int_equal(probes_let_through(&pacing, probers), 0);
        pass(&pacing, WEIR_MINUTE);
        assert_int_equal(look_at(&pacing, "h").breaker, WEIR_BREAKER_HALF_OPEN);
        assert_int_equal(probes_let_through(&pacing, probers), cases[i].budget);
        for (int k = 0; k < PROBERS; k++)
            weir_permit_abandon(&probers[k].permit);
        pacing_tear_down(&pacing);
    }
}

WEIR_TESTS(test(hundred_hosts_make_a_hundred_starts_a_second_and_none_more_than_one),
           test(host_that_allows_one_request_a_second_never_sends_429),
           test(abandoned_permit_returns_its_token_only_if_not_sent),
           test(next_job_starts_with_the_delay_that_this_one_learned),
           test(recommended_concurrency_is_the_smallest_of_its_bounds),
           test(thread_serves_other_hosts_while_a_ticket_waits), test(statistics_can_be_read_while_requests_run),
           test(host_is_forgotten_after_two_idle_minutes_by_default),
           test(half_open_breaker_never_has_more_probes_in_flight_than_its_budget))
