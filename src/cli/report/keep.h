/* SPDX-License-Identifier: MIT */
/* keep.h - stores the report at the end of a run in the state file and finds it later. */
#ifndef WR_CLI_REPORT_KEEP_H
#define WR_CLI_REPORT_KEEP_H

#include "shell/store/store.h"

/* Stores the report of a run of the job in a state file that no process has open. Returns false
 * after printing an error. */
bool wr_report_keep(const char *state, int64_t job, struct wr_span text);

struct wr_report_found {
    int64_t job, run; /* in: the wanted job and run, 0 for the newest; out: those that were found */
    char *text;       /* freed by the caller with free(); NULL: no report */
    size_t bytes;
};

/* Finds a report. Returns WEIR_E_ABSENT if there is no such report, or an error of wr_store_open or
 * wr_store_read. */
int wr_report_find(const char *state, struct wr_report_found *found);

#endif
