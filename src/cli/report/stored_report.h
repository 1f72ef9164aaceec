/* SPDX-License-Identifier: MIT */
/* stored_report.h - stores the report at the end of a run in the state file and finds it later. */
#ifndef WR_CLI_REPORT_STORED_REPORT_H
#define WR_CLI_REPORT_STORED_REPORT_H

#include "crawl/store/store.h"

/* Stores the report of a run of the job in a state file that no process has open. Returns false
 * after printing an error. */
bool wr_stored_report_write(const char *state, int64_t job, struct wr_span text);

struct wr_stored_report {
    int64_t job, run; /* in: the wanted job and run, 0 for the newest; out: those that were found */
    char *text;       /* freed by the caller with free(); NULL: no report */
    size_t bytes;
};

/* Finds a report. Returns WEIR_E_ABSENT if there is no such report, or an error of wr_store_open or
 * wr_store_read. */
int wr_stored_report_find(const char *state, struct wr_stored_report *found);

#endif
