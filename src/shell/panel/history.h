/* SPDX-License-Identifier: MIT */
/* history.h - the last samples, as texts, so that who comes later sees what was before. */
#ifndef WR_SHELL_PANEL_HISTORY_H
#define WR_SHELL_PANEL_HISTORY_H

#include "base/buf.h"

struct wr_history {
    struct wr_buf *texts; /* `most`; sample n is at n % most */
    uint32_t most;
    uint64_t number; /* of the last one; 0: there is none */
    const weir_allocator *allocator;
};

/* WEIR_E_NOMEM. */
int wr_history_init(struct wr_history *ret_history, uint32_t most, const weir_allocator *allocator);
void wr_history_release(struct wr_history *history);

/* The place of the next sample, empty; wr_history_keep makes it the last one, unless it is not whole. */
struct wr_buf *wr_history_next(struct wr_history *history);
void wr_history_keep(struct wr_history *history);

/* Appends those after `since`, the oldest first, with commas between; but none that would make it more than
 * `most_bytes`: the newest count. */
void wr_history_append(const struct wr_history *history, uint64_t since, size_t most_bytes, struct wr_buf *buf);

/* The last one; empty if there is none. */
struct wr_span wr_history_last(const struct wr_history *history);

#endif
