/* SPDX-License-Identifier: MIT */
/* test_answers.c - tests the effects of answers on a gate (S0-2, S0-16, S0-17, S0-39, S0-40, S0-89,
 * S2-6, S2-14, S2-23, R3, R4, R25, U4, A15, A19, C1, C4 ... C8, K2). */
#include "rig.h"

#include <math.h>

static weir_outcome quota(int64_t limit, int64_t remaining, int64_t reset_ns)
{
    return (weir_outcome){.status = 200,
                          .has_quota = true,
                          .quota_limit = limit,
                          .quota_remaining = remaining,
                          .quota_reset_ns = reset_ns};
}

/* Sets up a bare gate that received one answer with this outcome at T0. */
static void rig_told(struct gate_fixture *ret_rig, weir_outcome outcome)
{
    rig_init(ret_rig, bare_options());
    struct wr_gate_start start = rig_send(ret_rig, T0);
    rig_tell_all(ret_rig, &start, outcome, T0, 0);
}

/* S0-40, S0-89, S0-16 */
static void nothing_starts_before_retry_after_has_passed(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_AIMD));
    assert_true(rig_tell_retry_after(&rig, rig_send(&rig, T0), 429, 30 * S, T0) & WR_GATE_CHANGE_RETRY_AFTER);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, 30 * S);
    assert_waits(&rig, T0 + 30 * S - 1, WEIR_REASON_RETRY_AFTER, 1);
    rig_send(&rig, T0 + 30 * S);
    rig_release(&rig);
}

static void retry_after_counts_on_every_status(void **state)
{
    (void)state;
    static const int statuses[] = {200, 301, 404, 403, 429, 500, 503};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct gate_fixture rig;
        rig_told(&rig, (weir_outcome){.status = statuses[i], .has_retry_after = true, .retry_after_ns = 5 * S});
        assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, 5 * S);
        rig_release(&rig);
    }
}

/* C1: extreme values of Retry-After never become 0 or a time in the past. */
static void absurd_waits_are_clamped(void **state)
{
    (void)state;
    static const int64_t waits[][2] = {{0, 0},
                                       {-1, 0},
                                       {INT64_MIN, 0},
                                       {1, 1},
                                       {WEIR_DAY, WEIR_DAY},
                                       {WEIR_DAY + 1, WEIR_DAY},
                                       {WEIR_DURATION_MAX, WEIR_DAY},
                                       {INT64_MAX, WEIR_DAY}};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        struct gate_fixture rig;
        rig_told(&rig, (weir_outcome){.status = 200, .has_retry_after = true, .retry_after_ns = waits[i][0]});
        assert_int_equal(rig_ask(&rig, T0).wait_ns, waits[i][1]);
        assert_int_equal((rig.news & WR_GATE_CHANGE_RETRY_AFTER) != 0, waits[i][1] > 0);
        rig_release(&rig);
    }
}

/* C4, K2 */
static void most_restrictive_wait_wins_in_any_order(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_outcome both = quota(100, 0, 60 * S);
    both.has_retry_after = true;
    both.retry_after_ns = 10 * S;
    rig_told(&rig, both);
    assert_waits(&rig, T0, WEIR_REASON_RATE_LIMIT_RESET, 60 * S);
    rig_release(&rig);
    both.retry_after_ns = 70 * S;
    rig_told(&rig, both); /* on a success, Retry-After is a reset */
    assert_waits(&rig, T0, WEIR_REASON_RATE_LIMIT_RESET, 70 * S);
    rig_release(&rig);
    both.status = 429;
    rig_told(&rig, both);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, 70 * S);
    rig_release(&rig);

    rig_init(&rig, bare_options());
    struct wr_gate_start first = rig_send(&rig, T0), second = rig_send(&rig, T0);
    rig_tell_retry_after(&rig, first, 429, 30 * S, T0);
    assert_int_equal(rig_tell_retry_after(&rig, second, 429, 5 * S, T0 + S) & WR_GATE_CHANGE_RETRY_AFTER, 0);
    assert_waits(&rig, T0 + S, WEIR_REASON_RETRY_AFTER, 29 * S);
    /* a shorter window learned elsewhere does not shorten it */
    wr_gate_hold(rig.gate, &rig.options, T0 + 20 * S, T0 + S);
    assert_waits(&rig, T0 + S, WEIR_REASON_RETRY_AFTER, 29 * S);
    wr_gate_hold(rig.gate, &rig.options, INT64_MAX, T0 + S);
    assert_waits(&rig, T0 + S, WEIR_REASON_RETRY_AFTER, WEIR_DAY);
    rig_release(&rig);
}

