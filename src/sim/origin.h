/* SPDX-License-Identifier: MIT */
/* origin.h - a running origin: what does it answer to a request that arrives now?
 *
 *     arrival -> outage? -> limiter -> station (servers, queue) -> 200, 500 or 503 after the service time
 *                  |           |          |
 *                 503      a refusal     503         each 2 ms after the arrival, unless refusals are delayed
 *
 * Arrivals must come in the order of time. Everything that happens at an origin follows from its arrivals, so there are
 * no events of its own: a request's end is known when it arrives.
 */
#ifndef WR_SIM_ORIGIN_H
#define WR_SIM_ORIGIN_H

#include "sim/chance.h"
#include "sim/sim.h"
#include "sim/vary.h"

#define WR_REJECT_NS 2000000 /* what saying no takes */
#define WR_TAIL_FACTOR 20    /* a request in the tail takes this many times as long */

enum wr_reply_cause {
    WR_REPLY_GOOD,     /* 200 */
    WR_REPLY_TOO_MUCH, /* refused, in whatever way, because of what was sent */
    WR_REPLY_OUTAGE,   /* 503 */
    WR_REPLY_BROKEN,   /* 500 or 503, by chance */
};

struct wr_reply {
    enum wr_reply_cause cause;
    int status;              /* 0: none, the connection was reset or the client gave up */
    int64_t done_at;         /* leaves the origin */
    int64_t retry_after_ns;  /* -1: none; else whole seconds */
    int64_t quota_limit;     /* -1: no headers */
    int64_t quota_remaining; /* -1 */
    int64_t quota_reset_ns;  /* -1; else whole seconds */
};

/* The limiter's state; see limiter.c. */
struct wr_turnstile {
    double level;      /* token bucket: tokens */
    double level_sum;  /* the factor's integral when the level was right */
    double others_sum; /* token bucket: the same, when the next request of others comes */
    int64_t window_at; /* windows: when the present one began; long ago if none has */
    uint32_t used;     /* of its quota */
    uint32_t before;   /* sliding counter: what was used of the window before */
    int64_t *times;    /* sliding window: of what was let in, a ring; concurrency: when those inside leave */
    uint32_t first, count, room;
    int64_t banned_until;
    uint32_t bans;
};

struct wr_station {
    int64_t *free_at; /* of each server */
    int64_t *begins;  /* of those that wait: a ring, in order */
    uint32_t servers, queue, first, waiting;
};

struct wr_site {
    const struct wr_origin *origin;
    struct wr_vary vary;
    struct wr_turnstile turnstile;
    struct wr_station station;
    struct wr_chance service, faults, others;
    double service_scale_ns; /* a lognormal's median */
    const weir_allocator *allocator;
};

/* The origin must outlive the site. WEIR_E_NOMEM. */
int wr_site_init(struct wr_site *ret_site, const struct wr_origin *origin, int64_t duration_ns, uint64_t seed,
                 const weir_allocator *allocator);
void wr_site_release(struct wr_site *site);

void wr_site_arrive(struct wr_site *site, int64_t now, struct wr_reply *ret_reply);

/* limiter.c */
int wr_turnstile_init(struct wr_site *site);
void wr_turnstile_release(struct wr_site *site);
/* Lets it in and returns true, or fills in the refusal. */
bool wr_turnstile_ask(struct wr_site *site, int64_t now, struct wr_reply *reply);
/* How much longer one that was let in takes, because it was one of too many. */
int64_t wr_turnstile_slows(struct wr_site *site, int64_t now);
/* The one that was let in is gone at `done_at`. */
void wr_turnstile_leaves(struct wr_site *site, int64_t done_at);
/* What the limiter says of itself in headers. */
void wr_turnstile_headers(struct wr_site *site, int64_t now, struct wr_reply *reply);

#endif
