/* SPDX-License-Identifier: MIT */
/* host_history.h - the host history: figures of the busiest hosts, every five seconds, for ten
 * minutes. */
#ifndef WR_WATCH_DASHBOARD_HOST_HISTORY_H
#define WR_WATCH_DASHBOARD_HOST_HISTORY_H

#include "base/buf.h"
#include "crawl/engine/crawl_inspect.h"

#define WR_HOST_HISTORY_HOSTS 128
#define WR_HOST_HISTORY_RECORDS 120
#define WR_HOST_HISTORY_INTERVAL_NS (5 * WEIR_SECOND)

struct wr_host_history;

/* Returns WEIR_E_NOMEM on failure. */
int wr_host_history_new(const weir_allocator *allocator, struct wr_host_history **ret_trail);
void wr_host_history_free(struct wr_host_history *history);

/* Records figures of a host, unless the last record is newer than WR_HOST_HISTORY_INTERVAL_NS. A
 * new host replaces the one with the oldest last record. `now` is monotonic; `wall_now` is
 * shown. */
void wr_host_history_record(struct wr_host_history *history, const struct wr_host_view *host, int64_t now,
                            int64_t wall_now);

/* Appends the records of a host as JSON, oldest first: [[at_ms, rate, limit, in flight, latency_ms,
 * cap], ...]. null means unlimited. */
void wr_host_history_append(const struct wr_host_history *history, const char *key, struct wr_buf *buf);

#endif
