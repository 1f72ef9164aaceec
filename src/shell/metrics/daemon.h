/* SPDX-License-Identifier: MIT */
/* daemon.h - writes the metrics of a daemon: its rules and its HTTP server.
 *
 * Reads existing counters only, so no decision waits for it. Covers at most WR_BOOK_RULES_MAX
 * rules. Keys of callers are not exported: they may be secrets, and are too many. */
#ifndef WR_SHELL_METRICS_DAEMON_H
#define WR_SHELL_METRICS_DAEMON_H

#include "shell/http/http.h"
#include "shell/metrics/metrics.h"
#include "shell/rulebook/rulebook.h"

void wr_metrics_rules(struct wr_metrics *metrics, struct wr_rulebook *book);
void wr_metrics_http(struct wr_metrics *metrics, const struct wr_http *server);

/* Writes the metrics of the rules, the server and the program. */
void wr_metrics_daemon(struct wr_metrics *metrics, struct wr_rulebook *book, const struct wr_http *server);

#endif
