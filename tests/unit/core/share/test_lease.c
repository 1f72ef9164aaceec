/* SPDX-License-Identifier: MIT */
/* test_lease.c - what a node decides by itself and what it asks for, step by step. */
#include "core/share/share.h"
#include "lib/test.h"

#define MS WEIR_MILLISECOND

static const struct wr_share_terms TEN = {.nodes = 3, .batch = 10};
static const struct wr_share_terms EXACT = {.nodes = 3};

static struct wr_seat seated(void)
{
    struct wr_seat seat = {0};
    wr_seat_won(&seat, 0, 0, 3600 * WEIR_SECOND);
    return seat;
}

static struct wr_share_terms terms_of(weir_limit limit, uint32_t nodes, uint32_t overshoot)
{
    weir_stack stack;
    struct wr_share_terms terms;
    assert_int_equal(weir_stack_init(&stack, &limit, 1), 0);
    assert_int_equal(wr_share_terms_make(&stack, nodes, overshoot, &terms), 0);
    return terms;
}

static void batches_divide_the_overshoot_among_nodes_and_round_down(void **state)
{
    (void)state;
    static const struct {
        uint32_t limit, nodes, overshoot, batch;
    } cases[] = {
        {1000, 3, 10000, 3},
        {1000, 1, 10000, 10},
        {100, 3, 10000, 0},
        {100, 4, 1000000, 25},
        {UINT32_MAX, 1, 1000000, UINT32_MAX},
        {1000, 3, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_limit limit;
        assert_int_equal(weir_limit_fixed_window(&limit, cases[i].limit, WEIR_SECOND), 0);
        struct wr_share_terms terms = terms_of(limit, cases[i].nodes, cases[i].overshoot);
        assert_int_equal(terms.batch, cases[i].batch);
        assert_true(wr_share_bound(&terms) * WR_OVERSHOOT_MAX <= (uint64_t)cases[i].limit * cases[i].overshoot);
    }
}

static void spaced_starts_and_permits_in_flight_are_never_leased(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_leaky_bucket(&limit, 1000, WEIR_SECOND), 0);
    assert_int_equal(terms_of(limit, 1, 500000).batch, 0);
    assert_int_equal(weir_limit_concurrency(&limit, 1000), 0);
    assert_int_equal(terms_of(limit, 1, 500000).batch, 0);
}

static void terms_out_of_range_are_refused(void **state)
{
    (void)state;
    weir_limit limit;
    weir_stack stack;
    struct wr_share_terms terms;
    assert_int_equal(weir_limit_fixed_window(&limit, 10, WEIR_SECOND), 0);
    assert_int_equal(weir_stack_init(&stack, &limit, 1), 0);
    assert_int_equal(wr_share_terms_make(&stack, 0, 0, &terms), WEIR_E_INVAL);
    assert_int_equal(wr_share_terms_make(&stack, 10001, 0, &terms), WEIR_E_INVAL);
    assert_int_equal(wr_share_terms_make(&stack, 1, 1000001, &terms), WEIR_E_INVAL);
}

