/* SPDX-License-Identifier: MIT */
/* test_counts.c - tests that the counts of a loop reach their readers (T15, S0-93, S1-29,
 * S2-24). */
#include "lib/test.h"

#include "crawl/engine/counts.h"
#include "http/net/net.h"

/* T15: each number reaches its own counter. */
static void counts_of_the_plan_reach_the_crawl_counts(void **state)
{
    static struct wr_crawl_counts counts;
    struct wr_plan_stats plan = {.rejected = 1,
                                 .retries = 2,
                                 .overrides = 3,
                                 .hasty = 4,
                                 .lowered = 5,
                                 .known = 6,
                                 .hosts = 7,
                                 .hopeless = 8,
                                 .memory_bytes = 1000,
                                 .rules_bytes = 100};
    struct wr_net_stats net = {.connections = 9};
    (void)state;
    wr_counts_copy(&counts, &plan, &net);
    assert_int_equal(counts.rejected, 1);
    assert_int_equal(counts.retries, 2);
    assert_int_equal(counts.overrides, 3);
    assert_int_equal(counts.hasty, 4);
    assert_int_equal(counts.lowered, 5);
    assert_int_equal(counts.known, 6);
    assert_int_equal(counts.hosts, 7);
    assert_int_equal(counts.cancellations, 8);
    assert_int_equal(counts.connections, 9);
    assert_int_equal(counts.memory_bytes, 1100);
}

/* S0-93: a wait in the queue of the host is not throttling. */
static void start_that_its_host_held_for_more_than_10_ms_counts_as_throttled(void **state)
{
    static const struct {
        struct wr_plan_waited waited;
        uint64_t throttled;
    } rows[] = {
        {{.ms = {0}}, 0},
        {{.ms = {[WEIR_REASON_PACE] = 10}}, 0},
        {{.ms = {[WEIR_REASON_PACE] = 11}}, 1},
        {{.ms = {[WEIR_REASON_PACE] = 6, [WEIR_REASON_CONCURRENCY] = 5}}, 1},
        {{.ms = {[WEIR_REASON_PACE] = 10, [WEIR_REASON_QUEUE] = 1000}}, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct wr_crawl_counts none;
        struct wr_crawl_counts counts = none;
        wr_counts_add_start(&counts, &rows[i].waited);
        assert_int_equal(counts.throttled, rows[i].throttled);
        for (int reason = 0; reason < WR_PLAN_REASONS; reason++)
            assert_int_equal(counts.waits[reason].sum_ns, rows[i].waited.ms[reason] * WEIR_MILLISECOND);
        assert_int_equal(counts.waits[WEIR_REASON_NONE].counts[0], i == 0);
    }
}

WEIR_TESTS(test(counts_of_the_plan_reach_the_crawl_counts),
           test(start_that_its_host_held_for_more_than_10_ms_counts_as_throttled))
