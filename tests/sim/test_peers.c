/* SPDX-License-Identifier: MIT */
/* test_peers.c - tests our copies of other programs' pacers against their published rules, step by
 * step. */
#include "lib/test.h"
#include "sim/peers/peers.h"
#include "sim/sim.h"

#include <math.h>

#define MS WEIR_MILLISECOND
#define S WEIR_SECOND

struct peer_fixture {
    const struct wr_strategy *rule;
    void *state;
    weir_pace_options options;
    uint32_t seq;
};

static struct peer_fixture rig_of(const struct wr_strategy *rule)
{
    struct peer_fixture rig = {.rule = rule, .state = calloc(1, rule->state_bytes)};
    assert_non_null(rig.state);
    rule->start(&rig.options, rig.state, NULL, 0);
    return rig;
}

static struct wr_pace_bounds want(const struct peer_fixture *rig, int64_t now)
{
    return rig->rule->want(&rig->options, rig->state, now);
}

static void send(struct peer_fixture *rig, int64_t now, uint32_t in_flight)
{
    struct wr_pace_start start = {.seq = ++rig->seq, .in_flight = in_flight};
    rig->rule->sent(&rig->options, rig->state, &start, now);
}

static void tell(struct peer_fixture *rig, int64_t now, int status, int64_t latency_ns, uint32_t in_flight)
{
    struct wr_pace_response answer = {
        .kind = wr_pace_response_kind(status),
        .status = status,
        .seq = rig->seq,
        .in_flight_then = in_flight,
        .in_flight = in_flight - 1,
        .sent_at = now - latency_ns,
        .latency_ns = latency_ns,
        .retry_after_ns = -1,
        .quota_limit = -1,
        .quota_remaining = -1,
        .quota_reset_ns = -1,
    };
    rig->rule->tell(&rig->options, rig->state, &answer, now);
}

static void assert_within(double is, double should, double slack)
{
    if (!(fabs(is - should) <= slack))
        fail_msg("%.9g, and not %.9g", is, should);
}

static void autothrottle_delay_moves_halfway_to_latency_over_n(void **state)
{
    (void)state;
    const struct {
        int status;
        int64_t latency_ms;
        double delay_s;
    } rows[] = {
        /* errors never shorten the delay */
        {200, 800, 2.55},
        {200, 800, 1.325},
        {500, 80, 1.325},
        /* some lengthen it; at most a minute */
        {429, 1600, 1.325},
        {404, 24000, 3.0},
        {200, 800000, 60.0},
    };
    struct peer_fixture rig = rig_of(&wr_peer_autothrottle_8);
    assert_int_equal(want(&rig, 0).cap, 8);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tell(&rig, 0, rows[i].status, rows[i].latency_ms * MS, 1);
        assert_within(1 / want(&rig, 0).rate, rows[i].delay_s, 1e-9);
    }
    double least = INFINITY, most = 0;
    for (int i = 0; i < 1000; i++) {
        send(&rig, i * S, 1);
        double waited = (double)(want(&rig, 0).earliest_at - i * S) / (60 * (double)S);
        least = fmin(least, waited);
        most = fmax(most, waited);
    }
    assert_true(least >= 0.5 && least < 0.51 && most <= 1.5 && most > 1.49);
    free(rig.state);
}

static void cubic_is_free_until_the_first_drop_and_then_follows_its_curve(void **state)
{
    (void)state;
    struct peer_fixture rig = rig_of(&wr_peer_cubic);
    int64_t now = 0;
    for (int i = 0; i < 200; i++) { /* ten requests a second */
        now += 100 * MS;
        tell(&rig, now, 200, 50 * MS, 1);
        assert_true(isinf(want(&rig, now).rate));
    }
    tell(&rig, now, 429, 50 * MS, 1);
    assert_within(want(&rig, now).rate, 7, 0.1);
    int64_t dropped_at = now;
    double window_s = cbrt(10 * 0.3 / 0.4);
    for (int i = 0; i < 30; i++) {
        now += 100 * MS;
        send(&rig, now, 1);
        tell(&rig, now, 200, 50 * MS, 1);
        double t = (double)(now - dropped_at) / (double)S - window_s;
        assert_within(want(&rig, now).rate, 0.4 * t * t * t + 10, 0.25);
    }
    for (int i = 0; i < 100; i++)
        tell(&rig, now, 503, 50 * MS, 1);
    assert_within(want(&rig, now).rate, 0.5, 1e-9);
    free(rig.state);
}

static void vegas_limit_follows_the_estimated_queue(void **state)
{
    (void)state;
    const struct {
        int status;
        int64_t latency_ms;
        uint32_t in_flight;
        uint32_t limit;
    } rows[] = {
        {200, 100, 20, 20},                     /* the shortest latency */
        {200, 105, 20, 26},                     /* a queue of one: six up */
        {200, 108, 26, 27},                     /* a queue of two: one up */
        {200, 120, 27, 27},                     /* a queue of five: unchanged */
        {200, 200, 27, 26},                     /* a queue of fourteen: one down */
        {200, 200, 10, 26},                     /* limit not used: unchanged */
        {429, 52, 26, 25},                      /* dropped; its latency is ignored */
        {200, 104, 25, 31}, {403, 104, 31, 32}, /* 403 is not a drop */
    };
    struct peer_fixture rig = rig_of(&wr_peer_vegas);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tell(&rig, 0, rows[i].status, rows[i].latency_ms * MS, rows[i].in_flight);
        assert_int_equal(want(&rig, 0).cap, rows[i].limit);
    }
    free(rig.state);
}

