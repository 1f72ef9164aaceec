/* SPDX-License-Identifier: MIT */
/* test_settle.c - tests reservations that are settled for more, for less or for nothing, and that
 * the limit is never exceeded. */
#include "base/rng.h"
#include "rig.h"

enum {
    SMOOTH,
    STEPPED,
    FIXED,
    SLIDING,
    LOGGED,
    LEAKY,
    AT_ONCE,
    KINDS,
};

/* Returns a limit of 10 permits. A bucket regains one per second; a window is 10 s long. */
static weir_limit rule(int kind)
{
    weir_limit limit = {0};
    int error = kind == SMOOTH    ? weir_limit_token_bucket(&limit, 10, 1, WEIR_SECOND)
                : kind == STEPPED ? weir_limit_stepped_bucket(&limit, 10, 3, 3 * WEIR_SECOND, 10)
                : kind == FIXED   ? weir_limit_fixed_window(&limit, 10, 10 * WEIR_SECOND)
                : kind == SLIDING ? weir_limit_sliding_window(&limit, 10, 10 * WEIR_SECOND)
                : kind == LOGGED  ? weir_limit_sliding_log(&limit, 10, 10 * WEIR_SECOND)
                : kind == LEAKY   ? weir_limit_leaky_bucket(&limit, 10, WEIR_SECOND)
                                  : weir_limit_concurrency(&limit, 10);
    assert_int_equal(error, 0);
    return limit;
}

static void cancel_gives_back_exactly_what_was_taken(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct limit_fixture rig;
        weir_limit limit = rule(kind);
        rig_init(&rig, &limit, 1, T0);
        for (int i = 0; i < 50; i++) {
            weir_receipt receipt = rig_reserve(&rig, T0, 10);
            assert_true(rig_wait(&rig, T0, 1) > 0);
            rig_settle(&rig, T0, &receipt, 0);
        }
        assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
        assert_true(rig_try(&rig, T0, 10));
        assert_false(rig_try(&rig, T0, 1));
        rig_release(&rig);
    }
}

static void settling_for_less_gives_back_the_rest(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct limit_fixture rig, other;
        weir_limit limit = rule(kind);
        rig_init(&rig, &limit, 1, T0);
        rig_init(&other, &limit, 1, T0);
        weir_receipt receipt = rig_reserve(&rig, T0, 9);
        rig_settle(&rig, T0, &receipt, 4);
        assert_true(rig_try(&other, T0, 4));
        for (uint32_t n = 1; n <= 10; n++)
            assert_int_equal(rig_wait(&rig, T0, n), rig_wait(&other, T0, n));
        rig_release(&rig);
        rig_release(&other);
    }
}

static void settling_for_more_charges_even_beyond_the_limit(void **state)
{
    (void)state;
    const int64_t waits[KINDS] = {5 * WEIR_SECOND,  6 * WEIR_SECOND,  10 * WEIR_SECOND,  12857142858,
                                  10 * WEIR_SECOND, 14 * WEIR_SECOND, WEIR_UNTIL_RELEASE};
    for (int kind = 0; kind < KINDS; kind++) {
        struct limit_fixture rig;
        weir_limit limit = rule(kind);
        rig_init(&rig, &limit, 1, T0);
        weir_receipt receipt = rig_reserve(&rig, T0, 8);
        rig_settle(&rig, T0, &receipt, 14);
        if (rig_wait(&rig, T0, 1) != waits[kind])
            fail_msg("%s: %lld", weir_limit_name(&limit), (long long)rig_wait(&rig, T0, 1));
        rig_release(&rig);
    }
}

/* R17 */
static void receipt_settles_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct limit_fixture rig;
        weir_limit limit = rule(kind);
        rig_init(&rig, &limit, 1, T0);
        weir_receipt zero = {0}, receipt = rig_reserve(&rig, T0, 5);
        rig_settle(&rig, T0, &receipt, 5);
        int64_t wait_ns = rig_wait(&rig, T0, 6);
        rig_settle(&rig, T0, &receipt, 0);
        rig_settle(&rig, T0, &receipt, 9);
        rig_settle(&rig, T0, &zero, 9);
        assert_int_equal(rig_wait(&rig, T0, 6), wait_ns);
        rig_release(&rig);
    }
}

