/* SPDX-License-Identifier: MIT */
/* crawl_inspect.h - looks at a running crawl, and controls it.
 *
 *     wr_engine_inspect_hosts(engine, &(struct wr_host_view_query){.sort = WR_SORT_WAIT, .most = 20}, &look);
 *     for (size_t i = 0; i < look->count; i++)
 *         ... look->hosts[i] ...
 *     wr_host_views_free(look);
 *     wr_engine_pause(engine, wr_span_of("example.org"), true);     no start after it has returned
 *
 * Any thread may call these functions, except those of the loops and the store, from
 * wr_engine_start until wr_engine_finish is called. Each call is a message to the loop of the host,
 * or to all loops, and waits for the answer: some hundred microseconds. A loop looks at a few
 * hundred hosts at a time, and does its work in between. WEIR_E_CLOSED means that the crawl has
 * ended.
 */
#ifndef WR_CRAWL_ENGINE_CRAWL_INSPECT_H
#define WR_CRAWL_ENGINE_CRAWL_INSPECT_H

#include "core/plan/inspect.h"
#include "crawl/engine/engine.h"

/* ---- hosts ---- */

#define WR_HOST_VIEW_SORTS(X)                                                    \
    X(WR_SORT_WAIT, "wait")         /* longest wait first, after paused hosts */ \
    X(WR_SORT_QUEUE, "queue")       /* most queued URLs first */                 \
    X(WR_SORT_RATE, "rate")         /* most starts lately first */               \
    X(WR_SORT_REJECTED, "rejected") /* most rejections first */                  \
    X(WR_SORT_NAME, "name")

enum wr_host_view_sort {
#define X(sort, name) sort,
    WR_HOST_VIEW_SORTS(X)
#undef X
};

/* Returns "wait", ...; NULL for an invalid number. */
const char *wr_host_view_sort_name(enum wr_host_view_sort sort);
bool wr_host_view_sort_parse(struct wr_span name, enum wr_host_view_sort *ret_sort);

#define WR_HOST_VIEWS_MAX 1000

struct wr_host_view_query {
    enum wr_host_view_sort sort;
    bool is_reversed;
    struct wr_span filter; /* text in the key of a host, in any case; empty: all hosts */
    size_t most;           /* number of hosts, at most WR_HOST_VIEWS_MAX; 0: 20 */
    bool hasty_first;      /* hosts that were asked too soon come first */
};

/* Returns true if a host comes before the other: the greatest rank first, then by name. */
bool wr_host_view_is_before(const struct wr_host_view_query *query, int64_t rank, struct wr_span key,
                            int64_t other_rank, struct wr_span other_key);

/* A host in memory: it has tasks, or had some lately. */
struct wr_host_view {
    char key[WEIR_PACE_KEY_MAX + 1];
    enum wr_host_state state;
    weir_decision why; /* reason that holds its next task, and for how long */
    uint64_t queued;   /* URLs in memory and in the store */
    uint32_t in_flight;
    uint32_t cap; /* most requests in flight; UINT32_MAX: no limit */
    double rate;  /* starts per second in the last half minute */
    /* Allowed starts per second: learned, set, or asked for by the server; INFINITY: no limit. */
    double allowed_rate;
    int64_t interval_ns; /* time between starts at allowed_rate */
    uint64_t requests, ok, rejected, failed, retries, bytes;
    weir_breaker_state breaker;
    int64_t breaker_ns;                  /* time until an open breaker lets a request try */
    int64_t robots_delay_ns;             /* Crawl-delay; 0: none */
    int64_t retry_after_ns;              /* rest of a wait that the server named; 0: none */
    int64_t set_interval_ns;             /* interval that a user has set; 0: none */
    int64_t latency_ns, slow_latency_ns; /* mean and 95th percentile */
    double error_rate;                   /* ratio of failures among the last responses */
    double tokens;                       /* tokens in the bucket; 0: no bucket */
    uint32_t failures;                   /* failures in a row */
    uint32_t hasty;                      /* starts sooner than allowed: must be 0 */
    bool is_paused;
    char mode[12];  /* word of the strategy: "cruise", "probe", ... */
    char limit[12]; /* limit and its reason, as in weir_pace_entry */
    char limit_why[160];
    /* Starts per WR_PLAN_SLICE_NS, the oldest first; the last is not over. */
    uint16_t starts[WR_PLAN_SLICES];
};

/* Sums over all hosts that match the filter. */
struct wr_host_view_sums {
    uint64_t matched;                      /* number of these hosts */
    uint64_t states[WR_HOST_STATES_COUNT]; /* hosts in each state, as seen at a glance */
    uint64_t breakers[WEIR_BREAKER_HALF_OPEN + 1];
    uint64_t queued, in_flight; /* pages that are queued, and that are in flight */
    uint64_t recent;            /* starts in the last WR_PLAN_SLICES */
    /* Time until all hosts have asked for all queued URLs, as it seems. */
    int64_t last_ns;
};

