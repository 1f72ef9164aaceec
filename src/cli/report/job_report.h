/* SPDX-License-Identifier: MIT */
/* job_report.h - computes the report of a job that processes share from the database. */
#ifndef WR_CLI_REPORT_JOB_REPORT_H
#define WR_CLI_REPORT_JOB_REPORT_H

#include "cli/report/stored_report.h"

/* Like wr_stored_report_find, but covers all processes of the job, also while it runs; the newest
 * job if none is named. Sets found->run to 0. Leaves out what tasks do not record: robots.txt, the
 * distance of requests, and the reasons for waits. */
int wr_job_report_make(const char *state, struct wr_stored_report *found);

#endif
