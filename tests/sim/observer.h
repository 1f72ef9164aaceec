/* SPDX-License-Identifier: MIT */
/* observer.h - watches a gate from outside and holds it to the laws V1 and V2.
 *
 * V1  between two starts at least the configured interval, the Crawl-delay and the adaptive delay; never more in flight
 *     than the cap; where a token bucket paces, never more than its burst and rate allow (V8)
 * V2  no start within a Retry-After or rate-limit window, across restarts too; none but budgeted probes while the
 *     breaker is not closed
 *
 * The observer knows the options and what was said to the gate, and keeps its own books in integers. Of the gate it
 * believes two statements, which it then holds it to: the rate that it says it keeps, and its breaker's state.
 *
 * Its time is law time: it goes on across restarts, when the gate's clock begins somewhere else. What the gate was told
 * of happened at `t`; a clock that goes back stands still there.
 */
#ifndef WEIR_TEST_OBSERVER_H
#define WEIR_TEST_OBSERVER_H

#include "core/pace/gate.h"

struct observer {
    const weir_pace_options *options;
    int64_t base;            /* law time = the gate's clock + base */
    int64_t t;               /* the latest law time that the gate was told */
    int64_t here;            /* now, but not before t */
    int64_t last_start_at;   /* law time; long ago, if there was none */
    int64_t known_since;     /* of a host that was known when the gate began: it waits an interval; else long ago */
    int64_t least_delay_ns;  /* of those that the gate said since the last start */
    int64_t window_end;      /* no start before: what the server named */
    int64_t breaker_end;     /* no start before: it must have opened */
    int64_t half_open_at;    /* when the breaker was first seen half open, this time */
    weir_breaker_state seen; /* the breaker's state */
    int64_t troubled_at;     /* when the breaker was last seen not closed */
    int64_t robots_delay_ns;
    int64_t reserved_at; /* law time, if `reserved` */
    bool reserved, paused;
    uint32_t in_flight; /* sent and not ended */
    uint32_t failures;  /* in a row */
    double tokens;      /* of a bucket that pays out as the gate says */
    double rate;        /* as it said last */
    const char *broken; /* the law that was broken, or NULL */
    char detail[128];
};

void observer_init(struct observer *observer, const weir_pace_options *options, int64_t now);

/* What the clock says; before anything else. */
void observer_time(struct observer *observer, int64_t now);

/* After each: what the gate says of itself. */
void observer_look(struct observer *observer, const struct wr_gate *gate, int64_t now);

/* It said GO to one who holds no reservation. */
void observer_go(struct observer *observer, const struct wr_gate *gate, int64_t now);

void observer_reserved(struct observer *observer);
void observer_given(struct observer *observer);

/* A request is about to be written, as the gate agreed. */
void observer_start(struct observer *observer, const struct wr_gate *gate, int64_t now);

/* After the gate was told. `start` may be NULL. `before`: the breaker's state before. */
void observer_told(struct observer *observer, const struct wr_gate *gate, const struct wr_gate_start *start,
                   const weir_outcome *outcome, weir_breaker_state before, int64_t now);
void observer_dropped(struct observer *observer);

void observer_robots(struct observer *observer, int64_t delay_ns);
void observer_hold(struct observer *observer, int64_t until);
void observer_change(struct observer *observer, const weir_pace_options *options);

/* The process ended `down_ns` ago, and its gate begins anew with its memory at `now` of another clock. */
void observer_restart(struct observer *observer, int64_t down_ns, int64_t now);

#endif
