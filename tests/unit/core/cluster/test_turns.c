/* SPDX-License-Identifier: MIT */
/* test_turns.c - tests when a process asks for, keeps and passes the turn of a host, step by step.
 * test_baton.c simulates several processes. */
#include "core/cluster/gate_lease.h"
#include "lib/test.h"

#include <weir/limit.h>

#define MS WEIR_MILLISECOND
#define T0 (1000 * WEIR_SECOND)
#define LEASE (WR_GATE_LEASE_NS - WR_GATE_LEASE_NS / 100) /* ends one percent early */

static const struct wr_gate_lease_local WANTS = {.wants = true}, RESTS = {.wants = false};

static void assert_move(struct wr_gate_lease_move move, enum wr_gate_lease_verb verb, int64_t at)
{
    assert_int_equal(move.verb, verb);
    assert_int_equal(move.at, at);
}

/* Returns the state of a process that asked for the turn at T0 and got it. `waiting`: number of
 * waiting processes. */
static struct wr_gate_lease with_turn(uint32_t waiting)
{
    struct wr_gate_lease gate_lease = {0};
    assert_move(wr_gate_lease_next(&gate_lease, &WANTS, T0), WR_GATE_LEASE_WANT, T0);
    assert_true(wr_gate_lease_answered(
        &gate_lease, &(struct wr_gate_lease_reply){.is_ours = true, .token = 7, .waiting = waiting}, T0));
    wr_gate_lease_taken(&gate_lease, 5);
    return gate_lease;
}

static struct wr_gate_lease_local here_with(uint64_t starts, int64_t wait_ns)
{
    return (struct wr_gate_lease_local){.wants = true, .starts = starts, .wait_ns = wait_ns};
}

/* Extends the turn, so that no other call is due. */
static void keep(struct wr_gate_lease *gate_lease, int64_t now)
{
    struct wr_gate_lease_local news = {.wants = true, .has_news = true, .starts = gate_lease->starts};
    assert_move(wr_gate_lease_next(gate_lease, &news, now), WR_GATE_LEASE_HOLD, now);
    const struct wr_gate_lease_reply reply = {
        .is_ours = true, .token = gate_lease->token, .waiting = gate_lease->waiting, .others = gate_lease->others};
    assert_false(wr_gate_lease_answered(gate_lease, &reply, now));
}

static void turn_counts_from_its_call_and_ends_one_percent_early(void **state)
{
    (void)state;
    struct wr_gate_lease gate_lease = {0};
    assert_false(wr_gate_lease_is_held(&gate_lease, T0));
    (void)wr_gate_lease_next(&gate_lease, &WANTS, T0);
    assert_true(
        wr_gate_lease_answered(&gate_lease, &(struct wr_gate_lease_reply){.is_ours = true, .token = 7}, T0 + 100 * MS));
    assert_int_equal(gate_lease.seen, 7);
    assert_true(wr_gate_lease_is_held(&gate_lease, T0 + LEASE - 1));
    assert_false(wr_gate_lease_is_held(&gate_lease, T0 + LEASE));
    assert_move(wr_gate_lease_next(&gate_lease, &WANTS, T0 + LEASE), WR_GATE_LEASE_WANT, T0 + LEASE);
    assert_int_equal(gate_lease.token, 0);
}

static void turn_is_extended_more_often_while_other_processes_are_present(void **state)
{
    (void)state;
    static const struct {
        uint32_t waiting, others;
        int64_t every_ns;
    } rows[] = {
        {0, 0, WR_GATE_LEASE_RENEW_NS}, {1, 0, WR_GATE_LEASE_SHARED_RENEW_NS}, {0, 1, WR_GATE_LEASE_SHARED_RENEW_NS}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_gate_lease gate_lease = {0};
        const struct wr_gate_lease_reply reply = {
            .is_ours = true, .token = 7, .waiting = rows[i].waiting, .others = rows[i].others};
        (void)wr_gate_lease_next(&gate_lease, &WANTS, T0);
        assert_true(wr_gate_lease_answered(&gate_lease, &reply, T0));
        int64_t due_at = T0 + rows[i].every_ns;
        assert_move(wr_gate_lease_next(&gate_lease, &WANTS, T0), WR_GATE_LEASE_NOTHING, due_at);
        assert_move(wr_gate_lease_next(&gate_lease, &WANTS, due_at - 1), WR_GATE_LEASE_NOTHING, due_at);
        assert_move(wr_gate_lease_next(&gate_lease, &WANTS, due_at), WR_GATE_LEASE_HOLD, due_at);
        /* the call is pending */
        assert_move(wr_gate_lease_next(&gate_lease, &WANTS, due_at + 1), WR_GATE_LEASE_NOTHING, WEIR_FOREVER);
        assert_false(wr_gate_lease_answered(&gate_lease, &reply, due_at + 5));
        assert_int_equal(gate_lease.until, due_at + LEASE);
        assert_int_equal(gate_lease.due_at, due_at + 5 + rows[i].every_ns);
    }
}