static void settled_permits_in_flight_stay_until_released(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = rule(AT_ONCE);
    rig_init(&rig, &limit, 1, T0);
    weir_receipt receipt = rig_reserve(&rig, T0, 9);
    rig_settle(&rig, T0, &receipt, 6);
    assert_int_equal(rig_peek(&rig, T0).remaining, 4);
    weir_stack_release(&rig.stack, rig.state, 6);
    assert_int_equal(rig_peek(&rig, T0).remaining, 10);
    rig_release(&rig);
}

/* A full refill has restored the permits already. Giving them back once more would grant five too
 * many. */
static void cancel_after_a_full_refill_gives_nothing(void **state)
{
    (void)state;
    for (int kind = SMOOTH; kind <= STEPPED; kind++) {
        struct limit_fixture rig;
        weir_limit limit = rule(kind);
        rig_init(&rig, &limit, 1, T0);
        weir_receipt receipt = rig_reserve(&rig, T0, 5);
        assert_true(rig_try(&rig, T0 + 6 * WEIR_SECOND, 10));
        rig_settle(&rig, T0 + 6 * WEIR_SECOND, &receipt, 0);
        assert_int_equal(rig_drain(&rig, T0 + 6 * WEIR_SECOND), 0);
        rig_release(&rig);
    }
}

/* Nearly full is as critical: without the reservation the bucket would have stayed full, and its
 * refill would have been lost. Nine are granted at once, and one more may be. */
static void cancel_after_nearly_a_full_refill_gives_no_second_burst(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = rule(SMOOTH);
    int64_t now = T0 + 10 * WEIR_SECOND - 1;
    rig_init(&rig, &limit, 1, T0);
    weir_receipt receipt = rig_reserve(&rig, T0, 10);
    assert_true(rig_try(&rig, now, 9));
    rig_settle(&rig, now, &receipt, 0);
    assert_int_equal(rig_drain(&rig, now), 1);
    rig_release(&rig);
}

/* Two reservations are cancelled in turn: the second must not count what the first gave back. (5 +
 * 5 at 0 s, the first cancelled at 1 s; nine more at 5.5 s; the second cancelled. Without both, one
 * is left.) */
static void several_cancels_give_no_second_burst(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = rule(SMOOTH);
    rig_init(&rig, &limit, 1, T0);
    weir_receipt first = rig_reserve(&rig, T0, 5), second = rig_reserve(&rig, T0, 5);
    rig_settle(&rig, T0 + 1000 * MS, &first, 0);
    assert_true(rig_try(&rig, T0 + 5500 * MS, 9));
    rig_settle(&rig, T0 + 5500 * MS, &second, 0);
    assert_true(rig_drain(&rig, T0 + 5500 * MS) <= 1);
    rig_release(&rig);
}

/* A receipt of a discarded state has no effect on the state that replaced it. */
static void receipt_of_a_forgotten_state_gives_nothing(void **state)
{
    (void)state;
    for (int kind = SMOOTH; kind <= LEAKY; kind++) {
        for (int64_t later = 1; later < 50; later++) {
            struct limit_fixture rig, anew;
            weir_limit limit = rule(kind);
            rig_init(&rig, &limit, 1, T0);
            weir_receipt receipt = rig_reserve(&rig, T0, 10);
            rig_init(&anew, &limit, 1, T0 + later * 1000);
            assert_true(rig_try(&anew, T0 + later * 1000, 10));
            rig_settle(&anew, T0 + later * 1000, &receipt, 0);
            assert_false(rig_try(&anew, T0 + later * 1000, 1));
            rig_release(&rig);
            rig_release(&anew);
        }
    }
}

