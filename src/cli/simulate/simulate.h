/* SPDX-License-Identifier: MIT */
/* simulate.h - weir simulate: how close to a host's limit does a pacer stay? */
#ifndef WR_CLI_SIMULATE_SIMULATE_H
#define WR_CLI_SIMULATE_SIMULATE_H

/* An exit status, of enum wr_exit. */
int wr_simulate_run(int argc, char **argv);

#endif
