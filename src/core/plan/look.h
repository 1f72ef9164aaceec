/* SPDX-License-Identifier: MIT */
/* look.h - looking into a plan while it works, and steering it: hosts at a glance and in full, why a task waits, and
 * what somebody may set by hand. */
#ifndef WR_CORE_PLAN_LOOK_H
#define WR_CORE_PLAN_LOOK_H

#include "core/plan/plan.h"

#define WR_PLAN_SLICES 12 /* of time, in each of which starts are counted: a minute */
#define WR_PLAN_SLICE_NS (5 * WEIR_SECOND)

/* ---- hosts ---- */

/* What is cheap to tell, to find out of many hosts those that are worth a look. */
struct wr_plan_glance {
    struct wr_span key;
    weir_reason reason; /* what holds it; NONE: nothing to do, or it may go at any moment */
    int64_t wait_ns;    /* until that may change by itself; 0: now, or when an answer comes; WEIR_UNTIL_RELEASE */
    uint64_t queued;
    int64_t interval_ns; /* between starts, if something is queued */
    uint32_t in_flight;  /* pages */
    uint32_t rejected;   /* as in wr_plan_host_report */
    uint32_t recent;     /* starts in all slices */
    uint32_t hasty;      /* as in wr_plan_host_report */
    weir_breaker_state breaker;
};
void wr_plan_glance(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now,
                    struct wr_plan_glance *ret_glance);

#define WR_HOST_STATES(X)                                                                      \
    X(WR_HOST_IDLE, "idle")     /* has nothing to do */                                        \
    X(WR_HOST_ACTIVE, "active") /* is asked, or will be as soon as its pace allows */          \
    X(WR_HOST_HELD, "held")     /* by breaker, Retry-After, unknown robots.txt and the like */ \
    X(WR_HOST_PAUSED, "paused") /* by somebody */

enum wr_host_state {
#define X(state, name) state,
    WR_HOST_STATES(X)
#undef X
};
#define WR_HOST_STATES_COUNT (WR_HOST_PAUSED + 1)

/* "idle", …; NULL for a number that is none. */
const char *wr_host_state_name(enum wr_host_state state);

/* By what holds it; PAUSED: somebody does. */
enum wr_host_state wr_host_state_of(weir_reason reason, uint64_t queued, uint32_t in_flight);

struct wr_plan_look {
    struct wr_plan_host_report report;
    enum wr_host_state state;
    weir_decision why;       /* what holds the next task of the job */
    uint64_t queued;         /* in memory and in the store */
    double rate;             /* starts a second, of the last half minute */
    int64_t interval_ns;     /* between starts, as it is allowed now; the group's, if that is longer */
    int64_t retry_after_ns;  /* that the server named, left of it; 0: none */
    int64_t breaker_ns;      /* until an open breaker is tried */
    int64_t set_interval_ns; /* by somebody; 0: nobody */
    bool is_paused;
    uint16_t starts[WR_PLAN_SLICES]; /* in each slice of time, the oldest first; the last is not over */
};
void wr_plan_look(const struct wr_plan *plan, const struct wr_plan_host *host, uint32_t job, int64_t now,
                  struct wr_plan_look *ret_look);

/* ---- why ---- */

#define WR_SOURCES(X)                                                              \
    X(WR_SOURCE_OPTIONS, "options") /* of the crawl: a flag, a file, or default */ \
    X(WR_SOURCE_SET, "set")         /* by somebody, for this host */               \
    X(WR_SOURCE_LEARNED, "learned") /* from answers */                             \
    X(WR_SOURCE_ROBOTS, "robots")   /* robots.txt */                               \
    X(WR_SOURCE_HEADER, "header")   /* of an answer: Retry-After, RateLimit */

enum wr_source {
#define X(source, name) source,
    WR_SOURCES(X)
#undef X
};

/* "options", …; NULL for a number that is none. */
const char *wr_source_name(enum wr_source source);

/* One bound on a host's next start, whether it holds now or not. */
struct wr_plan_bound {
    weir_reason reason;
    enum wr_source source;
    bool is_group;    /* of the gate that it shares with others */
    int64_t wait_ns;  /* 0: does not hold now; WEIR_UNTIL_RELEASE: until an answer comes, or somebody lets go */
    int64_t value_ns; /* the interval or window; 0: none */
    uint32_t count;   /* CONCURRENCY: so many may be in flight; UINT32_MAX: any number */
    uint32_t line;    /* of robots.txt; 0: not known */
    bool has_since;
    int64_t since_ns; /* ago: when it was learned or heard */
};
#define WR_PLAN_BOUNDS_MAX (2 * WEIR_PACE_BOUNDS_MAX + 6)
size_t wr_plan_bounds(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now,
                      struct wr_plan_bound ret_bounds[WR_PLAN_BOUNDS_MAX]);

/* Where a task is. */
enum wr_seat_kind {
    WR_SEAT_NONE,  /* not in memory */
    WR_SEAT_WAITS, /* in the window */
    WR_SEAT_FLIES,
};

struct wr_plan_seat {
    enum wr_seat_kind kind;
    uint32_t before;       /* WAITS: so many go first; NONE: so many are in the window */
    int64_t not_before_ns; /* WAITS: its own backoff; 0: none */
    bool was_sent;         /* FLIES; else it connects */
    int64_t sent_ns;       /* ago, if it was sent */
    uint32_t attempts;     /* so far, those of this process */
};
struct wr_plan_seat wr_plan_seat(const struct wr_plan *plan, const struct wr_plan_host *host, uint32_t job,
                                 uint64_t fingerprint, int64_t now);

/* What robots.txt says of a path and query: decision WAIT: it is not known yet. `ret_rule`: as written, valid as long
 * as the host's rules; empty: no rule. */
struct wr_ruling wr_plan_ruling(const struct wr_plan *plan, const struct wr_plan_host *host, bool is_https,
                                struct wr_span target, int64_t now, struct wr_span *ret_rule);

/* ---- steering ---- */

/* Each holds from the next start on, also for one that is connecting. */
void wr_plan_host_pause(struct wr_plan *plan, struct wr_plan_host *host, bool paused, int64_t now);
/* Between starts, instead of the options' own min_interval and max_rate: at most WR_PLAN_PACE_MAX_NS; 0: those again.
 * Strategy and server bind beside it. WEIR_E_NOMEM. */
#define WR_PLAN_PACE_MAX_NS (30 * WEIR_DAY) /* the store keeps as much */
int wr_plan_host_pace(struct wr_plan *plan, struct wr_plan_host *host, int64_t interval_ns, int64_t now);
/* What was learned of it, as wr_gate_forget. */
void wr_plan_host_forget(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);

#endif
