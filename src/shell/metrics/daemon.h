/* SPDX-License-Identifier: MIT */
/* daemon.h - a daemon in numbers: its rules, and its HTTP server.
 *
 * Pull: what is read here is counted anyway, and no decision waits for it. At most WR_BOOK_RULES_MAX rules, and no key
 * of any caller: they may be secrets, and are too many.
 */
#ifndef WR_SHELL_METRICS_DAEMON_H
#define WR_SHELL_METRICS_DAEMON_H

#include "shell/http/http.h"
#include "shell/metrics/metrics.h"
#include "shell/rulebook/rulebook.h"

void wr_metrics_rules(struct wr_metrics *metrics, struct wr_rulebook *book);
void wr_metrics_http(struct wr_metrics *metrics, const struct wr_http *server);

/* Both, and wr_metrics_program. */
void wr_metrics_daemon(struct wr_metrics *metrics, struct wr_rulebook *book, const struct wr_http *server);

#endif
