/* SPDX-License-Identifier: MIT */
/* fetch_command.h - weir fetch: fetches given URLs politely. */
#ifndef WR_CLI_FETCH_FETCH_COMMAND_H
#define WR_CLI_FETCH_FETCH_COMMAND_H

#include "cli/kit/command_options.h"

extern const struct wr_usage wr_fetch_usage;

/* Returns an exit status of enum wr_exit, or 130 after an interrupt. */
int wr_fetch_run(int argc, char **argv);

#endif
