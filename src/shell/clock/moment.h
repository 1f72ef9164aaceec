/* SPDX-License-Identifier: MIT */
/* moment.h - instants that are written down, and read by another process.
 *
 * The clock on the wall may be set between the two; a clock that counts from the start of the machine may not, but
 * begins anew with the next start. So a moment has both, and the name of the start. As text:
 *
 *     1789000000000000000 5d1f0c1e-8f0a-4f0e-9c57-0b8a4ad3c1d2 86400000000000
 */
#ifndef WR_SHELL_CLOCK_MOMENT_H
#define WR_SHELL_CLOCK_MOMENT_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define WR_START_ROOM 37 /* a UUID */

struct wr_moment {
    int64_t wall_at;
    int64_t start_at;          /* since the start of the machine, also while it was suspended */
    char start[WR_START_ROOM]; /* the name of that start; "": it is not known */
};

void wr_moment_now(struct wr_moment *ret_moment);

/* How much time has passed from `then` to `now`: by the clock on the wall only where the machine was started anew in
 * between. Where that clock was set back, none. */
int64_t wr_moment_between(const struct wr_moment *then, const struct wr_moment *now);

void wr_moment_append(struct wr_buf *text, const struct wr_moment *moment);

/* A time of day alone is a moment, too. */
bool wr_moment_parse(struct wr_span text, struct wr_moment *ret_moment);

#endif