/* C5 */
static void generous_quota_never_raises_the_pace(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.max_rate = 2;
    rig_init(&rig, options);
    struct wr_gate_start start = rig_send(&rig, T0);
    rig_tell_all(&rig, &start, quota(INT64_MAX, 1000000000000000000, 1), T0, 0);
    assert_waits(&rig, T0, WEIR_REASON_PACE, 500 * MS);
    rig_release(&rig);
}

/* N6-6: Flask-Limiter and rate-limiter-flexible send Retry-After with every response. */
static void retry_after_on_a_success_with_requests_left_does_not_hold(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_outcome outcome = quota(100, 99, -1);
    outcome.has_retry_after = true;
    outcome.retry_after_ns = 60 * S;
    rig_told(&rig, outcome);
    assert_true(rig_goes(&rig, T0));
    rig_release(&rig);

    outcome.quota_remaining = 0; /* no requests are left */
    rig_told(&rig, outcome);
    assert_waits(&rig, T0, WEIR_REASON_RATE_LIMIT_RESET, 60 * S);
    rig_release(&rig);
    outcome.quota_remaining = -1; /* the remaining requests are not stated */
    rig_told(&rig, outcome);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, 60 * S);
    rig_release(&rig);
    outcome.quota_remaining = 99; /* not a success */
    outcome.status = 429;
    rig_told(&rig, outcome);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, 60 * S);
    rig_release(&rig);
}

/* N6-6 */
static void refusal_with_only_a_reset_time_holds_until_then(void **state)
{
    (void)state;
    static const int refusals[] = {420, 429, 430, 509, 529, 999};
    struct gate_fixture rig;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        weir_outcome outcome = quota(100, -1, 4 * S);
        outcome.status = refusals[i];
        rig_told(&rig, outcome);
        assert_waits(&rig, T0, WEIR_REASON_RATE_LIMIT_RESET, 4 * S);
        rig_release(&rig);
    }
    weir_outcome outcome = quota(100, -1, 4 * S); /* on a success, requests may be left */
    rig_told(&rig, outcome);
    assert_true(rig_goes(&rig, T0));
    rig_release(&rig);
}

/* C6 */
static void quota_that_is_used_up_waits_for_its_reset(void **state)
{
    (void)state;
    static const int64_t resets[][2] = {{60 * S, 60 * S},      {1000000000000000 * 1000, WEIR_DAY},
                                        {INT64_MAX, WEIR_DAY}, {0, 0},
                                        {-5 * S, 0}, /* in the past: no wait */
                                        {INT64_MIN, 0}};
    struct gate_fixture rig;
    for (size_t i = 0; i < sizeof resets / sizeof *resets; i++) {
        rig_told(&rig, quota(100, 0, resets[i][0]));
        assert_int_equal(rig_ask(&rig, T0).wait_ns, resets[i][1]);
        rig_release(&rig);
        rig_told(&rig, quota(100, 1, resets[i][0])); /* one request is left */
        assert_true(rig_goes(&rig, T0));
        rig_release(&rig);
    }
    rig_told(&rig, quota(-1, -1, 60 * S));
    assert_true(rig_goes(&rig, T0));
    rig_release(&rig);
    rig_told(&rig, quota(100, 0, -1)); /* no reset stated: a 429 will name it */
    assert_true(rig_goes(&rig, T0));
    rig_release(&rig);
    /* has_quota is not set */
    weir_outcome not_said = {.status = 200, .quota_remaining = 0, .quota_reset_ns = S};
    rig_told(&rig, not_said);
    assert_true(rig_goes(&rig, T0));
    rig_release(&rig);
}

