/* SPDX-License-Identifier: MIT */
/* ledger.h - what belongs to a whole job: one of it, on one loop, however many plans there are.
 *
 *     DRAW  ──▶ wr_ledger_draw ──▶ wr_plan_grant                  pages and bytes, in chunks
 *     a task ended ──▶ wr_ledger_ended ──▶ true, once: the job has failed; wr_plan_job_end in every plan
 *
 * A job fails after `threshold` task failures in a row (S2-15): the answers of all hosts count together, in the order
 * in which they are told. A success ends the row. An answer 4xx neither adds nor ends: the page is at fault, not the
 * host. A task that expired (R6) counts while the job has only one host: of many hosts, some are always dead, and their
 * tasks expire all at once.
 */
#ifndef WR_CORE_PLAN_LEDGER_H
#define WR_CORE_PLAN_LEDGER_H

#include "core/plan/plan.h"

#define WR_LEDGER_THRESHOLD 20
#define WR_LEDGER_UNLIMITED UINT64_MAX

/* The caller's to keep, not to change. */
struct wr_ledger {
    uint64_t left[WR_DRAWS];
    uint32_t threshold; /* UINT32_MAX: never */
    uint32_t streak;
    bool has_many_hosts;
    bool is_over;
};

/* Of pages and bytes WR_LEDGER_UNLIMITED: any number; a threshold of 0: the default. */
void wr_ledger_init(struct wr_ledger *ret_ledger, uint64_t pages, uint64_t bytes, uint32_t threshold);

/* At most `count`, and of what is left an eighth, so that one loop does not take all: what it does not use is lost to
 * the others. *ret_is_last: there are no more. */
uint64_t wr_ledger_draw(struct wr_ledger *ledger, enum wr_draw what, uint64_t count, bool *ret_is_last);

enum wr_ledger_end {
    WR_LEDGER_SUCCESS,
    WR_LEDGER_ANSWER,  /* it failed, by an answer 4xx */
    WR_LEDGER_FAILURE, /* it failed otherwise */
    WR_LEDGER_EXPIRED,
};
/* What the end of a task means. */
enum wr_ledger_end wr_ledger_end_of(const struct wr_fate *fate, int status);
/* Whether the job fails by it; once, and not if it is over. */
bool wr_ledger_ended(struct wr_ledger *ledger, enum wr_ledger_end end);

/* The job is over. */
void wr_ledger_close(struct wr_ledger *ledger);

/* ---- concurrency ---- */

/* The part of its concurrency that loop `index` of `loops` has; the parts add up. 0: any; else at least one for each
 * loop. */
uint32_t wr_ledger_share(uint32_t concurrency, uint32_t index, uint32_t loops);

#endif
