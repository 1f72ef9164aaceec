/* SPDX-License-Identifier: MIT */
/* whole.h - computes the report of a job that processes share from the database. */
#ifndef WR_CLI_REPORT_WHOLE_H
#define WR_CLI_REPORT_WHOLE_H

#include "cli/report/keep.h"

/* Like wr_report_find, but covers all processes of the job, also while it runs; the newest job if
 * none is named. Sets found->run to 0. Leaves out what tasks do not record: robots.txt, the
 * distance of requests, and the reasons for waits. */
int wr_report_whole(const char *state, struct wr_report_found *found);

#endif
