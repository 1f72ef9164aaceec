/* SPDX-License-Identifier: MIT */
/* observer.h - observes a gate from outside and checks the laws V1 and V2.
 *
 * V1  between two starts at least the configured interval, the Crawl-delay and the adaptive delay;
 *     never more in flight than the cap; where a token bucket paces, never more than its burst and
 *     rate allow (V8)
 * V2  no start within a Retry-After or rate-limit window, also after restarts; only budgeted probes
 *     while the breaker is not closed
 *
 * The observer knows the options and the calls of the gate, and keeps its own integer state. It
 * believes two statements of the gate, and holds the gate to them: its rate, and the state of its
 * breaker.
 *
 * Its time is law time, which continues across restarts, when the clock of the gate starts
 * elsewhere. `t` is the time of the last event. If the clock goes back, law time stands still
 * there. */
#ifndef WEIR_TEST_OBSERVER_H
#define WEIR_TEST_OBSERVER_H

#include "core/pace/gate.h"

struct observer {
    const weir_pace_options *options;
    int64_t base;          /* law time = clock of the gate + base */
    int64_t t;             /* latest law time that the gate has seen */
    int64_t here;          /* current law time, at least t */
    int64_t last_start_at; /* law time; far in the past if there was no start */
    /* start of a gate for a known host, which waits an interval; otherwise far in the past */
    int64_t known_since;
    int64_t least_delay_ns;  /* shortest delay that the gate reported since the last start */
    int64_t window_end;      /* no start before: named by the server */
    int64_t breaker_end;     /* no start before: the breaker must be open */
    int64_t half_open_at;    /* when the current half-open state was first seen */
    weir_breaker_state seen; /* last seen state of the breaker */
    int64_t troubled_at;     /* when the breaker was last seen not closed */
    int64_t robots_delay_ns;
    int64_t reserved_at; /* law time; valid if `reserved` */
    bool reserved, paused;
    uint32_t in_flight; /* requests sent and not ended */
    uint32_t failures;  /* consecutive failures */
    double tokens;      /* tokens of a bucket with the reported rate */
    double rate;        /* last reported rate */
    const char *broken; /* law that was broken, or NULL */
    char detail[128];
};

void observer_init(struct observer *observer, const weir_pace_options *options, int64_t now);

/* Sets the time. Called before any other function. */
void observer_time(struct observer *observer, int64_t now);

/* Reads the state of the gate. Called after each operation. */
void observer_look(struct observer *observer, const struct wr_gate *gate, int64_t now);

/* Checks a GO that the gate gave to a caller without a reservation. */
void observer_go(struct observer *observer, const struct wr_gate *gate, int64_t now);

void observer_reserved(struct observer *observer);
void observer_given(struct observer *observer);

/* Records that a request is about to be sent with the gate's consent. */
void observer_start(struct observer *observer, const struct wr_gate *gate, int64_t now);

/* Records an outcome after the gate has seen it. `start` may be NULL. `before` is the earlier state
 * of the breaker. */
void observer_told(struct observer *observer, const struct wr_gate *gate, const struct wr_gate_start *start,
                   const weir_outcome *outcome, weir_breaker_state before, int64_t now);
void observer_dropped(struct observer *observer);

void observer_robots(struct observer *observer, int64_t delay_ns);
void observer_hold(struct observer *observer, int64_t until);
void observer_change(struct observer *observer, const weir_pace_options *options);

/* Records a restart: the process ended `down_ns` ago, and its gate starts from its memory at `now`
 * of another clock. */
void observer_restart(struct observer *observer, int64_t down_ns, int64_t now);

#endif
