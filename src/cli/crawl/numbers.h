/* SPDX-License-Identifier: MIT */
/* numbers.h - what a crawl tells over HTTP while it runs: /metrics for Prometheus, /healthz for whoever restarts it. */
#ifndef WR_CLI_CRAWL_NUMBERS_H
#define WR_CLI_CRAWL_NUMBERS_H

#include "shell/engine/metrics.h"
#include "shell/http/http.h"

/* False: the path is neither, and nothing is answered. On the watch's thread. */
bool wr_numbers_answer(struct wr_crawl_watch *watch, struct wr_http_exchange *exchange);

#endif
