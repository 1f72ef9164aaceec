/* SPDX-License-Identifier: MIT */
/* moment.h - instants that one process writes down and another reads.
 *
 * The wall clock may be set between the two. The clock since boot cannot be set, but restarts at 0
 * with each boot. So a moment holds both times, and the ID of the boot. As text (wall clock in ns,
 * boot ID, ns since boot):
 *
 *     1789000000000000000 5d1f0c1e-8f0a-4f0e-9c57-0b8a4ad3c1d2 86400000000000
 */
#ifndef WR_LIMITER_CLOCK_MOMENT_H
#define WR_LIMITER_CLOCK_MOMENT_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define WR_BOOT_ID_ROOM 37 /* bytes of a boot ID (a UUID) with its NUL */

struct wr_moment {
    int64_t wall_at;
    int64_t start_at;            /* ns since boot, including suspension */
    char start[WR_BOOT_ID_ROOM]; /* boot ID; "" if it is unknown */
};

void wr_moment_now(struct wr_moment *ret_moment);

/* Returns the time from `then` to `now`, ns. Uses the wall clock only if the machine was rebooted
 * in between or a boot ID is unknown; returns 0 if that clock was set back. */
int64_t wr_moment_between(const struct wr_moment *then, const struct wr_moment *now);

void wr_moment_append(struct wr_buf *text, const struct wr_moment *moment);

/* Parses a moment, or a wall clock time alone. Returns false if the text is invalid. */
bool wr_moment_parse(struct wr_span text, struct wr_moment *ret_moment);

#endif
