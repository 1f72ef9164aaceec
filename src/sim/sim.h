/* SPDX-License-Identifier: MIT */
/* sim.h - Simulates origins in virtual time, to measure how close to its true limit a pacer stays.
 *
 * A scenario is one origin or a crowd of them; see docs/scenarios.md. wr_sim_run drives one gate
 * against it, event by event, from a seed. The same seed gives the same run: bit for bit on one
 * machine, on others as far as the mathematical libraries agree. The score compares the delivery
 * with that of an oracle that knows the limit.
 */
#ifndef WR_SIM_SIM_H
#define WR_SIM_SIM_H

#include "base/alloc.h"
#include "core/pace/gate.h"

enum wr_service_law {
    WR_LAW_LOGNORMAL,
    WR_LAW_UNIFORM
};
enum wr_limiter_kind {
    WR_LIMITER_NONE,
    WR_LIMITER_TOKEN_BUCKET,
    WR_LIMITER_FIXED_WINDOW,
    WR_LIMITER_SLIDING_BAN,
    WR_LIMITER_CONCURRENCY,
    WR_LIMITER_SLIDING_COUNTER,
    WR_LIMITER_SLOW_DOWN,
};
enum wr_window_start {
    WR_STARTS_BY_CLOCK,
    WR_STARTS_BY_REQUEST,
};
enum wr_reject_how {
    WR_REJECT_ANSWER,
    WR_REJECT_RESET,
    WR_REJECT_SILENCE,
};
enum wr_vary_kind {
    WR_VARY_NONE,
    WR_VARY_STEP,
    WR_VARY_JUMP,
    WR_VARY_SINE,
    WR_VARY_WALK
};

struct wr_origin {
    struct {
        int64_t mean_ns;
        double sigma;
        enum wr_service_law law;
        double tail;
    } service;
    struct {
        enum wr_limiter_kind kind;
        double rate, burst; /* token bucket: tokens per second, capacity */
        uint32_t quota;     /* windows, ban, counter, slow-down: requests per window */
        int64_t window_ns, ban_ns;
        enum wr_window_start starts; /* fixed window, counter, slow-down: start of a window */
        int64_t block_ns;            /* fixed window: block by an excess request; 0: its rest */
        int status;                  /* status of a refusal by a ban */
        bool extend;                 /* a request during the ban or block restarts it */
        bool counts_refused;         /* counter: refused requests count too */
        uint32_t max;                /* concurrency: maximum in flight */
        int64_t step_ns, most_ns;    /* slow-down: delay per excess request, maximum delay */
    } limiter;
    struct {
        uint32_t servers, queue;
    } station; /* servers is 0 without a station */
    struct {
        enum wr_reject_how how;
        int status;
        int64_t delay_ns; /* delay of a refusal; with silence: until the client gives up */
        bool retry_after, headers;
        int64_t wait_ns; /* wait in Retry-After; 0 for the true wait */
        bool always;     /* successes have a Retry-After too: until the quota is full */
    } reject;
    struct {
        double p500, p503;
    } errors;
    struct {
        int64_t from_ns, to_ns;
    } outage; /* to_ns is 0 without an outage */
    struct {
        enum wr_vary_kind kind;
        int64_t period_ns;
    } vary;
    double cross; /* share of the rate that other clients take */
};

/* One kind of host in a crowd. */
struct wr_mix {
    double weight;
    struct wr_origin origin;
};

#define WR_MIX_MAX 32

struct wr_scenario {
    char name[64];
    int64_t duration_ns;
    uint32_t workers, seeds;
    struct {
        int64_t rtt_ns, jitter_ns;
    } network;
    struct wr_origin origin;
    uint32_t backlog; /* number of URLs; 0 for unlimited work */
    struct {
        uint32_t hosts;
        double zipf;
        uint32_t largest;
        uint64_t seed;
    } crowd; /* hosts is 0 without a crowd */
    struct wr_mix mix[WR_MIX_MAX];
    uint32_t mix_count;
};

/* Sets every field to its default. */
void wr_scenario_init(struct wr_scenario *ret_scenario);

