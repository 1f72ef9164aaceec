/* SPDX-License-Identifier: MIT */
/* gate_state.h - The memory layout of a gate, private to the files that implement it.
 *
 *     | header | strategy | latency ring | error window |      at most 512 bytes with the defaults
 */
#ifndef WR_CORE_PACE_GATE_STATE_H
#define WR_CORE_PACE_GATE_STATE_H

#include "base/bits.h"
#include "core/pace/breaker.h"
#include "core/pace/gate.h"
#include "core/pace/gate_memory.h"
#include "core/pace/latency.h"
#include "core/pace/rate.h"
#include "core/pace/window.h"

struct wr_gate {
    int64_t latest_at;     /* latest time that the gate has seen */
    int64_t last_start_at; /* time of the last start; far in the past before the first */
    int64_t hold_until;    /* no start before this time: a server wait or our own back-off */
    int64_t reserved_at;   /* time of the reservation, if `reserved` */
    int64_t last_success_at;
    int64_t robots_delay_ns;
    struct wr_breaker breaker;
    uint32_t seq;       /* number of the last start or of the reservation */
    uint32_t in_flight; /* requests in flight, including the reservation */
    uint32_t rejected;
    int32_t streak;      /* good responses in a row; negative: rejections in a row */
    float noted_rate;    /* rate of the strategy at the last WR_GATE_CHANGE_DELAY */
    uint16_t hopeless;   /* refusals (429) in a row at cancel_delay_ns or more */
    uint8_t hold_reason; /* reason of hold_until: RETRY_AFTER, RATE_LIMIT_RESET or PACE */
    bool reserved : 1;   /* a request may be written at any moment; no other may start */
    bool kept : 1;       /* the reservation cannot expire: its holder waits for another gate */
    bool paused : 1;     /* set by wr_gate_pause */
    bool unsaved : 1;    /* the memory changed since it was saved */
    bool succeeded : 1;  /* last_success_at is valid */
    bool banned : 1;     /* 403s in a row were a ban: one request at a time until a success */
};

/* Returns the time by the gate's clock, which stands still when `now` goes back. */
static inline int64_t wr_gate_time(const struct wr_gate *gate, int64_t now)
{
    return now > gate->latest_at ? now : gate->latest_at;
}

/* Returns the interval between starts that the options require. */
static inline int64_t wr_own_interval(const weir_pace_options *options)
{
    int64_t spacing_ns = options->max_rate > 0 ? wr_rate_interval(options->max_rate) : 0;
    return spacing_ns > options->min_interval_ns ? spacing_ns : options->min_interval_ns;
}

/* Returns the interval that applies under every strategy, including the Crawl-delay. */
static inline int64_t wr_gate_interval(const struct wr_gate *gate, const weir_pace_options *options)
{
    int64_t interval_ns = wr_own_interval(options);
    return gate->robots_delay_ns > interval_ns ? gate->robots_delay_ns : interval_ns;
}

/* Returns true if there is a reservation whose time limit has passed. */
bool wr_gate_expired(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);

static inline size_t wr_latency_offset(const struct wr_strategy *strategy)
{
    return sizeof(struct wr_gate) + wr_round_up(strategy->state_bytes, 8);
}

static inline size_t wr_window_offset(const struct wr_strategy *strategy, const weir_pace_options *options)
{
    return wr_latency_offset(strategy) + wr_round_up(wr_latency_bytes(options), _Alignof(struct wr_window));
}

#endif
