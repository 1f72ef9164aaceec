/* SPDX-License-Identifier: MIT */
/* test_bound.c - tests from outside that a limiter admits at most burst + rate x time in any
 * interval, and exactly that under saturation (V8). The tests see only instants and granted
 * permits. */
#include "base/rng.h"
#include "core/limit/algorithm.h"
#include "rig.h"

enum {
    GRANTS_MAX = 4000
};
struct grants {
    size_t count;
    int64_t at[GRANTS_MAX];
    uint32_t permits[GRANTS_MAX];
};

/* Asks for 1 to 5 permits at random steps below step_ns. If `back` is set, some steps go back. */
static void demand(struct wr_rng *rng, const weir_limit *limit, int64_t step_ns, bool back, struct grants *ret_grants)
{
    struct limit_fixture rig;
    int64_t now = T0;
    rig_init(&rig, limit, 1, now);
    ret_grants->count = 0;
    for (int i = 0; i < GRANTS_MAX; i++) {
        int64_t by_ns = (int64_t)wr_rng_below(rng, (uint64_t)step_ns);
        uint32_t most = limit->permits < 5 ? limit->permits : 5;
        uint32_t permits = (uint32_t)wr_rng_below(rng, most) + 1;
        now += back && wr_rng_below(rng, 4) == 0 ? -2 * by_ns : by_ns;
        if (rig_try(&rig, now, permits)) {
            ret_grants->at[ret_grants->count] = now;
            ret_grants->permits[ret_grants->count++] = permits;
        }
    }
    rig_release(&rig);
}

/* Checks that permits <= burst + refill x length / period in every interval between two grants. The
 * largest excess over the rate up to a grant follows from that up to the grant before. */
static void check_bucket_bound(const struct grants *grants, uint32_t burst, uint32_t refill, int64_t period_ns)
{
    wr_i128 excess = 0;
    for (size_t i = 0; i < grants->count; i++) {
        wr_i128 paid = i == 0 ? 0 : (wr_i128)(grants->at[i] - grants->at[i - 1]) * refill;
        excess = excess > paid ? excess - paid : 0;
        excess += (wr_i128)grants->permits[i] * period_ns;
        assert_true(excess <= (wr_i128)burst * period_ns);
    }
}

/* Checks the same bound when the clock goes back. The length of an interval is the distance between
 * its earliest and its latest instant. */
static void check_bound_in_any_order(const struct grants *grants, const weir_limit *limit)
{
    for (size_t i = 0; i < grants->count; i++) {
        int64_t first = INT64_MAX, last = INT64_MIN;
        wr_i128 permits = 0;
        for (size_t j = i; j < grants->count && j < i + 200; j++) {
            first = grants->at[j] < first ? grants->at[j] : first;
            last = grants->at[j] > last ? grants->at[j] : last;
            permits += grants->permits[j];
            assert_true(permits * limit->period_ns <=
                        (wr_i128)limit->permits * limit->period_ns + (wr_i128)(last - first) * limit->refill);
        }
    }
}

/* Checks that at most `most` permits were granted in any half-open interval of `window_ns`. */
static void check_window_bound(const struct grants *grants, uint64_t most, int64_t window_ns)
{
    for (size_t i = 0; i < grants->count; i++) {
        uint64_t permits = 0;
        for (size_t j = i; j < grants->count && grants->at[j] - grants->at[i] < window_ns; j++)
            permits += grants->permits[j];
        assert_true(permits <= most);
    }
}

static void bucket_admits_at_most_burst_plus_rate_times_time(void **state)
{
    (void)state;
    const struct {
        uint32_t capacity, refill;
        int64_t period_ns, step_ns;
    } rows[] = {{1, 1, 1000, 900}, {10, 3, 1000, 500},          {7, 7, 100, 40},   {100, 1, 10, 20},
                {3, 11, 4, 3},     {5, 1, WEIR_DAY, WEIR_HOUR}, {2, 999, 1000, 3}, {50, 13, 7, 4}};
    static struct grants grants;
    struct wr_rng rng;
    wr_rng_init(&rng, weir_test_seed());
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_limit limit;
        assert_int_equal(weir_limit_token_bucket(&limit, rows[i].capacity, rows[i].refill, rows[i].period_ns), 0);
        for (int run = 0; run < 20; run++) {
            demand(&rng, &limit, rows[i].step_ns, false, &grants);
            check_bucket_bound(&grants, limit.permits, limit.refill, limit.period_ns);
            demand(&rng, &limit, rows[i].step_ns, true, &grants);
            check_bound_in_any_order(&grants, &limit);
        }
    }
}

/* A bucket whose permits are taken as soon as they are granted gives exactly burst + rate x
 * time. */
static void saturated_bucket_admits_exactly_burst_plus_rate_times_time(void **state)
{
    (void)state;
    const uint32_t refills[] = {1, 3, 7, 999, 1000, 1000003};
    for (size_t i = 0; i < sizeof refills / sizeof refills[0]; i++) {
        struct limit_fixture rig;
        weir_limit limit;
        int64_t admitted = 0, now = T0;
        assert_int_equal(weir_limit_token_bucket(&limit, 100, refills[i], WEIR_SECOND), 0);
        rig_init(&rig, &limit, 1, now);
        for (int step = 0; step < 20000; step++) {
            admitted += rig_try(&rig, now, 1);
            now += rig_wait(&rig, now, 1);
        }
        assert_int_equal(admitted + rig_peek(&rig, now).remaining, 100 + (now - T0) * refills[i] / WEIR_SECOND);
        rig_release(&rig);
    }
}

