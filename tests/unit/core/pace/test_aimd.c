/* SPDX-License-Identifier: MIT */
/* test_aimd.c - tests additive increase and multiplicative decrease on a token bucket (S0-14 ...
 * S0-27, S0-39, S0-84, S0-85, R2, R3, R22, R25). */
#include "strategy_rig.h"

static struct strategy_fixture aimd(weir_pace_options options)
{
    struct strategy_fixture rig;
    rig_init(&rig, &wr_aimd, &options, NULL, T0);
    return rig;
}

static double rate(const struct strategy_fixture *rig)
{
    return rig_want(rig, T0).rate;
}

/* S0-14, S0-18, S0-84 */
static void bucket_starts_full_refills_by_the_rate_and_stops_at_its_capacity(void **state)
{
    (void)state;
    const struct {
        int64_t at_ms;
        int grants;
        double tokens_left;
    } rows[] = {
        {0, 4, 0}, {499, 0, 0.998}, {500, 1, 0}, {1750, 2, 0.5}, {2000, 1, 0}, {3600000, 4, 0}, {3600500, 1, 0},
    };
    struct strategy_fixture rig = aimd(rig_options());
    assert_near(rig_want(&rig, T0).tokens, 4, 1e-9);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t now = T0 + rows[i].at_ms * MS;
        int grants = 0;
        while (rig_try(&rig, now))
            grants++;
        assert_int_equal(grants, rows[i].grants);
        assert_near(rig_want(&rig, now).tokens, rows[i].tokens_left, 1e-9);
        assert_int_equal(rig_want(&rig, now).reason, WEIR_REASON_TOKENS);
    }
    rig_release(&rig);
}

/* S0-15, S0-84: with capacity 1 and two tokens a second, the wait is 0.5 s, and half of that after
 * 0.25 s. */
static void wait_is_the_missing_part_of_a_token_over_the_rate(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    options.burst = 1;
    struct strategy_fixture rig = aimd(options);
    assert_int_equal(rig_wait(&rig, T0), 0);
    rig_send(&rig, T0);
    assert_int_equal(rig_wait(&rig, T0), 500 * MS);
    assert_int_equal(rig_wait(&rig, T0 + 250 * MS), 250 * MS);
    assert_int_equal(rig_wait(&rig, T0 + 499 * MS), 1 * MS);
    assert_int_equal(rig_wait(&rig, T0 + 500 * MS), 0);
    rig_release(&rig);
}

/* S0-18: after any number of grants, the tokens equal the refill less the grants exactly. */
static void each_start_takes_exactly_one_token(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    options.initial_rate = 3; /* a token is not a whole number of ns */
    struct strategy_fixture rig = aimd(options);
    int64_t granted = 0;
    for (int64_t now = T0; now <= T0 + WEIR_HOUR; now += 100 * MS)
        granted += rig_try(&rig, now);
    assert_in_range(granted, 4 + 3 * 3600 - 1, 4 + 3 * 3600);
    rig_release(&rig);
}

/* S0-19 */
static void first_rate_is_the_initial_one_within_its_bounds(void **state)
{
    (void)state;
    const double rows[][2] = {{2, 2}, {100, 8}, {0.01, 0.25}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_pace_options options = rig_options();
        options.initial_rate = rows[i][0];
        struct strategy_fixture rig = aimd(options);
        assert_near(rate(&rig), rows[i][1], 0);
        rig_release(&rig);
    }
}

/* S0-20, S0-21, S0-22, S0-25, S0-27, R22, R25: the effect of one answer on a rate of 4. */
static void one_answer_raises_cuts_or_keeps_the_aimd_rate(void **state)
{
    (void)state;
    const struct {
        int status;
        int64_t latency_ms;
        double rate;
    } rows[] = {
        {200, 1, 4.25},
        {204, 999, 4.25},
        {304, 100, 4.25}, /* good answers */
        /* latencies in the dead band */
        {200, 1000, 4},
        {200, 1500, 4},
        {301, 1999, 4},
        /* latencies above it */
        {200, 2000, 2},
        {301, 60000, 2},
        /* the host is overloaded */
        {429, 1, 2},
        {500, 1, 2},
        {502, 1, 2},
        {503, 1, 2},
        {504, 5000, 2},
        /* says nothing about pace */
        {404, 1, 4},
        {400, 1, 4},
        {401, 1, 4},
        {403, 1, 4},
        {0, 30000, 4}, /* a lost connection says nothing either */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_pace_options options = rig_options();
        options.initial_rate = 4;
        struct strategy_fixture rig = aimd(options);
        rig_send(&rig, T0);
        rig_tell(&rig, T0 + rows[i].latency_ms * MS, rows[i].status, rows[i].latency_ms * MS, -1);
        if (fabs(rate(&rig) - rows[i].rate) > 1e-12)
            fail_msg("%d after %lld ms: %g", rows[i].status, (long long)rows[i].latency_ms, rate(&rig));
        rig_release(&rig);
    }
}

