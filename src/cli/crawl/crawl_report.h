/* SPDX-License-Identifier: MIT */
/* crawl_report.h - writes the result of a crawl as JSON; cli/report prints it as text. */
#ifndef WR_CLI_CRAWL_CRAWL_REPORT_H
#define WR_CLI_CRAWL_CRAWL_REPORT_H

#include <stdio.h>

#include "cli/crawl/crawl_settings.h"
#include "crawl/engine/rate_history.h"

struct wr_crawl_report {
    const struct wr_crawl_settings *settings;
    struct wr_engine *engine; /* the engine, which has finished */
    const struct wr_engine_result *result;
    uint64_t refused; /* number of seeds that were not valid URLs */
    const struct wr_rate_history *course;
    char ended_at[32]; /* end time in UTC, such as "2026-11-15T23:00:00Z" */
};

/* Sets ended_at to the current time. */
void wr_crawl_report_stamp(struct wr_crawl_report *report);

/* Returns the name of an end: "completed", "failed", "cancelled", "budget", "blocked", "stopped" or
 * "broken". */
const char *wr_crawl_end_name(enum wr_engine_end end);

/* Writes the complete report; weir-crawl(1) documents the keys. Returns false if it could not be
 * written and sets errno. */
bool wr_crawl_report_json(const struct wr_crawl_report *report, FILE *out);

/* Returns the same JSON with only the first WR_REPORT_DATA_HOSTS hosts, for the store and for the
 * text at the end (see cli/report/report_data.h). The caller frees it with free(). Returns NULL if
 * out of memory. */
char *wr_crawl_report_json_short(const struct wr_crawl_report *report, size_t *ret_bytes);

#endif