static void windows_take_back_only_what_they_counted(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = rule(FIXED);
    rig_init(&rig, &limit, 1, T0);
    weir_receipt receipt = rig_reserve(&rig, T0 + 9 * WEIR_SECOND, 10);
    assert_true(rig_try(&rig, T0 + 10 * WEIR_SECOND, 10));
    rig_settle(&rig, T0 + 10 * WEIR_SECOND, &receipt, 0); /* in the next window */
    assert_false(rig_try(&rig, T0 + 10 * WEIR_SECOND, 1));
    rig_release(&rig);

    limit = rule(SLIDING);
    rig_init(&rig, &limit, 1, T0);
    receipt = rig_reserve(&rig, T0 + 9 * WEIR_SECOND, 10);
    assert_true(rig_try(&rig, T0 + 15 * WEIR_SECOND, 5));
    /* the reservation is in the previous slot */
    rig_settle(&rig, T0 + 15 * WEIR_SECOND, &receipt, 0);
    assert_int_equal(rig_peek(&rig, T0 + 15 * WEIR_SECOND).remaining, 5);
    receipt = rig_reserve(&rig, T0 + 15 * WEIR_SECOND, 5);
    rig_settle(&rig, T0 + 35 * WEIR_SECOND, &receipt, 0); /* the slot has expired */
    assert_int_equal(rig_peek(&rig, T0 + 35 * WEIR_SECOND).remaining, 10);
    rig_release(&rig);
}

/* A reservation whose `now` was older than the newest charge can still be given back. */
static void reservation_with_a_stale_now_is_given_back(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct limit_fixture rig;
        weir_limit limit = rule(kind);
        if (kind == LEAKY)
            continue; /* the leaky bucket grants one at a time */
        rig_init(&rig, &limit, 1, T0);
        assert_true(rig_try(&rig, T0 + 20 * WEIR_SECOND, 4));
        weir_receipt receipt = rig_reserve(&rig, T0 + 20 * WEIR_SECOND - 700, 5);
        rig_settle(&rig, T0 + 20 * WEIR_SECOND, &receipt, 0);
        if (rig_peek(&rig, T0 + 20 * WEIR_SECOND).remaining != 6)
            fail_msg("%s: %u", weir_limit_name(&limit), rig_peek(&rig, T0 + 20 * WEIR_SECOND).remaining);
        rig_release(&rig);
    }
}

/* Only the last start can be taken back, also in part. */
static void leaky_bucket_takes_back_the_last_start_only(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit = rule(LEAKY);
    rig_init(&rig, &limit, 1, T0);
    weir_receipt first = rig_reserve(&rig, T0, 1);
    weir_receipt second = rig_reserve(&rig, T0 + WEIR_SECOND, 4);
    rig_settle(&rig, T0 + WEIR_SECOND, &first, 0);
    assert_int_equal(rig_wait(&rig, T0 + WEIR_SECOND, 1), 4 * WEIR_SECOND);
    rig_settle(&rig, T0 + WEIR_SECOND, &second, 3);
    assert_int_equal(rig_wait(&rig, T0 + WEIR_SECOND, 1), 3 * WEIR_SECOND);
    weir_receipt third = rig_reserve(&rig, T0 + 4 * WEIR_SECOND, 1);
    rig_settle(&rig, T0 + 4 * WEIR_SECOND, &third, 0);
    assert_int_equal(rig_wait(&rig, T0 + 4 * WEIR_SECOND, 1), 0);
    /* the second start still delays the next */
    assert_int_equal(rig_wait(&rig, T0 + 4 * WEIR_SECOND - 1, 1), 1);
    rig_release(&rig);
}