static void gradient2_steps_once_a_second_by_the_mean(void **state)
{
    (void)state;
    struct peer_fixture rig = rig_of(&wr_peer_gradient2);
    int64_t now = 0;
    for (int i = 0; i < 20; i++) /* 4 in flight, 100 ms */
        tell(&rig, now += 50 * MS, 200, 100 * MS, 4);
    assert_int_equal(want(&rig, now).cap, 4);
    for (int i = 0; i < 2 * 20 + 5; i++)
        tell(&rig, now += 50 * MS, 200, 100 * MS, 4);
    assert_int_equal(want(&rig, now).cap, 6); /* 4, 4.8, 5.6, 6.4 */
    for (int i = 0; i < 60; i++)
        tell(&rig, now += 50 * MS, 200, 1000 * MS, 6);
    assert_true(want(&rig, now).cap < 8);
    for (int i = 0; i < 25; i++) /* ends the second that had 6 in flight */
        tell(&rig, now += 50 * MS, 200, 100 * MS, 1);
    uint32_t cap = want(&rig, now).cap;
    for (int i = 0; i < 100; i++)
        tell(&rig, now += 50 * MS, 200, 100 * MS, 1); /* limit not used: unchanged */
    assert_int_equal(want(&rig, now).cap, cap);
    free(rig.state);
}

static void envoy_measures_with_three_in_flight_and_then_steps(void **state)
{
    (void)state;
    struct peer_fixture rig = rig_of(&wr_peer_envoy);
    int64_t now = 0;
    for (int i = 0; i < 49; i++) {
        tell(&rig, now += 10 * MS, 200, (i % 2 == 0 ? 100 : 110) * MS, 3);
        assert_int_equal(want(&rig, now).cap, 3);
    }
    tell(&rig, now += 10 * MS, 200, 100 * MS, 3); /* the ideal latency is 100 ms */
    tell(&rig, now += 100 * MS, 200, 125 * MS, 3);
    assert_int_equal(want(&rig, now).cap, 4); /* 3 + sqrt(3) */
    tell(&rig, now += 100 * MS, 200, 62 * MS, 3);
    assert_int_equal(want(&rig, now).cap, 12); /* doubled, plus the square root */
    tell(&rig, now += 100 * MS, 200, 1000 * MS, 3);
    assert_int_equal(want(&rig, now).cap, 8); /* half, plus the square root */
    for (int i = 0; i < 700; i++)
        tell(&rig, now += 100 * MS, 200, 125 * MS, 3);
    /* measuring again, or grown */
    assert_true(want(&rig, now).cap == 3 || want(&rig, now).cap > 100);
    free(rig.state);
}

static void bbr_finds_and_keeps_the_bandwidth(void **state)
{
    (void)state;
    struct peer_fixture rig = rig_of(&wr_peer_bbr);
    int64_t sent_at[64];
    uint32_t first = 0, count = 0, ok = 0;
    int64_t now = 0, free_at = 0;
    while (now < 60 * S) { /* serves 20 a second one by one; round trip 100 ms */
        int64_t answer_at = count > 0 ? sent_at[first % 64] : INT64_MAX;
        struct wr_pace_bounds w = want(&rig, now);
        int64_t start_at = count < w.cap && count < 64 ? (w.earliest_at > now ? w.earliest_at : now) : INT64_MAX;
        now = start_at < answer_at ? start_at : answer_at;
        if (answer_at <= start_at) {
            rig.seq = first + 1;
            tell(&rig, now, 200, 150 * MS, count--);
            first++;
            ok += now > 30 * S;
            continue;
        }
        free_at = (free_at > now ? free_at : now) + 50 * MS;
        sent_at[(first + count++) % 64] = free_at + 100 * MS;
        rig.seq = first + count - 1;
        send(&rig, now, count);
    }
    assert_in_range(ok, 540, 601);
    free(rig.state);
}

static void pacers_of_other_programs_have_names_and_take_no_options(void **state)
{
    (void)state;
    const char *const names[] = {"autothrottle-1", "autothrottle-8", "cubic", "vegas", "gradient2", "envoy", "bbr"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct wr_sim_pacer pacer;
        char text[64];
        assert_int_equal(wr_sim_pacer_named(names[i], &pacer), 0);
        assert_non_null(pacer.strategy);
        assert_string_equal(pacer.strategy->name, names[i]);
        snprintf(text, sizeof text, "%s:burst=5", names[i]);
        assert_int_equal(wr_sim_pacer_named(text, &pacer), WEIR_E_INVAL);
    }
}

WEIR_TESTS(test(autothrottle_delay_moves_halfway_to_latency_over_n),
           test(cubic_is_free_until_the_first_drop_and_then_follows_its_curve),
           test(vegas_limit_follows_the_estimated_queue), test(gradient2_steps_once_a_second_by_the_mean),
           test(envoy_measures_with_three_in_flight_and_then_steps), test(bbr_finds_and_keeps_the_bandwidth),
           test(pacers_of_other_programs_have_names_and_take_no_options))