/* C8 */
static void quota_of_zero_pauses_the_host(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_told(&rig, quota(0, -1, 60 * S));
    assert_waits(&rig, T0, WEIR_REASON_RATE_LIMIT_RESET, 60 * S);
    rig_release(&rig);
    rig_told(&rig, quota(0, 0, -1));
    assert_waits(&rig, T0, WEIR_REASON_RATE_LIMIT_RESET, 15 * S);
    rig_release(&rig);
}

/* S0-17 */
static void jitter_lengthens_long_waits_by_up_to_a_tenth_and_never_shortens(void **state)
{
    (void)state;
    static const double units[] = {0, 0.25, 0.5, 0.999};
    struct gate_fixture rig;
    for (size_t i = 0; i < 4; i++) {
        weir_outcome outcome = {.status = 429, .has_retry_after = true, .retry_after_ns = 100 * S};
        rig_init(&rig, bare_options());
        rig_tell_all(&rig, NULL, outcome, T0, units[i]);
        assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, 100 * S + (int64_t)(10 * units[i] * (double)S));
        /* asking twice gives the same wait */
        assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, 100 * S + (int64_t)(10 * units[i] * (double)S));
        rig_release(&rig);
        outcome.retry_after_ns = S; /* not longer than jitter_over */
        rig_init(&rig, bare_options());
        rig_tell_all(&rig, NULL, outcome, T0, units[i]);
        assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, S);
        rig_release(&rig);
    }
    rig_init(&rig, bare_options()); /* a jitter outside 0 ... 1 */
    rig_tell_all(&rig, NULL, (weir_outcome){.status = 429, .has_retry_after = true, .retry_after_ns = WEIR_DAY}, T0,
                 1e9);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, WEIR_DAY);
    rig_release(&rig);
}

/* U4, A15: if nothing else limits a host that rejects everything, it gets ten requests a second. */
static void each_rejection_pushes_back_by_100_ms(void **state)
{
    (void)state;
    static const int rejections[] = {429, 403, 503, 420, 430, 509, 529, 999};
    struct gate_fixture rig;
    for (size_t i = 0; i < sizeof rejections / sizeof *rejections; i++) {
        rig_told(&rig, (weir_outcome){.status = rejections[i]});
        assert_waits(&rig, T0, WEIR_REASON_PACE, 100 * MS);
        rig_release(&rig);
    }
    int starts = 0;
    rig_init(&rig, bare_options());
    for (int64_t now = T0; now < T0 + 60 * S; now += MS)
        if (rig_goes(&rig, now)) {
            rig_answer(&rig, 429, now);
            starts++;
        }
    assert_int_equal(starts, 600);
    rig_release(&rig);
}

/* A15 */
static void breaker_opens_on_endless_429s_without_retry_after(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    int starts = 0;
    options.breaker = true;
    rig_init(&rig, options);
    for (int64_t now = T0; now < T0 + 600 * S; now += 10 * MS)
        if (rig_goes(&rig, now)) {
            rig_answer(&rig, 429, now);
            starts++;
        }
    assert_in_range(starts, 5 + 38, 5 + 42); /* five, then one every 15 s */
    rig_release(&rig);
}

/* S0-38, R4: if the strategy does not handle 403, the gate treats a row of 403s as a ban and asks
 * rarely. The breaker stays closed. */
