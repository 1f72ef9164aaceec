/* SPDX-License-Identifier: MIT */
/* stack.c - checks several rules together: permits are charged only if all rules grant them. */
#include "base/error.h"
#include "core/limit/bucket.h"
#include "core/limit/compare.h"

static const weir_decision go = {.verdict = WEIR_GO, .reason = WEIR_REASON_NONE, .wait_ns = 0};

int weir_stack_init(weir_stack *ret_stack, const weir_limit *limits, size_t count)
{
    weir_stack stack = {.count = (uint32_t)count};

    if (ret_stack == NULL || limits == NULL)
        return wr_invalid("rules: a pointer is NULL; there must be at least one rule, and a place for the result");
    if (count < 1 || count > WEIR_STACK_MAX)
        return wr_invalid("rules: there must be 1 ... 8 (WEIR_STACK_MAX) of them");
    for (size_t i = 0; i < count; i++) {
        int bad = wr_limit_check(&limits[i]);
        if (bad != 0)
            return bad;
        stack.limits[i] = limits[i];
        stack.offsets[i] = stack.state_bytes;
        stack.state_bytes += (uint32_t)(limits[i].algorithm->state_bytes(&limits[i]) + 7) / 8 * 8;
    }
    /* Only custom algorithms without a state. An allocator cannot provide 0 bytes. */
    if (stack.state_bytes == 0)
        stack.state_bytes = 8;
    *ret_stack = stack;
    return 0;
}

static void *state_of_rule(const weir_stack *stack, void *state, uint32_t i)
{
    return (char *)state + stack->offsets[i];
}

static const void *const_state_of_rule(const weir_stack *stack, const void *state, uint32_t i)
{
    return (const char *)state + stack->offsets[i];
}

void weir_stack_start(const weir_stack *stack, void *state, int64_t now)
{
    for (uint32_t i = 0; i < stack->count; i++)
        stack->limits[i].algorithm->start(&stack->limits[i], state_of_rule(stack, state, i), now);
}

static weir_decision ask_rule(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    if (permits > limit->permits)
        return (weir_decision){.verdict = WEIR_DENY, .reason = limit->algorithm->reason, .wait_ns = WEIR_UNTIL_RELEASE};
    int64_t wait_ns = limit->algorithm->ask(limit, state, now, permits);
    if (wait_ns <= 0)
        return go;
    weir_reason reason =
        limit->algorithm->why != NULL ? limit->algorithm->why(limit, state, now) : limit->algorithm->reason;
    return (weir_decision){.verdict = WEIR_WAIT, .reason = reason, .wait_ns = wait_ns};
}

/* Returns the decision of the rule that blocks longest: "never" is longer than "until a release",
 * which is longer than any time. The first of equals wins. */
weir_decision weir_stack_ask(const weir_stack *stack, const void *state, int64_t now, uint32_t permits)
{
    weir_decision longest = go;

    if (permits == 0)
        return go;
    for (uint32_t i = 0; i < stack->count; i++) {
        weir_decision decision = ask_rule(&stack->limits[i], const_state_of_rule(stack, state, i), now, permits);
        if (wr_decision_worse(&decision, &longest))
            longest = decision;
    }
    return longest;
}

int wr_stack_wait_error(const weir_stack *stack, const void *state, int64_t now)
{
    int error = 0;

    for (uint32_t i = 0; i < stack->count && error >= 0; i++) {
        const weir_limit *limit = &stack->limits[i];
        if (limit->algorithm->give_up != NULL)
            error = limit->algorithm->give_up(limit, const_state_of_rule(stack, state, i), now);
    }
    return error < 0 ? error : 0;
}

void weir_stack_take(const weir_stack *stack, void *state, int64_t now, uint32_t permits, weir_receipt *ret_receipt)
{
    weir_receipt receipt = {.at = now, .permits = permits};

    for (uint32_t i = 0; i < stack->count && permits > 0; i++)
        receipt.marks[i] =
            stack->limits[i].algorithm->take(&stack->limits[i], state_of_rule(stack, state, i), now, permits);
    if (ret_receipt != NULL)
        *ret_receipt = receipt;
}

/* Returns true if the rules are one smooth token bucket, as is most common, and `permits` is 1 up
 * to its capacity. */
