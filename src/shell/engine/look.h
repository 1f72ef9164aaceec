/* SPDX-License-Identifier: MIT */
/* look.h - looking at a crawl while it runs, and steering it.
 *
 *     wr_engine_look(engine, &(struct wr_look_query){.sort = WR_SORT_WAIT, .most = 20}, &look);
 *     for (size_t i = 0; i < look->count; i++)
 *         … look->hosts[i] …
 *     wr_look_free(look);
 *     wr_engine_pause(engine, wr_span_of("example.org"), true);     no start after it has returned
 *
 * From any thread but the loops' and the store's, from wr_engine_start until wr_engine_finish is called. Each call is a
 * letter to the loop that has the host, or to all, and waits for the answer: some hundred microseconds. A loop
 * looks at a few hundred hosts at a time, and does its work in between. WEIR_E_CLOSED: the crawl has ended.
 */
#ifndef WR_SHELL_ENGINE_LOOK_H
#define WR_SHELL_ENGINE_LOOK_H

#include "core/plan/look.h"
#include "shell/engine/engine.h"

/* ---- hosts ---- */

#define WR_LOOK_SORTS(X)                                                   \
    X(WR_SORT_WAIT, "wait")         /* that waits longest, paused first */ \
    X(WR_SORT_QUEUE, "queue")       /* with most to do */                  \
    X(WR_SORT_RATE, "rate")         /* asked most often lately */          \
    X(WR_SORT_REJECTED, "rejected") /* with most answers 429 */            \
    X(WR_SORT_NAME, "name")

enum wr_look_sort {
#define X(sort, name) sort,
    WR_LOOK_SORTS(X)
#undef X
};

/* "wait", …; NULL for a number that is none. */
const char *wr_look_sort_name(enum wr_look_sort sort);
bool wr_look_sort_named(struct wr_span name, enum wr_look_sort *ret_sort);

#define WR_LOOK_MAX 1000

struct wr_look_query {
    enum wr_look_sort sort;
    bool is_reversed;
    struct wr_span filter; /* in their keys, in any case of letters; empty: all */
    size_t most;           /* at most WR_LOOK_MAX; 0: 20 */
    bool hasty_first;      /* before all, those that were asked too soon */
};

/* Whether one comes before the other: the greatest rank first, and equals in the order of their names. */
bool wr_look_is_before(const struct wr_look_query *query, int64_t rank, struct wr_span key, int64_t other_rank,
                       struct wr_span other_key);

/* A host that is in memory: it has tasks, or had some lately. */
struct wr_look_host {
    char key[WEIR_PACE_KEY_MAX + 1];
    enum wr_host_state state;
    weir_decision why; /* what holds its next task, and for how long */
    uint64_t queued;   /* in memory and in the store */
    uint32_t in_flight;
    uint32_t cap;        /* most in flight; UINT32_MAX: any number */
    double rate;         /* starts a second, of the last half minute */
    double allowed_rate; /* as learned, set, or asked for by the server; INFINITY: any */
    int64_t interval_ns; /* the same, between starts */
    uint64_t requests, ok, rejected, failed, retries, bytes;
    weir_breaker_state breaker;
    int64_t breaker_ns;                  /* until an open one is tried */
    int64_t robots_delay_ns;             /* Crawl-delay; 0: none */
    int64_t retry_after_ns;              /* left of a wait that the server named; 0: none */
    int64_t set_interval_ns;             /* by somebody; 0: nobody */
    int64_t latency_ns, slow_latency_ns; /* mean, and the 95th of 100 */
    double error_rate;                   /* of the last answers */
    double tokens;                       /* of a bucket; 0: its strategy has none */
    uint32_t failures;                   /* in a row */
    uint32_t hasty;                      /* sooner after another than was allowed: must be 0 */
    bool is_paused;
    char mode[12];  /* the strategy's own word: "cruise", "probe", … */
    char limit[12]; /* as in weir_pace_entry */
    char limit_why[160];
    uint16_t starts[WR_PLAN_SLICES]; /* in each WR_PLAN_SLICE_NS, the oldest first; the last is not over */
};

/* Of all hosts that the filter lets through. */
struct wr_look_sums {
    uint64_t matched;                      /* how many they are */
    uint64_t states[WR_HOST_STATES_COUNT]; /* of them, in each state, as it is seen at a glance */
    uint64_t breakers[WEIR_BREAKER_HALF_OPEN + 1];
    uint64_t queued, in_flight; /* pages */
    uint64_t recent;            /* starts in the last WR_PLAN_SLICES */
    int64_t last_ns;            /* until the slowest has asked for all that it has queued, as it looks */
};

