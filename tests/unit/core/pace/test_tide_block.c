/* SPDX-License-Identifier: MIT */
/* tide when nothing is accepted, and tide's number of requests in flight. */
#include "tide_rig.h"

/* Rejects until `until`; returns the time of the first success, and how many probes failed. */
static int64_t block(struct rig *rig, int64_t now, int64_t until, int status, int *ret_failed)
{
    int failed = 0;
    for (;;) {
        bool over = now + rig_wait(rig, now) >= until;
        now = answer(rig, now, over ? 200 : status);
        if (over) {
            *ret_failed = failed;
            return now;
        }
        failed++;
    }
}

static void three_rejections_in_a_row_are_a_block_of_single_probes(void **state)
{
    (void)state;
    struct rig rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 30);
    for (int i = 0; i < 3; i++)
        now = answer(&rig, now, 429);
    assert_mode(&rig, "blocked");
    assert_int_equal(rig_want(&rig, now).cap, 1);
    assert_true(rig_wait(&rig, now) >= WEIR_SECOND);
    rig_release(&rig);
}

static void pauses_between_probes_grow(void **state)
{
    (void)state;
    struct rig rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 30), longest = 0, first = now;
    for (int i = 0; i < 10; i++) {
        int64_t wait = rig_wait(&rig, now);
        longest = wait > longest ? wait : longest;
        now = answer(&rig, now, 429);
    }
    assert_true(longest > 10 * WEIR_SECOND);
    assert_true(now - first > 40 * WEIR_SECOND);
    rig_release(&rig);
}

static void block_without_end_is_probed_once_a_day(void **state)
{
    (void)state;
    struct rig rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 30), wait = 0;
    for (int i = 0; i < 300; i++) {
        wait = rig_wait(&rig, now);
        assert_true(wait <= WEIR_DAY);
        now = answer(&rig, now, 429);
    }
    assert_true(wait > WEIR_DAY - WEIR_SECOND);
    rig_release(&rig);
}

static void long_retry_after_is_a_block_at_once(void **state)
{
    (void)state;
    struct rig rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 30);
    now += rig_wait(&rig, now);
    rig_send(&rig, now);
    now += LATENCY;
    rig_tell(&rig, now, 429, LATENCY, 30 * WEIR_SECOND);
    assert_mode(&rig, "blocked");
    assert_int_equal(rig_wait(&rig, now), 30 * WEIR_SECOND);
    rig_release(&rig);
}

/* Its end is noticed within a tenth of its length, with at most 10 probes in the first 40 s. */
static void outage_is_probed_gently_and_left_at_the_old_rate(void **state)
{
    (void)state;
    const int64_t lengths[] = {60 * WEIR_SECOND, 200 * WEIR_SECOND, 600 * WEIR_SECOND};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct rig rig = tide(NULL);
        int64_t now = succeed(&rig, T0, 60), until = now + lengths[i];
        double rate = rate_at(&rig, now);
        int failed;
        now = block(&rig, now, until, 503, &failed);
        assert_true(now - until <= lengths[i] / 10 + 5 * WEIR_SECOND);
        assert_true(failed <= (int)(10 + 11 * log((double)lengths[i] / 40e9) + 6));
        assert_near(rate_at(&rig, now), rate, 0.2 * rate);
        assert_mode(&rig, "start");
        rig_release(&rig);
    }
}

static void ban_is_held_below_after_its_second_time(void **state)
{
    (void)state;
    struct rig rig = tide(NULL);
    int64_t now = T0, sent[20] = {0}, banned_until = 0;
    int n = 0, bans = 0, failed = 0; /* 20 in 10 s, else 60 s of 403 */
    while (now < T0 + 30 * WEIR_MINUTE) {
        int64_t at = now + rig_wait(&rig, now);
        bool banned = at < banned_until;
        if (!banned && n >= 20 && sent[n % 20] > at - 10 * WEIR_SECOND) {
            banned = true;
            banned_until = at + WEIR_MINUTE;
            bans++;
        }
        if (!banned)
            sent[n++ % 20] = at;
        failed += banned;
        now = answer(&rig, now, banned ? 403 : 200);
    }
    assert_mode(&rig, "hold");
    assert_true(bans <= 2);
    assert_true(failed <= 20);
    assert_true(n > 0.85 * 2 * 1800);
    assert_true(rig_memory(&rig, now).traits & WR_TIDE_BANS);
    rig_release(&rig);
}

static void warm_start_after_a_ban_does_not_try_the_limit(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 2, .traits = WR_TIDE_BANS, .block_ns = WEIR_MINUTE};
    struct rig rig = tide(&memory);
    assert_mode(&rig, "hold");
    int64_t now = succeed(&rig, T0, 3000);
    assert_near(rate_at(&rig, now), 2, 1e-6);
    rig_release(&rig);
}

