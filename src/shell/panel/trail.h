/* SPDX-License-Identifier: MIT */
/* trail.h - how the pace of the busiest hosts came about: a few figures of each, every five seconds, for ten minutes.
 */
#ifndef WR_SHELL_PANEL_TRAIL_H
#define WR_SHELL_PANEL_TRAIL_H

#include "base/buf.h"
#include "shell/engine/look.h"

#define WR_TRAIL_HOSTS 128
#define WR_TRAIL_MARKS 120
#define WR_TRAIL_EVERY_NS (5 * WEIR_SECOND)

struct wr_trail;

/* WEIR_E_NOMEM. */
int wr_trail_new(const weir_allocator *allocator, struct wr_trail **ret_trail);
void wr_trail_free(struct wr_trail *trail);

/* Marks where the host stands, unless that was done less than WR_TRAIL_EVERY_NS ago. A host that is new takes the place
 * of the one that was marked longest ago. `now` is monotonic, `wall_now` is what is shown. */
void wr_trail_mark(struct wr_trail *trail, const struct wr_look_host *host, int64_t now, int64_t wall_now);

/* [[at_ms, rate, limit, in flight, latency_ms, cap], …], the oldest first; null: any number. */
void wr_trail_append(const struct wr_trail *trail, const char *key, struct wr_buf *buf);

#endif
