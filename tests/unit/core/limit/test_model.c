/* SPDX-License-Identifier: MIT */
/* test_model.c - runs random sequences of all operations on every algorithm and on stacks, and
 * compares them with model.h. */
#include "base/rng.h"
#include "model.h"
#include "rig.h"

enum {
    RUNS = 4000,
    STEPS = 120,
    RULES_MAX = 3,
    OPEN_MAX = 8,
};

struct open {
    weir_receipt receipt;
    struct model_receipt models[RULES_MAX];
};

struct world {
    struct wr_rng rng;
    struct limit_fixture rig;
    size_t count;
    struct model *models; /* array of RULES_MAX */
    int64_t now;
    struct open open[OPEN_MAX];
    uint64_t steps;
};

static uint64_t below(struct world *world, uint64_t n)
{
    return wr_rng_below(&world->rng, n);
}

/* Returns a random period. Small ones meet boundaries often; large ones test the width of
 * integers. */
static int64_t random_period(struct world *world)
{
    const int64_t periods[] = {1, 2, 7, 10, 100, 1000, WEIR_MICROSECOND + 1, WEIR_SECOND, WEIR_HOUR, (int64_t)1 << 44};
    return periods[below(world, sizeof periods / sizeof periods[0])];
}

/* Returns 1 ... 9 mostly, otherwise a count of any width up to 2^bits. */
static uint32_t random_count(struct world *world, uint64_t bits)
{
    uint64_t width = below(world, 4) == 0 ? (uint64_t)1 << below(world, bits + 1) : 9;
    return (uint32_t)(below(world, width < UINT32_MAX ? width : UINT32_MAX) + 1);
}

static int make_limit(enum kind kind, uint32_t permits, uint32_t refill, int64_t period_ns, weir_limit *ret_limit)
{
    switch (kind) {
    case SMOOTH:
        return weir_limit_token_bucket(ret_limit, permits, refill, period_ns);
    case STEPPED:
        return weir_limit_stepped_bucket(ret_limit, permits, refill, period_ns, refill);
    case FIXED:
        return weir_limit_fixed_window(ret_limit, permits, period_ns);
    case SLIDING:
        return weir_limit_sliding_window(ret_limit, permits, period_ns);
    case LOGGED:
        return weir_limit_sliding_log(ret_limit, permits, period_ns);
    case LEAKY:
        return weir_limit_leaky_bucket(ret_limit, permits, period_ns);
    default:
        return weir_limit_concurrency(ret_limit, permits);
    }
}

/* Returns a random limit. Counts of a sliding window stop at 2^32, and a log stores each permit, so
 * that their limits are narrower. */
static weir_limit random_limit(struct world *world, enum kind kind)
{
    weir_limit limit;
    uint64_t bits = kind == SLIDING ? 24 : kind == LOGGED ? 7 : 32;
    while (make_limit(kind, random_count(world, bits), random_count(world, 32), random_period(world), &limit) != 0)
        continue; /* refused: it would take more than 36 years to fill */
    return limit;
}

static uint32_t permits_max(const struct world *world)
{
    uint32_t most = UINT32_MAX;
    for (size_t i = 0; i < world->count; i++)
        most = world->models[i].limit.permits < most ? world->models[i].limit.permits : most;
    return most;
}

/* Returns at least 1 and at most `more` above what all limits of the world hold. */
static uint32_t random_permits(struct world *world, uint32_t more)
{
    uint64_t most = (uint64_t)permits_max(world) + more;
    uint64_t permits = below(world, below(world, 4) == 0 && most > 9 ? 9 : most) + 1;
    return permits < UINT32_MAX ? (uint32_t)permits : UINT32_MAX;
}

