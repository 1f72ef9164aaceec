/* SPDX-License-Identifier: MIT */
/* test_tide_limits.c - tests tide against simple models of limits: windows, bans and backlogs. */
#include "tide_rig.h"

#define LOG 4096

/* A host that accepts `quota` requests in `window_s`. A request above it is refused, or causes a
 * ban of `ban_s`. */
struct host {
    int quota, status;
    double window_s, ban_s;
    bool slides, by_clock, prolongs;
    int64_t accepted[LOG]; /* times of accepted requests */
    int count, used, bans;
    int64_t window_at, banned_until;
};

static int accepted_in(const struct host *host, double span_s, int64_t now)
{
    int count = 0;
    for (int i = host->count - 1; i >= 0 && i > host->count - LOG; i--, count++)
        if (host->accepted[i % LOG] <= now - (int64_t)(span_s * 1e9))
            break;
    return count;
}

static bool has_room(struct host *host, int64_t at)
{
    int64_t window_ns = (int64_t)(host->window_s * 1e9);
    if (host->slides)
        return accepted_in(host, host->window_s, at) < host->quota;
    if (at >= host->window_at + window_ns) {
        host->window_at = host->by_clock ? at - (at + window_ns / 3) % window_ns : at;
        host->used = 0;
    }
    return host->used++ < host->quota;
}

static int status_of(struct host *host, int64_t at)
{
    int64_t ban_ns = (int64_t)(host->ban_s * 1e9);
    if (at < host->banned_until) {
        if (host->prolongs)
            host->banned_until = at + ban_ns;
        return host->status;
    }
    if (!has_room(host, at)) {
        host->bans += ban_ns > 0;
        host->banned_until = at + ban_ns;
        if (ban_ns > 0)
            host->window_at = -WEIR_HOUR; /* counts anew after the ban */
        return host->status;
    }
    host->accepted[host->count++ % LOG] = at;
    return 200;
}

static void tell(struct strategy_fixture *rig, const struct host *host, struct wr_pace_response answer, int64_t now)
{
    answer.kind = wr_pace_response_kind(answer.status);
    answer.seq = rig->seq;
    answer.sent_at = now - answer.latency_ns;
    answer.retry_after_ns = answer.quota_limit = answer.quota_remaining = answer.quota_reset_ns = -1;
    for (int i = 0; i < 3 && host != NULL; i++)
        answer.good_rate[i] = (float)(accepted_in(host, 10 * (i + 1), now) / (10.0 * (i + 1)));
    rig->strategy->tell(&rig->options, rig->state, &answer, now);
}

/* Sends requests for `seconds`. Returns the rate of accepted requests in the second half. */
static double rate_of(struct strategy_fixture *rig, struct host *host, double seconds)
{
    int64_t now = T0, until = T0 + (int64_t)(seconds * 1e9), half = T0 + (int64_t)(seconds * 5e8);
    int before = -1;
    host->window_at = host->banned_until = -WEIR_HOUR;
    while (now < until) {
        now += rig_wait(rig, now);
        if (before < 0 && now >= half)
            before = host->count;
        rig_send(rig, now);
        rig->in_flight--;
        int status = status_of(host, now);
        now += LATENCY;
        tell(rig, host, (struct wr_pace_response){.status = status, .in_flight_then = 1, .latency_ns = LATENCY}, now);
    }
    return (host->count - before) / (seconds / 2);
}

static void requests_accepted_in_the_first_window_set_the_rate_of_the_next(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    struct host host = {.quota = 50, .window_s = 10, .slides = true, .status = 429};
    assert_true(rate_of(&rig, &host, 120) > 0.93 * 5);
    rig_release(&rig);
}

static void window_of_503s_is_found_within_seconds(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    struct host host = {.quota = 30, .window_s = 5, .status = 503};
    assert_true(rate_of(&rig, &host, 120) > 0.85 * 6);
    rig_release(&rig);
}

