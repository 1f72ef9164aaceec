/* SPDX-License-Identifier: MIT */
/* test_report_parts.c - the rate history of a run: requests of each host per step, in a limited
 * number of steps. */
#include "lib/test.h"

#include "crawl/engine/rate_history.h"

static struct wr_rate_history course;

/* Records the host once a second, from second `from` to `to`, with `per_step` requests in each
 * second. */
static void go_on(const char *key, int from, int to, uint64_t per_step)
{
    for (int second = from + 1; second <= to; second++) {
        if (second * WEIR_SECOND < (course.points + 1) * course.step_ns)
            continue;
        wr_rate_history_advance(&course, second * WEIR_SECOND);
        wr_rate_history_note(&course, key, (uint64_t)second * per_step, true);
    }
}

static int64_t sum(const int64_t *starts, size_t count)
{
    int64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += starts[i] > 0 ? starts[i] : 0;
    return total;
}

static void rate_history_has_requests_of_each_step_and_the_unfinished_one(void **state)
{
    (void)state;
    int64_t starts[WR_RATE_HISTORY_POINTS];
    wr_rate_history_init(&course);
    go_on("a.example", 0, 3, 5);
    size_t count = wr_rate_history_read(&course, wr_span_of("a.example"), 17, 3500 * WEIR_MILLISECOND, starts);
    assert_int_equal(count, 4);
    assert_true(starts[0] == 5 && starts[1] == 5 && starts[2] == 5 && starts[3] == 2);
    assert_int_equal(wr_rate_history_read(&course, wr_span_of("b.example"), 17, 3500 * WEIR_MILLISECOND, starts), 0);
}

static void rate_history_of_a_short_run_has_one_step(void **state)
{
    (void)state;
    int64_t starts[WR_RATE_HISTORY_POINTS];
    wr_rate_history_init(&course);
    assert_int_equal(wr_rate_history_read(&course, wr_span_of("a.example"), 17, WEIR_SECOND / 2, starts), 1);
    assert_int_equal(starts[0], 17);
}

static void rate_history_merges_steps_and_loses_no_request(void **state)
{
    (void)state;
    static const int lengths[] = {59, 60, 61, 119, 120, 3599, 100000};
    int64_t starts[WR_RATE_HISTORY_POINTS];
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        int seconds = lengths[i];
        wr_rate_history_init(&course);
        go_on("a.example", 0, seconds, 3);
        size_t count = wr_rate_history_read(&course, wr_span_of("a.example"), (uint64_t)seconds * 3 + 1,
                                            seconds * WEIR_SECOND + WEIR_SECOND / 2, starts);
        assert_in_range(count, 1, WR_RATE_HISTORY_POINTS);
        assert_true(seconds < 60 || count > WR_RATE_HISTORY_POINTS / 2);
        assert_int_equal(sum(starts, count), seconds * 3 + 1);
        for (size_t n = 0; n + 1 < count; n++)
            assert_int_equal(starts[n], 3 * course.step_ns / WEIR_SECOND);
    }
}

static void rate_history_before_the_first_look_at_a_host_is_unknown(void **state)
{
    (void)state;
    int64_t starts[WR_RATE_HISTORY_POINTS];
    wr_rate_history_init(&course);
    wr_rate_history_advance(&course, 2 * WEIR_SECOND);
    wr_rate_history_note(&course, "late.example", 100, false);
    wr_rate_history_advance(&course, 3 * WEIR_SECOND);
    wr_rate_history_note(&course, "late.example", 107, false);
    size_t count = wr_rate_history_read(&course, wr_span_of("late.example"), 150, 3 * WEIR_SECOND, starts);
    assert_int_equal(count, 4);
    assert_true(starts[0] == -1 && starts[1] == -1 && starts[2] == 7 && starts[3] == 0);
}

/* The host was evicted from memory, so its counter starts again at 0. */
static void rate_history_of_an_evicted_host_counts_from_zero(void **state)
{
    (void)state;
    int64_t starts[WR_RATE_HISTORY_POINTS];
    wr_rate_history_init(&course);
    go_on("a.example", 0, 2, 10);
    wr_rate_history_advance(&course, 3 * WEIR_SECOND);
    wr_rate_history_note(&course, "a.example", 4, true);
    assert_int_equal(wr_rate_history_read(&course, wr_span_of("a.example"), 30, 3 * WEIR_SECOND, starts), 4);
    assert_true(starts[1] == 10 && starts[2] == 4 && starts[3] == 0);
}

static void rate_history_keeps_the_hosts_with_most_requests(void **state)
{
    (void)state;
    char key[32];
    int64_t starts[WR_RATE_HISTORY_POINTS];
    wr_rate_history_init(&course);
    wr_rate_history_advance(&course, WEIR_SECOND);
    for (unsigned i = 0; i < 4 * WR_RATE_HISTORY_HOSTS; i++) {
        snprintf(key, sizeof key, "h%u.example", i);
        wr_rate_history_note(&course, key, i == 0 ? 1000 : 10, true);
    }
    wr_rate_history_note(&course, "busy.example", 500, true);
    assert_int_equal(course.count, WR_RATE_HISTORY_HOSTS);
    assert_int_equal(wr_rate_history_read(&course, wr_span_of("h0.example"), 1000, WEIR_SECOND, starts), 2);
    assert_int_equal(wr_rate_history_read(&course, wr_span_of("busy.example"), 500, WEIR_SECOND, starts), 2);
    assert_int_equal(starts[0], 500);
}

static void rate_history_steps_grow_with_the_number_of_hosts(void **state)
{
    int64_t starts[WR_RATE_HISTORY_POINTS];
    (void)state;
    wr_rate_history_init(&course);
    wr_rate_history_widen(&course, 10000); /* 20 ms per second */
    assert_int_equal(course.step_ns, WEIR_SECOND);
    wr_rate_history_advance(&course, 3 * WEIR_SECOND);
    wr_rate_history_note(&course, "a.example", 30, true);
    wr_rate_history_widen(&course, 100000);
    assert_int_equal(course.step_ns, 16 * WEIR_SECOND);
    wr_rate_history_advance(&course, 16 * WEIR_SECOND);
    wr_rate_history_note(&course, "a.example", 170, true);
    size_t count = wr_rate_history_read(&course, wr_span_of("a.example"), 175, 17 * WEIR_SECOND, starts);
    assert_int_equal(count, 2);
    assert_true(starts[0] == 170 && starts[1] == 5);
}

WEIR_TESTS(test(rate_history_steps_grow_with_the_number_of_hosts),
           test(rate_history_has_requests_of_each_step_and_the_unfinished_one),
           test(rate_history_of_a_short_run_has_one_step), test(rate_history_merges_steps_and_loses_no_request),
           test(rate_history_before_the_first_look_at_a_host_is_unknown),
           test(rate_history_of_an_evicted_host_counts_from_zero),
           test(rate_history_keeps_the_hosts_with_most_requests))