/* Moves the clock: not at all, by a nanosecond, by periods, back, or by 40 days. */
static void move_clock(struct world *world)
{
    int64_t period_ns = world->models[below(world, world->count)].limit.period_ns;
    int64_t by_ns = 0;
    period_ns = period_ns > 0 ? period_ns : 1000;
    uint64_t how = below(world, 16);
    if (how == 0)
        by_ns = 1;
    else if (how < 5)
        by_ns = (int64_t)below(world, (uint64_t)period_ns + 1);
    else if (how < 7)
        by_ns = (int64_t)below(world, 4) * period_ns;
    else if (how == 7)
        by_ns = (int64_t)below(world, 20 * (uint64_t)period_ns);
    else if (how == 8)
        by_ns = -(int64_t)below(world, 3 * (uint64_t)period_ns);
    else if (how == 9)
        by_ns = below(world, 20) == 0 ? 40 * WEIR_DAY : 0;
    world->now += by_ns;
}

static bool all_grant(const struct world *world, int64_t now, uint32_t permits)
{
    for (size_t i = 0; i < world->count; i++)
        if (!model_grants(&world->models[i], now, permits))
            return false;
    return true;
}

/* Checks that the decision is right and that its wait is exact to the nanosecond. */
static void check_decision(const struct world *world, uint32_t permits, weir_decision decision)
{
    int64_t now = world->now;
    bool right;
    if (permits > permits_max(world))
        right = decision.verdict == WEIR_DENY;
    else if (decision.verdict == WEIR_GO)
        right = all_grant(world, now, permits) && decision.wait_ns == 0 && decision.reason == WEIR_REASON_NONE;
    else if (decision.wait_ns == WEIR_UNTIL_RELEASE)
        right = decision.verdict == WEIR_WAIT && !all_grant(world, now + WEIR_DURATION_MAX, permits);
    else
        right = decision.verdict == WEIR_WAIT && decision.wait_ns > 0 &&
                all_grant(world, now + decision.wait_ns, permits) &&
                !all_grant(world, now + decision.wait_ns - 1, permits);
    if (!right)
        fail_msg("step %llu, %s of %zu: %u permits: verdict %d, wait %lld", (unsigned long long)world->steps,
                 weir_limit_name(&world->models[0].limit), world->count, permits, (int)decision.verdict,
                 (long long)decision.wait_ns);
}

/* Checks the quota of one rule: the largest n that is granted, and the time until all permits
 * are. */
static void check_quota(const struct world *world, size_t i)
{
    const struct model *model = &world->models[i];
    const weir_limit *limit = &model->limit;
    weir_quota quota;
    uint32_t most = model->kind == LEAKY ? 1 : limit->permits, left = 0, too_many = most;
    limit->algorithm->peek(limit, (char *)world->rig.state + world->rig.stack.offsets[i], world->now, &quota);
    while (left < too_many) { /* n permits are granted for all n <= left and for no n > too_many */
        uint32_t n = left + (too_many - left) / 2 + 1;
        n = n < too_many ? n : too_many;
        if (model_grants(model, world->now, n))
            left = n;
        else
            too_many = n - 1;
    }
    assert_int_equal(quota.limit, most);
    assert_int_equal(quota.remaining, left);
    if (quota.reset_ns != WEIR_UNTIL_RELEASE) {
        assert_true(model_grants(model, world->now + quota.reset_ns, most));
        assert_true(quota.reset_ns == 0 || !model_grants(model, world->now + quota.reset_ns - 1, most));
    }
}

static void check_all(struct world *world)
{
    bool fresh = true;
    for (size_t i = 0; i < world->count; i++) {
        check_quota(world, i);
        fresh = fresh && model_fresh(&world->models[i], world->now);
    }
    assert_int_equal(weir_stack_fresh(&world->rig.stack, world->rig.state, world->now), fresh);
}

static void step_try(struct world *world, bool force)
{
    struct open *open = &world->open[below(world, OPEN_MAX)];
    uint32_t permits = random_permits(world, below(world, 10) == 0 ? 2 : 0);
    bool reserve = open->receipt.permits == 0 && below(world, 2) == 0;
    weir_receipt *receipt = reserve ? &open->receipt : NULL;
    weir_decision decision = {.verdict = WEIR_GO};
    struct model_receipt ignored[RULES_MAX];

    if (force) {
        weir_stack_take(&world->rig.stack, world->rig.state, world->now, permits, receipt);
    } else {
        decision = weir_stack_try(&world->rig.stack, world->rig.state, world->now, permits, receipt);
        check_decision(world, permits, decision);
    }
    for (size_t i = 0; decision.verdict == WEIR_GO && i < world->count; i++)
        model_take(&world->models[i], world->now, permits, reserve ? &open->models[i] : &ignored[i]);
}

