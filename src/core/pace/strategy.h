/* SPDX-License-Identifier: MIT */
/* strategy.h - what a pacing strategy is: it hears of every start and every answer, and says when the next start may be
 * and how many may be in flight. The gate asks it, and adds the bounds that hold whatever the strategy says:
 * Crawl-delay, minimum interval, Retry-After, quota reset, breaker, most in flight.
 *
 * All functions are pure: no clock, no allocation. State is a plain value without pointers, aligned to 8, that may be
 * copied. `now` never goes back between calls: the gate sees to that.
 */
#ifndef WR_CORE_PACE_STRATEGY_H
#define WR_CORE_PACE_STRATEGY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/pace.h>

/* A request that starts now. */
struct wr_start {
    uint32_t seq;       /* in order of starts, from 1; wraps */
    uint32_t in_flight; /* this one included */
};

enum wr_told_kind {
    WR_TOLD_OK,       /* 2xx and 3xx, and 4xx that say nothing about pace */
    WR_TOLD_REJECTED, /* refusal.h; 403 and 503 too, and a strategy may judge these otherwise: see status */
    WR_TOLD_ERROR,    /* other 5xx: the page or the server is broken */
    WR_TOLD_LOST,     /* no answer: network error or time-out */
};

/* 0, and all that HTTP does not know, is LOST. */
enum wr_told_kind wr_told_kind(int status);

struct wr_told {
    enum wr_told_kind kind;
    int status;
    uint32_t seq;            /* of the start that it answers */
    uint32_t in_flight_then; /* when it started, itself included */
    uint32_t in_flight;      /* now, itself not included */
    int64_t sent_at;
    int64_t latency_ns;
    int64_t retry_after_ns;  /* -1: none; already clamped */
    int64_t quota_limit;     /* -1: not said */
    int64_t quota_remaining; /* -1: not said */
    int64_t quota_reset_ns;  /* -1: not said; already clamped */
    float good_rate[3];      /* good answers per second in the last 10, 20 and 30 s; only of what is no good answer */
    bool tripped;            /* the breaker is not closed: it deals with failures */
};

/* What a strategy wants until it hears more. */
struct wr_want {
    int64_t earliest_at; /* of the next start; a past instant: now */
    weir_reason reason;  /* PACE or TOKENS: what holds until then */
    uint32_t cap;        /* most in flight; UINT32_MAX: any number */
    double rate;         /* starts per second in the long run; INFINITY: any */
    double tokens;       /* of a bucket; else 0 */
};

#define WR_NO_INSTANT UINT16_MAX

struct wr_strategy {
    const char *name;
    size_t state_bytes;
    /* Fills zeroed memory. `memory` is what was stored of this host, aged and clamped, or NULL. */
    void (*start)(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now);
    void (*sent)(const weir_pace_options *options, void *state, const struct wr_start *start, int64_t now);
    void (*tell)(const weir_pace_options *options, void *state, const struct wr_told *answer, int64_t now);
    struct wr_want (*want)(const weir_pace_options *options, const void *state, int64_t now);
    /* These options hold from now on, instead of others. NULL: there is nothing to adapt. */
    void (*change)(const weir_pace_options *options, void *state, int64_t now);
    /* Fills the strategy's part: delay_ns, floor_ns, rate, cap, traits, block_ns. */
    void (*remember)(const weir_pace_options *options, const void *state, int64_t now, weir_pace_memory *memory);
    /* Whether it decides as a new one would, or as its memory would: it may be forgotten. */
    bool (*settled)(const weir_pace_options *options, const void *state, int64_t now);
    /* Where in its state the instants are, and WR_NO_INSTANT at last: what goes on by another clock. */
    const uint16_t *instants;
    /* Whether a state that comes from elsewhere is in one of its modes. NULL: it has none. */
    bool (*has_mode)(const void *state);
    /* A word for what it is doing: "cruise", "probe". */
    const char *(*mode)(const void *state);
    /* Appends what limit it believes in, and why, and returns a word for its kind. NULL: it believes in none. */
    const char *(*believe)(const void *state, int64_t now, struct wr_buf *buf);
};

extern const struct wr_strategy wr_tide, wr_fixed, wr_aimd, wr_learned, wr_both, wr_gradient, wr_pid, wr_none;

const struct wr_strategy *wr_strategy_of(weir_strategy strategy);

#endif
