/* SPDX-License-Identifier: MIT */
/* test_tide_block.c - tests tide at hosts that accept nothing, and its limit on requests in
 * flight. */
#include "tide_rig.h"

/* Rejects every request until `until`. Returns the time of the first success, and the number of
 * failed probes. */
static int64_t block(struct strategy_fixture *rig, int64_t now, int64_t until, int status, int *ret_failed)
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
    struct strategy_fixture rig = tide(NULL);
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
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 30), longest = 0, first = now;
    for (int i = 0; i < 13; i++) {
        int64_t wait = rig_wait(&rig, now);
        longest = wait > longest ? wait : longest;
        now = answer(&rig, now, 429);
    }
    assert_true(longest > 10 * WEIR_SECOND);
    assert_true(now - first > 40 * WEIR_SECOND);
    rig_release(&rig);
}

static void endless_block_is_probed_once_a_day(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
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
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 30);
    now += rig_wait(&rig, now);
    rig_send(&rig, now);
    now += LATENCY;
    rig_tell(&rig, now, 429, LATENCY, 30 * WEIR_SECOND);
    assert_mode(&rig, "blocked");
    assert_int_equal(rig_wait(&rig, now), 30 * WEIR_SECOND);
    rig_release(&rig);
}

/* The end of an outage is noticed within a tenth of its length, with at most 10 probes in its first
 * 40 s. */
static void outage_gets_few_probes_and_ends_at_the_old_rate(void **state)
{
    (void)state;
    const int64_t lengths[] = {60 * WEIR_SECOND, 200 * WEIR_SECOND, 600 * WEIR_SECOND};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct strategy_fixture rig = tide(NULL);
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

static void tide_stays_below_the_limit_after_a_second_ban(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = T0, sent[20] = {0}, banned_until = 0;
    int n = 0, bans = 0, failed = 0; /* the host accepts 20 in 10 s, and bans for 60 s with 403 */
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
    struct strategy_fixture rig = tide(&memory);
    assert_mode(&rig, "hold");
    int64_t now = succeed(&rig, T0, 3000);
    assert_near(rate_at(&rig, now), 2, 1e-6);
    rig_release(&rig);
}

/* A window of 60 requests a minute, whose start the client does not know. */
static void tide_finds_a_quota_per_window(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
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

/* A16: a limit of 60 in 20 s, beyond which the host answers 500 as if it were down. */
static void recurring_server_errors_are_a_limit_and_no_outage(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = T0, window = -1;
    int used = 0, ok = 0, rejected = 0;
    while (now < T0 + 10 * WEIR_MINUTE) {
        int64_t at = now + rig_wait(&rig, now), w = (at - T0 + 7 * WEIR_SECOND) / (20 * WEIR_SECOND);
        used = w == window ? used : 0;
        window = w;
        bool goes = used < 60;
        used += goes;
        ok += goes;
        rejected += !goes;
        now = answer(&rig, now, goes ? 200 : 500);
    }
    assert_true(ok > 0.95 * 1800);
    assert_true(rejected <= 50);
    rig_release(&rig);
}

/* ---- requests in flight ---------------------------------------------------------------------- */

/* Answers `count` requests of a client that keeps its cap full. The latency is `base`, and grows
 * with the requests in flight above `servers`. More than `limit` in flight are rejected. */
static int64_t crowd(struct strategy_fixture *rig, int64_t now, int count, int64_t base, double servers, uint32_t limit)
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
    struct strategy_fixture rig = tide(NULL);
    assert_int_equal(rig_want(&rig, T0).cap, 4);
    int64_t now = crowd(&rig, T0, 3000, 200 * MS, 1e9, 1000);
    assert_true(rig_want(&rig, now).cap > 50);
    rig_release(&rig);
}

static void cap_stops_where_a_queue_begins(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int64_t now = crowd(&rig, T0, 20000, 200 * MS, 8, 1000);
    uint32_t cap = rig_want(&rig, now).cap;
    assert_true(cap >= 8 && cap <= 30);
    rig_release(&rig);
}

/* A heavy tail of latencies looks like a queue. A smaller cap then only lowers the rate, so it is
 * undone. */
static void smaller_cap_is_undone_if_latencies_have_a_heavy_tail(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 1000, .cap = 40, .traits = WR_TIDE_FREE | (uint32_t)(24 * 16) << 16};
    /* 2^24 ns = 17 ms was the latency without load; now it is 200 ms */
    struct strategy_fixture rig = tide(&memory);
    int64_t now = crowd(&rig, T0, 40000, 200 * MS, 1e9, 1000);
    assert_true(rig_want(&rig, now).cap >= 40);
    rig_release(&rig);
}

