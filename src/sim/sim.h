/* SPDX-License-Identifier: MIT */
/* sim.h - modelled origins in virtual time: how close to a host's true limit does a pacer stay?
 *
 * A scenario is one origin (or a crowd of them) as docs/scenarios.md describes it. wr_sim_run drives one gate against
 * it, event by event, from a seed: the same seed gives the same run, to the bit on one machine, and elsewhere as far as
 * the mathematical library agrees. The score compares what was delivered with an oracle that knows the limit.
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
        double rate, burst; /* token bucket */
        uint32_t quota;     /* windows, ban, counter, slow-down */
        int64_t window_ns, ban_ns;
        enum wr_window_start starts; /* fixed window, counter, slow-down: when a window begins */
        int64_t block_ns;            /* fixed window: what one request too many costs; 0: the rest of the window */
        int status;                  /* of a ban */
        bool extend;                 /* a request during the ban or block makes it begin anew */
        bool counts_refused;         /* counter: refused requests count too */
        uint32_t max;                /* concurrency */
        int64_t step_ns, most_ns;    /* slow-down: each request beyond the quota takes this much longer, at most */
    } limiter;
    struct {
        uint32_t servers, queue;
    } station; /* servers 0: none */
    struct {
        enum wr_reject_how how;
        int status;
        int64_t delay_ns; /* until a refusal is heard; of silence: until the client gives up */
        bool retry_after, headers;
        int64_t wait_ns; /* what Retry-After says; 0: the truth */
        bool always;     /* Retry-After is on successes, too: when the quota is whole again */
    } reject;
    struct {
        double p500, p503;
    } errors;
    struct {
        int64_t from_ns, to_ns;
    } outage; /* to 0: none */
    struct {
        enum wr_vary_kind kind;
        int64_t period_ns;
    } vary;
    double cross; /* share of the rate taken by others */
};

/* Of a crowd's hosts, those of one kind. */
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
    uint32_t backlog; /* 0: always work to do */
    struct {
        uint32_t hosts;
        double zipf;
        uint32_t largest;
        uint64_t seed;
    } crowd; /* hosts 0: none */
    struct wr_mix mix[WR_MIX_MAX];
    uint32_t mix_count;
};

/* Fills in every default. */
void wr_scenario_init(struct wr_scenario *ret_scenario);

/* NULL, or what is wrong with it and what would be right. */
const char *wr_scenario_wrong(const struct wr_scenario *scenario);

/* Draws the index-th fresh scenario out of the families' ranges. */
void wr_scenario_random(uint64_t seed, uint32_t index, struct wr_scenario *ret_scenario);
/* The same out of the families R1 … that do what limiters in use were seen to do. */
void wr_scenario_random_real(uint64_t seed, uint32_t index, struct wr_scenario *ret_scenario);

/* Who is tried: a strategy of weir's or one for comparison, with its numbers. */
struct wr_sim_pacer {
    char name[128];                     /* as given, "aimd:alpha=0.1" */
    const struct wr_strategy *strategy; /* one for comparison, run bare; NULL: a gate with these options */
    weir_pace_options options;
    bool deaf; /* the gate is not told of rate-limit fields */
};

/* Sets a pacer by its text, NAME[:key=value,…]; keys are those of weir_pace_options_set, the short ones of the
 * published rules (alpha, beta, start, max, min, degrade, target, interval), and headers=true|false: whether it is told
 * of rate-limit fields. WEIR_E_INVAL. */
int wr_sim_pacer_named(const char *text, struct wr_sim_pacer *ret_pacer);

/* The names that wr_sim_pacer_named knows, NULL at the end, each with a line of what it is. */
struct wr_sim_pacer_name {
    const char *name, *what;
};
const struct wr_sim_pacer_name *wr_sim_pacer_names(void);

struct wr_score {
    double goodput;                     /* 200s / oracle, not clipped */
    double rejected;                    /* caused by us / sent */
    double late_goodput, late_rejected; /* the same in the second half: when what can be learned was learned */
    double sent, ok, rejections, waste, oracle;
    double t90_s, recovery_s; /* NAN: never, or nothing to recover from */
    double latency_inflation; /* mean / unloaded mean */
    double overshoot;         /* worst second: sent / allowed */
    double makespan_s;        /* with a backlog, else NAN */
    double bans;              /* times that a ban began */
};

/* What happened, for traces and plots. */
struct wr_sim_event {
    int64_t at;
    enum {
        WR_SIM_SENT,
        WR_SIM_ANSWERED
    } kind;
    int status; /* of an answer, as are the next four */
    int64_t latency_ns;
    int64_t retry_after_ns;                  /* -1: none */
    int64_t quota_remaining, quota_reset_ns; /* -1: no headers */
    uint32_t in_flight;
    double rate, limit; /* what the pacer wants and the origin allows per second, now */
    const char *mode;
};
typedef void wr_sim_listener(void *context, const struct wr_sim_event *event);

struct wr_sim_run {
    const struct wr_scenario *scenario;
    const struct wr_sim_pacer *pacer;
    uint64_t seed;
    const weir_pace_memory *memory; /* of an earlier run, one for each host of a crowd; NULL: cold */
    weir_pace_memory *ret_memory;   /* as many; may be NULL */
    wr_sim_listener *listener;      /* may be NULL */
    void *context;
    const weir_allocator *allocator;
};

/* WEIR_E_NOMEM. */
int wr_sim_run(const struct wr_sim_run *run, struct wr_score *ret_score);

/* The mean over `seeds` runs (0: the scenario's) from `seed` on; warm: each run is preceded by one whose memory it
 * gets. */
int wr_sim_score(const struct wr_scenario *scenario, const struct wr_sim_pacer *pacer, uint32_t seeds, uint64_t seed,
                 bool warm, const weir_allocator *allocator, struct wr_score *ret_score);

/* The first of those runs, watched. */
int wr_sim_watch(const struct wr_scenario *scenario, const struct wr_sim_pacer *pacer, uint64_t seed, bool warm,
                 const weir_allocator *allocator, wr_sim_listener *listener, void *context, struct wr_score *ret_score);

#endif
