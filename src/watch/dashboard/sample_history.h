/* SPDX-License-Identifier: MIT */
/* sample_history.h - keeps the last samples as text, so that a new viewer sees the recent past. */
#ifndef WR_WATCH_DASHBOARD_SAMPLE_HISTORY_H
#define WR_WATCH_DASHBOARD_SAMPLE_HISTORY_H

#include "base/buf.h"

struct wr_sample_history {
    struct wr_buf *texts; /* `most` buffers; sample n is in n % most */
    uint32_t most;
    uint64_t number; /* number of the last sample; 0: none yet */
    const weir_allocator *allocator;
};

/* Returns WEIR_E_NOMEM on failure. */
int wr_sample_history_init(struct wr_sample_history *ret_history, uint32_t most, const weir_allocator *allocator);
void wr_sample_history_release(struct wr_sample_history *history);

/* wr_sample_history_next returns the buffer for the next sample, empty. wr_sample_history_commit
 * makes it the last sample, unless writing to it failed. */
struct wr_buf *wr_sample_history_next(struct wr_sample_history *history);
void wr_sample_history_commit(struct wr_sample_history *history);

/* Appends the samples after `since`, oldest first, separated by commas. If they exceed
 * `most_bytes`, omits the oldest. */
void wr_sample_history_append(const struct wr_sample_history *history, uint64_t since, size_t most_bytes,
                              struct wr_buf *buf);

/* Returns the last sample; empty if there is none. */
struct wr_span wr_sample_history_last(const struct wr_sample_history *history);

#endif
