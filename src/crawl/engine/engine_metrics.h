/* SPDX-License-Identifier: MIT */
/* engine_metrics.h - the metrics of a crawl for Prometheus, and its health.
 *
 *     wr_engine_metrics_new(engine, 10, &watch);
 *     wr_engine_metrics_text(watch);                      any number of calls: new after 250 ms
 *     wr_engine_metrics_health(watch);
 *     wr_engine_metrics_free(watch);
 *
 * Counters are read where loops keep them. Hosts are looked at by a question to each loop
 * (crawl_inspect.h), as seldom as needed to take less than a hundredth of the loops' time. So a
 * thousand calls per second cost the crawl no more. One thread at a time may call these functions:
 * none of the loops, not that of the store, and only until wr_engine_finish is called.
 */
#ifndef WR_CRAWL_ENGINE_ENGINE_METRICS_H
#define WR_CRAWL_ENGINE_ENGINE_METRICS_H

#include "crawl/engine/crawl_inspect.h"

#define WR_ENGINE_METRICS_HOSTS_MAX 1000

struct wr_engine_metrics;

/* Creates a watch. `hosts` (at most WR_ENGINE_METRICS_HOSTS_MAX) hosts have metrics of their own:
 * first those that were asked too soon, then those that are asked most often. The others are added
 * up as "other". Returns 0 or WEIR_E_NOMEM. */
int wr_engine_metrics_new(struct wr_engine *engine, size_t hosts, struct wr_engine_metrics **ret_watch);

/* Returns the text for /metrics, valid until the next call; empty if memory is short. */
struct wr_span wr_engine_metrics_text(struct wr_engine_metrics *watch);

#define WR_HEALTHS(X)                                                       \
    X(WR_HEALTH_OK, "ok")                                                   \
    X(WR_HEALTH_DEGRADED, "degraded")   /* the breaker of a host is open */ \
    X(WR_HEALTH_UNHEALTHY, "unhealthy") /* breakers of half the hosts open, or the store paused */

enum wr_engine_health_level {
#define X(health, name) health,
    WR_HEALTHS(X)
#undef X
};

/* Returns "ok", ...; NULL for an invalid number. */
const char *wr_health_name(enum wr_engine_health_level health);

struct wr_crawl_health {
    enum wr_engine_health_level health;
    uint64_t hosts;           /* hosts in memory */
    uint64_t open, half_open; /* hosts with an open or half-open breaker */
    bool is_store_paused;
};

/* Returns the health of the crawl as of the last look. */
struct wr_crawl_health wr_engine_metrics_health(struct wr_engine_metrics *watch);

void wr_engine_metrics_free(struct wr_engine_metrics *watch);

#endif