static void row_of_403s_is_a_ban_and_waits_as_long_as_an_open_breaker(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_AIMD));
    for (int64_t i = 0; i < 4; i++) {
        rig_answer(&rig, 403, T0 + i * S);
        assert_waits(&rig, T0 + i * S, WEIR_REASON_PACE, 100 * MS);
    }
    rig_answer(&rig, 403, T0 + 4 * S);
    assert_waits(&rig, T0 + 4 * S, WEIR_REASON_PACE, 15 * S);
    struct wr_gate_start probe = rig_send(&rig, T0 + 19 * S);
    /* one probe at a time while banned */
    assert_waits(&rig, T0 + 19 * S, WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE);
    rig_tell(&rig, probe, 403, T0 + 19 * S);
    assert_waits(&rig, T0 + 19 * S, WEIR_REASON_PACE, 15 * S);
    rig_answer(&rig, 404, T0 + 34 * S);
    for (int i = 0; i < 3; i++)
        rig_send(&rig, T0 + 34 * S); /* the ban is over */
    assert_int_equal(rig_look(&rig, T0 + 34 * S).breaker, WEIR_BREAKER_CLOSED);
    rig_release(&rig);
}

/* S0-38: 403s between successful answers are not a ban. */
static void single_403s_between_successes_are_no_ban(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_AIMD));
    for (int64_t i = 0; i < 100; i++) {
        rig_answer(&rig, i % 5 == 0 ? 200 : 403, T0 + i * S);
        assert_true(rig_ask(&rig, T0 + i * S).wait_ns <= 100 * MS);
    }
    rig_release(&rig);
}

/* The gate's own push-back does not hide a time that the server named. */
static void own_push_back_does_not_end_a_wait_that_the_server_named(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_memory memory;
    rig_init(&rig, bare_options());
    struct wr_gate_start first = rig_send(&rig, T0), second = rig_send(&rig, T0);
    rig_tell_retry_after(&rig, first, 429, 1 * S, T0);
    rig_tell(&rig, second, 429, T0 + 950 * MS);
    assert_waits(&rig, T0 + 950 * MS, WEIR_REASON_RETRY_AFTER, 100 * MS);
    wr_gate_remember(rig.gate, &rig.options, T0 + 950 * MS, WALL0, &memory);
    assert_int_equal(memory.retry_wall_at, WALL0 + 100 * MS);
    rig_release(&rig);
}

/* R3, S0-39: one response sets Retry-After, counts in the window and the streaks, and cuts the rate
 * once. The next response has the same effects anew. */
static void one_response_has_one_effect_on_each_part(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_AIMD));
    uint32_t news = rig_tell_retry_after(&rig, rig_send(&rig, T0), 429, 2 * S, T0);
    assert_int_equal(news, WR_GATE_CHANGE_REJECTED | WR_GATE_CHANGE_RETRY_AFTER | WR_GATE_CHANGE_DELAY);
    weir_pace_entry entry = rig_look(&rig, T0);
    assert_true(entry.rate == 1); /* the rate is halved once */
    assert_true(entry.error_streak == 1 && entry.rejected == 1 && entry.error_rate == 1);
    /* R7: an answer with Retry-After is no failure */
    assert_int_equal(entry.consecutive_failures, 0);
    rig_tell_retry_after(&rig, rig_send(&rig, T0 + 2 * S), 429, 2 * S, T0 + 2 * S);
    assert_true(rig_look(&rig, T0 + 2 * S).rate == 0.5);
    rig_release(&rig);
}