/* Charges so large that they were clipped cannot be recognised later, and are not given back. */
static void clipped_charges_are_not_given_back(void **state)
{
    (void)state;
    struct limit_fixture rig;
    weir_limit limit;
    weir_receipt receipt;
    assert_int_equal(weir_limit_sliding_window(&limit, UINT32_MAX, WEIR_SECOND), 0);
    rig_init(&rig, &limit, 1, T0);
    assert_true(rig_try(&rig, T0, UINT32_MAX - 5));
    weir_stack_take(&rig.stack, rig.state, T0, 10, &receipt);
    rig_settle(&rig, T0, &receipt, 0);
    assert_int_equal(rig_peek(&rig, T0).remaining, 0); /* at most 5 were charged */
    rig_release(&rig);

    assert_int_equal(weir_limit_leaky_bucket(&limit, 1, WEIR_DURATION_MAX), 0);
    rig_init(&rig, &limit, 1, T0);
    weir_stack_take(&rig.stack, rig.state, T0, UINT32_MAX, &receipt);
    rig_settle(&rig, T0, &receipt, 1);
    assert_int_equal(rig_wait(&rig, T0, 1), 2 * WEIR_DURATION_MAX);
    rig_release(&rig);
}

/* Estimates in practice: each request reserves five permits, uses one, and settles three seconds
 * later. */
static void reservations_settled_for_less_cost_only_the_used_permits(void **state)
{
    (void)state;
    enum {
        SECONDS = 600,
        FLIGHT = 3 * 100, /* 3 s in ticks of 10 ms */
    };
    static weir_receipt open[SECONDS * 100 + FLIGHT][8];
    struct limit_fixture rig;
    weir_limit limit;
    uint32_t granted = 0;
    memset(open, 0, sizeof open);
    assert_int_equal(weir_limit_token_bucket(&limit, 600, 10, WEIR_SECOND), 0);
    rig_init(&rig, &limit, 1, T0);
    for (int tick = 0; tick < SECONDS * 100; tick++) {
        int64_t now = T0 + tick * 10 * MS;
        for (int i = 0; i < 8; i++)
            rig_settle(&rig, now, &open[tick][i], 1);
        for (int i = 0; i < 8; i++) {
            weir_receipt *receipt = &open[tick + FLIGHT][i];
            granted += weir_stack_try(&rig.stack, rig.state, now, 5, receipt).verdict == WEIR_GO;
        }
    }
    assert_true(granted <= 600 + 10 * SECONDS);
    assert_true(granted >= (600 + 10 * SECONDS) * 97 / 100);
    rig_release(&rig);
}

/* ---- comparison with a run without reservations ---------------------------------------------- */

enum {
    TAKES_MAX = 48
};
struct history {
    weir_receipt receipts[TAKES_MAX];
    int64_t at[TAKES_MAX];
    uint32_t kept[TAKES_MAX]; /* permits used; all of them until it is settled */
    size_t count;
};

/* Runs the same limit as if every reservation had asked only for what it used. */
static void replay(const weir_limit *limit, const struct history *history, struct limit_fixture *ret_rig)
{
    rig_init(ret_rig, limit, 1, T0);
    for (size_t i = 0; i < history->count; i++)
        weir_stack_take(&ret_rig->stack, ret_rig->state, history->at[i], history->kept[i], NULL);
}

static void compare(struct limit_fixture *rig, const struct history *history, int64_t now, bool exactly)
{
    const weir_limit *limit = &rig->stack.limits[0];
    struct limit_fixture never;
    replay(limit, history, &never);
    for (uint32_t n = 1; n <= limit->permits; n++) {
        int64_t real = rig_wait(rig, now, n), would = rig_wait(&never, now, n);
        if (real < would || (exactly && real > would))
            fail_msg("%s: %u permits wait %lld ns; without unused reservations %lld", weir_limit_name(limit), n,
                     (long long)real, (long long)would);
    }
    rig_release(&never);
}

