/* SPDX-License-Identifier: MIT */
/* strategy.h - The interface of a pacing strategy. A strategy receives every start and every
 * response, and determines the time of the next start and the maximum in flight. The gate adds the
 * bounds that hold under every strategy: Crawl-delay, minimum interval, Retry-After, quota reset,
 * breaker, maximum in flight.
 *
 * All functions are pure: they read no clock and allocate no memory. The state is a plain value
 * without pointers, aligned to 8 bytes, that may be copied. `now` never goes back between calls;
 * the gate ensures that.
 */
#ifndef WR_CORE_PACE_STRATEGY_H
#define WR_CORE_PACE_STRATEGY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/pace.h>

/* A request that starts now. */
struct wr_pace_start {
    uint32_t seq;       /* number of the start, counted from 1; wraps */
    uint32_t in_flight; /* requests in flight, including this one */
};

enum wr_pace_response_kind {
    WR_PACE_RESPONSE_OK,       /* 2xx, 3xx, and 4xx that say nothing about pace */
    WR_PACE_RESPONSE_REJECTED, /* statuses of refusal.h, 403 and 503; a strategy may judge otherwise */
    WR_PACE_RESPONSE_ERROR,    /* other 5xx: the page or the server is broken */
    WR_PACE_RESPONSE_LOST,     /* no response: network error or timeout */
};

/* Classifies a status. 0 and all numbers outside HTTP are WR_PACE_RESPONSE_LOST. */
enum wr_pace_response_kind wr_pace_response_kind(int status);

struct wr_pace_response {
    enum wr_pace_response_kind kind;
    int status;
    uint32_t seq;            /* number of the start of this request */
    uint32_t in_flight_then; /* requests in flight at the start, including this one */
    uint32_t in_flight;      /* requests in flight now, without this one */
    int64_t sent_at;
    int64_t latency_ns;
    int64_t retry_after_ns;  /* wait by Retry-After, within the limit; -1 if absent */
    int64_t quota_limit;     /* size of the quota; -1 if absent */
    int64_t quota_remaining; /* requests left in the quota; -1 if absent */
    int64_t quota_reset_ns;  /* time until the quota is full again, at most retry_after_max_ns; -1 if unknown */
    float good_rate[3];      /* good responses/s in the last 10, 20, 30 s; 0 on a success */
    bool tripped;            /* the breaker is not closed and handles failures itself */
};

/* The bounds that a strategy sets until its next input. */
struct wr_pace_bounds {
    int64_t earliest_at; /* earliest time of the next start; may be in the past */
    weir_reason reason;  /* reason for that time: PACE or TOKENS */
    uint32_t cap;        /* maximum in flight; UINT32_MAX if unlimited */
    double rate;         /* mean starts per second; INFINITY if unlimited */
    double tokens;       /* tokens in the bucket; 0 without a bucket */
};

#define WR_NO_INSTANT UINT16_MAX

struct wr_strategy {
    const char *name;
    size_t state_bytes;
    /* Initialises zeroed memory. `memory` (may be NULL) is what was stored, aged and limited. */
    void (*start)(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now);
    void (*sent)(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now);
    void (*tell)(const weir_pace_options *options, void *state, const struct wr_pace_response *answer, int64_t now);
    struct wr_pace_bounds (*want)(const weir_pace_options *options, const void *state, int64_t now);
    /* Adapts the state to changed options. NULL if the strategy needs no change. */
    void (*change)(const weir_pace_options *options, void *state, int64_t now);
    /* Fills in the strategy's fields: delay_ns, floor_ns, rate, cap, traits, block_ns. */
    void (*remember)(const weir_pace_options *options, const void *state, int64_t now, weir_pace_memory *memory);
    /* Returns true if the state may be discarded, because a new one decides alike. */
    bool (*settled)(const weir_pace_options *options, const void *state, int64_t now);
    /* Offsets of all times in the state, ended by WR_NO_INSTANT. They are shifted when a gate moves
     * to another clock. */
    const uint16_t *instants;
    /* Returns true if the mode of a state from another process is valid. NULL without modes. */
    bool (*has_mode)(const void *state);
    /* Returns a word for the current mode, such as "cruise" or "probe". */
    const char *(*mode)(const void *state);
    /* Appends the limit that the strategy assumes, with the evidence, and returns a word for its
     * kind. NULL if the strategy assumes no limit. */
    const char *(*describe_limit)(const void *state, int64_t now, struct wr_buf *buf);
};

extern const struct wr_strategy wr_tide, wr_fixed, wr_aimd, wr_learned, wr_aimd_learned, wr_gradient, wr_pid, wr_none;

const struct wr_strategy *wr_strategy_of(weir_strategy strategy);

#endif
