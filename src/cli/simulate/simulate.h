/* SPDX-License-Identifier: MIT */
/* simulate.h - weir simulate: shows how close a pacer stays to a host's limit. */
#ifndef WR_CLI_SIMULATE_SIMULATE_H
#define WR_CLI_SIMULATE_SIMULATE_H

/* Returns an exit status of enum wr_exit. */
int wr_simulate_run(int argc, char **argv);

#endif
