/* SPDX-License-Identifier: MIT */
/* gate_algorithm.c - Implements one host's gate as an algorithm of limit.h. So a table can shard,
 * limit, evict and sweep hosts, and callers wait for them in its queues as for any limiter. */
#include "limiter/pacer/pacer.h"

static const struct wr_pacer_rule *rule_of(const weir_limit *limit)
{
    return limit->params;
}

static const weir_pace_options *pace_of(const weir_limit *limit)
{
    return &rule_of(limit)->pace;
}

static struct wr_gate *gate_of_state(void *state)
{
    return (struct wr_gate *)((struct wr_pacer_host *)state + 1);
}

static const struct wr_gate *const_gate_of_state(const void *state)
{
    return (const struct wr_gate *)((const struct wr_pacer_host *)state + 1);
}

struct wr_locked_host wr_locked_host_of(const weir_table *table, const struct wr_shard *shard, struct wr_entry *entry,
                                        int64_t now)
{
    void *state = wr_entry_state(entry);
    return (struct wr_locked_host){state, gate_of_state(state),
                                   pace_of(&wr_entry_stack(table, shard, entry)->limits[0]), now};
}

weir_decision wr_pacer_host_ask(const struct wr_pacer_host *host, const weir_pace_options *pace, int64_t now)
{
    if (wr_pacer_host_is_remote(host, now))
        return (weir_decision){WEIR_WAIT, WEIR_REASON_SHARE, WEIR_UNTIL_RELEASE};
    return wr_gate_ask(const_gate_of_state(host), pace, now);
}

static weir_decision decide_for_state(const weir_limit *limit, const void *state, int64_t now)
{
    return wr_pacer_host_ask(state, pace_of(limit), now);
}

static size_t host_gate_state_bytes(const weir_limit *limit)
{
    return sizeof(struct wr_pacer_host) + wr_gate_bytes(pace_of(limit));
}

static void host_gate_start(const weir_limit *limit, void *state, int64_t now)
{
    struct wr_pacer_host *host = state;
    host->life = atomic_fetch_add_explicit(&rule_of(limit)->pacer->lives, 1, memory_order_relaxed);
    host->here_until = rule_of(limit)->pacer->lender.want != NULL ? INT64_MIN : INT64_MAX;
    wr_gate_init(gate_of_state(state), pace_of(limit), NULL, now, 0);
}

static int64_t host_gate_ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    (void)permits;
    return decide_for_state(limit, state, now).wait_ns;
}

static uint32_t host_gate_take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    (void)permits;
    return wr_gate_reserve(gate_of_state(state), pace_of(limit), now);
}

static void host_gate_give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark,
                           uint32_t permits)
{
    (void)at, (void)permits;
    wr_gate_give(gate_of_state(state), pace_of(limit), mark, now);
}

/* Does nothing: requests end with their outcome. But the function must exist, because it shows the
 * table that requests are in flight, so that different hosts must not share a gate. */
static void host_gate_release(const weir_limit *limit, void *state, uint32_t permits)
{
    (void)limit, (void)state, (void)permits;
}

static void host_gate_peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    weir_decision decision = decide_for_state(limit, state, now);
    *ret_quota =
        (weir_quota){.limit = 1, .remaining = decision.verdict == WEIR_GO ? 1 : 0, .reset_ns = decision.wait_ns};
}

static bool host_gate_fresh(const weir_limit *limit, const void *state, int64_t now)
{
    const struct wr_pacer_host *host = state;
    bool is_ours = host->here_until == INT64_MAX || (wr_pacer_host_is_remote(host, now) && host->flights == 0);
    return is_ours && wr_gate_forgettable(const_gate_of_state(state), pace_of(limit), now) &&
           !(rule_of(limit)->pacer->keeps_unsaved && wr_gate_unsaved(const_gate_of_state(state)));
}

static void host_gate_carry(const weir_limit *from, const void *from_state, const weir_limit *to, void *to_state,
                            int64_t now)
{
    const struct wr_pacer_host *was = from_state;
    struct wr_pacer_host *host = to_state;
    *host = *was;
    host->changes++;
    wr_gate_carry(const_gate_of_state(from_state), pace_of(from), gate_of_state(to_state), pace_of(to), now);
}

static weir_reason host_gate_why(const weir_limit *limit, const void *state, int64_t now)
{
    return decide_for_state(limit, state, now).reason;
}

static int host_gate_give_up(const weir_limit *limit, const void *state, int64_t now)
{
    weir_decision decision = decide_for_state(limit, state, now);
    bool open = decision.reason == WEIR_REASON_BREAKER && decision.wait_ns != WEIR_UNTIL_RELEASE;
    return open ? WEIR_E_CIRCUIT : 0;
}

const weir_algorithm wr_gate_algorithm = {
    .size = sizeof(weir_algorithm),
    .name = "gate",
    .reason = WEIR_REASON_PACE,
    .state_bytes = host_gate_state_bytes,
    .start = host_gate_start,
    .ask = host_gate_ask,
    .take = host_gate_take,
    .give = host_gate_give,
    .release = host_gate_release,
    .peek = host_gate_peek,
    .fresh = host_gate_fresh,
    .carry = host_gate_carry,
    .why = host_gate_why,
    .give_up = host_gate_give_up,
};