static void stepped_bucket_admits_at_most_burst_plus_whole_steps(void **state)
{
    (void)state;
    static struct grants grants;
    struct wr_rng rng;
    weir_limit limit;
    wr_rng_init(&rng, weir_test_seed());
    assert_int_equal(weir_limit_stepped_bucket(&limit, 9, 4, 100, 9), 0);
    for (int64_t step_ns = 3; step_ns < 300; step_ns *= 2) {
        demand(&rng, &limit, step_ns, false, &grants);
        /* an interval may contain one step more than whole periods */
        check_bucket_bound(&grants, 9 + 4, 4, 100);
        for (size_t i = 0; i < grants.count; i++) {
            uint64_t permits = 0;
            for (size_t j = i; j < grants.count && j < i + 100; j++) {
                uint64_t steps = (uint64_t)((grants.at[j] - T0) / 100 - (grants.at[i] - T0) / 100);
                permits += grants.permits[j];
                assert_true(permits <= 9 + 4 * steps);
            }
        }
    }
}

static void windows_admit_at_most_their_bound(void **state)
{
    (void)state;
    static struct grants grants;
    struct wr_rng rng;
    weir_limit fixed, sliding, logged;
    wr_rng_init(&rng, weir_test_seed());
    assert_int_equal(weir_limit_fixed_window(&fixed, 9, 100), 0);
    assert_int_equal(weir_limit_sliding_window(&sliding, 9, 100), 0);
    assert_int_equal(weir_limit_sliding_log(&logged, 9, 100), 0);
    for (int64_t step_ns = 2; step_ns < 300; step_ns *= 2) {
        for (int run = 0; run < 5; run++) {
            demand(&rng, &fixed, step_ns, false, &grants);
            check_window_bound(&grants, 18, 100);
            demand(&rng, &sliding, step_ns, false, &grants);
            check_window_bound(&grants, 18, 100);
            demand(&rng, &logged, step_ns, false, &grants);
            check_window_bound(&grants, 9, 100);
        }
    }
}

static void leaky_bucket_admits_one_per_interval(void **state)
{
    (void)state;
    static struct grants grants;
    struct wr_rng rng;
    weir_limit limit;
    wr_rng_init(&rng, weir_test_seed());
    assert_int_equal(weir_limit_leaky_bucket(&limit, 5, 100), 0);
    for (int64_t step_ns = 2; step_ns < 300; step_ns *= 2) {
        demand(&rng, &limit, step_ns, false, &grants);
        for (size_t i = 1; i < grants.count; i++)
            assert_true(grants.at[i] - grants.at[i - 1] >= 100 * (int64_t)grants.permits[i - 1]);
    }
}

/* Reserves and settles at random, at most 16 at a time. Stores the used permits in ret_kept at the
 * instant of their reservation. */
static void reserve_and_settle(struct wr_rng *rng, const weir_limit *limit, uint64_t step_ns, struct grants *ret_kept)
{
    weir_receipt open[16] = {{0}};
    size_t which[16] = {0};
    struct limit_fixture rig;
    int64_t now = T0;

    rig_init(&rig, limit, 1, now);
    ret_kept->count = 0;
    for (int i = 0; i < GRANTS_MAX; i++) {
        size_t o = (size_t)wr_rng_below(rng, 16);
        uint32_t permits = (uint32_t)wr_rng_below(rng, limit->permits) + 1;
        now += (int64_t)wr_rng_below(rng, step_ns);
        if (open[o].permits > 0) {
            ret_kept->permits[which[o]] = (uint32_t)wr_rng_below(rng, open[o].permits + 1);
            rig_settle(&rig, now, &open[o], ret_kept->permits[which[o]]);
        } else if (weir_stack_try(&rig.stack, rig.state, now, permits, &open[o]).verdict == WEIR_GO) {
            which[o] = ret_kept->count;
            ret_kept->at[ret_kept->count] = now;
            ret_kept->permits[ret_kept->count++] = permits;
        }
    }
    rig_release(&rig);
}

/* Reservations that are cancelled or partly used do not count, and never allow more than the
 * bound. */
static void cancelled_reservations_leave_the_bound_as_it_is(void **state)
{
    (void)state;
    static struct grants kept;
    struct wr_rng rng;
    weir_limit limit;
    wr_rng_init(&rng, weir_test_seed());
    assert_int_equal(weir_limit_token_bucket(&limit, 20, 3, 1000), 0);
    for (uint64_t step_ns = 10; step_ns < 100000; step_ns *= 3) {
        for (int run = 0; run < 20; run++) {
            reserve_and_settle(&rng, &limit, step_ns, &kept);
            check_bucket_bound(&kept, limit.permits, limit.refill, limit.period_ns);
        }
    }
}

WEIR_TESTS(test(bucket_admits_at_most_burst_plus_rate_times_time),
           test(saturated_bucket_admits_exactly_burst_plus_rate_times_time),
           test(stepped_bucket_admits_at_most_burst_plus_whole_steps), test(windows_admit_at_most_their_bound),
           test(leaky_bucket_admits_one_per_interval), test(cancelled_reservations_leave_the_bound_as_it_is))
