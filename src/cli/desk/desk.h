/* SPDX-License-Identifier: MIT */
/* desk.h - weir jobs, weir hosts and weir why: asked of a crawl that runs, or of the state file that it left. */
#ifndef WR_CLI_DESK_DESK_H
#define WR_CLI_DESK_DESK_H

/* Exit statuses, of enum wr_exit. */
int wr_jobs_run(int argc, char **argv);
int wr_hosts_run(int argc, char **argv);
int wr_why_run(int argc, char **argv);

#endif
