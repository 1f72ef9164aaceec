/* SPDX-License-Identifier: MIT */
/* test_overload.c - tests gates on hosts that break down, event by event: AIMD (S0-8, S0-94, S0-95,
 * S0-97) and tide (E4). */
#include "rig.h"

#define LATENCY_NS (50 * MS)
#define FLIGHTS 64
#define STARTS 20000

/* A host that is overloaded between two instants, with one busy client. */
struct site {
    struct gate_fixture rig;
    int status; /* status of answers while overloaded */
    int64_t overload_at, over_at;
    /* in the order of their answers, which all take equally long */
    struct wr_gate_start flights[FLIGHTS];
    size_t count;
    int64_t starts_at[STARTS];
    size_t starts, bad;
    int64_t opened_at, closed_at; /* first time that the breaker opened and closed; 0: never */
};

static void site_init(struct site *ret_site, weir_profile profile, int status, int64_t overload_at, int64_t over_at)
{
    *ret_site = (struct site){.status = status, .overload_at = overload_at, .over_at = over_at};
    rig_init(&ret_site->rig, profile_options(profile));
}

/* Returns the time of the next event. */
static int64_t site_next(const struct site *site, int64_t now)
{
    int64_t answer_at = site->count > 0 ? site->flights[0].sent_at + LATENCY_NS : INT64_MAX;
    int64_t wait_ns = rig_ask(&site->rig, now).wait_ns;
    int64_t start_at = wait_ns == WEIR_UNTIL_RELEASE ? INT64_MAX : now + wait_ns;
    return start_at < answer_at ? start_at : answer_at;
}

static void site_answer(struct site *site, int64_t now)
{
    struct wr_gate_start start = site->flights[0];
    memmove(&site->flights[0], &site->flights[1], --site->count * sizeof start);
    bool bad = start.sent_at >= site->overload_at && start.sent_at < site->over_at;
    weir_outcome outcome = {.status = bad ? site->status : 200, .latency_ns = LATENCY_NS};
    rig_tell_all(&site->rig, &start, outcome, now, 0.5);
    site->bad += bad;
    weir_breaker_state breaker = rig_look(&site->rig, now).breaker;
    if (breaker == WEIR_BREAKER_OPEN && site->opened_at == 0)
        site->opened_at = now;
    if (breaker == WEIR_BREAKER_CLOSED && site->opened_at > 0 && site->closed_at == 0)
        site->closed_at = now;
}

/* Processes all events that are due at `now`. */
static void site_step(struct site *site, int64_t now)
{
    while (site_next(site, now) <= now) {
        if (site->count > 0 && site->flights[0].sent_at + LATENCY_NS <= now) {
            site_answer(site, now);
            continue;
        }
        assert_true(site->count < FLIGHTS && site->starts < STARTS);
        site->flights[site->count++] = rig_send(&site->rig, now);
        site->starts_at[site->starts++] = now;
    }
}

static void run(struct site *const *sites, size_t count, int64_t end_at)
{
    for (int64_t now = T0; now < end_at;) {
        int64_t next_at = end_at;
        for (size_t i = 0; i < count; i++)
            site_step(sites[i], now);
        for (size_t i = 0; i < count; i++) {
            int64_t at = site_next(sites[i], now);
            next_at = at < next_at ? at : next_at;
        }
        now = next_at;
    }
}

static size_t starts_between(const struct site *site, int64_t from_at, int64_t to_at)
{
    size_t count = 0;
    for (size_t i = 0; i < site->starts; i++)
        count += site->starts_at[i] >= from_at && site->starts_at[i] < to_at;
    return count;
}

