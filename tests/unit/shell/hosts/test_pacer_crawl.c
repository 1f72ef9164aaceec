/* SPDX-License-Identifier: MIT */
/* test_pacer_crawl.c - crowds of requests in virtual time: at many hosts, at a host with a limit, at one that comes
 * back to life. */
#include "rig.h"

/* S1-26: a hundred hosts, each at one start a second. */
static void hundred_hosts_make_a_hundred_starts_a_second_and_none_more_than_one(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_STRICT);
    int64_t last_at[100];
    int starts = 0;
    for (int tick = 0; tick < 60 * 50; tick++) { /* a minute in steps of 20 ms */
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

/* S1-25: a host that answers 429 to whoever comes twice within a second. */
static void host_that_allows_one_request_a_second_never_has_to_say_no(void **state)
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

/* S0-4: a token is spent when the request is sent, however it ends; a request that was never sent costs none. */
static void releasing_a_permit_gives_no_token_back_once_it_was_sent(void **state)
{
    (void)state;
    struct pacing pacing;
    pacing_set_up(&pacing, WEIR_PROFILE_AIMD); /* four at once, two a second */
    for (int i = 0; i < 10; i++) {
        weir_permit unused = acquired(&pacing, "h", WEIR_REPORTS_SENT);
        weir_permit_release(&unused);
        weir_permit_release(&unused);
    }
    for (int i = 0; i < 4; i++)
        assert_true(host_goes(&pacing, "h"));
    weir_permit permit;
    weir_decision decision = try_host(&pacing, "h", 0, &permit);
    assert_int_equal(decision.reason, WEIR_REASON_TOKENS);
    assert_true(decision.wait_ns == 500 * MS);
    pacing_tear_down(&pacing);
}

/* S0-67 */
static void host_is_forgotten_after_two_idle_minutes_unless_told_otherwise(void **state)
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

/* How many of 64 threads that come at once get through. */
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

/* E6, R8: 64 workers, and a breaker that is half open: three probes under most strategies, one under tide. */
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
            weir_permit_release(&probers[k].permit);
        pacing_tear_down(&pacing);
    }
}

WEIR_TESTS(test(hundred_hosts_make_a_hundred_starts_a_second_and_none_more_than_one),
           test(host_that_allows_one_request_a_second_never_has_to_say_no),
           test(releasing_a_permit_gives_no_token_back_once_it_was_sent),
           test(host_is_forgotten_after_two_idle_minutes_unless_told_otherwise),
           test(half_open_breaker_never_has_more_probes_in_flight_than_its_budget))
