/* SPDX-License-Identifier: MIT */
/* stepped_bucket.c - the token bucket whose permits all come back at once at the end of each
 * period.
 *
 * The periods follow each other from the start on. A late access counts all steps since the last
 * one, so no step is lost and the grid does not drift. The state counts the permits missing, so
 * that a full bucket is 0 whatever its capacity.
 */
#include "core/limit/mark.h"

struct steps {
    int64_t step_at;  /* time of the last step counted, ns */
    uint64_t missing; /* permits missing at the time step_at */
    uint32_t mark;    /* units given back since the start, plus an offset (see mark.h) */
};

static size_t stepped_bucket_state_bytes(const weir_limit *limit)
{
    (void)limit;
    return sizeof(struct steps);
}

static void stepped_bucket_start(const weir_limit *limit, void *state, int64_t now)
{
    struct steps *steps = state;
    steps->step_at = now;
    steps->missing = limit->permits - limit->initial;
    steps->mark = wr_instant_mark(now);
}

/* Returns the state at `now`. If the clock went back, it is unchanged: no step counts twice. */
static struct steps steps_at(const weir_limit *limit, const void *state, int64_t now)
{
    struct steps steps = *(const struct steps *)state;
    if (now - steps.step_at < limit->period_ns)
        return steps;
    uint64_t count = (uint64_t)(now - steps.step_at) / (uint64_t)limit->period_ns;
    steps.step_at += (int64_t)count * limit->period_ns;
    /* Divides first, because count x refill might overflow. */
    steps.missing -= count > steps.missing / limit->refill ? steps.missing : count * limit->refill;
    return steps;
}

/* Returns the number of steps that bring back `permits`. */
static int64_t steps_for(const weir_limit *limit, uint64_t permits)
{
    return (int64_t)(permits / limit->refill + (permits % limit->refill != 0));
}

static int64_t stepped_bucket_ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    struct steps steps = steps_at(limit, state, now);
    uint64_t wanted = steps.missing + permits;
    if (wanted <= limit->permits)
        return 0;
    return steps.step_at + steps_for(limit, wanted - limit->permits) * limit->period_ns - now;
}

/* Returns the most permits that may be missing after an overcharge: WEIR_DURATION_MAX beyond an
 * empty bucket, as for the smooth bucket. */
static uint64_t missing_max(const weir_limit *limit)
{
    wr_u128 most = (wr_u128)(WEIR_DURATION_MAX / limit->period_ns) * limit->refill + limit->permits;
    return most < INT64_MAX ? (uint64_t)most : INT64_MAX;
}

static uint32_t stepped_bucket_take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    struct steps *steps = state;
    uint64_t most = missing_max(limit);

    *steps = steps_at(limit, state, now);
    if (steps->missing < most)
        steps->missing = most - steps->missing > permits ? steps->missing + permits : most;
    return wr_mark_taken(steps->mark, limit, steps->missing);
}

static void stepped_bucket_give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark,
                                uint32_t permits)
{
    struct steps *steps = state;

    *steps = steps_at(limit, state, now);
    uint64_t owed = (uint64_t)wr_mark_owed(steps->mark, limit, mark, permits);
    uint64_t since = at < steps->step_at ? (uint64_t)(steps->step_at - at - 1) / (uint64_t)limit->period_ns + 1 : 0;
    if (owed == 0 || since > (owed - 1) / limit->refill || steps->missing == 0)
        return; /* all of the permits came back with time */
    uint64_t back = owed - since * limit->refill;
    back = back < permits ? back : permits;
    steps->missing -= back < steps->missing ? back : steps->missing;
    steps->mark = wr_mark_given(steps->mark, limit, permits);
}

static void stepped_bucket_peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    uint64_t missing = steps_at(limit, state, now).missing;
    *ret_quota = (weir_quota){
        .limit = limit->permits,
        .remaining = missing < limit->permits ? (uint32_t)(limit->permits - missing) : 0,
        .reset_ns = stepped_bucket_ask(limit, state, now, limit->permits),
        .period_ns = steps_for(limit, limit->permits) * limit->period_ns,
    };
}

/* Returns true if the bucket has at least its initial permits. It may be forgotten then: a new one
 * would grant no more, now or later. */
static bool stepped_bucket_fresh(const weir_limit *limit, const void *state, int64_t now)
{
    return steps_at(limit, state, now).missing <= limit->permits - limit->initial;
}

/* Carries the permits left over to the new rule. */
static void stepped_bucket_carry(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state,
                                 int64_t now)
{
    struct steps old = steps_at(from, from_state, now);
    struct steps *steps = to_state;
    bool same = from->permits == to->permits && from->refill == to->refill && from->period_ns == to->period_ns;
    uint64_t most = missing_max(to);

    *steps = *(const struct steps *)from_state;
    if (same)
        return; /* the mark is unchanged, so receipts stay valid */
    int64_t left = (int64_t)from->permits - (int64_t)old.missing;
    steps->missing = left < to->permits ? (uint64_t)(to->permits - left) : 0;
    steps->missing = steps->missing < most ? steps->missing : most;
    steps->step_at = wr_window_carry(old.step_at, to->period_ns, now);
    steps->mark = wr_mark_renew(old.mark);
}

const weir_algorithm wr_stepped_bucket = {
    .size = sizeof(weir_algorithm),
    .name = "token_bucket",
    .reason = WEIR_REASON_TOKENS,
    .state_bytes = stepped_bucket_state_bytes,
    .start = stepped_bucket_start,
    .ask = stepped_bucket_ask,
    .take = stepped_bucket_take,
    .give = stepped_bucket_give,
    .peek = stepped_bucket_peek,
    .fresh = stepped_bucket_fresh,
    .carry = stepped_bucket_carry,
};
