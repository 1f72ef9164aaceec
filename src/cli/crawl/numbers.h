/* SPDX-License-Identifier: MIT */
/* numbers.h - answers /metrics for Prometheus and /healthz for supervisors of a running crawl. */
#ifndef WR_CLI_CRAWL_NUMBERS_H
#define WR_CLI_CRAWL_NUMBERS_H

#include "shell/engine/metrics.h"
#include "shell/http/http.h"

/* Answers a request for /metrics or /healthz. Returns false, without an answer, for another path.
 * Runs in the thread of `watch`. */
bool wr_numbers_answer(struct wr_crawl_watch *watch, struct wr_http_exchange *exchange);

#endif