/* Returns NULL, or a message about what is invalid and what is valid. */
const char *wr_scenario_wrong(const struct wr_scenario *scenario);

/* Draws the scenario with number `index` from the ranges of the families. */
void wr_scenario_random(uint64_t seed, uint32_t index, struct wr_scenario *ret_scenario);
/* Draws from the families R1 ..., which model observed limiters in use. */
void wr_scenario_random_real(uint64_t seed, uint32_t index, struct wr_scenario *ret_scenario);

/* The pacer under test: a strategy of weir or one for comparison, with its options. */
struct wr_sim_pacer {
    char name[128]; /* text as given: "aimd:alpha=0.1" */
    /* A strategy for comparison, run bare; NULL for a gate with `options`. */
    const struct wr_strategy *strategy;
    weir_pace_options options;
    bool ignores_quota_fields; /* the gate gets no rate-limit fields */
};

/* Sets a pacer from a text, NAME[:key=value,...]. Keys are those of weir_pace_options_set, the
 * short ones of the published rules (alpha, beta, start, max, min, degrade, target, interval), and
 * headers=true|false for rate-limit fields. Returns WEIR_E_INVAL if the text is invalid. */
int wr_sim_pacer_named(const char *text, struct wr_sim_pacer *ret_pacer);

/* The names that wr_sim_pacer_named accepts, each with a short description. A NULL name is last. */
struct wr_sim_pacer_name {
    const char *name, *what;
};
const struct wr_sim_pacer_name *wr_sim_pacer_names(void);

struct wr_score {
    double goodput;                     /* 200s / oracle, not limited to 1 */
    double rejected;                    /* share of sent requests that we caused to be rejected */
    double late_goodput, late_rejected; /* goodput, rejected in the second half: after learning */
    double sent, ok, rejections, waste, oracle;
    double t90_s, recovery_s; /* s; NAN if never reached or without cause */
    double latency_inflation; /* mean latency / unloaded mean latency */
    double overshoot;         /* sent / allowed in the worst second */
    double makespan_s;        /* time for the backlog, s; NAN without one */
    double bans;              /* number of bans */
};

/* One event of a run, for traces and plots. */
struct wr_sim_event {
    int64_t at;
    enum {
        WR_SIM_SENT,
        WR_SIM_ANSWERED
    } kind;
    int status; /* status to quota_reset_ns: only valid for a response */
    int64_t latency_ns;
    int64_t retry_after_ns;                  /* wait in Retry-After; -1 if absent */
    int64_t quota_remaining, quota_reset_ns; /* rate-limit fields; -1 if absent */
    uint32_t in_flight;
    double rate, limit; /* per second: wanted by the pacer, allowed by the origin */
    const char *mode;
};
typedef void wr_sim_listener(void *context, const struct wr_sim_event *event);

struct wr_sim_run {
    const struct wr_scenario *scenario;
    const struct wr_sim_pacer *pacer;
    uint64_t seed;
    const weir_pace_memory *memory; /* memory of an earlier run, one per host; NULL: cold start */
    weir_pace_memory *ret_memory;   /* one per host; may be NULL */
    wr_sim_listener *listener;      /* may be NULL */
    void *context;
    const weir_allocator *allocator;
};

/* Runs a scenario once. Returns 0 or WEIR_E_NOMEM. */
int wr_sim_run(const struct wr_sim_run *run, struct wr_score *ret_score);

/* Computes the mean score of `seeds` runs (0: the scenario's number) starting with `seed`. With
 * `warm`, each run gets the memory of a run before it. */
int wr_sim_score(const struct wr_scenario *scenario, const struct wr_sim_pacer *pacer, uint32_t seeds, uint64_t seed,
                 bool warm, const weir_allocator *allocator, struct wr_score *ret_score);

/* Runs the first of those runs with a listener. */
int wr_sim_watch(const struct wr_scenario *scenario, const struct wr_sim_pacer *pacer, uint64_t seed, bool warm,
                 const weir_allocator *allocator, wr_sim_listener *listener, void *context, struct wr_score *ret_score);

#endif
