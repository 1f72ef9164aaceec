/* SPDX-License-Identifier: MIT */
/* test_tide_stuck.c - tests that tide recovers from situations in which it might get stuck: a bad
 * hour, answers that say little, and a host that lies. Each may cost no more than its own time and
 * some minutes. */
#include "tide_rig.h"

/* Returns the status that a host answers to the n-th request, `t` seconds after T0. */
typedef int (*answers)(double t, uint32_t n);

static double seconds(int64_t now)
{
    return (double)(now - T0) / (double)WEIR_SECOND;
}

/* Sends requests as soon as tide permits, until `end` seconds after T0. Returns the time, and the
 * highest rate since `from`. */
static int64_t live(struct strategy_fixture *rig, int64_t now, answers host, double from, double end,
                    double *ret_highest)
{
    *ret_highest = 0;
    while (seconds(now) < end) {
        int64_t at = now + rig_wait(rig, now);
        now = answer(rig, now, host(seconds(at), rig->seq));
        if (seconds(now) > from)
            *ret_highest = fmax(*ret_highest, rate_at(rig, now));
    }
    return now;
}

static int limited_at_first(double t, uint32_t n)
{
    (void)n;
    return t < 1800 ? 429 : 200;
}

static int forbidden_at_first(double t, uint32_t n)
{
    (void)n;
    return t < 1800 ? 403 : 200;
}

static int limited_after_a_few(double t, uint32_t n)
{
    return n < 30 || t > 1800 ? 200 : 429;
}

static void block_before_the_first_success_is_no_quota(void **state)
{
    (void)state;
    static const answers hosts[] = {limited_at_first, forbidden_at_first};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct strategy_fixture rig = tide(NULL);
        double highest;
        int64_t now = live(&rig, T0, hosts[i], 0, 2100, &highest);
        assert_true(rate_at(&rig, now) > 10);
        weir_pace_memory memory = rig_memory(&rig, now);
        assert_true(memory.rate > 10 && (memory.traits & WR_TIDE_BANS) == 0);
        rig_release(&rig);
    }
}

static void block_that_does_not_recur_is_forgotten(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    double highest;
    int64_t now = live(&rig, T0, limited_after_a_few, 0, 1900, &highest);
    assert_mode(&rig, "hold");
    now = live(&rig, now, limited_after_a_few, 0, 2700, &highest);
    assert_true(highest < 10); /* the block does not count any more, but the rate rises slowly */
    now = live(&rig, now, limited_after_a_few, 0, 6600, &highest);
    assert_true(rate_at(&rig, now) > 10);
    rig_release(&rig);
}

static void stored_rate_near_zero_is_raised_to_one_a_minute(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 0.001, .cap = 4, .traits = WR_TIDE_BANS, .block_ns = 1800 * WEIR_SECOND};
    struct strategy_fixture rig = tide(&memory);
    assert_near(rate_at(&rig, T0), 1.0 / 60, 1e-6);
    rig_release(&rig);
}

static void tide_recovers_after_the_limit_nearly_vanished(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    struct bucket bucket = {.rate = 10, .burst = 20, .tokens = 20, .at = T0};
    int rejections = 0;
    int64_t now = T0;
    while (seconds(now) < 1800)
        now = step_bucket(&rig, &bucket, now, &rejections);
    bucket.rate = 0.01;
    while (seconds(now) < 2400)
        now = step_bucket(&rig, &bucket, now, &rejections);
    assert_true(rate_at(&rig, now) < 0.1);
    bucket.rate = 10;
    while (seconds(now) < 4200)
        now = step_bucket(&rig, &bucket, now, &rejections);
    assert_near(rate_at(&rig, now), 10, 0.5);
    rig_release(&rig);
}

/* ---- good and bad answers in turn ---- */

static int limited_in_turn(double t, uint32_t n)
{
    return n % 2 == 0 && t < 7200 ? 429 : 200;
}

static int unavailable_in_turn(double t, uint32_t n)
{
    return n % 2 == 0 && t < 7200 ? 503 : 200;
}

static int forbidden_in_turn(double t, uint32_t n)
{
    return n % 2 == 0 && t < 7200 ? 403 : 200;
}