static void concurrency_limit_is_found_and_kept(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 200, .cap = 6, .traits = WR_TIDE_CONCURRENCY};
    struct strategy_fixture rig = tide(&memory);
    int64_t now = crowd(&rig, T0, 20, 200 * MS, 1e9, 4);
    assert_int_equal(rig_want(&rig, now).cap, 4);
    now = crowd(&rig, now, 300, 200 * MS, 1e9, 4);
    assert_int_equal(rig_want(&rig, now).cap, 4);
    rig_release(&rig);
}

static void concurrency_limit_that_rose_is_found_after_any_time(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 200, .cap = 4, .traits = WR_TIDE_CONCURRENCY};
    struct strategy_fixture rig = tide(&memory);
    int64_t now = crowd(&rig, T0, 200000, 200 * MS, 1e9, 4);
    assert_int_equal(rig_want(&rig, now).cap, 4);
    now = crowd(&rig, now, 60000, 200 * MS, 1e9, 10);
    assert_int_equal(rig_want(&rig, now).cap, 10);
    rig_release(&rig);
}

/* A15: a host that refuses single requests has no concurrency limit. */
static void host_that_refuses_even_single_requests_gets_few(void **state)
{
    (void)state;
    weir_pace_memory memory = {.rate = 40, .cap = 1, .traits = WR_TIDE_CONCURRENCY};
    struct strategy_fixture rig = tide(&memory);
    int64_t now = T0;
    int sent = 0;
    for (; now < T0 + 600 * WEIR_SECOND; sent++)
        now = answer(&rig, now, 429);
    assert_true(sent < 60);
    rig_release(&rig);
}

/* A15, N6-6: mod_qos and HAProxy's tarpit refuse with 500, silent-drop without an answer. */
static void refusals_without_429_count_if_they_come_in_a_row(void **state)
{
    (void)state;
    static const int statuses[] = {500, 502, 503, 504, 0};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct strategy_fixture rig = tide(NULL);
        int64_t now = succeed(&rig, T0, 30);
        for (int n = 0; n < 6; n++)
            now = answer(&rig, now, statuses[i]);
        assert_mode(&rig, "blocked");
        rig_release(&rig);
    }
}

/* Runs against a quota of 20 in 4 s, whose window starts with the first request. A request above it
 * is refused, and so are all others for `block_ns`, or until the window ends if that is 0. Returns
 * how many were accepted in the last minute of `seconds`. */
static int live_with_quota(struct strategy_fixture *rig, int64_t block_ns, int64_t seconds)
{
    int64_t now = T0, window_at = T0 - WEIR_HOUR, blocked_until = 0;
    int used = 0, late = 0;
    while (now < T0 + seconds * WEIR_SECOND) {
        int64_t at = now + rig_wait(rig, now);
        if (at >= window_at + 4 * WEIR_SECOND && at >= blocked_until) {
            window_at = at;
            used = 0;
        }
        bool goes = at >= blocked_until && used < 20;
        if (!goes && block_ns > 0 && at >= blocked_until) {
            blocked_until = at + block_ns;
            window_at = 0;
        }
        used += goes;
        late += goes && at >= T0 + (seconds - 60) * WEIR_SECOND;
        now = answer(rig, now, goes ? 200 : 429);
    }
    return late;
}

/* N6-6: the quota allows 300 a minute. */
static void short_windows_and_short_bans_are_distinguished(void **state)
{
    (void)state;
    struct strategy_fixture rig = tide(NULL);
    int windows = live_with_quota(&rig, 0, 240);
    rig_release(&rig);
    rig = tide(NULL);
    int bans = live_with_quota(&rig, 10 * WEIR_SECOND, 240);
    assert_true(rig_memory(&rig, T0 + WEIR_HOUR).traits & WR_TIDE_BANS);
    rig_release(&rig);
    print_message("windows %d, bans %d of 300\n", windows, bans);
    assert_true(windows >= 270 && windows <= 301);
    assert_true(bans >= 180 && bans <= 301);
}