/* Runs one random sequence. step_ns 0: all calls at one instant. */
static void random_history(struct wr_rng *rng, int kind, uint64_t step_ns, bool exactly)
{
    struct history history = {.count = 0};
    struct limit_fixture rig;
    weir_limit limit = rule(kind);
    int64_t now = T0;

    rig_init(&rig, &limit, 1, now);
    for (int i = 0; i < 200 && history.count < TAKES_MAX; i++) {
        size_t which = (size_t)wr_rng_below(rng, TAKES_MAX);
        now += step_ns == 0 ? 0 : (int64_t)wr_rng_below(rng, step_ns);
        if (which < history.count && history.receipts[which].permits > 0) {
            uint32_t used = (uint32_t)wr_rng_below(rng, history.receipts[which].permits + 1);
            history.kept[which] = used;
            rig_settle(&rig, now, &history.receipts[which], used);
            compare(&rig, &history, now, exactly);
        } else {
            uint32_t n = (uint32_t)wr_rng_below(rng, 6) + 1;
            weir_receipt *receipt = &history.receipts[history.count];
            if (weir_stack_try(&rig.stack, rig.state, now, n, receipt).verdict == WEIR_GO) {
                history.at[history.count] = now;
                history.kept[history.count++] = n;
            }
        }
    }
    compare(&rig, &history, now, exactly);
    rig_release(&rig);
}

/* V8 with reservations: no algorithm admits more than it would have without them. */
static void settling_never_grants_more_than_charging_the_used_permits(void **state)
{
    (void)state;
    struct wr_rng rng;
    wr_rng_init(&rng, weir_test_seed());
    for (int run = 0; run < 300; run++)
        for (int kind = 0; kind < KINDS; kind++)
            for (uint64_t step_ns = 1000; step_ns < 20 * WEIR_SECOND; step_ns *= 20)
                random_history(&rng, kind, step_ns, kind >= FIXED && kind <= LOGGED);
}

/* At one instant and in any order, settling is exact, as if the unused permits had never been
 * reserved. The leaky bucket is not compared exactly because it grants one permit at a time. */
static void settling_at_once_is_exact_in_any_order(void **state)
{
    (void)state;
    struct wr_rng rng;
    wr_rng_init(&rng, weir_test_seed());
    for (int run = 0; run < 500; run++)
        for (int kind = 0; kind < KINDS; kind++)
            random_history(&rng, kind, 0, kind != LEAKY);
}

/* A caller that settles a receipt twice gets at most a full bucket. */
static void copy_of_a_settled_receipt_gives_back_at_most_what_is_missing(void **state)
{
    (void)state;
    weir_limit limits[2];
    assert_int_equal(weir_limit_token_bucket(&limits[0], 10, 3, 10), 0);
    assert_int_equal(weir_limit_stepped_bucket(&limits[1], 10, 3, 10, 10), 0);
    for (size_t i = 0; i < 2; i++) {
        struct limit_fixture rig;
        rig_init(&rig, &limits[i], 1, T0);
        weir_receipt first = rig_reserve(&rig, T0, 5), copy = first;
        (void)rig_reserve(&rig, T0, 3);
        rig_settle(&rig, T0, &first, 0);
        assert_int_equal(rig_peek(&rig, T0).remaining, 7);
        rig_settle(&rig, T0, &copy, 0);
        assert_int_equal(rig_peek(&rig, T0).remaining, 10);
        assert_true(weir_stack_fresh(&rig.stack, rig.state, T0));
        assert_true(rig_try(&rig, T0, 10));
        assert_false(rig_try(&rig, T0, 1));
        rig_release(&rig);
    }
}

WEIR_TESTS(test(copy_of_a_settled_receipt_gives_back_at_most_what_is_missing),
           test(cancel_gives_back_exactly_what_was_taken), test(settling_for_less_gives_back_the_rest),
           test(settling_for_more_charges_even_beyond_the_limit), test(receipt_settles_once),
           test(settled_permits_in_flight_stay_until_released), test(cancel_after_a_full_refill_gives_nothing),
           test(cancel_after_nearly_a_full_refill_gives_no_second_burst), test(several_cancels_give_no_second_burst),
           test(receipt_of_a_forgotten_state_gives_nothing), test(windows_take_back_only_what_they_counted),
           test(reservation_with_a_stale_now_is_given_back), test(leaky_bucket_takes_back_the_last_start_only),
           test(clipped_charges_are_not_given_back), test(reservations_settled_for_less_cost_only_the_used_permits),
           test(settling_never_grants_more_than_charging_the_used_permits),
           test(settling_at_once_is_exact_in_any_order))
