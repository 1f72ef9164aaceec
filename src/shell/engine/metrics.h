/* SPDX-License-Identifier: MIT */
/* metrics.h - a crawl in numbers, for Prometheus, and whether it is well.
 *
 *     wr_crawl_watch_new(engine, 10, &watch);
 *     wr_crawl_watch_text(watch);                      as often as one likes: found anew after a quarter of a second
 *     wr_crawl_watch_health(watch);
 *     wr_crawl_watch_free(watch);
 *
 * Counts are read where loops count them; hosts are looked at by a question to each loop (look.h), as seldom as is
 * needed to take less than a hundredth of the loops' time. So being asked a thousand times a second changes nothing for
 * the crawl. One thread at a time, which is none of the loops' nor the store's; until wr_engine_finish is called.
 */
#ifndef WR_SHELL_ENGINE_METRICS_H
#define WR_SHELL_ENGINE_METRICS_H

#include "shell/engine/look.h"

#define WR_WATCH_HOSTS_MAX 1000

struct wr_crawl_watch;

/* `hosts`: how many hosts have numbers of their own, at most WR_WATCH_HOSTS_MAX: those that were asked too soon, and
 * then those that are asked most often. The rest are one more, "other". WEIR_E_NOMEM. */
int wr_crawl_watch_new(struct wr_engine *engine, size_t hosts, struct wr_crawl_watch **ret_watch);

/* Text for /metrics; good until the next call. Empty: no memory. */
struct wr_span wr_crawl_watch_text(struct wr_crawl_watch *watch);

#define WR_HEALTHS(X)                                                                           \
    X(WR_HEALTH_OK, "ok")                                                                       \
    X(WR_HEALTH_DEGRADED, "degraded")   /* hosts do not work, and are left alone for a while */ \
    X(WR_HEALTH_UNHEALTHY, "unhealthy") /* half of them or more; or the store takes nothing */

enum wr_health {
#define X(health, name) health,
    WR_HEALTHS(X)
#undef X
};

/* "ok", …; NULL for a number that is none. */
const char *wr_health_name(enum wr_health health);

struct wr_crawl_health {
    enum wr_health health;
    uint64_t hosts;           /* in memory */
    uint64_t open, half_open; /* of them, with such a breaker */
    bool is_store_paused;
};

/* U14. As of the last look. */
struct wr_crawl_health wr_crawl_watch_health(struct wr_crawl_watch *watch);

void wr_crawl_watch_free(struct wr_crawl_watch *watch);

#endif
