/* SPDX-License-Identifier: MIT */
/* keep.h - reports in a state file: kept at the end of a run, and found again. */
#ifndef WR_CLI_REPORT_KEEP_H
#define WR_CLI_REPORT_KEEP_H

#include "shell/store/store.h"

/* Keeps the report of a run of the job, in a state file that nobody has open. False after a complaint. */
bool wr_report_keep(const char *state, int64_t job, struct wr_span text);

struct wr_report_found {
    int64_t job, run; /* of the one that is wanted, 0: the newest; then of what was found */
    char *text;       /* for free(); NULL: there is none */
    size_t bytes;
};

/* WEIR_E_ABSENT: there is no such report. Others as of wr_store_open and wr_store_read. */
int wr_report_find(const char *state, struct wr_report_found *found);

#endif