static inline bool one_bucket(const weir_stack *stack, uint32_t permits)
{
    return stack->count == 1 && stack->limits[0].algorithm == &wr_token_bucket &&
           permits - 1 < stack->limits[0].permits;
}

static __attribute__((noinline)) weir_decision try_any(const weir_stack *stack, void *state, int64_t now,
                                                       uint32_t permits, weir_receipt *ret_receipt)
{
    weir_receipt receipt = {.at = now, .permits = permits};
    weir_decision decision;

    if (one_bucket(stack, permits)) {
        decision = wr_bucket_try(&stack->limits[0], state, now, permits, &receipt.marks[0]);
    } else {
        decision = weir_stack_ask(stack, state, now, permits);
        if (decision.verdict == WEIR_GO)
            weir_stack_take(stack, state, now, permits, &receipt);
    }
    if (ret_receipt != NULL)
        *ret_receipt = decision.verdict == WEIR_GO ? receipt : (weir_receipt){0};
    return decision;
}

/* Handles the common case inline, without a call, so that there are no registers to save and
 * restore. */
weir_decision weir_stack_try(const weir_stack *stack, void *state, int64_t now, uint32_t permits,
                             weir_receipt *ret_receipt)
{
    if (ret_receipt == NULL && one_bucket(stack, permits))
        return wr_bucket_try(&stack->limits[0], state, now, permits, NULL);
    return try_any(stack, state, now, permits, ret_receipt);
}

static void give_to_all_rules(const weir_stack *stack, void *state, int64_t now, const weir_receipt *receipt,
                              uint32_t permits)
{
    for (uint32_t i = 0; i < stack->count; i++)
        stack->limits[i].algorithm->give(&stack->limits[i], state_of_rule(stack, state, i), now, receipt->at,
                                         receipt->marks[i], permits);
}

void weir_stack_settle(const weir_stack *stack, void *state, int64_t now, weir_receipt *receipt, uint32_t used)
{
    uint32_t taken = receipt->permits;

    receipt->permits = 0;
    if (taken > used)
        give_to_all_rules(stack, state, now, receipt, taken - used);
    else if (taken > 0 && used > taken)
        weir_stack_take(stack, state, now, used - taken, NULL);
}

void weir_stack_release(const weir_stack *stack, void *state, uint32_t permits)
{
    for (uint32_t i = 0; i < stack->count; i++) {
        const weir_limit *limit = &stack->limits[i];
        if (limit->algorithm->release != NULL && permits > 0)
            limit->algorithm->release(limit, state_of_rule(stack, state, i), permits);
    }
}

void weir_stack_peek(const weir_stack *stack, const void *state, int64_t now, weir_quota *ret_quota)
{
    weir_quota least = {0};

    for (uint32_t i = 0; i < stack->count; i++) {
        weir_quota quota = {0};
        stack->limits[i].algorithm->peek(&stack->limits[i], const_state_of_rule(stack, state, i), now, &quota);
        if (i == 0 || wr_quota_scarcer(&quota, &least))
            least = quota;
    }
    *ret_quota = least;
}

bool weir_stack_fresh(const weir_stack *stack, const void *state, int64_t now)
{
    for (uint32_t i = 0; i < stack->count; i++) {
        const weir_limit *limit = &stack->limits[i];
        if (!limit->algorithm->fresh(limit, const_state_of_rule(stack, state, i), now))
            return false;
    }
    return true;
}

bool wr_stack_same_shape(const weir_stack *a, const weir_stack *b)
{
    bool same = a->count == b->count;

    for (uint32_t i = 0; same && i < a->count; i++)
        same = a->limits[i].algorithm == b->limits[i].algorithm;
    return same;
}

int weir_stack_carry(const weir_stack *from, const void *from_state, const weir_stack *to, void *to_state, int64_t now)
{
    if (!wr_stack_same_shape(from, to))
        return wr_invalid("change of rules: the algorithms differ; there must be the same ones in the same order");
    for (uint32_t i = 0; i < to->count; i++) {
        const weir_algorithm *algorithm = to->limits[i].algorithm;
        if (algorithm->carry != NULL)
            algorithm->carry(&from->limits[i], const_state_of_rule(from, from_state, i), &to->limits[i],
                             state_of_rule(to, to_state, i), now);
        else
            algorithm->start(&to->limits[i], state_of_rule(to, to_state, i), now);
    }
    return 0;
}
