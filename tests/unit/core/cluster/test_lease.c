/* SPDX-License-Identifier: MIT */
/* test_lease.c - tests what a node decides from its lease and when it asks the store, step by
 * step. */
#include "core/cluster/permit_lease.h"
#include "lib/test.h"

#define MS WEIR_MILLISECOND

static const struct wr_permit_lease_terms TEN = {.nodes = 3, .batch = 10};
static const struct wr_permit_lease_terms EXACT = {.nodes = 3};

static struct wr_membership seated(void)
{
    struct wr_membership membership = {0};
    wr_membership_renew(&membership, 0, 0, 3600 * WEIR_SECOND);
    return membership;
}

static struct wr_permit_lease_terms terms_of(weir_limit limit, uint32_t nodes, uint32_t overshoot)
{
    weir_stack stack;
    struct wr_permit_lease_terms terms;
    assert_int_equal(weir_stack_init(&stack, &limit, 1), 0);
    assert_int_equal(wr_permit_lease_terms_make(&stack, nodes, overshoot, &terms), 0);
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
        struct wr_permit_lease_terms terms = terms_of(limit, cases[i].nodes, cases[i].overshoot);
        assert_int_equal(terms.batch, cases[i].batch);
        assert_true(wr_permit_lease_bound(&terms) * WR_OVERSHOOT_MAX <= (uint64_t)cases[i].limit * cases[i].overshoot);
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
    struct wr_permit_lease_terms terms;
    assert_int_equal(weir_limit_fixed_window(&limit, 10, WEIR_SECOND), 0);
    assert_int_equal(weir_stack_init(&stack, &limit, 1), 0);
    assert_int_equal(wr_permit_lease_terms_make(&stack, 0, 0, &terms), WEIR_E_INVAL);
    assert_int_equal(wr_permit_lease_terms_make(&stack, 10001, 0, &terms), WEIR_E_INVAL);
    assert_int_equal(wr_permit_lease_terms_make(&stack, 1, 1000001, &terms), WEIR_E_INVAL);
    assert_int_equal(wr_permit_lease_terms_make(&stack, 10000, 1000000, &terms), 0);
}

static void batch_is_asked_for_once_and_spent_without_the_store(void **state)
{
    (void)state;
    struct wr_permit_lease lease = {0};
    struct wr_membership membership = seated();

    struct wr_permit_lease_move move = wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
    assert_int_equal(move.way, WR_PERMIT_LEASE_ASK);
    assert_int_equal(move.extra, 10);
    /* Meanwhile, other requests do not ask for more permits. */
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 0, 1).extra, 0);
    wr_permit_lease_answered(&TEN, &lease, &membership, MS, move.number, 1,
                             &(struct wr_permit_lease_reply){.granted = true, .extra = 10});
    for (int i = 0; i < 4; i++) {
        move = wr_permit_lease_try(&TEN, &lease, &membership, MS, 1);
        assert_int_equal(move.way, WR_PERMIT_LEASE_GO);
        assert_int_equal(move.extra, 0);
    }
    /* At half of the batch it asks for more, while the rest is spent. */
    move = wr_permit_lease_try(&TEN, &lease, &membership, MS, 1);
    assert_int_equal(move.way, WR_PERMIT_LEASE_GO);
    assert_int_equal(move.extra, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, MS, 1).way, WR_PERMIT_LEASE_GO);
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, MS, 1).way, WR_PERMIT_LEASE_ASK);
}

