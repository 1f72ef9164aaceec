/* SPDX-License-Identifier: MIT */
/* concurrency.c - limits the number of requests in flight. Only a release frees a permit; time does
 * not. */
#include "core/limit/algorithm.h"

struct flight {
    uint64_t in_flight;
};

static size_t concurrency_state_bytes(const weir_limit *limit)
{
    (void)limit;
    return sizeof(struct flight);
}

static void concurrency_start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit, (void)state, (void)now; /* a zeroed state is empty */
}

static int64_t concurrency_ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    (void)now;
    const struct flight *flight = state;
    return flight->in_flight + permits <= limit->permits ? 0 : WEIR_UNTIL_RELEASE;
}

static uint32_t concurrency_take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    (void)limit, (void)now;
    ((struct flight *)state)->in_flight += permits;
    return 0;
}

/* Ends up to `permits` in flight. Releasing more than is in flight leaves 0, so it never raises the
 * limit. */
static void concurrency_release(const weir_limit *limit, void *state, uint32_t permits)
{
    (void)limit;
    struct flight *flight = state;
    flight->in_flight -= permits < flight->in_flight ? permits : flight->in_flight;
}

static void concurrency_give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark,
                             uint32_t permits)
{
    (void)now, (void)at, (void)mark;
    concurrency_release(limit, state, permits);
}

static void concurrency_peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    uint64_t in_flight = ((const struct flight *)state)->in_flight;
    *ret_quota = (weir_quota){
        .limit = limit->permits,
        .remaining = in_flight < limit->permits ? (uint32_t)(limit->permits - in_flight) : 0,
        .reset_ns = concurrency_ask(limit, state, now, limit->permits),
        .period_ns = 0,
    };
}

static bool concurrency_fresh(const weir_limit *limit, const void *state, int64_t now)
{
    (void)limit, (void)now;
    return ((const struct flight *)state)->in_flight == 0;
}

static void concurrency_carry(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state,
                              int64_t now)
{
    (void)from, (void)to, (void)now;
    *(struct flight *)to_state = *(const struct flight *)from_state;
}

const weir_algorithm wr_concurrency = {
    .size = sizeof(weir_algorithm),
    .name = "concurrency",
    .reason = WEIR_REASON_CONCURRENCY,
    .state_bytes = concurrency_state_bytes,
    .start = concurrency_start,
    .ask = concurrency_ask,
    .take = concurrency_take,
    .give = concurrency_give,
    .release = concurrency_release,
    .peek = concurrency_peek,
    .fresh = concurrency_fresh,
    .carry = concurrency_carry,
};