static void step_settle(struct world *world)
{
    struct open *open = &world->open[below(world, OPEN_MAX)];
    uint32_t taken = open->receipt.permits;
    uint32_t used = taken > UINT32_MAX - 3 ? 0 : (uint32_t)below(world, taken + 3);
    struct model_receipt ignored;
    bool too_late = false;
    for (size_t i = 0; i < world->count; i++)
        too_late = too_late || open->models[i].too_late;
    if (taken == 0 || too_late)
        return;
    weir_stack_settle(&world->rig.stack, world->rig.state, world->now, &open->receipt, used);
    for (size_t i = 0; i < world->count; i++) {
        if (used < taken)
            model_give(&world->models[i], world->now, &open->models[i], taken - used);
        else if (used > taken)
            model_take(&world->models[i], world->now, used - taken, &ignored);
    }
}

static void step_carry(struct world *world)
{
    weir_limit limits[RULES_MAX];
    for (size_t i = 0; i < world->count; i++) {
        bool same = below(world, 3) == 0;
        limits[i] = same ? world->models[i].limit : random_limit(world, world->models[i].kind);
        model_carry(&world->models[i], &limits[i], world->now);
    }
    rig_change(&world->rig, limits, world->count, world->now);
    for (size_t i = 0; i < OPEN_MAX; i++) /* receipts across a change have their own tests */
        world->open[i].receipt.permits = 0;
}

static void step(struct world *world)
{
    uint64_t verb = below(world, 100);
    uint32_t permits = random_permits(world, 1);
    world->steps++;
    move_clock(world);
    if (verb < 50) {
        step_try(world, false);
    } else if (verb < 53) {
        step_try(world, true);
    } else if (verb < 75) {
        step_settle(world);
    } else if (verb < 85) {
        weir_stack_release(&world->rig.stack, world->rig.state, permits);
        for (size_t i = 0; i < world->count; i++)
            model_release(&world->models[i], permits);
    } else if (verb < 98) {
        check_decision(world, permits, weir_stack_ask(&world->rig.stack, world->rig.state, world->now, permits));
        check_all(world);
    } else if (verb < 99) {
        step_carry(world);
    }
}

static void run(struct world *world, const enum kind *kinds, size_t count)
{
    weir_limit limits[RULES_MAX];
    world->count = count;
    world->now = T0 + (int64_t)below(world, WEIR_DAY);
    memset(world->open, 0, sizeof world->open);
    for (size_t i = 0; i < count; i++) {
        limits[i] = random_limit(world, kinds[i]);
        model_start(&world->models[i], kinds[i], &limits[i], world->now);
    }
    rig_init(&world->rig, limits, count, world->now);
    for (int i = 0; i < STEPS; i++)
        step(world);
    rig_release(&world->rig);
}

static void every_algorithm_decides_as_its_model(void **state)
{
    (void)state;
    static struct model models[RULES_MAX];
    struct world world = {.models = models};
    wr_rng_init(&world.rng, weir_test_seed());
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < RUNS; i++)
            run(&world, &(enum kind){(enum kind)kind}, 1);
    print_message("%llu steps\n", (unsigned long long)world.steps);
}

static void stacks_decide_as_all_their_models(void **state)
{
    (void)state;
    static struct model models[RULES_MAX];
    struct world world = {.models = models};
    wr_rng_init(&world.rng, weir_test_seed() + 1);
    for (int i = 0; i < 2 * RUNS; i++) {
        enum kind kinds[RULES_MAX];
        for (size_t j = 0; j < RULES_MAX; j++)
            kinds[j] = (enum kind)below(&world, KINDS);
        run(&world, kinds, 2 + (size_t)below(&world, RULES_MAX - 1));
    }
    print_message("%llu steps\n", (unsigned long long)world.steps);
}

WEIR_TESTS(test(every_algorithm_decides_as_its_model), test(stacks_decide_as_all_their_models))