static void refused_key_sends_no_ask_until_it_may_succeed(void **state)
{
    (void)state;
    struct wr_permit_lease lease = {0};
    struct wr_membership membership = seated();

    assert_int_equal(wr_permit_lease_try(&EXACT, &lease, &membership, 0, 2).way, WR_PERMIT_LEASE_ASK);
    wr_permit_lease_answered(&EXACT, &lease, &membership, 0, 0, 2,
                             &(struct wr_permit_lease_reply){.wait_ns = 50 * MS, .full_wait_ns = 50 * MS});
    struct wr_permit_lease_move move = wr_permit_lease_try(&EXACT, &lease, &membership, 20 * MS, 2);
    assert_int_equal(move.way, WR_PERMIT_LEASE_WAIT);
    assert_int_equal(move.wait_ns, 30 * MS);
    assert_int_equal(wr_permit_lease_try(&EXACT, &lease, &membership, 20 * MS, 3).way, WR_PERMIT_LEASE_WAIT);
    /* A smaller request may succeed. */
    assert_int_equal(wr_permit_lease_try(&EXACT, &lease, &membership, 20 * MS, 1).way, WR_PERMIT_LEASE_ASK);
    assert_int_equal(wr_permit_lease_try(&EXACT, &lease, &membership, 50 * MS, 2).way, WR_PERMIT_LEASE_ASK);
}

static void key_in_demand_waits_for_a_batch_not_for_single_permits(void **state)
{
    (void)state;
    struct wr_permit_lease lease = {0};
    struct wr_membership membership = seated();

    struct wr_permit_lease_move move = wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
    struct wr_permit_lease_reply refused = {.wait_ns = MS, .full_wait_ns = 11 * MS};
    wr_permit_lease_answered(&TEN, &lease, &membership, 0, move.number, 1, &refused);
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 5 * MS, 1).wait_ns, 6 * MS);
    /* If single permits come back, the wait is bounded nevertheless. */
    move = wr_permit_lease_try(&TEN, &lease, &membership, 11 * MS, 1);
    refused.full_wait_ns = 300 * WEIR_SECOND;
    wr_permit_lease_answered(&TEN, &lease, &membership, 11 * MS, move.number, 1, &refused);
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 11 * MS, 1).wait_ns, WR_BATCH_WAIT_NS);
}

static void partial_batch_is_spent_before_the_next_ask(void **state)
{
    (void)state;
    struct wr_permit_lease lease = {0};
    struct wr_membership membership = seated();

    struct wr_permit_lease_move move = wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
    wr_permit_lease_answered(&TEN, &lease, &membership, 0, move.number, 1,
                             &(struct wr_permit_lease_reply){.granted = true, .extra = 2, .full_wait_ns = 8 * MS});
    for (int i = 0; i < 2; i++) {
        move = wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
        assert_int_equal(move.way, WR_PERMIT_LEASE_GO);
        assert_int_equal(move.extra, 0);
    }
    move = wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
    assert_int_equal(move.way, WR_PERMIT_LEASE_ASK);
    assert_int_equal(move.extra, 0);
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 8 * MS, 1).extra, 10);
}

static void late_answer_of_the_store_is_ignored(void **state)
{
    (void)state;
    struct wr_permit_lease lease = {0};
    struct wr_membership membership = seated();
    const struct wr_permit_lease_reply all = {.granted = true, .extra = 10};

    struct wr_permit_lease_move first = wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
    wr_permit_lease_missed(&lease, first.number);
    struct wr_permit_lease_move second = wr_permit_lease_try(&TEN, &lease, &membership, MS, 1);
    assert_int_equal(second.extra, 10);
    wr_permit_lease_answered(&TEN, &lease, &membership, MS, first.number, 1, &all);
    assert_int_equal(lease.left, 0);
    wr_permit_lease_answered(&TEN, &lease, &membership, MS, second.number, 1, &all);
    assert_int_equal(lease.left, 10);
    wr_permit_lease_answered(&TEN, &lease, &membership, MS, second.number, 1, &all);
    assert_int_equal(lease.left, 10);
}

