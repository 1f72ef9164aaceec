/* SPDX-License-Identifier: MIT */
/* report_command.h - weir report: shows the report of a crawl that has ended. */
#ifndef WR_CLI_REPORT_REPORT_COMMAND_H
#define WR_CLI_REPORT_REPORT_COMMAND_H

/* Runs the command with the arguments after "report". Returns an exit status. */
int wr_report_run(int argc, char **argv);

#endif