/* S2-6 */
static void streaks_count_good_answers_and_rejections_in_a_row(void **state)
{
    (void)state;
    static const struct {
        int status;
        uint32_t successes, errors;
    } rows[] = {{200, 1, 0}, {304, 2, 0}, {404, 3, 0}, {500, 0, 0}, {200, 1, 0}, {429, 0, 1}, {503, 0, 2},
                {500, 0, 2}, {0, 0, 2},   {403, 0, 3}, {200, 1, 0}, {0, 0, 0},   {200, 1, 0}, {200, 2, 0}};
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    assert_int_equal(rig_look(&rig, T0).last_success_at, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t now = T0 + (int64_t)i * S;
        rig_answer(&rig, rows[i].status, now);
        weir_pace_entry entry = rig_look(&rig, now);
        assert_int_equal(entry.success_streak, rows[i].successes);
        assert_int_equal(entry.error_streak, rows[i].errors);
        assert_int_equal((rig.news & WR_GATE_CHANGE_REJECTED) != 0,
                         rows[i].errors > 0 && rows[i].status > 100 && rows[i].status != 500);
        if (rows[i].successes > 0)
            assert_int_equal(entry.last_success_at, now);
    }
    rig_release(&rig);
}

static void latency_is_the_reported_one_or_the_time_since_the_send(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = bare_options();
    options.latency_weight = 1;
    rig_init(&rig, options);
    rig_tell(&rig, rig_send(&rig, T0), 200, T0 + 300 * MS);
    assert_int_equal(rig_look(&rig, T0).mean_latency_ns, 300 * MS);
    struct wr_gate_start start = rig_send(&rig, T0 + S);
    rig_tell_all(&rig, &start, (weir_outcome){.status = 200, .latency_ns = 200 * MS}, T0 + 9 * S, 0);
    assert_int_equal(rig_look(&rig, T0).mean_latency_ns, 200 * MS);
    rig_tell(&rig, rig_send(&rig, T0 + 10 * S), 0, T0 + 70 * S); /* a timeout gives no latency */
    /* A19: an invalid status gives none */
    rig_tell(&rig, rig_send(&rig, T0 + 80 * S), 600, T0 + 90 * S);
    assert_int_equal(rig_look(&rig, T0).mean_latency_ns, 200 * MS);
    rig_release(&rig);
}

/* S0-2: feedback from a caller that holds no permit. */
static void feedback_without_a_start_counts_and_ends_no_request(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, bare_options());
    rig_send(&rig, T0);
    rig_tell_all(&rig, NULL, (weir_outcome){.status = 429, .has_retry_after = true, .retry_after_ns = 9 * S}, T0, 0);
    assert_int_equal(rig_look(&rig, T0).in_flight, 1);
    assert_waits(&rig, T0, WEIR_REASON_RETRY_AFTER, 9 * S);
    rig_release(&rig);
}

/* S2-14 */
static void hopeless_is_reported_once_after_20_429s_at_the_longest_delay(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = profile_options(WEIR_PROFILE_LEARNED);
    int64_t now = T0;
    options.cancel_after = 20;
    options.breaker = false;
    rig_init(&rig, options);
    for (int round = 0; round < 2; round++) {
        int at_most = 0, said = 0; /* at_most: 429s at a delay of at least 60 s */
        for (int i = 0; i < 200; i++) {
            now += 61 * S;
            bool news = rig_answer(&rig, 429, now) & WR_GATE_CHANGE_HOPELESS;
            at_most += rig_look(&rig, now).delay_ns >= 60 * S;
            if (!news)
                continue;
            said++;
            assert_int_equal(at_most, 20);
        }
        assert_int_equal(said, 1);
        rig_answer(&rig, 200, now + 61 * S); /* after a success it may be reported once more */
        now += 61 * S;
    }
    rig_release(&rig);
    options.cancel_after = 0; /* the default: never */
    rig_init(&rig, options);
    for (now = T0; now < T0 + WEIR_DAY; now += 61 * S)
        assert_int_equal(rig_answer(&rig, 429, now) & WR_GATE_CHANGE_HOPELESS, 0);
    rig_release(&rig);
}