static void lease_ends_with_its_seat_even_if_that_is_won_anew(void **state)
{
    (void)state;
    struct wr_permit_lease lease = {0};
    struct wr_membership membership = {0};
    const struct wr_permit_lease_reply all = {.granted = true, .extra = 10};

    /* no lease without a membership */
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 0, 1).extra, 0);
    wr_membership_renew(&membership, 0, 1 * MS, 100 * MS);
    struct wr_permit_lease_move move = wr_permit_lease_try(&TEN, &lease, &membership, 2 * MS, 1);
    wr_permit_lease_answered(&TEN, &lease, &membership, 3 * MS, move.number, 1, &all);
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 98 * MS, 1).way, WR_PERMIT_LEASE_GO);
    /* the membership ends one percent early */
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 99 * MS, 1).way, WR_PERMIT_LEASE_ASK);
    assert_int_equal(lease.left, 0);

    wr_membership_renew(&membership, 200 * MS, 201 * MS, 100 * MS);
    move = wr_permit_lease_try(&TEN, &lease, &membership, 202 * MS, 1);
    wr_membership_renew(&membership, 400 * MS, 401 * MS, 100 * MS); /* lost and won while the ask was in flight */
    wr_permit_lease_answered(&TEN, &lease, &membership, 402 * MS, move.number, 1, &all);
    assert_int_equal(lease.left, 0);
    move = wr_permit_lease_try(&TEN, &lease, &membership, 403 * MS, 1);
    wr_permit_lease_answered(&TEN, &lease, &membership, 403 * MS, move.number, 1, &all);
    wr_membership_renew(&membership, 450 * MS, 451 * MS, 100 * MS); /* the membership is renewed in time */
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 540 * MS, 1).way, WR_PERMIT_LEASE_GO);
}

static void smaller_limit_shrinks_the_lease(void **state)
{
    (void)state;
    struct wr_permit_lease lease = {0};
    struct wr_membership membership = seated();
    const struct wr_permit_lease_terms two = {.nodes = 3, .batch = 2};

    struct wr_permit_lease_move move = wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
    wr_permit_lease_answered(&TEN, &lease, &membership, 0, move.number, 1,
                             &(struct wr_permit_lease_reply){.granted = true, .extra = 10});
    assert_int_equal(wr_permit_lease_try(&two, &lease, &membership, 0, 1).way, WR_PERMIT_LEASE_GO);
    assert_int_equal(lease.left, 1);
}

/* Returns a lease with `left` permits. */
static struct wr_permit_lease holding(const struct wr_membership *membership, uint32_t left)
{
    struct wr_permit_lease lease = {0};
    struct wr_permit_lease_move move = wr_permit_lease_try(&TEN, &lease, membership, 0, 1);
    wr_permit_lease_answered(&TEN, &lease, membership, 0, move.number, 1,
                             &(struct wr_permit_lease_reply){.granted = true, .extra = left});
    assert_int_equal(lease.left, left);
    return lease;
}

static void returned_permits_stay_in_the_lease_up_to_a_batch(void **state)
{
    (void)state;
    struct wr_membership membership = seated();
    struct wr_permit_lease lease = holding(&membership, 8);
    assert_int_equal(wr_permit_lease_give_back(&TEN, &lease, &membership, 0, 1), 1);
    assert_int_equal(lease.left, 9);
    assert_int_equal(wr_permit_lease_give_back(&TEN, &lease, &membership, 0, 5), 1);
    assert_int_equal(wr_permit_lease_give_back(&TEN, &lease, &membership, 0, 5), 0);
    assert_int_equal(lease.left, 10);

    lease = holding(&membership, 5);
    /* 6 permits may arrive, too */
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 0, 1).extra, 6);
    assert_int_equal(wr_permit_lease_give_back(&TEN, &lease, &membership, 0, 3), 0);
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 0, 1).extra, 0);
    assert_int_equal(wr_permit_lease_give_back(&TEN, &lease, &membership, 0, 3), 1);
    assert_int_equal(lease.left, 4);
    /* the membership has ended */
    assert_int_equal(wr_permit_lease_give_back(&TEN, &lease, &membership, 3600 * WEIR_SECOND, 3), 0);
    assert_int_equal(lease.left, 0);
}

