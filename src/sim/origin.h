/* SPDX-License-Identifier: MIT */
/* origin.h - A simulated origin, which answers each request that arrives.
 *
 *     arrival -> outage? -> limiter -> station (servers, queue) -> 200, 500, 503 after the service
 *                  |           |          |
 *                 503      a refusal     503         each after 2 ms, unless refusals are delayed
 *
 * Arrivals must come in the order of time. All events at an origin follow from its arrivals, so it
 * has no events of its own: the end of a request is known when it arrives.
 */
#ifndef WR_SIM_ORIGIN_H
#define WR_SIM_ORIGIN_H

#include "sim/chance.h"
#include "sim/sim.h"
#include "sim/vary.h"

#define WR_REJECT_NS 2000000 /* time to refuse a request, ns */
#define WR_TAIL_FACTOR 20    /* factor on the service time of a request in the tail */

enum wr_sim_reply_cause {
    WR_REPLY_GOOD,     /* 200 */
    WR_REPLY_TOO_MUCH, /* refused in any way because of the request rate or number */
    WR_REPLY_OUTAGE,   /* 503 during an outage */
    WR_REPLY_BROKEN,   /* 500 or 503 by chance */
};

struct wr_sim_reply {
    enum wr_sim_reply_cause cause;
    int status;              /* 0 if there is no response: a reset, or the client gave up */
    int64_t done_at;         /* time at which the response leaves the origin */
    int64_t retry_after_ns;  /* wait in Retry-After, whole seconds, in ns; -1 if absent */
    int64_t quota_limit;     /* size of the stated quota; -1 if absent */
    int64_t quota_remaining; /* stated rest of the quota; -1 if absent */
    int64_t quota_reset_ns;  /* stated reset of the quota, whole seconds, in ns; -1 if absent */
};

/* The state of the limiter; see limiter.c. */
struct wr_origin_limiter {
    double level;      /* token bucket: tokens */
    double level_sum;  /* integral of the factor at the last update of `level` */
    double others_sum; /* token bucket: integral at the next request of other clients */
    int64_t window_at; /* windows: start of the current one; far in the past before the first */
    uint32_t used;     /* windows: requests counted in the current window */
    uint32_t before;   /* sliding counter: requests counted in the window before */
    /* Sliding window: a ring of the times of admitted requests. Concurrency: when each leaves. */
    int64_t *times;
    uint32_t first, count, room;
    int64_t banned_until;
    uint32_t bans;
};

struct wr_station {
    int64_t *free_at; /* time at which each server is free */
    int64_t *begins;  /* start of the service of each waiting request: a ring, in order */
    uint32_t servers, queue, first, waiting;
};

struct wr_sim_origin {
    const struct wr_origin *origin;
    struct wr_vary vary;
    struct wr_origin_limiter origin_limiter;
    struct wr_station station;
    struct wr_chance service, faults, others;
    double service_scale_ns; /* median of the lognormal distribution */
    const weir_allocator *allocator;
};

/* Creates a site. The origin must outlive it. Returns 0 or WEIR_E_NOMEM. */
int wr_sim_origin_init(struct wr_sim_origin *ret_site, const struct wr_origin *origin, int64_t duration_ns,
                       uint64_t seed, const weir_allocator *allocator);
void wr_sim_origin_release(struct wr_sim_origin *site);

void wr_sim_origin_arrive(struct wr_sim_origin *site, int64_t now, struct wr_sim_reply *ret_reply);

/* origin_limiter.c */
int wr_origin_limiter_init(struct wr_sim_origin *site);
void wr_origin_limiter_release(struct wr_sim_origin *site);
/* Admits the request and returns true, or fills in the refusal and returns false. */
bool wr_origin_limiter_ask(struct wr_sim_origin *site, int64_t now, struct wr_sim_reply *reply);
/* Returns how much longer an admitted request takes, because it exceeds the quota. */
int64_t wr_origin_limiter_delay_ns(struct wr_sim_origin *site, int64_t now);
/* Notes that the admitted request leaves at `done_at`. */
void wr_origin_limiter_note_end(struct wr_sim_origin *site, int64_t done_at);
/* Fills in the rate-limit fields of the limiter. */
void wr_origin_limiter_headers(struct wr_sim_origin *site, int64_t now, struct wr_sim_reply *reply);

#endif
