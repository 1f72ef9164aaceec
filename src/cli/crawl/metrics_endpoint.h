/* SPDX-License-Identifier: MIT */
/* metrics_endpoint.h - answers /metrics for Prometheus and /healthz for supervisors of a running
 * crawl. */
#ifndef WR_CLI_CRAWL_METRICS_ENDPOINT_H
#define WR_CLI_CRAWL_METRICS_ENDPOINT_H

#include "crawl/engine/engine_metrics.h"
#include "serve/server/http_server.h"

/* Answers a request for /metrics or /healthz. Returns false, without an answer, for another path.
 * Runs in the thread of `watch`. */
bool wr_crawl_metrics_answer(struct wr_engine_metrics *watch, struct wr_http_exchange *exchange);

#endif