static void only_the_unanswered_ask_is_given_up(void **state)
{
    (void)state;
    struct wr_membership membership = seated();
    struct wr_permit_lease lease = {0};
    struct wr_permit_lease_move move = wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
    wr_permit_lease_missed(&lease, 0);
    wr_permit_lease_missed(&lease, move.number + 1);
    assert_int_equal(lease.asked, 10);
    wr_permit_lease_missed(&lease, move.number);
    assert_int_equal(lease.asked, 0);
    lease.number = UINT32_MAX - 1;
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 0, 1).number, UINT32_MAX);
    wr_permit_lease_missed(&lease, UINT32_MAX);
    assert_int_equal(lease.number, 1); /* 0 means no ask */
}

static void unasked_or_excessive_answer_of_the_store_is_ignored(void **state)
{
    (void)state;
    struct wr_membership membership = seated();
    struct wr_permit_lease lease = {0};
    struct wr_permit_lease_move move = wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
    wr_permit_lease_answered(&TEN, &lease, &membership, 0, move.number, 1,
                             &(struct wr_permit_lease_reply){.granted = true, .extra = 11});
    wr_permit_lease_answered(&TEN, &lease, &membership, 0, 0, 1,
                             &(struct wr_permit_lease_reply){.granted = true, .extra = 10});
    assert_int_equal(lease.left, 0);
    assert_int_equal(lease.asked, 10);
    wr_permit_lease_answered(&TEN, &lease, &membership, 0, move.number, 1,
                             &(struct wr_permit_lease_reply){.granted = true, .extra = 10});
    assert_int_equal(lease.left, 10);
    assert_int_equal(lease.asked, 0);
}

static void next_batch_is_asked_for_when_half_is_left(void **state)
{
    (void)state;
    struct wr_membership membership = seated();
    struct wr_permit_lease lease = holding(&membership, 7);
    struct wr_permit_lease_move move = wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
    assert_int_equal(move.extra, 0); /* 6 permits are left */
    assert_int_equal(move.number, 0);
    move = wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
    assert_int_equal(move.extra, 5);
    assert_int_equal(move.number, lease.number);
    lease = holding(&membership, 10);
    /* more than a lease may hold */
    assert_int_equal(wr_permit_lease_try(&TEN, &lease, &membership, 0, 11).extra, 0);
    assert_int_equal(lease.left, 10);
}

static void refused_key_waits_as_long_as_the_store_says_within_bounds(void **state)
{
    (void)state;
    static const struct {
        bool granted;
        int64_t wait_ns, full_wait_ns, shut_ns, open_ns;
    } rows[] = {
        {false, 50 * MS, 50 * MS, 50 * MS, 50 * MS},
        {false, 80 * MS, 50 * MS, 80 * MS, 80 * MS}, /* the longer wait, of the refused request */
        {false, 20 * MS, 50 * MS, 50 * MS, 50 * MS}, /* the wait for a batch */
        {false, 0, 0, 0, 0},                         /* no permits were missing */
        {false, 1, 1, 1, 1},
        {false, WEIR_DURATION_MAX, WEIR_DURATION_MAX, WR_REFUSAL_CACHE_NS, WEIR_DURATION_MAX},
        {false, WEIR_UNTIL_RELEASE, WEIR_UNTIL_RELEASE, 0, 0}, /* only a release helps */
        /* after a grant, the wait for a batch */
        {true, WEIR_MINUTE, 50 * MS, 50 * MS, 50 * MS},
        {false, WEIR_MINUTE, WEIR_MINUTE, WR_REFUSAL_CACHE_NS,
         WEIR_MINUTE}, /* asked once in a while: the state may have changed */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_membership membership = seated();
        struct wr_permit_lease lease = {.shut_until = INT64_MIN};
        const struct wr_permit_lease_reply reply = {
            .granted = rows[i].granted, .wait_ns = rows[i].wait_ns, .full_wait_ns = rows[i].full_wait_ns};
        wr_permit_lease_answered(&EXACT, &lease, &membership, 0, 0, 3, &reply);
        assert_int_equal(lease.shut_until > 0 ? lease.shut_until : 0, rows[i].shut_ns);
        assert_int_equal(lease.open_at, rows[i].open_ns);
        enum wr_permit_lease_way way =
            rows[i].shut_ns > 0 && !rows[i].granted ? WR_PERMIT_LEASE_WAIT : WR_PERMIT_LEASE_ASK;
        assert_int_equal(wr_permit_lease_try(&EXACT, &lease, &membership, 0, 3).way, way);
        assert_int_equal(wr_permit_lease_try(&EXACT, &lease, &membership, 0, 2).way, WR_PERMIT_LEASE_ASK);
        assert_int_equal(wr_permit_lease_try(&EXACT, &lease, &membership, rows[i].shut_ns, 3).way, WR_PERMIT_LEASE_ASK);
    }
}

