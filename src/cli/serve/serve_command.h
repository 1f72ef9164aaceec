/* SPDX-License-Identifier: MIT */
/* serve_command.h - weir serve: the daemon that decides which requests may pass. */
#ifndef WR_CLI_SERVE_SERVE_COMMAND_H
#define WR_CLI_SERVE_SERVE_COMMAND_H

#include "cli/kit/command_options.h"

extern const struct wr_usage wr_serve_usage;

int wr_serve_run(int argc, char **argv);

#endif
