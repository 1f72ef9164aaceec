/* SPDX-License-Identifier: MIT */
/* crawl_source.h - the dashboard of a crawl: shows responses of its control socket (watch/control),
 * and the history of host paces. */
#ifndef WR_WATCH_DASHBOARD_CRAWL_SOURCE_H
#define WR_WATCH_DASHBOARD_CRAWL_SOURCE_H

#include "watch/control/control.h"
#include "watch/dashboard/dashboard.h"

struct wr_dashboard_crawl;

/* Creates the data source; call it after wr_engine_start. Returns WEIR_E_NOMEM on failure. */
int wr_dashboard_crawl_new(struct wr_engine *engine, struct wr_dashboard_crawl **ret_crawl);

/* Call it after the dashboard was freed, and before wr_engine_finish. Accepts NULL. */
void wr_dashboard_crawl_free(struct wr_dashboard_crawl *crawl);

/* Returns the source, which is valid until wr_dashboard_crawl_free. */
const struct wr_dashboard_source *wr_dashboard_crawl_source(const struct wr_dashboard_crawl *crawl);

#endif
