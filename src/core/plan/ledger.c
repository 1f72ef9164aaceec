/* SPDX-License-Identifier: MIT */
/* ledger.c - keeps the budgets and the failures of a whole job. */
#include "core/plan/ledger.h"

#include <assert.h>

#define SHARES 8 /* a grant is at most 1/8 of the rest, so that other loops get some */

void wr_ledger_init(struct wr_ledger *ret_ledger, uint64_t pages, uint64_t bytes, uint32_t threshold)
{
    *ret_ledger = (struct wr_ledger){.left = {[WR_BUDGET_PAGES] = pages, [WR_BUDGET_BYTES] = bytes},
                                     .threshold = threshold != 0 ? threshold : WR_LEDGER_THRESHOLD};
}

uint64_t wr_ledger_take_budget(struct wr_ledger *ledger, enum wr_budget_kind what, uint64_t count, bool *ret_is_last)
{
    uint64_t *left = &ledger->left[what];
    uint64_t most = *left / SHARES + (*left > 0);
    uint64_t granted = count < most ? count : most;
    if (*left != WR_LEDGER_UNLIMITED)
        *left -= granted;
    *ret_is_last = *left == 0;
    return granted;
}

enum wr_ledger_end wr_ledger_end_of(const struct wr_task_outcome *fate, int status)
{
    if (fate->kind == WR_TASK_OUTCOME_DONE)
        return WR_LEDGER_SUCCESS;
    return fate->why == WR_RETRY_PERMANENT && status >= 400 && status <= 499 ? WR_LEDGER_CLIENT_ERROR
                                                                             : WR_LEDGER_FAILURE;
}

bool wr_ledger_count_end(struct wr_ledger *ledger, enum wr_ledger_end end)
{
    if (ledger->is_over)
        return false;
    if (end == WR_LEDGER_SUCCESS)
        ledger->streak = 0;
    bool counts = end == WR_LEDGER_FAILURE || (end == WR_LEDGER_EXPIRED && !ledger->has_many_hosts);
    if (!counts)
        return false;
    ledger->streak += ledger->streak < UINT32_MAX;
    if (ledger->streak < ledger->threshold)
        return false;
    ledger->is_over = true;
    return true;
}

void wr_ledger_close(struct wr_ledger *ledger)
{
    ledger->is_over = true;
}

/* ---- concurrency ---- */

uint32_t wr_ledger_share(uint32_t concurrency, uint32_t index, uint32_t loops)
{
    assert(concurrency == 0 || concurrency >= loops);
    return concurrency / loops + (index < concurrency % loops);
}
