/* SPDX-License-Identifier: MIT */
/* whole.h - the report of a job that processes share: of all of them, out of the database. */
#ifndef WR_CLI_REPORT_WHOLE_H
#define WR_CLI_REPORT_WHOLE_H

#include "cli/report/keep.h"

/* As wr_report_find, but of the whole job, the newest if none is named, also while it runs. found->run is 0. What no
 * task tells is left out: robots.txt, how close requests were, and what was waited for. */
int wr_report_whole(const char *state, struct wr_report_found *found);

#endif