static void turn_ends_after_400_ms_if_others_wait_and_a_start_was_made(void **state)
{
    (void)state;
    struct wr_gate_lease alone = with_turn(0), none = with_turn(1), one = with_turn(1);
    struct wr_gate_lease_local idle = here_with(5, 0), started = here_with(6, 0);
    int64_t end_at = T0 + 400 * MS;
    for (int64_t at = T0 + WR_GATE_LEASE_SHARED_RENEW_NS; at < end_at; at += WR_GATE_LEASE_SHARED_RENEW_NS) {
        keep(&none, at);
        keep(&one, at);
    }
    keep(&alone, end_at - 1);
    assert_move(wr_gate_lease_next(&alone, &started, end_at), WR_GATE_LEASE_NOTHING,
                end_at - 1 + WR_GATE_LEASE_RENEW_NS);
    keep(&none, end_at);
    assert_move(wr_gate_lease_next(&none, &idle, end_at), WR_GATE_LEASE_NOTHING,
                end_at + WR_GATE_LEASE_SHARED_RENEW_NS);
    assert_move(wr_gate_lease_next(&one, &started, end_at - 1), WR_GATE_LEASE_NOTHING, end_at);
    struct wr_gate_lease_move move = wr_gate_lease_next(&one, &started, end_at);
    assert_move(move, WR_GATE_LEASE_PASS, end_at);
    assert_true(move.waits); /* asks for a place in the queue */
    assert_false(wr_gate_lease_is_held(&one, end_at));
}

static void turn_is_passed_at_once_if_nothing_can_start_before_its_end(void **state)
{
    (void)state;
    static const struct {
        int64_t wait_ns;
        enum wr_gate_lease_verb verb;
    } rows[] = {{399 * MS, WR_GATE_LEASE_PASS},
                {399 * MS - 1, WR_GATE_LEASE_NOTHING},
                {WEIR_UNTIL_RELEASE, WR_GATE_LEASE_NOTHING}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_gate_lease gate_lease = with_turn(1);
        struct wr_gate_lease_local here = here_with(6, rows[i].wait_ns);
        assert_int_equal(wr_gate_lease_next(&gate_lease, &here, T0 + MS).verb, rows[i].verb);
    }
}

static void idle_turn_ends_after_30_ms_with_waiters_and_500_ms_without(void **state)
{
    (void)state;
    struct wr_gate_lease gate_lease = with_turn(1);
    struct wr_gate_lease_local rests = {.starts = 5};
    keep(&gate_lease, T0 + 15 * MS); /* the turn was wanted at this time */
    assert_move(wr_gate_lease_next(&gate_lease, &rests, T0 + 20 * MS), WR_GATE_LEASE_NOTHING, T0 + 35 * MS);
    keep(&gate_lease, T0 + 30 * MS);
    struct wr_gate_lease_move move = wr_gate_lease_next(&gate_lease, &rests, T0 + 60 * MS);
    assert_move(move, WR_GATE_LEASE_PASS, T0 + 60 * MS);
    assert_false(move.waits);

    gate_lease = with_turn(0);
    keep(&gate_lease, T0 + 250 * MS);
    assert_move(wr_gate_lease_next(&gate_lease, &rests, T0 + 500 * MS), WR_GATE_LEASE_NOTHING, T0 + 550 * MS);
    rests.has_news = true;
    assert_move(wr_gate_lease_next(&gate_lease, &rests, T0 + 510 * MS), WR_GATE_LEASE_HOLD, T0 + 510 * MS);
    assert_false(
        wr_gate_lease_answered(&gate_lease, &(struct wr_gate_lease_reply){.is_ours = true, .token = 7}, T0 + 510 * MS));
    rests.has_news = false;
    assert_move(wr_gate_lease_next(&gate_lease, &rests, T0 + 749 * MS), WR_GATE_LEASE_NOTHING, T0 + 750 * MS);
    assert_move(wr_gate_lease_next(&gate_lease, &rests, T0 + 750 * MS), WR_GATE_LEASE_PASS, T0 + 750 * MS);
}

