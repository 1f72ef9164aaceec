/* SPDX-License-Identifier: MIT */
/* warm_report.h - the report of weir warm: sums over its pages, as text and as JSON. */
#ifndef WR_CLI_WARM_WARM_REPORT_H
#define WR_CLI_WARM_WARM_REPORT_H

#include "cli/warm/warm_state.h"

#define WR_WARM_SLOWEST 10
#define WR_WARM_BROKEN_SHOWN 20

struct wr_warm_summary {
    uint64_t pages;    /* number of pages found */
    uint64_t answered; /* pages with a status below 400 */
    /* Failed, denied by robots.txt, and not reached before an interrupt. */
    uint64_t broken, denied, missed;
    /* Answered pages by the cache status of the first and the last response. */
    uint64_t before[WR_CACHE_COUNT], after[WR_CACHE_COUNT];
    uint64_t hits_before, hits_after;
    uint64_t requests;
    /* Number of pages that were fetched a second time and came from the cache. */
    uint64_t compared;
    int64_t before_ns, after_ns, saved_ns; /* sums over the compared pages */
    int64_t elapsed_ns;
    /* Slowest first responses, the slowest first. */
    const struct wr_warm_page *slowest[WR_WARM_SLOWEST];
    size_t slowest_count;
    weir_client_stats wire; /* statistics of all requests */
};

/* Computes the sums. Call it after all pages have ended. */
void wr_warm_summarize(const struct wr_warm *warm, struct wr_warm_summary *ret_sum);

/* Returns the share of `hits` among the answered pages, in thousandths. */
uint64_t wr_warm_hit_ratio(const struct wr_warm_summary *sum, uint64_t hits);

void wr_warm_report_text(const struct wr_warm *warm, const struct wr_warm_summary *sum, FILE *out);

/* Writes the report. Returns false if it could not be written. */
bool wr_warm_report_json(const struct wr_warm *warm, const struct wr_warm_summary *sum, FILE *out);

#endif
