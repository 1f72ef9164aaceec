/* SPDX-License-Identifier: MIT */
/* trail.h - the host history: figures of the busiest hosts, every five seconds, for ten minutes. */
#ifndef WR_SHELL_PANEL_TRAIL_H
#define WR_SHELL_PANEL_TRAIL_H

#include "base/buf.h"
#include "shell/engine/look.h"

#define WR_TRAIL_HOSTS 128
#define WR_TRAIL_MARKS 120
#define WR_TRAIL_EVERY_NS (5 * WEIR_SECOND)

struct wr_trail;

/* Returns WEIR_E_NOMEM on failure. */
int wr_trail_new(const weir_allocator *allocator, struct wr_trail **ret_trail);
void wr_trail_free(struct wr_trail *trail);

/* Records figures of a host, unless the last record is newer than WR_TRAIL_EVERY_NS. A new host
 * replaces the one with the oldest last record. `now` is monotonic; `wall_now` is shown. */
void wr_trail_mark(struct wr_trail *trail, const struct wr_look_host *host, int64_t now, int64_t wall_now);

/* Appends the records of a host as JSON, oldest first: [[at_ms, rate, limit, in flight, latency_ms,
 * cap], ...]. null means unlimited. */
void wr_trail_append(const struct wr_trail *trail, const char *key, struct wr_buf *buf);

#endif