static void start_without_a_waiter_counts_as_wanting_the_turn(void **state)
{
    (void)state;
    struct wr_gate_lease gate_lease = with_turn(1);
    struct wr_gate_lease_local rests = {.starts = 6};
    keep(&gate_lease, T0 + 15 * MS);
    assert_move(wr_gate_lease_next(&gate_lease, &rests, T0 + 29 * MS), WR_GATE_LEASE_NOTHING, T0 + 35 * MS);
    keep(&gate_lease, T0 + 30 * MS);
    assert_move(wr_gate_lease_next(&gate_lease, &rests, T0 + 31 * MS), WR_GATE_LEASE_NOTHING, T0 + 50 * MS);
    assert_int_equal(gate_lease.wanted_at, T0 + 30 * MS);
    rests.starts = 7;
    assert_move(wr_gate_lease_next(&gate_lease, &rests, T0 + 40 * MS), WR_GATE_LEASE_NOTHING, T0 + 50 * MS);
    assert_int_equal(gate_lease.wanted_at, T0 + 40 * MS);
}

static void turn_is_kept_while_a_start_is_reserved_and_passed_on_leaving(void **state)
{
    (void)state;
    struct wr_gate_lease gate_lease = with_turn(1);
    struct wr_gate_lease_local here = {.starts = 6, .is_reserved = true};
    keep(&gate_lease, T0 + 15 * MS);
    keep(&gate_lease, T0 + 500 * MS);
    assert_move(wr_gate_lease_next(&gate_lease, &here, T0 + 510 * MS), WR_GATE_LEASE_NOTHING, T0 + 520 * MS);
    here.leaves = true;
    here.wants = true;
    struct wr_gate_lease_move move = wr_gate_lease_next(&gate_lease, &here, T0 + 510 * MS);
    assert_move(move, WR_GATE_LEASE_PASS, T0 + 510 * MS);
    assert_false(move.waits);
}