/* A16 */
static void alternating_good_and_bad_answers_get_one_request_a_minute(void **state)
{
    (void)state;
    static const answers hosts[] = {limited_in_turn, unavailable_in_turn};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct strategy_fixture rig = tide(NULL);
        double highest;
        int64_t now = live(&rig, T0, hosts[i], 600, 7200, &highest);
        assert_true(highest < 0.1);
        assert_true(rate_at(&rig, now) > 0.015);
        now = live(&rig, now, hosts[i], 0, 7260, &highest);
        assert_true(highest < 0.1);
        now = live(&rig, now, hosts[i], 0, 9000, &highest);
        assert_true(rate_at(&rig, now) > 1);
        rig_release(&rig);
    }
}

static void host_with_many_403s_gets_one_request_a_second(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    double highest;
    int64_t now = live(&rig, T0, forbidden_in_turn, 60, 7200, &highest);
    assert_true(highest < 2);
    assert_near(rate_at(&rig, now), 1, 0.3);
    now = live(&rig, now, forbidden_in_turn, 0, 7800, &highest);
    assert_true(rate_at(&rig, now) > 10);
    rig_release(&rig);
}

/* ---- headers ---- */

static int64_t answer_quota(struct strategy_fixture *rig, int64_t now, int64_t remaining)
{
    now += rig_wait(rig, now);
    rig_send(rig, now);
    now += LATENCY;
    rig->in_flight--;
    struct wr_pace_response answer = {
        .kind = WR_PACE_RESPONSE_OK,
        .status = 200,
        .seq = rig->seq,
        .in_flight_then = 1,
        .sent_at = now - LATENCY,
        .latency_ns = LATENCY,
        .retry_after_ns = -1,
        .quota_limit = 1000000,
        .quota_remaining = remaining,
        .quota_reset_ns = WEIR_HOUR,
    };
    rig->strategy->tell(&rig->options, rig->state, &answer, now);
    return now;
}

static void later_quota_header_replaces_an_earlier_one(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 20);
    now = answer_quota(&rig, now, 1); /* the next request would be due in half an hour */
    now = answer_quota(&rig, now, 1000000);
    assert_true(rig_wait(&rig, now) < WEIR_SECOND);
    now = answer_quota(&rig, now, 1);
    now = answer_quota(&rig, now, 2);
    assert_near((double)rig_wait(&rig, now) / 1e9, 1800, 1);
    rig_release(&rig);
}

/* ---- forgetting ---- */

static bool settled(const struct strategy_fixture *rig, int64_t now)
{
    return rig->strategy->settled(&rig->options, rig->state, now);
}

static void only_a_tide_state_that_slows_down_is_worth_keeping(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    assert_true(settled(&rig, T0));
    int64_t now = succeed(&rig, T0, 30);
    assert_mode(&rig, "start");
    assert_true(settled(&rig, now)); /* a new state would be slower */
    now = answer(&rig, now, 429);
    assert_mode(&rig, "search");
    assert_true(settled(&rig, now));
    for (int i = 0; i < 3; i++)
        now = answer(&rig, now, 429);
    assert_mode(&rig, "blocked");
    assert_false(settled(&rig, now));
    rig_release(&rig);

    rig = tide(NULL);
    now = answer(&rig, succeed(&rig, T0, 1), 429);
    assert_mode(&rig, "search");
    assert_true(rate_at(&rig, now) < 1);
    assert_false(settled(&rig, now)); /* a new state would be faster */
    rig_release(&rig);
}

static void ban_and_small_concurrency_limit_are_worth_keeping(void **state)
{
    (void)state;
    weir_pace_memory ban = {.rate = 5, .cap = 8, .traits = WR_TIDE_BANS, .block_ns = WEIR_MINUTE};
    weir_pace_memory crowd = {.rate = 50, .cap = 2, .traits = WR_TIDE_CONCURRENCY};
    weir_pace_memory limit = {.rate = 5, .cap = 8};
    struct strategy_fixture rig = tide(&ban);
    assert_false(settled(&rig, T0));
    rig_release(&rig);
    rig = tide(&crowd);
    assert_false(settled(&rig, T0));
    rig_release(&rig);
    rig = tide(&limit);
    assert_true(settled(&rig, T0));
    rig_release(&rig);
}

WEIR_TESTS(test(block_before_the_first_success_is_no_quota), test(block_that_does_not_recur_is_forgotten),
           test(stored_rate_near_zero_is_raised_to_one_a_minute), test(tide_recovers_after_the_limit_nearly_vanished),
           test(alternating_good_and_bad_answers_get_one_request_a_minute),
           test(host_with_many_403s_gets_one_request_a_second), test(later_quota_header_replaces_an_earlier_one),
           test(only_a_tide_state_that_slows_down_is_worth_keeping),
           test(ban_and_small_concurrency_limit_are_worth_keeping))
