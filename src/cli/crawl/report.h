/* SPDX-License-Identifier: MIT */
/* report.h - what a crawl came to, as JSON: cli/report has it in words. */
#ifndef WR_CLI_CRAWL_REPORT_H
#define WR_CLI_CRAWL_REPORT_H

#include <stdio.h>

#include "cli/crawl/settings.h"
#include "shell/engine/course.h"

struct wr_crawl_report {
    const struct wr_crawl_settings *settings;
    struct wr_engine *engine; /* has finished */
    const struct wr_engine_result *result;
    uint64_t refused; /* seeds that were no URL */
    const struct wr_course *course;
    char ended_at[32]; /* "2026-11-15T23:00:00Z" */
};

/* It ended now. */
void wr_crawl_report_stamp(struct wr_crawl_report *report);

/* "completed", "failed", "cancelled", "budget", "stopped", "broken". */
const char *wr_crawl_end_name(enum wr_engine_end end);

/* All of it; weir-crawl(1) tells the keys. False if it could not be written, see errno. */
bool wr_crawl_report_json(const struct wr_crawl_report *report, FILE *out);

/* The same with the WR_FACTS_HOSTS hosts that were asked most: what is kept, and what is said at the end (see
 * cli/report/facts.h). For free(). NULL: no memory. */
char *wr_crawl_report_kept(const struct wr_crawl_report *report, size_t *ret_bytes);

#endif
