/* SPDX-License-Identifier: MIT */
/* limit.c - makes, checks and names rules. All later code relies on the bounds checked here. */
#include "base/error.h"
#include "core/limit/algorithm.h"

static const char *const reason_names[] = {
#define X(reason, name) [reason] = (name),
    WEIR_REASONS(X)
#undef X
};

static bool reason_ok(weir_reason reason)
{
    return (size_t)reason < sizeof reason_names / sizeof reason_names[0];
}

const char *weir_reason_name(weir_reason reason)
{
    return reason_names[reason_ok(reason) ? reason : WEIR_REASON_NONE];
}

const char *weir_limit_name(const weir_limit *limit)
{
    return limit != NULL && limit->algorithm != NULL ? limit->algorithm->name : "none";
}

static bool period_ok(int64_t period_ns)
{
    return period_ns >= 1 && period_ns <= WEIR_DURATION_MAX;
}

/* Checks the arguments that both token buckets share. */
static int check_bucket(const weir_limit *ret_limit, uint32_t capacity, uint32_t refill, int64_t period_ns)
{
    if (ret_limit == NULL)
        return wr_invalid("token bucket: ret_limit is NULL; it must point to a weir_limit");
    if (capacity == 0)
        return wr_invalid("token bucket: the capacity is 0; it must be 1 ... 4294967295");
    if (refill == 0)
        return wr_invalid("token bucket: the refill is 0, and an empty bucket would stay empty; it must be 1 ... "
                          "4294967295 permits per period (slower than one per period: make the period longer)");
    if (!period_ok(period_ns))
        return wr_invalid("token bucket: the period must be 1 ns ... 2^60 ns (36 years)");
    return 0;
}

static int refuse_slow_bucket(void)
{
    return wr_invalid("token bucket: an empty bucket would take longer than 2^60 ns (36 years) to fill; lower the "
                      "capacity or raise the rate");
}

int weir_limit_token_bucket(weir_limit *ret_limit, uint32_t capacity, uint32_t refill, int64_t period_ns)
{
    int bad = check_bucket(ret_limit, capacity, refill, period_ns);
    if (bad != 0)
        return bad;
    /* Time to fill the bucket, in units of 1/refill ns. */
    wr_u128 full = (wr_u128)capacity * (uint64_t)period_ns;
    if (full > (wr_u128)WEIR_DURATION_MAX * refill)
        return refuse_slow_bucket();
    *ret_limit = (weir_limit){
        .algorithm = &wr_token_bucket,
        .permits = capacity,
        .refill = refill,
        .period_ns = period_ns,
        .initial = capacity,
        .queue_max = WEIR_QUEUE_MAX,
        .cost_ns = period_ns / refill,
        .cost_rem = (uint32_t)(period_ns % refill),
        .full_ns = (int64_t)(full / refill),
        .full_rem = (uint32_t)(full % refill),
    };
    return 0;
}

int weir_limit_stepped_bucket(weir_limit *ret_limit, uint32_t capacity, uint32_t refill, int64_t period_ns,
                              uint32_t initial)
{
    int bad = check_bucket(ret_limit, capacity, refill, period_ns);
    if (bad != 0)
        return bad;
    uint64_t steps = ((uint64_t)capacity + refill - 1) / refill;
    if ((wr_u128)steps * (uint64_t)period_ns > (wr_u128)WEIR_DURATION_MAX)
        return refuse_slow_bucket();
    *ret_limit = (weir_limit){
        .algorithm = &wr_stepped_bucket,
        .permits = capacity,
        .refill = refill,
        .period_ns = period_ns,
        .initial = initial < capacity ? initial : capacity,
        .queue_max = WEIR_QUEUE_MAX,
    };
    return 0;
}

/* Checks the arguments that the three window algorithms share, and makes the rule. */
static int make_window(weir_limit *ret_limit, const weir_algorithm *algorithm, uint32_t permits, int64_t window_ns)
{
    if (ret_limit == NULL)
        return wr_invalid("window: ret_limit is NULL; it must point to a weir_limit");
    if (permits == 0)
        return wr_invalid("window: permits is 0; it must be 1 ... 4294967295");
    if (!period_ok(window_ns))
        return wr_invalid("window: it must be 1 ns ... 2^60 ns (36 years) long");
    *ret_limit =
        (weir_limit){.algorithm = algorithm, .permits = permits, .period_ns = window_ns, .queue_max = WEIR_QUEUE_MAX};
    return 0;
}

int weir_limit_fixed_window(weir_limit *ret_limit, uint32_t permits, int64_t window_ns)
{
    return make_window(ret_limit, &wr_fixed_window, permits, window_ns);
}

int weir_limit_sliding_window(weir_limit *ret_limit, uint32_t permits, int64_t window_ns)
{
    return make_window(ret_limit, &wr_sliding_window, permits, window_ns);
}

int weir_limit_sliding_log(weir_limit *ret_limit, uint32_t permits, int64_t window_ns)
{
    if (permits == 0 || permits > WEIR_LOG_MAX)
        return wr_invalid("sliding log: permits must be 1 ... 65536 (WEIR_LOG_MAX), for each costs 8 bytes; for more "
                          "take a sliding window");
    return make_window(ret_limit, &wr_sliding_log, permits, window_ns);
}