/* S2-23 */
static void change_of_the_learned_delay_is_reported(void **state)
{
    (void)state;
    struct gate_fixture rig;
    weir_pace_options options = profile_options(WEIR_PROFILE_LEARNED);
    int changes = 0;
    int64_t now = T0;
    options.breaker = false;
    rig_init(&rig, options);
    assert_true(rig_answer(&rig, 429, now) & WR_GATE_CHANGE_DELAY);
    assert_true(wr_gate_unsaved(rig.gate));
    assert_int_equal(rig_look(&rig, now).delay_ns, 1500 * MS);
    wr_gate_saved(rig.gate);
    for (int i = 0; i < 19; i++)
        changes += (rig_answer(&rig, 200, now += 2 * S) & WR_GATE_CHANGE_DELAY) != 0;
    assert_int_equal(changes, 0);
    assert_false(wr_gate_unsaved(rig.gate));
    /* the 20th success starts a probe */
    assert_true(rig_answer(&rig, 200, now += 2 * S) & WR_GATE_CHANGE_DELAY);
    assert_true(wr_gate_unsaved(rig.gate));
    rig_release(&rig);
}

static double rate_of(const struct gate_fixture *rig, int64_t now)
{
    return rig_look(rig, now).rate;
}

/* N6-6: servers round resets up to whole seconds. The last request is sent a second before the end
 * of the window, so that the wait that the server then names is exact. */
static void quota_is_spread_until_the_earliest_stated_end_of_its_window(void **state)
{
    (void)state;
    struct gate_fixture rig;
    rig_init(&rig, profile_options(WEIR_PROFILE_ADAPTIVE));
    struct wr_gate_start start = rig_send(&rig, T0);
    rig_tell_all(&rig, &start, quota(60, 10, 30 * S), T0, 0);
    start = rig_send(&rig, T0 + 10500 * MS);
    /* the window ends at 30 s, not at 30.5 s */
    rig_tell_all(&rig, &start, quota(60, 9, 20 * S), T0 + 10500 * MS, 0);
    assert_true(fabs(rate_of(&rig, T0 + 10500 * MS) - 9 / (19.5 - 0.98)) < 1e-4);
    start = rig_send(&rig, T0 + 15 * S);
    /* a later reset: another window */
    rig_tell_all(&rig, &start, quota(60, 9, 40 * S), T0 + 15 * S, 0);
    assert_true(fabs(rate_of(&rig, T0 + 15 * S) - 9 / (40 - 0.98)) < 1e-4);
    start = rig_send(&rig, T0 + 20500 * MS);
    /* used up: waits as long as stated */
    rig_tell_all(&rig, &start, quota(60, 0, 35 * S), T0 + 20500 * MS, 0);
    assert_waits(&rig, T0 + 20500 * MS, WEIR_REASON_RATE_LIMIT_RESET, 35 * S);
    rig_release(&rig);
}

WEIR_TESTS(test(quota_is_spread_until_the_earliest_stated_end_of_its_window),
           test(nothing_starts_before_retry_after_has_passed), test(retry_after_counts_on_every_status),
           test(absurd_waits_are_clamped), test(most_restrictive_wait_wins_in_any_order),
           test(generous_quota_never_raises_the_pace), test(retry_after_on_a_success_with_requests_left_does_not_hold),
           test(refusal_with_only_a_reset_time_holds_until_then), test(quota_that_is_used_up_waits_for_its_reset),
           test(quota_of_zero_pauses_the_host), test(jitter_lengthens_long_waits_by_up_to_a_tenth_and_never_shortens),
           test(each_rejection_pushes_back_by_100_ms), test(breaker_opens_on_endless_429s_without_retry_after),
           test(row_of_403s_is_a_ban_and_waits_as_long_as_an_open_breaker),
           test(single_403s_between_successes_are_no_ban),
           test(own_push_back_does_not_end_a_wait_that_the_server_named),
           test(one_response_has_one_effect_on_each_part), test(streaks_count_good_answers_and_rejections_in_a_row),
           test(latency_is_the_reported_one_or_the_time_since_the_send),
           test(feedback_without_a_start_counts_and_ends_no_request),
           test(hopeless_is_reported_once_after_20_429s_at_the_longest_delay),
           test(change_of_the_learned_delay_is_reported))