/* ---- the limit that tide believes in --------------------------------------------------------- */

static const char *belief(const struct strategy_fixture *rig, int64_t now, char text[160])
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, text, 160);
    const char *kind = rig->strategy->describe_limit(rig->state, now, &buf);
    assert_int_equal(buf.error, 0);
    return kind;
}

static void tide_describes_a_bucket_with_its_rate_and_its_burst(void **state)
{
    (void)state;
    char text[160];
    int rejections = 0;
    struct strategy_fixture rig = tide(NULL);
    struct bucket bucket = {.rate = 10, .burst = 20, .tokens = 20, .at = T0};
    int64_t now = T0;
    assert_string_equal(belief(&rig, now, text), "none");
    assert_string_equal(text, "nothing is refused at 1 a second");
    while (rejections < 12)
        now = step_bucket(&rig, &bucket, now, &rejections);
    while (strcmp(rig.strategy->mode(rig.state), "cruise") != 0)
        now = step_bucket(&rig, &bucket, now, &rejections);
    assert_string_equal(belief(&rig, now, text), "rate");
    assert_near(strtod(text, NULL), 10, 0.5);
    assert_non_null(strstr(text, " a second"));
    assert_non_null(strstr(text, "; last refused "));
    rig_release(&rig);
}

static void tide_describes_a_concurrency_limit_with_its_evidence(void **state)
{
    (void)state;
    char text[160];
    struct strategy_fixture rig = tide(NULL);
    int64_t now = crowd(&rig, T0, 6000, 200 * MS, 1e9, 6);
    assert_string_equal(belief(&rig, now, text), "concurrency");
    assert_memory_equal(text, "at most 6 in flight: of ", 24);
    assert_non_null(strstr(text, " accepted since a refusal, "));
    rig_release(&rig);
}

static void tide_reports_that_nothing_is_accepted(void **state)
{
    (void)state;
    char text[160];
    struct strategy_fixture rig = tide(NULL);
    int64_t now = succeed(&rig, T0, 30), began = 0;
    for (int i = 0; i < 4; i++) {
        now = answer(&rig, now, 503);
        began = i == 0 ? now - LATENCY : began;
    }
    assert_string_equal(belief(&rig, began + 12 * WEIR_SECOND, text), "blocked");
    assert_string_equal(text, "nothing was accepted for 12 s; the host may be down");
    rig_release(&rig);
}

static void tide_describes_a_ban_with_its_length_and_the_held_rate(void **state)
{
    (void)state;
    char text[160];
    weir_pace_memory memory = {.rate = 2, .traits = WR_TIDE_BANS, .block_ns = WEIR_MINUTE};
    struct strategy_fixture rig = tide(&memory);
    assert_string_equal(belief(&rig, T0, text), "ban");
    assert_string_equal(text, "a ban of 60 s: met 2 times; held below it at 2 a second; known from an earlier run");
    rig_release(&rig);
}

WEIR_TESTS(test(host_that_refuses_even_single_requests_gets_few),
           test(refusals_without_429_count_if_they_come_in_a_row), test(short_windows_and_short_bans_are_distinguished),
           test(three_rejections_in_a_row_are_a_block_of_single_probes), test(pauses_between_probes_grow),
           test(endless_block_is_probed_once_a_day), test(long_retry_after_is_a_block_at_once),
           test(outage_gets_few_probes_and_ends_at_the_old_rate), test(tide_stays_below_the_limit_after_a_second_ban),
           test(warm_start_after_a_ban_does_not_try_the_limit), test(tide_finds_a_quota_per_window),
           test(recurring_server_errors_are_a_limit_and_no_outage), test(cap_grows_while_answers_do_not_slow_down),
           test(cap_stops_where_a_queue_begins), test(smaller_cap_is_undone_if_latencies_have_a_heavy_tail),
           test(concurrency_limit_is_found_and_kept), test(concurrency_limit_that_rose_is_found_after_any_time),
           test(tide_describes_a_bucket_with_its_rate_and_its_burst),
           test(tide_describes_a_concurrency_limit_with_its_evidence), test(tide_reports_that_nothing_is_accepted),
           test(tide_describes_a_ban_with_its_length_and_the_held_rate))