int weir_limit_leaky_bucket(weir_limit *ret_limit, uint32_t capacity, int64_t interval_ns)
{
    if (ret_limit == NULL)
        return wr_invalid("leaky bucket: ret_limit is NULL; it must point to a weir_limit");
    if (capacity == 0)
        return wr_invalid("leaky bucket: the capacity is 0; it must be 1 ... 4294967295");
    if (!period_ok(interval_ns))
        return wr_invalid("leaky bucket: the interval must be 1 ns ... 2^60 ns (36 years)");
    if ((wr_u128)capacity * (uint64_t)interval_ns > (wr_u128)WEIR_DURATION_MAX)
        return wr_invalid("leaky bucket: a full bucket would take longer than 2^60 ns (36 years) to run out; lower the "
                          "capacity or the interval");
    *ret_limit = (weir_limit){.algorithm = &wr_leaky_bucket,
                              .permits = capacity,
                              .period_ns = interval_ns,
                              .queue_max = capacity < WEIR_QUEUE_MAX ? capacity : WEIR_QUEUE_MAX};
    return 0;
}

int weir_limit_concurrency(weir_limit *ret_limit, uint32_t permits)
{
    if (ret_limit == NULL)
        return wr_invalid("concurrency: ret_limit is NULL; it must point to a weir_limit");
    if (permits == 0)
        return wr_invalid("concurrency: permits is 0; it must be 1 ... 4294967295");
    *ret_limit = (weir_limit){.algorithm = &wr_concurrency, .permits = permits, .queue_max = WEIR_QUEUE_MAX};
    return 0;
}

static int check_algorithm(const weir_algorithm *algorithm)
{
    if (algorithm == NULL)
        return wr_invalid("algorithm: it is NULL; it must point to a weir_algorithm");
    if (algorithm->size < sizeof *algorithm)
        return wr_invalid("algorithm: its size is too small; it must be sizeof(weir_algorithm)");
    if (algorithm->name == NULL || algorithm->name[0] == '\0')
        return wr_invalid("algorithm: it has no name; give it a readable name");
    if (algorithm->reason == WEIR_REASON_NONE || !reason_ok(algorithm->reason))
        return wr_invalid(
            "algorithm: its reason is WEIR_REASON_NONE or unknown; it must be another one of weir_reason");
    if (algorithm->state_bytes == NULL || algorithm->start == NULL || algorithm->ask == NULL ||
        algorithm->take == NULL || algorithm->give == NULL || algorithm->peek == NULL || algorithm->fresh == NULL)
        return wr_invalid("algorithm: a function is NULL; only release, carry, why and give_up may be");
    return 0;
}

int weir_limit_custom(weir_limit *ret_limit, const weir_algorithm *algorithm, uint32_t permits, int64_t period_ns,
                      const void *params)
{
    int bad = check_algorithm(algorithm);
    if (bad != 0)
        return bad;
    if (ret_limit == NULL)
        return wr_invalid("custom rule: ret_limit is NULL; it must point to a weir_limit");
    if (permits == 0)
        return wr_invalid("custom rule: permits is 0; it must be 1 ... 4294967295");
    if (period_ns != 0 && !period_ok(period_ns))
        return wr_invalid("custom rule: the period must be 1 ns ... 2^60 ns (36 years), or 0 for none");
    weir_limit limit = {.algorithm = algorithm,
                        .permits = permits,
                        .period_ns = period_ns,
                        .queue_max = WEIR_QUEUE_MAX,
                        .params = params};
    if (algorithm->state_bytes(&limit) > WR_STATE_BYTES_MAX)
        return wr_invalid("custom rule: its state is larger than 1 MiB");
    *ret_limit = limit;
    return 0;
}

/* Makes the rule once more from the fields that correspond to the arguments of its weir_limit
 * function. */
static int remake_limit(const weir_limit *limit, weir_limit *ret_limit)
{
    const weir_algorithm *algorithm = limit->algorithm;

    if (algorithm == &wr_token_bucket)
        return weir_limit_token_bucket(ret_limit, limit->permits, limit->refill, limit->period_ns);
    if (algorithm == &wr_stepped_bucket)
        return weir_limit_stepped_bucket(ret_limit, limit->permits, limit->refill, limit->period_ns, limit->initial);
    if (algorithm == &wr_fixed_window)
        return weir_limit_fixed_window(ret_limit, limit->permits, limit->period_ns);
    if (algorithm == &wr_sliding_window)
        return weir_limit_sliding_window(ret_limit, limit->permits, limit->period_ns);
    if (algorithm == &wr_sliding_log)
        return weir_limit_sliding_log(ret_limit, limit->permits, limit->period_ns);
    if (algorithm == &wr_leaky_bucket)
        return weir_limit_leaky_bucket(ret_limit, limit->permits, limit->period_ns);
    if (algorithm == &wr_concurrency)
        return weir_limit_concurrency(ret_limit, limit->permits);
    return weir_limit_custom(ret_limit, algorithm, limit->permits, limit->period_ns, limit->params);
}

int wr_limit_check(const weir_limit *limit)
{
    weir_limit again = {0};

    if (limit->algorithm == NULL)
        return wr_invalid("rule: it has no algorithm; make it with one of the weir_limit functions");
    int bad = remake_limit(limit, &again);
    if (bad != 0)
        return bad;
    if (limit->queue_max > WEIR_QUEUE_MAX)
        return wr_invalid("rule: queue_max must be 0 ... 1000000 (WEIR_QUEUE_MAX)");
    if (limit->refill != again.refill || limit->initial != again.initial || limit->cost_ns != again.cost_ns ||
        limit->cost_rem != again.cost_rem || limit->full_ns != again.full_ns || limit->full_rem != again.full_rem)
        return wr_invalid("rule: a field was changed after it was made; make it again with a weir_limit function");
    return 0;
}
