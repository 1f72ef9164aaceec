/* SPDX-License-Identifier: MIT */
/* robots.h - weir robots: one robots.txt, the way weir reads it. */
#ifndef WR_CLI_ROBOTS_ROBOTS_H
#define WR_CLI_ROBOTS_ROBOTS_H

#include "core/rules/robots/robots.h"

/* Exit statuses, of enum wr_exit; `check` has some of its own. */
int wr_robots_run(int argc, char **argv);
int wr_robots_check_run(int argc, char **argv);
int wr_robots_show_run(int argc, char **argv);

/* Reads a file ("-": standard input) for an agent. False, after a complaint, if that cannot be done. */
bool wr_robots_load(const char *agent, const char *file, struct wr_robots **ret_robots);

#endif
