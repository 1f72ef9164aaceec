/* SPDX-License-Identifier: MIT */
/* usage.h - saves and restores how much keys have used of their limits. */
#ifndef WR_LIMITER_TABLE_USAGE_H
#define WR_LIMITER_TABLE_USAGE_H

#include "core/admit/usage_record.h"
#include "limiter/table/table.h"

/* Reports what an entry has used of each limit of its stack at `now`; the shard's lock is held.
 * Returns false if nothing is used. Permits in flight are omitted, because no caller would release
 * them. */
bool wr_entry_usage(weir_table *table, struct wr_shard *shard, struct wr_entry *entry, int64_t now,
                    struct wr_limit_usage *ret_pasts);

/* Returns true if an entry was used at or after `since` minus one second. The margin covers threads
 * that decide with a slightly old time. */
bool wr_entry_used_since(const weir_table *table, const struct wr_entry *entry, int64_t since);

/* What wr_table_restore_usage does with a key that exists and has used permits. */
enum wr_restore_mode {
    WR_RESTORE_IF_MISSING, /* the key keeps its state */
    WR_RESTORE_ALL,        /* the state is replaced, even if `usages` says that nothing is used */
};

/* Creates the key and charges what it had used `ago_ns` (0 ... WEIR_DURATION_MAX) ago, at most the
 * full limits. Returns WEIR_E_INVAL if `count` is not the number of its limits; WEIR_E_FULL,
 * WEIR_E_CLOSED or WEIR_E_NOMEM. */
int wr_table_restore_usage(weir_table *table, struct wr_span key, const struct wr_limit_usage *usages, uint32_t count,
                           int64_t ago_ns, enum wr_restore_mode how);

/* Takes over permits of a key that were granted `ago_ns` ago. Takes permits in flight, regardless
 * of the limit; they must be released. Other permits were charged by wr_table_restore_usage.
 * *ret_receipt can be used to settle them. Errors are those of wr_table_restore_usage, and
 * WEIR_E_INVAL. */
int wr_table_restore_permits(weir_table *table, struct wr_span key, uint32_t permits, int64_t ago_ns,
                             weir_receipt *ret_receipt);

#endif