/* S0-95: also if the overload is the first thing that the client sees of the host. */
static void breaker_opens_within_5_s_of_an_overload_and_recovers_by_itself(void **state)
{
    (void)state;
    const int statuses[] = {503, 500, 429, 0};
    const int64_t begins_s[] = {0, 10, 60, 333};
    for (size_t i = 0; i < 16; i++) {
        int64_t overload_at = T0 + begins_s[i / 4] * S, over_at = overload_at + 100 * S;
        static struct site site;
        struct site *sites[] = {&site};
        site_init(&site, WEIR_PROFILE_AIMD, statuses[i % 4], overload_at, over_at);
        run(sites, 1, over_at + 120 * S);
        assert_in_range(site.opened_at, overload_at, overload_at + 5 * S);
        assert_in_range(site.closed_at, over_at, over_at + 30 * S);
        assert_true(site.bad <= 30); /* five, and the probes of six rounds */
        /* at the full rate */
        assert_in_range(starts_between(&site, over_at + 110 * S, over_at + 120 * S), 79, 81);
        rig_release(&site.rig);
    }
}

/* S0-94: at least nine of ten answers are good after the overload. */
static void most_answers_are_good_although_the_host_is_overloaded(void **state)
{
    (void)state;
    static struct site site;
    struct site *sites[] = {&site};
    site_init(&site, WEIR_PROFILE_AIMD, 503, T0 + 60 * S, T0 + 160 * S);
    run(sites, 1, T0 + 400 * S);
    assert_true(site.bad * 10 < site.starts);
    rig_release(&site.rig);
}

/* S0-8, S0-97: each start is at the same time as without the other host. */
static void failing_host_does_not_affect_the_starts_of_another(void **state)
{
    (void)state;
    static struct site alone, beside, bad;
    struct site *one[] = {&alone}, *two[] = {&bad, &beside};
    site_init(&alone, WEIR_PROFILE_AIMD, 200, 0, 0);
    site_init(&beside, WEIR_PROFILE_AIMD, 200, 0, 0);
    site_init(&bad, WEIR_PROFILE_AIMD, 503, T0 + 5 * S, INT64_MAX);
    run(one, 1, T0 + 200 * S);
    run(two, 2, T0 + 200 * S);
    assert_true(bad.opened_at > 0 && bad.closed_at == 0);
    assert_int_equal(alone.opened_at, 0);
    assert_true(alone.starts > 1400);
    assert_int_equal(beside.starts, alone.starts);
    assert_memory_equal(beside.starts_at, alone.starts_at, alone.starts * sizeof *alone.starts_at);
    rig_release(&alone.rig);
    rig_release(&beside.rig);
    rig_release(&bad.rig);
}

static int64_t least_spacing(const struct site *site, int64_t from_at)
{
    int64_t least_ns = INT64_MAX;
    for (size_t i = 1; i < site->starts; i++)
        if (site->starts_at[i - 1] >= from_at && site->starts_at[i] - site->starts_at[i - 1] < least_ns)
            least_ns = site->starts_at[i] - site->starts_at[i - 1];
    return least_ns;
}

/* E4: the host does not answer, or a gateway answers 502 or 503. */
static void host_down_for_an_hour_is_probed_rarely_and_resumed_within_a_tenth(void **state)
{
    (void)state;
    const int statuses[] = {0, 502, 503};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        int64_t gone_at = T0 + 300 * S, back_at = gone_at + WEIR_HOUR;
        static struct site site;
        struct site *sites[] = {&site};
        site_init(&site, WEIR_PROFILE_ADAPTIVE, statuses[i], gone_at, back_at);
        run(sites, 1, back_at + 600 * S);
        assert_true(starts_between(&site, gone_at - 10 * S, gone_at) >= 79);
        /* requests in flight and probes */
        assert_true(site.bad <= 8 + 3600 / 15 + 20);
        /* the recovery is noticed */
        assert_true(starts_between(&site, back_at, back_at + 360 * S) > 0);
        /* the rate recovers */
        assert_true(starts_between(&site, back_at, back_at + 600 * S) >= 600);
        assert_true(least_spacing(&site, gone_at + 10 * S) >= S / 8 - S / 100); /* no burst */
        rig_release(&site.rig);
    }
}

WEIR_TESTS(test(breaker_opens_within_5_s_of_an_overload_and_recovers_by_itself),
           test(most_answers_are_good_although_the_host_is_overloaded),
           test(failing_host_does_not_affect_the_starts_of_another),
           test(host_down_for_an_hour_is_probed_rarely_and_resumed_within_a_tenth))