static void lease_is_idle_without_permits_pending_asks_or_a_wait(void **state)
{
    (void)state;
    struct wr_membership membership = seated();
    struct wr_permit_lease lease = {0};
    assert_true(wr_permit_lease_is_idle(&lease, 0));
    (void)wr_permit_lease_try(&TEN, &lease, &membership, 0, 1);
    assert_false(wr_permit_lease_is_idle(&lease, 0));
    lease = holding(&membership, 1);
    assert_false(wr_permit_lease_is_idle(&lease, 0));
    lease.left = 0;
    lease.shut_until = 5;
    assert_false(wr_permit_lease_is_idle(&lease, 4));
    assert_true(wr_permit_lease_is_idle(&lease, 5));
    lease = holding(&membership, 5);
    lease.shut_until = 5;
    struct wr_permit_lease_move move = wr_permit_lease_try(&TEN, &lease, &membership, 5, 1);
    wr_permit_lease_clear(&lease);
    assert_true(wr_permit_lease_is_idle(&lease, 0));
    wr_permit_lease_answered(&TEN, &lease, &membership, 5, move.number, 1,
                             &(struct wr_permit_lease_reply){.granted = true, .extra = 6});
    assert_int_equal(lease.left, 0);
}

static void seat_won_anew_has_a_new_tenure_and_a_renewed_one_keeps_it(void **state)
{
    (void)state;
    struct wr_membership membership = {0};
    assert_false(wr_membership_is_held(&membership, INT64_MIN)); /* never held */
    wr_membership_renew(&membership, 0, 10, 1000);
    assert_int_equal(membership.tenure, 1);
    assert_int_equal(membership.until, 990);
    wr_membership_renew(&membership, 100, 989, 1000);
    assert_int_equal(membership.tenure, 1);
    assert_int_equal(membership.until, 1090);
    wr_membership_renew(&membership, 50, 989, 1000); /* a late answer */
    assert_int_equal(membership.until, 1090);
    assert_true(wr_membership_is_held(&membership, 1089));
    assert_false(wr_membership_is_held(&membership, 1090));
    wr_membership_renew(&membership, 1080, 1090, 1000);
    assert_int_equal(membership.tenure, 2);
}

WEIR_TESTS(test(returned_permits_stay_in_the_lease_up_to_a_batch), test(only_the_unanswered_ask_is_given_up),
           test(unasked_or_excessive_answer_of_the_store_is_ignored), test(next_batch_is_asked_for_when_half_is_left),
           test(refused_key_waits_as_long_as_the_store_says_within_bounds),
           test(lease_is_idle_without_permits_pending_asks_or_a_wait),
           test(seat_won_anew_has_a_new_tenure_and_a_renewed_one_keeps_it),
           test(batches_divide_the_overshoot_among_nodes_and_round_down),
           test(spaced_starts_and_permits_in_flight_are_never_leased), test(terms_out_of_range_are_refused),
           test(batch_is_asked_for_once_and_spent_without_the_store),
           test(refused_key_sends_no_ask_until_it_may_succeed),
           test(key_in_demand_waits_for_a_batch_not_for_single_permits),
           test(partial_batch_is_spent_before_the_next_ask), test(late_answer_of_the_store_is_ignored),
           test(lease_ends_with_its_seat_even_if_that_is_won_anew), test(smaller_limit_shrinks_the_lease))
