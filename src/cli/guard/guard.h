/* SPDX-License-Identifier: MIT */
/* guard.h - weir guard: may this address be connected to? */
#ifndef WR_CLI_GUARD_GUARD_H
#define WR_CLI_GUARD_GUARD_H

/* An exit status, of enum wr_exit. */
int wr_guard_run(int argc, char **argv);

#endif