/* The store replies to waiting processes for how long they need not ask. */
static void waiters_are_told_when_the_turn_will_be_passed(void **state)
{
    (void)state;
    static const struct {
        uint64_t starts;
        bool wants;
        int64_t after_ns, wait_ns, pass_ns;
    } rows[] = {
        {6, true, 100 * MS, 350 * MS, 300 * MS},  /* the holder has had its start */
        {5, true, 100 * MS, 350 * MS, 350 * MS},  /* the holder will get its start */
        {5, true, 100 * MS, 250 * MS, 300 * MS},  /* the holder starts within the turn */
        {5, false, 100 * MS, 350 * MS, 300 * MS}, /* the holder wants no start */
        {5, true, 100 * MS, WEIR_UNTIL_RELEASE, 300 * MS},
        {5, true, 100 * MS, WEIR_HOUR, WEIR_MINUTE},
        {6, true, 500 * MS, 0, 0},
        {5, true, 500 * MS, WEIR_UNTIL_RELEASE, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_gate_lease gate_lease = with_turn(0);
        struct wr_gate_lease_local here = here_with(rows[i].starts, rows[i].wait_ns);
        here.wants = rows[i].wants;
        here.has_news = true;
        struct wr_gate_lease_move move = wr_gate_lease_next(&gate_lease, &here, T0 + rows[i].after_ns);
        assert_move(move, WR_GATE_LEASE_HOLD, T0 + rows[i].after_ns);
        assert_int_equal(move.pass_ns, rows[i].pass_ns);
        assert_false(move.waits);
    }
}

static void waiter_asks_again_later_the_longer_its_turn_takes(void **state)
{
    (void)state;
    static const struct {
        uint32_t place;
        int64_t busy_ns, again_ns;
    } rows[] = {
        {0, 0, 2 * MS},
        {0, 50 * MS, 50 * MS},
        {0, WEIR_SECOND, 100 * MS},
        {1, 0, 25 * MS},
        {1, 60 * MS, 60 * MS},
        {2, 0, 50 * MS},
        {9, 0, 225 * MS},
        {10, 0, 250 * MS},
        {11, 0, 250 * MS},
        {1, WEIR_MINUTE, 250 * MS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_gate_lease gate_lease = {0};
        struct wr_gate_lease_move move = wr_gate_lease_next(&gate_lease, &WANTS, T0);
        assert_true(move.waits);
        const struct wr_gate_lease_reply reply = {.place = rows[i].place, .busy_ns = rows[i].busy_ns, .token = 9};
        assert_false(wr_gate_lease_answered(&gate_lease, &reply, T0 + MS));
        int64_t again_at = T0 + MS + rows[i].again_ns;
        assert_move(wr_gate_lease_next(&gate_lease, &WANTS, again_at - 1), WR_GATE_LEASE_NOTHING, again_at);
        assert_move(wr_gate_lease_next(&gate_lease, &WANTS, again_at), WR_GATE_LEASE_WANT, again_at);
        assert_int_equal(gate_lease.seen, 9);
        assert_int_equal(gate_lease.token, 0);
    }
}

static void waiter_that_no_longer_wants_the_turn_leaves_the_queue(void **state)
{
    (void)state;
    const struct wr_gate_lease_local leaves = {.wants = true, .leaves = true};
    struct wr_gate_lease gate_lease = {0};
    (void)wr_gate_lease_next(&gate_lease, &WANTS, T0);
    assert_false(wr_gate_lease_answered(&gate_lease, &(struct wr_gate_lease_reply){.place = 1}, T0));
    struct wr_gate_lease other = gate_lease;
    assert_move(wr_gate_lease_next(&gate_lease, &RESTS, T0 + MS), WR_GATE_LEASE_WRITE, T0 + MS);
    struct wr_gate_lease_move move = wr_gate_lease_next(&other, &leaves, T0 + MS);
    assert_move(move, WR_GATE_LEASE_WRITE, T0 + MS);
    assert_false(move.waits);
    assert_false(wr_gate_lease_answered(&gate_lease, &(struct wr_gate_lease_reply){.place = 0}, T0 + MS));
    move = wr_gate_lease_next(&gate_lease, &RESTS, T0 + 2 * MS);
    assert_move(move, WR_GATE_LEASE_NOTHING, WEIR_FOREVER);
    assert_true(move.is_over);
}

static void messages_to_the_holder_are_sent_at_once(void **state)
{
    (void)state;
    struct wr_gate_lease_local here = {.has_letters = true};
    struct wr_gate_lease gate_lease = {0};
    assert_move(wr_gate_lease_next(&gate_lease, &here, T0), WR_GATE_LEASE_WRITE, T0);
    assert_false(wr_gate_lease_answered(&gate_lease, &(struct wr_gate_lease_reply){0}, T0));
    here.wants = true;
    gate_lease.due_at = T0 + WEIR_SECOND;
    assert_move(wr_gate_lease_next(&gate_lease, &here, T0), WR_GATE_LEASE_WANT, T0);
}

static void requests_in_flight_are_reported_every_second_and_once_at_zero(void **state)
{
    (void)state;
    struct wr_gate_lease_local here = {.flights = 2};
    struct wr_gate_lease gate_lease = {0};
    gate_lease.told_at = T0;
    struct wr_gate_lease_move move = wr_gate_lease_next(&gate_lease, &here, T0 + WEIR_SECOND - 1);
    assert_move(move, WR_GATE_LEASE_NOTHING, T0 + WEIR_SECOND);
    assert_false(move.is_over);
    assert_move(wr_gate_lease_next(&gate_lease, &here, T0 + WEIR_SECOND), WR_GATE_LEASE_WRITE, T0 + WEIR_SECOND);
    assert_false(wr_gate_lease_answered(&gate_lease, &(struct wr_gate_lease_reply){0}, T0 + WEIR_SECOND));
    assert_move(wr_gate_lease_next(&gate_lease, &here, T0 + WEIR_SECOND), WR_GATE_LEASE_NOTHING, T0 + 2 * WEIR_SECOND);
    here.flights = 0;
    assert_move(wr_gate_lease_next(&gate_lease, &here, T0 + WEIR_SECOND), WR_GATE_LEASE_WRITE, T0 + WEIR_SECOND);
    assert_false(wr_gate_lease_answered(&gate_lease, &(struct wr_gate_lease_reply){0}, T0 + WEIR_SECOND));
    move = wr_gate_lease_next(&gate_lease, &here, T0 + WEIR_SECOND);
    assert_move(move, WR_GATE_LEASE_NOTHING, WEIR_FOREVER);
    assert_true(move.is_over);
    move = wr_gate_lease_next(&gate_lease, &here, T0 + WEIR_MINUTE);
    assert_move(move, WR_GATE_LEASE_NOTHING, WEIR_FOREVER);
    assert_true(move.is_over);
}

static void unanswered_call_is_repeated_after_50_ms(void **state)
{
    (void)state;
    struct wr_gate_lease gate_lease = {0};
    (void)wr_gate_lease_next(&gate_lease, &WANTS, T0);
    wr_gate_lease_missed(&gate_lease, T0 + 10 * MS);
    assert_move(wr_gate_lease_next(&gate_lease, &WANTS, T0 + 60 * MS - 1), WR_GATE_LEASE_NOTHING, T0 + 60 * MS);
    /* it may be in the queue of waiters */
    assert_move(wr_gate_lease_next(&gate_lease, &RESTS, T0 + 60 * MS), WR_GATE_LEASE_WRITE, T0 + 60 * MS);

    gate_lease = with_turn(0);
    gate_lease.is_in_queue = false;
    keep(&gate_lease, T0 + MS);
    (void)wr_gate_lease_next(&gate_lease, &WANTS, T0 + MS + WR_GATE_LEASE_RENEW_NS);
    wr_gate_lease_missed(&gate_lease, T0 + 2 * MS + WR_GATE_LEASE_RENEW_NS);
    assert_false(gate_lease.is_in_queue); /* extending a turn is not waiting for one */
}

static void turn_ends_when_the_store_says_so(void **state)
{
    (void)state;
    struct wr_gate_lease gate_lease = with_turn(0);
    struct wr_gate_lease_local news = {.wants = true, .has_news = true, .starts = 5};
    assert_move(wr_gate_lease_next(&gate_lease, &news, T0 + MS), WR_GATE_LEASE_HOLD, T0 + MS);
    assert_false(wr_gate_lease_answered(&gate_lease, &(struct wr_gate_lease_reply){.token = 8}, T0 + 2 * MS));
    assert_false(wr_gate_lease_is_held(&gate_lease, T0 + 2 * MS));
    assert_int_equal(gate_lease.seen, 8);
    /* without a pause */
    assert_move(wr_gate_lease_next(&gate_lease, &WANTS, T0 + 2 * MS), WR_GATE_LEASE_WANT, T0 + 2 * MS);
}

WEIR_TESTS(test(turn_counts_from_its_call_and_ends_one_percent_early),
           test(turn_is_extended_more_often_while_other_processes_are_present),
           test(turn_ends_after_400_ms_if_others_wait_and_a_start_was_made),
           test(turn_is_passed_at_once_if_nothing_can_start_before_its_end),
           test(idle_turn_ends_after_30_ms_with_waiters_and_500_ms_without),
           test(start_without_a_waiter_counts_as_wanting_the_turn),
           test(turn_is_kept_while_a_start_is_reserved_and_passed_on_leaving),
           test(waiters_are_told_when_the_turn_will_be_passed), test(waiter_asks_again_later_the_longer_its_turn_takes),
           test(waiter_that_no_longer_wants_the_turn_leaves_the_queue), test(messages_to_the_holder_are_sent_at_once),
           test(requests_in_flight_are_reported_every_second_and_once_at_zero),
           test(unanswered_call_is_repeated_after_50_ms), test(turn_ends_when_the_store_says_so))
