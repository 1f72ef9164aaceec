/* SPDX-License-Identifier: MIT */
/* report.h - weir report: what a crawl came to, once more. */
#ifndef WR_CLI_REPORT_REPORT_H
#define WR_CLI_REPORT_REPORT_H

/* Gets the words after "report"; returns an exit status. */
int wr_report_run(int argc, char **argv);

#endif