struct wr_host_views {
    size_t count;
    struct wr_host_view_sums sums;
    int64_t took_ns; /* time that the look took on all loops together */
    struct wr_host_view hosts[];
};

/* Looks at the hosts. Returns 0, WEIR_E_CLOSED or WEIR_E_NOMEM. */
int wr_engine_inspect_hosts(struct wr_engine *engine, const struct wr_host_view_query *query,
                            struct wr_host_views **ret_look);
/* Frees the result; NULL is fine. */
void wr_host_views_free(struct wr_host_views *look);
/* Looks at one host. Returns WEIR_E_ABSENT if it is not in memory, or WEIR_E_CLOSED. */
int wr_engine_inspect_host(struct wr_engine *engine, struct wr_span key, struct wr_host_view *ret_host);

/* ---- why ---- */

struct wr_why {
    char key[WEIR_PACE_KEY_MAX + 1]; /* key of the URL's host */
    uint64_t fingerprint;
    bool in_scope; /* in scope as a link; seeds are always in scope */
    struct wr_plan_task_place seat;
    struct wr_robots_decision ruling; /* ruling of robots.txt */
    char rule[256];                   /* rule of robots.txt that decided, cut to fit; "": none */
    bool has_host;                    /* the host is in memory: all fields below are set */
    struct wr_host_view host;
    struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
    size_t bound_count;
    /* Time until its start, if nothing changes; -1: unknown, or not in memory. */
    int64_t expected_ns;
};

/* Finds out why a URL waits. Returns 0 or WEIR_E_CLOSED. */
int wr_engine_why(struct wr_engine *engine, const struct wr_url *url, struct wr_why *ret_why);

/* Returns the time until a task starts with `before` tasks of its host before it; -1: unknown. */
int64_t wr_host_view_expected_wait(const struct wr_host_view *host, uint64_t before);

/* ---- control ---- */

/* Pauses or resumes a host. After a pause no request to it starts. The setting is stored. It also
 * holds for later crawls, and for a host that comes into memory later. Returns WEIR_E_FULL if the
 * store has no room and nothing was changed, WEIR_E_INVAL or WEIR_E_CLOSED. */
int wr_engine_pause(struct wr_engine *engine, struct wr_span key, bool paused);

/* Sets the least time between starts of a host, from the next start on, instead of that of all
 * hosts; 0 restores it. Limits of the server (Crawl-delay, Retry-After) and learned limits bind in
 * addition. Errors as of wr_engine_pause. */
int wr_engine_set_pace(struct wr_engine *engine, struct wr_span key, int64_t interval_ns);

/* Forgets what was learned of a host; limits of its server stay. Errors as of wr_engine_pause, and
 * WEIR_E_ABSENT if the host is unknown. */
int wr_engine_forget(struct wr_engine *engine, struct wr_span key);

/* Ends the job for good: requests in flight end, the other tasks are never done. */
void wr_engine_cancel(struct wr_engine *engine);

/* Returns the store, for queries about jobs and tasks. They must not wait while it is paused. */
struct wr_store *wr_engine_store(struct wr_engine *engine);
int64_t wr_engine_job_id(const struct wr_engine *engine);

/* ---- events ---- */

#define WR_EVENTS(X)                                                                 \
    X(WR_EVENT_REJECTED, "rejected")       /* a 429, or a similar `status` */        \
    X(WR_EVENT_RETRY_AFTER, "retry_after") /* the server named a time */             \
    X(WR_EVENT_BREAKER, "breaker")         /* a breaker opened or closed */          \
    X(WR_EVENT_HOPELESS, "hopeless")       /* too many 429 in a row */               \
    X(WR_EVENT_PAUSED, "paused")           /* by a user, as the next three events */ \
    X(WR_EVENT_RESUMED, "resumed")                                                   \
    X(WR_EVENT_PACE, "pace")                                                         \
    X(WR_EVENT_FORGOTTEN, "forgotten")

enum wr_event_kind {
#define X(kind, name) kind,
    WR_EVENTS(X)
#undef X
};

/* Returns "rejected", ...; NULL for an invalid number. */
const char *wr_event_name(enum wr_event_kind kind);

struct wr_engine_event {
    uint64_t number; /* number of the event: 1, 2, ... */
    int64_t wall_at;
    enum wr_event_kind kind;
    char key[WEIR_PACE_KEY_MAX + 1];
    int status;                 /* status of the response; 0: none */
    weir_breaker_state breaker; /* BREAKER event: the new state */
    int64_t wait_ns;            /* RETRY_AFTER and BREAKER events: the wait; PACE: the interval */
};

/* Gives the events after the number `after`, the oldest first: at most `most` of the last
 * WR_EVENTS_KEPT. Continue with the number of the last one; a gap means that events were missed.
 * Returns how many events it gives. */
#define WR_EVENTS_KEPT 256
size_t wr_engine_events(struct wr_engine *engine, uint64_t after, struct wr_engine_event *ret_events, size_t most);

#endif