struct wr_look {
    size_t count;
    struct wr_look_sums sums;
    int64_t took_ns; /* of the loops' time, all together */
    struct wr_look_host hosts[];
};

/* WEIR_E_CLOSED, WEIR_E_NOMEM. */
int wr_engine_look(struct wr_engine *engine, const struct wr_look_query *query, struct wr_look **ret_look);
/* NULL is fine. */
void wr_look_free(struct wr_look *look);
/* WEIR_E_ABSENT: it is not in memory. WEIR_E_CLOSED. */
int wr_engine_look_host(struct wr_engine *engine, struct wr_span key, struct wr_look_host *ret_host);

/* ---- why ---- */

struct wr_why {
    char key[WEIR_PACE_KEY_MAX + 1]; /* of its host */
    uint64_t fingerprint;
    bool in_scope; /* as a link would be judged; seeds are in any */
    struct wr_plan_seat seat;
    struct wr_ruling ruling; /* of robots.txt */
    char rule[256];          /* that decided, as written and as much as fits; "": none */
    bool has_host;           /* the host is in memory: then all that follows */
    struct wr_look_host host;
    struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
    size_t bound_count;
    int64_t expected_ns; /* from now, if nothing changes; -1: nobody knows, or it is not queued in memory */
};

/* WEIR_E_CLOSED. */
int wr_engine_why(struct wr_engine *engine, const struct wr_url *url, struct wr_why *ret_why);

/* When a task starts with so many of its host before it, from now: as it looks. -1: nobody knows. */
int64_t wr_look_expected(const struct wr_look_host *host, uint64_t before);

/* ---- steering ---- */

/* When it returns, no request to the host starts (or they may again). It is stored, and holds for later crawls, and for
 * a host that is not in memory when it comes. WEIR_E_FULL: the store has no room, and nothing has changed.
 * WEIR_E_INVAL, WEIR_E_CLOSED. */
int wr_engine_pause(struct wr_engine *engine, struct wr_span key, bool paused);

/* At least so long between starts, instead of what the crawl was told for all hosts; 0: that again. From the next start
 * on. What the server says (Crawl-delay, Retry-After) and what was learned of it bind beside it. Errors as of pause. */
int wr_engine_set_pace(struct wr_engine *engine, struct wr_span key, int64_t interval_ns);

/* Begins anew with what was learned of it; what the server said stays. Errors as of pause; WEIR_E_ABSENT: nobody knows
 * it. */
int wr_engine_forget(struct wr_engine *engine, struct wr_span key);

/* The job is over, for good: what is in flight ends, the rest stays undone. */
void wr_engine_cancel(struct wr_engine *engine);

/* The state file, to be asked about jobs and tasks; but not to wait for while it is paused. */
struct wr_store *wr_engine_store(struct wr_engine *engine);
int64_t wr_engine_job_id(const struct wr_engine *engine);

/* ---- events ---- */

#define WR_EVENTS(X)                                                         \
    X(WR_EVENT_REJECTED, "rejected")       /* a 429 or its like: `status` */ \
    X(WR_EVENT_RETRY_AFTER, "retry_after") /* the server named a time */     \
    X(WR_EVENT_BREAKER, "breaker")         /* opened, or closed */           \
    X(WR_EVENT_HOPELESS, "hopeless")       /* too many 429 in a row */       \
    X(WR_EVENT_PAUSED, "paused")           /* by somebody; as are these: */  \
    X(WR_EVENT_RESUMED, "resumed")                                           \
    X(WR_EVENT_PACE, "pace")                                                 \
    X(WR_EVENT_FORGOTTEN, "forgotten")

enum wr_event_kind {
#define X(kind, name) kind,
    WR_EVENTS(X)
#undef X
};

/* "rejected", …; NULL for a number that is none. */
const char *wr_event_name(enum wr_event_kind kind);

struct wr_engine_event {
    uint64_t number; /* 1, 2, … */
    int64_t wall_at;
    enum wr_event_kind kind;
    char key[WEIR_PACE_KEY_MAX + 1];
    int status;                 /* of the answer; 0: none */
    weir_breaker_state breaker; /* BREAKER */
    int64_t wait_ns;            /* RETRY_AFTER, BREAKER: how long; PACE: the interval */
};

/* Those after the number `after`, the oldest first; as many as fit, of the last WR_EVENTS_KEPT. Go on from the last
 * one's number: a gap means that some were missed. Returns how many. */
#define WR_EVENTS_KEPT 256
size_t wr_engine_events(struct wr_engine *engine, uint64_t after, struct wr_engine_event *ret_events, size_t most);

#endif
