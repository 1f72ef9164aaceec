/* SPDX-License-Identifier: MIT */
/* inspect_commands.h - weir jobs, weir hosts and weir why: inspect and control a running crawl, or
 * the state file that it left. */
#ifndef WR_CLI_INSPECT_INSPECT_COMMANDS_H
#define WR_CLI_INSPECT_INSPECT_COMMANDS_H

/* Each function returns an exit status of enum wr_exit. */
int wr_jobs_run(int argc, char **argv);
int wr_hosts_run(int argc, char **argv);
int wr_why_run(int argc, char **argv);

#endif
