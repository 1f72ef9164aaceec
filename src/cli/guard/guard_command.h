/* SPDX-License-Identifier: MIT */
/* guard_command.h - weir guard: reports whether weir may connect to an address, host or URL. */
#ifndef WR_CLI_GUARD_GUARD_COMMAND_H
#define WR_CLI_GUARD_GUARD_COMMAND_H

/* Returns an exit status of enum wr_exit. */
int wr_guard_run(int argc, char **argv);

#endif
