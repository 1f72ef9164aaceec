/* SPDX-License-Identifier: MIT */
/* past.h - what keys have used up, taken out of a table and put into another one. */
#ifndef WR_SHELL_TABLE_PAST_H
#define WR_SHELL_TABLE_PAST_H

#include "core/admit/record.h"
#include "shell/table/table.h"

/* What an entry has used of each rule of its stack, as it is at `now`; with the shard's lock held. False if it
 * constrains nobody. Permits in flight are left out: who would release them? */
bool wr_entry_past(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now,
                   struct wr_past *ret_pasts);

/* Whether an entry was used since `since`, or a second before: what a thread decides by may be a moment old. */
bool wr_entry_used_since(const weir_table *table, const struct wr_entry *entry, int64_t since);

/* What becomes of a key that is there already and constrains. */
enum wr_recall {
    WR_RECALL_MISSING, /* it is left alone */
    WR_RECALL_ALL,     /* what it has used is what is said here, even if that is nothing */
};

/* Makes the key, and charges it what it had used `ago_ns` (0 … WEIR_DURATION_MAX) before now: at most what each rule
 * holds. `count` must be that of its rules: WEIR_E_INVAL. WEIR_E_FULL, WEIR_E_CLOSED, WEIR_E_NOMEM. */
int wr_table_recall(weir_table *table, struct wr_span key, const struct wr_past *pasts, uint32_t count, int64_t ago_ns,
                    enum wr_recall how);

/* Permits of the key that were taken `ago_ns` before now go on: those in flight are so whatever the limits say, and are
 * to be released; the others are charged already (wr_table_recall). `ret_receipt` is good for settling them. Errors as
 * above. */
int wr_table_resume(weir_table *table, struct wr_span key, uint32_t permits, int64_t ago_ns, weir_receipt *ret_receipt);

#endif
