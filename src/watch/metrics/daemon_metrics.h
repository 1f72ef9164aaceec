/* SPDX-License-Identifier: MIT */
/* daemon_metrics.h - writes the metrics of a daemon: its rules and its HTTP server.
 *
 * Reads existing counters only, so no decision waits for it. Covers at most WR_RULES_MAX
 * rules. Keys of callers are not exported: they may be secrets, and are too many. */
#ifndef WR_WATCH_METRICS_DAEMON_METRICS_H
#define WR_WATCH_METRICS_DAEMON_METRICS_H

#include "serve/rules/rules.h"
#include "serve/server/http_server.h"
#include "watch/metrics/metrics.h"

void wr_metrics_rules(struct wr_metrics *metrics, struct wr_rules *book);
void wr_metrics_http(struct wr_metrics *metrics, const struct wr_http_server *server);

/* Writes the metrics of the rules, the server and the program. */
void wr_metrics_daemon(struct wr_metrics *metrics, struct wr_rules *book, const struct wr_http_server *server);

#endif
