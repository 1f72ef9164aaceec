/* SPDX-License-Identifier: MIT */
/* ledger.h - keeps the budgets and the failures of a whole job: one ledger per job, on one loop,
 * for all plans.
 *
 *     DRAW  ──▶ wr_ledger_take_budget ──▶ wr_plan_grant_budget              pages and bytes, in chunks
 *     a task ended ──▶ wr_ledger_count_end ──▶ true, once: the job has failed; wr_plan_job_end
 *
 * A job fails after `threshold` failed tasks in a row; then wr_plan_job_end is called in all plans.
 * The results of all hosts count together, in the order in which they are reported. A success
 * restarts the count. A 4xx response neither counts nor restarts it, because the page is at fault
 * and not the host. An expired task counts only while the job has one host: of many hosts some are
 * always dead, and their tasks expire together.
 */
#ifndef WR_CORE_PLAN_LEDGER_H
#define WR_CORE_PLAN_LEDGER_H

#include "core/plan/plan.h"

#define WR_LEDGER_THRESHOLD 20
#define WR_LEDGER_UNLIMITED UINT64_MAX

/* The caller owns the memory, but must not change the fields. */
struct wr_ledger {
    uint64_t left[WR_BUDGET_KINDS];
    uint32_t threshold; /* failed tasks in a row until the job fails; UINT32_MAX: it never does */
    uint32_t streak;
    bool has_many_hosts;
    bool is_over;
};

/* Fills a ledger. WR_LEDGER_UNLIMITED pages or bytes: no limit. A threshold of 0: the default. */
void wr_ledger_init(struct wr_ledger *ret_ledger, uint64_t pages, uint64_t bytes, uint32_t threshold);

/* Takes at most `count` from a budget, and at most an eighth of the rest, so that one loop does not
 * take all: the part it leaves unused is lost to the others. Returns the number taken.
 * *ret_is_last: the budget is used up. */
uint64_t wr_ledger_take_budget(struct wr_ledger *ledger, enum wr_budget_kind what, uint64_t count, bool *ret_is_last);

enum wr_ledger_end {
    WR_LEDGER_SUCCESS,
    WR_LEDGER_CLIENT_ERROR, /* the task failed by a 4xx response */
    WR_LEDGER_FAILURE,      /* the task failed for another reason */
    WR_LEDGER_EXPIRED,
};
/* Classifies the end of a task for wr_ledger_count_end. */
enum wr_ledger_end wr_ledger_end_of(const struct wr_task_outcome *fate, int status);
/* Counts the end of a task. Returns true once, if the job fails by it and is not already over. */
bool wr_ledger_count_end(struct wr_ledger *ledger, enum wr_ledger_end end);

/* Marks the job as over. */
void wr_ledger_close(struct wr_ledger *ledger);

/* ---- concurrency ---- */

/* Returns the share of loop `index` of `loops` in a job's concurrency; the shares add up. 0 means
 * unlimited; otherwise `concurrency` must be at least `loops`. */
uint32_t wr_ledger_share(uint32_t concurrency, uint32_t index, uint32_t loops);

#endif