/* S0-24: the latency target is a moving mean that starts at the configured target. */
static void latency_target_follows_the_usual_latency_of_the_host(void **state)
{
    (void)state;
    struct strategy_fixture rig = aimd(rig_options());
    int64_t now = T0;
    rig_tell(&rig, now, 200, 600 * MS, -1); /* the target falls from 1000 to 920 ms */
    assert_near(rate(&rig), 2.25, 1e-12);
    rig_tell(&rig, now, 200, 930 * MS, -1); /* now in the dead band; the target rises to 922 ms */
    assert_near(rate(&rig), 2.25, 1e-12);
    rig_tell(&rig, now, 200, 921 * MS, -1);
    assert_near(rate(&rig), 2.5, 1e-12);
    for (int i = 0; i < 100; i++)
        rig_tell(&rig, now, 404, 5000 * MS, -1); /* a host that is always slow */
    double slow = rate(&rig);
    rig_tell(&rig, now, 200, 4900 * MS, -1);
    assert_near(rate(&rig), slow + 0.25, 1e-12);
    rig_release(&rig);
}

/* A host with constant latency must not stay at the edge of the dead band. */
static void latency_that_never_changes_still_raises(void **state)
{
    (void)state;
    struct strategy_fixture rig = aimd(rig_options());
    for (int i = 0; i < 1000; i++)
        rig_tell(&rig, T0 + i * MS, 200, 40 * MS, -1);
    assert_near(rate(&rig), 8, 0);
    rig_tell(&rig, T0 + WEIR_SECOND, 429, 40 * MS, -1);
    rig_tell(&rig, T0 + WEIR_SECOND, 200, 40 * MS, -1);
    assert_near(rate(&rig), 4.25, 1e-12);
    rig_release(&rig);
}

/* S0-23 */
static void rate_never_leaves_its_bounds(void **state)
{
    (void)state;
    const int answers[] = {200, 429, 503, 404, 0};
    struct strategy_fixture rig = aimd(rig_options());
    bool least = false, most = false;
    for (int i = 0; i < 5000; i++) {
        int run = i / 50 % 5; /* long runs of one status, to reach both bounds */
        rig_tell(&rig, T0 + i * MS, answers[run], 10 * MS, -1);
        assert_true(rate(&rig) >= 0.25 && rate(&rig) <= 8);
        least = least || rate(&rig) <= 0.25;
        most = most || rate(&rig) >= 8;
    }
    assert_true(least && most);
    rig_release(&rig);
}

/* S0-85, R3: one change per answer. */
static void rate_rises_linearly_and_falls_by_halves(void **state)
{
    (void)state;
    const struct {
        int status, times;
        double rate;
    } rows[] = {{200, 4, 3},   {200, 8, 5},     {429, 1, 2.5}, {503, 1, 1.25},
                {200, 1, 1.5}, {429, 2, 0.375}, {500, 5, 0.25}};
    struct strategy_fixture rig = aimd(rig_options());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int k = 0; k < rows[i].times; k++)
            rig_tell(&rig, T0, rows[i].status, 10 * MS, -1);
        assert_near(rate(&rig), rows[i].rate, 1e-12);
    }
    rig_release(&rig);
}

/* S0-39: ten requests in flight all return with the same Retry-After. */
static void retry_after_is_one_decrease(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    options.initial_rate = 8;
    struct strategy_fixture rig = aimd(options);
    for (int i = 0; i < 10; i++)
        rig_tell(&rig, T0 + i * MS, i % 2 == 0 ? 429 : 503, 10 * MS, 30 * WEIR_SECOND);
    assert_near(rate(&rig), 4, 0);
    rig_tell(&rig, T0 + 31 * WEIR_SECOND, 429, 10 * MS, WEIR_SECOND); /* a new Retry-After */
    assert_near(rate(&rig), 2, 0);
    /* a 200 with Retry-After cuts the rate, too */
    rig_tell(&rig, T0 + 40 * WEIR_SECOND, 200, 10 * MS, WEIR_SECOND);
    assert_near(rate(&rig), 1, 0);
    rig_release(&rig);
}

static void change_of_the_rate_keeps_the_tokens(void **state)
{
    (void)state;
    struct strategy_fixture rig = aimd(rig_options());
    for (int i = 0; i < 3; i++)
        rig_send(&rig, T0);
    assert_near(rig_want(&rig, T0).tokens, 1, 1e-9);
    rig_tell(&rig, T0, 429, MS, -1);
    assert_near(rig_want(&rig, T0).tokens, 1, 1e-8);
    assert_int_equal(rig_wait(&rig, T0), 0);
    rig_send(&rig, T0);
    assert_int_equal(rig_wait(&rig, T0), WEIR_SECOND);
    /* half a token is left; the other half takes 0.4 s */
    rig_tell(&rig, T0 + 500 * MS, 200, MS, -1);
    assert_near(rig_want(&rig, T0 + 500 * MS).tokens, 0.5, 1e-8);
    assert_int_equal(rig_wait(&rig, T0 + 500 * MS), 400 * MS);
    rig_release(&rig);
}

