/* SPDX-License-Identifier: MIT */
/* inspect.h - inspects and controls a plan while it works: hosts in brief and in full, why a task
 * waits, and the settings that a user may change. */
#ifndef WR_CORE_PLAN_INSPECT_H
#define WR_CORE_PLAN_INSPECT_H

#include "core/plan/plan.h"

#define WR_PLAN_SLICES 12 /* slices of time in which starts are counted: one minute */
#define WR_PLAN_SLICE_NS (5 * WEIR_SECOND)

/* ---- hosts ---- */

/* A brief view of a host, cheap enough to find those worth a full view among many. */
struct wr_plan_host_brief {
    struct wr_span key;
    weir_reason reason; /* reason that holds it; NONE: it has nothing to do, or may start now */
    /* Time until that may change by itself, ns; 0: now, or by a response; WEIR_UNTIL_RELEASE. */
    int64_t wait_ns;
    uint64_t queued;
    int64_t interval_ns; /* interval between starts, if tasks are queued */
    uint32_t in_flight;  /* pages in flight at the host */
    uint32_t rejected;   /* requests rejected, see wr_plan_host_report */
    uint32_t recent;     /* requests sent in the last WR_PLAN_SLICES slices */
    uint32_t hasty;      /* starts that came too soon, see wr_plan_host_report */
    weir_breaker_state breaker;
};
void wr_plan_host_brief(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now,
                        struct wr_plan_host_brief *ret_glance);

#define WR_HOST_STATES(X)                                                                          \
    X(WR_HOST_IDLE, "idle")     /* the host has nothing to do */                                   \
    X(WR_HOST_ACTIVE, "active") /* sends requests as fast as its pace allows */                    \
    X(WR_HOST_HELD, "held")     /* held by breaker, Retry-After, unknown robots.txt or the like */ \
    X(WR_HOST_PAUSED, "paused") /* paused by a user */

enum wr_host_state {
#define X(state, name) state,
    WR_HOST_STATES(X)
#undef X
};
#define WR_HOST_STATES_COUNT (WR_HOST_PAUSED + 1)

/* Returns "idle" and so on; NULL for an invalid number. */
const char *wr_host_state_name(enum wr_host_state state);

/* Returns the state of a host that is held for `reason`; PAUSED means that a user paused it. */
enum wr_host_state wr_host_state_of(weir_reason reason, uint64_t queued, uint32_t in_flight);

struct wr_plan_host_view {
    struct wr_plan_host_report report;
    enum wr_host_state state;
    weir_decision why;       /* reason that holds the job's next task */
    uint64_t queued;         /* tasks of the host in memory and in the store */
    double rate;             /* starts per second over the last half minute */
    int64_t interval_ns;     /* interval between starts now; the group's, if longer */
    int64_t retry_after_ns;  /* time left of a wait that the server stated; 0: none */
    int64_t breaker_ns;      /* time until an open breaker is probed, ns */
    int64_t set_interval_ns; /* interval that a user set; 0: none */
    bool is_paused;
    /* Starts per slice, oldest first; the last slice is not over. */
    uint16_t starts[WR_PLAN_SLICES];
};
void wr_plan_host_view(const struct wr_plan *plan, const struct wr_plan_host *host, uint32_t job, int64_t now,
                       struct wr_plan_host_view *ret_look);

/* ---- why ---- */

#define WR_BOUND_SOURCES(X)                                                                \
    X(WR_BOUND_FROM_OPTIONS, "options")  /* options of the crawl: flag, file or default */ \
    X(WR_BOUND_FROM_USER, "set")         /* set by a user for this host */                 \
    X(WR_BOUND_FROM_LEARNING, "learned") /* learned from responses */                      \
    X(WR_BOUND_FROM_ROBOTS, "robots")    /* stated in robots.txt */                        \
    X(WR_BOUND_FROM_HEADER, "header")    /* stated in a response: Retry-After, RateLimit */

enum wr_bound_source {
#define X(source, name) source,
    WR_BOUND_SOURCES(X)
#undef X
};

/* Returns "options" and so on; NULL for an invalid number. */
const char *wr_bound_source_name(enum wr_bound_source source);

/* One bound on the next start at a host, whether it holds now or not. */
struct wr_plan_bound {
    weir_reason reason;
    enum wr_bound_source source;
    bool is_group; /* bound of the gate that the host shares with its group */
    /* 0: does not hold now; WEIR_UNTIL_RELEASE: until a response, or an action of a user. */
    int64_t wait_ns;
    int64_t value_ns; /* interval or window of the bound, ns; 0: none */
    uint32_t count;   /* CONCURRENCY: most requests in flight; UINT32_MAX: unlimited */
    uint32_t line;    /* line number in robots.txt; 0: unknown */
    bool has_since;
    int64_t since_ns; /* ns since it was learned or received */
};
#define WR_PLAN_BOUNDS_MAX (2 * WEIR_PACE_BOUNDS_MAX + 6)
size_t wr_plan_bounds(const struct wr_plan *plan, const struct wr_plan_host *host, int64_t now,
                      struct wr_plan_bound ret_bounds[WR_PLAN_BOUNDS_MAX]);

/* The place of a task: waiting in memory, in flight, or not in memory. */
enum wr_task_place_kind {
    WR_TASK_PLACE_NONE,   /* the task is not in memory */
    WR_TASK_PLACE_QUEUED, /* the task is in the window */
    WR_TASK_PLACE_IN_FLIGHT,
};

struct wr_plan_task_place {
    enum wr_task_place_kind kind;
    uint32_t before;       /* WAITS: tasks before it; NONE: tasks in the window */
    int64_t not_before_ns; /* WAITS: time left of its own backoff, ns; 0: none */
    bool was_sent;         /* FLIES: written; else the connection is being made */
    int64_t sent_ns;       /* FLIES: ns since it was sent */
    uint32_t attempts;     /* attempts of this process at the task so far */
};
struct wr_plan_task_place wr_plan_task_place(const struct wr_plan *plan, const struct wr_plan_host *host, uint32_t job,
                                             uint64_t fingerprint, int64_t now);

/* Returns what robots.txt says about a path and query; the decision is WAIT while robots.txt is not
 * known. `ret_rule` is the rule as written, valid as long as the host's rules, or empty. */
struct wr_robots_decision wr_plan_ruling(const struct wr_plan *plan, const struct wr_plan_host *host, bool is_https,
                                         struct wr_span target, int64_t now, struct wr_span *ret_rule);

/* ---- control ---- */

/* Pauses or resumes a host from the next start on, also for a request that is still connecting. */
void wr_plan_host_pause(struct wr_plan *plan, struct wr_plan_host *host, bool paused, int64_t now);
/* Sets the interval between starts, instead of min_interval and max_rate of the options; 0 restores
 * those. At most WR_PLAN_PACE_MAX_NS. Strategy and server still bind. Returns 0 or WEIR_E_NOMEM. */
#define WR_PLAN_PACE_MAX_NS (30 * WEIR_DAY) /* the store accepts no longer interval */
int wr_plan_host_pace(struct wr_plan *plan, struct wr_plan_host *host, int64_t interval_ns, int64_t now);
/* Forgets what was learned about the host, as wr_gate_forget. */
void wr_plan_host_forget_learned(struct wr_plan *plan, struct wr_plan_host *host, int64_t now);

#endif
