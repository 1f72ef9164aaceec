/* SPDX-License-Identifier: MIT */
/* report.h - what a crawl came to, in words and as JSON. */
#ifndef WR_CLI_CRAWL_REPORT_H
#define WR_CLI_CRAWL_REPORT_H

#include <stdio.h>

#include "cli/crawl/settings.h"

struct wr_crawl_report {
    const struct wr_crawl_settings *settings;
    struct wr_engine *engine; /* has finished */
    const struct wr_engine_result *result;
    uint64_t refused; /* seeds that were no URL */
};

/* "completed", "failed", "cancelled", "budget", "stopped", "broken". */
const char *wr_crawl_end_name(enum wr_engine_end end);

/* The totals, and the hosts that were asked most. */
void wr_crawl_report_text(const struct wr_crawl_report *report, FILE *out);

/* All of it; weir-crawl(1) tells the keys. False if it could not be written, see errno. */
bool wr_crawl_report_json(const struct wr_crawl_report *report, FILE *out);

#endif
