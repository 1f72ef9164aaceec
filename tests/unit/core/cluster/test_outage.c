/* SPDX-License-Identifier: MIT */
/* test_outage.c - tests the breaker on the store, and the part of a rule that a node may use
 * without the store. */
#include "core/cluster/permit_lease.h"
#include "lib/test.h"

#define MS WEIR_MILLISECOND

static void three_misses_in_a_row_or_a_broken_connection_open_the_breaker(void **state)
{
    (void)state;
    struct wr_outage outage = {0};

    assert_false(wr_outage_missed(&outage, 0, false, 0));
    assert_false(wr_outage_missed(&outage, 0, false, 0));
    assert_false(wr_outage_answered(&outage));
    assert_false(wr_outage_missed(&outage, 0, false, 0));
    assert_false(wr_outage_missed(&outage, 0, false, 0));
    assert_true(wr_outage_may_ask(&outage, 0));
    assert_true(wr_outage_missed(&outage, 0, false, 0));
    assert_false(wr_outage_may_ask(&outage, 0));
    assert_true(wr_outage_answered(&outage));
    assert_true(wr_outage_may_ask(&outage, 0));
    assert_true(wr_outage_missed(&outage, 0, true, 0));
    assert_false(wr_outage_may_ask(&outage, 0));
}

static void store_that_is_down_gets_single_probes_at_growing_intervals(void **state)
{
    (void)state;
    struct wr_outage outage = {0};
    int64_t now = 0, most = WR_OUTAGE_FIRST;

    assert_true(wr_outage_missed(&outage, now, true, 0));
    for (uint64_t look = 0; look < 40; look++) {
        int64_t wait_ns = outage.probe_at - now;
        assert_in_range(wait_ns, most / 2, most);
        assert_false(wr_outage_may_ask(&outage, outage.probe_at - 1));
        now = outage.probe_at;
        assert_true(wr_outage_may_ask(&outage, now));
        assert_false(wr_outage_may_ask(&outage, now));
        assert_false(wr_outage_missed(&outage, now, true, look * UINT64_C(0x9e3779b97f4a7c15)));
        most = 2 * most < WR_OUTAGE_LONGEST ? 2 * most : WR_OUTAGE_LONGEST;
    }
}

static void next_probe_of_the_store_is_jittered_over_the_second_half_of_its_wait(void **state)
{
    (void)state;
    static const struct {
        uint64_t chance;
        int64_t wait_ns;
    } rows[] = {{0, WR_OUTAGE_FIRST / 2},
                {1, WR_OUTAGE_FIRST / 2 + 1},
                {WR_OUTAGE_FIRST / 2, WR_OUTAGE_FIRST},
                {WR_OUTAGE_FIRST / 2 + 1, WR_OUTAGE_FIRST / 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_outage outage = {0};
        assert_true(wr_outage_missed(&outage, MS, true, rows[i].chance));
        assert_int_equal(outage.probe_at, MS + rows[i].wait_ns);
    }
    struct wr_outage outage = {.down = true, .probing = true, .misses = UINT32_MAX};
    assert_false(wr_outage_missed(&outage, 0, true, 0));
    assert_int_equal(outage.probe_at, WR_OUTAGE_LONGEST / 2);
}

static void asks_from_before_an_outage_do_not_delay_the_next_probe(void **state)
{
    (void)state;
    struct wr_outage outage = {0};

    wr_outage_missed(&outage, 0, true, 0);
    int64_t probe_at = outage.probe_at;
    for (int i = 0; i < 100; i++)
        assert_false(wr_outage_missed(&outage, MS, false, 0));
    assert_int_equal(outage.probe_at, probe_at);
}

/* A store that answers late may still decide for other nodes. A silent or disconnected one decides
 * for none. */
static void late_store_is_not_lost_until_a_probe_gets_no_answer(void **state)
{
    (void)state;
    struct wr_outage outage = {0};

    for (int i = 0; i < WR_OUTAGE_MISSES; i++)
        wr_outage_missed(&outage, 0, false, 0);
    assert_true(outage.down && !outage.lost);
    assert_true(wr_outage_may_ask(&outage, WEIR_SECOND));
    wr_outage_missed(&outage, WEIR_SECOND, true, 0);
    assert_true(outage.down && outage.lost);
    wr_outage_missed(&outage, WEIR_SECOND, false, 0); /* an ask from before the outage */
    assert_true(outage.lost);
    assert_true(wr_outage_may_ask(&outage, WEIR_MINUTE));
    wr_outage_missed(&outage, WEIR_MINUTE, false, 0); /* the store answers, but late */
    assert_true(outage.down && !outage.lost);
    wr_outage_answered(&outage);
    wr_outage_missed(&outage, WEIR_HOUR, true, 0);
    assert_true(outage.down && outage.lost);
}

/* The parts of all nodes together grant no more than the rule, neither at once nor over time. */
static void parts_of_a_rule_sum_to_at_most_the_rule(void **state)
{
    (void)state;
    weir_limit rules[6];
    weir_limit_token_bucket(&rules[0], 100, 7, WEIR_SECOND);
    weir_limit_stepped_bucket(&rules[1], 100, 7, WEIR_SECOND, 50);
    weir_limit_fixed_window(&rules[2], 100, WEIR_SECOND);
    weir_limit_sliding_window(&rules[3], 100, WEIR_SECOND);
    weir_limit_sliding_log(&rules[4], 100, WEIR_SECOND);
    weir_limit_concurrency(&rules[5], 100);
    for (size_t i = 0; i < 6; i++) {
        weir_limit part;
        assert_int_equal(wr_limit_node_part(&rules[i], 7, &part), 0);
        assert_string_equal(weir_limit_name(&part), weir_limit_name(&rules[i]));
        assert_int_equal(part.permits, 14);
        assert_true(part.refill == 0 || part.period_ns >= 7 * rules[i].period_ns);
        assert_int_equal(wr_limit_node_part(&rules[i], 101, &part), WEIR_E_ABSENT);
    }
    weir_limit part;
    weir_limit_leaky_bucket(&rules[0], 5, WEIR_SECOND);
    assert_int_equal(wr_limit_node_part(&rules[0], 7, &part), 0);
    assert_int_equal(part.period_ns, 7 * WEIR_SECOND);
}

WEIR_TESTS(test(next_probe_of_the_store_is_jittered_over_the_second_half_of_its_wait),
           test(three_misses_in_a_row_or_a_broken_connection_open_the_breaker),
           test(store_that_is_down_gets_single_probes_at_growing_intervals),
           test(asks_from_before_an_outage_do_not_delay_the_next_probe),
           test(late_store_is_not_lost_until_a_probe_gets_no_answer), test(parts_of_a_rule_sum_to_at_most_the_rule))