static void limit_below_two_bans_by_403_is_found(void **state)
{
    (void)state;
    struct host hosts[] = {
        {.quota = 20, .window_s = 1, .by_clock = true, .ban_s = 10, .prolongs = true, .status = 403},
        {.quota = 80, .window_s = 10, .ban_s = 20, .status = 403},
    };
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct strategy_fixture rig = tide(NULL);
        double rate = rate_of(&rig, &hosts[i], 240);
        assert_int_equal(hosts[i].bans, 2);
        assert_true(rate > 0.75 * hosts[i].quota / hosts[i].window_s);
        rig_release(&rig);
    }
}

static void quota_found_by_a_test_is_used_with_at_most_one_more_ban(void **state)
{
    (void)state;
    struct host hosts[] = {
        {.quota = 20, .window_s = 2, .ban_s = 10, .status = 429},
        {.quota = 60, .window_s = 10, .ban_s = 20, .status = 429},
    };
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct strategy_fixture rig = tide(NULL);
        double rate = rate_of(&rig, &hosts[i], 240);
        assert_true(hosts[i].bans <= 3);
        assert_true(rate > 0.93 * hosts[i].quota / hosts[i].window_s);
        rig_release(&rig);
    }
}

static void end_of_a_window_during_hold_is_no_ban(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    struct host host = {.quota = 60, .window_s = 10, .status = 429};
    assert_true(rate_of(&rig, &host, 240) > 0.93 * 6);
    assert_false(rig_memory(&rig, T0 + WEIR_HOUR).traits & WR_TIDE_BANS);
    rig_release(&rig);
}

static void probes_after_a_403_outlast_a_ban_that_each_one_prolongs(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 30);
    for (int i = 0; i < 3; i++)
        now = answer(&rig, now, 403);
    const int64_t least[] = {10, 30, 60, 60, 120};
    for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
        assert_true(rig_wait(&rig, now) > least[i] * WEIR_SECOND);
        now = answer(&rig, now, 403);
    }
    rig_release(&rig);
}

static void single_5xx_do_not_lower_the_held_rate(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 2, .traits = WR_TIDE_BANS, .block_ns = WEIR_MINUTE};
    struct strategy_fixture rig = tide(&memory);
    int64_t now = T0;
    for (int i = 0; i < 10; i++) {
        now = succeed(&rig, now, 20);
        now = answer(&rig, now, i % 2 ? 500 : 0);
    }
    assert_near(rate_at(&rig, now), 2, 1e-6);
    rig_release(&rig);
}

static void hold_after_an_outage_ends_without_a_refusal(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 60);
    for (int i = 0; i < 6; i++)
        now = answer(&rig, now, 500);
    now = succeed(&rig, now, 1);
    assert_mode(&rig, "hold");
    now = succeed(&rig, now, 250);
    assert_mode(&rig, "start");
    rig_release(&rig);
}

/* Growth stops when more requests are in flight than four times what the rate needs, whatever the
 * latency. */
static void most_in_flight_follows_from_rate_and_latency(void **state)
{
    (void)state;
    const int64_t latencies[] = {40 * MS, 80 * MS, 160 * MS, 320 * MS};
    for (size_t i = 0; i < sizeof latencies / sizeof *latencies; i++) {
        weir_pace_memory memory = {.rate = 20, .cap = 1000, .traits = WR_TIDE_BANS, .block_ns = WEIR_MINUTE};
        struct strategy_fixture rig = tide(&memory);
        int64_t now = T0;
        for (int n = 0; n < 5000; n++) {
            now += rig_wait(&rig, now);
            rig_send(&rig, now);
            rig_tell(&rig, now + latencies[i], 200, latencies[i], -1);
        }
        double needed = rate_at(&rig, now) * (double)latencies[i] / 1e9;
        assert_near(rig_want(&rig, now).cap, 3 + 4 * needed, 1 + 0.4 * needed);
        rig_release(&rig);
    }
}

WEIR_TESTS(test(requests_accepted_in_the_first_window_set_the_rate_of_the_next),
           test(window_of_503s_is_found_within_seconds), test(limit_below_two_bans_by_403_is_found),
           test(quota_found_by_a_test_is_used_with_at_most_one_more_ban), test(end_of_a_window_during_hold_is_no_ban),
           test(probes_after_a_403_outlast_a_ban_that_each_one_prolongs), test(single_5xx_do_not_lower_the_held_rate),
           test(hold_after_an_outage_ends_without_a_refusal), test(most_in_flight_follows_from_rate_and_latency))
