/* SPDX-License-Identifier: MIT */
/* rig.h - a fixture for tests of weir_pacer: fake clocks, and threads that acquire. */
#ifndef WEIR_TEST_HOSTS_RIG_H
#define WEIR_TEST_HOSTS_RIG_H

#include "lib/rig.h"

#include <sched.h>
#include <weir/pace.h>
#include <weir/web.h>

#define MS WEIR_MILLISECOND

struct pacing {
    weir_clock *clock, *wall;
    weir_pacer *pacer;
    weir_pace_options pace;
    weir_pacer_options options;
    int started; /* number of fetchers that were started */
    atomic_int finished;
};

/* Sets the numbers of the profile, no sweeping thread and a fixed seed. Change options before
 * pacing_start. */
static inline void pacing_init(struct pacing *pacing, weir_profile profile)
{
    memset(pacing, 0, sizeof *pacing);
    pacing->clock = fake_clock();
    pacing->wall = fake_clock();
    assert_int_equal(weir_pace_options_profile(&pacing->pace, profile), 0);
    weir_pacer_options_init(&pacing->options);
    pacing->options.domain_of = weir_registrable_domain;
    pacing->options.clock = pacing->clock;
    pacing->options.wall = pacing->wall;
    pacing->options.sweep_every_ns = -1;
    pacing->options.seed = 1;
}

static inline void pacing_start(struct pacing *pacing)
{
    assert_int_equal(weir_pacer_new(&pacing->pace, &pacing->options, &pacing->pacer), 0);
}

static inline void pacing_set_up(struct pacing *pacing, weir_profile profile)
{
    pacing_init(pacing, profile);
    pacing_start(pacing);
}

static inline void pacing_tear_down(struct pacing *pacing)
{
    weir_pacer_free(pacing->pacer);
    weir_clock_fake_free(pacing->clock);
    weir_clock_fake_free(pacing->wall);
}

static inline void pass(struct pacing *pacing, int64_t by_ns)
{
    advance(pacing->clock, by_ns);
    advance(pacing->wall, by_ns);
}

static inline weir_decision try_host(struct pacing *pacing, const char *key, uint32_t flags, weir_permit *ret_permit)
{
    weir_decision decision;
    assert_int_equal(weir_pacer_try(pacing->pacer, key, strlen(key), NULL, flags, ret_permit, &decision), 0);
    assert_int_equal(decision.verdict == WEIR_GO, ret_permit->pacer != NULL);
    return decision;
}

/* Returns true if a request could start now. Its permit is released unused. */
static inline bool host_goes(struct pacing *pacing, const char *key)
{
    weir_permit permit;
    bool goes = try_host(pacing, key, 0, &permit).verdict == WEIR_GO;
    weir_permit_abandon(&permit);
    return goes;
}

static inline int64_t host_wait(struct pacing *pacing, const char *key)
{
    weir_permit permit;
    weir_decision decision = try_host(pacing, key, WEIR_REPORTS_SENT, &permit);
    weir_permit_abandon(&permit);
    return decision.wait_ns;
}

static inline weir_permit acquired(struct pacing *pacing, const char *key, uint32_t flags)
{
    weir_permit permit;
    assert_int_equal(weir_pacer_acquire(pacing->pacer, key, strlen(key), flags, 0, NULL, &permit, NULL), 0);
    return permit;
}

static inline weir_outcome answer(int status, int64_t latency_ns)
{
    return (weir_outcome){.size = sizeof(weir_outcome), .status = status, .latency_ns = latency_ns};
}

static inline weir_outcome answer_retry_after(int status, int64_t retry_after_ns)
{
    weir_outcome outcome = answer(status, MS);
    outcome.has_retry_after = true;
    outcome.retry_after_ns = retry_after_ns;
    return outcome;
}

static inline void tell(weir_permit *permit, int status)
{
    weir_outcome outcome = answer(status, MS);
    assert_int_equal(weir_permit_finish(permit, &outcome), 0);
    assert_null(permit->pacer);
}

/* Makes one request that is answered at once. */
static inline void fetch(struct pacing *pacing, const char *key, int status)
{
    weir_permit permit = acquired(pacing, key, 0);
    tell(&permit, status);
}

static inline weir_pace_entry look_at(struct pacing *pacing, const char *key)
{
    weir_pace_entry entry;
    assert_int_equal(weir_pacer_inspect(pacing->pacer, key, strlen(key), &entry, NULL, NULL), 0);
    return entry;
}

static inline bool host_known(struct pacing *pacing, const char *key)
{
    weir_pace_entry entry;
    int found = weir_pacer_inspect(pacing->pacer, key, strlen(key), &entry, NULL, NULL);
    assert_true(found == 0 || found == WEIR_E_ABSENT);
    return found == 0;
}

/* Returns the time until which a test waits for another thread: ten seconds from now. keep_waiting
 * then fails the test. */
static inline int64_t patience_ends_at(void)
{
    return weir_clock_now(weir_clock_monotonic()) + 10 * WEIR_SECOND;
}

static inline void keep_waiting(int64_t until)
{
    assert_true(weir_clock_now(weir_clock_monotonic()) < until);
    (void)sched_yield();
}

static inline weir_pacer_stats pacer_stats(struct pacing *pacing)
{
    weir_pacer_stats stats;
    assert_int_equal(weir_pacer_stats_get(pacing->pacer, &stats), 0);
    return stats;
}

/* A thread that makes one blocking weir_pacer_acquire. */
struct fetcher {
    struct pacing *pacing;
    const char *key, *address;
    uint32_t flags;
    int64_t timeout_ns;
    weir_cancel *cancel;
    pthread_t thread;
    int place, result;
    weir_permit permit;
    weir_decision decision;
    char detail[200]; /* error detail of the thread after a failure */
};

static inline void *fetcher_run(void *context)
{
    struct fetcher *fetcher = context;
    fetcher->result = weir_pacer_acquire_at(fetcher->pacing->pacer, fetcher->key, strlen(fetcher->key),
                                            fetcher->address, fetcher->flags, fetcher->timeout_ns, fetcher->cancel,
                                            &fetcher->permit, &fetcher->decision);
    (void)snprintf(fetcher->detail, sizeof fetcher->detail, "%s", weir_error_detail());
    fetcher->place = atomic_fetch_add(&fetcher->pacing->finished, 1);
    return NULL;
}

static inline void fetcher_start(struct fetcher *fetcher)
{
    fetcher->pacing->started++;
    assert_int_equal(pthread_create(&fetcher->thread, NULL, fetcher_run, fetcher), 0);
}

static inline bool all_wait(struct pacing *pacing)
{
    int unfinished = pacing->started - atomic_load(&pacing->finished);
    return weir_clock_fake_waiters(pacing->clock) == unfinished;
}

/* Starts a fetcher. Returns when every fetcher that was started waits or has finished. A fetcher
 * that was just woken is not counted by the clock until it waits again, so a count taken before
 * this start would be wrong. */
static inline void fetcher_wait(struct fetcher *fetcher, struct pacing *pacing, const char *key, uint32_t flags,
                                int64_t timeout_ns, weir_cancel *cancel)
{
    *fetcher =
        (struct fetcher){.pacing = pacing, .key = key, .flags = flags, .timeout_ns = timeout_ns, .cancel = cancel};
    fetcher_start(fetcher);
    for (int64_t until = patience_ends_at(); !all_wait(pacing);)
        keep_waiting(until);
}

static inline int fetcher_join(struct fetcher *fetcher)
{
    assert_int_equal(pthread_join(fetcher->thread, NULL), 0);
    return fetcher->result;
}

#endif
