/* SPDX-License-Identifier: MIT */
/* state.h - what a gate is made of. Only the files of the gate look inside.
 *
 *     | header | strategy | latency ring | error window |      at most 512 bytes with the defaults
 */
#ifndef WR_CORE_PACE_STATE_H
#define WR_CORE_PACE_STATE_H

#include "base/bits.h"
#include "core/pace/breaker.h"
#include "core/pace/gate.h"
#include "core/pace/latency.h"
#include "core/pace/memory.h"
#include "core/pace/rate.h"
#include "core/pace/window.h"

struct wr_gate {
    int64_t latest_at;     /* of all that was seen */
    int64_t last_start_at; /* long ago, if there was none */
    int64_t hold_until;    /* no start before: what the server named, or a pause of our own */
    int64_t reserved_at;   /* if `reserved` */
    int64_t last_success_at;
    int64_t robots_delay_ns;
    struct wr_breaker breaker;
    uint32_t seq;       /* of the last start, or of the reservation */
    uint32_t in_flight; /* reservation included */
    uint32_t rejected;
    int32_t streak;      /* of good answers; negative: of rejections */
    float noted_rate;    /* the strategy's when WR_NEWS_DELAY was last given */
    uint16_t hopeless;   /* 429s in a row at cancel_delay_ns or more */
    uint8_t hold_reason; /* RETRY_AFTER, RATE_LIMIT_RESET or PACE */
    bool reserved : 1;   /* a request may be written any moment; nothing else may start */
    bool kept : 1;       /* the reservation does not expire: its holder waits for another gate */
    bool paused : 1;     /* by somebody */
    bool unsaved : 1;    /* there is something to remember */
    bool succeeded : 1;  /* last_success_at is true */
    bool banned : 1;     /* by 403s in a row: one request at a time asks whether it is over */
};

/* Time as the gate knows it: a clock that goes back stands still. */
static inline int64_t wr_gate_time(const struct wr_gate *gate, int64_t now)
{
    return now > gate->latest_at ? now : gate->latest_at;
}

/* Our own interval between starts. */
static inline int64_t wr_own_interval(const weir_pace_options *options)
{
    int64_t spacing_ns = options->max_rate > 0 ? wr_rate_interval(options->max_rate) : 0;
    return spacing_ns > options->min_interval_ns ? spacing_ns : options->min_interval_ns;
}

/* With Crawl-delay: what holds whatever the strategy says. */
static inline int64_t wr_gate_interval(const struct wr_gate *gate, const weir_pace_options *options)
{
    int64_t interval_ns = wr_own_interval(options);
    return gate->robots_delay_ns > interval_ns ? gate->robots_delay_ns : interval_ns;
}

/* Whether there is a reservation that was not used in time. */
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
