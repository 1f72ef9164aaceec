/* SPDX-License-Identifier: MIT */
/* report.h - what a warming came to: sums over its pages, as text and as JSON. */
#ifndef WR_CLI_WARM_REPORT_H
#define WR_CLI_WARM_REPORT_H

#include "cli/warm/state.h"

#define WR_WARM_SLOWEST 10
#define WR_WARM_BROKEN_SHOWN 20

struct wr_warm_sum {
    uint64_t pages;                                         /* found */
    uint64_t answered;                                      /* with a status below 400 */
    uint64_t broken, denied, missed;                        /* `missed`: not reached before it was interrupted */
    uint64_t before[WR_CACHE_COUNT], after[WR_CACHE_COUNT]; /* of those answered, by what the cache said */
    uint64_t hits_before, hits_after;
    uint64_t requests;
    uint64_t compared;                     /* pages that were asked for again, and came out of the cache */
    int64_t before_ns, after_ns, saved_ns; /* of these, in all */
    int64_t elapsed_ns;
    const struct wr_warm_page *slowest[WR_WARM_SLOWEST]; /* by the first answer */
    size_t slowest_count;
    weir_client_stats wire; /* all that was sent */
};

/* Once it is over. */
void wr_warm_sum_up(const struct wr_warm *warm, struct wr_warm_sum *ret_sum);

/* Of pages that were answered, in 1/1000. */
uint64_t wr_warm_ratio(const struct wr_warm_sum *sum, uint64_t hits);

void wr_warm_report_text(const struct wr_warm *warm, const struct wr_warm_sum *sum, FILE *out);

/* False if it could not be written. */
bool wr_warm_report_json(const struct wr_warm *warm, const struct wr_warm_sum *sum, FILE *out);

#endif