static void a_batch_is_asked_for_once_and_then_spent_without_asking(void **state)
{
    (void)state;
    struct wr_lease lease = {0};
    struct wr_seat seat = seated();

    struct wr_share_move move = wr_lease_try(&TEN, &lease, &seat, 0, 1);
    assert_int_equal(move.way, WR_SHARE_ASK);
    assert_int_equal(move.extra, 10);
    /* Others do not ask for more while that is on its way. */
    assert_int_equal(wr_lease_try(&TEN, &lease, &seat, 0, 1).extra, 0);
    wr_lease_told(&TEN, &lease, &seat, MS, move.number, 1, &(struct wr_share_reply){.granted = true, .extra = 10});
    for (int i = 0; i < 4; i++) {
        move = wr_lease_try(&TEN, &lease, &seat, MS, 1);
        assert_int_equal(move.way, WR_SHARE_GO);
        assert_int_equal(move.extra, 0);
    }
    /* Half of it is left: time to ask for more, while the rest is spent. */
    move = wr_lease_try(&TEN, &lease, &seat, MS, 1);
    assert_int_equal(move.way, WR_SHARE_GO);
    assert_int_equal(move.extra, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(wr_lease_try(&TEN, &lease, &seat, MS, 1).way, WR_SHARE_GO);
    assert_int_equal(wr_lease_try(&TEN, &lease, &seat, MS, 1).way, WR_SHARE_ASK);
}

static void a_refused_key_spares_the_store_until_asking_may_help(void **state)
{
    (void)state;
    struct wr_lease lease = {0};
    struct wr_seat seat = seated();

    assert_int_equal(wr_lease_try(&EXACT, &lease, &seat, 0, 2).way, WR_SHARE_ASK);
    wr_lease_told(&EXACT, &lease, &seat, 0, 0, 2,
                  &(struct wr_share_reply){.wait_ns = 50 * MS, .full_wait_ns = 50 * MS});
    struct wr_share_move move = wr_lease_try(&EXACT, &lease, &seat, 20 * MS, 2);
    assert_int_equal(move.way, WR_SHARE_WAIT);
    assert_int_equal(move.wait_ns, 30 * MS);
    assert_int_equal(wr_lease_try(&EXACT, &lease, &seat, 20 * MS, 3).way, WR_SHARE_WAIT);
    /* Who wants less may be luckier. */
    assert_int_equal(wr_lease_try(&EXACT, &lease, &seat, 20 * MS, 1).way, WR_SHARE_ASK);
    assert_int_equal(wr_lease_try(&EXACT, &lease, &seat, 50 * MS, 2).way, WR_SHARE_ASK);
}

static void a_key_in_demand_is_asked_for_by_the_batch_not_by_the_permit(void **state)
{
    (void)state;
    struct wr_lease lease = {0};
    struct wr_seat seat = seated();

    struct wr_share_move move = wr_lease_try(&TEN, &lease, &seat, 0, 1);
    struct wr_share_reply refused = {.wait_ns = MS, .full_wait_ns = 11 * MS};
    wr_lease_told(&TEN, &lease, &seat, 0, move.number, 1, &refused);
    assert_int_equal(wr_lease_try(&TEN, &lease, &seat, 5 * MS, 1).wait_ns, 6 * MS);
    /* But nobody is refused for minutes when single permits come back. */
    move = wr_lease_try(&TEN, &lease, &seat, 11 * MS, 1);
    refused.full_wait_ns = 300 * WEIR_SECOND;
    wr_lease_told(&TEN, &lease, &seat, 11 * MS, move.number, 1, &refused);
    assert_int_equal(wr_lease_try(&TEN, &lease, &seat, 11 * MS, 1).wait_ns, WR_SHUT_LONGEST);
}

static void a_short_batch_is_spent_and_not_asked_for_again_at_once(void **state)
{
    (void)state;
    struct wr_lease lease = {0};
    struct wr_seat seat = seated();

    struct wr_share_move move = wr_lease_try(&TEN, &lease, &seat, 0, 1);
    wr_lease_told(&TEN, &lease, &seat, 0, move.number, 1,
                  &(struct wr_share_reply){.granted = true, .extra = 2, .full_wait_ns = 8 * MS});
    for (int i = 0; i < 2; i++) {
        move = wr_lease_try(&TEN, &lease, &seat, 0, 1);
        assert_int_equal(move.way, WR_SHARE_GO);
        assert_int_equal(move.extra, 0);
    }
    move = wr_lease_try(&TEN, &lease, &seat, 0, 1);
    assert_int_equal(move.way, WR_SHARE_ASK);
    assert_int_equal(move.extra, 0);
    assert_int_equal(wr_lease_try(&TEN, &lease, &seat, 8 * MS, 1).extra, 10);
}

static void a_late_answer_is_not_taken_in(void **state)
{
    (void)state;
    struct wr_lease lease = {0};
    struct wr_seat seat = seated();
    const struct wr_share_reply all = {.granted = true, .extra = 10};

    struct wr_share_move first = wr_lease_try(&TEN, &lease, &seat, 0, 1);
    wr_lease_missed(&lease, first.number);
    struct wr_share_move second = wr_lease_try(&TEN, &lease, &seat, MS, 1);
    assert_int_equal(second.extra, 10);
    wr_lease_told(&TEN, &lease, &seat, MS, first.number, 1, &all);
    assert_int_equal(lease.left, 0);
    wr_lease_told(&TEN, &lease, &seat, MS, second.number, 1, &all);
    assert_int_equal(lease.left, 10);
    wr_lease_told(&TEN, &lease, &seat, MS, second.number, 1, &all);
    assert_int_equal(lease.left, 10);
}

static void what_was_held_goes_with_the_seat_even_if_it_is_won_again(void **state)
{
    (void)state;
    struct wr_lease lease = {0};
    struct wr_seat seat = {0};
    const struct wr_share_reply all = {.granted = true, .extra = 10};

    assert_int_equal(wr_lease_try(&TEN, &lease, &seat, 0, 1).extra, 0); /* no seat, no lease */
    wr_seat_won(&seat, 0, 1 * MS, 100 * MS);
    struct wr_share_move move = wr_lease_try(&TEN, &lease, &seat, 2 * MS, 1);
    wr_lease_told(&TEN, &lease, &seat, 3 * MS, move.number, 1, &all);
    assert_int_equal(wr_lease_try(&TEN, &lease, &seat, 98 * MS, 1).way, WR_SHARE_GO);
    assert_int_equal(wr_lease_try(&TEN, &lease, &seat, 99 * MS, 1).way, WR_SHARE_ASK); /* a hundredth early */
    assert_int_equal(lease.left, 0);

    wr_seat_won(&seat, 200 * MS, 201 * MS, 100 * MS);
    move = wr_lease_try(&TEN, &lease, &seat, 202 * MS, 1);
    wr_seat_won(&seat, 400 * MS, 401 * MS, 100 * MS); /* lost and won while the ask was on its way */
    wr_lease_told(&TEN, &lease, &seat, 402 * MS, move.number, 1, &all);
    assert_int_equal(lease.left, 0);
    move = wr_lease_try(&TEN, &lease, &seat, 403 * MS, 1);
    wr_lease_told(&TEN, &lease, &seat, 403 * MS, move.number, 1, &all);
    wr_seat_won(&seat, 450 * MS, 451 * MS, 100 * MS); /* renewed in time */
    assert_int_equal(wr_lease_try(&TEN, &lease, &seat, 540 * MS, 1).way, WR_SHARE_GO);
}

static void a_smaller_limit_shrinks_what_is_held(void **state)
{
    (void)state;
    struct wr_lease lease = {0};
    struct wr_seat seat = seated();
    const struct wr_share_terms two = {.nodes = 3, .batch = 2};

    struct wr_share_move move = wr_lease_try(&TEN, &lease, &seat, 0, 1);
    wr_lease_told(&TEN, &lease, &seat, 0, move.number, 1, &(struct wr_share_reply){.granted = true, .extra = 10});
    assert_int_equal(wr_lease_try(&two, &lease, &seat, 0, 1).way, WR_SHARE_GO);
    assert_int_equal(lease.left, 1);
}

WEIR_TESTS(test(batches_divide_the_overshoot_among_nodes_and_round_down),
           test(spaced_starts_and_permits_in_flight_are_never_leased), test(terms_out_of_range_are_refused),
           test(a_batch_is_asked_for_once_and_then_spent_without_asking),
           test(a_refused_key_spares_the_store_until_asking_may_help),
           test(a_key_in_demand_is_asked_for_by_the_batch_not_by_the_permit),
           test(a_short_batch_is_spent_and_not_asked_for_again_at_once), test(a_late_answer_is_not_taken_in),
           test(what_was_held_goes_with_the_seat_even_if_it_is_won_again), test(a_smaller_limit_shrinks_what_is_held))