/* 60 a minute, whenever they come. */
static void quota_per_window_is_found(void **state)
{
    (void)state;
    struct rig rig = tide(NULL);
    int64_t now = T0, window = -1;
    int used = 0, ok = 0, rejected = 0;
    while (now < T0 + 30 * WEIR_MINUTE) {
        int64_t at = now + rig_wait(&rig, now), w = (at - T0 + 22 * WEIR_SECOND) / WEIR_MINUTE;
        used = w == window ? used : 0;
        window = w;
        bool goes = used < 60;
        used += goes;
        ok += goes;
        rejected += !goes;
        now = answer(&rig, now, goes ? 200 : 429);
    }
    assert_true(ok > 0.95 * 1800);
    assert_true(rejected <= 25);
    rig_release(&rig);
}

/* ---- requests in flight --------------------------------------------------------------------------------- */

/* A host that answers after `latency` for each of so many in flight. Keeps the cap full for `count` answers. */
static int64_t crowd(struct rig *rig, int64_t now, int count, int64_t base, double servers, uint32_t limit)
{
    while (count-- > 0) {
        uint32_t cap = rig_want(rig, now).cap;
        while (rig->in_flight < cap && rig->in_flight < 200) {
            now += rig_wait(rig, now);
            rig_send(rig, now);
        }
        uint32_t n = rig->in_flight;
        int64_t latency = (int64_t)((double)base * fmax(1, n / servers));
        now += latency / n;
        bool rejected = n > limit;
        rig_tell(rig, now, rejected ? 429 : 200, latency, -1);
    }
    return now;
}

static void cap_grows_while_answers_do_not_slow_down(void **state)
{
    (void)state;
    struct rig rig = tide(NULL);
    assert_int_equal(rig_want(&rig, T0).cap, 4);
    int64_t now = crowd(&rig, T0, 3000, 200 * MS, 1e9, 1000);
    assert_true(rig_want(&rig, now).cap > 50);
    rig_release(&rig);
}

static void cap_stops_where_a_queue_begins(void **state)
{
    (void)state;
    struct rig rig = tide(NULL);
    int64_t now = crowd(&rig, T0, 20000, 200 * MS, 8, 1000);
    uint32_t cap = rig_want(&rig, now).cap;
    assert_true(cap >= 8 && cap <= 30);
    rig_release(&rig);
}

/* Latencies of a heavy tail look like a queue; a smaller cap only lowers the rate, so it is undone. */
static void cap_test_is_undone_for_heavy_tails(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 1000, .cap = 40, .traits = WR_TIDE_FREE | (uint32_t)(24 * 16) << 16};
    struct rig rig = tide(&memory); /* 2^24 ns: 17 ms was the unloaded latency, and now it is 200 ms */
    int64_t now = crowd(&rig, T0, 40000, 200 * MS, 1e9, 1000);
    assert_true(rig_want(&rig, now).cap >= 40);
    rig_release(&rig);
}

static void limit_of_concurrency_is_found_and_kept(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 200, .cap = 6, .traits = WR_TIDE_CONCURRENCY};
    struct rig rig = tide(&memory);
    int64_t now = crowd(&rig, T0, 20, 200 * MS, 1e9, 4);
    assert_int_equal(rig_want(&rig, now).cap, 4);
    now = crowd(&rig, now, 300, 200 * MS, 1e9, 4);
    assert_int_equal(rig_want(&rig, now).cap, 4);
    rig_release(&rig);
}

static void limit_of_concurrency_that_rose_is_found_however_long_it_was_kept(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 200, .cap = 4, .traits = WR_TIDE_CONCURRENCY};
    struct rig rig = tide(&memory);
    int64_t now = crowd(&rig, T0, 200000, 200 * MS, 1e9, 4);
    assert_int_equal(rig_want(&rig, now).cap, 4);
    now = crowd(&rig, now, 60000, 200 * MS, 1e9, 10);
    assert_int_equal(rig_want(&rig, now).cap, 10);
    rig_release(&rig);
}

WEIR_TESTS(test(three_rejections_in_a_row_are_a_block_of_single_probes), test(pauses_between_probes_grow),
           test(block_without_end_is_probed_once_a_day), test(long_retry_after_is_a_block_at_once),
           test(outage_is_probed_gently_and_left_at_the_old_rate), test(ban_is_held_below_after_its_second_time),
           test(warm_start_after_a_ban_does_not_try_the_limit), test(quota_per_window_is_found),
           test(cap_grows_while_answers_do_not_slow_down), test(cap_stops_where_a_queue_begins),
           test(cap_test_is_undone_for_heavy_tails), test(limit_of_concurrency_is_found_and_kept),
           test(limit_of_concurrency_that_rose_is_found_however_long_it_was_kept))