/* R2, R23: the memory has the interval and the last safe interval. A known host starts with the
 * interval and without a burst. */
static void aimd_memory_is_the_interval_and_the_last_safe_interval(void **state)
{
    (void)state;
    struct strategy_fixture rig = aimd(rig_options());
    assert_int_equal(rig_memory(&rig, T0).delay_ns, 500 * MS);
    assert_int_equal(rig_memory(&rig, T0).floor_ns, 0);
    for (int i = 0; i < 8; i++)
        rig_tell(&rig, T0, 200, MS, -1); /* ends at 4 a second; the last safe rate was 3.75 */
    rig_tell(&rig, T0, 429, MS, -1);
    weir_pace_memory memory = rig_memory(&rig, T0);
    assert_int_equal(memory.delay_ns, 500 * MS);
    assert_int_equal(memory.floor_ns, 266666667);
    memory.delay_ns = WEIR_SECOND;
    struct strategy_fixture later;
    rig_init(&later, &wr_aimd, &rig.options, &memory, T0);
    assert_near(rate(&later), 1, 0);
    assert_int_equal(rig_wait(&later, T0), WEIR_SECOND);
    assert_true(rig_try(&later, T0 + WEIR_SECOND));
    assert_false(rig_try(&later, T0 + WEIR_SECOND));
    memory.delay_ns = WEIR_DAY;
    rig_release(&later);
    rig_init(&later, &wr_aimd, &rig.options, &memory, T0);
    assert_near(rate(&later), 0.25, 0);
    rig_release(&later);
    rig_release(&rig);
}

/* The slowest rate, the largest burst and the deepest cut that options allow. Sanitizers detect
 * overflows. */
static void extreme_aimd_options_do_not_overflow(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    options.min_rate = 1e-9;
    options.rate_ceiling = 1e9;
    options.burst = 1e9;
    options.decrease = 0.001;
    options.increase = 1e9;
    struct strategy_fixture rig = aimd(options);
    int64_t now = T0;
    for (int i = 0; i < 2000; i++) {
        for (int k = 0; k < 5 && rig_wait(&rig, now) == 0; k++)
            rig_send(&rig, now);
        rig_tell(&rig, now, i / 10 % 2 == 0 ? 200 : 429, 10 * MS, i % 3 == 0 ? WEIR_DURATION_MAX : -1);
        assert_true(rig_wait(&rig, now) <= 2 * WEIR_DURATION_MAX);
        assert_true(rig_want(&rig, now).tokens <= 1e9);
        now += i % 7 == 0 ? WEIR_DAY : MS;
    }
    rig_release(&rig);
}

static void host_may_be_forgotten_once_its_bucket_is_full(void **state)
{
    (void)state;
    struct strategy_fixture rig = aimd(rig_options());
    assert_true(wr_aimd.settled(&rig.options, rig.state, T0));
    rig_send(&rig, T0);
    assert_false(wr_aimd.settled(&rig.options, rig.state, T0 + 499 * MS));
    assert_true(wr_aimd.settled(&rig.options, rig.state, T0 + 500 * MS));
    rig_release(&rig);
}

static void cut_of_the_rate_stretches_even_a_debt_of_a_nanosecond(void **state)
{
    (void)state;
    weir_pace_options options = rig_options();
    struct strategy_fixture rig;
    rig_init(&rig, &wr_aimd, &options, NULL, T0);
    rig_send(&rig, T0); /* the bucket is full after 500 ms */
    rig_tell(&rig, T0 + 500 * MS - 1, 500, 10 * MS, -1);
    assert_false(rig.strategy->settled(&rig.options, rig.state, T0 + 500 * MS));
    assert_true(rig.strategy->settled(&rig.options, rig.state, T0 + 500 * MS + 1));
    rig_release(&rig);
}

WEIR_TESTS(test(cut_of_the_rate_stretches_even_a_debt_of_a_nanosecond),
           test(bucket_starts_full_refills_by_the_rate_and_stops_at_its_capacity),
           test(wait_is_the_missing_part_of_a_token_over_the_rate), test(each_start_takes_exactly_one_token),
           test(first_rate_is_the_initial_one_within_its_bounds), test(one_answer_raises_cuts_or_keeps_the_aimd_rate),
           test(latency_target_follows_the_usual_latency_of_the_host), test(latency_that_never_changes_still_raises),
           test(rate_never_leaves_its_bounds), test(rate_rises_linearly_and_falls_by_halves),
           test(retry_after_is_one_decrease), test(change_of_the_rate_keeps_the_tokens),
           test(aimd_memory_is_the_interval_and_the_last_safe_interval), test(extreme_aimd_options_do_not_overflow),
           test(host_may_be_forgotten_once_its_bucket_is_full))
